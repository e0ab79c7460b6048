"""The checks of kernels from source: every planted mistake is named, no right kernel is."""

import re
import threading
import warnings
from pathlib import Path

import pytest
from conftest import GPUS, SIMULATED
from kernel_programs import ADD, compiled, run

import pydevtensor as torch
from pydevtensor.cuda import checks

pytestmark = pytest.mark.skipif(
    GPUS > 0 and not SIMULATED, reason="the checks are those of the simulator"
)

BUGS = (Path(__file__).parent / "kernel_bugs.cu").read_text()
HEAD = re.compile(
    r"// (\w+) <<<(.*?)>>> \((.*?)\)(?: shared (\d+))?\n__global__ void (\w+)"
)


def launches(text):
    """Of each kernel: the name, the expected kind, launch and marked lines."""
    found = []
    for head in HEAD.finditer(text):
        kind, extents, names, shared, name = head.groups()
        grid, block = eval(f"({extents})")
        first = text.count("\n", 0, head.start()) + 1
        end = re.compile(r"^}", re.M).search(text, head.end()).end()
        body = text[head.start() : end].splitlines()
        lines = {first + i for i, line in enumerate(body) if "//!" in line}
        args = [each.strip() for each in names.split(",")]
        found.append((name, kind, grid, block, args, int(shared or 0), lines))
    return found


PLANTED = launches(BUGS)


def arguments(names, device):
    host = torch.rand(256)
    made = {
        "x": torch.rand(256, device=device),
        "y": torch.zeros(256, device=device),
        "e": torch.empty(256, device=device),
        "k": torch.zeros(256, dtype=torch.int32, device=device),
        "b": torch.zeros(256, dtype=torch.uint8, device=device),
        "null": None,
        "host": host.data_ptr(),
    }
    made["v"] = made["x"][100:150]
    return [made[n] if n in made else int(n) for n in names], host


def found_by(name, grid, block, names, shared, device):
    args, _host = arguments(names, device)
    kernel = compiled(BUGS, name)
    try:
        kernel(grid, block, args, shared_mem=shared)
        torch.cuda.synchronize()
    except torch.cuda.KernelError as error:
        return error
    return None


def test_the_planted_mistakes_are_many():
    kinds = {kind for _, kind, *_ in PLANTED}
    assert len(PLANTED) >= 60
    assert kinds == {
        *("race", "out_of_bounds", "misaligned", "null_pointer", "wrong_memory"),
        *("uninitialized", "barrier", "warp", "wait"),
    }


@pytest.mark.parametrize("planted", PLANTED, ids=[row[0] for row in PLANTED])
def test_a_planted_mistake_is_named(here, planted):
    name, kind, grid, block, names, shared, lines = planted
    error = found_by(name, grid, block, names, shared, here)
    assert error is not None, "nothing was found"
    assert error.kind == kind, str(error)
    named = {error.line, error.other_line} - {None}
    assert error.line in lines and named <= lines, str(error)
    assert error.kernel == name and name in str(error)
    for line in named:
        assert f"{line} | " + BUGS.splitlines()[line - 1].strip() in str(error)
    # The GPU is as usable as before.
    assert torch.ones(2, device=here).tolist() == [1, 1]


def test_the_cure_of_a_warp_barrier_between_two_warps(here):
    args, _host = arguments(["x", "y"], here)
    compiled(BUGS, "syncwarp_for_two_warps")((1,), (64,), args)
    with pytest.raises(torch.cuda.KernelError) as caught:
        torch.cuda.synchronize()
    said = str(caught.value)
    assert re.search(r"Put __syncthreads\(\) between lines .* of one warp alone", said)


def test_an_unsigned_index_below_0_is_named(here):
    args, _host = arguments(["x", "y"], here)
    compiled(BUGS, "left_neighbour_by_unsigned")((1,), (64,), args)
    with pytest.raises(
        torch.cuda.KernelError, match=r"(?s)element -1 of x.*int.threadIdx"
    ):
        torch.cuda.synchronize()


def test_arrays_of_more_than_a_block_may_have(here):
    source = """
        __global__ void f(float *x)
        {
            __shared__ float a[64][128], b[64][128];
            a[0][threadIdx.x] = b[0][threadIdx.x] = x[threadIdx.x];
            __syncthreads();
            x[threadIdx.x] = a[0][0] + b[0][1];
        }"""
    with pytest.raises(
        torch.cuda.CompileError, match=r"f has more than 49152 bytes of"
    ):
        compiled(source)
    compiled(source.replace("[64]", "[48]"))


# --- right kernels -------------------------------------------------------------------

RIGHT = (Path(__file__).parent / "kernel_right.cu").read_text()
HEADS = re.compile(r"// <<<(.*?)>>> \((.*?)\)\n__global__ void (\w+)")
SIZES = [
    (96, 32),
    (128, 64),
    (100, 32),
    (256, 128),
    (1000, 128),
    (33, 96),
    (5, 32),
    (64, 1),
]
SIZES += [(130, 50), (777, 100)]


