"""Which lines hold the memory of GPUs: summary, snapshot, out-of-memory errors."""

import inspect
import pickle
import threading

import pytest
from isolated import python

import pydevtensor as torch
from pydevtensor import nn

memory = torch.cuda.memory


@pytest.fixture
def history():
    def start(*args, **kwargs):
        memory._record_memory_history(*args, **kwargs)

    yield start
    memory._record_memory_history(None)


def here(offset=0):
    """This file's name and the number of the caller's line, less offset."""
    return f"test_memory_history.py:{inspect.currentframe().f_back.f_lineno - offset}"


def blocks(gpu):
    return [
        block
        for segment in torch.cuda.memory_snapshot()
        for block in segment["blocks"]
        if segment["device"] == torch.device(gpu).index
    ]


def test_the_summary_names_the_lines_that_hold_memory(gpu, history):
    before = torch.zeros(100_000, device=gpu)
    history("state")
    many = [torch.zeros(1000, 100, device=gpu) for _ in range(3)]
    where = here(1)
    gone = torch.zeros(500_000, device=gpu)
    del gone
    text = torch.cuda.memory_summary(gpu)
    assert "held by the tensors that these lines made" in text
    (row,) = [line for line in text.splitlines() if "test_memory_history.py" in line]
    assert "1.1 MiB" in row and "3 tensors" in row and where in row
    history(None)
    assert "held by" in torch.cuda.memory_summary(gpu)  # of these tensors it is known
    del many
    assert "held by" not in torch.cuda.memory_summary(gpu)
    del before


def test_results_of_operations_belong_to_the_line_of_the_call(gpu, history):
    history("state")
    x = torch.ones(64, 64, device=gpu, requires_grad=True)
    y = (x @ x).relu()
    where = here(1)
    loss = y.sum()
    loss.backward()
    backward = here(1)
    text = torch.cuda.memory_summary(gpu)
    assert where in text and backward in text
    del x, y, loss


def test_results_belong_to_the_module_that_ran(gpu, history):
    net = nn.Sequential(nn.Linear(30, 400), nn.Linear(400, 5)).to(gpu)
    history("state")
    y = net(torch.ones(7, 30, device=gpu))
    text = torch.cuda.memory_summary(gpu)
    assert " in Sequential.0" in text and " in Sequential.1" in text
    history(None)
    z = net(torch.ones(7, 30, device=gpu))
    assert torch.cuda.memory_summary(gpu).count(" in Sequential") == text.count(" in Sequential")  # fmt: skip
    del y, z


def test_modules_that_are_imported_later_are_followed():
    code = """
import sys
import pydevtensor as torch
torch.cuda.memory._record_memory_history("state")
assert "pydevtensor.nn" not in sys.modules
y = torch.nn.Linear(30, 400, device="cuda")(torch.ones(7, 30, device="cuda"))
print(" in Linear" in torch.cuda.memory_summary())"""
    assert python(code, PYDEVTENSOR_SIM_GPUS="1") == "True\n"


def test_a_history_may_end_before_a_profile_does(gpu, history):
    net = nn.Linear(30, 400).to(gpu)
    history("state")
    with torch.profiler.profile(with_modules=True):
        history(None)
        history("state")
        y = net(torch.ones(7, 30, device=gpu))
    assert " in Linear" in torch.cuda.memory_summary(gpu)
    history(None)
    assert not nn.modules._hooks._of_all_modules
    del y


def test_many_lines_are_cut(gpu, history):
    history("state")
    kept = []
    for i in range(15):
        exec(compile(f"{i * chr(10)}kept.append(torch.ones({i + 1}, device='{gpu}'))", "made.py", "exec"))  # fmt: skip
    text = torch.cuda.memory_summary(gpu)
    assert text.count("made.py:") == 10
    assert "by 5 other lines" in text
    kept.clear()


def test_the_snapshot_accounts_for_every_byte(gpu, history):
    history()
    stats = lambda name: torch.cuda.memory_stats(gpu)[f"{name}_bytes.all.current"]
    x = torch.zeros(300_000, device=gpu)
    line = here(1)
    y = torch.zeros(3, device=gpu)
    z = torch.zeros(700_000, device=gpu)
    del y
    index = torch.device(gpu).index
    segments = [s for s in torch.cuda.memory_snapshot() if s["device"] == index]
    assert sum(s["total_size"] for s in segments) == stats("reserved")
    assert sum(s["allocated_size"] for s in segments) == stats("allocated")
    assert sum(s["requested_size"] for s in segments) == stats("requested")
    for s in segments:
        at = s["address"]
        for block in s["blocks"]:
            assert block["address"] == at
            at += block["size"]
        assert at == s["address"] + s["total_size"]
    held = {b["address"]: b for b in blocks(gpu) if b["state"] == "active_allocated"}
    block = held[x.data_ptr()]
    assert block["requested_size"] == 1_200_000 <= block["size"]
    (frame,) = block["frames"]
    assert line == f"{frame['filename'].rpartition('/')[2]}:{frame['line']}"
    assert frame["name"] == "test_the_snapshot_accounts_for_every_byte"
    del x, z


@pytest.mark.skipif(not torch.cuda.is_simulated(), reason="real work may be done soon")
def test_a_block_in_use_by_another_stream_is_pending(gpu):
    torch.cuda.sim_schedule("lazy")
    stream = torch.cuda.Stream(gpu)
    x = torch.zeros(5000, device=gpu)
    address = x.data_ptr()
    torch.cuda.synchronize(gpu)
    with torch.cuda.stream(stream):
        x + 1
    x.record_stream(stream)
    del x
    states = {b["address"]: b["state"] for b in blocks(gpu)}
    assert states[address] == "active_pending_free"
    stream.synchronize()
    torch.zeros(1, device=gpu)  # an allocation looks for what has become free
    states = {b["address"]: b["state"] for b in blocks(gpu)}
    assert states.get(address) != "active_pending_free"


