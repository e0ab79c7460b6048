"""Automatic differentiation: backward(), grad modes, Function, gradcheck()."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias, TypeVar, cast

from pydevtensor import _C
from pydevtensor._kinds import is_distributed as _is_distributed
from pydevtensor._names import publish as _publish
from pydevtensor.autograd._hooks import GradientEdge as _GradientEdge
from pydevtensor.autograd._hooks import RemovableHandle as RemovableHandle
from pydevtensor.autograd._hooks import _add_hook as _add_hook

Tensor: TypeAlias = _C.Tensor
_is_tensor: Callable[[Any], bool] = _C.is_tensor
_Function = TypeVar("_Function", bound=Callable[..., Any])


# --- modes --------------------------------------------------------------------------


class _Mode:
    """A context manager and decorator that sets whether operations are recorded."""

    _enabled: bool
    _before: bool | None = None  # the mode to restore, if not that of the entry

    def __new__(cls, function: Any = None) -> Any:
        mode = super().__new__(cls)
        if not callable(function):
            return mode
        mode._outer = []
        return mode(function)  # @torch.no_grad without parentheses

    def __init__(self) -> None:
        self._outer: list[bool] = []

    def __enter__(self) -> None:
        before = _C._exchange_grad_enabled(self._enabled)
        self._outer.append(before if self._before is None else self._before)

    def __exit__(self, *unused: object) -> None:
        _C._exchange_grad_enabled(self._outer.pop())

    def __call__(self, function: _Function) -> _Function:
        flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
        if flags & 0x20:  # inspect.isgeneratorfunction(), without importing inspect
            return cast(_Function, self._wrap_generator(function))

        @functools.wraps(function)
        def in_mode(*args: Any, **kwargs: Any) -> Any:
            with self._copy():
                return function(*args, **kwargs)

        return cast(_Function, in_mode)

    def _copy(self) -> _Mode:
        fresh = object.__new__(type(self))
        fresh._enabled = self._enabled
        fresh._outer = []
        return fresh

    def _wrap_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        # The mode holds while the generator runs, not while its caller does.
        @functools.wraps(function)
        def in_mode(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            resume, value = generator.send, None
            while True:
                with self._copy():
                    try:
                        item = resume(value)
                    except StopIteration as stop:
                        return stop.value
                try:
                    resume, value = generator.send, (yield item)
                except GeneratorExit:
                    with self._copy():
                        generator.close()
                    raise
                except BaseException as error:
                    resume, value = generator.throw, error

        return in_mode


class no_grad(_Mode):
    """Disables recording: `with torch.no_grad():` or `@torch.no_grad()`.

    function: the function that is decorated.

    See also enable_grad() and inference_mode().

    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    _enabled = False


class enable_grad(_Mode):
    """Enables recording inside no_grad().

    function: the function that is decorated.

    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.no_grad(), torch.enable_grad():
    ...     y = x * 2
    >>> y.requires_grad
    True
    """

    _enabled = True


