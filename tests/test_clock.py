"""The clock of simulated cards: what it adds up, and that it does so in every run.

Each program runs in a process of its own, since cards are chosen once.
"""

import json
import re
from pathlib import Path

import pytest
from isolated import T4, python

import pydevtensor as torch

SCHEDULES = ["eager", "lazy", *(f"random:{seed}" for seed in range(1, 6))]
# Figures of the T4: FLOP/s and bytes/s on paper, and what the clock takes for reached.
FLOPS, BANDWIDTH = 8.1e12 * 0.8, 320e9 * 0.85


START = """
import pydevtensor as torch, json, sys

def timed(function):
    torch.cuda.synchronize()
    for i in range(1, torch.cuda.device_count()):
        torch.cuda.synchronize(i)
    begin = torch.cuda.clock()
    function()
    for i in range(torch.cuda.device_count()):
        torch.cuda.synchronize(i)
    return torch.cuda.clock() - begin
"""


def measure(code, gpus=1, **chosen):
    """What the program prints as JSON."""
    chosen = {**T4, "PYDEVTENSOR_SIM_GPUS": str(gpus), **chosen}
    return json.loads(python(START + code, **chosen))


# --- the clock


def test_products_take_the_time_of_their_flops():
    t = measure("""
x = torch.ones(1000, 1000, device='cuda')
def products():
    for _ in range(25):
        y = x @ x
def sums():
    for _ in range(25):
        y = x + x
print(json.dumps([timed(products), timed(sums)]))
""")
    assert t[0] == pytest.approx(25 * 2e9 / FLOPS * 1e9, rel=0.03)
    assert t[1] == pytest.approx(25 * 12e6 / BANDWIDTH * 1e9, rel=0.08)


def test_a_large_product_beats_many_small_ones():
    t = measure("""
x = torch.ones(512, 512, device='cuda')
rows = torch.ones(1, 512, device='cuda')
def large():
    y = x @ x
def small():
    for _ in range(512):
        y = rows @ x
print(json.dumps([timed(large), timed(small)]))
""")
    assert t[1] > 20 * t[0]


def test_waiting_for_each_value_costs_a_wait_each():
    t = measure("""
x = torch.ones(100, device='cuda')
def each():
    for _ in range(1000):
        x.norm().item()
def once():
    norms = [x.norm() for i in range(1000)]
    torch.stack(norms).tolist()
counted = torch.cuda.sim_counters()['waits']
print(json.dumps([timed(each), timed(once), torch.cuda.sim_counters()['waits'] - counted]))
""")
    # What a wait costs beyond the work: the copy's call and latency, and waking up.
    assert t[0] - t[1] > 1000 * 5000
    assert t[0] > 1.4 * t[1]
    assert 1000 < t[2] < 1010


def test_two_gpus_take_half_the_time():
    code = """
parts = [torch.ones(1000, 1000, device=f'cuda:{i % torch.cuda.device_count()}')
         for i in range(20)]
def work():
    for x in parts:
        y = x @ x
print(timed(work))
"""
    one, two = measure(code), measure(code, gpus=2)
    assert two == pytest.approx(one / 2, rel=0.05)


def test_copies_overlap_with_kernels_and_each_other():
    t = measure("""
x = torch.ones(2000, 2000, device='cuda')
up, down = (torch.ones(4 << 20).pin_memory() for _ in range(2))
there, back = (torch.ones(4 << 20, device='cuda') for _ in range(2))
first, second = torch.cuda.Stream(), torch.cuda.Stream()
def compute():
    y = x @ x
def push():
    with torch.cuda.stream(first):
        there.copy_(up, non_blocking=True)
def pull(stream=second):
    with torch.cuda.stream(stream):
        down.copy_(back, non_blocking=True)
compute()
def all_at_once():
    compute(); push(); pull()
def one_stream():
    push(); pull(first)
print(json.dumps([timed(f) for f in (compute, push, pull, all_at_once, one_stream)]))
""")
    compute, push, pull, together, in_turn = t
    copy = (16 << 20) / 12.5  # GB/s: nanoseconds
    assert push == pytest.approx(copy, rel=0.02) == pull
    assert together < max(compute, push, pull) + 50_000
    assert in_turn == pytest.approx(push + pull, rel=0.02)


def test_pageable_memory_is_slower():
    t = measure("""
page = torch.ones(4 << 20)
pinned = page.pin_memory()
page.cuda()
print(json.dumps([timed(lambda: page.cuda()), timed(lambda: pinned.cuda())]))
""")
    # The host stages all of it, then the last MiB still has to cross.
    assert t[0] / t[1] == pytest.approx((16 / 5 + 1 / 12.5) / (16 / 12.5), rel=0.02)


