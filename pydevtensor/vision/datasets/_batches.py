"""The pickled batches of CIFAR, read without executing anything.

A file is a dict of lists, strings, numbers and arrays. Its instructions are followed
here: what would name or call a function makes a note instead, and only the notes of
NumPy's way to write an array are understood.
"""

from __future__ import annotations

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
        found = _run(data)
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


def _run(data: bytes) -> Any:
    stack: list[Any] = []
    memo: dict[Any, Any] = {}

    def since_mark() -> list[Any]:
        items = []
        while (item := stack.pop()) is not _MARK:
            items.append(item)
        return items[::-1]

    def set_items(items: list[Any]) -> None:
        target = stack[-1]
        if type(target) is not dict or len(items) % 2:
            raise ValueError("a dict is filled wrongly")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if type(key) not in (str, bytes, int):
                raise ValueError(f"a key is a {type(key).__name__}")
            target[key] = value

    def append(items: list[Any]) -> None:
        if type(stack[-1]) is not list:
            raise ValueError("a list is filled wrongly")
        stack[-1].extend(items)

    for opcode, argument, _ in genops(data):
        name = opcode.name
        if name in ("PROTO", "FRAME"):
            continue
        elif name == "STOP":
            return stack.pop()
        elif name == "MARK":
            stack.append(_MARK)
        elif name in ("EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE"):
            stack.append({"D": dict, "L": list, "T": tuple}[name[6]]())
        elif name in ("NONE", "NEWTRUE", "NEWFALSE"):
            stack.append({"NONE": None, "NEWTRUE": True, "NEWFALSE": False}[name])
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name == "TUPLE":
            stack.append(tuple(since_mark()))
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            count = int(name[5])
            stack[-count:] = [tuple(stack[-count:])]
        elif name == "LIST":
            stack.append(since_mark())
        elif name == "DICT":
            items = since_mark()
            stack.append({})
            set_items(items)
        elif name in ("APPEND", "SETITEM"):
            items = [stack.pop() for _ in name[::6]][::-1]
            (append if name == "APPEND" else set_items)(items)
        elif name == "APPENDS":
            append(since_mark())
        elif name == "SETITEMS":
            set_items(since_mark())
        elif name == "GLOBAL":
            stack.append(_Note(str(argument)))
        elif name == "STACK_GLOBAL":
            inner, outer = stack.pop(), stack.pop()
            stack.append(_Note(f"{outer} {inner}"))
        elif name == "REDUCE":
            arguments, function = stack.pop(), stack.pop()
            if type(arguments) is not tuple or not isinstance(function, _Note):
                raise ValueError("something is called that has no name")
            text = arguments[0] if arguments else None
            if function.name == "_codecs encode" and type(text) is str:
                stack.append(text.encode("latin1"))  # how Python 3 writes bytes
            else:
                stack.append(_Note(function.name, arguments))
        elif name == "BUILD":
            state = stack.pop()
            if not isinstance(stack[-1], _Note):
                raise ValueError("a plain value gets a state")
            stack[-1].state = state
        elif type(argument) in (int, str, bytes, float):
            stack.append(argument)  # numbers and strings
        else:
            raise ValueError(f"it has the instruction {name}")
    raise ValueError("it ends early")
