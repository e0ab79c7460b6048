"""Values that no caller should pass: wrong types, lies, and objects that answer with
errors or change what is being read."""

import numpy as np

import pydevtensor as torch


class Own(Exception):
    """What a hostile object raises: it reaches the caller as it is."""


def stop(self, *values, **words):
    raise Own("from a hostile object")


PROTOCOLS = (
    *(
        "__index__",
        "__int__",
        "__float__",
        "__bool__",
        "__len__",
        "__iter__",
        "__getitem__",
    ),
    *(
        "__array__",
        "__array_interface__",
        "__dlpack__",
        "__dlpack_device__",
        "__complex__",
    ),
    *("__torch_function__", "__eq__", "__hash__", "__repr__", "__str__", "__buffer__"),
    *(
        "__cuda_array_interface__",
        "__fspath__",
        "__call__",
        "__reduce_ex__",
        "__getattr__",
    ),
)
RAISES = {
    name: type(
        f"Raises{name}", (), {name: stop, "__len__": lambda self: 2} | {name: stop}
    )
    for name in PROTOCOLS
}


class Lies:
    """Says that it has many items, and gives none."""

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        raise IndexError(i)


class Returns:
    """Answers a protocol with something of the wrong type."""

    def __init__(self, answer):
        self.answer = answer

    def __index__(self):
        return self.answer

    __int__ = __float__ = __len__ = __iter__ = __bool__ = __index__
    __array__ = __dlpack__ = __dlpack_device__ = lambda self, *v, **w: self.answer


class Clears:
    """Empties the list that is being read."""

    def __init__(self, target):
        self.target = target

    def __index__(self):
        self.target.clear()
        return 1

    def __float__(self):
        self.target.clear()
        return 1.0


def cleared(count=3):
    """A list that its first item empties."""
    made = [1] * count
    made.insert(0, Clears(made))
    return made


def looped():
    """A list that contains itself."""
    made = [1]
    made.append(made)
    return made


def deep(levels=5000):
    made = 1
    for _ in range(levels):
        made = [made]
    return made


class Integer(int):
    def __index__(self):
        return 2**70

    def __mul__(self, other):
        raise Own


class Text(str):
    def __eq__(self, other):
        raise Own

    __hash__ = str.__hash__


def shrinking():
    """An array whose base the caller may still change."""
    raw = bytearray(8)
    return np.frombuffer(raw, dtype=np.uint8)


def shared():
    return torch.ones(2, 3).expand(4, 2, 3)


def read_only():
    made = np.ones((2, 3), dtype=np.float32)
    made.flags.writeable = False
    return torch.from_numpy(made)


def values():
    """The texts of hostile values, in a program that has imported this module."""
    yield from ("None", "...", "NotImplemented", "''", "'a'", "'\\ud800'", "b'x'", "1j")
    yield from ("2**31", "2**62", "-2**63", "2**63", "2**64", "10**400", "True", "-1")
    yield from (
        "float('nan')",
        "float('inf')",
        "1e300",
        "5e-324",
        "{}",
        "{1: 2}",
        "set()",
    )
    yield from ("object()", "object", "torch", "(lambda: 1)", "slice(None)", "range(3)")
    yield from (
        "[[1], [2, 3]]",
        "[None]",
        "[]",
        "((),)",
        "[[], []]",
        "('a', None)",
        "[1, 'a']",
    )
    yield from ("(0,) * 70", "(2**40,) * 3", "[2**62, 2**62]", "(-1, -1)", "[[[[1]]]]")
    yield from ("iter([1, 2])", "torch.float32", "torch.device('cpu')", "torch.strided")
    yield from ("torch.Size([2, 2**40])", "torch.tensor(2**62)", "torch.zeros(0)")
    yield from (
        "torch.zeros(2, 0, 3)",
        "torch.full((2, 3), 99)",
        "torch.ones((1,) * 16)",
    )
    yield from (f"hostile.RAISES[{name!r}]()" for name in PROTOCOLS)
    yield from (f"[hostile.RAISES[{name!r}]()]" for name in PROTOCOLS[:8])
    yield from (f"hostile.Lies({n})" for n in (-1, 3, 2**40, 2**63 - 1))
    yield from (
        f"hostile.Returns({v})" for v in ("None", "'a'", "2**70", "object()", "-1")
    )
    yield from ("hostile.cleared()", "(hostile.cleared(),)", "hostile.looped()")
    yield from (
        "hostile.deep()",
        "hostile.deep(40)",
        "hostile.Integer(1)",
        "hostile.Text('sum')",
    )
    yield from ("hostile.shared()", "hostile.read_only()", "hostile.shrinking()")
    yield from (f"hostile.np.{t}(1)" for t in ("float32", "int8", "bool_", "complex64"))
    yield from (
        "hostile.np.array([1, 'a'], dtype=object)",
        "hostile.np.zeros(2, 'M8[s]')",
    )
    yield from ("hostile.np.ones((2, 3))[:, ::-1]", "hostile.np.zeros(3, '>f4')")
    yield from (
        "hostile.np.array('a')",
        "memoryview(b'abc')",
        "hostile.np.zeros((2, 0))",
    )


VALUES = tuple(values())
