"""`make libraries`: libraries written for PyTorch, run with this package as torch.

python -P tools/libraries [NAME ...]           install and run, into results.json
python -P tools/libraries --record PYTHON ...  ask PyTorch what the programs print
python -P tools/libraries --list               the libraries

It runs in an environment of its own, without PyTorch. A library's programs are those of
its folder in tests/libraries, and print what they print under PyTorch
(tests/golden/libraries.json); its own tests are those of its source distribution that
catalogue.toml names. `make docs` writes results.json into docs/compatibility.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import tempfile
from pathlib import Path

import catalogue
import packages
import runs


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -P tools/libraries")
    parser.add_argument("names", nargs="*", help="libraries, in place of all")
    parser.add_argument("--record", metavar="PYTHON", help="one that has PyTorch")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--programs", action="store_true", help="not their own tests")
    given = parser.parse_args()
    libraries = catalogue.libraries()
    if given.list:
        print(*libraries, sep="\n")
        return 0
    if unknown := sorted(set(given.names) - set(libraries)):
        parser.error(f"no {', '.join(unknown)}; --list names those that there are")
    chosen = [libraries[name] for name in given.names or libraries]
    prepare(chosen)
    if given.record:
        return record(chosen, given.record)
    known = catalogue.results()
    for library in chosen:
        known[library.name] = tried(library, given.programs, known.get(library.name))
        text = json.dumps(dict(sorted(known.items())), indent=1)
        catalogue.RESULTS.write_text(text + "\n")
    return any(
        problem for row in known.values() for problem in row["programs"].values()
    )


def prepare(chosen: list[catalogue.Library]) -> None:
    """Install all at once; one by one where that fails, so that one fails alone."""
    packages.hold_places()
    wanted = sorted({word for library in chosen for word in library.install})
    if not packages.install(["pytest", *wanted]):
        for library in chosen:
            packages.install(library.install)


def tried(library: catalogue.Library, programs_alone: bool, before: object) -> dict:
    version = packages.installed(library.distribution)
    if version is None:
        return {"version": "", "programs": {"install": "pip does not install it"}}
    row = {
        "version": version,
        "day": datetime.date.today().isoformat(),
        "programs": {p.stem: runs.problem(p) for p in library.programs},
    }
    if library.tests and not programs_alone:
        with tempfile.TemporaryDirectory() as folder:
            source = packages.source(library.distribution, Path(folder))
            row["tests"] = source and runs.tests(library, source)
    elif isinstance(before, dict) and "tests" in before:
        row["tests"] = before["tests"]
    said = {name: problem for name, problem in row["programs"].items() if problem}
    counted = catalogue.counts(row.get("tests"))
    print(library.name, version, said or "runs", counted, flush=True)
    return row


def record(chosen: list[catalogue.Library], interpreter: str) -> int:
    """Asks PyTorch what the programs of single processes print."""
    known = runs.wanted()
    for library in chosen:
        for program in library.programs:
            if runs.is_launched(program):
                continue
            status, text = runs.run([interpreter, "-P"], program, theirs=True)
            print(runs.name(program), "recorded" if not status else text[-800:])
            if not status:
                known[runs.name(program)] = text.splitlines()
    runs.GOLDEN.write_text(
        json.dumps({"programs": known}, indent=1, sort_keys=True) + "\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
