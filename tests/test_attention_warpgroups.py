"""Attention of 16 bits on GPUs of compute capability 9.0, which has kernels of its own.

A simulated H100 decodes the descriptions of matrices in shared memory, has no sums before
they are awaited, and reads some tiles early and some late.
"""

import pytest
from isolated import python

START = """
import itertools, math
import pydevtensor as torch

sdpa = torch.nn.functional.scaled_dot_product_attention
HALVES = {torch.float16: 2e-3, torch.bfloat16: 1.5e-2}
torch.manual_seed(1)

def made(batch, heads, length, size, dtype, layout="dense"):
    if layout == "interleaved":  # heads beside each other, as linear layers give them
        x = torch.randn(batch, length, heads, size).transpose(1, 2)
    elif layout == "spread":
        x = torch.randn(batch, heads, length, size + 8)[..., :size]
    else:
        x = torch.randn(batch, heads, length, size)
    return x.to(dtype)

def on_gpu(x):
    y = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="cuda")
    y.copy_(x)
    assert y.stride() == x.stride()
    return y.requires_grad_()

def whole(q, k, v, causal, scale):
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    scores = q @ k.transpose(-2, -1) * scale
    if causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -math.inf)
    return scores.softmax(-1) @ v

def check(of, causal=False, scale=0.3, layout="dense"):
    bound = HALVES[of[0].dtype]
    gpu = [on_gpu(x) for x in of]
    wide = [x.double().requires_grad_() for x in of]
    found = sdpa(*gpu, is_causal=causal, scale=scale, enable_gqa=True)
    expected = whole(*wide, causal, scale)
    weight = made(*found.shape, of[0].dtype, layout)
    found.backward(on_gpu(weight).detach())
    expected.backward(weight.double())
    pairs = [(found, expected), *((x.grad, y.grad) for x, y in zip(gpu, wide))]
    for name, (one, other) in zip(("out", "query", "key", "value"), pairs):
        worst = float((one.cpu().double() - other).abs().max())
        what = name, [tuple(x.shape) for x in of], of[0].dtype, causal
        # Where there is one key, gradients of products are 0, less what rounding leaves.
        assert worst <= bound * max(0.01, float(other.abs().max())), (worst, what)
"""
H100 = {"PYDEVTENSOR_SIM_GPUS": "1", "PYDEVTENSOR_SIM_CARD": "h100"}


@pytest.mark.parametrize("causal", [pytest.param(False, marks=pytest.mark.slow), True])
def test_lengths_and_sizes_of_heads(causal):
    """One to five tiles of 128 keys and of 64 rows; blocks of 128 and 192 rows and of
    128 keys."""
    python(
        START
        + f"""
for (length, keys), (size, values) in [
    ((1, 1), (8, 8)),
    ((65, 128), (64, 64)),
    ((200, 260), (64, 56)),
    ((63, 517), (40, 64)),
    ((1, 129), (128, 128)),
    ((150, 270), (120, 128)),
    ((64, 400), (64, 72)),
    ((400, 70), (56, 64)),
]:
    for dtype in HALVES:
        heads = 3 if length == 150 else 1  # for one of key
        check([made(1, heads, length, size, dtype), made(1, 1, keys, size, dtype),
               made(1, 1, keys, values, dtype)], {causal})
""",
        **H100,
    )


@pytest.mark.slow
def test_heads_and_layouts():
    python(
        START
        + """
for layout, causal, dtype, size in [
    ("interleaved", True, torch.bfloat16, 64),
    ("interleaved", False, torch.float16, 128),
    ("spread", True, torch.float16, 72),
    ("spread", False, torch.bfloat16, 16),
]:
    check([made(2, 4, 70, size, dtype, layout), made(2, 2, 140, size, dtype, layout),
           made(2, 2, 140, size, dtype, layout)], causal, layout=layout)
""",
        **H100,
    )


