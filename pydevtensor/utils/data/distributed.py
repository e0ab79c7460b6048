"""A sampler that gives each rank its part of a data set."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import Any

import pydevtensor as torch
from pydevtensor._names import publish as _publish
from pydevtensor.utils.data.sampler import Sampler, _length

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Every num_replicas-th index of a data set, from `rank` on: each rank's part.

    dataset       has a length
    num_replicas  parts; None: the number of ranks
    rank          which of them; None: this process's rank
    shuffle       draw a new order in each epoch: call set_epoch() before it
    seed          of that order, the same on all ranks
    drop_last     leave the last samples out where they are not divisible; or some come
                  twice, so that all parts are of one length

    ValueError if rank is not 0 to num_replicas - 1.

    >>> from pydevtensor.utils.data.distributed import DistributedSampler
    >>> [*DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False)]
    [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None:
            num_replicas = torch.distributed.get_world_size()
        if rank is None:
            rank = torch.distributed.get_rank()
        if not 0 <= rank < num_replicas:
            raise ValueError(
                f"DistributedSampler: rank is {rank} and num_replicas {num_replicas}; "
                "ranks are 0 to num_replicas - 1"
            )
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.epoch, self.shuffle, self.seed = 0, shuffle, seed
        self.drop_last = drop_last
        length = _length(dataset)
        self.num_samples = length // num_replicas
        if length % num_replicas and not drop_last:
            self.num_samples += 1
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        length = _length(self.dataset)
        indices: list[Any] = [*range(length)]
        if self.shuffle:
            generator = torch.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = torch.randperm(length, generator=generator).tolist()
        if len(indices) < self.total_size and indices:
            indices *= -(-self.total_size // len(indices))
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the epoch, which together with seed says the order."""
        self.epoch = epoch


_publish(__name__)
