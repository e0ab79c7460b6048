"""Products, distances and norms of vectors and matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._autocast import casts
from pydevtensor._functions import function
from pydevtensor._functions.checks import (
    at_least,
    at_most_dims,
    dimension,
    real,
    same_device,
    same_dtype,
)
from pydevtensor._functions.einsum import multiply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydevtensor._functions.types import Dims, Number, Tensor, Value


def _axes(x, dims):
    """Dimensions of x to contract, counted from 0."""
    if isinstance(dims, _C.Tensor):
        dims = dims.tolist()
    axes = [dimension(x, d) for d in ([dims] if isinstance(dims, int) else dims)]
    if len(set(axes)) < len(axes):
        raise RuntimeError(f"dims names one twice, in {dims}; name each once")
    return axes


def _added(input, product, beta, alpha, node):
    """beta * input + alpha * product, made by a node of that name.

    Integers are multiplied by the whole parts of beta and alpha.
    """
    same_dtype(input, product)
    input.expand(product.shape)  # raises if it does not broadcast to the product
    if not (input.is_floating_point() or input.is_complex()):
        alpha, beta = int(alpha), int(beta)
    if alpha != 1:
        product = product * alpha
    if beta != 0:  # else NaN in input is ignored too
        product = (input if beta == 1 else input * beta) + product
    return _C._named(product, node)


@function(method=True, out=True, aliases=("ger",))
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Outer product of two vectors: a matrix of shape [n, m].

    input has n elements and vec2 m. RuntimeError for other shapes.

    >>> torch.tensor([1.0, 2.0]).outer(torch.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    if input.dim() != 1 or vec2.dim() != 1:
        raise RuntimeError(
            f"the shapes are {tuple(input.shape)} and {tuple(vec2.shape)}; give vectors"
        )
    return input.unsqueeze(1) * vec2


@function(method=True, out=True)
@casts(cuda="widest")
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Inner product along the last dimension of both tensors.

    For vectors a dot product; otherwise one for each pair of rows.

    >>> torch.tensor([1.0, 2.0]).inner(torch.tensor([3.0, 4.0]))
    tensor(11.)
    """
    if not input.dim() or not other.dim():
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            f"the last dimensions have sizes {input.shape[-1]} and {other.shape[-1]}; "
            "give the same size"
        )
    if input.dim() == other.dim() == 1:
        same_dtype(input, other)
        return input.dot(other)
    return tensordot(input, other, ([-1], [-1]))


@function(method=True, out=True)
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Dot product of two vectors of the same size and dtype, the first one conjugate.

    >>> torch.tensor([1.0, 2.0]).vdot(torch.tensor([3.0, 4.0]))
    tensor(11.)
    """
    return input.conj().dot(other)


@function(method=True, out=True)
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Kronecker product: blocks of other scaled by each element of input.

    The result's sizes are the products of both tensors' sizes.

    >>> torch.tensor([1, 2]).kron(torch.tensor([1, 10]))
    tensor([ 1, 10,  2, 20])
    """
    ndim = max(input.dim(), other.dim())
    ns = (1,) * (ndim - input.dim()) + tuple(input.shape)
    ms = (1,) * (ndim - other.dim()) + tuple(other.shape)
    blocks = input.reshape([size for n in ns for size in (n, 1)])
    product = blocks * other.reshape([size for m in ms for size in (1, m)])
    return product.reshape([n * m for n, m in zip(ns, ms, strict=True)])


