"""The checks of opcheck()."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor.autograd import enable_grad, grad
from pydevtensor.library import _operators
from pydevtensor.random import fork_rng
from pydevtensor.testing import assert_close
from pydevtensor.utils import _pytree

ALL: tuple[str, ...] = (
    "test_schema",
    "test_autograd_registration",
    "test_faketensor",
    "test_aot_dispatch_dynamic",
)


class OpCheckError(Exception):
    """A check of an operator that has failed."""


def _tensors(value: Any) -> list[Any]:
    return [leaf for leaf in _pytree.tree_leaves(value) if isinstance(leaf, _C.Tensor)]


def _copies(value: Any) -> Any:
    """Leaves with the same values, which require gradients where the originals do."""
    return _pytree.tree_map(
        lambda x: (
            x.detach().clone().requires_grad_(x.requires_grad)
            if isinstance(x, _C.Tensor)
            else x
        ),
        value,
    )


def _need(holds: bool, text: str) -> None:
    if not holds:
        raise OpCheckError(text)


def _with_gradients(op: Any, args: Any, kwargs: Any) -> tuple[Any, list[Any]]:
    """The results, and the gradients of their sum."""
    args, kwargs = _copies((args, kwargs))
    with enable_grad():
        found = op(*args, **kwargs)
        wanted = [t for t in _tensors((args, kwargs)) if t.requires_grad]
        ends = [t for t in _tensors(found) if t.requires_grad]
        if not wanted or not ends:
            return found, []
        total = sum((t.sum() for t in ends), start=_C.zeros(()))
        gradients = grad(total, wanted, allow_unused=True)
    for leaf, gradient in zip(wanted, gradients, strict=True):
        _need(
            gradient is None or gradient.shape == leaf.shape,
            f"a gradient has the shape {gradient is not None and [*gradient.shape]}, "
            f"and its argument {[*leaf.shape]}",
        )
    return found, [*gradients]


def _schema(op: Any, args: Any, kwargs: Any, off: Any) -> None:
    operator = _operators.find(op)
    args, kwargs = _copies((args, kwargs))
    values = operator._schema.bind(args, kwargs)
    before = _copies(values)
    found = op(*args, **kwargs)
    parts = zip(operator._schema.arguments, values, before, strict=True)
    for argument, value, old in parts:
        pairs = zip(_tensors(value), _tensors(old), strict=True)
        same = all(_C.allclose(a, b, equal_nan=True) for a, b in pairs)
        _need(
            same or argument.is_write,
            f"{operator}: argument {argument.name} was changed, and the schema "
            f"{operator._schema} does not say so; name it in mutates_args",
        )
    held = {_C._storage_key(t) for t in _tensors(values)}
    shares = any(_C._storage_key(t) in held for t in _tensors(found))
    _need(not shares, f"{operator}: a result shares memory with an argument")


def _autograd(op: Any, args: Any, kwargs: Any, off: Any) -> None:
    _with_gradients(op, args, kwargs)


def _fake(op: Any, args: Any, kwargs: Any, off: Any) -> None:
    found = _tensors(op(*_copies(args), **_copies(kwargs)))
    args, kwargs = _pytree.tree_map(
        lambda x: x.detach().to("meta") if isinstance(x, _C.Tensor) else x,
        (args, kwargs),
    )
    made = _tensors(op(*args, **kwargs))
    said = [[(t.shape, t.dtype) for t in each] for each in (found, made)]
    _need(
        said[0] == said[1],
        f"{op}: on meta the results are {said[1]}, and with data {said[0]}; correct "
        "what register_fake() registered",
    )


def _again(op: Any, args: Any, kwargs: Any, off: Any) -> None:
    with fork_rng():
        first = _with_gradients(op, args, kwargs)
    assert_close(_with_gradients(op, args, kwargs), first, equal_nan=True, **off)


_CHECKS = dict(zip(ALL, (_schema, _autograd, _fake, _again), strict=True))


def run(name: str, op: Any, args: Any, kwargs: Any, off: dict[str, float]) -> Any:
    """ "SUCCESS", or the error of a check."""
    if name not in _CHECKS:
        raise ValueError(f"test_utils has {name!r}; give names of {', '.join(ALL)}")
    try:
        _CHECKS[name](op, args, kwargs, off)
    except Exception as error:
        made = OpCheckError(f"opcheck(op, ...): {name} failed with {error}")
        made.__cause__ = error
        return made
    return "SUCCESS"
