"""Runs every benchmark, each in a process of its own: benchmarks/bench_*.py.

bench_summary.py and bench_footprint.py write their results to benchmarks/results.
"""

import subprocess
import sys
from pathlib import Path


def main():
    failed = []
    for path in sorted(Path(__file__).parent.glob("bench_*.py")):
        print(f"--- {path.stem.removeprefix('bench_')}", flush=True)
        writes = path.stem in ("bench_summary", "bench_footprint")
        more = ["--write"] if writes else []
        command = [sys.executable, str(path), *sys.argv[1:], *more]
        if subprocess.run(command).returncode:
            failed.append(path.name)
    if failed:
        sys.exit("failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
