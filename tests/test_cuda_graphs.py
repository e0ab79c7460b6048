"""CUDA graphs: captured work, replayed, gives what the calls themselves give."""

import gc
import re
import sys
import threading

import pytest
from conftest import SIMULATED
from graph_capture import captured

import pydevtensor as torch
from pydevtensor import nn

only_simulated = pytest.mark.skipif(not SIMULATED, reason="needs the simulator")


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
            here = torch.cuda.current_stream()
            if there == here:  # streams come again, as there are 32
                there = torch.cuda.Stream()
            there.wait_stream(here)
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
