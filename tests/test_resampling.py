"""Padding and interpolation beyond the golden file: sizes, threads, derivatives, hostile calls."""

import pytest

import pydevtensor as torch

F = torch.nn.functional


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_a_large_batch_is_its_images(mode, device):
    x = torch.randn(5, 3, 30, 41, device=device, requires_grad=True)
    whole = F.interpolate(x, (47, 25), mode=mode)
    whole.square().sum().backward()
    for k in range(5):
        one = x.detach()[k : k + 1].clone().requires_grad_()
        part = F.interpolate(one, (47, 25), mode=mode)
        part.square().sum().backward()
        assert torch.allclose(part[0], whole[k])
        assert torch.allclose(one.grad[0], x.grad[k], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: F.pad(x, (1, 2, 0, 1), value=2.0),
        lambda x: F.pad(x, (-1, 2, 2, 1), "reflect"),
        lambda x: F.pad(x, (3, 2, 0, 1), "replicate"),
        lambda x: F.pad(x, (2, 1, 1, -1), "circular"),
        lambda x: F.pad(x, (-3, 1, 1, -3), "reflect"),
        lambda x: F.pad(x, (-3, 2, 2, -4), "replicate"),
        lambda x: F.interpolate(x, (5, 2), mode="nearest"),
        lambda x: F.interpolate(x[0], scale_factor=1.3, mode="nearest"),
        lambda x: F.interpolate(x[None], scale_factor=2.3, mode="nearest-exact"),
        lambda x: F.interpolate(x, (3, 2), mode="bilinear", antialias=True),
        lambda x: F.interpolate(x, (5, 2), mode="bilinear"),
        lambda x: F.interpolate(x, (5, 2), mode="bicubic", align_corners=True),
        lambda x: F.interpolate(x, (2, 3), mode="bicubic", antialias=True),
        lambda x: F.pixel_unshuffle(F.pixel_shuffle(x.repeat(1, 2, 1, 1), 2), 2),
        lambda x: F.grid_sample(
            x, x[:, :, :2].permute(0, 2, 3, 1), align_corners=False
        ),
    ],
)
def test_derivatives(f, device):
    values = torch.arange(24.0, dtype=torch.float64) * 7 % 25 / 31 - 0.4
    x = values.reshape(1, 2, 3, 4).to(device).requires_grad_()
    assert torch.autograd.gradcheck(f, x)
    assert torch.autograd.gradgradcheck(f, x)


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        ((2, 3, 7), (13,)),
        ((2, 3, 5, 7), (10, 14)),
        ((1, 2, 9, 3), (1, 260)),
        ((3, 1, 64, 33), (31, 17)),
        ((2, 1, 40, 50), (3, 2)),  # so many products that each dimension is a launch
        ((1, 2, 3, 5, 4), (6, 5, 9)),
    ],
)
@pytest.mark.parametrize("kind", ["nearest", "linear", "cubic"])
def test_a_gpu_computes_as_the_cpu(shape, sizes, kind, gpu):
    """Two dimensions are summed at once there, and each after the other on the CPU."""
    ways = {1: "", 2: "bi", 3: "tri"}
    mode = "nearest" if kind == "nearest" else ways[len(sizes)] + kind
    if kind == "cubic" and len(sizes) != 2:
        pytest.skip("there is no such mode")
    for dtype in (torch.float32, torch.float64, torch.float16):
        x = torch.arange(torch.Size(shape).numel(), dtype=dtype).reshape(shape) % 11
        there = x.to(gpu).requires_grad_()
        x.requires_grad_()
        near = (
            {"rtol": 2e-3, "atol": 2e-2} if dtype is torch.float16 else {"atol": 1e-5}
        )
        y, found = (F.interpolate(t, sizes, mode=mode) for t in (x, there))
        assert torch.allclose(found.cpu(), y, **near)
        g = torch.linspace(-1, 1, y.numel(), dtype=dtype).reshape(y.shape)
        y.backward(g)
        found.backward(g.to(gpu))
        assert torch.allclose(there.grad.cpu(), x.grad, **near)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_two_dimensions_are_one_launch(dtype, gpu):
    if not torch.cuda.is_simulated():
        pytest.skip("counts what simulated GPUs do")
    x = torch.ones(2, 3, 5, 6, device=gpu, dtype=dtype).requires_grad_()
    g = torch.ones(2, 3, 10, 12, device=gpu, dtype=dtype)
    for mode in ("nearest", "bilinear", "bicubic"):
        before = torch.cuda.sim_counters(gpu)["launches"]
        y = F.interpolate(x, scale_factor=2, mode=mode)
        assert torch.cuda.sim_counters(gpu)["launches"] == before + 1
        if mode != "bicubic":  # whose gradient has many products
            torch.autograd.grad(y, x, g)
            assert torch.cuda.sim_counters(gpu)["launches"] == before + 2


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    ("shape", "sizes", "mode"),
    [
        ((2, 3, 5, 7), (10, 14), "nearest"),
        ((3, 1, 64, 33), (31, 17), "bicubic"),
        ((2, 1, 40, 50), (3, 2), "bilinear"),  # each dimension is a launch
        ((1, 2, 3, 5, 4), (6, 5, 9), "trilinear"),
        ((0, 2, 5, 7), (10, 14), "bilinear"),
    ],
)
@pytest.mark.parametrize("antialias", [False, True])
def test_16_bits_are_rounded_once(shape, sizes, mode, antialias, dtype, device):
    if antialias and (len(sizes) != 2 or mode == "nearest"):
        pytest.skip("there is no such mode")
    x = torch.randn(shape).to(device, dtype).requires_grad_()
    wide = x.detach().float().requires_grad_()
    y, exact = (
        F.interpolate(t, sizes, mode=mode, antialias=antialias) for t in (x, wide)
    )
    assert y.dtype == dtype and torch.equal(y, exact.to(dtype))
    g = torch.randn_like(y)
    y.backward(g)
    exact.backward(g.float())
    assert torch.equal(x.grad, wide.grad.to(dtype))


