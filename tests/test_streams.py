"""Streams and events, under each schedule of the simulator."""

import copy
import pickle
import threading

import pytest
from isolated import python

import pydevtensor as torch


@pytest.fixture(params=["eager", "lazy", "random:1", "random:7"])
def schedule(request, gpu):
    if not torch.cuda.is_simulated():
        if request.param != "eager":
            pytest.skip("real GPUs have one schedule")
        yield
        return
    torch.cuda.sim_schedule(request.param)
    yield request.param
    torch.cuda.sim_schedule("eager")


def test_values(gpu):
    s, t = torch.cuda.Stream(gpu), torch.cuda.Stream(device=gpu, priority=-1)
    assert s != t and s == s and hash(s) == hash(s) and s.device == torch.device(gpu)
    assert (s.priority, t.priority) == (0, -1)
    assert repr(s) == f"<torch.cuda.Stream device={gpu} cuda_stream={s.cuda_stream:#x}>"
    assert torch.cuda.default_stream(gpu) == torch.cuda.current_stream(gpu)
    assert torch.cuda.default_stream(gpu).cuda_stream == 0
    assert s != 3


def test_stream_context(two_gpus):
    s = torch.cuda.Stream("cuda:1")
    with torch.cuda.stream(s):
        assert torch.cuda.current_device() == 1
        assert torch.cuda.current_stream() == s
        with torch.cuda.stream(None):
            assert torch.cuda.current_stream() == s
    assert torch.cuda.current_device() == 0
    assert torch.cuda.current_stream(1) == torch.cuda.default_stream(1)
    with pytest.raises(TypeError):
        torch.cuda.stream(3)
    torch.cuda.set_stream(s)
    assert torch.cuda.current_device() == 1 and torch.cuda.current_stream() == s
    torch.cuda.set_stream(torch.cuda.default_stream(1))
    torch.cuda.set_stream(None)


def test_a_stream_is_a_context(two_gpus):
    s = torch.cuda.Stream("cuda:1")
    with s as entered:
        assert entered is s and torch.cuda.current_device() == 1
        with s:  # again
            assert torch.cuda.current_stream() == s
        assert torch.cuda.current_stream() == s
    assert torch.cuda.current_device() == 0
    assert torch.cuda.current_stream(1) == torch.cuda.default_stream(1)
    with pytest.raises(KeyError), s:
        raise KeyError
    assert torch.cuda.current_device() == 0
    with pytest.raises(RuntimeError, match="with stream"):
        s.__exit__(None, None, None)
    s.__enter__()  # never left: nothing leaks
    torch.cuda.set_stream(torch.cuda.default_stream(1))
    torch.cuda.set_device(0)


def test_streams_belong_to_a_thread(gpu):
    s, seen = torch.cuda.Stream(gpu), []
    with torch.cuda.stream(s):
        thread = threading.Thread(
            target=lambda: seen.append(torch.cuda.current_stream(gpu))
        )
        thread.start()
        thread.join()
    assert seen == [torch.cuda.default_stream(gpu)]


def test_one_stream_waits_for_another(gpu, schedule):
    for _ in range(5):
        s, t = torch.cuda.Stream(gpu), torch.cuda.Stream(gpu)
        with torch.cuda.stream(s):
            x = torch.zeros(1000, device=gpu)
            for _ in range(10):
                x += 1
        t.wait_stream(s)
        with torch.cuda.stream(t):
            y = x * 2
            assert y.sum().item() == 20000


def test_events(gpu, schedule):
    event = torch.cuda.Event()
    assert event.query() and event.device is None
    event.synchronize()
    s, t = torch.cuda.Stream(gpu), torch.cuda.Stream(gpu)
    with torch.cuda.stream(s):
        x = torch.ones(100, device=gpu) * 3
        event.record()
    assert event.device == torch.device(gpu)
    event.wait(t)
    with torch.cuda.stream(t):
        y = x + 1
        end = t.record_event()
    end.synchronize()
    assert end.query() and event.query()
    t.synchronize()
    assert t.query()
    assert y.tolist() == [4] * 100


