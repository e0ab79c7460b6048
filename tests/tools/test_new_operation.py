"""A new operation costs what ARCHITECTURE.md says: a row, or a row and a function, or with
kernels of its own nine files.

All are added to a copy of the sources, which is built; the functions are then called,
differentiated and run on simulated GPUs. Nothing else in the copy knows of them. And a row
compiles few files: those that expand its table, and those that name one of its rows.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from source_copy import copy_sources, package_of

ROOT = Path(__file__).resolve().parents[2]
CSRC = ROOT / "csrc"
sys.path.insert(0, str(ROOT / "tools" / "build"))

import products  # noqa: E402

# An elementwise function is one row.
ROW = """
ELEMENTWISE(softsign, 1, FLOAT, 0, -9, 9, INPUT, DIV(A, ADD(ONE, ABS(A))),
            (DIV(G, MUL(ADD(ONE, ABS(A)), ADD(ONE, ABS(A))))),
            "Each element divided by 1 plus its magnitude.",
            "torch.tensor([-1.0, 0.0, 3.0]).softsign()",
            "tensor([-0.5000,  0.0000,  0.7500])")
"""

# A function that takes a part, of others that have gradients: a row and a function.
RECORD = """
OP(first_half, DT_BOTH, "first_half(input: Tensor, dim: int = 0)", first_half, COMPOSITE,
   "The first half of a dimension, a view.", "torch.arange(4).first_half()",
   "tensor([0, 1])")
"""
FORWARD = """
int dt_first_half_forward(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor;
    int dim = dt_shape_wrap_dim(c->name, c->args[1].i, x->ndim);
    return dim < 0 ? -1
                   : DT_CALL(narrow, c->out[0], c->args[0], c->args[1], dt_value_int(0),
                             dt_value_int(x->shape[dim] / 2));
}
"""

PROGRAM = """
import doctest
import inspect
import pydevtensor as torch
from pydevtensor.autograd import gradcheck

for device in ("cpu", "cuda:0"):
    x = torch.tensor([-1.0, 0.0, 3.0], dtype=torch.float64, device=device)
    assert torch.softsign(x).tolist() == x.softsign().tolist() == [-0.5, 0.0, 0.75]
    assert x.half().softsign().dtype == torch.float16
    leaf = torch.tensor([-1.0, 0.5, 3.0], dtype=torch.float64, device=device)
    leaf.requires_grad_()
    assert gradcheck(torch.softsign, [leaf])
    assert gradcheck(lambda t: t.reshape(1, 3).first_half(-1), [leaf])
    assert leaf.softsign().grad_fn.name() == "SoftsignBackward0"
    y = x.clone()
    assert y.softsign_() is y and y.tolist() == [-0.5, 0.0, 0.75]
    out = torch.empty(0, dtype=torch.float64, device=device)
    assert torch.softsign(x, out=out) is out and out.tolist() == y.tolist()
    part = torch.arange(6, device=device).reshape(2, 3).first_half()
    assert part.tolist() == [[0, 1, 2]]
assert str(inspect.signature(torch.softsign)) == "(input, *, out=None)"
assert str(inspect.signature(torch.first_half)) == "(input, dim=0)"
for function in (torch.softsign, torch.first_half):
    test = doctest.DocTestParser().get_doctest(
        function.__doc__, {"torch": torch}, function.__name__, None, 0
    )
    assert test.examples and not doctest.DocTestRunner().run(test).failed
for wrong in (lambda: torch.softsign(3), lambda: torch.first_half(x, 2.5)):
    try:
        wrong()
    except TypeError as error:
        assert "give" in str(error)
    else:
        raise AssertionError("no TypeError")
print("worked")
"""


# A function with a kernel on each backend: a file, a text, and what it comes before; None:
# the file is new, and has this text alone.
WITH_KERNELS = [
    (
        "csrc/device/plan.h",
        """
/* out[i] is the sum of |a[i, k] - b[i, k]| over k, of contiguous rows of n elements. */
typedef struct dt_cityblock_call {
    dt_dtype dtype;  /* float32 or float64 */
    int64_t rows, n; /* rows at least 1 */
    const void *a, *b;
    void *out;
} dt_cityblock_call;
""",
        "\n#endif\n",
    ),
    (
        "csrc/device/works.def",
        """
WORK(cityblock, (dt_stream stream, const dt_cityblock_call *c), (stream, c), cityblock,
     "cityblock", c->dtype, sized(c->dtype, 2 * c->rows * c->n),
     2 * (double)(c->rows * c->n))
""",
        "\n#undef WORK\n",
    ),
    (
        "csrc/device/extents.c",
        """
static void visit_cityblock(const dt_cityblock_call *c, const listing *to)
{
    dense(to, c->a, c->rows * c->n, dt_dtype_size(c->dtype), READ);
    dense(to, c->b, c->rows * c->n, dt_dtype_size(c->dtype), READ);
    dense(to, c->out, c->rows, dt_dtype_size(c->dtype), WRITE);
}
""",
        "\nvoid dt_extents(",
    ),
    (
        "csrc/cpu/kernels/cityblock.cpp",
        """
