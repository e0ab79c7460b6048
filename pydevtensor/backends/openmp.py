"""torch.backends.openmp: pydevtensor has threads of its own."""

from pydevtensor._answers import answer as _answer

__all__ = ["is_available"]

is_available = _answer(__name__, "is_available", False)