def test_elapsed_time(gpu, schedule):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.cuda.device(gpu):
        start.record()
        torch.ones(100000, device=gpu).exp()
        end.record()
        torch.cuda.synchronize()
        assert 0 <= start.elapsed_time(end) < 60000
        plain = torch.cuda.Event()
        plain.record()
    with pytest.raises(ValueError, match="enable_timing"):
        start.elapsed_time(plain)
    with pytest.raises(ValueError, match="record"):
        start.elapsed_time(torch.cuda.Event(enable_timing=True))
    with pytest.raises(TypeError):
        start.elapsed_time(3)


def test_an_event_belongs_to_one_device(two_gpus):
    event = torch.cuda.Event()
    event.record(torch.cuda.default_stream("cuda:0"))
    with pytest.raises(RuntimeError, match="cuda:0"):
        event.record(torch.cuda.default_stream("cuda:1"))
    with pytest.raises(TypeError):
        event.record(1)
    with pytest.raises(NotImplementedError, match="external"):
        torch.cuda.Event(external=True)


def test_a_copy_between_gpus_is_in_order(two_gpus, schedule):
    a, b = two_gpus
    x = torch.zeros(500, device=a)
    for i in range(20):
        x.fill_(i)
        y = x.to(b)
        x.fill_(-1)
        assert (y + 1).sum().item() == 500 * (i + 1)


def test_memory_freed_on_one_stream_is_not_used_too_early(gpu, schedule):
    s = torch.cuda.Stream(gpu)
    for i in range(20):
        x = torch.full((4096,), float(i), device=gpu)
        s.wait_stream(torch.cuda.current_stream(gpu))
        with torch.cuda.stream(s):
            y = x + 1
        del x
        z = torch.full((4096,), -5.0, device=gpu)
        s.synchronize()
        assert y.tolist() == [i + 1] * 4096
        assert z.sum().item() == -5 * 4096


def test_memory_that_a_stream_was_said_to_use(gpu):
    """record_stream() keeps a block from being handed out before the stream is done."""
    if not torch.cuda.is_simulated():
        pytest.skip("a real stream may be done before we look")
    torch.cuda.sim_schedule("lazy")
    try:
        s = torch.cuda.Stream(gpu)
        for said in (False, True):
            x = torch.ones(1 << 18, device=gpu)
            torch.cuda.synchronize(gpu)
            with s:
                work = torch.ones(8, device=gpu)  # which waits to be run
            if said:
                x.record_stream(s)
            place = x.data_ptr()
            del x
            y = torch.ones(1 << 18, device=gpu)
            assert (y.data_ptr() == place) is not said
            s.synchronize()
            del work, y
            torch.cuda.synchronize(gpu)
        with pytest.raises(TypeError):
            torch.ones(2, device=gpu).record_stream(3)
    finally:
        torch.cuda.sim_schedule("eager")


FORGOTTEN = """
import pydevtensor as torch
side = torch.cuda.Stream()
x = torch.ones(1000, device="cuda")
place = x.data_ptr()
side.wait_stream(torch.cuda.current_stream())
with side:
    y = x * 2
del x
z = torch.zeros(1000, device="cuda")
print(z.data_ptr() == place)
torch.cuda.synchronize()
print(sorted(set(y.tolist())))
pinned = torch.ones(1000).pin_memory()
y.copy_(pinned, non_blocking=True)
del pinned
other = torch.zeros(1000).pin_memory()
print(sorted(set(y.tolist())))
"""


@pytest.mark.parametrize(
    ("who", "said"),
    [("", ["False", "[2.0]"]), ("automatic", ["False", "[2.0]"])]
    + [("manual", ["True", "[0.0]"])],
)
def test_who_records_the_uses_of_memory(who, said):
    out = python(
        FORGOTTEN,
        PYDEVTENSOR_SIM_GPUS="1",
        PYDEVTENSOR_SIM_SCHEDULE="lazy",
        PYDEVTENSOR_SIM_RECORD_STREAM=who,
    )
    assert out.splitlines() == [*said, "[1.0]"]


