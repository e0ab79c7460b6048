"""The clock's prices of the program's own kernels, by what their threads do."""

import json

import pytest
from isolated import T4, python

# What the clock takes the T4 for: bytes/s reached, cycles/s, multiprocessors.
BANDWIDTH, CYCLES, MULTIPROCESSORS = 320e9 * 0.85, 8.1e12 / (2 * 64 * 40), 40

START = r"""
import json
import pydevtensor as torch

module = torch.cuda.RawModule(code=r'''
__global__ void copy(const float *x, float *y, int n, int step)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i * step];
}
__global__ void banks(float *y, int step, int turns)
{
    __shared__ float s[1024];
    int at = threadIdx.x * step % 1024 + threadIdx.x * step / 1024;
    for (int i = 0; i < turns; i++) s[at] = i;
    y[blockIdx.x * blockDim.x + threadIdx.x] = s[at];
}
__global__ void first(const float *x, float *y, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++) sum += x[8 * i];
    *y = sum;
}
__global__ void again(const float *x, float *y, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++) sum += x[i % 8];
    *y = sum;
}
__global__ void count(int *n, int apart) { atomicAdd(&n[threadIdx.x % 32 * apart], 1); }
__global__ void half(float *y, int lanes)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int turn = 0; turn < 200; turn++)
        if (threadIdx.x % 32 < lanes) y[i] = turn;
}
__global__ void twice(const float *x, float *y, int n)
{
    float sum = 0;
    for (int turn = 0; turn < 2; turn++, __syncthreads())
        for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
    y[threadIdx.x] = sum;
}
''')

def worked():
    # Of the GPU's kernels, beyond their least times.
    torch.cuda.synchronize()
    device = json.loads(torch._C._sim_control("clock"))["cards"][0]["devices"][0]
    return 1e-9 * (device["bandwidth"] + device["accesses"] + device["flops"])

def timed(name, grid, block, *args):
    before = worked()
    module.get_function(name)((grid,), (block,), args)
    return worked() - before
"""


def measure(code, **chosen):
    """What the program prints as JSON: seconds."""
    return json.loads(
        python(START + code, PYDEVTENSOR_SIM_GPUS="1", **{**T4, **chosen})
    )


def test_bytes_are_those_that_threads_touch():
    whole, part, apart = measure("""
n = 1 << 18
x, y = torch.ones(8 * n, device="cuda"), torch.empty(n, device="cuda")
print(json.dumps([
    timed("copy", n // 256, 256, x, y, n, 1),
    timed("copy", n // 256, 256, x, y, n // 2, 1),
    timed("copy", n // 256, 256, x, y, n, 8)]))
""")
    moved = 4 * (1 << 18)
    assert whole == pytest.approx(2 * moved / BANDWIDTH, rel=1e-3)
    assert part == pytest.approx(moved / BANDWIDTH, rel=1e-3)
    # A sector for each element that is read.
    assert apart == pytest.approx(9 * moved / BANDWIDTH, rel=1e-3)


def test_a_small_cache_reads_again():
    """20 MB, twice: more than the T4's cache has. A sixteenth of that fits."""
    code = """
n = 5 << 20
x, y = torch.ones(n, device="cuda"), torch.empty(1024, device="cuda")
print(json.dumps([timed("twice", 1, 1024, x, y, n), timed("twice", 1, 1024, x, y, n // 16)]))
"""
    large, small = measure(code)
    # One block has a fortieth of the bandwidth.
    bandwidth = BANDWIDTH / MULTIPROCESSORS
    assert large == pytest.approx(2 * (20 << 20) / bandwidth, rel=1e-2)
    assert small == pytest.approx((20 << 20) / 16 / bandwidth, rel=1e-2)


def test_conflicts_of_banks_cost_turns():
    none, two, all_lanes = measure("""
y = torch.empty(40 * 1024, device="cuda")
print(json.dumps([timed("banks", 40, 1024, y, step, 50) for step in (1, 2, 32)]))
""")
    # 50 requests of 32 warps in each multiprocessor, and one that reads.
    cycles = 51 * 32
    assert all_lanes > 25 * cycles / CYCLES
    assert none < two < all_lanes
    assert two == pytest.approx((2 * cycles + 32 * 1) / CYCLES, rel=0.05)


def test_one_thread_waits_for_its_data():
    first, again = measure("""
n = 10000
x, y = torch.ones(8 * n, device="cuda"), torch.empty(1, device="cuda")
print(json.dumps([timed(name, 1, 1, x, y, n) for name in ("first", "again")]))
""")
    assert first == pytest.approx(10000 * 500 / 2 / CYCLES, rel=0.02)
    assert again == pytest.approx(10000 * 30 / 2 / CYCLES, rel=0.02)


