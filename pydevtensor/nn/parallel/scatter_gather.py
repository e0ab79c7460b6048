"""Splits arguments over GPUs, and joins results."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from pydevtensor import _C
from pydevtensor._names import publish as _publish
from pydevtensor.cuda import comm

__all__ = ["gather", "scatter", "scatter_kwargs"]


def _is_named(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _like(example: Any, values: Any) -> Any:
    """A list or tuple of the example's type."""
    return type(example)(*values) if _is_named(example) else type(example)(values)


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """The parts of inputs for each GPU: Tensors split along dim, the rest repeated.

    Tensors inside of tuples, lists and dicts are split too. Gives a tuple or list of as
    many parts as there are (fewer than GPUs for a small batch).

    inputs       a Tensor, or a tuple, list or dict with Tensors
    target_gpus  a GPU for each part, numbers or devices
    dim          the dimension that is split

    >>> nn.parallel.scatter(torch.arange(4), [0, 1])
    (tensor([0, 1], device='cuda:0'), tensor([2, 3], device='cuda:1'))
    """
    if isinstance(inputs, _C.Tensor):
        return comm.scatter(inputs, target_gpus, None, dim)
    if isinstance(inputs, (tuple, list)) and inputs:
        parts = zip(*(scatter(x, target_gpus, dim) for x in inputs), strict=False)
        return [_like(inputs, part) for part in parts]
    if isinstance(inputs, dict) and inputs:
        parts = zip(
            *(scatter(x, target_gpus, dim) for x in inputs.values()), strict=False
        )
        return [type(inputs)(zip(inputs, part, strict=True)) for part in parts]
    return [inputs for _ in target_gpus]


def scatter_kwargs(
    inputs: tuple[Any, ...],
    kwargs: dict[Any, Any] | None,
    target_gpus: Sequence[Any],
    dim: int = 0,
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """scatter() of a call's positional and keyword arguments, as many of each.

    inputs       the arguments by position, a tuple
    kwargs       the arguments by name, a dict or None
    target_gpus  a GPU for each part, numbers or devices
    dim          the dimension that is split

    >>> nn.parallel.scatter_kwargs((torch.ones(2),), {'scale': 3}, [0, 1])[1]
    ({'scale': 3}, {'scale': 3})
    """
    parts = [*scatter(inputs, target_gpus, dim)] if inputs else []
    named = [*scatter(kwargs, target_gpus, dim)] if kwargs else []
    count = max(len(parts), len(named))
    parts += [()] * (count - len(parts))
    named += [{} for _ in range(count - len(named))]
    return tuple(parts), tuple(named)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """The results of several GPUs joined along dim on one device.

    Tensors inside of tuples, lists and dicts are joined; numbers of zero dimensions
    become a vector, with a warning. ValueError for dicts of different sizes.

    outputs        the results, one for each GPU, Tensors or alike containers of them
    target_device  where they are joined, a device or a GPU's number
    dim            the dimension along which they are joined

    >>> parts = nn.parallel.scatter(torch.arange(4), [0, 1])
    >>> nn.parallel.gather(parts, 'cpu')
    tensor([0, 1, 2, 3])
    """
    first = outputs[0]
    if isinstance(first, _C.Tensor):
        if all(each.dim() == 0 for each in outputs) and dim == 0:
            warnings.warn(
                "gather(): the results have no dimensions; they are joined to a vector",
                stacklevel=2,
            )
            outputs = [each.reshape(1) for each in outputs]
        return comm.gather(outputs, dim, target_device)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(each) != len(first) for each in outputs):
            raise ValueError("gather(): the results are dicts of different sizes")
        return type(first)(
            (k, gather([each[k] for each in outputs], target_device, dim))
            for k in first
        )
    joined = (gather(each, target_device, dim) for each in zip(*outputs, strict=True))
    return _like(first, joined)


_publish(__name__)
