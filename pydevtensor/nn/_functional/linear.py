"""Products with a weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydevtensor import _C
from pydevtensor._autocast import casts
from pydevtensor._functions import function

if TYPE_CHECKING:
    from pydevtensor._functions.types import Dtype, Tensor


@function(package=True)
@casts(cpu="given", cuda="widest")
def bilinear(
    input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    """x1 @ A @ x2 for each matrix A of weight (out, in1, in2), plus bias.

    RuntimeError for other shapes. See also nn.Bilinear.

    input1  (..., in1)
    input2  (..., in2), of the same other sizes
    bias    (out)

    >>> x, y = torch.ones(2, 3), torch.ones(2, 4)
    >>> nn.functional.bilinear(x, y, torch.ones(5, 3, 4)).shape
    torch.Size([2, 5])
    """
    if input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(
            "the inputs have shapes "
            f"{[*input1.shape]} and {[*input2.shape]}, which may differ in the last "
            "size only"
        )
    for name, given, place in (("input1", input1, 1), ("input2", input2, 2)):
        if given.size(-1) != weight.size(place):
            raise RuntimeError(
                f"{name} has shape {[*given.shape]}; for a weight of shape "
                f"{[*weight.shape]} its last size has to be {weight.shape[place]}"
            )
    out, left, right = weight.shape
    columns = weight.permute(1, 0, 2).reshape(left, out * right)
    products = (input1 @ columns).reshape(*input1.shape[:-1], out, right)
    result = (products * input2.unsqueeze(-2)).sum(-1)
    return result if bias is None else result + bias


@function()
def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: Dtype | None = None,
) -> Tensor:
    """Products of pairs of matrices, as a mixture of experts has them.

    Of (G, M, K) and (G, K, N) each pair; of (M, K) and (G, K, N) groups of rows, each
    with a matrix of its own; of (G, M, K) and (K, N) groups of columns; and of (M, K)
    and (K, N) groups of K, which give (G, M, N). offs is read on the CPU. RuntimeError
    for other shapes.

    mat_a      the left matrices
    mat_b      the right ones
    offs       (G), where each group ends; rows or columns after the last one are 0
    bias       has to be None, as in PyTorch
    out_dtype  has to be None, or the type of mat_a

    >>> a, b = torch.ones(3, 2), torch.arange(8.0).view(2, 2, 2)
    >>> nn.functional.grouped_mm(a, b, offs=torch.tensor([1, 3]))
    tensor([[ 2.,  4.],
            [10., 12.],
            [10., 12.]])
    """
    if bias is not None or out_dtype not in (None, mat_a.dtype):
        raise RuntimeError(
            "bias and another out_dtype are not there yet; add the bias and convert "
            "the result"
        )
    dims = (mat_a.ndim, mat_b.ndim)
    if not {*dims} <= {2, 3} or (offs is None) != (dims == (3, 3)):
        raise RuntimeError(
            f"the matrices have shapes {[*mat_a.shape]} and {[*mat_b.shape]}, and offs "
            f"is {'not ' * (offs is not None)}None; give matrices of 2 or 3 "
            "dimensions, and offs unless both have 3"
        )
    if offs is None:
        return _C.bmm(mat_a, mat_b)
    ends = [int(end) for end in offs.tolist()]
    if dims == (3, 2):  # groups of columns
        found = grouped_mm(mat_b.mT, mat_a.mT, offs=offs)
        return found.mT
    sizes = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    whole = mat_a.shape[0] if dims == (2, 3) else mat_a.shape[1]
    sizes.append(whole - sum(sizes))
    if dims == (2, 2):
        pairs = zip(mat_a.split(sizes, 1)[:-1], mat_b.split(sizes)[:-1], strict=True)
        return _C.stack([left @ right for left, right in pairs])
    *rows, rest = mat_a.split(sizes)
    parts = [part @ each for part, each in zip(rows, mat_b.unbind(), strict=True)]
    parts.append(mat_b.new_zeros(rest.shape[0], mat_b.shape[2]))
    return _C.cat(parts)
