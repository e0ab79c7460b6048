"""Pickles of checkpoints, written and read without Python's pickle machine.

PyTorch's files name PyTorch's constructors, so both directions have their own short
machine: `dump` writes the listed types alone, `Machine` reads by calling the listed
constructors alone. Nothing is imported and nothing else is called.
"""

import struct
from _codecs import encode
from collections import Counter, OrderedDict
from pickle import PicklingError, UnpicklingError, decode_long, encode_long

from pydevtensor import _C

# PyTorch's storage classes and the element types they are for. Those that this package
# has no type for are refused by name until it has.
STORAGES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
}
STORAGE_OF = {name: storage for storage, name in STORAGES.items()}
# Types that PyTorch has without a storage class of their own, and others it may name.
OTHER_DTYPES = frozenset(
    [
        "uint16",
        "uint32",
        "uint64",
        "complex32",
        "float8_e4m3fn",
        "float8_e5m2",
        "float8_e4m3fnuz",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float4_e2m1fn_x2",
        "quint8",
        "qint8",
        "qint32",
        "quint4x2",
        "quint2x4",
        "bits8",
        "bits16",
    ]
)
KEY_ITEMS = 1000  # the most that is hashed for one key of a dict
DTYPE = type(_C.float32)


def dtype_named(name):
    """The dtype of PyTorch's name; UnpicklingError where this package has none."""
    dtype = getattr(_C, name, None)
    if isinstance(dtype, DTYPE):
        return dtype
    raise UnpicklingError(
        f"load(): the file has elements of torch.{name}, a type that pydevtensor does "
        "not have; convert them in PyTorch, with .to(torch.float32) say, and save again"
    )


def dtype_name(dtype):
    return str(dtype).removeprefix("torch.").removeprefix("pydevtensor.")


def parameter_type():
    """nn.Parameter, or None while there is none."""
    try:
        from importlib import import_module

        return getattr(import_module("pydevtensor.nn"), "Parameter", None)
    except ImportError:
        return None


# --- writing


class Dumper:
    """Writes protocol 2, the one that PyTorch's own files have."""

    def __init__(self, storage):
        self.out = bytearray(b"\x80\x02")
        self.storage = storage  # gives a tensor's persistent id
        self.memo = {}
        self.keep = []  # so that an id stays the object's own

    def dump(self, value):
        try:
            self.put(value)
        except RecursionError:
            raise PicklingError(
                "save(): lists, tuples and dicts are nested too deeply; flatten them"
            ) from None
        self.out += b"."
        return bytes(self.out)

    def remember(self, value):
        n = self.memo[id(value)] = len(self.memo)
        self.keep.append(value)
        self.out += b"q%c" % n if n < 256 else b"r" + struct.pack("<I", n)

    def name(self, module, name):
        key = (module, name)
        n = self.memo.get(key)
        if n is None:
            n = self.memo[key] = len(self.memo)
            self.out += f"c{module}\n{name}\n".encode()
            self.out += b"q%c" % n if n < 256 else b"r" + struct.pack("<I", n)
        else:
            self.recall(n)

    def recall(self, n):
        self.out += b"h%c" % n if n < 256 else b"j" + struct.pack("<I", n)

    def put(self, value):
        kind = type(value)
        writer = _WRITERS.get(kind)
        if writer is None:
            writer = _put_tensor if isinstance(value, _C.Tensor) else _refuse
        elif kind in _UNSHARED:
            return writer(self, value)
        n = self.memo.get(id(value))
        if n is not None:
            return self.recall(n)
        return writer(self, value)

    def call(self, module, name, *arguments):
        self.name(module, name)
        self.tuple(arguments)
        self.out += b"R"

    def tuple(self, items):
        if len(items) > 3:
            self.out += b"("
        for item in items:
            self.put(item)
        self.out += (b")", b"\x85", b"\x86", b"\x87", b"t")[min(len(items), 4)]

    def items(self, pairs):
        if pairs:
            self.out += b"("
            for key, item in pairs:
                self.put(key)
                self.put(item)
            self.out += b"u"


