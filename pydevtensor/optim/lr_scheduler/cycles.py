"""Schedules that raise and lower the rates, and the momenta against them."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

from pydevtensor.optim.lr_scheduler.base import (
    LRScheduler,
    _check_optimizer,
    _for_each_group,
    _set_rate,
)
from pydevtensor.optim.optimizer import Optimizer


class _CycleLR(LRScheduler):
    """Base of schedules that also move the momentum, or for Adam the first beta."""

    def _start_momentum(
        self, optimizer: Optimizer, base: Any, most: Any, last_epoch: int
    ) -> tuple[list[Any], list[Any]]:
        """Set the first momenta; gives the least and the greatest one of each group."""
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError(
                f"{type(optimizer).__name__} has neither momentum nor betas to cycle; "
                "give cycle_momentum=False"
            )
        self.use_beta1: bool = "betas" in optimizer.defaults
        highest = _for_each_group("max_momentum", most, optimizer)
        lowest = _for_each_group("base_momentum", base, optimizer)
        if last_epoch == -1:
            groups = zip(optimizer.param_groups, lowest, highest, strict=True)
            for group, low, high in groups:
                self._set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low
        return lowest, highest

    def _set_momentum(self, group: dict[Any, Any], value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_CycleLR):
    """Up from base_lr to max_lr and down again, over and over (Smith, 2017).

    Steps once per batch. With cycle_momentum the momentum (for Adam, the first beta)
    moves the other way. Raises ValueError for an unknown mode, and where there is no
    momentum to cycle.

    optimizer       the optimizer to schedule
    base_lr         the least rate, or one for each group
    max_lr          the greatest rate, or one for each group
    step_size_up    batches from the least to the greatest, 1 or more
    step_size_down  batches back; None: as many
    mode            "triangular"; "triangular2", which halves the height in each cycle;
                    or "exp_range", which multiplies it by gamma in each step
    gamma           of mode="exp_range"
    scale_fn        gives the height, as a factor, in place of mode
    scale_mode      "cycle": scale_fn takes the cycle's number from 1; "iterations": the
                    step's
    cycle_momentum  whether the momentum moves
    base_momentum   the least momentum, or one for each group
    max_momentum    the greatest momentum, or one for each group
    last_epoch      number of the last epoch, to resume; -1: begin

    >>> sgd = torch.optim.SGD([torch.zeros(1)], lr=1.0, momentum=0.9)
    >>> schedule = torch.optim.lr_scheduler.CyclicLR(sgd, 0.5, 1.0, step_size_up=2)
    >>> rates = []
    >>> for _ in range(6):
    ...     rates.append(schedule.get_last_lr()[0])
    ...     sgd.step()
    ...     schedule.step()
    >>> rates
    [0.5, 0.75, 1.0, 0.75, 0.5, 0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        lowest = _for_each_group("base_lr", base_lr, optimizer)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, lowest, strict=True):
                _set_rate(group, rate)
        self.max_lrs: list[float] = _for_each_group("max_lr", max_lr, optimizer)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size: float = float(step_size_up) + float(down)
        if step_size_up == 0 or self.total_size == 0:
            raise ZeroDivisionError(
                f"a cycle has {step_size_up} steps up and {down} down; give "
                "step_size_up of 1 or more"
            )
        self.step_ratio: float = float(step_size_up) / self.total_size
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise ValueError(
                f"mode is {mode!r}; give 'triangular', 'triangular2' or 'exp_range', "
                "or a scale_fn"
            )
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode: str = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            low, high = self._start_momentum(
                optimizer, base_momentum, max_momentum, last_epoch
            )
            self.base_momentums: list[float] = low
            self.max_momentums: list[float] = high
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lowest

    def scale_fn(self, x: float) -> float:
        """The height of a cycle, as a factor.

        x  the cycle's number from 1, or with scale_mode="iterations" the step's
        """
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / 2.0 ** (x - 1) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self) -> list[float]:
        """The rates of this step; sets the momenta."""
        done = self.last_epoch / self.total_size
        cycle = math.floor(1 + done)
        part = 1.0 + done - cycle
        if part <= self.step_ratio:
            height = part / self.step_ratio
        else:
            height = (part - 1) / (self.step_ratio - 1)
        at = cycle if self.scale_mode == "cycle" else self.last_epoch

        def above(low: float, high: float) -> float:
            return (high - low) * height * self.scale_fn(at)

        if self.cycle_momentum:
            momenta = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(
                self.optimizer.param_groups, momenta, strict=True
            ):
                self._set_momentum(group, high - above(low, high))
        pairs = zip(self.base_lrs, self.max_lrs, strict=True)
        return [low + above(low, high) for low, high in pairs]

    def state_dict(self) -> dict[str, Any]:
        """The state without the optimizer and functions; callable objects are kept."""
        state = super().state_dict()
        function = state["_scale_fn_custom"]
        is_object = function is not None and not isinstance(function, FunctionType)
        state["_scale_fn_custom"] = dict(function.__dict__) if is_object else None
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what state_dict() returned; a function is not restored.

        state_dict  that dict
        """
        function = self._scale_fn_custom
        super().load_state_dict({**state_dict, "_scale_fn_custom": function})
        kept = state_dict["_scale_fn_custom"]
        if kept is not None:
            function.__dict__.update(kept)


class OneCycleLR(
    _CycleLR, shows=("max_lr=1.0, total_steps=4", [0.04, 0.812, 0.283, 0.0])
):
    """Up to max_lr, then down to far below the first rate (Smith and Topin, 2018).

    Steps once per batch; ValueError for a step after the last. With cycle_momentum the
    momentum (for Adam, the first beta) moves the other way.

    optimizer         the optimizer to schedule
    max_lr            the greatest rate, or one for each group
    total_steps       how many batches; or give the next two
    epochs            how many epochs
    steps_per_epoch   how many batches an epoch has
    pct_start         the part of the steps that the rise takes, a float from 0 to 1
    anneal_strategy   "cos" or "linear", the shape of rise and fall
    cycle_momentum    whether the momentum moves
    base_momentum     the least momentum, or one for each group
    max_momentum      the greatest momentum, or one for each group
    div_factor        the first rate is max_lr divided by this
    final_div_factor  the last rate is the first divided by this
    three_phase       return to the first rate before falling below it, as long as the
                      rise took
    last_epoch        number of the last epoch, to resume; -1: begin
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
        self.total_steps: int = _total_steps(total_steps, epochs, steps_per_epoch)
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

        def now(group: dict[Any, Any], name: str) -> float:
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
