"""Recurrent layers: gradients, half types, layouts, and what golden cases cannot show."""

import copy
import pickle

import pytest

import pydevtensor as torch
from pydevtensor.autograd import gradcheck, gradgradcheck

nn = torch.nn
rnn = nn.utils.rnn
KINDS = ["RNN", "LSTM", "GRU"]
LAYERS = [*KINDS, "projected"]  # an LSTM with states of one element less


def numbers(*shape, device, dtype=torch.float64):
    count = torch.Size(shape).numel()
    values = (torch.arange(count) * 37 % 101).double() / 50 - 1
    return values.reshape(shape).to(device, dtype)


def network(kind, *args, device, dtype=torch.float64, **kwargs):
    torch.manual_seed(1)
    if kind == "projected":
        kind, kwargs["proj_size"] = "LSTM", args[1] - 1
    return getattr(nn, kind)(*args, **kwargs).to(device, dtype)


def states(kind, *shape, device):
    h = numbers(*shape, device=device)
    if kind == "projected":
        return h[..., 1:].contiguous(), h.flip(0).contiguous()
    return (h, h.flip(0).contiguous()) if kind == "LSTM" else (h,)


def given(kind, state):
    return tuple(state) if kind in ("LSTM", "projected") else state[0]


def flat(results):
    output, state = results
    return (output, *state) if isinstance(state, tuple) else (output, state)


