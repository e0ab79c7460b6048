"""Functions of the package and methods of Tensor that make sparse tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function, method
from pydevtensor.sparse import _calls, _make

if TYPE_CHECKING:
    from pydevtensor._functions.types import Device, Dtype, Tensor


@function(keywords="sparse_csr_tensor")
def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    is_coalesced: bool | None = None,
    **named: Any,
) -> Any:
    """A sparse tensor of values at indices, in the layout torch.sparse_coo.

    RuntimeError for shapes that do not fit. Values of a position that occurs twice are
    added. The values may require gradients.

    indices           (dimensions, entries) of integers; or, without values, the size
    values            (entries, ...), a value or a dense tensor for each
    size              by default the smallest that has all entries
    dtype, device     of the values; by default those of values
    requires_grad     the result is a leaf whose gradient is sparse
    check_invariants  whether indices out of range raise; by default they do in the
                      host's memory, and elsewhere where torch.sparse's
                      check_sparse_tensor_invariants is on
    is_coalesced      say that the indices are sorted and none occurs twice

    pin_memory has no effect.

    >>> torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    return _make.coo(indices, values, size, is_coalesced, **named)


@function()
def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Dtype | None = None,
    device: Device | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Any:
    """A sparse matrix by rows, in the layout torch.sparse_csr.

    crow_indices  (rows + 1) where the entries of each row begin, and the end
    col_indices   (entries) the column of each
    values        (entries) its value

    size, dtype, device, requires_grad and check_invariants are those of
    sparse_coo_tensor(); pin_memory has no effect.

    >>> torch.sparse_csr_tensor([0, 1, 2], [1, 0], [3.0, 4.0]).to_dense()
    tensor([[0., 3.],
            [4., 0.]])
    """
    return _make.compressed(
        False,
        crow_indices,
        col_indices,
        values,
        size,
        dtype=dtype,
        device=device,
        requires_grad=requires_grad,
        check_invariants=check_invariants,
    )


@function(keywords="sparse_csr_tensor")
def sparse_csc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, **named: Any
) -> Any:
    """A sparse matrix by columns, in the layout torch.sparse_csc.

    ccol_indices  (columns + 1) where the entries of each column begin, and the end
    row_indices   (entries) the row of each
    values        (entries) its value

    size, dtype, device, requires_grad and check_invariants are those of
    sparse_coo_tensor(); pin_memory has no effect.

    >>> torch.sparse_csc_tensor([0, 1, 2], [1, 0], [3.0, 4.0]).to_dense()
    tensor([[0., 4.],
            [3., 0.]])
    """
    return _make.compressed(True, ccol_indices, row_indices, values, size, **named)


@function()
def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Device | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Any:
    """sparse_csr_tensor() or sparse_csc_tensor(), as layout says.

    compressed_indices  where the entries of each row or column begin, and the end
    plain_indices       an entry's column or row
    values              the entries
    size                the shape; by default the least that has room
    dtype, device       of the result; by default those of values
    layout              torch.sparse_csr or torch.sparse_csc, else RuntimeError
    pin_memory          has no effect
    requires_grad       the result is a leaf whose gradient is sparse
    check_invariants    as for sparse_coo_tensor()

    >>> ones, csr = torch.ones(2), torch.sparse_csr
    >>> torch.sparse_compressed_tensor([0, 1, 2], [0, 1], ones, layout=csr).to_dense()
    tensor([[1., 0.],
            [0., 1.]])
    """
    if layout not in (_C.sparse_csr, _C.sparse_csc):
        raise RuntimeError(f"layout is {layout}; give torch.sparse_csr or sparse_csc")
    make = sparse_csc_tensor if layout == _C.sparse_csc else sparse_csr_tensor
    return make(
        compressed_indices,
        plain_indices,
        values,
        size,
        dtype=dtype,
        device=device,
        requires_grad=requires_grad,
        check_invariants=check_invariants,
    )


@function(aliases=("dsmm",))
def spmm(input: Any, mat2: Any) -> Any:
    """The product of a sparse and a dense matrix, or of two sparse ones: sparse.mm().

    mat2: the second matrix.

    >>> torch.spmm(torch.eye(2).to_sparse(), torch.ones(2, 2))
    tensor([[1., 1.],
            [1., 1.]])
    """
    return (
        _calls.matmul(input, mat2)
        if any(map(_calls.is_sparse, (input, mat2)))
        else _C.mm(input, mat2)
    )


@function(aliases=("hsmm",))
def hspmm(mat1: Any, mat2: Any) -> Any:
    """The product of a sparse COO and a dense matrix; its entries are whole rows.

    mat1: (n, m), mat2: (m, p). Rows without an entry in mat1 are left out.

    >>> torch.hspmm(torch.tensor([[0, 0], [2, 3]]).to_sparse(), torch.ones(2, 1).long())
    tensor(indices=tensor([[1]]),
           values=tensor([[5]]),
           size=(2, 1), nnz=1, layout=torch.sparse_coo)
    """
    return _calls.hspmm(_needed(mat1), mat2)


