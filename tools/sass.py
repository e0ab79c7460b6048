"""Read the machine code of the CUDA kernels, and say what it costs an element.

    python tools/sass.py                    # a table of all cases, for sm_90
    python tools/sass.py --arch 80 convert reduce

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
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "build"))

import cuda  # noqa: E402

KERNELS = ROOT / "csrc" / "cuda" / "kernels"
ARCH = 90
BYTES_OF_AN_INSTRUCTION = 16


# --- the cases


@dataclass(frozen=True)
class Case:
    """A way through a kernel, and what it may cost.

    `passes` are opcodes, or `load 16` for a load of 16 bytes from global memory, in the
    order in which the way comes by them. A round is the way from the first of them back
    to it; any other way leads from the kernel's entry to its end.
    """

    name: str
    source: str
    kernel: str  # as C++ writes it, without its parameters
    elements: int  # that a thread computes on the way
    passes: tuple[str, ...]
    most: float  # instructions an element
    in_flight: int  # bytes, at least
    registers: int  # at most
    spilled: int = 0  # bytes, at most
    is_round: bool = False


# The rows of an elementwise kernel.
ALL, SHORT, LONG = range(3)


def binary(kind: str, inputs: int = 2, rows: int = ALL) -> str:
    return f"elementwise_kernel<{kind}, {kind}, {kind}, {inputs}, {rows}>"


def moves_of_a_tile(load: str, store: str, groups: int) -> tuple[str, ...]:
    """Groups of four elements are loaded and given places, loaded again and sorted in
    shared memory, stored; the same with what says where they were."""
    ranked = (load, *["VOTE"] * 32, "STS") * groups
    elements = (load, *["STS"] * 4) * groups + (store,) * 4 * groups
    places = ("load 4", *["STS"] * 4) * groups + ("store 4",) * 4 * groups
    return ranked + elements + places


F32 = "elementwise_float32"
# The place of a pack in two dimensions: the outermost takes no division.
PLACE = "IMAD.HI.U32"
ADD = binary("float", rows=SHORT)
CASES = (
    Case(
        "add, one run",
        F32,
        ADD,
        elements=4,
        passes=("load 16", "load 16", "FADD", "store 16"),
        most=36,
        in_flight=32,
        registers=32,
    ),
    Case(
        "add, a row to each row",
        F32,
        ADD,
        elements=4,
        passes=(PLACE, "load 16", "load 16", "FADD", "store 16"),
        most=48,
        in_flight=32,
        registers=32,
    ),
    Case(
        "add, a column to each column",
        F32,
        ADD,
        elements=4,
        passes=(PLACE, "load 16", "load 4", "FADD", "store 16"),
        most=50,
        in_flight=20,
        registers=32,
    ),
    Case(
        "add, rows of an odd length",
        F32,
        ADD,
        elements=4,
        passes=(PLACE, *["load 4"] * 8, "FADD", *["store 4"] * 4),
        most=66,
        in_flight=32,
        registers=32,
    ),
    Case(
        "add, halves in one run",
        F32,
        ADD,
        elements=8,
        passes=("load 16", "load 16", *["HADD2.F32", "FADD", "F2FP"] * 2, "store 16"),
        most=27,
        in_flight=32,
        registers=32,
    ),
    Case(
        "add, halves in rows of a multiple of 4",
        F32,
        ADD,
        elements=4,
        passes=(PLACE, "load 8", "load 8", "HADD2.F32", "FADD", "store 8"),
        most=52,
        in_flight=16,
        registers=32,
    ),
    Case(
        "less than, halves in one run",
        F32,
        f"elementwise_kernel<float, float, bool, 2, {ALL}>",
        elements=8,
        passes=("load 16", "load 16", *["HADD2.F32", "FSETP"] * 2, "store 8"),
        most=28,
        in_flight=32,
        registers=32,
    ),
    Case(
        "add, int16 in one run",
        "elementwise_integer",
        binary("short"),
        elements=8,
        passes=("load 16", "load 16", "store 16"),
        most=15,
        in_flight=32,
        registers=40,
        spilled=40,
    ),
    Case(
        "add, int8 in one run",
        "elementwise_integer",
        binary("signed char"),
        elements=16,
        passes=("load 16", "load 16", "store 16"),
        most=13,
        in_flight=32,
        registers=40,
        spilled=600,
    ),
    Case(
        "divide, one run",
        F32,
        binary("float", rows=LONG),
        elements=4,
        passes=("load 16", "load 16", "MUFU.RCP", "store 16"),
        most=40,
        in_flight=32,
        registers=40,
        spilled=200,
    ),
    Case(
        "float32 to float16, one run",
        "convert",
        "convert_floats",
        elements=8,
        passes=("load 16", "load 16", "F2FP.F16.F32.PACK_AB", "store 16"),
        most=10,
        in_flight=32,
        registers=32,
    ),
    Case(
        "float16 to float32, one run",
        "convert",
        "convert_floats",
        elements=8,
        passes=("load 16", "HADD2.F32", "store 16", "store 16"),
        most=10,
        in_flight=16,
        registers=32,
    ),
    Case(
        "int64 to float32, one run",
        "convert",
        "convert_numbers",
        elements=4,
        passes=("load 16", "load 16", "I2F.S64", "store 16"),
        most=26,
        in_flight=32,
        registers=32,
    ),
    Case(
        "copy of rows",
        "convert",
        "copy_words<unsigned int>",
        elements=4,
        passes=(PLACE, "load 16", "store 16"),
        most=25,
        in_flight=16,
        registers=24,
    ),
    Case(
        "copy of rows of an odd length",
        "convert",
        "copy_words<unsigned int>",
        elements=4,
        passes=(PLACE, *["load 4"] * 4, *["store 4"] * 4),
        most=36,
        in_flight=16,
        registers=24,
    ),
    Case(
        "copy of a transposed matrix",
        "transpose",
        "transpose_tiles<unsigned int>",
        elements=16,
        passes=(*["load 4"] * 16, "BAR", *["store 4"] * 16),
        most=20,
        in_flight=64,
        registers=40,
    ),
    Case(
        "copy of a transposed matrix of halves",
        "transpose",
        "transpose_tiles<unsigned short>",
        elements=16,
        passes=(*["load 2"] * 16, "BAR", *["store 2"] * 16),
        most=20,
        in_flight=32,
        registers=40,
    ),
    Case(
        "rows of an embedding",
        "index",
        "index_rows<Read, unsigned int>",
        elements=4,
        passes=(PLACE, "load 8", "load 16", "store 16"),
        most=35,
        in_flight=16,
        registers=32,
    ),
    Case(
        "rows of an embedding, halves",
        "index",
        "index_rows<Read, unsigned short>",
        elements=8,
        passes=(PLACE, "load 8", "load 16", "store 16"),
        most=20,
        in_flight=16,
        registers=32,
    ),
    Case(
        "gather, one run",
        "index",
        "index_words",
        elements=4,
        passes=(*["load 8"] * 4, *["load 4"] * 4, *["store 4"] * 4),
        most=64,
        in_flight=32,
        registers=40,
    ),
    Case(
        "gather along rows",
        "index",
        "index_words",
        elements=4,
        passes=(PLACE, *["load 8"] * 4, *["load 4"] * 4, *["store 4"] * 4),
        most=74,
        in_flight=32,
        registers=40,
    ),
    Case(
        "x[i, j], one run",
        "index",
        "index_words",
        elements=4,
        passes=(*["load 8"] * 8, *["load 4"] * 4, *["store 4"] * 4),
        most=107,
        in_flight=32,
        registers=40,
    ),
    Case(
        "index_add of halves, one run",
        "index",
        "index_numbers",
        elements=4,
        passes=(*["load 8"] * 4, *["load 2"] * 4, *["REDG.E.ADD.F16x2"] * 4),
        most=114,
        in_flight=32,
        registers=56,
    ),
    Case(
        "sum, a round",
        "reduce",
        "reduce_kernel<float, float>",
        elements=16,
        passes=(*["load 16"] * 4, *["FADD"] * 16),
        most=17,
        in_flight=64,
        registers=40,
        spilled=80,
        is_round=True,
    ),
    Case(
        "sum of rows, a round",
        "reduce",
        "reduce_kernel<float, float>",
        elements=4,
        passes=("IMAD.HI.U32", "load 16", *["FADD"] * 4),
        most=38,
        in_flight=16,
        registers=40,
        spilled=80,
        is_round=True,
    ),
    Case(
        "sum of halves, a round",
        "reduce",
        "reduce_kernel<float, float>",
        elements=16,
        passes=(*["load 8"] * 4, "HADD2.F32", *["FADD"] * 16),
        most=18,
        in_flight=32,
        registers=40,
        spilled=80,
        is_round=True,
    ),
    Case(
        "argmax, a round",
        "argreduce",
        "argreduce_kernel<float>",
        elements=4,
        passes=(*["load 4"] * 4, *["FSETP"] * 4),
        most=16,
        in_flight=16,
        registers=32,
        is_round=True,
    ),
    Case(
        "variance, a round",
        "moments",
        "moments_kernel<float, true>",
        elements=4,
        passes=(*["load 4"] * 4, *["FMUL"] * 4),
        most=12,
        in_flight=16,
        registers=56,
        is_round=True,
    ),
    Case(
        "variance of rows, a round",
        "moments",
        "moments_kernel<float, true>",
        elements=4,
        passes=("load 4", "SEL", *["load 4"] * 3, *["FMUL"] * 4),
        most=18,
        in_flight=16,
        registers=56,
        is_round=True,
    ),
    Case(
        "patches of a convolution, 9 taps",
        "convolution",
        "gather_patches<float, int>",
        elements=9,
        passes=("load 4", "store 4") * 9,
        most=33,
        in_flight=4,
        registers=32,
    ),
    Case(
        "sums of patches, 9 taps",
        "convolution",
        "sum_patches<float, int>",
        elements=9,
        passes=(*("load 4",) * 3, *("FADD",) * 3) * 3 + ("store 4",),
        most=55,
        in_flight=12,
        registers=48,
    ),
    Case(
        "max pooling, windows of 2 x 2",
        "pooling",
        "pooling_kernel<float, true, int>",
        elements=1,
        passes=(*["load 4"] * 4, "store 4"),
        most=190,
        in_flight=4,
        registers=32,
    ),
    Case(
        "gradient of average pooling, windows that do not overlap",
        "pooling",
        "average_backward_kernel<float, int>",
        elements=4,
        passes=("load 4", "store 4") * 4,
        most=190,
        in_flight=4,
        registers=48,
    ),
    Case(
        "softmax, a row in registers",
        "nn_softmax",
        "nn_kernel<nn::softmax, float, true, 8, 4>",
        elements=8,
        passes=("load 16", "load 16", "store 16", "store 16"),
        most=20,
        in_flight=32,
        registers=32,
    ),
    Case(
        "softmax of halves, a row in registers",
        "nn_softmax",
        "nn_kernel<nn::softmax, float, true, 8, 4>",
        elements=8,
        passes=("load 8", "load 8", "store 8", "store 8"),
        most=21,
        in_flight=16,
        registers=32,
    ),
    Case(
        "softmax_backward, a round of a long row",
        "nn_softmax",
        "nn_kernel<nn::softmax_backward, float, true, 0, 4>",
        elements=4,
        passes=("load 16", "load 16", "store 16"),
        most=7.5,
        in_flight=32,
        registers=32,
        is_round=True,
    ),
    Case(
        "softmax_backward of halves, a round of a long row",
        "nn_softmax",
        "nn_kernel<nn::softmax_backward, float, true, 0, 4>",
        elements=4,
        passes=("load 8", "load 8", "store 8"),
        most=16,
        in_flight=16,
        registers=32,
        is_round=True,
    ),
    Case(
        "log_softmax, a round of a row across memory",
        "nn_softmax",
        "nn_kernel<nn::log_softmax, float, false, 0, 1>",
        elements=1,
        passes=("load 4", "store 4"),
        most=25,
        in_flight=4,
        registers=32,
        is_round=True,
    ),
    Case(
        "cross_entropy, a row in registers",
        "nn_loss",
        "nn_kernel<nn::cross_entropy, float, true, 8, 4>",
        elements=8,
        passes=("load 16", "load 16"),
        most=24,
        in_flight=32,
        registers=40,
    ),
    Case(
        "cross_entropy_backward, a round",
        "nn_loss",
        "nn_kernel<nn::cross_entropy_backward, float, true, 0, 4>",
        elements=4,
        passes=("load 16", "store 16"),
        most=20.5,
        in_flight=32,
        registers=40,
        is_round=True,
    ),
    Case(
        "cross_entropy_backward of halves, a round",
        "nn_loss",
        "nn_kernel<nn::cross_entropy_backward, float, true, 0, 4>",
        elements=4,
        passes=("load 8", "store 8"),
        most=28,
        in_flight=16,
        registers=40,
        is_round=True,
    ),
    Case(
        "layer_norm, a row in registers",
        "nn_norm",
        "nn_kernel<nn::layer_norm, float, true, 8, 4>",
        elements=8,
        passes=("load 16", "load 16", "store 16", "store 16"),
        most=33,
        in_flight=32,
        registers=40,
    ),
    Case(
        "layer_norm of halves, a row in registers",
        "nn_norm",
        "nn_kernel<nn::layer_norm, float, true, 8, 4>",
        elements=8,
        passes=("load 8", "load 8", "store 8", "store 8"),
        most=36,
        in_flight=16,
        registers=40,
    ),
    Case(
        "batch_norm",
        "nn_norm",
        "elements_kernel<nn::batch_norm, float, 4, true>",
        elements=4,
        passes=("load 16", "store 16"),
        most=30,
        in_flight=16,
        registers=32,
    ),
    Case(
        "batch_norm of halves",
        "nn_norm",
        "elements_kernel<nn::batch_norm, float, 4, true>",
        elements=4,
        passes=("load 8", "store 8"),
        most=34,
        in_flight=8,
        registers=32,
    ),
    Case(
        "attention, products of two matrices, a round",
        "attention",
        "attention_forward<float>",
        elements=64,
        passes=("LDS.128", *["FFMA"] * 64),
        most=1.25,
        in_flight=0,
        registers=128,
        is_round=True,
    ),
    Case(
        "Adam, a round",
        "optim",
        "update_kernel<float, TensorTable<OptimTensor, 3200> >",
        elements=4,
        passes=(*["load 16"] * 4, "MUFU.RSQ", *["store 16"] * 3),
        most=60,
        in_flight=64,
        registers=56,
        is_round=True,
    ),
    Case(
        "Adam on halves, a round",
        "optim",
        "update_kernel<float, TensorTable<OptimTensor, 3200> >",
        elements=4,
        passes=(*["load 8"] * 4, "MUFU.RSQ", *["store 8"] * 3),
        most=68,
        in_flight=32,
        registers=56,
        is_round=True,
    ),
    Case(
        "weighted_mean, a round",
        "nn_columns",
        "columns_kernel<nn::weighted_mean, float>",
        elements=1,
        passes=("load 4", "load 4"),
        most=50,
        in_flight=8,
        registers=32,
        is_round=True,
    ),
    Case(
        "gradient of layer_norm for its weights, a round",
        "nn_columns",
        "columns_kernel<nn::layer_norm_parameters, float>",
        elements=1,
        passes=("load 4", "load 4"),
        most=50,
        in_flight=16,
        registers=32,
        is_round=True,
    ),
    Case(
        "sums over rows, a round of their end",
        "nn_columns",
        "columns_finish<float>",
        elements=1,
        passes=("load 8", "load 8", "DADD", "DADD"),
        most=21,
        in_flight=16,
        registers=32,
        is_round=True,
    ),
    Case(
        "sort of a chunk, a pair",
        "sort",
        "chunk_kernel<unsigned int>",
        elements=2,
        passes=(*["LDS"] * 4, *["STS"] * 4),
        most=16,
        in_flight=0,
        registers=32,
        is_round=True,
    ),
    Case(
        "sort of long rows, counting a digit, a round",
        "sort",
        "radix::count_kernel<unsigned int>",
        elements=4,
        passes=(*["load 4"] * 4, *["ATOMS"] * 4),
        most=24,
        in_flight=16,
        registers=32,
        is_round=True,
    ),
    Case(
        "sort of long rows, moving by a digit",
        "sort",
        "radix::move_kernel<unsigned int>",
        elements=12,
        passes=moves_of_a_tile("load 4", "store 4", groups=3),
        most=150,
        in_flight=16,
        registers=40,
    ),
    Case(
        "sort of long rows of 8 bytes, moving by a digit",
        "sort",
        "radix::move_kernel<unsigned long>",
        elements=8,
        passes=moves_of_a_tile("load 8", "store 8", groups=2),
        most=165,
        in_flight=32,
        registers=64,
    ),
    Case(
        "cumsum, a tile",
        "scan",
        "scan_kernel<scan::Sum<double> >",
        elements=4,
        passes=("load 16", "BAR", "BAR", "F2F.F32.F64", "store 16"),
        most=48,
        in_flight=16,
        registers=48,
        is_round=True,
    ),
    Case(
        "cumsum of rows of an odd length, a tile",
        "scan",
        "scan_kernel<scan::Sum<double> >",
        elements=4,
        passes=(*["load 4"] * 4, "BAR", "BAR", *["store 4"] * 4),
        most=74,
        in_flight=16,
        registers=48,
        is_round=True,
    ),
    Case(
        "cummax of int64, a tile",
        "scan",
        "scan_kernel<scan::Max<long> >",
        elements=4,
        passes=(*["load 16"] * 2, "BAR", "BAR", *["store 16"] * 4),
        most=74,
        in_flight=32,
        registers=76,
        is_round=True,
    ),
)


# --- reading


@dataclass(frozen=True)
class Instruction:
    opcode: str
    operands: str
    guarded: bool  # by a predicate: it may be passed over

    @property
    def word(self) -> str:
        """`load 16` and the like for global memory; else the opcode."""
        kind = {"LDG": "load", "STG": "store"}.get(self.opcode.split(".")[0])
        return f"{kind} {self.width}" if kind else self.opcode

    @property
    def width(self) -> int:
        """Bytes that a load or store moves."""
        parts = self.opcode.split(".")
        widths = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}
        return next((widths[part] for part in parts if part in widths), 4)

    def is_a(self, wanted: str) -> bool:
        return self.word == wanted or self.opcode.startswith(wanted + ".")


@dataclass
class Kernel:
    code: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    registers: int = 0
    spilled: int = 0
    shared: int = 0

    def next_of(self, at: int) -> list[int]:
        """The instructions that may follow one."""
        this = self.code[at]
        name = this.opcode.split(".")[0]
        after = [at + 1] if at + 1 < len(self.code) else []
        if name in ("EXIT", "RET"):
            return after if this.guarded else []
        if name == "BSYNC":  # goes on where the BSSY of its barrier says
            start = next(
                i
                for i in range(at, -1, -1)
                if self.code[i].opcode == "BSSY"
                and self.code[i].operands.split(",")[0] == this.operands
            )
            return self._targets(start)
        if name not in ("BRA", "BRX"):
            return after
        # A branch has its conditions before it, or among its operands.
        always = not this.guarded and this.operands.startswith(("`", "R", "UR"))
        return self._targets(at) + ([] if always else after)

    def _targets(self, at: int) -> list[int]:
        named = re.findall(r"\.L_x_\d+", self.code[at].operands)
        return [self.labels[name] for name in named]

    def way(self, passes: Sequence[str], is_round: bool) -> list[Instruction]:
        """The shortest way that comes by these instructions, in this order; empty if
        there is none."""
        starts = [0]
        if is_round:
            starts = [i for i, this in enumerate(self.code) if this.is_a(passes[0])]
        ways = (self._way_from(start, passes, is_round) for start in starts)
        return min(filter(None, ways), key=len, default=[])

    def _way_from(
        self, start: int, passes: Sequence[str], is_round: bool
    ) -> list[Instruction]:
        def passed(at: int, stage: int) -> int:
            more = stage < len(passes) and self.code[at].is_a(passes[stage])
            return stage + more

        # Steps are an instruction and how much of `passes` lies behind.
        first = (start, passed(start, 0))
        came_from: dict[tuple[int, int], tuple[int, int] | None] = {first: None}
        reached = [first]
        while reached:
            frontier, reached = reached, []
            for step in frontier:
                at, stage = step
                following = self.next_of(at)
                ends = self.code[at].opcode == "EXIT"
                if is_round:
                    ends = start in following
                if ends and stage == len(passes):
                    return self._walked(came_from, step)
                for i in following:
                    further = (i, passed(i, stage))
                    if further not in came_from:
                        came_from[further] = step
                        reached.append(further)
        return []

    def _walked(
        self,
        came_from: dict[tuple[int, int], tuple[int, int] | None],
        last: tuple[int, int],
    ) -> list[Instruction]:
        way = []
        step: tuple[int, int] | None = last
        while step:
            way.append(self.code[step[0]])
            step = came_from[step]
        return way[::-1]


def in_flight(way: Iterable[Instruction], loads: Iterable[str]) -> int:
    """The most bytes of such loads that are on their way to a thread at a time."""
    most = 0
    awaited: dict[str, int] = {}  # by the register that they are for
    for this in way:
        is_load = this.word.startswith("load")
        target, _, used = this.operands.partition(",")
        # A load may overwrite what one with the opposite condition has loaded.
        named = re.findall(r"\bR\d+", used if is_load else this.operands)
        if awaited.keys() & set(named):
            awaited.clear()
        if is_load and this.word in loads:
            awaited[target] = this.width
            most = max(most, sum(awaited.values()))
    return most


LINE = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(@!?U?P\w+\s+)?([A-Z][\w.]*)\s*(.*)$")


def read_code(text: str, kernels: dict[str, Kernel]) -> None:
    """Adds the code that nvdisasm shows to each kernel."""
    kernel = None
    for line in text.splitlines():
        if line.startswith("//---"):
            name = re.search(r"\.text\.(\S+)", line)
            kernel = kernels.get(name[1]) if name else None
        elif kernel is None:
            continue
        elif label := re.match(r"(\.L_x_\d+):", line):
            kernel.labels[label[1]] = len(kernel.code)
        elif found := LINE.search(line.strip()):
            guard, opcode, operands = found.groups()
            operands = operands.replace(";", "").strip()
            kernel.code.append(Instruction(opcode, operands, bool(guard)))


def read_resources(text: str) -> dict[str, Kernel]:
    """The kernels that ptxas tells of, by their linkage names."""
    kernels: dict[str, Kernel] = {}
    kernel = Kernel()
    for line in text.splitlines():
        if found := re.search(r"Compiling entry function '(\S+)'", line):
            kernel = kernels[found[1]] = Kernel()
        elif found := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill", line):
            kernel.spilled = max(kernel.spilled, int(found[1]), int(found[2]))
        elif found := re.search(r"Used (\d+) registers", line):
            kernel.registers = int(found[1])
            shared = re.search(r"(\d+) bytes smem", line)
            kernel.shared = int(shared[1]) if shared else 0
    return kernels


# --- tools


def find_nvdisasm() -> str | None:
    """nvdisasm from PATH, beside nvcc, or in the package that Python may have of it."""
    folders = [Path(p, "nvidia") for p in sys.path]
    packaged = [str(p) for f in folders for p in f.glob("*/bin/nvdisasm")]
    nvcc = cuda.find_nvcc()
    beside = Path(os.path.realpath(nvcc.path if nvcc else "")).parent / "nvdisasm"
    named = [shutil.which("nvdisasm"), str(beside), *packaged]
    return next((name for name in named if name and os.access(name, os.X_OK)), None)


class ToolError(Exception):
    """Its text is the sentence that the user reads."""


def output_of(*command: str, text: str = "") -> str:
    done = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True)
    if done.returncode:
        raise ToolError(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def kernels_of(source: str, arch: int = ARCH) -> dict[str, Kernel]:
    """The kernels of a file of csrc/cuda/kernels, by their names in C++."""
    nvcc, nvdisasm = cuda.find_nvcc(), find_nvdisasm()
    if not nvcc or not nvdisasm:
        raise ToolError(
            "this needs nvcc and nvdisasm: install the CUDA toolkit, or "
            "pip install nvidia-cuda-nvdisasm"
        )
    with tempfile.TemporaryDirectory() as folder:
        cubin = str(Path(folder, "kernels.cubin"))
        flags = (*nvcc.language, f"-arch=sm_{arch}", "-cubin", "-Xptxas", "-v")
        file = str(KERNELS / f"{source}.cu")
        kernels = read_resources(output_of(*nvcc.command, *flags, "-o", cubin, file))
        read_code(output_of(nvdisasm, "-c", cubin), kernels)
    names = output_of("c++filt", text="\n".join(kernels)).splitlines()
    bare = (name.replace("(anonymous namespace)::", "") for name in names)
    short = (name.split("(")[0].removeprefix("void ") for name in bare)
    return dict(zip(short, kernels.values(), strict=True))


# --- the table


@dataclass(frozen=True)
class Row:
    case: Case
    kernel: Kernel
    way: list[Instruction]

    @property
    def in_flight(self) -> int:
        return in_flight(self.way, self.case.passes)

    @property
    def an_element(self) -> float:
        return len(self.way) / self.case.elements

    def moves(self, kind: str) -> str:
        found = Counter(i.width for i in self.way if i.word.startswith(kind))
        return ", ".join(f"{n} of {width}" for width, n in sorted(found.items()))

    def cells(self) -> list[object]:
        kernel = self.kernel
        return [
            *(self.case.name, f"{self.an_element:.1f}"),
            *(self.moves("load"), self.moves("store"), self.in_flight),
            *(kernel.registers, kernel.spilled, kernel.shared),
            len(kernel.code) * BYTES_OF_AN_INSTRUCTION,
        ]

    def faults(self) -> list[str]:
        """What is over the case's limits."""
        case, kernel = self.case, self.kernel
        if not self.way:
            return [f"no way through {case.kernel} passes {', '.join(case.passes)}"]
        checks = (
            (self.an_element <= case.most, f"{self.an_element:.1f} instructions"),
            (self.in_flight >= case.in_flight, f"{self.in_flight} bytes in flight"),
            (kernel.registers <= case.registers, f"{kernel.registers} registers"),
            (kernel.spilled <= case.spilled, f"{kernel.spilled} bytes spilled"),
        )
        return [fault for fine, fault in checks if not fine]


HEAD = (
    *("case", "an element", "loads", "stores", "in flight"),
    *("registers", "spilled", "shared", "code"),
)


def rows_of(source: str, kernels: dict[str, Kernel]) -> list[Row]:
    rows = []
    for case in CASES:
        if case.source != source:
            continue
        kernel = kernels.get(case.kernel)
        if kernel is None:
            raise ToolError(f"{source}.cu has no kernel {case.kernel}")
        rows.append(Row(case, kernel, kernel.way(case.passes, case.is_round)))
    return rows


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = (head, ["---"] * len(head), *rows)
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


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
        sys.exit(f"sass.py: {error}")
    nvcc = cuda.find_nvcc()
    print(f"{nvcc.name if nvcc else ''}, sm_{given.arch}\n\n{table(HEAD, rows)}\n")
    print(table(("source", "kernels", "code"), sizes))
    for fault in faults:
        print(f"over its limit: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
