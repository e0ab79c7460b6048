"""Samplers: the order in which a data set is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any, Generic, TypeVar

import pydevtensor as torch

_Index_co = TypeVar("_Index_co", covariant=True)


def draw_seed(generator: torch.Generator | None = None) -> int:
    """A seed of 63 bits from the generator (None: the default one)."""
    return int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())


class Sampler(Generic[_Index_co]):
    """Base of samplers: a subclass defines __iter__ and, if it is known, __len__.

    data_source  the data set, which has a length

    >>> class Backwards(torch.utils.data.Sampler):
    ...     def __iter__(self):
    ...         return iter([2, 1, 0])
    >>> [*torch.utils.data.DataLoader('abc', sampler=Backwards())]
    [['c'], ['b'], ['a']]
    """

    def __init__(self, data_source: object = None) -> None:
        pass

    def __iter__(self) -> Iterator[_Index_co]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__")


def _length(source: Sized) -> int:
    if not hasattr(source, "__len__"):
        raise TypeError(
            f"object of type '{type(source).__name__}' has no len(), so its samples "
            "cannot be put in order; define __len__, or derive it from IterableDataset"
        )
    return len(source)


class SequentialSampler(Sampler[int]):
    """The indices 0, 1, ... in order.

    data_source  the data set, which has a length

    >>> [*torch.utils.data.SequentialSampler('abc')]
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(_length(self.data_source)))

    def __len__(self) -> int:
        return _length(self.data_source)


def _check_count(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} is {value!r}; give an int above 0")


def _check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}; give True or False")


class RandomSampler(Sampler[int]):
    """Indices in random order, or drawn with replacement.

    data_source  the data set, which has a length
    replacement  whether an index may be drawn again
    num_samples  how many, by default the length of the data set
    generator    a torch.Generator; without one, each epoch uses a new one, seeded from
                 the default generator

    >>> sorted(torch.utils.data.RandomSampler(range(4)))
    [0, 1, 2, 3]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        _check_flag("RandomSampler(): replacement", replacement)
        self.data_source = data_source
        self.replacement: bool = replacement
        self._num_samples = num_samples
        self.generator = generator
        if num_samples is not None:
            _check_count("RandomSampler(): num_samples", num_samples)
        else:
            _length(data_source)

    @property
    def num_samples(self) -> int:
        if self._num_samples is None:
            return _length(self.data_source)
        return self._num_samples

    def __iter__(self) -> Iterator[int]:
        count, wanted = _length(self.data_source), self.num_samples
        generator = self.generator
        if generator is None:
            generator = torch.Generator().manual_seed(draw_seed())
        if self.replacement:
            for _ in range(wanted // 32):
                yield from torch.randint(count, (32,), generator=generator).tolist()
            rest = torch.randint(count, (wanted % 32,), generator=generator)
            yield from rest.tolist()
        elif count:
            for _ in range(wanted // count):
                yield from torch.randperm(count, generator=generator).tolist()
            # Drawn even if nothing is left, as in PyTorch.
            rest = torch.randperm(count, generator=generator).tolist()
            yield from rest[: wanted % count]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order.

    indices    a list or Tensor of them
    generator  the source of random numbers, else the default generator

    >>> sorted(torch.utils.data.SubsetRandomSampler([7, 5]))
    [5, 7]
    """

    def __init__(
        self, indices: Sequence[int], generator: torch.Generator | None = None
    ) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        order = torch.randperm(len(self.indices), generator=self.generator)
        for place in order.tolist():
            yield self.indices[place]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices, drawn by weight.

    weights      one for each index, 0 or more, which need not add up to 1
    num_samples  how many are drawn
    replacement  whether an index may be drawn again
    generator    the source of random numbers, else the default generator

    >>> [*torch.utils.data.WeightedRandomSampler([0.0, 1.0], num_samples=3)]
    [1, 1, 1]
    """

    def __init__(
        self,
        weights: Sequence[float] | torch.Tensor,
        num_samples: int,
        replacement: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        _check_count("WeightedRandomSampler(): num_samples", num_samples)
        _check_flag("WeightedRandomSampler(): replacement", replacement)
        self.weights: torch.Tensor = torch.as_tensor(weights, dtype=torch.float64)
        if self.weights.dim() != 1:
            raise ValueError(
                f"WeightedRandomSampler(): the weights have shape "
                f"{tuple(self.weights.shape)}; give one weight per sample"
            )
        self.num_samples = num_samples
        self.replacement: bool = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = torch.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of indices of a sampler.

    sampler     gives the indices: a Sampler or any iterable
    batch_size  how many are in a list, 1 or more, else ValueError
    drop_last   leave out a last, shorter list

    >>> [*torch.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self, sampler: Iterable[int], batch_size: int, drop_last: bool
    ) -> None:
        _check_count("BatchSampler(): batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(
                f"BatchSampler(): drop_last is {drop_last!r}; give True or False"
            )
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        sized: Any = self.sampler
        count: int = len(sized)
        if self.drop_last:
            return count // self.batch_size
        return (count + self.batch_size - 1) // self.batch_size
