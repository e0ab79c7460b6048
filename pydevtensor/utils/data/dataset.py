"""Data sets."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from math import floor, isclose
from typing import Any, Generic, Protocol, TypeVar

import pydevtensor as torch

_Sample_co = TypeVar("_Sample_co", covariant=True)
_Sample = TypeVar("_Sample")


class Samples(Protocol[_Sample_co]):
    """Any indexable with a length, such as a list, a range or an array."""

    def __getitem__(self, index: int, /) -> _Sample_co: ...

    def __len__(self) -> int: ...


class Dataset(Generic[_Sample_co]):
    """Base of data sets: a subclass defines __getitem__ and __len__.

    A DataLoader calls __getitems__(indices) for a whole batch, if it is defined.

    >>> class Squares(torch.utils.data.Dataset):
    ...     def __len__(self):
    ...         return 3
    ...     def __getitem__(self, i):
    ...         return i * i
    >>> [*torch.utils.data.DataLoader(Squares(), batch_size=2)]
    [tensor([0, 1]), tensor([4])]
    """

    def __getitem__(self, index: Any) -> _Sample_co:
        raise NotImplementedError(f"{type(self).__name__} does not define __getitem__")

    def __add__(self, other: Any) -> Dataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[_Sample_co]):
    """Base of data sets without indices: a subclass defines __iter__.

    Each worker process iterates over its own copy, so __iter__ has to choose its part
    by get_worker_info(), or every worker yields every sample.

    >>> class Countdown(torch.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter([3, 2, 1])
    >>> [*torch.utils.data.DataLoader(Countdown(), batch_size=2)]
    [tensor([3, 2]), tensor([1])]
    """

    def __getitem__(self, index: Any) -> _Sample_co:
        raise NotImplementedError(
            f"{type(self).__name__} is an IterableDataset: samples have no index; "
            "iterate over it"
        )

    def __add__(self, other: Any) -> Dataset[Any]:
        return ChainDataset([self, other])

    def __iter__(self) -> Iterator[_Sample_co]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__")


class ChainDataset(IterableDataset[_Sample_co]):
    """IterableDatasets one after the other.

    datasets  the data sets

    >>> class Countdown(torch.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter([2, 1])
    >>> list(torch.utils.data.ChainDataset([Countdown(), Countdown()]))
    [2, 1, 2, 1]
    """

    def __init__(self, datasets: Iterable[IterableDataset[_Sample_co]]) -> None:
        super().__init__()
        self.datasets = datasets

    def __iter__(self) -> Iterator[_Sample_co]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise TypeError(
                    f"ChainDataset: a {type(dataset).__name__} is no IterableDataset; "
                    "use ConcatDataset for data sets with indices"
                )
            yield from dataset

    def __len__(self) -> int:
        sets: Iterable[Any] = self.datasets
        return sum(len(dataset) for dataset in sets)


class TensorDataset(Dataset[tuple[torch.Tensor, ...]]):
    """Sample i is the tuple of row i of each Tensor.

    Raises AssertionError if the Tensors have different numbers of rows.

    tensors  Tensors whose first sizes are the same

    >>> import pydevtensor as torch
    >>> torch.utils.data.TensorDataset(torch.eye(2), torch.arange(2))[1]
    (tensor([0., 1.]), tensor(1))
    """

    def __init__(self, *tensors: torch.Tensor) -> None:
        if not tensors:
            raise TypeError("TensorDataset() needs at least one Tensor")
        for place, each in enumerate(tensors):
            if not isinstance(each, torch.Tensor):
                # The type of PyTorch's error, which calls size().
                kind = TypeError if hasattr(each, "size") else AttributeError
                raise kind(
                    f"TensorDataset(): item {place} is a {type(each).__name__}; give "
                    "Tensors, such as torch.as_tensor() makes of it"
                )
        sizes = [each.size(0) for each in tensors]
        if any(size != sizes[0] for size in sizes):
            raise AssertionError(
                f"TensorDataset(): the Tensors have {sizes} rows; give equal numbers"
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[torch.Tensor, ...]:
        return tuple([each[index] for each in self.tensors])

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset[Any]):
    """Several sets in parallel: sample i is the tuple, or dict, of their samples i.

    >>> torch.utils.data.StackDataset(range(3), 'abc')[1]
    (1, 'b')
    """

    def __init__(self, *args: Samples[Any], **kwargs: Samples[Any]) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError("StackDataset() takes sets, or sets by keyword, not both")
        self.datasets: Any = args or kwargs
        sets = list(args or kwargs.values())
        self._length = len(sets[0])
        if any(len(each) != self._length for each in sets):
            raise ValueError(
                f"StackDataset(): the sets have {[len(each) for each in sets]} rows; "
                "give sets of one length"
            )

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: each[index] for name, each in self.datasets.items()}
        return tuple(each[index] for each in self.datasets)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[_Sample_co]):
    """Several sets in sequence. All need a length, so none is an IterableDataset.

    datasets  the data sets

    >>> data = torch.utils.data.ConcatDataset([range(3), range(10, 12)])
    >>> [*data]
    [0, 1, 2, 10, 11]
    """

    def __init__(
        self, datasets: Iterable[Dataset[_Sample_co] | Samples[_Sample_co]]
    ) -> None:
        self.datasets: list[Any] = list(datasets)
        if not self.datasets:
            raise AssertionError("ConcatDataset() needs at least one set")
        if any(isinstance(each, IterableDataset) for each in self.datasets):
            raise AssertionError(
                "ConcatDataset(): an IterableDataset has no length; chain its iterators"
            )
        self.cumulative_sizes: list[int] = list(
            accumulate(len(each) for each in self.datasets)
        )

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> _Sample_co:
        length = len(self)
        if not -length <= index < length:
            raise (ValueError if index < 0 else IndexError)(
                f"ConcatDataset: no sample {index} among {length}; give an index "
                f"from {-length} to {length - 1}"
            )
        index %= length
        which = bisect_right(self.cumulative_sizes, index)
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][index - before]


class Subset(Dataset[_Sample_co]):
    """The samples of a set with the given indices, in their order.

    dataset  the whole set
    indices  a list of ints

    >>> [*torch.utils.data.Subset('abcd', [3, 1])]
    ['d', 'b']
    """

    def __init__(
        self, dataset: Dataset[_Sample_co] | Samples[_Sample_co], indices: Sequence[int]
    ) -> None:
        self.dataset: Any = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> _Sample_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[each] for each in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[_Sample_co]:
        theirs = [self.indices[each] for each in indices]
        several = getattr(self.dataset, "__getitems__", None)
        return several(theirs) if several else [self.dataset[each] for each in theirs]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[_Sample] | Samples[_Sample],
    lengths: Sequence[int | float],
    generator: torch.Generator | None = None,
) -> list[Subset[_Sample]]:
    """Split a set at random into Subsets of the given lengths.

    The order is PyTorch's for the same seed. Raises ValueError for other sums.

    dataset    the set, which has a length
    lengths    counts that add up to len(dataset), or fractions that add up to 1;
               the first subsets get the samples left over by rounding
    generator  the source of random numbers, else the default generator

    >>> import pydevtensor as torch
    >>> g = torch.Generator().manual_seed(42)
    >>> [s.indices for s in torch.utils.data.random_split(range(5), [0.6, 0.4], g)]
    [[2, 4, 3], [0, 1]]
    """
    if not hasattr(lengths, "__iter__"):
        raise TypeError(
            f"random_split(): lengths is {lengths!r} ({type(lengths).__name__}); give "
            "a count for each part, such as [80, 20], or fractions such as [0.8, 0.2]"
        )
    counts: list[Any] = list(lengths)
    sized: Any = dataset
    count = len(sized)
    if counts and isclose(sum(counts), 1) and sum(counts) <= 1 + 1e-9:
        for place, part in enumerate(counts):
            if part < 0 or part > 1:
                raise ValueError(
                    f"random_split(): fraction {place} is {part}; give numbers from 0 "
                    "to 1"
                )
        counts = [floor(count * part) for part in counts]
        for left in range(count - sum(counts)):
            counts[left % len(counts)] += 1
    if sum(counts) != count:
        raise ValueError(
            f"random_split(): the lengths {counts} add up to {sum(counts)} and the "
            f"set has {count} samples; give lengths of that sum, or fractions of sum 1"
        )
    generator = torch.default_generator if generator is None else generator
    order = torch.randperm(count, generator=generator).tolist()
    ends = accumulate(counts)
    return [
        Subset(dataset, order[end - length : end])
        for end, length in zip(ends, counts, strict=True)
    ]