@pytest.mark.slow
def test_an_upload_does_not_wait_for_kernels():
    t = measure("""
x = torch.ones(4000, 4000, device='cuda')
x @ x
batches = {'small': torch.ones(1 << 10), 'large': torch.ones(1 << 18)}
batches['pinned'] = batches['large'].pin_memory()
took = {}
for name, batch in batches.items():
    batch.cuda()
    torch.cuda.synchronize()
    begin = torch.cuda.clock()
    x @ x
    batch.cuda()
    took[name] = torch.cuda.clock() - begin
    torch.cuda.synchronize()
    took[name + ', all'] = torch.cuda.clock() - begin
print(json.dumps(took))
""")
    assert t["large, all"] > 10_000_000
    assert t["small"] < 100_000
    assert t["large"] == pytest.approx((1 << 20) / 5, abs=100_000)
    # It is read where it is, so it may change only when the copy is over.
    assert t["pinned"] > 10_000_000


def test_kernels_of_one_device_take_turns():
    t = measure("""
x = torch.ones(1000, 1000, device='cuda')
streams = [torch.cuda.Stream() for _ in range(4)]
def work(how):
    for stream in how:
        with torch.cuda.stream(stream):
            y = x @ x
work(streams)
print(json.dumps([timed(lambda: work(streams)), timed(lambda: work(streams[:1] * 4))]))
""")
    assert t[0] == pytest.approx(t[1], rel=0.02)


def test_few_blocks_do_not_use_the_whole_card():
    t = measure("""
x = torch.ones(4096, 4096, device='cuda')
row = torch.ones(1, 4096 * 64, device='cuda')
x + x, x.sum(), row.sum()
def one_block():
    torch.sort(row[:, :1024])
print(json.dumps([timed(lambda: x + x), timed(lambda: x.sum())]))
""")
    assert t[0] == pytest.approx(3 * 4096 * 4096 * 4 / BANDWIDTH * 1e9, rel=0.05)
    assert t[1] < t[0]


def test_half_precision_uses_tensor_cores():
    t = measure(
        """
times = []
for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
    x = torch.ones(512, 512, device='cuda', dtype=dtype)
    x @ x
    times.append(timed(lambda: x @ x))
torch.set_float32_matmul_precision('high')
x = torch.ones(512, 512, device='cuda')
times.append(timed(lambda: x @ x))
print(json.dumps(times))
""",
        PYDEVTENSOR_SIM_CARD="a100",
    )
    single, half, brain, double, tf32 = t
    assert half == brain < tf32 < double == single


def test_convolutions_use_tensor_cores_where_they_may():
    t = measure(
        """
times = {}
for dtype in (torch.float32, torch.float64):
    x = torch.ones(4, 128, 16, 16, device='cuda', dtype=dtype, requires_grad=True)
    w = torch.ones(128, 128, 3, 3, device='cuda', dtype=dtype, requires_grad=True)
    def step():
        torch.conv2d(x, w, padding=1).sum().backward()
    step()
    for allowed in (True, False):
        torch.backends.cudnn.allow_tf32 = allowed
        times[f'{dtype} {allowed}'] = timed(step)
print(json.dumps(times))
""",
        PYDEVTENSOR_SIM_CARD="a100",
    )
    assert t["torch.float32 True"] < t["torch.float32 False"]
    assert t["torch.float64 True"] == t["torch.float64 False"]


def test_recurrent_layers_use_tensor_cores_for_their_inputs():
    t = measure(
        """
won = {}
for inputs in (8, 1024):
    x = torch.ones(16, 32, inputs, device='cuda', requires_grad=True)
    layer = torch.nn.LSTM(inputs, 64).cuda()
    def step():
        layer(x)[0].sum().backward()
    step()
    times = []
    for allowed in (True, False):
        torch.backends.cudnn.allow_tf32 = allowed
        times.append(timed(step))
    won[inputs] = times[1] - times[0]
print(json.dumps(won))
""",
        PYDEVTENSOR_SIM_CARD="a100",
    )
    assert t["1024"] > t["8"] >= 0


def test_events_and_queries_tell_the_clock():
    t = measure("""
x = torch.ones(1000, 1000, device='cuda')
x @ x
torch.cuda.synchronize()
begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
begin.record()
for _ in range(10):
    x @ x
end.record()
early = end.query(), torch.cuda.current_stream().query()
try:
    begin.elapsed_time(end)
except RuntimeError as error:
    early += 'not been reached' in str(error),
asked = 0
while not end.query():
    asked += 1
late = end.query(), torch.cuda.current_stream().query()
print(json.dumps([begin.elapsed_time(end), early, asked, late]))
""")
    milliseconds, early, asked, late = t
    assert milliseconds == pytest.approx(10 * 2e9 / FLOPS * 1e3, rel=0.03)
    assert early == [False, False, True] and late == [True, True]
    assert 1000 < asked < 10_000  # half a microsecond each


