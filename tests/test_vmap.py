"""vmap(): batching rules against the loop that they stand for, and what has no rule."""

import warnings

import pytest
from cases import Cases

import pydevtensor as torch
import pydevtensor.nn.functional as F
from pydevtensor import nn
from pydevtensor.func import (
    functional_call,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    stack_module_state,
    vjp,
    vmap,
)

# Functions of one element, and their batches, in the words of `names`.
CASES = [
    ("lambda a, b: a + b", "(x, y)"),
    ("lambda a, b: a * b + 1", "(x, sc)"),
    ("lambda a: a + u", "(x,)"),
    ("lambda a, b: a + b", "(x, v)"),
    ("lambda a, b: a * b", "(x, sc.double())"),
    ("lambda a, b: torch.where(a > 0, a, b)", "(x, y)"),
    ("lambda a: a ** 2 - 1 / a.exp()", "(x,)"),
    ("lambda a: a.sum()", "(x,)"),
    ("lambda a: a.sum(-1, keepdim=True)", "(x,)"),
    ("lambda a: torch.sum(a, 0)", "(x,)"),
    ("lambda a: a.max()", "(x,)"),
    ("lambda a: a.max(1)[0]", "(x,)"),
    ("lambda a, b: torch.min(a, b)", "(x, y)"),
    ("lambda a: a.argmax()", "(x,)"),
    ("lambda a: a.argmax(0)", "(x,)"),
    ("lambda a: a.std()", "(x,)"),
    ("lambda a: a.var(1, unbiased=False)", "(x,)"),
    ("lambda a: (a > 0).all()", "(x,)"),
    ("lambda a: (a > 0).any(1)", "(x,)"),
    ("lambda a: a.softmax(0)", "(x,)"),
    ("lambda a: F.log_softmax(a, dim=-1)", "(x,)"),
    ("lambda a: a.cumsum(0)", "(x,)"),
    ("lambda a: tuple(a.sort(0))", "(x,)"),
    ("lambda a: tuple(a.topk(2))", "(x,)"),
    ("lambda a: tuple(torch.topk(a, 2, dim=0))", "(x,)"),
    ("lambda a: a.logsumexp(0)", "(x,)"),
    ("lambda a: a.T @ a", "(x,)"),
    ("lambda a, b: a @ b", "(x, m)"),
    ("lambda a: a @ w", "(x,)"),
    ("lambda a: w.T @ a", "(v,)"),
    ("torch.dot", "(v, v)"),
    ("lambda a, b: a @ b", "(x, v)"),
    ("lambda a: u @ a", "(v,)"),
    ("torch.outer", "(v, v)"),
    ("lambda a, b: F.linear(a, b.T)", "(x, m)"),
    ("lambda a, b, c: F.linear(a, b.t(), c)", "(x, m, R(B, 6))"),
    ("lambda a, b: torch.einsum('ij,jk->ik', a, b)", "(x, m)"),
    ("lambda a: torch.einsum('ij,kj', a, u)", "(x,)"),
    ("lambda a, b: torch.addmm(torch.ones(3, 6), a, b, beta=2)", "(x, m)"),
    ("lambda a: a.reshape(-1)", "(x,)"),
    ("lambda a: a.view(5, 3)", "(x,)"),
    ("lambda a: a.permute(1, 0)", "(x,)"),
    ("lambda a: a.unsqueeze(-1).unsqueeze(0)", "(x,)"),
    ("lambda a: a[None].squeeze()", "(x,)"),
    ("lambda a: a.expand(2, 3, 5)", "(x,)"),
    ("lambda a: a.repeat(2, 1)", "(x,)"),
    ("lambda a: a.flatten()", "(x,)"),
    ("lambda a: a.chunk(2, 0)", "(R(B, 4, 5),)"),
    ("lambda a: a.split(2, 1)[0]", "(x,)"),
    ("lambda a: a.unbind()", "(x,)"),
    ("lambda a: torch.cat([a, u])", "(x,)"),
    ("lambda a, b: torch.stack([a, b], 1)", "(x, y)"),
    ("lambda a: a.flip(0)", "(x,)"),
    ("lambda a: a.roll(1, 0)", "(x,)"),
    ("lambda a: a.diagonal()", "(x,)"),
    ("lambda a: a.movedim(0, 1)", "(x,)"),
    ("lambda a: a.tril()", "(x,)"),
    ("lambda a: a[0]", "(x,)"),
    ("lambda a: a[:, 1:3]", "(x,)"),
    ("lambda a: a[..., None, -1]", "(x,)"),
    ("lambda a: a[ui]", "(x,)"),
    ("lambda a, i: a[i]", "(x, idx)"),
    ("lambda a, i: a[:, i]", "(x, idx)"),
    ("lambda i: u[i]", "(idx,)"),
    ("lambda i: u[:, i]", "(idx,)"),
    ("lambda a, i: a[i, i]", "(x, idx)"),
    ("lambda a: a[[0, 2], 1]", "(x,)"),
    ("lambda a, i: a[i]", "(x, idx[:, 0])"),
    ("lambda a, i: a[0, i]", "(x, idx)"),
    ("lambda a, i: a[i, 1]", "(x, idx)"),
    ("lambda a: a[torch.tensor([True, False, True])]", "(x,)"),
    ("lambda a, i: a[:, i, None]", "(x, idx)"),
    ("lambda a, i: a[i, :, i]", "(R(B, 3, 2, 5), idx)"),
    ("lambda a, i: a.gather(0, i)", "(x, I(3, B, 2, 5))"),
    ("lambda a: a.gather(1, torch.tensor([[0], [1], [2]]))", "(x,)"),
    ("lambda a, i: a.scatter(0, i, torch.ones(2, 5))", "(x, I(3, B, 2, 5))"),
    ("lambda a: a.index_select(1, ui)", "(x,)"),
    ("lambda a, i: a.index_select(1, i)", "(x, idx)"),
    ("lambda a: a.index_add(0, ui, torch.ones(2, 5))", "(x,)"),
    ("lambda i: F.embedding(i, u)", "(idx,)"),
    ("lambda i, a: F.embedding(i, a)", "(idx, x)"),
    ("lambda i: F.one_hot(i, 3)", "(idx,)"),
    ("lambda a: a.masked_fill(a > 0, 0.0)", "(x,)"),
    ("lambda a: torch.take_along_dim(a, a.argsort(0), 0)", "(x,)"),
    ("lambda a: F.conv2d(a, ker, padding=1)", "(img,)"),
    ("lambda a, k: F.conv2d(a, k)", "(img, kb)"),
    ("lambda a, k, b: F.conv2d(a, k, b, stride=2)", "(img, kb, bias)"),
    ("lambda k: F.conv2d(img[0], k)", "(kb,)"),
    ("lambda a: F.conv2d(a, ker)", "(img[:, 0],)"),
    ("lambda a, k: F.conv_transpose2d(a, k)", "(img, R(B, 3, 4, 2, 2))"),
    ("lambda a: F.max_pool2d(a, 2)", "(img,)"),
    ("lambda a: F.avg_pool2d(a, 2)", "(img[:, 0],)"),
    ("lambda a: F.adaptive_avg_pool2d(a, 2)", "(img,)"),
    ("lambda a: F.layer_norm(a, (5,))", "(x,)"),
    ("lambda a, b: F.layer_norm(a, (5,), b, b)", "(x, v)"),
    ("lambda a: F.group_norm(a, 3, torch.full((3,), 2.0))", "(img,)"),
    ("lambda a: F.batch_norm(a, None, None, training=True)", "(img,)"),
    ("lambda a: F.batch_norm(a, torch.zeros(3), torch.ones(3))", "(img,)"),
    ("lambda a: F.instance_norm(a)", "(img,)"),
    ("lambda a, t: F.cross_entropy(a, t)", "(x, I(5, B, 3))"),
    ("lambda a, t: F.cross_entropy(a, t)", "(v, I(5, B))"),
    (
        "lambda a, t: F.cross_entropy(a, t, weight=torch.arange(5.0), label_smoothing=0.1, ignore_index=1)",
        "(x, I(5, B, 3))",
    ),
    ("lambda a, t: F.nll_loss(a, t, reduction='sum')", "(x, I(5, B, 3))"),
    ("lambda a, b: F.mse_loss(a, b)", "(x, y)"),
    ("lambda a, b: F.binary_cross_entropy_with_logits(a, b.sigmoid())", "(x, y)"),
    ("lambda a: F.l1_loss(a, u, reduction='none')", "(x,)"),
    ("lambda a, b: F.kl_div(a, b, reduction='batchmean')", "(x, y.exp())"),
    ("lambda a, b: F.scaled_dot_product_attention(a, b, b)", "(x, y)"),
    ("torch.linalg.inv", "(spd,)"),
    ("torch.linalg.solve", "(spd, R(B, 4))"),
    ("torch.linalg.solve", "(spd, R(B, 4, 2))"),
    ("lambda a: torch.linalg.solve(a, torch.ones(4))", "(spd,)"),
    ("torch.linalg.cholesky", "(spd,)"),
    ("torch.linalg.det", "(spd,)"),
    ("lambda a: tuple(torch.linalg.slogdet(a))", "(spd,)"),
    ("lambda a: torch.linalg.eigh(a)[0]", "(spd,)"),
    ("lambda a: a.norm()", "(x,)"),
    ("lambda a: torch.linalg.norm(a)", "(x,)"),
    ("lambda a: torch.linalg.vector_norm(a, dim=0)", "(x,)"),
    ("lambda a: torch.linalg.matrix_norm(a)", "(x,)"),
    ("lambda a: torch.trace(a)", "(spd,)"),
    ("lambda a: torch.linalg.cross(a[:, :3], a[:, 2:])", "(x,)"),
    ("lambda a: F.normalize(a, dim=1)", "(x,)"),
    ("lambda a, b: F.cosine_similarity(a, b, dim=1)", "(x, y)"),
    ("lambda a, b: torch.cdist(a, b)", "(x, y)"),
    ("lambda a, b: torch.tensordot(a, b, 1)", "(x, m)"),
    ("torch.kron", "(x[:, :2, :2], y[:, :2, :2])"),
    ("lambda a: F.pad(a, (1, 1))", "(x,)"),
    ("lambda a: F.pad(a, (1, 1), mode='reflect')", "(x,)"),
    ("lambda a: F.interpolate(a, scale_factor=2)", "(img,)"),
    ("lambda a: F.gelu(F.silu(F.elu(a)))", "(x,)"),
    ("lambda a: torch.meshgrid(a, a, indexing='ij')[0]", "(v,)"),
    ("lambda a: a.clamp(0, 1).clamp_(max=0.5)", "(x,)"),
    ("lambda a: a.clone().add_(1).mul_(u)", "(x,)"),
    ("lambda a: _set(a)", "(x,)"),
    ("lambda a: a.softmax(-1).cumprod(-1)", "(x,)"),
    ("lambda a: a.softmax(0) + a.sum() + a.max()", "(sc,)"),
    ("grad(lambda a: (a ** 3).sum())", "(x,)"),
    (
        "lambda a, b: grad(lambda p: F.cross_entropy(F.linear(a, p), b))(PP)",
        "(x, I(5, B, 3))",
    ),
    ("lambda a, b: jvp(torch.sin, (a,), (b,))[1]", "(x, y)"),
    ("lambda b: jvp(lambda z: (z ** 2).sum(0), (u,), (b,))[1]", "(x,)"),
    ("lambda a: vjp(lambda z: z.sin().sum(0), a)[1](a[0])[0]", "(x,)"),
    ("jacrev(lambda a: a.sin().cumsum(0))", "(v,)"),
    ("jacfwd(lambda a: a.sin().cumsum(0))", "(v,)"),
    ("hessian(lambda a: (a ** 3).sum())", "(v,)"),
    ("vmap(lambda a: a.sum() * a)", "(x,)"),
    ("lambda a, b: vmap(lambda q, r: q @ r, (0, None))(a, b)", "(x, m)"),
    ("lambda a: vmap(lambda c: a @ c)(u)", "(x,)"),
    (
        "lambda a: grad(lambda z: vmap(grad(lambda q: (q ** 3).sum()))(z).sum())(a)",
        "(x,)",
    ),
]


