"""Adam and its relatives: AdamW, RAdam, NAdam, Adamax, as csrc/ops/optim.def computes
them.

foreach, fused and capturable have no effect: a step is always one kernel for all
parameters of a group.
"""

from __future__ import annotations

from typing import Any

from pydevtensor.optim._ruled import Ruled


class _Means(Ruled):
    """Base of optimizers with two means.

    betas    decay rates of the means of gradients and of their squares, 0 up to 1
    amsgrad  divide by the largest mean of squares so far
    """

    def _numbers(self, group: dict[Any, Any]) -> dict[str, float]:
        decay, shrink = group["weight_decay"], 1.0
        if group.get("decoupled_weight_decay"):
            decay, shrink = 0.0, 1 - group["lr"] * decay
        beta1, beta2 = group["betas"]
        own = {"beta1": beta1, "beta2": beta2, "weight_decay": decay, "shrink": shrink}
        return own | super()._numbers(group)


class Adam(
    _Means,
    takes="params, lr=1e-3, betas, eps, weight_decay, amsgrad, *, foreach, maximize, "
    "capturable, differentiable, fused, decoupled_weight_decay",
):
    """Adam (Kingma and Ba, 2015); amsgrad as Reddi and others, 2018.

    A step is the mean gradient divided by the root of the mean square. Raises
    ValueError for options out of range. See also AdamW, whose weight decay does not
    depend on the gradients.

    eps  added to the root, against division by 0

    >>> weight = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.Adam([weight], lr=0.1)
    >>> (weight * 3).sum().backward()
    >>> optimizer.step()
    >>> weight.detach()
    tensor([0.9000])
    """

    _order = "lr betas eps weight_decay amsgrad maximize"

    def _rule(self, group: dict[Any, Any]) -> str:
        return "adam_amsgrad" if group["amsgrad"] else "adam"


class AdamW(
    Adam,
    takes="params, lr=1e-3, betas, eps, weight_decay=1e-2, amsgrad, *, maximize, "
    "foreach, capturable, differentiable, fused",
):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019).

    Raises ValueError for options out of range.

    weight_decay  each step first multiplies the parameters by 1 - lr * weight_decay

    >>> w = nn.Parameter(torch.ones(2))
    >>> trainer = torch.optim.AdamW([w], lr=0.1)
    >>> w.grad = torch.tensor([1.0, -1.0])
    >>> trainer.step()
    >>> w.data
    tensor([0.8990, 1.0990])
    """

    def _make(self, **options: Any) -> None:
        super()._make(**options, decoupled_weight_decay=True)


class RAdam(
    _Means,
    rule="radam",
    takes="params, lr=1e-3, betas, eps, weight_decay, decoupled_weight_decay, *, "
    "foreach, maximize, capturable, differentiable",
):
    """Adam that rectifies its rate (Liu and others, 2020).

    The first steps, while the mean of squared gradients rests on too few of them, are
    those of momentum alone. Raises ValueError for options out of range.

    >>> w = nn.Parameter(torch.ones(2))
    >>> trainer = torch.optim.RAdam([w], lr=0.1)
    >>> w.grad = torch.tensor([1.0, -3.0])
    >>> trainer.step()
    >>> w.data
    tensor([0.9000, 1.3000])
    """

    _order = "lr betas eps weight_decay maximize foreach capturable"


class NAdam(
    _Means,
    rule="nadam",
    takes="params, lr=2e-3, betas, eps, weight_decay, momentum_decay: float = 4e-3, "
    "decoupled_weight_decay, *, foreach, maximize, capturable, differentiable",
):
    """Adam with Nesterov momentum (Dozat, 2016).

    The state's mu_product is the product of all momenta so far. Raises ValueError for
    options out of range.

    momentum_decay  the momentum of step t is betas[0] * (1 - 0.96 ** (t *
                    momentum_decay) / 2)

    >>> w = nn.Parameter(torch.ones(2))
    >>> trainer = torch.optim.NAdam([w], lr=0.1)
    >>> w.grad = torch.tensor([1.0, -3.0])
    >>> trainer.step()
    >>> w.data
    tensor([0.8944, 1.1056])
    """

    _order = "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize"
    _keeps = ("mu_product",)

    def _first(self, name: str, group: dict[Any, Any]) -> float:
        return 1.0


class Adamax(
    _Means,
    rule="adamax",
    takes="params, lr=2e-3, betas, eps, weight_decay, foreach, *, maximize, "
    "differentiable, capturable",
):
    """Adam with the infinity norm (Kingma and Ba, 2015).

    Steps are divided by the greatest gradient so far. Raises ValueError for options out
    of range.

    betas  decay rate of the mean gradient; how the greatest gradient fades in a step

    >>> w = nn.Parameter(torch.ones(2))
    >>> trainer = torch.optim.Adamax([w], lr=0.1)
    >>> w.grad = torch.tensor([1.0, -3.0])
    >>> trainer.step()
    >>> w.data
    tensor([0.9000, 1.1000])
    """