def test_who_records_uses_is_checked():
    with pytest.raises(ValueError, match="record_stream is 'no'; give 'automatic' or"):
        torch.cuda.simulate(1, record_stream="no")


@pytest.mark.parametrize("blocking", [False, True])
def test_waiting_for_a_blocking_event_leaves_the_core(blocking, gpu):
    event = torch.cuda.Event(blocking=blocking)
    event.record(torch.cuda.Stream(gpu))
    if not torch.cuda.is_simulated():
        return event.synchronize()
    before = torch.cuda.sim_counters(gpu)["blocking_waits"]
    event.synchronize()
    assert torch.cuda.sim_counters(gpu)["blocking_waits"] - before == blocking


@pytest.mark.parametrize("attempt", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("made", ["Stream", "Event"])
def test_streams_and_events_are_not_copied(two_gpus, attempt, made):
    with pytest.raises(TypeError, match=f"the {made} cannot be copied or pickled"):
        attempt(getattr(torch.cuda, made)())


def test_priorities(gpu):
    lowest, highest = torch.cuda.Stream.priority_range()
    assert (lowest, highest) == (0, -1)
    x = torch.ones(3, device=gpu)
    for priority in (lowest, highest):
        stream = torch.cuda.Stream(gpu, priority)
        assert stream.priority == priority
        stream.wait_stream(torch.cuda.current_stream(gpu))
        with stream:
            assert (x + 1).tolist() == [2, 2, 2]


def test_a_stream_of_another_library(gpu):
    s = torch.cuda.Stream(gpu)
    same = torch.cuda.ExternalStream(s.cuda_stream, gpu)
    assert same == s and same.device == s.device and isinstance(same, torch.cuda.Stream)
    with same:
        assert torch.cuda.current_stream() == s
        assert torch.ones(2, device=gpu).tolist() == [1, 1]
    assert torch.cuda.ExternalStream(0, gpu) == torch.cuda.default_stream(gpu)
    with pytest.raises(TypeError, match="stream_ptr is None"):
        torch.cuda.ExternalStream(None)
    with pytest.raises(ValueError, match="not negative"):
        torch.cuda.ExternalStream(-1)


def test_names_for_profilers(monkeypatch):
    """Without NVIDIA's library they do nothing; with it they reach it."""
    nvtx, told = torch.cuda.nvtx, []
    monkeypatch.setattr(nvtx, "_library", lambda: None)
    assert nvtx.range_push("a") == nvtx.range_pop() == -2
    nvtx.mark("b")
    nvtx.range_end(nvtx.range_start("c"))

    class Library:
        def __getattr__(self, name):
            return lambda *args: told.append((name, *args)) or len(told) - 1

    monkeypatch.setattr(nvtx, "_library", Library)
    assert nvtx.range_push("a") == 0
    assert nvtx.range_pop() == 1
    nvtx.mark("b")
    nvtx.range_end(nvtx.range_start("c"))
    with pytest.raises(ZeroDivisionError), nvtx.range("step {}", 3):
        1 / 0  # noqa: B018
    assert told == [
        ("nvtxRangePushA", b"a"),
        ("nvtxRangePop",),
        ("nvtxMarkA", b"b"),
        ("nvtxRangeStartA", b"c"),
        ("nvtxRangeEnd", 3),
        ("nvtxRangePushA", b"step 3"),
        ("nvtxRangePop",),
    ]
    for function in (nvtx.range_push, nvtx.range_start, nvtx.mark):
        with pytest.raises(TypeError, match="msg is 3"):
            function(3)
    with pytest.raises(TypeError, match="range_id is None"):
        nvtx.range_end(None)
