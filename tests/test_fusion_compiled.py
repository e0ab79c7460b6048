"""Chains of torch.compile that run often on a GPU: kernels of their own."""

import os
import re
import subprocess
import sys

import pytest
from chains import check, reports, same, writes
from isolated import python

import pydevtensor as torch
from pydevtensor import _C
from pydevtensor.cuda import _chains

if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

N = 5003  # no multiple of a thread's elements


@pytest.fixture
def sources():
    """Chains are compiled when they have run once. The sources, as they come."""
    made = []

    def compile_now(device, number, source, exact):
        made.append(source)
        _chains.compile_now(device, number, source, exact)

    _C._fusion_compiler(compile_now, 1)
    yield made
    _C._fusion_compiler()


def check_compiled(f, *args):
    """f's values are those without fused(), by the machine and then by a kernel, if it
    has got one, which is returned."""
    check(f, *args)
    check(f, *args)
    *_, compiled, _ = reports(f, *(a.clone() for a in args))[0]
    return compiled


def written_out(x, y):
    return torch.relu(x * y + x), (x - 2) / y > 1, x.half() * 2


def test_values_are_those_of_the_operations(here, sources):
    x, y = torch.randn(2, N, device=here).unbind()
    assert check_compiled(written_out, x, y)
    (source,) = sources
    assert re.findall(r"row_(\w+)<", source) == ["mul", "add", "relu", "sub", "div"] + [
        "gt",
        "copy",
        "mul",
    ]
    # Numbers, sizes and addresses are the kernel's arguments.
    for n in (1, 3, 4, 5, 511, 512, 1025):
        assert check_compiled(written_out, x[:n], y[:n])
    assert len(sources) == 1
    # Another kernel loads elements one by one where 16 bytes are not aligned.
    assert check_compiled(lambda x, y: written_out(x[1:], y[1:]), x, y)
    assert len(sources) == 2


def test_layouts_and_types(here, sources):
    rows, n = 37, 41
    x, y = torch.randn(2, rows, n, device=here).unbind()
    bits = torch.randint(0, 3, (rows, n), dtype=torch.uint8, device=here)

    def chain(x, y, row, column, bits, turned):
        h = (x.bfloat16() * 2 + y.bfloat16()).float() - row
        return torch.where(bits > 1, turned - h, column + y), (h > 0.25) & (bits == 1)

    assert check_compiled(
        chain, x, y, x[0], y[:, :1], bits, torch.randn(n, rows, device=here).t()
    )
    assert check_compiled(lambda x: (x[:, 1:] - x[:, :-1]) * x[0, 1:], x)


def test_results_over_memory_that_is_read(here, sources):
    x, y = torch.randn(2, N, device=here).unbind()
    check_compiled(writes, x, y)
    assert sources

    def adam(p, g, m, v):
        m.mul_(0.9).add_(g, alpha=0.1)
        v.mul_(0.5).add_(g * g)
        p.sub_(m / (v + 1e-8))
        return p

    assert check_compiled(adam, *torch.rand(4, N, device=here).unbind())


def test_functions_of_the_mathematics_library(here, sources):
    """They are the library's own where the compiler is of its version."""
    x = torch.linspace(-3, 3, N, device=here)

    def gelu(x):
        return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x**3)))

    check_compiled(gelu, x)
    check_compiled(lambda x: torch.atan2(x.exp(), x.sigmoid()) + torch.erf(x), x)
    assert len(sources) == 2


def test_long_chains_with_an_end_are_compiled_apart(here, sources):
    """The machine's steps then cost more than the memory of their result."""
    x = torch.linspace(-3, 3, N, device=here)

    def gelu(x):
        return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x * x * x)))

    for f in (
        *(lambda x: gelu(x).sum(), lambda x: gelu(x).view(-1, 5003).softmax(-1)),
        lambda x: gelu(x).var(),
    ):
        for _ in range(2):
            (names,) = check(f, x)
            assert len(names) == 10
    assert len(sources) == 1 and "row_tanh<" in sources[0]
    check(lambda x: (x * 2).sum(), x)
    check(lambda x: (x.half() * 2 + 1).amax(), x)
    assert len(sources) == 2


