"""Softmax, losses and normalization, against NumPy and finite differences."""

import numpy as np
import pytest
from conftest import DEVICES
from hypothesis import given, settings
from hypothesis import strategies as st

import pydevtensor as torch
from pydevtensor.autograd import gradcheck, gradgradcheck

F = torch.nn.functional
TOLERANCE = {"float32": 3e-6, "float64": 1e-14}


def shifted(x, axis):
    return x - x.max(axis, keepdims=True)


def softmax(x, axis):
    e = np.exp(shifted(x, axis))
    return e / e.sum(axis, keepdims=True)


def log_softmax(x, axis):
    s = shifted(x, axis)
    return s - np.log(np.exp(s).sum(axis, keepdims=True))


def logsumexp(x, axis):
    most = x.max(axis, keepdims=True)
    return (np.log(np.exp(x - most).sum(axis, keepdims=True)) + most).squeeze(axis)


REFERENCES = {
    "softmax": softmax,
    "log_softmax": log_softmax,
    "logsumexp": logsumexp,
}


def laid_out(array, layout, where):
    """A tensor equal to array: row-major, columns first, every second one."""
    if layout == "columns":
        return torch.tensor(array.swapaxes(0, -1).copy(), device=where).transpose(0, -1)
    if layout == "steps":
        wide = np.full((*array.shape[:-1], 2 * array.shape[-1]), np.nan, array.dtype)
        wide[..., ::2] = array
        return torch.tensor(wide, device=where)[..., ::2]
    return torch.tensor(array, device=where)


def compare(found, expected, dtype, scale=1.0):
    assert str(found.dtype) == f"torch.{dtype}"
    assert tuple(found.shape) == expected.shape
    np.testing.assert_allclose(
        found.cpu().numpy(),
        expected,
        rtol=TOLERANCE[dtype] * scale,
        atol=TOLERANCE[dtype] * scale,
    )


# --- values


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_shape_dim_layout_and_type(data):
    device = data.draw(st.sampled_from(DEVICES))
    ndim = data.draw(st.integers(1, 4))
    shape = tuple(data.draw(st.integers(1, 9)) for _ in range(ndim))
    axis = data.draw(st.integers(-ndim, ndim - 1))
    dtype = data.draw(st.sampled_from(["float32", "float64"]))
    layout = data.draw(st.sampled_from(["rows", "columns", "steps"]))
    name = data.draw(st.sampled_from(sorted(REFERENCES)))
    seed = data.draw(st.integers(0, 1000))
    array = (np.random.default_rng(seed).standard_normal(shape) * 4).astype(dtype)
    x = laid_out(array, layout, device)
    found = getattr(torch, name)(x, axis)
    assert found.is_contiguous()
    assert found.device == x.device
    compare(found, REFERENCES[name](array.astype("float64"), axis), dtype)


# Lengths round about what kernels take at once: lanes, packs, a warp's and a block's
# registers, spans, tiles.
LENGTHS = [1, 3, 4, 15, 16, 17, 31, 33, 64, 256, 257, 513, 1000, 1024, 1028, 2050]
LONG = [4096, 4099, 9001]


@pytest.mark.parametrize("name", sorted(REFERENCES))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lengths_along_and_across_memory(device, dtype, name):
    for n in LENGTHS + LONG:
        array = np.random.default_rng(n).standard_normal((3, n)).astype(dtype)
        expected = REFERENCES[name](array.astype("float64"), 1)
        run = getattr(torch, name)
        compare(run(torch.tensor(array, device=device), 1), expected, dtype, 3)
        across = torch.tensor(array.T.copy(), device=device)
        compare(run(across, 0), expected.T, dtype, 3)


@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_many_columns(device, name):
    array = np.random.default_rng(1).standard_normal((2, 37, 130)).astype("float32")
    found = getattr(torch, name)(torch.tensor(array, device=device), 1)
    compare(found, REFERENCES[name](array.astype("float64"), 1), "float32")


def test_results_larger_than_the_caches():
    # From some size on results go past the caches: every alignment of a row occurs.
    array = np.random.default_rng(2).standard_normal((9001, 1003)).astype("float32")
    for name in ("softmax", "log_softmax"):
        found = getattr(torch, name)(torch.tensor(array), 1).numpy()
        for row in (0, 1, 2, 4500, 8999, 9000):
            np.testing.assert_allclose(
                found[row],
                REFERENCES[name](array[row].astype("float64"), 0),
                rtol=1e-5,
                atol=1e-6,
            )
        assert np.isfinite(found).all()


