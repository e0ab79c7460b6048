"""Averages of a model's parameters over its training, and a schedule for them.

Stochastic weight averaging is of Izmailov and others, 2018; the exponential moving
average of parameters of Polyak and Juditsky, 1992.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from pydevtensor import _C
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import no_grad
from pydevtensor.nn.modules.batchnorm import _BatchNorm
from pydevtensor.nn.modules.module import Module
from pydevtensor.optim.lr_scheduler.base import (
    LRScheduler,
    _check_optimizer,
    _for_each_group,
)
from pydevtensor.optim.optimizer import Optimizer

__all__ = ["SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn"]
__all__ += ["get_swa_avg_fn", "get_swa_multi_avg_fn", "update_bn"]


# --- the averages ---------------------------------------------------------------------


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Any, Any, Any], Any]:
    """A function for AveragedModel(avg_fn=): the exponential moving average.

    It gives decay * averaged + (1 - decay) * current, of one parameter.

    decay  the part of the average that stays, 0 to 1, else ValueError

    >>> average = torch.optim.swa_utils.get_ema_avg_fn(0.75)
    >>> average(torch.tensor([4.0]), torch.tensor([8.0]), 1)
    tensor([5.])
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(averaged: Any, current: Any, num_averaged: Any) -> Any:
        return decay * averaged + (1 - decay) * current

    return ema_update


def get_swa_avg_fn() -> Callable[[Any, Any, Any], Any]:
    """A function for AveragedModel(avg_fn=): the mean of all.

    It gives the mean of num_averaged + 1 values of a parameter: those averaged, and the
    current one.

    >>> average = torch.optim.swa_utils.get_swa_avg_fn()
    >>> average(torch.tensor([4.0]), torch.tensor([8.0]), 3)
    tensor([5.])
    """

    @no_grad()
    def swa_update(averaged: Any, current: Any, num_averaged: Any) -> Any:
        return averaged + (current - averaged) / (num_averaged + 1)

    return swa_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Any, Any, Any], None]:
    """A function for AveragedModel(multi_avg_fn=): the exponential moving average.

    It changes a list of averaged parameters, with one kernel for each device and type.

    decay  the part of the average that stays, 0 to 1, else ValueError

    >>> average = torch.optim.swa_utils.get_ema_multi_avg_fn(0.75)
    >>> averaged = [torch.tensor([4.0]), torch.tensor([0.0])]
    >>> average(averaged, [torch.tensor([8.0]), torch.tensor([1.0])], 1)
    >>> averaged
    [tensor([5.]), tensor([0.2500])]
    """
    _check_decay(decay)
    average = get_ema_avg_fn(decay)

    @no_grad()
    def ema_update(averaged: Any, current: Any, num_averaged: Any) -> None:
        _blend(averaged, current, 1 - decay, average, num_averaged)

    return ema_update


def get_swa_multi_avg_fn() -> Callable[[Any, Any, Any], None]:
    """A function for AveragedModel(multi_avg_fn=): the mean of all.

    It changes a list of averaged parameters, with one kernel for each device and type.

    >>> average = torch.optim.swa_utils.get_swa_multi_avg_fn()
    >>> averaged = [torch.tensor([4.0]), torch.tensor([0.0])]
    >>> average(averaged, [torch.tensor([8.0]), torch.tensor([1.0])], 3)
    >>> averaged
    [tensor([5.]), tensor([0.2500])]
    """
    average = get_swa_avg_fn()

    @no_grad()
    def swa_update(averaged: Any, current: Any, num_averaged: Any) -> None:
        weight = 1 / (float(num_averaged) + 1)
        _blend(averaged, current, weight, average, num_averaged)

    return swa_update


def _check_decay(decay: float) -> None:
    if not 0 <= decay <= 1:
        raise ValueError(f"decay is {decay}; give a number from 0 to 1")


def _blend(
    averaged: list[Any],
    current: list[Any],
    weight: float,
    average: Callable[..., Any],
    count: Any,
) -> None:
    """Move averaged towards current by a part of the difference."""
    pairs = [*zip(averaged, current, strict=True)]
    floats = [pair for pair in pairs if pair[0].is_floating_point()]
    tensors = [kept for kept, _ in floats] + [new for _, new in floats]
    if floats:
        _C._update("lerp", tensors, (), (weight,))
    for kept, new in pairs:
        if not kept.is_floating_point():
            kept.copy_(average(kept, new, count))


# --- the model ------------------------------------------------------------------------


