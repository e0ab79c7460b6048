"""The Tensor object: its life, operators, number and sequence protocols, views, types."""

import copy
import gc
import math
import operator
import threading
import weakref

import pytest

import pydevtensor as torch


def alive():
    return torch._C._storage_count(torch.device("cpu"))


# --- life ---------------------------------------------------------------------------------


def test_objects_are_used_again_clean():
    made = [torch.ones(2) for _ in range(300)]
    made[0].note = "mine"
    watch = weakref.ref(made[1])
    del made
    assert watch() is None
    again = [torch.zeros(2) for _ in range(300)]
    assert not any(hasattr(t, "note") for t in again)
    assert all(t.tolist() == [0.0, 0.0] for t in again)


def test_attributes_and_cycles():
    before = alive()
    x = torch.ones(3)
    assert not gc.is_tracked(x)
    x.self = x
    assert gc.is_tracked(x) and x.self is x
    assert vars(x) == {"self": x} or list(vars(x)) == ["self"]
    watch = weakref.ref(x)
    del x
    gc.collect()
    assert watch() is None and alive() == before


def test_dict_first_then_cycle():
    x = torch.ones(3)
    vars(x)["self"] = x
    watch = weakref.ref(x)
    del x
    gc.collect()
    assert watch() is None


def test_subclass():
    class Mine(torch.Tensor):
        pass

    before = alive()
    m = Mine([1.0, 2.0])
    assert isinstance(m, torch.Tensor) and type(m) is Mine
    m.me = m
    assert (m + 1).tolist() == [2.0, 3.0]
    assert m.sum().item() == 3.0
    watch = weakref.ref(m)
    del m
    gc.collect()
    assert watch() is None and alive() == before


def test_no_storage_is_lost():
    before = alive()
    x = torch.ones(4, 4)
    calls = [
        lambda: x + 1, lambda: x @ x, lambda: x.sum(), lambda: x[0], lambda: x.max(0),
        lambda: x.reshape(2, 8), lambda: x.t().contiguous(), lambda: x.to(torch.int64),
        lambda: list(x), lambda: x.split(2), lambda: x == None, lambda: 1.0 in x,  # noqa: E711
        lambda: x.clone().add_(1), lambda: torch.add(x, x, alpha=2), lambda: repr(x),
        lambda: torch.allclose(x, x), lambda: x.norm(), lambda: torch.add(x, 1, out=torch.empty(0)),
    ]  # fmt: skip
    failing = [
        lambda: x + torch.ones(3), lambda: x.sum(7), lambda: x.view(5), lambda: x @ torch.ones(3),
        lambda: x + "a", lambda: x.max(9), lambda: torch.add(x, 1, out=torch.empty(3)),
        lambda: x.split([1, 1]), lambda: torch.full((2,), 2**70), lambda: x.to("cuda:50"),
        lambda: torch.zeros(2, -1), lambda: float(x), lambda: torch.rand(2, dtype=torch.int64),
    ]  # fmt: skip
    for _ in range(50):
        for call in calls:
            call()
        for call in failing:
            with pytest.raises(Exception):  # noqa: B017
                call()
    del call
    gc.collect()
    assert alive() == before + 1


def test_threads_share_the_free_list():
    def work():
        for i in range(2000):
            x = torch.full((50,), float(i))
            assert (x + x).sum().item() == 100.0 * i

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# --- operators ----------------------------------------------------------------------------


BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
          operator.mod, operator.pow]  # fmt: skip
COMPARE = [operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge]


@pytest.mark.parametrize("op", BINARY + COMPARE)
def test_operators(op, device):
    a, b = [5.0, 2.0, 7.5], [2.0, 2.0, 0.5]
    x, y = torch.tensor(a, device=device), torch.tensor(b, device=device)
    close = pytest.approx
    assert op(x, y).tolist() == close(
        [op(p, q) for p, q in zip(a, b, strict=True)], rel=1e-6
    )
    assert op(x, 2).tolist() == close([op(p, 2) for p in a], rel=1e-6)
    assert op(x, 2.5).tolist() == close([op(p, 2.5) for p in a], rel=1e-6)
    assert op(3, y).tolist() == close([op(3, q) for q in b], rel=1e-6)
    if op is operator.sub:
        with pytest.raises(RuntimeError):
            op(True, y)
    else:
        assert op(True, y).tolist() == close([op(True, q) for q in b], rel=1e-6)