#include <math.h>

#include "cpu/runtime/backend.h"
#include "cpu/runtime/pool.h"

namespace {

template <typename T>
void run(void *context, int64_t begin, int64_t end)
{
    const dt_cityblock_call *c = (const dt_cityblock_call *)context;
    for (int64_t i = begin; i < end; i++) {
        const T *a = (const T *)c->a + i * c->n, *b = (const T *)c->b + i * c->n;
        double sum = 0;
        for (int64_t k = 0; k < c->n; k++)
            sum += fabs((double)a[k] - (double)b[k]);
        ((T *)c->out)[i] = (T)sum;
    }
}

} // namespace

int dt_cpu_cityblock(dt_stream, const dt_cityblock_call *call)
{
    dt_cityblock_call own = *call;
    return dt_pool_try(own.dtype == DT_FLOAT32 ? run<float> : run<double>, &own,
                       own.rows, 16384 / (own.n + 1) + 1);
}
""",
        None,
    ),
    (
        "csrc/cuda/kernels/cityblock.cu",
        """
#include "cuda/kernels/layout.h"

namespace {

/* A thread for each row. */
template <typename T>
__global__ void cityblock_kernel(T *out, const T *a, const T *b, int64_t rows, int64_t n)
{
    const int64_t row = thread_number();
    if (row >= rows)
        return;
    double sum = 0;
    for (int64_t k = row * n; k < (row + 1) * n; k++)
        sum += fabs((double)a[k] - (double)b[k]);
    out[row] = (T)sum;
}

template <typename T>
int run(dt_stream stream, const dt_cityblock_call *c)
{
    return START("starting distances of rows", stream, (cityblock_kernel<T>), c->rows,
                 (T *)c->out, (const T *)c->a, (const T *)c->b, c->rows, c->n);
}

} // namespace

int dt_cuda_cityblock(dt_stream stream, const dt_cityblock_call *call)
{
    return call->dtype == DT_FLOAT32 ? run<float>(stream, call)
                                     : run<double>(stream, call);
}
""",
        None,
    ),
    (
        "csrc/ops/functions/reduce.def",
        """
OP(cityblock, DT_FUNCTION, "cityblock(a: Tensor, b: Tensor)", cityblock,
   GRADIENT(cityblock, DT_SAVES_INPUT(0) | DT_SAVES_INPUT(1), "CityblockBackward0"),
   "The sum of the magnitudes of a - b for each row of a and b, two matrices of one "
   "shape.",
   "torch.cityblock(torch.eye(2), torch.ones(2, 2))", "tensor([1., 1.])")
""",
        "\n/* --- many tensors at once --- */",
    ),
    (
        "csrc/tensor/ops/reduce.c",
        """
int dt_cityblock_forward(dt_call *c)
{
    const dt_tensor *a = c->args[0].tensor, *b = c->args[1].tensor;
    dt_tensor *out = c->out[0];
    const dt_device device = dt_tensor_device(a);
    const dt_dtype compute = a->dtype == DT_FLOAT64 ? DT_FLOAT64 : DT_FLOAT32;
    DT_LOCAL(x);
    DT_LOCAL(y);
    if (a->ndim != 2 || a->dtype != b->dtype ||
        !dt_shape_equal(a->ndim, a->shape, b->ndim, b->shape))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the tensors differ; give two matrices of one shape and type",
                       c->name);
    if (dt_check_float(c->name, DT_ERROR_NOT_IMPLEMENTED, a) ||
        dt_contiguous_as(&x, a, compute, device) ||
        dt_contiguous_as(&y, b, compute, device) ||
        dt_tensor_empty(c->name, out, compute, 1, a->shape, device))
        return -1;
    const dt_cityblock_call call = {compute,
                                    a->shape[0],
                                    a->shape[1],
                                    dt_tensor_data(&x),
                                    dt_tensor_data(&y),
                                    dt_tensor_data(out)};
    if (call.rows &&
        (dt_tensor_use(&x) || dt_tensor_use(&y) || dt_tensor_use(out) ||
         dt_backend_of(device)->cityblock(dt_stream_current(device), &call)))
        return -1;
    return dt_retype(out, (dt_dtype)a->dtype);
}
""",
        '\n#include "tensor/ops/define.h"',
    ),
    (
        "csrc/autograd/ops/reduce.c",
        """
