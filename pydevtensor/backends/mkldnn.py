"""torch.backends.mkldnn."""

__all__ = ["enabled", "is_available"]

enabled = True


def is_available() -> bool:
    """False: pydevtensor does not use oneDNN.

    >>> torch.backends.mkldnn.is_available()
    False
    """
    return False