def test_the_number_of_threads_changes_nothing():
    x = torch.randn(300, 1000)
    before = torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            found.append((torch.softmax(x, 1), torch.softmax(x, 0)))
        for pair in found[1:]:
            for a, b in zip(found[0], pair, strict=True):
                assert torch.equal(a, b)
    finally:
        torch.set_num_threads(before)


def test_a_row_of_one_bad_value_leaves_the_others(device):
    x = torch.zeros(4, 40, device=device)
    x[1, 7] = float("nan")
    x[2, 39] = float("inf")
    x[3] = -float("inf")
    for y in (torch.softmax(x, 1), torch.softmax(x.t(), 0).t()):
        y = y.cpu().numpy()
        np.testing.assert_allclose(y[0], 1 / 40, rtol=1e-6)
        assert np.isnan(y[1:]).all()
    found = torch.logsumexp(x, 1).tolist()
    assert found[0] == pytest.approx(np.log(40))
    assert np.isnan(found[1])
    assert found[2:] == [float("inf"), -float("inf")]


def test_huge_values(device):
    x = torch.tensor([[1e30, 1e30, -1e30], [-3e38, 3e38, 0], [88, -88, 0]])
    x = x.to(device)
    assert torch.softmax(x, 1).tolist()[:2] == [[0.5, 0.5, 0], [0, 1, 0]]
    assert torch.softmax(x, 1)[2].tolist() == pytest.approx([1, 0, 0])
    # x - max overflows in row 1, to what is also the right answer.
    assert torch.log_softmax(x, 1)[1].tolist() == [-float("inf"), 0, -3e38] or (
        torch.log_softmax(x, 1)[1, 1].item() == 0
    )
    assert torch.logsumexp(x, 1).tolist() == pytest.approx([1e30, 3e38, 88])


def test_without_elements(device):
    for shape, dim in (((0, 3), 1), ((3, 0), 1), ((2, 0, 3), 0), ((0,), 0)):
        x = torch.ones(*shape, device=device, requires_grad=True)
        y = torch.softmax(x, dim)
        assert tuple(y.shape) == shape
        y.sum().backward()
        assert tuple(x.grad.shape) == shape
    assert (
        torch.logsumexp(torch.ones(2, 0, device=device), 1).tolist()
        == [-float("inf")] * 2
    )


@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_dims_that_are_not_there(device, name):
    x = torch.ones(2, 3, device=device)
    for dim in (2, -3, 99):
        with pytest.raises(IndexError, match=name):
            getattr(torch, name)(x, dim)


# --- derivatives


@pytest.mark.parametrize("name", sorted(REFERENCES))
@pytest.mark.parametrize(("shape", "dim"), [((3, 5), 1), ((3, 5), 0), ((2, 4, 3), 1)])
def test_gradients_of_both_orders(device, name, shape, dim):
    x = torch.randn(*shape, dtype=torch.float64, device=device, requires_grad=True)

    def run(v):
        return getattr(torch, name)(v, dim)

    assert gradcheck(run, (x,))
    assert gradgradcheck(run, (x,))
    assert gradcheck(
        lambda v: run(v.transpose(0, 1).contiguous().transpose(0, 1)), (x,)
    )


def test_logsumexp_of_several_dims(device):
    x = torch.randn(2, 3, 4, dtype=torch.float64, device=device, requires_grad=True)
    for dims, keepdim in (((0, 2), False), ((1, 0), True), ((0, 1, 2), False)):

        def run(v, dims=dims, keepdim=keepdim):
            return torch.logsumexp(v, dims, keepdim)

        assert gradcheck(run, (x,))
        assert gradgradcheck(run, (x,))


@pytest.mark.parametrize("n", [7, 600, 3000])
def test_gradients_of_long_rows(device, n):
    generator = np.random.default_rng(n)
    a, g = (generator.standard_normal((3, n)).astype("float32") for _ in range(2))
    y = softmax(a.astype("float64"), 1)
    expected = {
        "softmax": y * (g - (g * y).sum(1, keepdims=True)),
        "log_softmax": g - y * g.sum(1, keepdims=True),
    }
    for name, gradient in expected.items():
        for across in (False, True):
            x = torch.tensor(a.T.copy() if across else a, device=device)
            x.requires_grad_()
            out = getattr(torch, name)(x, 0 if across else 1)
            out.backward(torch.tensor(g.T.copy() if across else g, device=device))
            found = x.grad.cpu().numpy()
            np.testing.assert_allclose(
                found.T if across else found, gradient, rtol=1e-4, atol=1e-5
            )


