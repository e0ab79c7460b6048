"""torch.backends.cudnn: pydevtensor has kernels of its own and does not use cuDNN."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["allow_tf32", "benchmark", "benchmark_limit", "deterministic", "enabled"]
__all__ += ["flags", "is_acceptable", "is_available", "version"]

enabled = True
benchmark = False
benchmark_limit: int | None = 10
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """False: cuDNN is not used.

    >>> torch.backends.cudnn.is_available()
    False
    """
    return False


def is_acceptable(tensor: object) -> bool:
    """False: cuDNN is not used.

    >>> torch.backends.cudnn.is_acceptable(torch.ones(2))
    False
    """
    return False


def version() -> int | None:
    """None: cuDNN is not used.

    >>> torch.backends.cudnn.version()
    """
    return None


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> Iterator[None]:
    """Change the settings for a `with` block.

    >>> with torch.backends.cudnn.flags(deterministic=True):
    ...     torch.backends.cudnn.deterministic
    True
    >>> torch.backends.cudnn.deterministic
    False
    """
    given = {**locals()}
    names = globals()
    before = {name: names[name] for name in given}
    names.update(given)
    try:
        yield
    finally:
        names.update(before)
