"""Schedules that multiply all rates by a factor in each epoch."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from pydevtensor.optim.lr_scheduler.base import LRScheduler


class _FactorLR(LRScheduler):
    """Base of schedules that multiply all rates by a factor in each epoch."""

    def _factor(self, epoch: int) -> float:
        raise NotImplementedError

    def get_lr(self) -> list[float]:
        factor = self._factor(self.last_epoch)
        return [rate * factor for rate in self._rates()]

    def _jump(self) -> list[float]:
        factor = math.prod(map(self._factor, range(self.last_epoch + 1)))
        return [base * factor for base in self.base_lrs]


class StepLR(
    _FactorLR,
    takes="optimizer, step_size: int, gamma, last_epoch",
    shows=("step_size=2, gamma=0.1", [1.0, 1.0, 0.1, 0.1]),
):
    """Multiplies the rates by gamma every step_size epochs.

    step_size  epochs from one change to the next, an int
    gamma      what rates are multiplied by
    """

    def _factor(self, epoch: int) -> float:
        return 1 if epoch == 0 or epoch % self.step_size else self.gamma


class MultiStepLR(
    _FactorLR,
    takes="optimizer, milestones: Any, gamma, last_epoch",
    shows=("milestones=[1, 3]", [1.0, 0.1, 0.1, 0.01]),
):
    """Multiplies the rates by gamma at each of the milestones.

    milestones  the epochs in which rates change, ints; one that is listed twice counts
                twice
    gamma       what rates are multiplied by in each
    """

    def _make(self, **options: Any) -> None:
        options["milestones"] = Counter(options["milestones"])
        super()._make(**options)

    def _factor(self, epoch: int) -> float:
        return self.gamma ** self.milestones[epoch]


class ConstantLR(
    _FactorLR,
    takes="optimizer, factor: float = 1 / 3, total_iters, last_epoch",
    shows=("factor=0.1, total_iters=2", [0.1, 0.1, 1.0]),
):
    """Multiplies the rates by factor for the first total_iters epochs.

    ValueError for a factor out of range.

    factor       what rates are multiplied by, 0 to 1
    total_iters  the epoch in which they return to what they were
    """

    def _make(self, **options: Any) -> None:
        if not 0 <= options["factor"] <= 1:
            raise ValueError(
                f"factor is {options['factor']}; give a number from 0 to 1"
            )
        super()._make(**options)

    def _factor(self, epoch: int) -> float:
        if epoch == 0:
            return self.factor
        return 1 / self.factor if epoch == self.total_iters else 1


class LinearLR(
    _FactorLR,
    takes="optimizer, start_factor: float = 1 / 3, end_factor: float = 1.0, "
    "total_iters, last_epoch",
    shows=("0.5, total_iters=2", [0.5, 0.75, 1.0]),
):
    """Multiplies the rates by start_factor to end_factor, in total_iters even steps.

    ValueError for factors out of range.

    start_factor  what rates are multiplied by at first, above 0, at most 1
    end_factor    their factor in the end, 0 to 1
    total_iters   epochs from one to the other
    """

    def _make(self, **options: Any) -> None:
        first, last = options["start_factor"], options["end_factor"]
        if not 0 < first <= 1:
            raise ValueError(
                f"start_factor is {first}; give a number above 0, at most 1"
            )
        if not 0 <= last <= 1:
            raise ValueError(f"end_factor is {last}; give a number from 0 to 1")
        super()._make(**options)

    def _share(self, epoch: int) -> float:
        done = epoch / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * done

    def _factor(self, epoch: int) -> float:
        if epoch == 0:
            return self.start_factor
        if epoch > self.total_iters:
            return 1
        return self._share(epoch) / self._share(epoch - 1)


class PolynomialLR(
    _FactorLR,
    takes="optimizer, total_iters, power: float = 1.0, last_epoch",
    shows=("total_iters=4, power=2.0", [1.0, 0.562, 0.25, 0.062]),
):
    """Decays the rates to 0 in total_iters epochs, as a power of the epochs left.

    total_iters  epochs until the rates are 0
    power        of the part of the epochs that is left; 1: a straight line
    """

    def _factor(self, epoch: int) -> float:
        if epoch == 0 or epoch > self.total_iters:
            return 1
        now, before = (1 - e / self.total_iters for e in (epoch, epoch - 1))
        return now**self.power / before**self.power


class ExponentialLR(
    _FactorLR,
    takes="optimizer, gamma: float, last_epoch",
    shows=("gamma=0.5", [1.0, 0.5, 0.25]),
):
    """Multiplies the rates by gamma every epoch.

    gamma  what rates are multiplied by in each epoch
    """

    def _factor(self, epoch: int) -> float:
        return self.gamma if epoch else 1
