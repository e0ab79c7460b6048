"""Data sets."""

from bisect import bisect_right
from itertools import accumulate
from math import floor, isclose

import pydevtensor as torch


class Dataset:
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

    def __class_getitem__(cls, item):
        return cls

    def __getitem__(self, index):
        raise NotImplementedError(f"{type(self).__name__} does not define __getitem__")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Base of data sets without indices: a subclass defines __iter__.

    Each worker process iterates over its own copy, so __iter__ has to choose its part
    by get_worker_info(), or every worker yields every sample.

    >>> class Countdown(torch.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter([3, 2, 1])
    >>> [*torch.utils.data.DataLoader(Countdown(), batch_size=2)]
    [tensor([3, 2]), tensor([1])]
    """

    def __getitem__(self, index):
        raise NotImplementedError(
            f"{type(self).__name__} is an IterableDataset: samples have no index; "
            "iterate over it"
        )

    def __add__(self, other):
        return ChainDataset([self, other])

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__")


class ChainDataset(IterableDataset):
    """IterableDatasets one after the other.

    >>> class Countdown(torch.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter([2, 1])
    >>> list(torch.utils.data.ChainDataset([Countdown(), Countdown()]))
    [2, 1, 2, 1]
    """

    def __init__(self, datasets):
        super().__init__()
        self.datasets = datasets

    def __iter__(self):
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise TypeError(
                    f"ChainDataset: a {type(dataset).__name__} is no IterableDataset; "
                    "use ConcatDataset for data sets with indices"
                )
            yield from dataset

    def __len__(self):
        return sum(len(dataset) for dataset in self.datasets)


class TensorDataset(Dataset):
    """Sample i is the tuple of row i of each Tensor.

    Raises AssertionError if the Tensors have different numbers of rows.

    >>> import pydevtensor as torch
    >>> torch.utils.data.TensorDataset(torch.eye(2), torch.arange(2))[1]
    (tensor([0., 1.]), tensor(1))
    """

    def __init__(self, *tensors):
        if not tensors:
            raise TypeError("TensorDataset() needs at least one Tensor")
        sizes = [each.size(0) for each in tensors]
        if any(size != sizes[0] for size in sizes):
            raise AssertionError(
                f"TensorDataset(): the Tensors have {sizes} rows; give equal numbers"
            )
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple([each[index] for each in self.tensors])

    def __len__(self):
        return self.tensors[0].size(0)


class StackDataset(Dataset):
    """Several sets in parallel: sample i is the tuple, or dict, of their samples i.

    >>> torch.utils.data.StackDataset(range(3), 'abc')[1]
    (1, 'b')
    """

    def __init__(self, *args, **kwargs):
        if bool(args) == bool(kwargs):
            raise ValueError("StackDataset() takes sets, or sets by keyword, not both")
        self.datasets = args or kwargs
        sets = list(args or kwargs.values())
        self._length = len(sets[0])
        if any(len(each) != self._length for each in sets):
            raise ValueError(
                f"StackDataset(): the sets have {[len(each) for each in sets]} rows; "
                "give sets of one length"
            )

    def __getitem__(self, index):
        if isinstance(self.datasets, dict):
            return {name: each[index] for name, each in self.datasets.items()}
        return tuple(each[index] for each in self.datasets)

    def __len__(self):
        return self._length


class ConcatDataset(Dataset):
    """Several sets in sequence. All need a length, so none is an IterableDataset.

    >>> data = torch.utils.data.ConcatDataset([range(3), range(10, 12)])
    >>> [*data]
    [0, 1, 2, 10, 11]
    """

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("ConcatDataset() needs at least one set")
        if any(isinstance(each, IterableDataset) for each in self.datasets):
            raise AssertionError(
                "ConcatDataset(): an IterableDataset has no length; chain its iterators"
            )
        self.cumulative_sizes = list(accumulate(len(each) for each in self.datasets))

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
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


class Subset(Dataset):
    """The samples of a set with the given indices, in their order.

    >>> [*torch.utils.data.Subset('abcd', [3, 1])]
    ['d', 'b']
    """

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index):
        if isinstance(index, list):
            return self.dataset[[self.indices[each] for each in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices):
        theirs = [self.indices[each] for each in indices]
        several = getattr(self.dataset, "__getitems__", None)
        return several(theirs) if several else [self.dataset[each] for each in theirs]

    def __len__(self):
        return len(self.indices)


def random_split(dataset, lengths, generator=None):
    """Split a set at random into Subsets of the given lengths.

    lengths: counts that add up to len(dataset), or fractions that add up to 1; samples
    left over by rounding go to the first subsets. The order is PyTorch's for the same
    seed. Raises ValueError for other sums.

    >>> import pydevtensor as torch
    >>> g = torch.Generator().manual_seed(42)
    >>> [s.indices for s in torch.utils.data.random_split(range(5), [0.6, 0.4], g)]
    [[2, 4, 3], [0, 1]]
    """
    lengths = list(lengths)
    count = len(dataset)
    if lengths and isclose(sum(lengths), 1) and sum(lengths) <= 1 + 1e-9:
        for place, part in enumerate(lengths):
            if part < 0 or part > 1:
                raise ValueError(
                    f"random_split(): fraction {place} is {part}; give numbers from 0 "
                    "to 1"
                )
        lengths = [floor(count * part) for part in lengths]
        for left in range(count - sum(lengths)):
            lengths[left % len(lengths)] += 1
    if sum(lengths) != count:
        raise ValueError(
            f"random_split(): the lengths {lengths} add up to {sum(lengths)} and the "
            f"set has {count} samples; give lengths of that sum, or fractions of sum 1"
        )
    generator = torch.default_generator if generator is None else generator
    order = torch.randperm(count, generator=generator).tolist()
    ends = accumulate(lengths)
    return [
        Subset(dataset, order[end - length : end])
        for end, length in zip(ends, lengths, strict=True)
    ]
