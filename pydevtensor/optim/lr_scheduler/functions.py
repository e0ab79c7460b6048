"""Schedules by functions of the epoch."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

from pydevtensor.optim.lr_scheduler.base import (
    LRScheduler,
    _check_optimizer,
    _for_each_group,
)
from pydevtensor.optim.optimizer import Optimizer


class _FunctionLR(LRScheduler):
    """Base of schedules by a function of the epoch, or one for each group."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        self.lr_lambdas: list[Callable[[int], float]] = _for_each_group(
            "lr_lambda", lr_lambda, optimizer
        )
        for each in self.lr_lambdas:
            if not callable(each):
                raise TypeError(
                    f"lr_lambda is {each!r:.60} ({type(each).__name__}); give a "
                    "function of the epoch, such as lambda epoch: 0.95**epoch"
                )
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """The state without the optimizer and functions; callable objects are kept."""
        state = super().state_dict()
        state["lr_lambdas"] = [
            None if isinstance(f, types.FunctionType) else dict(f.__dict__)
            for f in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what state_dict() returned; functions are not restored.

        state_dict  that dict
        """
        functions = self.lr_lambdas
        super().load_state_dict({**state_dict, "lr_lambdas": functions})
        for function, kept in zip(functions, state_dict["lr_lambdas"], strict=True):
            if kept is not None:
                function.__dict__.update(kept)


class LambdaLR(_FunctionLR, shows=("lambda epoch: 1 / (1 + epoch)", [1.0, 0.5, 0.333])):
    """Multiplies the initial rates by a function of the epoch.

    lr_lambda   a function of the epoch, an int from 0, or one for each group; TypeError
                for what cannot be called
    """

    def get_lr(self) -> list[float]:
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base * factor(self.last_epoch) for base, factor in pairs]


class MultiplicativeLR(_FunctionLR, shows=("lambda epoch: 0.5", [1.0, 0.5, 0.25])):
    """Multiplies the rates by a function of the epoch, every epoch.

    lr_lambda   a function of the epoch, an int from 1, or one for each group; TypeError
                for what cannot be called
    """

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._rates()
        pairs = zip(self._rates(), self.lr_lambdas, strict=True)
        return [rate * factor(self.last_epoch) for rate, factor in pairs]
