"""Nodes and edges of the graph: hooks around a node's run, several Tensors, versions."""

import gc
import weakref

import pytest

import pydevtensor as torch
from pydevtensor.autograd import graph


def test_edges_stand_for_tensors(device):
    x = torch.ones(3, device=device, requires_grad=True)
    y = x * 2
    at_y, at_x = graph.get_gradient_edge(y), graph.get_gradient_edge(x)
    assert at_y.node == y.grad_fn and at_y.output_nr == 0 and len(at_y) == 3
    assert type(at_x.node).__name__ == "AccumulateGrad"
    assert at_x.node.next_functions == ()
    z = (y * 3).sum()
    found = torch.autograd.grad(z, [at_y, at_x], retain_graph=True)
    assert [g.tolist() for g in found] == [[3, 3, 3], [6, 6, 6]]
    seed = torch.full((3,), 5.0, device=device)
    (found,) = torch.autograd.grad(at_y, x, seed, retain_graph=True)
    assert found.tolist() == [10, 10, 10] and found.device == x.device
    torch.autograd.backward(at_y, seed, retain_graph=True)
    torch.autograd.backward(graph.get_gradient_edge(z), inputs=at_x)
    assert x.grad.tolist() == [16, 16, 16]
    parts = x.unbind()
    numbers = [graph.get_gradient_edge(p).output_nr for p in parts]
    assert numbers == [p.output_nr for p in parts]


def test_wrong_edges():
    x = torch.ones(3, requires_grad=True)
    edge = graph.get_gradient_edge(x * 2)
    with pytest.raises(RuntimeError, match="does not require gradients"):
        graph.get_gradient_edge(torch.ones(2))
    with pytest.raises(RuntimeError, match="only for scalar"):
        torch.autograd.grad(edge, x)
    with pytest.raises(RuntimeError, match="shape"):
        torch.autograd.grad(edge, x, torch.ones(2))
    with pytest.raises(TypeError):
        torch.autograd.backward((x * 2).sum(), inputs=(edge.node,))
    wrong = graph.GradientEdge(edge.node, 7)
    with pytest.raises(TypeError):
        torch.autograd.backward((x * 2).sum(), inputs=wrong)
    with pytest.raises(TypeError, match="operations make nodes"):
        type(edge.node)()


def test_what_a_node_says(device):
    x = torch.ones(2, 3, device=device, requires_grad=True)
    y = x.exp()
    node = y.grad_fn
    assert isinstance(node, graph.Node) and type(node).__name__ == "ExpBackward0"
    assert type(node) is type(x.exp().grad_fn) and type(node) is not type(
        (x * 2).grad_fn
    )
    assert (y * 2).grad_fn._sequence_nr() > node._sequence_nr()
    node.metadata["name"] = "first"
    assert y.grad_fn.metadata == {"name": "first"} and x.exp().grad_fn.metadata == {}
    (facts,) = node._input_metadata
    assert (facts.shape, facts.dtype, facts.device) == (y.shape, y.dtype, y.device)
    y.sum().backward()
    assert node.metadata == {"name": "first"}


def test_hooks_around_a_node(device):
    x = torch.ones(2, device=device, requires_grad=True)
    w = torch.full((1,), 3.0, device=device)
    y = x * w
    z = (y * 4).sum()
    seen = []

    def after(inputs, outputs):
        found = [None if g is None else g.tolist() for g in inputs]
        seen.append(("after", found, outputs[0].tolist()))

    handles = [
        y.grad_fn.register_hook(after),
        y.grad_fn.register_prehook(lambda g: seen.append(("before", g[0].tolist()))),
    ]
    y.register_hook(lambda g: seen.append("result"))
    z.backward(retain_graph=True)
    assert seen == [
        "result",
        ("before", [4, 4]),
        ("after", [[12, 12], None], [4, 4]),
    ]
    for handle in handles:
        handle.remove()
    seen.clear()
    y.grad_fn.register_prehook(lambda g: (g[0] * 10,))
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] + outputs[0], None))
    x.grad = None
    z.backward(retain_graph=True)
    assert seen == ["result"] and x.grad.tolist() == [160, 160]
    assert torch.autograd.grad(z, y, retain_graph=True)[0].tolist() == [4, 4]
    # A hook sees gradients in the shape of the inputs.
    v = torch.ones(1, device=device, requires_grad=True)
    u = x.detach() * v
    u.grad_fn.register_hook(lambda inputs, outputs: seen.append(inputs[1].tolist()))
    u.sum().backward()
    assert seen[-1] == [2]


def test_hooks_of_the_node_of_a_leaf(device):
    x = torch.ones(2, device=device, requires_grad=True)
    node = graph.get_gradient_edge(x).node
    seen = []
    node.register_prehook(lambda g: (g[0] * 2,))
    node.register_hook(lambda inputs, outputs: seen.append((inputs, x.grad.tolist())))
    (x * 3).sum().backward()
    assert seen == [((), [6, 6])] and x.grad.tolist() == [6, 6]
    torch.autograd.grad((x * 3).sum(), x)  # which does not accumulate
    assert len(seen) == 1