def test_traces_keep_the_last_events(gpu, history):
    history(max_entries=4)
    index = torch.device(gpu).index
    for size in (100, 200, 300):
        x = torch.zeros(size, device=gpu)
        del x
    trace = memory._snapshot()["device_traces"][index]
    assert [e["action"] for e in trace] == [
        *("alloc", "free_requested", "free_completed"),
        *("alloc", "free_requested", "free_completed"),
    ]
    assert [e["size"] for e in trace] == [800] * 3 + [1200] * 3
    assert trace[0]["frames"] and trace[0]["addr"] == trace[1]["addr"]
    assert trace[0]["time_us"] <= trace[-1]["time_us"]
    history("state")
    torch.zeros(5, device=gpu)
    assert memory._snapshot()["device_traces"][index] == []


def test_traces_have_segments(gpu, history):
    """What the allocator takes from the driver, and gives back."""
    index = torch.device(gpu).index
    torch.cuda.synchronize(gpu)
    torch.cuda.empty_cache()
    history()
    x = torch.zeros(30_000_000, dtype=torch.uint8, device=gpu)
    line = here(1)
    del x
    torch.cuda.synchronize(gpu)
    torch.cuda.empty_cache()
    trace = memory._snapshot()["device_traces"][index]
    whole = [e for e in trace if e["action"].startswith("segment_")]
    assert [e["action"] for e in whole] == ["segment_alloc", "segment_free"]
    assert whole[0]["size"] == whole[1]["size"] == 30 << 20
    assert whole[0]["addr"] == whole[1]["addr"]
    (frame,) = whole[0]["frames"]
    assert line.endswith(f":{frame['line']}") and not whole[1]["frames"]
    names = [e["action"] for e in trace]
    assert names.index("segment_alloc") < names.index("alloc")


def test_traces_have_pages_of_segments_that_grow(gpu, history):
    index = torch.device(gpu).index
    torch.cuda.synchronize(gpu)
    torch.cuda.empty_cache()
    torch._C._accelerator_setAllocatorSettings("expandable_segments:True")
    try:
        history()
        before = torch.cuda.memory_reserved(gpu)
        x = torch.zeros(30_000_000, dtype=torch.uint8, device=gpu)
        y = torch.zeros(30_000_000, dtype=torch.uint8, device=gpu)
        del x, y
        torch.cuda.synchronize(gpu)
        torch.cuda.empty_cache()
    finally:
        torch._C._accelerator_setAllocatorSettings("expandable_segments:False")
    trace = memory._snapshot()["device_traces"][index]
    pages = [e for e in trace if e["action"].startswith("segment_")]
    mapped = [e for e in pages if e["action"] == "segment_map"]
    assert [e["action"] for e in pages] == ["segment_map"] * 2 + ["segment_unmap"]
    assert mapped[1]["addr"] == mapped[0]["addr"] + mapped[0]["size"]
    assert all(e["size"] % (20 << 20) == 0 and e["frames"] for e in mapped)
    assert pages[2]["size"] == sum(e["size"] for e in mapped)
    assert torch.cuda.memory_reserved(gpu) == before


def test_the_dump_is_a_pickle_of_plain_values(gpu, history, tmp_path):
    history()
    x = torch.zeros(1000, device=gpu)
    memory._dump_snapshot(str(tmp_path / "memory.pickle"))
    with open(tmp_path / "memory.pickle", "rb") as file:
        read = pickle.load(file)
    assert read["segments"] == torch.cuda.memory_snapshot()
    with pytest.raises(FileNotFoundError):
        memory._dump_snapshot(str(tmp_path / "none" / "memory.pickle"))
    del x


def test_out_of_memory_names_lines():
    print_error = """
import pydevtensor as torch
torch.cuda.simulate(1, memory="16M")
torch.cuda.memory._record_memory_history("state")
held = [torch.zeros(1000, 200, device="cuda") for _ in range(4)]
other = torch.zeros(1000, 300, device="cuda")
try:
    torch.zeros(10_000, 1000, device="cuda")
except torch.OutOfMemoryError as error:
    print(error)
"""
    text = python(print_error)
    assert "4 times 0.76 MiB (float32 [1000, 200]) of <string>:5" in text
    assert "1.14 MiB (float32 [1000, 300]) of <string>:6" in text


def test_threads_allocate_while_the_history_is_read(gpu, history):
    history(max_entries=64)
    stop = threading.Event()

    def allocate():
        while not stop.is_set():
            torch.zeros(1000, device=gpu) + 1

    threads = [threading.Thread(target=allocate) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(50):
        memory._snapshot()
        torch.cuda.memory_summary(gpu)
        history(max_entries=64)
    stop.set()
    for thread in threads:
        thread.join()


def test_a_notebook_shows_a_bar(gpu):
    x = torch.zeros(100_000, device=gpu)
    html = torch.cuda.memory_summary(gpu)._repr_html_()
    assert html.startswith("<svg") and "in tensors: " in html and "<pre>Memory" in html
    del x


def test_wrong_arguments():
    for wrong in ("some", 1, True):
        with pytest.raises(ValueError, match="'all', 'state' or None"):
            memory._record_memory_history(wrong)
    for wrong in (0, -1, 2.5, "many"):
        with pytest.raises(ValueError, match="from 1 on"):
            memory._record_memory_history(max_entries=wrong)