@pytest.mark.parametrize("op", BINARY)
def test_in_place_operators(op, device):
    in_place = getattr(operator, "i" + op.__name__)
    x = torch.tensor([5.0, 2.0], device=device)
    same, address = x, x.data_ptr()
    x = in_place(x, 2)
    assert x is same and x.data_ptr() == address
    assert x.tolist() == pytest.approx([op(5.0, 2), op(2.0, 2)])


def test_bits(device):
    i = torch.tensor([6, 3], device=device)
    assert (i & 3).tolist() == [2, 3]
    assert (i | 1).tolist() == [7, 3]
    assert (5 ^ i).tolist() == [3, 6]
    assert (~i).tolist() == [-7, -4]
    assert (~(i > 4)).tolist() == [False, True]
    with pytest.raises(TypeError):
        ~i.float()


def test_operands_that_are_no_numbers():
    x = torch.ones(2)
    assert (x == None) is False and (x != "a") is True  # noqa: E711
    for other in (None, "a", [1.0], (1.0,), {}, object()):
        with pytest.raises(TypeError):
            x + other
        with pytest.raises(TypeError):
            other - x
    with pytest.raises(TypeError):
        assert x < "a"
    with pytest.raises(TypeError):
        pow(x, 2, 3)
    with pytest.raises(TypeError):
        x @ 2

    class Other:
        def __radd__(self, tensor):
            return "theirs"

        def __add__(self, tensor):
            return NotImplemented

    assert x + Other() == "theirs"
    with pytest.raises(TypeError):
        Other() + x


def test_numpy_scalars_are_numbers():
    np = pytest.importorskip("numpy")
    x = torch.ones(2)
    for number in (np.float32(2), np.float64(2), np.int64(2), np.int8(2), np.uint8(2)):
        for result in (x + number, number + x, x * number + 1):
            assert isinstance(result, torch.Tensor) and result.dtype is torch.float32
            assert result.tolist() == [3.0, 3.0]
    assert (torch.ones(2, dtype=torch.int64) + np.float64(0.5)).tolist() == [1.5, 1.5]
    assert (x == np.bool_(True)).tolist() == [True, True]
    for number in (np.complex64(1j), np.complex128(1j)):
        assert (x + number).tolist() == [1 + 1j, 1 + 1j]
        assert (number * x).dtype is torch.complex64


def test_division_with_rounding():
    a, b = torch.tensor([7, -7, 7, -7]), torch.tensor([2, 2, -2, -2])
    assert torch.div(a, b, rounding_mode="trunc").tolist() == [3, -3, -3, 3]
    assert torch.div(a, b, rounding_mode="floor").tolist() == [3, -4, -4, 3]
    assert a.div(2).tolist() == [3.5, -3.5, 3.5, -3.5]
    big = torch.tensor([2**62 + 1])
    assert torch.div(big, 1, rounding_mode="trunc").item() == 2**62 + 1
    assert a.float().div_(b, rounding_mode="trunc").tolist() == [3.0, -3.0, -3.0, 3.0]
    with pytest.raises(RuntimeError, match="trunc"):
        torch.div(a, b, rounding_mode="up")
    with pytest.raises(RuntimeError):
        a // 0
    assert torch.div(1, 2).item() == 0.5


# --- as a number, as a sequence -----------------------------------------------------------


