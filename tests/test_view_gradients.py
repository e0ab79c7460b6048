"""Views of tensors that want no gradient yet: they learn of it when their base does.

What these tests expect is what PyTorch gives for the same lines, unless it refuses them:
it forbids to write to views of unbind(), split() and chunk(), and to those taken under
no_grad().
"""

import gc

import pytest

import pydevtensor as torch
from pydevtensor.utils.checkpoint import checkpoint


def weights(n, device):
    return torch.ones(n, device=device, requires_grad=True)


WRITES = {
    "row of a row": lambda b, w: b[1][:].copy_(w),
    "subscript of a row": lambda b, w: b[1].__setitem__(slice(None), w),
    "augmented": lambda b, w: b[1].add_(w),
    "narrow": lambda b, w: b.narrow(0, 1, 1)[0].copy_(w),
    "select": lambda b, w: b.select(0, 1).copy_(w),
    "transposed": lambda b, w: b.T[:, 1].copy_(w),
    "flat": lambda b, w: b.view(12)[4:8].copy_(w),
    "chunk": lambda b, w: b.chunk(3)[1][0].copy_(w),
    "unbind": lambda b, w: b.unbind(0)[1].copy_(w),
    "unsqueezed": lambda b, w: b.unsqueeze(0)[0, 1].copy_(w),
    "as_strided": lambda b, w: b.as_strided((4,), (1,), 4).copy_(w),
    "masked_fill": lambda b, w: b[1].masked_scatter_(b[1] == 0, w),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_writing_to_a_view_reaches_the_base(device, write):
    b, w = torch.zeros(3, 4, device=device), weights(4, device)
    write(b, w)
    assert b.requires_grad and not b.is_leaf and b.grad_fn.name() == "CopySlices"
    assert b.tolist() == [[0.0] * 4, [1.0] * 4, [0.0] * 4]
    (b * torch.arange(12.0, device=device).reshape(3, 4)).sum().backward()
    assert w.grad.tolist() == [4.0, 5.0, 6.0, 7.0]


def test_rows_filled_in_a_loop(device):
    b, w = torch.zeros(3, 4, device=device), weights(4, device)
    for i in range(3):
        b[i][:] = w * i
    b.sum().backward()
    assert w.grad.tolist() == [3.0] * 4
    for row in (c := torch.zeros(3, 4, device=device)):
        row += w
    w.grad = None
    c.sum().backward()
    assert w.grad.tolist() == [3.0] * 4


def test_a_view_shows_what_its_base_was_made_of(device):
    b, w = torch.zeros(3, 4, device=device), weights(4, device)
    v, other = b.T, b[0]
    b[1] = w
    assert v.requires_grad and v.grad_fn.name() == "AsStridedBackward0"
    assert other.requires_grad and not other.is_leaf
    (v * 2).sum().backward()
    assert w.grad.tolist() == [2.0] * 4
    b, v = torch.ones(3, device=device), None
    v = b[:2]
    b.mul_(weights(3, device))
    assert (
        v.grad_fn.name() == "AsStridedBackward0" and b.grad_fn.name() == "MulBackward0"
    )
    v = torch.ones(3, device=device)[:2].requires_grad_()
    assert v.is_leaf and v.grad_fn is None


def test_a_view_made_a_leaf_of_its_own_comes_from_its_base_once_that_is_written(device):
    b = torch.ones(3, device=device)
    v = b[:2].requires_grad_()
    assert v.is_leaf and not b.requires_grad
    w = weights(3, device)
    b.mul_(w)
    assert v.grad_fn.name() == "AsStridedBackward0"
    v.sum().backward()
    assert v.grad is None and w.grad.tolist() == [1.0, 1.0, 0.0]


def test_a_base_that_begins_to_want_gradients(device):
    b = torch.ones(3, device=device)
    v = b[:2]
    b.requires_grad_()
    assert v.requires_grad and v.is_leaf and v.grad_fn is None
    for write in (lambda: v.mul_(2), lambda: v.mul_(weights(2, device))):
        with pytest.raises(RuntimeError, match="view of a leaf"):
            write()
    assert b.tolist() == [1.0, 1.0, 1.0]
    # The view was taken before: what is computed from it leads nowhere, ...
    (v * 2).sum().backward()
    assert b.grad is None
    with pytest.raises(RuntimeError, match="does not require grad"):
        v.backward(torch.ones(2, device=device))
    v.retain_grad()
    # ... until the memory is written, and the view looks again.
    with torch.no_grad():
        b.mul_(2)
    (v * 2).sum().backward()
    assert not v.is_leaf and b.grad.tolist() == [2.0, 2.0, 0.0]


def test_detached_memory_is_of_another_family(device):
    for apart in (lambda t: t.detach(), lambda t: t.data):
        b, w = torch.ones(3, device=device), weights(3, device)
        v = apart(b)[:2]
        b.mul_(w)
        assert not v.requires_grad and b.requires_grad
        b = torch.ones(3, device=device)
        apart(b).add_(w)
        assert not b.requires_grad
    with pytest.raises(RuntimeError, match="view"):
        torch.ones(4, device=device).view(2, 2).detach_()


def test_nothing_is_recorded_under_no_grad(device):
    b, w = torch.zeros(3, 4, device=device), weights(4, device)
    with torch.no_grad():
        b[0] = w
        v = b[1]
        v.add_(w)
    assert not b.requires_grad and not v.requires_grad
    assert b.sum().item() == 8


def test_shapes_changed_in_place_between_view_and_write(device):
    b, w = torch.zeros(3, 4, device=device), weights(4, device)
    v = b[0]
    b.unsqueeze_(0)
    v.add_(w)
    b.sum().backward()
    assert b.shape == (1, 3, 4) and w.grad.tolist() == [1.0] * 4
    b, w = torch.zeros(3, 4, device=device), weights(4, device)
    v = b[0]
    v.unsqueeze_(0)
    v.add_(w)
    b.sum().backward()
    assert w.grad.tolist() == [1.0] * 4


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


def written(w, write):
    buffer = torch.zeros(2, device=w.device)
    write(buffer, w)
    return buffer


# What is computed first from a view whose base was written. Each gives 2 * w.
READERS = {
    "element": lambda w: w * 2,
    "sum": lambda w: w.sum(0, keepdim=True) * 2,
    "cat": lambda w: torch.cat([w, w]),
    "conversion": lambda w: w.double() * 2,
    "clone": lambda w: w.clone() * 2,
    "subscript": lambda w: w[:] * 2,
    "view": lambda w: w.view(1, 1) * 2,
    "index": lambda w: w[torch.tensor([0, 0], device=w.device)],
    "strided": lambda w: w.as_strided((1,), (1,)) * 2,
    "in place": lambda w: w.mul_(2),
    "copied": lambda w: written(w, lambda b, w: b.copy_(w)),
    "added": lambda w: written(w, lambda b, w: b.add_(w)),
    "a part": lambda w: written(w, lambda b, w: b[:].copy_(w)),
    "Function": lambda w: Double.apply(w),
    "checkpoint": lambda w: checkpoint(lambda w: w * 2, w, use_reentrant=False),
    "reentrant": lambda w: checkpoint(lambda w: w * 2, w, use_reentrant=True),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_of_some_tensors_through_a_view_of_what_was_written(
    device, read, create_graph
):
    x = torch.tensor([1.0, 2.0], device=device, requires_grad=True)
    z = x * 1
    w = z[:1]
    z.mul_(10)
    made = read(w)
    total = made.sum() + z.sum()
    expected = [40.0 if made is w else 30.0, 10.0]
    (gradient,) = torch.autograd.grad(
        total, x, retain_graph=True, create_graph=create_graph
    )
    assert gradient.tolist() == expected
    total.backward(inputs=[x])
    assert x.grad.tolist() == expected


def test_elements_that_a_view_shows_several_times_get_the_sum(device):
    x = torch.arange(4.0, device=device, requires_grad=True)
    o = x.as_strided((3, 2), (1, 1))
    p = o.as_strided((2, 2), (1, 1))
    weights = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device=device)
    of_o, of_x = torch.autograd.grad((p * weights).sum(), [o, x])
    # An element of o that several positions show has its gradient divided among them.
    assert of_o.tolist() == [[1.0, 2.5], [2.5, 2.0], [2.0, 0.0]]
    assert of_x.tolist() == [1.0, 5.0, 4.0, 0.0]
    e = x[:1].expand(3)
    (gradient,) = torch.autograd.grad(e.as_strided((2,), (0,)).sum(), e)
    torch.testing.assert_close(gradient, torch.full((3,), 2 / 3, device=device))
    # What a view shows beside its base has no gradient there.
    y = x * 1
    v = y[2:]
    outside = v.as_strided((3,), (1,), 0)
    grads = torch.autograd.grad(outside.sum(), [x, v])
    assert [g.tolist() for g in grads] == [[0.0, 0.0, 1.0, 0.0], [1.0, 0.0]]
    e = (x * 1).expand(2, 4)
    base = x * 1
    seen = base.expand(2, 4)
    base.mul_(3)
    (gradient,) = torch.autograd.grad(seen.sum(), x)
    assert gradient.tolist() == [6.0] * 4
    double = x.detach().double().requires_grad_()
    assert torch.autograd.gradgradcheck(
        lambda x: (x * x).as_strided((3, 2), (1, 1)) ** 2, (double,)
    )


SHAPES = {
    "t_": lambda t: t.t_(),
    "transpose_": lambda t: t.transpose_(0, 1),
    "unsqueeze_": lambda t: t.unsqueeze_(0),
    "squeeze_": lambda t: t.unsqueeze_(0).squeeze_(),
    "as_strided_": lambda t: t.as_strided_((2, 2), (1, 2), t.storage_offset()),
}


@pytest.mark.parametrize("change", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("records", [True, False])
def test_shapes_changed_in_place_of_views(device, change, records):
    x = torch.arange(12.0, device=device).reshape(2, 2, 3).requires_grad_()
    y = x * 2
    v, beside = y[1], y[1, 0]
    with torch.set_grad_enabled(records):
        change(v)
    weights = torch.arange(1.0, v.numel() + 1, device=device).reshape(v.shape)
    plain = change(x.detach()[1]).clone()
    assert v.tolist() == (plain * 2).tolist() and v._version == y._version > 0
    (found,) = torch.autograd.grad((v * weights).sum(), x, retain_graph=True)
    expected = torch.zeros_like(x)
    change(expected[1]).copy_(2 * weights)
    assert found.tolist() == expected.tolist()
    v.mul_(10)
    (found,) = torch.autograd.grad(y.sum() + beside.sum(), x)
    touched = torch.ones_like(expected)
    change(touched[1]).fill_(10)
    touched[1, 0] += touched[1, 0]
    assert found.tolist() == (2 * touched).tolist()


def test_a_shape_changed_in_place_counts_as_a_write(device):
    x = torch.ones(2, 3, device=device, requires_grad=True)
    y = x.sigmoid()
    y.t_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_detached_base_stays_the_base_of_its_views(device):
    x, b = weights(2, device), torch.zeros(2, device=device)
    v = b[:]
    b.detach_()
    v.add_(x)
    b.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    y = x * 2
    v = y[:1]
    y.detach_()
    with pytest.raises(RuntimeError, match="view of a leaf"):
        v.mul_(2)
    y.mul_(3)
    assert torch.autograd.grad(v.sum(), x, allow_unused=True) == (None,)


def test_other_memory_in_the_place_of_a_base(device):
    b, w = torch.zeros(6, device=device), weights(2, device)
    old = b[4:]
    b.data = torch.zeros(2, device=device)
    fresh = b[:1]
    try:  # whatever it means, it ends
        old.mul_(w)
        old.sum().backward()
        b.sum().backward()
    except RuntimeError as error:
        assert str(error)
    assert fresh.shape == (1,)


def test_a_leaf_over_a_view_is_a_leaf(device):
    x = torch.arange(6.0, device=device).reshape(2, 3).requires_grad_()
    for _ in range(2):
        (x * x).sum().backward()
        with torch.no_grad():
            x -= 0.1 * x.grad
            x.grad.zero_()
    assert x.is_leaf and x.grad_fn is None
    assert x[0, 1].item() == pytest.approx(0.64)
    with pytest.raises(RuntimeError, match="leaf"):
        x.mul_(2)
    with pytest.raises(RuntimeError, match="view of a leaf"):
        x[0].mul_(2)


def test_numbers_of_other_types_have_no_family(device):
    b = torch.zeros(3, 4, device=device, dtype=torch.int64)
    b[1][:] = 1
    assert b.sum().item() == 4 and not b[1].requires_grad


def test_views_keep_no_memory_of_a_base_that_is_gone(device):
    # The fixture that follows every test counts storages.
    views = [torch.ones(4, device=device)[i] for i in range(4)]
    whole = torch.zeros(4, device=device)
    parts = list(whole)
    del whole
    parts[1].mul_(weights(1, device)[0])
    assert parts[0].requires_grad and sum(v.item() for v in views) == 4
    del views, parts
    gc.collect()


def test_second_derivatives_through_a_written_view(device):
    def f(w):
        b = torch.zeros(3, 3, device=device, dtype=torch.float64)
        b[1][:2] = w * w
        return (b * b).sum(0)

    w = torch.tensor([0.5, 2.0], dtype=torch.float64, device=device, requires_grad=True)
    assert torch.autograd.gradcheck(f, (w,))
    assert torch.autograd.gradgradcheck(f, (w,))


@pytest.mark.parametrize(
    ("a", "b", "name"),
    [
        ((2, 2, 3), (3, 2), "UnsafeViewBackward0"),
        ((2, 2, 3), (2, 3, 4), "UnsafeViewBackward0"),
        ((2, 2, 3), (3,), "UnsafeViewBackward0"),
        ((3,), (2, 3, 2), "UnsafeViewBackward0"),
        ((3,), (3, 2), "SqueezeBackward4"),
        ((2, 3), (3,), "MvBackward0"),
        ((3,), (3,), "DotBackward0"),
    ],
)
def test_a_product_is_no_view(device, a, b, name):
    x = torch.ones(a, device=device, requires_grad=True)
    product = x @ torch.ones(b, device=device)
    assert product.grad_fn.name() == name
    product.detach_()  # which a view refuses
    linear = torch.nn.Linear(3, 2, bias=False, device=device)
    assert (linear(torch.ones(2, 2, 3, device=device)).grad_fn.name()) == (
        "UnsafeViewBackward0"
    )


def test_softmax_into_a_tensor_has_no_derivative(device):
    x = torch.ones(2, 3, device=device, requires_grad=True)
    for function in (torch.softmax, torch.log_softmax):
        out = torch.empty(0, device=device)
        assert function(x, 1, out=out) is out and out.requires_grad
        assert out.grad_fn.name() == "NotImplemented"
        with pytest.raises(RuntimeError, match=f"{function.__name__} with out="):
            out.sum().backward()
        with pytest.raises(RuntimeError, match="automatic differentiation"):
            function(x, 1, out=torch.empty(2, 3, device=device, requires_grad=True))
        with torch.no_grad():
            assert not function(x, 1, out=torch.empty(0, device=device)).requires_grad


def test_views_know_their_base(device):
    x = torch.arange(4.0, device=device).requires_grad_()
    view = x[1:3][:1]
    assert view._is_view() and not x._is_view() and x._base is None
    assert view._base.tolist() == x.tolist() and view._base.requires_grad
    assert not (x * 2)._is_view() and not x.detach().clone()._is_view()
    y = x * 2
    (y[:2]._base * 3).sum().backward()
    assert x.grad.tolist() == [6.0] * 4


PARTS = {
    "UnbindBackward0": lambda x: x.unbind(1),
    "SplitBackward0": lambda x: x.split(3, 1),
    "SplitWithSizesBackward0": lambda x: x.split([1, 0, 3], -1),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_are_results_of_one_node(name, device):
    x = torch.arange(12.0, device=device).reshape(3, 4).requires_grad_()
    parts = PARTS[name](x)
    assert {part.grad_fn for part in parts} == {parts[0].grad_fn}
    assert parts[0].grad_fn.name() == name
    for chosen in ([0], [1], [0, 1], [len(parts) - 1], range(len(parts))):
        loss = sum((i + 1) * parts[i].sum() for i in chosen)
        (found,) = torch.autograd.grad(loss, x, retain_graph=True)
        wanted = torch.zeros(3, 4, device=device)
        for i in chosen:
            PARTS[name](wanted)[i].fill_(i + 1)
        assert torch.equal(found, wanted) and found.is_contiguous()
    parts[0].sum().backward()  # each on its own, since the node saves nothing
    parts[-1].exp().sum().backward()
    wanted = torch.zeros(3, 4, device=device)
    PARTS[name](wanted)[0].fill_(1)
    PARTS[name](wanted)[-1].add_(parts[-1].detach().exp())
    assert torch.equal(x.grad, wanted)


@pytest.mark.parametrize("name", PARTS)
def test_second_derivatives_of_some_parts(name, device):
    x = torch.rand(3, 4, dtype=torch.float64, device=device).requires_grad_()
    some = lambda x: [part.exp() * x[:, 1:2].sum() for part in PARTS[name](x)[::2]]
    assert torch.autograd.gradgradcheck(some, (x,))


def test_a_part_that_is_written_leaves_the_others(device):
    x = torch.arange(6.0, device=device).reshape(2, 3).requires_grad_()
    y = x * 1
    first, second, third = y.unbind(1)
    second.mul_(5)
    (first + third * 2 + second).sum().backward()
    assert x.grad.tolist() == [[1.0, 5.0, 2.0]] * 2
