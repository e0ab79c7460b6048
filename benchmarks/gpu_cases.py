"""What bench_gpu.py measures: kernels by family, written once for pydevtensor and
PyTorch, and for CuPy where it has the same."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Case:
    family: str
    name: str
    # Of the library and n, the number of float32 elements of a size in bytes.
    inputs: Callable[[Any, int], tuple]
    work: Callable[..., Any]  # of the library and the inputs
    moved: Callable[[int], float]  # bytes that have to be read and written
    cupy: Callable[..., Any] | None = None  # of cupy and the inputs
    operations: Callable[[int], float] | None = (
        None  # of products, two for a multiply-add
    )
    products: str = "float32"  # their type


def flat(t, n):
    return (t.rand(n, device="cuda"),)


def pair(t, n):
    return t.rand(n, device="cuda"), t.rand(n, device="cuda")


def odd(t, n):
    """Sizes that are neither a multiple of a pack of 16 bytes nor of a block."""
    return tuple(x[: n - n % 4 - 3] for x in pair(t, n + 4))


def three(t, n):
    return *pair(t, n), t.rand(n, device="cuda")


def rows_of(length):
    def make(t, n):
        return (t.rand(max(n // length, 1), length, device="cuda"),)

    return make


def square(t, n):
    side = max(int(n**0.5) // 32 * 32, 32)
    return (t.rand(side, side, device="cuda"),)


def two_squares(t, n):
    return (*square(t, n), *square(t, n))


def matrix_row(t, n):
    m = rows_of(1024)(t, n)[0]
    return m, t.rand(m.shape[1], device="cuda")


def matrix_column(t, n):
    m = rows_of(1024)(t, n)[0]
    return m, t.rand(m.shape[0], 1, device="cuda")


def of_type(name, count=1):
    """The same number of bytes, in another type."""

    def make(t, n):
        dtype = getattr(t, name)
        size = t.empty(0, dtype=dtype).element_size()
        if name == "bool":
            return tuple(
                t.rand(4 * n, device="cuda") > 0.5  # PyTorch has no random bools
                for _ in range(count)
            )
        if name.startswith("int"):
            return tuple(
                t.randint(0, 50, (4 * n // size,), device="cuda").to(dtype)
                for _ in range(count)
            )
        return tuple(
            t.rand(4 * n // size, device="cuda").to(dtype) for _ in range(count)
        )

    return make


def from_type(name):
    """n elements of a type, whatever their size."""

    def make(t, n):
        dtype = getattr(t, name)
        if name == "bool":
            return (t.rand(n, device="cuda") > 0.5,)
        if name.startswith("int"):
            return (t.randint(0, 50, (n,), device="cuda").to(dtype),)
        return (t.rand(n, device="cuda").to(dtype),)

    return make


def with_mask(t, n):
    return t.rand(n, device="cuda") > 0.5, *pair(t, n)


def with_classes(length):
    def make(t, n):
        m = rows_of(length)(t, n)[0]
        return m, t.randint(0, length, (m.shape[0],), device="cuda")

    return make


def with_index(t, n):
    m = rows_of(256)(t, n)[0]
    return m, t.randint(0, m.shape[0], (m.shape[0],), device="cuda")


def with_indices(t, n):
    m = rows_of(256)(t, n)[0]
    return m, t.randint(0, m.shape[0], tuple(m.shape), device="cuda")


def images(t, n):
    return (t.rand(max(1, n >> 16), 64, 32, 32, device="cuda"),)


def normed(t, n):
    m = rows_of(1024)(t, n)[0].requires_grad_()
    w = t.rand(1024, device="cuda").requires_grad_()
    b = t.rand(1024, device="cuda").requires_grad_()
    return m, w, b, t.nn.functional.layer_norm(m, (1024,), w, b), t.rand_like(m)


def batch(t, n):
    m = rows_of(256)(t, n)[0]
    return m, t.rand(256, device="cuda"), t.rand(256, device="cuda")


def parameters(make):
    """An optimizer of one parameter with a gradient."""

    def inputs(t, n):
        p = t.nn.Parameter(t.rand(n, device="cuda"))
        p.grad = t.rand(n, device="cuda")
        optimizer = make(t, p)
        optimizer.step()
        return (optimizer,)

    return inputs


def adam(t, p):
    more = {"fused": True} if t.__name__ == "torch" else {}
    return t.optim.Adam([p], lr=1e-3, **more)


def sgd(t, p):
    more = {"fused": True} if t.__name__ == "torch" else {}
    return t.optim.SGD([p], lr=1e-3, momentum=0.9, **more)


def gradients(t, m, w, b, y, g):
    return t.autograd.grad(y, (m, w, b), g, retain_graph=True)


def gelu(t, a):
    return 0.5 * a * (1 + t.tanh(0.8 * (a + 0.044715 * a * a * a)))


def in_one(work):
    """One kernel for a chain, where a library has that without compiling."""

    def run(t, *inputs):
        with t.fused() if hasattr(t, "fused") else nullcontext():
            return work(t, *inputs)

    return run


def complex_images(t, n):
    return (t.rand(max(1, n >> 19), 512, 512, 2, device="cuda"),)


def sparse_and_dense(t, n):
    """A matrix with 16 entries in each row, and 64 columns to multiply."""
    rows = max(n // 64, 1)
    entries = t.rand(16 * rows, device="cuda")
    starts = t.arange(0, 16 * rows + 1, 16, device="cuda")
    columns = t.randint(0, rows, (16 * rows,), device="cuda")
    matrix = t.sparse_csr_tensor(starts, columns, entries, (rows, rows))
    return matrix, t.rand(rows, 64, device="cuda")


def functional(t):
    return t.nn.functional


def moves(reads, writes=1.0):
    """Bytes, as multiples of n float32 elements."""
    return lambda n: 4.0 * n * (reads + writes)


ALIGNED, TAIL = "float32 and float64, whole blocks", "float32 with a tail"
HALVES, SMALL = "halves", "int8, bool"
LAYOUT = "broadcast, slices, transposed operands"
CONVERT, FILL, JOIN = "conversions", "fill, clone", "cat, sliced copies"
TURN, CHOICE = "transpose, permute", "where, clamp, lerp, addcmul"
SUM, BEST = "sums", "argmax, max(dim), var"
NN, LONG, NORM = "rows to 2048", "other rows, losses", "norms, backward"
SCAN, SORT, GATHER = "cumsum", "sort, topk", "gather, embedding"
RANDOM, OPTIM = "rand, randn, dropout", "optimizers"
WINDOW = "pooling, interpolate"
CHAIN, FOURIER, SPARSE = "chains in one kernel", "transforms", "sparse products"

CASES = (
    Case(
        ALIGNED, "a + b", pair, lambda t, a, b: a + b, moves(2), lambda c, a, b: a + b
    ),
    Case(ALIGNED, "exp", flat, lambda t, a: a.exp(), moves(1), lambda c, a: c.exp(a)),
    Case(
        ALIGNED,
        "float64 a + b",
        of_type("float64", 2),
        lambda t, a, b: a + b,
        moves(2),
        lambda c, a, b: a + b,
    ),
    Case(TAIL, "a + b, odd size", odd, lambda t, a, b: a + b, moves(2)),
    Case(TAIL, "exp, odd size", odd, lambda t, a, b: a.exp(), moves(1)),
    Case(HALVES, "float16 exp", of_type("float16"), lambda t, a: a.exp(), moves(1)),
    Case(
        HALVES,
        "bfloat16 a + b",
        of_type("bfloat16", 2),
        lambda t, a, b: a + b,
        moves(2),
    ),
    Case(SMALL, "int8 a + b", of_type("int8", 2), lambda t, a, b: a + b, moves(2)),
    Case(SMALL, "bool a & b", of_type("bool", 2), lambda t, a, b: a & b, moves(2)),
    Case(LAYOUT, "m + row", matrix_row, lambda t, m, r: m + r, moves(1)),
    Case(LAYOUT, "m + column", matrix_column, lambda t, m, c: m + c, moves(1)),
    Case(LAYOUT, "x - x.mean()", flat, lambda t, a: a - a.mean(), moves(2)),
    Case(
        LAYOUT,
        "m[:, 1:] * 2",
        rows_of(1024),
        lambda t, m: m[:, 1:] * 2,
        moves(1),
    ),
    Case(LAYOUT, "m.t() + m", two_squares, lambda t, a, b: a.t() + b, moves(2)),
    Case(
        CONVERT,
        "float16 to float32",
        from_type("float16"),
        lambda t, a: a.float(),
        moves(0.5),
    ),
    Case(
        CONVERT, "float32 to bfloat16", flat, lambda t, a: a.bfloat16(), moves(1, 0.5)
    ),
    Case(
        CONVERT,
        "bool to float32",
        from_type("bool"),
        lambda t, a: a.float(),
        moves(0.25),
    ),
    Case(
        CONVERT,
        "int64 to float32",
        from_type("int64"),
        lambda t, a: a.float(),
        moves(2),
    ),
    Case(FILL, "fill_", flat, lambda t, a: a.fill_(1.5), moves(0)),
    Case(FILL, "clone", flat, lambda t, a: a.clone(), moves(1)),
    Case(
        JOIN,
        "cat by columns",
        lambda t, n: rows_of(512)(t, n // 2) + rows_of(512)(t, n // 2),
        lambda t, a, b: t.cat((a, b), 1),
        moves(1),
    ),
    Case(
        JOIN,
        "m[:, 1:].contiguous()",
        rows_of(1024),
        lambda t, m: m[:, 1:].contiguous(),
        moves(1),
    ),
    Case(
        TURN,
        "m.t().contiguous()",
        square,
        lambda t, m: m.t().contiguous(),
        moves(1),
        lambda c, m: c.ascontiguousarray(m.T),
    ),
    Case(
        TURN,
        "permute(0, 2, 1)",
        lambda t, n: (t.rand(max(n // 8192, 1), 64, 128, device="cuda"),),
        lambda t, m: m.permute(0, 2, 1).contiguous(),
        moves(1),
    ),
    Case(CHOICE, "where", with_mask, lambda t, m, a, b: t.where(m, a, b), moves(2.25)),
    Case(CHOICE, "clamp", flat, lambda t, a: a.clamp(0.2, 0.8), moves(1)),
    Case(CHOICE, "lerp", pair, lambda t, a, b: a.lerp(b, 0.3), moves(2)),
    Case(CHOICE, "addcmul", three, lambda t, a, b, c: a.addcmul(b, c), moves(3)),
    Case(SUM, "of all", flat, lambda t, a: a.sum(), moves(1, 0), lambda c, a: a.sum()),
    Case(SUM, "of rows of 1000", rows_of(1000), lambda t, m: m.sum(1), moves(1, 0)),
    Case(SUM, "of columns", rows_of(1024), lambda t, m: m.sum(0), moves(1, 0)),
    Case(SUM, "of bools", of_type("bool"), lambda t, m: m.sum(), moves(1, 0)),
    Case(BEST, "argmax", flat, lambda t, a: a.argmax(), moves(1, 0)),
    Case(BEST, "max(1)", rows_of(1024), lambda t, m: m.max(1).values, moves(1, 0)),
    Case(BEST, "var(1)", rows_of(1024), lambda t, m: m.var(1), moves(1, 0)),
    Case(NN, "softmax of 1024", rows_of(1024), lambda t, m: m.softmax(-1), moves(1)),
    Case(NN, "log_softmax", rows_of(1024), lambda t, m: m.log_softmax(-1), moves(1)),
    Case(
        NN,
        "layer_norm of 1024",
        rows_of(1024),
        lambda t, m: functional(t).layer_norm(m, (m.shape[1],)),
        moves(1),
    ),
    Case(LONG, "softmax of 1001", rows_of(1001), lambda t, m: m.softmax(-1), moves(1)),
    Case(LONG, "softmax of 8192", rows_of(8192), lambda t, m: m.softmax(-1), moves(1)),
    Case(
        LONG,
        "softmax of 50257",
        rows_of(50257),
        lambda t, m: m.softmax(-1),
        moves(1),
    ),
    Case(
        LONG,
        "cross_entropy",
        with_classes(1000),
        lambda t, m, c: functional(t).cross_entropy(m, c),
        moves(1, 0),
    ),
    Case(NORM, "layer_norm backward", normed, gradients, moves(2)),
    Case(
        NORM,
        "batch_norm",
        batch,
        lambda t, m, w, b: functional(t).batch_norm(m, None, None, w, b, True),
        moves(1),
    ),
    Case(SCAN, "of rows", rows_of(1024), lambda t, m: m.cumsum(1), moves(1)),
    Case(SCAN, "of one row", flat, lambda t, a: a.cumsum(0), moves(1)),
    Case(SCAN, "of rows of 1001", rows_of(1001), lambda t, m: m.cumsum(1), moves(1)),
    Case(SCAN, "cummax", rows_of(1024), lambda t, m: m.cummax(1).values, moves(1, 3)),
    Case(SORT, "sort", flat, lambda t, a: a.sort().values, moves(1, 3)),
    Case(
        SORT,
        "sort of rows of 4096",
        rows_of(4096),
        lambda t, m: m.sort(1).values,
        moves(1, 3),
    ),
    Case(
        SORT,
        "sort of int64",
        of_type("int64"),
        lambda t, a: a.sort().values,
        moves(1, 2),
    ),
    Case(
        SORT, "topk of rows", rows_of(1024), lambda t, m: m.topk(8).values, moves(1, 0)
    ),
    Case(GATHER, "gather", with_indices, lambda t, m, i: m.gather(0, i), moves(3)),
    Case(
        GATHER,
        "embedding",
        with_index,
        lambda t, m, i: functional(t).embedding(i, m),
        moves(1),
    ),
    Case(
        GATHER,
        "index_select",
        with_index,
        lambda t, m, i: m.index_select(0, i),
        moves(1),
    ),
    Case(
        WINDOW,
        "max_pool2d",
        images,
        lambda t, x: functional(t).max_pool2d(x, 2),
        moves(1, 0.25),
    ),
    Case(
        WINDOW,
        "interpolate",
        images,
        lambda t, x: functional(t).interpolate(x, scale_factor=2.0),
        moves(1, 4),
    ),
    Case(RANDOM, "rand", flat, lambda t, a: a.uniform_(), moves(0)),
    Case(RANDOM, "randn", flat, lambda t, a: a.normal_(), moves(0)),
    Case(
        RANDOM, "dropout", flat, lambda t, a: functional(t).dropout(a), moves(1, 1.25)
    ),
    Case(OPTIM, "SGD, momentum", parameters(sgd), lambda t, o: o.step(), moves(3, 2)),
    Case(OPTIM, "Adam", parameters(adam), lambda t, o: o.step(), moves(4, 3)),
    Case(
        CHAIN,
        "relu(a * b + a)",
        pair,
        in_one(lambda t, a, b: (a * b + a).relu()),
        moves(2),
    ),
    Case(CHAIN, "gelu written out", flat, in_one(gelu), moves(1)),
    Case(
        FOURIER,
        "rfft of rows of 4096",
        rows_of(4096),
        lambda t, m: t.fft.rfft(m),
        moves(1),
    ),
    Case(
        FOURIER,
        "fft2 of 512 x 512",
        complex_images,
        lambda t, x: t.fft.fft2(t.view_as_complex(x)),
        moves(1),
    ),
    Case(SPARSE, "csr @ dense", sparse_and_dense, lambda t, m, x: m @ x, moves(1.75)),
)

# Host time: what a call costs before its kernel runs. a and b are vectors, m is 4 x 4.
TINY = {
    "a + b": lambda t, a, b, m: a + b,
    "a + 1.0": lambda t, a, b, m: a + 1.0,
    "a += b": lambda t, a, b, m: a.__iadd__(b),
    "exp": lambda t, a, b, m: t.exp(a),
    "sum": lambda t, a, b, m: a.sum(),
    "x[0]": lambda t, a, b, m: a[0],
    "reshape": lambda t, a, b, m: a.reshape(3, 1),
    "m @ m": lambda t, a, b, m: m @ m,
}

# Batch, m, n, k.
PRODUCTS = (
    *((1, side, side, side) for side in (256, 512, 1024, 2048, 4096, 8192)),
    (64, 256, 256, 256),
    (1, 64, 64, 1 << 20),
    (1, 1, 1, 1 << 24),
)

# The share of the time that its bytes and its products take on the same GPU, in a plain
# copy and in a large product, that a case has to reach.
GOAL = 0.75
GOALS = {
    "a + b, odd size": 0.5,
    "exp, odd size": 0.5,
    "m[:, 1:] * 2": 0.5,
    "m[:, 1:].contiguous()": 0.5,
    "m.t() + m": 0.3,
    "m.t().contiguous()": 0.7,
    "permute(0, 2, 1)": 0.7,
    "of rows": 0.7,
    "of one row": 0.5,
    "of rows of 1001": 0.5,
    "cummax": 0.5,
    # Passes of 8 bits move 80 bytes for an element of 4, and twice that for one of 8.
    "sort": 0.1,
    "sort of rows of 4096": 0.1,
    "sort of int64": 0.1,
    "topk of rows": 0.1,
    "gather": 0.5,
    "embedding": 0.6,
    "index_select": 0.6,
    "batch_norm": 0.5,
    "interpolate": 0.8,
    "max_pool2d": 0.8,
    "LSTM": 0.4,
    "LSTM, bfloat16": 0.3,
    "gelu written out": 0.35,
    "fft2 of 512 x 512": 0.4,
    "csr @ dense": 0.1,
    # Philox takes more instructions than the rest of a tile.
    "forward, dropout, bfloat16": 0.15,
    "backward, dropout, bfloat16": 0.15,
}