@function(method=True)
def smm(input: Any, mat: Any) -> Any:
    """The product of a sparse and a dense matrix as a sparse one.

    mat: the dense matrix.

    >>> torch.smm(torch.eye(2).to_sparse(), torch.ones(2, 1)).values()
    tensor([1., 1.])
    """
    return _calls.smm(_needed(input), mat)


@function(method=True)
def sspaddmm(
    input: Any, mat1: Any, mat2: Any, *, beta: float = 1.0, alpha: float = 1.0
) -> Any:
    """beta * input + alpha * (mat1 @ mat2), a sparse matrix.

    input, mat1: sparse. mat2: dense.

    >>> x = torch.eye(2).to_sparse()
    >>> torch.sspaddmm(x, x, torch.ones(2, 2), alpha=2).to_dense()
    tensor([[3., 2.],
            [2., 3.]])
    """
    return _calls.sspaddmm(_needed(input), mat1, mat2, beta=beta, alpha=alpha)


def _needed(tensor: Any) -> Any:
    if not _calls.is_sparse(tensor):
        raise RuntimeError("the first matrix is dense; give a sparse one")
    return tensor


@method()
def to_sparse(
    input: Tensor, sparse_dim: int | None = None, *, layout: Any = None
) -> Any:
    """A sparse tensor of the elements that are not 0.

    sparse_dim: how many dimensions are sparse, by default all. layout:
    torch.sparse_coo, which is the default, or for matrices sparse_csr or sparse_csc.

    >>> torch.tensor([[0, 5], [6, 0]]).to_sparse().values()
    tensor([5, 6])
    """
    dims = input.dim() if sparse_dim is None else sparse_dim
    if not 0 <= dims <= input.dim():
        raise RuntimeError(f"sparse_dim is {dims}; give 0 to {input.dim()}")
    made = _make.of_dense(input, dims)
    return made if layout is None else made.to_sparse(layout=layout)


@method()
def to_sparse_coo(input: Tensor) -> Any:
    """A sparse tensor in the layout COO: to_sparse().

    >>> torch.eye(2).to_sparse_coo().layout
    torch.sparse_coo
    """
    return _make.of_dense(input, input.dim())


@method()
def to_sparse_csr(input: Tensor) -> Any:
    """A sparse matrix in the layout CSR, of the elements that are not 0.

    >>> torch.eye(2).to_sparse_csr().crow_indices()
    tensor([0, 1, 2])
    """
    return _make.of_dense(input, input.dim()).to_sparse_csr()


@method()
def to_sparse_csc(input: Tensor) -> Any:
    """A sparse matrix in the layout CSC, of the elements that are not 0.

    >>> torch.eye(2).to_sparse_csc().row_indices()
    tensor([0, 1])
    """
    return _make.of_dense(input, input.dim()).to_sparse_csc()


@method()
def to_sparse_bsr(input: Tensor, blocksize: Any, dense_dim: int | None = None) -> Any:
    """Not there: raises NotImplementedError; to_sparse_csr() is.

    blocksize: PyTorch's size of a block. dense_dim: how many dimensions a value has.

    >>> try:
    ...     torch.eye(2).to_sparse_bsr((1, 1))
    ... except NotImplementedError as error:
    ...     print(error)
    to_sparse_bsr(): no sparse tensors of blocks are there; call to_sparse_csr()
    """
    raise _no_blocks("csr")


@method()
def to_sparse_bsc(input: Tensor, blocksize: Any, dense_dim: int | None = None) -> Any:
    """Not there: raises NotImplementedError; to_sparse_csc() is.

    blocksize: PyTorch's size of a block. dense_dim: how many dimensions a value has.

    >>> try:
    ...     torch.eye(2).to_sparse_bsc((1, 1))
    ... except NotImplementedError as error:
    ...     print(error)
    to_sparse_bsc(): no sparse tensors of blocks are there; call to_sparse_csc()
    """
    raise _no_blocks("csc")


def _no_blocks(instead: str) -> NotImplementedError:
    return NotImplementedError(
        f"no sparse tensors of blocks are there; call to_sparse_{instead}()"
    )


@method()
def to_dense(
    input: Tensor, dtype: Dtype | None = None, *, masked_grad: bool | None = None
) -> Tensor:
    """The tensor itself, of dtype if that is given; of a sparse one a dense one.

    masked_grad has no effect.

    >>> torch.eye(2).to_sparse().to_dense()
    tensor([[1., 0.],
            [0., 1.]])
    """
    return input if dtype is None else input.to(dtype)


@method()
def sparse_mask(input: Tensor, mask: Any) -> Any:
    """A sparse tensor of the elements at the positions of mask's entries.

    mask: a sparse tensor of the same shape.

    >>> torch.ones(2, 2).sparse_mask(torch.eye(2).to_sparse()).values()
    tensor([1., 1.])
    """
    if not _calls.is_sparse(mask):
        raise TypeError("mask is dense; give a sparse tensor")
    return _calls.sparse_mask(input, mask)