def test_which_calls_they_are_for():
    """Another kernel, which takes masks, rounds in other places."""
    python(
        START
        + """
everything = torch.ones(9, 200, dtype=torch.bool).cuda()

def is_theirs(of, scale=0.3):
    of = [on_gpu(x) for x in of]
    pair = [sdpa(*of, mask, scale=scale) for mask in (None, everything)]
    weight = torch.randn(*pair[0].shape).to(of[0].dtype).cuda()
    grads = [torch.autograd.grad(y, of, weight) for y in pair]
    for one, other in zip(*grads):
        bound = 2 * HALVES[one.dtype] * float(other.abs().max())
        assert float((one - other).abs().max()) <= bound
    theirs = not pair[0].equal(pair[1])
    assert theirs == (not all(x.equal(y) for x, y in zip(*grads)))
    return theirs

for dtype, size in itertools.product(HALVES, (64, 128)):
    given = [made(1, 2, n, size, dtype) for n in (9, 200, 200)]
    assert is_theirs(given)
    assert not is_theirs(given, -0.3)
    # Rows that do not begin at multiples of 16 bytes.
    narrow = [x[..., :-1] for x in given]
    assert not is_theirs(narrow)
""",
        **H100,
    )


def test_scores_of_any_size():
    """Rows whose greatest score comes late, and infinite and missing numbers."""
    python(
        START
        + """
q, k, v = (made(1, 1, 300, 64, torch.bfloat16) for _ in "qkv")
k[:, :, :40] *= 30  # the last tile is taken first
check([q, k, v], scale=1.0)
check([q * 0, k, v])
v[0, 0, 7, 3] = math.nan
found = sdpa(q.cuda(), k.cuda(), v.cuda(), is_causal=True).cpu()
assert found[0, 0, 7:, 3].isnan().all()
q[0, 0, 70] = math.inf
found = sdpa(q.cuda(), k.cuda(), v.cuda() * 0 + 1).cpu()
assert not found[0, 0, :70, :3].isnan().any()
assert found[0, 0, 70].isnan().all()
""",
        **H100,
    )


@pytest.mark.slow
def test_gradients_of_some_inputs():
    """One launch finds statistics of rows, one the gradient of query, one the others."""
    python(
        START
        + """
of = [on_gpu(made(1, 2, 130, 64, torch.bfloat16)).detach() for _ in "qkv"]
weight = made(1, 2, 130, 64, torch.bfloat16).cuda()

def gradients(*wanted):
    inputs = [x.clone().requires_grad_(i in wanted) for i, x in enumerate(of)]
    out = sdpa(*inputs)
    torch.cuda.synchronize()
    before = torch.cuda.sim_counters()["launches"]
    found = torch.autograd.grad(out, [inputs[i] for i in wanted], weight)
    torch.cuda.synchronize()
    return torch.cuda.sim_counters()["launches"] - before, found

count, every = gradients(0, 1, 2)
assert count == 3
for wanted, launches in [([0], 2), ([1], 2), ([2], 2), ([0, 2], 3)]:
    count, found = gradients(*wanted)
    assert count == launches
    assert all(x.equal(every[i]) for x, i in zip(found, wanted))
""",
        **H100,
    )


@pytest.mark.slow
def test_gradients_of_what_does_not_count():
    """Keys that no row takes have gradients of 0. Rows past the last one are zeros, whose
    product with an infinite key is not a number; so are keys, which count nothing even
    where all scores are far below 0."""
    python(
        START
        + """
for dtype, size, causal in itertools.product(HALVES, (64, 128), (False, True)):
    q, k, v, w = (made(1, 1, n, size, dtype) for n in (70, 300, 300, 70))
    q, k = q.abs(), k.clone()
    k[0, 0, 67] = -math.inf
    of = [on_gpu(x) for x in (q, k, v)]
    gradients = torch.autograd.grad(sdpa(*of, is_causal=causal), of[1:], w.cuda())
    for gradient in gradients:
        counts = gradient.cpu()[0, 0].any(-1).tolist()
        last = 70 if causal else 300
        assert counts == [i < last and i != 67 for i in range(300)]
        assert not gradient.isnan().any()
    of = [on_gpu(x) for x in (q + 3, k[:, :, :64] / 64 - 3, v[:, :, :64])]
    (query,) = torch.autograd.grad(sdpa(*of, is_causal=causal, scale=0.3), of[:1], w.cuda())
    assert query.isfinite().all()
""",
        **H100,
    )
