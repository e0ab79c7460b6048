"""The building plan of ARCHITECTURE.md, held against the sources.

A file includes its own floor or lower ones; only csrc/python knows Python; the two
backends do not know each other; kernels start in one place; and importing the package
imports nothing but the standard library.
"""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

FLOORS = {
    "base": 1,
    "ops": 1,
    "device": 2,
    "cpu": 3,
    "cuda": 3,
    "sim": 3,
    "tensor": 4,
    "autograd": 5,
    "python": 6,
}
SIBLINGS = {"cpu", "cuda"}
SUFFIXES = {".c", ".h", ".cu", ".cuh", ".cpp", ".def", ".inc"}
LAUNCHER = Path("cuda/runtime/launch.h")
LONGEST = 800

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S
)
PYTHON_HEADER = re.compile(
    r"(Python|structmember|frameobject|datetime)\.h|numpy/|cpython/"
)


def files(csrc):
    return sorted(p for p in csrc.rglob("*") if p.is_file() and p.suffix in SUFFIXES)


def resolve(csrc, path, name):
    """The file in csrc that an #include "name" in `path` means, or None."""
    for folder in (path.parent, csrc, csrc / "sim"):
        target = folder / name
        if target.is_file():
            return target.resolve().relative_to(csrc.resolve())
    return None


def include_faults(csrc):
    for path in files(csrc):
        here = path.relative_to(csrc)
        room = here.parts[0]
        if room not in FLOORS:
            yield f"{here} lies on no floor"
            continue
        for quote, name in INCLUDE.findall(path.read_text()):
            if PYTHON_HEADER.match(name) and room != "python":
                yield f"{here} includes {name}, which is for csrc/python alone"
            target = resolve(csrc, path, name)
            if target is None:
                if quote == '"' and not PYTHON_HEADER.match(name):
                    yield f"{here} includes {name}, which is nowhere in csrc"
                continue
            other = target.parts[0]
            if FLOORS.get(other, 0) > FLOORS[room]:
                yield f"{here} includes {name}, which is on a higher floor"
            if other != room and {other, room} <= SIBLINGS:
                yield f"{here} includes {name}, which belongs to the other backend"


def launch_faults(csrc):
    for path in files(csrc):
        here = path.relative_to(csrc)
        if "<<<" in NOT_CODE.sub(" ", path.read_text()) and here != LAUNCHER:
            yield f"{here} launches a kernel; only {LAUNCHER} does"


def length_faults(csrc):
    for path in files(csrc):
        lines = len(path.read_text().splitlines())
        if lines > LONGEST:
            yield f"{path.relative_to(csrc)} has {lines} lines; split it"


# clang-format takes the macro for a statement, and puts the loop under it outside.
UNBRACED = re.compile(
    r"^[ \t]*(?:if|else|for|while)\b[^{};\n]*(?:;[^{}\n]*)?\n[ \t]*(?:UNROLL|ROLLED)\n",
    re.M,
)


def brace_faults(csrc):
    for path in files(csrc):
        text = path.read_text()
        for found in UNBRACED.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield f"{path.relative_to(csrc)}:{line} needs braces around UNROLL or ROLLED"


def statements_at_import(body):
    """Every statement that runs when a module is imported."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from statements_at_import(node.orelse)
            continue
        yield node
        for field in ("body", "orelse", "finalbody"):
            yield from statements_at_import(getattr(node, field, []))
        for handler in getattr(node, "handlers", []):
            yield from statements_at_import(handler.body)


# What others load where they are there.
GUESTS = {"_pytest.py": {"pytest"}}


def import_faults(package):
    for path in sorted(package.rglob("*.py")):
        known = {package.name, *sys.stdlib_module_names, *GUESTS.get(path.name, ())}
        for node in statements_at_import(ast.parse(path.read_text()).body):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module]
            else:
                continue
            for name in names:
                top = name.split(".")[0]
                if top not in known:
                    yield f"{path.relative_to(package)} imports {name} when imported"


CHECKS = {
    "includes": include_faults,
    "launches": launch_faults,
    "lengths": length_faults,
    "braces": brace_faults,
}


@pytest.mark.parametrize("check", CHECKS)
def test_csrc(check):
    assert files(ROOT / "csrc")
    assert list(CHECKS[check](ROOT / "csrc")) == []


def test_package_imports_only_the_standard_library():
    assert list(import_faults(ROOT / "pydevtensor")) == []


# The checks themselves, on trees in which one thing is wrong.

GOOD = {
    "base/error.h": "#include <stdio.h>\n",
    "ops/elementwise.def": "",
    "device/backend.h": '#include "base/error.h"\n#include "ops/elementwise.def"\n',
    "cpu/copy.c": '#include "copy.h"\n#include "device/backend.h"\n',
    "cpu/copy.h": "",
    "cuda/runtime/launch.h": "#define LAUNCH(k) k<<<1, 1>>>()\n#include <cuda_runtime.h>\n",
    "sim/cuda_runtime.h": "",
    "tensor/tensor.c": '#include "device/backend.h"\n/* x <<< y */',
    "python/module.c": '#include <Python.h>\n#include "tensor/tensor.c"\n',
}


def tree(folder, changes):
    for name, text in {**GOOD, **changes}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def all_faults(csrc):
    return [fault for check in CHECKS.values() for fault in check(csrc)]


def test_good_tree_passes(tmp_path):
    assert all_faults(tree(tmp_path, {})) == []


@pytest.mark.parametrize(
    "name, text, words",
    [
        ("base/a.c", '#include "device/backend.h"\n', "higher floor"),
        ("device/a.c", '  #  include "tensor/tensor.c"\n', "higher floor"),
        ("tensor/a.c", "#include <python/module.c>\n", "higher floor"),
        ("cpu/a.c", '#include "cuda/runtime/launch.h"\n', "other backend"),
        ("cuda/a.cu", '#include "../cpu/copy.h"\n', "other backend"),
        ("tensor/a.c", "#include <Python.h>\n", "csrc/python alone"),
        ("cpu/a.c", "#include <numpy/arrayobject.h>\n", "csrc/python alone"),
        ("base/a.c", '#include "gone.h"\n', "nowhere"),
        ("extra/a.c", "", "no floor"),
        ("cuda/a.cu", "void f() { k<<<1, 2>>>(); }\n", "launches"),
        ("base/a.c", "\n" * 801, "split"),
        ("cuda/a.cu", "for (;;)\n    UNROLL\nfor (;;)\n    f();\n", "braces"),
        ("cuda/a.cu", "if (x)\n    ROLLED\nfor (;;)\n    f();\n", "braces"),
    ],
)
def test_fault_is_found(tmp_path, name, text, words):
    faults = all_faults(tree(tmp_path, {name: text}))
    assert len(faults) == 1 and name in faults[0] and words in faults[0]


@pytest.mark.parametrize(
    "text, faulty",
    [
        ("import os, json\nfrom . import cuda\nfrom pack import nn\n", False),
        ("def f():\n    import numpy\n", False),
        ("if TYPE_CHECKING:\n    import numpy\n", False),
        ("import numpy as np\n", True),
        ("from numpy.linalg import norm\n", True),
        ("try:\n    import torch\nexcept ImportError:\n    pass\n", True),
        ("class C:\n    import numpy\n", True),
        ("if True:\n    pass\nelse:\n    import numpy\n", True),
    ],
)
def test_imports_are_found(tmp_path, text, faulty):
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text(text)
    assert bool(list(import_faults(package))) is faulty
