"""Times of one statement, and what they sum up to."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, median, pstdev
from typing import Any

_UNITS = {
    "ns": ("nanosecond", 1e-9),
    "us": ("microsecond", 1e-6),
    "ms": ("millisecond", 1e-3),
    "s": ("second", 1),
}
# Times whose interquartile range is more of the median are not to be trusted.
_BAD = 0.1
_FEW = 4


@dataclass(frozen=True)
class TaskSpec:
    """A statement that is measured, and what tells it from others.

    stmt          the statement, as text
    setup         what runs before it, as text: "pass" for nothing
    global_setup  of statements in C++: empty here, the default
    label         the name of the table of Compare, or None, the default
    sub_label     the name of its row; None, the default, is stmt
    description   the title of its column, or None, the default
    env           the name of the environment, or None, the default
    num_threads   how many threads functions may use: 1 by default

    >>> from pydevtensor.utils.benchmark import TaskSpec
    >>> TaskSpec('x + 1', 'pass', label='add', sub_label='float32').title
    'add: float32'
    """

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement, and the sub-label."""
        sub = self.sub_label
        if self.label is not None:
            return self.label + (f": {sub}" if sub else "")
        if "\n" not in self.stmt:
            return self.stmt + (f": {sub}" if sub else "")
        lines = "".join(f"  {line}\n" for line in self.stmt.splitlines())
        return f"stmt:{f' ({sub})' if sub else ''}\n{lines}"

    def setup_str(self) -> str:
        """The setup as text, empty where there is none."""
        if self.setup in ("", "pass"):
            return ""
        if "\n" not in self.setup:
            return f"setup: {self.setup}"
        return "setup:\n" + "".join(f"  {line}\n" for line in self.setup.splitlines())

    def summarize(self) -> str:
        """Title, description and setup, in lines."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join(part for part in parts if part)


@dataclass(repr=False)
class Measurement:
    """The times of a statement, each of some runs; seconds everywhere.

    number_per_run  how many runs a time is of
    raw_times       the times
    task_spec       what was measured
    metadata        what the program wants to keep with them

    >>> from pydevtensor.utils.benchmark import Measurement, TaskSpec
    >>> times = Measurement(10, [0.001, 0.003, 0.002], TaskSpec('x + 1', 'pass'))
    >>> times.median
    0.0002
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in TaskSpec.__dataclass_fields__ and name != "task_spec":
            return getattr(self.task_spec, name)
        raise AttributeError(f"Measurement has no {name!r}")

    @property
    def times(self) -> list[float]:
        """The times of one run."""
        return [t / self.number_per_run for t in self.raw_times]

    def _quantile(self, part: float) -> float:
        ordered = sorted(self.times)
        at = part * (len(ordered) - 1)
        low, high = ordered[math.floor(at)], ordered[math.ceil(at)]
        return low + (high - low) * (at % 1)

    @property
    def mean(self) -> float:
        """The mean time of a run."""
        return fmean(self.times)

    @property
    def median(self) -> float:
        """The median of the times of a run."""
        return median(self.times)

    @property
    def iqr(self) -> float:
        """The interquartile range: the middle half of the times is in it."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """How many digits of the median mean something, from 1 to 4.

        It is known to 1.645 deviations of the mean of the middle half of the times.
        """
        count = len(self.raw_times)
        middle = sorted(self.times)[count // 4 : math.ceil(3 * count / 4)]
        known = 1.645 * pstdev(middle) / math.sqrt(len(middle))
        digits = 4 if known <= 0 else math.floor(math.log10(self.median / known))
        return max(1, min(digits, 4))

    @property
    def has_warnings(self) -> bool:
        """Whether the times differ too much to trust: their range is over a tenth."""
        return not self.meets_confidence()

    def meets_confidence(self, threshold: float = _BAD) -> bool:
        """Whether the middle half of the times is in a range of threshold * median."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """The label, or the statement, and the sub-label."""
        return self.task_spec.title

    @property
    def env(self) -> str | None:
        """The environment that the program named."""
        return self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """The name of its row in a table."""
        spec = self.task_spec
        return spec.sub_label or spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        count, runs = len(self.raw_times), self.number_per_run
        unit, scale = select_unit(self.median)
        lines = [
            f"<pydevtensor.utils.benchmark.Measurement>\n{self.task_spec.summarize()}"
        ]
        several = count > 1
        lead = "  Median: " if several else "  "
        lines.append(f"{lead}{self.median / scale:.2f} {unit}")
        if count >= _FEW:
            low, high = self._quantile(0.25) / scale, self._quantile(0.75) / scale
            iqr = f"{self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})"
            lines.append(f"  IQR:    {iqr}")
        threads = self.task_spec.num_threads
        lines.append(
            f"  {count} measurement{'s' * several}, {runs} runs "
            f"{'per measurement' if several else ''}, "
            f"{threads} thread{'s' * (threads > 1)}"
        )
        if count >= _FEW and self.has_warnings:
            lines.append(
                f"  WARNING: the interquartile range is {self.iqr / self.median:.1%} "
                "of the median:\n           something else used the processor"
            )
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, with the times of all that are of it.

        measurements  Measurements, of the same task or of several

        >>> from pydevtensor.utils.benchmark import Measurement, TaskSpec
        >>> task = TaskSpec('x + 1', 'pass')
        >>> merged = Measurement.merge(Measurement(1, [t], task) for t in (1.0, 2.0))
        >>> merged[0].times
        [1.0, 2.0]
        """
        groups: dict[TaskSpec, list[Measurement]] = defaultdict(list)
        for each in measurements:
            groups[each.task_spec].append(each)
        return [
            Measurement(1, [t for each in group for t in each.times], task)
            for task, group in groups.items()
        ]


def select_unit(t: float) -> tuple[str, float]:
    """The unit for a time of t seconds, and how many seconds the unit is.

    >>> from pydevtensor.utils.benchmark import select_unit
    >>> select_unit(2e-5)
    ('us', 1e-06)
    """
    at = min(max(math.floor(math.log10(t) / 3), -3), 0) if t > 0 else -3
    unit = {-3: "ns", -2: "us", -1: "ms", 0: "s"}[at]
    return unit, _UNITS[unit][1]


def unit_to_english(u: str) -> str:
    """The name of the unit u: "ns", "us", "ms" or "s".

    >>> from pydevtensor.utils.benchmark import unit_to_english
    >>> unit_to_english('us')
    'microsecond'
    """
    return _UNITS[u][0]


def trim_sigfig(x: float, n: int) -> float:
    """x rounded to n significant digits.

    >>> from pydevtensor.utils.benchmark import trim_sigfig
    >>> trim_sigfig(123456, 3)
    123000.0
    """
    if x == 0:
        return 0.0
    scale = 10 ** (math.ceil(math.log10(abs(x))) - n)
    return float(round(x / scale) * scale)


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """The elements, each once, in the order of the first.

    >>> from pydevtensor.utils.benchmark import ordered_unique
    >>> ordered_unique([2, 1, 2])
    [2, 1]
    """
    return list(dict.fromkeys(elements))
