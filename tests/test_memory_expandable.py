"""Segments that grow (expandable_segments:True): what they save, and that all else is the
same."""

import gc
import random

import pytest
from graph_capture import captured
from isolated import T4, python

import pydevtensor as torch

MiB = 1 << 20
PAGE = 20 * MiB  # what a segment for large blocks grows by


def set_expandable(on):
    torch._C._accelerator_setAllocatorSettings(f"expandable_segments:{on}")


@pytest.fixture
def expandable(gpu):
    """The GPU, with nothing in its cache, and segments that grow."""
    gc.collect()
    torch.cuda.synchronize(gpu)
    torch.cuda.empty_cache()
    set_expandable(True)
    yield gpu
    set_expandable(False)
    torch.cuda.synchronize(gpu)
    torch.cuda.empty_cache()


def empty(gpu, size):
    return torch.empty(int(size), dtype=torch.uint8, device=gpu)


def segments(gpu):
    index = torch.device(gpu).index
    found = [s for s in torch.cuda.memory_snapshot() if s["device"] == index]
    return [s for s in found if s["is_expandable"]]


def accounts(gpu):
    """Whether the snapshot has all bytes that the counters have."""
    index = torch.device(gpu).index
    found = [s for s in torch.cuda.memory_snapshot() if s["device"] == index]
    stats = torch.cuda.memory_stats(gpu)
    for segment in found:
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at
            at += block["size"]
        assert at == segment["address"] + segment["total_size"]
        assert not segment["is_expandable"] or not segment["total_size"] % (2 * MiB)
    names = {"reserved": "total", "allocated": "allocated", "requested": "requested"}
    for counter, key in names.items():
        counted = sum(s[f"{key}_size"] for s in found)
        assert stats[f"{counter}_bytes.all.current"] == counted, counter
    return True


# --- what they save --------------------------------------------------------------------

# Each batch is larger than the one before, and something small stays of each.
GROWING = """
import pydevtensor as torch
torch.cuda.simulate(1, memory="256M")
def empty(mib):
    return torch.empty(mib << 20, dtype=torch.uint8, device="cuda")
kept = []
try:
    for size in range(16, 104, 4):
        batch = empty(size)
        del batch
        kept.append(empty(6).fill_(len(kept)))
    assert all((x == i).all() for i, x in enumerate(kept))
    print("fits")
except torch.OutOfMemoryError as error:
    print("expandable_segments:True" in str(error), size)
"""


