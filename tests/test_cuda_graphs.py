"""CUDA graphs: captured work, replayed, gives what the calls themselves give."""

import gc
import os
import re
import subprocess
import sys
import threading

import pytest
from conftest import SIMULATED

import pydevtensor as torch
from pydevtensor import nn

only_simulated = pytest.mark.skipif(not SIMULATED, reason="needs the simulator")


@pytest.fixture(params=["as it is", "eager", "lazy", "random:5"])
def schedule(request):
    """The schedules of simulated GPUs, one after the other."""
    if request.param == "as it is" or not SIMULATED:
        yield request.param
        return
    before = torch._C._sim_control("schedule")
    torch.cuda.sim_schedule(request.param)
    yield request.param
    torch.cuda.synchronize()
    torch.cuda.sim_schedule(before)


def captured(work, device, **options):
    """A graph of what work() does, and its result."""
    g = torch.cuda.CUDAGraph()
    with torch.cuda.device(device), torch.cuda.graph(g, **options):
        result = work()
    return g, result


def warm_up(work, device, times=1):
    with torch.cuda.device(device):
        stream = torch.cuda.graphs.capture_stream(torch.device(device).index)
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(times):
                work()
        torch.cuda.current_stream().wait_stream(stream)


# --- capture and replay ---------------------------------------------------------------


def test_nothing_runs_until_a_replay(gpu, schedule):
    x = torch.zeros(3, device=gpu)
    g, y = captured(lambda: x.add_(1) * 2, gpu)
    assert x.tolist() == [0, 0, 0]
    for n in range(1, 4):
        g.replay()
        assert x.tolist() == [n, n, n]
        assert y.tolist() == [2 * n] * 3
    x.fill_(10)
    g.replay()
    assert y.tolist() == [22, 22, 22]


def test_a_replay_reads_what_the_inputs_are_then(gpu, schedule):
    a, b = torch.ones(4, 5, device=gpu), torch.ones(5, 6, device=gpu)
    g, y = captured(lambda: (a @ b).relu().sum(0), gpu)
    generator = torch.Generator().manual_seed(3)
    for _ in range(3):
        a.copy_(torch.randn(4, 5, generator=generator))
        b.copy_(torch.randn(5, 6, generator=generator))
        g.replay()
        assert torch.equal(y, (a @ b).relu().sum(0))


def test_memory_that_a_capture_uses_twice_is_laid_out_by_each_replay(gpu, schedule):
    x = torch.ones(1000, device=gpu)

    def work():
        total = x
        for _ in range(5):  # temporaries in the memory of temporaries
            total = (total * 2 + 1).sin() + (total - 3).cos()
        return total

    expected = work()
    g, y = captured(work, gpu)
    for _ in range(3):
        g.replay()
        assert torch.equal(y, expected)


def test_streams_that_are_forked_and_joined(gpu, schedule):
    x = torch.ones(8, device=gpu)

    def work():
        here, there = torch.cuda.current_stream(gpu), torch.cuda.Stream(gpu)
        y = x * 2
        there.wait_stream(here)
        with torch.cuda.stream(there):
            z = y + 5
            y.record_stream(there)
        w = y * 3
        here.wait_stream(there)
        z.record_stream(here)
        return w + z

    expected = work()
    g, y = captured(work, gpu)
    for n in range(1, 4):
        x.fill_(n)
        g.replay()
        assert y.tolist() == [6 * n + 2 * n + 5] * 8
    del expected


def test_replays_on_other_streams_come_one_after_another(gpu, schedule):
    with torch.cuda.device(gpu):
        x = torch.zeros(5, device=gpu)
        g, _ = captured(lambda: x.add_(torch.rand(5, device=gpu)), gpu)
        torch.cuda.synchronize()
        torch.manual_seed(4)
        for _ in range(6):
            with torch.cuda.stream(torch.cuda.Stream()):
                g.replay()
        torch.cuda.synchronize()
        torch.manual_seed(4)
        expected = sum(torch.rand(5, device=gpu) for _ in range(6))
        assert torch.allclose(x, expected)


def test_copies_from_and_to_pinned_memory_are_captured(gpu, schedule):
    source = torch.arange(4.0).pin_memory()
    target = torch.zeros(4).pin_memory()

    def work():
        y = source.to(gpu, non_blocking=True) * 2
        target.copy_(y, non_blocking=True)

    g, _ = captured(work, gpu)
    for n in range(3):
        source.fill_(n)
        g.replay()
        torch.cuda.synchronize(gpu)
        assert target.tolist() == [2 * n] * 4


def test_tables_of_the_library_live_as_long_as_the_graph(gpu, schedule):
    x = torch.arange(16.0, device=gpu).reshape(1, 1, 4, 4)

    def work():
        return nn.functional.interpolate(x, scale_factor=2, mode="bilinear")

    expected = work()
    g, y = captured(work, gpu)
    for _ in range(70):  # more copies than there are pinned slots
        torch.ones(3).to(gpu)
    g.replay()
    assert torch.equal(y, expected)


