"""The table of environment variables, compared with the sources that read them."""

import re
from pathlib import Path

import pytest
from isolated import python

from pydevtensor import _variables

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {
    "LIBRARY": ("csrc", "pydevtensor"),
    "BUILD": ("tools/build", "setup.py"),
    "TOOLS": ("tools", "tests"),
}
SOURCE = {".c", ".cpp", ".h", ".cu", ".py", ".inc", ".def"}


def read_by(*names):
    """The variables that sources name in quotes, which is how they are read."""
    found = set()
    for name in names:
        path = ROOT / name
        for file in [path] if path.is_file() else path.rglob("*"):
            if file.suffix in SOURCE and file.name != Path(__file__).name:
                text = file.read_text()
                found.update(re.findall(r'"PYDEVTENSOR_([A-Z_]*[A-Z])"', text))
    return found


def test_the_table_has_what_the_sources_read():
    tables = {name: set(getattr(_variables, name)) for name in FOLDERS}
    for name, folders in FOLDERS.items():
        assert tables[name] <= read_by(*folders), name
    everything = read_by(*{f for folders in FOLDERS.values() for f in folders})
    assert everything <= set.union(*tables.values())
    assert read_by(*FOLDERS["LIBRARY"]) <= tables["LIBRARY"] | tables["BUILD"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("PYDEVTENSOR_SIM_RACE", "did you mean PYDEVTENSOR_SIM_RACES?"),
        ("PYDEVTENSOR_GPUS", "did you mean PYDEVTENSOR_SIM_GPUS?"),
        ("PYDEVTENSOR_CUDA_ARCH", "did you mean PYDEVTENSOR_CUDA_ARCHS?"),
        ("PYDEVTENSOR_XYZZY", "unset it"),
    ],
)
def test_a_variable_that_nothing_reads_is_warned_of_once(name, said):
    program = """
import warnings
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    import pydevtensor as torch
    torch.cuda.device_count()
    import pydevtensor.cuda
print(*(w.message for w in seen), sep="\\n")
"""
    line = f"{name} is set, and pydevtensor has no such variable; {said}\n"
    assert python(program, **{name: "1"}) == line
    assert python(program, PYDEVTENSOR_SIM_GPUS="1", PYDEVTENSOR_BLAS="own") == "\n"
