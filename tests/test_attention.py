"""Attention by tiles and the layers made of it, against the whole matrix of scores."""

import copy
import math
import os
import signal
import subprocess
import sys
import threading

import pytest

import pydevtensor as torch
from pydevtensor.autograd import gradcheck, gradgradcheck

nn, F = torch.nn, torch.nn.functional
sdpa = F.scaled_dot_product_attention
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-5}


def whole(q, k, v, mask=None, causal=False, scale=None, groups=1):
    """The same by matmul and softmax."""
    k, v = (t.repeat_interleave(groups, -3) if groups > 1 else t for t in (k, v))
    scores = q @ k.transpose(-2, -1) * (scale or 1 / math.sqrt(q.shape[-1]))
    if causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
    if mask is not None and mask.dtype == torch.bool:
        shares = scores.masked_fill(~mask, -1e30).softmax(-1) * mask
    else:
        shares = (scores if mask is None else scores + mask).softmax(-1)
    return shares @ v


def made(shape, device, dtype=torch.float64):
    return torch.randn(*shape, device=device, dtype=dtype).requires_grad_()


def close(found, expected, tolerance=1e-12):
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    if expected.numel():
        assert float((found - expected).abs().max()) <= tolerance


# Query, key and value; lengths about those of tiles on the CPU (48 rows, 256 keys) and on
# a GPU (64), head sizes about those of its chunks.
SHAPES = [
    ((2, 3, 4, 8), (2, 3, 5, 8), (2, 3, 5, 6), 1),
    ((4, 8), (5, 8), (5, 6), 1),
    ((2, 2, 3, 4, 2), (2, 1, 3, 5, 2), (3, 5, 1), 1),
    ((1, 2, 70, 9), (1, 1, 65, 9), (1, 1, 65, 70), 2),
    ((130, 65), (66, 65), (66, 3), 1),
    ((66, 3), (130, 3), (130, 129), 1),
]
LONG = [
    ((1, 2, 257, 5), (1, 2, 30, 5), (1, 2, 30, 7), 1),
    ((1, 2, 129, 16), (1, 2, 515, 16), (1, 2, 515, 20), 1),
    ((2, 6, 300, 16), (2, 2, 300, 16), (2, 2, 300, 20), 3),
    ((6, 2, 140, 3), (6, 2, 258, 3), (6, 2, 258, 4), 1),
    ((2, 50, 270), (2, 300, 270), (2, 300, 265), 1),
]


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        *((torch.float32, kind) for kind in ("plain", "causal", "bool", "float")),
        *((torch.float64, kind) for kind in ("plain", "float")),
        pytest.param(torch.float64, "causal", marks=pytest.mark.slow),
        pytest.param(torch.float64, "bool", marks=pytest.mark.slow),
    ],
)
def test_tiles_give_what_the_whole_matrix_gives(device, dtype, kind):
    torch.manual_seed(1)
    for shape, key, value, groups in SHAPES + (LONG if device == "cpu" else []):
        of = [made(s, device, dtype) for s in (shape, key, value)]
        mask = None
        if kind == "bool":
            mask = torch.rand(shape[-2], key[-2], device=device) > 0.3
            mask[1] = False
        elif kind == "float":
            mask = torch.randn(shape[-2], key[-2], device=device, dtype=dtype)
        causal = kind == "causal"
        found = sdpa(*of, mask, 0.0, causal, scale=0.4, enable_gqa=groups > 1)
        expected = whole(*of, mask, causal, 0.4, groups)
        close(found, expected, TOLERANCE[dtype])
        weight = torch.randn(*found.shape, device=device, dtype=dtype)
        pairs = zip(
            torch.autograd.grad((found * weight).sum(), of),
            torch.autograd.grad((expected * weight).sum(), of),
            strict=True,
        )
        for one, other in pairs:
            close(one, other, 20 * TOLERANCE[dtype])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "causal", "bool", "float"])
def test_first_and_second_derivatives(device, kind):
    torch.manual_seed(2)
    q, k, v = (made(s, device) for s in ((4, 3, 2), (2, 4, 2), (2, 4, 1)))
    mask = None
    if kind == "bool":
        mask = torch.rand(3, 4, device=device) > 0.3
        mask[1] = False
    elif kind == "float":
        mask = torch.randn(3, 4, device=device, dtype=torch.float64)
        mask[0, 1:] = -math.inf

    def run(q, k, v):
        return sdpa(q, k, v, mask, 0.0, kind == "causal", enable_gqa=True)

    assert gradcheck(run, (q, k, v))
    assert gradgradcheck(run, (q, k, v))


def test_a_mask_that_learns(device):
    torch.manual_seed(3)
    q, k, v, mask = (made(s, device) for s in ((2, 3, 2), (2, 4, 2), (2, 4, 1), (3, 4)))
    assert gradcheck(lambda *of: sdpa(*of), (q, k, v, mask))