# --- what a graph keeps ---------------------------------------------------------------


def test_a_graph_that_is_kept(gpu, schedule):
    x = torch.zeros(3, device=gpu)
    g = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.device(gpu), torch.cuda.graph(g):
        x.add_(1)
    raw = g.raw_cuda_graph()
    assert isinstance(raw, int) and raw
    with pytest.raises(RuntimeError, match=r"call instantiate\(\) first"):
        g.raw_cuda_graph_exec()
    g.replay()  # which makes it ready
    assert x.tolist() == [1, 1, 1]
    first = g.raw_cuda_graph_exec()
    g.replay()
    g.instantiate()  # while the replay is queued
    g.instantiate()
    assert first and g.raw_cuda_graph_exec() and g.raw_cuda_graph() == raw
    g.replay()
    assert x.tolist() == [3, 3, 3]
    g.reset()
    for call in (g.raw_cuda_graph, g.raw_cuda_graph_exec, g.instantiate, g.replay):
        with pytest.raises(RuntimeError, match="no capture that has ended"):
            call()
    with torch.cuda.device(gpu), torch.cuda.graph(g):
        x.add_(10)
    g.instantiate()
    g.replay()
    assert x.tolist() == [13, 13, 13]


def test_a_graph_that_is_not_kept(gpu):
    g = torch.cuda.CUDAGraph()
    for call in (g.raw_cuda_graph, g.raw_cuda_graph_exec, g.instantiate):
        with pytest.raises(RuntimeError, match="no capture that has ended"):
            call()
    with torch.cuda.device(gpu), torch.cuda.graph(g):
        x = torch.ones(3, device=gpu)
        with pytest.raises(RuntimeError, match="no capture that has ended"):
            g.instantiate()
    assert g.raw_cuda_graph_exec()
    for call in (g.raw_cuda_graph, g.instantiate):
        with pytest.raises(RuntimeError, match="keep_graph=True"):
            call()
    g.replay()
    assert x.tolist() == [1, 1, 1]


@only_simulated
def test_instantiating_fails(gpu):
    x = torch.zeros(3, device=gpu)
    g = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.device(gpu), torch.cuda.graph(g):
        x.add_(1)
    torch.cuda.sim_fail("graph:1")
    with pytest.raises(torch.AcceleratorError, match="instantiating a graph"):
        g.replay()
    g.replay()
    torch.cuda.sim_fail("graph:1")
    with pytest.raises(torch.AcceleratorError, match="instantiating a graph"):
        g.instantiate()
    g.replay()  # as it was
    assert x.tolist() == [2, 2, 2]


def test_a_graph_as_dot(gpu, tmp_path):
    x = torch.ones(3, device=gpu)
    path = tmp_path / "gräph.dot"
    for keep in (True, False):
        g = torch.cuda.CUDAGraph(keep_graph=keep)
        with pytest.raises(RuntimeError) if keep else pytest.warns(UserWarning):
            g.debug_dump(str(path))
        assert not path.exists()
        if not keep:
            g.enable_debug_mode()
        with torch.cuda.device(gpu), torch.cuda.graph(g):
            here, there = torch.cuda.current_stream(gpu), torch.cuda.Stream(gpu)
            y = x * 2
            there.wait_stream(here)
            with there:
                z = y.exp()
            y += 1
            here.wait_stream(there)
            y *= z
        g.debug_dump(path)
        text = path.read_text()
        path.unlink()
        assert text.startswith("digraph")
        if SIMULATED:  # a diamond of four kernels
            assert text.count("label=") == 4 and text.count(" -> ") == 4
        g.replay()
        with pytest.raises(torch.AcceleratorError, match="writing a graph to a file"):
            g.debug_dump(str(tmp_path / "none" / "graph.dot"))
        torch.cuda.synchronize(gpu)


# --- training -------------------------------------------------------------------------


