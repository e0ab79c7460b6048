"""Counts the lines of the product, as a reader meets them and those with a token.

python tools/lines.py

Lines with a token are neither blank nor part of a comment or a docstring.
"""

import io
import re
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
C = {".c", ".h", ".cpp", ".cu", ".cuh", ".def", ".inc"}
# The layers of pydevtensor/ from the lowest to the highest (ARCHITECTURE.md), which
# tests/tools/test_python_floors.py holds the imports against.
LAYERS = {
    "ground": "_C _absent _answers _archive _autocast _classes _determinism "
    "_graphs _kinds module_paths _names _notebook _numpy _pickler _records "
    "_shared_memory _signatures _streams _tree _unpickler _variables cpu futures "
    "printing torch_version types version",
    "differentiation": "amp autograd compiler random storage",
    "functions": "_functions fft special",
    "linear algebra": "linalg masked",
    "devices": "cuda",
    "processes": "distributed",
    "networks": "func nn",
    "training": "_settings _sharing _spawn functional hub multiprocessing optim "
    "safetensors serialization testing utils",
    "sharding": "distributed.algorithms distributed.checkpoint distributed.fsdp "
    "distributed.optim",
    "extras": "array_api autograd.profiler distributions fx library onnx ops overrides "
    "profiler quasirandom signal sparse vision",
    "aliases": "_aliases",
    "imitations": "__config__ _as_torch _private_names _stand_ins accelerator backends "
    "jit mps xpu",
    "tools": "__main__ _cluster _estimate _launch _magic _nvcc _pytest _run _smi _top",
}
# Those that are counted apart from the core.
PARTS = {
    part: LAYERS[part].split()
    for part in ("processes", "extras", "imitations", "tools")
}
_COMMENTS = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")', re.S)
_SPACE = {tokenize.COMMENT, tokenize.NL}
_ENDS = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def numbered_of_python(text):
    """The lines with a token, each with its number."""
    lines, before = set(), tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in _SPACE:
            continue
        is_docstring = token.type == tokenize.STRING and before in _ENDS
        if token.type not in _ENDS and not is_docstring:
            lines.update(range(token.start[0], token.end[0] + 1))
        before = token.type
    return [(i, t) for i, t in enumerate(text.splitlines(), 1) if i in lines]


def numbered_of_c(text):
    kept = _COMMENTS.sub(lambda m: m[1] or "\n" * m[0].count("\n"), text)
    return [(i, t) for i, t in enumerate(kept.splitlines(), 1) if t.strip()]


def with_tokens(path):
    """The lines of a file with a token, each with its number."""
    numbered = numbered_of_c if path.suffix in C else numbered_of_python
    return numbered(path.read_text())


def part_of(path):
    """The part that a file counts for."""
    folder, *rest = path.relative_to(ROOT).with_suffix("").parts
    if folder == "csrc":
        return "csrc"
    names = {rest[0], ".".join(rest[:2])}
    return next((part for part, units in PARTS.items() if names & {*units}), "core")


def count():
    """By part: files, lines, lines with a token."""
    found = {part: [0, 0, 0] for part in ("csrc", "core", *PARTS)}
    paths = [p for p in (ROOT / "csrc").rglob("*") if p.suffix in C]
    for path in [*paths, *(ROOT / "pydevtensor").rglob("*.py")]:
        numbers = 1, len(path.read_text().splitlines()), len(with_tokens(path))
        part = part_of(path)
        found[part] = [a + b for a, b in zip(found[part], numbers, strict=True)]
    return found


def main():
    found = count()
    found["together"] = [sum(column) for column in zip(*found.values(), strict=True)]
    print(f"{'part':<12}{'files':>8}{'lines':>9}{'with a token':>14}")
    for part, (files, lines, tokens) in found.items():
        print(f"{part:<12}{files:>8}{lines:>9}{tokens:>14}")


if __name__ == "__main__":
    sys.exit(main())
