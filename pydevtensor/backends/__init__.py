"""torch.backends: settings of libraries that PyTorch uses.

Each keeps the value that a program writes. Two change what GPUs
compute: backends.cuda.matmul.allow_tf32 and backends.cudnn.allow_tf32.

>>> torch.backends.cudnn.benchmark = True
>>> torch.backends.mps.is_available()
False
"""

from pydevtensor._names import publish as _publish
from pydevtensor.backends import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]

_publish(__name__)