class set_grad_enabled(_Mode):
    """Enables or disables recording, from this call on or in a `with` block.

    mode: whether operations are recorded, in this thread.

    See also no_grad() and enable_grad().

    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.set_grad_enabled(False):
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self._enabled = bool(mode)
        self._before = _C._exchange_grad_enabled(self._enabled)

    def __call__(self, function: _Function) -> _Function:
        _C._exchange_grad_enabled(self._before)
        return super().__call__(function)


_inference_depth = 0


class inference_mode(_Mode):
    """Disables recording, as no_grad(); results may be used in recorded code later.

    mode: False leaves recording unchanged.

    >>> with torch.inference_mode():
    ...     torch.is_grad_enabled()
    False
    """

    _enabled = False

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._enabled = not mode and _C.is_grad_enabled()

    def __enter__(self) -> None:
        global _inference_depth
        super().__enter__()
        _inference_depth += not self._enabled

    def __exit__(self, *unused: object) -> None:
        global _inference_depth
        _inference_depth -= not self._enabled
        super().__exit__(*unused)


def is_inference_mode_enabled() -> bool:
    """Whether an inference_mode() block is active.

    >>> torch.is_inference_mode_enabled()
    False
    """
    return _inference_depth > 0


# --- backward passes ----------------------------------------------------------------


def _as_tuple(value: Any) -> tuple[Any, ...]:
    alone = _is_tensor(value) or isinstance(value, _GradientEdge)
    return (value,) if alone else tuple(value)


def _shape_of(root: Any) -> list[int] | None:
    """That of a Tensor, or at an edge; None where it does not matter, or is unknown."""
    if isinstance(root, _GradientEdge):
        facts = root.node._input_metadata[root.output_nr]
        return facts and [*facts.shape]
    return [*root.shape] if _is_tensor(root) and root.requires_grad else None


_in_dual_level = False  # which forward_ad says
_batched_run: Any = None  # func's: a pass of Tensors of vmap()


def _run(
    function: str,
    tensors: tuple[Any, ...],
    given: Any,
    inputs: tuple[Any, ...],
    retain_graph: bool | None,
    create_graph: bool,
    accumulates: bool,
) -> Any:
    """A backward pass from tensors, whose gradients are those given."""
    if _batched_run is not None:
        found = _batched_run(
            function, tensors, given, inputs, retain_graph, create_graph, accumulates
        )
        if found is not NotImplemented:
            return found
    gradients = (None,) * len(tensors) if given is None else _as_tuple(given)
    if len(gradients) != len(tensors):
        raise RuntimeError(
            f"{function}(): {len(tensors)} tensors and {len(gradients)} gradients were "
            "given; give one gradient (or None) for each"
        )
    for tensor, gradient in zip(tensors, gradients, strict=True):
        shape = _shape_of(tensor)
        if shape is None and not isinstance(tensor, _GradientEdge):
            continue  # which the extension refuses
        if gradient is None:
            if shape is None or prod(shape) != 1:
                raise RuntimeError(
                    f"{function}(): grad can be implicitly created only for scalar "
                    f"outputs, and this result has shape {shape}; reduce it first, "
                    "e.g. with .sum(), or give gradient=torch.ones_like(result)"
                )
        elif not _is_tensor(gradient):
            raise TypeError(
                f"{function}(): a gradient must be a Tensor or None, and it is "
                f"{gradient!r} ({type(gradient).__name__})"
            )
        elif shape is not None and [*gradient.shape] != shape:
            raise RuntimeError(
                f"{function}(): the gradient has shape {[*gradient.shape]} and the "
                f"result {shape}; give a gradient of the result's shape"
            )
    keep = create_graph if retain_graph is None else retain_graph
    if _in_dual_level and not accumulates:
        keep = create_graph = True  # gradients have tangents too
    return _C._run_backward(
        function, tensors, gradients, inputs, keep, create_graph, accumulates
    )


def _warn_of(text: str) -> None:
    import warnings

    warnings.warn(text, FutureWarning, stacklevel=3)


def backward(
    tensors: Tensor | _GradientEdge | Sequence[Tensor | _GradientEdge],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Tensor | Sequence[Tensor | None] | None = None,
    inputs: Tensor | _GradientEdge | Sequence[Tensor | _GradientEdge] | None = None,
) -> None:
    """Add the gradients of tensors to the .grad of the leaves they depend on.

    grad_tensors: the gradient of each of them, None for one with a single element.
    inputs: the only Tensors whose .grad is set. Errors are those of Tensor.backward.

    retain_graph    keep the graph for another pass; by default create_graph
    create_graph    record the pass itself, for second derivatives
    grad_variables  deprecated: an older name of grad_tensors

    >>> x = torch.ones(2, requires_grad=True)
    >>> torch.autograd.backward((x * 3).sum())
    >>> x.grad
    tensor([3., 3.])
    """
    tensors = _as_tuple(tensors)
    if grad_variables is not None:
        _warn_of("backward(): grad_variables is deprecated; call it grad_tensors")
        if grad_tensors is not None:
            raise RuntimeError(
                "backward(): grad_tensors and grad_variables were given; give the first"
            )
        grad_tensors = grad_variables
    wanted = () if inputs is None else _as_tuple(inputs)
    if inputs is not None and not wanted:
        raise RuntimeError("backward(): inputs is empty; leave it out for all leaves")
    _run("backward", tensors, grad_tensors, wanted, retain_graph, create_graph, True)


def grad(
    outputs: Tensor | _GradientEdge | Sequence[Tensor | _GradientEdge],
    inputs: Tensor | _GradientEdge | Sequence[Tensor | _GradientEdge],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of outputs with respect to inputs; .grad does not change.

    For an input that outputs do not depend on: None with allow_unused, zeros with
    materialize_grads, else RuntimeError.

    grad_outputs      the gradient of each of outputs, None for one with a single
                      element
    retain_graph      keep the graph for another pass; by default create_graph
    create_graph      record the pass itself, for second derivatives
    only_inputs       deprecated: it is always true
    is_grads_batched  grad_outputs have a dimension more in front, and so have the
                      gradients: a pass for each element of it

    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> torch.autograd.grad(x ** 2, x)
    (tensor(6.),)
    """
    outputs, inputs = _as_tuple(outputs), _as_tuple(inputs)
    outputs = tuple(x._without_terms() if _is_distributed(x) else x for x in outputs)
    if not only_inputs:
        _warn_of("grad(): only_inputs=False has no effect; use backward()")
    if not inputs:
        raise ValueError("grad(): inputs is empty; give one Tensor or more")
    if is_grads_batched:
        found = _run_each(outputs, grad_outputs, inputs, retain_graph, create_graph)
    else:
        found = _run(
            "grad", outputs, grad_outputs, inputs, retain_graph, create_graph, False
        )
    found = tuple(
        x._gradient(g) if g is not None and _is_distributed(x) else g
        for x, g in zip(inputs, found, strict=True)
    )
    if materialize_grads:
        return tuple(
            _C.zeros_like(x) if g is None else g
            for x, g in zip(inputs, found, strict=True)
        )
    if not allow_unused:
        for i, gradient in enumerate(found):
            if gradient is None:
                raise RuntimeError(
                    f"grad(): inputs[{i}] was not used to compute outputs (or only "
                    "under no_grad()); remove it, or give allow_unused=True"
                )
    return found


