"""States of optimizers: saved, loaded, copied, converted; hooks around them and around steps."""

import copy
import pickle

import pytest
from golden.optim import backward, make_parameters

import pydevtensor as torch
from pydevtensor import nn, optim
from pydevtensor.optim.optimizer import _RULES as RULES


def test_states_wider_than_their_parameter(device):
    p = nn.Parameter(torch.tensor([1.0, 2.0], dtype=torch.bfloat16, device=device))
    optimizer = optim.SGD([p], lr=0.5, momentum=0.5)
    p.grad = torch.ones_like(p)
    optimizer.step()
    fine = torch.tensor([1 + 2.0**-20, 1.0], device=device)
    optimizer.state[p]["momentum_buffer"] = fine
    p.grad = torch.zeros_like(p)
    optimizer.step()
    assert fine.dtype is torch.float32 and fine.tolist() == [0.5 + 2.0**-21, 0.5]
    assert p.tolist() == [0.25, 1.25]


def test_what_is_saved_is_not_written_to_later(device):
    p = nn.Parameter(torch.ones(3, device=device))
    optimizer = optim.Adam([p], 0.1)
    p.grad = torch.ones_like(p)
    optimizer.step()
    other = optim.Adam([p], 0.1)
    other.load_state_dict(optimizer.state_dict())
    mean = optimizer.state[p]["exp_avg"].tolist()
    other.step()
    assert optimizer.state[p]["exp_avg"].tolist() == mean
    assert optimizer.state[p]["step"].item() == 1 and other.state[p]["step"].item() == 2


def test_states_follow_the_parameter_and_the_count_stays(device):
    here = nn.Parameter(torch.ones(3))
    optimizer = optim.Adam([here], 0.1)
    here.grad = torch.ones_like(here)
    optimizer.step()
    saved = optimizer.state_dict()
    saved["state"][0]["step"] = 1  # as old files have it
    there = nn.Parameter(torch.ones(3, dtype=torch.float64, device=device))
    other = optim.Adam([there], 0.1)
    other.load_state_dict(saved)
    kept = other.state[there]
    assert kept["exp_avg"].device == there.device
    assert kept["exp_avg"].dtype == torch.float64
    assert str(kept["step"].device) == "cpu" and kept["step"].item() == 1
    there.grad = torch.ones_like(there)
    other.step()
    assert kept["step"].item() == 2


@pytest.mark.parametrize("name", ["NAdam", "ASGD"])
def test_numbers_that_are_kept_stay_on_the_host(name, device):
    names = {"NAdam": ["mu_product"], "ASGD": ["eta", "mu"]}[name]
    make = getattr(optim, name)
    assert make._keeps == tuple(RULES[name.lower()][2]) == tuple(names)
    p = nn.Parameter(torch.ones(3, device=device))
    optimizer = make([p], 0.1)
    p.grad = torch.ones_like(p)
    optimizer.step()
    saved = optimizer.state_dict()
    for n in names:
        saved["state"][0][n] = saved["state"][0][n].to(device)  # as PyTorch has them
    optimizer.load_state_dict(saved)
    for n in names:
        number = optimizer.state[p][n]
        assert str(number.device) == "cpu" and number.shape == ()
    optimizer.state[p] = saved["state"][0]
    optimizer.step()
    assert str(optimizer.state[p][names[0]].device) == device


def test_a_state_of_ones_own_moves_whatever_its_name(device):
    class Own(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {})

    p = nn.Parameter(torch.ones(3, device=device))
    optimizer = Own([p])
    optimizer.state[p] = {"mu": torch.zeros(3), "eta": [torch.ones(()), None]}
    optimizer.load_state_dict(optimizer.state_dict())
    kept = optimizer.state[p]
    assert str(kept["mu"].device) == str(kept["eta"][0].device) == device


def test_a_default_device_does_not_move_the_count(gpu):
    torch.set_default_device(gpu)
    p = nn.Parameter(torch.ones(3))
    optimizer = optim.Adagrad([p], 0.1)
    assert str(p.device) == gpu
    assert str(optimizer.state[p]["step"].device) == "cpu"


def test_a_missing_option_of_an_old_file_is_the_default():
    p = nn.Parameter(torch.ones(3))
    optimizer = optim.Adam([p], 0.1)
    saved = optimizer.state_dict()
    del saved["param_groups"][0]["maximize"]
    del saved["param_groups"][0]["decoupled_weight_decay"]
    optimizer.load_state_dict(saved)
    p.grad = torch.ones_like(p)
    optimizer.step()
    assert optimizer.param_groups[0]["maximize"] is False


def test_states_of_another_type_are_converted(device):
    p = nn.Parameter(torch.ones(3, device=device))
    optimizer = optim.SGD([p], 0.5, momentum=0.5)
    p.grad = torch.ones_like(p)
    optimizer.step()
    p.data = p.data.double()
    p.grad = torch.ones_like(p)
    optimizer.step()
    assert p.tolist() == [1 - 0.5 - 0.5 * 1.5] * 3
    buffer = optimizer.state[p]["momentum_buffer"]
    assert buffer.dtype == torch.float32 and buffer.tolist() == [1.5] * 3


