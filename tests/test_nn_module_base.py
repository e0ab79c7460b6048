"""The C base of nn.Module: reads of registered attributes, and calls."""

import copy
import gc
import pickle
import weakref
from collections import OrderedDict

import pytest

import pydevtensor as torch
from pydevtensor import fx, nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x, scale=1):
        return self.layer(x) * scale + self.seen


def read_all(net):
    """Parameters, buffers and modules are read from their registries."""
    return (
        net.layer is net._modules["layer"]
        and net.seen is net._buffers["seen"]
        and net.layer.weight is net.layer._parameters["weight"]
        and net.training
        and not hasattr(net, "other")
    )


def test_reads():
    assert read_all(Net())


def test_an_absent_name_is_named_once():
    with pytest.raises(
        AttributeError, match=r"^'Net' object has no attribute 'other'$"
    ):
        _ = Net().other
    with pytest.raises(AttributeError, match=r"call super\(\).__init__\(\) first"):
        _ = Net.__new__(Net)._parameters


@pytest.mark.parametrize("kind", [OrderedDict, dict])
def test_a_registry_of_the_program(kind):
    net = Net()
    net._parameters = kind(extra=nn.Parameter(torch.ones(1)))
    assert net.extra.item() == 1
    net._buffers = None
    with pytest.raises(AttributeError, match="seen"):
        _ = net.seen


def test_attributes_of_the_instance_and_the_class_come_first():
    class Own(Net):
        hidden = 5

    net = Own()
    net._parameters["hidden"] = nn.Parameter(torch.ones(1))
    assert net.hidden == 5
    net._buffers["taken"], net.__dict__["taken"] = torch.ones(1), 7
    assert net.taken == 7


def test_a_property_that_raises_ends_in_the_registries():
    class Lazy(Net):
        @property
        def size(self):
            return self.not_there

    net = Lazy()
    with pytest.raises(AttributeError, match="has no attribute 'size'"):
        _ = net.size
    net._buffers["size"] = torch.ones(2)
    assert net.size.shape == (2,)


def test_a_getattr_of_the_program():
    class Wrapper(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.inner, name)

    class Below(Wrapper):
        pass

    for kind in (Wrapper, Below):
        net = kind(Net())
        assert net.layer is net.inner.layer and net.seen is net.inner.seen
        with pytest.raises(AttributeError, match="'Net' object has no"):
            _ = net.other


def test_a_getattribute_of_the_program():
    asked = []

    class Watched(Net):
        def __getattribute__(self, name):
            asked.append(name)
            return super().__getattribute__(name)

    assert read_all(Watched())
    assert {"layer", "seen", "other"} <= {*asked}


def test_a_getattr_that_comes_later_and_goes():
    class Early(Net):
        pass

    net = Early()
    Early.__getattr__ = lambda self, name: 3
    assert net.other == 3 and net.layer == 3
    del Early.__getattr__
    assert read_all(net)


def test_a_getattr_of_all_modules():
    read, net = nn.Module.__getattr__, Net()
    nn.Module.__getattr__ = lambda self, name: ("for", name, read(self, name))
    try:
        assert net.seen[:2] == ("for", "seen")
    finally:
        del nn.Module.__getattr__
    assert read_all(net)


def test_a_mixin_that_keeps_init_subclass_to_itself():
    class Mixin:
        def __init_subclass__(cls, **options):
            cls.options = options

    class Mixed(Mixin, Net, size=3):
        pass

    assert Mixed.options == {"size": 3} and read_all(Mixed())


def test_arguments_of_a_class_go_on():
    class Keeps:
        def __init_subclass__(cls, size=0, **others):
            super().__init_subclass__(**others)
            cls.size = size

    class Mixed(Net, Keeps, size=3):
        pass

    assert Mixed.size == 3 and read_all(Mixed())
    with pytest.raises(TypeError):

        class Wrong(Net, size=3):
            pass


def test_reads_after_a_trace():
    net = Net()
    traced = fx.symbolic_trace(net)
    assert read_all(net) and "__getattr__" not in vars(nn.Module)
    x = torch.randn(2, 3)
    assert torch.equal(traced(x), net(x))


def test_calls():
    net, x = Net(), torch.randn(2, 3)
    assert torch.equal(net(x, scale=2), net.forward(x, 2))
    net.forward = lambda *args, **options: (args, options)
    assert net(1, b=2) == ((1,), {"b": 2})
    with pytest.raises(AttributeError, match=r"call super\(\).__init__\(\) first"):
        Net.__new__(Net)(x)
    with pytest.raises(NotImplementedError, match="does not define forward"):
        nn.Module()(x)


def test_calls_with_hooks_of_all_modules():
    net, x, seen = Net(), torch.randn(2, 3), []
    handle = nn.modules.module.register_module_forward_hook(
        lambda module, args, result: seen.append(type(module).__name__)
    )
    net(x)
    handle.remove()
    net(x)
    assert seen == ["Linear", "Net"]
    net.register_forward_hook(lambda module, args, result: result + 1)
    assert torch.equal(net(x), net.forward(x) + 1)


def test_a_call_of_the_program():
    class Own(Net):
        def __call__(self, *args):
            return "own", super().__call__(*args)

    net, x = Own(), torch.randn(2, 3)
    word, value = net(x)
    assert word == "own" and torch.equal(value, net.forward(x))
    call = nn.Module.__call__
    nn.Module.__call__ = lambda self, *args: "patched"
    try:
        assert Net()(x) == "patched" and nn.ReLU()(x) == "patched"
    finally:
        nn.Module.__call__ = call
    assert torch.equal(Net()(torch.zeros(1, 3)).detach() * 0, torch.zeros(1, 2))
    seen = []
    hook = lambda module, args, result: seen.append(type(module).__name__)
    with nn.modules.module.register_module_forward_hook(hook):
        Net()(x)
    Net()(x)
    assert seen == ["Linear", "Net"]


def test_a_call_that_is_too_deep():
    class Endless(nn.Module):
        def forward(self, x):
            return self(x)

    with pytest.raises(RecursionError):
        Endless()(1)


def test_a_class_with_another_base_first_can_be_assigned():
    class Extra:
        def doubled(self, x):
            return 2 * self(x)

    layer = nn.Linear(2, 2)
    layer.__class__ = type("ExtraLinear", (Extra, nn.Linear), {})
    x = torch.ones(2)
    assert layer.doubled(x).equal(2 * layer(x))
    assert layer.weight is layer._parameters["weight"]


def test_modules_are_copied_referred_to_weakly_and_collected():
    net = Net()
    net.itself = [net]
    for copied in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert copied.itself[0] is copied and read_all(copied)
    seen = weakref.ref(net)
    del net
    gc.collect()
    assert seen() is None


def test_a_module_takes_another_dict():
    net, other = Net(), Net()
    net.__dict__ = other.__dict__
    assert net.layer is other.layer and vars(net) is other.__dict__
