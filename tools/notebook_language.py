"""Notebooks with the texts of another language in place of the English ones.

docs/LANGUAGE/notebooks/NAME.md holds the texts of notebooks/NAME.ipynb: those of its
Markdown cells in their order, with a line `---` between two of them. Links in it are
right where the file lies. Code and stored outputs stay as they are.
"""

import copy
import os
import re
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
LINK = re.compile(r"(\[[^\]]*\]\()([^)\s#]+)")


def texts_of(name, language):
    """The file with a notebook's texts in a language."""
    return ROOT / "docs" / language / "notebooks" / f"{name}.md"


def split_texts(text):
    """The texts of the cells that a file's text holds."""
    return [cell.strip("\n") for cell in re.split(r"^---$", text, flags=re.MULTILINE)]


def text_cells(notebook):
    """The Markdown cells of a notebook."""
    return [cell for cell in notebook.cells if cell.cell_type == "markdown"]


def translated(notebook, texts):
    """A notebook with these texts in its Markdown cells, which have to be as many."""
    result = copy.deepcopy(notebook)
    cells = text_cells(result)
    if len(cells) != len(texts):
        raise ValueError(
            f"there are {len(texts)} texts for {len(cells)} Markdown cells; "
            "write one for each cell, with a line --- between two"
        )
    for cell, text in zip(cells, texts, strict=True):
        cell.source = text
    return result


def moved_links(text, source, target, language):
    """A text with its links changed from one folder to another.

    A notebook that has texts in the language is linked to as it is written: to its
    neighbour in the target folder.
    """

    def moved(match):
        start, link = match.groups()
        if re.match(r"\w+:", link):
            return match[0]
        path = Path(os.path.normpath(source / link))
        if path.parent == NOTEBOOKS and texts_of(path.stem, language).exists():
            return start + path.name
        return start + Path(os.path.relpath(path, target)).as_posix()

    return LINK.sub(moved, text)


def write(path, language, folder=None):
    """Write a notebook in a language to a folder, build/notebooks/LANGUAGE by default.

    Returns the path of what was written.
    """
    folder = folder or ROOT / "build" / "notebooks" / language
    source = texts_of(path.stem, language)
    if not source.exists():
        raise FileNotFoundError(
            f"{path.name} has no texts in {language!r}: there is no {source}"
        )
    texts = [
        moved_links(text, source.parent, folder, language)
        for text in split_texts(source.read_text(encoding="utf-8"))
    ]
    notebook = translated(nbformat.read(path, as_version=4), texts)
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, folder / path.name)
    return folder / path.name
