"""torch.mps: pydevtensor does not use Apple GPUs."""

from pydevtensor._answers import answer as _answer
from pydevtensor._names import publish as _publish

__all__ = ["device_count", "is_available"]

is_available = _answer(__name__, "is_available", False)
device_count = _answer(__name__, "device_count", 0)

_publish(__name__)