class Block(nn.Module):
    """A small transformer."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(11, 8)
        self.block = nn.TransformerEncoderLayer(
            8, 2, 16, dropout=0.25, batch_first=True
        )
        self.head = nn.Linear(8, 11)

    def forward(self, x):
        return self.head(self.block(self.tokens(x)))


def mlp():
    return nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Dropout(0.5), nn.Linear(12, 3))


CASES = {
    "mlp": (
        mlp,
        lambda g: torch.randn(5, 6, generator=g),
        lambda g: torch.randint(0, 3, (5,), generator=g),
        lambda y, t: nn.functional.cross_entropy(y, t),
    ),
    "transformer": (
        Block,
        lambda g: torch.randint(0, 11, (2, 4), generator=g),
        lambda g: torch.randint(0, 11, (2, 4), generator=g),
        lambda y, t: nn.functional.cross_entropy(y.flatten(0, 1), t.flatten()),
    ),
}
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, capturable=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True, capturable=True),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.01, capturable=True),
    "radam": lambda p: torch.optim.RAdam(p, lr=0.01, capturable=True),
}


def train(case, optimizer, device, graphed, warmups=2, replays=5):
    """Losses and parameters after some steps, the last ones as replays of a graph."""
    make, make_input, make_target, criterion = CASES[case]
    torch.manual_seed(1)
    model = make().to(device)
    steps = OPTIMIZERS[optimizer](model.parameters())
    generator = torch.Generator().manual_seed(2)
    data = [
        (make_input(generator).to(device), make_target(generator).to(device))
        for _ in range(warmups + replays)
    ]
    x, target = (torch.empty_like(t) for t in data[0])
    losses = []

    def step():
        steps.zero_grad(set_to_none=True)
        loss = criterion(model(x), target)
        loss.backward()
        steps.step()
        return loss

    def write(n):
        x.copy_(data[n][0])
        target.copy_(data[n][1])

    for n in range(warmups):
        write(n)
        warm_up(step, device)
    if graphed:
        steps.zero_grad(set_to_none=True)
        g, static = captured(step, device)
    for n in range(warmups, warmups + replays):
        write(n)
        if graphed:
            g.replay()
            losses.append(static.item())
        else:
            losses.append(step().item())
    counts = [kept["step"].item() for kept in steps.state.values() if "step" in kept]
    return losses, [p.detach().cpu() for p in model.parameters()], counts


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("case", CASES)
def test_training_steps_give_the_numbers_of_the_eager_run(case, optimizer, gpu):
    eager, graphed = (train(case, optimizer, gpu, g) for g in (False, True))
    assert graphed[0] == eager[0]
    assert all(torch.equal(a, b) for a, b in zip(graphed[1], eager[1], strict=True))
    assert graphed[2] == eager[2]


@pytest.mark.parametrize("case", CASES)
def test_training_under_each_schedule(case, gpu, schedule):
    eager, graphed = (train(case, "adam", gpu, g, replays=3) for g in (False, True))
    assert graphed[0] == eager[0]
    assert all(torch.equal(a, b) for a, b in zip(graphed[1], eager[1], strict=True))


def test_a_replay_after_load_state_dict_of_the_model(gpu):
    model = nn.Linear(3, 2, device=gpu)
    x = torch.ones(1, 3, device=gpu)
    g, y = captured(lambda: model(x), gpu)
    model.load_state_dict({"weight": torch.ones(2, 3), "bias": torch.zeros(2)})
    g.replay()
    assert y.tolist() == [[3, 3]]


def test_an_optimizer_that_does_not_say_capturable(gpu):
    w = nn.Parameter(torch.ones(2, device=gpu))
    adam = torch.optim.Adam([w])
    w.grad = torch.ones(2, device=gpu)
    adam.step()
    g = torch.cuda.CUDAGraph()
    with (
        torch.cuda.device(gpu),
        pytest.raises(RuntimeError, match="capturable=False"),
        torch.cuda.graph(g),
    ):
        adam.step()
    assert adam.state[w]["step"].item() == 1


def test_an_optimizer_without_state(gpu):
    w = nn.Parameter(torch.ones(2, device=gpu))
    w.grad = torch.ones(2, device=gpu)
    for optimizer in (
        torch.optim.Adam([w], capturable=True),
        torch.optim.SGD([w], momentum=0.5),
    ):
        with (
            torch.cuda.device(gpu),
            pytest.raises(RuntimeError, match="once before the capture"),
            torch.cuda.graph(torch.cuda.CUDAGraph()),
        ):
            optimizer.step()


# --- a rate that is a Tensor ----------------------------------------------------------


# Of float64, so that a Tensor's rate is the number's.
RATED = {
    "sgd": lambda p, lr: torch.optim.SGD(p, lr=lr, weight_decay=0.01),
    "momentum": lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9, nesterov=True),
    "adam": lambda p, lr: torch.optim.Adam(p, lr=lr, capturable=True),
    "adamw": lambda p, lr: torch.optim.AdamW(
        p, lr=lr, weight_decay=0.1, amsgrad=True, capturable=True
    ),
    "nadam": lambda p, lr: torch.optim.NAdam(
        p, lr=lr, weight_decay=0.1, decoupled_weight_decay=True, capturable=True
    ),
    "radam": lambda p, lr: torch.optim.RAdam(p, lr=lr, capturable=True),
    "adamax": lambda p, lr: torch.optim.Adamax(p, lr=lr, capturable=True),
    "adagrad": lambda p, lr: torch.optim.Adagrad(p, lr=lr),
    "adadelta": lambda p, lr: torch.optim.Adadelta(p, lr=lr, capturable=True),
    "rmsprop": lambda p, lr: torch.optim.RMSprop(
        p, lr=lr, momentum=0.5, centered=True, capturable=True
    ),
}
RATES = (0.1, 0.05, 0.2, 0.0, 0.01)


def stepped(optimizer, rates, gpu, lr=None, graphed=False):
    """A parameter after a step at each rate, which a Tensor lr gets by fill_()."""
    dtype = torch.float64
    w = nn.Parameter(torch.arange(1.0, 4.0, dtype=dtype, device=gpu))
    w.grad = torch.tensor([0.5, -1.0, 2.0], dtype=dtype, device=gpu)
    steps = RATED[optimizer]([w], rates[0] if lr is None else lr)
    warm_up(steps.step, gpu)
    if graphed:
        g, _ = captured(steps.step, gpu)
    seen = []
    for rate in rates[1:]:
        w.grad.mul_(1.5)
        if lr is None:
            steps.param_groups[0]["lr"] = rate
        else:
            lr.fill_(rate)
        g.replay() if graphed else steps.step()
        seen.append(w.detach().cpu())
    return torch.stack(seen)


@pytest.mark.parametrize("optimizer", RATED)
@pytest.mark.parametrize("where", ["gpu", "cpu"])
def test_a_replay_follows_a_rate_that_is_a_tensor(optimizer, where, gpu):
    device = gpu if where == "gpu" else "cpu"
    expected = stepped(optimizer, RATES, gpu)
    for graphed in (False, True):
        lr = torch.tensor(RATES[0], dtype=torch.float64, device=device)
        made = stepped(optimizer, RATES, gpu, lr, graphed)
        assert torch.allclose(made, expected, rtol=1e-14, atol=0)


@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize("where", ["gpu", "cpu"])
def test_a_rate_of_float32_under_each_schedule(where, shape, gpu, schedule):
    device = gpu if where == "gpu" else "cpu"
    rates = (0.5, 0.25, 0.75, 0.125)  # exact
    expected = stepped("adamw", rates, gpu)
    lr = torch.full(shape, rates[0], device=device)
    made = stepped("adamw", rates, gpu, lr, graphed=True)
    assert torch.allclose(made, expected, rtol=1e-7, atol=0)


def test_a_rate_on_the_gpu_is_not_waited_for(gpu):
    w = nn.Parameter(torch.ones(3, device=gpu))
    w.grad = torch.ones(3, device=gpu)
    adam = torch.optim.AdamW([w], lr=torch.tensor(0.25, device=gpu))
    adam.step()
    with torch.cuda.transfers() as seen:
        adam.step()
    assert seen.waits == 0


def test_a_schedule_sets_the_rate_that_a_graph_reads(gpu, schedule):
    w = nn.Parameter(torch.zeros(2, device=gpu))
    w.grad = torch.ones(2, device=gpu)
    lr = torch.tensor(0.5, device=gpu)
    sgd = torch.optim.SGD([w], lr=lr)
    halves = torch.optim.lr_scheduler.StepLR(sgd, 1, gamma=0.5)
    sgd.step()
    g, _ = captured(sgd.step, gpu)
    for _ in range(2):
        halves.step()
        g.replay()
    assert w.tolist() == [-0.875, -0.875]
    assert sgd.param_groups[0]["lr"] is lr


def test_a_rate_that_is_a_number_stays_in_the_graph(gpu):
    w = nn.Parameter(torch.zeros(2, device=gpu))
    w.grad = torch.ones(2, device=gpu)
    sgd = torch.optim.SGD([w], lr=0.5)
    g, _ = captured(sgd.step, gpu)
    sgd.param_groups[0]["lr"] = 100.0
    g.replay()
    assert w.tolist() == [-0.5, -0.5]


def test_a_rate_on_another_device(two_gpus):
    here, there = two_gpus
    w = nn.Parameter(torch.zeros(2, device=here))
    w.grad = torch.ones(2, device=here)
    sgd = torch.optim.SGD([w], lr=torch.tensor(0.5, device=there))
    sgd.step()  # which waits for it
    assert w.tolist() == [-0.5, -0.5]
    with pytest.raises(torch.AcceleratorError, match="a copy to the host"):
        captured(sgd.step, here)


def test_wrong_rates_of_the_kernel(gpu):
    w, grad = torch.ones(2, device=gpu), torch.ones(2, device=gpu)
    for rate in (
        torch.ones(2, device=gpu),
        torch.tensor(1, device=gpu),
        torch.tensor(0.5),
    ):
        with pytest.raises(RuntimeError, match="one float32 or float64 on a GPU"):
            torch._C._update(
                "sgd", [w, grad], (), (1, 0, 1), None, (), False, None, rate
            )
    with pytest.raises(RuntimeError, match="has no rate"):
        torch._C._update("scale", [w, grad], (), (1,), None, (), False, None, grad[:1])
    assert w.tolist() == [1, 1]


# --- random numbers -------------------------------------------------------------------


def test_random_numbers_go_on_from_replay_to_replay(gpu, schedule):
    def work():
        return torch.rand(5, device=gpu), torch.randn(3, 2, device=gpu)

    torch.manual_seed(7)
    g, (u, n) = captured(work, gpu)
    replayed = []
    for i in range(4):
        g.replay()
        replayed.append((u.cpu(), n.cpu()))
        if i == 1:
            replayed.append(tuple(t.cpu() for t in work()))  # in between
    after = torch.rand(3, device=gpu)
    torch.manual_seed(7)
    for one, two in replayed:
        uniform, normal = work()
        assert torch.equal(one, uniform.cpu())
        assert torch.equal(two, normal.cpu())
    assert torch.equal(after, torch.rand(3, device=gpu))


def test_dropout_has_another_mask_in_each_replay(gpu):
    x = torch.ones(200, device=gpu)
    torch.manual_seed(8)
    g, y = captured(lambda: nn.functional.dropout(x, 0.5), gpu)
    masks = []
    for _ in range(4):
        g.replay()
        masks.append(y.cpu())
    assert len({tuple(m.tolist()) for m in masks}) == 4
    torch.manual_seed(8)
    for mask in masks:
        assert torch.equal(nn.functional.dropout(x, 0.5).cpu(), mask)


def test_a_seed_before_a_replay_counts(gpu):
    g, y = captured(lambda: torch.rand(4, device=gpu), gpu)
    torch.manual_seed(1)
    g.replay()
    first = y.tolist()
    torch.manual_seed(1)
    g.replay()
    assert y.tolist() == first
    torch.manual_seed(1)
    assert torch.rand(4, device=gpu).tolist() == first


def test_a_generator_of_the_program(gpu):
    numbers = torch.Generator(device=gpu).manual_seed(5)
    g = torch.cuda.CUDAGraph()
    g.register_generator_state(numbers)
    with torch.cuda.device(gpu), torch.cuda.graph(g):
        y = torch.rand(4, device=gpu, generator=numbers)
    g.replay()
    g.replay()
    numbers.manual_seed(5)
    torch.rand(4, device=gpu, generator=numbers)
    assert torch.equal(y, torch.rand(4, device=gpu, generator=numbers))


def test_a_generator_that_was_not_registered(gpu):
    numbers = torch.Generator(device=gpu)
    with (
        torch.cuda.device(gpu),
        pytest.raises(RuntimeError, match="register_generator_state"),
        torch.cuda.graph(torch.cuda.CUDAGraph()),
    ):
        torch.rand(4, device=gpu, generator=numbers)
    with pytest.raises(TypeError, match="no Generator"):
        torch.cuda.CUDAGraph().register_generator_state(3)


# --- what cannot be captured ----------------------------------------------------------


def event_query(x):
    event = torch.cuda.Event()
    event.record()
    return event.query()


def event_synchronize(x):
    event = torch.cuda.Event()
    event.record()
    event.synchronize()


REFUSED = {
    "item": (lambda x: x.sum().item(), "a copy to the host"),
    "cpu": (lambda x: x.cpu(), "a copy to the host"),
    "print": (lambda x: repr(x), "a copy to the host"),
    "nonzero": (lambda x: x.nonzero(), "a copy to the host"),
    "synchronize": (
        lambda x: torch.cuda.synchronize(x.device),
        "a wait for the device",
    ),
    "stream synchronize": (
        lambda x: torch.cuda.current_stream().synchronize(),
        "a wait for a stream",
    ),
    "stream query": (
        lambda x: torch.cuda.current_stream().query(),
        "a query of a stream",
    ),
    "event query": (event_query, "a query of an event"),
    "event synchronize": (event_synchronize, "a wait for an event"),
    "tensor": (lambda x: torch.tensor([1.0, 2.0]).to(x.device), "that is not pinned"),
    "empty_cache": (lambda x: torch.cuda.empty_cache(), "returning memory"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_captured(name, gpu):
    work, what = REFUSED[name]
    x = torch.ones(3, device=gpu)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.device(gpu), torch.cuda.stream(torch.cuda.Stream()):
        g.capture_begin()
        with pytest.raises(torch.AcceleratorError, match=what) as caught:
            work(x)
        assert re.search(
            r"at test_cuda_graphs\.py:\d+ cannot be captured", str(caught.value)
        )
        with pytest.raises(torch.AcceleratorError, match=f"was lost by.*{what}"):
            g.capture_end()
        with pytest.raises(RuntimeError, match="no capture that has ended"):
            g.replay()
        assert not torch.cuda.is_current_stream_capturing()
    # The library works on, and the graph can be captured again.
    assert (x + 1).tolist() == [2, 2, 2]
    with torch.cuda.device(gpu), torch.cuda.graph(g):
        y = x * 4
    g.replay()
    assert y.tolist() == [4, 4, 4]


def test_the_error_names_the_line(gpu):
    x = torch.ones(3, device=gpu)
    line = sys._getframe().f_lineno + 6
    with (
        torch.cuda.device(gpu),
        pytest.raises(torch.AcceleratorError, match=rf"py:{line} cannot be captured"),
        torch.cuda.graph(torch.cuda.CUDAGraph()),
    ):
        x.max().item()
    assert x.tolist() == [1, 1, 1]


def test_an_exception_in_the_block_drops_the_capture(gpu):
    g = torch.cuda.CUDAGraph()
    with (
        torch.cuda.device(gpu),
        pytest.raises(ZeroDivisionError),
        torch.cuda.graph(g),
    ):
        torch.ones(3, device=gpu) * (1 / 0)
    with pytest.raises(RuntimeError, match="no capture that has ended"):
        g.replay()
    with pytest.raises(RuntimeError, match="has no capture"):
        g.pool()


def test_wrong_arguments_and_states(gpu):
    x = torch.ones(3, device=gpu)
    earlier, _ = captured(lambda: x + 1, gpu)
    with torch.cuda.device(gpu):
        g = torch.cuda.CUDAGraph()
        with pytest.raises(RuntimeError, match="the default stream cannot be captured"):
            g.capture_begin()
        with pytest.raises(RuntimeError, match="is not being captured"):
            g.capture_end()
        with pytest.raises(RuntimeError, match="no capture that has ended"):
            g.replay()
        with pytest.raises(ValueError, match="'global', 'thread_local' or 'relaxed'"):
            g.capture_begin(capture_error_mode="none")
        with pytest.raises(TypeError, match="pool is 3"):
            g.capture_begin(pool=3)
        with pytest.raises(TypeError, match="is no CUDAGraph"):
            torch.cuda.graph(3)
        with pytest.raises(TypeError, match="Stream"):
            torch.cuda.graph(g, stream=3)
        stream, other = torch.cuda.Stream(), torch.cuda.Stream()
        with stream:
            g.capture_begin()
            with pytest.raises(RuntimeError, match="holds a capture already"):
                g.capture_begin()
            with other, pytest.raises(RuntimeError, match="captures another graph"):
                torch.cuda.CUDAGraph().capture_begin()
            with other, pytest.raises(RuntimeError, match="is not the one on which"):
                g.capture_end()
            g.capture_end()
            with pytest.raises(RuntimeError, match="holds a capture already"):
                g.capture_begin()
        g.reset()
        with stream:
            g.capture_begin()
            assert torch.cuda.is_current_stream_capturing()
            with pytest.raises(RuntimeError, match="cannot be replayed while"):
                earlier.replay()
            g.capture_end()


def test_work_that_is_not_joined(gpu):
    x = torch.ones(3, device=gpu)
    with torch.cuda.device(gpu):
        g, there = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        with (
            pytest.raises(torch.AcceleratorError, match="wait_stream"),
            torch.cuda.graph(g),
        ):
            there.wait_stream(torch.cuda.current_stream())
            with there:
                y = x + 1
        assert not torch.cuda.is_current_stream_capturing()
        with there:
            assert (x + 1).tolist() == [2, 2, 2]
    del y


def test_a_wait_for_work_outside_of_the_capture(gpu):
    x = torch.ones(3, device=gpu)
    with torch.cuda.device(gpu):
        event = torch.cuda.Event()
        event.record()
        with (
            pytest.raises(torch.AcceleratorError, match="before the capture begins"),
            torch.cuda.graph(torch.cuda.CUDAGraph()),
        ):
            torch.cuda.current_stream().wait_event(event)
    assert (x + 1).tolist() == [2, 2, 2]


def test_a_graph_takes_the_work_of_one_device(two_gpus):
    here, there = two_gpus
    x = torch.ones(3, device=here)
    with (
        torch.cuda.device(here),
        pytest.raises(torch.AcceleratorError, match="a copy between devices at"),
        torch.cuda.graph(torch.cuda.CUDAGraph()),
    ):
        x.to(there)
    with (
        torch.cuda.device(here),
        pytest.raises(RuntimeError, match="takes the work of one device"),
        torch.cuda.graph(torch.cuda.CUDAGraph()),
    ):
        other = torch.cuda.Stream(there)
        other.wait_stream(torch.cuda.current_stream())
        with other:
            torch.ones(3, device=there)
    assert x.to(there).tolist() == [1, 1, 1]


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_modes_and_other_threads(mode, gpu):
    """Another thread's wait spoils a 'global' capture alone."""
    x, seen = torch.ones(3, device=gpu), []

    def other():
        try:
            seen.append((x + 1).tolist())
        except RuntimeError as error:
            seen.append(str(error))

    g = torch.cuda.CUDAGraph()
    with torch.cuda.device(gpu), torch.cuda.stream(torch.cuda.Stream()):
        g.capture_begin(capture_error_mode=mode)
        y = x * 3
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        if mode == "global":
            assert "cannot be captured" in seen[0]
            with pytest.raises(torch.AcceleratorError, match="was lost"):
                g.capture_end()
            return
        g.capture_end()
    assert seen == [[2, 2, 2]]
    g.replay()
    assert y.tolist() == [3, 3, 3]


