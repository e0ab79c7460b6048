"""torch.autograd.graph: what operations save for the backward pass, and its nodes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pydevtensor import _C
from pydevtensor._names import publish as _publish

__all__ = [
    "Node",
    "disable_saved_tensors_hooks",
    "save_on_cpu",
    "saved_tensors_hooks",
]

Node = _C.Node


class _Mode(threading.local):
    depth = 0  # of blocks with hooks
    refusal: str | None = None  # what a new one says, where they are disabled


_mode = _Mode()


class saved_tensors_hooks:
    """A block whose operations save what pack_hook makes of a Tensor.

    The innermost block counts. Custom Functions save by it too. pack_hook runs without
    recording, and RuntimeError is raised where it modifies its argument in place. It
    gets a Tensor of the same memory and history; a Parameter is a plain Tensor there.

    pack_hook    takes the Tensor that an operation saves, and gives any object
    unpack_hook  takes that object in the backward pass, and gives a Tensor of the shape
                 and device that was saved: TypeError and RuntimeError for another

    >>> a = torch.ones(3, requires_grad=True)
    >>> kept = []
    >>> def pack(x):
    ...     kept.append(x.numpy(force=True))
    ...     return len(kept) - 1
    >>> with torch.autograd.graph.saved_tensors_hooks(
    ...         pack, lambda i: torch.tensor(kept[i])):
    ...     y = a * a
    >>> y.sum().backward()
    >>> len(kept), a.grad
    (2, tensor([2., 2., 2.]))
    """

    def __init__(
        self,
        pack_hook: Callable[[_C.Tensor], Any],
        unpack_hook: Callable[[Any], _C.Tensor],
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        if _mode.refusal is not None:
            raise RuntimeError(_mode.refusal)
        _C._begin_hooks(self.pack_hook, self.unpack_hook)
        _mode.depth += 1

    def __exit__(self, *unused: object) -> None:
        _mode.depth -= 1
        _C._end_recalls(1)


class save_on_cpu(saved_tensors_hooks):
    """A block whose operations save on the CPU, and copy back in the backward pass.

    It frees a GPU's memory for a larger network, at the price of the copies.

    pin_memory   whether the copies are in pinned memory, and the host does not wait for
                 them
    device_type  has no effect

    >>> a = torch.rand(3, requires_grad=True)
    >>> with torch.autograd.graph.save_on_cpu():
    ...     y = (a * a).exp()
    >>> y.sum().backward()
    >>> a.grad.shape
    torch.Size([3])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: _C.Tensor) -> Any:
            if not pin_memory or tensor.device.type == "cpu":
                return tensor.device, tensor.detach().cpu()
            kept = _C.empty(
                tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=True
            )
            kept.copy_(tensor, non_blocking=True)
            return tensor.device, kept

        def unpack(packed: Any) -> _C.Tensor:
            device, kept = packed
            back: _C.Tensor = kept.to(device, non_blocking=pin_memory)
            return back

        super().__init__(pack, unpack)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """A block in which saved_tensors_hooks is a RuntimeError; so is the block in one.

    error_message: the error's text.

    >>> with torch.autograd.graph.disable_saved_tensors_hooks("no hooks, please"):
    ...     with torch.autograd.graph.save_on_cpu():
    ...         pass
    Traceback (most recent call last):
    RuntimeError: no hooks, please
    """
    if _mode.depth:
        raise RuntimeError(error_message)
    before, _mode.refusal = _mode.refusal, error_message
    try:
        yield
    finally:
        _mode.refusal = before


_publish(__name__)
