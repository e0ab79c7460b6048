"""Gradient clipping."""

from __future__ import annotations

import warnings
from typing import Any

from pydevtensor import _C
from pydevtensor._functions.checks import real
from pydevtensor._kinds import is_distributed
from pydevtensor._signatures import like
from pydevtensor.autograd import no_grad
from pydevtensor.autograd._gradients import writable

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]


def _listed(tensors: Any) -> list[Any]:
    if isinstance(tensors, _C.Tensor):
        return [tensors]
    if not hasattr(tensors, "__iter__"):
        raise TypeError(
            f"the parameters to clip are a {type(tensors).__name__}; give Tensors, "
            "such as a module's .parameters()"
        )
    found = [*tensors]
    for i, tensor in enumerate(found):
        if not isinstance(tensor, _C.Tensor):
            raise TypeError(
                f"number {i} of the parameters to clip is {tensor!r} "
                f"({type(tensor).__name__}); give a Tensor"
            )
    return found


def _gradients(parameters: Any) -> list[Any]:
    """The gradients to clip in place."""
    given = _listed(parameters)
    return [writable(each) for each in given if each.grad is not None]


def _norm_of(gradients: list[Any], norm_type: float) -> Any:
    if not gradients:
        return _C.tensor(0.0)
    gradients = [g.abs() if g.is_complex() else g for g in gradients]
    if norm_type == 0:
        own = [g.to_local() if is_distributed(g) else g for g in gradients]
        norms = [g.norm(norm_type) for g in own]
    else:
        groups: dict[Any, list[Any]] = {}
        for gradient in gradients:
            groups.setdefault((gradient.device, gradient.dtype), []).append(gradient)
        # One kernel for all with the same device and dtype.
        norms = [_C._total_norm(group, norm_type) for group in groups.values()]
        if len(norms) == 1:
            return norms[0]
    home = gradients[0].device
    return _C.stack([norm.to(home) for norm in norms]).norm(norm_type)


def _norm_of_ranks(norm: Any, ranks: Any, norm_type: float) -> Any:
    """The norm of all vectors whose norms the ranks of a group have."""
    if ranks is None:
        return norm
    from pydevtensor import distributed

    norms = [_C.zeros_like(norm) for _ in range(ranks.size())]
    distributed.all_gather(norms, norm, group=ranks)
    return _C.stack(norms).norm(norm_type)


def _norm_of_all(
    tensors: list[Any], chosen: Any, norm_type: float, error_if_nonfinite: bool
) -> Any:
    """The norm of what chosen(tensor) lists for each tensor, on all ranks with rows."""
    parts: dict[Any, list[Any]] = {}
    for each in tensors:
        parts.setdefault(getattr(each, "_ranks_of_norm", None), []).extend(chosen(each))
    norms = [
        _norm_of_ranks(_norm_of(part, norm_type), ranks, norm_type)
        for ranks, part in parts.items()
    ]
    total = norms[0] if len(norms) == 1 else _norm_of(norms, norm_type)
    if error_if_nonfinite and not total.isfinite():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is "
            "non-finite, so it cannot be clipped; look for a NaN or an infinity in the "
            "loss, or omit error_if_nonfinite"
        )
    return total


def _on_ranks(total: Any, tensors: list[Any]) -> Any:
    """The norm as a DTensor that each rank has, if it is that of DTensors of a mesh."""
    meshes = {each.device_mesh for each in tensors if is_distributed(each)}
    if len(meshes) != 1 or not all(map(is_distributed, tensors)):
        return total
    from pydevtensor.distributed.tensor import DTensor

    return DTensor.from_local(total, meshes.pop())