def test_lanes_at_one_address_take_turns():
    together, apart = measure("""
n = torch.zeros(32, dtype=torch.int32, device="cuda")
print(json.dumps([timed("count", 4000, 256, n, apart) for apart in (0, 1)]))
""")
    requests = 4000 * 8 / MULTIPROCESSORS
    assert together == pytest.approx(32 * requests / CYCLES, rel=1e-3)
    assert apart < together / 3


def test_lanes_that_are_left_out_cost_as_much():
    few, all_lanes = measure("""
y = torch.empty(400 * 256, device="cuda")
print(json.dumps([timed("half", 400, 256, y, lanes) for lanes in (4, 32)]))
""")
    requests = 400 * 8 * 200 / MULTIPROCESSORS
    assert few >= requests / CYCLES
    assert few <= all_lanes < 8 * few


def test_of_many_blocks_some_are_counted():
    """16 of them, which are alike, stand for all."""
    some, more = measure("""
y = torch.empty(320 * 1024, device="cuda")
print(json.dumps([timed("banks", 40 * n, 1024, y, 32, 20) for n in (1, 8)]))
""")
    assert more == pytest.approx(8 * (some), rel=0.02)


@pytest.mark.parametrize(
    "checks", ["torch.cuda.kernel_checks('off')", "torch.cuda.kernel_checks('error')"]
)
def test_what_is_not_counted_costs_its_tensors(checks):
    (seconds,) = measure(f"""
n = 1 << 18
x, y = torch.ones(n, device="cuda"), torch.ones(n, device="cuda")
with {checks}:
    print(json.dumps([timed("copy", 1, 32, x, y, 1, 1)]))
""")
    whole = 8 * (1 << 18) / (BANDWIDTH / MULTIPROCESSORS)
    if "off" in checks:
        assert seconds == pytest.approx(whole, rel=1e-3)
    else:
        assert seconds < whole / 50


def test_a_replay_costs_what_it_counts():
    once, replay = measure("""
n = 1 << 18
x, y = torch.ones(n, device="cuda"), torch.ones(n, device="cuda")
once = timed("copy", 8, 256, x, y, 2048, 1)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    module.get_function("copy")((8,), (256,), (x, y, 2048, 1))
before = worked()
graph.replay()
print(json.dumps([once, worked() - before]))
""")
    assert replay == pytest.approx(once, rel=1e-3)


@pytest.mark.slow
def test_the_schedule_does_not_change_the_time():
    code = (
        START
        + """
n = 1 << 14
x, y = torch.ones(8 * n, device="cuda"), torch.empty(n, device="cuda")
side = torch.cuda.Stream()
copy = module.get_function("copy")
copy((n // 256,), (256,), (x, y, n, 2))
with torch.cuda.stream(side):
    z = torch.ones(1000, device="cuda")
    copy((4,), (256,), (z, z + 1, 1000, 1))
torch.cuda.synchronize()
copy((n // 256,), (256,), (x, y, n, 8))
module.get_function("banks")((40,), (1024,), (torch.empty(40960, device="cuda"), 32, 50))
torch.cuda.synchronize()
print(torch.cuda.clock(), torch._C._sim_control("clock"))
"""
    )
    chosen = {"PYDEVTENSOR_SIM_GPUS": "1", **T4, "PYDEVTENSOR_SIM_CARD": "t4,h200"}
    schedules = ("eager", "lazy", "random:1", "random:2")
    said = {
        schedule: python(code, PYDEVTENSOR_SIM_SCHEDULE=schedule, **chosen)
        for schedule in schedules
    }
    assert len(set(said.values())) == 1, said
    assert json.loads(said["lazy"].split(maxsplit=1)[1])["cards"][0]["devices"][0][
        "accesses"
    ]


def test_a_launch_runs_when_the_clock_prices_it():
    """An error of it is still that of the next synchronization."""
    out = python(
        """
import pydevtensor as torch
wrong = torch.cuda.compile_kernel("__global__ void wrong(int *x) { x[9] = 1; }")
x = torch.zeros(2, dtype=torch.int32, device="cuda")
wrong(1, 1, (x,))
print("queued")
try:
    torch.cuda.synchronize()
except torch.cuda.KernelError as error:
    print(error.kind, error.line)
""",
        PYDEVTENSOR_SIM_GPUS="1",
        PYDEVTENSOR_SIM_SCHEDULE="lazy",
        **T4,
    )
    assert out.split() == ["queued", "out_of_bounds", "1"]
