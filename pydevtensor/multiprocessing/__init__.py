"""Python's multiprocessing, by PyTorch's name.

Tensors of the CPU go to other processes as copies, except those in shared memory: after
Tensor.share_memory_() or nn.Module.share_memory() the receiver uses the same memory,
however it was started. The sender has to run until a Queue or Pipe is read. Shared
memory is sent by its descriptor, whatever set_sharing_strategy() says.

Tensors of a GPU always share their memory, with processes that are spawned. Its
sender has to run for as long as a receiver uses it, and keeps it until then. Workers
that are spawned see `import torch` as this process does.
"""

from multiprocessing import *
from multiprocessing import __all__ as _theirs

from pydevtensor import _spawn
from pydevtensor._names import publish as _publish
from pydevtensor._sharing import register as _register
from pydevtensor._spawn import *
from pydevtensor.multiprocessing import reductions as reductions

__all__ = [*_theirs, *_spawn.__all__]
__all__ += ["get_all_sharing_strategies", "get_sharing_strategy", "init_reductions"]
__all__ += ["set_sharing_strategy"]

_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The names that set_sharing_strategy() takes.

    >>> sorted(torch.multiprocessing.get_all_sharing_strategies())
    ['file_descriptor', 'file_system']
    """
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """The name that set_sharing_strategy() was given, or 'file_descriptor'.

    >>> torch.multiprocessing.get_sharing_strategy()
    'file_descriptor'
    """
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Keep a name for get_sharing_strategy(); memory is sent by descriptor in any case.

    new_strategy: 'file_descriptor' or 'file_system'; AssertionError for others.

    >>> torch.multiprocessing.set_sharing_strategy('file_descriptor')
    """
    global _strategy
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(
            f"the strategy {new_strategy!r} is not known; give 'file_descriptor' or "
            "'file_system'"
        )
    _strategy = new_strategy


def init_reductions() -> None:
    """Let tensors be sent: importing the module does it.

    >>> torch.multiprocessing.init_reductions()
    """
    _register()


init_reductions()
_publish(__name__)
