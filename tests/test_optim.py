"""Optimisers and schedules: PyTorch's numbers and layouts, and what holds beyond them."""

import numpy as np
import pytest
from golden.descent import descend
from golden.describe import load
from golden.optim import optimise

import pydevtensor as torch
from pydevtensor import nn, optim

GOLDEN = load("optim")["found"]


def test_everything_is_as_in_pytorch(device):
    found = optimise(torch, device)
    assert found.keys() == GOLDEN.keys()
    faults = []
    for name, expected in GOLDEN.items():
        value = found[name]
        if isinstance(expected, str):
            if value != expected:
                faults.append(f"{name}: {value!r}, expected {expected!r}")
        elif value != pytest.approx(expected, rel=2e-5, abs=2e-7):
            faults.append(f"{name}: {value}, expected {expected}")
    assert not faults, "\n".join(faults)


def test_descent_is_as_in_pytorch(device):
    found, recorded = descend(torch, device), load("descent")["found"]
    assert found.keys() == recorded.keys()
    faults = []
    for name, expected in recorded.items():
        relative = 1e-11 if name.startswith("float64") else 2e-5
        if "loading ASGD" in name:
            # PyTorch computes the rate in float32, also where it keeps it in float64.
            relative = max(relative, 1e-6)
        if "losses of" in name or "end of" in name:
            relative = 1e-9  # a hundred evaluations multiply rounding errors
        if "Adafactor" in name and name.startswith("float32"):
            relative = 5e-5  # divides by roots of sums, in the order of a device
        absolute = relative / 100
        if name.startswith("bfloat16"):
            relative = absolute = 0.03
        if not isinstance(expected, str):
            expected = pytest.approx(expected, rel=relative, abs=absolute)
        if found[name] != expected:
            faults.append(f"{name}: {found[name]}, expected {expected}")
    assert not faults, "\n".join(faults)


# --- optimisers -----------------------------------------------------------------------


MAKERS = {
    "SGD": lambda ps: optim.SGD(ps, 0.1),
    "momentum": lambda ps: optim.SGD(ps, 0.1, momentum=0.9),
    "Adam": lambda ps: optim.Adam(ps, 0.1, amsgrad=True),
    "AdamW": lambda ps: optim.AdamW(ps, 0.1),
    "Adagrad": lambda ps: optim.Adagrad(ps, 0.1),
    "Adadelta": lambda ps: optim.Adadelta(ps, 0.1),
    "RMSprop": lambda ps: optim.RMSprop(ps, 0.1, momentum=0.5, centered=True),
    "RAdam": lambda ps: optim.RAdam(ps, 0.1),
    "NAdam": lambda ps: optim.NAdam(ps, 0.1),
    "Adamax": lambda ps: optim.Adamax(ps, 0.1),
    "ASGD": lambda ps: optim.ASGD(ps, 0.1, t0=0),
    "Rprop": lambda ps: optim.Rprop(ps, 0.1),
}


each_optimizer = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@each_optimizer
def test_a_step_is_one_launch_and_no_wait(make, dtype, gpu):
    if not torch.cuda.is_simulated():
        pytest.skip("counts what simulated GPUs do")
    sizes = (3, 5000, 700, 1, *[40] * 300)
    ps = [nn.Parameter(torch.full((n,), 0.0625).to(gpu, dtype)) for n in sizes]
    optimizer = make(ps)
    for p in ps:
        p.grad = torch.full_like(p, 0.5)
    optimizer.step()  # states are made
    torch.cuda.synchronize(gpu)
    before = torch.cuda.sim_counters(gpu)
    with torch.cuda.transfers() as seen:
        optimizer.step()
    after = torch.cuda.sim_counters(gpu)
    assert after["launches"] - before["launches"] == 1
    assert seen.waits == 0
    values = {round(v, 5) for p in ps for v in p.tolist()}
    assert len(values) == 1 and values != {0.0625}


