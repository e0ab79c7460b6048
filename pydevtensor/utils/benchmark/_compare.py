"""Tables of measurements."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

from pydevtensor.utils.benchmark._measurement import (
    Measurement,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)

_BEST, _GOOD, _VERY_BAD, _BAD = (
    "\033[92m\033[1m{}\033[0m\033[0m",
    "\033[34m{}\033[0m",
    "\033[31m\033[1m{}\033[0m\033[0m",
    "\033[2m\033[91m{}\033[0m\033[0m",
)


class Colorize(enum.Enum):
    """Whether the times of a table have colours: by column, by row, or none.

    >>> from pydevtensor.utils.benchmark import Colorize
    >>> Colorize.ROWWISE.value
    'rowwise'
    """

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """A table for each label: a row for each sub-label, a column for each description.

    results  Measurements; those of the same task become one

    >>> from pydevtensor.utils import benchmark
    >>> task = benchmark.TaskSpec('x + 1', 'pass', '', 'add', 'float32', 'small')
    >>> table = benchmark.Compare([benchmark.Measurement(1, [2e-6] * 5, task)])
    >>> table.print()
    [------- add -------]
                  |  small
    1 threads: ----------
        float32   |    2.0
    <BLANKLINE>
    Times are in microseconds (us).
    <BLANKLINE>
    """

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim = False
        self._colorize = Colorize.NONE
        self._warnings = False

    def __str__(self) -> str:
        return "\n".join(self._render())

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add results, Measurements. Raises ValueError for anything else."""
        given = [*results]
        for each in given:
            if not isinstance(each, Measurement):
                raise ValueError(
                    f"a result is a {type(each).__name__}; give Measurements"
                )
        self._results += given

    def trim_significant_figures(self) -> None:
        """Show only the digits of a time that mean something."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour the best and the worst times.

        rowwise  compares the times of each row; False, the default, those of each
                 column
        """
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark the times that differ too much from one run to the next."""
        self._warnings = True

    def print(self) -> None:
        """Print the tables."""
        print(self)

    def _render(self) -> list[str]:
        merged = Measurement.merge(self._results)
        labels = ordered_unique(each.task_spec.label for each in merged)
        return [
            self._table([m for m in merged if m.task_spec.label == label])
            for label in labels
        ]

    def _text(self, each: Measurement, scale: float, digits: int) -> str:
        time = each.median / scale
        if self._trim:
            time = trim_sigfig(time, each.significant_figures)
        text = f"{time:.{digits}f}"
        if self._warnings and each.has_warnings:
            text += f" (! {each.iqr / each.median * 100:.0f}%)"
        return text

    def _table(self, results: list[Measurement]) -> str:
        unit, scale = select_unit(min(each.median for each in results))
        envs = ordered_unique(each.env for each in results)
        columns = ordered_unique(each.task_spec.description or "" for each in results)
        cells: dict[Any, Measurement] = {}
        rows: list[tuple[int, str | None, str]] = []
        for each in results:
            spec = each.task_spec
            row = spec.num_threads, each.env, each.as_row_name
            rows.append(row)
            cells[row, spec.description or ""] = each
        rows = sorted(ordered_unique(rows), key=lambda row: row[0])
        digits = (
            0
            if self._trim
            and all(
                trim_sigfig(m.median / scale, m.significant_figures) >= 10
                for m in results
            )
            else 1
        )
        texts = {key: self._text(each, scale, digits) for key, each in cells.items()}
        names = {
            row: " " * 4 + (f"({row[1]}) " if len(envs) > 1 else "") + row[2]
            for row in rows
        }
        first = max(map(len, names.values())) + 2
        widths = [
            max(len(c), *(len(texts.get((row, c), "")) for row in rows))
            for c in columns
        ]
        width = first + sum(w + 5 for w in widths) - 2
        label = results[0].task_spec.label or ""
        head = f"[{f' {label} '.center(max(width - 2, len(label) + 2), '-')}]"
        line = " " * first + "".join(
            f" |  {c:>{w}}" + ("  " if i + 1 < len(columns) else "")
            for i, (c, w) in enumerate(zip(columns, widths, strict=True))
        )
        lines = [head, line.rstrip()]
        threads = None
        for row in rows:
            if row[0] != threads:
                threads = row[0]
                lines.append(f"{threads} threads: ".ljust(width, "-"))
            shown = f"{names[row]:{first}}"
            for i, (c, w) in enumerate(zip(columns, widths, strict=True)):
                text = f"{texts.get((row, c), ''):>{w}}"
                if (row, c) in cells:
                    text = self._coloured(text, cells, row, c)
                shown += f" |  {text}" + ("  " if i + 1 < len(columns) else "")
            lines.append(shown.rstrip())
        lines += ["", f"Times are in {unit_to_english(unit)}s ({unit}).", ""]
        if self._warnings and any(each.has_warnings for each in results):
            lines[-1] = "(! XX%) The times differ much: XX is the IQR / median * 100."
            lines.append("")
        return "\n".join(lines)

    def _coloured(
        self, text: str, cells: dict[Any, Measurement], row: Any, column: str
    ) -> str:
        if self._colorize == Colorize.NONE:
            return text
        by_row = self._colorize == Colorize.ROWWISE
        others = [
            each.median
            for (r, c), each in cells.items()
            if (r == row if by_row else (c == column and r[0] == row[0]))
        ]
        time, best, worst = cells[row, column].median, min(others), max(others)
        if time <= best * 1.05:
            return _BEST.format(text)
        if time <= best * 1.25:
            return _GOOD.format(text)
        if time >= worst / 1.05 and worst > best * 1.8:
            return _VERY_BAD.format(text) if worst > best * 4 else _BAD.format(text)
        return text
