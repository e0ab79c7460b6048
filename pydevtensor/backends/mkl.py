"""torch.backends.mkl: pydevtensor finds another BLAS."""

from pydevtensor._answers import answer as _answer

__all__ = ["is_available"]

is_available = _answer(__name__, "is_available", False)