def test_copies_and_pickles(device):
    ps = make_parameters(torch, device)
    optimizer = optim.AdamW(ps, 0.1)
    backward(ps, 0)
    optimizer.step()
    twin = copy.deepcopy(optimizer)
    assert twin.param_groups[0]["params"][0] is not ps[0]
    kept = twin.state[twin.param_groups[0]["params"][0]]
    assert kept["step"].item() == 1 and kept["exp_avg"].shape == (3, 4)


def test_a_pickle_has_no_hooks():
    p = nn.Parameter(torch.ones(2))
    optimizer = optim.NAdam([p], 0.1)
    schedule = optim.lr_scheduler.StepLR(optimizer, 1)
    optimizer.register_step_pre_hook(lambda *given: 1 / 0)
    optimizer.register_state_dict_post_hook(lambda *given: 1 / 0)
    p.grad = torch.ones_like(p)
    handle = optimizer.register_step_post_hook(lambda *given: None)
    with pytest.raises(ZeroDivisionError):
        optimizer.step()
    optimizer._step_pre_hooks.clear()
    optimizer.step()
    handle.remove()
    for twin in (
        pickle.loads(pickle.dumps(optimizer)),
        pickle.loads(pickle.dumps(schedule)).optimizer,
        copy.deepcopy(optimizer),
    ):
        q = twin.param_groups[0]["params"][0]
        assert twin.state_dict()["state"][0]["step"].item() == 1
        q.grad = torch.ones_like(q)
        twin.step()
        assert q is not p and q.tolist() != p.tolist()


def test_a_subclass_may_complete_what_it_loads():
    class Own(optim.SGD):
        def __setstate__(self, state):
            super().__setstate__(state)
            for group in self.param_groups:
                group.setdefault("power", 2)

    optimizer = Own([nn.Parameter(torch.ones(2))], 0.1)
    optimizer.load_state_dict(optimizer.state_dict())
    assert optimizer.param_groups[0]["power"] == 2


def test_hooks_around_steps():
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    optimizer, log = torch.optim.SGD([weight], lr=0.25), []

    def note(name):
        return lambda *given: log.append((name, *given, weight[0].item()))

    before = optimizer.register_step_pre_hook(note("before"))
    after = optimizer.register_step_post_hook(note("after"))
    closure = lambda: 3.0
    optimizer.step()
    assert optimizer.step(closure) == 3.0
    assert optimizer.step(closure=closure) == 3.0
    assert log == [
        ("before", optimizer, (optimizer,), {}, 1.0),
        ("after", optimizer, (optimizer,), {}, 0.75),
        ("before", optimizer, (optimizer, closure), {}, 0.75),
        ("after", optimizer, (optimizer, closure), {}, 0.5),
        ("before", optimizer, (optimizer,), {"closure": closure}, 0.5),
        ("after", optimizer, (optimizer,), {"closure": closure}, 0.25),
    ]
    before.remove()
    after.remove()
    del log[:]
    optimizer.step()
    assert not log
    with optimizer.register_step_pre_hook(lambda o, a, k: ((*a, closure), k)):
        assert optimizer.step() == 3.0
    with (
        optimizer.register_step_pre_hook(lambda *given: 3),
        pytest.raises(RuntimeError, match="None or a tuple"),
    ):
        optimizer.step()
    optimizer.step()  # the failure left nothing behind


def test_hooks_around_state_dicts():
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer, log = torch.optim.SGD([weight], lr=0.25), []

    def note(name):
        return lambda *given: log.append((name, *given[:1], *map(sorted, given[1:])))

    names = ["param_groups", "state"]
    handles = [
        optimizer.register_state_dict_pre_hook(note("second")),
        optimizer.register_state_dict_pre_hook(note("first"), prepend=True),
        optimizer.register_state_dict_post_hook(lambda o, s: {**s, "note": 1}),
        optimizer.register_state_dict_post_hook(note("packed")),
        optimizer.register_load_state_dict_pre_hook(note("given")),
        optimizer.register_load_state_dict_post_hook(note("loaded")),
    ]
    saved = optimizer.state_dict()
    assert sorted(saved) == ["note", *names]
    optimizer.load_state_dict(saved)
    assert log == [
        ("first", optimizer),
        ("second", optimizer),
        ("packed", optimizer, ["note", *names]),
        ("given", optimizer, ["note", *names]),
        ("loaded", optimizer),
    ]

    def faster(o, state):
        state["param_groups"] = [{**state["param_groups"][0], "lr": 8.0}]

    handles.append(optimizer.register_load_state_dict_pre_hook(faster))
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["lr"] == 8
    assert saved["param_groups"][0]["lr"] == 0.25
    for handle in handles:
        handle.remove()
    del log[:]
    optimizer.load_state_dict(optimizer.state_dict())
    assert not log
    with optimizer.register_load_state_dict_pre_hook(lambda o, s: saved):
        optimizer.load_state_dict({})
    assert optimizer.param_groups[0]["lr"] == 0.25
