"""Writes the pickles of checkpoints; _unpickler.py reads them."""

import copyreg
import functools
import importlib
import struct
import sys
import types
from collections import Counter, OrderedDict, deque
from pickle import PicklingError, encode_long
from pickle import whichmodule as _whichmodule  # type: ignore[attr-defined]

from pydevtensor import _C
from pydevtensor._kinds import is_distributed

# PyTorch's storage classes and their element types.
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
U8, U16, I32, U32, U64, F64 = map(struct.Struct, ("<B", "<H", "<i", "<I", "<Q", ">d"))


def dtype_name(dtype):
    return str(dtype).removeprefix("torch.").removeprefix("pydevtensor.")


def full_name(kind):
    return f"{kind.__module__}.{kind.__qualname__}"


class Pickler:
    """Writes protocol 2, as PyTorch does.

    Python's own can only name what it can import, and a checkpoint names PyTorch's
    functions.

    storage_id(tensor, typed) returns the key, location and number of elements of a
    tensor's storage. objects: take also what names classes and functions, which load()
    reads if the program trusts the file.
    """

    def __init__(self, storage_id, objects=True):
        self.out = bytearray(b"\x80\x02")
        self.storage_id, self.objects = storage_id, objects
        self.memo = {}
        self.alive = []  # keeps the ids in memo unique

    def dump(self, value):
        try:
            self.put(value)
        except RecursionError:
            raise PicklingError(
                "save(): lists, tuples and dicts are nested too deeply; flatten them"
            ) from None
        return bytes(self.out + b".")

    def put(self, value):
        kind = type(value)
        tensor = isinstance(value, _C.Tensor)
        other = NAMED.get(full_name(kind), _put_tensor if tensor else _put_object)
        write = _WRITERS.get(kind, other)
        if kind in _NOT_SHARED:
            return write(self, value)
        if id(value) in self.memo:
            return self.recall(id(value))
        write(self, value)
        if id(value) not in self.memo:  # lists and dicts remember themselves earlier
            self.remember(value, id(value))

    def remember(self, value, key):
        n = self.memo[key] = len(self.memo)
        self.alive.append(value)
        self.out += b"q" + U8.pack(n) if n < 256 else b"r" + U32.pack(n)

    def recall(self, key):
        n = self.memo[key]
        self.out += b"h" + U8.pack(n) if n < 256 else b"j" + U32.pack(n)

    def name(self, module, name):
        key = f"c{module}\n{name}\n"
        if key in self.memo:
            self.recall(key)
        else:
            self.out += key.encode()
            self.remember(key, key)

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


def _put_int(p, value):
    if 0 <= value < 256:
        p.out += b"K" + U8.pack(value)
    elif 0 <= value < 65536:
        p.out += b"M" + U16.pack(value)
    elif -(1 << 31) <= value < 1 << 31:
        p.out += b"J" + I32.pack(value)
    else:
        data = encode_long(value)
        if len(data) > 255:
            raise PicklingError(
                "save(): an int has more than 2000 bits, which PyTorch cannot read; "
                "save it as a str"
            )
        p.out += b"\x8a" + U8.pack(len(data)) + data


def _put_str(p, value):
    data = value.encode("utf-8", "surrogatepass")
    if len(data) >= 1 << 32:
        raise PicklingError("save(): a str is longer than 4 GiB; save it in parts")
    p.out += b"X" + U32.pack(len(data)) + data


def _put_tuple(p, value):
    p.tuple(value)
    if id(value) in p.memo:
        raise PicklingError("save(): a tuple contains itself; use a list instead")


def _put_list(p, value):
    if type(value) is list:
        p.out += b"]"
    else:
        bound = () if value.maxlen is None else ((), value.maxlen)
        p.call("collections", "deque", *bound)
    p.remember(value, id(value))
    if value:
        p.out += b"("
        for item in value:
            p.put(item)
        p.out += b"e"


def _put_dict(p, value):
    if type(value) is dict:
        p.out += b"}"
    else:
        p.call("collections", "OrderedDict")
    p.remember(value, id(value))
    if value:
        p.out += b"("
        for key, item in value.items():
            p.put(key)
            p.put(item)
        p.out += b"u"
    if getattr(value, "__dict__", None):  # _metadata of a state_dict
        p.put(vars(value))
        p.out += b"b"


def _put_device(p, value):
    index = () if value.index is None else (value.index,)
    p.call("torch", "device", value.type, *index)


def _put_tensor(p, value):
    kind = type(value)
    nn = sys.modules.get("pydevtensor.nn.parameter")  # not imported: it is not of nn
    parts = is_distributed(value)
    if nn and isinstance(value, nn.Parameter) and (parts or kind is nn.Parameter):
        p.name("torch._utils", "_rebuild_parameter")
        p.out += b"("
        p.put(value.detach())
        p.put(value.requires_grad)
        p.call("collections", "OrderedDict")
        p.out += b"tR"
    elif kind is _C.Tensor or (nn and kind is nn.Buffer):
        _put_view(p, value)
    elif parts:
        _put_object(p, value)
    else:
        _reject(p, value)


