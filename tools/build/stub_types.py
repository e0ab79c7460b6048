"""The types that signatures do not say, by name: what the stubs add to them.

A signature (DT_PUBLIC) names its parameters' kinds; WORDS says what Python's types are
for each kind. Most functions return a Tensor: this file has the other results, and what
has no signature. tests/tools/test_typing.py compares the stubs with the package (mypy's
stubtest) and with the results of calls.
"""

from __future__ import annotations

# The kinds of csrc/python/arguments.h.
WORDS = {
    "Tensor": "Tensor",
    "Tensors": "Sequence[Tensor]",
    "Value": "Tensor | _Number",
    "Number": "_Number",
    "Scalar": "builtins.complex | _Number",
    "float": "SupportsFloat",
    "int": "SupportsIndex",
    "bool": "builtins.bool",
    "Truth": "builtins.bool",
    "str": "builtins.str",
    "Order": "SupportsFloat | builtins.str",
    "Dims": "SupportsIndex | Sequence[SupportsIndex]",
    "Lengths": "SupportsIndex | Sequence[SupportsIndex | None]",
    "Sizes": "Sequence[SupportsIndex]",
    "Ints": "Sequence[SupportsIndex]",
    "Dtype": "_Dtype",
    "Device": "_Device",
    "Generator": "Generator",
    "Layout": "_layout",
    "Format": "memory_format",
    "Any": "Any",
}

# A kind by the name that it has in Python where its default is of another type.
ALIASES = {"PerDim": "Dims"}

# What a function in Python checks itself.
UNCHECKED = {"Text": "builtins.str"}

# Results after "->" in a schema, other than named tuples.
RESULT_WORDS = {
    "Tensor": "Tensor",
    "Tensors": "tuple[Tensor, ...]",
    "bool": "builtins.bool",
    "int": "builtins.int",
    "dtype": "dtype",
}

# What stands for one of many: `*size: Sizes` takes sizes, `*tensors: Tensors` Tensors.
ONE_OF = {"Sizes": "SupportsIndex", "Tensors": "Tensor"}

# Parameters of the kind Any, by name or by "function.name".
PARAMETERS = {
    "out": "tuple[Tensor, Tensor]",
    "hook": "Callable[[Tensor], Tensor | None]",
    "index_put_.indices": "Sequence[Tensor]",
    "type.dtype": "_Dtype | builtins.str | None",
    "backward.gradient": "Tensor | None",
    "backward.retain_graph": "builtins.bool | None",
    "backward.inputs": "Tensor | Sequence[Tensor] | None",
    "set_default_device.device": "_Device | None",
    "set_default_dtype.d": "_Dtype",
    "manual_seed.seed": "SupportsIndex",
    "from_numpy.ndarray": "numpy.ndarray[Any, Any]",
    "__deepcopy__.memo": "dict[builtins.int, Any]",
    "__reduce_ex__.protocol": "SupportsIndex",
    # What has no signature of kinds.
    "device.type": "device | builtins.str | builtins.int",
    "device.index": "builtins.int | None",
    "Size.iterable": "Iterable[SupportsIndex]",
    "Generator.device": "_Device",
    "Generator.seed": "SupportsIndex",
    "Generator.new_state": "Tensor",
}

# What a Tensor never is, by the names of its properties.
NEVER = ("sparse", "sparse_csr", "quantized", "nested", "mkldnn", "mps", "xla")
NEVER += ("xpu", "ipu", "maia", "mtia", "vulkan")

