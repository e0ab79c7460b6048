"""Gradients: graphs, leaves, modes."""

import copy
import pickle
import threading

import numpy as np
import pytest

import pydevtensor as torch
from pydevtensor.autograd import grad

# --- graphs


def test_a_name_for_every_node():
    x = torch.ones(2, 2, requires_grad=True)
    names = {
        "AddBackward0": x + 1,
        "MulBackward0": 2 * x,
        "RsubBackward1": 1 - x,
        "PowBackward0": x**2,
        "PowBackward1": x**x,
        "PowBackward2": 2**x,
        "ExpBackward0": x.exp(),
        "Log1PBackward0": x.log1p(),
        "SumBackward0": x.sum(),
        "SumBackward1": x.sum(0),
        "MaxBackward1": x.max(),
        "MinBackward1": x.min(),
        "MaxBackward0": x.max(0).values,
        "MeanBackward0": x.mean(),
        "MmBackward0": x @ x,
        "MvBackward0": x @ x[0].detach(),
        "TransposeBackward0": x.transpose(0, 1),
        "TBackward0": x.t(),
        "ViewBackward0": x.view(4),
        "SelectBackward0": x[0],
        "SliceBackward0": x[:1],
        "CloneBackward0": x.clone(),
        "ToCopyBackward0": x.double(),
        "LinalgVectorNormBackward0": x.norm(),
        "ReluBackward0": x.relu(),
    }
    assert {y.grad_fn.name(): None for y in names.values()}.keys() == names.keys()
    assert repr(x.sum()) == "tensor(4., grad_fn=<SumBackward0>)"
    assert repr(x[0]) == "tensor([1., 1.], grad_fn=<SelectBackward0>)"


def test_next_functions():
    x = torch.ones(2, requires_grad=True)
    y = x * 2 + 1
    ((product, number),) = [e for e in y.grad_fn.next_functions if e[0]]
    assert (product.name(), number) == ("MulBackward0", 0)
    names = [e[0].name() for e in product.next_functions if e[0]]
    assert names == ["torch::autograd::AccumulateGrad"]
    assert y.grad_fn == y.grad_fn and y.grad_fn != product
    assert x.grad_fn is None and x.is_leaf and not y.is_leaf


def test_gradients_accumulate_in_place(device):
    x = torch.ones(3, device=device, requires_grad=True)
    (2 * x).sum().backward()
    first = x.grad
    address = first.data_ptr()
    (3 * x).sum().backward()
    assert x.grad.tolist() == [5, 5, 5] and x.grad.data_ptr() == address
    assert first.tolist() == [5, 5, 5]
    x.grad = None
    assert x.grad is None


def test_a_leaf_used_twice_and_a_diamond(device):
    x = torch.tensor(3.0, device=device, requires_grad=True)
    y = x * x
    (y + y * x).backward()
    assert x.grad.item() == 6 + 27


def test_a_long_chain_neither_overflows_nor_stays():
    x = torch.ones(2, requires_grad=True)
    y = x
    for _ in range(200_000):
        y = y + 1
    z = y.sum()
    z.backward()
    assert x.grad.tolist() == [1, 1]
    del y, z  # freed in a loop, not in 200,000 nested calls


def test_a_dropped_graph_frees_its_tensors():
    x = torch.ones(1000, requires_grad=True)
    before = torch._C._storage_count(torch.device("cpu"))
    y = (x.exp() * x.sin()).sum()
    assert torch._C._storage_count(torch.device("cpu")) > before
    del y
    assert torch._C._storage_count(torch.device("cpu")) == before


def test_higher_derivatives(device):
    x = torch.tensor(2.0, dtype=torch.float64, device=device, requires_grad=True)
    y = x.exp() * x**3
    values = [y]
    for _ in range(3):
        values.append(grad(values[-1], x, create_graph=True)[0])
    e = np.exp(2)
    expected = [8 * e, (8 + 12) * e, (8 + 24 + 12) * e, (8 + 36 + 36 + 6) * e]
    np.testing.assert_allclose([v.item() for v in values], expected, rtol=1e-12)


def test_backward_that_is_recorded_accumulates_with_history():
    x = torch.tensor(2.0, requires_grad=True)
    (x**3).backward(create_graph=True)
    assert x.grad.requires_grad
    x.grad.backward()
    assert x.grad.item() == 12 + 12
    x.grad = None  # the gradient and the leaf refer to each other


