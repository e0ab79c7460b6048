"""Tensors that stand for one element of a batch, while vmap() runs a function once.

A Batched has the batch in dimension 0 of its value; its own memory is of the device
meta, in the shape that the function sees. Calls with one come to `call`, which finds
the batching rule of the function; a function without one runs element by element. A
value may be a Batched of an outer vmap(), whose rules its calls come to in turn.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any, TypeGuard

from pydevtensor import _C, _tree
from pydevtensor import autograd as _autograd
from pydevtensor.autograd import _levels
from pydevtensor.random import default_generators

Tensor = _C.Tensor


class Concrete(Exception):
    """The function needs the values of each element: vmap() has to call it for each."""


class _State(threading.local):
    def __init__(self) -> None:
        self.sizes: list[int] = []  # of the batches, the outermost first
        self.draws: list[Draws] = []  # of the calls of vmap(), the outermost first


state = _State()


class Batched(Tensor):
    """One element of a batch, of `level`."""

    value: Any
    level: int

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return call(func, args, kwargs or {})

    def __concrete(self, *unused: Any, **named: Any) -> Any:
        raise Concrete("vmap(): the value of one element was asked for")

    __bool__ = __int__ = __float__ = __index__ = __complex__ = __concrete
    __array__ = item = tolist = numpy = __concrete

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a Tensor without dimensions")
        return int(self.shape[0])

    def __iter__(self) -> Any:
        return iter(self.unbind(0))

    def __repr__(self) -> str:
        return f"Batched(level={self.level}, {self.value!r})"


def wrap(value: Any, level: int) -> Batched:
    """The Batched of a value whose dimension 0 is the batch."""
    with _C.DisableTorchFunctionSubclass():
        shape = [*value.shape][1:]
        like = _C.empty(shape, dtype=value.dtype, device="meta")
        made: Any = _C._make_subclass(Batched, like)
    made.value, made.level = value, level
    return made


def is_batched(x: Any, level: int) -> TypeGuard[Any]:
    return type(x) is Batched and x.level == level


def map_tensors(function: Callable[[Any], Any], result: Any) -> Any:
    """The result of a call with its Tensors replaced; named tuples stay so."""
    if isinstance(result, Tensor):
        return function(result)
    if isinstance(result, (tuple, list)):
        made = [map_tensors(function, each) for each in result]
        return made if type(result) is list else _tuple_like(result, made)
    return result


def _tuple_like(result: Any, made: list[Any]) -> Any:
    if hasattr(result, "_fields"):
        return type(result)(*made)
    named = hasattr(result, "n_sequence_fields")
    return type(result)(made) if named else tuple(made)


def full(x: Any, level: int) -> Any:
    """x with the batch in dimension 0, expanded where it has none."""
    if is_batched(x, level):
        return x.value
    return x.unsqueeze(0).expand([state.sizes[level - 1], *x.shape])


def spread(x: Any, level: int | None = None) -> Any:
    """x as an element of every batch: what a derivative inside of vmap() watches."""
    level = len(state.sizes) if level is None else level
    if not level or not isinstance(x, Tensor):
        return x
    own = is_batched(x, level)
    held: Any = x
    inner = spread(held.value if own else x, level - 1)
    if not own:
        inner = inner.unsqueeze(0).expand([state.sizes[level - 1], *inner.shape])
    return wrap(inner, level)


_levels.spread = spread

# --- calls ----------------------------------------------------------------------------

# Attributes and methods that the memory of a Batched answers itself.
_NAMES = """
shape ndim dtype itemsize nbytes layout dim size numel nelement ndimension is_sparse
is_floating_point is_complex is_signed element_size stride is_contiguous __len__
result_type can_cast is_tensor
"""
_OWN = frozenset(_NAMES.split())
_warned: set[str] = set()


def warn(name: str, text: str) -> None:
    """Once for each function."""
    if name not in _warned:
        _warned.add(name)
        warnings.warn(text, UserWarning, stacklevel=2)


def check_memory(result: Any) -> None:
    """After code that may have worked on the memory of a Batched, where no data is."""
    for x in _tree.flatten(result)[0]:
        if type(x) is not Batched and isinstance(x, Tensor) and x.is_meta:
            raise Concrete("vmap(): a private function has no batching rule")


def level_of(values: Any) -> int:
    """The innermost level among the Tensors of a structure."""
    level = 0
    for value in values:
        if type(value) is Batched:
            level = max(level, value.level)
        elif isinstance(value, (tuple, list)):
            level = max(level, level_of(value))
        elif isinstance(value, slice):
            level = max(level, level_of((value.start, value.stop, value.step)))
    return level


def call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a call with a Batched among its arguments."""
    from pydevtensor.func import _rules

    name = func.__name__
    getter = name == "__get__"
    if getter:
        name = func.__self__.__name__
    if name in _OWN:
        return _C._disabled_torch_function_impl(func, (), args, kwargs)
    if getter:
        return _rules.attribute(name, args[0])
    level = level_of((*args, *kwargs.values()))
    if kwargs.get("out") is not None:
        raise Concrete(f"vmap(): {name}() with out=")
    rule = _rules.find(func, name)
    if rule is not None:
        return rule(level, func, args, kwargs)
    return each(level, func, args, kwargs)


