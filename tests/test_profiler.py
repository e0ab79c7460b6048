"""Profiles: what reaches the devices, by name and by line; and the guard of waits."""

import gzip
import json
import re
import threading
import warnings
from pathlib import Path
from xml.etree import ElementTree

import pytest

import pydevtensor as torch
from pydevtensor import nn, profiler
from pydevtensor.profiler._events import Event, Events
from pydevtensor.profiler._timeline import Timeline

ROOT = Path(__file__).resolve().parents[1]


def names(prof, kind="kernel"):
    return [e.name for e in prof.events() if e.kind == kind]


def test_kernels_by_name(device):
    x = torch.ones(4, 3, device=device)
    with profiler.profile() as prof:
        y = (x @ x.t()).exp().sum()
        y = y + 1
    assert names(prof) == ["matmul", "exp", "sum", "add"]
    first = prof.events()[0]
    assert first.flops == 2 * 4 * 4 * 3 and first.bytes == 4 * (12 + 12 + 16)
    assert first.device == device and first.end >= first.start
    assert first.place.function == "test_kernels_by_name"
    assert first.place.code() == "y = (x @ x.t()).exp().sum()"
    assert prof.events()[-1].place.line == first.place.line + 1
    assert y.item() > 0
    assert len(prof.events()) == 4  # nothing is recorded after the end


def test_the_backward_pass_and_an_optimizer(device):
    layer = torch.nn.Linear(3, 2).to(device)
    sgd = torch.optim.SGD(layer.parameters(), 0.1)
    x = torch.ones(5, 3, device=device)
    with profiler.profile() as prof:
        layer(x).relu().sum().backward()
        sgd.step()
    found = names(prof)
    assert {"matmul", "relu", "relu_backward", "sgd"} <= set(found)
    assert found.count("matmul") == 2  # forward, and the gradient of the weight


def test_times_of_a_gpu(gpu):
    x = torch.ones(1000, 100, device=gpu)
    with profiler.profile() as prof:
        for _ in range(5):
            x = x.exp().log()
    for event in prof.events():
        assert event.device_end > event.device_start > 0
    row = next(row for row in prof.key_averages() if row.key == "exp")
    assert row.count == 5 and row.device_time_total > 0
    assert "CUDA total" in prof.key_averages().table(sort_by="cuda_time_total")
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as prof:
        x = x.exp()
    assert prof.events()[0].device_end == 0


@pytest.mark.parametrize("schedule", ["eager", "lazy", "random:3"])
def test_counts_do_not_depend_on_the_schedule(schedule, gpu):
    if not torch.cuda.is_simulated():
        pytest.skip("needs simulated GPUs")
    torch.cuda.sim_schedule(schedule)
    try:
        with profiler.profile() as prof:
            x = torch.ones(8, device=gpu)
            for _ in range(3):
                x = x + x.cpu().to(gpu)
            torch.cuda.synchronize(gpu)
        kinds = [e.kind for e in prof.events()]
    finally:
        torch.cuda.sim_schedule("eager")
    assert kinds.count("kernel") == 4
    assert kinds.count("host_to_device") == kinds.count("device_to_host") == 3
    assert kinds.count("wait") == 1


def test_transfers_by_line(gpu):
    total = torch.zeros((), device=gpu)
    with profiler.profile() as prof:
        for i in range(12):
            total += torch.tensor([float(i)]).to(gpu).sum()
            total.item()
    rows = {row.place.code(): row for row in prof.transfers().rows}
    there = rows["total += torch.tensor([float(i)]).to(gpu).sum()"]
    back = rows["total.item()"]
    assert (there.host_to_device, there.device_to_host, there.waits) == (12, 0, 0)
    assert (back.host_to_device, back.device_to_host, back.waits) == (0, 12, 12)
    assert there.bytes == back.bytes == 48
    assert "waited 12 times" in back.advice() and "small copies" in there.advice()
    text, page = str(prof.transfers()), prof.transfers()._repr_html_()
    for shown in (text, page):
        assert "total.item()" in shown and "waited 12 times" in shown
    with torch.cuda.transfers() as counted:
        total.item()
    assert counted.waits == 1