def _put_int(d, value):
    if 0 <= value < 256:
        d.out += b"K%c" % value
    elif 0 <= value < 65536:
        d.out += b"M" + struct.pack("<H", value)
    elif -(1 << 31) <= value < 1 << 31:
        d.out += b"J" + struct.pack("<i", value)
    else:
        data = encode_long(value)
        if len(data) > 255:
            raise PicklingError(
                "save(): an int has more than 2000 bits, which PyTorch does not read; "
                "save it as a str"
            )
        d.out += b"\x8a%c" % len(data) + data


def _put_str(d, value):
    data = value.encode("utf-8", "surrogatepass")
    if len(data) >= 1 << 32:
        raise PicklingError("save(): a str is longer than 4 GiB; save it in parts")
    d.out += b"X" + struct.pack("<I", len(data)) + data
    d.remember(value)


def _put_bytes(d, value):
    # Also where it is empty, for PyTorch's own way to say that fails weights_only.
    d.call("_codecs", "encode", value.decode("latin1"), "latin1")
    d.remember(value)


def _put_tuple(d, value):
    start = len(d.out)
    d.tuple(value)
    n = d.memo.get(id(value))
    if n is not None:  # it holds itself, through a list
        del d.out[start:]
        raise PicklingError("save(): a tuple contains itself; use a list instead")
    if value:
        d.remember(value)


def _put_list(d, value):
    d.out += b"]"
    d.remember(value)
    if value:
        d.out += b"("
        for item in value:
            d.put(item)
        d.out += b"e"


def _put_dict(d, value):
    d.out += b"}"
    d.remember(value)
    d.items(value.items())


def _put_ordered(d, value):
    d.call("collections", "OrderedDict")
    d.remember(value)
    d.items(value.items())
    if getattr(value, "__dict__", None):  # _metadata of a state_dict
        d.put(vars(value))
        d.out += b"b"


def _put_set(d, value):
    d.call("__builtin__", "set", list(value))
    d.remember(value)


def _put_device(d, value):
    index = () if value.index is None else (value.index,)
    d.call("torch", "device", value.type, *index)


def _put_tensor(d, value):
    parameter = parameter_of(value)
    if parameter:
        d.name("torch._utils", "_rebuild_parameter")
        d.out += b"("
        _put_view(d, value.detach())
        d.put(value.requires_grad)
        d.call("collections", "OrderedDict")
        d.out += b"tR"
    elif type(value) is _C.Tensor or is_kind(value, "Buffer"):
        _put_view(d, value)
    else:
        _refuse(d, value)
    d.remember(value)


def parameter_of(value):
    return is_kind(value, "Parameter")


def is_kind(value, name):
    """Whether value is of nn's class of that name, without importing nn."""
    import sys

    module = sys.modules.get("pydevtensor.nn")
    kind = getattr(module, name, None)
    return kind is not None and type(value) is kind


def _put_view(d, value):
    name = dtype_name(value.dtype)
    typed = STORAGE_OF.get(name)
    d.name("torch._utils", "_rebuild_tensor_v2" if typed else "_rebuild_tensor_v3")
    d.out += b"((X\x07\x00\x00\x00storage"
    d.name("torch" if typed else "torch.storage", typed or "UntypedStorage")
    for item in d.storage(value, typed is not None):
        d.put(item)
    d.out += b"tQ"
    d.put(value.storage_offset())
    d.tuple(tuple(value.shape))
    d.tuple(tuple(value.stride()))
    d.put(value.requires_grad)
    d.call("collections", "OrderedDict")
    if not typed:
        d.name("torch", name)
    d.out += b"tR"


def _refuse(d, value):
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if type(value).__module__ == "numpy":
        hint = "use .item() for a number or torch.from_numpy() for an array"
    elif callable(getattr(value, "state_dict", None)):
        hint = "save its state_dict()"
    else:
        hint = (
            "save tensors, numbers, strings, bytes, and lists, tuples, dicts and sets "
            "of them"
        )
    raise PicklingError(f"save(): a {kind} cannot be in a checkpoint; {hint}")


_WRITERS = {
    type(None): lambda d, value: d.out.extend(b"N"),
    bool: lambda d, value: d.out.extend(b"\x88" if value else b"\x89"),
    int: _put_int,
    float: lambda d, value: d.out.extend(b"G" + struct.pack(">d", value)),
    complex: lambda d, value: d.call("__builtin__", "complex", value.real, value.imag),
    str: _put_str,
    bytes: _put_bytes,
    bytearray: lambda d, value: (
        d.call("__builtin__", "bytearray", bytes(value)),
        d.remember(value),
    ),
    tuple: _put_tuple,
    list: _put_list,
    dict: _put_dict,
    OrderedDict: _put_ordered,
    set: _put_set,
    _C.Size: lambda d, value: d.call("torch", "Size", tuple(value)),
    _C.device: _put_device,
    DTYPE: lambda d, value: d.name("torch", dtype_name(value)),
}
_UNSHARED = frozenset((type(None), bool, int, float, complex))