# Results other than a Tensor, by name, or by "class.name" where that has no row of a
# signature. In-place methods give themselves.
TENSORS = "tuple[Tensor, ...]"
RESULTS = {
    **dict.fromkeys(
        ("is_floating_point", "is_complex", "is_signed"),
        "builtins.bool",
    ),
    **dict.fromkeys(("is_conj", "is_neg", "is_inference"), "builtins.bool"),
    **dict.fromkeys(("is_nonzero", "is_same_size", "is_set_to"), "builtins.bool"),
    **dict.fromkeys(
        ("is_contiguous", "is_pinned", "can_cast", "is_grad_enabled"), "builtins.bool"
    ),
    **dict.fromkeys(
        ("numel", "nelement", "dim", "ndimension", "storage_offset", "element_size"),
        "builtins.int",
    ),
    **dict.fromkeys(
        ("data_ptr", "get_device", "seed", "initial_seed", "get_num_threads"),
        "builtins.int",
    ),
    "get_float32_matmul_precision": "builtins.str",
    **dict.fromkeys(("result_type", "promote_types", "get_default_dtype"), "dtype"),
    **dict.fromkeys(
        ("set_default_device", "set_default_dtype", "set_num_threads", "backward"),
        "None",
    ),
    "set_float32_matmul_precision": "None",
    "retain_grad": "None",
    "get_default_device": "device",
    "manual_seed": "Generator",
    "register_hook": "RemovableHandle",
    "register_post_accumulate_grad_hook": "RemovableHandle",
    "is_tensor": "TypeGuard[Tensor]",
    "item": "builtins.int | builtins.float | builtins.bool",
    "tolist": "Any",
    "numpy": "numpy.ndarray[Any, Any]",
    "__array__": "numpy.ndarray[Any, Any]",
    "__dlpack__": "Any",
    "to_dlpack": "Any",
    "__dlpack_device__": "tuple[builtins.int, builtins.int]",
    "__copy__": "Self",
    "__deepcopy__": "Self",
    "__reduce_ex__": "tuple[Any, ...]",
    "_make_subclass": "Any",
    "_storage_count": "builtins.int",
    "_capsule_facts": "tuple[builtins.int, builtins.int, builtins.bool]",
    "_storage_extent": "tuple[builtins.int, builtins.int]",
    "_storage_key": "builtins.int",
    "_storage_resizable": "builtins.bool",
    "_storage_resize": "None",
    "_storage_take": "None",
    "_update": "None",
    "_update_own": "None",
    "_update_rules": "Any",
    # Classes other than Tensor, and functions without a row.
    "DisableTorchFunctionSubclass.__enter__": "None",
    "DisableTorchFunctionSubclass.__exit__": "None",
    "device.__enter__": "Self",
    "device.__exit__": "None",
    "device.index": "builtins.int | None",
    "device.type": "builtins.str",
    "device.__reduce__": "tuple[Any, ...]",
    "dtype.__reduce__": "builtins.str",
    "dtype.is_complex": "builtins.bool",
    "dtype.is_floating_point": "builtins.bool",
    "dtype.is_signed": "builtins.bool",
    "dtype.itemsize": "builtins.int",
    "Size.numel": "builtins.int",
    "Size.__reduce__": "tuple[Any, ...]",
    "Node.name": "builtins.str",
    "Node.next_functions": "tuple[tuple[Node | None, builtins.int], ...]",
    "Node.variable": "Tensor",
    "Node.metadata": "dict[builtins.str, Any]",
    "Node._input_metadata": "tuple[Any, ...]",
    "Node._sequence_nr": "builtins.int",
    "Node.register_hook": "RemovableHandle",
    "Node.register_prehook": "RemovableHandle",
    "Generator.clone_state": "Generator",
    "Generator.device": "_device",
    "Generator.get_state": "Tensor",
    "Generator.initial_seed": "builtins.int",
    "Generator.manual_seed": "Generator",
    "Generator.seed": "builtins.int",
    "Generator.set_state": "Generator",
    # Properties of Tensor.
    "Tensor.shape": "Size",
    "Tensor.dtype": "_dtype",
    "Tensor.device": "_device",
    "Tensor.grad": "Tensor | None",
    "Tensor.grad_fn": "Node | None",
    "Tensor.data": "Tensor",
    "Tensor.T": "Tensor",
    "Tensor.mT": "Tensor",
    "Tensor.H": "Tensor",
    "Tensor.mH": "Tensor",
    "Tensor.ndim": "builtins.int",
    "Tensor.itemsize": "builtins.int",
    "Tensor.nbytes": "builtins.int",
    "Tensor.output_nr": "builtins.int",
    "Tensor._version": "builtins.int",
    "Tensor.is_cpu": "builtins.bool",
    "Tensor.is_meta": "builtins.bool",
    **dict.fromkeys((f"Tensor.is_{name}" for name in NEVER), "builtins.bool"),
    "Tensor.layout": "_layout",
    "Tensor.real": "Tensor",
    "Tensor.imag": "Never",
    "imag": "Never",
    "layout.__reduce__": "builtins.str",
    "memory_format.__reduce__": "builtins.str",
    "Tensor.is_cuda": "builtins.bool",
    "Tensor.is_leaf": "builtins.bool",
    "Tensor.requires_grad": "builtins.bool",
    "Tensor.retains_grad": "builtins.bool",
    "Tensor.__cuda_array_interface__": "dict[builtins.str, Any]",
    "Tensor.__array_priority__": "builtins.int",
}

