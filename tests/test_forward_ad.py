"""Dual numbers, and func.linearize, jvp and jacfwd beside them."""

import pytest

import pydevtensor as torch
import pydevtensor.autograd.forward_ad as fw
from pydevtensor import nn


def point(device):
    options = {"dtype": torch.float64, "device": device}
    return torch.tensor([1.0, 2.0], **options), torch.tensor([3.0, 4.0], **options)


def close(a, b):
    torch.testing.assert_close(a, b)


def test_tangents_go_through_operations(device):
    x, v = point(device)
    with fw.dual_level():
        dual = fw.make_dual(x, v)
        assert fw.unpack_dual(dual).primal.equal(x)
        assert fw.unpack_dual(dual).tangent.equal(v)
        primal, tangent = fw.unpack_dual(dual.sin() * 2)
        close(primal, x.sin() * 2)
        close(tangent, 2 * x.cos() * v)
        assert not primal.requires_grad and not tangent.requires_grad
        target = torch.zeros_like(x)
        target.copy_(dual)
        dual *= dual
        close(fw.unpack_dual(dual).tangent, 2 * x.sqrt() * v)  # x is the same memory
        close(fw.unpack_dual(target).tangent, v)
        for other in (x, dual > 1, dual.detach(), torch.ones(2)):
            assert fw.unpack_dual(other).tangent is None
        zero = fw.unpack_dual(dual - dual.detach()).primal
        assert zero.tolist() == [0, 0]
    assert fw.unpack_dual(dual) == (dual, None)


def test_every_dual_tensor_counts(device):
    x, v = point(device)
    with fw.dual_level():
        a, b = fw.make_dual(x, v), fw.make_dual(x.clone(), 2 * v)
        close(fw.unpack_dual(a * b).tangent, 3 * x * v)
        close(fw.unpack_dual(torch.linalg.norm(a)).tangent, (x @ v) / x.norm())
        close(fw.unpack_dual(torch.stack([a, b])).tangent, torch.stack([v, 2 * v]))


def test_derivatives_of_tangents_and_tangents_of_derivatives(device):
    x, v = point(device)
    x.requires_grad_()
    with fw.dual_level(), torch.enable_grad():
        y = fw.make_dual(x, v) ** 3
        tangent = fw.unpack_dual(y).tangent
        (of_tangent,) = torch.autograd.grad(tangent.sum(), x, retain_graph=True)
        close(of_tangent.detach(), 6 * x.detach() * v)
        (gradient,) = torch.autograd.grad(y.sum(), x)
        close(fw.unpack_dual(gradient).tangent.detach(), 6 * x.detach() * v)
        f = torch.func.grad(lambda x: (x**4).sum())
        dual = fw.make_dual(x.detach(), v)
        close(fw.unpack_dual(f(dual)).tangent, 12 * x.detach() ** 2 * v)


def test_modules(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).to(device)
    inputs = torch.randn(5, 3).to(device)
    weights = {name: p.detach() for name, p in net.named_parameters()}
    tangents = {name: torch.randn_like(p) for name, p in weights.items()}

    def f(given):
        return torch.func.functional_call(net, given, (inputs,))

    with torch.no_grad(), fw.dual_level():
        duals = {name: fw.make_dual(p, tangents[name]) for name, p in weights.items()}
        primal, tangent = fw.unpack_dual(f(duals))
    expected = torch.func.jvp(f, (weights,), (tangents,))
    close(primal, expected[0])
    close(tangent, expected[1])
    step = 1e-3
    moved = {name: p + step * tangents[name] for name, p in weights.items()}
    assert ((f(moved) - f(weights)) / step - tangent).abs().max() < 1e-2


def test_a_function_of_the_program(device):
    x, v = point(device)

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return x**3

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 3 * ctx.saved_tensors[0] ** 2

    with fw.dual_level():
        close(fw.unpack_dual(Cube.apply(fw.make_dual(x, v))).tangent, 3 * x * x * v)


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (RuntimeError, "the tangent has shape", "make_dual(x, torch.ones(3))"),
        (ValueError, "Expected primal to be floating", "make_dual(x.long(), x)"),
        (ValueError, "Expected tangent .* float", "make_dual(x, 3.0)"),
        (RuntimeError, "already has a forward grad", "make_dual(make_dual(x, x), x)"),
        (RuntimeError, "no level exists", "make_dual(x, x, level=1)"),
        (RuntimeError, "Nested forward mode", "enter_dual_level()"),
        (RuntimeError, "no such level", "exit_dual_level(level=2)"),
    ],
)
def test_errors(error, words, call):
    with fw.dual_level() as level, pytest.raises(error, match=words):
        assert level == 0
        eval(f"fw.{call}", {"fw": fw, "x": torch.ones(2), "torch": torch,
                            "make_dual": fw.make_dual})  # fmt: skip
    for outside in (lambda: fw.make_dual(torch.ones(1), torch.ones(1)),
                    fw.exit_dual_level):  # fmt: skip
        with pytest.raises(RuntimeError, match=r"no (such )?level"):
            outside()


def test_the_mode_comes_back():
    with torch.no_grad():
        with fw.dual_level():
            assert torch.is_grad_enabled()
            fw.unpack_dual(fw.make_dual(torch.ones(1), torch.ones(1)) * 2)
        assert not torch.is_grad_enabled()
    y = torch.ones(2, requires_grad=True)
    assert not torch.autograd.grad((y * y).sum(), y)[0].requires_grad


def test_linearize(device):
    x, v = point(device)
    value, push = torch.func.linearize(lambda a, b: {"s": a * b, "t": a.sin()}, x, v)
    close(value["s"], x * v)
    for tangents in ((x, v), (v, x)):
        found = push(*tangents)
        close(found["s"], tangents[0] * v + x * tangents[1])
        close(found["t"], x.cos() * tangents[0])
        assert not found["s"].requires_grad
    for wrong in ((v,), (v, v[:1]), (v.float(), v)):
        with pytest.raises(RuntimeError, match="other shapes or types than primals"):
            push(*wrong)
    gradient = torch.func.grad(lambda t: push(t, v)["s"].sum())(x)
    close(gradient, v)


@pytest.mark.parametrize("argnums", [0, (0, 1)])
def test_jacfwd_is_jacrev(device, argnums):
    x, v = point(device)

    def f(a, b):
        return {"s": torch.outer(a, b).exp(), "t": (a * b).sum()}, a

    forward = torch.func.jacfwd(f, argnums, has_aux=True)(x, v[:1] / 4)
    backward = torch.func.jacrev(f, argnums, has_aux=True)(x, v[:1] / 4)
    flat = [torch.utils._pytree.tree_leaves(each) for each in (forward, backward)]
    assert len(flat[0]) == len(flat[1]) > 2
    for a, b in zip(*flat, strict=True):
        close(a, b)
    empty = torch.func.jacfwd(lambda a: a * 2)(x[:0])
    assert empty.shape == (0, 0) == torch.func.jacrev(lambda a: a * 2)(x[:0]).shape
    second = torch.func.jacfwd(torch.func.jacrev(lambda a: (a**3).sum()))(x)
    close(second, torch.diag(6 * x))


def test_jacfwd_takes_a_pass_for_each_element_of_the_argument(device):
    x, _ = point(device)

    class Counted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            passes.append(1)
            return gradient * 1

    passes = []
    torch.func.jacfwd(lambda a: Counted.apply(a).repeat(20))(x)
    assert len(passes) == 1
    torch.func.jacrev(lambda a: Counted.apply(a).repeat(20))(x)
    assert len(passes) == 41
