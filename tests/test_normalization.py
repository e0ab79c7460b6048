"""Norms of groups and channels, channel dropout, bags of embeddings: gradients, layouts.

tests/golden/layers.json has PyTorch's numbers.
"""

import numpy as np
import pytest

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor.autograd import gradcheck, gradgradcheck

F = nn.functional


def drawn(device, *shape, seed=1):
    torch.manual_seed(seed)
    return torch.randn(shape, dtype=torch.float64).to(device).requires_grad_()


NORMS = {
    "group_norm": lambda x, w, b: F.group_norm(x, 2, w, b),
    "group_norm without parameters": lambda x, w, b: F.group_norm(x, 4),
    "instance_norm": lambda x, w, b: F.instance_norm(x, None, None, w, b),
    "rms_norm": lambda x, w, b: F.rms_norm(x.transpose(1, 2), (4,), w),
    "local_response_norm": lambda x, w, b: F.local_response_norm(x, 3, 0.5),
}


@pytest.mark.parametrize("name", NORMS)
def test_derivatives_of_both_orders(name, device):
    inputs = drawn(device, 2, 4, 3), drawn(device, 4), drawn(device, 4, seed=2)
    assert gradcheck(NORMS[name], inputs)
    assert gradgradcheck(NORMS[name], inputs)


@pytest.mark.parametrize("name", NORMS)
def test_layouts_and_half_precision(name, device):
    x, w, b = (t.detach() for t in (drawn(device, 4, 2, 3), *drawn(device, 2, 4)))
    expected = NORMS[name](x.transpose(0, 1).contiguous(), w, b)
    assert torch.allclose(NORMS[name](x.transpose(0, 1), w, b), expected)
    for dtype in (torch.float16, torch.bfloat16):
        found = NORMS[name](*(t.to(dtype) for t in (x.transpose(0, 1), w, b)))
        assert found.dtype == dtype
        assert torch.allclose(found.double(), expected, rtol=5e-2, atol=5e-2)


def test_groups_have_mean_0_and_variance_1(device):
    x = drawn(device, 3, 6, 5, 2).detach() * 3 + 1
    rows = F.group_norm(x, 2).reshape(6, 30)
    assert torch.allclose(rows.mean(1), rows.new_zeros(6), atol=1e-12)
    assert torch.allclose(rows.var(1, correction=0), rows.new_ones(6), atol=1e-5)


def test_lazy_norms_learn_their_size(device):
    norm = nn.LazyBatchNorm2d(device=device)
    assert norm.has_uninitialized_params()
    with pytest.raises(RuntimeError, match="no shape yet"):
        norm.running_mean.shape  # noqa: B018
    with pytest.raises(ValueError, match="expected 4D input"):
        norm(torch.ones(2, 3, device=device))
    norm(torch.ones(2, 3, 4, 4, device=device))
    assert type(norm) is nn.BatchNorm2d
    assert norm.num_features == 3
    assert [*norm.state_dict()] == [*nn.BatchNorm2d(3).state_dict()]
    assert type(norm.running_var) is torch.Tensor


def test_lazy_norms_load_a_state(device):
    known = nn.BatchNorm1d(3, device=device)
    known(torch.rand(5, 3, device=device))
    lazy = nn.LazyBatchNorm1d(device=device)
    lazy.load_state_dict(known.state_dict())
    x = torch.rand(4, 3, device=device)
    assert torch.equal(lazy.eval()(x), known.eval()(x))
    assert lazy.num_features == 3


def test_a_lazy_norm_of_a_program_keeps_its_class(device):
    class Own(nn.LazyBatchNorm1d):
        pass

    norm = Own(device=device)
    x = torch.rand(4, 3, device=device)
    known = nn.BatchNorm1d(3, device=device)
    assert torch.equal(norm(x), known(x))
    assert type(norm) is Own and norm.num_features == 3


def test_sync_batch_norm_of_one_process(device):
    x = torch.randn(4, 3, 2, device=device)
    norm = nn.BatchNorm1d(3, momentum=None, device=device)
    norm(x + 1)
    net = nn.Sequential(nn.Linear(1, 1), nn.Sequential(norm))
    same = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert same is net and isinstance(net[1][0], nn.SyncBatchNorm)
    assert net[1][0].weight is norm.weight and net[1][0].momentum is None
    assert torch.equal(net[1][0].eval()(x), norm.eval()(x))
    assert torch.equal(net[1][0].train()(x), norm.train()(x))
    assert nn.SyncBatchNorm.convert_sync_batchnorm(norm.eval()).training is False
    with pytest.raises(ValueError, match="expected at least 2D input"):
        nn.SyncBatchNorm(3)(torch.ones(3))
    with pytest.raises(RuntimeError, match="has 2 channels in dimension 1"):
        nn.SyncBatchNorm(3)(torch.ones(1, 2))


@pytest.mark.parametrize("layer", [nn.Dropout1d, nn.Dropout2d, nn.Dropout3d])
def test_whole_channels_are_dropped(layer, device):
    dims = int(layer.__name__[-2])
    torch.manual_seed(0)
    x = torch.ones([50, 20] + [2] * dims, device=device, requires_grad=True)
    y = layer(0.25)(x)
    channels = y.reshape(1000, -1)
    assert torch.equal(channels, channels[:, :1].expand(channels.shape))
    dropped = (channels[:, 0] == 0).float().mean()
    assert 0.15 < dropped < 0.35
    assert torch.allclose(y[y != 0], y.new_full((), 1 / 0.75))
    y.sum().backward()
    assert torch.equal(x.grad, y)