def test_a_result_written_since_is_noticed(device):
    x = torch.randn(2, 3, device=device, requires_grad=True)
    y = torch.softmax(x, 1)
    y.mul_(2)
    with pytest.raises(
        RuntimeError, match=r"SoftmaxBackward0 .* modified by an inplace"
    ):
        y.sum().backward()


# --- losses over classes


def cross_entropy(x, target, weight, smoothing, ignored):
    """The loss of each row of x, in double."""
    logs = log_softmax(x.astype("float64"), 1)
    n, classes = x.shape
    weight = np.ones(classes) if weight is None else weight.astype("float64")
    losses = np.zeros(n)
    for row, t in enumerate(target):
        if t != ignored:
            losses[row] = -(1 - smoothing) * weight[t] * logs[row, t]
            losses[row] -= smoothing / classes * (weight * logs[row]).sum()
    counted = np.where(
        target == ignored, 0, weight[np.where(target == ignored, 0, target)]
    )
    return losses, counted


@pytest.mark.parametrize(
    ("n", "classes"), [(1, 1), (5, 3), (9, 16), (7, 17), (6, 1000), (3, 5000), (70, 40)]
)
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_cross_entropy_of_many_sizes(device, n, classes, smoothing):
    generator = np.random.default_rng(classes)
    x = (generator.standard_normal((n, classes)) * 3).astype("float32")
    target = generator.integers(0, classes, n)
    target[-1:] = 0
    weight = generator.random(classes).astype("float32") + 0.5
    for w in (None, weight):
        losses, counted = cross_entropy(
            x, target, w, smoothing, target[0] if n > 1 else -1
        )
        expected = {
            "none": losses,
            "sum": losses.sum(),
            "mean": losses.sum() / counted.sum() if counted.sum() else np.nan,
        }
        for reduction, value in expected.items():
            found = F.cross_entropy(
                torch.tensor(x, device=device),
                torch.tensor(target, device=device),
                None if w is None else torch.tensor(w, device=device),
                ignore_index=int(target[0]) if n > 1 else -1,
                reduction=reduction,
                label_smoothing=smoothing,
            )
            np.testing.assert_allclose(found.cpu().numpy(), value, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 2), (3,)])
def test_gradients_of_cross_entropy(device, reduction, smoothing, shape):
    x = torch.randn(*shape, dtype=torch.float64, device=device, requires_grad=True)
    rest = shape[:1] + shape[2:] if len(shape) > 1 else ()
    target = (torch.arange(int(np.prod(rest, dtype=int))) % 3).reshape(rest).to(device)
    weight = torch.rand(3, dtype=torch.float64, device=device) + 0.5
    for w, ignored in ((None, -100), (weight, 1)):

        def run(v, w=w, ignored=ignored):
            return F.cross_entropy(
                v,
                target,
                w,
                ignore_index=ignored,
                reduction=reduction,
                label_smoothing=smoothing,
            )

        def plain(v, w=w, ignored=ignored):
            return F.nll_loss(v, target, w, ignore_index=ignored, reduction=reduction)

        if len(shape) == 1 and ignored == 0 and reduction == "mean":
            continue
        assert gradcheck(run, (x,))
        assert gradgradcheck(run, (x,))
        assert gradcheck(plain, (x,))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 2), (3,)])
def test_gradients_of_cross_entropy_with_shares(device, reduction, shape):
    x = torch.randn(*shape, dtype=torch.float64, device=device, requires_grad=True)
    q = torch.rand(*shape, dtype=torch.float64, device=device, requires_grad=True)
    weight = torch.rand(3, dtype=torch.float64, device=device) + 0.5
    for w, smoothing in ((None, 0.0), (weight, 0.2)):

        def run(v, q, w=w, smoothing=smoothing):
            return F.cross_entropy(
                v, q, w, reduction=reduction, label_smoothing=smoothing
            )

        assert gradcheck(run, (x, q))
        assert gradgradcheck(run, (x, q))


def test_the_gradient_of_a_large_cross_entropy(device):
    generator = np.random.default_rng(3)
    for n, classes in ((40, 10), (12, 1000), (5, 6000)):
        a = generator.standard_normal((n, classes)).astype("float32")
        target = generator.integers(0, classes, n)
        expected = softmax(a.astype("float64"), 1)
        expected[np.arange(n), target] -= 1
        x = torch.tensor(a, device=device, requires_grad=True)
        F.cross_entropy(x, torch.tensor(target, device=device)).backward()
        np.testing.assert_allclose(
            x.grad.cpu().numpy(), expected / n, rtol=1e-4, atol=1e-7
        )


