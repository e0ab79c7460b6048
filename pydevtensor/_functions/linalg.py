"""Products, distances and norms of vectors and matrices."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from pydevtensor import _C
from pydevtensor._functions import function
from pydevtensor._functions.checks import (
    dimension,
    floating,
    int_dimension,
    same_dtype,
    vector,
)
from pydevtensor._functions.einsum import multiply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydevtensor._functions.types import Number, Tensor


def _numbers(dims):
    if isinstance(dims, _C.Tensor):
        dims = dims.tolist()
    return [dims] if isinstance(dims, int) else list(dims)


def _added(function, input, product, beta, alpha):
    try:
        input.expand(product.shape)
    except RuntimeError:
        raise RuntimeError(
            f"{function}(): input of shape {tuple(input.shape)} does not expand to the "
            f"product's {tuple(product.shape)}; give one that broadcasts to it"
        ) from None
    if alpha != 1:
        product = product * alpha
    if beta == 0:  # ignores NaN in input too
        return product
    return (input if beta == 1 else input * beta) + product


@function(method=True, out=True, aliases=("ger",))
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Outer product of two vectors of n and m elements: a matrix of shape [n, m].

    >>> torch.tensor([1.0, 2.0]).outer(torch.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    vector("outer", "input", input)
    vector("outer", "vec2", vec2)
    return input.unsqueeze(1) * vec2


@function(method=True, out=True)
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Inner product along the last dimension of both tensors.

    For vectors a dot product; otherwise one for each pair of rows.

    >>> torch.tensor([1.0, 2.0]).inner(torch.tensor([3.0, 4.0]))
    tensor(11.)
    """
    same_dtype("inner", input, other)
    if not input.dim() or not other.dim():
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            f"inner(): the last dimensions have sizes {input.shape[-1]} and "
            f"{other.shape[-1]}; give the same size"
        )
    return tensordot(input, other, ([-1], [-1]))


@function(method=True, out=True)
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Dot product of two vectors of the same size and dtype.

    >>> torch.tensor([1.0, 2.0]).vdot(torch.tensor([3.0, 4.0]))
    tensor(11.)
    """
    return input.dot(other)


@function(method=True, out=True)
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Kronecker product: blocks of other scaled by each element of input.

    The result's sizes are the products of both tensors' sizes.

    >>> torch.tensor([1, 2]).kron(torch.tensor([1, 10]))
    tensor([ 1, 10,  2, 20])
    """
    ndim = max(input.dim(), other.dim())
    a = input.reshape((1,) * (ndim - input.dim()) + tuple(input.shape))
    b = other.reshape((1,) * (ndim - other.dim()) + tuple(other.shape))
    pairs = [size for n in a.shape for size in (n, 1)]
    others = [size for m in b.shape for size in (1, m)]
    product = a.reshape(pairs) * b.reshape(others)
    return product.reshape([n * m for n, m in zip(a.shape, b.shape, strict=True)])


