"""Checkpoints: parts of a network whose intermediate results are computed again in the
backward pass instead of being kept, which saves memory and costs a forward pass."""

from __future__ import annotations

import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from pydevtensor import _C, _tree
from pydevtensor._names import publish as _publish
from pydevtensor.amp import autocast
from pydevtensor.autograd import Function, backward, enable_grad, grad
from pydevtensor.random import default_generators, fork_rng

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential", "noop_context_fn"]

_DEEP = 4  # how far a function is searched for the modules that it uses


class CheckpointError(RuntimeError):
    """The second run of a function gave other results than the first."""


def noop_context_fn() -> tuple[Any, ...]:
    """Two contexts that do nothing, for context_fn.

    >>> len(torch.utils.checkpoint.noop_context_fn())
    2
    """
    return contextlib.nullcontext(), contextlib.nullcontext()


class _State:
    """The random numbers and autocast of the first run, for the second."""

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


def _alias(value: Any) -> Any:
    """A Tensor apart from the graph so far, that requires a gradient where it did."""
    if not isinstance(value, _C.Tensor):
        return value
    return value.detach().requires_grad_(value.requires_grad)


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


def _tensors_of(value: Any, deep: int, seen: set[int]) -> Iterator[Any]:
    """The leaf Tensors that a function can reach: of modules, of what it closes over,
    and of the globals that it names."""
    if id(value) in seen or deep < 0:
        return
    seen.add(id(value))
    inner: list[Any] = []
    if isinstance(value, _C.Tensor):
        yield value
    elif hasattr(value, "_parameters") and callable(getattr(value, "parameters", None)):
        yield from value.parameters()
        yield from value.buffers()
        inner = [v for k, v in vars(value).items() if not k.startswith("_")]
    elif isinstance(value, dict):
        inner = [*value.values()]
    elif isinstance(value, (list, tuple)):
        inner = [*value]
    elif isinstance(value, functools.partial):
        inner = [value.func, value.args, value.keywords]
    elif inspect.ismethod(value):
        inner = [value.__self__, value.__func__]
    elif inspect.isfunction(value):
        inner = [*inspect.getclosurevars(value).nonlocals.values()]
        names = value.__code__.co_names
        inner += [value.__globals__[n] for n in names if n in value.__globals__]
        inner += [value.__defaults__ or (), value.__kwdefaults__ or {}]
    elif hasattr(value, "__dict__") and callable(value) and not isinstance(value, type):
        inner = [vars(value)]
    for each in inner:
        yield from _tensors_of(each, deep - 1, seen)


def _leaf_nodes(outputs: list[Any]) -> set[Any]:
    """The AccumulateGrad nodes that the results depend on."""
    waiting, seen, found = [o.grad_fn for o in outputs], set(), set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.name() == "AccumulateGrad":
            found.add(node)
        waiting += [following for following, _ in node.next_functions]
    return found


def _node_of(leaf: Any) -> Any:
    return leaf.view_as(leaf).grad_fn.next_functions[0][0]


class CheckpointedBackward(Function):
    """Results whose gradients come of running a function again."""

    @staticmethod
    def forward(
        ctx: Any, again: Callable[..., Any], outputs: list[Any], *sources: Any
    ) -> tuple[Any, ...]:
        ctx.again = again
        ctx.save_for_backward(*sources)
        made = tuple(o.detach() for o in outputs)
        ctx.mark_non_differentiable(
            *(m for m, o in zip(made, outputs, strict=True) if not o.requires_grad)
        )
        return made

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        # A pass that is recorded takes the arguments with their history: views of them,
        # since one argument may be computed from another.
        recorded = _C.is_grad_enabled()
        sources = ctx.saved_tensors if recorded else None
        return (None, None, *ctx.again(grads, sources))


