"""The user's kernels on simulated GPUs, beside Numba's simulator.

python benchmarks/bench_kernels.py [--rounds 5] [--numba PYTHON]

PYTHON is that of an environment with Numba. First and cached compilations take a new
process each; programs of both libraries are interleaved, and the least time counts.
Times are the processor's, those of the compiler among them, so that other work on the
machine changes them little. Kernels of both simulators run on one core.
"""

import argparse
import os
import subprocess
import sys
import tempfile

SIZE = 512

SPENT = """
import resource

def spent():
    each = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in each)
"""

KERNELS = r'''
import pydevtensor as torch

ADD = r"""
extern "C" __global__ void add(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}"""
PRODUCT = r"""
extern "C" __global__ void product(const float *a, const float *b, float *c, int n)
{
    __shared__ float s[16][16], t[16][16];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        s[y][x] = a[row * n + k + x];
        t[y][x] = b[(k + y) * n + col];
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += s[y][i] * t[i][x];
        __syncthreads();
    }
    c[row * n + col] = sum;
}"""
torch.cuda.simulate(1)
torch.cuda.kernel_checks(MODE)
torch.ones(1, device="cuda")
begin = spent()
add = torch.cuda.compile_kernel(ADD, "add")
compiled = spent() - begin
product = torch.cuda.compile_kernel(PRODUCT, "product")

def least(kernel, grid, block, *args):
    times = []
    for _ in range(1 + ROUNDS):
        begin = spent()
        kernel(grid, block, args)
        torch.cuda.synchronize()
        times.append(spent() - begin)
    return min(times[1:])

n = 1 << 24
a, b, c = (torch.ones(n, device="cuda") for _ in range(3))
adds = least(add, (n // 256,), (256,), a, b, c, n) if ROUNDS else 0
m = SIZE
x, y, z = (each[: m * m] for each in (a, b, c))
products = least(product, (m // 16, m // 16), (16, 16), x, y, z, m) if ROUNDS else 0
print(compiled, adds, products)
'''

NUMBA = r"""
import numpy as np
from numba import cuda, float32

@cuda.jit
def add(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]

@cuda.jit
def product(a, b, c):
    s, t = cuda.shared.array((16, 16), float32), cuda.shared.array((16, 16), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    total = float32(0)
    for k in range(0, a.shape[0], 16):
        s[y, x] = a[row, k + x]
        t[y, x] = b[k + y, col]
        cuda.syncthreads()
        for i in range(16):
            total += s[y, i] * t[i, x]
        cuda.syncthreads()
    c[row, col] = total

def timed(kernel, grid, block, *args):
    begin = spent()
    kernel[grid, block](*args)
    cuda.synchronize()
    return spent() - begin

n, m = ADDED, SIZE
a, b, c = (np.ones(n, np.float32) for _ in range(3))
adds = timed(add, n // 256, 256, a, b, c)
x, y, z = (np.ones((m, m), np.float32) for _ in range(3))
print(0, adds, timed(product, (m // 16, BLOCKS), (16, 16), x, y, z))
"""


def run(python, code, **environment):
    done = subprocess.run(
        [python, "-P", "-c", SPENT + code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return [float(word) for word in done.stdout.split()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--numba", help="the Python of an environment with Numba")
    given = parser.parse_args()
    rows = {mode: [[], [], [], []] for mode in ("error", "off")}
    numba = []
    for _ in range(given.rounds):
        for mode, times in rows.items():
            code = KERNELS.replace("MODE", repr(mode)).replace("SIZE", str(SIZE))
            with tempfile.TemporaryDirectory() as cache:
                for at, rounds in ((0, 0), (1, 3)):
                    own = {"PYDEVTENSOR_KERNEL_CACHE": cache}
                    said = run(
                        sys.executable, code.replace("ROUNDS", str(rounds)), **own
                    )
                    times[at].append(said[0])
            times[2].append(said[1])
            times[3].append(said[2])
        if given.numba:
            # A part of the work, since the whole takes hours.
            added, blocks = 1 << 14, 1
            code = NUMBA.replace("ADDED", str(added)).replace("SIZE", str(SIZE))
            code = code.replace("BLOCKS", str(blocks))
            said = run(given.numba, code, NUMBA_ENABLE_CUDASIM="1")
            numba.append([said[1] * (1 << 24) / added, said[2] * SIZE / 16 / blocks])
    print(
        "| seconds | first compilation | cached | add of 2^24 | product of 512 x 512 |"
    )
    print("|---|---|---|---|---|")
    for mode, name in (("error", "checked"), ("off", "without checks")):
        least = [min(times) for times in rows[mode]]
        print(f"| {name} | " + " | ".join(f"{t:.3g}" for t in least) + " |")
    if numba:
        adds, products = (min(each) for each in zip(*numba, strict=True))
        print(f"| Numba's simulator | | | {adds:.3g} * | {products:.3g} * |")
        print("\n\\* from a part of the blocks: 64 of 65,536 and 32 of 1,024")


if __name__ == "__main__":
    main()