class AveragedModel(Module):
    """A model whose parameters are averages of those of another one.

    It starts as a deep copy. See also update_bn(), for batch norms in it.

    model         the model to average
    device        where the averages are; None: where the model is
    avg_fn        avg_fn(averaged, current, n_averaged) gives the new average of one
                  parameter; None: the mean of all
    multi_avg_fn  in its place, changes a list of averages in place; AssertionError for
                  both
    use_buffers   average buffers too, which are else copied

    >>> model = nn.Linear(1, 1)
    >>> averaged = torch.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = model.weight.data.fill_(value)
    ...     averaged.update_parameters(model)
    >>> averaged.module.weight.data, averaged.n_averaged
    (tensor([[3.]]), tensor(3))
    """

    n_averaged: Any

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[[Any, Any, Any], Any] | None = None,
        multi_avg_fn: Callable[[Any, Any, Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("avg_fn and multi_avg_fn were given; give one of them")
        self.module: Module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", _C.tensor(0, dtype=_C.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The averaged model's result."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the parameters of model into the average.

        model  the model, of the same parameters as at first
        """
        mine, theirs = (
            chain(m.parameters(), m.buffers() if self.use_buffers else ())
            for m in (self.module, model)
        )
        pairs = [
            (kept.detach(), new.detach().to(kept.device))
            for kept, new in zip(mine, theirs, strict=False)
        ]
        with no_grad():
            count = int(self.n_averaged)
            if count == 0:
                for kept, new in pairs:
                    kept.copy_(new)
            elif self.avg_fn is not None:
                for kept, new in pairs:
                    seen = self.n_averaged.to(kept.device)
                    kept.copy_(self.avg_fn(kept, new, seen))
            elif self.multi_avg_fn is not None:
                for group in _by_kind(pairs):
                    seen = self.n_averaged.to(group[0][0].device)
                    self.multi_avg_fn(*_apart(group), seen)
            else:
                get_swa_multi_avg_fn()(*_apart(pairs), count)
            if not self.use_buffers:
                buffers = zip(self.module.buffers(), model.buffers(), strict=False)
                for kept, new in buffers:
                    kept.detach().copy_(new.detach().to(kept.device))
            self.n_averaged += 1


def _apart(pairs: list[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    return [kept for kept, _ in pairs], [new for _, new in pairs]


def _by_kind(pairs: list[tuple[Any, Any]]) -> list[list[tuple[Any, Any]]]:
    """The pairs in groups of one device and type."""
    groups: dict[Any, list[Any]] = {}
    for pair in pairs:
        groups.setdefault((str(pair[0].device), pair[0].dtype), []).append(pair)
    return [*groups.values()]


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of batch norms anew, over all of loader.

    An averaged model needs that before it is evaluated, since its activations are not
    those of the models that it averages. The mode of the model stays.

    loader  gives batches, tensors, or lists whose first item is the input
    model   the model with the batch norms
    device  where batches are moved to; None: they stay

    >>> model = nn.BatchNorm1d(1)
    >>> torch.optim.swa_utils.update_bn([torch.tensor([[1.0], [3.0]])], model)
    >>> model.running_mean, model.running_var
    (tensor([2.]), tensor([2.]))
    """
    momenta = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm)}
    if not momenta:
        return
    was_training = model.training
    for norm in momenta:
        norm.reset_running_stats()
        norm.momentum = None  # the mean of all batches
    model.train()
    for batch in loader:
        given = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(given if device is None else given.to(device))
    for norm, momentum in momenta.items():
        norm.momentum = momentum
    model.train(was_training)


# --- the schedule ---------------------------------------------------------------------


class SWALR(LRScheduler):
    """Moves the rates to swa_lr in anneal_epochs epochs, and stays there.

    optimizer        the optimizer to schedule
    swa_lr           the last rate, or one for each group
    anneal_epochs    a whole number of 0 or more, else ValueError
    anneal_strategy  "cos" or "linear", the shape of the move; ValueError for another
    last_epoch       number of the last epoch, to resume; -1: begin

    >>> sgd = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> schedule = torch.optim.swa_utils.SWALR(sgd, 0.5, 2, "linear")
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(schedule.get_last_lr()[0])
    ...     sgd.step()
    ...     schedule.step()
    >>> rates
    [1.0, 0.75, 0.5, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        rates = _for_each_group("swa_lr", swa_lr, optimizer)
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy is {anneal_strategy!r}; give 'cos' or 'linear'"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(
                f"anneal_epochs is {anneal_epochs}; give a whole number of 0 or more"
            )
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._part(step - 1), self._part(step)
        rates = []
        for group in self.optimizer.param_groups:
            rate, end = group["lr"], group["swa_lr"]
            first = end if before == 1 else (rate - before * end) / (1 - before)
            rates.append(end * now + first * (1 - now))
        return rates

    def _part(self, step: int) -> float:
        """How much of the way is done after so many steps."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return (
            t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2
        )


_publish(__name__)
