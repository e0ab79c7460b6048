"""Batches that are copied to a GPU while the program uses the one before."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from pydevtensor import _C, cuda
from pydevtensor._tree import flatten, map_leaves


def prefetch(
    batches: Iterable[Any], device: Any = None, ahead: int = 1
) -> Iterator[Any]:
    """The batches with their Tensors on a GPU, copied ahead on a stream of their own.

    batches  Tensors, or tuples, lists and dicts of them, as a DataLoader gives
    device   the GPU; None: the current one
    ahead    how many batches are copied, or being copied, beyond the one in use

    A copy runs while the GPU computes with the batch before. The current stream waits
    for it before it goes on. ValueError for a device that is not a GPU, or ahead < 1.

    >>> batches = [(torch.ones(2), torch.tensor(i)) for i in range(3)]
    >>> for x, i in torch.cuda.prefetch(batches):
    ...     print((x * i).sum().item(), x.device.type)
    0.0 cuda
    2.0 cuda
    4.0 cuda
    """
    if not isinstance(ahead, int) or ahead < 1:
        raise ValueError(f"prefetch(): ahead is {ahead!r}; give 1 or more")
    target = _C.device("cuda", _C._device_index(device, "prefetch"))
    return _prefetch(batches, target, ahead)


def _prefetch(batches: Iterable[Any], device: Any, ahead: int) -> Iterator[Any]:
    stream = cuda.Stream(device)
    waiting: deque[tuple[Any, Any]] = deque()

    def copy(leaf: Any) -> Any:
        if not isinstance(leaf, _C.Tensor):
            return leaf
        if leaf.device.type == "cuda":
            stream.wait_stream(cuda.current_stream(leaf.device))
        elif not leaf.is_pinned():
            leaf = leaf.pin_memory()  # else the host would wait
        with cuda.stream(stream):
            return leaf.to(device, non_blocking=True)

    def arrive() -> Any:
        batch, event = waiting.popleft()
        current = cuda.current_stream(device)
        current.wait_event(event)
        for leaf in flatten(batch)[0]:
            if isinstance(leaf, _C.Tensor):
                leaf.record_stream(current)
        return batch

    for batch in batches:
        waiting.append((map_leaves(copy, batch), stream.record_event()))
        if len(waiting) > ahead:
            yield arrive()
    while waiting:
        yield arrive()