def test_muon_makes_steps_orthogonal(device):
    torch.manual_seed(4)
    w = nn.Parameter(torch.zeros(6, 4, device=device))
    idle = nn.Parameter(torch.ones(2, 2, device=device))
    optimizer = optim.Muon(
        [w, idle], lr=1.0, ns_steps=12, ns_coefficients=(2, -1.5, 0.5)
    )
    w.grad = torch.randn(6, 4, device=device)
    optimizer.step()
    product = (w.t() @ w).detach().cpu().numpy() / (6 / 4)
    np.testing.assert_allclose(product, np.eye(4), atol=0.05)
    assert idle.tolist() == [[1, 1], [1, 1]]
    assert [*optimizer.state_dict()["state"]] == [0]
    for wrong in ({"ns_steps": 100}, {"ns_coefficients": (1, 2)}):
        optimizer = optim.Muon([w], **wrong)
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} is .*; give"):
            optimizer.step()
    with pytest.raises(ValueError, match=r"shape \[2\]; give it to another"):
        optim.Muon([nn.Parameter(torch.ones(2))])


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@each_optimizer
def test_a_step_in_16_bits_is_one_in_float32_rounded(make, name, device):
    dtype = getattr(torch, name)
    half = nn.Parameter(torch.tensor([1.5, -2.0, 0.25], dtype=dtype, device=device))
    single = nn.Parameter(half.detach().float())
    pair = make([half]), make([single])
    for k in range(1, 5):
        for p, o in zip((half, single), pair, strict=True):
            p.grad = torch.tensor([0.5 * k, 2.0, -k], dtype=p.dtype, device=device)
            o.step()
        rounding = 2e-3 if name == "float16" else 2e-2
        assert half.dtype is dtype
        assert half.tolist() == pytest.approx(
            single.tolist(), rel=k * rounding, abs=k * rounding
        )
    states, expected = (o.state_dict()["state"].get(0, {}) for o in pair)
    assert states.keys() == expected.keys()
    for key, value in expected.items():
        of_elements = value is not None and value.shape == half.shape
        assert states[key].dtype is (dtype if of_elements else torch.float32)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("size", [1, 7, 4096, 4099])
def test_16_bits_are_updated_as_they_lie(size, start, dtype, device):
    torch.manual_seed(3)
    data, gradient = torch.randn(2, start + size).to(dtype)[:, start:]
    wanted, sums = data.float(), torch.zeros(size)
    whole = torch.zeros(start + size + 1, dtype=dtype, device=device)
    p = nn.Parameter(whole[start:-1])
    p.data.copy_(data)
    optimizer = optim.SGD([p], lr=0.25, momentum=0.5)
    for _ in range(3):
        p.grad = gradient.to(device)
        optimizer.step()
        # float32 inside, rounded once at the end of a step
        sums = sums * 0.5 + gradient.float()
        wanted = (wanted - 0.25 * sums).to(dtype).float()
        sums = sums.to(dtype).float()
        norm = nn.utils.get_total_norm([p.grad, p.grad])
    assert torch.equal(p.detach().cpu().float(), wanted)
    assert whole[:start].tolist() == [0] * start and whole[-1] == 0
    in_double = 2**0.5 * gradient.double().norm().item()
    assert norm.dtype is dtype and norm.item() == pytest.approx(in_double, rel=1e-2)


def test_each_type_has_its_launch(gpu):
    if not torch.cuda.is_simulated():
        pytest.skip("counts what simulated GPUs do")
    kinds = [torch.float32, torch.float64, torch.float32]
    ps = [nn.Parameter(torch.ones(3, dtype=kind, device=gpu)) for kind in kinds]
    for p in ps:
        p.grad = torch.ones_like(p)
    optimizer = optim.SGD(ps, 0.5)
    before = torch.cuda.sim_counters(gpu)["launches"]
    optimizer.step()
    assert torch.cuda.sim_counters(gpu)["launches"] - before == 2
    assert [p.tolist() for p in ps] == [[0.5] * 3] * 3


