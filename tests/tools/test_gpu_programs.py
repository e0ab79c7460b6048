"""The programs of gpu-check start the kernels that they are for, on simulated GPUs."""

import re
from pathlib import Path

import pytest
from gpu import kernels, runner
from isolated import python

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "csrc" / "cuda" / "kernels"

RUN = """
import runpy, sys
sys.argv[1:] = {options!r}
runpy.run_path({folder!r} + "/" + {name!r}, run_name="__main__")
print(sys.modules["pydevtensor"]._C._sim_control("kernels"))
"""


def started(name, *options, card):
    """What a program of tools/gpu says, and a line for each kernel that it starts: its file
    and its name."""
    return python(
        RUN.format(
            folder=str(ROOT / "tools" / "gpu"), options=list(options), name=name
        ),
        PYDEVTENSOR_SIM_GPUS="1",
        timeout=900,
        **({"PYDEVTENSOR_SIM_CARD": card} if card else {}),
    )


@pytest.mark.parametrize("card", ["", "h100"])
def test_the_profiled_program_starts_these_kernels(card):
    said = started("kernels.py", card=card)
    assert [
        name
        for name in kernels.KERNELS.values()
        if not re.search(rf"^csrc/\S+ \(*{name}", said, re.M)
    ] == []


def kernels_of(path):
    """Names of the kernels that a file defines."""
    for head in re.findall(r"__global__([^{;]*)\{", path.read_text()):
        head = re.sub(r"__launch_bounds__\([^)]*\)", "", head)
        yield re.search(r"(\w+)\(", head)[1]


@pytest.mark.parametrize("options", [["--quick"], ["--quick", "--no-products"]])
def test_the_short_program_starts_each_kernel(options):
    """And those of headers in each file that has them. Without products, for racecheck,
    it starts each that has shared memory."""
    lines = []
    for card in ("", "h100"):
        said = started("short.py", *options, card=card)
        assert "\nshort program: fine\n" in said
        assert runner.on_a_real_gpu(said) == "it ran on a simulated GPU"
        lines.append(set(re.findall(r"^(csrc/\S+) \(*(\w+)", said, re.M)))
    others, hopper = lines
    assert others <= hopper  # not only what stands in for them there
    names = {name for _, name in hopper}
    # What the program compiles on a card is compiled from this.
    left = set()
    for path in set(KERNELS.glob("*")) - {KERNELS / "chain_compiled.h"}:
        if len(options) == 1 or "_SHARED(" in path.read_text():
            left |= set(kernels_of(path)) - names
            if path.suffix == ".cu":
                left |= {str(path.relative_to(ROOT))} - {file for file, _ in hopper}
    assert not left
