"""The schedule that follows a metric."""

from __future__ import annotations

import math
from typing import Any

from pydevtensor.optim.lr_scheduler.base import (
    LRScheduler,
    _check_optimizer,
    _for_each_group,
    _set_rate,
    _warn_of_epoch,
)
from pydevtensor.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rates by factor when a metric stagnates for patience epochs.

    step() takes the metric. ValueError for a factor of 1 or more, another mode, and
    rates that are not one for each group.

    optimizer       the optimizer to schedule
    mode            'min' or 'max': which metrics are better
    factor          factor of each rate, below 1
    patience        epochs without a better metric that change nothing yet
    threshold       how much better a metric has to be
    threshold_mode  'rel': as a part of the best one; 'abs': as a difference
    cooldown        epochs to wait after a reduction
    min_lr          the lowest rate, or one for each group
    eps             the least change of a rate

    >>> sgd = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(sgd, patience=1)
    >>> for loss in (3.0, 2.0, 2.0, 2.0): schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError(f"factor is {factor}; give a number below 1")
        _check_optimizer(optimizer)
        if mode not in ("min", "max"):
            raise ValueError(f"mode is {mode!r}; give 'min' or 'max'")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"threshold_mode is {threshold_mode!r}; give 'rel' or 'abs'"
            )
        self.optimizer = optimizer
        self.factor = factor
        several = isinstance(min_lr, (list, tuple))
        self.default_min_lr: Any = None if several else min_lr
        self.min_lrs: list[float] = _for_each_group("min_lr", min_lr, optimizer)
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch: int = 0
        self._last_lr = self._rates()
        self.mode_worse: float = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.best: float = self.mode_worse
        self.cooldown_counter: int = 0
        self.num_bad_epochs: int = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether the cooldown after a change of the rate still runs."""
        return self.cooldown_counter > 0

    def is_better(self, a: float, best: float) -> bool:
        """Whether a is better than best by the threshold.

        a     a metric
        best  the best one so far
        """
        sign = 1 if self.mode == "max" else -1
        if self.threshold_mode == "rel":
            limit = best * (1 + sign * self.threshold)
        else:
            limit = best + sign * self.threshold
        return a > limit if self.mode == "max" else a < limit

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take the metric of an epoch, and reduce the rates on a plateau.

        metrics  the number to watch, such as the loss of an epoch, or a Tensor of one
                 element
        epoch    the epoch's number; deprecated, with a UserWarning
        """
        current = float(metrics)
        if epoch is not None:
            _warn_of_epoch()
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            groups = zip(self.optimizer.param_groups, self.min_lrs, strict=True)
            for group, least in groups:
                rate = max(group["lr"] * self.factor, least)
                if group["lr"] - rate > self.eps:
                    _set_rate(group, rate)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._rates()