@pytest.mark.parametrize("schedule", ["eager", "lazy", "random:3"])
def test_growing_batches(schedule):
    """In ordinary segments, what stays keeps each batch's memory from the next one."""
    # With a clock, large tensors are not poisoned as a whole, which takes time.
    chosen = {"PYDEVTENSOR_SIM_SCHEDULE": schedule, **T4}
    assert python(GROWING, **chosen) == "True 88\n"
    chosen["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
    assert python(GROWING, **chosen) == "fits\n"


def test_a_segment_grows_by_what_lacks(expandable):
    gpu = expandable
    before = torch.cuda.memory_reserved(gpu)
    x = empty(gpu, 15 * MiB)
    assert torch.cuda.memory_reserved(gpu) == before + PAGE
    (segment,) = segments(gpu)
    assert segment["total_size"] == PAGE and segment["segment_type"] == "large"
    address = x.data_ptr()
    del x
    x = empty(gpu, 50 * MiB)  # the free block before it counts
    assert x.data_ptr() == address
    assert torch.cuda.memory_reserved(gpu) == before + 3 * PAGE
    y = empty(gpu, 10 * MiB)  # what is left of the last page
    assert torch.cuda.memory_reserved(gpu) == before + 3 * PAGE
    assert len(segments(gpu)) == 1 and accounts(gpu)
    del x, y


def test_pages_go_back_one_by_one(expandable):
    gpu = expandable
    free, base = torch.cuda.mem_get_info(gpu)[0], torch.cuda.memory_reserved(gpu)
    parts = [empty(gpu, 10 * MiB) for _ in range(9)]
    addresses = [x.data_ptr() for x in parts]
    assert torch.cuda.memory_reserved(gpu) == base + 5 * PAGE
    assert torch.cuda.mem_get_info(gpu)[0] <= free - 5 * PAGE
    for i, x in enumerate(parts):
        x.fill_(i)
    del x, parts[3:8]  # of page 1 the second half, pages 2 and 3
    torch.cuda.synchronize(gpu)
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved(gpu) == base + 3 * PAGE
    assert torch.cuda.mem_get_info(gpu)[0] > free - 5 * PAGE
    assert [s["total_size"] // MiB for s in segments(gpu)] == [40, 20] and accounts(gpu)
    parts.insert(3, empty(gpu, 50 * MiB))  # it fills the hole
    assert parts[3].data_ptr() == addresses[3]
    assert torch.cuda.memory_reserved(gpu) == base + 5 * PAGE and accounts(gpu)
    parts[3].fill_(9)
    for x, value in zip(parts, (0, 1, 2, 9, 8), strict=True):
        assert (x[0].item(), x[-1].item()) == (value, value)
    del x
    parts.clear()
    torch.cuda.synchronize(gpu)
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved(gpu) == base and not segments(gpu)
    if torch.cuda.is_simulated():
        assert torch.cuda.mem_get_info(gpu)[0] == free


def test_small_tensors_have_a_segment_of_small_pages(expandable):
    gpu = expandable
    before = torch.cuda.memory_reserved(gpu)
    parts = [empty(gpu, MiB) for _ in range(5)]
    assert torch.cuda.memory_reserved(gpu) == before + 6 * MiB
    (segment,) = segments(gpu)
    assert segment["segment_type"] == "small" and len(segment["blocks"]) == 6
    assert torch.cuda.memory_stats(gpu)["segment.all.current"] > 0
    del parts


def test_want_of_memory_takes_pages_back(expandable):
    gpu = expandable
    stats = torch.cuda.memory_stats(gpu)
    side = torch.cuda.Stream(gpu)
    total = torch.cuda.mem_get_info(gpu)[1]
    with torch.cuda.stream(side):
        x = empty(gpu, total * 0.6)
    del x  # it stays in the cache of that stream
    y = empty(gpu, total * 0.6).fill_(5)
    assert (
        torch.cuda.memory_stats(gpu)["num_alloc_retries"]
        == stats["num_alloc_retries"] + 1
    )
    with pytest.raises(torch.OutOfMemoryError, match=r"(?s)^((?!ALLOC_CONF).)*$"):
        empty(gpu, total * 0.6)
    with pytest.raises(torch.OutOfMemoryError):
        empty(gpu, total * 2)
    assert y[-1].item() == 5 and accounts(gpu)
    del y


def test_the_last_page_may_be_smaller(expandable):
    """Less than a page may still be allocated, and it is enough."""
    gpu = expandable
    total = torch.cuda.mem_get_info(gpu)[1]
    limit = torch.cuda.memory_reserved(gpu) + 3 * PAGE + 8 * MiB
    torch.cuda.set_per_process_memory_fraction(limit / total, gpu)
    try:
        x = empty(gpu, 3 * PAGE).fill_(1)
        y = empty(gpu, 7 * MiB).fill_(2)
        assert torch.cuda.memory_reserved(gpu) <= limit and accounts(gpu)
        with pytest.raises(torch.OutOfMemoryError, match="allows"):
            empty(gpu, 7 * MiB)
        assert (x[-1].item(), y[-1].item()) == (1, 2)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, gpu)
    del x, y


@pytest.mark.skipif(not torch.cuda.is_simulated(), reason="failures on demand")
def test_a_driver_that_gives_no_memory(expandable):
    gpu = expandable
    before = torch.cuda.memory_reserved(gpu)
    torch.cuda.sim_fail("malloc:3")  # of five pages
    x = empty(gpu, 90 * MiB).fill_(1)
    assert x[-1].item() == 1 and torch.cuda.memory_reserved(gpu) == before + 5 * PAGE
    torch.cuda.sim_fail("malloc:1+")
    with pytest.raises(torch.OutOfMemoryError):
        empty(gpu, 60 * MiB)
    torch.cuda.sim_fail("")
    assert torch.cuda.memory_reserved(gpu) == before + 5 * PAGE and accounts(gpu)
    del x


# --- that all else is the same -----------------------------------------------------------


def trace(gpu, seed):
    """A random program; what its tensors hold, and counters that do not depend on where
    they lie."""
    draw = random.Random(seed)
    side = torch.cuda.Stream(gpu)
    alive, seen = [], []
    torch.cuda.reset_peak_memory_stats(gpu)
    base = torch.cuda.memory_stats(gpu)
    for step in range(120):
        act = draw.random()
        size = int(2 ** draw.uniform(0, 22.5))
        if act < 0.5:
            alive.append(empty(gpu, size).fill_(step))
        elif act < 0.6:
            side.wait_stream(torch.cuda.current_stream(gpu))
            with torch.cuda.stream(side):
                made = empty(gpu, size).fill_(step)
                if alive:
                    other = draw.choice(alive)
                    made += other[:1]
                    other.record_stream(side)
            torch.cuda.current_stream(gpu).wait_stream(side)
            made.record_stream(torch.cuda.current_stream(gpu))
            alive.append(made)
        elif act < 0.9 and alive:
            x = alive.pop(draw.randrange(len(alive)))
            seen.append((x[:1].clone(), x[-1:].clone(), x.numel()))
        elif act > 0.96:
            torch.cuda.empty_cache()
        if len(alive) > 24:
            del alive[:12]
        assert step % 10 or accounts(gpu)
    values = [(first.item(), last.item(), n) for first, last, n in seen]
    stats = torch.cuda.memory_stats(gpu)
    assert stats["reserved_bytes.all.current"] >= stats["allocated_bytes.all.current"]
    names = ("requested_bytes.all.allocated", "allocation.all.allocated")
    return values, [stats[name] - base[name] for name in names]


@pytest.mark.parametrize("seed", range(2))
def test_random_programs(gpu, schedule, seed):
    gc.collect()
    torch.cuda.synchronize(gpu)
    torch.cuda.empty_cache()
    reserved = torch.cuda.memory_reserved(gpu)
    expected = trace(gpu, seed)
    set_expandable(True)
    try:
        assert trace(gpu, seed) == expected
        assert segments(gpu)
    finally:
        set_expandable(False)
    torch.cuda.synchronize(gpu)
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved(gpu) == reserved and not segments(gpu)


def test_streams_have_segments_of_their_own(expandable, schedule):
    gpu = expandable
    side = torch.cuda.Stream(gpu)
    x = empty(gpu, 5 * MiB).fill_(1)
    with torch.cuda.stream(side):
        y = empty(gpu, 5 * MiB).fill_(2)
    assert len({s["stream"] for s in segments(gpu)}) == 2
    x.record_stream(side)
    with torch.cuda.stream(side):
        side.wait_stream(torch.cuda.default_stream(gpu))
        z = x + y
    address = x.data_ptr()
    del x
    torch.cuda.empty_cache()  # waits for that use
    w = empty(gpu, 5 * MiB).fill_(7)
    torch.cuda.synchronize(gpu)
    assert z.sum(dtype=torch.int64).item() == 15 * MiB
    assert w[0].item() == 7 and address
    del w, y, z


def test_graphs_keep_their_pages(expandable, schedule):
    gpu = expandable
    x = torch.ones(3 * MiB, device=gpu)

    def work(x=x):
        return (x * 2 + x).sum()

    work()
    torch.cuda.synchronize(gpu)
    g, y = captured(work, gpu)
    torch.cuda.empty_cache()
    more = [empty(gpu, 3 * MiB) for _ in range(3)]
    for n in range(1, 4):
        x.fill_(n)
        g.replay()
        assert y.item() == 9 * n * MiB
    held = torch.cuda.memory_reserved(gpu)
    assert accounts(gpu)
    del g, y, work
    torch.cuda.synchronize(gpu)
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved(gpu) < held
    del x, more


def test_switching_back(expandable):
    """Ordinary segments serve the program again, though pages are free."""
    gpu = expandable
    x, y = empty(gpu, 4 * MiB).fill_(1), empty(gpu, 4 * MiB)
    del y
    set_expandable(False)
    y = empty(gpu, 4 * MiB).fill_(2)
    kinds = [
        s["is_expandable"] for s in torch.cuda.memory_snapshot() if s["allocated_size"]
    ]
    assert True in kinds and False in kinds
    assert [x[-1].item(), y[-1].item()] == [1, 2]
    del x, y


def test_two_gpus(two_gpus):
    for gpu in two_gpus:
        torch.cuda.synchronize(gpu)
    torch.cuda.empty_cache()
    set_expandable(True)
    try:
        x = torch.arange(3.0 * MiB, device=two_gpus[0])
        y = x.to(two_gpus[1])
        assert (y[-1].item(), y.sum().item()) == (3 * MiB - 1, x.sum().item())
        x.copy_(y + 1)
        assert x[0].item() == 1
        assert {
            s["device"] for s in torch.cuda.memory_snapshot() if s["is_expandable"]
        } == {0, 1}
    finally:
        set_expandable(False)
    del x, y
    torch.cuda.empty_cache()


RACE = """
import pydevtensor as torch
torch.cuda.simulate(1)
side = torch.cuda.Stream()
x = torch.ones(4 << 20, device="cuda")
with torch.cuda.stream(side):
    y = x + 1
"""


def test_races_are_found():
    said = python(
        RACE,
        fails=True,
        PYDEVTENSOR_SIM_RACES="error",
        PYTORCH_ALLOC_CONF="expandable_segments:True",
    )
    assert "Missing between" in said and "wait_stream" in said