def _put_view(p, value):
    name = dtype_name(value.dtype)
    if value.is_meta:
        p.name("torch._utils", "_rebuild_meta_tensor_no_storage")
        p.out += b"("
        p.name("torch", name)
        p.tuple(tuple(value.shape))
        p.tuple(tuple(value.stride()))
        p.put(value.requires_grad)
        p.out += b"tR"
        return
    typed = STORAGE_OF.get(name)
    p.name("torch._utils", "_rebuild_tensor_v2" if typed else "_rebuild_tensor_v3")
    p.out += b"((X\x07\x00\x00\x00storage"
    p.name("torch" if typed else "torch.storage", typed or "UntypedStorage")
    for item in p.storage_id(value, typed is not None):
        p.put(item)
    p.out += b"tQ"
    p.put(value.storage_offset())
    p.tuple(tuple(value.shape))
    p.tuple(tuple(value.stride()))
    p.put(value.requires_grad)
    p.call("collections", "OrderedDict")
    if not typed:
        p.name("torch", name)
    p.out += b"tR"


def _put_sparse(p, value):
    p.name("torch._utils", "_rebuild_sparse_tensor")
    p.out += b"("
    p.call("torch.serialization", "_get_layout", str(value.layout))
    p.tuple(value._parts())
    p.out += b"tR"


def _put_object(p, value):
    """Any other value, by what it says of itself to Python's pickle."""
    kind = type(value)
    if not p.objects or kind.__module__ == "pydevtensor.storage":
        _reject(p, value)
    if isinstance(value, type | types.FunctionType):
        _put_global(p, value, value.__qualname__)
        return
    reduce = copyreg.dispatch_table.get(kind)
    made = reduce(value) if reduce else value.__reduce_ex__(2)
    if isinstance(made, str):
        _put_global(p, value, made)
        return
    function, arguments, state, items, pairs, setter = (*made, *[None] * 4)[:6]
    form = getattr(function, "__name__", "")
    if form == "__newobj_ex__":
        kind, given, named = arguments
        function = functools.partial(kind.__new__, kind, *given, **named)
        arguments = ()
    if form == "__newobj__":
        p.put(arguments[0])
        p.tuple(arguments[1:])
        p.out += b"\x81"
    else:
        p.put(function)
        p.tuple(arguments)
        p.out += b"R"
    if id(value) in p.memo:  # it is among its own arguments
        p.out += b"0"
        p.recall(id(value))
        return
    p.remember(value, id(value))
    flat = [each for pair in pairs or () for each in pair]
    for given, code in ((list(items or ()), b"e"), (flat, b"u")):
        if given:
            p.alive.append(given)
            p.out += b"("
            for each in given:
                p.put(each)
            p.out += code
    if state is not None:
        p.alive.append(state)
        if setter is None:
            p.put(state)
            p.out += b"b"
        else:
            p.put(setter)
            p.tuple((value, state))
            p.out += b"R0"


def as_theirs(module):
    """PyTorch's name for a module."""
    if module == "builtins":
        return "__builtin__"
    top, dot, rest = module.partition(".")
    return "torch" + dot + rest if top == "pydevtensor" else module


def _put_global(p, value, name):
    """A class or a function by its name."""
    module = _whichmodule(value, name)
    if module.startswith(
        "torch."
    ):  # a name of install_as_torch(), perhaps not yet used
        importlib.import_module(module)
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not value:
        raise PicklingError(
            f"save(): {value!r} cannot be in a checkpoint: {module} has no {name} that "
            "it is; define it in a module, not in a function"
        )
    above, _, last = name.rpartition(".")
    if above:
        owner = sys.modules[module]
        for part in above.split("."):
            owner = getattr(owner, part)
        p.call("__builtin__", "getattr", owner, last)
    else:
        p.name(as_theirs(module), name)


def _reject(p, value):
    kind = type(value)
    if callable(getattr(value, "state_dict", None)):
        hint = "save its state_dict()"
    else:
        hint = (
            "save tensors, numbers, strings, bytes, and lists, tuples, dicts, sets and "
            "deques of them"
        )
    raise PicklingError(
        f"save(): a {full_name(kind)} cannot be in a checkpoint; " + hint
    )


_WRITERS = {
    type(None): lambda p, value: p.out.extend(b"N"),
    bool: lambda p, value: p.out.extend(b"\x88" if value else b"\x89"),
    int: _put_int,
    float: lambda p, value: p.out.extend(b"G" + F64.pack(value)),
    complex: lambda p, value: p.call("__builtin__", "complex", value.real, value.imag),
    str: _put_str,
    # b"" too: PyTorch itself writes it with a name that its weights_only rejects.
    bytes: lambda p, value: p.call(
        "_codecs", "encode", value.decode("latin1"), "latin1"
    ),
    bytearray: lambda p, value: p.call("__builtin__", "bytearray", bytes(value)),
    tuple: _put_tuple,
    list: _put_list,
    dict: _put_dict,
    OrderedDict: _put_dict,
    Counter: lambda p, value: p.call("collections", "Counter", dict(value)),
    deque: _put_list,
    set: lambda p, value: p.call("__builtin__", "set", list(value)),
    frozenset: lambda p, value: p.call("__builtin__", "frozenset", list(value)),
    _C.Size: lambda p, value: p.call("torch", "Size", tuple(value)),
    _C.device: _put_device,
    _C.dtype: lambda p, value: p.name("torch", dtype_name(value)),
}
# By name, so that their modules need not be imported.
NAMED = {
    "fractions.Fraction": lambda p, value: p.call(
        "fractions", "Fraction", value.numerator, value.denominator
    ),
    "pydevtensor.sparse._tensor.SparseTensor": _put_sparse,
}
_NOT_SHARED = frozenset((type(None), bool, int, float, complex, _C.dtype))