# --- hooks --------------------------------------------------------------------------


def _run_each(
    outputs: tuple[Any, ...],
    given: Any,
    inputs: tuple[Any, ...],
    retain_graph: bool | None,
    create_graph: bool,
) -> tuple[Any, ...]:
    """A pass for each element of the first dimension of the gradients given."""
    seeds = () if given is None else _as_tuple(given)
    sizes = {len(g) for g in seeds if g is not None}
    if len(sizes) != 1:
        raise RuntimeError(
            f"grad(): with is_grads_batched=True, the first dimensions of grad_outputs "
            f"have sizes {sorted(sizes)}; give gradients with one size"
        )
    count, rows = sizes.pop(), []
    for i in range(count):
        chosen = tuple(g if g is None else g[i] for g in seeds)
        last = i == count - 1
        keep = (create_graph if retain_graph is None else retain_graph) or not last
        rows.append(_run("grad", outputs, chosen, inputs, keep, create_graph, False))
    return tuple(
        None if each[0] is None else _C.stack(each) for each in zip(*rows, strict=True)
    )


# --- custom operations --------------------------------------------------------------


class FunctionCtx:
    """The context that passes values from forward() to backward().

    >>> class Scale(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x, factor):
    ...         ctx.factor = factor
    ...         return x * factor
    ...     @staticmethod
    ...     def backward(ctx, gradient):
    ...         return gradient * ctx.factor, None
    >>> x = torch.ones(2, requires_grad=True)
    >>> Scale.apply(x, 3).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    """

    def __init__(self) -> None:
        self.needs_input_grad: tuple[bool, ...] = ()
        self._saved: tuple[Any, ...] = ()
        self._undifferentiable: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._materialize = True
        self._node: Any = None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save tensors, inputs or results, which backward() finds in saved_tensors.

        Reading them raises RuntimeError where they were modified in place, and after a
        backward pass that did not retain the graph. TypeError for other objects.
        """
        for i, tensor in enumerate(tensors):
            if not (tensor is None or _is_tensor(tensor) or hasattr(tensor, "layout")):
                raise TypeError(
                    f"save_for_backward(): argument {i} is a {type(tensor).__name__}; "
                    "save Tensors, and make all else an attribute of ctx"
                )
        self._saved = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Has no effect, whatever tensors are: jvp() of a Function is not called.

        Tangents come from backward(), which forward_ad differentiates.
        """

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Mark tensors, results that have no gradient."""
        self._undifferentiable = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Mark tensors, inputs that forward() modified in place."""
        self._dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Set what backward() gets for a missing gradient.

        value: True for zeros, the default; False for None.
        """
        self._materialize = bool(value)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors given to save_for_backward()."""
        if self._node is None:
            return self._saved
        return tuple(
            kept if tensor is None else tensor
            for kept, tensor in zip(self._saved, self._node.saved_tensors, strict=True)
        )


