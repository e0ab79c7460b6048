"""The table of cases, and what is over their limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sass.case import Case
from sass.cases import CASES
from sass.compiler import ToolError
from sass.machine_code import Instruction, Kernel, in_flight

BYTES_OF_AN_INSTRUCTION = 16


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