int dt_cityblock_backward(dt_grad *g)
{
    dt_scope *scope = g->scope;
    dt_arg signs = SIGN(SUB(dt_grad_input(g, 0), dt_grad_input(g, 1)));
    dt_arg grad = MUL(CALL_OP(unsqueeze, TENSOR(GRAD), dt_value_int(1)), signs);
    return dt_grad_set(g, 0, grad) || dt_grad_set(g, 1, NEG(grad)) ? -1 : 0;
}
""",
        "\n#define DT_COMPOSITES",
    ),
    (
        "tools/gpu/short.py",
        """
    same(lambda x, y: torch.cityblock(x, y), (7, n), (7, n))""",
        "\n    same(lambda x: x.cummax(0).values",
    ),
]

KERNEL_PROGRAM = """
import pydevtensor as torch
from pydevtensor.autograd import gradcheck

for device in ("cpu", "cuda:0"):
    a = torch.randn(300, 7, dtype=torch.float64, device=device)
    b = torch.randn(7, 300, dtype=torch.float64, device=device).t()
    for dtype, off in ((torch.float64, 1e-12), (torch.float32, 1e-4), (torch.half, 0.1)):
        x, y = a.to(dtype), b.to(dtype)
        found, wanted = torch.cityblock(x, y), (x - y).abs().sum(1)
        assert found.dtype == dtype and found.shape == (300,)
        assert (found - wanted).abs().max().item() < off, (device, dtype)
    leaves = [a[:3].clone().requires_grad_(), b[:3].clone().requires_grad_()]
    assert gradcheck(torch.cityblock, leaves)
    assert torch.cityblock(*leaves).grad_fn.name() == "CityblockBackward0"
    with torch.profiler.profile() as prof:
        torch.cityblock(a, b)
    assert "cityblock" in {row.key for row in prof.key_averages()}
    assert torch.cityblock(a[:0], b[:0]).shape == (0,)
    try:
        torch.cityblock(a, a[:2])
    except RuntimeError as error:
        assert "give two matrices" in str(error)
    else:
        raise AssertionError("no RuntimeError")
print("worked")
"""


def insert(path, text, before):
    old = path.read_text()
    assert old.count(before) == 1, f"{path.name} has changed: insert it elsewhere"
    path.write_text(old.replace(before, text + before))


def run(program, package):
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith("PYDEVTENSOR_")
    }
    environment.update(PYTHONPATH=str(package), PYDEVTENSOR_SIM_GPUS="1")
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=package,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "worked\n", done.stdout + done.stderr


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The library with three operations more."""
    folder = tmp_path_factory.mktemp("new")
    sources = copy_sources(folder / "sources")
    csrc = sources / "csrc"
    insert(csrc / "ops" / "elementwise" / "unary.def", ROW, "\nFUSED(abs, ")
    insert(csrc / "ops" / "functions" / "view.def", RECORD, "OP_AS(narrow, ")
    with (csrc / "autograd" / "ops" / "view.c").open("a") as file:
        file.write(FORWARD)
    for name, text, before in WITH_KERNELS:
        if before is None:
            assert not (sources / name).exists()
            (sources / name).write_text(text.lstrip())
        else:
            insert(sources / name, text, before)
    # The table of functions changes, so all that knows a backend is compiled again.
    return package_of(
        *(sources, folder / "run", "_C.*.so", "_cuda_sim.so"),
        PYDEVTENSOR_QUICK="1",
        CFLAGS="-O0",
        CXXFLAGS="-O0",
    )


@pytest.mark.slow
def test_a_row_is_an_operation(package):
    run(PROGRAM, package)


@pytest.mark.slow
def test_an_operation_with_kernels_is_nine_files(package):
    assert len({name for name, _, _ in WITH_KERNELS}) <= 9
    run(KERNEL_PROGRAM, package)


# The most objects of the three libraries that a new row of a table compiles, of about 440.
LIMITS = {
    "ops/elementwise.def": 66,
    "ops/reduce.def": 30,
    "ops/nn.def": 30,
    "ops/rnn.def": 15,
    "ops/optim.def": 15,
    "ops/functions/view.def": 6,
}
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.M)


def readers_of(name):
    """The files of csrc that include csrc/name, directly or through others."""
    included = {}
    for path in (p for p in CSRC.rglob("*") if p.is_file()):
        for target in INCLUDE.findall(path.read_text()):
            for folder in (path.parent, CSRC, CSRC / "sim"):
                if (folder / target).is_file():
                    included.setdefault((folder / target).resolve(), set()).add(path)
                    break
    found, waiting = set(), [CSRC / name]
    while waiting:
        new = included.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return {path.relative_to(ROOT).as_posix() for path in found}


@pytest.mark.parametrize("name", LIMITS)
def test_a_row_compiles_few_files(name):
    plan = products.Plan.from_environment()
    units = {*plan.extension().objects, *plan.cuda_sim().objects}
    # Where there is nvcc, each CUDA source is compiled once more.
    sources = [unit.source for unit in units] + plan.cuda_sources()
    readers = readers_of(name)
    compiled = [source for source in sources if source in readers]
    assert 0 < len(compiled) <= LIMITS[name], compiled