HALVES = {torch.float16: 2**-11, torch.bfloat16: 2**-8}  # roundings to nearest


def close_in_halves(found, expected, dtype):
    """To some roundings of the largest element."""
    assert found.dtype == dtype
    close(found.double(), expected, 8 * HALVES[dtype] * float(expected.abs().max()))


# Lengths about those of tiles on tensor cores (16, 32, 64, 128), sizes about theirs (64,
# 128), rows of whole chunks of 8 elements and others.
TILES = [
    ((2, 4, 70, 24), (2, 2, 35, 24), (2, 2, 35, 16), 2),
    ((129, 65), (66, 65), (66, 3), 1),
    ((66, 8), (130, 8), (130, 128), 1),
]


KINDS_OF_HALVES = [
    (torch.float16, "plain"),
    (torch.bfloat16, "causal"),
    (torch.bfloat16, "float"),
    *(
        pytest.param(dtype, kind, marks=pytest.mark.slow)
        for dtype, kind in (
            (torch.float16, "bool"),
            (torch.float16, "causal"),
            (torch.float16, "float"),
            (torch.bfloat16, "plain"),
            (torch.bfloat16, "bool"),
        )
    ),
]


@pytest.mark.parametrize(("dtype", "kind"), KINDS_OF_HALVES)
def test_types_of_16_bits(device, dtype, kind):
    torch.manual_seed(4)
    for query, key, value, groups in [*SHAPES, *TILES]:
        of = [
            torch.randn(*s, device=device).to(dtype).requires_grad_()
            for s in (query, key, value)
        ]
        wide = [t.detach().cpu().double().requires_grad_() for t in of]
        mask = None
        if kind == "bool":
            mask = torch.rand(query[-2], key[-2]) > 0.3
            mask[1] = False
        elif kind == "float":
            mask = torch.randn(query[-2], key[-2])
        causal = kind == "causal"
        expected = whole(*wide, mask, causal, 0.4, groups)
        mask = mask if mask is None else mask.to(device)
        found = sdpa(*of, mask, 0.0, causal, scale=0.4, enable_gqa=groups > 1)
        close_in_halves(found.cpu(), expected, dtype)
        weight = torch.randn(*found.shape).to(dtype)
        found.backward(weight.to(device))
        expected.backward(weight.double())
        for one, other in zip(of, wide, strict=True):
            close_in_halves(one.grad.cpu(), other.grad, dtype)


def test_masks_of_16_bits_and_what_they_leave_out(device):
    torch.manual_seed(14)
    of = [torch.randn(2, 40, 16, device=device).bfloat16() for _ in "qkv"]
    wide = [t.cpu().double() for t in of]
    mask = torch.randn(2, 1, 40, device=device).bfloat16()
    mask[..., 7:] = -math.inf
    expected = whole(*wide, mask.cpu().double())
    close_in_halves(sdpa(*of, mask).cpu(), expected, torch.bfloat16)
    # A key that is left out may have any value.
    counts = torch.arange(40, device=device) < 7
    expected = whole(*wide, counts.cpu())
    of[1][:, 7:] = math.nan
    close_in_halves(sdpa(*of, counts[None]).cpu(), expected, torch.bfloat16)
    of[0][1, 3] = math.nan
    found = sdpa(*of, counts[None]).cpu()
    assert found[1, 3].isnan().all()
    assert not found[0].isnan().any()


@pytest.mark.parametrize("dtype", HALVES)
def test_layouts_of_16_bits(device, dtype):
    """Heads beside each other, as linear layers give them; rows that cannot be read in
    chunks; one row for all."""
    torch.manual_seed(15)
    packed = torch.randn(2, 20, 3, 4, 8, device=device).to(dtype)
    of = [packed[:, :, i].transpose(1, 2) for i in range(3)]
    expected = whole(*(t.cpu().double() for t in of), causal=True)
    found = sdpa(*of, is_causal=True)
    close_in_halves(found.cpu(), expected, dtype)
    assert found.transpose(1, 2).is_contiguous()
    shifted = torch.randn(3, 2 * 20 * 8 + 1, device=device).to(dtype)[:, 1:]
    of = list(shifted.reshape(3, 2, 20, 8).unbind(0))
    of[0] = of[0][:, :1].expand(2, 20, 8)
    close_in_halves(sdpa(*of).cpu(), whole(*(t.cpu().double() for t in of)), dtype)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(
    "size, expected", [(64, (1, 3)), (128, (1, 3)), (129, (5, 11))]
)
def test_tensor_cores_take_operands_as_they_lie(gpu, dtype, size, expected):
    """In one launch and three; sizes that do not fit are converted."""
    if not torch.cuda.is_simulated():
        pytest.skip("counts what simulated GPUs do")
    shape = (1, 2, 9, size)
    of = [torch.randn(shape, device=gpu).to(dtype).requires_grad_() for _ in "qkv"]
    weight = torch.ones(shape, device=gpu, dtype=dtype)

    def launches(call):
        torch.cuda.synchronize(gpu)
        before = torch.cuda.sim_counters(gpu)["launches"]
        result = call()
        torch.cuda.synchronize(gpu)
        return torch.cuda.sim_counters(gpu)["launches"] - before, result

    forward, out = launches(lambda: sdpa(*of, is_causal=True))
    backward, _ = launches(lambda: torch.autograd.grad(out, of, weight))
    assert (forward, backward) == expected


