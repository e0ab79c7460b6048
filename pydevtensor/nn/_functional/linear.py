"""Products with a weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydevtensor._autocast import casts
from pydevtensor._functions import function

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor


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
