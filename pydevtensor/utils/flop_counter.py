"""How many FLOPs a program's products, convolutions and attentions take."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Self

from pydevtensor import _C
from pydevtensor._names import publish as _publish
from pydevtensor.module_paths import ModulePaths

__all__ = ["FlopCounterMode"]

# The beginnings of the names of kernels that count.
_COUNTED = ("matmul", "convolution", "attention")
_MOST = 1_000_000


class FlopCounterMode:
    """In a with statement, count FLOPs: for all, and for each module by its path.

    Counted are the kernels of products of matrices, convolutions and attention, in the
    forward and the backward pass: 2 for a multiplication and an addition. PyTorch
    counts by its operators, and neither LSTMs nor attention on the CPU.

    mods            ignored, as in PyTorch
    depth           how many levels of modules the table shows; all if it is None
    display         print the table at the end
    custom_mapping  must be None: there are no operators with formulas here

    RuntimeError if a profile is being recorded.

    >>> from pydevtensor.utils.flop_counter import FlopCounterMode
    >>> net = nn.Sequential(nn.Linear(3, 4))
    >>> with FlopCounterMode(display=False) as counter:
    ...     y = net(torch.ones(2, 3))
    >>> counter.get_total_flops()
    48
    >>> counter.get_flop_counts()['Sequential.0']
    {'matmul': 48}
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int | None = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:
        if custom_mapping:
            raise NotImplementedError(
                "FlopCounterMode counts kernels, which have no operators of PyTorch; "
                "leave custom_mapping out"
            )
        self.depth = 999999 if depth is None else depth
        self.display = display
        self.flop_counts: dict[str, dict[str, int]] = {}

    def __enter__(self) -> Self:
        self.flop_counts = {}
        _C._recorder_start(_MOST, False, True, False)
        self._paths = ModulePaths()
        return self

    def __exit__(self, *error: object) -> None:
        _C._recorder_stop()
        self._paths.remove()
        records, places, dropped = _C._recorder_events()
        if dropped:
            raise RuntimeError(
                f"FlopCounterMode lost {dropped} of the events; count a part of the "
                "program"
            )
        counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for record in records:
            name, flops, line, node = (record[i] for i in (1, 9, 10, 13))
            if name.startswith(_COUNTED):
                # The line of the forward pass, for what the backward pass does.
                line = node if node >= 0 else line
                path = places[line][3] if line >= 0 else ""
                words = path.split(".") if path else []
                owners = [".".join(words[: i + 1]) for i in range(len(words))]
                for owner in ["Global", *owners]:
                    counts[owner][name] += int(flops)
        self.flop_counts = {owner: dict(found) for owner, found in counts.items()}
        if self.display:
            print(self.get_table(self.depth))

    def get_total_flops(self) -> int:
        """The FLOPs of all that was counted."""
        return sum(self.flop_counts.get("Global", {}).values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """By the path of a module, such as "Net.layers.0", the FLOPs of each kernel.

        "Global" is for all, those outside of modules too. PyTorch has operators in the
        place of the kernels' names.
        """
        return {owner: dict(found) for owner, found in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as a table; depth is the constructor's where it is None."""
        depth = self.depth if depth is None else depth
        total = max(self.get_total_flops(), 1)
        rows = [("Module", "FLOP", "% Total")]
        for owner, found in self.flop_counts.items():
            level = 0 if owner == "Global" else owner.count(".") + 1
            if level <= depth:
                own = sum(found.values())
                rows.append((" " * level + owner, f"{own:,}", f"{own / total:.2%}"))
                for name, flops in found.items():
                    cells = f"{flops:,}", f"{flops / total:.2%}"
                    rows.append((" " * level + f" - {name}", *cells))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            f"{a:{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows
        )


_publish(__name__)
