"""Attention with dropout in the kernels of GPUs, against the whole matrix of scores with
the mask that the kernels draw."""

import math

import numpy
import pytest
from graph_capture import captured
from isolated import python

import pydevtensor as torch
from pydevtensor.autograd import gradcheck, gradgradcheck

nn, F = torch.nn, torch.nn.functional
sdpa = F.scaled_dot_product_attention
ROUNDING = {
    torch.float64: 1e-13,
    torch.float32: 2e-6,
    torch.float16: 2**-8,
    torch.bfloat16: 2**-5,
}


def mask_of(device, shape, p, seed):
    """Which shares of (batch, heads, length, keys) stay: those of the identity, where all
    scores are equal."""
    *leading, length, keys = shape
    q = torch.zeros(*leading, length, 1, device=device)
    k, v = torch.zeros(keys, 1, device=device), torch.eye(keys, device=device)
    torch.manual_seed(seed)
    return sdpa(q, k, v, dropout_p=p).cpu() != 0


def whole(q, k, v, kept, p, mask=None, causal=False, groups=1):
    """The same by matmul and softmax, of float64."""
    k, v = (t.repeat_interleave(groups, -3) if groups > 1 else t for t in (k, v))
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if mask is not None and mask.dtype == torch.bool:
        shares = scores.masked_fill(~mask, -1e30).softmax(-1) * mask
    else:
        shares = (scores if mask is None else scores + mask).softmax(-1)
    return (shares * kept / (1 - p)) @ v


# Query, key and value, and heads of query to one of key: lengths about those of blocks of
# the mask (16) and of tiles (16, 32, 64, 128).
SHAPES = [
    ((1, 2, 17, 8), (1, 2, 19, 8), (1, 2, 19, 8), 1),
    ((2, 4, 70, 24), (2, 2, 35, 24), (2, 2, 35, 16), 2),
    ((129, 65), (66, 65), (66, 3), 1),
    ((1, 2, 66, 72), (1, 1, 130, 72), (1, 1, 130, 128), 2),
    ((66, 3), (130, 3), (130, 130), 1),
]


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        (torch.float32, "plain"),
        (torch.float64, "causal"),
        (torch.float16, "bool"),
        (torch.bfloat16, "float"),
        (torch.bfloat16, "causal"),
        pytest.param(torch.float32, "causal", marks=pytest.mark.slow),
        pytest.param(torch.float32, "bool", marks=pytest.mark.slow),
        pytest.param(torch.float64, "float", marks=pytest.mark.slow),
        pytest.param(torch.float16, "plain", marks=pytest.mark.slow),
    ],
)
def test_results_and_gradients_have_one_mask(gpu, dtype, kind):
    p = 0.3
    torch.manual_seed(1)
    for n, (query, key, value, groups) in enumerate(SHAPES):
        wide = [
            torch.randn(*s).to(dtype).double().requires_grad_()
            for s in (query, key, value)
        ]
        of = [t.detach().to(dtype).to(gpu).requires_grad_() for t in wide]
        mask = None
        if kind == "bool":
            mask = torch.rand(query[-2], key[-2]) > 0.3
            mask[1] = False
        elif kind == "float":
            mask = torch.randn(query[-2], key[-2]).to(dtype)
        causal = kind == "causal"
        given = mask if mask is None else mask.to(gpu)
        kept = mask_of(gpu, (*query[:-1], key[-2]), p, n)
        torch.manual_seed(n)
        found = sdpa(*of, given, p, causal, enable_gqa=groups > 1)
        if kind == "float":
            mask = mask.double()
        expected = whole(*wide, kept, p, mask, causal, groups)
        weight = torch.randn(*found.shape).to(dtype)
        found.backward(weight.to(gpu))
        expected.backward(weight.double())
        pairs = [
            (found, expected),
            *((x.grad, y.grad) for x, y in zip(of, wide, strict=True)),
        ]
        for name, (one, other) in zip(("out", *"qkv"), pairs, strict=True):
            assert one.dtype == dtype
            worst = float((one.detach().cpu().double() - other.detach()).abs().max())
            most = float(other.detach().abs().max())
            assert worst <= 8 * ROUNDING[dtype] * most, (name, query, worst, most)


