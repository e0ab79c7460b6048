"""Tensors for copy, pickle, NumPy and other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydevtensor import _C
from pydevtensor._functions import method
from pydevtensor._streams import Stream, checked

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor


@method()
def record_stream(input: Tensor, stream: Stream) -> None:
    """Record a use of this Tensor's memory on stream.

    It is not reused before the work queued there is done. Operations do this
    themselves; call it for other libraries' work.

    >>> torch.zeros(2, device='cuda').record_stream(torch.cuda.current_stream())
    """
    device = checked("record_stream", stream, Stream).device
    if input.device != device:
        raise RuntimeError(
            f"record_stream(): the Tensor is on {input.device} and the stream on "
            f"{device}; give a stream of the Tensor's device"
        )
    _C._stream_use(input, stream.cuda_stream)
