"""Losses composed of other functions: gradients, CTC, and targets out of range.

tests/golden/losses.json has PyTorch's numbers.
"""

import inspect
import itertools

import numpy as np
import pytest

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor.autograd import gradcheck, gradgradcheck

F = nn.functional


def rows(device, *shape, seed=1):
    torch.manual_seed(seed)
    return torch.randn(shape, dtype=torch.float64).to(device)


LOSSES = {
    "poisson_nll_loss": lambda x, y, z: F.poisson_nll_loss(x, y.exp(), full=True),
    "gaussian_nll_loss": lambda x, y, z: F.gaussian_nll_loss(x, y, z.exp()),
    "hinge_embedding_loss": lambda x, y, z: F.hinge_embedding_loss(
        x, y.detach().sign()
    ),
    "cosine_embedding_loss": lambda x, y, z: F.cosine_embedding_loss(
        x, y, z.detach()[:, 0].sign(), 0.1
    ),
    "margin_ranking_loss": lambda x, y, z: F.margin_ranking_loss(
        x, y, z.detach().sign(), 0.3
    ),
    "multilabel_soft_margin_loss": lambda x, y, z: F.multilabel_soft_margin_loss(
        x, y.sigmoid()
    ),
    "soft_margin_loss": lambda x, y, z: F.soft_margin_loss(x, y.detach().sign()),
    "triplet_margin_loss": lambda x, y, z: F.triplet_margin_loss(x, y, z, 2.0),
    "swapped triplet": lambda x, y, z: F.triplet_margin_loss(x, y, z, 2.0, swap=True),
    "pairwise_distance": lambda x, y, z: F.pairwise_distance(x, y),
    "cosine_similarity": lambda x, y, z: F.cosine_similarity(x, y),
    "pdist": lambda x, y, z: F.pdist(x),
}


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_of_both_orders(name, device):
    inputs = [rows(device, 3, 4, seed=s).requires_grad_() for s in (1, 2, 3)]
    assert gradcheck(LOSSES[name], inputs)
    assert gradgradcheck(LOSSES[name], inputs)


def test_margins_over_classes(device):
    x = rows(device, 3, 4).requires_grad_()
    target = torch.tensor([1, 3, 0], device=device)
    labels = torch.tensor([[1, 3, -1, 0], [2, -1, 0, 0], [-1, 0, 1, 2]], device=device)
    for p in (1, 2):
        assert gradcheck(lambda x, p=p: F.multi_margin_loss(x, target, p), x)
    assert gradcheck(lambda x: F.multilabel_margin_loss(x, labels), x)


def collapsed(path, blank):
    """A path without repetitions and blanks."""
    return [label for label, _ in itertools.groupby(path) if label != blank]


@pytest.mark.parametrize("target", [[], [1], [2, 2], [1, 2, 1], [2, 1, 1, 2]])
def test_ctc_loss_sums_over_all_paths(target, device):
    steps, classes = 4, 3
    x = rows(device, steps, 1, classes).log_softmax(2)
    total = sum(
        sum(x[t, 0, label] for t, label in enumerate(path)).exp().item()
        for path in itertools.product(range(classes), repeat=steps)
        if collapsed(path, 0) == target
    )
    targets = torch.tensor([target], dtype=torch.int64, device=device)
    loss = F.ctc_loss(x, targets, (steps,), (len(target),), reduction="none")
    assert loss.exp().item() * total == pytest.approx(1) if total else loss.isinf()


def test_derivatives_of_ctc_loss(device):
    x = rows(device, 5, 3, 4).requires_grad_()
    targets = torch.tensor([[1, 2, 2], [3, 1, 1], [2, 1, 3]], device=device)

    def loss(x):
        scores = x.log_softmax(2)
        return F.ctc_loss(scores, targets, (5, 4, 3), (3, 2, 0), reduction="sum")

    assert gradcheck(loss, x)
    assert gradgradcheck(loss, x)


def test_infinite_losses_are_left_out(device):
    x = rows(device, 2, 2, 3).requires_grad_()
    targets = torch.tensor([[1, 1], [1, 2]], device=device)  # the first needs 3 steps
    args = x.log_softmax(2), targets, (2, 2), (2, 2)
    assert F.ctc_loss(*args, reduction="none").isinf().tolist() == [True, False]
    loss = F.ctc_loss(*args, reduction="none", zero_infinity=True)
    assert loss[0] == 0
    loss.sum().backward()
    assert not x.grad[:, 0].any()
    assert x.grad[:, 1].isfinite().all()
    assert x.grad[:, 1].any()