def test_wrong_hooks_of_nodes():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    with pytest.raises(TypeError, match="callable"):
        y.grad_fn.register_hook(3)

    def fails(error, text, register, hook):
        with register(hook), pytest.raises(error, match=text):
            y.sum().backward(retain_graph=True)

    node = y.grad_fn
    fails(RuntimeError, "5 gradients", node.register_hook, lambda i, o: (o[0],) * 5)
    fails(RuntimeError, "2 gradients", node.register_prehook, lambda o: (o[0],) * 2)
    fails(TypeError, "return a tuple", node.register_hook, lambda i, o: o[0])
    fails(TypeError, "has to return Tensors", node.register_prehook, lambda o: (5,))
    fails(ZeroDivisionError, "", node.register_hook, lambda i, o: 1 / 0)
    assert x.grad is None


def test_a_cycle_through_a_node_is_freed():
    class Marker:
        pass

    for attach in (
        lambda y, m: y.grad_fn.register_hook(lambda i, o, me=y, m=m: None),
        lambda y, m: y.grad_fn.register_prehook(lambda o, me=y, m=m: None),
        lambda y, m: y.grad_fn.metadata.update(me=y, m=m),
    ):
        marker = Marker()
        alive = weakref.ref(marker)
        y = torch.ones(2, requires_grad=True) * 2
        attach(y, marker)
        del y, marker
        gc.collect()
        assert alive() is None


def test_a_hook_of_several_tensors(device):
    a, b, c = (torch.ones(2, device=device, requires_grad=True) for _ in range(3))
    d, calls = a * 2, []

    def note(gradients):
        calls.append([g if g is None else g.tolist() for g in gradients])

    handle = graph.register_multi_grad_hook((d, b, c), note)
    (d * b).sum().backward(retain_graph=True)
    assert calls.pop() == [[1, 1], [2, 2], None]
    (d * b * c).sum().backward(retain_graph=True)
    assert calls.pop() == [[1, 1], [2, 2], [2, 2]] and not calls
    torch.autograd.grad((d * b).sum(), a, retain_graph=True)
    assert calls.pop() == [[1, 1], None, None]
    handle.remove()
    (d * b).sum().backward(retain_graph=True)
    assert not calls
    handle = graph.register_multi_grad_hook(
        (b, c), lambda g: calls.append(g.tolist()), mode="any"
    )
    for _ in range(2):
        (d * b * c).sum().backward(retain_graph=True)
    assert calls == [[2, 2]] * 2
    with pytest.raises(ValueError, match="mode"):
        graph.register_multi_grad_hook((a,), print, mode="some")
    with pytest.raises(RuntimeError, match="does not require gradients"):
        graph.register_multi_grad_hook((torch.ones(2),), print)


def test_saved_tensors_may_be_written(device):
    x = torch.ones(2, device=device, requires_grad=True)
    with graph.allow_mutation_on_saved_tensors() as copies:
        y = x.clone()
        z = (y**2).sum()
        y.sin_()
        z.backward(retain_graph=True)
        assert x.grad.tolist() == [2, 2]
        with (
            pytest.raises(RuntimeError, match="nested"),
            graph.allow_mutation_on_saved_tensors(),
        ):
            pass
        copies.clear()
    with pytest.raises(AssertionError, match="originally recorded"):
        z.backward()
    y = x.clone()
    z = (y**2).sum()
    y.sin_()
    with pytest.raises(RuntimeError):
        z.backward()


def test_versions_and_threads():
    a, b = torch.ones(2), torch.ones(2)
    graph.increment_version(a)
    graph.increment_version([a, b])
    assert (a._version, b._version) == (2, 1)
    x = torch.ones(2, requires_grad=True)
    y = x * a
    graph.increment_version(a)
    with pytest.raises(RuntimeError):
        y.sum().backward()
    says = torch.autograd.is_multithreading_enabled
    with torch.autograd.set_multithreading_enabled(False):
        assert not says()

    @torch.autograd.set_multithreading_enabled(False)
    def inside():
        return says()

    assert says() and not inside() and says()
    torch.autograd.set_multithreading_enabled(False)
    assert not says()
    torch.autograd.set_multithreading_enabled(True)


def test_gradients_of_a_batch_of_gradients(device):
    x = torch.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
    y = x**2
    eye = torch.eye(3, device=device)
    (rows,) = torch.autograd.grad(y, x, eye, is_grads_batched=True, retain_graph=True)
    assert rows.tolist() == [[2, 0, 0], [0, 4, 0], [0, 0, 6]]
    unused = torch.ones(1, device=device, requires_grad=True)
    found = torch.autograd.grad(
        y, [x, unused], eye, is_grads_batched=True, allow_unused=True
    )
    assert found[0].shape == (3, 3) and found[1] is None
    with pytest.raises(RuntimeError):  # the graph is gone
        torch.autograd.grad(y, x, eye, is_grads_batched=True)
    with pytest.raises(RuntimeError, match="is_grads_batched"):
        torch.autograd.grad(y, x, is_grads_batched=True)