# --- memory ---------------------------------------------------------------------------


def test_memory_stays_level_over_replays_and_returns_after_reset(gpu):
    with torch.cuda.device(gpu):
        x = torch.ones(1000, device=gpu)
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
        g, y = captured(lambda: (x * 2 + torch.rand(1000, device=gpu)).sum(), gpu)
        level = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
        assert level[0] > before[0] and level[1] > before[1]
        for _ in range(100):
            g.replay()
        torch.cuda.synchronize()
        assert (torch.cuda.memory_allocated(), torch.cuda.memory_reserved()) == level
        del y
        g.reset()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        assert (torch.cuda.memory_allocated(), torch.cuda.memory_reserved()) == before


def test_a_graph_that_is_gone_gives_its_memory_back(gpu):
    with torch.cuda.device(gpu):
        x = torch.ones(1000, device=gpu)
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        before = torch.cuda.memory_reserved()
        g, y = captured(lambda: x * 2, gpu)
        g.replay()
        del g
        gc.collect()
        assert y.tolist() == [2] * 1000  # the tensor keeps its memory
        del y
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        assert torch.cuda.memory_reserved() == before


def test_memory_of_a_graph_is_not_given_to_others(gpu):
    x = torch.ones(1000, device=gpu)
    g, y = captured(lambda: (x * 2) + 1, gpu)
    others = [torch.full((1000,), float(i), device=gpu) for i in range(20)]
    g.replay()
    assert y.tolist() == [3] * 1000
    for i, other in enumerate(others):
        assert other.tolist() == [i] * 1000


