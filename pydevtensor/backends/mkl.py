"""torch.backends.mkl: pydevtensor finds another BLAS."""

__all__ = ["is_available"]


def is_available() -> bool:
    """False: pydevtensor does not use MKL.

    >>> torch.backends.mkl.is_available()
    False
    """
    return False
