"""Other sizes for a tensor, in place."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function, method

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor


def _resized(input, size, memory_format):
    if memory_format not in (None, _C.contiguous_format):
        raise RuntimeError(
            f"memory_format is {memory_format}; leave it out, and use contiguous()"
        )
    if input.requires_grad:
        raise RuntimeError(
            "the Tensor requires a gradient; resize x.detach(), or make another Tensor "
            "with reshape() or empty()"
        )
    if min(size, default=0) < 0:
        raise RuntimeError(f"size is {[*size]}; give numbers of 0 or more")
    if tuple(input.shape) == tuple(size):
        return input
    strides = [math.prod(size[d + 1 :]) for d in range(len(size))]
    own = input.detach()
    try:
        own = own.as_strided(size, strides, own.storage_offset())
    except RuntimeError:
        # The storage is too small.
        pairs = zip(own.shape, own.stride(), strict=True)
        extent = sum((n - 1) * stride for n, stride in pairs) + 1 if own.numel() else 0
        more = own.new_empty(math.prod(size))
        more[:extent] = own.as_strided((extent,), (1,), own.storage_offset())
        own = more.view(size)
    input.data = own
    return input


@method()
def resize_(input: Tensor, *size: int, memory_format: Any = None) -> Tensor:
    """Give the tensor another size, with the elements that its memory has, in order.

    If there are too few, it gets more memory, whose other elements may have any value;
    views of the memory that it had do not follow. RuntimeError where a gradient is
    required.

    memory_format  only torch.contiguous_format, the default; RuntimeError for others

    >>> torch.tensor([1, 2, 3, 4]).resize_(2)
    tensor([1, 2])
    """
    return _resized(input, size, memory_format)


@function(method=True)
def resize_as_(
    input: Tensor, the_template: Tensor, *, memory_format: Any = None
) -> Tensor:
    """resize_() to the size of another tensor.

    the_template   the Tensor whose size is taken
    memory_format  only torch.contiguous_format, the default; RuntimeError for others

    >>> torch.tensor([1, 2, 3, 4]).resize_as_(torch.ones(2, 2))
    tensor([[1, 2],
            [3, 4]])
    """
    return _resized(input, the_template.shape, memory_format)
