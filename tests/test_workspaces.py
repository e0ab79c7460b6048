"""The memory that matrix products on a GPU work with: it is the allocator's."""

import pytest
from conftest import SIMULATED
from isolated import python

import pydevtensor as torch

only_simulated = pytest.mark.skipif(not SIMULATED, reason="knows the simulator's sizes")
USUAL = 64 << 10  # of a simulated GPU


@pytest.fixture(params=["eager", "lazy", "random:3"])
def schedule(request):
    """The schedules of simulated GPUs, one after the other."""
    if not SIMULATED:
        pytest.skip("schedules are those of simulated GPUs")
    before = torch._C._sim_control("schedule")
    torch.cuda.sim_schedule(request.param)
    yield
    torch.cuda.synchronize()
    torch.cuda.sim_schedule(before)


def test_a_workspace_is_counted_while_a_product_has_it(gpu):
    with torch.cuda.device(gpu):
        a = torch.ones(64, 64, device=gpu)
        c = a @ a
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        d = a @ a
        result = 64 * 64 * 4
        assert torch.cuda.memory_allocated() == before + result
        peak = torch.cuda.max_memory_allocated() - before - result
        assert peak == USUAL if SIMULATED else peak > 1 << 20
        del c, d


@only_simulated
def test_products_allocate_nothing_else(gpu):
    with torch.cuda.device(gpu):
        a = torch.ones(64, 64, device=gpu)
        b = a @ a
        mallocs = torch.cuda.sim_counters()["mallocs"]
        for _ in range(5):
            b = a @ b / 64
        assert torch.cuda.sim_counters()["mallocs"] == mallocs
        assert b[3, 5].item() == 64


def test_workspaces_go_back_with_the_cache(gpu):
    with torch.cuda.device(gpu):
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        before = torch.cuda.memory_reserved()
        a = torch.ones(64, 64, device=gpu)
        for stream in [torch.cuda.Stream() for _ in range(3)]:
            stream.wait_stream(torch.cuda.current_stream())
            with stream:
                assert (a @ a).sum().item() == 64**3
        del a, stream
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        assert torch.cuda.memory_reserved() == before


PEAK = """
import pydevtensor as torch
torch.cuda.simulate(1)
a = torch.ones(64, 64, device="cuda")
for b in (a, torch.eye(64, device="cuda")):
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    c = a @ b
    print(torch.cuda.max_memory_allocated() - before - c.nbytes, c.sum().item())
"""


@only_simulated
@pytest.mark.parametrize(
    ("text", "size"),
    [
        (":16:8", 128 << 10),
        (":4096:2:16:8", (8 << 20) + (128 << 10)),
        (":4096:8", 32 << 20),
        ("garbage", USUAL),
        (":", USUAL),
        (":16", USUAL),
        (":-16:8", USUAL),
        ("", USUAL),
    ],
)
def test_the_environment_says_how_large(text, size):
    out = python(PEAK, CUBLAS_WORKSPACE_CONFIG=text).split()
    assert out == [str(size), str(64.0**3), str(size), str(64.0**2)]


@only_simulated
def test_the_environment_may_say_none():
    """Not NULL, which would be cuBLAS's own."""
    out = python(PEAK, CUBLAS_WORKSPACE_CONFIG=":0:0").split()
    assert out == ["512", str(64.0**3), "512", str(64.0**2)]


@only_simulated
def test_a_workspace_that_does_not_fit():
    out = python(
        """
import pydevtensor as torch
torch.cuda.simulate(1, memory="64M")
a = torch.ones(2, 2, device="cuda")
try:
    a @ a
except torch.cuda.OutOfMemoryError as error:
    print(error)
print((a + 1).tolist())
""",
        CUBLAS_WORKSPACE_CONFIG=":99999999999999999999:99999999999999999999",
    )
    assert "MiB requested" in out
    assert out.splitlines()[-1] == "[[2.0, 2.0], [2.0, 2.0]]"


def test_a_graph_has_a_workspace_of_its_own(gpu, schedule):
    """Products of the stream that captured, and of others, run beside its replays."""
    with torch.cuda.device(gpu):
        a = torch.randn(40, 40, device=gpu)
        expected = (a @ a) @ a
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g, stream=stream):
            y = (a @ a) @ a
        for _ in range(3):
            g.replay()
            with stream:  # which nothing orders with the replay
                z = (a @ a) @ a
            with torch.cuda.stream(torch.cuda.Stream()):
                w = (a @ a) @ a
            torch.cuda.synchronize()
            for result in (y, z, w):
                assert torch.equal(result, expected)
            y.zero_()


def test_the_workspace_of_a_graph_goes_with_it(gpu):
    with torch.cuda.device(gpu):
        a = torch.ones(40, 40, device=gpu)
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            y = a @ a
        g.replay()
        assert y[0, 0].item() == 40
        del y
        g.reset()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        assert (torch.cuda.memory_allocated(), torch.cuda.memory_reserved()) == before


@only_simulated
def test_the_race_detector_knows_workspaces():
    python("""
import pydevtensor as torch
torch.cuda.simulate(1, races="error")
a = torch.ones(40, 40, device="cuda")
torch.cuda.synchronize()
side = torch.cuda.Stream()
for _ in range(4):
    b = a @ a
    with side:
        c = a @ a
    torch.linalg.solve_triangular(a, a, upper=True)
torch.cuda.synchronize()
""")


@only_simulated
def test_a_row_of_biases_costs_no_launch_of_its_own(gpu):
    layer = torch.nn.Linear(32, 16, device=gpu)
    x = torch.ones(8, 32, device=gpu)

    def launches(x, layer):
        before = torch.cuda.sim_counters(gpu)["launches"]
        with torch.no_grad():
            layer(x)
        return torch.cuda.sim_counters(gpu)["launches"] - before

    assert launches(x, layer) == 1
    # cuBLASLt may know no way for memory that begins anywhere; then the row is copied.
    odd = torch.ones(8 * 32 + 1, device=gpu)[1:].reshape(8, 32)
    assert launches(odd, layer) == 2
    assert torch.equal(layer(odd), layer(x))


@only_simulated
def test_a_way_that_cublaslt_refuses_is_not_tried_again(gpu):
    """It may say so when it multiplies, after it has chosen the way."""

    def launches(rows):
        x = torch.ones(rows, 24, device=gpu)
        before = torch.cuda.sim_counters(gpu)["launches"]
        with torch.no_grad():
            assert layer(x).shape == (rows, 16)
        return torch.cuda.sim_counters(gpu)["launches"] - before

    layer = torch.nn.Linear(24, 16, device=gpu)
    torch.cuda.sim_fail("cublaslt:1")
    refused = launches(11)  # once, and it knows how from then on
    assert launches(11) == refused == launches(13) + 1