def test_alpha_dropout_keeps_mean_and_variance(device):
    torch.manual_seed(0)
    x = torch.randn(40000, device=device)
    y = nn.AlphaDropout(0.3)(x)
    assert abs(y.mean()) < 0.05
    assert abs(y.std() - 1) < 0.05


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_equal_each_other_and_have_gradients(mode, device):
    table = drawn(device, 6, 3)
    index = torch.tensor([4, 0, 2, 2, 1, 3, 5], device=device)
    offsets = torch.tensor([0, 3, 3, 5], device=device)

    def bagged(table, padding=None):
        return F.embedding_bag(index, table, offsets, mode=mode, padding_idx=padding)

    for padding in (None, 2):
        assert gradcheck(lambda t, p=padding: bagged(t, p), table)
        assert gradgradcheck(lambda t, p=padding: bagged(t, p), table)
    first = F.embedding_bag(index[None, :3], table, mode=mode)
    assert torch.equal(bagged(table)[:1], first)
    assert not bagged(table)[1].any()


def test_the_gradient_of_a_maximum_needs_no_row_of_each_index(gpu):
    table = torch.ones(50, 64, device=gpu, requires_grad=True)
    index = torch.arange(64 * 40, device=gpu).reshape(64, 40) % 50
    result = F.embedding_bag(index, table, mode="max")
    start = torch.cuda.memory_allocated(gpu)
    torch.cuda.reset_peak_memory_stats(gpu)
    result.sum().backward()
    peak = torch.cuda.max_memory_allocated(gpu) - start
    assert peak <= 4 * table.nbytes + 2 * result.nbytes


def test_weights_of_samples_get_gradients(device):
    table, weights = drawn(device, 4, 3), drawn(device, 5, seed=2)
    index = torch.tensor([1, 1, 0, 3, 2], device=device)
    offsets = torch.tensor([0, 2], device=device)

    def bagged(table, weights):
        return F.embedding_bag(
            index, table, offsets, mode="sum", per_sample_weights=weights
        )

    assert gradcheck(bagged, (table, weights))


def test_statistics_of_a_long_batch(device):
    """So many rows that a GPU adds them up in more than 32 parts."""
    x = np.random.default_rng(5).normal(3, 2, (40_000, 3)).astype(np.float32)
    norm = torch.nn.BatchNorm1d(3, momentum=1.0).to(device)
    given = torch.from_numpy(x).to(device).requires_grad_()
    norm(given).square().sum().backward()
    exact = x.astype(np.float64)
    mean, var = norm.running_mean.cpu().numpy(), norm.running_var.cpu().numpy()
    assert np.allclose(mean, exact.mean(0), rtol=1e-6)
    assert np.allclose(var, exact.var(0, ddof=1), rtol=1e-5)
    assert np.allclose(norm.bias.grad.cpu().numpy(), 0, atol=0.1)
    assert np.allclose(norm.weight.grad.cpu().numpy(), 80_000, rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_gradients_of_weights_of_long_batches(dtype, device):
    """Sums over more rows than a thread asks for at a time, across images or not."""
    eps = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 2e-2}[dtype]
    for shape in ((2500, 3), (1300, 40), (60, 3, 7, 7), (70, 2, 5, 6), (9, 2, 17, 19)):
        columns = [d for d in range(len(shape)) if d != 1]
        x = torch.randn(shape, device=device).to(dtype)
        dy = torch.randn(shape, device=device).to(dtype)
        weight, bias = (
            torch.ones(shape[1], device=device, dtype=dtype).requires_grad_()
            for _ in "wb"
        )
        F.batch_norm(x, None, None, weight, bias, training=True).backward(dy)
        wide, given = x.double(), dy.double()
        sums = given.sum(columns), (given * normal(wide, columns)).sum(columns)
        for found, expected in zip((bias.grad, weight.grad), sums, strict=True):
            size = given.abs().sum(columns)
            assert ((found.double() - expected).abs() <= eps * size).all(), shape
        if len(shape) == 2:
            weight.grad = bias.grad = None
            F.layer_norm(x, shape[1:], weight, bias).backward(dy)
            terms = given * normal(wide, [1])
            assert ((bias.grad.double() - sums[0]).abs() <= eps * size).all()
            assert ((weight.grad.double() - terms.sum(0)).abs() <= eps * size).all()


def normal(x, dims):
    return (x - x.mean(dims, True)) / (
        x.var(dims, correction=0, keepdim=True) + 1e-5
    ) ** 0.5


def test_functions_of_the_package_take_parameters_in_their_own_order(device):
    """Those of nn.functional's functions, by position or name."""
    x = torch.randn(2, 4, 3, device=device)
    scale, shift, mean = (torch.rand(4, device=device) for _ in range(3))
    given = {"weight": scale, "bias": shift, "running_mean": mean}
    given |= {"running_var": scale, "use_input_stats": False}
    expected = torch.nn.functional.instance_norm(x, **given)
    found = torch.instance_norm(x, scale, shift, mean, scale, False, 0.1, 1e-5, True)
    assert found.equal(expected)
    assert torch.instance_norm(x, **given, cudnn_enabled=False).equal(expected)
    expected = torch.nn.functional.group_norm(x, 2, scale, shift, 1e-3)
    assert torch.group_norm(x, 2, scale, shift, 1e-3, False).equal(expected)
    with pytest.raises(TypeError, match=r"group_norm\(\)"):
        torch.group_norm(x, 2, scale, shift, 1e-3, False, 1)
    target = x.sigmoid().detach()
    expected = torch.nn.functional.binary_cross_entropy_with_logits(
        x, target, pos_weight=scale[:3]
    )
    found = torch.binary_cross_entropy_with_logits(x, target, None, scale[:3], 1)
    assert found.equal(expected)
