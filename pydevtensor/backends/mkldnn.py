"""torch.backends.mkldnn: pydevtensor does not use oneDNN."""

from pydevtensor._answers import answer as _answer

__all__ = ["enabled", "is_available"]

enabled = True

is_available = _answer(__name__, "is_available", False)
