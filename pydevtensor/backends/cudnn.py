"""torch.backends.cudnn: real GPUs leave convolutions to cuDNN where it is installed.

pydevtensor looks for it where it looks for cuBLAS: beside PyTorch, in NVIDIA's package
nvidia-cudnn-cu13 (or -cu12), in the system. Its own kernels, which are slower, compute
small convolutions, those that cuDNN does not support, and all of them without cuDNN or
with `enabled` False. With `deterministic` or `use_deterministic_algorithms()`, cuDNN
computes only by algorithms that give the same bits each time.

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
from pydevtensor._C import Tensor

__all__ = ["allow_tf32", "benchmark", "benchmark_limit", "deterministic", "enabled"]
__all__ += ["flags", "is_acceptable", "is_available", "version"]

benchmark = False
benchmark_limit: int | None = 10
# Properties of the module, which the kernels read.
allow_tf32: bool
deterministic: bool
enabled: bool


def _setting(name: str, keep: Callable[..., bool]) -> property:
    """A bool that C keeps: keep() gives it, and keep(value) sets it."""

    def write(module: ModuleType, value: bool) -> None:
        if not isinstance(value, bool):
            kind = type(value).__name__
            raise RuntimeError(f"{name} is a {kind}; give True or False")
        keep(value)

    return property(lambda module: keep(), write)


class _Settings(ModuleType):
    allow_tf32 = _setting("allow_tf32", _C._convolution_tf32)
    deterministic = _setting("deterministic", _C._cudnn_deterministic)
    enabled = _setting("enabled", _C._cudnn_enabled)


sys.modules[__name__].__class__ = _Settings


def version() -> int | None:
    """cuDNN's version, such as 91900 for 9.19.0; None without it or without a GPU.

    >>> torch.backends.cudnn.version()
    """
    return _C._cudnn_version()


def is_available() -> bool:
    """Whether there are GPUs, and cuDNN for them.

    >>> torch.backends.cudnn.is_available()
    False
    """
    return version() is not None


def is_acceptable(tensor: Tensor) -> bool:
    """Whether cuDNN is there, enabled, and has an element type such as the tensor's.

    >>> torch.backends.cudnn.is_acceptable(torch.ones(2))
    False
    """
    able = tensor.is_cuda and tensor.is_floating_point()
    return able and _C._cudnn_enabled() and is_available()


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> Iterator[None]:
    """Change the settings for a `with` block.

    enabled: whether convolutions may be cuDNN's.
    deterministic: whether only ways that give the same bits each time count.
    allow_tf32: whether float32 convolutions and recurrent layers on GPUs may round
    their elements to TF32.
    benchmark, benchmark_limit: remembered; nothing reads them.

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
