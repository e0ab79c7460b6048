"""The optimisers. Sources of the algorithms are named in their docstrings.

The arithmetic is in csrc/ops/optim.def. foreach, fused and capturable are accepted and
make no difference: a step is one kernel for all parameters of a group anyway.
"""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor.optim.optimizer import Optimizer, checked, new_count


def _sign(group: dict) -> float:
    return -1.0 if group["maximize"] else 1.0


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum (Sutskever and others, 2013).

    v = momentum * v + (1 - dampening) * g;  p = p - lr * v, with Nesterov's variant
    p - lr * (g + momentum * v). ValueError for options out of range.

    >>> weight = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.SGD([weight], lr=0.1)
    >>> (weight * 3).sum().backward()
    >>> optimizer.step()
    >>> weight.detach()
    tensor([0.7000])
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
        options = checked(
            lr=lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
            maximize=maximize,
            foreach=foreach,
            differentiable=differentiable,
            fused=fused,
        )
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, options)

    _counted = False

    def _rule(self, group: dict) -> tuple[str, tuple[float, ...]]:
        numbers = (group["lr"], group["weight_decay"], _sign(group))
        if not group["momentum"]:
            return "sgd", numbers
        more = (group["momentum"], group["dampening"], group["nesterov"])
        return "sgd_momentum", numbers + more


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015); amsgrad as Reddi and others, 2018.

    betas: how slowly the means of gradients and of their squares follow; eps is added
    to the root of the latter. ValueError for options out of range.

    >>> weight = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.Adam([weight], lr=0.1)
    >>> (weight * 3).sum().backward()
    >>> optimizer.step()
    >>> weight.detach()
    tensor([0.9000])
    """

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
        decoupled_weight_decay: bool = False,
    ) -> None:
        super().__init__(
            params,
            checked(
                lr=lr,
                betas=betas,
                eps=eps,
                weight_decay=weight_decay,
                amsgrad=amsgrad,
                maximize=maximize,
                foreach=foreach,
                capturable=capturable,
                differentiable=differentiable,
                fused=fused,
                decoupled_weight_decay=decoupled_weight_decay,
            ),
        )

    def _rule(self, group: dict) -> tuple[str, tuple[float, ...]]:
        decay, shrink = group["weight_decay"], 1.0
        if group["decoupled_weight_decay"]:
            decay, shrink = 0.0, 1 - group["lr"] * decay
        numbers = (group["lr"], *group["betas"], group["eps"], decay, shrink)
        rule = "adam_amsgrad" if group["amsgrad"] else "adam"
        return rule, (*numbers, _sign(group))


class AdamW(Adam):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter, 2019).

    Each step first multiplies parameters by 1 - lr * weight_decay.

    >>> w = nn.Parameter(torch.ones(2))
    >>> trainer = torch.optim.AdamW([w], lr=0.1)
    >>> w.grad = torch.tensor([1.0, -1.0])
    >>> trainer.step()
    >>> w.data
    tensor([0.8990, 1.0990])
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: Any = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: Any = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )


class Adagrad(Optimizer):
    """Adagrad (Duchi and others, 2011): rates fall with the sums of squared gradients.

    lr_decay lets it fall with the number of steps, too; the sums start at
    initial_accumulator_value.

    >>> w = nn.Parameter(torch.ones(2))
    >>> trainer = torch.optim.Adagrad([w], lr=0.1)
    >>> w.grad = torch.tensor([1.0, -1.0])
    >>> trainer.step()
    >>> w.data
    tensor([0.9000, 1.1000])
    """

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
        super().__init__(
            params,
            checked(
                lr=lr,
                lr_decay=lr_decay,
                eps=eps,
                weight_decay=weight_decay,
                initial_accumulator_value=initial_accumulator_value,
                foreach=foreach,
                maximize=maximize,
                differentiable=differentiable,
                fused=fused,
            ),
        )
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter] = {
                    "step": new_count(),
                    "sum": self._fresh("sum", parameter, group),
                }

    def _fresh(self, name: str, parameter: Any, group: dict) -> Any:
        return _C.full_like(parameter, group["initial_accumulator_value"])

    def _rule(self, group: dict) -> tuple[str, tuple[float, ...]]:
        numbers = (group["lr"], group["lr_decay"], group["eps"])
        return "adagrad", (*numbers, group["weight_decay"], _sign(group))


class Adadelta(Optimizer):
    """Adadelta (Zeiler, 2012): steps of the size of those before.

    rho: how slowly the means of squared gradients and steps follow.

    >>> w = nn.Parameter(torch.ones(2))
    >>> trainer = torch.optim.Adadelta([w])
    >>> w.grad = torch.tensor([1.0, -1.0])
    >>> trainer.step()
    >>> w.data
    tensor([0.9968, 1.0032])
    """

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
        super().__init__(
            params,
            checked(
                lr=lr,
                rho=rho,
                eps=eps,
                weight_decay=weight_decay,
                maximize=maximize,
                capturable=capturable,
                foreach=foreach,
                differentiable=differentiable,
            ),
        )

    def _rule(self, group: dict) -> tuple[str, tuple[float, ...]]:
        numbers = (group["lr"], group["rho"], group["eps"])
        return "adadelta", (*numbers, group["weight_decay"], _sign(group))


class RMSprop(Optimizer):
    """RMSprop (Hinton, lecture notes, 2012); centered as Graves, 2013.

    alpha: how slowly the mean of squared gradients follows; centered takes the square
    of their mean off it.

    >>> w = nn.Parameter(torch.ones(2))
    >>> trainer = torch.optim.RMSprop([w], lr=0.1)
    >>> w.grad = torch.tensor([1.0, -1.0])
    >>> trainer.step()
    >>> w.data
    tensor([5.9605e-08, 2.0000e+00])
    """

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
        super().__init__(
            params,
            checked(
                lr=lr,
                momentum=momentum,
                alpha=alpha,
                eps=eps,
                centered=centered,
                weight_decay=weight_decay,
                capturable=capturable,
                foreach=foreach,
                maximize=maximize,
                differentiable=differentiable,
            ),
        )

    def _rule(self, group: dict) -> tuple[str, tuple[float, ...]]:
        rule = "rmsprop"
        if group["centered"]:
            rule += "_centered"
        if group["momentum"]:
            rule += "_momentum"
        numbers = (group["lr"], group["alpha"], group["eps"], group["weight_decay"])
        return rule, (*numbers, _sign(group), group["momentum"])