def assigned(a):
    a = a.clone()
    a[0] = a[1] * 2
    a[:, 1] = 0.0
    return a


def names(device):
    """What the sources above are written with."""
    torch.manual_seed(0)
    B, R, S = 4, torch.randn, lambda high, *shape: torch.randint(0, high, shape)
    x, y, v, m = R(B, 3, 5), R(B, 3, 5), R(B, 5), R(B, 5, 6)
    spd = R(B, 4, 4)
    return {
        **{f.__name__: f for f in (vmap, grad, jvp, vjp, jacrev, jacfwd, hessian)},
        "torch": torch,
        "F": F,
        "B": B,
        "R": R,
        "I": S,
        "_set": assigned,
        "x": x,
        "y": y,
        "v": v,
        "m": m,
        "w": R(5, 6),
        "sc": R(B),
        "idx": S(3, B, 2),
        "u": R(3, 5),
        "ui": S(3, 2),
        "PP": torch.rand(5, 5),
        "spd": spd @ spd.transpose(1, 2) + 4 * torch.eye(4),
        "img": R(B, 2, 3, 8, 8),
        "ker": R(4, 3, 3, 3),
        "kb": R(B, 4, 3, 3, 3),
        "bias": R(B, 4),
    }


def by_loop(function, args):
    rows = [function(*(a[i] for a in args)) for i in range(len(args[0]))]
    if isinstance(rows[0], (tuple, list)):
        return [torch.stack(column) for column in zip(*rows, strict=True)]
    return [torch.stack(rows)]