def test_numbers(device):
    one = torch.tensor([[2.75]], device=device)
    assert float(one) == 2.75 and int(one) == 2 and bool(one) is True
    assert type(int(torch.tensor(3, device=device))) is int
    assert [10, 20, 30][torch.tensor(1, device=device)] == 20
    assert math.isnan(float(torch.tensor(math.nan, device=device)))
    assert not torch.zeros(1, device=device)
    for wrong in (torch.ones(2, device=device), torch.ones(0, device=device)):
        with pytest.raises(RuntimeError):
            bool(wrong)
        with pytest.raises(ValueError):
            float(wrong)
        with pytest.raises(ValueError):
            int(wrong)
    with pytest.raises(TypeError):
        [1, 2][torch.tensor(1.0, device=device)]
    with pytest.raises((OverflowError, ValueError)):
        int(torch.tensor(math.inf, device=device))


def test_sequence(device):
    x = torch.arange(6, device=device).reshape(3, 2)
    assert len(x) == 3
    rows = list(x)
    assert [row.tolist() for row in rows] == [[0, 1], [2, 3], [4, 5]]
    assert rows[0].data_ptr() == x.data_ptr()
    assert 3 in x and 7 not in x and torch.tensor(5, device=device) in x
    a, b = x[0]
    assert (a.item(), b.item()) == (0, 1)
    assert list(torch.empty(0, 2, device=device)) == []
    single = torch.tensor(1, device=device)
    for wrong in (lambda: len(single), lambda: iter(single)):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(RuntimeError):
        "a" in x  # noqa: B015


# --- shape and type -----------------------------------------------------------------------


def test_what_it_says_of_itself(device):
    x = torch.zeros(2, 3, dtype=torch.float64, device=device)
    assert x.shape == x.size() == torch.Size([2, 3]) and type(x.shape) is torch.Size
    assert x.size(-1) == 3 and x.stride() == (3, 1) and x.stride(0) == 3
    assert x.ndim == x.dim() == 2 and x.numel() == x.nelement() == torch.numel(x) == 6
    assert x.dtype is torch.float64 is torch.double
    assert x.element_size() == x.itemsize == 8 and x.nbytes == 48
    assert x.device == torch.device(device)
    assert x.is_cuda is (device != "cpu") and x.is_cpu is (device == "cpu")
    assert x.get_device() == (-1 if device == "cpu" else torch.device(device).index)
    assert x.is_floating_point() and torch.is_tensor(x) and not torch.is_tensor(1)
    assert x.is_contiguous() and not x.t().is_contiguous()
    assert x[1].storage_offset() == 3
    assert (x.requires_grad, x.is_leaf, x.grad, x.grad_fn) == (False, True, None, None)
    where = "torch." if device == "cpu" else "torch.cuda."
    assert x.type() == where + "DoubleTensor"
    with pytest.raises(IndexError):
        x.size(2)
    x.requires_grad = True
    assert x.requires_grad and x.is_leaf


def test_conversions(device):
    x = torch.tensor([0.0, 1.9, -1.9], device=device)
    assert (
        x.long().tolist() == x.to(torch.int64).tolist() == x.type(torch.int64).tolist()
    )
    assert x.long().tolist() == [0, 1, -1]
    assert x.bool().tolist() == [False, True, True]
    assert x.double().dtype is torch.float64
    assert x.type("torch.IntTensor").dtype is torch.int32
    for name in ("bool", "byte", "char", "short", "int", "long", "float", "double"):
        converted = getattr(x.abs(), name)()
        assert converted.dtype is {"byte": torch.uint8, "char": torch.int8}.get(
            name, getattr(torch, name, None)
        )
        assert converted.device == x.device
    with pytest.raises((TypeError, ValueError)):
        x.type("torch.NoTensor")


def test_views_share_memory(device):
    x = torch.arange(24.0, device=device).reshape(2, 3, 4)
    views = [
        x.view(4, 6), x.view(-1), x.permute(2, 0, 1), x.transpose(0, 2), x.swapaxes(0, 1), x.mT,
        x.T, x.unsqueeze(0), x.unsqueeze(-1).squeeze(), x.flatten(1), x.ravel(), x.narrow(1, 1, 2),
        x.select(0, 1), x.expand(5, 2, 3, 4), x.movedim(0, -1), x.as_strided((2, 2), (4, 1)),
        *x.split(2, 1), *x.split([1, 2], dim=1), *x.chunk(2, -1), *x.unbind(1), x.data, x.detach(),
        x.view_as(torch.empty(6, 4)), x.broadcast_to((2, 2, 3, 4)),
    ]  # fmt: skip
    x.zero_()
    assert all(not view.any() for view in views)
    assert [v.shape for v in x.split(2, 1)] == [(2, 2, 4), (2, 1, 4)]
    assert x.movedim((0, 1), (2, 0)).shape == (3, 4, 2)
    assert x.permute(2, 0, 1).shape == (4, 2, 3)


