"""Hooks of saved tensors, and what nodes have saved."""

import gc
import weakref

import pytest

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor.autograd import graph

hooks = graph.saved_tensors_hooks


class Log:
    """Hooks that note what they get."""

    def __init__(self):
        self.packed, self.unpacked = [], []

    def block(self):
        return hooks(self.pack, self.unpack)

    def pack(self, x):
        self.packed.append((tuple(x.shape), x.requires_grad, x.is_leaf))
        assert not torch.is_grad_enabled()
        return len(self.packed) - 1, x.detach().clone()

    def unpack(self, packed):
        self.unpacked.append(packed[0])
        return packed[1]


def test_hooks_see_operands_and_results(device):
    log = Log()
    a = torch.ones(3, device=device, requires_grad=True)
    b = torch.full((3,), 2.0, device=device)
    with log.block():
        y = (a * b).exp() * 3
    assert log.packed == [((3,), False, True), ((3,), True, False)]
    y.sum().backward(retain_graph=True)
    assert log.unpacked == [1, 0]
    y.sum().backward()
    assert log.unpacked == [1, 0, 1, 0]
    assert torch.allclose(a.grad, 12 * (a.detach() * b).exp())


CASES = {
    "products": lambda x, w: (x @ w).relu() @ w.T,
    "norm": lambda x, w: nn.functional.layer_norm(x, (4,), w[0], w[1]).softmax(-1),
    "indices": lambda x, w: x.max(1)[0].sum() + w[torch.tensor([0, 0])].sum(),
    "lists": lambda x, w: torch.cat([x, w]).cumsum(0).sort(0)[0] ** 2,
    "in place": lambda x, w: (x * w).mul_(w).exp_().mul(x).sigmoid_(),
    "slices": lambda x, w: (x * 1).narrow(0, 0, 2).mul_(w[:2]) * w[:2],
    "convolution": lambda x, w: nn.functional.conv1d(x[None], w[:, :, None]).tanh(),
    "pooling": lambda x, w: nn.functional.max_pool1d(x * w, 2),
    "linalg": lambda x, w: torch.linalg.solve(x @ x.T + 4 * torch.eye(4).to(x), w),
    "attention": lambda x, w: nn.functional.scaled_dot_product_attention(
        x[None], w[None], x[None]
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("second", [False, True])
def test_gradients_are_those_without_hooks(device, name, second):
    def run(block):
        torch.manual_seed(0)
        x, w = (torch.randn(4, 4).to(device).requires_grad_() for _ in range(2))
        with block:
            y = (CASES[name](x, w) ** 2).sum()
            found = torch.autograd.grad(y, [x, w], create_graph=second)
            if second:
                total = sum((g**2).sum() for g in found)
                found = torch.autograd.grad(total, [x, w])
        return found

    log = Log()
    for a, b in zip(run(log.block()), run(torch.enable_grad()), strict=True):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-5)
    assert log.packed and log.unpacked


def test_the_innermost_block_counts():
    outer, inner = Log(), Log()
    a = torch.ones(2, requires_grad=True)
    with outer.block():
        with inner.block():
            y = a.exp()
        z = y.sin()
    z.sum().backward()
    assert len(inner.packed) == len(inner.unpacked) == 1
    assert len(outer.packed) == len(outer.unpacked) == 1


class Scale(torch.autograd.Function):
    """Saves an argument, a result, something else and nothing."""

    @staticmethod
    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward(x, y, x.sum(), None)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y, total, nothing = ctx.saved_tensors
        assert nothing is None and total.dim() == 0
        return g * 2 * (y / x / 2)


def test_functions_save_by_hooks(device):
    log = Log()
    a = torch.ones(3, device=device, requires_grad=True)
    with log.block():
        y = Scale.apply(a)
    assert log.packed == [((3,), True, True), ((3,), True, False), ((), False, True)]
    y.sum().backward()
    assert log.unpacked == [0, 1, 2] and a.grad.tolist() == [2.0] * 3
    with pytest.raises(RuntimeError, match="freed"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="freed"):
        y.grad_fn.saved_tensors  # noqa: B018


def test_save_on_cpu(device):
    for pinned in (False, True):
        a = torch.ones(3, device=device, requires_grad=True)
        with graph.save_on_cpu(pin_memory=pinned and torch.cuda.is_available()):
            y = (a * a).exp()
        y.sum().backward()
        assert torch.allclose(a.grad, 2 * a.detach() * y.detach())


def test_save_on_cpu_frees_a_gpu(gpu):
    def most(block):
        x = torch.ones(1000, device=gpu, requires_grad=True)
        with block:
            for _ in range(8):
                x = x.exp()
        torch.cuda.synchronize(gpu)
        return torch.cuda.memory_allocated(gpu)

    assert most(graph.save_on_cpu()) + 7 * 4000 <= most(torch.enable_grad())


def test_what_hooks_may_give():
    def run(pack, unpack):
        with hooks(pack, unpack):
            y = a * a
        y.sum().backward()

    a = torch.ones(3, requires_grad=True)
    same = Log().unpack
    for unpack, error, text in (
        (lambda x: 3, TypeError, "unpack_hook has to give a Tensor, and it gave 3"),
        (lambda x: torch.ones(2), RuntimeError, r"\[2\].*\[3\]"),
        (lambda x: {}["no"], KeyError, "no"),
    ):
        with pytest.raises(error, match=text):
            run(lambda x: x, unpack)
    for pack, error, text in (
        (lambda x: {}["no"], KeyError, "no"),
        (lambda x, y: x, TypeError, "missing 1 required"),
        (lambda x: x.add_(1), RuntimeError, "modified its argument in place"),
    ):
        with pytest.raises(error, match=text):
            run(pack, same)
    a = torch.ones(3, requires_grad=True)
    with pytest.raises(KeyError), hooks(lambda x: {}["no"], same):
        torch.softmax(a, 0)
    run(lambda x: x.to(torch.float16), lambda x: x)  # in the type that was saved
    assert a.grad.dtype == torch.float32 and a.grad.tolist() == [2.0] * 3


def test_a_write_is_noticed_without_hooks_alone():
    a, b = torch.ones(2, requires_grad=True), torch.ones(2)
    with hooks(lambda x: x.clone(), lambda x: x):
        y = a * b
    b.add_(1)
    y.sum().backward()
    assert a.grad.tolist() == [1.0, 1.0]
    y = a * b
    b.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_hooks_may_be_disabled():
    with graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"), graph.save_on_cpu():
            pass
        other = graph.disable_saved_tensors_hooks("nor here")
        with other, pytest.raises(RuntimeError, match="nor here"):
            hooks(None, None).__enter__()
    refuses = graph.disable_saved_tensors_hooks("not here")
    with Log().block(), pytest.raises(RuntimeError, match="not here"), refuses:
        pass
    with Log().block():
        pass


def test_what_hooks_keep_is_freed():
    class Kept:
        def __init__(self, x):
            self.x = x.detach()

    alive = []

    def pack(x):
        kept = Kept(x)
        alive.append(weakref.ref(kept))
        return kept

    a = torch.ones(2, requires_grad=True)
    with hooks(pack, lambda kept: kept.x):
        y = a.exp()
    assert alive[0]() is not None
    y.sum().backward()
    assert alive[0]() is None
    with hooks(pack, lambda kept: kept.x):
        y = a.exp()
        y.ring = alive[-1]().ring = y  # a cycle through the node
    del y
    gc.collect()
    assert alive[1]() is None


def test_nodes_name_what_they_saved():
    a = torch.ones(3, requires_grad=True)
    y = a * torch.full((3,), 2.0)
    assert y.grad_fn._saved_other.tolist() == [2.0] * 3
    assert "_saved_other" in dir(y.grad_fn) and "_saved_self" not in dir(y.grad_fn)
    assert a.exp().grad_fn._saved_result.requires_grad
    node = a.max(0)[0].grad_fn
    assert node._saved_indices.item() == 0
    assert a.sin().grad_fn._saved_self.requires_grad
    with pytest.raises(AttributeError, match="_saved_nothing"):
        node._saved_nothing  # noqa: B018
    with pytest.raises(AttributeError, match="Function"):
        node.saved_tensors  # noqa: B018
    y.sum().backward()
    with pytest.raises(RuntimeError, match="freed"):
        y.grad_fn._saved_other  # noqa: B018
    x, z, total, nothing = Scale.apply(a).grad_fn.saved_tensors
    assert x.is_leaf and z.grad_fn.name() == "ScaleBackward" and nothing is None
    assert not total.requires_grad


def test_save_for_backward_takes_tensors_alone():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, 3)
            return x * 1

    with pytest.raises(TypeError, match="argument 1 is a int"):
        Wrong.apply(torch.ones(1, requires_grad=True))
