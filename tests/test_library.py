"""torch.library and torch.ops: operators that a program defines, and those of aten."""

import itertools

import numpy as np
import pytest

import pydevtensor as torch
from pydevtensor import Tensor

count = itertools.count()


@pytest.fixture
def space():
    return f"tests{next(count)}"


def add_scaled(x: Tensor, n: int = 2, *, k: float = 1.0) -> Tensor:
    return (x + n) * k


def test_an_operator_of_a_function(space, device):
    op = torch.library.custom_op(f"{space}::add", add_scaled, mutates_args=())
    x = torch.ones(2, device=device)
    packet = getattr(torch.ops, space).add
    for call in (op, packet, packet.default):
        assert call(x, 3, k=2.0).tolist() == [8, 8] and call(x, k=2).tolist() == [6, 6]
    assert repr(op) == f"<CustomOpDef({space}::add)>" and packet.overloads() == [
        "default"
    ]
    assert str(packet.default) == f"{space}.add.default" != str(packet)
    assert (
        packet.default.name() == f"{space}::add"
        and packet.default.overloadpacket is packet
    )
    assert repr(packet.default) == f"<OpOverload(op='{space}.add', overload='default')>"
    schema = packet.default._schema
    assert (
        str(schema) == f"{space}::add(Tensor x, SymInt n=2, *, float k=1.0) -> Tensor"
    )
    kinds = [(a.name, a.type, a.kwarg_only, a.default_value) for a in schema.arguments]
    assert kinds[1:] == [("n", "int", False, 2), ("k", "float", True, 1.0)]
    assert not schema.is_mutable and len(schema.returns) == 1


@pytest.mark.parametrize(
    ("args", "named", "words"),
    [
        ((1.0,), {}, "Expected a value of type 'Tensor' for argument 'x'"),
        ((), {}, "missing value for argument 'x'"),
        ((torch.ones(1), 1.5), {}, "type 'int' for argument 'n'"),
        ((torch.ones(1),), {"foo": 1}, "'foo' is given twice or is not an argument"),
        ((torch.ones(1),), {"x": torch.ones(1)}, "'x' is given twice"),
        ((torch.ones(1), 1, 2.0), {}, "takes 2 positional arguments, and 3"),
    ],
)
def test_wrong_calls(space, args, named, words):
    op = torch.library.custom_op(f"{space}::add", add_scaled, mutates_args=())
    with pytest.raises(RuntimeError, match=words):
        op(*args, **named)


