"""Operations beside other programs that keep every core busy: how many times slower.

    python benchmarks/bench_busy.py [rounds] [neighbours]

Runs the cases of bench_summary.py alone, and beside as many spinning processes as there
are cores, in turn, and prints the ratios of the medians. A thread then has half of a
core, so 2 is what to expect.
"""

import os
import statistics
import subprocess
import sys
from contextlib import contextmanager

from bench_summary import NAMES, cases, measured
from compare import rounds
from gpu_report import table

SPIN = [sys.executable, "-c", "while True: pass"]


@contextmanager
def neighbours(count):
    running = [subprocess.Popen(SPIN) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def medians(seen):
    return [{n: statistics.median(t) for n, t in case.items()} for case in seen]


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else os.cpu_count()
    alone, busy = ([{} for _ in cases()] for _ in range(2))
    for _ in range(rounds(3)):
        for seen, beside in ((alone, 0), (busy, count)):
            with neighbours(beside):
                found = measured(1)
            for kept, by_name in zip(seen, found, strict=True):
                for name, times in by_name.items():
                    kept.setdefault(name, []).extend(times)
    alone, busy = medians(alone), medians(busy)
    names = [name for name in NAMES if any(name in case for case in alone)]
    rows = [
        [case.label] + [f"{b[n] / a[n]:.1f}" if n in a else "-" for n in names]
        for case, a, b in zip(cases(), alone, busy, strict=True)
    ]
    print(f"times beside {count} spinning processes over those alone")
    print("\n".join(table(["", *names], rows)))


if __name__ == "__main__":
    main()
