"""Checks and reductions that losses share."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import FunctionType
from typing import Any, TypeVar, cast

from pydevtensor import _C

_Body = TypeVar("_Body", bound=Callable[..., Any])


def loss_function(around: str = "reduction") -> Callable[[_Body], _Body]:
    """function(), with the deprecated arguments size_average and reduce.

    They stand before reduction in public, or around the parameter of this name, and the
    body gets the reduction that they ask for. The docstring need not name them, nor a
    reduction that is 'mean', 'sum' or 'none' (tools/build/functions.py).
    """

    def decorated(body: _Body) -> _Body:
        of = cast("FunctionType", body)
        code = of.__code__
        names = code.co_varnames[: code.co_argcount]
        public = [*names]
        public.insert(public.index(around), "size_average")
        public.insert(public.index("reduction"), "reduce")
        chosen = (
            "reduction if size_average is None and reduce is None else "
            "resolve_reduction(size_average, reduce, reduction)"
        )
        given = ", ".join(chosen if name == "reduction" else name for name in names)
        text = f"def call({', '.join(public)}): return body({given})"
        # Its source line, in tracebacks, is the body's.
        text = "\n" * (code.co_firstlineno - 1) + text
        scope = {"body": body, "resolve_reduction": resolve_reduction}
        exec(compile(text, code.co_filename, "exec"), scope)
        call = cast("FunctionType", scope["call"])
        defaults = of.__defaults__ or ()
        known = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
        known |= dict.fromkeys(("size_average", "reduce"))
        call.__defaults__ = tuple(known[name] for name in public if name in known)
        return cast("_Body", update_wrapper(call, body))

    return decorated


def resolve_reduction(size_average: Any, reduce: Any, reduction: str) -> str:
    """The reduction that the two deprecated arguments ask for, if they are given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def need_reduction(reduction: str) -> None:
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(
            f"{reduction} is not a valid value for reduction; give mean, sum or none"
        )


def reduce_loss(name: str, loss: Any, reduction: str) -> Any:
    """The loss of a batch, named by its derivative if there is a name."""
    need_reduction(reduction)
    if reduction == "mean":
        loss = loss.mean()
    elif reduction == "sum":
        loss = loss.sum()
    return _C._named(loss, name + "Backward0") if name else loss


def need_floats(input: Any, target: Any = None) -> None:
    """Raises for integers and bools what PyTorch does."""
    for what, x in (("input", input), ("target", target)):
        if x is not None and not x.is_floating_point():
            error = NotImplementedError if what == "input" else RuntimeError
            raise error(f"{what} is of {x.dtype}; convert it with .float()")


def as_input(loss: Any, input: Any) -> Any:
    """The loss in the type of input, which has to hold floats where the loss does."""
    if loss.is_floating_point() and not input.is_floating_point():
        raise RuntimeError(
            f"input is of {input.dtype}, which holds no loss; convert it with .float()"
        )
    return loss.to(input.dtype)


def need_classes(target: Any) -> None:
    if target.dtype != _C.int64:
        raise RuntimeError(f"the target is of {target.dtype}; convert it with .long()")


def need_same_size(input: Any, target: Any) -> None:
    if input.device != target.device:
        raise RuntimeError(
            f"the input, of shape {[*input.shape]}, is on {input.device} and "
            f"the target, of shape {[*target.shape]}, on {target.device}; bring them "
            f"together, e.g. with target.to('{input.device}')"
        )
    if input.shape != target.shape:
        raise ValueError(
            f"the target's size {[*target.shape]} must be the same as the "
            f"input's, {[*input.shape]}; reshape one of them"
        )


def need_same_dims(**tensors: Any) -> None:
    if len({t.ndim for t in tensors.values()}) > 1:
        shapes = ", ".join(f"{k} {[*t.shape]}" for k, t in tensors.items())
        raise RuntimeError(
            f"the shapes are {shapes}; give tensors with the same number of dimensions"
        )


def check_classes(target: Any, least: int, classes: int) -> None:
    """On the CPU; a GPU would have to be synchronized, and reports it later."""
    if target.device.type != "cpu" or not target.numel():
        return
    low, high = int(target.min()), int(target.max())
    if low < least or high >= classes:
        raise RuntimeError(
            f"the target has the class {low if low < least else high}; give "
            f"{least} to {classes - 1}"
        )
