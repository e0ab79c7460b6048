"""torch.compiler: the program itself runs, and chains in one pass over the memory.

Nothing is traced or translated: the program runs as it is written, with all of Python.
While a compiled function runs, elementwise operations on tensors of GPUs, and on large
tensors of the CPU, wait, and run together when a value is needed (docs/fusion.md).
Values are those of the program that is not compiled, bit for bit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pydevtensor import _C
from pydevtensor._answers import answer as _answer
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import _Mode

__all__ = ["compile", "cudagraph_mark_step_begin", "disable", "explain", "fused"]
__all__ += ["get_default_backend", "is_compiling", "is_dynamo_compiling"]
__all__ += ["is_exporting", "reset", "set_default_backend", "set_stance"]
__all__ += ["substitute_in_graph"]

_STANCES = ["default", "force_eager", "eager_on_recompile", "fail_on_recompile"]
_STANCES += ["eager_then_compile", "aot_eager_then_compile"]

_stance = "default"
_backend: Any = "inductor"


class fused(_Mode):
    """In this block, or in calls of this function, elementwise operations wait for one
    pass over the memory, and so do, on the CPU, sums or softmax of their results.

    It concerns tensors on GPUs, and those on the CPU of 16384 elements or more, in the
    calling thread, and the backward pass of what is recorded here. Results that nobody
    holds any more when the pass begins are never stored. Values are those without
    fused(), bit for bit.

    >>> x = torch.linspace(-1, 1, 100_000)
    >>> with torch.fused():
    ...     y = torch.relu(x * x + x)
    >>> y[-1]
    tensor(2.)
    """

    _enabled = True

    def __enter__(self) -> None:
        _C._fusion_begin()

    def __exit__(self, *unused: object) -> None:
        _C._fusion_end()


class _Compiled(fused):
    """fused(), unless the stance is that compiled functions run eagerly."""

    def __enter__(self) -> None:
        self._outer.append(_stance != "force_eager")
        if self._outer[-1]:
            super().__enter__()

    def __exit__(self, *unused: object) -> None:
        if self._outer.pop():
            super().__exit__()


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[Any, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:
    """A function that calls model in fused(); a module is changed itself, and returned.

    Without model, a decorator that does the same. The function has explain(*args), as
    torch.compiler.explain() with it. disable: returns model unchanged. Raises
    TypeError for what cannot be called.

    fullgraph, dynamic, backend, mode, options, name, recompile_limit,
    isolate_recompiles and shapes_spec are PyTorch's and have no effect.

    >>> f = torch.compile(lambda x: torch.relu(x * x + x), mode='max-autotune')
    >>> f(torch.tensor([-2.0, 1.0]))
    tensor([2., 2.])
    """
    if model is None:
        return functools.partial(compile, disable=disable)
    if not callable(model):
        raise TypeError(
            f"compile(): a {type(model).__name__} was given; give a function or a "
            "module"
        )
    if disable:
        return model
    if hasattr(model, "_fuses"):  # a module
        model.compile()  # type: ignore[attr-defined]
        return model
    function: Any = _Compiled()(model)
    function.explain = functools.partial(explain, model)
    return function


def explain(model: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """A text about a call of model: each chain that was fused, and what ended it.

    Bytes are those read and written in one pass, and by the operations one by one.
    Lines are those of the program. On a GPU a chain that has run often has a kernel of
    its own.

    >>> x = torch.ones(100_000)
    >>> text = torch.compiler.explain(lambda x: torch.relu(x * x + x), x)
    >>> print(text)  # doctest: +ELLIPSIS
    100000 elements: 0.8 MB moved, not 3.2
      mul    <doctest ...>:1 not stored
      add    <doctest ...>:1 not stored
      relu   <doctest ...>:1 stored
      ended by: the end of the block
    """
    reports: list[Any] = []
    _C._fusion_listen(reports)
    try:
        with fused():
            kept = model(*args, **kwargs)  # what the caller would hold
    finally:
        _C._fusion_listen(None)
    del kept
    lines = []
    for why, numel, moved, apart, compiled, steps in reports:
        lines.append(
            f"{numel} elements: {moved / 1e6:.1f} MB moved, not {apart / 1e6:.1f}"
            + ", by a kernel of its own" * compiled
        )
        width = max(len(step[0]) for step in steps) + 2
        for name, line, stored, wanted in steps:
            fate = "stored" if stored else "not stored" if wanted else "not computed"
            lines.append(f"  {name:{width}} {line or 'backward':20} {fate}")
        lines.append(f"  ended by: {why}")
    return "\n".join(lines) or "nothing was fused"


def disable(fn: Any = None, recursive: bool = True, *, reason: Any = None) -> Any:
    """The function itself, or a decorator that gives it back.

    >>> torch.compiler.disable(torch.exp) is torch.exp
    True
    """
    return disable if fn is None else fn


class set_stance:
    """Let compiled functions run eagerly: with "force_eager", until another stance is
    set, or in this block, or in calls of this function.

    The other stances of PyTorch are as "default": nothing is compiled anew here.
    Raises RuntimeError for an unknown stance, and for a force_backend with a stance
    that is not "default"; skip_guard_eval_unsafe and force_backend have no effect.

    >>> double = torch.compile(lambda x: x * 2)
    >>> with torch.compiler.set_stance('force_eager'):
    ...     double(torch.tensor(1.5))
    tensor(3.)
    """

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend: Any = None,
    ) -> None:
        global _stance
        if stance not in _STANCES:
            raise RuntimeError(
                f"set_stance(): {stance!r} was given; give one of {', '.join(_STANCES)}"
            )
        if force_backend is not None and stance != "default":
            raise RuntimeError(
                f"set_stance(): force_backend was given with {stance!r}; give it with "
                "'default' alone"
            )
        self._new, self._before = stance, _stance
        _stance = stance

    def __enter__(self) -> None:
        global _stance
        _stance = self._new

    def __exit__(self, *unused: object) -> None:
        global _stance
        _stance = self._before

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function with the stance in its calls alone."""
        global _stance
        _stance = self._before

        @functools.wraps(function)
        def with_stance(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self._new):
                return function(*args, **kwargs)

        return with_stance


