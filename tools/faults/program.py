"""What run.py runs while things fail: a case of each family, and docstrings' examples.

A case makes what it needs on a device and returns the function to run, or a list of
functions, of which one has faults; run.py takes what a function uses from its closure.
"""

import doctest
import inspect
import io
import os
import tempfile

import numpy as np

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor.nn import functional as F

CASES = {}


def case(make):
    CASES[make.__name__] = make
    return make


def leaf(*shape, device):
    return torch.randn(*shape, device=device).requires_grad_()


@case
def create(device):
    return lambda: (
        torch.zeros(3, 40, device=device),
        torch.arange(40, device=device),
        torch.full((2, 20), 7, device=device),
        torch.eye(9, device=device),
        torch.linspace(0, 1, 33, device=device),
    )


@case
def from_python(device):
    rows = [[float(i + j) for j in range(9)] for i in range(8)]
    return lambda: (torch.tensor(rows, device=device), torch.tensor(3, device=device))


@case
def elementwise(device):
    a, b = torch.rand(8, 9, device=device), torch.rand(9, device=device)
    return lambda: (a + b, a.exp(), a > 0.5, torch.where(a > b, a, 0.0), a.half() * 2)


@case
def in_place(device):
    a, b = torch.rand(8, 9, device=device), torch.rand(9, device=device)
    return [lambda: a.add_(b), lambda: a.clamp_(0.2, 0.5), lambda: a[1:3].t().exp_()]


@case
def out(device):
    a, b = torch.rand(8, 9, device=device), torch.empty(0, device=device)
    return [lambda: torch.exp(a, out=b), lambda: torch.cumsum(a, 0, out=b)]


@case
def reduce(device):
    a = torch.rand(8, 9, device=device)
    return lambda: (a.sum(), a.mean(1), a.amax(0), a.var(1), a.argmin(), a.max(1))


@case
def statistics(device):
    a = torch.rand(7, 9, device=device)
    return lambda: (a.median(), a.quantile(0.3), torch.histc(a, 4), a.norm(), a.std())


@case
def reduce_large(device):
    a = torch.rand(300_000, device=device)
    return lambda: (a.sum(), a.double().mean(), a.argmax(), a.var())


@case
def scan(device):
    a = torch.rand(5, 600, device=device)
    return lambda: (a.cumsum(1), a.cumprod(0), a.cummax(1), a.flatten().logcumsumexp(0))


@case
def sort(device):
    a = torch.rand(6, 70, device=device)
    edges = torch.linspace(0, 1, 5, device=device)
    return lambda: (
        a.sort(1),
        a.topk(3),
        a.argsort(0),
        a.flatten().unique(return_counts=True),
        torch.searchsorted(edges, a),
    )


@case
def sort_large(device):
    a = torch.rand(70_000, device=device)
    return lambda: (a.sort()[0], a.double().kthvalue(77))


@case
def index(device):
    a = torch.rand(8, 9, device=device)
    i = torch.tensor([3, 1, 1], device=device)
    return lambda: (
        a[2],
        a[1:5, ::2],
        a[i],
        a[i, i],
        a[a > 0.5],
        a.gather(0, i[None]),
        a.index_select(1, i),
        a.nonzero(),
        a[..., None, 2],
    )


@case
def assign(device):
    a = torch.rand(8, 9, device=device)
    i = torch.tensor([3, 1, 4], device=device)
    v = torch.rand(3, 9, device=device)

    return [
        lambda: a.__setitem__(2, 1),
        lambda: a.__setitem__(i, v),
        lambda: a.__setitem__(a > 0.7, 0),
        lambda: a.__setitem__((slice(None), slice(3, 5)), torch.ones(2, device=device)),
        lambda: a.__setitem__((i, i), v[0, :3]),
        lambda: a.__setitem__((..., 1), torch.ones(8, dtype=torch.float64)),
    ]


@case
def scatter(device):
    a = torch.rand(8, 9, device=device)
    i = torch.tensor([[3, 1, 4]], device=device)
    v = torch.rand(1, 3, device=device)
    return [
        lambda: a.scatter_add_(0, i, v),
        lambda: a.index_put_((i[0],), v[0, 0], accumulate=True),
        lambda: a.masked_scatter_(a > 0.4, torch.rand(72, device=device)),
        lambda: (
            a.scatter(0, i, v),
            a.scatter_reduce(1, i, v, "amax"),
            a.index_add(0, i[0], torch.ones(3, 9, device=device)),
            a.masked_fill(a > 0.4, 2),
        ),
    ]