@function(method=True, out=True)
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Cross product of vectors of 3 elements along dim, with broadcasting.

    Without dim, along the first dimension of size 3.

    >>> torch.tensor([1.0, 0.0, 0.0]).cross(torch.tensor([0.0, 1.0, 0.0]), dim=0)
    tensor([0., 0., 1.])
    """
    if input.dim() != other.dim():
        raise RuntimeError(
            f"cross(): input has {input.dim()} dimensions and other {other.dim()}; add "
            "some with unsqueeze()"
        )
    same_dtype("cross", input, other)
    if dim is None:
        threes = [d for d, size in enumerate(input.shape) if size == 3]
        if not threes:
            raise RuntimeError(
                f"cross(): no dimension of {tuple(input.shape)} has size 3; give "
                "vectors of 3 elements"
            )
        dim = threes[0]
    if input.size(dim) != 3 or other.size(dim) != 3:
        raise RuntimeError(
            f"cross(): dimension {dim} has sizes {input.size(dim)} and "
            f"{other.size(dim)}; give vectors of 3 elements"
        )
    a, b = input.unbind(dim), other.unbind(dim)
    parts = [a[i] * b[j] - a[j] * b[i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return _C.stack(parts, dim if dim >= 0 else dim + parts[0].dim() + 1)


@function(method=True, out=True)
def matrix_power(input: Tensor, n: int) -> Tensor:
    """Square matrix, or a batch of them, raised to the power n, which is 0 or more.

    >>> torch.tensor([[1, 1], [0, 1]]).matrix_power(3)
    tensor([[1, 3],
            [0, 1]])
    """
    if input.dim() < 2:
        raise RuntimeError(
            f"matrix_power(): input has the shape {tuple(input.shape)}; give a matrix "
            "or a batch of them"
        )
    rows, columns = input.shape[-2:]
    if rows != columns:
        raise RuntimeError(
            f"matrix_power(): the matrices are {rows} by {columns}; give square ones"
        )
    if n < 0:
        raise NotImplementedError(
            f"matrix_power(): n is {n}, and inverses are not there yet; give 0 or more"
        )
    if n == 0:
        one = _C.eye(rows, dtype=input.dtype, device=input.device)
        return one.expand(input.shape).clone()
    if n == 1:
        return input.clone()
    half = matrix_power(input, n // 2) if n > 3 else input
    return half @ half @ input if n % 2 else half @ half


@function(out=True)
def tensordot(a: Tensor, b: Tensor, dims: int | Sequence[Sequence[int]] = 2) -> Tensor:
    """Contract a and b over several dimensions.

    dims is the number of dimensions, the last of a and the first of b, or two lists of
    dimensions to contract.

    >>> torch.tensordot(torch.ones(2, 3), torch.ones(3, 4), dims=1).shape
    torch.Size([2, 4])
    """
    same_dtype("tensordot", a, b)
    if isinstance(dims, _C.Tensor):
        dims = dims.tolist()
    if isinstance(dims, int) and not isinstance(dims, bool):
        if dims < 0 or dims > min(a.dim(), b.dim()):
            raise RuntimeError(
                f"tensordot(): dims is {dims}; give 0 to {min(a.dim(), b.dim())}, the "
                "dimensions that both have"
            )
        left, right = list(range(a.dim() - dims, a.dim())), list(range(dims))
    elif isinstance(dims, (tuple, list)) and len(dims) == 2:
        left, right = _numbers(dims[0]), _numbers(dims[1])
    else:
        raise RuntimeError(
            f"tensordot(): dims is {dims!r}; give an int or two lists of dimensions"
        )
    if len(left) != len(right):
        raise RuntimeError(
            f"tensordot(): dims names {len(left)} dimensions of a and {len(right)} of "
            "b; give as many of both"
        )
    left = [int_dimension("tensordot", d, a.dim()) for d in left]
    right = [int_dimension("tensordot", d, b.dim()) for d in right]
    for chosen in (left, right):
        if len(set(chosen)) != len(chosen):
            raise RuntimeError(
                f"tensordot(): dims names one twice, in {chosen}; name each once"
            )
    for i, j in zip(left, right, strict=True):
        if a.shape[i] != b.shape[j] and 1 not in (a.shape[i], b.shape[j]):
            raise RuntimeError(
                f"tensordot(): dimension {i} of a has size {a.shape[i]} and {j} of b "
                f"{b.shape[j]}; give the same size"
            )
    # Dimensions of one name are contracted unless they are kept.
    a_names, b_names = list(range(a.dim())), list(range(a.dim(), a.dim() + b.dim()))
    kept = {n for i, n in enumerate(a_names) if i not in left}
    kept |= {n for j, n in enumerate(b_names) if j not in right}
    for i, j in zip(left, right, strict=True):
        b_names[j] = a_names[i]
    return multiply(a, a_names, b, b_names, kept)[0]


def chain(function: str, matrices: Sequence[Tensor]) -> Tensor:
    """The product of matrices in the cheapest order."""
    count = len(matrices)
    for place, (left, right) in enumerate(pairwise(matrices)):
        if left.shape[1] != right.shape[0]:
            raise RuntimeError(
                f"{function}(): matrices {place} and {place + 1}, of shapes "
                f"{tuple(left.shape)} and {tuple(right.shape)}, cannot be multiplied; "
                "the sizes between them have to be the same"
            )
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
    if not matrices:
        raise RuntimeError("chain_matmul(): no matrices were given; give at least one")
    for place, each in enumerate(matrices):
        if each.dim() != 2:
            raise RuntimeError(
                f"chain_matmul(): argument {place} has the shape "
                f"{tuple(each.shape)}; give matrices"
            )
    return chain("chain_matmul", matrices)


@function(method=True, out=True, in_place="both")
def addmv(
    input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """beta * input + alpha * (mat @ vec).

    >>> torch.ones(2).addmv(torch.ones(2, 3), torch.ones(3), alpha=2)
    tensor([7., 7.])
    """
    return _added("addmv", input, mat.mv(vec), beta, alpha)


@function(method=True, out=True, in_place=True)
def addr(
    input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2).

    >>> torch.zeros(2, 2).addr(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    vector("addr", "vec1", vec1)
    vector("addr", "vec2", vec2)
    return _added("addr", input, vec1.unsqueeze(1) * vec2, beta, alpha)


@function(method=True, out=True, in_place=True)
def addbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: Number = 1,
    alpha: Number = 1,
) -> Tensor:
    """beta * input + alpha * sum of the matrix products of two batches.

    >>> torch.zeros(1, 1).addbmm(torch.ones(2, 1, 3), torch.ones(2, 3, 1))
    tensor([[6.]])
    """
    return _added("addbmm", input, batch1.bmm(batch2).sum(0), beta, alpha)


@function(method=True, out=True, in_place=True)
def baddbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: Number = 1,
    alpha: Number = 1,
) -> Tensor:
    """beta * input + alpha * (batch1 @ batch2), for each matrix of the batches.

    >>> torch.zeros(2, 1, 1).baddbmm(torch.ones(2, 1, 3), torch.ones(2, 3, 1)).flatten()
    tensor([3., 3.])
    """
    return _added("baddbmm", input, batch1.bmm(batch2), beta, alpha)


@function(method=True)
def dist(input: Tensor, other: Tensor, p: Number = 2) -> Tensor:
    """p-norm of input - other, with broadcasting, as a 0-dim tensor.

    >>> torch.zeros(2).dist(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    difference = input - other
    floating("dist", "the difference", difference)
    return difference.norm(p)


@function()
def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = None
) -> Tensor:
    """p-norm distance between each pair of rows.

    Inputs of shape [..., n, k] and [..., m, k] give [..., n, m].

    >>> torch.cdist(torch.zeros(1, 2), torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    for name, x in (("x1", x1), ("x2", x2)):
        floating("cdist", name, x)
        if x.dim() < 2:
            raise RuntimeError(
                f"cdist(): {name} has the shape {tuple(x.shape)}; give [..., rows, "
                "columns]"
            )
    same_dtype("cdist", x1, x2)
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            f"cdist(): x1 has {x1.shape[-1]} columns and x2 {x2.shape[-1]}; give as "
            "many in both"
        )
    if not p >= 0:
        raise RuntimeError(f"cdist(): p is {p}; give 0 or more")
    return (x1.unsqueeze(-2) - x2.unsqueeze(-3)).norm(p, dim=-1)


@function(method=True, out=True, in_place=True)
def renorm(input: Tensor, p: Number, dim: int, maxnorm: Number) -> Tensor:
    """Scale down each slice along dim whose p-norm exceeds maxnorm.

    >>> torch.tensor([[3.0, 4.0], [0.5, 0.5]]).renorm(2, 0, 1)
    tensor([[0.6000, 0.8000],
            [0.5000, 0.5000]])
    """
    floating("renorm", "input", input)
    if input.dim() < 2:
        raise RuntimeError(
            f"renorm(): input has {input.dim()} dimensions; give at least 2"
        )
    if not p > 0:
        raise RuntimeError(f"renorm(): p is {p}; give more than 0")
    if not maxnorm >= 0:
        raise RuntimeError(f"renorm(): maxnorm is {maxnorm}; give 0 or more")
    dim = dimension("renorm", dim, input.dim())
    others = [d for d in range(input.dim()) if d != dim]
    norm = input.norm(p, dim=others, keepdim=True)
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
    blocks, dtype = [], tensors[0].dtype
    for place, each in enumerate(tensors):
        if each.dim() > 2:
            raise RuntimeError(
                f"block_diag(): Tensor {place} has the shape {tuple(each.shape)}; give "
                "at most 2 dimensions"
            )
        if each.device != tensors[0].device:
            raise RuntimeError(
                f"block_diag(): Tensor {place} is on {each.device} and the first on "
                f"{tensors[0].device}; bring them to one device with .to()"
            )
        dtype = _C.promote_types(dtype, each.dtype)
        blocks.append(each if each.dim() == 2 else each.reshape(1, -1))
    rows, columns = (sum(block.shape[d] for block in blocks) for d in (0, 1))
    whole = tensors[0].new_zeros(rows, columns, dtype=dtype)
    row = column = 0
    for block in blocks:
        n, m = block.shape
        whole[row : row + n, column : column + m] = block
        row, column = row + n, column + m
    return whole
