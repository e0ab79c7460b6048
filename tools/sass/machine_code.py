"""What nvdisasm and ptxas print, read into kernels and their instructions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


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