@case
def cat(device):
    a, b = torch.rand(4, 6, device=device), torch.rand(4, 3, device=device)
    return lambda: (
        torch.cat([a, b], 1),
        torch.stack([a, a, a], 1),
        torch.cat([a] * 40),
        torch.hstack([a, b]),
        torch.block_diag(a, b),
    )


@case
def split(device):
    a = torch.rand(6, 8, device=device)
    return lambda: (a.split(2), a.chunk(3, 1), a.unbind(), a.tensor_split((1, 4)))


@case
def views(device):
    a = torch.rand(6, 8, device=device)

    return [
        lambda: a.view(48)[3:9].reshape(2, 3).t().mul_(2),
        lambda: a.T.diagonal().zero_(),
        lambda: (
            a.permute(1, 0).flatten(),
            a.unfold(0, 2, 2),
            a.expand(2, 6, 8).roll(1),
        ),
    ]


@case
def matmul(device):
    a, b = torch.rand(20, 30, device=device), torch.rand(30, 40, device=device)
    batch = torch.rand(3, 30, 8, device=device)
    return lambda: (
        a @ b,
        a @ b[:, 0],
        a @ batch,
        torch.bmm(batch.transpose(1, 2), batch),
        torch.addmm(b[:20], a, b[:, :30].T.contiguous().T @ b),
        torch.einsum("ij,bjk->bik", a, batch),
        torch.tensordot(a, b, 1),
        (a > 0.5).long() @ (b > 0.5).long(),
        a.half() @ b.half(),
    )


@case
def random(device):
    w = torch.rand(9, device=device)
    return lambda: (
        torch.randn(40, device=device),
        torch.randint(9, (30,), device=device),
        torch.randperm(40, device=device),
        torch.multinomial(w, 4),
        torch.bernoulli(w),
        torch.empty(40, device=device).normal_().exponential_(),
    )


@case
def convert(device):
    a = torch.rand(8, 9, device=device)

    def run():
        up = a.to("cpu")
        return (
            a.double(),
            a.to(torch.int32, copy=True),
            up.to(device),
            a.tolist(),
            a[0, 0].item(),
            up.numpy().copy(),
            a.t().contiguous(),
        )

    return run


@case
def exchange(device):
    a = torch.rand(8, 9, device=device)
    array = np.arange(12.0)

    def run():
        parts = [torch.from_numpy(array), torch.from_dlpack(a)]
        if device == "cpu":
            parts += [
                np.from_dlpack(a),
                bytes(memoryview(a)),
                torch.frombuffer(array, dtype=torch.float64),
            ]
        return [part + 1 if hasattr(part, "shape") else part for part in parts]

    return run


@case
def printing(device):
    a = torch.rand(30, 50, device=device)
    return lambda: (
        repr(a),
        str(a[0, 0]),
        f"{a[1, 1]:.2f}",
        repr(a > 0.5),
        repr(a.dtype),
    )


@case
def backward(device):
    w, b = leaf(9, 4, device=device), leaf(4, device=device)
    x = torch.rand(5, 9, device=device)

    def run():
        y = torch.tanh(x @ w + b)
        loss = (y * y.exp()).sum() + w[2:4].mean() + torch.cat([w, b[None]]).amax()
        loss.backward()
        return w.grad, b.grad

    return run


@case
def backward_twice(device):
    w = leaf(9, 4, device=device)

    def run():
        (g,) = torch.autograd.grad((w.sin() @ w.t()).sum(), w, create_graph=True)
        (h,) = torch.autograd.grad((g * g).sum(), w)
        return g, h

    return run


@case
def backward_indexed(device):
    w = leaf(9, 6, device=device)
    i = torch.tensor([3, 1, 1], device=device)

    def run():
        parts = (
            w[i].sum(),
            w.gather(0, i[None]).sum(),
            w.sort(1)[0][:, 2].prod(),
            w.cumsum(0).var(),
            sum(piece.norm() for piece in w.split(4)),
            torch.stack([w, w]).logsumexp(0).mean(),
            w.masked_fill(w > 0, 1).std(),
        )
        sum(parts).backward()
        return w.grad

    return run


