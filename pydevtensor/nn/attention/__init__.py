"""The choice of a kernel for attention, of which there is one; flex_attention."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pydevtensor._names import publish as _publish

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.Enum):
    """The names of PyTorch's kernels, for sdpa_kernel.

    >>> nn.attention.SDPBackend.MATH.value
    0
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(
    backends: SDPBackend | Iterable[SDPBackend], set_priority: bool = False
) -> Iterator[None]:
    """Accept a choice of kernels; there is one, so nothing changes.

    Raises TypeError for a backend that is not an SDPBackend.

    >>> with nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
    ...     y = nn.functional.scaled_dot_product_attention(*torch.ones(3, 1, 1))
    >>> y
    tensor([[1.]])
    """
    given = [backends] if isinstance(backends, SDPBackend) else [*backends]
    for backend in given:
        if not isinstance(backend, SDPBackend):
            raise TypeError(
                f"sdpa_kernel: {backend!r} is no SDPBackend; give e.g. "
                "SDPBackend.FLASH_ATTENTION, or a list of them"
            )
    yield


_publish(__name__, later=["flex_attention"])