def test_graphs_that_share_a_pool(gpu, schedule):
    with torch.cuda.device(gpu):
        x = torch.ones(300_000, device=gpu)
        pool = torch.cuda.graph_pool_handle()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        one, y = captured(lambda: (x * 2) + 1, gpu, pool=pool)
        level = torch.cuda.memory_reserved()
        two, z = captured(lambda: (y * 3) - 1, gpu, pool=one.pool())
        for n in range(3):
            x.fill_(n)
            one.replay()
            two.replay()
            assert z[:2].tolist() == [3 * (2 * n + 1) - 1] * 2
        # The second has taken the first one's temporary.
        alone, w = captured(lambda: (y * 3) - 1, gpu)
        shared = torch.cuda.memory_reserved()
        assert shared - level > 0
        one.reset()
        assert y[:2].tolist() == [5, 5]
        two.replay()
        assert z[:2].tolist() == [14, 14]
        del alone, w


@only_simulated
def test_a_replay_of_memory_that_was_given_back(gpu):
    inputs = [torch.ones(1000, device=gpu)]
    g, y = captured(lambda: inputs[0] * 2, gpu)
    g.replay()
    assert y[0].item() == 2
    inputs.clear()
    g.replay()
    with pytest.raises(torch.AcceleratorError, match="released after the capture"):
        torch.cuda.synchronize(gpu)


