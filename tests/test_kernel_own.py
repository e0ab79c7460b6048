"""Functions and a kernel of the library's own as a program's kernels: right as they are,
and with a safeguard less a finding at its line."""

import re
import struct
from pathlib import Path

import pytest
from kernel_programs import compiled, simulated

import pydevtensor as torch

pytestmark = simulated

KERNELS = Path(__file__).parents[1] / "csrc" / "cuda" / "kernels"
BEFORE = """
#include <cstdint>
#include <type_traits>
#define UNROLL
#define ROLLED
#define GRID_CONSTANT(T) const T
#define STATIC_SHARED(T, name) using name##_is = T; __shared__ name##_is name
enum { BLOCK = 256 };
"""
# What transpose_tiles asks its layout: one matrix of tiles.
LAYOUT = """
struct Divider { unsigned divisor; };
__device__ unsigned divide(unsigned n, const Divider &by) { return n / by.divisor; }
struct Matrix { Divider sizes[2]; int ndim; };
struct Tiles { Matrix layout; unsigned across, along; int64_t out_across, x_along; };
__device__ unsigned layout_offsets(const Matrix &m, unsigned tile, int64_t *at)
{
    unsigned along = tile % m.sizes[1].divisor, across = tile / m.sizes[1].divisor;
    at[0] = (across * SIDE_ALL * ROWS + along * SIDE_ALL) * 4;
    at[1] = (along * SIDE_ALL * COLS + across * SIDE_ALL) * 4;
    return along;
}
"""
USE = """
struct Sum { __device__ int operator()(int a, int b) const { return a + b; } };
__global__ void sums(const int *x, int *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int turn = 0; turn < 2; turn++)
        y[i] = reduce_group<true>(x[i] + turn, BLOCK, Sum());
}
__global__ void scan(const int *x, int *y)
{
    __shared__ int warps[BLOCK / 32];
    int i = blockIdx.x * blockDim.x + threadIdx.x, before = 0;
    for (int turn = 0; turn < 2; turn++) {
        int total;
        y[i] = x[i] + before_in_block(x[i], before, &total, warps, Sum());
    }
}
"""


def parts(file, *names):
    """Functions of a file, from their templates to their ends."""
    text = (KERNELS / file).read_text()
    found = []
    for name in names:
        at = text.index(f" {name}(")
        begin = text.rindex("template <", 0, at)
        found.append(text[begin : text.index("\n}\n", at) + 3])
    return re.sub(r"#ifdef SIM_CUDA\n.*?#endif\n", "", "\n".join(found), flags=re.S)


BLOCKS = BEFORE + parts("warp.h", "from_lane", "reduce_group", "before_in_block") + USE
TRANSPOSE = (
    BEFORE
    + "constexpr int SIDE_ALL = 64, ROWS = 100, COLS = 150;\n"
    + "template <class Word> constexpr int tile_side = SIDE_ALL;\n"
    + LAYOUT
    + parts("transpose.cu", "transpose_tiles")
)


def run_blocks(source, name, device):
    x = torch.randint(0, 9, (512,), dtype=torch.int32, device=device)
    y = torch.zeros_like(x)
    compiled(source, name)(2, 256, (x, y))
    torch.cuda.synchronize()
    rows = x.reshape(2, 256)
    if name == "sums":
        return y.equal((rows.sum(1, keepdim=True) + 256).expand(2, 256).flatten().int())
    return y.equal(rows.cumsum(1).flatten().int())


def run_transpose(source, device):
    x = torch.rand(100, 150, device=device)
    y = torch.zeros(150, 100, device=device)
    tiles = struct.pack("2Ii2Iqq", 3, 2, 2, 150, 100, 4 * 100, 4 * 150)
    kernel = compiled(source, "transpose_tiles<float>")
    kernel(6, 256, (y.view(torch.uint8), x.view(torch.uint8), tiles))
    torch.cuda.synchronize()
    return y.equal(x.T)


def without(source, pattern):
    """Each source with one safeguard less, and the safeguard's line."""
    for found in re.finditer(pattern, source):
        yield (
            source[: found.start()]
            + ("" if found[0].startswith("if") else ";")
            + source[found.end() :],
            source.count("\n", 0, found.start()) + 1,
        )


def test_they_are_right(here):
    assert run_blocks(BLOCKS, "sums", here)
    assert run_blocks(BLOCKS, "scan", here)
    assert run_transpose(TRANSPOSE, here)


def test_each_barrier_is_missed(here):
    cases = [
        *without(BLOCKS, r"__syncthreads\(\);"),
        *without(TRANSPOSE, r"__syncthreads\(\);"),
    ]
    assert len(cases) == 5
    for source, line in cases:
        with pytest.raises(torch.cuda.KernelError) as caught:
            if "transpose_tiles" in source:
                run_transpose(source, here)
            else:
                run_blocks(source, "sums", here)
                run_blocks(source, "scan", here)
        assert caught.value.kind == "race"
        for each in (caught.value.line, caught.value.other_line):
            assert abs(each - line) < 15, str(caught.value)


def test_each_bound_of_an_access_is_missed(here):
    pattern = r"if \(a(cross|long) \+ [^()]*\)(?=\n)"
    cases = [*without(TRANSPOSE, pattern)]
    assert len(cases) == 2
    for source, line in cases:
        with pytest.raises(torch.cuda.KernelError) as caught:
            run_transpose(source, here)
        # Elements past a row's end are the next row's, which another block writes.
        assert caught.value.kind in ("out_of_bounds", "race")
        assert caught.value.line == line + 1
