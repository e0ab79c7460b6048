"""Right kernels of a first course, for each type of elements: no alarm, right results."""

import math
import re
from pathlib import Path

import pytest
from test_kernel_checks import HEADS, RIGHT
from test_kernel_checks import pytestmark as pytestmark

import pydevtensor as torch

SOURCE = (Path(__file__).parent / "kernel_idioms.cu").read_text()
HEAD = re.compile(
    r"// <<<(.*)>>> \((.*?)\) -> (.*)\ntemplate <class T> __global__ void (\w+)"
)
IDIOMS = HEAD.findall(SOURCE)
TYPES = {
    "float": torch.float32,
    "double": torch.float64,
    "int": torch.int32,
    "long long": torch.int64,
    "short": torch.int16,
    "unsigned char": torch.uint8,
}
SIZES = [(100, 32), (96, 48), (77, 50), (1, 32), (300, 128)]  # elements, threads


def test_the_right_kernels_are_many():
    assert SOURCE.count("__global__") == len(IDIOMS)
    assert len(IDIOMS) * len(TYPES) + len(HEADS.findall(RIGHT)) >= 200


def expected(what, x, y, n, b, g):
    """y after the kernel, in int64; what a kernel computes wraps as it does."""
    side = math.isqrt(n)
    i = torch.arange(n)

    def rows(x, b=b):
        return torch.nn.functional.pad(x, (0, -n % b)).reshape(-1, b)

    def at(x, j):
        return torch.where((j >= 0) & (j < n), x[j.clamp(0, n - 1)], 0)

    def put(y, first):
        return torch.cat([first, y[len(first) :]])

    def square(x):
        return x[: side * side].reshape(side, side)

    def product(a, b):
        return (a[:, :, None] * b).sum(1)

    names = {k: v for k, v in locals().items() if k != "what"}
    return eval(what, {"torch": torch, "sum": sum, "zip": zip, "range": range, **names})


@pytest.fixture(scope="module", params=TYPES)
def typed(request):
    named = [f"{name}<{request.param}>" for *_, name in IDIOMS]
    return request.param, torch.cuda.RawModule(code=SOURCE, name_expressions=named)


@pytest.mark.parametrize("idiom", IDIOMS, ids=lambda row: row[3])
def test_a_right_kernel_gives_no_alarm(here, typed, idiom):
    extents, names, what, name = idiom
    name_of_type, module = typed
    dtype = TYPES[name_of_type]
    kernel = module.get_function(f"{name}<{name_of_type}>")
    for n, b in SIZES:
        g, side = (n + b - 1) // b, math.isqrt(n)
        before = (torch.arange(n) * 5 + 1) % 7
        x = before.to(dtype).to(here)
        y = before.flip(0).to(dtype).to(here)
        known = {"n": n, "b": b, "g": g, "R": side}
        grid, block = eval(f"({extents.format(**known)})", known)
        args = [{"x": x, "y": y, "N": n, "R": side}[each] for each in names.split(", ")]
        kernel(*(e if isinstance(e, tuple) else (e,) for e in (grid, block)), args)
        torch.cuda.synchronize()
        right = expected(what, before, before.flip(0), n, b, g).to(dtype)
        assert torch.equal(y.cpu(), right), (n, b)
