"""The optimizers. Their arithmetic is in csrc/ops/optim.def.

foreach, fused and capturable have no effect: a step is always one kernel for all
parameters of a group.
"""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor.optim.optimizer import Optimizer, new_count, options_of


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum (Sutskever and others, 2013).

    v = momentum * v + (1 - dampening) * g;  p = p - lr * v, or with nesterov
    p = p - lr * (g + momentum * v). Raises ValueError for options out of range.

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
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, options_of(locals()))

    _counted = False

    def _rule(self, group: dict) -> str:
        return "sgd_momentum" if group["momentum"] else "sgd"


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015); amsgrad as Reddi and others, 2018.

    betas are the decay rates of the means of gradients and of squared gradients; eps is
    added to the root of the latter. Raises ValueError for options out of range.

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
            params, options_of(locals(), "lr betas eps weight_decay amsgrad maximize")
        )

    def _rule(self, group: dict) -> str:
        return "adam_amsgrad" if group["amsgrad"] else "adam"

    def _numbers(self, group: dict) -> dict[str, float]:
        decay, shrink = group["weight_decay"], 1.0
        if group["decoupled_weight_decay"]:
            decay, shrink = 0.0, 1 - group["lr"] * decay
        beta1, beta2 = group["betas"]
        own = {"beta1": beta1, "beta2": beta2, "weight_decay": decay, "shrink": shrink}
        return own | super()._numbers(group)


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019).

    Each step first multiplies the parameters by 1 - lr * weight_decay.

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
        options = options_of(locals())
        super().__init__(params, **options, decoupled_weight_decay=True)


class Adagrad(Optimizer):
    """Adagrad (Duchi and others, 2011).

    The rate is divided by the root of the sum of squared gradients, which starts at
    initial_accumulator_value; lr_decay also lowers it with the number of steps.

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
        super().__init__(params, options_of(locals(), "lr lr_decay eps"))
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter] = {
                    "step": new_count(),
                    "sum": self._fresh("sum", parameter, group),
                }

    def _fresh(self, name: str, parameter: Any, group: dict) -> Any:
        return _C.full_like(parameter, group["initial_accumulator_value"])

    def _rule(self, group: dict) -> str:
        return "adagrad"


class Adadelta(Optimizer):
    """Adadelta (Zeiler, 2012): steps of the size of the recent ones.

    rho is the decay rate of the means of squared gradients and steps.

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
            params, options_of(locals(), "lr rho eps weight_decay maximize capturable")
        )

    def _rule(self, group: dict) -> str:
        return "adadelta"


class RMSprop(Optimizer):
    """RMSprop (Hinton, lecture notes, 2012); centered as Graves, 2013.

    alpha is the decay rate of the mean of squared gradients; centered subtracts the
    square of the mean gradient from it.

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
        super().__init__(params, options_of(locals(), "lr momentum alpha eps centered"))

    def _rule(self, group: dict) -> str:
        centered = "_centered" if group["centered"] else ""
        return "rmsprop" + centered + ("_momentum" if group["momentum"] else "")