@no_grad()
def get_total_norm(
    tensors: Any,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: Any = None,
) -> Any:
    """The norm of all tensors as one vector: a Tensor on the first one's device.

    Of DTensors a DTensor, which each rank has. See also clip_grad_norm_().

    tensors             Tensors, such as gradients; of none the norm is 0. All ranks
                        that have rows of them call it
    norm_type           degree of the norm, also inf
    error_if_nonfinite  raise RuntimeError for a norm that is NaN or infinite, which
                        waits for a GPU
    foreach             has no effect: it is always one kernel

    >>> nn.utils.get_total_norm([torch.tensor([3.0]), torch.tensor([4.0])])
    tensor(5.)
    """
    tensors = _listed(tensors)
    total = _norm_of_all(tensors, _listed, float(norm_type), error_if_nonfinite)
    return _on_ranks(total, tensors)


@no_grad()
def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Any, foreach: Any = None
) -> None:
    """Scale all gradients by max_norm / total_norm, if that is below 1.

    parameters  a Tensor or an iterable of them; those without a gradient are left out
    max_norm    the norm that gradients are scaled to
    total_norm  their norm now, which get_total_norm() gives
    foreach     has no effect: it is always one kernel

    >>> w = nn.Parameter(torch.zeros(2))
    >>> w.grad = torch.tensor([3.0, 4.0])
    >>> nn.utils.clip_grads_with_norm_([w], 1, torch.tensor(5.0))
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    gradients = _gradients(parameters)
    if gradients:
        if is_distributed(total_norm):
            total_norm = total_norm.full_tensor()
        factor = (max_norm / (total_norm + 1e-6)).clamp(max=1.0)
        _C._update("scale", gradients * 2, (), (1.0,), factor)


@no_grad()
def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: Any = None,
) -> Any:
    """Scale all gradients so that their total norm is at most max_norm.

    Returns the total norm before. See also clip_grad_value_(), which clamps each
    element.

    parameters          a Tensor or an iterable of them, such as a module's
                        parameters(); those without a gradient are left out. All
                        ranks that have rows of them call it
    max_norm            the largest norm that is not clipped
    norm_type           degree of the norm, also inf
    error_if_nonfinite  raise RuntimeError for a norm that is NaN or infinite, which
                        waits for a GPU; else all gradients become NaN or 0
    foreach             has no effect: it is always one kernel

    >>> w = nn.Parameter(torch.zeros(2))
    >>> w.grad = torch.tensor([3.0, 4.0])
    >>> norm = nn.utils.clip_grad_norm_([w], max_norm=1)
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    parameters = _listed(parameters)
    total = _norm_of_all(parameters, _gradients, float(norm_type), error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return _on_ranks(total, parameters)


@like(clip_grad_norm_)
def clip_grad_norm(*args: Any, **named: Any) -> Any:
    """clip_grad_norm_(), with a FutureWarning: use that.

    parameters, max_norm         as for clip_grad_norm_()
    norm_type                    as for clip_grad_norm_()
    error_if_nonfinite, foreach  as for clip_grad_norm_()

    >>> import warnings
    >>> w = nn.Parameter(torch.zeros(2))
    >>> w.grad = torch.tensor([3.0, 4.0])
    >>> with warnings.catch_warnings(action='ignore'):
    ...     nn.utils.clip_grad_norm([w], max_norm=1)
    tensor(5.)
    """
    warnings.warn(
        "nn.utils.clip_grad_norm() is deprecated; use nn.utils.clip_grad_norm_()",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(*args, **named)


@no_grad()
def clip_grad_value_(parameters: Any, clip_value: float, foreach: Any = None) -> None:
    """Clamp the gradients to -clip_value ... clip_value.

    See also clip_grad_norm_(), which keeps their direction.

    parameters  a Tensor or an iterable of them; those without a gradient are left out
    clip_value  the greatest absolute value
    foreach     has no effect: it is always one kernel

    >>> w = nn.Parameter(torch.zeros(2))
    >>> w.grad = torch.tensor([3.0, -4.0])
    >>> nn.utils.clip_grad_value_([w], 3.5)
    >>> w.grad
    tensor([ 3.0000, -3.5000])
    """
    gradients, limit = _gradients(parameters), float(clip_value)
    for gradient in gradients:
        real("a gradient", gradient)
    if gradients:
        _C._update("clamp", gradients * 2, (), (-limit, limit))