def test_rules_give_what_a_loop_gives(device):
    with torch.device(device), Cases() as case:
        for source, batches in CASES:
            with case(source):
                space = names(device)
                function, args = eval(source, space), eval(batches, space)
                with warnings.catch_warnings():
                    warnings.simplefilter("error")  # nothing here has no rule
                    found = vmap(function)(*args)
                found = [*found] if isinstance(found, (tuple, list)) else [found]
                for one, exact in zip(found, by_loop(function, args), strict=True):
                    assert one.shape == exact.shape and one.dtype == exact.dtype
                    assert one.device == exact.device
                    if one.is_floating_point():
                        assert torch.allclose(one, exact, rtol=2e-4, atol=2e-5)
                    else:
                        assert torch.equal(one, exact)
                del space, function, args, found, one, exact


def test_dimensions_and_chunks(device):
    x = torch.randn(4, 3, 5, device=device)
    double = vmap(lambda a: (a.sum(), a * 2), in_dims=1, out_dims=(0, -1))
    total, twice = double(x)
    assert torch.allclose(total, x.sum((0, 2)), atol=1e-5)
    assert torch.equal(twice, (x * 2).movedim(1, -1))
    for chunk in (1, 2, 3, 9):
        parts = vmap(
            lambda a: (a.sum(), a * 2), in_dims=1, out_dims=(0, -1), chunk_size=chunk
        )(x)
        assert torch.equal(parts[1], twice) and torch.allclose(parts[0], total)
    assert vmap(lambda a: torch.ones(2))(x).shape == (4, 2)
    assert vmap(lambda a: torch.ones(2), out_dims=None)(x).shape == (2,)
    with pytest.raises(ValueError, match="out_dims"):
        vmap(lambda a: a * 2, out_dims=None)(x)


