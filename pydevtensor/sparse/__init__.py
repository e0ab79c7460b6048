"""torch.sparse: products, sums and softmax of sparse tensors; docs/sparse.md.

torch.sparse_coo_tensor() and sparse_csr_tensor() make them, and Tensor.to_sparse().
"""

from __future__ import annotations

from typing import Any

from pydevtensor._names import publish as _publish
from pydevtensor.sparse import _calls
from pydevtensor.sparse._make import (
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
    check_sparse_tensor_invariants,
)
from pydevtensor.sparse._products import reduced as _reduced
from pydevtensor.sparse._products import sampled as _sampled
from pydevtensor.sparse._shapes import of_diagonals as _of_diagonals

__all__ = ["ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor"]
__all__ += ["IntTensor", "LongTensor", "ShortTensor", "addmm"]
__all__ += ["check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm"]
__all__ += ["softmax", "spdiags", "sum"]


def _need_sparse(name: str, *values: Any) -> None:
    if not any(map(_calls.is_sparse, values)):
        raise TypeError(f"{name}(): no argument is a sparse tensor; give one")


def mm(mat1: Any, mat2: Any, reduce: str | None = None) -> Any:
    """The product of two matrices, of which at least one is sparse.

    mat1: (m, k). mat2: (k, n), of the same type. Dense (m, n), or sparse in mat1's
    layout where both are sparse. reduce: "sum", "mean", "amax" or "amin" of an entry's
    products, of CSR and a dense matrix; a row without entries gives 0. RuntimeError
    for other shapes or types.

    >>> x = torch.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse()
    >>> torch.sparse.mm(x, torch.ones(2, 3))
    tensor([[2., 2., 2.],
            [0., 0., 0.]])
    """
    _need_sparse("mm", mat1, mat2)
    if mat1.dim() != 2 or mat2.dim() != 2:
        raise RuntimeError(
            f"mm(): {mat1.dim()} and {mat2.dim()} dimensions; give two matrices"
        )
    if reduce is None or reduce == "sum":
        return _calls.matmul(mat1, mat2)
    if reduce not in ("mean", "amax", "amin"):
        raise RuntimeError(
            f"mm(): reduce is {reduce!r}; give 'sum', 'mean', 'amax' or 'amin'"
        )
    if not _calls.is_sparse(mat1) or not mat1.is_sparse_csr or _calls.is_sparse(mat2):
        raise RuntimeError("mm(): reduce is for a CSR and a dense matrix")
    return _reduced(mat1._data, mat2, mat1._pattern, reduce)


def addmm(
    mat: Any, mat1: Any, mat2: Any, *, beta: float = 1.0, alpha: float = 1.0
) -> Any:
    """beta * mat + alpha * (mat1 @ mat2), where mat1 is sparse.

    mat: (m, n), or what broadcasts to it. mat1, mat2: those of mm().

    >>> x = torch.eye(2).to_sparse()
    >>> torch.sparse.addmm(torch.ones(2, 2), x, torch.ones(2, 2), alpha=3)
    tensor([[4., 4.],
            [4., 4.]])
    """
    _need_sparse("addmm", mat1, mat2)
    return _calls.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input: Any, dim: Any = None, dtype: Any = None) -> Any:
    """The sum of a sparse tensor: a Tensor without dimensions, or along dimensions.

    dim: a dimension, or several; the result is sparse while a sparse one is left.
    dtype: of the sum.

    >>> x = torch.tensor([[0.0, 2.0], [3.0, 4.0]]).to_sparse()
    >>> torch.sparse.sum(x), torch.sparse.sum(x, 1).to_dense()
    (tensor(9.), tensor([2., 7.]))
    """
    _need_sparse("sum", input)
    return _calls.sum(input, dim, dtype=dtype)


def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The softmax along a dimension, of the entries alone: others count as -inf.

    input: sparse COO. dim: a dimension. dtype: to convert input to before.

    >>> x = torch.tensor([[0.0, 1.0], [2.0, 2.0]]).to_sparse()
    >>> torch.sparse.softmax(x, 1).to_dense()
    tensor([[0.0000, 1.0000],
            [0.5000, 0.5000]])
    """
    _need_sparse("softmax", input)
    return _calls.softmax(input if dtype is None else input.to(dtype), dim, False)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The logarithm of softmax(), with its arguments.

    >>> x = torch.tensor([[0.0, 1.0]]).to_sparse()
    >>> torch.sparse.log_softmax(x, 1).values()
    tensor([0.])
    """
    _need_sparse("log_softmax", input)
    return _calls.softmax(input if dtype is None else input.to(dtype), dim, True)


def sampled_addmm(
    input: Any, mat1: Any, mat2: Any, *, beta: float = 1.0, alpha: float = 1.0
) -> Any:
    """beta * input + alpha * (mat1 @ mat2) at the positions of input's entries.

    input: sparse CSR (m, n). mat1: (m, k). mat2: (k, n). What is not asked for of the
    product is not computed.

    >>> x = torch.eye(2).to_sparse_csr()
    >>> torch.sparse.sampled_addmm(x, torch.ones(2, 3), torch.ones(3, 2)).values()
    tensor([4., 4.])
    """
    _need_sparse("sampled_addmm", input)
    found = _sampled(mat1, mat2.mT, input._pattern)
    return input._like(input._data * beta + found * alpha)


def spdiags(diagonals: Any, offsets: Any, shape: Any, layout: Any = None) -> Any:
    """A sparse matrix of which some diagonals are given.

    diagonals: (n, m), a row for each, whose element j is in column j; or (m), one.
    offsets: which diagonals, integers (n), 0 the main one, above it greater ones.
    shape: of the result. layout: torch.sparse_coo, sparse_csr or sparse_csc.
    RuntimeError where an offset occurs twice, or numbers of rows differ.

    >>> torch.sparse.spdiags(torch.ones(2, 2), torch.tensor([0, 1]), (2, 2)).to_dense()
    tensor([[1., 1.],
            [0., 1.]])
    """
    made = _of_diagonals(diagonals, offsets, tuple(shape))
    return made if layout is None else made.to_sparse(layout=layout)


_publish(__name__)
