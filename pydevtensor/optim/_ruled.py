"""Base of optimizers that are a rule of csrc/ops/optim.def and a list of options."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C  # noqa: F401, in the schema
from pydevtensor._records import Record
from pydevtensor.optim._options import options_of
from pydevtensor.optim.optimizer import Optimizer, ParamsT

__all__ = ["Ruled"]


class Ruled(Optimizer, Record):
    """Optimizers whose step is one kernel for all parameters of a group.

    params                      Tensors, pairs of a name and one, or dicts with 'params'
                                and options
    lr                          learning rate
    eps                         added to denominators
    weight_decay                this times the parameter is added to its gradient
    decoupled_weight_decay      shrink the parameter instead, as AdamW
    foreach, fused, capturable  no effect: a step is always one kernel
    maximize                    climb: use the negative gradient
    differentiable              has to be False
    """

    _schema = (
        "optimizer(params: ParamsT, lr: float | _C.Tensor = 1e-2, "
        "betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, "
        "weight_decay: float = 0, foreach: bool = None, maximize: bool = False, "
        "capturable: bool = False, differentiable: bool = False, fused: bool = None, "
        "amsgrad: bool = False, decoupled_weight_decay: bool = False)"
    )
    _order = ""  # the options that PyTorch stores before the others
    _unchecked = ""  # an option that may have any value
    _name = ""  # of the rule, where no option chooses it

    def __init_subclass__(cls, rule: str = "", **record: Any) -> None:
        super().__init_subclass__(**record)
        cls._name = rule or cls._name

    def _make(self, *, params: ParamsT, **options: Any) -> None:
        checked = options_of(options, self._order, self._unchecked)
        Optimizer.__init__(self, params, checked)

    def _rule(self, group: dict[Any, Any]) -> str:
        return self._name