# --- graphed callables ----------------------------------------------------------------


def test_a_graphed_module_trains_as_the_module_does(gpu, schedule):
    def run(graphed):
        torch.manual_seed(3)
        with torch.cuda.device(gpu):
            model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to(gpu)
            if graphed:
                sample = torch.zeros(5, 4, device=gpu, requires_grad=True)
                made = torch.cuda.make_graphed_callables(model, (sample,))
                assert made is model
            steps = torch.optim.SGD(model.parameters(), lr=0.1)
            torch.manual_seed(4)
            losses = []
            for n in range(4):
                x = torch.randn(5, 4, device=gpu).requires_grad_()
                steps.zero_grad(set_to_none=n % 2 == 0)
                loss = model(x).square().sum()
                loss.backward()
                steps.step()
                losses += [loss.item(), *x.grad.flatten().tolist()]
            model.eval()
            losses.append(model(torch.ones(2, 4, device=gpu)).sum().item())
            return losses

    assert run(True) == run(False)


def test_gradients_add_up_over_two_calls_of_a_graphed_module(gpu):
    with torch.cuda.device(gpu):
        layer = nn.Linear(3, 1, bias=False, device=gpu)
        torch.cuda.make_graphed_callables(layer, (torch.zeros(2, 3, device=gpu),))
        layer(torch.ones(2, 3, device=gpu)).sum().backward()
        layer(torch.ones(2, 3, device=gpu) * 2).sum().backward()
        assert layer.weight.grad.tolist() == [[6, 6, 6]]


