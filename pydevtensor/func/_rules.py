"""Batching rules: how a function of one element runs on the whole batch at once.

A rule gets the level, the function and its arguments. What a family of functions has in
common is a rule of the family; tables say which functions are of it.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

from pydevtensor import _C
from pydevtensor._functions.element_names import element_names
from pydevtensor.func._batched import (
    Concrete,
    check_memory,
    each,
    full,
    is_batched,
    map_tensors,
    state,
    wrap,
)

Tensor = _C.Tensor
_rules: dict[str, Callable[..., Any]] = {}


def _rule(*names: str) -> Callable[[Any], Any]:
    def add(rule: Any) -> Any:
        _rules.update(dict.fromkeys(names, rule))
        return rule

    return add


def find(func: Any, name: str) -> Any:
    """The rule of a function, or None."""
    from pydevtensor.func import _index_rules, _layer_rules  # noqa: F401

    return _rules.get(name) or _elementwise_rules().get(name) or _composite(func, name)


def attribute(name: str, x: Any) -> Any:
    """An attribute of a Batched."""
    level = x.level
    if name == "mT":
        return x.transpose(-2, -1)
    if name in ("T", "H", "mH"):
        turned = x.permute([*range(x.ndim)][::-1]) if name == "T" else x.mT
        return turned if name == "T" else turned.conj()
    found = getattr(x.value, name)
    if name in ("data", "real", "imag", "grad") and isinstance(found, Tensor):
        return wrap(found, level)
    return found


def _wrapped(result: Any, level: int) -> Any:
    return map_tensors(lambda x: wrap(x, level), result)


def _value(x: Any, level: int) -> Any:
    return x.value if is_batched(x, level) else x


def _given(args: Any, kwargs: dict[str, Any]) -> list[Any]:
    return [*args, *kwargs.values()]


def _target(x: Any, level: int) -> Any:
    if not is_batched(x, level):
        raise Concrete("vmap(): a batch is written into a Tensor that all share")
    return x.value


# --- elements -------------------------------------------------------------------------


# Functions of matrices, or of one dimension, that also take a batch of them.
_BATCHES = """
tril triu one_hot inv det logdet slogdet cholesky eigh eigvalsh svdvals matrix_exp
matrix_power qr view_as_real view_as_complex
"""


@functools.cache
def _elementwise_rules() -> dict[str, Any]:
    batches = _BATCHES.split()
    batches += [name + "_" for name in batches]
    return dict.fromkeys([*element_names(), *batches], elementwise)


def _aligned(x: Any, level: int, ndim: int) -> Any:
    """The value with dimensions of 1 after the batch: as many as the others have."""
    if not is_batched(x, level):
        return x
    missing = ndim - x.ndim
    if missing <= 0:
        return x.value
    shape = [*x.value.shape]
    return x.value.reshape(shape[:1] + [1] * missing + shape[1:])


def elementwise(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    name = func.__name__
    tensors = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
    ndim = max(x.ndim for x in tensors)
    in_place = (name[-1] == "_" and name[-2:] != "__") or (
        name[:3] == "__i" and name != "__invert__"
    )
    if in_place:
        _target(args[0], level)
        if args[0].ndim < ndim:
            raise Concrete(f"vmap(): {name}() would change the number of dimensions")
    cast = None
    if not in_place and len(tensors) > 1:
        mixed = tensors[1:] if name == "where" else tensors
        if len({x.dtype for x in mixed}) > 1:  # an element of no dimension gives way
            cast = _C.result_type(*mixed) if len(mixed) == 2 else None

    def given(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        value = _aligned(x, level, ndim)
        masks = value.dtype == _C.bool
        return value if cast is None or masks else value.to(cast)

    result = func(*map(given, args), **{k: given(v) for k, v in kwargs.items()})
    return args[0] if in_place else _wrapped(result, level)


# --- dimensions -----------------------------------------------------------------------


@functools.cache
def _parameters(func: Any) -> dict[str, Any]:
    return {p.name: p.default for p in inspect.signature(func).parameters.values()}


class _Arguments:
    """The arguments of a call by name, which a rule replaces."""

    def __init__(self, func: Any, args: Any, kwargs: dict[str, Any]) -> None:
        self.func, self.args, self.kwargs = func, [*args], dict(kwargs)
        self.known = _parameters(func)
        self.places = {name: i for i, name in enumerate(self.known)}

    def get(self, name: str, default: Any = None) -> Any:
        place = self.places.get(name, len(self.args))
        if place < len(self.args):
            return self.args[place]
        if name in self.kwargs:
            return self.kwargs[name]
        known = self.known.get(name, default)
        return default if known is inspect.Parameter.empty else known

    def set(self, name: str, value: Any) -> None:
        place = self.places.get(name, len(self.args))
        if place < len(self.args):
            self.args[place] = value
        else:
            self.kwargs[name] = value

    def run(self, *first: Any) -> Any:
        return self.func(*first, *self.args[len(first) :], **self.kwargs)


def _shifted(dim: Any, ndim: int) -> Any:
    if isinstance(dim, (tuple, list)):
        return [_shifted(d, ndim) for d in dim]
    ndim = max(ndim, 1)
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}],"
            f" but got {dim})"
        )
    return dim % ndim + 1


def _along(*dims: str) -> Callable[..., Any]:
    """Functions along dimensions, which the parameters named say; None is all."""

    def rule(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        a = _Arguments(func, args, kwargs)
        x, flat = args[0], False
        ndim = max(y.ndim for y in args if isinstance(y, Tensor))
        for place, y in enumerate(a.args):
            if isinstance(y, Tensor):
                y = full(y, level)
                a.args[place] = y.reshape([*y.shape, 1]) if ndim == 0 else y
        for key, y in kwargs.items():
            if isinstance(y, Tensor):
                a.kwargs[key] = full(y, level)
        for name in dims:
            dim = a.get(name)
            if dim is None or (dim == () and name == "dim"):
                flat = True
                size = [*a.args[0].shape][:1]
                a.args[0] = a.args[0].reshape([*size, -1])
                a.set(name, 1)
            else:
                a.set(name, _shifted(dim, ndim))
        if flat and a.get("keepdim"):
            a.set("keepdim", False)
            result = a.run()
            ones = [1] * x.ndim
            return map_tensors(
                lambda y: wrap(y.reshape([*y.shape, *ones]), level), result
            )
        result = a.run()
        if ndim == 0:
            result = map_tensors(lambda y: y.reshape([*y.shape][:1]), result)
        return _wrapped(result, level)

    return rule


_ALONG = """
sum nansum mean nanmean amax amin prod std var all any logsumexp count_nonzero
std_mean var_mean argmax argmin nanmedian aminmax norm vector_norm quantile
nanquantile softmax log_softmax softmin cumsum cumprod logcumsumexp cummax cummin sort
argsort topk kthvalue mode glu unbind split chunk tensor_split unsafe_split
unsafe_chunk split_with_sizes select narrow gather scatter scatter_add scatter_reduce
take_along_dim cosine_similarity diff msort cross renorm unflatten
"""
for _names, _dims in {
    _ALONG: ("dim",),
    "movedim moveaxis": ("source", "destination"),
    "transpose swapdims": ("dim0", "dim1"),
    "swapaxes": ("axis0", "axis1"),
    "diagonal": ("dim1", "dim2"),
    "flatten": ("start_dim", "end_dim"),
    "unfold": ("dimension",),
}.items():
    _rule(*_names.split())(_along(*_dims))


@_rule("max", "min", "median")
def _extreme(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    if len(args) + len(kwargs) == 1:
        x = args[0].value
        flat = x.reshape([*x.shape][:1] + [-1])
        return wrap(getattr(flat, func.__name__)(1)[0], level)
    if isinstance(args[1] if len(args) > 1 else kwargs.get("other"), Tensor):
        return elementwise(level, func, args, kwargs)
    return _along("dim")(level, func, args, kwargs)


@_rule("squeeze")
def _squeeze(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    x = args[0]
    if len(args) + len(kwargs) == 1:
        kept = [n for n in x.shape if n != 1]
        return wrap(x.value.reshape([state.sizes[level - 1], *kept]), level)
    return _along("dim")(level, func, args, kwargs) if x.ndim else x


@_rule("unsqueeze")
def _unsqueeze(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    dim = kwargs.get("dim", args[-1])
    return wrap(args[0].value.unsqueeze(_shifted(dim, args[0].ndim + 1)), level)


@_rule("t")
def _transposed(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    return args[0] if args[0].ndim < 2 else wrap(args[0].value.transpose(1, 2), level)


def _sizes(args: Any, kwargs: dict[str, Any]) -> list[Any]:
    """The numbers of a call with a list, or with each of them."""
    given = [*args[1:], *kwargs.values()]
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        return [*given[0]]
    return given


@_rule("permute", "flip", "fliplr", "flipud")
def _permute(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    x, name = args[0], func.__name__
    if name in ("fliplr", "flipud"):
        return wrap(x.value.flip(2 if name == "fliplr" else 1), level)
    dims = _shifted(_sizes(args, kwargs), x.ndim)
    made = x.value.permute([0, *dims]) if name == "permute" else x.value.flip(dims)
    return wrap(made, level)


@_rule("roll")
def _roll(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    a = _Arguments(func, args, kwargs)
    x, shifts, dims = args[0], a.get("shifts"), a.get("dims")
    if dims is None or dims == ():
        flat = x.value.reshape([state.sizes[level - 1], -1]).roll(shifts, 1)
        return wrap(flat.reshape([*x.value.shape]), level)
    return wrap(x.value.roll(shifts, _shifted(dims, x.ndim)), level)


@_rule("view", "reshape", "_unsafe_view")
def _reshape(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    sizes = _sizes(args, kwargs)
    if sizes and not isinstance(sizes[0], int):  # view(dtype)
        raise Concrete("vmap(): view() as another type")
    return wrap(args[0].value.reshape([state.sizes[level - 1], *sizes]), level)


@_rule("view_as", "reshape_as", "expand_as")
def _as_other(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    x, other = args
    if func.__name__ == "expand_as":
        return x.expand(other.shape)
    if func.__name__ == "view_as" and is_batched(x, level):
        return wrap(x.value.view([state.sizes[level - 1], *other.shape]), level)
    return x.reshape(other.shape)


@_rule("expand", "broadcast_to", "repeat", "tile")
def _expand(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    x, sizes = args[0], _sizes(args, kwargs)
    if func.__name__ in ("repeat", "tile"):
        if len(sizes) < x.ndim:
            sizes = [1] * (x.ndim - len(sizes)) + sizes
        return wrap(_aligned(x, level, len(sizes)).repeat([1, *sizes]), level)
    value = _aligned(x, level, len(sizes))
    return wrap(value.expand([state.sizes[level - 1], *sizes]), level)


@_rule("cat", "concat", "concatenate", "stack")
def _join(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    tensors = args[0] if args else kwargs["tensors"]
    dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
    ndim = max(x.ndim for x in tensors) + (func.__name__ == "stack")
    values = [full(x, level) for x in tensors]
    return wrap(func(values, _shifted(dim, ndim)), level)


@_rule("new_zeros", "new_ones", "new_full", "new_empty", "new_tensor")
def _new(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    return func(_value(args[0], level), *args[1:], **kwargs)


# --- products -------------------------------------------------------------------------


def _product(level: int, a: Any, b: Any) -> Any:
    """a @ b."""
    row, column = a.ndim == 1, b.ndim == 1
    a = a.unsqueeze(0) if row else a
    b = b.unsqueeze(1) if column else b
    ndim = max(a.ndim, b.ndim)
    made: Any = wrap(
        _C.matmul(_aligned(a, level, ndim), _aligned(b, level, ndim))
        if is_batched(a, level) or is_batched(b, level)
        else full(_C.matmul(a, b), level),
        level,
    )
    made = made.squeeze(-1) if column else made
    return made.squeeze(-1 if column else -2) if row else made


@_rule("matmul", "mm", "bmm", "mv", "dot", "vdot", "__matmul__", "inner")
def _matmul(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    a, b = _given(args, kwargs)
    if func.__name__ == "inner" and b.ndim > 1:
        b = b.transpose(-2, -1)
    if func.__name__ == "vdot":
        a = a.conj()
    return _product(level, a, b)


@_rule("__rmatmul__")
def _reversed(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    return _product(level, args[1], args[0])


@_rule("addmm", "addmv", "baddbmm", "addbmm", "addr")
def _add_product(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    x, a, b = args[:3]
    name, beta, alpha = func.__name__, kwargs.get("beta", 1), kwargs.get("alpha", 1)
    made = a.unsqueeze(1) * b if name == "addr" else a @ b
    made = made.sum(0) if name == "addbmm" else made
    return (x if beta == 1 else x * beta) + (made if alpha == 1 else made * alpha)


@_rule("outer", "ger")
def _outer(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    a, b = _given(args, kwargs)
    return a.unsqueeze(-1) * b


@_rule("linear")
def _linear(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    a = _Arguments(func, args, kwargs)
    x, w, b = args[0], a.get("weight"), a.get("bias")
    if not is_batched(w, level) and not is_batched(b, level):
        return wrap(func(x.value, w, b), level)
    made = x @ (w.transpose(-2, -1) if w.ndim > 1 else w)
    return made if b is None else made + b


@_rule("einsum")
def _einsum(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    text, operands = args[0], args[1:]
    if not isinstance(text, str):
        raise Concrete("vmap(): einsum() of lists of numbers")
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = operands[0]
    text = text.replace(" ", "")
    terms, arrow, result = text.partition("->")
    letters = [c for c in terms if c.isalpha()]
    if not arrow:
        once = sorted(c for c in set(letters) if letters.count(c) == 1)
        result = ("..." if "..." in terms else "") + "".join(once)
    free = next(chr(c) for c in range(ord("a"), ord("z") + 1) if chr(c) not in letters)
    parts = [
        free + term if is_batched(x, level) else term
        for term, x in zip(terms.split(","), operands, strict=True)
    ]
    values = [_value(x, level) for x in operands]
    return wrap(func(",".join(parts) + "->" + free + result, *values), level)


@_rule("solve", "solve_triangular", "cholesky_solve", "solve_ex", "lstsq")
def _solve(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    a, b = args[:2]
    if func.__name__ == "solve" and b.ndim == 1:
        made = func(full(a, level), full(b, level).unsqueeze(-1), **kwargs)
        return wrap(made.squeeze(-1), level)
    made = func(full(a, level), full(b, level), *args[2:], **kwargs)
    return _wrapped(made, level)


# --- composites -----------------------------------------------------------------------

_HOMES = {
    "pydevtensor": "pydevtensor._functions",
    "pydevtensor.linalg": "pydevtensor.linalg",
    "pydevtensor.special": "pydevtensor.special",
    "pydevtensor.nn.functional": "pydevtensor.nn._functional",
}


@functools.cache
def _bodies(home: str) -> dict[str, Any]:
    """The functions in Python of a folder, by name."""
    import pkgutil

    folder = importlib.import_module(home)
    found: dict[str, Any] = {}
    for each_module in pkgutil.iter_modules(folder.__path__):
        module = importlib.import_module(f"{home}.{each_module.name}")
        found |= {
            name: value
            for name, value in vars(module).items()
            if inspect.isfunction(value) and value.__module__ == module.__name__
        }
    return found


def _composite(func: Any, name: str) -> Any:
    """Runs the body of a function in Python, whose calls have rules."""
    space = getattr(func, "__module__", None) or "pydevtensor"
    body = _bodies(_HOMES[space]).get(name) if space in _HOMES else None
    if body is None or name[0] == "_":
        return None

    def rule(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        try:
            result = body(*args, **kwargs)
            check_memory(result)
        except Exception:  # it may have called a private function of the extension
            return each(level, func, args, kwargs)
        return result

    return rule
