"""Operations of one's own, and the checks of their gradients."""

import numpy as np
import pytest
from leaves import leaf

import pydevtensor as torch
from pydevtensor.autograd import Function, GradcheckError, gradcheck, gradgradcheck

# --- operations of one's own


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * gradient


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        return gradient * y


class Both(Function):
    @staticmethod
    def forward(ctx, x, y, factor):
        ctx.factor = factor
        ctx.save_for_backward(x, y)
        return x * y * factor, x + y

    @staticmethod
    def backward(ctx, product, total):
        x, y = ctx.saved_tensors
        return product * y * ctx.factor + total, product * x * ctx.factor + total, None


def test_function(device):
    x = leaf([0.5, -1.25, 2.0], device)
    y = leaf([1.5, 0.25, -1.0], device)
    assert gradcheck(Cube.apply, (x,)) and gradgradcheck(Cube.apply, (x,))
    assert gradcheck(Exp.apply, (x,)) and gradgradcheck(Exp.apply, (x,))
    assert gradcheck(lambda a, b: Both.apply(a, b, 3.0), (x, y))
    assert Cube.apply(x).grad_fn.name() == "CubeBackward"
    product, _ = Both.apply(x, y, 2.0)
    product.sum().backward()  # the other result's gradient is zeros
    np.testing.assert_allclose(x.grad.tolist(), [3, 0.5, -2])


def test_missing_gradients_as_zeros_or_as_none(device):
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x, fills):
            ctx.set_materialize_grads(fills)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, first, second):
            seen.append((first, second))
            return None if second is None else second * 3, None

    x = torch.ones(2, device=device, requires_grad=True)
    for fills in (True, False):
        Two.apply(x, fills)[1].sum().backward()
        Two.apply(x, fills)[0].sum().backward()
    (zeros, _), (_, more), (none, _), (_, other) = seen
    assert none is None and other is None
    assert zeros.tolist() == more.tolist() == [0, 0] and str(zeros.device) == device
    assert x.grad.tolist() == [6, 6]


def test_equal_singular_values_have_gradients(device):
    """Zeros for the vectors' gradients would be divided by a difference of 0."""
    a = torch.eye(2, device=device, requires_grad=True)
    torch.linalg.svd(a)[1].sum().backward()
    assert a.grad.tolist() == [[1, 0], [0, 1]]


def test_the_node_has_what_forward_wrote_to_ctx():
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.factor, None

    x = torch.ones(2, requires_grad=True)
    node = Scale.apply(x, 3).grad_fn
    assert node.factor == 3 and node.needs_input_grad == (True, False)
    with pytest.raises(AttributeError, match="other"):
        node.other  # noqa: B018
    with pytest.raises(AttributeError, match="factor"):
        (x * 2).grad_fn.factor  # noqa: B018


def test_function_faults():
    x = torch.ones(2, requires_grad=True)

    class TooMany(Cube):
        @staticmethod
        def backward(ctx, gradient):
            return gradient, gradient

    class NoTensor(Cube):
        @staticmethod
        def backward(ctx, gradient):
            return 3

    class WrongShape(Cube):
        @staticmethod
        def backward(ctx, gradient):
            return torch.ones(5)

    class Raises(Cube):
        @staticmethod
        def backward(ctx, gradient):
            raise KeyError("mine")

    for function, error, text in (
        (TooMany, RuntimeError, "returned 2 gradients"),
        (NoTensor, TypeError, "return Tensors"),
        (WrongShape, RuntimeError, r"shape \[5\]"),
        (Raises, KeyError, "mine"),
    ):
        with pytest.raises(error, match=text):
            function.apply(x).sum().backward()
    assert not Cube.apply(torch.ones(2)).requires_grad
    with torch.no_grad():
        assert not Cube.apply(x).requires_grad
    with pytest.raises(RuntimeError, match="apply"):
        Cube()
    changed = x * 2
    y = Cube.apply(changed)
    changed.add_(1)
    with pytest.raises(RuntimeError, match="inplace"):
        y.sum().backward()


def test_gradcheck_notices_a_wrong_derivative():
    class Wrong(Cube):
        @staticmethod
        def backward(ctx, gradient):
            return gradient

    x = leaf([0.5, 2.0], "cpu")
    with pytest.raises(GradcheckError, match="finite differences give"):
        gradcheck(Wrong.apply, (x,))
    assert not gradcheck(Wrong.apply, (x,), raise_exception=False)


# --- errors


def test_gradcheck_refuses_checks_that_it_does_not_make():
    x = torch.rand(2, dtype=torch.float64, requires_grad=True)
    for name in ("check_forward_ad", "check_batched_grad"):
        with pytest.raises(NotImplementedError, match=name):
            gradcheck(torch.sin, (x,), **{name: True})
    with pytest.raises(NotImplementedError, match="check_fwd_over_rev"):
        gradgradcheck(torch.sin, (x,), check_fwd_over_rev=True)


def test_seeds_of_gradgradcheck_can_have_gaps():
    seen = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            seen.append(gradient.is_contiguous())
            return gradient * 2

    x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    assert gradgradcheck(Double.apply, (x,)) and all(seen)
    assert gradgradcheck(Double.apply, (x,), gen_non_contig_grad_outputs=True)
    assert not all(seen)


def test_once_differentiable(device):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x)
            return x**3 + y, y * 2

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g, h):
            (x,) = ctx.saved_tensors
            assert not torch.is_grad_enabled()
            return 3 * x * x * g, None

    x = torch.tensor([1.0, 2.0], device=device, requires_grad=True)
    y = torch.ones(2, device=device)
    (found,) = torch.autograd.grad(Cube.apply(x, y)[0].sum(), x)
    assert found.tolist() == [3, 12] and not found.requires_grad
    seed = torch.ones(2, device=device, requires_grad=True)
    (found,) = torch.autograd.grad(Cube.apply(x, y)[0], x, seed, create_graph=True)
    assert found.tolist() == [3, 12] and found.requires_grad
    with pytest.raises(RuntimeError, match="once_differentiable"):
        found.sum().backward()