def test_views_that_cannot_be():
    x = torch.zeros(2, 3)
    for wrong in (
        lambda: x.view(4), lambda: x.t().view(6), lambda: x.view(-1, -1), lambda: x.permute(0, 0),
        lambda: x.expand(3, 3), lambda: x.split(0), lambda: x.split([1, 2]), lambda: x.chunk(0),
        lambda: x.as_strided((9, 9), (1, 1)), lambda: x.as_strided((2,), (1,), -1),
        lambda: x.as_strided((2,), (-1,)), lambda: x.split([-1, 3]), lambda: x.movedim((0, 0), (0, 1)),
        lambda: torch.zeros(()).split(1), lambda: x.as_strided((2**62,), (2**62,)),
    ):  # fmt: skip
        with pytest.raises((RuntimeError, IndexError, ValueError)):
            wrong()
    for wrong in (
        lambda: x.narrow(0, 1, 5), lambda: x.select(5, 0), lambda: x.select(0, 9),
        lambda: x.transpose(0, 2), lambda: x.unsqueeze(4), lambda: x.unbind(3),
    ):  # fmt: skip
        with pytest.raises((RuntimeError, IndexError)):
            wrong()


def test_view_of_another_type():
    x = torch.tensor([1.0, -2.0])
    assert x.view(torch.int32).tolist() == [0x3F800000, -0x40000000]
    assert x.view(dtype=torch.uint8).shape == (8,)
    assert x.view(torch.uint8).view(torch.float32).tolist() == [1.0, -2.0]
    assert x.view(torch.int64).shape == (1,)
    for wrong in (
        lambda: torch.zeros(3).view(torch.float64), lambda: torch.zeros(()).view(torch.float64),
        lambda: torch.zeros(4)[1:3].view(torch.float64),
        lambda: torch.zeros(2, 4).t().view(torch.float64),
    ):  # fmt: skip
        with pytest.raises(RuntimeError):
            wrong()


def test_max_and_its_kin(device):
    x = torch.tensor([[1.0, 5.0], [7.0, 2.0]], device=device)
    assert x.max().item() == 7 and torch.min(x).item() == 1
    values, where = x.max(dim=0)
    assert values.tolist() == [7, 5] and where.tolist() == [1, 0]
    found = torch.min(x, 1, keepdim=True)
    assert found.values.shape == (2, 1) and found.indices.tolist() == [[0], [1]]
    assert repr(torch.max(torch.ones(2), 0)) == (
        "torch.return_types.max(\nvalues=tensor(1.),\nindices=tensor(0))"
    )
    assert torch.max(x, x.flip if False else -x).tolist() == x.tolist()
    assert x.argmax().item() == 2 and x.argmin(dim=1).tolist() == [0, 1]
    with pytest.raises(RuntimeError):
        torch.empty(0).max()
    with pytest.raises(IndexError):
        torch.empty(0, 2).max(0)