def test_the_mask_depends_on_positions_alone(gpu):
    """Not on the kernel, which depends on types and sizes, and not on causality or groups."""
    shape, p = (2, 4, 70, 67), 0.4
    expected = mask_of(gpu, shape, p, 3)
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        for size, causal, heads in ((8, False, 4), (72, True, 2), (200, False, 1)):
            q = torch.zeros(*shape[:3], size, device=gpu, dtype=dtype)
            k = torch.zeros(2, heads, 67, size, device=gpu, dtype=dtype)
            v = torch.eye(67, device=gpu, dtype=dtype).expand(2, heads, 67, 67)
            torch.manual_seed(3)
            found = sdpa(q, k, v, None, p, causal, enable_gqa=True).cpu() != 0
            counts = torch.ones(shape[2:], dtype=torch.bool)
            counts = counts.tril() if causal else counts
            assert torch.equal(found, expected & counts), (dtype, size, causal)


def test_the_mask_is_the_same_on_every_card():
    source = """
import hashlib
import pydevtensor as torch
torch.manual_seed(5)
digests = []
for dtype in (torch.float32, torch.bfloat16):
    q, k = torch.zeros(2, 3, 50, 8, device="cuda", dtype=dtype), torch.zeros(
        2, 3, 128, 8, device="cuda", dtype=dtype)
    v = torch.eye(128, device="cuda", dtype=dtype).expand(2, 3, 128, 128)
    torch.manual_seed(5)
    kept = torch.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.2) != 0
    digests.append(hashlib.sha256(kept.cpu().numpy().tobytes()).hexdigest())
print(*{*digests})
"""
    found = {
        python(source, PYDEVTENSOR_SIM_GPUS="1", PYDEVTENSOR_SIM_CARD=card)
        for card in ("t4", "a100", "h100")
    }
    assert len(found) == 1
    assert len(found.pop().split()) == 1  # for both types


def philox(seed, counters):
    """Words of Philox 4x32-10 by counters, (n, 4), by the words of its paper."""
    c = [counters & 0xFFFFFFFF, counters >> 32, counters * 0, counters * 0]
    low, high = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        left, right = b >> 32 ^ c[1] ^ low, a >> 32 ^ c[3] ^ high
        c = [left, b & 0xFFFFFFFF, right, a & 0xFFFFFFFF]
        low, high = (low + 0x9E3779B9) & 0xFFFFFFFF, (high + 0xBB67AE85) & 0xFFFFFFFF
    return numpy.stack(c, -1)


def test_the_mask_is_philoxs(gpu):
    """By attention_dropout.h: blocks of 16 rows and 16 keys, a counter for four shares."""
    shape, p, seed = (2, 3, 40, 55), 0.3, 77
    found = mask_of(gpu, shape, p, seed).numpy()
    blocks = 2 * 3 * 3 * 4
    words = philox(seed, numpy.arange(blocks * 64, dtype=numpy.uint64))
    words = words.reshape(2, 3, 3, 4, 8, 8, 2, 2)  # blocks; row, key; their halves
    words = words.transpose(0, 1, 2, 6, 4, 3, 7, 5).reshape(2, 3, 48, 64)
    expected = words[:, :, :40, :55] < math.ceil((1 - p) * 2**32)
    assert (found == expected).all()
    # The next draw starts at later counters.
    after = torch.rand(4, device=gpu)
    drawn = philox(seed, numpy.arange(blocks * 64, blocks * 64 + 1, dtype=numpy.uint64))
    assert after.tolist() == ((drawn[0] >> 8) / 2**24).tolist()


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_how_many_shares_stay(gpu, p):
    """Of a row, a key, a head, and of neighbours."""
    kept = mask_of(gpu, (4, 2, 128, 128), p, 9).double()
    n, deviation = kept.numel(), math.sqrt(p * (1 - p))
    assert abs(float(kept.mean()) - (1 - p)) < 5 * deviation / math.sqrt(n)
    for dims in ((0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)):
        means = kept.mean(dims)
        bound = 5 * deviation / math.sqrt(n / means.numel())
        assert float((means - (1 - p)).abs().max()) < bound, dims
    one = (kept - (1 - p)) / deviation
    for dim, step in ((3, 1), (3, 8), (3, 16), (2, 1), (2, 8), (2, 16), (1, 1), (0, 1)):
        size = kept.shape[dim] - step
        product = one.narrow(dim, 0, size) * one.narrow(dim, step, size)
        bound = 5 / math.sqrt(product.numel())
        assert abs(float(product.mean())) < bound, (dim, step)


