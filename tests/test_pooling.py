"""Pooling against a slow computation of each window, and what the golden file cannot hold."""

import itertools
import math

import numpy as np
import pytest

import pydevtensor as torch

F = torch.nn.functional


def windows(size, kernel, stride, padding, dilation, ceil_mode):
    """The places of each window's elements in one dimension, padding included."""
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    count = -(-room // stride) + 1 if ceil_mode else room // stride + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    taps = np.arange(kernel) * dilation - padding
    return [taps + o * stride for o in range(count)]


def slow(x, kernel, stride, padding, dilation, ceil_mode, reduce):
    """reduce(elements, their places, those of the window) for each window of each plane."""
    spans = [
        windows(
            x.shape[d + 1], kernel[d], stride[d], padding[d], dilation[d], ceil_mode
        )
        for d in range(len(kernel))
    ]
    strides = [math.prod(x.shape[d + 2 :]) for d in range(len(kernel))]
    results = []
    for plane in x:
        for window in itertools.product(*spans):
            held = [
                taps[(taps >= 0) & (taps < size)]
                for taps, size in zip(window, plane.shape, strict=True)
            ]
            places = sum(
                part.reshape([-1 if k == d else 1 for k in range(len(held))])
                * strides[d]
                for d, part in enumerate(held)
            ).reshape(-1)
            within = math.prod(
                int((taps < size + pad).sum())
                for taps, size, pad in zip(window, plane.shape, padding, strict=True)
            )
            results.append(reduce(plane.reshape(-1)[places], places, within))
    return np.array(results).reshape(len(x), *map(len, spans))


CASES = [
    # size, kernel, stride, padding, dilation, ceil_mode
    ((37,), (2,), (2,), (0,), (1,), False),
    ((40,), (3,), (2,), (1,), (1,), True),
    ((5, 33), (3, 3), (2, 2), (1, 1), (1, 1), False),
    ((6, 30), (2, 3), (1, 1), (1, 1), (1, 2), True),
    ((4, 50), (2, 3), (2, 3), (0, 1), (2, 1), False),
    ((3, 4, 21), (2, 2, 2), (1, 2, 2), (1, 0, 1), (1, 1, 1), True),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "dilation", "ceil_mode"), CASES
)
def test_every_window(
    size, kernel, stride, padding, dilation, ceil_mode, dtype, device
):
    x = np.random.default_rng(1).integers(-9, 9, (3, *size)).astype(dtype)
    given = torch.tensor(x, device=device)
    ndim = len(size)
    pool = getattr(F, f"max_pool{ndim}d_with_indices")
    maxima, places = pool(given, kernel, stride, padding, dilation, ceil_mode)
    geometry = (x, kernel, stride, padding, dilation, ceil_mode)
    assert np.array_equal(maxima.cpu(), slow(*geometry, lambda v, at, n: v.max()))
    assert np.array_equal(
        places.cpu(), slow(*geometry, lambda v, at, n: at[v.argmax()])
    )
    without = getattr(F, f"max_pool{ndim}d")(
        given, kernel, stride, padding, dilation, ceil_mode
    )
    assert torch.equal(without, maxima)
    if max(dilation) > 1:
        return
    pool = getattr(F, f"avg_pool{ndim}d")
    for counted in (True, False):
        found = pool(given, kernel, stride, padding, ceil_mode, counted)

        def mean(v, at, n, counted=counted):
            total = v.sum() / (n if counted else len(v))
            return math.trunc(total) if dtype == "int64" else total

        expected = slow(*geometry, mean)
        assert np.allclose(found.cpu(), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("indices", [False, True])
def test_large_pooling_by_several_threads(indices):
    x = torch.randn(6, 5, 64, 48)
    every = F.max_pool2d(x, 3, 2, 1, return_indices=indices)
    single = [F.max_pool2d(plane, 3, 2, 1, return_indices=indices) for plane in x]
    if not indices:
        assert torch.equal(every, torch.stack(single))
        return
    for k in (0, 1):
        assert torch.equal(every[k], torch.stack([each[k] for each in single]))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
@pytest.mark.parametrize(
    "window",
    [
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": 3, "stride": 1, "padding": 1, "dilation": 2},
        {"kernel_size": 3, "stride": 4, "ceil_mode": True},
        {"output_size": 4},
    ],
)
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_gradients_of_maxima_come_by_their_indices(ndim, window, dtype, device):
    kind = "adaptive_max_pool" if "output_size" in window else "max_pool"
    pool = getattr(F, f"{kind}{ndim}d")
    shape = (2, 3, *(11, 9, 8)[:ndim])
    x = torch.randn(shape).to(device, dtype).requires_grad_()
    y, index = pool(x, **window, return_indices=True)
    given = torch.randint(-8, 9, y.shape).to(device, dtype)  # sums are exact
    (found,) = torch.autograd.grad(y, x, given)
    expected = torch.zeros(2, 3, x[0, 0].numel(), dtype=dtype)
    expected.scatter_add_(2, index.cpu().flatten(2), given.cpu().flatten(2))
    assert torch.equal(found.cpu(), expected.reshape(shape))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "pool",
    [
        lambda x: F.max_pool1d(x.flatten(2), 3, 2, 1),
        lambda x: F.max_pool2d(x, 3, 1, 1, ceil_mode=True),
        lambda x: F.avg_pool2d(x, 3, 2, 1),
        lambda x: F.avg_pool3d(x, 2, divisor_override=7),
        lambda x: F.adaptive_avg_pool2d(x, (3, 5)),
        lambda x: F.adaptive_max_pool2d(x, (3, 5)),
    ],
)
def test_16_bits_are_rounded_once_and_not_converted(pool, dtype, gpu):
    x = torch.randn(2, 3, 9, 8).to(gpu, dtype).requires_grad_()
    wide = x.detach().float().requires_grad_()

    def launches(work):
        if not torch.cuda.is_simulated():
            return work(), 1
        before = torch.cuda.sim_counters(gpu)["launches"]
        return work(), torch.cuda.sim_counters(gpu)["launches"] - before

    y, forward = launches(lambda: pool(x))
    assert y.dtype == dtype and torch.equal(y, pool(wide).to(dtype))
    g = torch.randn_like(y)
    _, backward = launches(lambda: y.backward(g))
    pool(wide).backward(g.float())
    assert torch.equal(x.grad, wide.grad.to(dtype))
    assert forward == backward == 1