def test_graphed_functions_in_a_tuple(gpu, schedule):
    with torch.cuda.device(gpu):
        w = torch.full((3,), 2.0, device=gpu, requires_grad=True)
        one, two = torch.cuda.make_graphed_callables(
            (lambda x: x * x, lambda x, y: {"sum": x + y, "product": x * y}),
            (
                (torch.zeros(3, device=gpu, requires_grad=True),),
                tuple(torch.zeros(3, device=gpu, requires_grad=True) for _ in "ab"),
            ),
        )
        for n in (1.0, 4.0):
            x = torch.full((3,), n, device=gpu, requires_grad=True)
            made = two(one(x), w)
            (made["sum"] + 2 * made["product"]).sum().backward()
            assert made["sum"].tolist() == [n * n + 2] * 3
            assert x.grad.tolist() == [2 * n + 8 * n] * 3
            assert w.grad.tolist() == [1 + 2 * n * n] * 3
            w.grad = None


def test_graphed_callables_refuse(gpu):
    layer = nn.Linear(2, 2, device=gpu)
    sample = torch.zeros(1, 2, device=gpu)
    make = torch.cuda.make_graphed_callables
    with pytest.raises(TypeError, match="have to be Tensors"):
        make(layer, (3,))
    with pytest.raises(TypeError, match="sample_args"):
        make((layer, layer), (sample,))
    layer.register_buffer("b", torch.ones(2, device=gpu, requires_grad=True))
    with pytest.raises(RuntimeError, match="buffer"):
        make(layer, (sample,))
    hooked = nn.Linear(2, 2, device=gpu)
    hooked.register_forward_hook(lambda *args: None)
    with pytest.raises(RuntimeError, match="has hooks"):
        make(hooked, (sample,))
    graphed = make(nn.Linear(2, 2, device=gpu), (sample,))
    with pytest.raises(TypeError, match="got 2 Tensors"):
        graphed(sample, sample)
    with pytest.raises(ValueError, match=r"shape \[3, 2\]; give one of shape \[1, 2\]"):
        graphed(torch.zeros(3, 2, device=gpu))


