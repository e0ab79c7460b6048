"""make gpu-check: tests and measures pydevtensor on a machine with an NVIDIA GPU.

It builds for the GPU, runs a checker without Python, the tests, compute-sanitizer and
the benchmarks, in steps with a time limit each, and needs no network. A step that does
not run on a real GPU fails. The results are kept in a folder: a second run does what is
left, and the report is put together from all of them.

    gpu_check.py --results FOLDER              all steps
    gpu_check.py --results FOLDER --piece 1    one of 4, in less than nine minutes
    gpu_check.py --results FOLDER --steps tests,memcheck

PATH has to have nvidia-smi, nvcc and a C++ compiler; Python needs NumPy, setuptools and
pytest. PyTorch, CuPy, compute-sanitizer and ncu are used where they are; without them
their steps are not run, and the whole has not passed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from gpu import report, runner  # noqa: E402
from gpu.runner import Place, Step  # noqa: E402
from gpu.steps import STEPS  # noqa: E402

PIECE_SECONDS = 535


def commit_of(root: Path) -> str:
    """From the environment, from the file COMMIT of a carried folder, or from git."""
    if os.environ.get("COMMIT"):
        return os.environ["COMMIT"]
    if (root / "COMMIT").exists():
        return (root / "COMMIT").read_text().strip()
    try:
        done = subprocess.run(
            ["git", "-C", root, "describe", "--always", "--dirty"],
            capture_output=True,
            text=True,
        )
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def arguments(given: Sequence[str] | None, steps: Sequence[Step]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=os.environ.get("RESULTS") or ROOT / "build" / "gpu-check" / "results",
        help="folder for results (default: $RESULTS, or build/gpu-check/results)",
    )
    parser.add_argument(
        "--work",
        type=Path,
        default=ROOT / "build" / "gpu-check" / "work",
        help="folder for what is built",
    )
    some = parser.add_mutually_exclusive_group()
    some.add_argument("--piece", type=int, choices=(1, 2, 3, 4))
    some.add_argument("--steps", help="names, separated by commas")
    parser.add_argument("--again", action="store_true", help="also finished steps")
    parser.add_argument("--archive", type=Path, help="pack the results into a .tar.gz")
    parser.add_argument(
        "--seconds",
        type=float,
        help=f"begin no step after these (with --piece: {PIECE_SECONDS})",
    )
    parser.add_argument("--list", action="store_true", help="show the steps")
    chosen = parser.parse_args(given)
    if chosen.steps:
        names = chosen.steps.split(",")
        unknown = set(names) - {step.name for step in steps}
        if unknown:
            parser.error(
                f"there is no step {', '.join(sorted(unknown))}; --list shows them"
            )
    return chosen


def check_commit(steps: Sequence[Step], place: Place) -> None:
    for step in steps:
        found = runner.result_of(step, place)
        if found and found["commit"] != place.commit:
            sys.exit(
                f"gpu-check: {place.results} has results of commit {found['commit']}, "
                f"and this is {place.commit}; name another folder with --results"
            )


def pack(place: Place, archive: Path) -> None:
    fresh = archive.with_name(archive.name + ".new")
    with tarfile.open(fresh, "w:gz") as file:
        file.add(place.results, arcname=place.results.name)
    fresh.replace(archive)


def main(given: Sequence[str] | None = None, steps: Sequence[Step] = STEPS) -> int:
    chosen = arguments(given, steps)
    if chosen.list:
        for step in steps:
            print(f"{step.piece}  {step.name:16} {step.limit:4} s  {step.what}")
        return 0
    place = Place(
        ROOT,
        Path(os.path.abspath(chosen.results)),
        Path(os.path.abspath(chosen.work)),
        commit_of(ROOT),
    )
    place.results.mkdir(parents=True, exist_ok=True)
    place.work.mkdir(parents=True, exist_ok=True)
    check_commit(steps, place)
    names = chosen.steps.split(",") if chosen.steps else None
    wanted = [
        step
        for step in steps
        if (names is None or step.name in names)
        and (chosen.piece is None or step.piece == chosen.piece)
    ]
    seconds = chosen.seconds or (PIECE_SECONDS if chosen.piece else float("inf"))
    end = time.monotonic() + seconds
    for step in runner.with_needs(wanted, steps):
        repeat = chosen.again and step in wanted
        if runner.finished(step, place) and not repeat:
            verdict = runner.result_of(step, place)["verdict"]
            print(f"gpu-check: {step.name}: {verdict} before", flush=True)
            continue
        print(f"gpu-check: {step.name}: {step.what}", flush=True)
        runner.run(step, steps, place, end - time.monotonic())
        found = runner.result_of(step, place)
        said = ": ".join(filter(None, (found["verdict"], found["why"])))
        print(f"gpu-check: {step.name}: {said}, {found['seconds']} s", flush=True)
        report.write(steps, place)
        if chosen.archive:
            pack(place, chosen.archive)
    report.write(steps, place)
    if chosen.archive:
        pack(place, chosen.archive)
    print(f"gpu-check: {report.summary(steps, place)}; see {place.results}/report.md")
    return 0 if all(runner.passed(step, place) for step in wanted) else 1


if __name__ == "__main__":
    sys.exit(main())
