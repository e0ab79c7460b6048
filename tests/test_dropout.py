"""torch.nn.functional.dropout: its masks, its gradients, its launches."""

import numpy as np
import pytest

import pydevtensor as torch
from pydevtensor.autograd import gradcheck, gradgradcheck

F = torch.nn.functional


def test_dropout_keeps_what_its_mask_says(device):
    for shape in ((3, 5), (4096,), (100, 333), (20001,)):
        torch.manual_seed(7)
        x = torch.randn(*shape, device=device, requires_grad=True)
        y = F.dropout(x, 0.25)
        g = torch.randn(*shape, device=device)
        y.backward(g)
        kept = (y != 0).cpu().numpy()
        for found, source in ((y.detach(), x.detach()), (x.grad, g)):
            np.testing.assert_allclose(
                found.cpu().numpy(), source.cpu().numpy() * kept / 0.75, rtol=1e-6
            )
        if kept.size > 1000:
            assert abs(kept.mean() - 0.75) < 0.04


def test_dropout_draws_its_mask_as_bernoulli_does(device):
    for n in (1, 4, 4096, 20001):
        whole = torch.randn(n + 1, device=device)
        for x in (whole[:n], whole[1:], whole[:n].half(), whole[1:].double()):
            torch.manual_seed(3)
            y = F.dropout(x, 0.3)
            torch.manual_seed(3)
            mask = torch.empty_like(x, dtype=torch.bool).bernoulli_(0.7)
            assert torch.equal(y, torch._C._dropout(x, 0.7, mask))
            assert torch.equal(y != 0, mask)


def test_dropout_of_a_gpu_is_one_launch(gpu):
    if not torch.cuda.is_simulated():
        pytest.skip("counts what simulated GPUs do")
    x = torch.ones(5000, device=gpu)
    before = torch.cuda.sim_counters(gpu)["launches"]
    F.dropout(x, 0.5)
    assert torch.cuda.sim_counters(gpu)["launches"] == before + 1


def test_gradients_of_dropout(device):
    x = torch.randn(3, 4, dtype=torch.float64, device=device, requires_grad=True)

    def run(v):
        torch.manual_seed(1)
        return F.dropout(v * v, 0.5)

    assert gradcheck(run, (x,))
    assert gradgradcheck(run, (x,))
    assert gradcheck(lambda v: run(v.t()), (x,))


def test_the_graph_of_dropout_ends_in_pytorchs_names(device):
    x = torch.ones(3, device=device, requires_grad=True)
    name = "MulBackward0" if device == "cpu" else "NativeDropoutBackward0"
    assert F.dropout(x, 0.5).grad_fn.name() == name