def test_a_derivative(space, device):
    @torch.library.custom_op(f"{space}::sin", mutates_args=())
    def sin(x: Tensor, n: int = 2, *, k: float = 1.0) -> Tensor:
        assert not torch.is_grad_enabled()
        return torch.from_numpy(np.sin(x.cpu().numpy()) * n * k).to(x.device)

    def setup(ctx, inputs, keyword_only_inputs, output):
        seen.update(inputs=inputs, only=keyword_only_inputs)
        ctx.save_for_backward(inputs[0])
        ctx.factor = inputs[1] * keyword_only_inputs["k"]

    def backward(ctx, gradient):
        seen["needed"] = ctx.needs_input_grad
        return gradient * ctx.saved_tensors[0].cos() * ctx.factor, None

    seen = {}
    x = torch.ones(2, device=device, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        sin(x).sum().backward()
    sin.register_autograd(backward, setup_context=setup)
    y = sin(x, k=3.0)
    assert y.grad_fn.name() == f"GeneratedBackwardFor_{space}_sin_defaultBackward"
    y.sum().backward()
    assert torch.allclose(x.grad, 6 * x.detach().cos())
    assert seen["inputs"][0] is x and seen["only"] == {"k": 3.0}
    assert seen["needed"] == (True, False)
    assert torch.autograd.gradcheck(sin, (x,)) and torch.autograd.gradgradcheck(
        sin, (x,)
    )
    with torch.no_grad():
        assert not sin(x).requires_grad
    seen.clear()  # the operator stays


def test_lists_and_several_results(space, device):
    @torch.library.custom_op(f"{space}::stack", mutates_args=())
    def stack(xs: list[Tensor], y: Tensor) -> tuple[Tensor, list[Tensor]]:
        return torch.stack(xs) * y, [y.clone()]

    def setup(ctx, inputs, output):
        ctx.count = len(inputs[0])
        ctx.save_for_backward(inputs[1])

    def backward(ctx, gradient, others):
        needed.append(ctx.needs_input_grad)
        assert isinstance(others, list) and others[0].tolist() == [0, 0]
        return [gradient[i] * ctx.saved_tensors[0] for i in range(ctx.count)], None

    needed = []
    stack.register_autograd(backward, setup_context=setup)
    a = torch.ones(2, device=device, requires_grad=True)
    b = torch.ones(2, device=device)
    first, second = stack([a, b], b * 3)
    assert first.shape == (2, 2) and second[0].tolist() == [3, 3]
    first.sum().backward()
    assert a.grad.tolist() == [3, 3] and needed == [([True, False], False)]
    stack.register_autograd(lambda ctx, gradient, others: ([gradient[0]], None))
    with pytest.raises(RuntimeError, match="a list of as many gradients"):
        stack([a, b], b)[0].sum().backward()
    stack.register_autograd(lambda ctx, gradient, others: None)
    with pytest.raises(RuntimeError, match="returned 1 gradients for 2 inputs"):
        stack([a, b], b)[0].sum().backward()


def test_arguments_that_are_written(space, device):
    @torch.library.custom_op(f"{space}::fill", mutates_args=["x"])
    def fill(x: Tensor) -> None:
        x.fill_(5)

    x = torch.ones(2, device=device)
    before = x._version
    assert fill(x) is None and x.tolist() == [5, 5] and x._version > before
    assert "Tensor(a0!) x" in str(fill._opoverload._schema)
    with pytest.raises(RuntimeError, match="for non-functional operator"):
        fill.register_autograd(lambda ctx: None)
    saved = torch.ones(2, device=device, requires_grad=True) * 1
    product = saved * saved
    fill(saved)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_results_are_checked(space):
    @torch.library.custom_op(f"{space}::same", mutates_args=())
    def same(x: Tensor) -> Tensor:
        return x[:1]

    @torch.library.custom_op(f"{space}::wrong", mutates_args=())
    def wrong(x: Tensor) -> Tensor:
        return 3

    with pytest.raises(RuntimeError, match="shares memory with an argument"):
        same(torch.ones(2))
    with pytest.raises(RuntimeError, match="it returned 3, and its schema"):
        wrong(torch.ones(2))


def test_kernels_of_devices(space, device):
    @torch.library.custom_op(f"{space}::where", mutates_args=(), device_types="cuda")
    def where(x: Tensor) -> Tensor:
        return x + 1

    x = torch.zeros(1, device=device)
    if device == "cpu":
        with pytest.raises(NotImplementedError, match="from the 'CPU' backend"):
            where(x)
    torch.library.register_kernel(f"{space}::where", "cpu", lambda x: x + 2)
    assert where(x).item() == (2 if device == "cpu" else 1)
    meta = torch.empty(3, 2, device="meta")
    with pytest.raises(RuntimeError, match="no fake impl registered"):
        where(meta)
    torch.library.register_fake(where)(lambda x: torch.empty_like(x))
    assert where(meta).shape == (3, 2) and where(meta).device.type == "meta"
    with pytest.raises(ValueError, match="device_types has 'tpu'"):
        where.register_kernel("tpu", abs)


def test_a_library(space, device):
    lib = torch.library.Library(space, "DEF")
    assert lib.define("mul(Tensor x, Tensor y, int n=1) -> Tensor") == "mul"
    ops = getattr(torch.ops, space)
    x = torch.full((2,), 3.0, device=device, requires_grad=True)
    with pytest.raises(NotImplementedError, match="there are: none"):
        ops.mul(x, x)
    lib.impl("mul", lambda x, y, n=1: x * y * n, "CompositeExplicitAutograd")
    ops.mul(x, x, n=4).sum().backward()
    assert x.grad.tolist() == [24, 24]
    torch.library.register_autograd(ops.mul, lambda ctx, g: (g * 7, None, None))
    assert torch.autograd.grad(ops.mul(x, x).sum(), x)[0].tolist() == [7, 7]
    lib.impl("mul", lambda x, y, n=1: x - y, "Autograd")
    assert torch.autograd.grad(ops.mul(x, 2 * x).sum(), x)[0].tolist() == [-1, -1]

    fragment = torch.library.Library(space, "FRAGMENT")
    fragment.define("mul.Scalar(Tensor x, Scalar y) -> Tensor")
    fragment.impl("mul.Scalar", lambda x, y: x * y + 100)
    assert (
        ops.mul.overloads() == ["default", "Scalar"] and ops.mul.Scalar(x, 2)[0] == 106
    )
    assert dir(ops) == ["mul"] and not hasattr(ops, "div")
    assert torch.library.impl(lib, "mul.Scalar", "CPU")(max) is max


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (RuntimeError, "multiple times", "lib.define('f(Tensor x) -> Tensor')"),
        (RuntimeError, "Only a single", "torch.library.Library(space, 'DEF')"),
        (RuntimeError, "Only a single", "torch.library.Library('aten', 'DEF')"),
        (ValueError, "Unsupported kind", "torch.library.Library(space, 'X')"),
        (RuntimeError, "is not a schema", "lib.define('g(Tensor x)')"),
        (
            RuntimeError,
            "is not an argument of a schema",
            "lib.define('g(Foo x) -> Tensor')",
        ),
        (RuntimeError, "parse dispatch key: Foo", "lib.impl('f', max, 'Foo')"),
        (RuntimeError, "does not exist", "lib.impl('g', max, 'CPU')"),
        (RuntimeError, "does not exist", "torch.library.register_fake('a::b')"),
        (ValueError, "namespace::name", "torch.library.define('f', '() -> ()')"),
        (NotImplementedError, "with_keyset", "lib.impl('f', max, with_keyset=True)"),
        (AttributeError, "has no overload name 'x'", "getattr(torch.ops, space).f.x"),
    ],
)
def test_wrong_definitions(space, error, words, call):
    lib = torch.library.Library(space, "DEF")
    lib.define("f(Tensor x) -> Tensor")
    with pytest.raises(error, match=words):
        eval(call, {"lib": lib, "space": space, "torch": torch})


