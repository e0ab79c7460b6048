"""Optimisers and schedules: PyTorch's numbers and layouts, and what holds beyond them."""

import copy
import math
import pickle

import numpy as np
import pytest
from golden.descent import descend
from golden.describe import load
from golden.optim import backward, make_parameters, optimise

import pydevtensor as torch
from pydevtensor import nn, optim
from pydevtensor.optim.optimizer import _RULES as RULES

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
        absolute = relative / 100
        if name.startswith("bfloat16"):
            relative = absolute = 0.03
        if not isinstance(expected, str):
            expected = pytest.approx(expected, rel=relative, abs=absolute)
        if found[name] != expected:
            faults.append(f"{name}: {found[name]}, expected {expected}")
    assert not faults, "\n".join(faults)


# --- the rules, from the papers, in NumPy ---------------------------------------------


def update(rule, parameters, gradients, states, steps, numbers, scale=None, kept=()):
    """Update parameters by a rule."""
    tensors = sum(states, parameters + gradients)
    torch._C._update(rule, tensors, steps, numbers, scale, kept)


def reference(rule, p, g, states, n, step):
    """One update of NumPy arrays by a rule; gives the parameter and the states."""
    if rule in ("scale", "unscale", "clamp", "lerp"):
        if rule == "unscale":
            return g, states
        if rule == "lerp":
            return p + n["weight"] * (g - p), states
        if rule == "scale":
            return g * n["factor"], states
        return np.clip(g, n["least"], n["greatest"]), states
    s = dict(states)
    if rule == "rprop":
        g = n["sign"] * g
        turn = np.sign(g * s["prev"])
        factor = np.where(turn > 0, n["grow"], np.where(turn < 0, n["shrink"], 1))
        size = s["step_size"] = np.clip(s["step_size"] * factor, n["least"], n["most"])
        g = s["prev"] = np.where(turn < 0, 0, g)
        return p - np.sign(g) * size, s
    p = p * n.get("shrink", 1)
    g = n["sign"] * g + n["weight_decay"] * p
    lr = n["lr"]
    if rule == "asgd":
        p = p * (1 - n["lambd"] * s["eta"]) - s["eta"] * g
        s["ax"] = s["ax"] + s["mu"] * (p - s["ax"])
        s["eta"] = lr / (1 + n["lambd"] * lr * step) ** n["alpha"]
        s["mu"] = 1 / max(1, step - n["t0"])
        return p, s
    if rule == "adamax":
        s["exp_avg"] = n["beta1"] * s["exp_avg"] + (1 - n["beta1"]) * g
        s["exp_inf"] = np.maximum(n["beta2"] * s["exp_inf"], np.abs(g) + n["eps"])
        return p - lr / (1 - n["beta1"] ** step) * s["exp_avg"] / s["exp_inf"], s
    if rule in ("radam", "nadam"):
        b1, b2, eps = n["beta1"], n["beta2"], n["eps"]
        m = s["exp_avg"] = b1 * s["exp_avg"] + (1 - b1) * g
        v = s["exp_avg_sq"] = b2 * s["exp_avg_sq"] + (1 - b2) * g * g
        if rule == "radam":
            most = 2 / (1 - b2) - 1
            rest = most - 2 * step * b2**step / (1 - b2**step)
            mean = m / (1 - b1**step)
            if rest <= 5:
                return p - lr * mean, s
            r = (rest - 4) * (rest - 2) * most / ((most - 4) * (most - 2) * rest)
            return p - lr * mean * (r * (1 - b2**step)) ** 0.5 / (np.sqrt(v) + eps), s
        now, after = (
            b1 * (1 - 0.5 * 0.96 ** (t * n["momentum_decay"])) for t in (step, step + 1)
        )
        product = s["mu_product"] = s["mu_product"] * now
        mean = after * m / (1 - product * after) + (1 - now) * g / (1 - product)
        return p - lr * mean / (np.sqrt(v / (1 - b2**step)) + eps), s
    if rule == "sgd":
        return p - lr * g, s
    if rule == "sgd_momentum":
        old = s["momentum_buffer"]
        new = g if step == 1 else n["momentum"] * old + (1 - n["dampening"]) * g
        s["momentum_buffer"] = new
        return p - lr * (g + n["momentum"] * new if n["nesterov"] else new), s
    if rule.startswith("adam"):
        s["exp_avg"] = n["beta1"] * s["exp_avg"] + (1 - n["beta1"]) * g
        s["exp_avg_sq"] = n["beta2"] * s["exp_avg_sq"] + (1 - n["beta2"]) * g * g
        square = s["exp_avg_sq"]
        if rule == "adam_amsgrad":
            square = s["max_exp_avg_sq"] = np.maximum(s["max_exp_avg_sq"], square)
        mean = s["exp_avg"] / (1 - n["beta1"] ** step)
        size = np.sqrt(square / (1 - n["beta2"] ** step)) + n["eps"]
        return p - lr * mean / size, s
    if rule == "adagrad":
        s["sum"] = s["sum"] + g * g
        rate = lr / (1 + (step - 1) * n["lr_decay"])
        return p - rate * g / (np.sqrt(s["sum"]) + n["eps"]), s
    if rule == "adadelta":
        rho, eps = n["rho"], n["eps"]
        s["square_avg"] = rho * s["square_avg"] + (1 - rho) * g * g
        delta = np.sqrt((s["acc_delta"] + eps) / (s["square_avg"] + eps)) * g
        s["acc_delta"] = rho * s["acc_delta"] + (1 - rho) * delta * delta
        return p - lr * delta, s
    assert rule.startswith("rmsprop")
    alpha = n["alpha"]
    s["square_avg"] = alpha * s["square_avg"] + (1 - alpha) * g * g
    square = s["square_avg"]
    if "centered" in rule:
        s["grad_avg"] = alpha * s["grad_avg"] + (1 - alpha) * g
        square = square - s["grad_avg"] ** 2
    change = g / (np.sqrt(square) + n["eps"])
    if "momentum" in rule:
        change = s["momentum_buffer"] = n["momentum"] * s["momentum_buffer"] + change
    return p - lr * change, s