def test_clamp_and_closeness():
    x = torch.tensor([-2.0, 0.5, 9.0])
    assert x.clamp(0, 1).tolist() == [0.0, 0.5, 1.0]
    assert x.clamp(min=0).tolist() == [0.0, 0.5, 9.0]
    assert x.clip(max=torch.tensor(1.0)).tolist() == [-2.0, 0.5, 1.0]
    assert x.clone().clamp_(max=0).tolist() == [-2.0, 0.0, 0.0]
    with pytest.raises(RuntimeError):
        x.clamp()
    inf, nan = math.inf, math.nan
    a = torch.tensor([1.0, inf, inf, nan, 0.0])
    b = torch.tensor([1.0 + 1e-6, inf, -inf, nan, 1e-9])
    assert torch.isclose(a, b).tolist() == [True, True, False, False, True]
    assert torch.isclose(a > 1, b > 1).tolist() == ((a > 1) == (b > 1)).tolist()
    assert torch.isclose(a, b, equal_nan=True).tolist() == [
        True,
        True,
        False,
        True,
        True,
    ]
    assert torch.allclose(a[:2], b[:2]) and not torch.allclose(a, b)
    assert torch.equal(a[:3], a[:3].clone()) and not torch.equal(a, a[:4])
    assert torch.tensor([0.126, 2.5]).round(decimals=2).tolist() == pytest.approx(
        [0.13, 2.5]
    )


def test_size():
    s = torch.Size([2, 3])
    assert repr(s) == "torch.Size([2, 3])" and s == (2, 3) and isinstance(s, tuple)
    assert s.numel() == 6 and torch.Size([]).numel() == 1
    for made in (
        s + (1,),
        (1,) + s,
        s[:1],
        s * 2,
        copy.copy(s),
        copy.deepcopy(s),
        s + s,
    ):
        assert type(made) is torch.Size
        assert hash(made) == hash(tuple(made))
    assert hash(torch.ones(2, 3).shape) == hash((2, 3))
    assert s[0] == 2 and type(s[-1]) is int
    assert hash(s) == hash((2, 3)) and {s: 1}[(2, 3)] == 1
    for wrong in (lambda: torch.Size([1.5]), lambda: torch.Size(3), lambda: s + [1]):
        with pytest.raises(TypeError):
            wrong()


def test_dtypes():
    import pickle

    for name in (
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float32",
        "float64",
    ):
        dtype = getattr(torch, name)
        assert repr(dtype) == f"torch.{name}"
        assert pickle.loads(pickle.dumps(dtype)) is dtype
        assert copy.deepcopy(dtype) is dtype
        assert torch.zeros(1, dtype=dtype).element_size() == dtype.itemsize
    assert torch.float is torch.float32 and torch.long is torch.int64
    assert (
        torch.int8.is_signed and not torch.uint8.is_signed and not torch.bool.is_signed
    )
    assert torch.float64.is_floating_point and not torch.int32.is_floating_point
    assert torch.zeros(1, dtype=float).dtype is torch.float64
    assert torch.zeros(1, dtype=int).dtype is torch.int64
    with pytest.raises(TypeError):
        type(torch.float32)()


def test_default_dtype():
    torch.set_default_dtype(torch.float64)
    assert torch.ones(1).dtype is (torch.arange(2) / 2).dtype is torch.float64
    assert torch.get_default_dtype() is torch.float64
    with pytest.raises(TypeError):
        torch.set_default_dtype(torch.int64)


def test_creation(device):
    with torch.device(device):
        assert torch.eye(2, 3).tolist() == [[1, 0, 0], [0, 1, 0]]
        assert torch.arange(1, 2, 0.25).tolist() == [1.0, 1.25, 1.5, 1.75]
        assert torch.arange(3).dtype is torch.int64
        assert torch.full((2,), True).dtype is torch.bool
        assert torch.full((2,), 7).tolist() == [7, 7]
        x = torch.zeros(2, 3, dtype=torch.int32)
        assert torch.ones_like(x).dtype is torch.int32
        assert torch.full_like(x, 2.5, dtype=torch.float64).tolist() == [[2.5] * 3] * 2
        assert x.new_full((2,), 3).tolist() == [3, 3] and x.new_tensor(
            [1.5]
        ).tolist() == [1]
        assert torch.empty_like(x.t()).stride() == (1, 3)
        torch.manual_seed(3)
        first = torch.rand(5), torch.randn(5), torch.randint(0, 9, (5,))
        torch.manual_seed(3)
        for a, b in zip(
            first,
            (torch.rand(5), torch.randn(5), torch.randint(0, 9, (5,))),
            strict=True,
        ):
            assert torch.equal(a, b) and a.device == torch.device(device)
        assert torch.zeros(50).uniform_(2, 3).min().item() >= 2
        assert set(torch.zeros(50).bernoulli_(0.5).tolist()) == {0.0, 1.0}
        assert 0 <= torch.zeros(9, dtype=torch.uint8).random_().max().item() < 256
    assert torch.initial_seed() == 3
    with pytest.raises(RuntimeError):
        torch.randint(5, 5, (1,))
    assert torch.ones(2, requires_grad=True).requires_grad


