"""Adafactor: Adam's rates from the sums of rows and columns of squared gradients."""

from __future__ import annotations

from typing import Any

import pydevtensor
from pydevtensor import _C
from pydevtensor.optim._options import options_of
from pydevtensor.optim.optimizer import Optimizer, ParamsT, new_count


class Adafactor(Optimizer):
    """Adafactor (Shazeer and Stern, 2018), whose state is small.

    It keeps the mean squared gradients of the rows and of the columns of a parameter's
    last two dimensions, whose product stands for those of the elements. A step is
    relative to the parameter's root mean square. Nothing waits for a GPU. Raises
    ValueError for options out of range.

    params        Tensors, pairs of a name and one, or dicts with 'params' and options
    lr            the largest rate; in step t it is at most 1 / sqrt(t)
    beta2_decay   step t keeps 1 - t ** beta2_decay of the means, 0 or less
    eps           two numbers: what keeps denominators from 0, for None the precision of
                  the type; and the least root mean square that a step is relative to
    d             the largest root mean square of an update, before the rate; 1 or more
    weight_decay  each step first multiplies the parameters by 1 - lr * weight_decay
    foreach       no effect
    maximize      climb: use the negative gradient

    >>> w = nn.Parameter(torch.ones(2, 2))
    >>> trainer = torch.optim.Adafactor([w], lr=0.5)
    >>> w.grad = torch.tensor([[100.0, 1.0], [100.0, 1.0]])
    >>> trainer.step()
    >>> w.data
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | _C.Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        _check(beta2_decay <= 0, "beta2_decay", beta2_decay, "0 or less")
        _check(eps[0] is None or eps[0] >= 0, "eps[0]", eps[0], "0 or more, or None")
        _check(eps[1] >= 0, "eps[1]", eps[1], "0 or more")
        _check(d >= 1, "d", d, "1 or more")
        super().__init__(params, options_of(locals(), unchecked="eps"))

    def _update(self, group: dict[Any, Any]) -> None:
        for parameter in group["params"]:
            if parameter.grad is None:
                continue
            if parameter.grad.is_sparse:
                self._update_rows(parameter, parameter.grad, group)
            gradient = -parameter.grad if group["maximize"] else parameter.grad
            kept = self.state[parameter]
            if not kept:
                kept["step"] = new_count()
                for name, dim in _means(gradient).items():
                    kept[name] = _squares(gradient, dim).zero_()
            kept["step"] += 1
            _step(parameter, gradient, kept, group)


def _check(fits: bool, name: str, value: Any, wanted: str) -> None:
    if not fits:
        raise ValueError(f"{name} is {value}; give {wanted}")


def _means(gradient: Any) -> dict[str, int | None]:
    """The name of each state, and the dimension that its means are over."""
    if gradient.dim() > 1:
        return {"row_var": -1, "col_var": -2}
    return {"variance": None}


def _squares(gradient: Any, dim: int | None) -> Any:
    squares = gradient * gradient
    return squares if dim is None else squares.mean(dim, keepdim=True)


def _step(parameter: Any, gradient: Any, kept: dict[str, Any], group: Any) -> None:
    count, d = kept["step"].item(), group["d"]
    least, smallest = group["eps"]
    if least is None:
        least = pydevtensor.finfo(parameter.dtype).eps
    for name, dim in _means(gradient).items():
        kept[name].lerp_(_squares(gradient, dim), count ** group["beta2_decay"])
    if "variance" in kept:
        mean = kept["variance"].clone()
    else:
        rows = kept["row_var"]
        mean = rows @ kept["col_var"]
        mean /= rows.mean(-2, keepdim=True).clamp_(min=least)
    update = mean.clamp_(min=least * least).rsqrt_().mul_(gradient)
    rate = group["lr"]
    size = parameter.numel() ** 0.5
    scale = (parameter.norm() / size).clamp_(min=smallest) * min(rate, count**-0.5)
    scale /= (update.norm() / (size * d)).clamp_(min=1)
    parameter.mul_(1 - rate * group["weight_decay"]).sub_(update * scale)
