"""Reads the pickles of checkpoints, which hold values of a closed list of types.

Python's pickle.Unpickler cannot be made safe by overriding find_class() and
persistent_load():

* a dict key or set item of tuples nested 100,000 deep overflows the C stack when it is
  hashed (the process dies), and one that doubles 60 times is hashed for years;
* LONG_BINPUT with a high index allocates up to 64 GB for the memo, from 7 bytes;
* BUILD sets attributes and calls __setstate__, APPENDS and ADDITEMS call extend(),
  append() and add(), on any value in the file, tensors included.

Unpickler is safe because

* it calls only the constructors of its table: find() is the only source of callables,
  its Constructor has no attributes to set, and _reduce() calls nothing else, with
  arguments of exactly the types that the table allows;
* containers are filled only if they are exactly of the type, and only an OrderedDict
  gets attributes, none of which hides a method;
* check_key() bounds the time and depth of every hash;
* memory is bounded by the file's size: a length is checked against the bytes left
  before it is used, the memo is a dict, and `copies` bounds what the constructors copy;
* nothing recurses: nested values are handled on explicit stacks.
"""

import re
import struct
from _codecs import encode
from collections import Counter, OrderedDict, deque
from pickle import UnpicklingError, decode_long

from pydevtensor import _C
from pydevtensor._pickler import F64, I32, NAMED, STORAGES, U8, U16, U32, U64, full_name

_LIKE_A_DTYPE = re.compile(r"(complex|float|bits|q?u?int)\d\w*")
MAX_KEY_ITEMS = 1000
MAX_FRACTION_BITS = 1 << 14


def dtype_named(name):
    """The dtype of PyTorch's name; UnpicklingError if pydevtensor does not have it."""
    dtype = getattr(_C, name, None)
    if type(dtype) is _C.dtype:
        return dtype
    raise UnpicklingError(
        f"load(): the file has elements of torch.{name}, a type that pydevtensor does "
        "not have; convert them in PyTorch, e.g. with .to(torch.float32), and save "
        "again"
    )


class Constructor:
    """A callable of the table, and the types allowed for each argument, () for any.

    A file can neither change nor keep it.
    """

    __slots__ = ("call", "name", "types")

    def __init__(self, name, call, *types):
        self.name, self.call, self.types = name, call, types


class StorageType:
    """The element type of a storage by name; None: bytes."""

    __slots__ = ("dtype",)

    def __init__(self, dtype):
        self.dtype = dtype


def _need(value, *types):
    if type(value) not in types:
        raise TypeError(f"unexpected {type(value).__name__}")
    return value


def check_key(key):
    """Reject what takes too much time or stack to hash: tuples nested in tuples."""
    waiting, seen = [key], 0
    while waiting:
        item = waiting.pop()
        seen += 1
        if isinstance(item, tuple):
            waiting.extend(item[:MAX_KEY_ITEMS])
        elif isinstance(item, _C.Tensor | Constructor | StorageType):
            raise TypeError("a tensor or a type cannot be a key")
        if seen + len(waiting) > MAX_KEY_ITEMS:
            raise ValueError("a key or set item is a huge tuple")


def _set(items=()):
    for item in items:
        check_key(item)
    return set(items)


def _encoded(text, encoding):
    if encoding not in ("latin1", "latin-1"):
        raise TypeError("an encoding other than latin1")
    return encode(text, encoding)


def _bytearray(data=b"", *encoding):
    return bytearray(_encoded(data, *encoding) if encoding else data)


def _ordered(pairs=()):
    out = OrderedDict()
    for key, value in pairs:
        check_key(key)
        out[key] = value
    return out


def _fraction(numerator=0, denominator=1):
    from fractions import Fraction

    if max(numerator.bit_length(), denominator.bit_length()) > MAX_FRACTION_BITS:
        raise ValueError("a fraction has too many digits to reduce")
    return Fraction(numerator, denominator)


def _size(sizes=()):
    return _C.Size(_need(n, int) for n in sizes)


def _device(kind, index=None):
    try:
        return _C.device(kind) if index is None else _C.device(kind, index)
    except RuntimeError as error:
        raise ValueError(str(error)) from None


_SEQUENCE = (list, tuple)
_CONSTRUCTORS: dict[str, tuple[object, ...]] = {
    "collections.OrderedDict": (_ordered, _SEQUENCE),
    "collections.Counter": (Counter, (dict, type(None))),
    "collections.deque": (deque, _SEQUENCE, (int, type(None))),
    "fractions.Fraction": (_fraction, (int,), (int,)),
    "builtins.set": (_set, _SEQUENCE),
    "builtins.frozenset": (lambda items=(): frozenset(_set(items)), _SEQUENCE),
    "builtins.bytes": (bytes,),
    "builtins.bytearray": (_bytearray, (bytes, str), (str,)),
    "builtins.complex": (complex, (float,), (float,)),
    "_codecs.encode": (_encoded, (str,), (str,)),
    "torch.Size": (_size, (tuple,)),
    "torch.device": (_device, (str,), (int, type(None))),
}


