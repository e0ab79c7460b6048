"""Blocks of simulated grids run on several threads of the host: the bits are those of
one thread."""

import numpy as np
import pytest

import pydevtensor as torch

F = torch.nn.functional
pytestmark = pytest.mark.skipif(
    not (torch.cuda.is_available() and torch.cuda.is_simulated()),
    reason="needs simulated GPUs",
)


@pytest.fixture
def threads():
    """Runs a function on one thread and on four, and gives the bytes of its results."""
    before = torch.get_num_threads()
    schedule_before = torch._C._sim_control("schedule")

    def run(function, schedule):
        found = []
        for count in (1, 4):
            torch.set_num_threads(count)
            torch.cuda.sim_schedule(schedule)
            results = function()
            torch.cuda.synchronize()
            given = results if isinstance(results, (tuple, list)) else [results]
            found.append([r.detach().cpu().numpy().tobytes() for r in given])
        return found

    yield run
    torch.set_num_threads(before)
    torch.cuda.sim_schedule(schedule_before)


def data(*shape):
    values = np.random.default_rng(1).standard_normal(shape)
    return torch.tensor(values.astype(np.float32), device="cuda:0")


def places(n, most):
    return torch.tensor(np.random.default_rng(2).integers(0, most, n), device="cuda:0")


def gradient(function, *inputs):
    leaves = [x.clone().requires_grad_() for x in inputs]
    function(*leaves).square().sum().backward()
    return [x.grad for x in leaves]


CASES = {
    "elements": lambda: torch.sin(data(300, 700)) * 2,
    "atomic sums of floats": lambda: torch.zeros(50, device="cuda:0").index_add(
        0, places(40000, 50), data(40000)
    ),
    "gradient of an embedding": lambda: gradient(
        lambda w: F.embedding(places(20000, 90), w), data(90, 12)
    ),
    "sort of several tiles": lambda: torch.sort(data(50000)),
    "sort of rows": lambda: torch.sort(data(40, 3000), dim=1, stable=True),
    "scan of one row": lambda: data(60000).cumsum(0),
    "places": lambda: torch.nonzero(data(200, 300) > 0.5),
    "rows": lambda: [F.softmax(data(600, 300), 1), data(600, 300).sum(0)],
    "moments": lambda: F.batch_norm(data(16, 8, 20, 20), None, None, training=True),
    "attention": lambda: F.scaled_dot_product_attention(*[data(2, 4, 100, 16)] * 3),
    "convolution": lambda: gradient(
        lambda x, w: F.conv2d(x, w, padding=1), data(8, 3, 20, 20), data(6, 3, 3, 3)
    ),
    "transposed": lambda: data(300, 500).T.contiguous(),
    "random numbers": lambda: torch.rand(
        70000, generator=torch.Generator("cuda:0").manual_seed(5), device="cuda:0"
    ),
}


@pytest.mark.parametrize("schedule", ["eager", "random:3"])
@pytest.mark.parametrize("name", CASES)
def test_threads_of_the_host_change_no_bit(threads, name, schedule):
    alone, together = threads(CASES[name], schedule)
    assert alone == together


def test_threads_that_launch_in_turn(threads):
    """The stacks of one thread of the host are another's next."""
    import threading

    found = []

    def work(seed):
        torch.manual_seed(seed)
        x = data(64, 300)
        for _ in range(20):
            x = F.softmax(x, 1).cumsum(1)
        found.append(x.cpu().numpy().tobytes())

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert len(found) == 4
    assert len(set(found)) == 1