def test_parameters_on_several_devices(two_gpus):
    places = ["cpu", *two_gpus, "cpu"]
    ps = [nn.Parameter(torch.ones(3, device=place)) for place in places]
    optimizer = optim.Adam(ps, 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        for p in ps:
            (p * p).sum().backward()
        optimizer.step()
    values = [p.tolist() for p in ps]
    assert all(v == pytest.approx(values[0], rel=1e-6) for v in values)
    assert [str(p.device) for p in ps] == places


@each_optimizer
def test_a_step_counts_as_a_write(make, device):
    p = nn.Parameter(torch.ones(3, device=device))
    optimizer = make([p])
    loss = (p * p).sum()
    p.grad = torch.ones_like(p)
    before = p._version
    optimizer.step()
    assert p._version == before + 1
    with pytest.raises(RuntimeError, match="inplace"):
        loss.backward()


def test_options_may_change_on_the_way(device):
    p = nn.Parameter(torch.ones(2, device=device))
    optimizer = optim.SGD([p], 1.0)
    p.grad = torch.ones_like(p)
    optimizer.step()
    optimizer.param_groups[0]["momentum"] = 0.5
    optimizer.param_groups[0]["lr"] = 0.25
    optimizer.step()
    optimizer.step()
    assert p.tolist() == [1 - 1 - 0.25 - 0.25 * 1.5] * 2


def test_a_rate_may_be_a_tensor(device):
    p = nn.Parameter(torch.ones(2, device=device))
    p.grad = torch.ones_like(p)
    optim.SGD([p], torch.tensor(0.25)).step()
    optim.AdamW([p], torch.tensor(0.25), weight_decay=0.5).step()
    assert p.tolist() == pytest.approx([0.75 * 0.875 - 0.25] * 2)


def test_a_closure_is_run_with_gradients_and_its_loss_returned(device):
    p = nn.Parameter(torch.ones(2, device=device))
    optimizer = optim.SGD([p], 0.5)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        loss = optimizer.step(closure)
    assert loss.item() == 2 and p.tolist() == [0, 0]


def test_zero_grad(device):
    p = nn.Parameter(torch.ones(2, device=device))
    optimizer = optim.SGD([p], 0.5)
    optimizer.zero_grad()
    assert p.grad is None
    p.grad = torch.ones_like(p)
    held = p.grad
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is held and held.tolist() == [0, 0]
    optimizer.zero_grad()
    assert p.grad is None and held.tolist() == [0, 0]


def test_no_gradient_no_update(device):
    p, q = (nn.Parameter(torch.ones(2, device=device)) for _ in range(2))
    optimizer = optim.Adam([p, q], 0.5)
    optimizer.step()
    assert not optimizer.state_dict()["state"]
    q.grad = torch.ones_like(q)
    optimizer.step()
    assert p.tolist() == [1, 1] and q.tolist() != [1, 1]
    assert [*optimizer.state_dict()["state"]] == [1]


def test_a_large_parameter_is_shared_by_threads(device):
    n = 300_001
    p = nn.Parameter(torch.arange(n, dtype=torch.float32, device=device))
    p.grad = torch.ones_like(p)
    optim.SGD([p], 1.0).step()
    assert (p + 1 == torch.arange(n, device=device)).all()


def test_steps_are_not_recorded():
    with pytest.raises(NotImplementedError, match="not recorded"):
        optim.SGD([nn.Parameter(torch.ones(1))], differentiable=True)


# What PyTorch gives after three steps: a parameter that a group mentions twice is
# updated for each mention, and its last number stands in the state.
REPEATED = {
    "SGD": (0.21600002, 0.09999996),
    "Adam": (0.41233641, 0.69999993),
    "AdamW": (0.40801170, 0.69730288),
    "RMSprop": (-0.02567163, -1.28913045),
    "Adagrad": (0.66171837, 0.77155429),
    "Adadelta": (0.99801636, 0.99902928),
    "RAdam": (0.14045082, 0.09999996),
    "NAdam": (0.55685920, 0.74276465),
    "Adamax": (0.45732731, 0.69999993),
    "ASGD": (0.21598862, 0.09998571),
    "Rprop": (0.00700790, 0.63599998),
}


@pytest.mark.parametrize("name", REPEATED)
def test_a_parameter_named_twice(device, name):
    p, q = (torch.nn.Parameter(torch.ones(2, device=device)) for _ in range(2))
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optimizer = getattr(torch.optim, name)([p, q, p], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        ((p * p).sum() + (q * 3).sum()).backward()
        optimizer.step()
    wanted = REPEATED[name]
    assert p.tolist() == pytest.approx([wanted[0]] * 2, rel=1e-5)
    assert q.tolist() == pytest.approx([wanted[1]] * 2, rel=1e-5)
    saved = optimizer.state_dict()
    assert saved["param_groups"][0]["params"] == [2, 1, 2]
    assert set(saved["state"]) == (set() if name == "SGD" else {1, 2})
    optimizer.load_state_dict(saved)
    optimizer.step()
    for groups in ([{"params": [p]}, {"params": [p]}],):
        with pytest.raises(ValueError, match="more than one parameter group"):
            torch.optim.SGD(groups, lr=0.1)


@pytest.mark.parametrize("name", [*REPEATED])
def test_wrong_arguments_are_named(name):
    make, w = getattr(torch.optim, name), torch.nn.Parameter(torch.ones(2))
    with pytest.raises(TypeError, match=r"got Linear.*\.parameters\(\)"):
        make(torch.nn.Linear(2, 2))
    for wrong in ("0.1", None, [0.1]):
        with pytest.raises(TypeError, match=r"lr is .*give a number"):
            make([w], lr=wrong)
    assert make([w], lr=torch.tensor(0.1)).param_groups[0]["lr"] == torch.tensor(0.1)


def test_groups_are_printed_apart():
    p, q = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    groups = [{"params": [p]}, {"params": [q], "lr": 2.0}]
    lines = repr(optim.SGD(groups, 1.0)).splitlines()
    assert lines[:2] == ["SGD (", "Parameter Group 0"] and lines[-1] == ")"
    second = lines.index("Parameter Group 1")
    assert lines[second - 1] == "" and lines.count("") == 1
    assert "    lr: 2.0" in lines[second:]