# --- reading


class Constructor:
    """A callable of the list. Files cannot set attributes on it, nor keep it."""

    __slots__ = ("call", "name")

    def __init__(self, name, call):
        self.name, self.call = name, call


class StorageType:
    """Names the elements of a storage; dtype name None: bytes."""

    __slots__ = ("dtype",)

    def __init__(self, dtype):
        self.dtype = dtype


def _make_set(items=()):
    if type(items) is not list and type(items) is not tuple:
        raise TypeError("a set is not made of a list")
    for item in items:
        check_key(item)
    return set(items)


def _make_bytes(*arguments):
    if arguments:
        raise TypeError("bytes with arguments")
    return b""


def _make_encoded(text, encoding="utf-8"):
    if encoding not in ("latin1", "latin-1") or type(text) is not str:
        raise TypeError("bytes in another encoding than latin1")
    return encode(text, encoding)


def _make_bytearray(data=b"", *encoding):
    if encoding:
        data = _make_encoded(data, *encoding)
    if type(data) is not bytes:
        raise TypeError("a bytearray is not made of bytes")
    return bytearray(data)


def _make_ordered(pairs=()):
    out = OrderedDict()
    for key, value in pairs:
        check_key(key)
        out[key] = value
    return out


def _make_counter(counts=()):
    if type(counts) is not dict:
        raise TypeError("a Counter is not made of a dict")
    return Counter(counts)


def _make_complex(real, imag):
    if type(real) is not float or type(imag) is not float:
        raise TypeError("a complex number is not made of floats")
    return complex(real, imag)


def _make_size(sizes=()):
    if type(sizes) is not tuple or any(type(n) is not int for n in sizes):
        raise TypeError("a Size is not made of ints")
    return _C.Size(sizes)


def _make_device(*arguments):
    if not arguments or len(arguments) > 2 or type(arguments[0]) is not str:
        raise TypeError("a device is not made of a type and a number")
    return _C.device(*arguments)


def check_key(key):
    """Refuse what takes endless time or stack to hash: tuples nested in tuples."""
    waiting, seen = [key], 0
    while waiting:
        item = waiting.pop()
        seen += 1
        if isinstance(item, tuple):
            waiting.extend(item[:KEY_ITEMS])
        elif isinstance(item, _C.Tensor | Constructor | StorageType):
            raise TypeError("a tensor or a type cannot be a key")
        if seen + len(waiting) > KEY_ITEMS:
            raise ValueError("a key of a dict is a huge tuple")


_PLAIN = {
    "collections.OrderedDict": _make_ordered,
    "collections.Counter": _make_counter,
    "builtins.set": _make_set,
    "builtins.frozenset": lambda items=(): frozenset(_make_set(items)),
    "builtins.bytes": _make_bytes,
    "builtins.bytearray": _make_bytearray,
    "builtins.complex": _make_complex,
    "_codecs.encode": _make_encoded,
    "torch.Size": _make_size,
    "torch.device": _make_device,
}
MARK = object()


