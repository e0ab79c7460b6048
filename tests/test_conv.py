"""Convolutions against sums in NumPy and finite differences, whatever the sizes, the layout and
the device; golden/conv.json has PyTorch's answers.
"""

import itertools

import numpy as np
import pytest
from conftest import DEVICES
from hypothesis import given, settings
from hypothesis import strategies as st

import pydevtensor as torch
from pydevtensor.autograd import gradcheck, gradgradcheck

F = torch.nn.functional
nn = torch.nn


def correlate(x, w, stride, padding, dilation, groups, sizes):
    """x (N, C, ...) and w (out, C / groups, ...), an element of the kernel at a time."""
    n, _, *spatial = x.shape
    out, per_group, *kernel = w.shape
    need = [
        (size - 1) * s + d * (k - 1) + 1
        for size, s, d, k in zip(sizes, stride, dilation, kernel, strict=True)
    ]
    wide = np.zeros(
        (
            n,
            x.shape[1],
            *(max(a, b + p) for a, b, p in zip(need, spatial, padding, strict=True)),
        )
    )
    wide[
        (..., *(slice(p, p + size) for p, size in zip(padding, spatial, strict=True)))
    ] = x
    y = np.zeros((n, out, *sizes))
    for tap in itertools.product(*(range(k) for k in kernel)):
        places = [
            slice(t * d, t * d + s * (size - 1) + 1, s)
            for t, d, s, size in zip(tap, dilation, stride, sizes, strict=True)
        ]
        part = wide[(..., *places)].reshape(n, groups, per_group, *sizes)
        factors = w[(..., *tap)].reshape(groups, out // groups, per_group)
        y += np.einsum("ngc...,goc->ngo...", part, factors).reshape(y.shape)
    return y


def sizes_of(x, w, stride, padding, dilation):
    return [
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, k, s, p, d in zip(
            x[2:], w[2:], stride, padding, dilation, strict=True
        )
    ]


def random(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


@st.composite
def problems(draw):
    """Shapes of input and weight, stride, padding, dilation, groups."""
    n = draw(st.integers(1, 3))
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    inner = draw(st.sampled_from([1, 2, 7, 33])) * groups
    outer = draw(st.sampled_from([1, 3, 8, 19])) * groups
    numbers = lambda low, high: [draw(st.integers(low, high)) for _ in range(n)]
    kernel, stride, padding, dilation = (
        numbers(1, 4),
        numbers(1, 3),
        numbers(0, 2),
        numbers(1, 2),
    )
    spatial = [
        draw(st.sampled_from([1, 4, 9, 20, 37] if n < 3 else [1, 3, 6])) + d * (k - 1)
        for k, d in zip(kernel, dilation, strict=True)
    ]
    x = [draw(st.integers(1, 4)), inner, *spatial]
    return x, [outer, inner // groups, *kernel], stride, padding, dilation, groups


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=25, deadline=None)
@given(problem=problems(), double=st.booleans())
def test_values_and_gradients(problem, double, where):
    shape, weight, stride, padding, dilation, groups = problem
    dtype = torch.float64 if double else torch.float32
    x, w, b = random(1, *shape), random(2, *weight), random(3, weight[0])
    sizes = sizes_of(shape, weight, stride, padding, dilation)
    expected = correlate(x, w, stride, padding, dilation, groups, sizes)
    tx, tw, tb = (
        torch.tensor(a, dtype=dtype, device=where, requires_grad=True)
        for a in (x, w, b)
    )
    numbers = stride, padding, dilation
    conv = [F.conv1d, F.conv2d, F.conv3d][len(stride) - 1]
    y = conv(tx, tw, tb, *numbers, groups)
    close = {"rtol": 1e-10, "atol": 1e-9} if double else {"rtol": 1e-4, "atol": 1e-3}
    bias = b.reshape(-1, *(1 for _ in stride))
    np.testing.assert_allclose(y.detach().cpu().numpy(), expected + bias, **close)
    # A convolution is linear in each: <g, conv(x, w)> is <dx, x> and <dw, w>.
    g = random(4, *expected.shape)
    y.backward(torch.tensor(g, dtype=dtype, device=where))
    total, scale = (
        (g * expected).sum(),
        np.abs(g).sum() * max(1, np.abs(expected).max()),
    )
    limit = scale * (1e-12 if double else 1e-6)
    for t, a in ((tx, x), (tw, w)):
        assert abs((t.grad.cpu().double().numpy() * a).sum() - total) <= limit
    axes = 0, *range(2, g.ndim)
    np.testing.assert_allclose(tb.grad.cpu().numpy(), g.sum(axes), **close)
    # The gradient of one element of the weight, and of the input.
    one = np.zeros_like(w)
    one[-1, -1, ..., 0] = 1
    alone = correlate(x, one, stride, padding, dilation, groups, sizes)
    found = tw.grad[-1, -1, ..., 0].sum().item()
    assert found == pytest.approx((alone * g).sum(), rel=1e-4, abs=scale * 1e-6)
    one = np.zeros_like(x)
    one[-1, -1, ..., 0] = 1
    alone = correlate(one, w, stride, padding, dilation, groups, sizes)
    found = tx.grad[-1, -1, ..., 0].sum().item()
    assert found == pytest.approx((alone * g).sum(), rel=1e-4, abs=scale * 1e-6)


@pytest.mark.parametrize(
    ("shape", "kernel", "numbers"),
    [
        ((2, 3, 9), (7,), {"padding": 5, "dilation": 2}),
        ((2, 3, 17, 9), (3, 3), {"padding": 1}),
        ((1, 2, 18, 7), (3, 5), {"stride": (2, 3), "padding": (0, 2)}),
        ((3, 2, 19, 6), (4, 7), {"dilation": (3, 1), "padding": (4, 3)}),
        ((1, 2, 3, 5, 6), (2, 3, 4), {"padding": 1, "stride": (1, 2, 1)}),
        ((700, 1, 5, 4), (3, 3), {}),  # several parts of the sums
    ],
)
@pytest.mark.parametrize("multiplier", [1, 2])
def test_depthwise(shape, kernel, numbers, multiplier, gpu):
    """Threads have 4 rows of a column and blocks 3 x 3 taps; sizes are not multiples."""
    channels = shape[1]
    convolve = (F.conv1d, F.conv2d, F.conv3d)[len(kernel) - 1]
    shapes = (shape, (channels * multiplier, 1, *kernel), (channels * multiplier,))
    leaves = [torch.tensor(random(k, *s)) for k, s in enumerate(shapes)]
    for dtype in (torch.float32, torch.float64):
        ours, exact = (
            [change(t).requires_grad_() for t in leaves]
            for change in (lambda t, to=dtype: t.to(to).to(gpu), torch.Tensor.clone)
        )
        y, wanted = (
            convolve(*leaf, groups=channels, **numbers) for leaf in (ours, exact)
        )
        g = torch.linspace(-1, 1, y.numel(), dtype=torch.float64).reshape(y.shape)
        y.backward(g.to(dtype).to(gpu))
        wanted.backward(g)
        for found, other in zip(
            [y, *(t.grad for t in ours)],
            [wanted, *(t.grad for t in exact)],
            strict=True,
        ):
            scale = 5e-5 * max(1.0, other.abs().max().item())
            assert torch.allclose(found.cpu().double(), other, rtol=1e-5, atol=scale)


CASES = {
    "1d": (F.conv1d, (2, 4, 6), (4, 2, 3), {"stride": 2, "padding": 1, "groups": 2}),
    "2d": (F.conv2d, (2, 2, 4, 3), (3, 2, 2, 2), {"padding": (1, 0), "dilation": 2}),
    "same": (F.conv2d, (1, 2, 3, 4), (2, 2, 2, 3), {"padding": "same"}),
    "depthwise": (F.conv2d, (1, 3, 4, 4), (3, 1, 3, 3), {"padding": 1, "groups": 3}),
    "3d": (F.conv3d, (1, 2, 3, 2, 3), (2, 2, 2, 1, 2), {"stride": (1, 1, 2)}),
    "up 1d": (F.conv_transpose1d, (2, 2, 3), (2, 3, 3), {"stride": 2, "padding": 1}),
    "up 2d": (
        F.conv_transpose2d,
        (1, 2, 3, 2),
        (2, 2, 3, 2),
        {"stride": (2, 3), "output_padding": (1, 0), "groups": 2},
    ),
    "up 3d": (F.conv_transpose3d, (1, 2, 2, 2, 2), (2, 1, 2, 2, 2), {"dilation": 2}),
}


@pytest.mark.parametrize("name", CASES)
def test_first_and_second_derivatives(name, device):
    function, shape, weight, options = CASES[name]
    bias = weight[1 if "transpose" in function.__name__ else 0]
    bias *= options.get("groups", 1) if "transpose" in function.__name__ else 1
    inputs = [
        torch.tensor(random(i, *s), device=device, requires_grad=True)
        for i, s in enumerate((shape, weight, (bias,)))
    ]
    call = lambda x, w, b: function(x, w, b, **options)
    assert gradcheck(call, inputs)
    if device == "cpu":
        assert gradgradcheck(call, inputs)


@pytest.mark.parametrize(
    "weight, numbers",
    [
        ((4, 3, 1, 1), {"groups": 2}),
        ((4, 3, 1, 1), {"groups": 2, "stride": 2}),
        ((4, 3, 1, 1), {"groups": 2, "padding": 1}),
        ((4, 6, 1, 1), {"stride": 2**31}),  # beyond 32 bits
        ((4, 6, 5, 5), {"padding": 2}),
        ((6, 1, 3, 5), {"groups": 6, "stride": 2, "padding": 1}),
        ((6, 1, 2, 2), {"groups": 6, "dilation": (2, 3)}),
        ((4, 3, 1, 9), {"groups": 2, "dilation": 2, "padding": 4}),
    ],
)
def test_devices_agree(weight, numbers, device):
    """Patches that are the elements themselves, and many taps."""

    def results(of, dtype, where):
        x, w, b = (
            torch.tensor(random(k, *shape), dtype=dtype, device=where)
            for k, shape in enumerate(((3, 6, 8, 19), weight, (weight[0],)))
        )
        if of is F.conv_transpose2d:
            x = x[:, : weight[0]].contiguous()
            b = torch.ones(
                weight[1] * numbers.get("groups", 1), dtype=dtype, device=where
            )
        leaves = [t.requires_grad_() for t in (x, w, b)]
        y = of(*leaves, **numbers)
        return [y, *torch.autograd.grad((y * y).sum(), leaves)]

    for of in (F.conv2d, F.conv_transpose2d):
        if of is F.conv_transpose2d and numbers.get("stride", 1) > 2:
            continue  # its result would have as many elements
        wanted = results(of, torch.float64, "cpu")
        for dtype in (torch.float32, torch.float64):
            for found, right in zip(results(of, dtype, device), wanted, strict=True):
                close = torch.allclose(
                    found.cpu().double(), right, rtol=1e-4, atol=1e-3
                )
                assert close, (of.__name__, dtype)


HALVES = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(
    "of, x, w, numbers",
    [
        (F.conv2d, (2, 5, 7, 7), (4, 5, 3, 3), {"padding": 1}),
        (F.conv2d, (3, 5, 17, 16), (4, 5, 3, 3), {"stride": (1, 2)}),
        (F.conv2d, (2, 8, 5, 5), (6, 8, 1, 1), {}),
        (F.conv2d, (2, 6, 7, 5), (9, 2, 3, 3), {"groups": 3, "padding": 1}),
        (F.conv2d, (2, 3, 7, 9), (6, 1, 3, 3), {"groups": 3, "padding": 2}),
        (F.conv_transpose2d, (2, 4, 7, 7), (4, 3, 3, 3), {"stride": 2}),
        (F.conv_transpose2d, (2, 4, 7, 7), (4, 3, 1, 1), {}),
        (F.conv_transpose2d, (2, 4, 6, 5), (4, 1, 3, 3), {"stride": 2, "groups": 4}),
        (F.conv1d, (2, 300, 9), (4, 300, 3), {}),
    ],
)
def test_half_precision_rounds_once(of, x, w, numbers, dtype, device, monkeypatch):
    """The exact result of these halves, rounded: no sum of products is. cuDNN rounds
    before the bias too, as PyTorch does."""
    monkeypatch.setattr(torch.backends.cudnn, "enabled", False)
    made = w[1] * numbers.get("groups", 1) if of is F.conv_transpose2d else w[0]
    given = [
        torch.tensor(random(k, *shape)).to(dtype)
        for k, shape in enumerate((x, w, (made,)))
    ]
    upstream = torch.tensor(random(5, *of(*given, **numbers).shape)).to(dtype)

    def results(change):
        leaves = [change(t).requires_grad_() for t in given]
        y = of(*leaves, **numbers)
        return [y.detach(), *torch.autograd.grad(y, leaves[:2], change(upstream))]

    for found, exact in zip(
        results(lambda t: t.to(device)), results(torch.Tensor.double), strict=True
    ):
        assert found.dtype == dtype
        check_rounding(found, exact, HALVES[dtype])


def check_rounding(found, exact, unit):
    """The exact numbers rounded by half a unit, and what sums in float32 add to it."""
    off = (found.detach().cpu().double() - exact.detach()).abs()
    size = exact.detach().abs()
    assert bool((off <= 1.01 * unit * size + 2e-6 * size.max()).all())


def _launches(gpu, call):
    before = torch.cuda.sim_counters(gpu)["launches"]
    result = call()
    torch.cuda.synchronize(gpu)
    return result, torch.cuda.sim_counters(gpu)["launches"] - before


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "x, w, numbers, forward, backward",
    [
        # A kernel each; there were 1024 launches, and 2560.
        ((1, 512, 7, 7), (512, 1, 3, 3), {"groups": 512, "padding": 1}, 1, 2),
        # Patches, products and a copy of y: for all groups at once.
        ((2, 64, 7, 7), (64, 2, 3, 3), {"groups": 32, "padding": 1}, 3, 6),
        # Images whose windows are few are one product; of others each is one of its own.
        ((4, 16, 7, 7), (16, 16, 3, 3), {"padding": 1}, 3, 6),
        ((2, 4, 20, 20), (8, 4, 3, 3), {"padding": 1}, 2, 5),
        ((2, 4, 20, 20), (8, 4, 1, 1), {}, 1, 4),
    ],
)
def test_launches(x, w, numbers, forward, backward, dtype, gpu):
    """Halves are not converted, and groups have no launches of their own."""
    if not torch.cuda.is_simulated():
        pytest.skip("counts what simulated GPUs do")
    tx, tw = (
        torch.ones(s, device=gpu, dtype=dtype, requires_grad=True) for s in (x, w)
    )
    y, count = _launches(gpu, lambda: F.conv2d(tx, tw, **numbers))
    assert count == forward
    g = torch.ones_like(y)
    _, count = _launches(gpu, lambda: torch.autograd.grad(y, (tx, tw), g))
    assert count == backward


@pytest.mark.parametrize(
    "dtype", [torch.float32, pytest.param(torch.bfloat16, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    "x, w, groups",
    [
        ((1, 3, 9600), (2, 3, 700), 1),  # some windows, or some channels
        ((1, 6, 6700), (3, 2, 700), 3),  # some groups
        ((3, 2, 6700), (2, 2, 700), 1),  # some images
    ],
)
def test_patches_of_several_chunks(x, w, groups, dtype, gpu, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "enabled", False)
    given = [
        torch.tensor(random(k, *shape)).to(dtype) for k, shape in enumerate((x, w))
    ]

    def results(change):
        leaves = [change(t).requires_grad_() for t in given]
        y = F.conv1d(*leaves, groups=groups)
        g = torch.linspace(-1, 1, y.numel(), dtype=torch.float64).reshape(y.shape)
        return [y, *torch.autograd.grad(y, leaves, change(g.to(dtype)))]

    for found, exact in zip(
        results(lambda t: t.to(gpu)), results(torch.Tensor.double), strict=True
    ):
        check_rounding(found, exact, HALVES.get(dtype, 0))


def conv_with_gradients(x, w, b):
    inputs = [t.detach().requires_grad_() for t in (x, w, b)]
    y = F.conv2d(*inputs, padding=1)
    return [y.detach(), *torch.autograd.grad(y, inputs, torch.ones_like(y))]


def test_any_layout(device):
    x = torch.tensor(random(1, 2, 3, 6, 5), device=device)
    w = torch.tensor(random(2, 4, 3, 3, 2), device=device)
    expected = F.conv2d(x, w)
    last = x.to(memory_format=torch.channels_last)
    assert not last.is_contiguous()
    assert torch.equal(F.conv2d(last, w), expected)
    assert torch.equal(
        F.conv2d(x, w.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)), expected
    )
    wide = torch.zeros(2, 3, 6, 10, dtype=x.dtype, device=device)
    wide[..., ::2] = x
    assert torch.equal(F.conv2d(wide[..., ::2], w), expected)
    single = torch.tensor(random(1, 1, 1, 6, 5), device=device).expand(2, 3, 6, 5)
    assert torch.equal(F.conv2d(single, w), F.conv2d(single.contiguous(), w))


def test_a_window_that_reaches_beyond_32_bits_is_refused(gpu):
    x, w = torch.ones(1, 1, 4, device=gpu), torch.ones(1, 1, 3, device=gpu)
    with pytest.raises(RuntimeError, match="on the CPU, or in parts"):
        F.conv1d(x, w, padding=2**31, stride=2**31)


def test_empty_batches_and_channels(device):
    w = torch.ones(4, 3, 2, 2, device=device, requires_grad=True)
    x = torch.ones(0, 3, 5, 5, device=device, requires_grad=True)
    y = F.conv2d(x, w, torch.ones(4, device=device))
    assert y.shape == (0, 4, 4, 4)
    y.sum().backward()
    assert x.grad.shape == x.shape
    assert torch.equal(w.grad, torch.zeros_like(w))
    none = F.conv2d(
        x.new_zeros(2, 0, 5, 5),
        w.new_zeros(4, 0, 2, 2),
        torch.arange(4.0, device=device),
    )
    assert none[1, :, 3, 3].tolist() == [0, 1, 2, 3]
    assert F.conv_transpose2d(x.new_zeros(0, 4, 5, 5), w).shape == (0, 3, 6, 6)


def test_integers_are_exact(device):
    x = torch.arange(50, device=device).reshape(1, 2, 5, 5)
    w = torch.arange(18, device=device).reshape(1, 2, 3, 3)
    y = F.conv2d(x, w)
    assert y.dtype == torch.int64
    assert torch.equal(y, F.conv2d(x.double(), w.double()).long())


def test_results_do_not_depend_on_threads():
    x, w = torch.randn(9, 20, 17, 18), torch.randn(24, 20, 3, 3)
    threads, found = torch.get_num_threads(), []
    try:
        for count in (1, 2, 5):
            torch.set_num_threads(count)
            found.append(conv_with_gradients(x, w, torch.zeros(24)))
    finally:
        torch.set_num_threads(threads)
    for others in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], others, strict=True))


