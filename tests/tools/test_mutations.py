"""The backend with one safeguard taken out fails on simulated GPUs, every time.

Each mutation is a change to a copy of the sources, of which only the simulated backend is
built. The same program passes with the sources as they are.
"""

import os
import shutil
import subprocess
import sys

import pytest
from source_copy import PACKAGE, copy_sources, package_of

# file, what stands there, what is put in its place, the schedule that shows it
MUTATIONS = {
    "the host's wait for a download": (
        "transfer.cpp",
        "error = cudaStreamSynchronize(handle);",
        "error = cudaSuccess;",
        "lazy",
    ),
    "the bounds check of a kernel": (
        "elementwise_kernels.h",
        "bool full = column + N <= p.length;",
        "bool full = true;",
        "eager",
    ),
    "the wait of one device for another": (
        "transfer.cpp",
        "if (order(source_stream, target_stream) || device_use(target_stream.device))",
        "if (device_use(target_stream.device))",
        "lazy",
    ),
    "the use of memory on another stream": (
        "allocator.cpp",
        "    used_on.push_back(stream);\n",
        "",
        "lazy",
    ),
    "the wait before pinned memory is written again": (
        "transfer.cpp",
        "cudaEventSynchronize(ring->events[slot]));",
        "cudaSuccess);",
        "lazy",
    ),
    "the memory that a graph has for itself": (
        "allocator.cpp",
        "GraphPool *owner = held ? heap.capturing : nullptr;",
        "GraphPool *owner = nullptr;",
        "eager",
    ),
    "the random numbers of a launch": (
        "graph.cpp",
        "if (dt_cuda_copy_to_device(stream, each.start, start, sizeof start))",
        "if (!start[0] && start[1])",
        "lazy",
    ),
}

PROGRAM = """
import pydevtensor as torch
x = torch.arange(1001.0, device="cuda:0")
assert x.neg()[1000].item() == -1000          # a kernel, a wait, a copy back
y = (x * 2).to("cuda:1")                      # from one device to another
assert y[1000].item() == 2000
side = torch.cuda.Stream(0)
for _ in range(3):                            # memory used on another stream
    a = torch.full((4096,), 1.0, device="cuda:0")
    side.wait_stream(torch.cuda.current_stream(0))
    with torch.cuda.stream(side):
        b = a + 1
    del a
    c = torch.full((4096,), 7.0, device="cuda:0")
    torch.cuda.current_stream(0).wait_stream(side)
    assert b[4095].item() == 2 and c[0].item() == 7
parts = [torch.tensor([float(i)] * 16).to("cuda:0") for i in range(600)]
assert [p[3].item() for p in parts] == [float(i) for i in range(600)]
graph = torch.cuda.CUDAGraph()                # work that is captured
with torch.cuda.graph(graph):
    drawn = torch.rand(1001, device="cuda:0")
    d = (x * 2 + 1) * 3
with torch.cuda.stream(torch.cuda.graphs.capture_stream(0)):
    others = [torch.full((1001,), 7.0, device="cuda:0") for _ in range(4)]
torch.cuda.synchronize()
seen = set()
for _ in range(3):
    graph.replay()
    seen.add(drawn[3].item())
    assert d[1000].item() == 6003
assert len(seen) == 3 and all(other[500].item() == 7 for other in others)
torch.cuda.synchronize()
print("held")
"""


def run(package, schedule):
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith("PYDEVTENSOR_")
    }
    environment.update(
        PYTHONPATH=str(package),
        PYDEVTENSOR_SIM_GPUS="2",
        PYDEVTENSOR_SIM_SCHEDULE=schedule,
    )
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=package,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("schedule", ["eager", "lazy", "random:7"])
def test_the_program_holds_as_it_is(schedule, tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "pydevtensor")
    done = run(tmp_path, schedule)
    assert done.stdout == "held\n", done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_caught(name, tmp_path):
    file, old, new, schedule = MUTATIONS[name]
    sources = copy_sources(tmp_path / "sources")
    (path,) = (sources / "csrc" / "cuda").rglob(file)
    text = path.read_text()
    assert text.count(old) == 1, f"{file} has changed: say anew what {name} is"
    path.write_text(text.replace(old, new))
    package = package_of(sources, tmp_path / "run", "_cuda_sim.so")
    done = run(package, schedule)
    assert "held" not in done.stdout, f"without {name} nothing fails"
