"""Dual numbers: Tensors with a tangent, which operations carry on.

The tangent of a result is computed when unpack_dual() asks for it, by two backward
passes over what was recorded since dual_level() began: that is exact, and needs no
formula but an operation's gradient. So a dual Tensor requires a gradient, and
`no_grad()` inside of a level drops tangents.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pydevtensor import _C
from pydevtensor import autograd as _autograd
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import Function as _Function
from pydevtensor.autograd._levels import Level as _Level

Tensor = _C.Tensor

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level"]
__all__ += ["make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """The result of unpack_dual(): primal, and tangent or None.

    >>> with torch.autograd.forward_ad.dual_level():
    ...     torch.autograd.forward_ad.unpack_dual(torch.ones(2)).tangent is None
    True
    """

    primal: Tensor
    tangent: Tensor | None


class _Duals(_Level):
    """The level: its inputs, and the tangent of each."""

    def __init__(self) -> None:
        super().__init__("dual_level", [])
        self.tangents: list[Tensor] = []


_current: _Duals | None = None


class _Identity(_Function):
    """A new Tensor of the same memory, and a node of its own."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient


def enter_dual_level() -> int:
    """Begin a level, and give its number, 0: dual_level() without `with`.

    RuntimeError inside of another one.

    >>> torch.autograd.forward_ad.enter_dual_level()
    0
    >>> torch.autograd.forward_ad.exit_dual_level()
    """
    global _current
    if _current is not None:
        raise RuntimeError(
            "Nested forward mode AD is not supported at the moment: a dual_level() is "
            "active; leave it first"
        )
    _current = _Duals()
    _current.__enter__()
    _autograd._in_dual_level = True
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level: its dual Tensors have no tangents any more.

    level: its number. RuntimeError if there is no such level.

    >>> torch.autograd.forward_ad.enter_dual_level()
    0
    >>> torch.autograd.forward_ad.exit_dual_level(level=0)
    """
    global _current
    if _current is None or level not in (None, 0):
        raise RuntimeError(
            "exit_dual_level(): no such level is active; call enter_dual_level() first"
        )
    _current.__exit__()
    _current = None
    _autograd._in_dual_level = False


class dual_level:
    """A context in which dual Tensors carry tangents.

    >>> import pydevtensor.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(torch.tensor([2.0]), torch.tensor([1.0]))
    ...     fwAD.unpack_dual(x ** 3)
    UnpackedDualTensor(primal=tensor([8.]), tangent=tensor([12.]))
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *error: object) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A Tensor of tensor's memory with a tangent, of its shape.

    level: the number of the level, 0. ValueError for elements that are not floating;
    RuntimeError outside of a dual_level().

    See also dual_level.

    >>> import pydevtensor.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(torch.ones(2), torch.tensor([1.0, 2.0]))
    ...     fwAD.unpack_dual(x.sum()).tangent
    tensor(3.)
    """
    if _current is None or level not in (None, 0):
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make "
            "sure to enter_dual_level() first"
        )
    for name, value in (("primal", tensor), ("tangent", tangent)):
        kind = value.dtype if isinstance(value, Tensor) else type(value).__name__
        if not isinstance(value, Tensor) or not value.is_floating_point():
            raise ValueError(
                f"Expected {name} to be floating point or complex, but got: {kind}"
            )
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            f"make_dual(): the tangent has shape {[*tangent.shape]} and the Tensor "
            f"{[*tensor.shape]}; give the same shape"
        )
    if _current.inputs and _current.reaches(tensor):
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward "
            "gradient at the same level 0 is not supported; detach() it first"
        )
    if tensor.requires_grad:
        _current.outer = True
        anchor = _Identity.apply(tensor)
    else:
        anchor = tensor.detach().requires_grad_()
    _current.outer |= tangent.requires_grad
    _current.inputs.append(anchor)
    _current.tangents.append(tangent)
    made: Tensor = _Identity.apply(anchor)
    return made


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """A Tensor without its tangent, and the tangent.

    tangent is None for a Tensor that depends on no dual one, and outside of a
    dual_level(). level: the number of the level, 0.

    See also dual_level.

    >>> import pydevtensor.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(torch.zeros(2), torch.tensor([1.0, 2.0]))
    ...     fwAD.unpack_dual(x.sin())
    UnpackedDualTensor(primal=tensor([0., 0.]), tangent=tensor([1., 2.]))
    """
    current = _current
    if current is None or level not in (None, 0):
        return UnpackedDualTensor(tensor, None)
    with current:
        if not current.inputs or not current.reaches(tensor):
            return UnpackedDualTensor(tensor, None)
        (tangent,) = current.push([tensor])(current.tangents)
    return UnpackedDualTensor(
        current.leave(tensor, [tensor]), current.leave(tangent, [tensor, tangent])
    )


_publish(__name__)