@pytest.mark.parametrize("right", HEADS.findall(RIGHT), ids=lambda row: row[2])
def test_a_right_kernel_gives_no_alarm(here, right):
    extents, names, name = right
    kernel = compiled(RIGHT, name)
    for n, threads in SIZES:
        blocks = (n + threads - 1) // threads
        grid, block = eval("(" + extents.format(g=blocks, b=threads) + ")")
        some = {
            "x": torch.rand(n, device=here),
            "y": torch.zeros(n, device=here),
            "z": torch.zeros(max(n, blocks), device=here),
            "e": torch.empty(n, device=here),
            "k": torch.zeros(max(n, 16), dtype=torch.int32, device=here),
            "b": torch.randint(0, 255, (n,), dtype=torch.uint8, device=here),
            "N": n,
        }
        kernel(
            grid, block, [some[a] for a in names.split(", ")], shared_mem=4 * threads
        )
        torch.cuda.synchronize()


def test_the_right_kernels_are_many():
    assert len(HEADS.findall(RIGHT)) * len(SIZES) >= 200


@pytest.mark.parametrize("tile", [4, 8, 16])
def test_right_tiles(here, tile):
    source = """
        __global__ void multiply(const float *a, const float *b, float *c, int n)
        {
            __shared__ float left[TILE][TILE + 1], right[TILE][TILE + 1];
            int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
            float sum = 0;
            for (int t = 0; t < n; t += TILE) {
                bool in = row < n && t + threadIdx.x < n;
                left[threadIdx.y][threadIdx.x] = in ? a[row * n + t + threadIdx.x] : 0;
                in = t + threadIdx.y < n && col < n;
                right[threadIdx.y][threadIdx.x] = in ? b[(t + threadIdx.y) * n + col] : 0;
                __syncthreads();
                for (int k = 0; k < TILE; k++)
                    sum += left[threadIdx.y][k] * right[k][threadIdx.x];
                __syncthreads();
            }
            if (row < n && col < n) c[row * n + col] = sum;
        }
        __global__ void transpose(const float *a, float *b, int n)
        {
            __shared__ float s[TILE][TILE + 1];
            int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
            if (x < n && y < n) s[threadIdx.y][threadIdx.x] = a[y * n + x];
            __syncthreads();
            x = blockIdx.y * TILE + threadIdx.x, y = blockIdx.x * TILE + threadIdx.y;
            if (x < n && y < n) b[y * n + x] = s[threadIdx.x][threadIdx.y];
        }"""
    options = [f"-DTILE={tile}"]
    for n in (tile, 3 * tile, 2 * tile + 1, 5):
        a, b = torch.rand(n, n, device=here), torch.rand(n, n, device=here)
        c, d = torch.empty(n, n, device=here), torch.empty(n, n, device=here)
        grid = ((n + tile - 1) // tile,) * 2
        compiled(source, "multiply", options=options)(grid, (tile, tile), (a, b, c, n))
        compiled(source, "transpose", options=options)(grid, (tile, tile), (a, d, n))
        torch.testing.assert_close(c, a @ b)
        assert torch.equal(d, a.T)


# --- modes ---------------------------------------------------------------------------


def test_locals_without_a_value(here, tmp_path, monkeypatch):
    monkeypatch.setenv("PYDEVTENSOR_KERNEL_CACHE", str(tmp_path / "kernels"))
    source = """
        __global__ void sums(const float *x, float *y, int n)
        {
            float sum;
            for (int i = 0; i < n; i++)
                sum += x[n * threadIdx.x + i];
            y[threadIdx.x] = sum;
        }"""
    with pytest.warns(RuntimeWarning, match=r"line [67], col.*'sum'.* uninit") as said:
        compiled(source)
    assert said[0].filename.endswith("kernel_programs.py")  # the program's line
    assert not [*(tmp_path / "kernels").iterdir()]  # the next program is warned too
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(source.replace("float sum", "float sum = 0"))
        with torch.cuda.kernel_checks("off"):
            compiled(source)
    assert len([*(tmp_path / "kernels").iterdir()]) == 2


def test_warn_warns_and_goes_on(here):
    wrong = compiled("__global__ void f(int *x, int n) { x[n] += 1; }")
    x = torch.zeros(4, dtype=torch.int32, device=here)
    with torch.cuda.kernel_checks("warn"), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        wrong(1, 32, (x, 1))
        torch.cuda.synchronize()
    assert x[1].item() == 32  # the threads take turns here
    (warning,) = said
    assert warning.category is RuntimeWarning
    assert "race: it" in str(warning.message) and "use atomicAdd()" in str(
        warning.message
    )
    with (
        torch.cuda.kernel_checks("warn"),
        pytest.warns(RuntimeWarning, match="element 4 of x"),
    ):
        wrong(1, 1, (x, 4))
        torch.cuda.synchronize()
    with torch.cuda.kernel_checks("off"):
        wrong(1, 32, (x, 2))
        torch.cuda.synchronize()


def test_the_mode_is_chosen(here):
    source = "__global__ void f(int *x) { x[0] += 1; } // chosen"
    with torch.cuda.kernel_checks("off") as mode:
        fast = compiled(source)
        assert repr(mode) == "torch.cuda.kernel_checks('off')"
    x = torch.zeros(1, dtype=torch.int32, device=here)
    fast(1, 32, (x,))
    torch.cuda.synchronize()
    with pytest.raises(
        ValueError, match=r"mode is 'on'; give 'off', 'warn' or 'error'"
    ):
        torch.cuda.kernel_checks("on")


def test_a_block_is_that_of_its_thread(here):
    """Two threads enter and leave blocks in turn, and launch in between."""
    f = compiled("__global__ void f(int *x) { x[0] += 1; } // of a thread")
    steps = threading.Barrier(2, timeout=60)

    def caught():
        x = torch.zeros(1, dtype=torch.int32, device=here)
        stream = torch.cuda.Stream(device=here)
        try:
            f(1, 32, (x,), stream=stream)
            stream.synchronize()
        except torch.cuda.KernelError:
            return True
        return False

    def work(mode, late):
        if late:
            steps.wait()
        with torch.cuda.kernel_checks(mode):
            if not late:
                steps.wait()
            for turn in range(2):
                steps.wait()
                if turn == late:
                    found[mode] = caught()
        steps.wait()

    found = {}
    threads = [
        threading.Thread(target=work, args=("off", False)),
        threading.Thread(target=work, args=("error", True)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {"off": False, "error": True}
    assert caught()  # neither has left its mode


def test_a_call_holds_for_all_threads(here):
    with torch.cuda.kernel_checks("off"):
        seen = []
        for mode in ("warn", "off", "warn"):
            torch.cuda.kernel_checks(mode)
            thread = threading.Thread(target=lambda: seen.append(checks.chosen()))
            thread.start()
            thread.join()
        assert seen == ["warn", "off", "warn"]
        assert checks.chosen() == "off"
    assert checks.chosen() == "warn"
    torch.cuda.kernel_checks("error")
    assert len(checks._chosen) <= 2  # what cannot hold again is not kept


def test_the_environment_chooses():
    program = "print(torch.cuda.compile_kernel(ADD)._library.checked)"
    for mode, printed in (("off", "False\n"), ("warn", "True\n"), ("", "True\n")):
        assert run(program, PYDEVTENSOR_KERNEL_CHECKS=mode)[0] == printed
    assert "give off, warn or error" in run(program, PYDEVTENSOR_KERNEL_CHECKS="on")[1]


def test_an_error_has_all(here):
    bad = compiled(ADD.replace("if (i < n) ", ""), "add")
    x = torch.ones(100, device=here)
    with pytest.raises(torch.cuda.KernelError) as caught:
        bad((2, 2), (8, 8), (x, x, x, 100))
        torch.cuda.synchronize()
    error = caught.value
    assert isinstance(error, torch.cuda.AcceleratorError)
    assert (error.kernel, error.line) == ("add", 5)
    assert len(error.block) == len(error.thread) == 3


def test_a_graph_is_checked_at_each_replay(here):
    gather = compiled(
        "__global__ void g(const int *at, int *y) { y[threadIdx.x] = at[*at]; }"
    )
    at = torch.zeros(4, dtype=torch.int32, device=here)
    y = torch.zeros(4, dtype=torch.int32, device=here)
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        gather(1, 4, (at, y))
    graph.replay()
    torch.cuda.synchronize()
    at.fill_(9)
    with pytest.raises(torch.cuda.KernelError, match="element 9 of at"):
        graph.replay()
        torch.cuda.synchronize()


def test_lines_of_headers_and_memory_of_other_work(here):
    head = {
        "lib/put.h": "\n__device__ void put(float *x, int i)\n{\n    x[i] = 1;\n}\n"
    }
    put = compiled(
        '#include "lib/put.h"\n__global__ void f(float *x, int i) { put(x, i); }',
        headers=head,
    )
    x = torch.zeros(4, device=here)
    with pytest.raises(
        torch.cuda.KernelError, match=r"lib/put.h, line 4.*\n *4 \| x\[i\] = 1;"
    ):
        put(args=(x, 4))
        torch.cuda.synchronize()
    copy = compiled("__global__ void f(const float *x, float *y) { *y = *x; }")
    e = torch.empty(4, device=here)
    e.copy_(torch.full((4,), -1.0))
    copy(args=(e, x))
    whole = torch.empty(4, dtype=torch.int32, device=here).fill_(-1)
    compiled("__global__ void f(const int *x, float *y) { *y = *x; }")(args=(whole, x))
    torch.cuda.synchronize()
