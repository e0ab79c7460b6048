"""torch.backends.openmp."""

__all__ = ["is_available"]


def is_available() -> bool:
    """False: pydevtensor does not use OpenMP.

    >>> torch.backends.openmp.is_available()
    False
    """
    return False