def test_a_class_that_is_not_there_names_the_first_one():
    x = torch.randn(4, 5)
    for loss in (F.cross_entropy, F.nll_loss):
        with pytest.raises(
            IndexError, match=r"target 7 .* 5 classes; give targets from 0 to 4"
        ):
            loss(x, torch.tensor([1, 7, -3, 2]))
        with pytest.raises(IndexError, match="target -3 "):
            loss(x, torch.tensor([1, -100, -3, 9]))


def test_a_gpu_reports_a_class_that_is_not_there_and_works_on(gpu):
    x = torch.randn(4, 5, device=gpu, requires_grad=True)
    target = torch.tensor([1, 7, 0, 2], device=gpu)
    for loss in (F.cross_entropy, F.nll_loss):
        loss(x, target)
        with pytest.raises(
            torch.AcceleratorError, match=f"{loss.__name__}: index 7 .* from 0 to 4"
        ):
            torch.cuda.synchronize(gpu)
    F.cross_entropy(x, target).backward()
    with pytest.raises(torch.AcceleratorError, match="cross_entropy"):
        x.grad.tolist()
    y = x.detach().requires_grad_()
    F.cross_entropy(
        y, target.clamp(0, 4) if hasattr(target, "clamp") else target * 0
    ).backward()
    assert np.isfinite(y.grad.tolist()).all()


def test_ignored_rows_may_hold_anything(device):
    x = torch.tensor(
        [[1.0, 2.0], [float("nan"), 1.0]], device=device, requires_grad=True
    )
    loss = F.cross_entropy(x, torch.tensor([0, -100], device=device))
    loss.backward()
    assert loss.item() == pytest.approx(np.log(1 + np.e))
    assert x.grad[1].tolist() == [0, 0]


# --- normalising layers


def normalized(x, axes, eps=1e-5):
    x = x.astype("float64")
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axes, keepdims=True) + eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_layer_norm_of_many_lengths(device, dtype):
    for n in LENGTHS[1:] + LONG:
        generator = np.random.default_rng(n)
        x, g = (generator.standard_normal((5, n)).astype(dtype) for _ in range(2))
        w, b = (generator.standard_normal(n).astype(dtype) for _ in range(2))
        tensors = [
            torch.tensor(a, device=device, requires_grad=True) for a in (x, w, b)
        ]
        y = F.layer_norm(tensors[0], (n,), *tensors[1:])
        normal = normalized(x, 1)
        compare(y.detach(), normal * w + b, dtype, 10)
        y.backward(torch.tensor(g, device=device))
        part = g.astype("float64") * w
        centred = x.astype("float64") - x.astype("float64").mean(1, keepdims=True)
        rstd = 1 / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
        expected = rstd * (
            part
            - part.mean(1, keepdims=True)
            - normal * (part * normal).mean(1, keepdims=True)
        )
        for found, value in zip(
            tensors, (expected, (g * normal).sum(0), g.sum(0)), strict=True
        ):
            compare(found.grad, value, dtype, 100)


def test_the_gradients_of_parameters_of_many_rows(device):
    x = np.random.default_rng(4).standard_normal((5000, 33)).astype("float32")
    weight = torch.ones(33, device=device, requires_grad=True)
    bias = torch.zeros(33, device=device, requires_grad=True)
    F.layer_norm(
        torch.tensor(x, device=device), (33,), weight, bias
    ).square().sum().backward()
    normal = normalized(x, 1)
    np.testing.assert_allclose(
        weight.grad.cpu().numpy(), (2 * normal**2).sum(0), rtol=1e-5
    )
    np.testing.assert_allclose(
        bias.grad.cpu().numpy(), (2 * normal).sum(0), rtol=1e-4, atol=2e-3
    )