class Unpickler:
    """Reads protocols 2 to 5.

    storage(type, key, location, numel) resolves persistent ids; constructors, by name,
    extends the table; trusted has classes and functions, by name, that the program lets
    files make objects of and call.
    """

    def __init__(self, data, storage, constructors, name, trusted):
        self.data, self.place, self.name = data, 0, name
        self.storage = storage
        self.constructors = {**_CONSTRUCTORS, **constructors}
        self.trusted = trusted
        self.stack, self.stacks, self.memo = [], [], {}
        self.copies = 2 * len(data) + 1000  # items and bytes

    def load(self):
        values, actions, data = _VALUES, _ACTIONS, self.data
        try:
            while (code := data[self.place]) != 0x2E:
                self.place += 1
                if read := values.get(code):
                    value = read(self)
                    self.stack.append(value)
                elif action := actions.get(code):
                    action(self)
                else:
                    raise UnpicklingError(
                        f"load(): the pickle in {self.name} has opcode {code:#04x}, "
                        "which checkpoints do not use; save it with PyTorch's default "
                        "pickle_protocol"
                    )
            (value,) = self.stack
            if self.stacks:
                raise ValueError("a mark is left")
            check_result(value, self.trusts)
            return value
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            RecursionError,
            TypeError,
            ValueError,
            struct.error,
        ) as error:
            raise UnpicklingError(
                f"load(): the pickle in {self.name} is damaged near byte {self.place} "
                f"({type(error).__name__}: {error}); fetch or save the file again"
            ) from error

    def number(self, form):
        (value,) = form.unpack_from(self.data, self.place)
        self.place += form.size
        return value

    def bytes(self, count):
        start, self.place = self.place, self.place + count
        if count < 0 or self.place > len(self.data):
            raise ValueError("it ends too early")
        return self.data[start : self.place]

    def text(self, form):
        return str(self.bytes(self.number(form)), "utf-8", "surrogatepass")

    def line(self):
        count = self.data.index(b"\n", self.place) - self.place
        return str(self.bytes(count + 1)[:-1], "utf-8")

    def mark(self):
        self.stacks.append(self.stack)
        self.stack = []

    def pop_mark(self):
        items, self.stack = self.stack, self.stacks.pop()
        return items

    def pop(self, count):
        items = self.stack[-count:]
        if len(items) < count:
            raise ValueError("too few items")
        del self.stack[-count:]
        return items

    def trusts(self, value):
        """Whether it is a class or a function that the program trusts, or of one."""
        return any(value is t or type(value) is t for t in self.trusted.values())

    def find(self, module, name):
        module = "builtins" if module == "__builtin__" else module
        full = f"{module}.{name}"
        if full in self.trusted:
            return self.trusted[full]
        if full in self.constructors:
            return Constructor(full, *self.constructors[full])
        if full == "torch.storage.UntypedStorage":
            return StorageType(None)
        if module == "torch" and name in STORAGES:
            return StorageType(STORAGES[name])
        if module == "torch" and (name == "bool" or _LIKE_A_DTYPE.fullmatch(name)):
            return dtype_named(name)
        raise UnpicklingError(
            f"load(): {self.name} asks for {full}, which is not among the constructors "
            "that checkpoints may call; nothing was executed. Save a state_dict, or "
            "plain lists and dicts of tensors, instead; or, if you trust who wrote the "
            "file as you trust a program, read it with weights_only=False"
        )


def check_result(value, trusts):
    """Reject a value that contains a storage or a constructor."""
    seen, waiting = set(), [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, _KEPT) or id(item) in seen:
            continue
        if full_name(type(item)) in NAMED or trusts(item):
            continue
        seen.add(id(item))
        if isinstance(item, dict):
            waiting += [*item, *item.values(), *getattr(item, "__dict__", {}).values()]
        elif isinstance(item, list | tuple | set | frozenset | deque):
            waiting += item
        elif type(item) is Constructor:
            raise UnpicklingError(
                f"load(): the file has the type {item.name} as a value, which cannot "
                "be loaded; save without it"
            )
        else:
            raise UnpicklingError(
                "load(): the file has a storage without a tensor, which pydevtensor "
                "cannot load; save a tensor over it instead"
            )


_KEPT: tuple[type, ...] = (
    _C.Tensor,
    str,
    int,
    float,
    type(None),
    bytes,
    complex,
    bytearray,
)
_KEPT += (_C.device, _C.dtype)


def _set_items(p, items):
    target = p.stack[-1]
    if not isinstance(target, dict):
        raise TypeError("items for a value that is not a dict")
    if len(items) % 2:
        raise ValueError("a key without its value")
    for key, value in zip(items[::2], items[1::2], strict=True):
        if type(key) is not str:
            check_key(key)
        target[key] = value


