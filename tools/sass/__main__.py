"""Read the machine code of the CUDA kernels, and say what it costs an element.

    python tools/sass                    # a table of all cases, for sm_90
    python tools/sass --arch 80 convert reduce

It needs nvcc and nvdisasm (of the CUDA toolkit, or `pip install nvidia-cuda-nvdisasm`),
and no GPU. Sources are compiled with the flags of the build. Each row is a case: a way
through a kernel, which the case describes by what it passes, such as two loads of
16 bytes, an FADD and a store of 16 bytes. The tool follows the shortest such way and
counts its instructions. That is the least that a thread does; a choice among many rows
may cost it a few comparisons more.

    an element  instructions on the way, by the elements that a thread computes there
    loads       of global memory on the way: how many of how many bytes
    in flight   bytes that a thread has asked for before it needs the first of them, by
                the loads that the case names
    registers   of a thread; `spilled` are the bytes that did not fit
    shared      bytes of shared memory of a block
    code        bytes of the kernel

tests/tools/test_sass.py holds the cases to their limits. These are for sm_90: other
architectures name some instructions otherwise or order them in another way, so that a
case may find no way there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

from sass.cases import CASES  # noqa: E402
from sass.compiler import ARCH, ToolError, cuda, kernels_of  # noqa: E402
from sass.table import BYTES_OF_AN_INSTRUCTION, HEAD, rows_of, table  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--arch", type=int, default=ARCH, help="80 for sm_80")
    parser.add_argument("sources", nargs="*", help="files of csrc/cuda/kernels, no .cu")
    given = parser.parse_args(arguments)
    sources = given.sources or list(dict.fromkeys(case.source for case in CASES))
    rows, sizes, faults = [], [], []
    try:
        for source in sources:
            kernels = kernels_of(source, given.arch)
            found = rows_of(source, kernels)
            rows += [row.cells() for row in found]
            faults += [f"{r.case.name}: {fault}" for r in found for fault in r.faults()]
            size = sum(len(k.code) for k in kernels.values()) * BYTES_OF_AN_INSTRUCTION
            sizes.append((source, len(kernels), size))
    except ToolError as error:
        sys.exit(f"sass: {error}")
    nvcc = cuda.find_nvcc()
    print(f"{nvcc.name if nvcc else ''}, sm_{given.arch}\n\n{table(HEAD, rows)}\n")
    print(table(("source", "kernels", "code"), sizes))
    for fault in faults:
        print(f"over its limit: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
