"""Kernels of the program whose threads and blocks wait in loops for one another."""

import os
import signal
import subprocess
import sys

import pytest
from kernel_programs import compiled, simulated

import pydevtensor as torch


def ints(n, device):
    return torch.zeros(n, dtype=torch.int32, device=device)


@pytest.mark.parametrize("waits", [0, 1])
def test_a_thread_waits_for_another(here, waits):
    kernel = compiled("""
        __global__ void f(volatile int *flag, int *out, int waits)
        {
            if (threadIdx.x == waits) {
                while (*flag == 0) {}
                *out = *flag;
            } else {
                *flag = 7;
            }
        }""")
    out = ints(1, here)
    kernel(1, 2, (ints(1, here), out, waits))
    assert out.item() == 7


def test_threads_take_a_lock(here):
    kernel = compiled("""
        __global__ void f(int *lock, volatile int *sum, volatile int *sorted)
        {
            for (bool done = false; !done;)
                if (atomicCAS(lock, 0, 1) == 0) {
                    for (int i = 0; i < 100; i++) *sum = *sum + 1;
                    __threadfence();
                    atomicExch(lock, 0);
                    done = true;
                }
            while (*sorted != threadIdx.x) __nanosleep(100);
            *sorted = threadIdx.x + 1;
        }""")
    total, turn = ints(1, here), ints(1, here)
    kernel(1, 40, (ints(1, here), total, turn))
    assert (total.item(), turn.item()) == (4000, 40)


# A barrier of the whole grid, as programs without cooperative launches write it.
MEET = """
        __device__ void meet(volatile int *n, int all)
        {
            __syncthreads();
            if (threadIdx.x == 0) {
                __threadfence();
                atomicAdd((int *)n, 1);
                while (*n < all) {}
            }
            __syncthreads();
        }
        __global__ void f(int *n, volatile int *x, int *out)
        {
            extern __shared__ int own[];
            own[threadIdx.x] = 100 * blockIdx.x + threadIdx.x;
            x[blockIdx.x] = blockIdx.x + 1;
            meet(n, gridDim.x);
            int next = x[(blockIdx.x + 1) % gridDim.x];
            meet(n + 1, gridDim.x);
            out[blockIdx.x * blockDim.x + threadIdx.x] = 1000 * next + own[threadIdx.x];
        }"""


@simulated
def test_blocks_wait_for_later_ones(here):
    out = ints(12, here)
    with torch.cuda.kernel_checks("off"):
        kernel = compiled(MEET)
        kernel(3, 4, (ints(2, here), ints(3, here), out), shared_mem=16)
    assert out.tolist() == [
        1000 * ((block + 1) % 3 + 1) + 100 * block + thread
        for block in range(3)
        for thread in range(4)
    ]


@simulated
def test_the_checks_name_a_wait_for_a_later_block(here):
    kernel = compiled(MEET)
    with pytest.raises(torch.cuda.KernelError, match="must not wait for one") as caught:
        kernel(3, 4, (ints(2, here), ints(3, here), ints(12, here)), shared_mem=16)
        torch.cuda.synchronize()
    assert (caught.value.kind, caught.value.line) == ("wait", 8)
    assert "8 | while (*n < all) {}" in str(caught.value)


@simulated
def test_the_last_block_gives_its_stacks_back(here):
    """It ends at once, and the others, which have waited for it, go on."""
    with torch.cuda.kernel_checks("off"):
        kernel = compiled("""
        __global__ void f(volatile int *flag, int *out)
        {
            if (blockIdx.x + 1 == gridDim.x) *flag = 1;
            while (*flag == 0) {}
            atomicAdd(out, 1);
        }""")
    out = ints(1, here)
    mapped = []
    for _ in range(3):
        with torch.cuda.kernel_checks("off"):
            kernel(3, 64, (ints(1, here), out))
            torch.cuda.synchronize()
        with open("/proc/self/maps") as maps:
            mapped.append(len(maps.readlines()))
    assert out.item() == 3 * 3 * 64
    # A stack and its guard for each thread.
    assert mapped[-1] - mapped[0] < 64, mapped


@simulated
def test_a_fault_among_blocks_that_wait(here):
    with torch.cuda.kernel_checks("off"):
        kernel = compiled("""
            __global__ void f(volatile int *n)
            {
                if (blockIdx.x == 2) __trap();
                while (*n == 0) {}
                __syncthreads();
            }""")
    for _ in range(2):
        with pytest.raises(
            torch.cuda.AcceleratorError, match=r"block .2, 0, 0.*__trap"
        ):
            kernel(4, 2, (ints(1, here),))
            torch.cuda.synchronize()
    assert torch.ones(2, device=here).tolist() == [1, 1]


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize(
    ("checks", "body"),
    [
        ("off", "while (*n == 0) {}"),
        pytest.param("off", "for (;;) __syncthreads();", marks=pytest.mark.slow),
        ("error", "for (;;) __syncthreads();"),
        ("error", "for (;;) atomicAdd((int *)n + 1 + threadIdx.x, 1);"),
        pytest.param(
            "error", "for (volatile int i = 0;; i++) {}", marks=pytest.mark.slow
        ),
    ],
)
def test_ctrl_c_ends_a_kernel(checks, body, schedule):
    program = f"""
import ctypes
import pydevtensor as torch
libc = ctypes.CDLL(None)
libc.setlinebuf(ctypes.c_void_p.in_dll(libc, "stdout"))
spin = torch.cuda.compile_kernel(r'''
#include <stdio.h>
__global__ void spin(volatile int *n)
{{
    if (threadIdx.x == 0) printf("spins\\n");
    {body}
}}''')
n = torch.zeros(3, dtype=torch.int32, device="cuda")
try:
    spin(1, 2, (n,))
    torch.cuda.synchronize()
except KeyboardInterrupt:
    print("interrupted")
try:  # where the launch ran the kernel at once
    torch.cuda.synchronize()
except torch.cuda.AcceleratorError as error:
    assert "was interrupted" in str(error), error
print(n[0].item() + 5)
"""
    with subprocess.Popen(
        [sys.executable, "-P", "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "PYDEVTENSOR_SIM_GPUS": "1",
            "PYDEVTENSOR_SIM_SCHEDULE": schedule,
            "PYDEVTENSOR_KERNEL_CHECKS": checks,
        },
    ) as running:
        assert running.stdout.readline() == "spins\n"
        running.send_signal(signal.SIGINT)
        assert running.stdout.read() == "interrupted\n5\n"
