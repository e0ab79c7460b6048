"""Functions and operators of sparse tensors.

`call` gets each call of a function of the package in which a Tensor's place has a
sparse tensor. A function here of that name answers it, or a method of SparseTensor;
what is not there raises NotImplementedError with advice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydevtensor import _C
from pydevtensor.sparse._make import coo
from pydevtensor.sparse._pattern import LAYOUTS, Pattern
from pydevtensor.sparse._products import of_two, product
from pydevtensor.sparse._tensor import (
    ASKED,
    FUNCTIONS,
    ZERO_AT_ZERO,
    SparseTensor,
    absent,
)


def call(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The result of the public function or method called `name`."""
    function = FUNCTIONS.get(name)
    if function is None and args and is_sparse(args[0]) and name not in _NO_METHODS:
        method = getattr(SparseTensor, name, None)
        if method is not None or name in ZERO_AT_ZERO or name in _OF_VALUES:
            found = getattr(args[0], name)
            return found(*args[1:], **named) if callable(found) else found
    if function is None or "out" in named:
        raise absent(name)
    return function(*args, **named)


# Attributes, and not functions of the package.
_NO_METHODS = {"shape", "data", "grad", "layout"}
_OF_VALUES = ASKED | {"clone", "detach", "numel"}


def is_sparse(value: Any) -> bool:
    return type(value) is SparseTensor


def function(*names: str) -> Callable[[Any], Any]:
    """Decorates the functions and methods of these names."""

    def add(function: Any) -> Any:
        FUNCTIONS.update(dict.fromkeys(names, function))
        return function

    return add


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float)) or (
        isinstance(value, _C.Tensor) and value.dim() == 0
    )


# --- products


@function("mm", "matmul", "mv", "__matmul__")
def matmul(input: Any, mat2: Any) -> Any:
    """The product of two matrices, or of a matrix and a vector; one or both sparse."""
    if not is_sparse(input):
        if input.dim() == 1:
            return matmul(mat2.t(), input)
        return matmul(mat2.t(), input.mT).mT
    if input.dim() != 2 or mat2.dim() not in (1, 2) or input.dense_dim():
        raise RuntimeError(
            f"mm(): the shapes are {tuple(input.shape)} and {tuple(mat2.shape)}; give "
            "a matrix and a matrix or a vector, or use to_dense()"
        )
    if input.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"mm(): the shapes {tuple(input.shape)} and {tuple(mat2.shape)} do not "
            "fit; the first needs as many columns as the second has rows"
        )
    if not is_sparse(mat2):
        dense = mat2 if mat2.dim() == 2 else mat2.unsqueeze(1)
        found = product(input._data, dense, input._pattern)
        return found if mat2.dim() == 2 else found.squeeze(1)
    values, indices = of_two(*((x._pattern, x._data) for x in (input, mat2)))
    made = SparseTensor(Pattern((input.shape[0], mat2.shape[1]), indices), values)
    return made.coalesce().to_sparse(layout=input.layout)


@function("addmm")
def addmm(
    input: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1
) -> Any:
    found = matmul(mat1, mat2)
    scaled = input if beta == 1 else input * beta
    return scaled + (found if alpha == 1 else found * alpha)


@function("bmm")
def bmm(input: Any, mat2: Any) -> Any:
    """The products of the matrices of a sparse COO batch and of a dense one."""
    if not is_sparse(input) or is_sparse(mat2) or not input.is_sparse:
        raise RuntimeError("bmm(): give a sparse COO tensor, and then a dense one")
    fits = input.dim() == mat2.dim() == 3 and input.shape[0] == mat2.shape[0]
    if not fits or input.shape[2] != mat2.shape[1] or input.dense_dim():
        raise RuntimeError(
            f"bmm(): the shapes are {tuple(input.shape)} and {tuple(mat2.shape)}; give "
            "(b, n, m) and (b, m, p)"
        )
    # One matrix, whose blocks on the diagonal are the batch.
    (count, n, m), (batch, rows, columns) = input.shape, input._pattern.indices
    where = _C.stack((batch * n + rows, batch * m + columns))
    pattern = Pattern((count * n, count * m), where, input._pattern.coalesced)
    dense = mat2.reshape(count * m, mat2.shape[2])
    return product(input._data, dense, pattern).reshape(count, n, mat2.shape[2])


@function("smm")
def smm(input: Any, mat: Any) -> Any:
    """The product of a sparse and a dense matrix, as a sparse one."""
    return matmul(input, mat).to_sparse()