def _checkpoint(
    function: Callable[..., Any],
    preserves: bool,
    contexts: Any,
    checks: bool,
    args: tuple[Any, ...],
    kwargs: dict[Any, Any],
) -> Any:
    """checks: the second run has to give the shapes and types of the first."""
    leaves, unflatten = _tree.flatten((args, kwargs))
    first, second = contexts()
    state = _State(leaves, preserves)
    mine = [_alias(x) for x in leaves]
    given, named = unflatten(mine)
    with first:
        result = function(*given, **named)
    parts, rebuild = _tree.flatten(result)
    places = [i for i, p in enumerate(parts) if isinstance(p, _C.Tensor)]
    outputs = [parts[i] for i in places]
    if not any(o.requires_grad for o in outputs):
        return result
    aliases = [a for a in mine if _is_wanted(a)]
    sources = [x for x in leaves if _is_wanted(x)]
    nodes = _leaf_nodes(outputs) - {_node_of(a) for a in aliases}
    captured = []
    for t in _tensors_of(function, _DEEP, set()):
        if nodes and t.is_leaf and t.requires_grad and (node := _node_of(t)) in nodes:
            nodes.remove(node)
            captured.append(t)
    if nodes:
        # It uses a parameter that is not found: the results of this run are kept, but
        # the arguments have to be those of the caller.
        with state.again(), second:
            return function(*args, **kwargs)
    shapes = [(o.shape, o.dtype) for o in outputs]

    def again(grads: tuple[Any, ...], recorded: tuple[Any, ...] | None) -> list[Any]:
        views = (x.view_as(x) for x in recorded or ())
        fresh = [
            next(views) if recorded and _is_wanted(x) else _alias(x) for x in leaves
        ]
        given, named = unflatten(fresh)
        with enable_grad(), state.again(), second:
            parts, _ = _tree.flatten(function(*given, **named))
        made = [p for p in parts if isinstance(p, _C.Tensor)]
        alike = [(m.shape, m.dtype) for m in made] == shapes
        if (checks and not alike) or len(made) != len(shapes):
            raise CheckpointError(
                "checkpoint(): the function gave results of "
                f"{[(str(d), [*s]) for s, d in shapes]} first, and of "
                f"{[(str(m.dtype), [*m.shape]) for m in made]} when it ran again; it "
                "has to compute the same each time"
            )
        pairs = [
            (m, g)
            for m, g in zip(made, grads, strict=True)
            if m.requires_grad and g is not None
        ]
        of, seeds = zip(*pairs, strict=True)
        wanted = [f for f in fresh if _is_wanted(f)] + captured
        return [
            *grad(
                of,
                wanted,
                seeds,
                retain_graph=True,
                create_graph=recorded is not None,
                allow_unused=True,
            )
        ]

    made = CheckpointedBackward.apply(again, outputs, *sources, *captured)
    for i, output in zip(places, made, strict=True):
        parts[i] = output
    return rebuild(parts)


# --- both -----------------------------------------------------------------------------


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
    preserve_rng_state=False) and the autocast of the first time. CheckpointError where
    its results then have other shapes or types.

    use_reentrant=False, which is recommended, works with autograd.grad(), keyword
    arguments and results of any structure. It finds the parameters in the modules that
    the function names, closes over or is a method of; where it uses another one, no
    memory is saved.
    use_reentrant=True (also the default, with a warning) needs an argument that
    requires a gradient, and serves backward() alone.

    function           a module or any function, which computes the same each time
    args, kwargs       its arguments; kwargs with use_reentrant=False alone
    use_reentrant      which of the two ways, as said above
    context_fn         gives two contexts, for the first and for the second run;
                       ValueError with use_reentrant=True
    determinism_check  'default', or 'none' to accept results of other shapes and types
                       in the second run; ValueError for another
    debug              has no effect; ValueError with use_reentrant=True or context_fn
    early_stop         has no effect: the second run is complete

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
    checks = determinism_check == "default"
    return _checkpoint(function, preserves, context_fn, checks, args, kwargs)


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
    segments       how many parts they are cut into
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