class Function:
    """Base of operations with a custom derivative.

    >>> class Cube(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x ** 3
    ...     @staticmethod
    ...     def backward(ctx, gradient):
    ...         (x,) = ctx.saved_tensors
    ...         return gradient * 3 * x ** 2
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    def __init__(self) -> None:
        raise RuntimeError(
            f"{type(self).__name__}: a Function cannot be instantiated; call "
            f"{type(self).__name__}.apply(...)"
        )

    @staticmethod
    def forward(ctx: FunctionCtx, *args: Any) -> Any:
        """Compute the results of args, without recording.

        ctx: keeps tensors and attributes for backward().
        """
        raise NotImplementedError("Function.forward: define it as a staticmethod")

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Any) -> Any:
        """The gradients of forward()'s arguments, None for those without.

        ctx: what forward() kept. grads: the gradient of each of its results.
        """
        raise NotImplementedError("Function.backward: define it as a staticmethod")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run forward() and record it with backward() as its derivative."""
        ctx = FunctionCtx()
        recorded = _C.is_grad_enabled()
        ctx.needs_input_grad = tuple(_is_tensor(a) and a.requires_grad for a in args)
        recorded = recorded and any(ctx.needs_input_grad)
        with no_grad():
            if "setup_context" in cls.__dict__:
                results = cls.forward(*args)
                cls.setup_context(ctx, args, results)  # type: ignore[attr-defined]
            else:
                results = cls.forward(ctx, *args)
        one = not isinstance(results, tuple)
        outputs = (results,) if one else results
        # An argument that is returned becomes a new Tensor.
        outputs = tuple(
            o.detach()
            if _is_tensor(o)
            and any(o is a for a in args)
            and not any(o is d for d in ctx._dirty)
            else o
            for o in outputs
        )
        if recorded:
            made = tuple(
                None if any(o is u for u in ctx._undifferentiable) else o
                for o in outputs
            )
            name = getattr(cls, "_node", f"{cls.__name__}Backward")
            run, fills, kept = cls._run(ctx), ctx._materialize, ctx._saved
            # The node has the Tensors from now on; here they would be a cycle.
            ctx._saved = tuple(None if _is_tensor(t) else t for t in kept)
            _C._record_function(name, run, args, made, fills, kept)
        return outputs[0] if one else outputs

    @classmethod
    def _run(cls, ctx: FunctionCtx) -> Callable[..., Any]:
        def run(node: Any, *grads: Any) -> Any:
            ctx._node = node
            try:
                return cls.backward(ctx, *grads)
            finally:
                ctx._node = None

        return run


def _context_value(run: Any, name: str) -> Any:
    """An attribute of the ctx of a Function's node, which calls `run`."""
    cells = zip(run.__code__.co_freevars, run.__closure__ or (), strict=True)
    ctx = {name: cell.cell_contents for name, cell in cells}.get("ctx")
    return getattr(ctx, name)


# Importing from autograd.function makes it a name here; `function` is a parameter too.
from pydevtensor.autograd import functional as functional  # noqa: E402
from pydevtensor.autograd import grad_mode as grad_mode  # noqa: E402
from pydevtensor.autograd import graph as graph  # noqa: E402
from pydevtensor.autograd import variable as variable  # noqa: E402
from pydevtensor.autograd._checks import GradcheckError as GradcheckError  # noqa: E402
from pydevtensor.autograd._checks import gradcheck as gradcheck  # noqa: E402
from pydevtensor.autograd._checks import gradgradcheck as gradgradcheck  # noqa: E402
from pydevtensor.autograd.anomaly_mode import (  # noqa: E402
    detect_anomaly as detect_anomaly,
)
from pydevtensor.autograd.anomaly_mode import (  # noqa: E402
    set_detect_anomaly as set_detect_anomaly,
)
from pydevtensor.autograd.function import once_differentiable as _  # noqa: E402, F401
from pydevtensor.autograd.grad_mode import (  # noqa: E402
    is_multithreading_enabled as is_multithreading_enabled,
)
from pydevtensor.autograd.grad_mode import (  # noqa: E402
    set_multithreading_enabled as set_multithreading_enabled,
)
from pydevtensor.autograd.variable import Variable as Variable  # noqa: E402

_publish(
    __name__,
    later=["forward_ad", "profiler"],
    home_of=["GradcheckError", "RemovableHandle"],
)
