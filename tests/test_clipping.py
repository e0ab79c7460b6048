"""Norms and clipping of gradients, and gradients as objects."""

import math

import numpy as np
import pytest
from strides import LAYOUTS

import pydevtensor as torch
from pydevtensor import nn

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
