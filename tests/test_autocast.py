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
    torch.manual_seed(0)
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
    *["1 / x", "2.5 / x", "x.__rtruediv__(3)"],
    *["x.square()", "x.logsumexp(0)", "x.dist(x + 1)", "F.softplus(x)"],
    *["torch.cdist(x[None], x[None] + 1)", "x[None].renorm(2, 0, 0.5)"],
    "F.cosine_similarity(x, x + 1, 0)",
    "F.pdist(torch.stack([x, x + 1]))",
    "F.group_norm(x[None], 1, x, x)",
    "F.rms_norm(x, (3,))",
    "F.interpolate(x[None, None], scale_factor=2)",
    "F.interpolate(x[None, None], scale_factor=2, mode='linear')",
    "F.poisson_nll_loss(x, x)",
    "F.hinge_embedding_loss(x, x)",
    "F.cosine_embedding_loss(x, x + 1, x[0])",
    "F.margin_ranking_loss(x, x, x)",
    "F.soft_margin_loss(x, x)",
    "F.triplet_margin_loss(x, x + 1, x)",
    "F.multi_margin_loss(x[None], torch.zeros(1, dtype=torch.int64, device=x.device))",
]


@pytest.mark.parametrize("source", IN_FLOAT)
def test_in_float32_on_a_gpu(source, gpu):
    x = torch.tensor([0.25, 0.5, 0.75], device=gpu)
    wanted = eval(source, {"x": x, "F": F, "torch": torch})
    with on(gpu):
        found = eval(source, {"x": x.half(), "F": F, "torch": torch})
    assert found.dtype == torch.float32
    assert torch.allclose(found, wanted, rtol=1e-5, atol=1e-6)


IN_LOWER = [
    "x[0].mv(x[0, 0])",
    "torch.addmv(x[0, 0], x[0], x[0, 0])",
    "torch.addr(x[0], x[0, 0], x[0, 0])",
    "torch.convolution(x, x, None, [1], [0], [1], False, [0], 1)",
]
IN_LOWER_EVERYWHERE = [
    "F.conv1d(x, x)",
    "F.conv2d(x[None], x[None], padding='same')",
    "F.conv3d(x[None, None], x[None, None], x[0, 0, :1])",
    "F.conv_transpose1d(x, x[0, :, None])",
    "F.conv_transpose2d(x[None], x[None])",
    "F.conv_transpose3d(x[None, None], x[None, None])",
    "F.scaled_dot_product_attention(x, x, x)",
    "F.scaled_dot_product_attention(x, x, x, is_causal=True)",
    "F.prelu(x, x[0, 0, :1])",
    "torch.baddbmm(x, x, x)",
    "torch.addbmm(x[0], x, x)",
    "torch.linalg.vecdot(x, x)",
    "torch.chain_matmul(x[0], x[0])",
]