def test_seeds_and_calls(gpu):
    q = torch.randn(1, 2, 40, 8, device=gpu)
    torch.manual_seed(4)
    first, second = sdpa(q, q, q, dropout_p=0.5), sdpa(q, q, q, dropout_p=0.5)
    assert not torch.equal(first, second)
    torch.manual_seed(4)
    assert torch.equal(sdpa(q, q, q, dropout_p=0.5), first)
    state = torch.cuda.get_rng_state(gpu)
    again = sdpa(q, q, q, dropout_p=0.5)
    assert torch.equal(again, second)
    torch.cuda.set_rng_state(state, gpu)
    assert torch.equal(sdpa(q, q, q, dropout_p=0.5), second)


def test_probabilities_at_the_ends(gpu):
    q = torch.randn(1, 2, 20, 8, device=gpu)
    for dtype in (torch.float64, torch.float32, torch.float16):
        x = q.to(dtype).requires_grad_()
        out = sdpa(x, x, x, dropout_p=1.0)
        (grad,) = torch.autograd.grad(out.sum(), x)
        assert not out.any() and not grad.any()
        x = x.detach()
        off = sdpa(x, x, x, dropout_p=1e-17) - sdpa(x, x, x)
        assert float(off.abs().max()) <= 4 * ROUNDING[dtype]
    assert torch.equal(sdpa(q, q, q, dropout_p=0), sdpa(q, q, q, dropout_p=-1))
    with pytest.raises(RuntimeError, match="give 0 to 1"):
        sdpa(q, q, q, dropout_p=1.5)
    with pytest.raises(RuntimeError, match="nan; give 0 to 1"):
        sdpa(q, q, q, dropout_p=math.nan)
    wrong = torch.zeros(3, device=gpu, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="two numbers of int64"):
        torch._C._attention(q, q, q, dropout=0.5, start=wrong)
    with pytest.raises(NotImplementedError, match=r"nn\.functional"):
        x = q.cpu()
        torch._C._attention(x, x, x, dropout=0.5)


def test_nothing_to_attend_to(gpu):
    q = torch.zeros(2, 3, 4, device=gpu, requires_grad=True)
    out = sdpa(q, q[:, :0], q[:, :0], dropout_p=0.5)
    assert out.tolist() == torch.zeros(2, 3, 4).tolist()
    (grad,) = torch.autograd.grad(out.sum(), q, create_graph=True)
    assert grad.tolist() == torch.zeros(2, 3, 4).tolist()
    same = q[..., :0].detach()
    torch.manual_seed(6)
    found = sdpa(same, same, torch.eye(3, device=gpu), dropout_p=0.5).cpu() != 0
    assert torch.equal(found, mask_of(gpu, (2, 3, 3), 0.5, 6))