@case
def backward_in_place(device):
    w = leaf(6, 4, device=device)

    def run():
        y = w * 2
        y[1] = w[0] * 3
        y[2:4].mul_(w[2:4])
        y.view(24)[5:7] = 0
        y.add_(1).sum().backward()
        return w.grad

    return run


@case
def accumulate(device):
    w = leaf(6, 4, device=device)
    (w * 2).sum().backward()
    return lambda: ((w.exp() + w).sum().backward(), w.grad)[1]


@case
def attributes(device):
    w, g = leaf(6, 4, device=device), torch.rand(6, 4, device=device)
    return [
        lambda: setattr(w, "grad", g),
        lambda: setattr(w, "data", g * 2),
        lambda: (w.detach().requires_grad_(), w.data, w.grad, w.T.is_leaf),
        lambda: setattr(w, "grad", None),
    ]


@case
def hooks(device):
    w = leaf(6, 4, device=device)

    def run():
        y = w * 2
        y.retain_grad()
        first = y.register_hook(lambda g: g * 3)
        w.register_hook(lambda g: g + 1)
        y.exp().sum().backward()
        first.remove()
        return w.grad, y.grad

    return run


@case
def function(device):
    w = leaf(6, 4, device=device)

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x)
            ctx.scale = scale
            return x * x * scale, x + 1

        @staticmethod
        def backward(ctx, g, h):
            (x,) = ctx.saved_tensors
            return 2 * x * g * ctx.scale + h, None

    def run():
        y, z = Square.apply(w, 3.0)
        (y.sum() + z.prod()).backward()
        return w.grad, y

    return run


@case
def checks(device):
    w = leaf(3, device=device).double().detach().requires_grad_()
    return lambda: torch.autograd.gradcheck(torch.sin, (w,))


@case
def layers(device):
    x = torch.rand(5, 8, device=device)
    net = nn.Sequential(
        nn.Linear(8, 12), nn.LayerNorm(12), nn.GELU(), nn.Dropout(0.3), nn.Linear(12, 3)
    ).to(device)
    norm = nn.BatchNorm1d(8).to(device)
    words = nn.Embedding(7, 8).to(device)

    def run():
        y = net(norm(x)) + words(torch.arange(5, device=device)).sum(1, keepdim=True)
        y.log_softmax(1).sum().backward()
        return y

    return run


@case
def losses(device):
    x = leaf(5, 8, device=device)
    t = torch.arange(5, device=device)

    def run():
        total = (
            F.cross_entropy(x, t)
            + F.cross_entropy(x, x.detach().softmax(1))
            + F.mse_loss(x, x.detach() * 2)
            + F.binary_cross_entropy_with_logits(x, (x > 0).float())
            + F.kl_div(x.log_softmax(1), x.detach().softmax(1), reduction="batchmean")
            + F.smooth_l1_loss(x, x.detach() - 1)
            + F.nll_loss(x.log_softmax(1), t)
        )
        total.backward()
        return total

    return run


def gradients(loss, *leaves):
    """A function of the losses' gradients, which sums what `loss` returns."""

    def run():
        sum(part.float().sum() for part in loss()).backward()
        return [w.grad for w in leaves]

    return run


@case
def convolution(device):
    x, w = leaf(2, 4, 6, 7, device=device), leaf(6, 2, 3, 2, device=device)
    b, back = leaf(6, device=device), leaf(4, 3, 2, 2, device=device)

    def loss():
        padded = F.conv2d(x, w, b, padding=1, groups=2)
        channels_last = x.to(memory_format=torch.channels_last)
        return (
            padded * padded,
            F.conv2d(x.half(), w.half(), stride=2, groups=2),
            F.conv2d(channels_last, w[:4, :1], padding="same", groups=4),
            F.conv_transpose2d(x, back, stride=2, output_padding=1),
            F.conv1d(x[:, :, 0], back[:, :, 0].transpose(0, 1)),
        )

    return gradients(loss, x, w, b, back)


@case
def convolution_of_many_channels(device):
    # Transformed on the CPU; simulated GPUs would take minutes.
    size = (256, 14) if device == "cpu" else (4, 6)
    x = leaf(1, size[0], size[1], size[1], device=device)
    w = leaf(size[0], size[0], 3, 3, device=device)
    return gradients(lambda: (F.conv2d(x, w, padding=1),), x, w)


