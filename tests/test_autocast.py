"""autocast and GradScaler beyond tests/golden/amp.json: GPUs, threads, errors."""

import threading

import pytest

import pydevtensor as torch
from pydevtensor import nn

F = nn.functional


def on(device, **options):
    return torch.autocast(torch.device(device).type, **options)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_products_and_gradients(device, dtype):
    net = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 2)).to(device)
    x = torch.randn(2, 3, 5, device=device, requires_grad=True)
    with on(device, dtype=dtype):
        out = net(x)
        loss = F.mse_loss(out, torch.zeros_like(out))
    assert out.dtype == dtype and loss.dtype == torch.float32
    loss.backward()
    exact = F.mse_loss(net(x), torch.zeros(2, 3, 2, device=device))
    expected = torch.autograd.grad(exact, [x, *net.parameters()])
    for found, wanted in zip([x, *net.parameters()], expected, strict=True):
        assert found.grad.dtype == torch.float32
        assert torch.allclose(found.grad, wanted, rtol=0.1, atol=0.03)


# What PyTorch's documentation lists for CUDA.
IN_FLOAT = [
    *["x.exp()", "x.log()", "x.log2()", "x.log10()", "x.log1p()", "x.expm1()"],
    *["x.acos()", "x.asin()", "x.cosh()", "x.sinh()", "x.tan()", "x.erfinv()"],
    *["x.reciprocal()", "x.rsqrt()", "x**2", "2**x", "x.pow(2)", "x.sum()", "x.sum(0)"],
    *["x.prod()", "x.norm()", "x.softmax(0)", "x.log_softmax(0)", "x.cumsum(0)"],
    "x.cumprod(0)",
    "F.layer_norm(x, (3,), torch.ones(3, device=x.device))",
    "F.layer_norm(x, (3,))",
    "F.normalize(x, dim=0)",
]


@pytest.mark.parametrize("source", IN_FLOAT)
def test_in_float32_on_a_gpu(source, gpu):
    x = torch.tensor([0.25, 0.5, 0.75], device=gpu)
    wanted = eval(source, {"x": x, "F": F, "torch": torch})
    with on(gpu):
        found = eval(source, {"x": x.half(), "F": F, "torch": torch})
    assert found.dtype == torch.float32
    assert torch.allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_what_stays_in_its_type_on_a_gpu(gpu):
    x = torch.ones(2, 2, device=gpu).half()
    with on(gpu):
        assert (x + x).dtype == x.relu().dtype == x.mean().dtype == torch.float16
        assert x.sum(dtype=torch.float16).dtype == torch.float16
        assert nn.BatchNorm1d(2, device=gpu)(x).dtype == torch.float16
        assert (x.double() @ x.double()).dtype == torch.float64
        # The CPU is not meant.
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
    with torch.autocast("cpu"):
        assert (x.float() @ x.float()).dtype == torch.float32


def test_each_thread_has_its_own(device):
    found = []
    with on(device):
        thread = threading.Thread(
            target=lambda: found.append(
                torch.is_autocast_enabled(torch.device(device).type)
            )
        )
        thread.start()
        thread.join()
    assert found == [False]


def test_errors_leave_it_as_it_was(device):
    x = torch.ones(2, 3, device=device)
    with on(device):
        for _ in range(2):
            with pytest.raises(RuntimeError):
                x @ x
        assert (x @ x.T).dtype != torch.float32
    with pytest.raises(ZeroDivisionError), on(device):
        1 / 0  # noqa: B018
    assert (x @ x.T).dtype == torch.float32
    with on(device), pytest.raises(TypeError):
        torch.autocast("cpu", dtype="float16")


def test_backward_does_not_cast(device):
    a = torch.rand(3, 3, device=device, requires_grad=True)
    wanted = torch.autograd.grad((a @ a).sum(), a)[0]
    out = (a @ a).sum()
    with on(device):
        out.backward()
        assert (a @ a).dtype != torch.float32
    assert torch.equal(a.grad, wanted)


def test_in_place_and_out_are_left_alone(device):
    a, out = torch.ones(2, 2, device=device), torch.empty(2, 2, device=device)
    with on(device):
        assert torch.mm(a, a, out=out) is out and out.tolist() == [[2, 2], [2, 2]]
        assert a.clone().addmm_(a, a).dtype == torch.float32


def test_second_derivatives(device):
    x = torch.rand(2, 2, device=device, requires_grad=True)
    with on(device, dtype=torch.bfloat16):
        y = (x @ x).float().square().sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    g.sum().backward()
    assert x.grad.dtype == torch.float32 and x.grad.isfinite().all()


def test_a_list_of_tensors_and_no_memory_left_behind(device):
    x = torch.ones(2, 2, device=device)
    with on(device):
        for _ in range(3):
            y = torch.einsum("ij,jk,kl->il", x, x, x)
    assert y.dtype != torch.float32


def test_disabled_with_a_warning(monkeypatch):
    with pytest.warns(UserWarning, match="float64"):
        mode = torch.autocast("cpu", torch.float64)
    with mode:
        assert not torch.is_autocast_enabled("cpu")
    monkeypatch.setattr(torch._C, "_cuda_count", lambda: 0)
    with pytest.warns(UserWarning, match="no GPU"), torch.autocast("cuda"):
        assert not torch.is_autocast_enabled()
    assert not torch.amp.GradScaler().is_enabled()


def test_generators_and_reentrance(device):
    mode = on(device)
    kind = torch.device(device).type
    with mode, mode:
        assert torch.is_autocast_enabled(kind)
    assert not torch.is_autocast_enabled(kind)


def test_training_with_a_scaler(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    scaler = torch.amp.GradScaler(torch.device(device).type, init_scale=2.0**30)
    x = torch.randn(32, 4, device=device)
    y = x[:, :1] * 2 - 1
    losses = []
    for _ in range(60):
        with on(device, dtype=torch.float16):
            loss = F.mse_loss(net(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    # The first scale is too large for float16, and so shrinks.
    assert scaler.get_scale() < 2.0**30 and losses[-1] < 0.1 * losses[0]
    assert all(p.isfinite().all() for p in net.parameters())


def test_scaler_on_two_gpus(two_gpus):
    ps = [torch.ones(2, device=d, requires_grad=True) for d in two_gpus]
    optimizer = torch.optim.SGD(ps, 1.0)
    scaler = torch.cuda.amp.GradScaler(init_scale=4.0, growth_interval=1)
    loss = (ps[0] * ps[1].to(two_gpus[0])).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    assert [p.tolist() for p in ps] == [[0, 0], [0, 0]] and scaler.get_scale() == 8
    ps[1].grad = torch.full((2,), float("nan"), device=two_gpus[1])
    scaler.step(optimizer)
    scaler.update()
    assert [p.tolist() for p in ps] == [[0, 0], [0, 0]] and scaler.get_scale() == 4


def test_old_names(gpu):
    x = torch.ones(2, 2, device=gpu)
    with torch.cuda.amp.autocast(dtype=torch.bfloat16):
        assert (x @ x).dtype == torch.bfloat16
    with torch.cuda.amp.autocast(False):
        assert (x @ x).dtype == torch.float32