def test_grad_leaves_leaves_alone(device):
    x = torch.ones(2, device=device, requires_grad=True)
    w = torch.ones(2, device=device, requires_grad=True)
    y = (x * w).sum()
    (gx,) = grad(y, [x], retain_graph=True)
    assert gx.tolist() == [1, 1] and x.grad is None and w.grad is None
    middle = x * 2
    (gm,) = grad((middle * middle).sum(), middle)
    assert gm.tolist() == [4, 4]
    other = torch.ones(2, device=device, requires_grad=True)
    assert grad(y, [other], allow_unused=True, retain_graph=True) == (None,)
    zeros = grad(y, [other], materialize_grads=True, retain_graph=True)
    assert zeros[0].tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="not used"):
        grad(y, [other])


def test_backward_with_inputs(device):
    x = torch.ones(2, device=device, requires_grad=True)
    w = torch.ones(2, device=device, requires_grad=True)
    calls = []
    handle = x.register_post_accumulate_grad_hook(lambda x: calls.append(1))
    (x * w).sum().backward(inputs=[x])
    assert x.grad.tolist() == [1, 1] and w.grad is None and calls == [1]
    (x * w).sum().backward(inputs=[x, x])
    assert x.grad.tolist() == [2, 2]
    handle.remove()
    # A tensor that is not a leaf keeps its gradient from then on.
    y = x * 3
    (y * w).sum().backward(inputs=[x, y], retain_graph=True)
    assert x.grad.tolist() == [5, 5] and y.grad.tolist() == [1, 1]
    (y * w).sum().backward()
    assert y.grad.tolist() == [2, 2] and y.retains_grad and w.grad.tolist() == [3, 3]


def test_a_leaf_that_requires_none_any_more_gets_none(device):
    for end in (lambda x: x.requires_grad_(False), lambda x: x.detach_()):
        x = torch.ones(2, device=device, requires_grad=True)
        x.sum().backward()
        y = (x * 2).sum()
        end(x)
        y.backward()
        assert x.grad.tolist() == [1, 1]


def test_several_roots():
    x = torch.ones(2, requires_grad=True)
    torch.autograd.backward([x * 2, x * 3], [torch.ones(2), torch.tensor([1.0, 0.0])])
    assert x.grad.tolist() == [5, 2]


def test_gradient_argument(device):
    x = torch.ones(2, device=device, requires_grad=True)
    (x * 3).backward(torch.tensor([1.0, 2.0], device=device))
    assert x.grad.tolist() == [3, 6]
    with pytest.raises(RuntimeError, match=r"shape \[3\]"):
        (x * 3).backward(torch.ones(3, device=device))


# --- leaves


def test_requires_grad_rules(device):
    x = torch.zeros(2, device=device)
    assert not x.requires_grad and x.is_leaf and x.grad is None
    assert x.requires_grad_() is x and x.requires_grad
    x.requires_grad = False
    assert not x.requires_grad
    for make in (torch.zeros, torch.ones, torch.empty, torch.rand, torch.randn):
        assert make(2, device=device, requires_grad=True).requires_grad
    assert torch.tensor([1.0], device=device, requires_grad=True).requires_grad
    assert torch.arange(2.0, device=device, requires_grad=True).requires_grad
    assert torch.full((2,), 1.0, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="floating"):
        torch.ones(2, dtype=torch.int64, device=device, requires_grad=True)
    with pytest.raises(RuntimeError, match="not a leaf"):
        (torch.ones(2, requires_grad=True) * 2).requires_grad_(False)
    y = torch.ones(2, requires_grad=True) * 2
    assert y.requires_grad_() is y