# Kernels of 3 x 3 go through Winograd's transforms on the CPU: sizes that cells of 2 x 2
# fill and do not, each padding, few lines of cells and long ones, parts of a batch.
@pytest.mark.parametrize(
    ("batch", "channels", "rows", "size", "padding"),
    [
        *[(6, 37, 25, (7, 9), padding) for padding in (0, 1, 2)],
        (2, 128, 131, (23, 24), 1),
        (75, 16, 16, (2, 1), 1),
        (25, 256, 259, (4, 3), 0),
        (1, 40, 33, (3, 127), (0, 1)),
        (1, 40, 33, (3, 129), (0, 1)),
        (9, 64, 64, (16, 16), (2, 0)),
        (3, 65, 70, (33, 32), 1),
    ],
)
@pytest.mark.parametrize("biased", [False, True])
def test_transformed_kernels(batch, channels, rows, size, padding, biased):
    torch.manual_seed(1)
    x = torch.randn(batch, channels, *size)
    w = torch.randn(rows, channels, 3, 3)
    b = torch.randn(rows) if biased else None
    found, expected = [], []
    for results, wide in ((found, False), (expected, True)):
        own, weight = (
            (t.double() if wide else t).detach().requires_grad_() for t in (x, w)
        )
        y = F.conv2d(own, weight, b.double() if wide and biased else b, padding=padding)
        grads = torch.autograd.grad(y, [own, weight], y.detach())
        results += [y.detach(), *grads]
    for y, exact in zip(found, expected, strict=True):
        assert (y.double() - exact).abs().max() <= 2e-6 * exact.abs().max()


