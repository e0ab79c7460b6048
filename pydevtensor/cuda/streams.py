"""torch.cuda.streams: streams and events of GPUs."""

from pydevtensor._names import publish as _publish
from pydevtensor.cuda import Event, Stream

__all__ = ["Event", "Stream"]

_publish(__name__)