@pytest.mark.parametrize(
    "shape", [(700, 40), (3, 5), (300, 3), (6, 5, 31), (4, 3, 9, 40), (2, 70, 2, 2)]
)
def test_batch_norm_of_many_shapes(device, shape):
    generator = np.random.default_rng(shape[1])
    a = generator.standard_normal(shape).astype("float32") * 2 + 1
    axes = (0, *range(2, len(shape)))
    w, b = (generator.standard_normal(shape[1]).astype("float32") for _ in range(2))
    across = (1, -1, *[1] * (len(shape) - 2))
    x, weight, bias = (
        torch.tensor(v, device=device, requires_grad=True) for v in (a, w, b)
    )
    mean, variance = (
        torch.zeros(shape[1], device=device),
        torch.ones(shape[1], device=device),
    )
    y = F.batch_norm(x, mean, variance, weight, bias, True, 0.25)
    normal = normalized(a, axes)
    compare(y.detach(), normal * w.reshape(across) + b.reshape(across), "float32", 10)
    wide = a.astype("float64")
    compare(mean, wide.mean(axes) / 4, "float32", 10)
    compare(variance, 0.75 + wide.var(axes, ddof=1) / 4, "float32", 10)
    g = generator.standard_normal(shape)
    y.backward(torch.tensor(g.astype("float32"), device=device))
    part = g * w.reshape(across)
    rstd = 1 / np.sqrt(wide.var(axes, keepdims=True) + 1e-5)
    expected = rstd * (
        part
        - part.mean(axes, keepdims=True)
        - normal * (part * normal).mean(axes, keepdims=True)
    )
    compare(x.grad, expected, "float32", 50)
    compare(weight.grad, (g * normal).sum(axes), "float32", 100)
    compare(bias.grad, g.sum(axes), "float32", 100)


@pytest.mark.parametrize("parameters", [0, 1, 2])
def test_gradients_of_layer_norm(device, parameters):
    double = {"dtype": torch.float64, "device": device, "requires_grad": True}
    for shape, rows in (((3, 4), 1), ((2, 3, 2), 2), ((3,), 1)):
        x = torch.randn(*shape, **double)
        own = [torch.randn(*shape[-rows:], **double) for _ in range(parameters)]

        def run(v, *given, shape=shape, rows=rows):
            return F.layer_norm(v, shape[-rows:], *given, eps=0.1)

        assert gradcheck(run, (x, *own))
        assert gradgradcheck(run, (x, *own))


@pytest.mark.parametrize("training", [True, False])
def test_gradients_of_batch_norm(device, training):
    double = {"dtype": torch.float64, "device": device}
    mean, variance = torch.randn(3, **double), torch.rand(3, **double) + 0.5
    for shape in ((4, 3), (2, 3, 2), (2, 3, 2, 2)):
        x = torch.randn(*shape, **double, requires_grad=True)
        own = [torch.randn(3, **double, requires_grad=True) for _ in range(2)]
        for count in (0, 1, 2):

            def run(v, *given):
                kept = (None, None) if training else (mean, variance)
                return F.batch_norm(v, *kept, *given, training=training, eps=0.1)

            def run_with(v, *given, count=count):
                return run(v, *[*given, None, None][:2])

            assert gradcheck(run_with, (x, *own[:count]))
            assert gradgradcheck(run_with, (x, *own[:count]))


def test_running_statistics_are_written_in_place_and_counted(device):
    x = torch.randn(6, 3, device=device)
    mean, variance = torch.zeros(3, device=device), torch.ones(3, device=device)
    version = mean._version
    where = mean.data_ptr()
    F.batch_norm(x, mean, variance, training=True)
    assert mean.data_ptr() == where
    assert mean._version > version
    assert mean.abs().sum().item() > 0


def test_means_far_from_zero_lose_no_digits(device):
    x = torch.randn(50, 200, device=device) + 1000
    y = F.layer_norm(x, (200,))
    assert abs(y.square().mean().item() - 1) < 1e-3
    z = F.batch_norm(x, None, None, training=True)
    assert abs(z.square().mean().item() - 1) < 1e-3
    assert abs(z.mean().item()) < 1e-3


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 0, 3), (2, 1, 2, 3)])
def test_linear_is_a_product_with_the_transposed_weight(shape, device):
    x = torch.randn(*shape, dtype=torch.float64, device=device, requires_grad=True)
    weight = torch.randn(4, 3, dtype=torch.float64, device=device, requires_grad=True)
    bias = torch.randn(4, dtype=torch.float64, device=device, requires_grad=True)
    assert torch.allclose(F.linear(x, weight), x @ weight.T)
    assert torch.allclose(F.linear(x, weight, bias), x @ weight.T + bias)
    assert gradcheck(F.linear, (x, weight, bias))
    out = torch.empty(0, dtype=torch.float64, device=device)
    with torch.no_grad():
        assert F.linear(x, weight, bias, out=out) is out
        assert torch.equal(out, F.linear(x, weight, bias))
    with pytest.raises(RuntimeError, match="its last size has to be 3"):
        F.linear(x.unsqueeze(-1), weight, bias)
    with pytest.raises(RuntimeError, match="weight has 0 dimensions"):
        F.linear(x, weight[0, 0])