class Machine:
    """Reads a pickle of protocol 2 to 5 into values.

    storage(StorageType, key, location, numel) gives what a persistent id stands for;
    constructors adds to the list those that need it, by name.
    """

    def __init__(self, data, storage, constructors, name):
        self.data, self.place = data, 0
        self.storage = storage
        self.constructors = {**_PLAIN, **constructors}
        self.name = name
        self.stack, self.memo = [], {}

    def load(self):
        known = _READERS
        try:
            while True:
                code = self.data[self.place]
                self.place += 1
                if code == 0x2E:
                    break
                reader = known.get(code)
                if reader is None:
                    raise UnpicklingError(
                        f"load(): the pickle in {self.name} has opcode {code:#04x}, "
                        "which checkpoints do not have; save it with PyTorch's default "
                        "pickle_protocol"
                    )
                reader(self)
            (value,) = self.stack
            check_result(value)
            return value
        except (
            IndexError,
            KeyError,
            TypeError,
            ValueError,
            AttributeError,
            OverflowError,
            RecursionError,
            struct.error,
        ) as error:
            raise UnpicklingError(
                f"load(): the pickle in {self.name} is damaged near byte {self.place} "
                f"({type(error).__name__}: {error}); fetch or save the file again"
            ) from error

    def take(self, count):
        start, self.place = self.place, self.place + count
        if count < 0 or self.place > len(self.data):
            raise ValueError("it ends too early")
        return self.data[start : self.place]

    def number(self, code):
        return struct.unpack(code, self.take(struct.calcsize(code)))[0]

    def line(self):
        end = self.data.index(b"\n", self.place)
        text = self.data[self.place : end].decode("utf-8")
        self.place = end + 1
        return text

    def since_mark(self):
        stack = self.stack
        at = len(stack) - 1
        while stack[at] is not MARK:
            at -= 1
            if at < 0:
                raise ValueError("a mark is missing")
        items = stack[at + 1 :]
        del stack[at:]
        return items

    def find(self, module, name):
        module = {"__builtin__": "builtins"}.get(module, module)
        full = f"{module}.{name}"
        made = self.constructors.get(full)
        if made is not None:
            return Constructor(full, made)
        if module == "torch":
            if name in STORAGES:
                return StorageType(STORAGES[name])
            dtype = getattr(_C, name, None)
            if isinstance(dtype, DTYPE):
                return dtype
            if name in STORAGE_OF or name in OTHER_DTYPES:
                dtype_named(name)  # raises, with the name
        if full == "torch.storage.UntypedStorage":
            return StorageType(None)
        raise UnpicklingError(
            f"load(): {self.name} asks for {full}, which is not among the constructors "
            "that checkpoints may call; nothing was executed. Save a state_dict, or "
            "plain lists and dicts of tensors, instead"
        )

    def push(self, value):
        self.stack.append(value)


def check_result(value):
    """Refuse a result in which storages or constructors were left as values."""
    seen, waiting = set(), [value]
    while waiting:
        item = waiting.pop()
        kind = type(item)
        if kind in (str, int, float, bytes, type(None)):
            continue
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, dict):
            waiting.extend(item.keys())
            waiting.extend(item.values())
            waiting.extend(vars(item).values() if hasattr(item, "__dict__") else ())
        elif isinstance(item, list | tuple | set | frozenset):
            waiting.extend(item)
        elif kind is Constructor:
            raise UnpicklingError(
                f"load(): the file has the type {item.name} as a value, which is not "
                "kept; save without it"
            )
        elif item is MARK or not isinstance(
            item, _C.Tensor | _C.device | DTYPE | bool | complex | bytearray
        ):
            raise UnpicklingError(
                "load(): the file has a storage without a tensor, a kind of object "
                "that pydevtensor does not have; save a tensor over it instead"
            )


def _set_items(target, items):
    if not isinstance(target, dict):
        raise TypeError("items for what is no dict")
    if len(items) % 2:
        raise ValueError("a key without its value")
    for i in range(0, len(items), 2):
        key = items[i]
        if type(key) is not str:
            check_key(key)
        target[key] = items[i + 1]


def _append(target, items):
    if type(target) is not list:
        raise TypeError("items for what is no list")
    target.extend(items)


def _add(m):
    items = m.since_mark()
    target = m.stack[-1]
    if type(target) is not set:
        raise TypeError("items for what is no set")
    target.update(_make_set(items))


def _global(m):
    module = m.line()
    m.push(m.find(module, m.line()))


def _stack_global(m):
    name, module = m.stack.pop(), m.stack.pop()
    if type(name) is not str or type(module) is not str:
        raise TypeError("a name that is no text")
    m.push(m.find(module, name))


def _reduce(m):
    arguments, function = m.stack.pop(), m.stack.pop()
    if type(function) is not Constructor or type(arguments) is not tuple:
        raise TypeError("a call of what is no constructor")
    m.push(function.call(*arguments))


def _build(m):
    state, target = m.stack.pop(), m.stack[-1]
    if type(target) is OrderedDict and type(state) is dict:
        if any(type(key) is not str or hasattr(OrderedDict, key) for key in state):
            raise TypeError("attributes with odd names")
        vars(target).update(state)
    else:
        raise TypeError(f"attributes for a {type(target).__name__}")