def test_ranges_hold_what_is_inside():
    @profiler.record_function("inner")
    def inner(x):
        return x.exp()

    with profiler.profile() as prof, profiler.record_function("outer"):
        inner(torch.ones(100_000))
    rows = {row.key: row for row in prof.key_averages()}
    assert rows["inner"].count == rows["outer"].count == 1
    outer, nested, exp = rows["outer"], rows["inner"], rows["exp"]
    assert outer.cpu_time_total >= nested.cpu_time_total >= exp.cpu_time_total > 0
    assert outer.self_cpu_time_total <= outer.cpu_time_total - nested.cpu_time_total + 1
    with profiler.record_function("alone"):
        pass  # no profile runs: nothing is kept
    assert "alone" not in rows


def test_tables():
    with profiler.profile() as prof:
        for _ in range(3):
            torch.ones(4).exp()
    averages = prof.key_averages()
    text = averages.table(sort_by="count", row_limit=1)
    assert ("exp" in text) != ("fill" in text)  # one row of two
    assert re.search(r"# of Calls", text)
    assert averages.total_average().count == 6
    assert len(prof.key_averages(group_by_stack_n=5)) == 2
    with pytest.raises(AttributeError, match="give one of"):
        averages.table(sort_by="beauty")
    assert str(averages) == repr(averages) == averages.table()


def test_averages_are_a_table_in_notebooks():
    with profiler.profile() as prof, profiler.record_function("<part>"):
        torch.ones(4).exp()
    averages = prof.key_averages()
    page = ElementTree.fromstring(
        f"<body>{averages._repr_html_()}</body>".replace("<br>", "<br/>")
    )
    rows = [[cell.text for cell in row] for row in page.iter("tr")]
    assert rows[0][0] == "Name" and rows[0][-1] == "# of Calls"
    assert [row[0] for row in rows[1:]] == ["<part>", "fill", "exp"]
    assert {len(row) for row in rows} == {len(rows[0])}
    assert page.find("p").text in averages.table()


def test_memory_is_recorded_on_demand(device):
    with profiler.profile(profile_memory=True) as prof:
        x = torch.empty(100_000, device=device)
        del x
    assert names(prof, "allocate") and names(prof, "free")
    with profiler.profile() as prof:
        torch.empty(100_000, device=device)
    assert prof.events() == []


def test_a_schedule(tmp_path):
    seen = []
    plan = profiler.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    assert [plan(i).value for i in range(10)] == [0, 0, 1, 2, 3, 0, 1, 2, 3, 0]
    with profiler.profile(
        schedule=plan, on_trace_ready=lambda p: seen.append(len(p.events()))
    ) as prof:
        for i in range(10):
            torch.ones(i + 1)
            prof.step()
    assert seen == [2, 2] and prof.step_num == 10
    handler = profiler.tensorboard_trace_handler(str(tmp_path / "traces"))
    with profiler.profile(on_trace_ready=handler):
        torch.ones(3)
    assert len(list((tmp_path / "traces").iterdir())) == 1
    with pytest.raises(ValueError, match="give numbers from 0 on"):
        profiler.schedule(wait=-1, warmup=0, active=1)