@function(method=True, out=True)
@casts(cuda="widest")
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Cross product of vectors of 3 elements along dim, with broadcasting.

    Without dim, along the first dimension of size 3.

    >>> torch.tensor([1.0, 0.0, 0.0]).cross(torch.tensor([0.0, 1.0, 0.0]), dim=0)
    tensor([0., 0., 1.])
    """
    if input.dim() != other.dim():
        raise RuntimeError(
            f"input has {input.dim()} dimensions and other {other.dim()}; add some "
            "with unsqueeze()"
        )
    same_dtype(input, other)
    if dim is None:
        if 3 not in input.shape:
            raise RuntimeError(
                f"no dimension of {tuple(input.shape)} has size 3; give vectors of 3 "
                "elements"
            )
        dim = tuple(input.shape).index(3)
    if input.size(dim) != 3 or other.size(dim) != 3:
        raise RuntimeError(
            f"dimension {dim} has sizes {input.size(dim)} and {other.size(dim)}; give "
            "vectors of 3 elements"
        )
    a, b = input.unbind(dim), other.unbind(dim)
    parts = [a[i] * b[j] - a[j] * b[i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return _C.stack(parts, dim % input.dim())


@function(method=True, out=True)
def matrix_power(input: Tensor, n: int) -> Tensor:
    """Square matrix, or a batch of them, raised to the power n.

    A negative n is for matrices with an inverse.

    >>> torch.tensor([[1, 1], [0, 1]]).matrix_power(3)
    tensor([[1, 3],
            [0, 1]])
    """
    if input.dim() < 2 or input.shape[-2] != input.shape[-1]:
        raise RuntimeError(
            f"input has the shape {tuple(input.shape)}; give a square matrix or a "
            "batch of them"
        )
    if n < 0:
        input, n = _C.inverse(input), -n
    if n == 0:
        one = _C.eye(input.shape[-1], dtype=input.dtype, device=input.device)
        return input.clone().copy_(one)
    if n == 1:
        return input.clone()
    half = matrix_power(input, n // 2) if n > 3 else input
    return half @ half @ input if n % 2 else half @ half


@function(out=True)
@casts(cuda="widest")
def tensordot(a: Tensor, b: Tensor, dims: int | Sequence[Sequence[int]] = 2) -> Tensor:
    """Contract a and b over several dimensions.

    dims is the number of dimensions, the last of a and the first of b, or two lists of
    dimensions to contract.

    >>> torch.tensordot(torch.ones(2, 3), torch.ones(3, 4), dims=1).shape
    torch.Size([2, 4])
    """
    same_dtype(a, b)
    if isinstance(dims, _C.Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.dim(), b.dim()):
            raise RuntimeError(
                f"dims is {dims}; give 0 to {min(a.dim(), b.dim())}, the dimensions "
                "that both have"
            )
        dims = range(a.dim() - dims, a.dim()), range(dims)
    elif not isinstance(dims, (tuple, list)) or len(dims) != 2:
        raise RuntimeError(f"dims is {dims!r}; give an int or two lists of dimensions")
    left, right = _axes(a, dims[0]), _axes(b, dims[1])
    if len(left) != len(right):
        raise RuntimeError(
            f"dims names {len(left)} dimensions of a and {len(right)} of b; give as "
            "many of both"
        )
    # Dimensions of one name are contracted unless they are kept.
    a_names, b_names = list(range(a.dim())), list(range(a.dim(), a.dim() + b.dim()))
    kept = {*a_names, *b_names} - {a_names[i] for i in left}
    for i, j in zip(left, right, strict=True):
        b_names[j] = a_names[i]
    return multiply(a, a_names, b, b_names, kept)[0]


def chain(matrices: Sequence[Tensor]) -> Tensor:
    """The product of matrices in the cheapest order."""
    count = len(matrices)
    sizes = [matrices[0].shape[0], *(each.shape[1] for each in matrices)]
    # cost[i, j]: the cheapest way to multiply i to j, and the matrix to divide after.
    cost = {(i, i): (0, i) for i in range(count)}
    for length in range(2, count + 1):
        for i in range(count - length + 1):
            j = i + length - 1
            cost[i, j] = min(
                (
                    cost[i, k][0]
                    + cost[k + 1, j][0]
                    + sizes[i] * sizes[k + 1] * sizes[j + 1],
                    k,
                )
                for k in range(i, j)
            )

    def product(i, j):
        if i == j:
            return matrices[i]
        k = cost[i, j][1]
        return product(i, k) @ product(k + 1, j)

    return product(0, count - 1)


@function(out=True)
def chain_matmul(*matrices: Tensor) -> Tensor:
    """Product of several matrices, multiplied in the cheapest order.

    >>> import pydevtensor as torch
    >>> torch.chain_matmul(torch.ones(2, 3), torch.ones(3, 4), torch.ones(4, 1))
    tensor([[12.],
            [12.]])
    """
    at_least(1, "the number of matrices", len(matrices))
    for place, each in enumerate(matrices):
        if each.dim() != 2:
            raise RuntimeError(
                f"argument {place} has the shape {tuple(each.shape)}; give matrices"
            )
    return chain(matrices)


@function(method=True, out=True, in_place="both")
@casts(cuda="lower")
def addmv(
    input: Tensor, mat: Tensor, vec: Tensor, *, beta: Value = 1, alpha: Value = 1
) -> Tensor:
    """beta * input + alpha * (mat @ vec).

    >>> torch.ones(2).addmv(torch.ones(2, 3), torch.ones(3), alpha=2)
    tensor([7., 7.])
    """
    return _added(input, mat.mv(vec), beta, alpha, "AddmvBackward0")


@function(method=True, out=True, in_place=True)
@casts(cuda="lower")
def addr(
    input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Value = 1, alpha: Value = 1
) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2).

    For bools it is input or the product, where beta and alpha are not 0. RuntimeError
    for a float beside integers, and for a bool beside other types.

    >>> torch.zeros(2, 2).addr(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    product = outer(vec1, vec2)
    dtype = _C.promote_types(input.dtype, product.dtype)
    for name, number in (("beta", beta), ("alpha", alpha)):
        whole = not (dtype.is_floating_point or dtype.is_complex)
        if isinstance(number, float) and whole:
            raise RuntimeError(
                f"{name} is {number} and the Tensors {dtype}; give an int"
            )
        if isinstance(number, bool) and dtype != _C.bool:
            raise RuntimeError(
                f"{name} is a bool and the Tensors {dtype}; give a number"
            )
    if dtype == _C.bool:
        return input & bool(beta) | product & bool(alpha)
    return _added(input.to(dtype), product.to(dtype), beta, alpha, "AddrBackward0")


@function(method=True, out=True, in_place=True)
@casts(cpu="lower", cuda="lower")
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Value = 1, alpha: Value = 1
) -> Tensor:
    """beta * input + alpha * sum of the matrix products batch1[i] @ batch2[i].

    batch1 (b, n, k) and batch2 (b, k, m); input broadcasts to (n, m). RuntimeError for
    other shapes.

    See also baddbmm(), which does not add them.

    >>> torch.zeros(1, 1).addbmm(torch.ones(2, 1, 3), torch.ones(2, 3, 1))
    tensor([[6.]])
    """
    sums = batch1.bmm(batch2).sum(0, dtype=batch1.dtype)
    return _added(input, sums, beta, alpha, "AddbmmBackward0")


@function(method=True, out=True, in_place=True, like="addbmm")
@casts(cpu="lower", cuda="lower")
def baddbmm(input, batch1, batch2, *, beta=1, alpha=1) -> Tensor:
    """beta * input + alpha * (batch1 @ batch2), for each matrix of the batches.

    >>> torch.zeros(2, 1, 1).baddbmm(torch.ones(2, 1, 3), torch.ones(2, 3, 1)).flatten()
    tensor([3., 3.])
    """
    products = batch1.bmm(batch2)
    return _added(input, products, beta, alpha, "BaddbmmBackward0")


@function(method=True)
@casts(cuda="float32")
def dist(input: Tensor, other: Tensor, p: Number = 2) -> Tensor:
    """p-norm of input - other, with broadcasting, as a 0-dim tensor.

    >>> torch.zeros(2).dist(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    return _C._named((input - other).norm(p), "DistBackward0")


# PyTorch's ways to compute Euclidean distances, one of which is used here.
_MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


@function()
@casts(cpu="float32", cuda="float32")
def cdist(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: Any = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """p-norm distance between each pair of rows.

    x1 of shape [..., n, k] and x2 of [..., m, k] give [..., n, m].

    compute_mode has no effect: distances are those of the differences, never computed
    by matrix products. RuntimeError for other shapes and for a negative p, ValueError
    for a mode that PyTorch does not have either.

    >>> torch.cdist(torch.zeros(1, 2), torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    if compute_mode not in _MODES:
        raise ValueError(
            f"compute_mode is {compute_mode!r}; leave it out, it has no effect"
        )
    real("x1", x1)
    same_dtype(x1, x2)
    if min(x1.dim(), x2.dim()) < 2 or x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            f"the shapes are {tuple(x1.shape)} and {tuple(x2.shape)}; give [..., rows, "
            "columns], with as many columns in both"
        )
    if not p >= 0:
        raise RuntimeError(f"p is {p}; give 0 or more")
    if p == 0:  # the only order whose gradient has no history of its own
        x1, x2 = _C._flat(x1), _C._flat(x2)
    gaps = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    return _C._named(gaps.norm(p, dim=-1), "CdistBackward0")


@function(method=True, out=True, in_place=True)
@casts(cuda="float32")
def renorm(input: Tensor, p: Number, dim: int, maxnorm: Number) -> Tensor:
    """Scale down each slice along dim whose p-norm exceeds maxnorm.

    >>> torch.tensor([[3.0, 4.0], [0.5, 0.5]]).renorm(2, 0, 1)
    tensor([[0.6000, 0.8000],
            [0.5000, 0.5000]])
    """
    if input.dim() < 2:
        raise RuntimeError(f"input has {input.dim()} dimensions; give at least 2")
    if not p > 0:
        raise RuntimeError(f"p is {p}; give more than 0")
    if not maxnorm >= 0:
        raise RuntimeError(f"maxnorm is {maxnorm}; give 0 or more")
    dim = dimension(input, dim)
    others = [d for d in range(input.dim()) if d != dim]
    # In float16 the number that keeps it from 0 would be lost.
    dtype = _C.float32 if input.itemsize < 4 else None
    norm = input.norm(p, dim=others, keepdim=True, dtype=dtype)
    factor = _C.where(norm > maxnorm, maxnorm / (norm + 1e-7), 1)
    return input * factor.to(input.dtype)


@function()
def block_diag(*tensors: Tensor) -> Tensor:
    """Matrix with the given tensors on its diagonal and 0 elsewhere.

    A vector counts as one row. The dtype is the one that all promote to.

    >>> torch.block_diag(torch.tensor([[1, 2]]), torch.tensor([3]))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    if not tensors:
        return _C.zeros(1, 0)
    at_most_dims(2, tensors)
    same_device(*tensors)
    blocks = [each if each.dim() == 2 else each.reshape(1, -1) for each in tensors]
    rows, columns = (sum(block.shape[d] for block in blocks) for d in (0, 1))
    dtype = blocks[0].dtype
    for block in blocks:
        dtype = _C.promote_types(dtype, block.dtype)
    whole = tensors[0].new_zeros(rows, columns, dtype=dtype)
    row = column = 0
    for block in blocks:
        n, m = block.shape
        whole[row : row + n, column : column + m] = block
        row, column = row + n, column + m
    return whole


@function(out=True)
def frobenius_norm(input: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    """The root of the sum of squares along one or two dimensions.

    dim      the dimensions, one or two (RuntimeError for more); none for all
    keepdim  the reduced dimensions stay, with size 1

    >>> torch.frobenius_norm(torch.tensor([[3.0, 4.0]]), (0, 1))
    tensor(5.)
    """
    if len(dim) > 2:
        raise RuntimeError(f"dim is {[*dim]}; give one or two dimensions")
    return input.norm(2, dim or None, keepdim)
