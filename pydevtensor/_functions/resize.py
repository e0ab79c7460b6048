"""Other sizes for a tensor, in place."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function, method

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor


def reaching(input: Tensor, size: Any, stride: Any, offset: int) -> Tensor:
    """A view of the input's storage, which gets larger where it is too small."""
    reach = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) + 1
    needs = reach * input.element_size() if math.prod(size) else 0
    if needs > _C._storage_bytes(input).numel():
        _C._storage_resize(input, needs)
    return input.as_strided(size, stride, offset)


def _resized(input, size, memory_format):
    if input.requires_grad:
        raise RuntimeError(
            "the Tensor requires a gradient; resize x.detach(), or make another Tensor "
            "with reshape() or empty()"
        )
    if min(size, default=0) < 0:
        raise RuntimeError(f"size is {[*size]}; give numbers of 0 or more")
    if memory_format is _C.preserve_format:
        raise RuntimeError("memory_format is preserve_format; name the format to have")
    if tuple(input.shape) != tuple(size) or memory_format is not None:
        form = memory_format or _C.contiguous_format
        stride = _C.empty(size, device="meta", memory_format=form).stride()
        offset = input.storage_offset()
        input.data = reaching(input.detach(), size, stride, offset)
    return input


@method()
def resize_(input: Tensor, *size: int, memory_format: Any = None) -> Tensor:
    """Give the tensor another size, with the elements that its memory has, in order.

    If there are too few, the storage gets larger, as by UntypedStorage.resize_(): its
    other elements may have any value, and views share them. RuntimeError where a
    gradient is required, or the storage is not resizable.

    memory_format  the order of the elements, such as torch.channels_last; None:
                   row-major if the size changes, else the present order

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
    memory_format  as of resize_(); torch.preserve_format: that of the_template

    >>> torch.tensor([1, 2, 3, 4]).resize_as_(torch.ones(2, 2))
    tensor([[1, 2],
            [3, 4]])
    """
    if memory_format is _C.preserve_format:
        formats = {4: _C.channels_last, 5: _C.channels_last_3d}
        last = formats.get(the_template.dim(), _C.contiguous_format)
        plain = the_template.is_contiguous() or not the_template.is_contiguous(
            memory_format=last
        )
        memory_format = _C.contiguous_format if plain else last
    return _resized(input, the_template.shape, memory_format)