def test_integers_and_comparisons_have_no_gradient():
    x = torch.ones(3, requires_grad=True)
    for y in (x > 0, x.argmax(), x.long(), x == x, x.isnan(), x // 2 > 0):
        assert not y.requires_grad and y.grad_fn is None


def test_setting_grad():
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.tensor([1.0, 2.0])
    assert x.grad.tolist() == [1, 2]
    for wrong, error in (
        (torch.ones(3), RuntimeError),
        (torch.ones(2, dtype=torch.float64), RuntimeError),
        (1.0, TypeError),
        (x, RuntimeError),
    ):
        with pytest.raises(error):
            x.grad = wrong
    del x.grad
    assert x.grad is None


def test_detach(device):
    x = torch.ones(2, device=device, requires_grad=True)
    y = (x * 2).detach()
    assert not y.requires_grad and y.is_leaf
    z = x * 2
    assert z.detach_() is z and not z.requires_grad
    with pytest.raises(RuntimeError, match="view"):
        (x * 2)[0].detach_()
    d = x.detach()
    assert d.data_ptr() == x.data_ptr()


def test_numpy_wants_detach():
    x = torch.ones(2, requires_grad=True)
    for call in (x.numpy, lambda: np.asarray(x), (x * 2).numpy):
        with pytest.raises(RuntimeError, match="detach"):
            call()
    assert x.detach().numpy().tolist() == [1, 1]
    assert x.numpy(force=True).tolist() == [1, 1]


def test_copies_and_pickles_keep_the_wish():
    x = torch.ones(2, requires_grad=True)
    assert (
        copy.deepcopy(x).requires_grad and pickle.loads(pickle.dumps(x)).requires_grad
    )
    for call in (copy.deepcopy, pickle.dumps):
        with pytest.raises(RuntimeError, match="detach"):
            call(x * 2)


def test_out_and_gradients_do_not_mix():
    x = torch.ones(2, requires_grad=True)
    for call in (
        lambda: torch.add(x, 1, out=torch.empty(2)),
        lambda: torch.exp(x, out=torch.empty(2)),
        lambda: torch.sum(x, 0, out=torch.empty(())),
    ):
        with pytest.raises(RuntimeError, match="out="):
            call()


def test_gradients_cross_devices_and_types(gpu):
    x = torch.ones(3, requires_grad=True)
    w = torch.ones(3, device=gpu, dtype=torch.float64, requires_grad=True)
    (x.to(gpu) * w).sum().backward()
    assert x.grad.device.type == "cpu" and x.grad.dtype is torch.float32
    assert w.grad.device == torch.device(gpu) and w.grad.dtype is torch.float64
    scalar = torch.tensor(2.0, requires_grad=True)
    (scalar * w.detach()).sum().backward()
    assert scalar.grad.item() == 3 and scalar.grad.device.type == "cpu"


def test_backward_runs_on_the_streams_of_the_forward(gpu):
    x = torch.ones(1000, device=gpu, requires_grad=True)
    side = torch.cuda.Stream(gpu)
    side.wait_stream(torch.cuda.current_stream(gpu))
    with torch.cuda.stream(side):
        y = (x * 3).exp()
    z = None
    torch.cuda.current_stream(gpu).wait_stream(side)
    z = (y * 2).sum()
    z.backward()
    np.testing.assert_allclose(x.grad.cpu().numpy(), 6 * np.exp(3.0), rtol=1e-5)


# --- modes


def test_modes():
    x = torch.ones(2, requires_grad=True)
    assert torch.is_grad_enabled()
    with torch.no_grad():
        assert not torch.is_grad_enabled() and not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad
    with torch.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    assert torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled() and not (x * 2).requires_grad
    assert not torch.is_inference_mode_enabled()


def test_modes_are_left_by_exceptions_and_decorate():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(ZeroDivisionError), torch.no_grad():
        1 / 0  # noqa: B018
    assert torch.is_grad_enabled()

    @torch.no_grad()
    def double(v):
        """Twice."""
        return v * 2

    @torch.no_grad
    def triple(v):
        return v * 3

    @torch.no_grad()
    def steps(v):
        for _ in range(2):
            yield v * 2

    assert not double(x).requires_grad and double.__doc__ == "Twice."
    assert not triple(x).requires_grad
    for y in steps(x):
        assert not y.requires_grad and torch.is_grad_enabled()
    assert double(x).tolist() == [2, 2]

    @torch.inference_mode()
    def infer(v):
        return v * 2

    assert not infer(x).requires_grad


def test_the_mode_is_a_threads_own():
    seen = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_threads_share_leaves():
    w = torch.ones(1000, requires_grad=True)

    def work():
        for _ in range(50):
            (w * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert w.grad.tolist() == [400.0] * 1000
