"""What the host does for an operation on a GPU: calls of the CUDA runtime, which on a
real GPU take most of its time, and blocks of the allocator."""

import itertools

import pytest
from conftest import SIMULATED

import pydevtensor as torch

only_simulated = pytest.mark.skipif(not SIMULATED, reason="counts simulated calls")


def calls_of(work):
    """How many calls of the runtime work() makes, once its memory is there."""
    kept = work()
    del kept
    before = torch.cuda.sim_counters()["calls"]
    work()
    return torch.cuda.sim_counters()["calls"] - before


def asked(gpu):
    """The calls that ask for the current device; for another one than the first, they
    change it, and change it back."""
    return 1 if torch.device(gpu).index == 0 else 3


OPERATIONS = {
    "a + b": lambda a, b: a + b,
    "in place": lambda a, b: a.add_(b),
    "with a number": lambda a, b: a * 2.0,
    "with a row": lambda a, b: a + b[:1],
    "sum": lambda a, b: a.sum(),
    "copy": lambda a, b: a.copy_(b),
    "transposed copy": lambda a, b: a.copy_(b.t()),
    "fill": lambda a, b: a.zero_(),
    "matmul": lambda a, b: a @ b,
}


@only_simulated
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_asks_for_its_device_and_queues_its_work(name, gpu):
    with torch.cuda.device(gpu):
        a, b = torch.ones(40, 40, device=gpu), torch.ones(40, 40, device=gpu)
        assert calls_of(lambda: OPERATIONS[name](a, b)) == asked(gpu) + 1


@only_simulated
def test_memory_that_the_cache_has_is_no_call_of_the_runtime(gpu):
    with torch.cuda.device(gpu):
        for shape in ((3,), (1000,), (1000, 1000)):
            assert calls_of(lambda s=shape: torch.empty(s, device=gpu)) == 0


@only_simulated
def test_recording_an_event(gpu):
    with torch.cuda.device(gpu):
        event = torch.cuda.Event()
        assert calls_of(event.record) == asked(gpu) + 1


def test_an_operation_in_the_memory_that_another_one_gave_back(gpu):
    """Blocks of all sizes, given back in another order than they were taken in."""
    sizes = [1, 128, 129, 1000, 5000, 262_144, 262_145, 300_000, 3_000_000]
    generator = torch.Generator().manual_seed(3)
    before = torch.cuda.memory_allocated(gpu)
    taken = {}
    for n in range(400):
        place = int(torch.randint(0, 12, (), generator=generator))
        size = sizes[int(torch.randint(0, len(sizes), (), generator=generator))]
        taken.pop(place, None)
        taken[place] = torch.full((size,), float(n), device=gpu), n
        if n % 40 == 0:
            for tensor, number in taken.values():
                assert tensor[0].item() == tensor[-1].item() == number
    pointers = sorted(
        (tensor.data_ptr(), tensor.nbytes) for tensor, _ in taken.values()
    )
    for (first, bytes_), (second, _) in itertools.pairwise(pointers):
        assert first + bytes_ <= second
    taken.clear()
    del tensor
    assert torch.cuda.memory_allocated(gpu) == before
    with torch.cuda.device(gpu):  # what is free has merged
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        if before == 0:
            assert torch.cuda.memory_reserved() == 0


def test_the_smallest_free_block_is_taken(gpu):
    torch.cuda.synchronize(gpu)
    torch.cuda.empty_cache()
    with torch.cuda.device(gpu):
        # In one segment: four blocks, between ones that stay.
        sizes = (900, 300, 600, 150)
        blocks, walls = [], []
        for size in sizes:
            blocks.append(torch.empty(size, device=gpu))
            walls.append(torch.empty(1, device=gpu))
        places = {size: b.data_ptr() for size, b in zip(sizes, blocks, strict=True)}
        blocks.clear()
        again = {size: torch.empty(size, device=gpu) for size in (140, 290, 500, 800)}
        assert [t.data_ptr() for t in again.values()] == [
            places[150],
            places[300],
            places[600],
            places[900],
        ]


def test_more_blocks_than_the_table_of_them_has_places(gpu):
    with torch.cuda.device(gpu):
        many = [torch.full((4,), float(n), device=gpu) for n in range(2000)]
        torch.cuda.synchronize()
        assert [t[3].item() for t in many[::97]] == [*range(0, 2000, 97)]
        del many[::2]
        assert [t[0].item() for t in many[::97]] == [*range(1, 2000, 194)]
