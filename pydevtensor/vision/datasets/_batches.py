"""The pickled batches of CIFAR, read without executing anything.

A file is a dict of lists, strings, numbers and arrays. Its instructions are followed
here: what would name or call a function makes a note instead, and only the notes of
NumPy's way to write an array are understood.
"""

from __future__ import annotations

from collections.abc import Callable
from pickletools import genops
from typing import Any

from pydevtensor.vision._libraries import numpy

_LIMIT = 1 << 28  # bytes; a batch of CIFAR100 has 150 MB
_MARK = object()
_ARRAYS = {"numpy.core.multiarray _reconstruct", "numpy._core.multiarray _reconstruct"}


class _Note:
    """A name in the file, or a call of one."""

    def __init__(self, name: str, arguments: tuple[Any, ...] = ()) -> None:
        self.name, self.arguments, self.state = name, arguments, None


def read_batch(path: str) -> dict[str, Any]:
    """The batch in a file; ValueError if it is damaged or holds anything else."""
    with open(path, "rb") as file:
        data = file.read(_LIMIT + 1)
    if len(data) > _LIMIT:
        raise ValueError(
            f"{path} has more than {_LIMIT} bytes: it is not a batch of CIFAR"
        )
    try:
        found = _Machine().run(data)
        if type(found) is not dict:
            raise ValueError(f"it holds a {type(found).__name__}, not a dict")
        return {_text(key): _plain(value) for key, value in found.items()}
    except RecursionError:
        raise ValueError(
            f"{path} is not a batch of CIFAR: it is nested too deep"
        ) from None
    except (ValueError, TypeError, IndexError, KeyError, AttributeError) as error:
        raise ValueError(f"{path} is not a batch of CIFAR: {error}") from None


def _text(value: Any) -> str:
    if not isinstance(value, str | bytes):
        raise ValueError(f"a key is a {type(value).__name__}")
    return value if isinstance(value, str) else value.decode("latin1")


def _plain(value: Any) -> Any:
    if isinstance(value, _Note):
        return _array(value)
    if type(value) is list:
        if not all(type(item) in (int, str, bytes) for item in value):
            raise ValueError("a list holds something besides numbers and strings")
        return [i.decode("latin1") if isinstance(i, bytes) else i for i in value]
    return value.decode("latin1") if isinstance(value, bytes) else value


def _array(note: _Note) -> Any:
    """The array of bytes that a note describes."""
    np = numpy("a data set")

    if note.name not in _ARRAYS or type(note.state) is not tuple:
        raise ValueError(f"it names {note.name[:80]!r}, which is not an array")
    _, shape, dtype, columns_first, data = note.state
    kind = getattr(dtype, "name", None), getattr(dtype, "arguments", ())[:1]
    if kind not in (("numpy dtype", ("u1",)), ("numpy dtype", (b"u1",))):
        raise ValueError("an array holds other numbers than bytes")
    if isinstance(data, str):
        data = data.encode("latin1")
    if not all(type(n) is int and 0 <= n < 1 << 32 for n in shape):
        raise ValueError(f"an array has the shape {shape!r}")
    values = np.frombuffer(data, np.uint8)
    return values.reshape(shape, order="F" if columns_first else "C").copy()


class _Machine:
    """The state that a pickle's instructions work on; _STEPS has the instructions."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[Any, Any] = {}

    def run(self, data: bytes) -> Any:
        for opcode, argument, _ in genops(data):
            if opcode.name == "STOP":
                return self.stack.pop()
            if step := _STEPS.get(opcode.name):
                step(self, argument)
            elif type(argument) in (int, str, bytes, float):
                self.stack.append(argument)  # numbers and strings
            else:
                raise ValueError(f"it has the instruction {opcode.name}")
        raise ValueError("it ends early")

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def keep(self, key: Any) -> None:
        self.memo[key] = self.stack[-1]

    def since_mark(self) -> list[Any]:
        items = []
        while (item := self.stack.pop()) is not _MARK:
            items.append(item)
        return items[::-1]

    def last(self, count: int) -> list[Any]:
        return [self.stack.pop() for _ in range(count)][::-1]

    def make_tuple(self, count: int) -> None:
        self.stack[-count:] = [tuple(self.stack[-count:])]

    def make_dict(self) -> None:
        items = self.since_mark()
        self.push({})
        self.set_items(items)

    def set_items(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not dict or len(items) % 2:
            raise ValueError("a dict is filled wrongly")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if type(key) not in (str, bytes, int):
                raise ValueError(f"a key is a {type(key).__name__}")
            target[key] = value

    def append(self, items: list[Any]) -> None:
        if type(self.stack[-1]) is not list:
            raise ValueError("a list is filled wrongly")
        self.stack[-1].extend(items)

    def note_call(self) -> None:
        function, arguments = self.last(2)
        if type(arguments) is not tuple or not isinstance(function, _Note):
            raise ValueError("something is called that has no name")
        text = arguments[0] if arguments else None
        if function.name == "_codecs encode" and type(text) is str:
            self.push(text.encode("latin1"))  # how Python 3 writes bytes
        else:
            self.push(_Note(function.name, arguments))

    def note_state(self) -> None:
        state = self.stack.pop()
        if not isinstance(self.stack[-1], _Note):
            raise ValueError("a plain value gets a state")
        self.stack[-1].state = state


# The functions of the instructions, by name. Each gets the machine and the argument.
_STEPS: dict[str, Callable[[_Machine, Any], Any]] = {
    "PROTO": lambda m, _: None,
    "FRAME": lambda m, _: None,
    "MARK": lambda m, _: m.push(_MARK),
    "EMPTY_DICT": lambda m, _: m.push({}),
    "EMPTY_LIST": lambda m, _: m.push([]),
    "EMPTY_TUPLE": lambda m, _: m.push(()),
    "NONE": lambda m, _: m.push(None),
    "NEWTRUE": lambda m, _: m.push(True),
    "NEWFALSE": lambda m, _: m.push(False),
    "PUT": _Machine.keep,
    "BINPUT": _Machine.keep,
    "LONG_BINPUT": _Machine.keep,
    "MEMOIZE": lambda m, _: m.keep(len(m.memo)),
    "GET": lambda m, key: m.push(m.memo[key]),
    "BINGET": lambda m, key: m.push(m.memo[key]),
    "LONG_BINGET": lambda m, key: m.push(m.memo[key]),
    "TUPLE": lambda m, _: m.push(tuple(m.since_mark())),
    "TUPLE1": lambda m, _: m.make_tuple(1),
    "TUPLE2": lambda m, _: m.make_tuple(2),
    "TUPLE3": lambda m, _: m.make_tuple(3),
    "LIST": lambda m, _: m.push(m.since_mark()),
    "DICT": lambda m, _: m.make_dict(),
    "APPEND": lambda m, _: m.append(m.last(1)),
    "APPENDS": lambda m, _: m.append(m.since_mark()),
    "SETITEM": lambda m, _: m.set_items(m.last(2)),
    "SETITEMS": lambda m, _: m.set_items(m.since_mark()),
    "GLOBAL": lambda m, name: m.push(_Note(str(name))),
    "STACK_GLOBAL": lambda m, _: m.push(_Note("{} {}".format(*m.last(2)))),
    "REDUCE": lambda m, _: m.note_call(),
    "BUILD": lambda m, _: m.note_state(),
}
