"""Python's multiprocessing, by PyTorch's name.

Tensors go to other processes as copies: there is no shared memory of tensors. Workers
that are spawned see `import torch` as this process does.
"""

from multiprocessing import *
from multiprocessing import __all__ as __all__