def test_schemas_of_functions():
    def f(
        x: Tensor,
        y: Tensor | None,
        z: list[Tensor],
        *,
        w: list[float],
        a: int | float | bool = 1,
        dt: torch.dtype = torch.float32,
        dev: torch.device = torch.device("cpu"),  # noqa: B008
    ) -> None: ...

    infer = torch.library.infer_schema
    only = '*, float[] w, Scalar a=1, ScalarType dt=float32, Device dev="cpu") -> ()'
    # What PyTorch 2.13 gives.
    assert (
        infer(f, mutates_args={"x"}) == f"(Tensor(a0!) x, Tensor? y, Tensor[] z, {only}"
    )
    assert (
        infer(f, mutates_args="unknown", op_name="g")
        == f"g(Tensor(a0!) x, Tensor(a1!)? y, Tensor(a2!)[] z, {only}"
    )
    with pytest.raises(ValueError, match=r"mutates_args names \['q'\]"):
        infer(f, mutates_args=("q",))
    for parameter, result, words in (
        (dict, Tensor, "unsupported type"),
        (None, Tensor, "needs a name of its own and a type"),
        (Tensor, None, "no return type"),
        (Tensor, dict, "the result has the unsupported type"),
    ):

        def g(x): ...

        g.__annotations__ = {
            name: each
            for name, each in (("x", parameter), ("return", result))
            if each is not None
        }
        with pytest.raises(ValueError, match=words):
            infer(g, mutates_args=())


def test_aten(device):
    aten, x = torch.ops.aten, torch.arange(6.0, device=device).reshape(2, 3)
    assert aten.add.Tensor(x, 2).equal(x + 2) and aten.add(x, x, alpha=2).equal(3 * x)
    assert aten.slice.Tensor(x, 1, 1, 3).equal(x[:, 1:3])
    assert aten._softmax.default(x, -1, False).equal(x.softmax(-1))
    assert aten.index.Tensor(x, [None, torch.tensor([1], device=device)]).equal(
        x[:, 1:2]
    )
    assert aten.mse_loss(x, x * 0, 2).equal((x * x).sum())
    assert aten.view.default(x, [3, 2]).shape == (3, 2)
    assert aten.linalg_vector_norm.default(x).equal(x.norm())
    assert aten._to_copy(x, dtype=torch.float64).dtype == torch.float64
    y = x.clone()
    assert aten.mul_.Scalar(y, 2) is y and y.equal(2 * x)
    assert (
        aten.add.Tensor is aten.add.Tensor and str(aten.add.Tensor) == "aten.add.Tensor"
    )
    assert aten.add.default.name() == "aten::add"
    assert repr(aten.add) == "<OpOverloadPacket(op='aten.add')>"
    for name in ("foo", "Size", "linalg_foo"):
        assert not hasattr(aten, name)
    assert not hasattr(aten.add, "foo") and not hasattr(torch.ops.nowhere, "add")


def checked(op, *args, **options):
    found = torch.library.opcheck(op, args, raise_exception=False, **options)
    return [name for name, result in found.items() if result != "SUCCESS"]


def test_opcheck(device):
    def made(name, body, fake=None, writes=()):
        def f(x: torch.Tensor) -> torch.Tensor:
            return body(x)

        op = torch.library.custom_op(f"checked::{name}", f, mutates_args=writes)
        if fake is not None:
            op.register_fake(fake)
        return op

    x = torch.arange(3.0, device=device)
    good = made("good", lambda x: x * 2, torch.empty_like)
    assert checked(good, x) == []
    good.register_autograd(lambda ctx, g: g * 2)
    assert checked(good, x.clone().requires_grad_()) == []
    good.register_autograd(lambda ctx, g: g[:2])
    assert "test_autograd_registration" in checked(good, x.clone().requires_grad_())
    assert checked(made("no_fake", lambda x: x * 2), x) == ["test_faketensor"]
    other = made("other_fake", lambda x: x * 2, lambda x: x.new_empty(7))
    assert checked(other, x) == ["test_faketensor"]
    writes = made("writes", lambda x: x.mul_(2) + 1, torch.empty_like)
    assert "test_schema" in checked(writes, x)
    assert x.tolist() == [0, 1, 2]
    fine = made("says_so", lambda x: x.mul_(2) + 1, torch.empty_like, ("x",))
    assert checked(fine, x) == []
    drawn = made("drawn", lambda x: x * torch.rand_like(x), torch.empty_like)
    assert checked(drawn, x) == []
    calls = itertools.count()
    counts = made("counts", lambda x: x + next(calls), torch.empty_like)
    assert checked(counts, x) == ["test_aot_dispatch_dynamic"]
    with pytest.raises(Exception, match=r"test_faketensor failed with .*on meta"):
        torch.library.opcheck(other, (x,), test_utils="test_faketensor")
    with pytest.raises(ValueError, match="give names of test_schema"):
        checked(good, x, test_utils="test_all")
