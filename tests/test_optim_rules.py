"""The rules of optimizers against their papers in NumPy, and what a call of them refuses."""

import math

import numpy as np
import pytest
from strides import LAYOUTS

import pydevtensor as torch
from pydevtensor import nn, optim
from pydevtensor.optim.optimizer import _RULES as RULES

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


SHAPES = [(7,), (), (3, 0), (5, 6), (4097,), (130, 129), (1,)]


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


# --- optimisers -----------------------------------------------------------------------


def test_parameters_in_a_row_of_memory(device):
    """Views of one vector, at any alignment."""
    flat = torch.arange(1000, dtype=torch.float32, device=device)
    ps = [flat[i : i + 111] for i in range(0, 999, 111)]
    gs = [torch.ones(112, device=device)[1:] for _ in ps]
    update("sgd", ps, gs, [], (), (1.0, 0.0, 1.0))
    assert flat.tolist() == [*(i - 1.0 for i in range(999)), 999.0]


@pytest.mark.parametrize(
    "name",
    [
        "SGD",
        "Adam",
        "AdamW",
        "Adamax",
        "NAdam",
        "RAdam",
        "Adagrad",
        "Adadelta",
        "RMSprop",
        "Rprop",
        "ASGD",
    ],
)
def test_complex_parameters_are_pairs_of_real_ones(device, name):
    whole = torch.tensor([1 + 2j, -3 + 0.5j, 0.2 - 1j], device=device)
    pairs = torch.view_as_real(whole).clone().requires_grad_()
    whole.requires_grad_()
    options = {"momentum": 0.9} if name == "SGD" else {}
    trainers = [
        getattr(torch.optim, name)([p], lr=0.1, **options) for p in (whole, pairs)
    ]
    for k in range(1, 4):
        gradient = torch.tensor([k + 1j, 2 - k * 1j, -0.5 + 0j], device=device)
        whole.grad, pairs.grad = gradient, torch.view_as_real(gradient)
        for trainer in trainers:
            trainer.step()
    assert torch.allclose(torch.view_as_real(whole.detach()), pairs)
    kept = trainers[0].state[whole].values()
    assert any(getattr(value, "is_complex", bool)() for value in kept)


def test_complex_gradients_are_clipped(device):
    w = torch.zeros(2, dtype=torch.complex64, device=device, requires_grad=True)
    w.grad = torch.tensor([3 + 0j, 4j], device=device)
    assert torch.nn.utils.clip_grad_norm_([w], 1.0).item() == pytest.approx(5)
    assert torch.allclose(w.grad, torch.tensor([0.6 + 0j, 0.8j], device=device))