NUMBERS = {
    "lr": 0.1,
    "weight_decay": 0.03,
    "sign": -1.0,
    "momentum": 0.7,
    "dampening": 0.2,
    "nesterov": 1.0,
    "beta1": 0.8,
    "beta2": 0.95,
    "eps": 1e-3,
    "shrink": 0.98,
    "lr_decay": 0.2,
    "rho": 0.7,
    "alpha": 0.9,
    "factor": -1.7,
    "least": -0.4,
    "greatest": 0.6,
    "momentum_decay": 0.3,
    "lambd": 0.2,
    "t0": 1.0,
    "grow": 1.4,
    "most": 2.6,
    "weight": 0.3,
    "no_number": 0.0,
}
# How a tensor of each kind is made from a row-major one with the same values.
LAYOUTS = {
    "row-major": lambda t: t.clone(),
    "transposed": lambda t: t.t().contiguous().t() if t.ndim == 2 else t.clone(),
    "with gaps": lambda t: spread(t),
}
SHAPES = [(7,), (), (3, 0), (5, 6), (4097,), (130, 129), (1,)]


def spread(t):
    """t's values in a tensor whose elements are two apart in memory."""
    wide = torch.zeros(*t.shape, 2, dtype=t.dtype, device=t.device)
    part = wide[..., 1]
    part.copy_(t)
    return part


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_its_paper(rule, dtype, device):
    states, numbers, kept_names = RULES[rule]
    given = [NUMBERS[name] for name in numbers]
    n = dict(zip(numbers, given, strict=True))
    kind = getattr(torch, dtype)
    rng = np.random.default_rng(5)
    cases = [(shape, name) for shape in SHAPES for name in LAYOUTS]
    parameters, gradients, kept, expected = [], [], [[] for _ in states], []
    steps = []
    kept_numbers = [[] for _ in kept_names]
    for i, (shape, layout) in enumerate(cases):

        def make(values, lay):
            return LAYOUTS[lay](torch.tensor(values, dtype=kind, device=device))

        p, g = (rng.standard_normal(shape).astype(dtype) for _ in range(2))
        s = {}
        for name in states:
            s[name] = rng.uniform(2, 3, shape).astype(dtype)
            if name == "grad_avg":
                s[name] = s[name] / 10
        step = 1 + i % 7 if rule == "radam" else 1 + i % 3
        for k, name in enumerate(kept_names):
            s[name] = np.array(0.25 + i / 64)
            kept_numbers[k].append(torch.tensor(0.25 + i / 64, dtype=kind))
        if step == 1 and rule == "sgd_momentum":
            s["momentum_buffer"] = np.zeros(shape, dtype)
        parameters.append(make(p, layout))
        # Its own order is that of the parameter, or another one.
        names = [*LAYOUTS]
        gradients.append(make(g, names[(i + i // 3) % 3]))
        for k, name in enumerate(states):
            kept[k].append(make(s[name], names[(i + k) % 3]))
        steps.append(float(step))
        wide = {name: value.astype("float64") for name, value in s.items()}
        expected.append(
            reference(rule, p.astype("float64"), g.astype("float64"), wide, n, step)
        )
    flat = [number for numbers in kept_numbers for number in numbers]
    update(rule, parameters, gradients, kept, steps, given, None, flat)
    tolerance = 2e-5 if dtype == "float32" else 1e-12
    for i, (p, s) in enumerate(expected):
        np.testing.assert_allclose(
            parameters[i].cpu().numpy(), p, tolerance, tolerance, err_msg=str(cases[i])
        )
        for k, name in enumerate(states):
            np.testing.assert_allclose(
                kept[k][i].cpu().numpy(), s[name], tolerance, tolerance, err_msg=name
            )
        for k, name in enumerate(kept_names):
            assert kept_numbers[k][i].item() == pytest.approx(s[name], rel=1e-6)


def test_scale_multiplies_the_gradients(device):
    g = torch.tensor([1.0, -2.0, 3.0], device=device)
    factor = torch.tensor(0.5, device=device)
    update("scale", [g], [g], [], (), [3.0], factor)
    assert g.tolist() == [1.5, -3.0, 4.5]
    p = torch.ones(3, device=device, dtype=torch.float64)
    update("sgd", [p], [g], [], (), [1.0, 0.0, 1.0], torch.tensor([2.0]))
    assert p.tolist() == [-2.0, 7.0, -8.0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_unscale_finds_what_is_not_finite(dtype, device):
    kind = getattr(torch, dtype)
    factor = torch.tensor(0.25, device=device)
    for shape in ((1,), (33,), (4099,), (70, 65)):
        for value in (0.0, float("inf"), float("-inf"), float("nan")):
            for at in (0, -1):
                tensors = [torch.ones(5, device=device, dtype=kind), None]
                tensors[1] = torch.full(shape, 3.0, device=device, dtype=kind).t()
                tensors[1][(at,) * len(shape)] = value
                found = torch.zeros(1, device=device)
                torch._C._update(
                    "unscale", tensors * 2, (), (0.0,), factor, found=found
                )
                assert found.tolist() == [float(value != 0)], (shape, value, at)
                assert tensors[0].tolist() == [0.25] * 5
                assert (tensors[1] == 0.75).sum().item() == tensors[1].numel() - 1
    large = torch.tensor([3e38], device=device)  # finite before, infinite after
    torch._C._update(
        "unscale", [large] * 2, (), (0.0,), factor * 40, found=found.zero_()
    )
    assert found.item() == 0 and large.item() == float("inf")


def test_flags_that_unscale_cannot_write(device):
    g = [torch.ones(3, device=device)] * 2
    for found in (torch.zeros(2), torch.zeros(1, dtype=torch.int64)):
        with pytest.raises(RuntimeError, match="tensor of one float32"):
            torch._C._update("unscale", g, (), (0.0,), found=found.to(device))
    assert g[0].tolist() == [1, 1, 1]


def test_centered_rmsprop_of_equal_gradients(device):
    """Rounding makes the difference of the mean square and the squared mean negative,
    whose root would be NaN for good."""
    p = torch.ones(5, device=device).requires_grad_()
    optimizer = optim.RMSprop([p], lr=1e-3, alpha=0.9, centered=True)
    negative = 0
    for _ in range(400):
        p.grad = torch.full_like(p, 3.3)
        optimizer.step()
        state = optimizer.state[p]
        negative += (state["square_avg"] < state["grad_avg"] ** 2).any().item()
    assert negative and p.isfinite().all()


@pytest.mark.parametrize("weight", [0.0, 0.2, 0.7, 1.0])
def test_a_way_between_is_exact_at_its_ends(weight, device):
    p = torch.tensor([3.3, -1e8, 1e-8], device=device)
    g = torch.tensor([0.1, 7.7, 1e8], device=device)
    expected = torch.lerp(p, g, weight).tolist()
    update("lerp", [p], [g], [], (), [weight])
    assert p.tolist() == pytest.approx(expected, rel=1e-6)
    if weight in (0, 1):
        assert p.tolist() == expected


def test_a_nan_stays_one_when_clamped(device):
    g = torch.tensor([float("nan"), 5.0, float("-inf")], device=device)
    update("clamp", [g], [g], [], (), [-1.0, 2.0])
    assert math.isnan(g[0]) and g[1:].tolist() == [2.0, -1.0]


# --- what a call of _update refuses ---------------------------------------------------


def refuse(error, words, *args):
    with pytest.raises(error, match=words):
        update(*args)


def test_misfits_fail_before_anything_is_written(device):
    p, q = torch.ones(3, device=device), torch.ones(2, device=device)
    sgd = (0.1, 0.0, 1.0)
    refuse(ValueError, "no rule", "sgdd", [p], [p], [], (), sgd)
    refuse(ValueError, "numbers", "sgd", [p], [p], [], (), sgd[:2])
    refuse(ValueError, "3 tensors", "sgd", [p], [p, p], [], (), sgd)
    refuse(ValueError, "1 states", "sgd_momentum", [p], [p], [], (), sgd + (0, 0, 0))
    refuse(TypeError, "Tensors", "sgd", [1.0], [p], [], (), sgd)
    refuse(ValueError, "2 steps", "sgd", [p], [p], [], (1, 2), sgd)
    refuse(TypeError, "Tensors", "sgd", [p], [None], [], (), sgd)
    refuse(TypeError, "number", "sgd", [p], [p], [], (), ("a", 0.0, 1.0))
    refuse(RuntimeError, "shape", "sgd", [p, q], [p, p], [], (), sgd)
    refuse(RuntimeError, "type", "sgd", [p.long()], [p], [], (), sgd)
    refuse(RuntimeError, "one place", "sgd", [p[:1].expand(3)], [p], [], (), sgd)
    refuse(RuntimeError, "2 elements", "sgd", [p], [p], [], (), sgd, q)
    adagrad = (0.1, 0.0, 0.0, 0.0, 1.0)
    refuse(RuntimeError, "shape", "adagrad", [p], [p], [[q]], [1.0], adagrad)
    asgd = (0.1, 1e-4, 0.75, 0.0, 0.0, 1.0)
    eta, mu = torch.tensor(0.1), torch.tensor(1.0)

    def refuse_kept(error, words, kept):
        refuse(error, words, "asgd", [p], [p], [[p]], [1.0], asgd, None, kept)

    refuse_kept(ValueError, "1 kept", [eta])
    refuse_kept(TypeError, "kept number 1", [eta, 1.0])
    refuse_kept(TypeError, "kept number 0", [eta.long(), mu])
    refuse_kept(TypeError, "kept number 1.*one element", [eta, q])
    refuse(RuntimeError, "shape", "asgd", [p], [p], [[q]], [1.0], asgd, None, [eta, mu])
    assert p.tolist() == [1, 1, 1] and q.tolist() == [1, 1]
    assert (eta.item(), mu.item()) == (pytest.approx(0.1), 1)


@pytest.mark.filterwarnings("ignore:.*read-only")
def test_memory_of_others_is_not_written():
    array = np.ones(3, np.float32)
    array.flags.writeable = False
    p = torch.from_numpy(array)
    refuse(RuntimeError, "read-only", "sgd", [p], [p], [], (), (0.1, 0.0, 1.0))


def test_parts_on_two_devices_are_named(two_gpus):
    p = nn.Parameter(torch.ones(2, device=two_gpus[0]))
    state = torch.zeros(2, device=two_gpus[1])
    with pytest.raises(RuntimeError, match="cuda:1"):
        update("adagrad", [p], [p], [[state]], [1.0], (0.1, 0.0, 0.0, 0.0, 1.0))


# --- norms and clipping ---------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2, 3.5, 0, float("inf"), float("-inf"), -2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_norm_of_many_is_that_of_one_vector(p, dtype, device):
    rng = np.random.default_rng(1)
    shapes = [(3,), (), (5, 7), (40_001,), (16_384,), (1,), (130, 129)]
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    layouts = [*LAYOUTS.values()]
    tensors = [
        layouts[i % 3](torch.tensor(a, device=device)) for i, a in enumerate(arrays)
    ]
    found = nn.utils.get_total_norm(tensors, p)
    flat = np.concatenate([a.ravel().astype("float64") for a in arrays])
    expected = np.linalg.norm(flat, p) if p else len(arrays)
    assert found.shape == () and str(found.device) == device
    assert found.dtype == getattr(torch, dtype)
    assert found.item() == pytest.approx(expected, rel=1e-5)


def test_the_norm_of_nothing_and_of_odd_things(device):
    empty = torch.ones(0, device=device)
    assert nn.utils.get_total_norm([]).item() == 0
    assert nn.utils.get_total_norm([empty]).item() == 0
    assert (
        nn.utils.get_total_norm([empty, torch.tensor([3.0, 4.0], device=device)]) == 5
    )
    bad = torch.tensor([1.0, float("nan")], device=device)
    assert math.isnan(nn.utils.get_total_norm([bad, torch.ones(2, device=device)]))
    assert math.isnan(
        nn.utils.get_total_norm([torch.ones(2, device=device), bad], math.inf)
    )
    with pytest.raises(RuntimeError, match="floating"):
        torch._C._total_norm([torch.ones(2, device=device).long()], 2.0)
    with pytest.raises(TypeError):
        torch._C._total_norm([1.0], 2.0)


def test_the_norm_across_types_and_devices(two_gpus):
    tensors = [torch.full((9,), 2.0, device=d) for d in ("cpu", *two_gpus)]
    tensors.append(torch.full((9,), 2.0, dtype=torch.float64, device=two_gpus[0]))
    found = nn.utils.get_total_norm(tensors)
    assert str(found.device) == "cpu" and found.item() == pytest.approx(12)


def filled(device, *values):
    ps = [nn.Parameter(torch.zeros(2, 3, device=device)) for _ in values]
    for p, value in zip(ps, values, strict=True):
        p.grad = torch.full((2, 3), value, device=device)
    return ps


def test_clipping_scales_to_the_norm(device):
    ps = filled(device, 1.0, 2.0)
    ps.append(nn.Parameter(torch.ones(2)))
    total = nn.utils.clip_grad_norm_(ps, 1.5)
    assert total.item() == pytest.approx(30**0.5, rel=1e-6)
    assert nn.utils.get_total_norm([p.grad for p in ps[:2]]).item() == pytest.approx(
        1.5
    )
    before = [p.grad.tolist() for p in ps[:2]]
    nn.utils.clip_grad_norm_(ps, 2)
    assert [p.grad.tolist() for p in ps[:2]] == before
    assert nn.utils.clip_grad_norm_(ps[2], 1.0).item() == 0


def test_clipping_values(device):
    ps = filled(device, -3.0, 0.25, 3.0)
    nn.utils.clip_grad_value_(ps, 0.5)
    assert [p.grad[0, 0].item() for p in ps] == [-0.5, 0.25, 0.5]


def test_clipping_takes_few_launches_and_no_wait(gpu):
    if not torch.cuda.is_simulated():
        pytest.skip("counts what simulated GPUs do")
    ps = filled(gpu, *[float(i) for i in range(300)])
    before = torch.cuda.sim_counters(gpu)["launches"]
    with torch.cuda.transfers() as seen:
        nn.utils.clip_grad_norm_(ps, 1.0)
    assert torch.cuda.sim_counters(gpu)["launches"] - before <= 8
    assert seen.waits == 0
    before = torch.cuda.sim_counters(gpu)["launches"]
    nn.utils.clip_grad_value_(ps, 0.01)
    assert torch.cuda.sim_counters(gpu)["launches"] - before == 1


# --- gradients as objects -------------------------------------------------------------


def test_a_gradient_is_one_object(device):
    x = torch.ones(3, device=device, requires_grad=True)
    assert x.grad is None
    (x * 2).sum().backward()
    grad = x.grad
    assert x.grad is grad and x.grad is x.grad
    place = grad.data_ptr()
    (x * 3).sum().backward()
    assert x.grad is grad and grad.tolist() == [5, 5, 5] and grad.data_ptr() == place
    x.grad = None
    assert x.grad is None and grad.tolist() == [5, 5, 5]
    (x * 2).sum().backward()
    assert x.grad is not grad and x.grad.tolist() == [2, 2, 2]
    x.grad = grad
    assert x.grad is grad
    del x
    assert grad.tolist() == [5, 5, 5]


def test_a_gradient_with_attributes_keeps_them(device):
    x = nn.Parameter(torch.ones(3, device=device))
    x.grad = torch.ones_like(x)
    held = x.grad
    held.note = "kept"
    assert x.grad.note == "kept"
    y = nn.Parameter(torch.ones(3, device=device))
    y.grad = held
    assert y.grad.tolist() == [1, 1, 1] and x.grad is held
    held.mul_(2)
    assert x.grad.tolist() == y.grad.tolist() == [2, 2, 2]
    x.grad = torch.zeros_like(x)
    assert x.grad is not held and held.note == "kept"


def test_a_kept_gradient_is_one_object(device):
    x = torch.ones(3, device=device, requires_grad=True)
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward()
    grad = y.grad
    assert y.grad is grad and grad.tolist() == [4, 4, 4]
    del y
    assert grad.tolist() == [4, 4, 4]


def test_a_recorded_sum_is_another_gradient(device):
    x = torch.ones(2, device=device, requires_grad=True)
    (x**3).sum().backward(create_graph=True)
    first = x.grad
    assert first.requires_grad and x.grad is first
    (x**3).sum().backward(create_graph=True)
    assert x.grad.tolist() == [6, 6] and first.tolist() == [3, 3]
    x.grad = None  # the history of the gradient leads back to x
    del first


def test_gradients_lie_as_their_leaves_do(device):
    x = torch.ones(4, 6, device=device)
    net = nn.Linear(6, 5).to(device)
    net(x).sum().backward()
    assert net.weight.grad.is_contiguous()
    w = nn.Parameter(torch.ones(5, 6, device=device).t())
    (x @ w).sum().backward()
    assert w.grad.stride() == w.stride() == (1, 6)
    (x @ w).sum().backward()
    assert w.grad.tolist() == [[8.0] * 5] * 6
    v = nn.Parameter(torch.ones(3, 4, device=device))
    v.t().mul(torch.arange(12.0, device=device).reshape(4, 3)).sum().backward()
    assert v.grad.is_contiguous()
    assert v.grad.tolist() == torch.arange(12.0).reshape(4, 3).t().tolist()


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


def test_parameters_in_a_row_of_memory(device):
    """Views of one vector, at any alignment."""
    flat = torch.arange(1000, dtype=torch.float32, device=device)
    ps = [flat[i : i + 111] for i in range(0, 999, 111)]
    gs = [torch.ones(112, device=device)[1:] for _ in ps]
    update("sgd", ps, gs, [], (), (1.0, 0.0, 1.0))
    assert flat.tolist() == [*(i - 1.0 for i in range(999)), 999.0]


def test_a_large_parameter_is_shared_by_threads(device):
    n = 300_001
    p = nn.Parameter(torch.arange(n, dtype=torch.float32, device=device))
    p.grad = torch.ones_like(p)
    optim.SGD([p], 1.0).step()
    assert (p + 1 == torch.arange(n, device=device)).all()


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


def test_steps_are_not_recorded():
    with pytest.raises(NotImplementedError, match="not recorded"):
        optim.SGD([nn.Parameter(torch.ones(1))], differentiable=True)


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
