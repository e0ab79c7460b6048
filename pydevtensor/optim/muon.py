"""Muon: momentum, made orthogonal, for the matrices of a net."""

from __future__ import annotations

import math
from typing import Any

from pydevtensor import _C
from pydevtensor.optim._options import options_of
from pydevtensor.optim.optimizer import Optimizer, ParamsT


class Muon(Optimizer):
    """Muon (Jordan and others, 2024), for parameters of two dimensions.

    A step goes along the orthogonal matrix nearest to the momentum, roughly, by Newton
    and Schulz's iteration in bfloat16. Train biases, embeddings and the last layer with
    another optimizer. Raises ValueError for a parameter that is not a matrix, and for
    options out of range.

    params           Tensors, pairs of a name and one, or dicts with 'params' and
                     options
    lr               learning rate, for matrices of any shape
    weight_decay     each step first multiplies the parameters by 1 - lr * weight_decay
    momentum         decay rate of the mean gradient
    nesterov         look ahead by the momentum
    ns_coefficients  a, b, c of the iteration x = a x + b y x + c y y x with y = x x^T
    eps              least norm that the first x is divided by
    ns_steps         how many iterations, below 100
    adjust_lr_fn     what lr is multiplied by for n rows and m columns: None or
                     "original", sqrt(max(1, n / m)); "match_rms_adamw", for rates that
                     were found for AdamW (Liu and others, 2025), 0.2 sqrt(max(n, m))

    >>> w = nn.Parameter(torch.zeros(2, 2))
    >>> slow = {'ns_steps': 10, 'ns_coefficients': (2, -1.5, 0.5)}
    >>> trainer = torch.optim.Muon([w], lr=1.0, **slow)
    >>> w.grad = torch.tensor([[100.0, 0.0], [0.0, -3.0]])
    >>> trainer.step()
    >>> w.data.round()
    tensor([[-1.,  0.],
            [ 0.,  1.]])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | _C.Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(
                f"adjust_lr_fn is {adjust_lr_fn!r}; give 'original' or "
                "'match_rms_adamw'"
            )
        super().__init__(params, options_of(locals(), unchecked="eps"))
        for group in self.param_groups:
            for parameter in group["params"]:
                _check_matrix(parameter)

    def _update(self, group: dict[Any, Any]) -> None:
        if group["ns_steps"] >= 100:
            raise ValueError(f"ns_steps is {group['ns_steps']}; give less than 100")
        if len(group["ns_coefficients"]) != 3:
            raise ValueError(
                f"ns_coefficients is {group['ns_coefficients']}; give three numbers"
            )
        parameters = [p for p in group["params"] if p.grad is not None]
        for parameter in parameters:
            _check_matrix(parameter)
            if parameter.grad.is_sparse:
                self._update_rows(parameter, parameter.grad, group)
            kept = self.state[parameter]
            if "momentum_buffer" not in kept:
                kept["momentum_buffer"] = _C.zeros_like(parameter)
        if not parameters:
            return
        momentum, rate = group["momentum"], float(group["lr"])
        gradients = [p.grad for p in parameters]
        means = [self.state[p]["momentum_buffer"] for p in parameters]
        _C._update("lerp", means + gradients, (), (1 - momentum,))
        for parameter, gradient, mean in zip(parameters, gradients, means, strict=True):
            step = gradient.lerp(mean, momentum) if group["nesterov"] else mean
            step = _orthogonal(step, group)
            parameter.mul_(1 - rate * group["weight_decay"])
            parameter.sub_(step, alpha=rate * _factor(parameter, group))


def _check_matrix(parameter: Any) -> None:
    if parameter.ndim != 2:
        raise ValueError(
            f"Muon takes matrices, and got a parameter of shape "
            f"{[*parameter.shape]}; give it to another optimizer"
        )


def _factor(parameter: Any, group: dict[Any, Any]) -> float:
    rows, columns = parameter.shape
    if group["adjust_lr_fn"] == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))


def _orthogonal(matrix: Any, group: dict[Any, Any]) -> Any:
    a, b, c = group["ns_coefficients"]
    x = matrix.to(_C.bfloat16)
    is_tall = x.shape[0] > x.shape[1]
    if is_tall:
        x = x.t()
    x = x / x.norm().clamp(min=group["eps"])
    for _ in range(group["ns_steps"]):
        y = x @ x.t()
        x = _C.addmm(x, _C.addmm(y, y, y, beta=b, alpha=c), x, beta=a)
    return x.t() if is_tall else x
