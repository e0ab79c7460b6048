"""Runs every benchmark, each in a process of its own: benchmarks/bench_*.py."""

import subprocess
import sys
from pathlib import Path


def main():
    failed = []
    for path in sorted(Path(__file__).parent.glob("bench_*.py")):
        print(f"--- {path.stem.removeprefix('bench_')}", flush=True)
        if subprocess.run([sys.executable, str(path), *sys.argv[1:]]).returncode:
            failed.append(path.name)
    if failed:
        sys.exit("failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
