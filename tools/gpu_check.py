"""make gpu-check: tests and measures pydevtensor on a machine with an NVIDIA GPU.

It builds for the GPU, runs a checker without Python, the tests, compute-sanitizer and
the benchmarks, in steps with a time limit each, and needs no network. A step that does
not run on a real GPU fails. The results are kept in a folder: a second run does what is
left, and the report is put together from all of them.

    gpu_check.py --results FOLDER              all steps
    gpu_check.py --results FOLDER --piece 1    one of 4, in less than nine minutes
    gpu_check.py --results FOLDER --steps tests,memcheck
    gpu_check.py --rehearse                    all steps on simulated GPUs, shortened

A rehearsal tries the steps where there is no GPU. It checks none: every line and the
report say so, and its exit status is 3 if all went well, and never 0.

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
REHEARSED = 3  # the exit status of a rehearsal in which nothing failed


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
        help="folder for results (default: $RESULTS, or build/gpu-check/results)",
    )
    parser.add_argument("--work", type=Path, help="folder for what is built")
    parser.add_argument(
        "--rehearse", action="store_true", help="run on simulated GPUs, and check none"
    )
    parser.add_argument(
        "--accept-commit",
        action="store_true",
        help="keep results of other commits; the report marks them",
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
    kind = "rehearsal" if chosen.rehearse else "gpu-check"
    if not chosen.rehearse:
        chosen.results = chosen.results or os.environ.get("RESULTS")
    chosen.results = chosen.results or ROOT / "build" / kind / "results"
    chosen.work = chosen.work or ROOT / "build" / kind / "work"
    if chosen.steps:
        names = chosen.steps.split(",")
        unknown = set(names) - {step.name for step in steps}
        if unknown:
            parser.error(
                f"there is no step {', '.join(sorted(unknown))}; --list shows them"
            )
    return chosen


def check_results(steps: Sequence[Step], place: Place, any_commit: bool) -> None:
    """Ends the run if the folder has results that are not to be mixed with these."""
    words = runner.REHEARSED if place.rehearsal else dict.fromkeys(runner.REHEARSED)
    own = {word or verdict for verdict, word in words.items()}
    for step in steps:
        found = runner.result_of(step, place)
        if found and found["verdict"] not in own:
            sys.exit(
                f"gpu-check: {place.results} has results of "
                f"{'a check' if place.rehearsal else 'a rehearsal'}; name another "
                "folder with --results"
            )
        if found and found["commit"] != place.commit and not any_commit:
            sys.exit(
                f"gpu-check: {place.results} has results of commit {found['commit']}, "
                f"and this is {place.commit}; name another folder with --results, or "
                "keep them with --accept-commit"
            )


def pack(place: Place, archive: Path) -> None:
    fresh = archive.with_name(archive.name + ".new")
    with tarfile.open(fresh, "w:gz") as file:
        wheel = f"{place.results.name}/wheel"  # the kit has it
        file.add(
            place.results,
            arcname=place.results.name,
            filter=lambda entry: None if entry.name == wheel else entry,
        )
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
        chosen.rehearse,
    )
    title = "gpu-check rehearsal" if place.rehearsal else "gpu-check"
    place.results.mkdir(parents=True, exist_ok=True)
    place.work.mkdir(parents=True, exist_ok=True)
    check_results(steps, place, chosen.accept_commit)
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
            print(f"{title}: {step.name}: {verdict} before", flush=True)
            continue
        print(f"{title}: {step.name}: {step.what}", flush=True)
        runner.run(step, steps, place, end - time.monotonic())
        found = runner.result_of(step, place)
        said = ": ".join(filter(None, (found["verdict"], found["why"])))
        print(f"{title}: {step.name}: {said}, {found['seconds']} s", flush=True)
        report.write(steps, place)
        if chosen.archive:
            pack(place, chosen.archive)
    report.write(steps, place)
    if chosen.archive:
        pack(place, chosen.archive)
    print(f"{title}: {report.summary(steps, place)}; see {place.results}/report.md")
    well = all(runner.passed(step, place) for step in wanted)
    return (REHEARSED if place.rehearsal else 0) if well else 1


if __name__ == "__main__":
    sys.exit(main())
