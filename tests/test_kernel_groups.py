"""Kernels of the program with cooperative groups, active lanes and other CUDA C."""

import ctypes
import struct

import pytest
from kernel_programs import compiled, simulated

import pydevtensor as torch

GROUPS = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
"""


def ints(*shape, device):
    return torch.zeros(*shape, dtype=torch.int32, device=device)


def test_a_block_and_its_tiles(here):
    source = (
        GROUPS
        + """
        __global__ void f(int *ranks, int *sums, int *scanned, int *around)
        {
            cg::thread_block block = cg::this_thread_block();
            auto warp = cg::tiled_partition<32>(block);
            auto tile = cg::tiled_partition<8>(warp);
            cg::thread_group some = cg::tiled_partition(block, 4);
            int i = block.thread_rank();
            ranks[i] = tile.thread_rank() + 100 * tile.meta_group_rank() + 10000 * some.thread_rank();
            sums[i] = cg::reduce(tile, i, cg::plus<int>());
            scanned[i] = cg::exclusive_scan(tile, i) + 1000 * cg::inclusive_scan(tile, 1);
            around[i] = tile.shfl(i, 2) + 100 * tile.shfl_xor(i, 1) + 10000 * tile.shfl_down(i, 3);
            block.sync(), warp.sync(), some.sync(), cg::sync(tile);
            if (block.size() != 64 || tile.size() != 8 || some.size() != 4) ranks[i] = -1;
        }"""
    )
    results = [ints(64, device=here) for _ in range(4)]
    compiled(source)((1,), (16, 4), (*results,))
    ranks, sums, scanned, around = (result.tolist() for result in results)
    for i in range(64):
        first = i - i % 8
        assert ranks[i] == i % 8 + 100 * (i % 32 // 8) + 10000 * (i % 4)
        assert sums[i] == sum(range(first, first + 8))
        assert scanned[i] == sum(range(first, i)) + 1000 * (i % 8 + 1)
        down = i + 3 if i % 8 < 5 else i
        assert around[i] == first + 2 + 100 * (i ^ 1) + 10000 * down


def test_a_tile_is_one_of_any_parent(here):
    # As courses write it: the type has no parent, and functions take it by value.
    source = (
        GROUPS
        + """
        __device__ int sum(cg::thread_block_tile<32> tile, int x)
        {
            for (int d = tile.size() / 2; d; d /= 2) x += tile.shfl_down(x, d);
            return tile.shfl(x, 0);
        }
        __global__ void f(int *sums, int *ranks)
        {
            cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cg::this_thread_block());
            cg::thread_block_tile<8> tile = cg::tiled_partition<8>(warp);
            const cg::thread_group &any = tile;
            sums[threadIdx.x] = sum(warp, threadIdx.x);
            ranks[threadIdx.x] = any.thread_rank() + 10 * tile.meta_group_rank()
                                 + 100 * warp.meta_group_rank() + 1000 * warp.meta_group_size();
        }"""
    )
    sums, ranks = ints(96, device=here), ints(96, device=here)
    compiled(source)((1,), (96,), (sums, ranks))
    for i, (total, rank) in enumerate(zip(sums.tolist(), ranks.tolist(), strict=True)):
        assert total == sum(range(i - i % 32, i - i % 32 + 32))
        assert rank == i % 8 + 10 * (i % 32 // 8) + 100 * (i // 32) + 3000


@simulated
@pytest.mark.parametrize(
    "call",
    [
        "tile.shfl_down(x, 1)",
        "tile.shfl(x, 0)",
        "tile.shfl_up(x, 1)",
        "tile.shfl_xor(x, 1)",
        "tile.any(x)",
        "tile.all(x)",
        "tile.ballot(x)",
        "tile.match_any(x)",
        "cg::reduce(tile, x, cg::plus<int>())",
        "cg::inclusive_scan(tile, x)",
        "cg::exclusive_scan(tile, x)",
    ],
)
def test_an_operation_of_a_group_in_a_condition_has_its_line(here, call):
    source = (
        GROUPS
        + f"""
