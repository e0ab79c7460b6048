"""Every copy between devices and every synchronization is counted, and there are no others."""

import threading

import pytest

import pydevtensor as torch


def counted(work):
    with torch.cuda.transfers() as seen:
        work()
    return {name: n for name, n in seen.counts().items() if n}


def test_directions(two_gpus):
    a, b = two_gpus
    x = torch.ones(10)
    y = x.to(a)
    assert counted(lambda: x.to(a)) == {"host_to_device": 1, "host_to_device_bytes": 40}
    assert counted(lambda: y.to(b)) == {
        "device_to_device": 1,
        "device_to_device_bytes": 40,
    }
    assert counted(y.cpu) == {
        "device_to_host": 1,
        "device_to_host_bytes": 40,
        "waits": 1,
    }


def test_nothing_to_do_copies_nothing(gpu):
    y = torch.ones(10, device=gpu)
    assert counted(lambda: y.to(gpu)) == {}
    assert counted(lambda: y.cuda(gpu)) == {}
    x = torch.ones(3)
    assert counted(lambda: x.cpu()) == {}
    assert counted(lambda: x + 1) == {}


def test_work_does_not_wait(gpu):
    x = torch.rand(50, 50, device=gpu)
    x @ x  # the first product loads cuBLAS

    def work():
        y = x @ x + 2 * x
        y = y.sum(dim=0).exp() - x[0] ** 2
        y += 1
        y[3] = 7
        y[4] = y[5]
        torch.zeros(5, device=gpu).fill_(3).reshape(5, 1).T.contiguous()
        torch.rand(3, device=gpu).norm()

    assert counted(work) == {}


@pytest.mark.parametrize("ask", [lambda x: x.item(), float, bool, int])
def test_a_value_costs_one_wait(gpu, ask):
    x = torch.tensor(3.0, device=gpu)
    assert counted(lambda: ask(x)) == {
        "device_to_host": 1,
        "device_to_host_bytes": 4,
        "waits": 1,
    }


def test_printing_fetches_what_is_shown(gpu):
    x = torch.rand(1000, 1000, device=gpu)
    seen = counted(lambda: repr(x))
    assert seen["device_to_host"] == 1 and seen["device_to_host_bytes"] <= 4 * 36


def test_waits(gpu):
    assert counted(lambda: torch.cuda.synchronize(gpu)) == {"waits": 1}
    assert counted(torch.cuda.default_stream(gpu).synchronize) == {"waits": 1}
    event = torch.cuda.default_stream(gpu).record_event()
    assert counted(event.synchronize) == {"waits": 1}
    assert counted(lambda: torch.cuda.Stream(gpu).wait_event(event)) == {}


def test_as_a_record(gpu):
    seen = torch.cuda.transfers()
    x = torch.ones(2).to(gpu)
    assert seen.host_to_device == 1 and seen.host_to_device_bytes == 8
    assert repr(seen).startswith("transfers(host_to_device=1, host_to_device_bytes=8, ")
    seen.reset()
    assert seen.host_to_device == 0
    with torch.cuda.transfers() as block:
        x.tolist()
    x.tolist()
    assert (block.waits, seen.waits) == (1, 2)
    with pytest.raises(AttributeError, match="counts"):
        _ = seen.nothing


def test_the_simulator_counts_the_same(gpu):
    if not torch.cuda.is_simulated():
        pytest.skip("needs simulated GPUs")
    before = torch.cuda.sim_counters(gpu)
    x = torch.ones(64).to(gpu)
    x.cpu()
    after = torch.cuda.sim_counters(gpu)
    assert after["copies_to_device"] - before["copies_to_device"] == 1
    assert after["bytes_to_host"] - before["bytes_to_host"] == 256


@pytest.mark.parametrize("n", [1, 16 << 10, (16 << 10) + 1, 1 << 18, (5 << 20) + 3])
def test_the_source_may_change_at_once(gpu, n):
    """Slots for pieces of 64 KiB and of 1 MiB, and more pieces than slots."""
    x = torch.arange(n, dtype=torch.int32)
    copies = [x.to(gpu), x.flip(0).to(gpu)]
    x.zero_()
    assert torch.equal(copies[0].cpu(), torch.arange(n, dtype=torch.int32))
    assert torch.equal(copies[1].cpu(), copies[0].cpu().flip(0))


def test_threads_upload_at_the_same_time(gpu):
    rows = [torch.full(((3 << 18) + k,), float(k)) for k in range(4)]
    seen = [None] * len(rows)

    def upload(k):
        for _ in range(5):
            seen[k] = rows[k].to(gpu)

    threads = [threading.Thread(target=upload, args=(k,)) for k in range(len(rows))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for row, copy in zip(rows, seen, strict=True):
        assert torch.equal(copy.cpu(), row)