PROGRAM = """
import pydevtensor as torch
torch.manual_seed(0)
from pydevtensor import nn
nets = [nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to(f'cuda:{i}')
        for i in range(2)]
side = torch.cuda.Stream()
done = torch.cuda.Event()
kept = torch.ones(1 << 16).pin_memory()
total = 0.0
for step in range(6):
    x = torch.randn(32, 64)
    for i, net in enumerate(nets):
        y = net(x.to(f'cuda:{i}'))
        loss = (y * y).sum()
        loss.backward()
        with torch.no_grad():
            for p in net.parameters():
                p -= 0.01 * p.grad
                p.grad = None
    with torch.cuda.stream(side):
        big = kept.to('cuda', non_blocking=True)
        part = big * 2
        done.record()
    big.record_stream(torch.cuda.current_stream())
    done.wait()
    z = part + 1
    part.record_stream(torch.cuda.current_stream())
    total += loss.item()
    while not done.query():
        pass
    w = y.to('cuda:0')
    v, i = torch.sort(z)
    del big, part, z, v, i
values = torch.randn(1000, device='cuda').nonzero()
torch.cuda.synchronize()
torch.cuda.empty_cache()
print(torch.cuda.clock('t4'), torch.cuda.clock('h200'))
print(torch._C._sim_control('clock'))
"""


@pytest.mark.slow
def test_the_schedule_does_not_change_the_time():
    chosen = {
        "PYDEVTENSOR_SIM_GPUS": "2",
        "PYDEVTENSOR_SIM_CARD": "t4,h200",
        "PYDEVTENSOR_SIM_HOST": "fixed",
    }
    said = {
        schedule: python(PROGRAM, PYDEVTENSOR_SIM_SCHEDULE=schedule, **chosen)
        for schedule in SCHEDULES
    }
    assert len(set(said.values())) == 1, said
    t4, h200 = map(int, said["eager"].split()[:2])
    assert 0 < h200 < t4


def test_a_measured_host_counts_its_own_work():
    t = measure(
        """
import time
def sleep():
    time.sleep(0.05)
def simulate():
    x = torch.ones(300, 300, device='cuda', dtype=torch.int64)
    y = x @ x
wall = time.perf_counter()
simulated = timed(simulate)
print(json.dumps([timed(sleep), simulated, (time.perf_counter() - wall) * 1e9]))
""",
        PYDEVTENSOR_SIM_HOST="measured",
        PYDEVTENSOR_SIM_CARD="h200",
    )
    assert 50e6 <= t[0] < 500e6
    assert t[1] < t[2] / 2  # the simulator is slow, and its time does not count


def test_each_card_has_a_clock():
    out = measure(
        """
x = torch.ones(1000, 1000, device='cuda')
x @ x
torch.cuda.synchronize()
said = []
for card in ('l4', 'x', 3):
    try:
        torch.cuda.clock(card)
    except (ValueError, TypeError) as error:
        said.append(str(error))
print(json.dumps([torch.cuda.clock(), torch.cuda.clock('t4'), torch.cuda.clock('H 200'), said]))
""",
        PYDEVTENSOR_SIM_CARD="t4,h200",
    )
    assert out[0] == out[1] > out[2] > 0
    assert "give one of T4, H200" in out[3][0] and "give one of T4, V100" in out[3][1]
    assert "such as 'T4'" in out[3][2]


# --- the profiler


def test_a_profile_shows_the_clock():
    t = measure("""
from pydevtensor.profiler import profile, record_function
x = torch.ones(1000, 1000, device='cuda')
x @ x
torch.cuda.synchronize()
def work():
    y = x @ x
    y.sum().item()
plain = timed(work)
with profile() as prof:
    with record_function('all'):
        watched = timed(work)
events = {e.name: [e.start, e.end, e.device_start, e.device_end] for e in prof.events()}
print(json.dumps([plain, watched, events, torch.cuda.clock()]))
""")
    plain, watched, events, now = t
    assert plain == watched  # watching takes no time
    product, total, back = (
        events[name] for name in ("matmul", "sum", "copy device to host")
    )
    assert product[3] - product[2] == pytest.approx(2e9 / FLOPS * 1e9, rel=0.03)
    assert product[1] <= product[2] < product[3] <= total[2] < total[3] <= back[2]
    # The copy made the host wait until it was over.
    assert back[0] < product[3] and back[1] > back[3]
    assert events["all"][0] < product[0] and back[1] <= events["all"][1] <= now


# --- the page


def test_the_page_has_all_cards():
    root = Path(__file__).resolve().parents[1]
    page = root / "docs" / "clock.md"
    if not page.exists():
        pytest.skip("the documents are not installed")
    rows = re.findall(r"^\| ((?:T|V|A|L|H|B|RTX).*?) \|(.*)\|$", page.read_text(), re.M)
    assert [name for name, _ in rows] == [
        name for name, *_ in torch._C._sim_cards(None)
    ]