@pytest.mark.parametrize("kind", [*KINDS, "relu", "projection", "packed"])
def test_both_derivatives(kind, device):
    """The second comes from the composed steps, the first from kernels."""
    name, options = kind, {}
    if kind == "relu":
        name, options = "RNN", {"nonlinearity": "relu"}
    elif kind == "projection":
        name, options = "LSTM", {"proj_size": 1}
    elif kind == "packed":
        name, options = "GRU", {"bidirectional": True}
    layer = network(name, 2, 2, device=device, **options)
    names = [*dict(layer.named_parameters())]
    x = numbers(3, 2, 2, device=device)
    h = states(name, 2 if kind == "packed" else 1, 2, 2, device=device)
    if kind == "projection":
        h = h[0][..., :1].contiguous(), h[1]

    def run(x, *rest):
        for each, value in zip(names, rest[len(h) :], strict=True):
            delattr(layer, each)
            setattr(layer, each, value)
        if kind == "packed":
            x = rnn.pack_padded_sequence(x, [1, 3], enforce_sorted=False)
        output, *state = flat(layer(x, given(name, rest[: len(h)])))
        return (output.data if kind == "packed" else output, *state)

    inputs = [x, *h, *(p.detach() for p in layer.parameters())]
    inputs = [t.clone().requires_grad_() for t in inputs]
    assert gradcheck(run, inputs)
    if device == "cpu":
        assert gradgradcheck(run, inputs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("inputs, rows", [(1, 3), (4, 1), (1, 1)])
def test_a_single_unit(kind, inputs, rows, device):
    """Weights of one column are row-major and column-major at once."""
    layer = network(kind, inputs, 1, device="cpu")
    there = copy.deepcopy(layer).to(device)
    results = []
    for each in (layer, there):
        x = numbers(5, rows, inputs, device=each.weight_hh_l0.device).requires_grad_()
        output, *state = flat(each(x))
        (output.sum() + sum(s.square().sum() for s in state)).backward()
        grads = [p.grad.cpu() for p in (x, *each.parameters())]
        results.append([output.detach().cpu(), *grads])
    for a, b in zip(*results, strict=True):
        assert torch.allclose(a, b)


@pytest.mark.parametrize("lengths", [(), (5, 2, 2)])
@pytest.mark.parametrize("kind", LAYERS)
def test_one_derivative_is_that_of_the_composed_steps(kind, lengths, device):
    """backward() and grad(create_graph=True) take different ways."""
    layer = network(kind, 3, 4, 2, bidirectional=True, device=device)
    x = numbers(5, 3, 3, device=device).requires_grad_()
    h = [s.requires_grad_() for s in states(kind, 4, 3, 4, device=device)]
    inputs = [x, *h, *layer.parameters()]
    packed = rnn.pack_padded_sequence(x, lengths) if lengths else x
    y, *ends = flat(layer(packed, given(kind, h)))
    loss = sum((part * part.cos()).sum() for part in (y.data if lengths else y, *ends))
    fast = torch.autograd.grad(loss, inputs, retain_graph=True)
    slow = torch.autograd.grad(loss, inputs, create_graph=True)
    again = torch.autograd.grad(loss, inputs)
    for a, b, c in zip(fast, slow, again, strict=True):
        assert torch.allclose(a, b, rtol=1e-10, atol=1e-12)
        assert a.equal(c)


HALF_CASES = {
    **{kind: (kind, {"num_layers": 2, "bidirectional": True}) for kind in KINDS},
    "relu": ("RNN", {"nonlinearity": "relu", "bias": False}),
    "projection": ("LSTM", {"proj_size": 3, "num_layers": 2, "bidirectional": True}),
    **{f"{kind}Cell": (f"{kind}Cell", {}) for kind in KINDS},
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("kind", "options"), HALF_CASES.values(), ids=HALF_CASES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types(kind, options, packed, dtype, device):
    """Results and gradients, also recorded ones, are those of float64 in the type's
    precision."""
    if packed and "Cell" in kind:
        pytest.skip("a cell has no steps")
    layer = network(kind, 3, 4, device=device, dtype=dtype, **options)
    x = numbers(5, 2, 3, device=device, dtype=dtype)
    found = []
    for each, own in ((layer, x), (copy.deepcopy(layer).double(), x.double())):
        own.requires_grad_()
        given = rnn.pack_padded_sequence(own, (5, 2)) if packed else own
        made = each(own[0]) if "Cell" in kind else flat(each(given))
        made = made if isinstance(made, tuple) else (made,)
        made = [
            part.data if isinstance(part, rnn.PackedSequence) else part for part in made
        ]
        loss = sum((part * part.detach().cos()).double().sum() for part in made)
        inputs = [own, *each.parameters()]
        grads = torch.autograd.grad(loss, inputs, retain_graph=True)
        found.append([*made, *grads])
        found[-1] += torch.autograd.grad(loss, inputs, create_graph=True)
    error = 8 * torch.finfo(dtype).eps
    for a, b in zip(*found, strict=True):
        assert a.dtype == dtype
        scale = b.abs().max().item()
        assert torch.allclose(a.double(), b, rtol=error, atol=error * scale)


@pytest.mark.parametrize("kind", LAYERS)
def test_layouts(kind, device):
    """Inputs, states, weights and gradients that are not contiguous."""
    layer = network(kind, 3, 4, device=device)
    x, h = numbers(5, 2, 3, device=device), states(kind, 1, 2, 4, device=device)
    expected = flat(layer(x, given(kind, h)))
    other = copy.deepcopy(layer)
    for weight in other.parameters():
        if weight.ndim == 2:
            weight.data = weight.data.t().contiguous().t()
    wide = [s.repeat_interleave(2, -1)[..., ::2] for s in h]
    found = flat(
        other(x.permute(2, 1, 0).contiguous().permute(2, 1, 0), given(kind, wide))
    )
    for a, b in zip(found, expected, strict=True):
        assert torch.allclose(a, b, rtol=1e-12, atol=1e-14)
    for results in (found, expected):
        # The gradient of a sum is expanded, that of a transpose has other strides.
        sum(
            part.sum() + part.transpose(-1, -2).cos().sum() for part in results
        ).backward()
    for a, b in zip(other.parameters(), layer.parameters(), strict=True):
        assert torch.allclose(a.grad, b.grad, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", LAYERS)
def test_part_of_the_results_has_a_gradient(kind, device):
    """Only the last state, or only one parameter, takes part."""
    layer = network(kind, 3, 4, device=device)
    layer.requires_grad_(False)
    layer.weight_hh_l0.requires_grad_()
    x = numbers(5, 2, 3, device=device)
    flat(layer(x))[-1].sum().backward()
    full = copy.deepcopy(layer).requires_grad_()
    flat(full(x))[-1].sum().backward()
    assert torch.allclose(layer.weight_hh_l0.grad, full.weight_hh_l0.grad)
    assert layer.weight_ih_l0.grad is None
    with torch.no_grad():
        assert not layer(x)[0].requires_grad


@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_walks_like_the_layer(kind, device):
    layer = network(kind, 3, 4, device=device)
    cell = network(f"{kind}Cell", 3, 4, device=device)
    state = layer.state_dict()
    cell.load_state_dict({name[:-3]: value for name, value in state.items()})
    x = numbers(20, 2, 3, device=device)
    output, *last = flat(layer(x))
    h = None
    for t, step in enumerate(x):
        h = cell(step, h)
        seen = h[0] if kind == "LSTM" else h
        assert torch.allclose(seen, output[t], rtol=1e-12, atol=1e-14)
    for a, b in zip(h if kind == "LSTM" else [h], last, strict=True):
        assert torch.allclose(a, b[0], rtol=1e-12, atol=1e-14)


# Of many rows the CPU packs the weight once for all steps; sizes are no multiples of its
# tiles, and lie on both sides of its blocks.
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hidden, rows", [(33, 4), (129, 30), (300, 13), (40, 193)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_many_rows_walk_like_a_cell(kind, hidden, rows, dtype):
    layer = network(kind, 5, hidden, device="cpu", dtype=dtype)
    cell = network(f"{kind}Cell", 5, hidden, device="cpu", dtype=dtype)
    cell.load_state_dict({k[:-3]: value for k, value in layer.state_dict().items()})
    x = numbers(4, rows, 5, device="cpu", dtype=dtype)
    h, steps = None, []
    for step in x:
        h = cell(step, h)
        steps.append(h[0] if kind == "LSTM" else h)
    output, one = layer(x)[0], torch.stack(steps)
    near = {"rtol": 1e-11, "atol": 1e-11} if dtype == torch.float64 else {"atol": 2e-5}
    assert torch.allclose(output, one, **near)
    for each in (output, one):
        each.square().mean().backward()
    for a, b in zip(layer.parameters(), cell.parameters(), strict=True):
        assert torch.allclose(a.grad, b.grad, **near)


@pytest.mark.parametrize("kind", ["LSTM", "projected"])
def test_packed_sequences_give_what_each_gives_alone(kind, device):
    layer = network(kind, 3, 4, 2, bidirectional=True, device=device)
    sequences = [numbers(n, 3, device=device) for n in (2, 30, 7, 7, 1)]
    packed = rnn.pack_sequence(sequences, enforce_sorted=False)
    assert packed.batch_sizes.device.type == "cpu"
    output, (h, c) = layer(packed)
    for at, (part, x) in enumerate(
        zip(rnn.unpack_sequence(output), sequences, strict=True)
    ):
        alone, (own_h, own_c) = layer(x)
        assert torch.allclose(part, alone, rtol=1e-12, atol=1e-14)
        assert torch.allclose(h[:, at], own_h, rtol=1e-12, atol=1e-14)
        assert torch.allclose(c[:, at], own_c, rtol=1e-12, atol=1e-14)


def test_a_packed_sequence_moves_and_pickles(device):
    made = rnn.pack_sequence([torch.ones(1), torch.ones(2)], enforce_sorted=False)
    moved = made.to(device)
    assert str(moved.data.device) == str(moved.unsorted_indices.device) == device
    assert moved.batch_sizes.device.type == "cpu"
    assert moved.is_cuda == (device != "cpu")
    assert moved.cpu().data.equal(made.data)
    assert made.to("cpu") is made
    again = pickle.loads(pickle.dumps(moved))
    assert type(again) is rnn.PackedSequence and again.data.equal(moved.data)


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_devices(kind):
    torch.cuda.init()
    layer = network(kind, 3, 4, device="cuda:0")
    message = "the parameters are on cuda:0"
    with pytest.raises(RuntimeError, match=message):
        layer(numbers(5, 2, 3, device="cpu"))
    with pytest.raises(RuntimeError, match=r"state, of shape .* on cpu"):
        h = states(kind, 1, 2, 4, device="cpu")
        layer(numbers(5, 2, 3, device="cuda:0"), given(kind, h))
    with pytest.raises(RuntimeError, match=message):
        network(f"{kind}Cell", 3, 4, device="cuda:0")(numbers(2, 3, device="cpu"))


def test_wrong_packing():
    x = torch.ones(3, 2, 1)
    with pytest.raises(RuntimeError, match="a length is 4"):
        rnn.pack_padded_sequence(x, [4, 1])
    with pytest.raises(RuntimeError, match=r"lengths.cpu\(\)"):
        rnn.pack_padded_sequence(x, torch.tensor([3, 1], device="cuda"))
    with pytest.raises(ValueError, match=r"batch_sizes.cpu\(\)"):
        rnn.PackedSequence(x, torch.tensor([2, 1], device="cuda"))
    with pytest.raises(RuntimeError, match="sum to 2"):
        nn.GRU(1, 2)(rnn.PackedSequence(torch.ones(3, 1), torch.tensor([1, 1])))
    with pytest.raises(TypeError, match="has to be a Tensor, not list"):
        nn.GRU(1, 2)([1.0])
    with pytest.warns(UserWarning, match="num_layers=1"):
        nn.GRU(1, 2, dropout=0.5)


@pytest.mark.parametrize(
    ("operands", "sizes"),
    [
        ([], [1]),
        ([(2, 8), (2, 2), (8, 2)], [2]),
        ([(2, 8), (2, 2), (2, 2), (2, 2), (2, 2), (2, 2), (8, 2)], [1]),
        ([(2, 8), (2, 2), (2, 2), (2, 2), (2, 2), (1, 2), (8, 2)], [2]),
        ([(2, 8), (2, 2), (2, 2), (2, 2), (2, 2), (2, 2), (8, 2)], [1, 2]),
        ([(2, 8), (2, 2), (2, 2), (2, 2), (2, 2), (2, 2), (8, 2)], []),
        ([(2, 8), (2, 2), (2, 2), (2, 2), (2, 2), (2, 2), (16,)], [2]),
        # Projected from 2 to 1: the matrices, results and states.
        ([(2, 8), *[(2, 2)] * 5, (8, 2), (1, 2), (2, 1), (2, 1)], [2]),
        ([(2, 8), *[(2, 2)] * 5, (8, 1), (2,), (2, 1), (2, 1)], [2]),
        ([(2, 8), *[(2, 2)] * 5, (8, 1), (1, 2), (1, 1), (2, 1)], [2]),
        ([(2, 8), *[(2, 2)] * 5, (8, 1), (1, 2), (2, 1), (2, 2)], [2]),
    ],
)
def test_the_kernels_check_their_operands(operands, sizes):
    tensors = [torch.zeros(shape) for shape in operands]
    for operation in (2, -1, 99):
        with pytest.raises(RuntimeError, match="rnn_steps"):
            torch._C._rnn_steps(operation, tensors, sizes, False)


def test_a_network_learns_to_continue_a_wave(device):
    """A GRU, trained to predict the next value of a sine, continues it by itself."""
    torch.manual_seed(0)
    wave = (torch.arange(200) * 0.4).sin().to(device)
    starts = torch.arange(150)
    windows = torch.stack([wave[s : s + 21] for s in starts.tolist()], 1).unsqueeze(2)
    net, head = nn.GRU(1, 16).to(device), nn.Linear(16, 1).to(device)
    parameters = [*net.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(parameters, 0.02)
    for _ in range(40):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(head(net(windows[:-1])[0]), windows[1:])
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1)
        optimizer.step()
    with torch.no_grad():
        output, state = net(windows[:-1, :1])
        value, found = head(output[-1:]), []
        for _ in range(10):
            found.append(value.item())
            output, state = net(value, state)
            value = head(output)
    expected = wave[20:30].tolist()
    worst = max(abs(a - b) for a, b in zip(found, expected, strict=True))
    assert worst < 0.4, (loss.item(), found, expected)


def test_cells_and_layers_are_of_one_module():
    for kind in nn.LSTM, nn.LSTMCell, nn.GRUCell, nn.RNNCell, nn.RNNCellBase:
        assert kind.__module__ == "pydevtensor.nn.modules.rnn"
        assert getattr(nn.modules.rnn, kind.__name__) is kind


def test_functions_take_keywords():
    x, h = torch.ones(5, 2, 3), torch.zeros(1, 2, 4)
    weights = [torch.ones(4, 3), torch.ones(4, 4)]
    options = (False, 1, 0.0, False, False)
    for function in torch.rnn_tanh, torch.rnn_relu:
        y, _ = function(x, h, weights, *options, False)
        named, _ = function(x, hx=h, params=weights, has_biases=False, num_layers=1, dropout=0.0, train=False, bidirectional=False, batch_first=False)  # fmt: skip
        assert named.equal(y)
    for cell in torch.rnn_tanh_cell, torch.rnn_relu_cell:
        bias = torch.ones(4)
        y = cell(x[0], h[0], *weights, bias, bias)
        assert cell(x[0], h[0], *weights, b_hh=bias, b_ih=bias).equal(y)
        with pytest.raises(RuntimeError, match="give both or none"):
            cell(x[0], h[0], *weights, b_hh=bias)
