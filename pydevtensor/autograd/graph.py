"""torch.autograd.graph: what operations save for the backward pass, and its nodes."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pydevtensor import _C
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import RemovableHandle, enable_grad
from pydevtensor.autograd._hooks import GradientEdge

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]

Node = _C.Node


# --- edges and versions ---------------------------------------------------------------


def get_gradient_edge(tensor: _C.Tensor) -> GradientEdge:
    """The position of tensor's gradient in the graph, for grad() and backward().

    RuntimeError for a Tensor that requires no gradient.

    >>> x = torch.ones(2, requires_grad=True)
    >>> y = (x * 2).exp()
    >>> edge = torch.autograd.graph.get_gradient_edge(x)
    >>> torch.autograd.grad(y.sum(), edge)
    (tensor([14.7781, 14.7781]),)
    """
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not "
            "require gradients; set requires_grad on what it is computed from"
        )
    made = tensor.grad_fn
    if made is not None:
        return GradientEdge(made, tensor.output_nr)
    with enable_grad():
        after: Any = tensor.view_as(tensor).grad_fn
    return GradientEdge(*after.next_functions[0])


def increment_version(tensor: _C.Tensor | Iterable[_C.Tensor]) -> None:
    """Count a write to the memory of a Tensor, or of several.

    For code that writes where this library does not see it, so that a backward pass
    that needs the old values is a RuntimeError.

    >>> x = torch.ones(2)
    >>> torch.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    for each in (tensor,) if isinstance(tensor, _C.Tensor) else tensor:
        _C._written(each)


# --- hooks of several Tensors ---------------------------------------------------------


def _key_of(node: Any) -> tuple[int, int]:
    """Two numbers that tell a node from others, and do not keep it alive."""
    return hash(node), node._sequence_nr()


def _keys_of(tensors: Sequence[_C.Tensor]) -> Callable[[], list[tuple[int, int]]]:
    """A function that gives the key of each Tensor's node: a leaf's may change."""
    known = [_key_of(get_gradient_edge(t).node) for t in tensors]
    leaves = {i: weakref.ref(t) for i, t in enumerate(tensors) if t.is_leaf}

    def keys() -> list[tuple[int, int]]:
        for i, leaf in leaves.items():
            tensor = leaf()
            if tensor is not None:
                known[i] = _key_of(get_gradient_edge(tensor).node)
        return known

    return keys


def _running() -> set[tuple[int, int]]:
    """The keys of the nodes that the running backward pass computes gradients of."""
    _, roots, inputs = _C._pass()
    followers: dict[Any, list[Any]] = {}
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node not in followers:
            followers[node] = [n for n, _ in node.next_functions if n is not None]
            waiting += followers[node]
    if not inputs:
        return {_key_of(node) for node in followers}
    leaders: dict[Any, list[Any]] = {}
    for node, after in followers.items():
        for each in after:
            leaders.setdefault(each, []).append(node)
    needed, waiting = set(), [node for node in inputs if node in followers]
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += leaders.get(node, [])
    return {_key_of(node) for node in needed}


class _Several:
    """A hook of several Tensors: the gradients of each backward pass so far."""

    def __init__(
        self, tensors: Sequence[_C.Tensor], fn: Callable[..., Any], first: bool
    ) -> None:
        self.keys, self.fn, self.first = _keys_of(tensors), fn, first
        self.lock = threading.Lock()
        self.found: dict[int, list[Any]] = {}
        self.left: dict[int, int] = {}
        self.last = 0  # the pass whose first gradient fn was called with

    def add(self, i: int, gradient: Any) -> None:
        number = _C._pass()[0]
        with self.lock:
            if self.first:
                known, self.last = self.last == number, number
                if known:
                    return
                given = gradient
            else:
                if number not in self.found:
                    keys, running = self.keys(), _running()
                    self.found[number] = [None] * len(keys)
                    self.left[number] = sum(key in running for key in keys)
                self.found[number][i] = gradient
                self.left[number] -= 1
                if self.left[number]:
                    return
                del self.left[number]
                given = self.found.pop(number)
        self.fn(given)


def register_multi_grad_hook(
    tensors: Sequence[_C.Tensor], fn: Callable[..., None], *, mode: str = "all"
) -> RemovableHandle:
    """Call fn in backward passes with the gradients of several Tensors.

    fn must not change them. The handle that this returns removes the hook.

    mode  'all': once the gradients of all Tensors that the pass reaches are there, with
          a list of them and None for the others; 'any': with the first one

    >>> a, b = (torch.ones(1, requires_grad=True) for _ in range(2))
    >>> handle = torch.autograd.graph.register_multi_grad_hook((a, b), print)
    >>> (a * b * 3).backward()
    [tensor([3.]), tensor([3.])]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    several = _Several(tensors, fn, first=mode == "any")

    def hook_of(i: int) -> Callable[[Any], None]:
        return lambda gradient: several.add(i, gradient)

    handles = [t.register_hook(hook_of(i)) for i, t in enumerate(tensors)]

    def remove() -> None:
        for handle in handles:
            handle.remove()

    return RemovableHandle(remove)


# --- what operations save -------------------------------------------------------------


class _Mode(threading.local):
    depth = 0  # of blocks with hooks
    copies = False  # whether saved Tensors may be written
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


class _Copies:
    """The block that allow_mutation_on_saved_tensors() has begun."""

    def __init__(self) -> None:
        self.active = True

    def pack(self, tensor: _C.Tensor) -> Any:
        return tensor.detach().clone(memory_format=_C.preserve_format)

    def unpack(self, kept: Any) -> Any:
        if not self.active:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' "
                "context in which the graph was originally recorded; do it inside"
            )
        return kept

    def clear(self) -> None:
        """Has no effect: the nodes have the copies."""


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[Any]:
    """A block in which Tensors may be written that operations have saved.

    Each of them is copied when it is saved. The backward pass has to be in the block
    too: AssertionError where it is not. RuntimeError for a block inside of another one.

    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x.clone()
    ...     z = (y ** 2).sum()
    ...     _ = y.sin_()
    ...     z.backward()
    >>> x.grad
    tensor([2., 2.])
    """
    if _mode.copies:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    copies = _Copies()
    with saved_tensors_hooks(copies.pack, copies.unpack):
        _mode.copies = True
        try:
            yield copies
        finally:
            _mode.copies = copies.active = False


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


_publish(__name__, home_of=["GradientEdge"])
