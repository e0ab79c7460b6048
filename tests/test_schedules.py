"""Schedules of learning rates beside PyTorch's own tests."""

import pytest

import pydevtensor as torch
from pydevtensor import nn, optim


def test_hooks_and_schedules_know_of_a_step_of_ones_own(recwarn):
    class Own(torch.optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    weight, calls = torch.nn.Parameter(torch.ones(1)), []
    optimizer = Own([weight], lr=1.0)
    optimizer.register_step_post_hook(lambda *given: calls.append(1))
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    optimizer.step()
    schedule.step()
    assert calls == [1] and not recwarn.list


class Falling:
    """The height of a cycle, as an object with a state."""

    def __init__(self, power):
        self.power = power

    def __call__(self, cycle):
        return 1 / cycle**self.power


def test_the_function_of_a_cycle_is_saved_if_it_is_an_object():
    def make(function):
        optimizer = optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0, momentum=0.5)
        cyclic = optim.lr_scheduler.CyclicLR
        return optimizer, cyclic(optimizer, 0.1, 1.1, 2, scale_fn=function)

    optimizer, schedule = make(Falling(2))
    saved = schedule.state_dict()
    assert saved["_scale_fn_custom"] == {"power": 2}
    _, other = make(Falling(1))
    other.load_state_dict(saved)
    assert other.scale_fn(3) == schedule.scale_fn(3) == 1 / 9
    assert saved["_scale_fn_custom"] == {"power": 2}
    for _ in range(6):
        optimizer.step()
        schedule.step()
    assert schedule.get_last_lr() == pytest.approx([0.1 + 1 / 4])
    assert optimizer.param_groups[0]["momentum"] == pytest.approx(0.9 - 0.1 / 4)
    _, plain = make(lambda cycle: 1.0)
    assert plain.state_dict()["_scale_fn_custom"] is None
    plain.load_state_dict(plain.state_dict())
    assert plain.scale_fn(3) == 1


def test_the_epoch_of_a_schedules_step_is_deprecated(recwarn):
    optimizer = optim.SGD([torch.zeros(1)], lr=1.0)
    schedules = optim.lr_scheduler
    optimizer.step()
    with pytest.warns(UserWarning, match="deprecated"):
        schedules.StepLR(optimizer, 2).step(3)
    with pytest.warns(UserWarning, match="deprecated"):
        schedules.ReduceLROnPlateau(optimizer).step(1.0, 3)
    step, ever = schedules.StepLR(optimizer, 2), schedules.ConstantLR(optimizer)
    warm = schedules.CosineAnnealingWarmRestarts(optimizer, 2)
    optimizer.step()
    recwarn.clear()
    warm.step(0.5)
    chained = schedules.ChainedScheduler([step, ever])
    for many in (chained, schedules.SequentialLR(optimizer, [step, ever], [1])):
        optimizer.step()
        many.step()
        with pytest.raises(TypeError):
            many.step(3)
    assert not [str(w.message) for w in recwarn if "epoch is" in str(w.message)]


def test_schedules_of_ones_own_may_use_the_old_name_of_the_base():
    class Halved(optim.lr_scheduler._LRScheduler):
        def get_lr(self):
            return [base / 2 for base in self.base_lrs]

    schedule = Halved(optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0))
    assert isinstance(schedule, optim.lr_scheduler.LRScheduler)
    assert schedule.get_last_lr() == [0.5]


SCHEDULES = {
    "StepLR": lambda S, o: S.StepLR(o, 1, gamma=0.5),
    "LambdaLR": lambda S, o: S.LambdaLR(o, lambda epoch: 0.5**epoch),
    "ExponentialLR": lambda S, o: S.ExponentialLR(o, 0.9),
    "CosineAnnealingLR": lambda S, o: S.CosineAnnealingLR(o, 4),
    "OneCycleLR": lambda S, o: S.OneCycleLR(o, max_lr=1.0, total_steps=5),
    "CyclicLR": lambda S, o: S.CyclicLR(o, 0.1, 0.5, 2),
    "ReduceLROnPlateau": lambda S, o: S.ReduceLROnPlateau(o, patience=0),
    "SequentialLR": lambda S, o: S.SequentialLR(
        o, [S.ConstantLR(o, 0.5, 2), S.ExponentialLR(o, 0.9)], [2]
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_write_into_a_rate_that_is_a_tensor(name, device):
    """As PyTorch's do: a compiled or captured step reads it there."""
    found = []
    for tensor in (True, False):
        w = nn.Parameter(torch.ones(2, device=device))
        w.grad = torch.ones(2, device=device)
        lr = torch.tensor(0.5, device=device) if tensor else 0.5
        optimizer = torch.optim.SGD([w], lr=lr, momentum=0.9)
        schedule = SCHEDULES[name](torch.optim.lr_scheduler, optimizer)
        rates, last = [], []
        for _ in range(4):
            optimizer.step()
            schedule.step(*([1.0] if name == "ReduceLROnPlateau" else []))
            rates.append(float(optimizer.param_groups[0]["lr"]))
            last.append(schedule.get_last_lr()[0])
        if tensor:
            assert optimizer.param_groups[0]["lr"] is lr
            assert all(isinstance(x, torch.Tensor) and x is not lr for x in last)
            assert optimizer.param_groups[0].get("initial_lr") is not lr
        found.append([*rates, *map(float, last), *w.tolist()])
    assert found[0] == pytest.approx(found[1], rel=1e-5, abs=1e-7)
