"""Messages for the findings of kernel checks: the line, the error, how to fix it.

The simulator (csrc/sim/check.h) reports addresses; this module maps them to the source.
"""

from __future__ import annotations

import json
import re
import warnings
from typing import Any, NamedTuple

from pydevtensor import _C
from pydevtensor.cuda import _kernel_object, _kernel_source, checks
from pydevtensor.cuda.checks import KernelError

FILE = "kernel.cu"


class _Module(NamedTuple):
    object: _kernel_object.Object
    source: str
    headers: dict[str, str]
    lines: list[list[_kernel_object.Row]]  # read when first needed


_modules: dict[int, _Module] = {}


def register(handle: int, data: bytes, source: str, headers: dict[str, str]) -> None:
    """Note a loaded library that was compiled with checks."""
    made = _kernel_object.Object(data)
    _modules[handle] = _Module(made, source, headers, [])
    owners = dict.fromkeys(_kernel_source.host_variables(source), 3)
    owners |= dict.fromkeys(_kernel_source.constants(source), 2)
    texts = (source, *headers.values())
    owners |= dict.fromkeys(_kernel_object.shared_names(texts), 1)
    rows = []
    for symbol in made.variables():
        name = _kernel_object.plain_name(symbol.name)
        if name is None:
            continue
        owner = 1 if symbol.name.startswith("_ZZ") else owners.get(name, 0)
        rows.append(f"{symbol.low} {symbol.low + symbol.bytes} {owner} {name}")
    _C._sim_control(" ".join(["checked", f"{handle:#x}", str(made.end), *rows]))


# --- findings ------------------------------------------------------------------------


def error(text: str) -> BaseException | None:
    """The exception for an error of a device; None: it is not of the checks."""
    found = re.search(r"\[finding (\d+)\]", text)
    known = _C._sim_control(f"finding {found[1]}") if found else ""
    return _error(json.loads(known)) if known else None


def warn(number: int) -> None:
    known = _C._sim_control(f"finding {number}")
    if not known:
        return
    made = _error(json.loads(known))
    what = (made.kernel, made.kind, frozenset((made.line, made.other_line)))
    if what not in checks.warned:
        checks.warned.add(what)
        level = checks.program_level()
        warnings.warn(str(made), RuntimeWarning, stacklevel=level)


def _error(found: dict[str, Any]) -> KernelError:
    finding = _Finding(found)
    made = KernelError(finding.text())
    made.kind = found["kind"]
    made.kernel = found["kernel"]
    made.line, made.other_line = finding.line, finding.other_line
    made.block, made.thread = tuple(found["block"]), tuple(found["thread"])
    return made


def _index(of: list[int]) -> str:
    return f"({of[0]}, {of[1]}, {of[2]})"


