"""Data sets: things that give sample i, or sample after sample."""

from bisect import bisect_right
from itertools import accumulate
from math import floor, isclose

import pydevtensor as torch


class Dataset:
    """What gives a sample for an index; subclass it and write __getitem__ and __len__.

    A loader asks a set that has __getitems__(indices) for the samples of a whole batch.

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
        raise NotImplementedError(
            f"{type(self).__name__} has no __getitem__; write one that gives a sample"
        )

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """What gives samples one after the other; subclass it and write __iter__.

    With worker processes each of them goes through its own copy, so __iter__ has to
    ask get_worker_info() which part is its part, or every sample comes once a worker.

    >>> class Countdown(torch.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter([3, 2, 1])
    >>> [*torch.utils.data.DataLoader(Countdown(), batch_size=2)]
    [tensor([3, 2]), tensor([1])]
    """

    def __getitem__(self, index):
        raise NotImplementedError(
            f"{type(self).__name__} is an IterableDataset: samples have no numbers; "
            "iterate over it"
        )

    def __add__(self, other):
        raise NotImplementedError(
            "IterableDatasets cannot be joined by +; use itertools.chain in an __iter__"
        )

    def __iter__(self):
        raise NotImplementedError(
            f"{type(self).__name__} has no __iter__; write one that yields samples"
        )


class TensorDataset(Dataset):
    """Sample i is the tuple of row i of each Tensor.

    Raises AssertionError where the Tensors differ in the size of their first dimension.

    >>> import pydevtensor as torch
    >>> torch.utils.data.TensorDataset(torch.eye(2), torch.arange(2))[1]
    (tensor([0., 1.]), tensor(1))
    """

    def __init__(self, *tensors):
        if not tensors:
            raise TypeError("TensorDataset(): no Tensors were given; give at least one")
        sizes = [each.size(0) for each in tensors]
        if any(size != sizes[0] for size in sizes):
            raise AssertionError(
                f"TensorDataset(): the Tensors have {sizes} rows; give as many of each"
            )
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple([each[index] for each in self.tensors])

    def __len__(self):
        return self.tensors[0].size(0)


class StackDataset(Dataset):
    """Several sets side by side: sample i is a tuple, or a dict, of the samples i.

    >>> torch.utils.data.StackDataset(range(3), 'abc')[1]
    (1, 'b')
    """

    def __init__(self, *args, **kwargs):
        if bool(args) == bool(kwargs):
            raise ValueError("StackDataset(): give sets, or sets by keyword, not both")
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
    """Sets one after the other. They need lengths, so IterableDatasets do not go.

    >>> data = torch.utils.data.ConcatDataset([range(3), range(10, 12)])
    >>> [*data]
    [0, 1, 2, 10, 11]
    """

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError(
                "ConcatDataset(): no sets were given; give at least one"
            )
        if any(isinstance(each, IterableDataset) for each in self.datasets):
            raise AssertionError(
                "ConcatDataset(): an IterableDataset has no length; chain its iterators"
            )
        self.cumulative_sizes = list(accumulate(len(each) for each in self.datasets))

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
        length = len(self)
        if index < 0:
            if -index > length:
                raise ValueError(
                    f"ConcatDataset: no sample {index} among {length}; give an index "
                    f"from {-length} to {length - 1}"
                )
            index += length
        if index >= length:
            raise IndexError(
                f"ConcatDataset: no sample {index} among {length}; give an index "
                f"from {-length} to {length - 1}"
            )
        which = bisect_right(self.cumulative_sizes, index)
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][index - before]


class Subset(Dataset):
    """The samples of a set that have the given indices, in their order.

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
    """Subsets of the given lengths, each sample in one of them, drawn at random.

    lengths are counts that add up to len(dataset), or fractions that add up to 1; what
    rounding leaves over goes to the first subsets, one each. The order is PyTorch's for
    the same seed. Raises ValueError for other sums.

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