def test_indices_that_were_overwritten():
    x = torch.randn(1, 4, 4, requires_grad=True)
    y, index = F.max_pool2d(x, 2, return_indices=True)
    index.numpy()[...] = [[[2**40, -1], [16, 3]]]
    y.sum().backward()
    assert x.grad.sum() == x.grad[0, 0, 3] == 1


@pytest.mark.parametrize(
    "pool",
    [
        lambda x: F.max_pool2d(x, 3, 2, 1),
        lambda x: F.avg_pool2d(x, 3, 2, 1),
        lambda x: F.adaptive_avg_pool2d(x, 7),
    ],
)
def test_gradients_of_a_large_batch_are_those_of_its_images(pool, device):
    x = torch.randn(4, 3, 40, 36, device=device, requires_grad=True)
    pool(x).square().sum().backward()
    for k in range(4):
        one = x.detach()[k].clone().requires_grad_()
        pool(one).square().sum().backward()
        assert torch.allclose(one.grad, x.grad[k])


def test_numbers_beyond_32_bits(device):
    """Kernels compute with integers of 32 bits where these are enough."""
    x = torch.randn(2, 3, 9, 7, device=device).requires_grad_()
    y = F.avg_pool2d(x, 3, 1, 1)
    for large in (2**31, -(2**31), 2**32 + 1):
        part = F.avg_pool2d(x, 3, 1, 1, divisor_override=large)
        assert torch.allclose(part * large, y * 9)
        (gradient,) = torch.autograd.grad((part * large).sum(), x)
        (wanted,) = torch.autograd.grad((y * 9).sum(), x, retain_graph=True)
        assert torch.allclose(gradient, wanted)
        apart = F.avg_pool2d(x, 3, abs(large), 1)
        assert torch.equal(apart, y[..., :1, :1])
        assert torch.equal(
            F.max_pool2d(x, 3, abs(large)), x[..., :3, :3].amax((2, 3), True)
        )


@pytest.mark.parametrize(
    "f",
    [
        lambda x: F.max_pool2d(x, 2, 1),
        lambda x: F.max_pool1d(x[0], 3, 2, 1),
        lambda x: F.avg_pool2d(x, 2, 1, 1, count_include_pad=False),
        lambda x: F.avg_pool3d(x, 2, 1),
        lambda x: F.adaptive_avg_pool2d(x, (2, 3)),
        lambda x: F.adaptive_max_pool2d(x, 2),
        lambda x: F.lp_pool2d(x, 3, 2),
    ],
)
def test_derivatives(f, device):
    values = torch.arange(24.0, dtype=torch.float64) * 7 % 25 / 5 + 1
    x = values.reshape(1, 2, 3, 4).to(device).transpose(2, 3).requires_grad_()
    assert torch.autograd.gradcheck(f, x)
    assert torch.autograd.gradgradcheck(f, x)


