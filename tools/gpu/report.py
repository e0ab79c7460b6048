"""The report: Markdown, put together from a folder of results."""

from __future__ import annotations

import time
from collections.abc import Sequence

from .runner import FAILED, NOT_RUN, PASSED, Place, Step, log_of, result_of

REHEARSAL = "REHEARSAL on simulated GPUs, no check of a GPU"


def verdicts(steps: Sequence[Step], place: Place) -> dict[str, str]:
    return {s.name: (result_of(s, place) or {"verdict": ""})["verdict"] for s in steps}


def summary(steps: Sequence[Step], place: Place) -> str:
    """One line. Only if every step has passed, the whole has."""
    seen = list(verdicts(steps, place).values())
    if all(verdict == PASSED for verdict in seen) and not place.rehearsal:
        return f"passed: all {len(seen)} steps"
    words = [(PASSED, "passed"), (FAILED, "failed"), (NOT_RUN, "could not run")]
    if place.rehearsal:
        words = [(place.word(verdict),) * 2 for verdict, _ in words]
    counts = [
        f"{seen.count(verdict)} {said}"
        for verdict, said in (*words, ("", "to do"))
        if verdict in seen
    ]
    if place.rehearsal:
        return "{}: of {} steps {}".format(REHEARSAL, len(seen), ", ".join(counts))
    return "not passed: of {} steps {}".format(len(seen), ", ".join(counts))


def _tail(text: str, lines: int, place: Place) -> str:
    for folder, name in ((place.work, "WORK"), (place.results, "RESULTS")):
        text = text.replace(str(folder), name)
    return "\n".join(text.replace(str(place.root), ".").splitlines()[-lines:])


def write(steps: Sequence[Step], place: Place) -> None:
    rows = []
    for step in steps:
        found = result_of(step, place)
        to_do = "to do in the rehearsal" if place.rehearsal else "to do"
        verdict, why = (found["verdict"], found["why"]) if found else (to_do, "")
        seconds = f"{found['seconds']:.0f} of {place.limit(step)}" if found else ""
        said = f"{verdict}: {why}" if why else verdict
        if found and found["commit"] != place.commit:
            said += f" (commit {found['commit']})"
        rows.append(
            f"| {step.name} | {step.piece} | {step.what} | {said} | {seconds} |"
        )
    lines = [
        f"# {'' if place.rehearsal else 'GPU check: '}{summary(steps, place)}",
        "",
        f"Commit {place.commit}, {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC.",
        "",
        "| step | piece | what | result | seconds |",
        "|---|---|---|---|---|",
        *rows,
    ]
    for step in steps:
        log = log_of(step, place)
        found = result_of(step, place)
        if found and log and (step.shown or found["verdict"] != PASSED):
            shown = step.shown or 25
            tail = _tail(log, shown, place)
            lines += ["", f"## {step.name}: {found['verdict']}", "", "```", tail, "```"]
    for path in sorted(place.results.glob("*.failures")):
        text = _tail(path.read_text(errors="replace"), 400, place)
        if text:
            title = f"## {path.stem}: what failed"
            lines += ["", title, "", "```", text, "```"]
    measured = place.results / "bench.md"
    if measured.exists():
        lines += ["", measured.read_text().rstrip()]
    (place.results / "report.md").write_text("\n".join(lines) + "\n")
