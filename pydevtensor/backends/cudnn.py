"""torch.backends.cudnn: pydevtensor has kernels of its own and does not use cuDNN.

`allow_tf32` says whether real GPUs may round the elements of float32 to TF32, which has
10 bits of fraction, in convolutions and in the steps of recurrent layers, for three to
four times the speed: digits then differ from the CPU's from the fourth on. As in
PyTorch it is True until a program sets it. The other settings are remembered.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

from pydevtensor import _C
from pydevtensor._answers import answer as _answer

__all__ = ["allow_tf32", "benchmark", "benchmark_limit", "deterministic", "enabled"]
__all__ += ["flags", "is_acceptable", "is_available", "version"]

enabled = True
benchmark = False
benchmark_limit: int | None = 10
deterministic = False
# A property of the module, which the kernels read.
allow_tf32: bool


class _Settings(ModuleType):
    @property
    def allow_tf32(self) -> bool:
        return _C._convolution_tf32()

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        if not isinstance(value, bool):
            kind = type(value).__name__
            raise RuntimeError(f"allow_tf32 is a {kind}; give True or False")
        _C._convolution_tf32(value)


sys.modules[__name__].__class__ = _Settings

is_available = _answer(__name__, "is_available", False)


def is_acceptable(tensor: object) -> bool:
    """False: cuDNN is not used.

    >>> torch.backends.cudnn.is_acceptable(torch.ones(2))
    False
    """
    return False


version: Callable[[], int | None] = _answer(__name__, "version", None)


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> Iterator[None]:
    """Change the settings for a `with` block.

    allow_tf32: whether float32 convolutions and recurrent layers on GPUs may round
    their elements to TF32.
    enabled, benchmark, benchmark_limit, deterministic: remembered; nothing reads them.

    >>> with torch.backends.cudnn.flags(deterministic=True):
    ...     torch.backends.cudnn.deterministic
    True
    >>> torch.backends.cudnn.deterministic
    False
    """
    given = {**locals()}
    module = sys.modules[__name__]
    before = {name: getattr(module, name) for name in given}
    try:
        for name, value in given.items():
            setattr(module, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)