# --- who observes ---------------------------------------------------------------------


# What a build with AddressSanitizer needs in every process.
SANITIZER = ("LD_PRELOAD", "ASAN_OPTIONS", "UBSAN_OPTIONS")


def program(code, **environment):
    run = subprocess.run(
        [sys.executable, "-P", "-c", code],
        capture_output=True,
        text=True,
        env={
            **{k: os.environ[k] for k in SANITIZER if k in os.environ},
            "PATH": "/usr/bin:/bin",
            **environment,
        },
    )
    return run.stdout, run.stderr


RACE = """
import pydevtensor as torch
torch.cuda.simulate(1, races="error")
x = torch.ones(4, device="cuda")
g = torch.cuda.CUDAGraph()
with torch.cuda.graph(g):
    x += 1
torch.cuda.synchronize()
g.replay()
with torch.cuda.stream(torch.cuda.Stream()):
    WAIT
    x * 2
"""


def test_races_with_a_replay_are_found():
    _, err = program(RACE.replace("WAIT", "pass"))
    assert "race (RAW hazard)" in err and "<string>:7" in err and "<string>:12" in err
    wait = "torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())"
    assert program(RACE.replace("WAIT", wait)) == ("", "")


CLOCK = """
import pydevtensor as torch
torch.cuda.simulate(1, card="T4", host="fixed")
x = torch.ones(1000, 1000, device="cuda")
def work():
    y = x
    for _ in range(50):
        y = y + 1
    return y
work()
g = torch.cuda.CUDAGraph()
with torch.cuda.graph(g):
    work()
for run in (work, g.replay):
    torch.cuda.synchronize()
    begin = torch.cuda.clock()
    run()
    queued = torch.cuda.clock() - begin
    torch.cuda.synchronize()
    print(queued, torch.cuda.clock() - begin)
"""


def test_the_clock_of_a_card_knows_replays():
    out, err = program(CLOCK)
    assert not err
    (eager_host, eager), (graph_host, graph) = (
        map(int, line.split()) for line in out.splitlines()
    )
    assert graph_host < eager_host / 20  # one launch instead of 50
    assert eager / 2 < graph <= eager


COLD = """
import pydevtensor as torch
torch.cuda.simulate(1)
a = torch.eye(3, device="cuda")
g = torch.cuda.CUDAGraph()
with torch.cuda.graph(g):
    b = CALL
g.replay()
print(b.sum().item())
"""


def test_a_product_needs_no_other_before_a_capture():
    """cuBLAS is started before, since it could not be in the capture."""
    out, err = program(COLD.replace("CALL", "a @ a"))
    assert out == "3.0\n" and not err


def test_a_factorization_needs_one_before_a_capture():
    cold = COLD.replace("CALL", "torch.linalg.inv_ex(a)[0]")
    out, err = program(cold)
    assert not out and "cuSOLVER cannot start while a graph is captured" in err
    warm = cold.replace("g =", "torch.linalg.inv(a)\ng =")
    assert program(warm) == ("3.0\n", "")


def test_streams_share_the_libraries(gpu):
    """Each product runs on its own stream, with its own workspace."""
    a = torch.ones(64, 64, device=gpu)
    streams = [torch.cuda.Stream(gpu) for _ in range(4)]
    torch.cuda.synchronize(gpu)
    results = []
    for i, stream in enumerate(streams * 3):
        with torch.cuda.stream(stream):
            results.append(a @ (a * i))
    torch.cuda.synchronize(gpu)
    assert [x[5, 7].item() for x in results] == [64.0 * i for i in range(12)]


def test_a_profile_has_a_row_for_each_replay(gpu):
    x = torch.ones(3, device=gpu)
    g, _ = captured(lambda: x + 1, gpu)
    with torch.profiler.profile() as profile:
        g.replay()
        g.replay()
    rows = {row.key: row.count for row in profile.key_averages()}
    assert rows["graph replay"] == 2