def test_floats_that_an_integer_type_does_not_hold(device):
    """As PyTorch on x86: beyond 32 bits (or 64, for int64) the least integer, cut."""
    values = [3e9, -3e9, float("inf"), float("nan"), 1e20, 300.0, -1.5]
    least32, least64 = -(2**31), -(2**63)
    expected = {
        torch.int8: [0, 0, 0, 0, 0, 44, -1],
        torch.uint8: [0, 0, 0, 0, 0, 44, 255],
        torch.int16: [0, 0, 0, 0, 0, 300, -1],
        torch.int32: [*[least32] * 5, 300, -1],
        torch.int64: [3000000000, -3000000000, *[least64] * 3, 300, -1],
    }
    for dtype, integers in expected.items():
        for source in (torch.float32, torch.float64):
            x = torch.tensor(values, dtype=source, device=device)
            assert x.to(dtype).tolist() == integers, (dtype, source)


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "bfloat16", "int64"]
)
@pytest.mark.parametrize(
    "sizes", [(3, 4, 5), (1, 3, 4), (7, 0, 3), (90, 40, 70), (5, 1, 6)]
)
def test_addmm_adds_a_row(device, dtype, sizes):
    """A row of biases is added as it is; others are copied into the result before."""
    m, k, n = sizes
    torch.manual_seed(0)

    def make(*shape):
        return torch.randint(-2, 3, shape).to(getattr(torch, dtype)).to(device)

    a, b, spread = make(m, k), make(n, k).t(), make(n, 2)[:, 0]
    rows = make(n), make(1, n), make(1).expand(n), make(n + 1)[1:], spread, make(m, n)
    for row in rows:
        expected = a.double() @ b.double() + row.double()
        assert torch.equal(torch.addmm(row, a, b).double(), expected)
        scaled = torch.addmm(row, a, b, beta=2, alpha=3).double()
        assert torch.equal(scaled, 3 * (a.double() @ b.double()) + 2 * row.double())
    bad = (
        torch.full((n,), float("nan"), device=device) if dtype == "float32" else make(n)
    )
    assert torch.equal(torch.addmm(bad, a, b, beta=0), a @ b)


def test_products_of_nothing(device):
    """A sum of no products is 0, not what the memory held."""
    for m, n in ((3, 4), (1, 1), (70, 90)):
        torch.full((m, n), 7.0, device=device)  # memory to be handed out again
        a, b = torch.ones(m, 0, device=device), torch.ones(0, n, device=device)
        assert torch.equal(a @ b, torch.zeros(m, n, device=device))
        stacked = torch.ones(2, m, 0, device=device) @ b
        assert torch.equal(stacked, torch.zeros(2, m, n, device=device))
        c = torch.full((m, n), 2.0, device=device)
        assert torch.equal(torch.addmm(c, a, b), c)
        assert torch.equal(torch.addmm(c, a, b, beta=0.5), c / 2)
        assert torch.equal(torch.addmm(c, a, b, beta=0), torch.zeros_like(c))
        # In other layouts, too.
        first, second = torch.ones(0, m, device=device).t(), b.t().contiguous().t()
        for left in (a, first, torch.ones(3 * m, 0, device=device)[::3]):
            for right in (b, second):
                assert torch.equal(torch.addmm(c, left, right), c)
    assert torch.ones(0, 3, device=device).matmul(
        torch.ones(3, device=device)
    ).shape == (0,)
    empty = torch.ones(2, 0, device=device) @ torch.ones(0, device=device)
    assert empty.tolist() == [0.0, 0.0]
