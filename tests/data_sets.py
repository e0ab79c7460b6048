"""Data sets for tests of loaders."""

import pydevtensor as torch
from pydevtensor.utils import data
from pydevtensor.utils.data import Dataset, IterableDataset


class Squares(Dataset):
    def __init__(self, count=10):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if not 0 <= index < self.count:
            raise IndexError(index)
        return torch.full((3000,), float(index * index)), index


class Spoilt(Squares):
    def __init__(self, how):
        super().__init__(8)
        self.how = how

    def __getitem__(self, index):
        if index == 5:
            self.how()
        return index


class Numbers(IterableDataset):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        info = data.get_worker_info()
        if info is None:
            return iter(range(self.count))
        return iter(range(info.id, self.count, info.num_workers))


def values(loader):
    return [batch.tolist() for batch in loader]
