"""Python's multiprocessing, by PyTorch's name.

Tensors go to other processes as copies, except those in shared memory: after
Tensor.share_memory_() or nn.Module.share_memory() the receiver uses the same memory,
however it was started. The sender has to run until a Queue or Pipe is read. Workers
that are spawned see `import torch` as this process does.
"""

from multiprocessing import *
from multiprocessing import __all__ as _theirs

from pydevtensor import _spawn
from pydevtensor._names import publish as _publish
from pydevtensor._sharing import register as _register
from pydevtensor._spawn import *

__all__ = [*_theirs, *_spawn.__all__]

_register()
_publish(__name__)
