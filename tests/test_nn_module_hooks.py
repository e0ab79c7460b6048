"""Hooks of a module and of all modules."""

import copy
import gc
import pickle
import subprocess
import sys
import weakref

import pytest
from counting import Counting

import pydevtensor as torch
from pydevtensor import nn


def test_the_order_of_hooks():
    order = []

    class Net(nn.Module):
        def forward(self, x):
            order.append("forward")
            return x * 2

    net = Net()
    for name in "ab":
        net.register_forward_pre_hook(lambda *_, name=name: order.append(f"pre {name}"))
        net.register_forward_hook(lambda *_, name=name: order.append(f"post {name}"))
        net.register_full_backward_pre_hook(
            lambda *_, name=name: order.append(f"back pre {name}")
        )
        net.register_full_backward_hook(
            lambda *_, name=name: order.append(f"back {name}")
        )
    net(torch.ones(1, requires_grad=True)).backward()
    assert order == [
        *("pre a", "pre b", "forward", "post a", "post b"),
        *("back pre a", "back pre b", "back a", "back b"),
    ]


def test_hooks_with_keywords(device):
    net, seen = Counting().to(device), []

    def double(module, args, kwargs):
        return (args[0] * 2,), {"extra": kwargs["extra"] + 1}

    def look(module, args, kwargs, result):
        seen.append((args[0].tolist(), kwargs))
        return result - 1

    handles = [
        net.register_forward_pre_hook(double, with_kwargs=True),
        net.register_forward_hook(look, with_kwargs=True),
    ]
    assert net(torch.ones(1, 2, device=device), extra=3.0).tolist() == [[5, 5]]
    assert seen == [([[2, 2]], {"extra": 4.0})]
    for handle in handles:
        handle.remove()
        handle.remove()  # a second time does nothing
    assert net(torch.ones(1, 2, device=device)).tolist() == [[1, 1]]


def test_backward_hooks_see_all_gradients_of_a_call(device):
    seen = []

    class Net(nn.Module):
        def forward(self, a, b, c):
            return a * b, (a + b) * c

    net = Net()
    net.register_full_backward_hook(lambda m, i, o: seen.append((i, o)))
    a = torch.tensor([2.0], device=device, requires_grad=True)
    b = torch.tensor([3.0], device=device, requires_grad=True)
    x, y = net(a, b, 5)
    (x * 7 + y).sum().backward()
    ((grad_a, grad_b, grad_c), (grad_x, grad_y)) = seen[0]
    assert (grad_a.item(), grad_b.item(), grad_c) == (26, 19, None)
    assert (grad_x.item(), grad_y.item()) == (7, 1)
    assert (a.grad.item(), b.grad.item()) == (26, 19)
    # A second call has gradients of its own.
    net(a, b, 1)[1].sum().backward()
    assert len(seen) == 2 and seen[1][0][0].item() == 1
    # One that nobody asks for.
    with torch.no_grad():
        net(a, b, 1)
    assert len(seen) == 2


def test_backward_hooks_replace_gradients():
    net = nn.Linear(2, 1, bias=False)
    net.register_full_backward_hook(lambda m, i, o: (i[0] * 0 + 5,))
    x = torch.ones(1, 2, requires_grad=True)
    net(x).sum().backward()
    assert x.grad.tolist() == [[5, 5]]
    assert net.weight.grad.tolist() == [[1, 1]]
    net.register_full_backward_hook(lambda m, i, o: (1, 2, 3))
    with pytest.raises(
        RuntimeError, match=r"Linear.*3 values for grad_input, which has 1"
    ):
        net(x).sum().backward()


def test_backward_hooks_where_no_input_wants_a_gradient():
    seen = []
    net = nn.Linear(2, 1)
    handle = net.register_full_backward_hook(
        lambda m, i, o: seen.append((i, o[0].tolist()))
    )
    net(torch.ones(1, 2)).backward()
    assert seen == [((None,), [[1]])]
    handle.remove()
    net(torch.ones(1, 2)).backward()
    assert len(seen) == 1


def test_a_hook_that_is_always_called():
    class Fails(nn.Module):
        def forward(self, x):
            raise ValueError("as ever")

    net, seen = Fails(), []
    net.register_forward_hook(lambda m, a, y: seen.append("seldom"))
    net.register_forward_hook(lambda m, a, y: seen.append(y), always_call=True)
    with pytest.raises(ValueError, match="as ever"):
        net(1)
    assert seen == [None]


def test_hooks_let_everything_go():
    """A watched call leaves nothing behind; the fixture counts."""
    net = nn.Linear(2, 2)
    net.register_full_backward_hook(lambda m, i, o: None)
    net(torch.ones(1, 2, requires_grad=True)).sum().backward()
    net(torch.ones(1, 2, requires_grad=True))


