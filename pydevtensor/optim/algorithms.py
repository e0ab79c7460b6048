"""SGD, Adagrad, Adadelta, RMSprop, ASGD and Rprop, as csrc/ops/optim.def computes them.

foreach, fused and capturable have no effect: a step is always one kernel for all
parameters of a group.
"""

from __future__ import annotations

from typing import Any

from pydevtensor.optim._ruled import Ruled
from pydevtensor.optim.optimizer import filled_like, new_count, rows_of


class SGD(
    Ruled,
    takes="params, lr=1e-3, momentum: float = 0, dampening: float = 0, weight_decay, "
    "nesterov: bool = False, *, maximize, foreach, differentiable, fused",
):
    """Stochastic gradient descent, with momentum (Sutskever and others, 2013).

    v = momentum * v + (1 - dampening) * g;  p = p - lr * v, or with nesterov
    p = p - lr * (g + momentum * v). Raises ValueError for options out of range. See
    also AdamW and optim.lr_scheduler.

    lr         learning rate, 0 or more
    momentum   part of the last step's v that is kept, 0 or more; 0: v is g
    dampening  part of the gradient g that v leaves out, from its second step on
    nesterov   look ahead by the momentum; it needs one above 0, and dampening 0

    >>> weight = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.SGD([weight], lr=0.1)
    >>> (weight * 3).sum().backward()
    >>> optimizer.step()
    >>> weight.detach()
    tensor([0.7000])
    """

    _counted = False

    def _make(self, **options: Any) -> None:
        momentum, dampening = options["momentum"], options["dampening"]
        if options["nesterov"] and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super()._make(**options)

    def _rule(self, group: dict[Any, Any]) -> str:
        return "sgd_momentum" if group["momentum"] else "sgd"

    def _update_rows(
        self, parameter: Any, gradient: Any, group: dict[Any, Any]
    ) -> None:
        _refuse_decay(group)
        gradient = -gradient if group["maximize"] else gradient
        momentum, kept = group["momentum"], self.state[parameter]
        if momentum:
            mean = gradient.clone()
            if kept.get("momentum_buffer") is not None:
                added = gradient * (1 - group["dampening"])
                mean = (kept["momentum_buffer"] * momentum + added).coalesce()
            kept["momentum_buffer"] = mean
            gradient = gradient + mean * momentum if group["nesterov"] else mean
        where, values = rows_of(gradient)
        parameter.index_put_(where, values * -group["lr"], accumulate=True)


def _refuse_decay(group: dict[Any, Any]) -> None:
    if group["weight_decay"]:
        raise RuntimeError(
            "weight_decay does not go with sparse gradients; leave it out, or make the "
            "embedding with sparse=False"
        )


class Adagrad(
    Ruled,
    rule="adagrad",
    takes="params, lr, lr_decay: float = 0, weight_decay, initial_accumulator_value: "
    "float = 0, eps=1e-10, foreach, *, maximize, differentiable, fused",
):
    """Adagrad (Duchi and others, 2011).

    The rate is divided by the root of the sum of all squared gradients so far. Raises
    ValueError for options out of range.

    lr_decay                   the rate is divided by 1 + lr_decay * steps so far
    initial_accumulator_value  initial sum of squares

    >>> w = nn.Parameter(torch.ones(2))
    >>> trainer = torch.optim.Adagrad([w], lr=0.1)
    >>> w.grad = torch.tensor([1.0, -1.0])
    >>> trainer.step()
    >>> w.data
    tensor([0.9000, 1.1000])
    """

    _order = "lr lr_decay eps"

    def _make(self, **options: Any) -> None:
        super()._make(**options)
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter] = {
                    "step": new_count(),
                    "sum": self._fresh("sum", parameter, group),
                }

    def _fresh(self, name: str, parameter: Any, group: dict[Any, Any]) -> Any:
        return filled_like(parameter, group["initial_accumulator_value"])

    def _update_rows(
        self, parameter: Any, gradient: Any, group: dict[Any, Any]
    ) -> None:
        _refuse_decay(group)
        kept = self.state[parameter]
        where, values = rows_of(-gradient if group["maximize"] else gradient)
        rate = group["lr"] / (1 + kept["step"].item() * group["lr_decay"])
        kept["step"] += 1
        sums = kept["sum"][where] + values * values
        kept["sum"].index_put_(where, sums)
        step = values / (sums.sqrt() + group["eps"]) * -rate
        parameter.index_put_(where, step, accumulate=True)