@case
def convolution_twice(device):
    x, w = leaf(1, 2, 5, 5, device=device), leaf(3, 2, 3, 3, device=device)

    def run():
        y = F.conv2d(x, w).exp().sum()
        gx, gw = torch.autograd.grad(y, (x, w), create_graph=True)
        return torch.autograd.grad(gx.square().sum() + gw.sin().sum(), (x, w))

    return run


@case
def windows(device):
    x = leaf(2, 3, 6, 8, device=device)
    place = torch.rand(2, 4, 5, 2, device=device) * 2 - 1

    def loss():
        y, i = F.max_pool2d(x, 2, return_indices=True)
        return (
            F.max_unpool2d(y, i, 2),
            F.avg_pool2d(x, 3, stride=2, padding=1),
            F.adaptive_max_pool2d(x, (3, 5)),
            F.adaptive_avg_pool2d(x, 4),
            F.pad(x, (1, 2, 1, 0), mode="reflect"),
            F.interpolate(x, scale_factor=1.5, mode="bicubic", antialias=True),
            F.interpolate(x, size=(3, 3), mode="nearest"),
            F.grid_sample(x, place, align_corners=False),
            F.fold(F.unfold(x, 2), (6, 8), 2),
        )

    return gradients(loss, x)


@case
def recurrent(device):
    torch.manual_seed(0)
    net, gru = nn.LSTM(3, 4).to(device), nn.GRU(3, 4, bidirectional=True).to(device)
    projected = nn.LSTM(3, 4, bidirectional=True, proj_size=2).to(device)
    x = leaf(5, 2, 3, device=device)
    packed = nn.utils.rnn.pack_padded_sequence

    def loss():
        y, (h, _) = net(x)
        z, _ = gru(packed(x, torch.tensor([5, 3])))
        p, (q, _) = projected(packed(x, torch.tensor([5, 3])))
        return y * y, h.sin(), z.data, p.data, q.cos()

    parameters = [*gru.parameters(), *projected.parameters()]
    return gradients(loss, x, *net.parameters(), *parameters)


@case
def attention(device):
    q, k = leaf(2, 4, 9, 8, device=device), leaf(2, 2, 7, 8, device=device)
    mask = torch.ones(9, 7, dtype=torch.bool, device=device).tril(1)
    layer = nn.MultiheadAttention(8, 2, batch_first=True).to(device)

    def loss():
        attend = F.scaled_dot_product_attention
        return (
            attend(q, k, k, attn_mask=mask, enable_gqa=True),
            attend(q, q, q, is_causal=True).exp(),
            *layer(q[0], q[0], q[0]),
        )

    return gradients(loss, q, k, *layer.parameters())


@case
def factorizations(device):
    a = leaf(2, 5, 4, device=device)

    def loss():
        square = a.mT @ a + torch.eye(4, device=device)
        return (
            *torch.linalg.qr(a),
            torch.linalg.svdvals(a),
            torch.linalg.eigvalsh(square),
            torch.linalg.solve(square, a.mT),
            torch.linalg.cholesky(square),
            torch.linalg.slogdet(square).logabsdet,
            torch.linalg.lstsq(a, a.detach() + 1).solution,
        )

    return gradients(loss, a)


@case
def activations(device):
    x, w = leaf(4, 6, device=device), leaf(6, device=device)
    kinds = (F.gelu, F.elu, F.hardswish, F.mish, F.softplus, F.logsigmoid, F.glu)
    return gradients(lambda: [f(x) for f in kinds] + [F.prelu(x, w)], x, w)


@case
def lower_types(device):
    net = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 2)).to(device)
    x = torch.rand(3, 6, device=device)
    scaler = torch.amp.GradScaler(device, init_scale=8.0)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step():
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.mse_loss(net(x).float(), torch.zeros(3, 2, device=device))
        scaler.scale(loss).backward()
        return loss

    return [step, lambda: scaler.step(optimizer), lambda: scaler.update()]


@case
def profile(device):
    a = torch.rand(40, device=device)

    def run():
        torch._C._recorder_stop()  # of a profile that CPython lost without memory
        with torch.profiler.profile() as p:
            b = (a * 2).sum()
        return b, len(p.events())

    return run


