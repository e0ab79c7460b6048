"""Casts of parameters that an autocast block keeps."""

import threading

import pytest

import pydevtensor as torch
from pydevtensor import nn


def on(device, **options):
    return torch.autocast(torch.device(device).type, torch.bfloat16, **options)


def casts_below(result):
    """How many nodes cast the parameters that a result was computed from, and how many
    parameters there are."""
    casts, parameters, nodes = set(), set(), [result.grad_fn]
    while nodes:
        node = nodes.pop()
        for below, _ in node.next_functions:
            if below is None:
                continue
            if "AccumulateGrad" in repr(below):
                casts.add(repr(node))
                parameters.add(repr(below))
            else:
                nodes.append(below)
    return len(casts), len(parameters)


def stored(device):
    return torch._C._storage_count(torch.device(device))


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Linear(4, 4),
        lambda: nn.RNNCell(4, 4),
        lambda: nn.GRUCell(4, 4),
        lambda: nn.RNN(4, 4),
        lambda: nn.Conv1d(4, 4, 1),
    ],
    ids=["Linear", "RNNCell", "GRUCell", "RNN", "Conv1d"],
)
def test_a_parameter_is_cast_once_in_a_block(make, device):
    layer, x = make().to(device), torch.ones(4, 4, device=device)

    def twice():
        out = x
        for _ in range(2):
            out = layer(out)
            out = out[0] if isinstance(out, tuple) else out
        return out

    parameters = len([*layer.parameters()])
    with on(device):
        assert casts_below(twice()) == (parameters, parameters)
    with on(device, cache_enabled=False):
        casts, found = casts_below(twice())
        assert casts > found == parameters


def test_gradients_meet_in_the_lower_type(device):
    w = torch.tensor([[1.0]], device=device, requires_grad=True)
    one = torch.ones(1, 1, device=device)
    small = torch.full((1, 1), 2.0**-9, device=device)
    with on(device):
        ((one @ w) + (small @ w)).sum().backward()
    assert w.grad.item() == 1  # bfloat16 has no 1 + 2**-9
    w.grad = None
    with on(device, cache_enabled=False):
        ((one @ w) + (small @ w)).sum().backward()
    assert w.grad.item() == 1 + 2**-9


def test_several_backward_passes(device):
    w = torch.ones(2, 2, device=device, requires_grad=True)
    x = torch.eye(2, device=device)
    with on(device):
        for _ in range(3):
            (x @ w).sum().backward()
    assert w.grad.tolist() == [[3, 3], [3, 3]]


def test_a_written_parameter_is_cast_again(device):
    w = torch.ones(2, 2, device=device, requires_grad=True)
    x = torch.eye(2, device=device)
    with on(device):
        assert (x @ w).tolist() == [[1, 1], [1, 1]]
        with torch.no_grad():
            w.mul_(3)
        assert (x @ w).tolist() == [[3, 3], [3, 3]]
        w.data = torch.zeros(2, 2, device=device)
        assert (x @ w).tolist() == [[0, 0], [0, 0]]


def test_grad_mode_and_dtype_change_in_a_block(device):
    w = torch.ones(2, 2, device=device, requires_grad=True)
    kind = torch.device(device).type
    with on(device):
        with torch.no_grad():
            assert not (w @ w).requires_grad
        assert (w @ w).requires_grad
        with torch.no_grad():
            assert not (w @ w).requires_grad
        with torch.autocast(kind, torch.float16):
            assert (w @ w).dtype == torch.float16
        assert (w @ w).dtype == torch.bfloat16


def test_what_is_not_a_parameter_is_not_kept(device):
    w = torch.ones(2, 2, device=device, requires_grad=True)
    with on(device):
        before = stored(device)
        for x in (w.detach(), w * 1, w.view(4).view(2, 2)):
            x @ x
        del x
        assert stored(device) == before


def test_the_end_of_a_block_drops_the_casts(device):
    w = torch.ones(2, 2, device=device, requires_grad=True)
    before = stored(device)
    with on(device):
        with on(device):
            w @ w
        assert stored(device) == before + 1
        torch.clear_autocast_cache()
        assert stored(device) == before
        w @ w
    assert stored(device) == before
    with pytest.raises(ZeroDivisionError), on(device):
        w @ w
        1 / 0  # noqa: B018
    assert stored(device) == before


def test_casts_of_parameters_that_are_gone(device):
    before = stored(device)
    with on(device):
        for _ in range(200):
            w = torch.ones(2, 2, device=device, requires_grad=True)
            w @ w
        assert stored(device) <= before + 33  # the parameters and casts of 16, and w


def test_each_thread_keeps_its_own(device):
    w = torch.ones(2, 2, device=device, requires_grad=True)
    before = stored(device)

    def work():
        with on(device):
            w @ w
            found.append(stored(device))

    found = []
    with on(device):
        w @ w
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert found == [before + 2] and stored(device) == before + 1


def test_a_cast_serves_the_stream_that_made_it(gpu):
    w = torch.ones(300, 300, device=gpu, requires_grad=True)
    side = torch.cuda.Stream(gpu)
    side.wait_stream(torch.cuda.current_stream(gpu))
    with on(gpu):
        with torch.cuda.stream(side):
            first = w @ w
        second = w @ w  # no race with the cast of the side stream
    torch.cuda.synchronize(gpu)
    assert first[0, 0] == second[0, 0] == 300


def test_a_captured_cast_stays_in_its_graph(gpu):
    torch.cuda.set_device(gpu)
    w = torch.ones(2, 2, device=gpu, requires_grad=True)
    with on(gpu), torch.no_grad():
        w @ w
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = w @ w
        w.fill_(2)
        graph.replay()
        assert y.tolist() == [[8, 8], [8, 8]]
        assert (w @ w).tolist() == [[8, 8], [8, 8]]