@pytest.mark.parametrize(
    "kind", ["causal", pytest.param("plain", marks=pytest.mark.slow), "bool"]
)
def test_first_and_second_derivatives(gpu, kind):
    torch.manual_seed(2)
    q, k, v = (
        torch.randn(*s, device=gpu, dtype=torch.float64).requires_grad_()
        for s in ((4, 3, 2), (2, 4, 2), (2, 4, 1))
    )
    mask = None
    if kind == "bool":
        mask = torch.rand(3, 4, device=gpu) > 0.3
        mask[1] = False

    def run(q, k, v):
        torch.manual_seed(7)
        return sdpa(q, k, v, mask, 0.4, kind == "causal", enable_gqa=True)

    assert gradcheck(run, (q, k, v))
    assert gradgradcheck(run, (q, k, v))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_recorded_gradient_is_that_of_the_kernels(gpu, dtype):
    """Of a value that broadcasts, whose batches have masks of their own."""
    torch.manual_seed(8)
    q, k, v = (
        torch.randn(*s, device=gpu).to(dtype).requires_grad_()
        for s in ((2, 40, 8), (2, 150, 8), (3, 1, 150, 8))
    )
    out = sdpa(q, k, v, dropout_p=0.3)
    weight = torch.randn(*out.shape, device=gpu).to(dtype)
    found = torch.autograd.grad(out, (q, k, v), weight, retain_graph=True)
    recorded = torch.autograd.grad(out, (q, k, v), weight, create_graph=True)
    for one, other in zip(found, recorded, strict=True):
        worst = float((one - other).detach().abs().max())
        assert worst <= 16 * ROUNDING[dtype] * float(one.abs().max())


def test_a_mask_that_learns(gpu):
    """Composed of products and a softmax, with the kernels' dropout: gradcheck compares
    it with calls whose mask does not learn."""
    torch.manual_seed(3)
    of = [
        torch.randn(*s, device=gpu, dtype=torch.float64).requires_grad_()
        for s in ((2, 3, 2), (2, 4, 2), (2, 4, 1), (3, 4))
    ]

    def run(*of):
        torch.manual_seed(7)
        return sdpa(*of, dropout_p=0.4)

    assert gradcheck(run, of)
    assert torch.equal(run(*of) == 0, run(*(x.detach() for x in of)) == 0)
    worst = (run(*of) - run(*(x.detach() for x in of))).detach().abs().max()
    assert float(worst) < 1e-12


def test_dropout_of_shares_alone(gpu):
    """Higher derivatives and masks that learn have it."""
    shares, p = torch.rand(3, 40, 50, device=gpu), 0.4
    value = torch.zeros(2, 1, 50, 7, device=gpu)
    torch.manual_seed(5)
    found = torch._C._attention_dropout(shares, value, p)
    kept = mask_of(gpu, (2, 3, 40, 50), p, 5).to(gpu)
    expected = torch.where(kept, shares / (1 - p), 0)
    assert float((found - expected).abs().max()) < 1e-6
    alike = torch._C._attention_dropout(shares, shares.mT, 0.0)
    assert torch.equal(alike, shares)
    assert not torch._C._attention_dropout(shares, shares.mT, 1.0).any()
    assert torch._C._attention_dropout(shares[:, :0], shares.mT, p).shape == (3, 0, 50)
    for bad in (-0.5, 1.5, math.nan):
        with pytest.raises(RuntimeError, match="give 0 to 1"):
            torch._C._attention_dropout(shares, shares.mT, bad)
    with pytest.raises(RuntimeError, match=r"1 and value 3 dimensions"):
        torch._C._attention_dropout(shares[0, 0], shares, p)
    with pytest.raises(NotImplementedError, match=r"nn\.functional"):
        torch._C._attention_dropout(shares.cpu(), shares.cpu().mT, p)
    assert torch._C._attention_dropout(
        shares.to("meta"), value.to("meta"), p
    ).shape == (2, 3, 40, 50)