def test_products_of_sizes_beyond_32_bits(device):
    """Where adaptive windows begin and end is a product of sizes by a size."""
    size, count = 70001, 40003
    x = torch.arange(size, dtype=torch.float64, device=device).reshape(1, 1, size)
    starts = np.arange(count) * size // count
    ends = -(-np.arange(1, count + 1) * size // count)
    found = F.adaptive_max_pool1d(x, count).cpu().numpy()
    np.testing.assert_array_equal(found[0, 0], ends - 1)
    x.requires_grad_()
    y = F.adaptive_avg_pool1d(x, count)
    np.testing.assert_allclose(
        y.detach().cpu().numpy()[0, 0], (starts + ends - 1) / 2, rtol=1e-15
    )
    y.sum().backward()
    wanted = np.zeros(size)
    for k in range(max(ends - starts)):
        inside = starts + k < ends
        np.add.at(wanted, starts[inside] + k, 1 / (ends - starts)[inside])
    np.testing.assert_allclose(x.grad.cpu().numpy()[0, 0], wanted, rtol=1e-15)


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_power_pooling_with_infinite_powers(ndim, device):
    """The limits of the norms: the largest and the least absolute value."""
    x = torch.randn(2, *[5] * ndim, device=device)
    pool = getattr(F, f"lp_pool{ndim}d")
    most = getattr(F, f"max_pool{ndim}d")
    for options in ({}, {"stride": 1}, {"ceil_mode": True}):
        high = pool(x, math.inf, 2, **options)
        assert torch.equal(high, most(x.abs(), 2, **options))
        low = pool(x, -math.inf, 2, **options)
        assert torch.equal(low, -most(-x.abs(), 2, **options))
    layer = getattr(torch.nn, f"LPPool{ndim}d")(math.inf, 2)
    assert torch.equal(layer(x), most(x.abs(), 2))


def test_power_pooling_without_a_power():
    with pytest.raises(ZeroDivisionError):
        F.lp_pool1d(torch.ones(1, 4), 0, 2)


def test_indices_are_given_on_request(device):
    x = torch.randn(1, 2, 4, 4, device=device)
    for pool in (F.max_pool2d, F.adaptive_max_pool2d):
        for each in (x, x.detach().requires_grad_()):  # whose gradient needs them
            assert isinstance(pool(each, 2), torch.Tensor)
            maxima, indices = pool(each, 2, return_indices=True)
            assert torch.equal(maxima, pool(each, 2))
            assert indices.dtype == torch.int64


def test_none_keeps_a_size(device):
    x = torch.randn(2, 5, 6, 7, device=device)
    for pool in (F.adaptive_avg_pool2d, F.adaptive_max_pool2d):
        assert torch.equal(pool(x, (None, 2)), pool(x, (6, 2)))
        assert torch.equal(pool(x, None), x)
        with pytest.raises(TypeError, match=r"output_size is 1\.0 \(float\)"):
            pool(x, 1.0)


def test_unpooling_with_an_index_out_of_range(device):
    x = torch.ones(1, 1, 1, 1, device=device)
    index = torch.full((1, 1, 1, 1), 4, device=device)
    if device == "cpu":
        with pytest.raises(RuntimeError, match=r"index 4 .* size 4"):
            F.max_unpool2d(x, index, 2)
        return
    F.max_unpool2d(x, index, 2)
    with pytest.raises(torch.AcceleratorError, match=r"index 4 .* size 4"):
        torch.cuda.synchronize(device)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: F.max_pool2d(x, 2**62, 1, 2**61, 2),
        lambda x: F.avg_pool2d(x, 2, -2),
        lambda x: F.adaptive_max_pool2d(x, -1),
        lambda x: F.adaptive_avg_pool2d(x, (2, -1)),
        lambda x: F.adaptive_avg_pool2d(x, (2, 2, 2)),
    ],
)
def test_numbers_that_make_no_sense(call):
    with pytest.raises(RuntimeError, match=r"pool2d(\(\))?: \w+ .* \w+"):
        call(torch.ones(1, 1, 4, 4))


def test_the_smallest_integers_survive():
    low = torch.full((1, 2, 2), -(2**63))
    assert F.avg_pool2d(low[:, :1, :1], 1, divisor_override=-1).item() == -(2**63)
    assert F.max_pool2d(low, 2).item() == -(2**63)