# Whole functions whose result depends on values: parameters and result, form by form.
# The first parameter of a method is left out.
FORMS = {
    **{
        f"atleast_{n}d": [
            ("tensors: Tensor", "Tensor"),
            ("__first: Tensor, __second: Tensor, *tensors: Tensor", TENSORS),
            ("tensors: Sequence[Tensor]", TENSORS),
        ]
        for n in (1, 2, 3)
    },
    "nonzero": [
        (
            "input: Tensor, *, as_tuple: Literal[False] = False, "
            "out: Tensor | None = None",
            "Tensor",
        ),
        ("input: Tensor, *, as_tuple: builtins.bool", "Tensor | tuple[Tensor, ...]"),
    ],
    "size": [
        ("input: Tensor, dim: None = None", "Size"),
        ("input: Tensor, dim: SupportsIndex", "builtins.int"),
    ],
    "stride": [
        ("input: Tensor, dim: None = None", "tuple[builtins.int, ...]"),
        ("input: Tensor, dim: SupportsIndex", "builtins.int"),
    ],
    "type": [
        (
            "input: Tensor, dtype: None = None, non_blocking: builtins.bool = False",
            "builtins.str",
        ),
        (
            "input: Tensor, dtype: _Dtype | builtins.str, "
            "non_blocking: builtins.bool = False",
            "Tensor",
        ),
    ],
    "unique": [
        (
            "input: Tensor, sorted: builtins.bool = True, "
            "return_inverse: Literal[False] = False, "
            "return_counts: Literal[False] = False, dim: SupportsIndex | None = None",
            "Tensor",
        ),
        (
            "input: Tensor, sorted: builtins.bool = True, "
            "return_inverse: builtins.bool = False, "
            "return_counts: builtins.bool = False, dim: SupportsIndex | None = None",
            "Any",
        ),
    ],
    "unique_consecutive": [
        (
            "input: Tensor, return_inverse: Literal[False] = False, "
            "return_counts: Literal[False] = False, dim: SupportsIndex | None = None",
            "Tensor",
        ),
        (
            "input: Tensor, return_inverse: builtins.bool = False, "
            "return_counts: builtins.bool = False, dim: SupportsIndex | None = None",
            "Any",
        ),
    ],
}

