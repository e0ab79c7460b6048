"""Every kernel family of the CUDA backend on small inputs, beside the CPU.

As a program, runs them on cuda:0, a simulated GPU whose kernels are compiled with
checks, and says what the checks find and which results differ from the CPU's:
    python -P tools/kernel_check/families.py [--card CARD] [NAME...]
runs all of them, or those of these names. Sizes reach several blocks, parts of a row,
tiles and rounds, and their rests.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import plugin

CASES: dict[str, Callable[..., Any]] = {}


def case(function: Callable[..., Any]) -> Callable[..., Any]:
    CASES[function.__name__] = function
    return function


class Source:
    """Tensors for a device: the same numbers for each."""

    def __init__(self, torch: Any, device: str) -> None:
        self.torch, self.device = torch, device
        self.numbers = np.random.default_rng(7)

    def __call__(self, *shape: int, dtype: str = "float32", grad: bool = False) -> Any:
        values = self.numbers.standard_normal(shape)
        made = self.torch.from_numpy(values).to(getattr(self.torch, dtype))
        return made.to(self.device).requires_grad_(grad)

    def integers(self, top: int, *shape: int, dtype: str = "int64") -> Any:
        values = self.numbers.integers(0, top, shape)
        made = self.torch.from_numpy(values)
        return made.to(getattr(self.torch, dtype)).to(self.device)


def gradients(result: Any, *inputs: Any) -> list[Any]:
    (result * result).sum().backward()
    return [result, *(each.grad for each in inputs)]


# --- elements and movement


@case
def elementwise(torch: Any, new: Source) -> Any:
    x, y, d = new(37, 129), new(37, 129), new(1027, dtype="float64")
    n, z = new.integers(50, 1027), torch.complex(x, y)
    return [
        *((z * z.t().reshape(z.shape)).real, z.exp().imag, z.abs()),
        *(x + y, x.t() + y.t(), x[:, 1:] * y[:, :-1], x + y[0], x.exp(), x > y),
        *(d * d, d.sin(), n + n, n // 3, n > 7, x.half() + 1, x[:, ::2] * 2),
        *(torch.where(x > 0, x, y), x * (y > 0), x.half() * (y > 0)),
        x.half() * new.integers(9, 37, 129, dtype="uint8"),
        *(torch.special.airy_ai(x), torch.special.legendre_polynomial_p(d, 5)),
    ]


@case
def chains(torch: Any, new: Source) -> Any:
    x, y, row = new(37, 129), new(37, 129), new(129)
    with torch.fused():
        z = torch.relu(x * row + y[:, :1]) - 0.5
        h = (z.half() * x.t().reshape(x.shape)).tanh()
        held = torch.where((z > 0) & (y < 1), h, -h)
        tail = x[:, 1:] * 2 + x[:, :-1]
    return [z, held, held.bfloat16() * 3, tail]


@case
def wide_chains(torch: Any, new: Source) -> Any:
    n, few = new.integers(9, 37, 129), new.integers(9, 37, 129, dtype="uint8")
    d = new(37, 129).double()
    with torch.fused():
        held = torch.where((n > 3) & (few < 7), n * 2 + few, -n)
        scaled = (d * held - 0.5).tanh() + d.t().reshape(d.shape)
        tail = held[:, 1:] // 2 + held[:, :-1]
    return [held, scaled, tail.to(torch.int32) % 5, scaled.float() * 2]


@case
def ends_of_chains(torch: Any, new: Source) -> Any:
    x, layer_norm = new(37, 129), torch.nn.functional.layer_norm
    results = []
    for data in (x, x[:, 1:] * 1, new(2, 1029), new(2, 4100), new(1, 9000)):
        n = data.shape[-1]
        for end in (
            *(lambda t: t.sum(-1), lambda t: t.amax(-1), lambda t: t.norm(dim=-1)),
            *(lambda t: t.var(-1), lambda t: t.mean(), lambda t: t.var()),
            *(lambda t: t.softmax(-1), lambda t: t.log_softmax(-1)),
            lambda t, n=n: layer_norm(t, (n,)),
        ):
            with torch.fused():
                held = 2 - data * data[:, :1]
                results += [held, end(held), end(held.half() * 0.5)]
    with torch.fused():
        y = (x[:, 1:] * 3).requires_grad_()
        z = (y * 2).softmax(-1) * x[:, 1:] + layer_norm(y + 1, (128,), x[0, 1:]) * y
        z.sum().backward()
    total = (new(200_003) * 2).sum()
    return [*results, y.grad, total]


@case
def converting(torch: Any, new: Source) -> Any:
    x = new(41, 67)
    held = x.clone()
    held[:40, 3:66].fill_(2.0)  # rows that are cut out of wider ones
    return [
        held,
        *(x.half(), x.bfloat16(), x.double(), x.to(torch.int32), x.t().half()),
        *(x.half().t().contiguous(), x > 0, (x > 0).float(), x[:, 1::3].half()),
        *(x[:, 3:].double(), x[:, 3:].to(torch.int32), x.double()[:, 3:].float()),
    ]


@case
def transpose(torch: Any, new: Source) -> Any:
    x = new(3, 131, 77)
    return [
        x.to(getattr(torch, dtype)).transpose(1, 2).contiguous()
        for dtype in ("float32", "float64", "int8", "float16")
    ] + [x.permute(2, 0, 1).contiguous(), torch.cat([x, x], 1), x.flip(2)]


@case
def creating(torch: Any, new: Source) -> Any:
    return [
        torch.arange(5000, device=new.device),
        torch.linspace(0, 1, 3001, device=new.device),
        torch.full((5000,), 3.0, device=new.device),
        torch.eye(70, device=new.device),
        new(70, 70).tril(),
    ]


@case
def random(torch: Any, new: Source) -> Any:
    generator = torch.Generator(new.device).manual_seed(3)
    x = torch.empty(5003, device=new.device)
    y = x.new_empty(1001, dtype=torch.float64)
    x.normal_(generator=generator)
    y.uniform_(generator=generator)
    p = torch.randperm(3000, generator=generator, device=new.device)
    assert p.sort()[0].equal(torch.arange(3000, device=new.device))
    assert abs(x.mean().item()) < 0.1 and abs(y.mean().item() - 0.5) < 0.1
    wide = torch.empty(1001, dtype=torch.int64, device=new.device)
    wide.random_(0, 1 << 40, generator=generator)
    assert 0 <= wide.min().item() < 1 << 36 < wide.max().item() < 1 << 40
    z = torch.nn.functional.dropout(torch.ones(4099, device=new.device), 0.5)
    assert 1800 < (z > 0).sum().item() < 2300
    return []


# --- reductions and scans


@case
def reducing(torch: Any, new: Source) -> Any:
    x, d, n = new(19, 2053), new(3, 70001), new.integers(9, 5, 3001)
    return [
        *(x.sum(), x.sum(0), x.sum(1), d.sum(1), d.mean(), x.amax(1), x.amin(0)),
        *(n.sum(), n.prod(1), (x > 0).any(1), (x > 9).all(), x.double().sum(1)),
        *(x.half().sum(0), x.norm(), x.t().sum(0), x[:, ::3].sum(1)),
        new(300, 4).sum(1),
        new(4, 5, 300).sum((0, 2)),
    ]


@case
def extremes(torch: Any, new: Source) -> Any:
    x, n = new(19, 2053), new.integers(99, 7, 501)
    return [
        *(x.argmax(), x.argmin(1), x.argmax(0), n.argmax(1), *x.max(1), *x.min(0)),
        *(new(2, 40000).argmax(1), x.half().argmax(1)),
    ]


@case
def moments(torch: Any, new: Source) -> Any:
    x = new(19, 2053)
    return [
        *(x.var(), x.var(1), x.std(0), x.double().var(1), new(2, 50001).var(1)),
        *torch.var_mean(x, 1),
    ]


@case
def scanning(torch: Any, new: Source) -> Any:
    x, n = new(5, 3001), new.integers(9, 3, 20011)
    return [
        *(x.cumsum(1), x.cumsum(0), n.cumsum(1), x.cumprod(1), *x.cummax(1)),
        *(*x.cummin(0), new(130000).cumsum(0), x.logcumsumexp(1), x.half().cumsum(1)),
    ]


@case
def norms_of_lists(torch: Any, new: Source) -> Any:
    listed = [torch.nn.Parameter(new(n)) for n in (5, 70001, 1027, 1)]
    for each in listed:
        each.grad = each.detach() * 2
    total = torch.nn.utils.clip_grad_norm_(listed, 1.0)
    return [total, *(each.grad for each in listed)]


# --- order and indices


@case
def sorting(torch: Any, new: Source) -> Any:
    x, n = new(3, 5000), new.integers(300, 20000)
    return [
        *x[:, :700].sort(),
        *x.sort(descending=True),
        *n.sort(stable=True),
        *new(9001, dtype="float64").sort(),
        *x.half().sort(stable=True),
        *x.topk(5),
        *x.topk(3000),
        *x[:, :33].sort(0),
        *x.kthvalue(100),
        *x.median(1),
        *n.unique(return_counts=True),
        x.argsort(1),
        new.integers(100, 9000, dtype="uint8").sort()[0],
    ]


@case
def counting(torch: Any, new: Source) -> Any:
    holds = new(300, 301) > 0.3
    n = new.integers(50, 9001)
    return [
        *(holds.nonzero(), holds[0].nonzero(), new(300, 301)[holds], n.bincount()),
        *((n == 3).nonzero(), new(9001).masked_select(n > 20)),
        torch.zeros(300, 301, device=new.device).masked_fill(holds, 2.0),
    ]


@case
def indexing(torch: Any, new: Source) -> Any:
    x, i, j = new(301, 65), new.integers(301, 700), new.integers(65, 301, 9)
    y = torch.zeros_like(x)
    out = [
        *(x[i], x.index_select(0, i), x.gather(1, j), x[i, i % 65], x.take(i)),
        y.index_add(0, i, new(700, 65)),
        y.scatter_add(1, j, new(301, 9)),
        y.scatter_reduce(1, j, new(301, 9), "amax"),
        y.scatter_reduce(1, j, new(301, 9), "prod"),
        y.half().index_add(0, i, torch.ones(700, 65, device=new.device).half()),
        y.to(torch.int64).index_add(0, i, new.integers(9, 700, 65)),
        y.to(torch.int8).index_add(0, i, new.integers(3, 700, 65, dtype="int8")),
        y.to(torch.int16).scatter_add(1, j, new.integers(3, 301, 9, dtype="int16")),
        y.to(torch.int32).scatter_add(1, j, new.integers(3, 301, 9, dtype="int32")),
        y.index_put((i, i % 65), new(700), accumulate=True),
        y.double().index_add(0, i, new(700, 65, dtype="float64")),
    ]
    many = [new.integers(3, 500) for _ in range(5)]
    out += [new(3, 3, 3, 3, 3)[many[0], many[1], many[2], many[3], many[4]]]
    z = x.clone()
    z[new.numbers.permutation(301)[:100].tolist()] = 1.0
    return [*out, z]


@case
def indexing_in_order(torch: Any, new: Source) -> Any:
    x, i, j = new(301, 65), new.integers(301, 700), new.integers(65, 301, 9)
    torch.use_deterministic_algorithms(True)
    try:
        y = torch.zeros_like(x)
        return [
            y.index_add(0, i, new(700, 65)),
            y.scatter_add(1, j, new(301, 9)),
            y.index_put((i,), new(700, 65), accumulate=True),
            y.index_put((i % 3,), new(700, 65), accumulate=True),
            y.half().index_add(0, i, torch.ones(700, 65, device=new.device).half()),
            y[0].index_add(0, i % 2, new(700)),
            y.scatter(1, j, new(301, 9)),
        ]
    finally:
        torch.use_deterministic_algorithms(False)


@case
def embedding(torch: Any, new: Source) -> Any:
    weight = new(50, 24, grad=True)
    return gradients(
        torch.nn.functional.embedding(new.integers(50, 7, 40), weight), weight
    )


# --- layers


@case
def softmax(torch: Any, new: Source) -> Any:
    F = torch.nn.functional
    out = []
    for shape, dim in (((70, 100), 1), ((3, 5001), 1), ((65, 9, 7), 1), ((4, 4099), 0)):
        x = new(*shape, grad=True)
        out += gradients(x.softmax(dim), x)
        y = new(*shape, grad=True)
        out += gradients(F.log_softmax(y, dim), y)
    h = new(17, 130, dtype="float16")
    return [*out, h.softmax(1), new(33, 65, dtype="float64").log_softmax(1)]


@case
def losses(torch: Any, new: Source) -> Any:
    F = torch.nn.functional
    x, target = new(70, 101, grad=True), new.integers(101, 70)
    y = new(3, 5003, grad=True)
    z = new(40, 30, grad=True)
    return [
        *gradients(F.cross_entropy(x, target), x),
        *gradients(F.cross_entropy(y, new.integers(5003, 3), label_smoothing=0.1), y),
        *gradients(F.binary_cross_entropy_with_logits(z, (new(40, 30) > 0).float()), z),
        F.nll_loss(new(70, 101), target),
        F.cross_entropy(new(8, 9, 100), new.integers(9, 8, 100)),
    ]


@case
def norms(torch: Any, new: Source) -> Any:
    F = torch.nn.functional
    out = []
    for shape in ((70, 96), (300, 65), (3, 5001)):
        x, w, b = new(*shape, grad=True), new(shape[1], grad=True), new(shape[1])
        b.requires_grad_(True)
        out += gradients(F.layer_norm(x, shape[1:], w, b), x, w, b)
    x, w, b = new(9, 6, 8, 8, grad=True), new(6, grad=True), new(6, grad=True)
    out += gradients(F.batch_norm(x, None, None, w, b, training=True), x, w, b)
    x, w = new(9, 6, 8, 8, grad=True), new(6, grad=True)
    out += gradients(F.group_norm(x, 3, w), x, w)
    x = new(40, 130, grad=True)
    out += gradients(F.rms_norm(x, (130,)), x)
    h = new(33, 96, dtype="float16", grad=True)
    return [*out, *gradients(F.layer_norm(h, (96,)), h)]


@case
def long_rows(torch: Any, new: Source) -> Any:
    """Rows that a block keeps in shared memory, and others that are too long."""
    F = torch.nn.functional
    out = []
    for n in (9000, 9001, 70000):
        x, y, z = (new(2, n, grad=True) for _ in range(3))
        w, b = new(n, grad=True), new(n, grad=True)
        out += gradients(x.softmax(1), x)
        out += gradients(y.log_softmax(1), y)
        out += gradients(F.layer_norm(z, (n,), w, b), z, w, b)
        x, y, z = (new(2, n, grad=True) for _ in range(3))
        out += gradients(F.cross_entropy(x, new.integers(n, 2)), x)
        out += gradients(F.rms_norm(y, (n,)), y)
        out += gradients(z.logsumexp(1), z)
        h = new(2, n, dtype="float16")
        out += [h.softmax(1), h.double().softmax(1), h.t().contiguous().softmax(0)]
        out += [*x.max(1), x.argmin(), x.var(1), x.cumsum(1), x.sum(), x.norm(dim=1)]
    return out


@case
def convolving(torch: Any, new: Source) -> Any:
    F = torch.nn.functional
    out = []
    for x_shape, w_shape, options in (
        ((2, 3, 17, 19), (5, 3, 3, 3), {"padding": 1}),
        ((2, 6, 16, 16), (6, 1, 3, 3), {"padding": 1, "groups": 6}),
        ((2, 6, 15, 13), (12, 1, 5, 5), {"stride": 2, "groups": 6}),
        ((2, 4, 40, 40), (4, 1, 3, 3), {"groups": 4}),
        ((2, 4, 50), (6, 2, 3), {"groups": 2, "dilation": 2}),
        ((1, 2, 6, 7, 8), (3, 2, 2, 2, 2), {}),
    ):
        x, w = new(*x_shape, grad=True), new(*w_shape, grad=True)
        b = new(w_shape[0], grad=True)
        function = (F.conv1d, F.conv2d, F.conv3d)[len(x_shape) - 3]
        out += gradients(function(x, w, b, **options), x, w, b)
    x, w = new(2, 4, 9, 9, grad=True), new(4, 3, 3, 3, grad=True)
    out += gradients(F.conv_transpose2d(x, w, stride=2), x, w)
    h, v = new(2, 4, 9, 9, dtype="float16"), new(4, 4, 3, 3, dtype="float16")
    return [*out, F.conv2d(h, v, padding=1)]


@case
def pooling(torch: Any, new: Source) -> Any:
    F = torch.nn.functional
    out = []
    for function, options in (
        (F.max_pool2d, {"kernel_size": 3, "stride": 2, "padding": 1}),
        (F.max_pool2d, {"kernel_size": 2}),
        (F.avg_pool2d, {"kernel_size": 3, "stride": 2, "padding": 1}),
        (F.adaptive_avg_pool2d, {"output_size": (5, 3)}),
        (F.adaptive_max_pool2d, {"output_size": (5, 3)}),
        (F.interpolate, {"scale_factor": 2.0}),
        (F.interpolate, {"size": (11, 40), "mode": "bilinear"}),
        (F.interpolate, {"size": (11, 40), "mode": "bicubic"}),
    ):
        x = new(3, 4, 16, 18, grad=True)
        out += gradients(function(x, **options), x)
    x, grid = new(2, 3, 9, 9, grad=True), new(2, 12, 7, 2, grad=True)
    out += gradients(F.grid_sample(x, grid, align_corners=False), x, grid)
    return out


@case
def attention(torch: Any, new: Source) -> Any:
    F = torch.nn.functional
    out = []
    for length, size, options in (
        (130, 32, {}),
        (130, 32, {"is_causal": True}),
        (70, 80, {}),
        (70, 136, {}),
        (70, 136, {"is_causal": True}),
    ):
        q, k, v = (new(1, 2, length, size, grad=True) for _ in range(3))
        out += gradients(F.scaled_dot_product_attention(q, k, v, **options), q, k, v)
    # Keys that are left out in all rows.
    q, k, v = (new(1, 1, n, 80, grad=True) for n in (40, 150, 150))
    out += gradients(F.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v)
    q, k, v = (new(1, 1, 67, 16, dtype="float64", grad=True) for _ in range(3))
    mask = new(67, 67, dtype="float64")
    return [*out, *gradients(F.scaled_dot_product_attention(q, k, v, mask), q, k, v)]


@case
def attention_of_halves(torch: Any, new: Source) -> Any:
    F = torch.nn.functional
    out = []
    for dtype, length, size, causal in (
        ("float16", 140, 64, False),
        ("bfloat16", 140, 64, True),
        ("float16", 70, 128, True),
        ("bfloat16", 300, 40, True),
    ):
        q, k, v = (new(1, 2, length, size, dtype=dtype, grad=True) for _ in range(3))
        out += gradients(
            F.scaled_dot_product_attention(q, k, v, is_causal=causal), q, k, v
        )
    return out


@case
def attention_with_dropout(torch: Any, new: Source) -> Any:
    """How it differs from the whole matrix with the mask that the identity shows."""
    F = torch.nn.functional
    out = []
    for dtype, length, size, causal in (
        ("float32", 70, 32, True),
        ("float32", 130, 136, False),
        ("float64", 67, 16, True),
        ("float16", 140, 64, False),
        ("bfloat16", 70, 128, True),
    ):
        q, k, v = (new(1, 2, length, size, dtype=dtype, grad=True) for _ in range(3))
        equal, identity = q.detach()[..., :1] * 0, torch.eye(length).to(q)
        torch.manual_seed(3)
        kept = F.scaled_dot_product_attention(equal, equal, identity, dropout_p=0.3)
        torch.manual_seed(3)
        found = F.scaled_dot_product_attention(q, k, v, None, 0.3, causal)
        wide = [x.detach().double().requires_grad_() for x in (q, k, v)]
        scores = wide[0] @ wide[1].mT / size**0.5
        scores = scores - torch.ones_like(scores).triu(1) * (causal * 1e30)
        whole = (scores.softmax(-1) * (kept != 0) / 0.7) @ wide[2]
        both = gradients(found, q, k, v), gradients(whole, *wide)
        out += [(a - b.to(a.dtype)) / b.abs().max() for a, b in zip(*both, strict=True)]
    return out


@case
def recurrent(torch: Any, new: Source) -> Any:
    out = []
    for kind, dtype in itertools.product(
        ("LSTM", "GRU", "RNN", "projected"),
        ("float32", "float64", "float16", "bfloat16"),
    ):
        options = {"proj_size": 7} if kind == "projected" else {}
        layer = getattr(torch.nn, "LSTM" if options else kind)(12, 20, **options)
        layer = layer.to(new.device, getattr(torch, dtype))
        with torch.no_grad():
            for each in layer.parameters():
                each.copy_(new(*each.shape) / 4)
        x = new(6, 9, 12, dtype=dtype, grad=True)
        out += gradients(layer(x)[0], x, *layer.parameters())
    return out


@case
def optimizing(torch: Any, new: Source) -> Any:
    out = []
    for make in (
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
        lambda p: torch.optim.Adam(p, 0.1),
        lambda p: torch.optim.AdamW(p, 0.1),
        lambda p: torch.optim.RMSprop(p, 0.1),
        lambda p: torch.optim.Adagrad(p, 0.1),
        lambda p: torch.optim.Adam(p, torch.tensor(0.1, device=new.device)),
    ):
        listed = [torch.nn.Parameter(new(n)) for n in (5, 5001, 1027)]
        optimizer = make(listed)
        for _ in range(2):
            for each in listed:
                each.grad = each.detach() * 0.5
            optimizer.step()
        out += [each.detach() for each in listed]
    return out


@case
def products(torch: Any, new: Source) -> Any:
    n = new.integers(9, 37, 41)
    a = new(5, 12, 12)
    return [
        *(n @ n.t(), new(37, 65) @ new(65, 40), torch.linalg.solve(a, new(5, 12, 3))),
        *(
            torch.linalg.inv(a),
            torch.linalg.det(a),
            torch.linalg.cholesky(a @ a.mT + 9 * torch.eye(12, device=new.device)),
        ),
        *(
            torch.einsum("bij,bjk->bik", a, a),
            torch.linalg.svdvals(a),
            torch.linalg.eigvalsh(a @ a.mT),
        ),
    ]


@case
def sparse(torch: Any, new: Source) -> Any:
    n = 90
    starts, columns = torch.arange(0, 3 * n + 1, 3), torch.arange(3 * n) * 7 % n
    values, x = new(3 * n, grad=True), new(n, 37, grad=True)
    matrix = torch.sparse_csr_tensor(
        starts.to(new.device), columns.to(new.device), values, (n, n)
    )
    return gradients(torch.sparse.mm(matrix, x), values, x)


# --- running them


def differs(torch: Any, mine: Any, right: Any) -> str:
    mine = mine.detach().cpu()
    right = right.detach()
    if mine.dtype != right.dtype or mine.shape != right.shape:
        return (
            f"{mine.dtype} {tuple(mine.shape)}, not {right.dtype} {tuple(right.shape)}"
        )
    if not right.dtype.is_floating_point:
        return "" if mine.equal(right) else "other elements"
    a, b = mine.double().numpy(), right.double().numpy()
    loose = {2: 3e-2, 4: 2e-4, 8: 1e-9}[right.dtype.itemsize]
    scale = float(np.abs(b[np.isfinite(b)]).max(initial=1.0))
    same = np.isclose(a, b, rtol=loose, atol=loose * scale, equal_nan=True)
    return "" if same.all() else f"{(~same).sum()} of {same.size} elements differ"


def run(torch: Any, name: str) -> str:
    """What is wrong with a family, or nothing."""
    right = CASES[name](torch, Source(torch, "cpu"))
    wrong = ""
    try:
        mine = CASES[name](torch, Source(torch, "cuda:0"))
        torch.cuda.synchronize()
    except Exception as error:
        wrong = f"{type(error).__name__}: {error}"
    said = [*dict.fromkeys(plugin.found), *([wrong] if wrong else [])]
    plugin.found.clear()
    if said:
        return "\n".join(said)
    for i, (a, b) in enumerate(zip(mine, right, strict=True)):
        if wrong := differs(torch, a, b):
            return f"result {i}: {wrong}"
    return ""


def main(names: list[str], card: str | None) -> int:
    import pydevtensor as torch

    torch.cuda.simulate(1, card=card)
    torch.cuda.sim_schedule("random:5")
    plugin.register()
    status = 0
    for name in names or CASES:
        wrong = run(torch, name)
        status |= bool(wrong)
        print(f"{name}: {wrong or 'fine'}", flush=True)
    return status


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--card", help="such as h100, whose kernels differ")
    parser.add_argument("names", nargs="*", help=" ".join(CASES))
    given = parser.parse_args()
    sys.exit(main(given.names, given.card))
