"""Schedules made of other schedules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from pydevtensor.optim.lr_scheduler.base import LRScheduler, _set_rate
from pydevtensor.optim.lr_scheduler.plateau import ReduceLROnPlateau
from pydevtensor.optim.optimizer import Optimizer


class _ManyLR(LRScheduler):
    """Base of schedules made of other schedules."""

    _schedulers: list[Any]

    def state_dict(self) -> dict[str, Any]:
        """The state without the optimizer, with those of the inner schedules."""
        state = super().state_dict()
        state["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
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

    ValueError for schedules of another optimizer or a ReduceLROnPlateau. See also
    ChainedScheduler, which runs all at once.

    optimizer   the optimizer to schedule
    schedulers  the schedules, made for that optimizer, in their order
    milestones  epochs at which the next one begins, ints that grow, one less than
                schedules, else ValueError
    last_epoch  number of the last epoch, to resume; -1: begin

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
        self.last_epoch: int = last_epoch + 1
        # Each schedule set the rates when it was made; only the first one's count.
        for group in optimizer.param_groups:
            _set_rate(group, group["initial_lr"])
        for schedule in schedulers:
            schedule.last_epoch -= 1
        schedulers[0]._begin()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self) -> None:  # type: ignore[override]
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

    ValueError for schedules of several optimizers or a ReduceLROnPlateau. See also
    SequentialLR, which runs one after another.

    schedulers  the schedules, called in this order; one or more, else ValueError
    optimizer   the optimizer to schedule; by default that of the schedules

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
        self.optimizer: Optimizer = schedulers[0].optimizer
        self._schedulers = [*schedulers]
        self._last_lr = self._rates()

    def step(self) -> None:  # type: ignore[override]
        """Set the rates of the next epoch."""
        for schedule in self._schedulers:
            schedule.step()
        self._last_lr = self._rates()