def get_default_backend() -> Any:
    """The value that set_default_backend() was given; "inductor" at first.

    >>> torch.compiler.get_default_backend()
    'inductor'
    """
    return _backend


def set_default_backend(backend: Any) -> None:
    """Remember backend, a name or a function; None: "inductor". It has no effect.

    Raises TypeError for anything else.

    >>> torch.compiler.set_default_backend(None)
    """
    global _backend
    if backend is not None and not isinstance(backend, str) and not callable(backend):
        raise TypeError(
            f"set_default_backend(): {type(backend).__name__} was given; give a name "
            "or a function"
        )
    _backend = "inductor" if backend is None else backend


def substitute_in_graph(
    original_fn: Any,
    *,
    can_constant_fold_through: bool = False,
    skip_signature_check: bool = False,
    is_embedded_type: bool = False,
) -> Callable[[Any], Any]:
    """A decorator that gives back its function, which PyTorch would trace in place of
    original_fn: here original_fn itself runs.

    The other arguments are PyTorch's and have no effect.

    >>> import operator
    >>> @torch.compiler.substitute_in_graph(operator.indexOf)
    ... def index_of(values, value, /):
    ...     return [*values].index(value)
    """
    return lambda traceable_fn: traceable_fn


cudagraph_mark_step_begin = _answer(__name__, "cudagraph_mark_step_begin", None)
is_compiling = _answer(__name__, "is_compiling", False)
is_dynamo_compiling = _answer(__name__, "is_dynamo_compiling", False)
is_exporting = _answer(__name__, "is_exporting", False)
reset = _answer(__name__, "reset", None)

_publish(__name__)