@pytest.mark.parametrize("lower", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("source", IN_LOWER + IN_LOWER_EVERYWHERE)
def test_in_the_lower_type(source, lower, device):
    if source in IN_LOWER and device == "cpu":
        pytest.skip("computed in the lower type on GPUs only")
    # Multiples of 1/8, so that the operands are the same in all types.
    x = (torch.arange(9.0).reshape(1, 3, 3) / 8).to(device).requires_grad_()
    with torch.device(device):
        torch.manual_seed(0)
        wanted = eval(source, {"x": x, "F": F, "torch": torch})
        (slope,) = torch.autograd.grad(wanted.sum(), x)
        torch.manual_seed(0)
        with on(device, dtype=lower):
            found = eval(source, {"x": x, "F": F, "torch": torch})
    assert found.dtype == lower
    assert torch.allclose(found.float(), wanted, rtol=2e-2, atol=1e-2)
    found.float().sum().backward()
    assert x.grad.dtype == torch.float32
    assert torch.allclose(x.grad, slope, rtol=3e-2, atol=2e-2)


@pytest.mark.parametrize(
    "source",
    [
        "torch.addcdiv(x, y, y)",
        "torch.addcmul(x, y, y)",
        "torch.atan2(x, y)",
        "torch.cross(x, y)",
        "x.dot(y)",
        "x.vdot(y)",
        "torch.tensordot(x, y, 1)",
        "torch.inner(x, y)",
        "x.scatter_add(0, i, y)",
        "x.index_put((i,), y)",
        "torch.cat([x, y])",
        "torch.stack([x, y])",
        "F.grid_sample(x.expand(1, 1, 3, 3), y[:2].expand(1, 1, 1, 2), align_corners=True)",
        "F.bilinear(x, y, y.expand(2, 3, 3))",
    ],
)
def test_two_types_meet_in_float32_on_a_gpu(source, gpu):
    y = torch.tensor([0.25, 0.5, 0.75], device=gpu)
    names = {"y": y, "i": torch.arange(3, device=gpu), "F": F, "torch": torch}
    wanted = eval(source, {"x": y, **names})
    with on(gpu):
        found = eval(source, {"x": y.half(), **names})
    assert found.dtype == torch.float32
    assert torch.allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("lower", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_recurrent_layers(kind, lower, device):
    torch.manual_seed(0)
    net = getattr(nn, kind)(3, 4, num_layers=2, bidirectional=True).to(device)
    x = torch.randn(5, 2, 3, device=device, requires_grad=True)
    wanted, _ = net(x)
    (slope,) = torch.autograd.grad(wanted.sum(), x)
    with on(device, dtype=lower):
        found, state = net(x)
        again, _ = net(x.to(lower), state)  # what was cast comes back
    gates_add = kind == "GRU" and device == "cpu"
    assert found.dtype == (torch.float32 if gates_add else lower)
    assert again.shape == found.shape
    assert torch.allclose(found.float(), wanted, atol=2e-2)
    found.float().sum().backward()
    assert all(p.grad.dtype == torch.float32 for p in (x, *net.parameters()))
    assert torch.allclose(x.grad, slope, rtol=0.1, atol=3e-2)


@pytest.mark.parametrize("kind", ["RNNCell", "LSTMCell", "GRUCell"])
def test_recurrent_cells(kind, device):
    torch.manual_seed(0)
    cell = getattr(nn, kind)(3, 4).to(device)
    x = torch.randn(2, 3, device=device)
    state = cell(x)
    with on(device):
        found = cell(x.to(torch.get_autocast_dtype(torch.device(device).type)), state)
        assert not torch.is_autocast_enabled("cpu") or device == "cpu"
        assert torch.is_autocast_enabled(torch.device(device).type)
    wanted = cell(x, state)
    for a, b in zip(torch.stack([*found]), torch.stack([*wanted]), strict=True):
        assert torch.allclose(a.float(), b, atol=2e-2)
    on_cpu = device == "cpu" and kind != "RNNCell"
    lower = torch.float16 if device != "cpu" else torch.bfloat16
    assert torch.stack([*found]).dtype == (torch.float32 if on_cpu else lower)
    with on(device), pytest.raises(RuntimeError):
        cell(x.double())


def test_errors_in_functions_of_python_leave_it_on(device):
    x = torch.ones(1, 2, 3, device=device)
    with on(device):
        for bad in (
            lambda: torch.baddbmm(x, x, x),
            lambda: F.scaled_dot_product_attention(x, x[..., :1], x),
            lambda: nn.RNN(3, 4, device=device)(x, x),
        ):
            with pytest.raises(RuntimeError):
                bad()
        assert torch.is_autocast_enabled(torch.device(device).type)
        assert (x[0] @ x[0].T).dtype != torch.float32


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
    monkeypatch.setattr(torch._C, "_device_count", lambda name: 0)
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


def test_a_scaler_launches_little_and_waits_once(gpu):
    if not torch.cuda.is_simulated():
        pytest.skip("counts what simulated GPUs do")
    ps = [torch.ones(4, device=gpu, requires_grad=True) for _ in range(200)]
    optimizer = torch.optim.SGD(ps, 0.5)
    scaler = torch.amp.GradScaler(init_scale=4.0)
    launches = lambda: torch.cuda.sim_counters(gpu)["launches"]
    for last in (1.0, float("inf")):
        scaler.scale(torch.ones((), device=gpu))
        for p in ps:
            p.grad = torch.full_like(p, 2.0)
        ps[-1].grad[2] = last
        before = launches()
        with torch.cuda.transfers() as seen:
            scaler.unscale_(optimizer)
        assert launches() - before <= 3 and seen.waits == 0
        with torch.cuda.transfers() as seen:
            scaler.step(optimizer)
            scaler.update()
        assert seen.waits == 1
        assert ps[0].grad.tolist() == [0.5] * 4
        assert ps[0].tolist() == [0.75] * 4  # the second step was left out
    assert scaler.get_scale() == 2.0


def test_old_names(gpu):
    x = torch.ones(2, 2, device=gpu)
    with torch.cuda.amp.autocast(dtype=torch.bfloat16):
        assert (x @ x).dtype == torch.bfloat16
    with torch.cuda.amp.autocast(False):
        assert (x @ x).dtype == torch.float32