def test_a_graph_takes_the_kernel(here, sources):
    x, y = torch.randn(2, N, device=here).unbind()
    f = torch.compile(lambda x, y: torch.relu(x * y + x))
    with torch.cuda.device(here):
        f(x, y)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = f(x, y)
        y.mul_(-2)
        graph.replay()
    assert sources and same(result, torch.relu(x * y + x))


def test_each_gpu_has_its_own(two_gpus, sources):
    for name in two_gpus:
        x, y = torch.randn(2, N, device=name).unbind()
        assert check_compiled(lambda x, y: x * y - y, x, y)
    assert len(sources) == 2 and sources[0] == sources[1]


def test_the_kernel_is_the_one_that_was_given(here):
    def other(device, number, source, exact):
        _chains.compile_now(device, number, source.replace("row_mul", "row_sub"), exact)

    _C._fusion_compiler(other, 1)
    x, y = torch.randn(2, N, device=here).unbind()
    f = torch.compile(lambda x, y: 3 - x * y)
    try:
        first, second = f(x, y), f(x, y)
    finally:
        _C._fusion_compiler()
    assert same(first, 3 - x * y) and same(second, 3 - (x - y))


BESIDE = """
import threading
import pydevtensor as torch
x, y = torch.randn(2, 5003, device="cuda").unbind()
f = torch.compile(lambda x, y: torch.relu(x * y + x))
for i in range(5):
    assert torch.equal(f(x, y), torch.relu(x * y + x))
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join()
    print("of its own" in f.explain(x, y), end=" ")
"""


@pytest.mark.skipif(not torch.cuda.is_simulated(), reason="of the host's compiler")
@pytest.mark.parametrize(
    ("variables", "said"),
    [
        # explain() runs the function, too.
        ({"PYDEVTENSOR_COMPILE_AFTER": "5"}, "False False True True True "),
        ({"PYDEVTENSOR_COMPILE_AFTER": "0"}, "False False False False False "),
        ({}, "False False False False False "),
        ({"PYDEVTENSOR_COMPILE_AFTER": "1", "CXX": "none-such"}, "False " * 5),
    ],
)
def test_chains_are_compiled_beside_the_program(variables, said):
    environment = {"PYDEVTENSOR_SIM_GPUS": "1", **variables}
    assert python(BESIDE, **environment) == said


ROWS = """
from pathlib import Path
import pydevtensor as torch
from pydevtensor.cuda import _chains
from pydevtensor.cuda._kernel_nvrtc import Cubin
torch.cuda.simulate(1)
torch.cuda.device_count()
source = Path({path!r}).read_text()
headers = {{"chain.h": _chains.HEADER.read_text(), **dict.fromkeys(_chains.EMPTY, "")}}
for architecture in ("75", "90"):
    made = Cubin(architecture, source, "chain", ("chain",), _chains.OPTIONS, headers)
    print(made.code(made.compile())[:4] == b"\\x7fELF")
"""


@pytest.mark.slow
def test_nvrtc_takes_each_row(tmp_path):
    """With the same source as the host's compiler, and no header of the system's."""
    rows = {name for name in _rows() if _is_of_floats(name)}
    assert len(rows) > 100
    steps = "\n".join(f"x = row_{name}<float>(x, y, z, 2.0f);" for name in sorted(rows))
    path = tmp_path / "chain.cu"
    path.write_text(
        '#include "chain.h"\nextern "C" __global__ void chain(float *p, float y, float z)\n'
        f"{{ float x = *p; {steps} *p = x; }}\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", ROWS.format(path=str(path))],
        capture_output=True,
        text=True,
        env={**os.environ, "PYDEVTENSOR_KERNEL_CACHE": ""},
    )
    if "NVRTC" in done.stderr and "was not found" in done.stderr:
        pytest.skip("NVRTC is not installed: pip install nvidia-cuda-nvrtc")
    assert done.stdout.split() == ["True", "True"], done.stderr


def _rows():
    text = _chains.HEADER.read_text()
    return re.findall(r"^(?:ELEMENTWISE|FUSED)\((\w+),", text, re.M)


def _is_of_floats(name):
    return name not in ("gcd", "lcm") and not name.startswith("bitwise")
