"""Sparse tensors: a pattern, and a dense Tensor of the values.

Their class is not Tensor, whose functions compute on memory that has every element, but
isinstance() says that they are Tensors, since programs ask it. Where a
function of the package is given one, csrc/python/sparse.c calls `call` in _calls.py.
Autograd sees the dense tensor of values alone: the gradient of a sparse leaf is sparse
with the leaf's pattern.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pydevtensor import _C
from pydevtensor.autograd import no_grad
from pydevtensor.sparse._pattern import LAYOUTS, Pattern
from pydevtensor.sparse._text import text

# Attributes that are those of the values, and methods that give other values.
_AS_VALUES = """
dtype device is_cuda is_cpu is_meta is_floating_point is_complex is_signed get_device
element_size itemsize requires_grad is_leaf grad_fn is_quantized is_nested is_mkldnn
is_mps is_xla is_xpu is_inference is_conj is_neg retains_grad
"""
_CONVERSIONS = """
to cuda cpu double float half bfloat16 long int short char byte bool clone detach
"""
# Functions of an element that are 0 at 0.
_OF_ZERO = """
abs absolute angle asin arcsin asinh arcsinh atan arctan atanh arctanh ceil deg2rad erf
erfinv expm1 floor frac isinf isnan log1p nan_to_num rad2deg relu round sgn sign sin
sinh sqrt square tan tanh trunc fix
"""
# The functions of the package, and methods, by name; _calls.py and _shapes.py add them.
FUNCTIONS: dict[str, Callable[..., Any]] = {}
ASKED, ZERO_AT_ZERO = frozenset(_AS_VALUES.split()), frozenset(_OF_ZERO.split())
_CONVERTED = frozenset(_CONVERSIONS.split())


def _part(name: str, layout: str, attribute: str) -> Any:
    """The method that returns an attribute of the pattern of tensors of a layout."""

    def part(self: SparseTensor) -> Any:
        self._need(name, layout)
        return getattr(self._pattern, attribute)

    part.__name__, part.__qualname__ = name, f"SparseTensor.{name}"
    return part


class SparseTensor:
    """A tensor of which only the entries are kept, in the layout COO, CSR or CSC."""

    def __init__(self, pattern: Pattern, values: Any) -> None:
        self._pattern, self._data = pattern, values
        self._whole: SparseTensor | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return _C.Tensor

    def _like(self, values: Any, pattern: Pattern | None = None) -> SparseTensor:
        return SparseTensor(self._pattern if pattern is None else pattern, values)

    def __getattr__(self, name: str) -> Any:
        if name in ASKED:
            return getattr(self._data, name)
        if name in _CONVERTED:
            return _converter(self, name)
        if name in ZERO_AT_ZERO:
            whole = self.coalesce() if self.is_sparse else self
            return lambda *args: whole._like(getattr(whole._data, name)(*args))
        if name in FUNCTIONS and hasattr(_C.Tensor, name):
            return partial(FUNCTIONS[name], self)
        if name[:2] == "__" or not hasattr(_C.Tensor, name):
            raise AttributeError(f"'Tensor' object has no attribute {name!r}")
        if not callable(getattr(_C.Tensor, name)):
            raise RuntimeError(f"{name}: not there for sparse tensors; call to_dense()")

        def refuse(*args: Any, **named: Any) -> Any:
            raise absent(name)

        return refuse

    __hash__ = object.__hash__

    # --- shape and layout

    @property
    def shape(self) -> Any:
        return _C.Size((*self._pattern.shape, *self._data.shape[1:]))

    @property
    def layout(self) -> Any:
        return LAYOUTS[self._pattern.name]

    @property
    def is_sparse(self) -> Any:
        return self._pattern.starts is None

    @property
    def is_sparse_csr(self) -> Any:
        return self._pattern.name == "sparse_csr"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        return len(self.shape)

    def numel(self) -> int:
        return int(self.shape.numel())

    ndimension, nelement = dim, numel

    def __len__(self) -> int:
        return int(self.shape[0])

    def is_contiguous(self, **unused: Any) -> bool:
        return False

    def is_same_size(self, other: Any) -> bool:
        return bool(self.shape == other.shape)

    def sparse_dim(self) -> int:
        return len(self._pattern.shape)

    def dense_dim(self) -> int:
        return int(self._data.dim()) - 1

    def _nnz(self) -> int:
        return self._pattern.count

    # --- parts

    def _need(self, name: str, layout: str) -> None:
        if self._pattern.name != layout:
            way = "to_sparse" if layout == "sparse_coo" else f"to_{layout}"
            raise RuntimeError(
                f"{name}(): the layout is {self.layout}, and this is for "
                f"torch.{layout}; convert with {way}()"
            )

    def _values(self) -> Any:
        return self._data.detach()

    def indices(self) -> Any:
        self._need("indices", "sparse_coo")
        self._need_coalesced("indices")
        return self._pattern.indices

    def values(self) -> Any:
        self._need_coalesced("values")
        return self._data

    def _need_coalesced(self, name: str) -> None:
        if not self._pattern.coalesced:
            raise RuntimeError(
                f"{name}(): a position may occur twice in this tensor; call "
                f".coalesce() first, or use _{name}()"
            )

    _indices = _part("_indices", "sparse_coo", "indices")
    crow_indices = _part("crow_indices", "sparse_csr", "starts")
    col_indices = _part("col_indices", "sparse_csr", "inner")
    ccol_indices = _part("ccol_indices", "sparse_csc", "starts")
    row_indices = _part("row_indices", "sparse_csc", "inner")
    is_coalesced = _part("is_coalesced", "sparse_coo", "coalesced")

    # --- gradients

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        self._data.requires_grad_(requires_grad)
        return self

    @property
    def grad(self) -> Any:
        found = self._data.grad
        if found is None or self._pattern.coalesced:
            return None if found is None else self._like(found)
        # Entries of one position have one gradient, that of the sum.
        pattern, numbers = self._pattern.merged()
        once = found.new_zeros((pattern.count, *found.shape[1:]))
        return self._like(once.index_copy(0, numbers, found), pattern)

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None:
            raise RuntimeError(
                "grad: only None can be assigned to that of a sparse tensor"
            )
        self._data.grad = None

    @property
    def data(self) -> SparseTensor:
        alias = self._like(self._data.data)
        alias._whole = self  # which a change in place changes, too
        return alias

    # --- other layouts

    def coalesce(self) -> SparseTensor:
        self._need("coalesce", "sparse_coo")
        if self._pattern.coalesced:
            return self
        pattern, numbers = self._pattern.merged()
        empty = self._data.new_zeros((pattern.count, *self._data.shape[1:]))
        if self.dtype == _C.bool:
            summed = empty.long().index_add(0, numbers, self._data.long()).bool()
        else:
            summed = empty.index_add(0, numbers, self._data)
        return self._like(_C._named(summed, "CoalesceBackward0"), pattern)

    def to_dense(self, dtype: Any = None, *, masked_grad: Any = None) -> Any:
        whole = self.coalesce() if self.dtype == _C.bool and self.is_sparse else self
        empty = self._data.new_zeros(self.shape)
        where = tuple(whole._pattern.indices)
        result = empty.index_put(where, whole._data, self.dtype != _C.bool)
        result = _C._named(result, "ToDenseBackward0")
        return result if dtype is None else result.to(dtype)

    def to_sparse(self, sparse_dim: Any = None, *, layout: Any = None) -> SparseTensor:
        if isinstance(sparse_dim, int) and sparse_dim != self.sparse_dim():
            raise absent("to_sparse")
        name = "sparse_coo" if layout is None else str(layout).partition(".")[2]
        if name not in LAYOUTS:
            raise ValueError(f"layout is {layout}; give one of {[*LAYOUTS.values()]}")
        if name == self._pattern.name:
            return self
        if name == "sparse_coo":
            sorted_ = not self._pattern.by_column
            indices = self._pattern.indices
            return self._like(self._data, Pattern(self.shape, indices, sorted_))
        if self.sparse_dim() != 2 or self.dense_dim():
            raise RuntimeError(f"to_sparse(): {self.dim()} dimensions; give a matrix")
        whole = self.to_sparse().coalesce()
        column = name == "sparse_csc"
        pattern = whole._pattern.flipped() if column else whole._pattern
        starts, inner, order = pattern.by_rows()
        made = Pattern.compressed(self.shape, starts, inner, column)
        return self._like(whole._data if order is None else whole._data[order], made)

    def to_sparse_coo(self) -> SparseTensor:
        return self.to_sparse()

    def to_sparse_csr(self, dense_dim: Any = None) -> SparseTensor:
        return self.to_sparse(layout=LAYOUTS["sparse_csr"])

    def to_sparse_csc(self, dense_dim: Any = None) -> SparseTensor:
        return self.to_sparse(layout=LAYOUTS["sparse_csc"])

    def type(self, dtype: Any = None) -> Any:
        if dtype is None:
            return str(self._data.type()).replace("torch.", "torch.sparse.")
        return self.to(dtype)

    # --- what Python and NumPy call

    def __repr__(self, **unused: Any) -> str:
        return text(self)

    def __bool__(self) -> bool:
        raise RuntimeError("bool(): a sparse tensor has no truth value; use to_dense()")

    def __array__(self, *unused: Any, **named: Any) -> Any:
        raise TypeError("numpy(): the tensor is sparse; use to_dense().numpy()")

    def numpy(self, **unused: Any) -> Any:
        return self.__array__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return rebuild, (self.layout, self._parts(), self.requires_grad)

    def _parts(self) -> tuple[Any, ...]:
        """The arguments of torch._utils._rebuild_sparse_tensor(), after the layout."""
        pattern, values = self._pattern, self._values()
        if pattern.starts is None:
            return pattern.indices, values, self.shape, pattern.coalesced
        return pattern.starts, pattern.inner, values, self.shape

    def _become(self, other: SparseTensor) -> SparseTensor:
        if self.requires_grad and self.is_leaf and _C.is_grad_enabled():
            raise RuntimeError(
                "a sparse leaf that requires a gradient cannot be changed in place; "
                "use torch.no_grad(), or a function that gives another tensor"
            )
        kept = self.requires_grad and not _C.is_grad_enabled()
        values = other._data.detach().requires_grad_() if kept else other._data
        self._pattern, self._data = other._pattern, values
        if self._whole is not None:
            with no_grad():
                self._whole._become(other)
        return self


def _converter(tensor: SparseTensor, name: str) -> Any:
    def convert(*args: Any, **named: Any) -> Any:
        args = tuple(a._data if type(a) is SparseTensor else a for a in args)
        values = getattr(tensor._data, name)(*args, **named)
        if values is tensor._data:
            return tensor
        return tensor._like(values, tensor._pattern.to(values.device))

    return convert


def absent(name: str) -> Exception:
    """The error of a function that is not there for sparse tensors."""
    return NotImplementedError(
        f"{name}(): not there for sparse tensors; call to_dense() first"
    )


def rebuild(layout: Any, data: tuple[Any, ...], requires_grad: bool = False) -> Any:
    """A sparse tensor of its parts: what copy and pickle call."""
    if layout == LAYOUTS["sparse_coo"]:
        indices, values, size, *coalesced = data
        pattern = Pattern(size[: indices.shape[0]], indices, any(coalesced))
    else:
        starts, inner, values, size = data
        column = layout == LAYOUTS["sparse_csc"]
        pattern = Pattern.compressed(size, starts, inner, column)
    made = SparseTensor(pattern, values)
    return made.requires_grad_() if requires_grad else made


_C._set_sparse_type(SparseTensor)
