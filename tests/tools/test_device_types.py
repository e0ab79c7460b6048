"""A type of devices is a row of the registry, and code asks what is true of a type.

Which type a device is of matters to few lines: the row, torch.cuda's own functions, and
the properties that name it. tests/core/null_device_test.c runs the core on a third type.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CSRC = ROOT / "csrc"
OWN = {"cuda", "sim"}  # the backend of CUDA devices
SUFFIXES = {".c", ".h", ".cpp", ".def", ".inc"}


def lines_of(pattern, folders=None):
    """Lines of csrc outside of the CUDA backend that the pattern is found in."""
    for path in sorted(CSRC.rglob("*")):
        folder = path.relative_to(CSRC).parts[0]
        if path.suffix not in SUFFIXES or folder in (OWN if folders is None else ()):
            continue
        if folders is not None and folder not in folders:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(pattern, line):
                yield f"{path.relative_to(ROOT)}:{number}: {line.strip()}"


def test_few_lines_name_cuda_devices():
    found = [*lines_of(r"\bDT_CUDA\b")]
    assert 0 < len(found) < 12, "\n".join(found)


def test_no_line_compares_names_of_types():
    assert not [*lines_of(r'strn?cmp\([^)]*"(cuda|cpu)"')]


def test_tensors_and_gradients_know_no_cuda_device():
    assert not [*lines_of(r"\bDT_(CUDA|ACCELERATOR)\b", {"tensor", "autograd"})]


def test_kernels_report_names_of_the_host():
    # The host reads the name that a kernel reports, and cannot read a literal of the GPU.
    for path in sorted((CSRC / "cuda" / "kernels").glob("*.*")):
        assert not re.search(r'report_range\([^;]*"', path.read_text()), path.name
