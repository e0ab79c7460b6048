"""LRScheduler, the base class of schedules."""

from __future__ import annotations

import warnings
from typing import Any

from pydevtensor import _C
from pydevtensor._records import Record
from pydevtensor.autograd import no_grad
from pydevtensor.optim.optimizer import Optimizer


class LRScheduler(Record):
    """Base of schedules: step() after each epoch sets the rate of each group.

    A subclass defines get_lr(). TypeError if it is not an optimizer; KeyError to resume
    with groups that have no 'initial_lr'.

    optimizer   the optimizer to schedule
    last_epoch  number of the last epoch, to resume; -1: begin

    >>> optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)
    >>> schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for epoch in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.025]
    """

    _schema = (
        "schedule(optimizer: Optimizer, gamma: float = 0.1, total_iters: int = 5, "
        "eta_min: float = 0.0, last_epoch: int = -1)"
    )
    _example = """
    >>> sgd = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.{name}(sgd, {given})
    >>> rates = []
    >>> for _ in range({count}):
    ...     rates.append(schedule.get_last_lr()[0])
    ...     sgd.step()
    ...     schedule.step()
    >>> [round(rate, 3) for rate in rates]
    {results}
    """
    _spent = ("optimizer", "last_epoch")  # which the base sets
    _takes_epochs = False  # whether step(epoch) is not deprecated

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _own_copy(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param_groups[{i}] has no 'initial_lr', which resuming at "
                    f"last_epoch={last_epoch} needs; load the optimizer's state first, "
                    "or set it"
                )
        self.base_lrs: list[float] = [
            group["initial_lr"] for group in optimizer.param_groups
        ]
        self.last_epoch: int = last_epoch
        self._step_count = 0
        self._is_initial = False
        self._get_lr_called_within_step = False
        self._last_lr: list[float] = []
        optimizer._stepped = False
        self._begin()

    def _make(self, *, optimizer: Any, last_epoch: int = -1, **options: Any) -> None:
        """Make attributes of the options. A class checks or changes them before."""
        for name, value in options.items():
            setattr(self, name, value)
        LRScheduler.__init__(self, optimizer, last_epoch)

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
        """Set the rates of the next epoch.

        epoch  set those of this one instead; deprecated, with a UserWarning
        """
        if self._step_count == 1 and not self.optimizer._stepped:
            warnings.warn(
                "lr_scheduler.step() was called before optimizer.step(), which skips "
                "the schedule's first rate; call optimizer.step() first",
                UserWarning,
                stacklevel=2,
            )
        if epoch is not None and not self._takes_epochs:
            _warn_of_epoch()
        self._advance(epoch)

    def _advance(self, epoch: int | None = None) -> None:
        self._step_count += 1
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set(self.get_lr() if epoch is None else self._jump())

    def _jump(self) -> list[float]:
        """get_lr() after step(epoch), where the last rates are not the last epoch's."""
        return self.get_lr()

    def _set(self, rates: list[Any]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            _set_rate(group, rate)
        self._last_lr = self._rates()

    def _rates(self) -> list[float]:
        return [_own_copy(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The state without the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what state_dict() returned.

        state_dict  that dict
        """
        self.__dict__.update(state_dict)


class _LRScheduler(LRScheduler):
    """The base's name before PyTorch 2.0, from which programs still derive."""


def _warn_of_epoch() -> None:
    warnings.warn(
        "lr_scheduler.step(): the epoch is deprecated; call step() once an epoch",
        UserWarning,
        stacklevel=3,
    )


def _own_copy(rate: Any) -> Any:
    """The current rate: a Tensor's elements change."""
    return rate.clone() if isinstance(rate, _C.Tensor) else rate


def _set_rate(group: dict[Any, Any], rate: Any) -> None:
    """Set the rate of a group: a Tensor, which a graph may have captured, in place."""
    if not isinstance(group["lr"], _C.Tensor):
        group["lr"] = rate
        return
    if isinstance(rate, _C.Tensor):
        rate = rate.squeeze()
    with no_grad():
        group["lr"].fill_(rate)


def _check_optimizer(optimizer: Any) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(
            f"a schedule needs an Optimizer, and got a {type(optimizer).__name__}"
        )


def _for_each_group(name: str, value: Any, optimizer: Optimizer) -> list[Any]:
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
