"""How many kernels layers start on a GPU, and how many of these are copies, with or
without a conversion. `python tests/test_launches.py` prints the table of
benchmarks/results/h100.md.
"""

import pytest

import pydevtensor as torch

nn, F = torch.nn, torch.nn.functional


@pytest.fixture(autouse=True)
def counters():
    if not torch.cuda.is_available() or not torch.cuda.is_simulated():
        pytest.skip("counts what simulated GPUs do")


class Block(nn.Module):
    """Of a GPT: attention and two linear layers, each with a norm before and a sum
    after it. Query, key and value are views of one product: its columns, or, with
    `turned`, what unbind() gives of it."""

    def __init__(self, turned=False, width=32, heads=2, dropout=0.0):
        super().__init__()
        self.turned, self.heads, self.dropout = turned, heads, dropout
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.ways, self.back = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x):
        rows, words, width = x.shape
        all_ways = self.ways(self.norms[0](x))
        if self.turned:
            ways = all_ways.view(rows, words, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            ways = ways.unbind(0)
        else:
            ways = [
                way.view(rows, words, self.heads, -1).transpose(1, 2)
                for way in all_ways.split(width, 2)
            ]
        y = F.scaled_dot_product_attention(
            *ways, dropout_p=self.dropout, is_causal=True
        )
        x = x + self.back(y.transpose(1, 2).reshape(rows, words, width))
        return x + self.narrow(F.gelu(self.wide(self.norms[1](x))))


class Residual(nn.Module):
    """Of a ResNet: two convolutions with batch norm, and the sum with the input."""

    def __init__(self, channels=8):
        super().__init__()
        convolution = lambda: nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.first, self.second = convolution(), convolution()
        self.norms = nn.ModuleList([nn.BatchNorm2d(channels) for _ in range(2)])

    def forward(self, x):
        y = F.relu(self.norms[0](self.first(x)))
        return F.relu(self.norms[1](self.second(y)) + x)


class Recurrent(nn.Module):
    """A recurrent layer over the steps of x, or over those of sequences of `lengths`; or
    a cell's first step."""

    def __init__(self, kind="LSTM", *args, lengths=(), **kwargs):
        super().__init__()
        self.layer = getattr(nn, kind)(16, 16, *args, **kwargs)
        self.lengths = lengths

    def forward(self, x):
        if isinstance(self.layer, nn.RNNCellBase):
            y = self.layer(x[0])
            return y[0] if isinstance(y, tuple) else y
        if not self.lengths:
            return self.layer(x)[0]
        return self.layer(nn.utils.rnn.pack_padded_sequence(x, self.lengths))[0].data


def kernels(work):
    """What a function gives, its launches, and those of them that are copies."""
    torch.cuda.synchronize()
    before = torch.cuda.sim_counters()["launches"]
    with torch.profiler.profile() as profile:
        result = work()
        torch.cuda.synchronize()
    count = torch.cuda.sim_counters()["launches"] - before
    copies = [e for e in profile.events() if e.device_time > 0 and "copy" in e.name]
    return result, (count, len(copies))


def step(net, x, mode):
    """Launches and copies of a step, forward and backward."""
    for given in (x, *net.parameters()):
        given.grad = None
    with torch.autocast("cuda", torch.bfloat16, enabled=mode == "autocast"):
        y, forward = kernels(lambda: net(x))
    g = torch.ones_like(y)
    _, backward = kernels(lambda: y.backward(g))
    return forward, backward


def counts(net, shape, mode):
    torch.manual_seed(0)
    net, x = net.to("cuda"), torch.randn(shape, device="cuda")
    if mode == "bfloat16":
        net, x = net.bfloat16(), x.bfloat16()
    x.requires_grad_()
    step(net, x, mode)  # makes what later steps use
    return step(net, x, mode)


class Projected(Recurrent):
    def __init__(self):
        super().__init__(proj_size=8)


SHAPES = {Block: (2, 8, 32), Residual: (2, 8, 6, 6)}
SHAPES |= {Recurrent: (4, 2, 16), Projected: (4, 2, 16)}


@pytest.mark.parametrize("turned", [False, True])
def test_a_block_of_a_gpt_launches_no_more_than_pytorchs(turned):
    """Which takes 20 and 39 under autocast, 10 and 12 of them conversions. Copies
    backward are 12 conversions, and 3 that put the gradients of the views together."""
    forward, backward = counts(Block(turned), SHAPES[Block], "autocast")
    assert forward[0] <= 20 and forward[1] <= 10
    assert backward[0] <= 39 and backward[1] <= 15


# At most, forward and backward: launches, and the copies among them. A convolution is
# two launches here, patches and their product; cuDNN's is one.
MOST = {
    (Block, "float32"): ((10, 0), (27, 3)),
    (Block, "bfloat16"): ((10, 0), (31, 7)),
    (Residual, "float32"): ((17, 0), (21, 0)),
    (Residual, "autocast"): ((24, 7), (29, 8)),
    (Residual, "bfloat16"): ((25, 8), (25, 4)),
    (Recurrent, "float32"): ((12, 4), (14, 1)),
    (Recurrent, "autocast"): ((17, 9), (19, 5)),
    (Recurrent, "bfloat16"): ((12, 4), (14, 1)),
    (Projected, "float32"): ((17, 4), (19, 4)),
    (Projected, "autocast"): ((23, 10), (25, 9)),
    (Projected, "bfloat16"): ((17, 4), (19, 4)),
}


@pytest.mark.parametrize(("made", "mode"), MOST)
def test_launches_and_copies_do_not_become_more(made, mode):
    for found, most in zip(
        counts(made(), SHAPES[made], mode), MOST[made, mode], strict=True
    ):
        assert found[0] <= most[0] and found[1] <= most[1], found


@pytest.mark.parametrize("mode", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_layers": 2, "bidirectional": True, "dropout": 0.5, "bias": False},
        {"lengths": (4, 2), "bidirectional": True},
        {"lengths": (4, 2), "bidirectional": True, "proj_size": 8},
    ],
)
def test_recurrent_layers_of_16_bits_convert_nothing(options, kind, mode):
    if "proj_size" in options and kind != "LSTM":
        pytest.skip("only an LSTM projects its state")
    for made in (lambda: Recurrent(kind, **options), lambda: Recurrent(kind + "Cell")):
        assert counts(made(), (4, 2, 16), mode) == counts(made(), (4, 2, 16), "float32")


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_autocast_casts_a_recurrent_layers_inputs_and_once_its_weights(kind):
    layer = getattr(nn, kind)(16, 16, 2, bidirectional=True).to("cuda")
    x = torch.randn(4, 2, 16, device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        _, state = layer(x)
        state = [s.float() for s in state] if kind == "LSTM" else state.float()
        _, (alone, _) = kernels(lambda: layer(x))
        _, (given, _) = kernels(lambda: layer(x, state))
        _, (lower, _) = kernels(lambda: layer(x.bfloat16()))
    assert lower == alone  # one cast of x
    assert given == alone  # states are cast where others would be filled
    with torch.no_grad():
        layer, x = layer.bfloat16(), x.bfloat16()
        _, (plain, _) = kernels(lambda: layer(x))
    assert alone == plain + 1


@pytest.mark.parametrize("mode", ["float32", "autocast", "bfloat16"])
def test_dropout_of_attention_launches_nothing(mode):
    """Composed, it took 15 launches more forward in float32, and 9 backward."""
    found = counts(Block(dropout=0.1), SHAPES[Block], mode)
    assert found == counts(Block(), SHAPES[Block], mode)


if __name__ == "__main__":
    torch.cuda.simulate(1)
    for made, shape in SHAPES.items():
        for mode in ("float32", "autocast", "bfloat16"):
            print(made.__name__, mode, *counts(made(), shape, mode))