@function("sspaddmm")
def sspaddmm(
    input: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1
) -> Any:
    return add(input * beta, smm(mat1, mat2), alpha=alpha)


def hspmm(mat1: Any, mat2: Any) -> Any:
    """The product of a sparse and a dense matrix, of which the rows are entries."""
    rows = _C.unique(mat1._pattern.indices[0])
    pattern = Pattern(mat1.shape[:1], rows.unsqueeze(0), True)
    return SparseTensor(pattern, matmul(mat1, mat2)[rows])


@function("linear")
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    found = matmul(input, weight.t())
    return found if bias is None else found + bias


# --- sums and products of elements


@function("add")
def add(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """input + alpha * other: two sparse tensors, or a dense and a sparse one."""
    if not is_sparse(input):
        if not isinstance(input, _C.Tensor) or input.shape != other.shape:
            raise RuntimeError(
                "add(): a sparse tensor is added to a dense one of its shape, without "
                "broadcasting; use to_dense()"
            )
        dtype = _C.promote_types(input.dtype, other.dtype)
        values = other._data if alpha == 1 else other._data * alpha
        where = tuple(other._pattern.indices)
        return input.to(dtype).index_put(where, values.to(dtype), True)
    if not is_sparse(other):
        if input.is_sparse_csr and isinstance(other, _C.Tensor) and alpha == 1:
            return add(other, input)
        raise RuntimeError(
            "add(sparse, dense) is not supported; use add(dense, sparse), or to_dense()"
        )
    if input.shape != other.shape:
        raise RuntimeError(
            f"add(): the shapes are {tuple(input.shape)} and {tuple(other.shape)}; "
            "sparse tensors are not broadcast: give two of one shape"
        )
    values = other._data if alpha == 1 else other._data * alpha
    if input._pattern is other._pattern:
        return input._like(_C._named(input._data + values, "AddBackward0"))
    a, b = input.to_sparse()._pattern, other.to_sparse()._pattern
    dtype = _C.promote_types(input.dtype, values.dtype)
    indices = _C.cat((a.indices, b.indices), 1)
    both = _C.cat((input._data.to(dtype), values.to(dtype)))
    made = SparseTensor(Pattern(a.shape, indices), both)
    if a.coalesced and b.coalesced:
        made = made.coalesce()
    return made.to_sparse(layout=input.layout)


@function("sub", "subtract")
def sub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    return add(input, other, alpha=-alpha)


@function("mul", "multiply")
def mul(input: Any, other: Any) -> Any:
    """The product of elements: of a sparse tensor and a number or another tensor."""
    if not is_sparse(input):
        input, other = other, input
    if _is_number(other):
        return input._like(_C._named(input._data * other, "MulBackward0"))
    if not is_sparse(other):
        where = tuple(input._pattern.indices)
        return input._like(input._data * other.expand(input.shape)[where])
    if input._pattern is other._pattern and input._pattern.coalesced:
        return input._like(input._data * other._data)
    a, b = input.to_sparse().coalesce(), other.to_sparse().coalesce()
    if a.shape != b.shape or a.sparse_dim() != b.sparse_dim():
        raise RuntimeError(
            f"mul(): the shapes are {tuple(a.shape)} and {tuple(b.shape)}; give two "
            "sparse tensors of one shape"
        )
    keys, others = a._pattern.keys(), b._pattern.keys()
    place = _C.searchsorted(others, keys).clamp(max=max(others.shape[0] - 1, 0))
    mine = (others[place] == keys).nonzero()[:, 0] if others.shape[0] else place[:0]
    pattern = a._pattern.chosen(mine)
    pattern.coalesced = True
    made = SparseTensor(pattern, a._data[mine] * b._data[place[mine]])
    return made.to_sparse(layout=input.layout)


@function("div", "divide", "true_divide")
def div(input: Any, other: Any, *, rounding_mode: Any = None) -> Any:
    if not is_sparse(input) or not _is_number(other):
        raise RuntimeError(
            "div(): a sparse tensor is divided by a number, or by a Tensor without "
            "dimensions; use to_dense()"
        )
    if rounding_mode and input.is_sparse:
        input = input.coalesce()
    return input._like(_C.div(input._data, other, rounding_mode=rounding_mode))


@function("floor_divide")
def floor_divide(input: Any, other: Any) -> Any:
    return div(input, other, rounding_mode="floor")


@function("neg", "negative")
def neg(input: Any) -> Any:
    return input._like(-input._data)


@function("neg_", "negative_")
def neg_(input: Any) -> Any:
    return input._become(neg(input))


@function("pow")
def power(input: Any, exponent: Any) -> Any:
    if not is_sparse(input) or not _is_number(exponent) or exponent <= 0:
        raise absent("pow")
    whole = input.coalesce() if input.is_sparse else input
    return whole._like(whole._data**exponent)


# --- reductions


@function("sum")
def sum(input: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The sum of all elements, or a sparse tensor of the sums along dimensions."""
    values = input._data if dtype is None else input._data.to(dtype)
    if dim is None:
        return values.sum()
    given = (dim,) if isinstance(dim, int) else tuple(dim)
    given = given or tuple(range(input.dim()))
    dims = {d % input.dim() if -input.dim() <= d < input.dim() else None for d in given}
    if None in dims:
        raise IndexError(f"sum(): dim is {dim}; give numbers below {input.dim()}")
    k = input.sparse_dim()
    gone = tuple(d - k + 1 for d in dims if d is not None and d >= k)
    values = values.sum(gone) if gone else values
    left = [d for d in range(k) if d not in dims]
    if not left and not keepdim:
        return values.sum(0)
    pattern = Pattern(
        [input._pattern.shape[d] for d in left], input._pattern.indices[left]
    )
    found = SparseTensor(pattern, values).coalesce()
    for d in sorted(d for d in dims if d is not None) if keepdim else ():
        found = found.unsqueeze(d)
    return found.to_sparse(layout=input.layout) if keepdim else found


@function("norm")
def norm(
    input: Any,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
) -> Any:
    """The norm of all elements."""
    if dim is not None or keepdim:
        raise RuntimeError(
            "norm(): of a sparse tensor there is the norm of all elements; leave dim "
            "out, or call to_dense() first"
        )
    whole = input.coalesce() if input.is_sparse else input
    return whole._data.reshape(-1).norm(2 if p == "fro" else p, dtype=dtype)


@function("any")
def any_(input: Any) -> Any:
    return input._data.any()


@function("is_nonzero")
def is_nonzero(input: Any) -> bool:
    return bool(item(input))


@function("item")
def item(input: Any) -> Any:
    if input.numel() != 1:
        raise RuntimeError(
            f"item(): the tensor has {input.numel()} elements; it needs one"
        )
    return input._data.sum().item()


def softmax(input: Any, dim: int, logarithm: bool) -> Any:
    """The softmax over the entries of each row along dim, a sparse dimension."""
    dim = dim % input.dim()
    whole = input.coalesce()
    if dim >= input.sparse_dim():
        f = _C.log_softmax if logarithm else _C.softmax
        return whole._like(f(whole._data, dim - input.sparse_dim() + 1))
    shape = [1 if d == dim else n for d, n in enumerate(whole._pattern.shape)]
    indices = whole._pattern.indices.clone()
    indices[dim] = 0
    _, row = Pattern(shape, indices).merged()
    values = whole._data
    rows = int(row.max()) + 1 if row.shape[0] else 0
    index = row.reshape(-1, *[1] * (values.dim() - 1)).expand(values.shape)
    empty = values.new_zeros((rows, *values.shape[1:]))
    most = empty.scatter_reduce(0, index, values.detach(), "amax", include_self=False)
    shifted = values - most[row]
    sums = empty.index_add(0, row, shifted.exp())
    if logarithm:
        return whole._like(shifted - sums.log()[row])
    return whole._like(shifted.exp() / sums[row])


# --- in place


@function("add_")
def add_(input: Any, other: Any, *, alpha: float = 1) -> Any:
    if is_sparse(input):
        return input._become(add(input, other, alpha=alpha))
    if input.shape != other.shape:
        raise RuntimeError(
            f"add_(): the shapes are {tuple(input.shape)} and {tuple(other.shape)}; a "
            "sparse tensor is not broadcast"
        )
    values = other._data if alpha == 1 else other._data * alpha
    where = tuple(other._pattern.indices)
    return input.index_put_(where, values.to(input.dtype), True)


@function("sub_", "subtract_")
def sub_(input: Any, other: Any, *, alpha: float = 1) -> Any:
    return add_(input, other, alpha=-alpha)


@function("mul_")
def mul_(input: Any, other: Any) -> Any:
    found = mul(input, other)
    return input._become(found) if is_sparse(input) else input.copy_(found.to_dense())


@function("div_")
def div_(input: Any, other: Any) -> Any:
    return input._become(div(input, other))


@function("copy_")
def copy_(input: Any, other: Any, non_blocking: bool = False) -> Any:
    if not is_sparse(input):
        return input.copy_(other.to_dense())
    if not is_sparse(other) or input.shape != other.shape:
        raise RuntimeError("copy_(): give a sparse tensor of the same shape")
    made = other.to_sparse(layout=input.layout).to(input.device, input.dtype)
    return input._become(made.clone())


@function("zero_")
def zero_(input: Any) -> Any:
    return input._become(zeros_like(input))


# --- gradients, for csrc/python/sparse.c


def add_gradient(sum: Any, gradient: Any, recorded: bool) -> Any:
    """The sum of two gradients: in place if it is dense and nothing is recorded."""
    if not is_sparse(sum):
        return add(sum, gradient) if recorded else add_(sum, gradient)
    return add(sum, gradient) if is_sparse(gradient) else add(gradient, sum)


def dense_gradient(gradient: Any) -> Any:
    return gradient.to_dense()


# --- creation and comparison


@function("zeros", "empty")
def zeros(
    *size: Any,
    dtype: Any = None,
    layout: Any,
    device: Any = None,
    requires_grad: bool = False,
    **unused: Any,
) -> Any:
    """A sparse tensor without entries."""
    if layout not in LAYOUTS.values():
        raise absent("zeros")
    given = (unused["size"],) if "size" in unused else size
    made = coo(
        _C.empty(*given, device="meta").shape, dtype=dtype, device=device
    ).to_sparse(layout=layout)
    return made.requires_grad_() if requires_grad else made


@function("zeros_like", "empty_like")
def zeros_like(
    input: Any, *, dtype: Any = None, device: Any = None, **unused: Any
) -> Any:
    k = input.sparse_dim()
    made = Pattern(input.shape[:k], _C.zeros((k, 0), dtype=_C.int64), True)
    values = input._data[:0].detach()
    made = made.to(values.device)
    result = SparseTensor(made, values).to_sparse(layout=input.layout)
    return result.to(input.device if device is None else device, dtype or input.dtype)


@function("new_zeros", "new_empty")
def new_zeros(input: Any, *size: Any, dtype: Any = None, device: Any = None) -> Any:
    """A sparse COO tensor without entries."""
    if len(size) == 1 and not isinstance(size[0], int):
        size = tuple(size[0])
    k = _C.zeros((len(size), 0), dtype=_C.int64, device=input.device)
    made = SparseTensor(Pattern(size, k, True), input._data.detach().reshape(-1)[:0])
    return made.to(device or input.device, dtype or input.dtype)


@function("sparse_mask")
def sparse_mask(input: Any, mask: Any) -> Any:
    """The elements of input at the positions of mask's entries."""
    dense = input.to_dense() if is_sparse(input) else input
    return mask._like(dense[tuple(mask._pattern.indices)])


# --- operators

_OPERATORS = "add sub mul matmul truediv floordiv pow neg"
_ABSENT = """
eq ne lt le gt ge and or xor mod rfloordiv rpow rmod invert setitem float int index
contains
"""
for _name in _OPERATORS.split():
    _of = {"truediv": "div", "floordiv": "floor_divide"}.get(_name, _name)
    setattr(SparseTensor, f"__{_name}__", FUNCTIONS[_of])
_REFLECTED: dict[str, Any] = {
    "__radd__": lambda self, other: add(other, self),
    "__rsub__": lambda self, other: sub(other, self),
    "__rmul__": mul,
    "__rmatmul__": lambda self, other: matmul(other, self),
    "__rtruediv__": lambda self, other: div(other, self),
    "__abs__": lambda self: self.abs(),
    "T": property(lambda self: self.t()),
    "mT": property(lambda self: self.t()),
}
for _name, _of in _REFLECTED.items():
    setattr(SparseTensor, _name, _of)


def _refused(name: str) -> Any:
    def refuse(self: Any, other: Any = None) -> Any:
        if name in ("__eq__", "__ne__") and not isinstance(
            other, (_C.Tensor, int, float)
        ):
            return name == "__ne__"
        raise absent(name.strip("_"))

    return refuse


for _name in _ABSENT.split():
    setattr(SparseTensor, f"__{_name}__", _refused(f"__{_name}__"))
