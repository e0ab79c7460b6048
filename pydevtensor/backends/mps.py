"""torch.backends.mps."""

__all__ = ["is_available", "is_built"]


def is_available() -> bool:
    """False: pydevtensor does not use Apple GPUs.

    >>> torch.backends.mps.is_available()
    False
    """
    return False


def is_built() -> bool:
    """False: pydevtensor does not use Apple GPUs.

    >>> torch.backends.mps.is_built()
    False
    """
    return False
