"""Data sets, samplers and DataLoader.

>>> import pydevtensor as torch
>>> from pydevtensor.utils.data import DataLoader, TensorDataset
>>> _ = torch.manual_seed(0)
>>> pairs = TensorDataset(torch.arange(5), 10 * torch.arange(5))
>>> for x, y in DataLoader(pairs, batch_size=2, shuffle=True):
...     print(x, y)
tensor([1, 4]) tensor([10, 40])
tensor([2, 3]) tensor([20, 30])
tensor([0]) tensor([0])
"""

from typing import TYPE_CHECKING

from pydevtensor._names import publish as _publish
from pydevtensor.utils.data.collate import default_collate, default_convert
from pydevtensor.utils.data.dataloader import DataLoader
from pydevtensor.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from pydevtensor.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from pydevtensor.utils.data.worker import WorkerInfo, get_worker_info

if TYPE_CHECKING:
    from pydevtensor.utils.data import distributed
    from pydevtensor.utils.data.distributed import DistributedSampler

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "IterableDataset",
]
__all__ += ["RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset"]
__all__ += ["SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler"]
__all__ += ["WorkerInfo", "default_collate", "default_convert", "get_worker_info"]
__all__ += ["DistributedSampler", "distributed", "random_split"]

_publish(__name__, {"DistributedSampler": "distributed", "distributed": "distributed"})
