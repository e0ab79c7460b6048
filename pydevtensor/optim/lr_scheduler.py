"""Learning rate schedules.

Most compute an epoch's rate from the last one, so that several can be chained on one
optimizer.
"""

from __future__ import annotations

import math
import types
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from pydevtensor._names import publish as _publish
from pydevtensor.optim.optimizer import Optimizer


class LRScheduler:
    """Base of schedules: step() after each epoch sets the rate of each group.

    >>> optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)
    >>> schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for epoch in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.025]
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param_groups[{i}] has no 'initial_lr', which resuming at "
                    f"last_epoch={last_epoch} needs; load the optimizer's state first, "
                    "or set it"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._is_initial = False
        self._get_lr_called_within_step = False
        self._last_lr: list[float] = []
        optimizer._stepped = False
        self._begin()

    def _begin(self) -> None:
        """Set the rates of the first epoch."""
        self._is_initial = True
        self._advance()
        self._is_initial = False
        self._step_count = 1

    def get_lr(self) -> list[float]:
        """The rates of this epoch, to be defined by subclasses."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_lr()")

    def get_last_lr(self) -> list[float]:
        """The current rates, one for each group."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next epoch, or of the one given."""
        if self._step_count == 1 and not self.optimizer._stepped:
            warnings.warn(
                "lr_scheduler.step() was called before optimizer.step(), which skips "
                "the schedule's first rate; call optimizer.step() first",
                UserWarning,
                stacklevel=2,
            )
        self._advance(epoch)

    def _advance(self, epoch: int | None = None) -> None:
        self._step_count += 1
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set(self.get_lr() if epoch is None else self._jump())

    def _jump(self) -> list[float]:
        """get_lr() after step(epoch), where the last rates are not the last epoch's."""
        return self.get_lr()

    def _set(self, rates: list) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._last_lr = rates

    def _rates(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The state without the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what state_dict() returned."""
        self.__dict__.update(state_dict)


def _check_optimizer(optimizer: Any) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(
            f"a schedule needs an Optimizer, and got a {type(optimizer).__name__}"
        )


def _for_each_group(name: str, value: Any, optimizer: Optimizer) -> list:
    """A list of a value per group; value may be that list."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * groups
    if len(value) != groups:
        raise ValueError(
            f"{name} has {len(value)} values for {groups} parameter groups; give one "
            "for each, or a single one"
        )
    return [*value]


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


class StepLR(_FactorLR):
    """Multiplies the rates by gamma every step_size epochs.

    >>> sgd = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.StepLR(sgd, step_size=2, gamma=0.1)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(schedule.get_last_lr()[0])
    ...     sgd.step()
    ...     schedule.step()
    >>> [round(rate, 3) for rate in rates]
    [1.0, 1.0, 0.1, 0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        step_size: int,
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        return 1 if epoch == 0 or epoch % self.step_size else self.gamma


class MultiStepLR(_FactorLR):
    """Multiplies the rates by gamma at each of the milestones.

    >>> sgd = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.MultiStepLR(sgd, milestones=[1, 3])
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(schedule.get_last_lr()[0])
    ...     sgd.step()
    ...     schedule.step()
    >>> [round(rate, 3) for rate in rates]
    [1.0, 0.1, 0.1, 0.01]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Any,
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        return self.gamma ** self.milestones[epoch]


class ConstantLR(_FactorLR):
    """Multiplies the rates by factor for the first total_iters epochs.

    >>> sgd = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.ConstantLR(sgd, factor=0.1, total_iters=2)
    >>> rates = []
    >>> for _ in range(3):
    ...     rates.append(schedule.get_last_lr()[0])
    ...     sgd.step()
    ...     schedule.step()
    >>> [round(rate, 3) for rate in rates]
    [0.1, 0.1, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"factor is {factor}; give a number from 0 to 1")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        if epoch == 0:
            return self.factor
        return 1 / self.factor if epoch == self.total_iters else 1


class LinearLR(_FactorLR):
    """Multiplies the rates by start_factor to end_factor, in total_iters even steps.

    >>> sgd = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.LinearLR(sgd, 0.5, total_iters=2)
    >>> rates = []
    >>> for _ in range(3):
    ...     rates.append(schedule.get_last_lr()[0])
    ...     sgd.step()
    ...     schedule.step()
    >>> [round(rate, 3) for rate in rates]
    [0.5, 0.75, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError(
                f"start_factor is {start_factor}; give a number above 0, at most 1"
            )
        if not 0 <= end_factor <= 1:
            raise ValueError(f"end_factor is {end_factor}; give a number from 0 to 1")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _share(self, epoch: int) -> float:
        done = epoch / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * done

    def _factor(self, epoch: int) -> float:
        if epoch == 0:
            return self.start_factor
        if epoch > self.total_iters:
            return 1
        return self._share(epoch) / self._share(epoch - 1)


class PolynomialLR(_FactorLR):
    """Decays the rates to 0 in total_iters epochs, as a power of the epochs left.

    >>> sgd = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.PolynomialLR(sgd, total_iters=4, power=2.0)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(schedule.get_last_lr()[0])
    ...     sgd.step()
    ...     schedule.step()
    >>> [round(rate, 3) for rate in rates]
    [1.0, 0.562, 0.25, 0.062]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        if epoch == 0 or epoch > self.total_iters:
            return 1
        now, before = (1 - e / self.total_iters for e in (epoch, epoch - 1))
        return now**self.power / before**self.power


class ExponentialLR(_FactorLR):
    """Multiplies the rates by gamma every epoch.

    >>> sgd = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.ExponentialLR(sgd, gamma=0.5)
    >>> rates = []
    >>> for _ in range(3):
    ...     rates.append(schedule.get_last_lr()[0])
    ...     sgd.step()
    ...     schedule.step()
    >>> [round(rate, 3) for rate in rates]
    [1.0, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, gamma: float, last_epoch: int = -1
    ) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        return self.gamma if epoch else 1


class _FunctionLR(LRScheduler):
    """Base of schedules by a function of the epoch, or one for each group."""

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1
    ) -> None:
        _check_optimizer(optimizer)
        self.lr_lambdas: list[Callable[[int], float]] = _for_each_group(
            "lr_lambda", lr_lambda, optimizer
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
        """Restore what state_dict() returned; functions stay as they are."""
        functions = self.lr_lambdas
        super().load_state_dict({**state_dict, "lr_lambdas": functions})
        for function, kept in zip(functions, state_dict["lr_lambdas"], strict=True):
            if kept is not None:
                function.__dict__.update(kept)


class LambdaLR(_FunctionLR):
    """Multiplies the initial rates by a function of the epoch.

    >>> sgd = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.LambdaLR(sgd, lambda epoch: 1 / (1 + epoch))
    >>> rates = []
    >>> for _ in range(3):
    ...     rates.append(schedule.get_last_lr()[0])
    ...     sgd.step()
    ...     schedule.step()
    >>> [round(rate, 3) for rate in rates]
    [1.0, 0.5, 0.333]
    """

    def get_lr(self) -> list[float]:
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base * factor(self.last_epoch) for base, factor in pairs]


class MultiplicativeLR(_FunctionLR):
    """Multiplies the rates by a function of the epoch, every epoch.

    >>> sgd = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.MultiplicativeLR(sgd, lambda epoch: 0.5)
    >>> rates = []
    >>> for _ in range(3):
    ...     rates.append(schedule.get_last_lr()[0])
    ...     sgd.step()
    ...     schedule.step()
    >>> [round(rate, 3) for rate in rates]
    [1.0, 0.5, 0.25]
    """

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._rates()
        pairs = zip(self._rates(), self.lr_lambdas, strict=True)
        return [rate * factor(self.last_epoch) for rate, factor in pairs]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the rate to eta_min in T_max epochs.

    Loshchilov and Hutter, 2017.

    >>> sgd = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.CosineAnnealingLR(sgd, T_max=4)
    >>> rates = []
    >>> for _ in range(5):
    ...     rates.append(schedule.get_last_lr()[0])
    ...     sgd.step()
    ...     schedule.step()
    >>> [round(rate, 3) for rate in rates]
    [1.0, 0.854, 0.5, 0.146, 0.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_max: int,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

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


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine that restarts, each period T_mult times as long as the last.

    T_0 is the length of the first period. step(epoch) accepts fractions (Loshchilov and
    Hutter, 2017).

    >>> sgd = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(sgd, T_0=2)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(schedule.get_last_lr()[0])
    ...     sgd.step()
    ...     schedule.step()
    >>> [round(rate, 3) for rate in rates]
    [1.0, 0.5, 1.0, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"T_0 is {T_0}; give a whole number of 1 or more")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"T_mult is {T_mult}; give a whole number of 1 or more")
        if not isinstance(eta_min, (int, float)):
            raise ValueError(f"eta_min is a {type(eta_min).__name__}; give a number")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

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
            self.last_epoch = math.floor(epoch)
            self.T_cur, self.T_i = epoch, self.T_0
            while self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        self._set(self.get_lr())


class OneCycleLR(LRScheduler):
    """Up to max_lr, then down to far below the first rate (Smith and Topin, 2018).

    Steps once per batch, total_steps times (or epochs * steps_per_epoch). The first
    rate is max_lr / div_factor, the last one the first / final_div_factor; the rise
    takes pct_start of the steps. anneal_strategy is "cos" or "linear". three_phase
    returns to the first rate before it falls below it. With cycle_momentum the momentum
    (for Adam, the first beta) moves the other way between max_momentum and
    base_momentum.

    >>> sgd = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.OneCycleLR(sgd, max_lr=1.0, total_steps=4)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(schedule.get_last_lr()[0])
    ...     sgd.step()
    ...     schedule.step()
    >>> [round(rate, 3) for rate in rates]
    [0.04, 0.812, 0.283, 0.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"pct_start is {pct_start}; give a float from 0 to 1")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy is {anneal_strategy!r}; give 'cos' or 'linear'"
            )
        self._schedule_phases = _phases(pct_start * self.total_steps, three_phase)
        self._schedule_phases[-1]["end_step"] = self.total_steps - 1
        self._anneal_func_type = anneal_strategy
        highest = _for_each_group("max_lr", max_lr, optimizer)
        if last_epoch == -1:
            for group, most in zip(optimizer.param_groups, highest, strict=True):
                group["initial_lr"] = most / div_factor
                group["max_lr"] = most
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _start_momentum(
        self, optimizer: Optimizer, base: Any, most: Any, last_epoch: int
    ) -> None:
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError(
                f"{type(optimizer).__name__} has neither momentum nor betas to cycle; "
                "give cycle_momentum=False"
            )
        self.use_beta1 = "betas" in optimizer.defaults
        highest = _for_each_group("max_momentum", most, optimizer)
        lowest = _for_each_group("base_momentum", base, optimizer)
        if last_epoch == -1:
            groups = zip(optimizer.param_groups, lowest, highest, strict=True)
            for group, low, high in groups:
                self._set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low

    def _set_momentum(self, group: dict, value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value

    def get_lr(self) -> list[float]:
        """The rates of this step; ValueError after the last one."""
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"this is step {self.last_epoch} of a cycle of {self.total_steps}; "
                "give a larger total_steps"
            )
        begin, phase = 0.0, self._schedule_phases[0]
        for following in self._schedule_phases[1:]:
            if self.last_epoch > phase["end_step"]:
                begin, phase = phase["end_step"], following
        part = (self.last_epoch - begin) / (phase["end_step"] - begin)

        def now(group: dict, name: str) -> float:
            start, end = group[phase["start_" + name]], group[phase["end_" + name]]
            if self._anneal_func_type == "cos":
                return end + (start - end) / 2 * (1 + math.cos(math.pi * part))
            return start + (end - start) * part

        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                self._set_momentum(group, now(group, "momentum"))
        return [now(group, "lr") for group in self.optimizer.param_groups]


def _total_steps(total: Any, epochs: Any, each: Any) -> int:
    if total is None and (epochs is None or each is None):
        raise ValueError("give total_steps, or both epochs and steps_per_epoch")
    if total is not None:
        named = {"total_steps": total}
    else:
        named = {"epochs": epochs, "steps_per_epoch": each}
    for name, value in named.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"{name} is {value}; give a whole number of 1 or more")
    return math.prod(named.values())


def _phases(rise: float, three: bool) -> list[dict[str, Any]]:
    """The phases of a cycle; the caller sets the end of the last one."""
    ends = [rise - 1, 2 * rise - 2, 0] if three else [rise - 1, 0]
    rates = ["initial_lr", "max_lr", *(["initial_lr"] if three else []), "min_lr"]
    momenta = ["max_momentum", "base_momentum", "max_momentum", "max_momentum"]
    return [
        {
            "end_step": float(end),
            "start_lr": rates[i],
            "end_lr": rates[i + 1],
            "start_momentum": momenta[i],
            "end_momentum": momenta[i + 1],
        }
        for i, end in enumerate(ends)
    ]


class _ManyLR(LRScheduler):
    """Base of schedules made of other schedules."""

    _schedulers: list[Any]

    def state_dict(self) -> dict[str, Any]:
        """The state without the optimizer, with those of the inner schedules."""
        state = super().state_dict()
        state["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what state_dict() returned."""
        inner = self._schedulers
        super().load_state_dict({**state_dict, "_schedulers": inner})
        for schedule, kept in zip(inner, state_dict["_schedulers"], strict=True):
            schedule.load_state_dict(kept)

    def _check(self, schedulers: Sequence[Any], optimizer: Any) -> None:
        if not schedulers:
            raise ValueError("the list of schedules is empty; give one or more")
        for i, schedule in enumerate(schedulers):
            if schedule.optimizer is not optimizer:
                raise ValueError(
                    f"schedules[{i}] has another optimizer; give schedules of one"
                )
            if isinstance(schedule, ReduceLROnPlateau):
                raise ValueError(
                    f"schedules[{i}] is a ReduceLROnPlateau, whose step() needs a "
                    "metric; step it separately"
                )


class SequentialLR(_ManyLR):
    """One schedule after another; a milestone is epoch 0 of the next one.

    >>> sgd = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> warm = torch.optim.lr_scheduler.ConstantLR(sgd, factor=0.1, total_iters=9)
    >>> fade = torch.optim.lr_scheduler.ExponentialLR(sgd, gamma=0.5)
    >>> schedule = torch.optim.lr_scheduler.SequentialLR(sgd, [warm, fade], [2])
    >>> for _ in range(3): sgd.step(); schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"{len(schedulers)} schedules need {len(schedulers) - 1} milestones, "
                f"and got {len(milestones)}"
            )
        self.optimizer = optimizer
        self._schedulers = [*schedulers]
        self._milestones = [*milestones]
        self.last_epoch = last_epoch + 1
        # Each schedule set the rates when it was made; only the first one's count.
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for schedule in schedulers:
            schedule.last_epoch -= 1
        schedulers[0]._begin()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next epoch."""
        self.last_epoch += 1
        turn = bisect_right(self._milestones, self.last_epoch)
        schedule = self._schedulers[turn]
        if turn and self._milestones[turn - 1] == self.last_epoch:
            schedule._advance(0)
        else:
            schedule.step()
        self._last_lr = schedule.get_last_lr()


class ChainedScheduler(_ManyLR):
    """Several schedules that all change the rates at every step.

    >>> sgd = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> halve = torch.optim.lr_scheduler.StepLR(sgd, 1, gamma=0.5)
    >>> fade = torch.optim.lr_scheduler.ExponentialLR(sgd, gamma=0.9)
    >>> schedule = torch.optim.lr_scheduler.ChainedScheduler([halve, fade])
    >>> sgd.step(); schedule.step()
    >>> schedule.get_last_lr()
    [0.45]
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        first = schedulers[0].optimizer if schedulers else None
        self._check(schedulers, optimizer or first)
        self.optimizer = schedulers[0].optimizer
        self._schedulers = [*schedulers]
        self._last_lr = self._rates()

    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next epoch."""
        for schedule in self._schedulers:
            schedule.step()
        self._last_lr = self._rates()


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rates by factor when a metric stagnates for patience epochs.

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
        self.default_min_lr = None if several else min_lr
        self.min_lrs = _for_each_group("min_lr", min_lr, optimizer)
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = self._rates()
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether the cooldown after a change of the rate still runs."""
        return self.cooldown_counter > 0

    def is_better(self, a: float, best: float) -> bool:
        """Whether a is better than best by the threshold."""
        sign = 1 if self.mode == "max" else -1
        if self.threshold_mode == "rel":
            limit = best * (1 + sign * self.threshold)
        else:
            limit = best + sign * self.threshold
        return a > limit if self.mode == "max" else a < limit

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take the metric of an epoch, and reduce the rates on a plateau."""
        current = float(metrics)
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
                    group["lr"] = rate
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._rates()


_publish(__name__)
