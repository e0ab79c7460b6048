"""The functions of torch by subject: the files in which they are written."""

from __future__ import annotations

import functools
import re
import subprocess
import types
from pathlib import Path
from typing import Any

import functions as written  # tools/build: what is written in pydevtensor/_functions
import toolchain

ROOT = Path(__file__).resolve().parents[2]
CSRC = ROOT / "csrc"
# What the preprocessor is to leave of a table: the schema of each row.
SOURCE = """\
#include "ops/class.h"
#define OP(id, flags, schema, ...) @row schema @end
#define OP_AS OP
#include "ops/functions/{}.def"
"""
# A page of the reference: its file, its title, its families. Those are the files of
# csrc/ops/functions, csrc/python, pydevtensor/_functions and pydevtensor, all without
# folder, suffix and leading underscore.
GROUPS = (
    ("creation", "Creation and copies", "create complex windows from_data copy"),
    ("random", "Random numbers", "random generator"),
    ("elementwise", "Elementwise functions", "elementwise"),
    ("transforms", "Transforms of signals", "spectral"),
    ("reductions", "Reductions and statistics", "reduce statistics histogram"),
    ("scans", "Cumulative sums, differences, integrals", "scan integrate"),
    ("sorting", "Sorting, searching, distinct elements", "sort unique"),
    (
        "shapes",
        "Shapes",
        "view movement repeat diagonal shapes resize cat split copies",
    ),
    ("indexing", "Indexing", "index indices scatter subscript"),
    ("linear-algebra", "Linear algebra", "matmul linalg einsum decompositions sparse"),
    (
        "layers",
        "Functions of layers",
        "nn layers losses pooling convolution attention recurrent rnn resample vision "
        "distance linear normalization activation native",
    ),
    (
        "types",
        "Types, constants, properties",
        "types dtype dtypes constants classes storage sharing tensor_properties",
    ),
    (
        "gradients",
        "Gradients and mixed precision",
        "autograd modes amp func history overrides",
    ),
    (
        "other-libraries",
        "Files and other libraries",
        "serialization interop namespace numpy dlpack buffer to_python as_torch calls "
        "magic",
    ),
    (
        "settings",
        "Devices and settings",
        "pydevtensor device settings determinism defaults threads printing streams "
        "compiler",
    ),
)


def table(family: str) -> dict[str, str]:
    """The families of the rows of a table of csrc/ops/functions, by name.

    What takes a generator is of "random", in whichever table it is.
    """
    command = [*toolchain.find_cc().command, "-E", "-P", "-x", "c", "-I", str(CSRC)]
    text = subprocess.run(
        [*command, "-"],
        input=SOURCE.format(family),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    rows = re.findall(r"@row(.*?)@end", text, re.DOTALL)
    schemas = ("".join(re.findall(r'"([^"]*)"', row)) for row in rows)
    return {
        schema.partition("(")[0]: "random" if "generator: " in schema else family
        for schema in schemas
    }


@functools.cache
def of_functions() -> dict[str, str]:
    """The family of each function that is no plain Python, by name."""
    found: dict[str, str] = {}
    # Rows of the binding: {"is_grad_enabled", ...} and DT_BOTH(clone, "clone", ...).
    rows = r'(?:\{|\bDT_(?:FUNCTION|METHOD|BOTH)\(\s*\w+,)\s*"(\w+)"'
    for path in sorted((CSRC / "python").rglob("*.c")):
        found |= dict.fromkeys(re.findall(rows, path.read_text()), path.stem)
    for path in sorted((CSRC / "ops" / "functions").glob("*.def")):
        if path.stem != "all":
            found |= table(path.stem)
    found |= {each.full: Path(each.file).stem for each in written.read()}
    text = (CSRC / "ops" / "elementwise.def").read_text()
    for alias, name in re.findall(r"^ALIAS\((\w+), (\w+)\)", text, re.MULTILINE):
        found[alias] = found[name]
    return found


def family(name: str, value: Any) -> str:
    """The family of a name of torch, or of a method of Tensor."""
    found = of_functions()
    for each in (name.removesuffix("_"), name):
        if each in found:
            return found[each]
    if isinstance(value, types.FunctionType | type):
        parts = value.__module__.split(".")
        if isinstance(value, type) and len(parts) == 1:
            return "types"  # of the extension
        own = [
            part for part in parts[1:] if part not in ("_functions", "_aliases")
        ] or parts
        return own[0].lstrip("_")
    return "constants"


class UnknownFamily(Exception):
    pass


def group(name: str, value: Any) -> str:
    """The file of the group to which a name of torch belongs."""
    wanted = family(name, value)
    for file, _, families in GROUPS:
        if wanted in families.split():
            return file
    raise UnknownFamily(
        f"{name} is of the family {wanted!r}, which no group of "
        "tools/website/families.py has; add it to one"
    )
