"""torch.cuda.streams: streams and events of GPUs."""

from pydevtensor._names import publish as _publish
from pydevtensor.cuda import Event, ExternalStream, Stream

__all__ = ["Event", "ExternalStream", "Stream"]

_publish(__name__)