__global__ void f(int *y)
{{
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    int x = threadIdx.x;
    if (x < 20)
        x = {call};
    y[threadIdx.x] = x;
}}"""
    )
    compiled(source)((1,), (32,), (ints(32, device=here),))
    with pytest.raises(torch.cuda.KernelError) as caught:
        torch.cuda.synchronize()
    at = source.splitlines().index(f"        x = {call};") + 1
    assert (caught.value.kind, caught.value.line) == ("warp", at), str(caught.value)


def test_coalesced_threads_share_one_atomic(here):
    source = (
        GROUPS
        + """
        __global__ void keep(const int *x, int *out, int *n, int *groups)
        {
            int v = x[threadIdx.x];
            if (v % 3 == 0) {
                auto active = cg::coalesced_threads();
                int at = 0;
                if (active.thread_rank() == 0)
                    at = atomicAdd(n, active.size()), atomicAdd(groups, 1);
                out[active.shfl(at, 0) + active.thread_rank()] = v;
                auto part = cg::labeled_partition(active, v % 2);
                if (part.thread_rank() == 0) atomicAdd(groups + 1, 1);
            }
        }"""
    )
    x = torch.arange(64, dtype=torch.int32, device=here)
    out, n, groups = ints(64, device=here), ints(1, device=here), ints(2, device=here)
    compiled(source)(1, 64, (x, out, n, groups))
    assert sorted(out[: n.item()].tolist()) == [*range(0, 64, 3)]
    assert groups.tolist() == [2, 4]  # one of each warp, and two parts of it


def test_parts_of_a_tile(here):
    source = (
        GROUPS
        + """
        __global__ void f(const int *x, int *sums, int *places)
        {
            auto tile = cg::tiled_partition<16>(cg::this_thread_block());
            int v = x[threadIdx.x];
            auto part = cg::labeled_partition(tile, v % 3);
            sums[threadIdx.x] = cg::reduce(part, v, cg::plus<int>());
            auto half = cg::binary_partition(tile, v > 20);
            places[threadIdx.x] = half.thread_rank() + 100 * half.size() + 10000 * half.meta_group_rank();
        }"""
    )
    x = torch.randint(0, 40, (32,), dtype=torch.int32)
    sums, places = ints(32, device=here), ints(32, device=here)
    compiled(source)(1, 32, (x.to(here), sums, places))
    values = x.tolist()
    for i, v in enumerate(values):
        tile = values[i // 16 * 16 :][:16]
        assert sums[i].item() == sum(w for w in tile if w % 3 == v % 3)
        half = [j for j, w in enumerate(tile) if (w > 20) == (v > 20)]
        rank = int(v > 20 and len(half) < 16)
        assert places[i].item() == half.index(i % 16) + 100 * len(half) + 10000 * rank


def test_active_lanes_of_two_branches(here):
    source = """
        __global__ void f(unsigned *mask)
        {
            if (threadIdx.x < 5) mask[threadIdx.x] = __activemask();
            else mask[threadIdx.x] = __activemask() + 0;
        }"""
    mask = ints(40, device=here)
    compiled(source)(1, 40, (mask,))
    found = [value & 0xFFFFFFFF for value in mask.tolist()]
    # A compiler may make one call of both.
    assert found[0] in (0x1F, 0xFFFFFFFF) and found[39] == 0xFF
    assert all(value >> lane & 1 for lane, value in enumerate(found[:32]))


def test_a_warp_that_is_not_full(here):
    source = (
        GROUPS
        + """
        __global__ void f(int *out)
        {
            auto warp = cg::tiled_partition<32>(cg::this_thread_block());
            int any = warp.any(threadIdx.x == 35);
            int sum = __popc(__ballot_sync(0xffffffff, 1));
            int all; __match_all_sync(0xffffffff, threadIdx.x / 32, &all);
            all = all && __all_sync(0xffffffff, 1) && __reduce_add_sync(0xffffffff, 1) == sum;
            out[threadIdx.x] = any + 10 * sum + 1000 * all;
        }"""
    )
    out = ints(40, device=here)
    compiled(source)(1, 40, (out,))
    assert out.tolist()[31:33] == [1320, 1081]


def test_copies_of_a_group_and_the_grid(here):
    source = (
        GROUPS
        + """
        __global__ void f(const float *x, float *y, int n)
        {
            __shared__ float tile[64];
            auto block = cg::this_thread_block();
            auto grid = cg::this_grid();
            cg::memcpy_async(block, tile, x + 64 * blockIdx.x, sizeof tile);
            cg::wait(block);
            for (int i = block.thread_rank(); i < 64; i += block.size())
                y[64 * grid.block_rank() + i] = 2 * tile[63 - i];
            if (grid.thread_rank() == 0) y[n] = grid.size();
        }"""
    )
    x, y = torch.rand(256, device=here), torch.zeros(257, device=here)
    compiled(source)(4, 32, (x, y, 256))
    assert torch.equal(y[:-1].view(4, 64), 2 * x.view(4, 64).flip(1))
    assert y[-1].item() == 128


@simulated
def test_a_grid_that_waits_for_its_blocks(here):
    source = GROUPS + "__global__ void f() { cg::this_grid().sync(); }"
    compiled(source)(1, 4)
    torch.cuda.synchronize()
    with pytest.raises(torch.cuda.AcceleratorError, match=r"a cooperative launch"):
        compiled(source)(2, 4)
        torch.cuda.synchronize()


# --- arguments -----------------------------------------------------------------------


def test_structs_are_passed_as_bytes(here):
    source = """
        struct Step { float by; int n; double start; };
        __global__ void f(float *x, Step step)
        {
            if (threadIdx.x < step.n) x[threadIdx.x] = step.start + threadIdx.x * step.by;
        }"""

    class Step(ctypes.Structure):
        _fields_ = (
            ("by", ctypes.c_float),
            ("n", ctypes.c_int),
            ("start", ctypes.c_double),
        )

    kernel = compiled(source)
    for step in (struct.pack("<fid", 0.5, 3, 10), Step(0.5, 3, 10)):
        x = torch.zeros(4, device=here)
        kernel(1, 4, (x, step))
        assert x.tolist() == [10, 10.5, 11, 0]
    for wrong, words in (
        (b"abc", "a struct of 16 bytes, and was given 3 bytes"),
        (5, "16 bytes, and was given a int; give bytes"),
    ):
        with pytest.raises(TypeError, match=words):
            kernel(1, 4, (x, wrong))


def test_vectors_are_passed_as_tuples(here):
    kernel = compiled("""
        __global__ void f(float *x, float4 a, int2 b, uchar3 c, double1 d, dim3 e)
        {
            x[0] = a.x + a.y + a.z + a.w, x[1] = b.x - b.y, x[2] = c.z, x[3] = d.x, x[4] = e.z;
        }""")
    x = torch.zeros(5, device=here)
    kernel(args=(x, torch.arange(4.0), (5, -6), [1, 2, 255], 0.25, (7, 8, 9)))
    assert x.tolist() == [6, 11, 255, 0.25, 9]
    with pytest.raises(TypeError, match=r"float4 a, takes 4 numbers, and was given"):
        kernel(args=(x, (1, 2, 3), (5, 6), (1, 2, 3), 0, (1, 1, 1)))
    with pytest.raises(OverflowError, match=r"uchar3 c, .* from 0 to 255"):
        kernel(args=(x, (1, 2, 3, 4), (5, 6), (1, 2, 256), 0, (1, 1, 1)))


def test_a_pointer_to_a_struct_takes_any_tensor(here):
    kernel = compiled("""
        struct Point { float x, y; int id; };
        __global__ void f(Point *p) { p[threadIdx.x].id = threadIdx.x; }""")
    x = ints(2, 3, device=here)
    kernel(1, 2, (x,))
    assert x[:, 2].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (1 << 40, "declare it as long long"),
        ((1 << 64) - 1, "declare it as unsigned long long"),
        (1 << 64, "no integer of CUDA C holds it"),
    ],
)
def test_a_number_that_is_too_large(here, value, advice):
    kernel = compiled("__global__ void f(int n) {}")
    with pytest.raises(OverflowError, match=advice):
        kernel(args=(value,))


# --- atomics and time ----------------------------------------------------------------


def test_atomics_of_other_types_and_scopes(here):
    kernel = compiled("""
        __global__ void f(double *sum, unsigned long long *n, float4 *four, long long *most,
                          unsigned short *last, int *scopes)
        {
            atomicAdd(sum, 0.5), atomicAdd_system(n, 3ull), atomicMax(most, (long long)threadIdx.x << 40);
            atomicAdd(four, make_float4(1, 2, 3, 4));
            unsigned short seen = *last, before;
            do before = seen, seen = atomicCAS(last, before, (unsigned short)(before + 1));
            while (seen != before);
            atomicAdd_block(scopes, 1), atomicAnd_system(scopes + 1, ~(1 << threadIdx.x));
            atomicCAS_block(scopes + 2, 0, 7), atomicExch_block(scopes + 3, 9);
        }""")
    sums = torch.zeros(1, dtype=torch.float64, device=here)
    n, most = (torch.zeros(1, dtype=torch.int64, device=here) for _ in range(2))
    four = torch.zeros(4, device=here)
    last = torch.zeros(2, dtype=torch.int16, device=here)
    scopes = torch.tensor([0, -1, 0, 0], dtype=torch.int32, device=here)
    kernel(1, 32, (sums, n, four, most, last, scopes))
    assert (sums.item(), n.item(), most.item()) == (16, 96, 31 << 40)
    assert four.tolist() == [32, 64, 96, 128] and last.tolist() == [32, 0]
    assert scopes.tolist() == [32, 0, 7, 9]


def test_complex_numbers(here):
    kernel = compiled("""
        #include <cuComplex.h>
        __global__ void f(const cuFloatComplex *a, const cuFloatComplex *b, cuFloatComplex *out,
                          double *size, cuDoubleComplex z)
        {
            out[0] = cuCmulf(*a, *b), out[1] = cuCdivf(*a, *b), out[2] = cuCaddf(*a, cuConjf(*b));
            out[3] = make_cuComplex(cuCrealf(*a), cuCimagf(*b)), *size = cuCabs(cuCmul(z, z));
        }""")
    a, b = torch.tensor([[1.0, 2.0], [3.0, -4.0]], device=here)
    out = torch.zeros(4, 2, device=here)
    size = torch.zeros(1, dtype=torch.float64, device=here)
    kernel(args=(a, b, out, size, (3, 4)))
    x, y = 1 + 2j, 3 - 4j
    expected = [x * y, x / y, x + y.conjugate(), 1 - 4j]
    flat = torch.tensor([[z.real, z.imag] for z in expected], device=here)
    torch.testing.assert_close(out, flat)
    assert size.item() == 25


def test_clocks_and_volatile_loads(here):
    kernel = compiled("""
        __global__ void f(const volatile int *x, long long *out)
        {
            long long start = clock64();
            int now = clock();
            out[0] = *x, out[1] = clock64() >= start, out[2] = clock() - now >= 0;
        }""")
    x = torch.tensor([7], dtype=torch.int32, device=here)
    out = torch.zeros(3, dtype=torch.int64, device=here)
    kernel(args=(x, out))
    assert out.tolist() == [7, 1, 1]