def test_images_of_bytes_are_rounded(device):
    """After each dimension, the width first."""
    x = torch.tensor([[[[0, 255, 1], [3, 200, 7]]]], dtype=torch.uint8, device=device)
    found = F.interpolate(x, (4, 5), mode="bicubic")
    expected = x.float()
    for sizes in ((2, 5), (4, 5)):
        expected = F.interpolate(expected, sizes, mode="bicubic")
        expected = (expected + 0.5).floor().clamp(0, 255)
    assert found.dtype == torch.uint8
    assert torch.equal(found, expected.byte())


def test_nearest_keeps_infinities_and_nans(device):
    x = torch.tensor([[[1.0, float("inf"), float("nan")]]], device=device)
    found = F.interpolate(x, 6).tolist()[0][0]
    assert found[:4] == [1.0, 1.0, float("inf"), float("inf")]
    assert all(value != value for value in found[4:])


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_samples_at_places_that_are_no_numbers(padding, device):
    x = torch.ones(1, 1, 3, 3, device=device)
    for place in ("nan", "inf", "-inf"):
        grid = torch.full((1, 1, 1, 2), float(place), device=device)
        found = F.grid_sample(x, grid, "nearest", padding, True)
        assert found.shape == (1, 1, 1, 1)
    if device != "cpu":
        torch.cuda.synchronize(device)  # no index was out of range


@pytest.mark.parametrize(
    "args",
    [
        (0, 3, "foo"),
        (0, -1, "nearest"),
        (0, 9, "reflect", 0.0, False, False, 5),
        (0, 9, "reflect"),
        (0, 9, "circular", 0.0, False, False, -1),
        (0, 4, "reflect", 0.0, False, False, -4),
        (0, 2**62, "linear"),
        (0, 3, "nearest", 0.0, False, False, 0, True, 9),
    ],
)
def test_calls_that_make_no_sense(args):
    with pytest.raises((RuntimeError, ValueError, TypeError)):
        torch._C._resample(torch.ones(4), *args)


@pytest.mark.parametrize("scale", [1e-300, 1e300, float("nan"), float("inf"), -1.0])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "cubic"])
@pytest.mark.parametrize("antialias", [False, True])
def test_any_scale_stays_in_the_input(mode, scale, antialias, device):
    x = torch.ones(4, 2, device=device)
    found = torch._C._resample(x, 0, 6, mode, scale, False, antialias)
    assert found.shape == (6, 2)
    back = torch._C._resample(found, 0, 4, mode, scale, False, antialias, 0, True)
    assert back.shape == (4, 2)


def test_the_nearest_sample_has_no_slope(device):
    x = torch.rand(1, 2, 3, 3, device=device)
    grid = torch.tensor([[[[0.3, -2.0], [float("nan"), 0.5]]]], device=device)
    grid.requires_grad_()
    found = F.grid_sample(x, grid, "nearest", align_corners=False)
    found.sum().backward()
    assert torch.equal(grid.grad, torch.zeros_like(grid))
    plain = F.grid_sample(x, grid.detach(), "nearest", align_corners=False)
    assert torch.equal(found.detach(), plain)