def test_a_trace(tmp_path, gpu):
    stream = torch.cuda.Stream(gpu)
    with profiler.profile(profile_memory=True) as prof:
        x = torch.ones(100_000, device=gpu)
        stream.wait_stream(torch.cuda.default_stream(gpu))
        with torch.cuda.stream(stream):
            x.exp()
    for name, opened in (("t.json", open), ("t.json.gz", gzip.open)):
        prof.export_chrome_trace(str(tmp_path / name))
        with opened(tmp_path / name, "rt") as file:
            events = json.load(file)["traceEvents"]
    spans = [e for e in events if e["ph"] == "X" and e["name"] == "exp"]
    host, device = sorted(spans, key=lambda e: e["pid"])
    assert host["pid"] == 0 and device["pid"] == int(gpu[-1]) + 1
    assert all(e["dur"] >= 0 and e["ts"] > 0 for e in spans)
    begin = [e for e in events if e["ph"] == "s"]
    ends = [e for e in events if e["ph"] == "f"]
    assert len(begin) == len(ends) == 2  # fill and exp
    lanes = {e["tid"] for e in events if e["ph"] == "X" and e["pid"] == device["pid"]}
    assert len(lanes) == 2
    assert any(e["ph"] == "C" for e in events)
    prof.export_stacks(str(tmp_path / "stacks"))
    assert "test_a_trace" in (tmp_path / "stacks").read_text()
    with pytest.raises(FileNotFoundError):
        prof.export_chrome_trace(str(tmp_path / "missing" / "t.json"))


def test_a_timeline(tmp_path, gpu):
    stream = torch.cuda.Stream(gpu)
    with profiler.profile(profile_memory=True) as prof:
        x = torch.ones(300_000, device=gpu)
        stream.wait_stream(torch.cuda.default_stream(gpu))
        with profiler.record_function("<part>"), torch.cuda.stream(stream):
            x.exp().sum().item()
    prof.timeline().save(tmp_path / "t.svg")
    root = ElementTree.parse(tmp_path / "t.svg").getroot()
    text = prof.timeline()._repr_svg_()
    assert ElementTree.fromstring(text).tag == root.tag
    for shown in (
        "host",
        f"{gpu} side 1",
        f"{gpu} memory",
        "exp: ",
        "&lt;part&gt;",
    ):
        assert shown in text


def test_streams_have_names(tmp_path, gpu):
    """In each drawing and trace, in the order of their use on their device."""
    x = torch.ones(3, device=gpu)
    sides = [torch.cuda.Stream(gpu) for _ in range(3)]
    with profiler.profile() as prof:
        for stream in (sides[2], sides[0], sides[1], sides[2]):
            with torch.cuda.stream(stream):
                x.exp()
        x.exp()
    names = ["side 1", "side 2", "side 3", "side 1", "default"]
    assert [e.stream_name for e in prof.events()] == names
    assert [e.stream for e in prof.events()][:2] == [
        sides[2].cuda_stream,
        sides[0].cuda_stream,
    ]
    assert str(sides[2].cuda_stream) not in repr(prof.events())
    labels = [f"{gpu} {name}" for name in ("default", "side 1", "side 2", "side 3")]
    for shown in (repr(prof.timeline()), prof.timeline().svg()):
        found = re.findall(rf"{gpu} (?:default|side \d)", shown)
        assert found == labels
    prof.export_chrome_trace(str(tmp_path / "t.json"))
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    threads = [e["args"]["name"] for e in events if e["name"] == "thread_name"]
    assert threads == list(dict.fromkeys(names))


def some_events():
    """A range, two calls, a kernel on a side stream, a copy that is waited for."""
    gpu, ms = "cuda:0", 1_000_000
    return Events(
        [
            Event("range", "训练", "cpu", 0, 0, 12 * ms),
            Event("allocate", "allocate", gpu, 7, 1 * ms, bytes=2_000_000),
            Event("kernel", "matmul", gpu, 7, 0, 2 * ms, 2 * ms, 9 * ms),
            Event("allocate", "allocate", gpu, 7, 6 * ms, bytes=4_000_000),
            Event(
                *("device_to_host", "copy", gpu, 0, 6 * ms, 12 * ms, 9 * ms, 12 * ms),
                waits=True,
            ),
            Event("free", "free", gpu, 7, 9 * ms, bytes=4_000_000),
        ]
    ).events


DRAWN = """
                 |0 ns            |5 ms             |10 ms
record_function  [~~~~~~~~~~~~~~~~~~训练~~~~~~~~~~~~~~~~~~~]
host             --------             /////////copy/////////
cuda:0 default                                   ====copy===
cuda:0 side 1           ##########matmul##########
cuda:0 memory       3333333333333333339999999999993333333333
# kernel   = copy   / wait of the host   - call of the host
cuda:0 memory: 9 is 6 MB more than at the start
"""


