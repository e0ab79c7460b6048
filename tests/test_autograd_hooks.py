"""Hooks on tensors: order, results, removal, lifetime."""

import gc
import weakref
from collections import OrderedDict

import pytest

import pydevtensor as torch

# --- hooks


def test_hooks_see_and_change_gradients(device):
    x = torch.ones(2, device=device, requires_grad=True)
    seen = []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.tolist()))
    handle = x.register_hook(lambda g: g * 10)
    (y * 3).sum().backward()
    assert seen == [[3, 3]] and x.grad.tolist() == [60, 60]
    handle.remove()
    handle.remove()
    x.grad = None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_hooks_of_a_gradient_share_its_object(device):
    """Attributes included; what one hook returns is what the next is called with."""
    other = torch.full((2,), 5.0, device=device)
    for leaf in (True, False):
        x, seen = torch.ones(2, device=device, requires_grad=True), []
        y = x if leaf else x * 2

        def mark(g, seen=seen):
            g.mark = "kept"
            seen.append(id(g))

        y.register_hook(mark)
        y.register_hook(lambda g, seen=seen: seen.append((id(g), g.mark)))
        y.register_hook(lambda g: other)
        y.register_hook(lambda g, seen=seen: seen.append(g is other))
        (y * 3).sum().backward()
        assert seen == [seen[0], (seen[0], "kept"), True]
        assert x.grad.tolist() == ([5.0, 5.0] if leaf else [10.0, 10.0])


def test_hooks_are_called_result_by_result(device):
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            return a * 2 + b * 3

    first, second = Two.apply(torch.ones(2, device=device, requires_grad=True))
    calls = []
    for name, y in (("b", second), ("a", first)) * 2:
        y.register_hook(lambda g, name=name: calls.append((name, id(g))))
    (first * 2 + second).sum().backward()
    assert [name for name, _ in calls] == ["b", "b", "a", "a"]
    assert calls[0] == calls[1] and calls[2] == calls[3]


def test_a_hook_may_put_other_data_into_a_gradient(device):
    x = torch.ones(2, device=device, requires_grad=True)

    def replace(g):
        g.data = torch.full((2,), 7.0, device=device)

    x.register_hook(replace)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]


def test_a_hook_that_fails_reaches_the_user():
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (x * 2).sum().backward()
    y = torch.ones(2, requires_grad=True)
    y.register_hook(lambda g: "no")
    with pytest.raises(TypeError, match="hook"):
        (y * 2).sum().backward()
    with pytest.raises(RuntimeError, match="wants no gradient"):
        torch.ones(2).register_hook(print)
    with pytest.raises(TypeError):
        y.register_hook(3)
    for other in (torch.ones(3), torch.ones(2, dtype=torch.float64)):
        z = torch.ones(2, requires_grad=True)
        z.register_hook(lambda g, other=other: other)
        with pytest.raises(RuntimeError, match="returned a gradient of shape"):
            (z * 2).sum().backward()


def test_hooks_after_accumulation(device):
    x = torch.ones(2, device=device, requires_grad=True)
    seen = []

    def step(leaf):
        assert leaf is x
        seen.append(leaf.grad.tolist())
        with torch.no_grad():
            leaf -= leaf.grad
        leaf.grad = None

    handle = x.register_post_accumulate_grad_hook(step)
    # Called once for all uses, and not where nothing is accumulated.
    (x * 2 + x * 3).sum().backward()
    assert seen == [[5, 5]] and x.grad is None and x.tolist() == [-4, -4]
    torch.autograd.grad((x * 2).sum(), x)
    assert len(seen) == 1
    handle.remove()
    (x * 2).sum().backward()
    assert len(seen) == 1 and x.grad.tolist() == [2, 2]


def test_wrong_hooks_after_accumulation():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="is the result of an operation"):
        (x * 2).register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="wants no gradient"):
        torch.ones(2).register_post_accumulate_grad_hook(print)
    with pytest.raises(TypeError):
        x.register_post_accumulate_grad_hook(3)
    handle = x.register_post_accumulate_grad_hook(lambda leaf: 1)
    with pytest.raises(TypeError, match="has to return None, or a Tensor"):
        (x * 2).sum().backward()
    handle.remove()
    x.grad = None
    handle = x.register_post_accumulate_grad_hook(lambda leaf: leaf.grad.mul_(3))
    (x * 2).sum().backward()
    assert x.grad.tolist() == [6, 6]
    handle.remove()
    x.grad = torch.tensor([2.0, 2.0])
    x.register_post_accumulate_grad_hook(lambda leaf: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (x * 2).sum().backward()
    assert x.grad.tolist() == [4, 4]


def test_a_leaf_with_a_hook_after_accumulation_is_freed():
    x = torch.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda leaf: 1 / 0)
    alive, y = weakref.ref(x), x * 2
    del x
    assert alive() is None
    y.sum().backward()  # nobody is left to be told
    x = torch.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda leaf, me=x: None)
    alive = weakref.ref(x)
    del x
    gc.collect()
    assert alive() is None


