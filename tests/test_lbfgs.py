"""LBFGS beyond the golden numbers of descent.json: float32, layouts, closures, states."""

import copy
import math

import pytest

import pydevtensor as torch
from pydevtensor import nn, optim

SEARCHES = (None, "strong_wolfe")


def fit(parameters, loss_of, steps=3, **options):
    """The losses before each step, and after the last one."""
    optimizer = optim.LBFGS(parameters, **options)

    def closure():
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(steps)]
    return [*losses, loss_of().item()]


def least_squares(device, dtype):
    torch.manual_seed(3)
    a = torch.randn(20, 6, dtype=torch.float64)
    y = torch.randn(20, dtype=torch.float64)
    expected = torch.linalg.lstsq(a, y[:, None]).solution[:, 0]
    return [t.to(device=device, dtype=dtype) for t in (a, y, expected)]


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_least_squares_are_solved(search, dtype, device):
    a, y, expected = least_squares(device, getattr(torch, dtype))
    x = nn.Parameter(torch.zeros_like(expected))
    loss_of = lambda: (a @ x - y).square().sum()
    fit([x], loss_of, line_search_fn=search, tolerance_change=1e-16)
    tolerance = 1e-4 if dtype == "float32" else 1e-7
    assert torch.allclose(x, expected, tolerance, tolerance)


def test_rosenbrock_is_minimised_in_float32(device):
    x = nn.Parameter(torch.tensor([-1.2, 1.0], device=device))
    losses = fit(
        [x],
        lambda: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2,
        steps=4,
        line_search_fn="strong_wolfe",
    )
    assert x.tolist() == pytest.approx([1, 1], abs=1e-3)
    assert losses == sorted(losses, reverse=True) and losses[-1] < 1e-6


@pytest.mark.parametrize("search", SEARCHES)
def test_all_parameters_are_one_vector(search, device):
    """Of several layouts, and one without a gradient."""
    a = nn.Parameter(torch.full((3, 2), 4.0, device=device).t())
    b = nn.Parameter(torch.tensor(-3.0, device=device))
    c = nn.Parameter(torch.ones(2, 2, device=device))
    target = torch.arange(6.0, device=device).reshape(2, 3)
    fit(
        [a, b, c],
        lambda: (a - target).square().sum() + (b - 2) ** 2,
        line_search_fn=search,
    )
    assert torch.allclose(a, target, atol=1e-4) and a.stride() == (1, 2)
    assert b.item() == pytest.approx(2, abs=1e-4) and c.tolist() == [[1, 1], [1, 1]]


def test_a_net_is_trained(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
    x = torch.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]], device=device)
    y = torch.tensor([[0.0], [1], [1], [0]], device=device)
    losses = fit(
        net.parameters(),
        lambda: nn.functional.mse_loss(net(x), y),
        steps=4,
        line_search_fn="strong_wolfe",
    )
    assert losses[-1] < 1e-3


def test_nothing_is_done_at_a_minimum(device):
    x = nn.Parameter(torch.zeros(2, device=device))
    optimizer = optim.LBFGS([x])
    x.grad = torch.zeros_like(x)
    assert optimizer.step(lambda: 5.0) == 5.0
    assert optimizer.state_dict()["state"] == {0: {"func_evals": 1, "n_iter": 0}}
    assert x.tolist() == [0, 0]


def test_a_loss_that_is_nan_ends_the_step(device):
    x = nn.Parameter(torch.ones(2, device=device))
    for search in SEARCHES:
        losses = fit([x], lambda: (x * math.nan).sum(), 1, line_search_fn=search)
        assert all(math.isnan(loss) for loss in losses)


def test_states_move_to_the_parameter_that_loads_them(device):
    def start(where, dtype):
        x = nn.Parameter(torch.tensor([3.0, -2.0], device=where, dtype=dtype))
        return x, optim.LBFGS([x], max_iter=3)

    def closure(x):
        def loss():
            x.grad = None
            value = (x**4).sum()
            value.backward()
            return value

        return loss

    x, optimizer = start("cpu", torch.float32)
    optimizer.step(closure(x))
    y, other = start(device, torch.float64)
    saved = optimizer.state_dict()
    other.load_state_dict(copy.deepcopy(saved))
    state = other.state[y]
    assert state["al"][0].dtype == torch.float64 and state["al"][-1] is None
    for part in (*state["old_dirs"], *state["ro"], state["d"], state["prev_flat_grad"]):
        assert str(part.device) == device and part.dtype == torch.float64
    moved = [part.tolist() for part in saved["state"][0]["old_dirs"]]
    with torch.no_grad():
        y.copy_(x)
    other.step(closure(y))
    assert [part.tolist() for part in saved["state"][0]["old_dirs"]] == moved
    optimizer.step(closure(x))
    assert y.tolist() == pytest.approx(x.tolist(), rel=1e-4)


def test_closures_and_hooks(device):
    x = nn.Parameter(torch.ones(2, device=device))
    optimizer, calls = optim.LBFGS([x], max_iter=2), []
    optimizer.register_step_pre_hook(lambda *given: calls.append("before"))
    optimizer.register_step_post_hook(lambda *given: calls.append("after"))

    def closure():
        calls.append(torch.is_grad_enabled())
        optimizer.zero_grad()
        loss = x.square().sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert optimizer.step(closure).item() == 2
        assert not torch.is_grad_enabled()
    assert calls == ["before", True, True, "after"]


def test_wrong_arguments_are_named(device):
    x = nn.Parameter(torch.ones(2, device=device))
    with pytest.raises(ValueError, match="2 groups; give one"):
        optim.LBFGS([{"params": [x]}, {"params": [nn.Parameter(torch.ones(1))]}])
    with pytest.raises(TypeError, match="closure"):
        optim.LBFGS([x]).step()
    with pytest.raises(RuntimeError, match="'wolfe'; give 'strong_wolfe' or None"):
        fit([x], lambda: x.square().sum(), line_search_fn="wolfe")
    with pytest.raises(IndexError, match="history_size is 0"):
        fit([x], lambda: (x - 5).square().sum(), history_size=0, lr=0.1)