def test_observers_see_a_mask_alone(gpu):
    """It is no attention, which a FlopCounterMode counts."""
    from pydevtensor.utils.flop_counter import FlopCounterMode

    shares, value = torch.rand(3, 40, 50, device=gpu), torch.rand(2, 1, 50, 7).to(gpu)
    for start in (None, torch.tensor([3, 4], device=gpu)):
        with torch.profiler.profile() as prof:
            torch._C._attention_dropout(shares, value, 0.4, start)
        (mask,) = (e for e in prof.events() if e.name == "dropout_mask")
        assert mask.kind == "kernel" and mask.bytes == 2 * 3 * 40 * 50
    with FlopCounterMode(display=False) as counter:
        torch._C._attention_dropout(shares, value, 0.4)
    assert counter.get_flop_counts() == {}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_each_replay_has_another_mask(gpu, dtype):
    """The one that its gradients have; those of the same calls without a graph."""
    torch.manual_seed(10)
    q = torch.randn(1, 2, 40, 8, device=gpu).to(dtype).requires_grad_()

    def work():
        one, two = (sdpa(q, q, q, dropout_p=0.5) for _ in range(2))
        (grad,) = torch.autograd.grad((one * two).sum(), q)
        return one.detach(), two.detach(), grad

    torch.manual_seed(8)
    g, results = captured(work, gpu)
    replayed = []
    for _ in range(3):
        g.replay()
        replayed.append([x.cpu() for x in results])
    assert not torch.equal(replayed[0][0], replayed[0][1])
    torch.manual_seed(8)
    for n, given in enumerate(replayed):
        assert not n or not torch.equal(given[0], replayed[n - 1][0])
        for one, other in zip(given, work(), strict=True):
            assert torch.equal(one, other.cpu())


def test_backward_on_another_stream_and_twice(gpu):
    torch.manual_seed(11)
    q = torch.randn(1, 2, 40, 8, device=gpu).requires_grad_()
    stream = torch.cuda.Stream(gpu)
    stream.wait_stream(torch.cuda.current_stream(gpu))
    with torch.cuda.stream(stream):
        out = sdpa(q, q, q, dropout_p=0.5)
    torch.cuda.current_stream(gpu).wait_stream(stream)
    loss = out.square().sum()
    (first,) = torch.autograd.grad(loss, q, retain_graph=True)
    sdpa(q, q, q, dropout_p=0.5)  # another mask
    (second,) = torch.autograd.grad(loss, q)
    assert torch.equal(first, second)


def test_checkpoints_draw_the_same_mask_again(gpu):
    from pydevtensor.utils.checkpoint import checkpoint

    q = torch.randn(1, 2, 40, 8, device=gpu).requires_grad_()

    def run(x):
        return sdpa(x, x, x, dropout_p=0.5).square().sum()

    grads = []
    for call in (run, lambda x: checkpoint(run, x, use_reentrant=False)):
        torch.manual_seed(12)
        grads.append(torch.autograd.grad(call(q), q)[0])
    assert torch.equal(*grads)


def test_layers_in_training(gpu):
    """nn.MultiheadAttention and an encoder's layer pass dropout on."""
    torch.manual_seed(13)
    x = torch.randn(2, 20, 16, device=gpu)
    layer = nn.MultiheadAttention(16, 2, dropout=0.5, batch_first=True).to(gpu)
    torch.manual_seed(1)
    found, _ = layer(x, x, x, need_weights=False)
    kept = mask_of(gpu, (2, 2, 20, 20), 0.5, 1)
    q, k, v = (
        t.view(2, 20, 2, 8).transpose(1, 2).cpu().double()
        for t in F.linear(x, layer.in_proj_weight, layer.in_proj_bias).chunk(3, -1)
    )
    expected = whole(q, k, v, kept, 0.5).transpose(1, 2).reshape(2, 20, 16)
    expected = layer.to("cpu").double().out_proj(expected)
    assert float((found.cpu() - expected).abs().max()) < 1e-5
    encoder = nn.TransformerEncoderLayer(16, 2, 32, 0.5, batch_first=True).to(gpu)
    encoder(x).sum().backward()
    assert all(w.grad.isfinite().all() for w in encoder.parameters())


def test_memory_grows_with_the_length_alone(gpu):
    q = torch.randn(1, 1, 2048, 8, device=gpu).requires_grad_()
    torch.cuda.reset_peak_memory_stats(gpu)
    before = torch.cuda.memory_allocated(gpu)
    sdpa(q, q, q, dropout_p=0.5, is_causal=True).sum().backward()
    # A matrix of scores has 16 MB.
    assert torch.cuda.max_memory_allocated(gpu) - before < 2 << 20
