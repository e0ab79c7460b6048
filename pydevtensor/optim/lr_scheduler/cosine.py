"""Schedules along half a cosine."""

from __future__ import annotations

import math
from typing import Any

from pydevtensor.optim.lr_scheduler.base import LRScheduler


class CosineAnnealingLR(
    LRScheduler,
    takes="optimizer, T_max: int, eta_min, last_epoch",
    shows=("T_max=4", [1.0, 0.854, 0.5, 0.146, 0.0]),
):
    """Half a cosine from the rate to eta_min in T_max epochs.

    Loshchilov and Hutter, 2017. See also CosineAnnealingWarmRestarts.

    T_max    epochs from the greatest rate to the least
    eta_min  the least rate
    """

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._rates()
        low = self.eta_min
        now = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        before = 1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max)
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            pairs = zip(self._rates(), self.base_lrs, strict=True)
            return [rate + (base - low) * rise for rate, base in pairs]
        return [now / before * (rate - low) + low for rate in self._rates()]

    def _jump(self) -> list[float]:
        part = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]


class CosineAnnealingWarmRestarts(
    LRScheduler,
    takes="optimizer, T_0: int, T_mult: int = 1, eta_min, last_epoch",
    shows=("T_0=2", [1.0, 0.5, 1.0, 0.5]),
):
    """Half a cosine that restarts, each period T_mult times as long as the last.

    step(epoch) accepts fractions (Loshchilov and Hutter, 2017). ValueError for periods
    that are not ints of 1 or more.

    T_0      epochs of the first period
    T_mult   what each period is multiplied by for the next
    eta_min  the rate at the end of a period
    """

    _takes_epochs = True

    def _make(self, **options: Any) -> None:
        for name in ("T_0", "T_mult"):
            value = options[name]
            if value < 1 or not isinstance(value, int):
                raise ValueError(f"{name} is {value}; give a whole number of 1 or more")
        eta_min = options["eta_min"]
        if not isinstance(eta_min, (int, float)):
            raise ValueError(f"eta_min is a {type(eta_min).__name__}; give a number")
        self.T_i: int = options["T_0"]
        self.T_cur: float = options["last_epoch"]
        super()._make(**options)

    def get_lr(self) -> list[float]:
        part = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]

    def _advance(self, epoch: float | None = None) -> None:
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            self.last_epoch += 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            if epoch < 0:
                raise ValueError(f"epoch is {epoch}; give a number of 0 or more")
            self.last_epoch: int = math.floor(epoch)
            self.T_cur = epoch
            self.T_i = self.T_0
            while self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        self._set(self.get_lr())
