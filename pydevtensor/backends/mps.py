"""torch.backends.mps: pydevtensor does not use Apple GPUs."""

from pydevtensor._answers import answer as _answer

__all__ = ["is_available", "is_built"]

is_available = _answer(__name__, "is_available", False)
is_built = _answer(__name__, "is_built", False)
