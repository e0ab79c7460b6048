"""Checkpoints: parts of a network whose intermediate results are computed again in the
backward pass instead of being kept, which saves memory and costs a forward pass."""

from __future__ import annotations

import contextlib
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from pydevtensor import _C, _tree
from pydevtensor._names import publish as _publish
from pydevtensor.amp import autocast
from pydevtensor.autograd import Function, backward, enable_grad
from pydevtensor.autograd.graph import saved_tensors_hooks
from pydevtensor.random import default_generators, fork_rng

__all__ = [
    "CheckpointError",
    "checkpoint",
    "checkpoint_sequential",
    "noop_context_fn",
    "set_checkpoint_early_stop",
]


class CheckpointError(RuntimeError):
    """The second run of a function gave other results than the first."""


def noop_context_fn() -> tuple[Any, ...]:
    """Two contexts that do nothing, for context_fn.

    >>> len(torch.utils.checkpoint.noop_context_fn())
    2
    """
    return contextlib.nullcontext(), contextlib.nullcontext()


class _State:
    """The states of generators and autocast in the first run, for the second."""

    def __init__(self, values: list[Any], preserves: bool) -> None:
        gpus = {
            v.device.index or 0
            for v in values
            if isinstance(v, _C.Tensor) and v.device.type == "cuda"
        }
        self.gpus = sorted(gpus) if preserves else []
        self.states: list[Any] = []
        if preserves:
            self.states = [g.get_state() for g in default_generators(self.gpus)]
        self.casts = [(kind, *_C._autocast_state(kind)) for kind in ("cpu", "cuda")]

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for kind, enabled, dtype in self.casts:
                if enabled != _C._autocast_state(kind)[0]:
                    stack.enter_context(autocast(kind, dtype, enabled))
            if self.states:
                stack.enter_context(fork_rng(self.gpus))
                for generator, state in zip(
                    default_generators(self.gpus), self.states, strict=True
                ):
                    generator.set_state(state)
            yield


def _is_wanted(value: Any) -> bool:
    return isinstance(value, _C.Tensor) and value.requires_grad


# --- with use_reentrant=True ----------------------------------------------------------


class CheckpointFunction(Function):
    """Runs a function without recording, and again in the backward pass."""

    @staticmethod
    def forward(
        ctx: Any, function: Callable[..., Any], preserves: bool, *args: Any
    ) -> Any:
        ctx.function, ctx.state = function, _State([*args], preserves)
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, _C.Tensor)]
        ctx.plain = [None if isinstance(a, _C.Tensor) else a for a in args]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        return function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        args = [*ctx.plain]
        for i, saved in zip(ctx.places, ctx.saved_tensors, strict=True):
            args[i] = saved.detach().requires_grad_(ctx.needs_input_grad[2 + i])
        with enable_grad(), ctx.state.again():
            outputs = ctx.function(*args)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [(o, g) for o, g in zip(outputs, grads, strict=True) if _is_wanted(o)]
        if not pairs:
            raise RuntimeError(
                "checkpoint(): no result of the function requires a gradient when it "
                "runs again, so the checkpoint is of no use; call the function itself"
            )
        of, seeds = zip(*pairs, strict=True)
        backward(of, seeds)
        return (None, None, *(getattr(a, "grad", None) for a in args))


# --- with use_reentrant=False ---------------------------------------------------------


class _Stop(Exception):
    """Ends the second run, when it has saved all that the first run saved."""


class _Holder:
    """Stands for a tensor that the first run would have saved."""

    __slots__ = ("__weakref__", "value")

    def __init__(self) -> None:
        self.value: Any = None


class _Inputs(Function):
    """An operation that saves arguments, so that hooks of an outer block pack them."""

    @staticmethod
    def forward(ctx: Any, wanted: Any, *tensors: Any) -> Any:
        ctx.save_for_backward(*tensors)
        return wanted.detach()