class Adadelta(
    Ruled,
    rule="adadelta",
    takes="params, lr=1.0, rho: float = 0.9, eps=1e-6, weight_decay, foreach, *, "
    "capturable, maximize, differentiable",
):
    """Adadelta (Zeiler, 2012): steps of the size of the recent ones.

    Raises ValueError for options out of range.

    rho  decay rate of the means of squared gradients and steps, 0 to 1

    >>> w = nn.Parameter(torch.ones(2))
    >>> trainer = torch.optim.Adadelta([w])
    >>> w.grad = torch.tensor([1.0, -1.0])
    >>> trainer.step()
    >>> w.data
    tensor([0.9968, 1.0032])
    """

    _order = "lr rho eps weight_decay maximize capturable"


class RMSprop(
    Ruled,
    takes="params, lr, alpha: float = 0.99, eps, weight_decay, momentum: float = 0, "
    "centered: bool = False, capturable, foreach, maximize, differentiable",
):
    """RMSprop (Hinton, lecture notes, 2012); centered as Graves, 2013.

    A step is the gradient divided by the root of the mean of its squares. Raises
    ValueError for options out of range.

    alpha     decay rate of the mean of squares, such as 0.99
    momentum  part of the last step that is kept
    centered  subtract the square of the mean gradient from it: divide by the deviation

    >>> w = nn.Parameter(torch.ones(2))
    >>> trainer = torch.optim.RMSprop([w], lr=0.1)
    >>> w.grad = torch.tensor([1.0, -1.0])
    >>> trainer.step()
    >>> w.data
    tensor([5.9605e-08, 2.0000e+00])
    """

    _order = "lr momentum alpha eps centered"

    def _rule(self, group: dict[Any, Any]) -> str:
        centered = "_centered" if group["centered"] else ""
        return "rmsprop" + centered + ("_momentum" if group["momentum"] else "")


class ASGD(
    Ruled,
    rule="asgd",
    takes="params, lr, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6, "
    "weight_decay, foreach, maximize, differentiable, capturable",
):
    """Averaged stochastic gradient descent (Polyak and Juditsky, 1992).

    The rate of step t + 1 is lr / (1 + lambd * lr * t) ** alpha. state[p]["ax"] is the
    mean of the parameter. Raises ValueError for options out of range.

    lr     learning rate of the first step
    lambd  how fast the rate falls; each step also multiplies the parameters by 1 -
           lambd * rate
    alpha  power of the rate's fall
    t0     state[p]["ax"] is the parameter itself up to step t0 + 1, and the mean from
           there on

    >>> w = nn.Parameter(torch.ones(2))
    >>> trainer = torch.optim.ASGD([w], lr=0.5, lambd=0, t0=0)
    >>> for _ in range(3):
    ...     w.grad = torch.tensor([1.0, -1.0])
    ...     trainer.step()
    >>> w.data, trainer.state[w]["ax"]
    (tensor([-0.5000,  2.5000]), tensor([-0.2500,  2.2500]))
    """

    _unchecked = "alpha"
    _keeps = ("eta", "mu")
    _takes_rate = False  # eta follows from it, which the host keeps

    def _first(self, name: str, group: dict[Any, Any]) -> float:
        return float(group["lr"]) if name == "eta" else 1.0


class Rprop(
    Ruled,
    rule="rprop",
    takes="params, lr, etas: tuple[float, float] = (0.5, 1.2), step_sizes: "
    "tuple[float, float] = (1e-6, 50), *, capturable, foreach, maximize, "
    "differentiable",
):
    """Resilient backpropagation (Riedmiller and Braun, 1993), for whole data sets.

    Each element has a step of its own, and only the sign of its gradient counts.

    lr          the first step of each element
    etas        factors of a step where the sign changes, and where it stays; ValueError
                unless 0 < etas[0] < 1 < etas[1]
    step_sizes  the least and the greatest step

    >>> w = nn.Parameter(torch.ones(2))
    >>> trainer = torch.optim.Rprop([w], lr=0.25)
    >>> for grad in ([1.0, -3.0], [2.0, 4.0]):
    ...     w.grad = torch.tensor(grad)
    ...     trainer.step()
    >>> w.data
    tensor([0.4500, 1.2500])
    """

    _order = "lr etas step_sizes foreach maximize differentiable"
    _takes_rate = False  # only states begin with it

    def _make(self, **options: Any) -> None:
        etas = options["etas"]
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(
                f"etas is {etas}; give a factor between 0 and 1, and one above 1"
            )
        super()._make(**options)

    def _numbers(self, group: dict[Any, Any]) -> dict[str, float]:
        shrink, grow = group["etas"]
        least, most = group["step_sizes"]
        own = {"shrink": shrink, "grow": grow, "least": least, "most": most}
        return own | super()._numbers(group)

    def _fresh(self, name: str, parameter: Any, group: dict[Any, Any]) -> Any:
        if name == "step_size":
            return filled_like(parameter, float(group["lr"]))
        return super()._fresh(name, parameter, group)