@pytest.mark.parametrize("size", [40, 64, 128])
def test_float32_on_tensor_cores_is_as_exact_as_float32(device, size):
    """Sums of a hundred products near 1, and their small differences in the gradients."""
    torch.manual_seed(21)
    of = [torch.randn(1, heads, 70, size) + 1 for heads in (4, 2, 2)]
    found = [x.clone().to(device).requires_grad_() for x in of]
    wide = [x.double().requires_grad_() for x in of]
    out = sdpa(*found, is_causal=True, enable_gqa=True)
    expected = whole(*wide, causal=True, groups=2)
    out.backward(torch.ones_like(out) + out.detach())
    expected.backward(torch.ones_like(expected) + expected.detach())
    pairs = [
        (out, expected),
        *((x.grad, y.grad) for x, y in zip(found, wide, strict=True)),
    ]
    for (one, other), bound in zip(pairs, (1e-6, 1e-5, 4e-6, 1e-6), strict=True):
        off = (one.cpu().double() - other).norm() / other.norm()
        assert float(off) < bound, (size, float(off))


@pytest.mark.parametrize("size", [(20, 12), (70, 66)])
def test_layouts_of_float32(device, size):
    """Heads beside each other; rows of whole chunks of 16 bytes, and others."""
    torch.manual_seed(22)
    packed = torch.randn(2, 34, 3, 4, max(size), device=device)
    of = [packed[:, :, i].transpose(1, 2) for i in range(3)]
    of = [x[..., : size[i == 2]] for i, x in enumerate(of)]
    for shift in (0, 1):
        given = [x[..., shift:] for x in of]
        for causal in (False, True):
            expected = whole(*(x.cpu() for x in given), causal=causal)
            close(sdpa(*given, is_causal=causal).cpu(), expected, 2e-6)


def test_layouts(device):
    torch.manual_seed(5)
    plain = [made((2, 3, 6, 4), device).detach() for _ in "qkv"]
    expected = sdpa(*plain)
    turned = [t.transpose(1, 2).contiguous().transpose(1, 2) for t in plain]
    steps = [torch.stack([t, t * 0], -1)[..., 0] for t in plain]
    columns = [t.transpose(2, 3).contiguous().transpose(2, 3) for t in plain]
    for given in (turned, steps, columns):
        close(sdpa(*given), expected)
    # The heads of one element lie next to each other, as the next layer takes them.
    assert expected.transpose(1, 2).is_contiguous()
    row = torch.randn(1, 4, device=device, dtype=torch.float64).expand(6, 4)
    close(sdpa(row, plain[1], plain[2]), whole(row, plain[1], plain[2]))
    mask = torch.rand(6, 2, 6, device=device).permute(1, 2, 0)[:, None] > 0.4
    mask[..., 0] = True
    close(sdpa(*plain, mask), whole(*plain, mask))


def test_nothing_to_attend_to(device):
    q, k, v = (made(s, device) for s in ((2, 3, 4), (2, 0, 4), (2, 0, 5)))
    out = sdpa(q, k, v)
    assert out.tolist() == torch.zeros(2, 3, 5).tolist()
    out.sum().backward()
    assert q.grad.tolist() == torch.zeros(2, 3, 4).tolist()
    assert k.grad.shape == (2, 0, 4)
    assert sdpa(q[:, :0], q, q).shape == (2, 0, 4)
    assert sdpa(q[:0], q[:0], q[:0]).shape == (0, 3, 4)
    assert sdpa(q, q, q[..., :0]).shape == (2, 3, 0)
    close(sdpa(q[..., :0], q[..., :0], q), q.mean(1, keepdim=True).expand(2, 3, 4))


def test_numbers_that_are_none(device):
    q = torch.tensor([[1.0], [math.nan], [2.0]], device=device)
    out = sdpa(q, q[:1], q[:1])
    assert out[0].item() == out[2].item() == 1
    assert out[1].isnan().all()
    close(sdpa(q[:1] * 1e4, q[::2] * 1e4, q[::2]), q[2:])


