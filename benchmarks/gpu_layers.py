"""What bench_gpu.py measures of networks: layers that take time for products as well as
for memory, and whole steps of training."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from gpu_cases import Case, functional, images, moves

ATTENTION, CONV, RECURRENT = "attention", "convolutions", "recurrent layers"
BACKWARD, REST = "layers, backward", "nonzero, gradients"


def gradients(t: Any, inputs: Any, y: Any, g: Any) -> Any:
    return t.autograd.grad(y, inputs, g, retain_graph=True)


# --- attention ------------------------------------------------------------------------

HEAD = 64


def length(n):
    return max(16, min(1024, n // HEAD))


def heads(dtype, size=HEAD):
    """q, k and v of n elements in all of their heads, each of `size`."""

    def make(t, n):
        count = max(1, n // (length(n) * size))
        shape = (count, 1, length(n), size)
        return tuple(t.rand(*shape, device="cuda").to(getattr(t, dtype)) for _ in "qkv")

    return make


def attend(**options):
    return lambda t, q, k, v: functional(t).scaled_dot_product_attention(
        q, k, v, **options
    )


def attended(dtype, size, **options):
    def make(t, n):
        inputs = [x.requires_grad_() for x in heads(dtype, size)(t, n)]
        y = attend(**options)(t, *inputs)
        return inputs, y, t.rand_like(y)

    return make


def attention_case(name, dtype, backward=False, size=HEAD, **options):
    half = 0.5 if options.get("is_causal") else 1.0
    bytes_of = 4 if dtype == "float32" else 2
    tensors, products = (8, 10) if backward else (4, 4)
    return Case(
        ATTENTION,
        name,
        attended(dtype, size, **options) if backward else heads(dtype, size),
        gradients if backward else attend(**options),
        lambda n: tensors * bytes_of * n,
        operations=lambda n: half * products * n * length(n),
        products=dtype,
    )


# --- convolutions ---------------------------------------------------------------------

CHANNELS = 64


def kernel_of(t, groups, dtype):
    w = t.rand(CHANNELS, CHANNELS // groups, 3, 3, device="cuda")
    return w.to(getattr(t, dtype))


def convolve(groups=1):
    return lambda t, x, w: functional(t).conv2d(x, w, padding=1, groups=groups)


def with_tf32(work, allowed):
    """The work, with TF32 in convolutions or without."""

    def done(t, *operands):
        before, t.backends.cudnn.allow_tf32 = t.backends.cudnn.allow_tf32, allowed
        try:
            return work(t, *operands)
        finally:
            t.backends.cudnn.allow_tf32 = before

    return done


def convolution(dtype="float32", groups=1):
    def make(t, n):
        return images(t, n)[0].to(getattr(t, dtype)), kernel_of(t, groups, dtype)

    return make


def convolved(dtype="float32", groups=1):
    def make(t, n):
        x, w = (each.requires_grad_() for each in convolution(dtype, groups)(t, n))
        y = convolve(groups)(t, x, w)
        return [x, w], y, t.rand_like(y)

    return make


def convolution_case(name, products="float32", groups=1, backward=False):
    """Operands once: patches that are written on the way are our own affair."""
    dtype = "float32" if products == "tf32" else products
    size = 4 if dtype == "float32" else 2
    times = 2 if backward else 1
    return Case(
        CONV,
        name,
        (convolved if backward else convolution)(dtype, groups),
        with_tf32(gradients if backward else convolve(groups), products == "tf32"),
        lambda n: times * 2.0 * size * n,
        operations=lambda n: times * 2.0 * 9 * CHANNELS / groups * n,
        products=products,
    )


# --- others ---------------------------------------------------------------------------


def lstm_case(name, dtype, bytes_of):
    def make(t, n):
        steps, width = (32, 512) if n > 1 << 20 else (4, 16)
        layer = t.nn.LSTM(width, width).to("cuda", getattr(t, dtype))
        x = t.rand(steps, max(1, n // (steps * width)), width, device="cuda")
        return layer, x.to(layer.weight_hh_l0.dtype)

    return Case(
        RECURRENT,
        name,
        make,
        lambda t, layer, x: layer(x)[0],
        lambda n: 18.0 * bytes_of * n,
        operations=lambda n: 16.0 * 512 * n,
        products=dtype,
    )


def normed_batch(t, n):
    x = images(t, n)[0].requires_grad_()
    w, b = (t.rand(CHANNELS, device="cuda").requires_grad_() for _ in range(2))
    y = functional(t).batch_norm(x, None, None, w, b, True)
    return [x, w, b], y, t.rand_like(y)


def pooled(t, n):
    x = images(t, n)[0].requires_grad_()
    y = functional(t).max_pool2d(x, 2)
    return [x], y, t.rand_like(y)


def mask(t, n):
    return (t.rand(4 * n, device="cuda") > 0.9,)


def masked(t, n):
    x = t.rand(n, device="cuda")
    return x, x > 0.9


def scaled(t, n):
    """A scaler, and an optimizer of 100 parameters with gradients."""
    ps = [t.nn.Parameter(t.rand(max(1, n // 100), device="cuda")) for _ in range(100)]
    for p in ps:
        p.grad = t.ones_like(p)
    scaler = t.amp.GradScaler("cuda", init_scale=1.0)
    scaler.scale(t.ones((), device="cuda"))
    return scaler, t.optim.SGD(ps, 0.1)


def unscale(t, scaler, optimizer):
    # Forget that it was called, without the launches of update().
    torch = t.__name__ == "torch"
    (scaler._per_optimizer_states if torch else scaler._stages).clear()
    scaler.unscale_(optimizer)


LAYERS = (
    attention_case("forward", "float32"),
    attention_case("forward, bfloat16", "bfloat16"),
    attention_case("forward, causal, bfloat16", "bfloat16", is_causal=True),
    attention_case("backward", "float32", True),
    attention_case("backward, bfloat16", "bfloat16", True),
    attention_case("backward, causal, bfloat16", "bfloat16", True, is_causal=True),
    attention_case("forward, dropout, bfloat16", "bfloat16", dropout_p=0.1),
    attention_case("backward, dropout, bfloat16", "bfloat16", True, dropout_p=0.1),
    attention_case("forward, bfloat16, size 128", "bfloat16", size=128),
    attention_case("backward, bfloat16, size 128", "bfloat16", True, 128),
    convolution_case("3 x 3 of 64"),
    convolution_case("3 x 3 of 64, TF32", "tf32"),
    convolution_case("3 x 3 of 64, bfloat16", "bfloat16"),
    convolution_case("3 x 3 of 64, backward", backward=True),
    convolution_case("3 x 3 of 64, backward, bfloat16", "bfloat16", backward=True),
    convolution_case("depthwise 3 x 3", groups=CHANNELS),
    convolution_case("depthwise 3 x 3, backward", groups=CHANNELS, backward=True),
    lstm_case("LSTM", "float32", 4),
    lstm_case("LSTM, bfloat16", "bfloat16", 2),
    Case(BACKWARD, "batch_norm", normed_batch, gradients, moves(4)),
    Case(BACKWARD, "max_pool2d", pooled, gradients, moves(0.75)),
    Case(REST, "nonzero of a tenth", mask, lambda t, m: m.nonzero(), moves(1, 0.8)),
    Case(REST, "x[mask] of a tenth", masked, lambda t, x, m: x[m], moves(1.25, 0.1)),
    Case(REST, "GradScaler.unscale_", scaled, unscale, moves(1)),
)


# --- steps of training ----------------------------------------------------------------


def step_of(t, net, x, y, autocast=False):
    loss = t.nn.CrossEntropyLoss()
    optimizer = t.optim.Adam(net.parameters(), lr=1e-3, capturable=True)

    def step():
        optimizer.zero_grad()
        with t.autocast("cuda", dtype=t.bfloat16, enabled=autocast):
            found = loss(net(x).flatten(0, -2), y)
        found.backward()
        optimizer.step()

    return step


def layered(t, small):
    """784-512-512-10, 256 rows."""
    net = []
    for before, after in pairwise((784, 512, 512, 10)):
        net += [t.nn.Linear(before, after), t.nn.ReLU()]
    x, y = t.rand(256, 784, device="cuda"), t.randint(0, 10, (256,), device="cuda")
    return step_of(t, t.nn.Sequential(*net[:-1]).to("cuda"), x, y)


def replayed(t, small):
    """The same as one graph."""
    step, stream = layered(t, small), t.cuda.Stream()
    stream.wait_stream(t.cuda.current_stream())
    with t.cuda.stream(stream):
        for _ in range(3):
            step()
    t.cuda.current_stream().wait_stream(stream)
    graph = t.cuda.CUDAGraph()
    with t.cuda.graph(graph):
        step()

    def replay(inputs_of=step):  # which the graph reads
        graph.replay()

    return replay


def gpt_block(t, small):
    """Of width 768 with 12 heads, on 8 x 1024 words, in bfloat16."""
    width, words, rows = (32, 8, 1) if small else (768, 1024, 8)
    net = t.nn.TransformerEncoderLayer(
        width, 2 if small else 12, 4 * width, 0.0, "gelu", batch_first=True
    ).to("cuda")
    x = t.rand(rows, words, width, device="cuda")
    y = t.randint(0, width, (rows * words,), device="cuda")
    return step_of(t, net, x, y, True)


def small_cnn(t, small):
    """Four convolutions of 64 channels, on 128 images of 32 x 32, in bfloat16."""
    net, width = [], 4 if small else 64
    for before, after in pairwise((3, *(width,) * 4)):
        net += [t.nn.Conv2d(before, after, 3, padding=1), t.nn.BatchNorm2d(after)]
        net += [t.nn.ReLU(), t.nn.MaxPool2d(2)]
    net += [t.nn.Flatten(), t.nn.Linear(width * 2 * 2, 10)]
    count = 2 if small else 128
    x = t.rand(count, 3, 32, 32, device="cuda")
    y = t.randint(0, 10, (count,), device="cuda")
    return step_of(t, t.nn.Sequential(*net).to("cuda"), x, y, True)


# By name: a step, given the library and whether it has to be small.
NETWORKS = {
    "784-512-512-10, Adam": layered,
    "784-512-512-10, a graph": replayed,
    "GPT block, bfloat16": gpt_block,
    "CNN, bfloat16": small_cnn,
}
# Of PyTorch's speed.
NETWORK_GOAL = 0.9
