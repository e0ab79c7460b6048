"""Counts the runs of lines that stand in the sources twice, and lines of docstrings.

python tools/repeats.py [LINES]

A run is at least LINES lines with a token, 5 by default, that are equal but for their
indentation. Docstrings, comments and imports are not counted. A run that stands in
three places is three pairs. Lists the pairs, the longest first.

A line of a docstring, examples aside, is counted where a docstring before has it too.
"""

import ast
import re
import sys
from collections import Counter, defaultdict
from itertools import combinations

import lines

ROOT = lines.ROOT
SHORTEST = 5
FOLDERS = {"csrc": lines.C, "pydevtensor": {".py"}}
_IMPORT = re.compile(r"(?:from|import) |#include")


def read(path):
    """The lines of a file that count, each with its number."""
    found = [(number, line.strip()) for number, line in lines.with_tokens(path)]
    return [each for each in found if not _IMPORT.match(each[1])]


def pairs(files, shortest=SHORTEST):
    """(length, file, line, other file, its line) of each pair, the longest first."""
    starts = defaultdict(list)
    for name, text in files.items():
        for i in range(len(text) - shortest + 1):
            run = tuple(line for _, line in text[i : i + shortest])
            starts[run].append((name, i))
    equal = {pair for each in starts.values() for pair in combinations(each, 2)}
    found = []
    for (a, i), (b, j) in equal:
        if ((a, i - 1), (b, j - 1)) in equal or (a == b and j - i < shortest):
            continue
        length = shortest
        while ((a, i + length - shortest + 1), (b, j + length - shortest + 1)) in equal:
            length += 1
        found.append((length, a, files[a][i][0], b, files[b][j][0]))
    return sorted(found, key=lambda pair: (-pair[0], *pair[1:]))


def count(folder, shortest=SHORTEST):
    """The pairs in a folder of the sources."""
    paths = (p for p in (ROOT / folder).rglob("*") if p.suffix in FOLDERS[folder])
    files = {path.relative_to(ROOT).as_posix(): read(path) for path in sorted(paths)}
    return pairs(files, shortest)


def described():
    """The lines of docstrings, each with how often it stands in pydevtensor."""
    found = Counter()
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for path in (ROOT / "pydevtensor").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, documented):
                prose = (ast.get_docstring(node) or "").partition(">>> ")[0]
                found.update(" ".join(t.split()) for t in prose.splitlines())
    del found[""]
    return found


def copied():
    """The lines of docstrings that stand in one before, with how often they do."""
    return Counter({line: n - 1 for line, n in described().items() if n > 1})


def main(*given):
    shortest = int(given[0]) if given else SHORTEST
    for folder in FOLDERS:
        found = count(folder, shortest)
        for length, a, i, b, j in found:
            print(f"{length:>4} lines: {a}:{i} and {b}:{j}")
        print(f"{folder}: {len(found)} pairs")
    print(f"docstrings: {copied().total()} copied lines of {described().total()}")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
