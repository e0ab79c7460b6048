"""Parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydevtensor import _C

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """Concatenate all parameters as one vector, differentiably.

    parameters  Tensors on one device, such as a module's parameters(); TypeError for
                several devices

    >>> nn.utils.parameters_to_vector([torch.zeros(2), torch.ones(1, 2)])
    tensor([0., 0., 1., 1.])
    """
    parameters = [*parameters]
    _check("parameters_to_vector", parameters)
    return _C.cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Set the parameters' data to the parts of a vector, whose memory they share.

    TypeError where the parameters are on several devices. See also
    parameters_to_vector().

    vec         the vector, a Tensor of as many elements as all parameters
    parameters  Tensors, such as a module's parameters()

    >>> w = nn.Parameter(torch.zeros(2))
    >>> nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0]), [w])
    >>> w.data
    tensor([1., 2.])
    """
    if not isinstance(vec, _C.Tensor):
        raise TypeError(
            f"vector_to_parameters: the vector is {type(vec).__name__}; give a Tensor"
        )
    parameters = [*parameters]
    _check("vector_to_parameters", parameters)
    at = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = vec[at : at + count].reshape(parameter.shape).detach()
        at += count


def _check(name: str, parameters: list[Any]) -> None:
    for i, parameter in enumerate(parameters):
        if not isinstance(parameter, _C.Tensor):
            raise TypeError(
                f"{name}: parameters[{i}] is {parameter!r} "
                f"({type(parameter).__name__}); give a Tensor"
            )
        if parameter.device != parameters[0].device:
            raise TypeError(
                f"{name}: one parameter is on {parameters[0].device}, another on "
                f"{parameter.device}; move them to one device"
            )
