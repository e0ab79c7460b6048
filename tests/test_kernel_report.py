"""Kernel.report(): kernels whose figures are known by hand."""

import pytest
from kernel_programs import compiled, run, simulated

import pydevtensor as torch

pytestmark = simulated

SOURCE = r"""
__global__ void together(const float *x, float *y) { y[threadIdx.x] = x[threadIdx.x]; }
__global__ void apart(const float *x, float *y)
{
    y[threadIdx.x] =
        x[32 * threadIdx.x];
}
__global__ void wide(const float4 *x, float4 *y) { y[threadIdx.x] = x[threadIdx.x]; }
__global__ void banks(float *y, int step)
{
    __shared__ float s[1024];
    s[threadIdx.x * step] = 1;
    __syncthreads();
    y[threadIdx.x] = s[0];
}
__global__ void branch(float *y)
{
    if (threadIdx.x % 32 < 8)
        y[threadIdx.x] = 1;
    for (int i = 0; i < threadIdx.x % 2; i++)
        y[threadIdx.x + 64] += 1;
}
__global__ void histogram(int *n, int bins) { atomicAdd(&n[threadIdx.x % bins], 1); }
__global__ void turns(const float *x, float *y)
{
    float sum = 0;
    for (int i = 0; i < 10; i++)
        sum += x[i];
    y[threadIdx.x] = sum;
}
"""


def at(report, text):
    (line,) = (each for each in report.lines if text in each.source)
    return line


def new(device):
    return torch.zeros(2048, device=device)


def test_neighbours_share_sectors(here):
    x, y = new(here), new(here)
    line = at(compiled(SOURCE, "together").report(2, 64, (x, y)), "together")
    assert (line.runs, line.bytes_read, line.bytes_written) == (128, 512, 512)
    assert line.requests == 8  # two of each of four warps
    assert line.sectors_per_request == line.sectors_needed == 4
    assert line.idle == 0
    assert line.bank_conflicts == line.collisions == 0


def test_a_stride_takes_a_sector_for_each_lane(here):
    x, y = new(here), new(here)
    line = at(compiled(SOURCE, "apart").report(1, 32, (x, y)), "x[32")
    assert line.line == 6
    assert line.sectors_per_request == 32
    assert line.sectors_needed == 4


def test_vectors_take_whole_sectors(here):
    x, y = new(here), new(here)
    line = at(compiled(SOURCE, "wide").report(1, 32, (x, y)), "wide")
    assert line.bytes_read == 512
    assert line.sectors_per_request == line.sectors_needed == 16


@pytest.mark.parametrize(("step", "ways"), [(1, 1), (2, 2), (32, 32), (31, 1)])
def test_bank_conflicts(here, step, ways):
    y = new(here)
    report = compiled(SOURCE, "banks").report(1, 32, (y, step))
    line = at(report, "= 1;")
    assert line.bank_conflicts == ways
    assert line.shared_bytes == 128
    assert line.sectors == 0
    assert at(report, "= s[0]").bank_conflicts == 1  # one word for all lanes
    assert report.shared_memory == 4096


def test_lanes_idle_in_a_branch_and_a_loop(here):
    y = new(here)
    report = compiled(SOURCE, "branch").report(1, 64, (y,))
    assert at(report, "x] = 1;").idle == 0.75
    assert at(report, "x] = 1;").runs == 16
    assert at(report, "+= 1;").idle == 0.5


@pytest.mark.parametrize(("bins", "lanes"), [(1, 32), (4, 8), (32, 1)])
def test_atomics_collide(here, bins, lanes):
    n = torch.zeros(32, dtype=torch.int32, device=here)
    line = at(compiled(SOURCE, "histogram").report(1, 64, (n, bins)), "atomicAdd")
    assert line.collisions == lanes
    assert n.sum().item() == 64  # the launch is one as any other


def test_a_loop_counts_each_turn(here):
    x, y = new(here), new(here)
    line = at(compiled(SOURCE, "turns").report(1, 32, (x, y)), "x[i]")
    assert line.runs == 320
    assert line.sectors_per_request == 1


def test_occupancy(here):
    y = new(here)
    kernel = compiled(SOURCE, "banks")
    limits = torch.cuda.get_device_properties(0)
    most = limits.max_threads_per_multi_processor
    report = kernel.report(10_000, 32, (y, 1), shared_mem=8192)
    fit = (limits.shared_memory_per_block_optin + 1024) // (8192 + 4096 + 1024)
    assert (report.blocks, report.limit) == (fit, "shared memory")
    assert report.occupancy == fit * 32 / most
    assert kernel.report(1, 32, (y, 1)).limit == "grid"


@pytest.mark.parametrize(
    ("card", "blocks", "threads"),
    [("t4", 16, 1024), ("a10", 16, 1536), ("l4", 24, 1536), ("h100", 32, 2048)],
)
def test_blocks_of_a_multiprocessor(card, blocks, threads):
    """The figures of CUDA's table of compute capabilities."""
    program = """
f = torch.cuda.compile_kernel("__global__ void f(int *n) { n[threadIdx.x] = 1; }")
r = f.report(9000, 32, (torch.zeros(32, dtype=torch.int32, device="cuda"),))
print(r.blocks, r.limit, r.occupancy)"""
    printed, wrong = run(program, PYDEVTENSOR_SIM_CARD=card)
    assert printed == f"{blocks} blocks {blocks * 32 / threads}\n", wrong


def test_text_and_html(here):
    x, y = new(here), new(here)
    report = compiled(SOURCE, "apart").report(1, 32, (x, y))
    assert "occupancy" in str(report).splitlines()[0]
    assert "x[32 * threadIdx.x];" in str(report)
    page = report._repr_html_()
    assert page.count("<tr>") == 1 + len(report.lines)
    assert (
        "<script"
        not in compiled("__global__ void f(int *n) { *n = 1; /* <script> */ }")
        .report(1, 1, (torch.zeros(1, dtype=torch.int32, device=x.device),))
        ._repr_html_()
    )


def test_a_kernel_without_checks_is_refused(here):
    x, y = new(here), new(here)
    with torch.cuda.kernel_checks("off"):
        kernel = compiled(SOURCE + "// without checks", "together")
        with pytest.raises(RuntimeError, match="no checks"):
            kernel.report(1, 32, (x, y))


def test_a_mistake_is_an_error_and_ends_the_counting(here):
    x, y = new(here), new(here)
    kernel = compiled(SOURCE, "together")
    with pytest.raises(torch.cuda.KernelError):
        kernel.report(1, 1024, (x, y[:8]))
    assert at(kernel.report(1, 32, (x, y)), "together").runs == 32