# Double-underscore methods of C types: parameters after self, and result.
VALUE = "other: Tensor | _Number"
COMPARED = "other: object"
OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
BITS = ("and", "or", "xor", "lshift", "rshift")
SLOTS = {
    "Tensor": {
        **{f"__{name}__": (VALUE, "Tensor") for name in (*OPERATORS, *BITS)},
        **{f"__r{name}__": (VALUE, "Tensor") for name in (*OPERATORS, *BITS)},
        **{f"__i{name}__": (VALUE, "Self") for name in OPERATORS},
        **{f"__i{name}__": (VALUE, "Self") for name in BITS},
        **{f"__{name}__": (VALUE, "Tensor") for name in ("lt", "le", "gt", "ge")},
        **{f"__{name}__": (COMPARED, "Tensor") for name in ("eq", "ne")},
        **{f"__{name}__": ("", "Tensor") for name in ("abs", "neg", "pos", "invert")},
        "__pow__": (f"{VALUE}, mod: None = None", "Tensor"),
        "__rpow__": (f"{VALUE}, mod: None = None", "Tensor"),
        "__matmul__": ("other: Tensor", "Tensor"),
        "__rmatmul__": ("other: Tensor", "Tensor"),
        "__bool__": ("", "builtins.bool"),
        "__float__": ("", "builtins.float"),
        "__int__": ("", "builtins.int"),
        "__index__": ("", "builtins.int"),
        "__len__": ("", "builtins.int"),
        "__hash__": ("", "builtins.int"),
        "__iter__": ("", "Iterator[Tensor]"),
        "__contains__": ("key: object", "builtins.bool"),
        "__getitem__": ("key: _Index", "Tensor"),
        "__setitem__": ("key: _Index, value: Any", "None"),
        "__delitem__": ("key: Any", "Never"),
        "__format__": ("spec: builtins.str", "builtins.str"),
        "__repr__": ("", "builtins.str"),
        "__new__": ("*args: Any, **kwargs: Any", "Self"),
        "__buffer__": ("flags: builtins.int", "memoryview"),
    },
    "Size": {
        "__new__": ("iterable: Iterable[SupportsIndex] = ()", "Self"),
        "__add__": ("other: tuple[Any, ...]", "Size"),
        "__radd__": ("other: tuple[Any, ...]", "Size"),
        "__mul__": ("other: SupportsIndex", "Size"),
        "__rmul__": ("other: SupportsIndex", "Size"),
        "__repr__": ("", "builtins.str"),
    },
    "_ModuleBase": {
        "__call__": ("*args: Any, **kwargs: Any", "Any"),
        "__getattr__": ("name: builtins.str", "Any"),
    },
}
# The base class as a type.
BASES = {"Size": "tuple[builtins.int, ...]"}

# Comparisons of Tensors give Tensors, and object's a bool; x **= y has no modulus.
IGNORED_BY_MYPY = {"__eq__": "override", "__ne__": "override", "__ipow__": "misc"}

SETTABLE = {"Tensor.grad", "Tensor.data", "Tensor.requires_grad"}

# What stands before all else in the stub of a namespace such as linalg.
NAMESPACE_HEADER = """\
import builtins
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, SupportsFloat, SupportsIndex, overload

from pydevtensor._C import Generator, Tensor, memory_format
from pydevtensor._C import _Device, _Dtype, _Number, _layout
"""

# What stands before all else in the stub of _C.
HEADER = """\
import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import EllipsisType
from typing import (
    Any,
    Literal,
    NamedTuple,
    Never,
    Self,
    SupportsFloat,
    SupportsIndex,
    TypeAlias,
    TypeGuard,
    final,
    overload,
)

import numpy
from typing_extensions import disjoint_base

from pydevtensor._streams import Stream
from pydevtensor.autograd import RemovableHandle

# Inside Tensor the plain names are its methods and properties.
_device: TypeAlias = device
_dtype: TypeAlias = dtype
_layout: TypeAlias = layout
_Number: TypeAlias = builtins.float | numpy.number[Any] | numpy.bool
_Dtype: TypeAlias = dtype | type[builtins.float]
_Device: TypeAlias = device | builtins.str | builtins.int
_IndexPart: TypeAlias = (
    SupportsIndex
    | slice
    | EllipsisType
    | Tensor
    | numpy.ndarray[Any, Any]
    | list[Any]
    | None
)
_Index: TypeAlias = _IndexPart | tuple[_IndexPart, ...]
"""
