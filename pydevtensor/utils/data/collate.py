"""From a list of samples to a batch."""

import sys
from collections.abc import Mapping, Sequence

import pydevtensor as torch


def _is_numpy(value):
    numpy = sys.modules.get("numpy")  # without it nothing can be NumPy's
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))


def _number_array(value):
    """Whether a Tensor can be made of NumPy's value: numbers and no text or objects."""
    return value.dtype.kind in "biuf"


def _stacked(batch):
    first = batch[0]
    shape = tuple(first.shape)
    for place, each in enumerate(batch):
        if tuple(each.shape) != shape:
            raise RuntimeError(
                f"default_collate(): sample 0 has the shape {list(shape)}, sample "
                f"{place} {list(each.shape)}; samples need one shape: resize "
                "or pad them, or give a collate_fn"
            )
    return torch.stack(batch)


def _rebuilt(like, items):
    """items in a container of like's type, or in a plain one where that cannot be."""
    if isinstance(like, Mapping):
        try:
            kind: type = type(like)
            return kind(items)
        except TypeError:
            return dict(items)
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return type(like)(*items)
    if type(like) is tuple:
        return list(items)
    try:
        return type(like)(items)
    except TypeError:
        return list(items)


def default_collate(batch):
    """The samples of a batch, put together along a new first dimension.

    Tensors and NumPy's arrays (of one shape) become one Tensor, floats a float64 one,
    ints an int64 one; texts stay a list; samples that are tuples, lists or dicts
    become one such container of batches, tuples a list.

    Raises TypeError for samples of another type, RuntimeError for different shapes or
    lengths.

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
                f"default_collate(): an array of {first.dtype} holds no numbers; give "
                "a collate_fn that turns samples into Tensors"
            )
        return _stacked([torch.as_tensor(each) for each in batch])
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
        "NumPy's arrays, numbers, texts, tuples, lists, dicts of them, or a collate_fn"
    )


def default_convert(data):
    """NumPy's arrays in data as Tensors, and all else as it is.

    What a loader that makes no batches uses.

    >>> import numpy
    >>> import pydevtensor as torch
    >>> torch.utils.data.default_convert([1, numpy.arange(2)])
    [1, tensor([0, 1])]
    """
    if isinstance(data, torch.Tensor):
        return data
    if _is_numpy(data):
        return torch.as_tensor(data) if _number_array(data) else data
    if isinstance(data, Mapping):
        return _rebuilt(
            data, {key: default_convert(each) for key, each in data.items()}
        )
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(each) for each in data))
    if isinstance(data, tuple):
        return [default_convert(each) for each in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _rebuilt(data, [default_convert(each) for each in data])
    return data


def pinned(data):
    """data with its CPU Tensors in page-locked memory."""
    if isinstance(data, torch.Tensor):
        return data.pin_memory()
    if isinstance(data, Mapping):
        return _rebuilt(data, {key: pinned(each) for key, each in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pinned(each) for each in data))
    if isinstance(data, tuple):
        return [pinned(each) for each in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _rebuilt(data, [pinned(each) for each in data])
    return data.pin_memory() if hasattr(data, "pin_memory") else data