def test_few_cells_and_many_agree():
    x, w = torch.randn(4, 256, 8, 8), torch.randn(256, 256, 3, 3)
    whole = F.conv2d(x, w, padding=1)
    alone = F.conv2d(x[:1], w, padding=1)  # too few cells to be transformed
    torch.testing.assert_close(alone, whole[:1], rtol=1e-4, atol=2e-4)
    turned = F.conv_transpose2d(x, w, padding=1)
    flipped = F.conv2d(x, w.flip(2, 3).transpose(0, 1), padding=1)
    torch.testing.assert_close(turned, flipped, rtol=1e-4, atol=2e-4)


# Patches of few rows are read where they lie; so are those of the gradient of the weights.
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows", [1, 2, 4, 6, 8, 9, 13])
@pytest.mark.parametrize(("groups", "channels"), [(1, 1), (1, 5), (3, 1), (2, 3)])
def test_few_rows(rows, groups, channels, dtype):
    x = random(1, 3, groups * channels, 23, 18)
    w = random(2, groups * rows, channels, 5, 3)
    y = correlate(x, w, [1, 1], [2, 1], [1, 1], groups, [23, 18])
    g = random(3, *y.shape)
    tx, tw = (torch.tensor(a, dtype=dtype, requires_grad=True) for a in (x, w))
    ty = F.conv2d(tx, tw, padding=(2, 1), groups=groups)
    ty.backward(torch.tensor(g, dtype=dtype))
    wide = np.pad(x, [(0, 0), (0, 0), (2, 2), (1, 1)])
    patches = np.lib.stride_tricks.sliding_window_view(wide, (23, 18), axis=(2, 3))
    patches = patches.reshape(3, groups, channels, 5, 3, 23, 18)
    parts = g.reshape(3, groups, rows, 23, 18)
    dw = np.einsum("ngcabyx,ngoyx->gocab", patches, parts).reshape(w.shape)
    close = 1e-12 if dtype == torch.float64 else 2e-6
    for found, exact in ((ty.detach(), y), (tw.grad, dw)):
        assert np.abs(found.numpy() - exact).max() <= close * np.abs(exact).max()


