"""Elements around a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function

if TYPE_CHECKING:
    from pydevtensor._functions.types import Ints, Number, Tensor

_NODES = {"reflect": "ReflectionPad", "replicate": "ReplicationPad"}


@function()
def pad(
    input: Tensor, pad: Ints, mode: str = "constant", value: Number | None = None
) -> Tensor:
    """input with elements before and after it along its last dimensions.

    All modes but 'constant' pad the last one of 2 or 3 dimensions, two of 3 or 4, or
    three of 4 or 5. Raises RuntimeError for more elements than there are to reflect.

    pad    two numbers for each dimension, the last one first; negative ones take
           elements away
    mode   'constant', 'reflect' (without the border), 'replicate' (the border) or
           'circular'
    value  what 'constant' puts there; None: 0

    >>> nn.functional.pad(torch.tensor([[1.0, 2.0, 3.0]]), (2, 1), mode="reflect")
    tensor([[3., 2., 1., 2., 3., 2.]])
    """
    if mode == "constant":
        return _C.constant_pad_nd(input, pad, 0 if value is None else value)
    sizes = _checked(input, pad, mode, value)
    count = len(sizes) // 2
    # PyTorch's list of functions in float32 has all of these but one.
    if mode == "replicate" or (mode == "reflect" and count < 3):
        (input,) = _C._autocast_float_on_cpu(input)
    x = input
    for d in range(count):
        x = _pad_one(x, x.dim() - 1 - d, sizes[2 * d], sizes[2 * d + 1], mode)
    if mode == "circular" or x is input:
        return x
    return _C._named(x, f"{_NODES[mode]}{count}DBackward0")


def _checked(input: Any, pad: Any, mode: str, value: Any) -> list[int]:
    if len(pad) % 2:
        raise RuntimeError(f"pad has {len(pad)} numbers; give two for each dimension")
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(
            f"there is no mode {mode!r}; give 'constant', 'reflect', "
            "'replicate' or 'circular'"
        )
    if value:
        raise RuntimeError(f"mode {mode!r} takes no value; leave it out")
    count = len(pad) // 2
    if count not in (1, 2, 3) or input.dim() not in (count + 1, count + 2):
        raise NotImplementedError(
            f"mode {mode!r} cannot pad {count} dimensions of a Tensor of "
            f"{input.dim()}; give 2 numbers for 2 or 3 dimensions, 4 for 3 or 4, or 6 "
            "for 4 or 5"
        )
    if 0 in input.shape[input.dim() - count - 1 :]:
        raise RuntimeError(
            f"the input has shape {[*input.shape]}; only the batch may be empty"
        )
    had = [*input.shape[: -count - 1 : -1]]
    sizes = [n + sum(pad[2 * d : 2 * d + 2]) for d, n in enumerate(had)]
    # PyTorch allows a result without elements, but not one of size 0 all around.
    if min(sizes) < 0 or (mode != "circular" and max(sizes) == 0):
        raise RuntimeError(
            f"{[*pad]} leave no element of the last sizes {had[::-1]}; take away fewer"
        )
    return [*pad]


def _pad_one(x: Any, dim: int, before: int, after: int, mode: str) -> Any:
    if mode == "circular" and (before < 0 or after < 0):
        # Removed elements are not repeated.
        size = x.shape[dim]
        begin, end = min(max(-before, 0), size), size - max(-after, 0)
        x = x.narrow(dim, begin, max(end - begin, 0))
        before, after = max(before, 0), max(after, 0)
    if not before and not after:
        return x
    size = x.shape[dim] + before + after
    return _C._resample(x, dim, size, mode, lead=before)
