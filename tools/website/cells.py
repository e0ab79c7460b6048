"""A notebook, with the outputs that it is stored with, as a page in Markdown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat

# A stored output may have escape sequences of terminals.
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def first_line(path: Path) -> str:
    """The first line of a page or of a notebook's first text."""
    if path.suffix != ".ipynb":
        return path.read_text(encoding="utf-8").partition("\n")[0]
    notebook = nbformat.read(path, as_version=4)
    texts = (cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return next(texts).partition("\n")[0]


def fenced(kind: str, text: str) -> str:
    """A block whose fence is longer than any inside of it."""
    inner = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (inner + 1)
    return f"{fence}{kind}\n{text.rstrip()}\n{fence}\n"


def shown(text: str) -> str:
    return fenced("{code-block} text\n:class: output\n", COLOURS.sub("", text))


def output(given: Any, picture: Path) -> str:
    """An output in the richest form that pages have; an SVG is written as a file."""
    if given.output_type == "stream":
        return shown(given.text)
    if given.output_type == "error":
        return shown("\n".join(given.traceback))
    if "text/html" in given.data:
        return fenced(
            "{raw} html", f'<div class="output">{given.data["text/html"]}</div>'
        )
    if "image/svg+xml" in given.data:
        picture.write_text(given.data["image/svg+xml"], encoding="utf-8")
        return f"![{given.data['text/plain']}]({picture.name})\n"
    return shown(given.data["text/plain"])


def outputs(cell: Any) -> list[Any]:
    """Those of a cell; texts that follow each other on one stream are one."""
    found: list[Any] = []
    for given in cell.outputs:
        last = found[-1] if found else None
        if (
            given.output_type == "stream"
            and last is not None
            and last.output_type == "stream"
            and last.name == given.name
        ):
            last.text += given.text
        else:
            found.append(given)
    return found


def markdown(notebook: Any, file: Path) -> str:
    """The page's text; pictures are files beside it that begin with its name."""
    parts = []
    pictures = 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(f"{cell.source.rstrip()}\n")
            continue
        # A line for the shell is no Python, and would be a warning.
        shell = any(line.startswith("!") for line in cell.source.splitlines())
        parts.append(fenced("text" if shell else "python", cell.source))
        for given in outputs(cell):
            pictures += 1
            picture = file.with_name(f"{file.name}-{pictures}.svg")
            parts.append(output(given, picture))
    return "\n".join(parts)