def _extend(p, items):
    _need(p.stack[-1], list, deque, *p.trusted.values()).extend(items)


def _update(p, items):
    _need(p.stack[-1], set).update(_set(items))


def _stack_global(p):
    module, name = p.pop(2)
    return p.find(_need(module, str), _need(name, str))


def _reduce(p):
    function, arguments = p.pop(2)
    if p.trusts(function):
        return function(*_need(arguments, tuple))
    types = _need(function, Constructor).types
    if len(_need(arguments, tuple)) > len(types):
        raise TypeError("too many arguments")
    for argument, allowed in zip(arguments, types, strict=False):
        if allowed:
            _need(argument, *allowed)
        if isinstance(argument, str | bytes | list | tuple | dict):
            p.copies -= len(argument)
    if p.copies < 0:
        raise ValueError("it copies more than it holds")
    return function.call(*arguments)


def _new(p):
    kind, arguments = p.pop(2)
    if not isinstance(kind, type) or not p.trusts(kind):
        raise TypeError("an object of what is not a class")
    return kind.__new__(kind, *_need(arguments, tuple))


def _build(p):
    (state,) = p.pop(1)
    if p.trusts(target := p.stack[-1]):
        if hasattr(target, "__setstate__"):
            target.__setstate__(state)
        else:
            vars(target).update(_need(state, dict))
        return
    target = _need(target, OrderedDict)
    for key in _need(state, dict):
        if type(key) is not str or hasattr(OrderedDict, key):
            raise TypeError("an attribute with an odd name")
    vars(target).update(state)


def _persistent(p):
    tag, kind, key, location, numel = _need(*p.pop(1), tuple)
    if _need(tag, str) != "storage" or _need(numel, int) < 0:
        raise ValueError("a persistent id without a storage")
    _need(kind, StorageType)
    return p.storage(kind, _need(key, str), _need(location, str), numel)


def _protocol(p):
    version = p.number(U8)
    if not 2 <= version <= 5:
        raise ValueError(f"pickle protocol {version} is not known")


def _put(p, index):
    p.memo[index] = p.stack[-1]


# Opcodes that push a value, named in pickletools.
_PUSHING = {
    b"N": lambda p: None,
    b"\x88": lambda p: True,
    b"\x89": lambda p: False,
    b"K": lambda p: p.number(U8),
    b"M": lambda p: p.number(U16),
    b"J": lambda p: p.number(I32),
    b"G": lambda p: p.number(F64),
    b"\x8a": lambda p: decode_long(p.bytes(p.number(U8))),
    b"\x8b": lambda p: decode_long(p.bytes(p.number(I32))),
    b"X": lambda p: p.text(U32),
    b"\x8c": lambda p: p.text(U8),
    b"\x8d": lambda p: p.text(U64),
    b"U": lambda p: str(p.bytes(p.number(U8)), "ascii"),
    b"T": lambda p: str(p.bytes(p.number(I32)), "ascii"),
    b"C": lambda p: p.bytes(p.number(U8)),
    b"B": lambda p: p.bytes(p.number(U32)),
    b"\x8e": lambda p: p.bytes(p.number(U64)),
    b"\x96": lambda p: bytearray(p.bytes(p.number(U64))),
    b")": lambda p: (),
    b"\x85": lambda p: tuple(p.pop(1)),
    b"\x86": lambda p: tuple(p.pop(2)),
    b"\x87": lambda p: tuple(p.pop(3)),
    b"t": lambda p: tuple(p.pop_mark()),
    b"]": lambda p: [],
    b"l": Unpickler.pop_mark,
    b"}": lambda p: {},
    b"\x8f": lambda p: set(),
    b"\x91": lambda p: frozenset(_set(p.pop_mark())),
    b"c": lambda p: p.find(p.line(), p.line()),
    b"\x93": _stack_global,
    b"R": _reduce,
    b"\x81": _new,
    b"Q": _persistent,
    b"h": lambda p: p.memo[p.number(U8)],
    b"j": lambda p: p.memo[p.number(U32)],
}
# Opcodes that push nothing.
_OTHERS = {
    b"\x80": _protocol,
    b"\x95": lambda p: p.bytes(8),
    b"(": Unpickler.mark,
    b"0": lambda p: p.pop(1),
    b"1": Unpickler.pop_mark,
    b"q": lambda p: _put(p, p.number(U8)),
    b"r": lambda p: _put(p, p.number(U32)),
    b"\x94": lambda p: _put(p, len(p.memo)),
    b"a": lambda p: _extend(p, p.pop(1)),
    b"e": lambda p: _extend(p, p.pop_mark()),
    b"s": lambda p: _set_items(p, p.pop(2)),
    b"u": lambda p: _set_items(p, p.pop_mark()),
    b"\x90": lambda p: _update(p, p.pop_mark()),
    b"b": _build,
}
_VALUES = {ord(code): read for code, read in _PUSHING.items()}
_ACTIONS = {ord(code): read for code, read in _OTHERS.items()}
