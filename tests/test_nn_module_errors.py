"""What the errors of modules say."""

import copy

import pytest

import pydevtensor as torch
from pydevtensor import nn

F = nn.functional


MISFITS = [
    (
        nn.Linear(3, 4),
        (torch.ones(2, 5),),
        RuntimeError,
        r"Linear\(in_features=3.*\[2, 5\].*be 3",
    ),
    (
        nn.Bilinear(2, 3, 1),
        (torch.ones(4, 2), torch.ones(4, 4)),
        RuntimeError,
        r"bilinear.*\[4, 4\].*be 3",
    ),
    (
        nn.LayerNorm(4),
        (torch.ones(2, 3),),
        RuntimeError,
        r"layer_norm.*\[4\].*\[2, 3\]",
    ),
    (
        nn.BatchNorm1d(3),
        (torch.ones(2, 4),),
        RuntimeError,
        r"BatchNorm1d\(3.*\[2, 4\].*have 3",
    ),
    (
        nn.BatchNorm1d(3),
        (torch.ones(3),),
        ValueError,
        "BatchNorm1d.*2D or 3D input.*1D",
    ),
    (nn.BatchNorm2d(3), (torch.ones(2, 3),), ValueError, "BatchNorm2d.*4D input.*2D"),
    (nn.BatchNorm1d(3), (torch.ones(1, 3),), ValueError, "more than 1 value.*eval"),
    (
        nn.Unflatten(1, (2, 2)),
        (torch.ones(2, 3),),
        RuntimeError,
        r"Unflatten.*\[2, 3\].*\[2, 2\]",
    ),
    (
        nn.CrossEntropyLoss(),
        (torch.ones(2, 3), torch.tensor([1])),
        ValueError,
        r"cross_entropy.*\[2\].*\[1\]",
    ),
    (
        nn.NLLLoss(),
        (torch.ones(2, 3), torch.tensor([1])),
        ValueError,
        r"nll_loss.*\[1\]",
    ),
    (
        nn.BCELoss(),
        (torch.ones(2), torch.ones(3)),
        ValueError,
        r"binary_cross_entropy.*\[3\].*\[2\]",
    ),
    (
        nn.BCEWithLogitsLoss(),
        (torch.ones(2), torch.ones(3)),
        ValueError,
        r"\[3\].*\[2\]",
    ),
    (
        nn.CrossEntropyLoss(torch.ones(2)),
        (torch.ones(2, 3), torch.tensor([1, 2])),
        RuntimeError,
        r"3 classes.*\[2\]",
    ),
]


@pytest.mark.parametrize(
    ("layer", "inputs", "kind", "pattern"),
    MISFITS,
    ids=[f"{type(m[0]).__name__} {[[*x.shape] for x in m[1]]}" for m in MISFITS],
)
def test_misfits_name_layer_and_shapes(layer, inputs, kind, pattern, device):
    layer = copy.deepcopy(layer).to(device)
    with pytest.raises(kind, match=pattern):
        layer(*(x.to(device) for x in inputs))


@pytest.mark.parametrize(
    "name",
    ["Linear", "Bilinear", "LayerNorm", "BatchNorm1d", "Embedding"],
)
def test_layers_name_both_devices(name, gpu):
    sizes = {"Linear": (3, 2), "Bilinear": (3, 3, 2), "Embedding": (4, 2)}
    layer = getattr(nn, name)(*sizes.get(name, (3,)))
    x = torch.ones(2, 3) if name != "Embedding" else torch.tensor([1])
    inputs = (x, x) if name == "Bilinear" else (x,)
    with pytest.raises(RuntimeError, match=rf"{name}\(.*cpu.*{gpu}.*to\('cpu'\)"):
        layer(*(x.to(gpu) for x in inputs))
    layer.to(gpu)
    with pytest.raises(RuntimeError, match=rf"{name}\(.*{gpu}.*cpu"):
        layer(*inputs)
    layer(*(x.to(gpu) for x in inputs))


@pytest.mark.parametrize(
    "name",
    [
        "mse_loss",
        "l1_loss",
        "smooth_l1_loss",
        "huber_loss",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "cross_entropy",
        "nll_loss",
    ],
)
def test_losses_name_both_devices(name, gpu):
    x = torch.full((2, 3), 0.5)
    target = torch.tensor([0, 2]) if name in ("cross_entropy", "nll_loss") else x
    with pytest.raises(RuntimeError, match=rf"(?s){name}.*({gpu}.*cpu|cpu.*{gpu})"):
        getattr(F, name)(x.to(gpu), target)


def test_what_is_no_tensor():
    for layer in (
        nn.Linear(1, 1),
        nn.LayerNorm(1),
        nn.BatchNorm1d(1),
        nn.Bilinear(1, 1, 1),
    ):
        inputs = ([1.0],) * (2 if isinstance(layer, nn.Bilinear) else 1)
        with pytest.raises(TypeError, match="has to be a Tensor, not list"):
            layer(*inputs)


def test_before_the_base_is_ready():
    class Hasty(nn.Module):
        def __init__(self, what):
            self.part = what

    for what in (nn.Parameter(torch.ones(1)), nn.ReLU()):
        with pytest.raises(AttributeError, match=r"super\(\)\.__init__\(\) first"):
            Hasty(what)
    plain = Hasty(3)
    assert plain.part == 3
    for use in (
        lambda: plain.state_dict(),
        lambda: plain(1),
        lambda: [*plain.parameters()],
    ):
        with pytest.raises(AttributeError, match=r"super\(\)\.__init__\(\) first"):
            use()