def test_losses_of_empty_batches(device):
    x = torch.ones(0, 3, device=device)
    assert F.soft_margin_loss(x, x, reduction="sum") == 0
    assert F.multi_margin_loss(x, x[:, 0].long(), reduction="none").shape == (0,)
    assert F.pdist(x).shape == (0,)


def test_half_precision(device):
    x, y = rows(device, 2, 3, 4).float()
    for dtype in (torch.float16, torch.bfloat16):
        near = {"rtol": 3e-2, "atol": 3e-2}
        for call in (F.soft_margin_loss, F.cosine_similarity, F.pairwise_distance):
            found = call(x.to(dtype), y.to(dtype).sign())
            assert found.dtype == dtype
            assert torch.allclose(found.float(), call(x, y.sign()), **near)


@pytest.mark.parametrize("count", [1, 31, 32, 2047, 5003])
def test_weighted_mean_of_many_rows(count, device):
    generator = np.random.default_rng(count)
    values = generator.standard_normal((count, 7))
    target = generator.integers(0, 7, count)
    weight = generator.random(7) + 0.5
    rows = np.arange(count)
    logs = values - np.log(np.exp(values).sum(1, keepdims=True))
    expected = -(weight[target] * logs[rows, target]).sum() / weight[target].sum()
    x = torch.from_numpy(values).to(device)
    t, w = torch.from_numpy(target).to(device), torch.from_numpy(weight).to(device)
    assert abs(F.cross_entropy(x, t, w).item() - expected) < 1e-12
    single = F.cross_entropy(x.float(), t, w.float())
    assert abs(single.item() - expected) < 1e-6
    assert torch.equal(single, F.cross_entropy(x.float(), t, w.float()))
    t[: count // 2] = -100
    found = F.nll_loss(x, t, w).item()
    late = target[count // 2 :]
    exact = -(weight[late] * values[rows[count // 2 :], late]).sum()
    assert abs(found - exact / weight[late].sum()) < 1e-12
    assert F.cross_entropy(x, torch.full_like(t, -100)).isnan()


OLD_NAMES = [
    name for name in dir(F) if "size_average" in (getattr(F, name).__doc__ or "")
]


@pytest.mark.parametrize("name", OLD_NAMES)
def test_size_average_and_reduce_choose_the_reduction(name):
    parameters = inspect.signature(getattr(F, name)).parameters
    defaults = {k: p.default for k, p in parameters.items() if p.default != p.empty}
    given = [torch.tensor([[0.5, 0.25], [0.5, 0.75]])] * (
        len(parameters) - len(defaults)
    )
    if name in ("cross_entropy", "nll_loss", "multi_margin_loss"):
        given[1] = torch.tensor([1, 0])
    elif name == "multilabel_margin_loss":
        given[1] = torch.tensor([[0, -1], [1, 0]])
    elif name == "cosine_embedding_loss":
        given[2] = torch.ones(2)
    for average, reduce in itertools.product((None, False, True), repeat=2):
        wanted = "sum" if average is False else "mean"
        wanted = "none" if reduce is False else wanted
        wanted = getattr(F, name)(*given, reduction=wanted)
        old = {"size_average": average, "reduce": reduce}
        assert torch.equal(getattr(F, name)(*given, **old), wanted)
        assert torch.equal(getattr(F, name)(*given, *(defaults | old).values()), wanted)
    each = getattr(F, name)(*given, reduction="none")
    assert torch.equal(getattr(F, name)(*given, reduce=False, reduction="sum"), each)


def test_old_names_are_those_of_many_losses():
    assert len(OLD_NAMES) == 17


def test_linear_cross_entropy_takes_one_type():
    """But for halves that are computed in float32, as in PyTorch."""
    target = torch.tensor([0, 2])

    def loss(x, weight, **options):
        x, weight = torch.ones(2, 3, dtype=x), torch.ones(4, 3, dtype=weight)
        chosen = nn.LinearCrossEntropyOptions(**options)
        return F.linear_cross_entropy(x, weight, target, options=chosen)

    assert loss(torch.float16, torch.float32).dtype == torch.float16
    assert loss(torch.bfloat16, torch.float32, acc_dtype=torch.float32) > 0
    for types, options in {
        (torch.float64, torch.float32): {},
        (torch.bfloat16, torch.float32): {"acc_policy": "compact"},
        (torch.float16, torch.float32): {"acc_dtype": torch.float16},
    }.items():
        with pytest.raises(RuntimeError, match="and linear_weight of"):
            loss(*types, **options)
