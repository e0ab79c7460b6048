"""Adam and its relatives: AdamW, RAdam, NAdam, Adamax, as csrc/ops/optim.def computes
them.

foreach, fused and capturable have no effect: a step is always one kernel for all
parameters of a group.
"""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor.optim._options import options_of
from pydevtensor.optim.optimizer import Optimizer, ParamsT


class _Means(Optimizer):
    """Base of optimizers with two betas: the decay rates of two means."""

    def _numbers(self, group: dict[Any, Any]) -> dict[str, float]:
        decay, shrink = group["weight_decay"], 1.0
        if group.get("decoupled_weight_decay"):
            decay, shrink = 0.0, 1 - group["lr"] * decay
        beta1, beta2 = group["betas"]
        own = {"beta1": beta1, "beta2": beta2, "weight_decay": decay, "shrink": shrink}
        return own | super()._numbers(group)


class Adam(_Means):
    """Adam (Kingma and Ba, 2015); amsgrad as Reddi and others, 2018.

    A step is the mean gradient divided by the root of the mean square. Raises
    ValueError for options out of range. See also AdamW, whose weight decay does not
    depend on the gradients.

    params                      Tensors, pairs of a name and one, or dicts with 'params'
                                and options
    lr                          learning rate
    betas                       decay rates of the means of gradients and of their
                                squares, 0 up to 1
    eps                         added to the root, against division by 0
    weight_decay                this times the parameter is added to its gradient
    amsgrad                     divide by the largest mean of squares so far
    foreach, fused, capturable  no effect: a step is always one kernel
    maximize                    climb: use the negative gradient
    differentiable              has to be False
    decoupled_weight_decay      shrink the parameter instead, as AdamW

    >>> weight = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.Adam([weight], lr=0.1)
    >>> (weight * 3).sum().backward()
    >>> optimizer.step()
    >>> weight.detach()
    tensor([0.9000])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | _C.Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        super().__init__(
            params, options_of(locals(), "lr betas eps weight_decay amsgrad maximize")
        )

    def _rule(self, group: dict[Any, Any]) -> str:
        return "adam_amsgrad" if group["amsgrad"] else "adam"


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019).

    Raises ValueError for options out of range.

    params                      Tensors, pairs of a name and one, or dicts with 'params'
                                and options
    lr                          learning rate
    betas                       decay rates of the two means
    eps                         added to denominators
    weight_decay                each step first multiplies the parameters by 1 - lr *
                                weight_decay
    amsgrad                     divide by the largest mean of squares so far
    maximize                    climb: use the negative gradient
    foreach, fused, capturable  no effect: a step is always one kernel
    differentiable              has to be False

    >>> w = nn.Parameter(torch.ones(2))
    >>> trainer = torch.optim.AdamW([w], lr=0.1)
    >>> w.grad = torch.tensor([1.0, -1.0])
    >>> trainer.step()
    >>> w.data
    tensor([0.8990, 1.0990])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | _C.Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        options = options_of(locals())
        super().__init__(params, **options, decoupled_weight_decay=True)


class RAdam(_Means):
    """Adam that rectifies its rate (Liu and others, 2020).

    The first steps, while the mean of squared gradients rests on too few of them, are
    those of momentum alone. Raises ValueError for options out of range.

    params                  Tensors, pairs of a name and one, or dicts with 'params'
                            and options
    lr                      learning rate
    betas                   decay rates of the two means
    eps                     added to denominators
    weight_decay            this times the parameter is added to its gradient
    decoupled_weight_decay  shrink the parameter instead, as AdamW
    maximize                climb: use the negative gradient
    foreach, capturable     no effect: a step is always one kernel
    differentiable          has to be False

    >>> w = nn.Parameter(torch.ones(2))
    >>> trainer = torch.optim.RAdam([w], lr=0.1)
    >>> w.grad = torch.tensor([1.0, -3.0])
    >>> trainer.step()
    >>> w.data
    tensor([0.9000, 1.3000])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | _C.Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        first = "lr betas eps weight_decay maximize foreach capturable"
        super().__init__(params, options_of(locals(), first))

    def _rule(self, group: dict[Any, Any]) -> str:
        return "radam"


class NAdam(_Means):
    """Adam with Nesterov momentum (Dozat, 2016).

    The state's mu_product is the product of all momenta so far. Raises ValueError for
    options out of range.

    params                  Tensors, pairs of a name and one, or dicts with 'params' and
                            options
    lr                      learning rate
    betas                   decay rates of the means of gradients and of their squares,
                            0 up to 1
    eps                     added to denominators
    weight_decay            this times the parameter is added to its gradient
    momentum_decay          the momentum of step t is betas[0] * (1 - 0.96 ** (t *
                            momentum_decay) / 2)
    decoupled_weight_decay  shrink the parameter instead, as AdamW
    foreach, capturable     no effect: a step is always one kernel
    maximize                climb: use the negative gradient
    differentiable          has to be False

    >>> w = nn.Parameter(torch.ones(2))
    >>> trainer = torch.optim.NAdam([w], lr=0.1)
    >>> w.grad = torch.tensor([1.0, -3.0])
    >>> trainer.step()
    >>> w.data
    tensor([0.8944, 1.1056])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | _C.Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        first = (
            "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize"
        )
        super().__init__(params, options_of(locals(), first))

    _keeps = ("mu_product",)

    def _rule(self, group: dict[Any, Any]) -> str:
        return "nadam"

    def _first(self, name: str, group: dict[Any, Any]) -> float:
        return 1.0


class Adamax(_Means):
    """Adam with the infinity norm (Kingma and Ba, 2015).

    Steps are divided by the greatest gradient so far. Raises ValueError for options out
    of range.

    params               Tensors, pairs of a name and one, or dicts with 'params' and
                         options
    lr                   learning rate
    betas                decay rate of the mean gradient; how the greatest gradient
                         fades in a step
    eps                  added to denominators
    weight_decay         this times the parameter is added to its gradient
    foreach, capturable  no effect: a step is always one kernel
    maximize             climb: use the negative gradient
    differentiable       has to be False

    >>> w = nn.Parameter(torch.ones(2))
    >>> trainer = torch.optim.Adamax([w], lr=0.1)
    >>> w.grad = torch.tensor([1.0, -3.0])
    >>> trainer.step()
    >>> w.data
    tensor([0.9000, 1.1000])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | _C.Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, options_of(locals()))

    def _rule(self, group: dict[Any, Any]) -> str:
        return "adamax"