def test_fold_is_the_reverse_of_unfold(device):
    x = torch.tensor(random(1, 2, 3, 7, 6), device=device, requires_grad=True)
    numbers = {"kernel_size": (3, 2), "dilation": (1, 2), "padding": 1, "stride": 2}
    columns = F.unfold(x, **numbers)
    g = torch.tensor(random(2, *columns.shape), device=device)
    (found,) = torch.autograd.grad(columns, x, g)
    assert torch.allclose(found, F.fold(g, (7, 6), **numbers))
    assert gradcheck(lambda t: F.fold(t, (7, 6), **numbers), (g.requires_grad_(),))
    # A convolution is a product with the columns.
    w = torch.tensor(random(3, 4, 3, 3, 2), device=device)
    product = (w.flatten(1) @ columns).reshape(2, 4, 4, 3)
    options = {"dilation": (1, 2), "padding": 1, "stride": 2}
    assert torch.allclose(F.conv2d(x, w, **options), product)


def test_messages_name_what_was_given_and_expected():
    x, w = torch.ones(2, 4, 5, 5), torch.ones(6, 4, 3, 3)
    for call, words in [
        (
            lambda: F.conv2d(x, w[:, :3]),
            ["conv2d", "[2, 4, 5, 5]", "has 4 channels", "have 3"],
        ),
        (
            lambda: F.conv2d(x, w, groups=4),
            ["groups=4", "[6, 4, 3, 3]", "multiple of 4"],
        ),
        (
            lambda: F.conv2d(x, w, torch.ones(5)),
            ["bias has shape [5]", "have 6 elements"],
        ),
        (
            lambda: F.conv2d(x, w.double()),
            ["input holds", "float32", "weight", "float64"],
        ),
        (lambda: F.conv2d(x, w, dilation=3), ["kernel covers 7", "size 5", "has 5"]),
        (lambda: F.conv2d(x, w, padding="same", stride=2), ["'same'", "stride is 2"]),
        (lambda: F.conv2d(x, w, padding="x"), ["'x'", "'same' or 'valid'"]),
        (
            lambda: F.conv2d(x, w, stride=(1, 2, 3)),
            ["stride has 3 numbers", "one, or 2"],
        ),
        (lambda: F.conv2d(x, w, stride=0), ["stride is 0", "1 or more"]),
        (lambda: F.conv2d(x[0, 0], w), ["[5, 5]", "3 dimensions, or 4"]),
        (lambda: F.conv_transpose2d(x, w), ["has 4 channels", "have 6"]),
        (
            lambda: F.conv_transpose2d(x, w[:4], stride=2, output_padding=2),
            ["output_padding is 2", "stride, 2"],
        ),
        (lambda: nn.Conv2d(3, 4, 3)(x), ["Conv2d(3, 4", "has 4 channels", "have 3"]),
    ]:
        with pytest.raises(RuntimeError) as error:
            call()
        for word in words:
            assert word in str(error.value)
    huge = 2**62
    with pytest.raises(RuntimeError, match="too large"):
        F.conv2d(x, w, padding=huge)
    with pytest.raises(RuntimeError, match="too large"):
        F.conv_transpose2d(x, w[:4], stride=huge)


def test_a_small_network_learns(device):
    torch.manual_seed(1)
    net = nn.Sequential(
        nn.LazyConv2d(4, kernel_size=3, padding=1, stride=2),
        nn.ReLU(),
        nn.Conv2d(4, 8, kernel_size=3, stride=2),
        nn.Flatten(),
        nn.LazyLinear(2),
    ).to(device)
    x = torch.randn(16, 1, 8, 8, device=device)
    y = (x[:, 0, :, :4].sum((1, 2)) > x[:, 0, :, 4:].sum((1, 2))).long()
    net(x)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.2)
    losses = []
    for _ in range(40):
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
