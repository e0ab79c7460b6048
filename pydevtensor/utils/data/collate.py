"""default_collate() and default_convert(): from samples to batches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pydevtensor as torch

# In a worker, memory for a stack that send() need not copy: Files.lend().
lend: Callable[[Sequence[torch.Tensor]], torch.Tensor | None] | None = None


def _is_numpy(value: object) -> bool:
    numpy = sys.modules.get("numpy")  # not imported: value is not NumPy's
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))


def _number_array(value: Any) -> bool:
    """Whether NumPy's value has numbers, not text or objects."""
    return value.dtype.kind in "biuf"


def _stacked(batch: Sequence[torch.Tensor]) -> torch.Tensor:
    first = batch[0]
    shape = tuple(first.shape)
    for place, each in enumerate(batch):
        if tuple(each.shape) != shape:
            raise RuntimeError(
                f"default_collate(): sample 0 has shape {list(shape)}, sample {place} "
                f"{list(each.shape)}; resize or pad them, or give a collate_fn"
            )
    out = lend(batch) if lend is not None else None
    return torch.stack(batch) if out is None else torch.stack(batch, out=out)


def _rebuilt(like: Any, items: Any) -> Any:
    """items in a container of like's type, or in a plain one if that fails."""
    if isinstance(like, Mapping):
        try:
            kind: type[Any] = type(like)
            return kind(items)
        except TypeError:
            return dict(items)
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return type(like)(*items)
    try:
        return list(items) if isinstance(like, tuple) else type(like)(items)
    except TypeError:
        return list(items)


def _mapped(function: Callable[[Any], Any], data: Any) -> Any:
    """A container with function applied to its items; other data unchanged."""
    if isinstance(data, Mapping):
        return _rebuilt(data, {key: function(each) for key, each in data.items()})
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _rebuilt(data, [function(each) for each in data])
    return data


def _need_numbers(batch: Sequence[Any]) -> None:
    for place, each in enumerate(batch):
        if isinstance(each, (str, bytes)) or each is None:
            raise TypeError(
                f"default_collate(): sample 0 is of type {type(batch[0]).__name__}, "
                f"sample {place} of type {type(each).__name__}; give samples of one "
                "type, or a collate_fn"
            )


def default_collate(batch: Any) -> Any:
    """Stack the samples of a batch along a new first dimension.

    Tensors and NumPy arrays (of one shape) become one Tensor, floats a float64 one,
    ints an int64 one; strings stay a list; samples that are lists or dicts become one
    list or dict of batches, tuples a list.

    Raises TypeError for samples of another type, RuntimeError for different shapes or
    lengths.

    batch  the samples, a list

    >>> import pydevtensor as torch
    >>> torch.utils.data.default_collate([(1, "a"), (2, "b")])
    [tensor([1, 2]), ('a', 'b')]
    """
    batch = list(batch) if not isinstance(batch, (list, tuple)) else batch
    if not batch:
        raise IndexError("default_collate(): the batch is empty; give samples")
    first = batch[0]
    if isinstance(first, torch.Tensor):
        return _stacked(batch)
    if _is_numpy(first):
        if not _number_array(first):
            raise TypeError(
                f"default_collate(): an array of {first.dtype} has no numbers; give a "
                "collate_fn that makes Tensors of samples"
            )
        return _stacked([torch.as_tensor(each) for each in batch])
    if isinstance(first, (int, float)):
        _need_numbers(batch)
    if isinstance(first, float):
        return torch.tensor(batch, dtype=torch.float64)
    if isinstance(first, int):
        return torch.tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _rebuilt(
            first,
            {key: default_collate([each[key] for each in batch]) for key in first},
        )
    if isinstance(first, Sequence):
        if any(len(each) != len(first) for each in batch):
            raise RuntimeError(
                "default_collate(): samples of "
                f"{sorted({len(each) for each in batch})} elements in one batch; give "
                "samples of one length, or a collate_fn"
            )
        columns = list(zip(*batch, strict=True))
        return _rebuilt(first, [default_collate(each) for each in columns])
    raise TypeError(
        f"default_collate(): a sample is a {type(first).__name__}; give Tensors, "
        "NumPy arrays, numbers, strings, tuples, lists, dicts of them, or a collate_fn"
    )


def default_convert(data: Any) -> Any:
    """Convert the NumPy arrays in data to Tensors.

    The default collate_fn of a DataLoader without batches.

    data  an array, or lists, tuples and dicts with some; other values are kept

    >>> import numpy
    >>> import pydevtensor as torch
    >>> torch.utils.data.default_convert([1, numpy.arange(2)])
    [1, tensor([0, 1])]
    """
    if isinstance(data, torch.Tensor):
        return data
    if _is_numpy(data):
        return torch.as_tensor(data) if _number_array(data) else data
    return _mapped(default_convert, data)


def pinned(data: Any) -> Any:
    """data with its CPU Tensors in page-locked memory."""
    if isinstance(data, (Mapping, Sequence)):
        return _mapped(pinned, data)
    return data.pin_memory() if hasattr(data, "pin_memory") else data
