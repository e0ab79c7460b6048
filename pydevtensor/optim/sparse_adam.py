"""SparseAdam: Adam for tables of which a step uses few rows."""

from __future__ import annotations

import math
from typing import Any

from pydevtensor import _C
from pydevtensor.optim._options import options_of
from pydevtensor.optim.optimizer import Optimizer, ParamsT, rows_of


class SparseAdam(Optimizer):
    """Adam (Kingma and Ba, 2015) of the elements that a sparse gradient has.

    Parameters and means of other elements stay as they are. The gradients come of
    nn.Embedding(sparse=True) and its kin; a dense one is a RuntimeError. Raises
    ValueError for options out of range.

    params    Tensors, pairs of a name and one, or dicts with 'params' and options
    lr        learning rate, above 0
    betas     decay rates of the means of gradients and of their squares
    eps       added to denominators, above 0
    maximize  climb: use the negative gradient

    >>> words = nn.Embedding.from_pretrained(torch.ones(3, 2), False, sparse=True)
    >>> trainer = torch.optim.SparseAdam(words.parameters(), lr=0.1)
    >>> words(torch.tensor([1])).sum().backward()
    >>> trainer.step()
    >>> words.weight.data
    tensor([[1.0000, 1.0000],
            [0.9000, 0.9000],
            [1.0000, 1.0000]])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | _C.Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if lr <= 0 or eps <= 0:
            raise ValueError(f"lr is {lr} and eps {eps}; give numbers above 0")
        super().__init__(params, options_of(locals()))
        for group in self.param_groups:
            if any(parameter.is_sparse for parameter in group["params"]):
                raise ValueError(
                    "SparseAdam takes dense parameters, whose gradients are sparse"
                )

    def _update(self, group: dict[Any, Any]) -> None:
        for parameter in group["params"]:
            gradient = parameter.grad
            if gradient is not None and not gradient.is_sparse:
                raise RuntimeError(
                    "SparseAdam does not support dense gradients; use Adam for them"
                )
            if gradient is not None:
                self._update_rows(parameter, gradient, group)

    def _update_rows(
        self, parameter: Any, gradient: Any, group: dict[Any, Any]
    ) -> None:
        kept = self.state[parameter]
        if not kept:
            kept["step"] = 0
            kept["exp_avg"] = _C.zeros_like(parameter)
            kept["exp_avg_sq"] = _C.zeros_like(parameter)
        kept["step"] = count = int(kept["step"]) + 1  # a Tensor after loading
        where, values = rows_of(-gradient if group["maximize"] else gradient)
        beta1, beta2 = group["betas"]
        mean = kept["exp_avg"][where].lerp(values, 1 - beta1)
        square = kept["exp_avg_sq"][where].lerp(values * values, 1 - beta2)
        kept["exp_avg"].index_put_(where, mean)
        kept["exp_avg_sq"].index_put_(where, square)
        rate = group["lr"] * math.sqrt(1 - beta2**count) / (1 - beta1**count)
        step = mean / (square.sqrt() + group["eps"]) * -rate
        parameter.index_put_(where, step, accumulate=True)
