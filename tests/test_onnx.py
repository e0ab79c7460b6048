"""torch.onnx.export() beside onnxruntime, where the two packages are installed."""

import io

import numpy as np
import pytest

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor.nn import functional as F

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


def image(*shape):
    torch.manual_seed(3)
    return torch.randn(*(shape or (2, 4, 6, 8)))


def rows(*shape):
    return image(*(shape or (2, 5, 8)))


def ran(model, *inputs):
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(model.SerializeToString(), options)
    names = [each.name for each in session.get_inputs()]
    given = {n: x.numpy() for n, x in zip(names, flat(inputs), strict=True)}
    return [torch.tensor(each) for each in session.run(None, given)]


def flat(value):
    if isinstance(value, (tuple, list)):
        return [leaf for each in value for leaf in flat(each)]
    return [] if value is None else [value]


def check(model, *inputs):
    """Our results, and those of the runtime for files of three sets of operators."""
    if isinstance(model, nn.Module):
        model.eval()
    with torch.no_grad():
        wanted = flat(model(*inputs))
    for version in (20, 17, 13):
        made = torch.onnx.export(model, inputs, opset_version=version)
        assert made.opset_import[0].version == version
        found = ran(made, *inputs)
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            torch.testing.assert_close(a, b.detach(), rtol=1e-4, atol=1e-5)


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 8, 3, stride=2, padding=1, groups=2)
        self.last = nn.Linear(8, 10)

    def forward(self, x):
        x = F.relu(self.norm(self.first(x)))
        x = x + F.silu(x)
        x = F.adaptive_avg_pool2d(self.second(x), 1)
        return F.log_softmax(self.last(torch.flatten(x, 1)), dim=1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(20, 16), nn.Embedding(9, 16)
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.norm = nn.LayerNorm(16)

    def forward(self, x):
        b, t = x.shape
        h = self.words(x) + self.places(torch.arange(t))
        q, k, v = self.qkv(self.norm(h)).chunk(3, dim=-1)
        q, k, v = (y.view(b, t, 4, 4).transpose(1, 2) for y in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return (h + self.out(y.transpose(1, 2).reshape(b, t, 16))) @ self.words.weight.T


LAYERS = {
    "Linear": (nn.Linear(8, 3), rows()),
    "Bilinear inputs": (lambda x, y: x * y - y / 2, rows(), rows()),
    "Conv1d": (nn.Conv1d(5, 4, 3, padding="same", dilation=2), rows()),
    "Conv2d": (nn.Conv2d(4, 6, (3, 2), stride=(1, 2), padding=1, groups=2), image()),
    "Conv3d": (nn.Conv3d(2, 3, 2), image(1, 2, 4, 4, 4)),
    "ConvTranspose": (nn.ConvTranspose2d(4, 3, 3, 2, 1, output_padding=1), image()),
    "MaxPool": (nn.MaxPool2d(3, 2, padding=1), image()),
    "AvgPool": (nn.AvgPool2d(3, 2, padding=1, count_include_pad=False), image()),
    "AdaptiveAvgPool": (nn.AdaptiveAvgPool2d((3, 2)), image()),
    "AdaptiveMaxPool": (nn.AdaptiveMaxPool2d(1), image()),
    "BatchNorm1d": (nn.BatchNorm1d(5), rows()),
    "torch.batch_norm": (
        lambda x: torch.batch_norm(
            x,
            torch.full((5,), 2.0),
            None,
            torch.ones(5),
            torch.full((5,), 4.0),
            False,
            0.1,
            1e-5,
            False,
        ),
        rows(),
    ),
    "LayerNorm": (nn.LayerNorm((5, 8)), rows()),
    "GroupNorm": (nn.GroupNorm(2, 4), image()),
    "InstanceNorm": (nn.InstanceNorm2d(4, affine=True), image()),
    "InstanceNorm tracked": (nn.InstanceNorm2d(4, track_running_stats=True), image()),
    "RMSNorm": (nn.RMSNorm(8), rows()),
    "GLU": (nn.GLU(1), image()),
    "PReLU": (nn.PReLU(4), image()),
    "Upsample": (nn.Upsample(scale_factor=2), image()),
    "Upsample bilinear": (nn.Upsample((9, 4), mode="bilinear"), image()),
    "Upsample corners": (
        nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
        image(),
    ),
    "PixelShuffle": (nn.PixelShuffle(2), image()),
    "ZeroPad": (nn.ZeroPad2d((1, 2, 0, 3)), image()),
    "ReflectionPad": (nn.ReflectionPad2d(2), image()),
    "Embedding": (nn.Embedding(9, 4), torch.tensor([[1, 8, 0]])),
    "LSTM": (nn.LSTM(8, 6, 2, bidirectional=True, batch_first=True), rows()),
    "LSTM of a state": (nn.LSTM(8, 6), rows(), (rows(1, 5, 6), rows(1, 5, 6))),
    "GRU": (nn.GRU(8, 6, 2, bias=False), rows()),
    "RNN": (nn.RNN(8, 6, nonlinearity="relu"), rows(), rows(1, 5, 6)),
    "MultiheadAttention": (nn.MultiheadAttention(8, 2), rows(), rows(), rows()),
    "Encoder": (
        nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, nn.LayerNorm(8)
        ),
        rows(),
    ),
    "EncoderLayer": (nn.TransformerEncoderLayer(8, 2, 9, norm_first=True), rows()),
    "Decoder": (
        nn.TransformerDecoder(
            nn.TransformerDecoderLayer(8, 2, 16, activation="gelu"), 2
        ),
        rows(),
        rows(3, 5, 8),
    ),
    "Convolutions": (Convolutions(), image(2, 3, 8, 8)),
    "Attention": (Attention(), torch.tensor([[1, 5, 3, 19], [2, 2, 0, 7]])),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    model, *inputs = LAYERS[name]
    check(model, *inputs)


FUNCTIONS = {
    "of elements": lambda x: torch.stack(
        [x.sigmoid(), torch.tanh(x), x.abs().sqrt(), F.gelu(x), F.silu(x), F.mish(x)]
        + [F.elu(x), F.selu(x), F.softplus(x), F.hardswish(x), F.relu6(x), x.sin()]
        + [F.leaky_relu(x, 0.2), F.hardsigmoid(x), x.clamp(min=-0.5), x.clamp(-1, 1)]
        + [F.gelu(x, approximate="tanh"), x.square().rsqrt(), -x, 1 - x, 2 / (x + 9)]
    ),
    "compared": lambda x: torch.where(x > 0, x, torch.zeros_like(x)) + (x != x).float(),
    "reduced": lambda x: (x.sum(-1), x.mean((0, 2)), x.amax(1, keepdim=True), x.sum()),
    "reduced by names of NumPy": lambda x: (
        x.sum(axis=1, keepdims=True),
        x.argmax(axis=1),
        torch.softmax(x, axis=1),
    ),
    "positions": lambda x: (x.argmax(-1), x.argmin(), x.topk(2, -1)),
    "extremes": lambda x: (
        x.max(),
        torch.max(x, x.mT.reshape(2, 5, 8)),
        torch.min(x, other=torch.zeros(8)),
        torch.max(x, 1),
        x.min(dim=-1, keepdim=True).values,
        torch.max(x, dim=0).indices,
    ),
    "sorted": lambda x: (
        torch.topk(x, k=3, dim=1, largest=False, sorted=True).values,
        x.topk(2, dim=0)[1],
        x.sort(1, descending=True),
        torch.sort(x).indices,
    ),
    "gates": lambda x: F.glu(x),
    "shaped": lambda x: (
        x.permute(2, 0, 1).unsqueeze(1).squeeze(1),
        x.transpose(1, 2).reshape(2, -1),
        x.mT.flatten(1).unflatten(1, (4, 10)),
        torch.cat([x, x.double().float()], dim=1).view(20, 8),
        x.expand(3, 2, 5, 8).contiguous(),
        x.repeat(2, 1, 1),
    ),
    "indexed": lambda x: (x[:, 0], x[..., 1:7:2], x[1, None, -1], x[:, :, -3:]),
    "divided": lambda x: (
        x.split([2, 3], dim=1)[1],
        x.chunk(4, -1)[2],
        x.unbind(0)[1],
        x.split(3, 1)[0],
    ),
    "products": lambda x: (
        x @ x.mT,
        torch.einsum("btd,bsd->bts", x, x),
        torch.bmm(x, x.transpose(1, 2)),
        F.linear(x, torch.ones(3, 8)),
    ),
    "masked": lambda x: (
        x.masked_fill(torch.ones(5, 8, dtype=torch.bool).tril(), -1.0),
        x.gather(1, torch.zeros(2, 1, 8, dtype=torch.int64)),
        x.cumsum(1),
        F.pad(x, (1, 2), value=3.0),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    check(FUNCTIONS[name], rows())


def test_other_sizes_of_a_batch():
    for net, shape in ((Convolutions().eval(), (8, 8)), (Attention().eval(), (4,))):
        x = torch.ones(2, *((3, *shape) if len(shape) == 2 else shape))
        x = x if len(shape) == 2 else x.long()
        made = torch.onnx.export(
            net,
            x,
            input_names=["x"],
            output_names=["y"],
            dynamic_axes={"x": {0: "batch"}, "y": [0]},
        )
        more = torch.cat([x, x + 1, x])
        with torch.no_grad():
            wanted = net(more)
        (found,) = ran(made, more)
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
        (output,) = made.graph.output
        assert output.name == "y" and output.type.tensor_type.shape.dim[0].dim_param


def test_files_and_modes(tmp_path):
    net = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5)).train()
    x = torch.ones(4, 3)
    torch.onnx.export(net, (x,), tmp_path / "net.onnx", input_names=["rows"])
    assert net.training and net[1].training
    read = onnx.load(tmp_path / "net.onnx")
    assert [each.name for each in read.graph.input] == ["rows"]
    assert read.opset_import[0].version == 20
    file = io.BytesIO()
    torch.onnx.export(net, x, file, opset_version=18)
    assert onnx.load_from_string(file.getvalue()).opset_import[0].version == 18
    found = ran(read, x)[0]
    assert np.allclose(found.numpy(), net[0](x).detach().numpy(), atol=1e-6)
    assert not torch.onnx.is_in_onnx_export()


def test_what_has_no_operator():
    error = torch.onnx.errors.UnsupportedOperatorError
    with pytest.raises(error, match="kron"):
        torch.onnx.export(lambda x: torch.kron(x[0], x[1]), rows())
    with pytest.raises(error, match="alpha"):
        torch.onnx.export(lambda x: torch.add(x, x, alpha=2), rows())
    with pytest.raises(ValueError, match="13 or more"):
        torch.onnx.export(nn.ReLU(), rows(), opset_version=9)
    with pytest.raises(torch.fx.proxy.TraceError):
        torch.onnx.export(lambda x: x if x.sum() > 0 else -x, rows())