def test_functions_that_need_values_are_called_for_each(device):
    x = torch.tensor([1.0, -2.0, 3.0], device=device)

    def put(a):
        found = torch.zeros(2, device=device)
        found[0] = a
        return found

    for i, (function, exact) in enumerate(
        (
            (lambda a: a * 2 if a > 0 else -a, [2.0, 2.0, 6.0]),
            (lambda a: torch.full((), a.item(), device=device), [1.0, -2.0, 3.0]),
            (put, [[1.0, 0.0], [-2.0, 0.0], [3.0, 0.0]]),
            (lambda a: torch.arange(3, device=device)[a < 0].sum(), None),
        )
    ):
        function.__name__ = f"{device} {i}"  # each warns once
        if exact is None:
            vmap(function)(x)
            continue
        with pytest.warns(UserWarning, match="for each element"):
            assert vmap(function)(x).tolist() == exact
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert vmap(function)(x).tolist() == exact
    with pytest.raises(ZeroDivisionError):
        vmap(lambda a: 1 / 0)(x)
    x = torch.ones(3, 2, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert vmap(lambda a: a.histc(2, 0.0, 2.0))(x).tolist() == [[0.0, 2.0]] * 3


def test_random_numbers(device):
    x = torch.ones(3, 50, device=device)
    torch.manual_seed(3)
    different = vmap(F.dropout, randomness="different")(x)
    assert set(different.flatten().tolist()) == {0.0, 2.0}
    assert not torch.equal(different[0], different[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same = vmap(F.dropout, randomness="same")(x)
        rows = vmap(
            lambda a: a * torch.rand(50, device=device), randomness="different"
        )(x)
        also = vmap(lambda a: a * torch.rand(50, device=device), randomness="same")(x)
    assert torch.equal(same[0], same[2]) and torch.equal(also[0], also[2])
    assert not torch.equal(rows[0], rows[1])
    before = torch.get_rng_state()
    for function in (F.dropout, torch.bernoulli, lambda a: torch.rand(2) + a[:2].cpu()):
        with pytest.raises(RuntimeError, match="draws random numbers"):
            vmap(function)(x * 0.5)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(vmap(lambda a: F.dropout(a, training=False))(x), x)


@pytest.mark.parametrize("kind", ["perceptron", "convolution", "transformer"])
def test_gradients_of_each_sample(kind, device):
    torch.manual_seed(1)
    net, shape = {
        "perceptron": lambda: (
            nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)),
            (5,),
        ),
        "convolution": lambda: (
            nn.Sequential(
                nn.Conv2d(3, 4, 3),
                nn.GroupNorm(2, 4),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Flatten(),
                nn.Linear(36, 3),
            ),
            (3, 8, 8),
        ),
        "transformer": lambda: (
            nn.Sequential(
                nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
                nn.Flatten(),
                nn.Linear(40, 3),
            ),
            (5, 8),
        ),
    }[kind]()
    net.to(device)
    x = torch.randn(4, *shape, device=device)
    target = torch.tensor([0, 2, 1, 1], device=device)

    def loss(weights, a, t):
        return F.cross_entropy(functional_call(net, weights, (a[None],)), t[None])

    weights = {name: p.detach() for name, p in net.named_parameters()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = vmap(grad(loss), in_dims=(None, 0, 0))(weights, x, target)
    for i in range(4):
        net.zero_grad()
        F.cross_entropy(net(x[i : i + 1]), target[i : i + 1]).backward()
        for name, p in net.named_parameters():
            assert torch.allclose(found[name][i], p.grad, atol=2e-5), name


def test_ensembles(device):
    nets = [nn.Linear(5, 2).to(device) for _ in range(3)]
    weights, buffers = stack_module_state(nets)
    x = torch.randn(4, 5, device=device)

    def run(w, b, a):
        return functional_call(nets[0], (w, b), (a,))

    found = vmap(run, in_dims=(0, 0, None))(weights, buffers, x)
    assert torch.allclose(found, torch.stack([net(x) for net in nets]), atol=1e-6)
    found.square().sum().backward()
    for i, net in enumerate(nets):
        net.zero_grad()
        net(x).square().sum().backward()
        assert torch.allclose(weights["weight"].grad[i], net.weight.grad, atol=1e-4)


def test_gradients_of_what_elements_share(device):
    u = torch.randn(3, device=device, requires_grad=True)
    y = u**2
    eye = torch.eye(3, device=device)
    (rows,) = vmap(lambda g: torch.autograd.grad(y, u, g, retain_graph=True))(eye)
    assert torch.allclose(rows, torch.diag(2 * u.detach()))
    x = torch.randn(4, 3, device=device)
    (rows,) = vmap(lambda a: torch.autograd.grad((a * u).sum(), u))(x)
    assert torch.allclose(rows, x)
    vmap(lambda a: a * u)(x).sum().backward()
    assert torch.allclose(u.grad, x.sum(0))
