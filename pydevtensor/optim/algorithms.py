"""The optimisers. Sources of the algorithms are named in their docstrings."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor.optim.optimizer import Optimizer, check


def _count(state: dict) -> float:
    """The number of this step; kept as a Tensor, as PyTorch's files have it."""
    if "step" not in state:
        state["step"] = _C.tensor(0.0)
    state["step"].add_(1)
    return state["step"].item()


def _decayed(parameter: Any, gradient: Any, weight_decay: float) -> Any:
    return gradient + parameter * weight_decay if weight_decay else gradient


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum (Sutskever and others, 2013).

    v = momentum * v + (1 - dampening) * g;  p = p - lr * v, with Nesterov's variant
    p - lr * (g + momentum * v).
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: Any = None,
        differentiable: bool = False,
        fused: Any = None,
    ) -> None:
        check("learning rate", lr, lr >= 0)
        check("momentum value", momentum, momentum >= 0)
        check("weight_decay value", weight_decay, weight_decay >= 0)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        options = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, options)

    def _update(self, parameter: Any, gradient: Any, state: dict, group: dict) -> None:
        gradient = _decayed(parameter, gradient, group["weight_decay"])
        momentum = group["momentum"]
        if momentum:
            kept = state.get("momentum_buffer")
            if kept is None:
                kept = state["momentum_buffer"] = gradient.detach().clone()
            else:
                kept.mul_(momentum).add_(gradient, alpha=1 - group["dampening"])
            gradient = gradient.add(kept, alpha=momentum) if group["nesterov"] else kept
        parameter.sub_(gradient, alpha=group["lr"])


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015); amsgrad as Reddi and others, 2018."""

    _decoupled = False

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: Any = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: Any = None,
    ) -> None:
        check("learning rate", lr, lr >= 0)
        check("epsilon value", eps, eps >= 0)
        check("beta parameter at index 0", betas[0], 0 <= betas[0] < 1)
        check("beta parameter at index 1", betas[1], 0 <= betas[1] < 1)
        check("weight_decay value", weight_decay, weight_decay >= 0)
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, options)

    def _update(self, parameter: Any, gradient: Any, state: dict, group: dict) -> None:
        step = _count(state)
        if "exp_avg" not in state:
            state["exp_avg"] = _C.zeros_like(parameter)
            state["exp_avg_sq"] = _C.zeros_like(parameter)
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = _C.zeros_like(parameter)
        if self._decoupled:
            parameter.mul_(1 - group["lr"] * group["weight_decay"])
        else:
            gradient = _decayed(parameter, gradient, group["weight_decay"])
        beta1, beta2 = group["betas"]
        first, second = state["exp_avg"], state["exp_avg_sq"]
        first.add_(gradient - first, alpha=1 - beta1)
        second.mul_(beta2).add_(gradient * gradient, alpha=1 - beta2)
        if group["amsgrad"]:
            state["max_exp_avg_sq"].copy_(_C.maximum(state["max_exp_avg_sq"], second))
            second = state["max_exp_avg_sq"]
        size = (second.sqrt() / (1 - beta2**step) ** 0.5).add_(group["eps"])
        parameter.sub_(first / size, alpha=group["lr"] / (1 - beta1**step))


class AdamW(Adam):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter, 2019)."""

    _decoupled = True

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **options)


class Adagrad(Optimizer):
    """Adagrad (Duchi and others, 2011)."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: Any = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: Any = None,
    ) -> None:
        check("learning rate", lr, lr >= 0)
        check("lr_decay value", lr_decay, lr_decay >= 0)
        check("weight_decay value", weight_decay, weight_decay >= 0)
        check(
            "initial_accumulator_value value",
            initial_accumulator_value,
            initial_accumulator_value >= 0,
        )
        check("epsilon value", eps, eps >= 0)
        options = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, options)

    def _update(self, parameter: Any, gradient: Any, state: dict, group: dict) -> None:
        step = _count(state)
        if "sum" not in state:
            state["sum"] = _C.full_like(parameter, group["initial_accumulator_value"])
        gradient = _decayed(parameter, gradient, group["weight_decay"])
        rate = group["lr"] / (1 + (step - 1) * group["lr_decay"])
        state["sum"].add_(gradient * gradient)
        parameter.sub_(gradient / state["sum"].sqrt().add_(group["eps"]), alpha=rate)


class Adadelta(Optimizer):
    """Adadelta (Zeiler, 2012)."""

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: Any = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check("learning rate", lr, lr >= 0)
        check("rho value", rho, 0 <= rho <= 1)
        check("epsilon value", eps, eps >= 0)
        check("weight_decay value", weight_decay, weight_decay >= 0)
        options = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, options)

    def _update(self, parameter: Any, gradient: Any, state: dict, group: dict) -> None:
        _count(state)
        if "square_avg" not in state:
            state["square_avg"] = _C.zeros_like(parameter)
            state["acc_delta"] = _C.zeros_like(parameter)
        gradient = _decayed(parameter, gradient, group["weight_decay"])
        rho, eps = group["rho"], group["eps"]
        squares, deltas = state["square_avg"], state["acc_delta"]
        squares.mul_(rho).add_(gradient * gradient, alpha=1 - rho)
        delta = (deltas + eps).sqrt_().div_((squares + eps).sqrt_()).mul_(gradient)
        deltas.mul_(rho).add_(delta * delta, alpha=1 - rho)
        parameter.sub_(delta, alpha=group["lr"])


class RMSprop(Optimizer):
    """RMSprop (Hinton, lecture notes, 2012); centered as Graves, 2013."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: Any = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check("learning rate", lr, lr >= 0)
        check("epsilon value", eps, eps >= 0)
        check("momentum value", momentum, momentum >= 0)
        check("weight_decay value", weight_decay, weight_decay >= 0)
        check("alpha value", alpha, alpha >= 0)
        options = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, options)

    def _update(self, parameter: Any, gradient: Any, state: dict, group: dict) -> None:
        _count(state)
        if "square_avg" not in state:
            state["square_avg"] = _C.zeros_like(parameter)
            if group["momentum"]:
                state["momentum_buffer"] = _C.zeros_like(parameter)
            if group["centered"]:
                state["grad_avg"] = _C.zeros_like(parameter)
        gradient = _decayed(parameter, gradient, group["weight_decay"])
        squares, alpha = state["square_avg"], group["alpha"]
        squares.mul_(alpha).add_(gradient * gradient, alpha=1 - alpha)
        spread = squares
        if group["centered"]:
            mean = state["grad_avg"]
            mean.add_(gradient - mean, alpha=1 - alpha)
            spread = squares - mean * mean
        change = gradient / spread.sqrt().add_(group["eps"])
        if group["momentum"]:
            change = state["momentum_buffer"].mul_(group["momentum"]).add_(change)
        parameter.sub_(change, alpha=group["lr"])