class _Finding:
    """A finding, and its message."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.found = found
        self.module = _modules.get(found["module"])
        self.file, self.line = self._place("")
        self.other_file, self.other_line = self._place("other_")

    def _place(self, which: str) -> tuple[str, int | None]:
        line: int | None = self.found.get(which + "line")
        if line is not None:  # a line of the compiler's own, which may be a header's
            known = self.module and line <= self.module.source.count("\n") + 1
            return FILE, line if known else None
        address = self.found.get(which + "at")
        if address is None or not self.module:
            return FILE, None
        if not self.module.lines:
            self.module.lines.append(self.module.object.lines())
        files = {FILE, *self.module.headers}
        known_place = _kernel_object.place(self.module.lines[0], address, files)
        return known_place or (FILE, None)

    def _source(self, file: str, line: int | None) -> str:
        if line is None or not self.module:
            return ""
        text = self.module.source if file == FILE else self.module.headers.get(file, "")
        lines = text.splitlines()
        return lines[line - 1].strip() if 1 <= line <= len(lines) else ""

    def _at(self, file: str, line: int | None) -> str:
        if line is None:
            return "a line that is not known"
        return f"line {line}" if file == FILE else f"{file}, line {line}"

    def _quoted(self) -> str:
        """The lines, as they stand in the source."""
        rows = [(self.file, self.line)]
        if (
            self.other_line is not None
            and (self.other_file, self.other_line) not in rows
        ):
            rows.append((self.other_file, self.other_line))
        width = max(len(str(line)) for _, line in rows)
        shown = [
            f"    {line:>{width}} | {self._source(file, line)}"
            for file, line in sorted(rows, key=lambda row: row[1] or 0)
            if self._source(file, line)
        ]
        return "".join("\n" + row for row in shown)

    def text(self) -> str:
        found = self.found
        said, cure = getattr(self, "_" + found["kind"])()
        return (
            f"kernel {found['kernel']}, {self._at(self.file, self.line)}, block "
            f"{_index(found['block'])}, thread {_index(found['thread'])}: {said}"
            f"{self._quoted()}\n{cure}"
        )

    # --- messages by kind: the error, and how to fix it

    def _what(self) -> str:
        """The memory that the access is to."""
        found = self.found
        where, name = found.get("where"), found.get("name", "")
        if where == "tensor":
            item, offset = self._item(), found["offset"]
            whole = f"element {offset // item} of {self._argument()}"
            rest = offset % item
            return whole + (f" (its byte {rest})" if rest else "")
        offset, size = found.get("offset", 0), max(found["bytes"], 1)
        part = f"byte {offset}" if offset % size else f"element {offset // size}"
        if where in ("shared", "variable"):
            kind = "__shared__" if where == "shared" else "the variable"
            return f"{part} of {kind} {name}"
        if where == "dynamic":
            return f"{part} of the dynamic shared memory"
        return "the same bytes"

    def _item(self) -> int:
        """Bytes of an element; through a struct's pointer those of the access."""
        found = self.found
        number: int = found["item" if found.get("field", -1) < 0 else "bytes"]
        return max(number, 1)

    def _parameters(self) -> list[str]:
        if not self.module:
            return []
        base = re.split(r"[<\s]", self.found["kernel"])[0].rpartition("::")[2]
        every = _kernel_source.kernels(self.module.source)
        return next((each.parameters for each in every if each.name == base), [])

    def _argument(self) -> str:
        number, every = self.found["argument"], self._parameters()
        field = self.found.get("field", -1)
        name = re.search(
            r"(\w+)\s*(\[[^\]]*\])?$", every[number] if number < len(every) else ""
        )
        called = name[1] if name else f"argument {number + 1}"
        return (
            called
            if field < 0
            else f"the tensor whose address is byte {field} of {called}"
        )

    def _race(self) -> tuple[str, str]:
        found = self.found
        does = "writes" if found["write"] else "reads"
        did = "wrote" if found["other_write"] else "read"
        block = found.get("other_block")
        thread = found.get("other_thread")
        who = "another thread" if thread is None else f"thread {_index(thread)}"
        if block is not None:
            who += f" of block {_index(block)}"
        at = (
            "on the same line"
            if self.other_line == self.line and self.line is not None
            else f"on {self._at(self.other_file, self.other_line)}"
        )
        said = (
            f"race: it {does} {self._what()}, which {who} {did} {at}, and nothing "
            "orders the two"
        )
        return said, self._order(block is not None)

    def _updates(self) -> bool:
        line = self._source(self.file, self.line)
        return bool(re.search(r"[-+*/|&^]=|\+\+|--", line))

    def _order(self, blocks: bool) -> str:
        found = self.found
        if self.line == self.other_line and self._updates() and blocks:
            return (
                "Blocks run in any order and at the same time, so updates are lost: "
                "use atomicAdd() or another atomic, or give each block an element of "
                "its own"
            )
        if blocks:
            return (
                "Blocks run in any order and at the same time, and __syncthreads() "
                "does not wait for other blocks: give each block elements of its "
                "own, use atomics, or launch a second kernel"
            )
        if (
            self.line == self.other_line
            and self._updates()
            and found["space"] != "shared"
        ):
            return (
                "Threads that update the same element lose updates: use atomicAdd() or "
                "another atomic, or give each thread an element of its own"
            )
        barrier = "__syncthreads()"
        if found["same_warp"]:
            barrier = "__syncthreads(), or __syncwarp() as both are in one warp,"
        if self.line is None or self.other_line is None:
            return f"Put {barrier} between the two accesses"
        if self.line == self.other_line:
            return (
                "Several threads use the same element at once: let one thread do it, "
                f"use an atomic, or, if the line is in a loop, put {barrier} between "
                "two turns"
            )
        first, second = sorted((self.line, self.other_line))
        waits = self._waits_between(first, second)
        if waits == {"__syncwarp"} and not found["same_warp"]:
            return (
                f"Put {barrier} between lines {first} and {second}: the __syncwarp() "
                "there orders threads of one warp alone, and these are of two"
            )
        if not waits:
            return f"Put {barrier} between lines {first} and {second}"
        return (
            f"Put {barrier} after line {second}, before the next turn of the loop "
            f"comes to line {first}: the barrier between the two does not order them "
            "the other way"
        )

    def _waits_between(self, first: int, second: int) -> set[str]:
        """The barriers between two lines of the source."""
        if not self.module or (self.file, self.other_file) != (FILE, FILE):
            return set()
        code = _kernel_source.blank(self.module.source).splitlines()[first - 1 : second]
        return {*re.findall(r"__syncthreads|__syncwarp|\.sync\s*\(", "\n".join(code))}

    def _out_of_bounds(self) -> tuple[str, str]:
        found = self.found
        does = "writes" if found["write"] else "reads"
        where = found.get("where")
        if where == "array":
            return (
                f"out of bounds: index {found['index']} of an array of type "
                f"{found['name']}",
                "Check the index before the access, or make the array larger",
            )
        if where == "tensor":
            item, high, low = self._item(), found["high"], found["low"]
            offset = found["offset"]
            index = offset // item
            has = (high - low) // item
            name = self._argument()
            side = "before its first" if offset < low else "past its last"
            said = (
                f"out of bounds: it {does} element {index} of {name}, {side}: the "
                "tensor "
                f"spans {has} element{'s' * (has != 1)}"
            )
            if found.get("wrapped"):
                return said, (
                    "An unsigned index below 0 wraps to 4294967295: compute it as an "
                    "int, such as (int)threadIdx.x - 1, and check it before the access"
                )
            return said, (
                "Check the index before the access, such as if (i < n), and that the "
                "sizes which the kernel is passed are those of its tensors"
            )
        if where == "dynamic":
            return (
                f"out of bounds: it {does} byte {found['offset']} of the "
                f"{found['high']} bytes of dynamic shared memory",
                f"Check the index, or launch with shared_mem={found['offset'] + 1} or "
                "more",
            )
        if where in ("shared", "variable"):
            return (
                f"out of bounds: it {does} byte {found['offset']} of {found['name']}, "
                f"which has {found['high']} bytes",
                "Check the index before the access, or make the array larger",
            )
        return (
            f"out of bounds: it {does} device memory that the launch was not passed",
            "Check the index before the access",
        )

    def _null_pointer(self) -> tuple[str, str]:
        cure = (
            "Pass a tensor instead of None, or compare the pointer with nullptr first"
        )
        if re.search(
            r"\bextern\b[^;]*__shared__", self.module.source if self.module else ""
        ):
            cure += "; dynamic shared memory is null unless the launch gives shared_mem"
        does = "writes" if self.found["write"] else "reads"
        return f"null pointer: it {does} at address {self.found['offset']:#x}", cure

    def _wrong_memory(self) -> tuple[str, str]:
        does = "writes to" if self.found["write"] else "reads"
        where, name = self.found.get("where"), self.found.get("name")
        if where == "constant":
            return (
                f"wrong memory: it writes to {name}, which is __constant__",
                "Kernels read such a variable alone: declare it __device__, or set it "
                "from the program with get_global()",
            )
        if where == "host":
            return (
                f"wrong memory: it {does} {name}, a variable of the host",
                "Declare it __device__ or __constant__",
            )
        return (
            f"wrong memory: it {does} {self.found['words']}",
            "A kernel reaches the tensors that it is passed, and no memory of the "
            "host or of another GPU: pass a tensor of this GPU",
        )

    def _misaligned(self) -> tuple[str, str]:
        found = self.found
        return (
            f"misaligned: a {found['type'].strip(chr(39))} is at an address that is a "
            f"multiple of {found['alignment']}, and this one is not",
            "Use an index that is a multiple of the vector's length, or load the "
            "elements one by one",
        )

    def _uninitialized(self) -> tuple[str, str]:
        shared = self.found["space"] == "shared"
        said = f"uninitialized: it reads {self._what()}, which nothing has written"
        if shared:
            return said, (
                "Shared memory has no value at the start of a block: write each "
                "element that is read, also for threads beyond the end of the data"
            )
        return said, "torch.empty() gives memory without values: use torch.zeros()"

    def _waits(self) -> str:
        found = self.found
        other = found.get("other_thread")
        who = f"thread {_index(other)}" if other else "another thread"
        if self.other_line is not None:
            return f"{who} waits on {self._at(self.other_file, self.other_line)}"
        return f"{who} has finished"

    def _barrier(self) -> tuple[str, str]:
        found = self.found
        if found["where"] == "lines":
            return (
                f"barrier: it waits at this __syncthreads(), and thread "
                f"{_index(found['other_thread'])} at the one on "
                f"{self._at(self.other_file, self.other_line)}",
                "All threads of a block must reach the same __syncthreads(): take it "
                "out of the condition",
            )
        return (
            f"barrier: {found['barrier']} threads of the block wait at a "
            f"__syncthreads() that the others do not reach: {self._waits()}",
            "All threads of a block must reach each __syncthreads(): take it out of "
            "the condition or of the loop, and do not return before it",
        )

    def _warp(self) -> tuple[str, str]:
        found = self.found
        mask = f"{found['mask']:#010x}"
        if found["where"] == "excluded":
            return (
                f"warp: the mask {mask} does not have the lane of the thread itself",
                "Give a mask of all lanes that reach the line, such as the result of "
                "__ballot_sync() before the condition",
            )
        return (
            f"warp: it waits for all lanes of the mask {mask}, and one does not come "
            f"with the same mask to the same operation: {self._waits()}",
            "All lanes of the mask must reach the line: take it out of the "
            "condition, or give a mask of those that do",
        )

    def _wait(self) -> tuple[str, str]:
        return (
            "wait: it waits for a value that no running thread will write",
            "Blocks may run one after another, so a block must not wait for one that "
            "comes later: end the kernel and launch another, and give a lock back on "
            "every path",
        )