def test_dropout_draws_as_dropout_does():
    q, v = torch.zeros(1, 2, 4), torch.eye(5)[None]
    k = torch.zeros(1, 5, 4)
    torch.manual_seed(1)
    found = sdpa(q, k, v, dropout_p=0.5)
    torch.manual_seed(1)
    close(found, F.dropout(torch.full((1, 2, 5), 0.2), 0.5), 1e-6)


def test_memory_grows_with_the_length_alone():
    # In a process of its own: the peak of this one may be higher already.
    source = """
import resource, pydevtensor as torch
x = torch.randn(1, 1, 8192, 8, requires_grad=True)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
before = peak()
torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True).sum().backward()
print(peak() - before)
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", source], capture_output=True, text=True, check=True
    )
    # A matrix of scores has 256 MB.
    assert int(done.stdout) < 64


@pytest.mark.slow
def test_ctrl_c_stops_a_long_call():
    x = torch.randn(1, 8, 12000, 64)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(20):
            sdpa(x, x, x)
    timer.join()
    signal.signal(signal.SIGINT, before)


def test_messages_say_what_to_do():
    x = torch.ones(2, 3, 4)
    for call, words in (
        (lambda: sdpa(x, x, x, torch.ones(3, 3), is_causal=True), "give one of them"),
        (lambda: sdpa(x, x, x, torch.ones(2, 2)), r"\[2, 2\].*\[2, 3, 3\]"),
        (lambda: sdpa(x, x[..., :2], x), r"query \[2, 3, 4\], key \[2, 3, 2\]"),
        (lambda: sdpa(x, x.double(), x), "convert them to one"),
        (lambda: torch._C._attention(x, x[..., :2], x), r"\(\.\.\., L, E\)"),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()
    with pytest.raises(AssertionError, match="not divisible"):
        nn.MultiheadAttention(8, 3)
    with pytest.raises(RuntimeError, match="batch_first"):
        nn.MultiheadAttention(4, 2)(x, x[:, :1], x[:, :1])
    with pytest.raises(TypeError, match="key has to be a Tensor"):
        nn.MultiheadAttention(4, 2)(x, [1.0], [1.0])


def test_choices_of_kernels_change_nothing():
    from pydevtensor.nn.attention import SDPBackend, sdpa_kernel

    x = torch.randn(2, 3, 4)
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        inside = sdpa(x, x, x)
    assert inside.tolist() == sdpa(x, x, x).tolist()
    with pytest.raises(TypeError, match="SDPBackend"), sdpa_kernel("math"):
        pass


# --- layers


def test_a_decoder_looks_at_nothing_later(device):
    torch.manual_seed(6)
    layer = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2).to(device)
    layer.eval()
    x, memory = torch.randn(5, 2, 8, device=device), torch.randn(3, 2, 8, device=device)
    mask = nn.Transformer.generate_square_subsequent_mask(5, device=device)
    before = layer(x, memory, tgt_mask=mask)
    x[3:] = 7
    after = layer(x, memory, tgt_mask=mask)
    close(after[:3], before[:3], 1e-5)
    assert float((after[3:] - before[3:]).abs().max()) > 1e-3


def test_copies_of_a_layer_start_alike_and_learn_apart():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2)
    one, other = encoder.layers
    assert one.linear1.weight.tolist() == other.linear1.weight.tolist()
    encoder(torch.randn(3, 2, 4)).pow(2).sum().backward()
    assert one.linear1.weight.grad.tolist() != other.linear1.weight.grad.tolist()


@pytest.mark.slow
def test_a_transformer_learns_to_reverse(device):
    torch.manual_seed(0)
    model = nn.Transformer(16, 2, 1, 1, 32, 0.0, batch_first=True)
    words, head = nn.Embedding(6, 16), nn.Linear(16, 6)
    parts = nn.ModuleList([model, words, head]).to(device)
    optimizer = torch.optim.Adam(parts.parameters(), lr=1e-2)
    place = torch.randn(5, 16).to(device)
    mask = model.generate_square_subsequent_mask(4, device=device)
    losses = []
    for _ in range(15):
        source = torch.randint(1, 6, (16, 4)).to(device)
        target = torch.cat([torch.zeros_like(source[:, :1]), source.flip(1)], 1)
        out = model(
            words(source) + place[:4], words(target[:, :-1]) + place[:4], tgt_mask=mask
        )
        loss = F.cross_entropy(head(out).flatten(0, 1), target[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert sum(losses[-3:]) < 0.8 * sum(losses[:3])


def test_a_layer_is_copied_and_loaded():
    torch.manual_seed(7)
    layer = nn.MultiheadAttention(4, 2, batch_first=True)
    other = nn.MultiheadAttention(4, 2, batch_first=True)
    other.load_state_dict(layer.state_dict())
    x = torch.randn(2, 3, 4)
    for each in (other, copy.deepcopy(layer)):
        close(each(x, x, x)[0], layer(x, x, x)[0], 0)
