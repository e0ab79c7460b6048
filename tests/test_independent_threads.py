"""Threads that share only what they read: for `make tsan`, and for results that are right."""

import threading

from conftest import DEVICES

import pydevtensor as torch

THREADS, TURNS = 4, 3


def in_threads(function):
    """Runs function(number) in threads, and raises the first error."""
    errors = []

    def run(number):
        try:
            function(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def one_turn(x, device):
    """Sums that have to be alike in all threads."""
    w = torch.full((300, 40), 0.01, device=device, requires_grad=True)
    y = (x @ w).relu()
    (y * y).sum().backward()
    ordered = torch.sort(x, 1, descending=True)[0][:, ::2].cumsum(0)
    long = torch.ones(300_000, device=device).mul_(2).add(1)
    chosen = x[x > 0.5]
    joined = torch.cat([x, x]).t().contiguous().cpu()
    soft = torch.nn.functional.softmax(x, 1)
    found = [w.grad, ordered, long, chosen, joined, soft, torch.nonzero(x > 0.9)]
    return [part.sum().item() for part in found]


def test_every_thread_computes_the_same():
    x = torch.arange(60_000.0).reshape(200, 300) / 6e4
    kept = {d: x.to(d) for d in DEVICES}
    for d in DEVICES[1:]:
        torch.cuda.synchronize(d)
    wanted = {d: one_turn(kept[d], d) for d in DEVICES}

    def run(number):
        for turn in range(TURNS):
            d = DEVICES[(number + turn) % len(DEVICES)]
            assert one_turn(kept[d], d) == wanted[d], d

    in_threads(run)


def test_streams_of_threads(gpu):
    x = torch.arange(1000.0, device=gpu)
    torch.cuda.synchronize(gpu)

    def run(number):
        stream = torch.cuda.Stream(gpu)
        for turn in range(TURNS):
            with torch.cuda.stream(stream):
                y = x * (number + 1)
                done = stream.record_event()
            torch.cuda.current_stream(gpu).wait_event(done)
            y.record_stream(torch.cuda.current_stream(gpu))
            assert (y + turn).sum().item() == 499_500 * (number + 1) + 1000 * turn

    in_threads(run)


def test_random_numbers_and_memory_of_threads(device):
    def run(number):
        for _ in range(TURNS):
            many = [torch.rand(n, device=device) for n in (3, 700, 20_000)]
            assert all(r.min().item() >= 0 and r.max().item() < 1 for r in many)
            assert torch.randperm(100, device=device).sum().item() == 4950

    in_threads(run)