def _facts(tensor: Any) -> tuple[Any, ...]:
    return tensor.shape, tensor.dtype, tensor.device


class _Frame:
    """One call of a function, whose operations save holders instead of tensors.

    The first holder whose tensor is needed runs the function again, which fills all."""

    def __init__(
        self,
        function: Callable[..., Any],
        state: _State,
        second: Any,
        checks: bool,
        stops: bool,
        arguments: tuple[Any, ...],
    ) -> None:
        self.function, self.state, self.second = function, state, second
        self.checks, self.stops = checks, stops
        leaves, self.unflatten = _tree.flatten(arguments)
        self.places = [i for i, v in enumerate(leaves) if isinstance(v, _C.Tensor)]
        self.inputs = _Inputs.apply(
            _C.empty(0).requires_grad_(), *(leaves[i] for i in self.places)
        )
        self.plain = [None if isinstance(v, _C.Tensor) else v for v in leaves]
        self.holders: list[Any] = []  # weak references: nodes drop them once they ran
        self.facts: list[tuple[Any, ...]] = []
        self.complete = False  # whether the first run has ended
        self.count = 0  # of tensors that the second run has saved

    def pack(self, tensor: Any) -> Any:
        holder = _Holder()
        self.holders.append(weakref.ref(holder))
        self.facts.append(_facts(tensor))
        return holder

    def unpack(self, holder: Any) -> Any:
        if holder.value is None:
            self.run_again()
        value, holder.value = holder.value, None
        if value is None:
            raise CheckpointError(
                "checkpoint(): the function saved a tensor in its first run and not in "
                "its second; it has to compute the same each time"
            )
        return value

    def pack_again(self, tensor: Any) -> Any:
        i, self.count = self.count, self.count + 1
        if i < len(self.holders):
            if self.checks and _facts(tensor) != self.facts[i]:
                raise CheckpointError(
                    f"checkpoint(): tensor {i} that the function saved had shape, type "
                    f"and device {_text(self.facts[i])} first, and has "
                    f"{_text(_facts(tensor))} when it runs again; it has to compute "
                    "the same each time"
                )
            holder = self.holders[i]()
            if holder is not None:
                holder.value = tensor.detach()
        if self.stops and self.complete and self.count == len(self.holders):
            raise _Stop
        return tensor.detach()

    def run_again(self) -> None:
        leaves, self.count = [*self.plain], 0
        kept = self.inputs.grad_fn.saved_tensors
        for i, tensor in zip(self.places, kept, strict=True):
            leaves[i] = tensor
        args, kwargs = self.unflatten(leaves)
        try:
            hooks = saved_tensors_hooks(self.pack_again, _same)
            with enable_grad(), self.state.again(), self.second, hooks:
                self.function(*args, **kwargs)
        except _Stop:
            return
        if self.complete and self.count != len(self.holders):
            raise CheckpointError(
                f"checkpoint(): the function saved {len(self.holders)} tensors first, "
                f"and {self.count} when it ran again; it has to compute the same each "
                "time"
            )


def _same(value: Any) -> Any:
    return value


def _text(facts: tuple[Any, ...]) -> str:
    shape, dtype, device = facts
    return f"{[*shape]}, {dtype}, {device}"


# --- both -----------------------------------------------------------------------------

