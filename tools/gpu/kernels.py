"""One launch of each kind of kernel, for a profiler. The inputs are copies from
the host, which launch none."""

import re
import sys
from itertools import pairwise

N = 1 << 24  # elements: 64 MiB of float32

# What is launched, and how the name of a kernel begins that the profiler has to have
# measured. Attention has one for each kind of GPU.
KERNELS = {
    "add": "elementwise_kernel",
    "add a row": "elementwise_kernel",
    "add a tail": "elementwise_kernel",
    "gcd": "elementwise_kernel",
    "digamma": "elementwise_kernel",
    "transpose": "transpose_tiles",
    "a slice": "copy_words",
    "to half": "convert_floats",
    "sum": "reduce_kernel",
    "sum of rows": "reduce_kernel",
    "argmax of rows": "argreduce_kernel",
    "var of rows": "moments_kernel",
    "softmax": "nn_kernel",
    "layer norm": "nn_kernel",
    "layer norm backward": "columns_kernel",
    "batch norm": "moments_kernel",
    "cumsum": "scan_kernel",
    "sort of rows": "chunk_kernel",
    "sort": "move_kernel",
    "nonzero": "write_places",
    "index_select": "index_rows",
    "rand": "random_kernel",
    "dropout": "dropout_kernel",
    "max pooling": "pooling_kernel",
    "interpolate": "pick_kernel",
    "interpolate, bilinear": "resample_kernel",
    "convolution": "gather_patches",
    "attention": "attention_forward",
    "attention, float16": "attention_forward",
    "attention backward, float16": "attention_backward",
    "LSTM": "step_kernel",
    "Adam": "update_kernel",
    "norm of gradients": "norm_kernel",
}
HEAD = re.compile(r"^ .*\bContext \d+, Stream \d+", re.M)


def missing_in(log):
    """The kernels that the profiler's output does not show with a measurement."""
    starts = [*(found.start() for found in HEAD.finditer(log)), len(log)]
    parts = [log[begin:end] for begin, end in pairwise(starts)]
    measured = [p.splitlines()[0] for p in parts if "Speed Of Light" in p]
    wanted = dict.fromkeys(KERNELS.values())
    return [
        name
        for name in wanted
        if not any(re.search(rf"\b{name}", line) for line in measured)
    ]


def launches(torch, n):
    import numpy as np

    F = torch.nn.functional
    source = np.random.default_rng(0).random(n, dtype=np.float32)
    x = torch.from_numpy(source).to("cuda")
    m, row = x.reshape(-1, 1024), x[:1024]
    index = torch.from_numpy(np.arange(n // 1024)[::-1].copy()).to("cuda")
    images = x.reshape(-1, 4, 16, 16)
    words = x.reshape(-1, 1, min(1024, n // 64), 64)
    weight = x[: 4 * 4 * 9].reshape(4, 4, 3, 3)
    halves = torch.from_numpy(source.astype(np.float16)).to("cuda").reshape(words.shape)
    kept = halves.detach().requires_grad_()
    attended = F.scaled_dot_product_attention(kept, kept, kept)
    holds = torch.from_numpy(source > 0.5).to("cuda")
    lstm = torch.nn.LSTM(64, 64).to("cuda")
    steps = x.reshape(2, -1, 64)
    p = torch.nn.Parameter(x)
    p.grad = x
    adam = torch.optim.Adam([p])
    scale = torch.nn.Parameter(row)
    normed = F.layer_norm(m, (1024,), scale, scale)

    def convolution():
        with torch.backends.cudnn.flags(enabled=False):  # our kernels, not cuDNN's
            F.conv2d(images, weight, padding=1)

    return {
        "add": lambda: x + x,
        "add a row": lambda: m + row,
        "add a tail": lambda: x[: n - 3] + x[: n - 3],
        "gcd": lambda: index.gcd(index + 6),
        "digamma": lambda: x.digamma(),
        "transpose": lambda: m.t().contiguous(),
        "a slice": lambda: m[:, 1:].contiguous(),
        "to half": lambda: x.half(),
        "sum": lambda: x.sum(),
        "sum of rows": lambda: m.sum(1),
        "argmax of rows": lambda: m.argmax(1),
        "var of rows": lambda: m.var(1),
        "softmax": lambda: m.softmax(-1),
        "layer norm": lambda: F.layer_norm(m, (1024,)),
        "layer norm backward": lambda: normed.backward(m, retain_graph=True),
        "batch norm": lambda: F.batch_norm(images, None, None, training=True),
        "cumsum": lambda: m.cumsum(-1),
        "sort of rows": lambda: m.sort(),
        "sort": lambda: x.sort(),
        "nonzero": lambda: holds.nonzero(),
        "index_select": lambda: m.index_select(0, index),
        "rand": lambda: torch.rand(n, device="cuda"),
        "dropout": lambda: F.dropout(x),
        "max pooling": lambda: F.max_pool2d(images, 2),
        "interpolate": lambda: F.interpolate(images, scale_factor=2.0),
        "interpolate, bilinear": lambda: F.interpolate(
            images, scale_factor=2.0, mode="bilinear"
        ),
        "convolution": convolution,
        "attention": lambda: F.scaled_dot_product_attention(words, words, words),
        "attention, float16": lambda: F.scaled_dot_product_attention(
            halves, halves, halves
        ),
        "attention backward, float16": lambda: attended.backward(
            halves, retain_graph=True
        ),
        "LSTM": lambda: lstm(steps),
        "Adam": adam.step,
        "norm of gradients": lambda: torch.nn.utils.clip_grad_norm_([p], 1.0),
    }


def main():
    import pydevtensor as torch

    if not torch.cuda.is_available():
        sys.exit(f"kernels.py: {torch.cuda.why_unavailable()}")
    kind = "simulated" if torch.cuda.is_simulated() else "real"
    print(f"ran on cuda:0 {torch.cuda.get_device_name(0)} ({kind})", flush=True)
    made = launches(torch, 1 << 16 if kind == "simulated" else N)
    for name in KERNELS:
        print(f"--- {name}", flush=True)
        made[name]()
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