def each(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The call for each element, whose results are stacked."""
    name = func.__name__
    if name.endswith("_") and not name.endswith("__"):
        raise Concrete(f"vmap(): {name}() has no batching rule, and writes in place")
    warn(name, f"vmap(): {name}() has no batching rule, and runs for each element")
    leaves, unflatten = _tree.flatten((args, kwargs))
    rows = []
    for i in range(state.sizes[level - 1]):
        given, named = unflatten(
            [x.value[i] if is_batched(x, level) else x for x in leaves]
        )
        rows.append(func(*given, **named))
    return stacked(rows, level)


def stacked(rows: list[Any], level: int) -> Any:
    first = rows[0]
    if isinstance(first, Tensor):
        if any(row.shape != first.shape for row in rows):
            raise Concrete("vmap(): results of elements have several shapes")
        return wrap(_C.stack(rows), level)
    if isinstance(first, (tuple, list)):
        columns = [stacked([*column], level) for column in zip(*rows, strict=True)]
        return columns if type(first) is list else _tuple_like(first, columns)
    if any(row != first for row in rows):
        raise Concrete("vmap(): results of elements are no Tensors, and differ")
    return first


# --- random numbers -------------------------------------------------------------------


class Draws:
    """Whether the function of a vmap() may draw random numbers, and has."""

    def __init__(self, name: str, randomness: str) -> None:
        self.name, self.randomness = name, randomness
        self.refused = False  # and so has raised an error
        self.generators = default_generators()
        self.first = self.known = self.states()

    def states(self) -> list[Any]:
        return [each.get_state() for each in self.generators]

    def restore(self) -> None:
        for generator, before in zip(self.generators, self.first, strict=True):
            generator.set_state(before)

    def has_drawn(self) -> bool:
        return not all(map(_C.equal, self.known, self.states()))

    def __enter__(self) -> None:
        state.draws.append(self)

    def __exit__(self, *error: object) -> None:
        state.draws.pop()

    def batched(self, function: Callable[[], Any]) -> Any:
        """function(), which draws for the whole batch."""
        if self.randomness == "error":
            self.refuse()
        if self.randomness == "same":
            raise Concrete("the same random numbers are drawn for all elements")
        self.check()
        result = function()
        self.known = self.states()
        return result

    def check(self) -> None:
        """After draws that are for one element."""
        if self.randomness != "same" and self.has_drawn():
            if self.randomness == "error":
                self.refuse()
            raise Concrete("random numbers are drawn for each element")

    def refuse(self) -> None:
        self.restore()
        self.refused = True
        raise RuntimeError(
            f"{self.name}: the function draws random numbers; give randomness="
            "'different' or 'same'"
        )

    def begin(self, i: int) -> None:
        """Before a call for element i."""
        if self.randomness == "same" and i:
            self.restore()

    def end(self) -> None:
        if self.randomness == "error" and self.has_drawn():
            self.refuse()


# --- backward passes ------------------------------------------------------------------


def _run(function: str, *arguments: Any) -> Any:
    """A pass whose Tensors are elements of a batch; NotImplemented for others.

    arguments: those of autograd's _run().
    """
    tensors, given, inputs, retain_graph, create_graph, accumulates = arguments
    seeds = (
        (None,) * len(tensors) if given is None else tuple(_autograd._as_tuple(given))
    )
    level = level_of((*tensors, *seeds, *inputs))
    if not level:
        return NotImplemented
    if accumulates:
        raise Concrete("vmap(): backward(), which adds to .grad")
    size = state.sizes[level - 1]
    keep = create_graph if retain_graph is None else retain_graph

    def run(outs: Any, grads: Any, ins: Any, last: bool = True) -> Any:
        return _autograd._run(
            function, outs, grads, ins, keep or not last, create_graph, False
        )

    if not any(is_batched(o, level) for o in tensors):
        rows = [
            run(
                tensors,
                tuple(s.value[i] if is_batched(s, level) else s for s in seeds),
                tuple(x.value if is_batched(x, level) else x for x in inputs),
                i == size - 1,
            )
            for i in range(size)
        ]
        return tuple(
            None if c[0] is None else wrap(_C.stack(c), level)
            for c in zip(*rows, strict=True)
        )
    outs = tuple(full(o, level) for o in tensors)
    whole = tuple(
        _C.ones_like(o) if s is None else full(s, level)
        for o, s in zip(outs, seeds, strict=True)
    )
    ins = tuple(x.value if is_batched(x, level) else x for x in inputs)
    if all(is_batched(x, level) for x in inputs):
        found = run(outs, whole, ins)
        return tuple(None if g is None else wrap(g, level) for g in found)
    # The gradient of each element for an input that all share: by a pass for each.
    rows = []
    for i in range(size):
        chosen = tuple(_C.zeros_like(s) for s in whole)
        for zeros, s in zip(chosen, whole, strict=True):
            zeros[i] = s[i]
        rows.append(run(outs, chosen, ins, i == size - 1))
    return tuple(
        None
        if column[0] is None
        else wrap(sum(column[1:], column[0]), level)
        if is_batched(x, level)
        else wrap(_C.stack(column), level)
        for x, column in zip(inputs, zip(*rows, strict=True), strict=True)
    )


_autograd._batched_run = _run