def test_a_timeline_in_a_terminal_is_drawn_in_characters(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    timeline = Timeline(some_events())
    assert f"\n{timeline!r}\n" == f"\n{timeline}\n" == DRAWN


@pytest.mark.parametrize("width", [20, 40, 80, 133, 300])
def test_it_is_as_wide_as_the_terminal(width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = repr(Timeline(some_events())).replace("训练", "wide").splitlines()
    widest = max(map(len, lines))
    # Below that, there would be no room for the lanes beside their labels.
    assert widest == max(width, len("record_function  ") + 20)
    assert repr(Timeline([])) == " " * 2 + "|0 ns"


def test_a_timeline_in_a_page_is_as_wide_as_that():
    page = Timeline(some_events())._repr_html_()
    root = ElementTree.fromstring(page)
    assert root.get("width") == "100%" and root.get("viewBox") is None
    bars = [e for e in root.iter("rect") if e.find("title") is not None]
    assert len(bars) == 5
    for bar in bars:
        assert bar.get("x")[-1] == bar.get("width")[-1] == "%"
    # Its style and the names in it are not those of another drawing in the page.
    assert all(
        rule.startswith(".pydevtensor-timeline ")
        for rule in root.find("style").text.splitlines()
    )
    other = Timeline(some_events()[:3])._repr_html_()
    names = [set(re.findall(r' id="([^"]+)"', text)) for text in (page, other)]
    assert len(names[0] | names[1]) == 4
    assert set(re.findall(r"url\(#([^)]+)\)", page)) == names[0]


def test_a_timeline_of_many_events_stays_small():
    with profiler.profile() as prof:
        x = torch.ones(3)
        for _ in range(20_000):
            x + 1
    text = prof.timeline().svg()
    assert len(text) < 500_000
    merged = int(re.search(r"(\d+) events are drawn", text)[1])
    assert merged + text.count("<title>") == len(prof.events()) == 20_001
    assert profiler.profile().timeline().svg().startswith("<svg")


def test_only_so_many_events_are_kept():
    with profiler.profile(max_events=10) as prof:
        for _ in range(25):
            torch.ones(3)
    assert len(prof.events()) == 10 and prof.dropped == 15


def test_wrong_uses_leave_the_library_working():
    with profiler.profile():
        with pytest.raises(RuntimeError, match="running already"):
            profiler.profile().start()
        with pytest.raises(RuntimeError, match="running already"):
            profiler.profile().__enter__()
    with pytest.raises(ZeroDivisionError), profiler.profile() as prof:
        torch.ones(3)
        _ = 1 // 0
    assert names(prof) == ["fill"]
    prof.stop()
    with pytest.raises(TypeError, match="is not an activity"):
        profiler.profile(activities=["CPU"])
    with pytest.raises(AssertionError, match="activities is empty"):
        profiler.profile(activities=[])
    with pytest.raises(ValueError, match="1 event or more"):
        profiler.profile(max_events=0).start()
    profiler.profile().start()  # ends when nobody holds it any more
    with profiler.profile() as prof:
        torch.ones(3)
    assert names(prof) == ["fill"]


def test_a_thread_computes_while_profiles_come_and_go():
    end = threading.Event()

    def work():
        x = torch.ones(200, 200)
        while not end.is_set():
            x = (x @ x).clamp(0, 1)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(30):
            with profiler.profile() as prof:
                torch.ones(300, 300) @ torch.ones(300, 300)
            assert "matmul" in names(prof)
    finally:
        end.set()
        thread.join()


# --- waits --------------------------------------------------------------------------------


@pytest.fixture
def sync_debug_mode():
    yield torch.cuda.set_sync_debug_mode
    torch.cuda.set_sync_debug_mode("default")


def test_waits_warn_or_fail(gpu, sync_debug_mode):
    x = torch.ones(3, device=gpu)
    sync_debug_mode("error")
    assert torch.cuda.get_sync_debug_mode() == 2
    for call in (x.cpu, x.sum().item, x.nonzero, x.tolist, lambda: bool(x.sum() > 0)):
        with pytest.raises(RuntimeError, match=f"wait for {gpu}"):
            call()
    y = x + 1  # asynchronous work goes on
    y.copy_(torch.ones(3))
    torch.cuda.synchronize(gpu)  # says by its name that it waits
    sync_debug_mode(1)
    with pytest.warns(UserWarning, match="made the host wait"):
        assert y.tolist() == [1, 1, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning):
            y.tolist()
    sync_debug_mode("default")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert y.tolist() == [1, 1, 1]


def test_wrong_modes():
    for wrong in ("loud", 3, -1):
        with pytest.raises(RuntimeError, match="'default', 'warn' or 'error'"):
            torch.cuda.set_sync_debug_mode(wrong)
    assert torch.cuda.get_sync_debug_mode() == 0


def test_a_column_of_flops():
    x = torch.ones(100, 200)
    with torch.profiler.profile(with_flops=True) as prof:
        y = x @ torch.ones(200, 50)
        y.copy_(torch.zeros(100, 50))
    lines = prof.key_averages().table().splitlines()
    assert "GFLOPs" in lines[1]
    (product,) = [line for line in lines if line.startswith("matmul")]
    assert product.split()[-2] == "0.002"
    (copy,) = [line for line in lines if line.startswith("copy")]
    assert copy.split()[-2] == "--"
    with torch.profiler.profile() as prof:
        torch.ones(3) + 1
    assert "GFLOPs" not in prof.key_averages().table()


def test_shapes(device):
    a, b = torch.ones(4, 6, device=device), torch.ones(6, 5, device=device)
    with torch.profiler.profile(record_shapes=True) as prof:
        a @ b
        a @ b
        a.t() @ a
        a.sum(1)
        a.t() + 1
        torch.zeros(3, device=device)
    shapes = [e.shapes for e in prof.events() if e.name == "matmul"]
    assert shapes == ["[4, 6], [6, 5]"] * 2 + ["[6, 4], [4, 6]"]
    by_name = {e.name: e.shapes for e in prof.events()}
    assert by_name["sum"] == "[4, 6]" and by_name["fill"] == ""
    rows = prof.key_averages(group_by_input_shape=True)
    counts = {r.shapes: r.count for r in rows if r.key == "matmul"}
    assert counts == {"[4, 6], [6, 5]": 2, "[6, 4], [4, 6]": 1}
    assert "Input Shapes" in rows.table() and "[6, 4], [4, 6]" in rows.table()
    assert "Input Shapes" not in prof.key_averages().table()
    assert [r.count for r in prof.key_averages() if r.key == "matmul"] == [3]
    with torch.profiler.profile() as prof:
        a @ b
    assert {e.shapes for e in prof.events()} == {""}


# --- modules and backward passes ----------------------------------------------------------


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
        self.head = nn.Linear(4, 1)

    def forward(self, x, fails=False):
        y = self.body(x)  # the body
        if fails:
            raise KeyError("on purpose")
        return self.head(y)


def test_backward_events_know_their_forward_line(device):
    x = torch.ones(2, 3, device=device, requires_grad=True)
    with torch.profiler.profile() as prof:
        y = x.exp()  # forward
        y.mul(y).sum().backward()
    forward = {e.place.code() for e in prof.events() if not e.backward}
    assert forward == {"y = x.exp()  # forward", "y.mul(y).sum().backward()"}
    backward = [e for e in prof.events() if e.backward]
    assert {e.place.code() for e in backward} == {"y.mul(y).sum().backward()"}
    assert "y = x.exp()  # forward" in {e.forward.code() for e in backward}
    with torch.profiler.profile(with_stack=False) as prof:
        x.exp().sum().backward()
    assert any(e.backward for e in prof.events())
    assert {e.forward for e in prof.events()} == {None}


def test_events_know_their_module(device):
    net, x = Net().to(device), torch.ones(2, 3, device=device)
    with torch.profiler.profile(with_modules=True) as prof:
        net(x).sum().backward()
    forward = [e.module for e in prof.events() if not e.backward]
    assert list(dict.fromkeys(forward)) == ["Net.body.0", "Net.body.1", "Net.head", ""]
    backward = [e.module for e in prof.events() if e.backward]
    assert list(dict.fromkeys(m for m in backward if m)) == [
        "Net.head",
        "Net.body.1",
        "Net.body.0",
    ]
    # Tables by line join the modules that a line calls.
    rows = prof.key_averages(group_by_stack_n=1)
    assert len({(r.key, r.place) for r in rows}) == len(rows)
    with torch.profiler.profile() as prof:
        net(x)
    assert {e.module for e in prof.events()} == {""}


def test_a_module_that_fails_leaves_its_path(device):
    net, x = Net().to(device), torch.ones(2, 3, device=device)
    with torch.profiler.profile(with_modules=True) as prof:
        with pytest.raises(KeyError):
            net(x, fails=True)
        x + 1
        net.head(torch.ones(1, 4, device=device))
    modules = [e.module for e in prof.events()]
    assert modules[-1] == "Linear" and "" in modules


def test_traces_name_forward_lines_and_modules(tmp_path):
    net = Net()
    with torch.profiler.profile(with_modules=True) as prof:
        net(torch.ones(2, 3)).sum().backward()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    args = [e["args"] for e in json.loads(path.read_text())["traceEvents"]]
    told = [a for a in args if "forward line" in a]
    assert told and {a["module"] for a in told if "module" in a} >= {"Net.head"}


# --- the backends -------------------------------------------------------------------------

# What computes nothing, or is recorded where it is called (device/transfer.c).
UNRECORDED = {
    *("device_count", "why_unavailable", "device_properties", "facts"),
    *("can_access_peer", "device_synchronize", "allocate", "release", "memory_info"),
    *(
        "memory_stats",
        "memory_blocks",
        "memory_fraction",
        "reset_peaks",
        "empty_cache",
        "stream_new",
        "stream_free",
    ),
    *("stream_query", "stream_synchronize", "event_new", "event_free", "event_record"),
    *("event_query", "event_synchronize", "stream_wait_event", "event_elapsed"),
    *(
        "record_use",
        "cudnn_version",
        "cufft_version",
        "copy_to_device",
        "copy_to_host",
        "copy_peer",
        "pinned_allocate",
    ),
    *("pinned_release", "pinned_copy"),
    *("graph_instantiate", "graph_native", "graph_dump"),
    # Told as one "graph replay" by csrc/device/graph.c.
    *("graph_begin", "graph_end", "graph_launch", "graph_capturing", "graph_free"),
    *("ipc_export", "ipc_open", "ipc_close", "event_export", "event_open"),
    *("module_load", "module_kernel", "module_compile", "module_compiler"),
    *("module_attribute", "module_variable"),
    *("nccl_version", "communicator_id", "communicator_new"),
    *("communicator_free", "communicator_check"),
}


def test_all_work_of_a_backend_is_recorded():
    """A member is a row of device/works.def, which makes its record, or named above."""
    interface = (ROOT / "csrc/device/backend.h").read_text()
    members = set(re.findall(r"\bMEMBER\((\w+)\)", interface)) - {"name"}
    assert members == UNRECORDED


def test_the_older_names():
    old = torch.autograd.profiler
    x = torch.ones(3, requires_grad=True)
    with old.profile(record_shapes=True) as prof, old.record_function("mine"):
        (x * 2).sum().backward()
    keys = [row.key for row in prof.key_averages()]
    assert "mine" in keys and "sum" in keys and "sum" in prof.table(row_limit=10)
    assert prof.total_average().count == len(prof.function_events) > 2
    assert prof.self_cpu_time_total >= 0 and str(prof) == prof.table()
    with old.profile(enabled=False) as prof, old.emit_nvtx(), old.emit_itt():
        x.sum()
    assert prof.function_events == [] and "not enabled" in str(prof)