def test_retain_grad(device):
    x = torch.ones(2, device=device, requires_grad=True)
    y = x * 2
    assert not y.retains_grad and y.grad is None
    y.retain_grad()
    y.retain_grad()
    (y * y).sum().backward(retain_graph=True)
    assert y.retains_grad and y.grad.tolist() == [4, 4]
    with pytest.raises(RuntimeError):
        torch.ones(2).retain_grad()


def test_a_kept_gradient_follows_the_tensor_and_comes_after_hooks(device):
    x = torch.ones(2, device=device, requires_grad=True)
    y, z = x * 2, x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 5)
    y.sum().backward(retain_graph=True)
    assert y.grad.tolist() == [5.0, 5.0]
    y.mul_(3)
    y.sum().backward(retain_graph=True)
    assert y.grad.tolist() == [6.0, 6.0] and x.grad.tolist() == [40.0, 40.0]
    v = z[:1]
    v.retain_grad()
    z.mul_(3)
    (v.sum() + z.sum()).backward()
    assert v.grad.tolist() == [1.0]
    # A recorded pass does not record what later ones add.
    y, x.grad = x * 2, None
    y.retain_grad()
    torch.autograd.grad((y * y).sum(), x, create_graph=True)
    assert y.grad.requires_grad
    y.sum().backward()
    assert y.grad.tolist() == [5.0, 5.0] and not y.grad.requires_grad


def test_hooks_are_removed_after_their_tensor_was_written(device):
    x = torch.ones(2, device=device, requires_grad=True)
    for write in (lambda y, v: y.mul_(2), lambda y, v: v.mul_(2)):
        y = x * 1
        v = y[:1]
        calls = []
        handles = [
            t.register_hook(lambda g, calls=calls: calls.append(1)) for t in (y, v)
        ]
        write(y, v)
        assert v.grad_fn and y.grad_fn
        for handle in handles:
            handle.remove()
        (y.sum() + v.sum()).backward()
        assert not calls


def test_a_handle_alone_keeps_no_hook_alive():
    class Marker:
        pass

    marker = Marker()
    alive = weakref.ref(marker)
    x = torch.ones(2, requires_grad=True)
    handle = x.register_hook(lambda g, m=marker: None)
    del x, marker
    gc.collect()
    assert alive() is None
    handle.remove()


def test_a_hook_behind_a_written_view_is_freed():
    class Marker:
        pass

    marker = Marker()
    alive = weakref.ref(marker)
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g, me=[y], m=marker: None)
    y[:1] += x[1:] * y[1:]
    del x, y, marker
    gc.collect()
    assert alive() is None


def test_a_hook_over_a_graph_is_freed():
    class Marker:
        pass

    marker = Marker()
    alive = weakref.ref(marker)
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g, m=marker: None)
    del marker, y
    gc.collect()
    assert alive() is None


def test_a_cycle_through_a_hook_is_collected():
    class Marker:
        pass

    marker = Marker()
    alive = weakref.ref(marker)
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda g, me=x, m=marker: None)
    del x, marker
    gc.collect()
    assert alive() is None


# --- errors


def test_hooks_that_remove_hooks(device):
    calls, handles = [], []

    def once(number, *also):
        def hook(grad):
            calls.append(number)
            for i in (number, *also):
                handles[i].remove()

        return hook

    for leaf in (True, False):
        calls.clear()
        handles.clear()
        x = torch.ones(2, device=device, requires_grad=True)
        y = x if leaf else x * 2
        hooks = [once(i, *([2, 3] if i == 1 else [])) for i in range(12)]
        for hook in hooks:
            handles.append(y.register_hook(hook))
        del hooks, hook
        for _ in range(2):  # in the second pass none is left
            (y * 3).sum().backward(retain_graph=True)
        assert calls == [0, 1, *range(4, 12)]


def test_handles_of_dicts():
    from pydevtensor.utils.hooks import RemovableHandle, unserializable_hook

    hooks, options, others = OrderedDict(), OrderedDict(), OrderedDict()
    first = RemovableHandle(hooks)
    second = RemovableHandle(hooks, extra_dict=[options, others])
    hooks.update({first.id: "a", second.id: "b"})
    options[second.id] = others[second.id] = "c"
    second.remove()
    second.remove()
    assert list(hooks.values()) == ["a"] and not options and not others
    with first:
        pass
    assert not hooks
    assert isinstance(torch.nn.ReLU().register_forward_hook(print), RemovableHandle)
    assert unserializable_hook(print) is print
    assert unserializable_hook(lambda: 0).__torch_unserializable__