@pytest.mark.parametrize("removed", [False, True])
@pytest.mark.parametrize("passed", [False, True])
def test_a_watched_call_that_its_own_hook_leads_to_is_collected(removed, passed):
    """hook -> results -> graph -> hook: the collector sees the cycle."""

    class Token:
        pass

    def make():
        token, results = Token(), []
        net = nn.ReLU()
        handle = net.register_full_backward_hook(
            lambda *gradients: results.append((token, gradients))
        )
        results.append(net(torch.ones(2, requires_grad=True)).sum())
        if removed:
            handle.remove()
        if passed:
            results[0].backward()
        return weakref.ref(token)

    left = make()
    gc.collect()
    assert left() is None


def test_hooks_of_all_modules_and_of_none():
    """The last hook that is removed leaves calls as they were."""
    hooks = nn.modules.module
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    seen = []
    first = hooks.register_module_forward_hook(lambda m, a, y: seen.append("first"))
    second = hooks.register_module_forward_hook(lambda m, a, y: seen.append("second"))
    net[1](torch.ones(2))
    first.remove()
    net[1](torch.ones(2))
    assert seen == ["first", "second", "second"]
    second.remove()
    second.remove()
    net(torch.ones(1, 2))
    assert len(seen) == 3
    # A module with a hook of its own keeps it.
    net[1].register_forward_hook(lambda m, a, y: seen.append("own"))
    hooks.register_module_forward_hook(lambda m, a, y: seen.append("third")).remove()
    net(torch.ones(1, 2))
    assert seen[3:] == ["own"]


def test_hooks_after_a_pickle_from_another_process():
    """Hooks are known by numbers, which another process counts anew."""
    code = (
        "import pickle, sys; from pydevtensor import nn; net = nn.ReLU(); "
        "[net.register_forward_hook(print) for _ in range(3)]; "
        "sys.stdout.buffer.write(pickle.dumps(net))"
    )
    command = [sys.executable, "-P", "-c", code]
    net = pickle.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert [*net._forward_hooks] == [0, 1, 2]
    for _ in range(3):
        net.register_forward_hook(print, always_call=True)
    assert len(net._forward_hooks) == 6


def test_hooks_that_are_removed_leave_nothing():
    net = nn.ReLU()
    registries = [name for name in vars(net) if name.endswith("_hooks")]
    registries.remove("_has_hooks")
    handles = [
        net.register_forward_hook(print, with_kwargs=True, always_call=True),
        net.register_forward_pre_hook(print, with_kwargs=True),
        net.register_full_backward_hook(print),
        net._register_state_dict_hook(print),
        net._register_load_state_dict_pre_hook(print),
        net.register_load_state_dict_pre_hook(print),
    ]
    assert len(net._options_of_hooks) == 4
    for handle in handles:
        handle.remove()
    assert len(registries) == 9
    assert not any(getattr(net, name) for name in registries)


def test_what_registers_nothing():
    net = nn.Sequential(nn.ReLU())
    for path, module, kind, text in (
        ("", nn.Tanh(), ValueError, "path is empty"),
        ("0", 3, ValueError, "int; give an nn.Module"),
        ("1", nn.Tanh(), AttributeError, "leave strict out"),
        ("training", nn.Tanh(), AttributeError, "'training' of Sequential"),
    ):
        with pytest.raises(kind, match=text):
            net.set_submodule(path, module, strict=True)
    assert [*net._modules] == ["0"]


class KeepsHandle(nn.Module):
    def __init__(self):
        super().__init__()
        self.handle = self.register_forward_hook(doubled)

    def forward(self, x):
        return x


def doubled(module, args, output):
    return output * 2


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))]
)
def test_a_copy_of_a_handle_is_for_the_copy_of_its_module(copied):
    module = KeepsHandle()
    other, x = copied(module), torch.ones(1)
    assert other(x).item() == 2
    other.handle.remove()
    assert (other(x).item(), module(x).item()) == (1, 2)
    hooks = module.handle.hooks_dict_ref()
    assert hooks is module._forward_hooks and module.handle.id in hooks
    handle = pickle.loads(
        pickle.dumps(torch.ones(1, requires_grad=True).register_hook(id))
    )
    assert handle.hooks_dict_ref() is None
    handle.remove()  # of a Tensor that is not pickled with it


def test_backward_hooks_of_old_programs():
    """grad_input is that of the last operation, as in PyTorch."""
    seen = []

    def show(module, given, out):
        shapes = [
            [None if g is None else tuple(g.shape) for g in x] for x in (given, out)
        ]
        seen.append((type(module).__name__, *shapes))

    x = torch.ones(4, 3, requires_grad=True)
    for net in (nn.Linear(3, 2), nn.Sequential(nn.Linear(3, 2), nn.Tanh())):
        handle = net.register_backward_hook(show)
        net(x).sum().backward()
        handle.remove()
        net(x).sum().backward()
    assert seen == [
        ("Linear", [(2,), (4, 3), (3, 2)], [(4, 2)]),
        ("Sequential", [(4, 2)], [(4, 2)]),
    ]
    relu, x = nn.ReLU(), torch.ones(2, requires_grad=True)
    relu.register_backward_hook(lambda module, given, out: (given[0] * 5,))
    relu(x).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]