@case
def modules(device):
    state = {k: v + 1 for k, v in nn.Linear(8, 3).to(device).state_dict().items()}

    def run():
        net = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(8, 3)).to(device)
        net[2].load_state_dict(state)
        nn.init.kaiming_uniform_(net[0].weight)
        return repr(net), list(net.state_dict()), net[2].weight, net.double()

    return run


def stepping(make):
    def run_of(device):
        net = nn.Linear(6, 4).to(device)
        optimizer = make(net.parameters())
        for i, p in enumerate(net.parameters()):
            p.grad = torch.full_like(p, 0.5 + i)

        return [
            lambda: optimizer.step(),
            lambda: nn.utils.clip_grad_norm_(net.parameters(), 1.0),
            lambda: optimizer.step(),
            lambda: optimizer.state_dict(),
            lambda: optimizer.zero_grad(),
        ]

    return run_of


CASES["sgd"] = stepping(lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9))
CASES["adam"] = stepping(lambda p: torch.optim.AdamW(p, lr=0.1))
CASES["nadam"] = stepping(lambda p: torch.optim.NAdam(p, lr=0.1))
CASES["rmsprop"] = stepping(lambda p: torch.optim.RMSprop(p, lr=0.1, momentum=0.5))


@case
def schedule(device):
    net = nn.Linear(6, 4).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    steps = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    return lambda: (optimizer.step(), steps.step(), steps.get_last_lr())[2]


@case
def loader(device):
    data = torch.utils.data.TensorDataset(torch.rand(9, 4), torch.arange(9))
    batches = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
    return lambda: [(x.to(device), y) for x, y in batches]


def checkpoint(device):
    a = torch.rand(8, 9, device=device)
    return {"a": a, "b": [a[2:], torch.arange(5), {"n": 1.5, "t": (1, "x")}]}


@case
def save(device):
    data, name = checkpoint(device), os.path.join(tempfile.gettempdir(), "faults.pt")

    def run():
        torch.save(data, name)
        with open(name, "rb") as file:
            return file.read()

    return run


@case
def load(device):
    file = io.BytesIO()
    torch.save(checkpoint(device), file)

    def run():
        file.seek(0)
        return torch.load(file)

    return run


@case
def safetensors(device):
    data = {"a": torch.rand(8, 9, device=device), "b": torch.arange(5).bool()}

    def run():
        file = torch.safetensors.save(data, {"made": "here"})
        return file, torch.safetensors.load(file)

    return run


@case
def pickled(device):
    import copy
    import pickle

    net = nn.Linear(3, 2).to(device)
    return lambda: (pickle.loads(pickle.dumps(net.weight)), copy.deepcopy(net).bias)


@case
def streams(device):
    a = torch.rand(40, device=device)

    def run():
        if device == "cpu":
            return a + 1
        side, done = torch.cuda.Stream(device), torch.cuda.Event()
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            b = a * 2
            b.record_stream(torch.cuda.current_stream(device))
            done.record()
        torch.cuda.current_stream(device).wait_event(done)
        pinned = torch.arange(40.0).pin_memory()
        c = pinned.to(device, non_blocking=True) + b
        other = a.to("cuda:1") + 1
        del b, pinned
        return c, other.to(device), c.to("cpu", non_blocking=True)

    return run


def example(source):
    steps = [(e.source, compile(e.source, "<example>", "single")) for e in source]

    def make(device):
        names = {"torch": torch, "nn": nn, "__name__": "example"}

        def run():
            with torch.device(device):
                for _, code in steps:
                    exec(code, names)

        return run

    return make


def examples():
    """A case of each public function whose docstring has an example."""
    found, parser = {}, doctest.DocTestParser()
    for prefix, owner in {
        "torch": torch,
        "torch.Tensor": torch.Tensor,
        "F": F,
        "nn": nn,
        "optim": torch.optim,
        "fft": torch.fft,
        "linalg": torch.linalg,
        "autograd": torch.autograd,
        "data": torch.utils.data,
    }.items():
        for name in dir(owner):
            doc = inspect.getdoc(getattr(owner, name, None)) or ""
            source = parser.get_examples(doc)
            runs = "+SKIP" not in doc and not any(each.exc_msg for each in source)
            if source and runs and not name.startswith("_"):
                found[f"{prefix}.{name}"] = example(source)
    return found
