"""A new operation costs what ARCHITECTURE.md says: a row, or a row and a function.

Both are added to a copy of the sources, which is built; the functions are then called,
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


def insert(path, text, before):
    old = path.read_text()
    assert old.count(before) == 1, f"{path.name} has changed: choose another place"
    path.write_text(old.replace(before, text + before))


@pytest.mark.slow
def test_a_row_is_an_operation(tmp_path):
    sources = copy_sources(tmp_path / "sources")
    csrc = sources / "csrc"
    insert(csrc / "ops" / "elementwise.def", ROW, "\nFUSED(abs, ")
    insert(csrc / "ops" / "functions" / "view.def", RECORD, "OP_AS(narrow, ")
    with (csrc / "autograd" / "ops" / "view.c").open("a") as file:
        file.write(FORWARD)
    package = package_of(sources, tmp_path / "run", "_C.*.so", "_cuda_sim.so")
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith("PYDEVTENSOR_")
    }
    environment.update(PYTHONPATH=str(package), PYDEVTENSOR_SIM_GPUS="1")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=package,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "worked\n", done.stdout + done.stderr


# The most objects of the three libraries that a new row of a table compiles, of about 300.
LIMITS = {
    "ops/elementwise.def": 60,
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