def _persistent(m):
    pid = m.stack.pop()
    if type(pid) is not tuple or len(pid) != 5 or pid[0] != "storage":
        raise TypeError("a persistent id that names no storage")
    _, kind, key, location, numel = pid
    if (
        type(kind) is not StorageType
        or type(key) is not str
        or type(location) is not str
        or type(numel) is not int
        or numel < 0
    ):
        raise TypeError("a persistent id of the wrong types")
    m.push(m.storage(kind, key, location, numel))


def _tuple_of(count):
    def read(m):
        items = tuple(m.stack[len(m.stack) - count :]) if count else ()
        if len(items) != count or any(item is MARK for item in items):
            raise ValueError("too few items for a tuple")
        if count:
            del m.stack[-count:]
        m.push(items)

    return read


def _two(act):
    """act(target, [item]) for opcodes without a mark."""

    def read(m):
        item = m.stack.pop()
        act(m.stack[-1], [item])

    return read


def _set_item(m):
    value, key = m.stack.pop(), m.stack.pop()
    _set_items(m.stack[-1], [key, value])


def _marked(act):
    def read(m):
        items = m.since_mark()
        act(m.stack[-1], items)

    return read


def _text(code):
    return lambda m: m.push(str(m.take(m.number(code)), "utf-8", "surrogatepass"))


def _data(code):
    return lambda m: m.push(bytes(m.take(m.number(code))))


def _constant(value):
    return lambda m: m.push(value)


def _memoize(m, at):
    m.memo[at] = m.stack[-1]


def _old_text(m, code):
    m.push(str(m.take(m.number(code)), "ascii"))


_READERS = {
    0x80: lambda m: _protocol(m.take(1)[0]),  # PROTO
    0x95: lambda m: m.take(8),  # FRAME
    ord("("): _constant(MARK),
    ord("c"): _global,
    0x93: _stack_global,
    ord("R"): _reduce,
    ord("b"): _build,
    ord("Q"): _persistent,
    ord("N"): _constant(None),
    0x88: _constant(True),
    0x89: _constant(False),
    ord("K"): lambda m: m.push(m.number("<B")),
    ord("M"): lambda m: m.push(m.number("<H")),
    ord("J"): lambda m: m.push(m.number("<i")),
    0x8A: lambda m: m.push(decode_long(m.take(m.number("<B")))),
    0x8B: lambda m: m.push(decode_long(m.take(m.number("<i")))),
    ord("G"): lambda m: m.push(m.number(">d")),
    ord("X"): _text("<I"),
    0x8C: _text("<B"),
    0x8D: _text("<Q"),
    ord("U"): lambda m: _old_text(m, "<B"),
    ord("T"): lambda m: _old_text(m, "<I"),
    ord("C"): _data("<B"),
    ord("B"): _data("<I"),
    0x8E: _data("<Q"),
    0x96: lambda m: m.push(bytearray(m.take(m.number("<Q")))),
    ord("]"): lambda m: m.push([]),
    ord("}"): lambda m: m.push({}),
    0x8F: lambda m: m.push(set()),
    ord(")"): _tuple_of(0),
    0x85: _tuple_of(1),
    0x86: _tuple_of(2),
    0x87: _tuple_of(3),
    ord("t"): lambda m: m.push(tuple(m.since_mark())),
    ord("l"): lambda m: m.push(m.since_mark()),
    0x91: lambda m: m.push(frozenset(_make_set(m.since_mark()))),
    0x90: _add,
    ord("a"): _two(_append),
    ord("e"): _marked(_append),
    ord("s"): _set_item,
    ord("u"): _marked(_set_items),
    ord("0"): lambda m: m.stack.pop(),
    ord("1"): lambda m: m.since_mark(),
    ord("q"): lambda m: _memoize(m, m.number("<B")),
    ord("r"): lambda m: _memoize(m, m.number("<I")),
    0x94: lambda m: _memoize(m, len(m.memo)),
    ord("h"): lambda m: m.push(m.memo[m.number("<B")]),
    ord("j"): lambda m: m.push(m.memo[m.number("<I")]),
}


def _protocol(version):
    if not 2 <= version <= 5:
        raise ValueError(f"pickle protocol {version} is not known")