_stops: bool | None = None  # the argument of set_checkpoint_early_stop()


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """A block in which checkpoint() has early_stop=enable, whatever it is given.

    enable: whether second runs end when all that is needed is computed.

    >>> with torch.utils.checkpoint.set_checkpoint_early_stop(False):
    ...     y = torch.utils.checkpoint.checkpoint(
    ...         torch.sin, torch.ones(2, requires_grad=True), use_reentrant=False)
    """
    global _stops
    before, _stops = _stops, enable
    try:
        yield
    finally:
        _stops = before


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[..., Any] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """function(*args, **kwargs), whose intermediate results are not kept.

    The backward pass runs the function again, with the random numbers (unless
    preserve_rng_state=False) and the autocast of the first time.

    use_reentrant=False, which is recommended, works with autograd.grad(), with keyword
    arguments, with results of any structure, and inside another checkpoint. It uses
    autograd.graph.saved_tensors_hooks, and raises CheckpointError where the second run
    saves other tensors than the first.
    use_reentrant=True, the default, which warns, needs an argument that requires a
    gradient, and works with backward() alone.

    function           a module or any function, which computes the same each time
    args, kwargs       its arguments; kwargs with use_reentrant=False alone
    use_reentrant      which of the two ways described above
    context_fn         gives two contexts, for the first and for the second run;
                       ValueError with use_reentrant=True
    determinism_check  'default', or 'none' to accept results of other shapes and types
                       in the second run; ValueError for another
    debug              has no effect; ValueError with use_reentrant=True or context_fn
    early_stop         whether the second run ends when all that the first one saved is
                       computed; with use_reentrant=False alone

    >>> net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    >>> x = torch.ones(2, 3, requires_grad=True)
    >>> y = torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False)
    >>> y.sum().backward()
    >>> x.grad.shape
    torch.Size([2, 3])
    """
    if use_reentrant is None:
        warnings.warn(
            "checkpoint(): give use_reentrant=False; without it, it is True",
            stacklevel=2,
        )
        use_reentrant = True
    preserves = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError(
                f"checkpoint(): {', '.join(kwargs)} is given by name, which "
                "use_reentrant=True cannot pass on; give use_reentrant=False"
            )
        if context_fn is not noop_context_fn or debug:
            given = "debug=True" if debug else "context_fn"
            raise ValueError(f"checkpoint(): {given} needs use_reentrant=False")
        if not any(_is_wanted(a) for a in args):
            warnings.warn(
                "checkpoint(): no argument requires a gradient, so nothing gets one; "
                "give use_reentrant=False",
                stacklevel=2,
            )
        return CheckpointFunction.apply(function, preserves, *args)
    if debug and context_fn is not noop_context_fn:
        raise ValueError(
            "checkpoint(): debug=True does not go with context_fn; leave one out"
        )
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"checkpoint(): determinism_check is {determinism_check!r}; give 'default' "
            "or 'none'"
        )
    if not _C.is_grad_enabled():
        return function(*args, **kwargs)
    first, second = context_fn()
    leaves, _ = _tree.flatten((args, kwargs))
    frame = _Frame(
        function,
        _State(leaves, preserves),
        second,
        determinism_check == "default",
        early_stop if _stops is None else _stops,
        (args, kwargs),
    )
    with saved_tensors_hooks(frame.pack, frame.unpack), first:
        result = function(*args, **kwargs)
    frame.complete = True
    return result


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Any:
    """A Sequential, or a list of functions, in segments; all but the last checkpointed.

    See also checkpoint(). ValueError for other arguments by name than
    preserve_rng_state.

    functions      a Sequential, or a list of modules or functions of one argument
    segments       the number of parts they are divided into
    input          the argument of the first
    use_reentrant  as for checkpoint(); give False

    >>> net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))
    >>> x = torch.ones(2, 3, requires_grad=True)
    >>> torch.utils.checkpoint.checkpoint_sequential(
    ...     net, 2, x, use_reentrant=False).shape
    torch.Size([2, 1])
    """
    preserves = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError(
            f"checkpoint_sequential(): {', '.join(kwargs)} is not an argument"
        )
    steps = [*functions.children()] if hasattr(functions, "children") else [*functions]

    def run(few: list[Any]) -> Callable[..., Any]:
        def segment(x: Any) -> Any:
            for step in few:
                x = step(x)
            return x

        return segment

    size = len(steps) // segments
    for start in range(0, size * (segments - 1), size or 1):
        input = checkpoint(
            run(steps[start : start + size]),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserves,
        )
    return run(steps[size * (segments - 1) :])(input)


_publish(__name__)
