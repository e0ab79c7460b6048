"""torch.overrides: modes, subclasses of Tensor, and classes with __torch_function__."""

import copy
import threading

import pytest

import pydevtensor as torch
from pydevtensor import nn, overrides

F = nn.functional


class Log(overrides.TorchFunctionMode):
    def __init__(self):
        self.names, self.types = [], []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(overrides.resolve_name(func).removeprefix("torch."))
        self.types.append(types)
        return func(*args, **(kwargs or {}))


# What PyTorch 2.13 calls these.
CALLS = {
    "Tensor.add": lambda a: a + a,
    "Tensor.sub": lambda a: a - 1,
    "Tensor.__rsub__": lambda a: 1 - a,
    "Tensor.__rtruediv__": lambda a: 1 / a,
    "Tensor.__floordiv__": lambda a: a // 2,
    "Tensor.__pow__": lambda a: a**2,
    "Tensor.__rpow__": lambda a: 2**a,
    "Tensor.__eq__": lambda a: a == a,
    "Tensor.lt": lambda a: a < 1,
    "Tensor.neg": lambda a: -a,
    "Tensor.abs": lambda a: abs(a),
    "Tensor.matmul": lambda a: a @ a,
    "Tensor.add_": lambda a: a.__iadd__(1),
    "Tensor.__getitem__": lambda a: a[0],
    "Tensor.__setitem__": lambda a: a.__setitem__(0, 1.0),
    "Tensor.unbind": lambda a: [*a],
    "Tensor.sum": lambda a: a.sum(0, keepdim=True),
    "Tensor.__repr__": repr,
    "Tensor.shape.__get__": lambda a: a.shape,
    "Tensor.T.__get__": lambda a: a.T,
    "Tensor.grad_fn.__get__": lambda a: a.grad_fn,
    "Tensor.requires_grad.__set__": lambda a: setattr(a, "requires_grad", True),
    "nn.functional.relu": lambda a: F.relu(a),
    "nn.functional.cross_entropy": lambda a: F.cross_entropy(a, torch.tensor([0, 1])),
    "zeros": lambda a: torch.zeros(2),
    "stack": lambda a: torch.stack([a, a]),
    "sum": lambda a: torch.sum(a, dim=0),
    "linalg.norm": lambda a: torch.linalg.norm(a),
    "fft.fft": lambda a: torch.fft.fft(a),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_mode_sees_functions_by_pytorchs_names(name):
    a = torch.ones(2, 2)
    expected = CALLS[name](a.clone())
    with Log() as log:
        found = CALLS[name](a)
    assert log.names[-1:] == [name] and log.types[-1] == ()
    if isinstance(found, torch.Tensor):
        assert torch.equal(found, expected)


def test_a_mode_gives_attributes_of_its_own():
    class Longer(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is torch.Tensor.shape.__get__ or func == torch.Tensor.shape.__get__:
                return (7,)
            return func(*args, **(kwargs or {}))

    a = torch.ones(2)
    with Longer():
        assert a.shape == (7,) and a.ndim == 1
        with overrides.BaseTorchFunctionMode():
            assert a.shape == (7,)
        with pytest.raises(AttributeError):
            a.no_such_attribute  # noqa: B018
    assert a.shape == (2,)

    class Failing(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise KeyError(overrides.resolve_name(func))

    with Failing(), pytest.raises(KeyError, match="requires_grad"):
        a.requires_grad = True
    assert not a.requires_grad


def test_modes_in_one_another_and_in_other_threads():
    outer, inner = Log(), Log()

    class Swap(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return torch.mul(*args) if func is torch.add else func(*args, **kwargs)

    two = torch.full((1,), 2.0)
    with outer, Swap(), inner:
        assert torch.add(two, 3.0).item() == 6.0
        seen = []
        other = threading.Thread(target=lambda: seen.append(torch.add(two, 3.0)))
        other.start()
        other.join()
        assert seen == [5.0]
        with pytest.raises(RuntimeError, match="shapes"):
            torch.add(torch.ones(2), torch.ones(3))
    assert inner.names[0] == "add" and outer.names[0] == "mul"
    assert torch.add(two, 3.0).item() == 5.0
    with overrides.BaseTorchFunctionMode(), pytest.raises(ZeroDivisionError):
        _ = 1 // 0
    assert not overrides.has_torch_function((two,))


class Unit(torch.Tensor):
    """Has an attribute that results keep."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        out = super().__torch_function__(func, types, args, kwargs)
        if isinstance(out, cls):
            out.unit = next(a.unit for a in args if hasattr(a, "unit"))
        return out


class Plain(torch.Tensor):
    pass


def test_results_are_of_the_subclass(device):
    t = torch.ones(2, 2, device=device).as_subclass(Plain)
    a = torch.ones(2, 2, device=device)
    one = torch.arange(2, device=device)
    results = [
        t + 1, 1 - t, a + t, t @ a, -t, t.T, t.data, t[0], t.clone(), t.detach(),
        *t, t.max(0)[0], t.max(0).values, torch.stack([a, t]), torch.cat((t, a)),
        F.linear(a, t), F.softmax(t, 0), F.cross_entropy(t, one), t.sum(), t.to("cpu"),
        torch.linalg.norm(t), t.chunk(2)[0], t.half(), torch.where(a > 0, t, a),
    ]  # fmt: skip
    assert {type(r) for r in results} == {Plain}
    assert type(t.max(0)).__name__ == "max" and type(t.shape) is torch.Size
    assert t.grad is None and t.tolist() == [[1.0, 1.0]] * 2
    t += 1
    t[0] = 5
    assert type(t) is Plain and t[0, 0].item() == 5.0
    assert type(t.add_(1)) is Plain and repr(t).startswith("Plain(")
    assert type(copy.deepcopy(t)) is Plain
    assert type(torch.Tensor._make_subclass(Plain, a)) is Plain
    assert type(nn.Parameter(a) * 1) is torch.Tensor
    with torch._C.DisableTorchFunctionSubclass():
        assert type(t + 1) is torch.Tensor


def test_gradients_through_a_subclass(device):
    leaf = torch.ones(3, device=device, requires_grad=True)
    t = leaf.as_subclass(Plain)
    y = (t * t).exp().sum()
    y.backward()
    assert type(y) is Plain and torch.allclose(leaf.grad, 2 * torch.e * leaf.detach())


def test_a_subclass_of_its_own_mind():
    t = torch.ones(2).as_subclass(Unit)
    t.unit = "m"
    assert (t * 2).unit == "m" and (1 + t)[0].unit == "m" and t.T.unit == "m"
    assert torch.exp(t.sum()).unit == "m"


class Ducks:
    """No Tensor, and known to all functions."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return overrides.resolve_name(func), [t.__name__ for t in types]


def test_objects_that_are_no_tensors():
    a, duck = torch.ones(2), Ducks()
    name = ["Ducks"]
    assert torch.add(a, duck) == ("torch.add", name)
    assert a + duck == ("torch.Tensor.add", name)
    assert a.add(duck) == ("torch.Tensor.add", name)
    assert duck - a == ("torch.Tensor.__rsub__", name)
    assert a @ duck == ("torch.Tensor.matmul", name)
    assert torch.sum(duck, dim=0) == ("torch.sum", name)
    assert torch.stack([a, duck]) == ("torch.stack", name)
    assert F.relu(duck) == ("torch.nn.functional.relu", name)
    assert torch.linalg.norm(duck) == ("torch.linalg.norm", name)
    with pytest.raises(TypeError, match="add"):
        torch.add(a, object())
    with pytest.raises(TypeError):
        a + object()


def test_who_is_asked_and_in_which_order():
    asked = []

    class Base:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(cls.__name__)
            return NotImplemented

    class Derived(Base):
        pass

    with pytest.raises(TypeError, match=r"torch\.add.*Derived, Base.*NotImplemented"):
        torch.add(Base(), Derived())
    assert asked == ["Derived", "Base"]
    with Log() as log, pytest.raises(TypeError, match="NotImplemented"):
        torch.add(Base(), 1)
    assert log.names == ["add"] and log.types == [(Base,)]
    t = torch.ones(2).as_subclass(Plain)
    with pytest.raises(TypeError, match="NotImplemented"):
        t.add(torch.ones(2).as_subclass(Unit))


def test_functions_of_a_program():
    @overrides.wrap_torch_function(lambda a, b=None: (a, b))
    def double(a, b=None):
        return a + a

    assert double(torch.ones(1)).item() == 2.0

    class Ten:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func is double, kwargs

    assert double(1, b=Ten())[0]


def test_questions():
    t = torch.ones(2).as_subclass(Plain)
    assert overrides.is_tensor_like(t) and overrides.is_tensor_like(Ducks())
    assert not overrides.is_tensor_like([1])
    has = overrides.has_torch_function
    assert has((1, Ducks())) and not has((t, torch.ones(1), nn.Parameter(t)))
    assert overrides.has_torch_function_unary(torch.ones(1).as_subclass(Unit))
    assert not overrides.has_torch_function_variadic(1, torch.ones(1))
    by_owner = overrides.get_overridable_functions()
    assert torch.add in by_owner[torch] and torch.Tensor.add in by_owner[torch.Tensor]
    assert F.relu in by_owner[F] and F.relu not in overrides.get_ignored_functions()
    assert torch.signal.windows.hann in overrides.get_ignored_functions()
    assert overrides.resolve_name(torch.Tensor.shape.__get__) == (
        "torch.Tensor.shape.__get__"
    )
    assert overrides.resolve_name(3) is None and overrides.resolve_name([]) is None
    assert not overrides.is_tensor_method_or_property(torch.add)
    mode = torch.utils._python_dispatch.TorchDispatchMode
    with pytest.raises(NotImplementedError, match="TorchFunctionMode"):
        mode()
    assert not torch.utils._python_dispatch.is_traceable_wrapper_subclass(t)


def test_the_default_device_goes_on():
    with Log(), torch.device("meta"):
        assert torch.zeros(2).device.type == "meta"
