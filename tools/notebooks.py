"""Runs notebooks in a real Jupyter kernel and stores their outputs.

python tools/notebooks.py [NOTEBOOK...]     all of notebooks/ by default
python tools/notebooks.py --language zh [NOTEBOOK...]
    runs none, but writes them with Chinese texts to build/notebooks/zh
"""

import argparse
import os
from pathlib import Path

import nbformat
import notebook_language
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"


def execute(path, timeout=600):
    """The notebook of a path, with the outputs of a run in a fresh kernel."""
    notebook = nbformat.read(path, as_version=4)
    # The kernel starts beside the notebook, away from the source tree's packages.
    NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        # It would warn of connections within the machine that are not encrypted.
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    return notebook


def chosen(names, language):
    """The notebooks of these names, by default all that have texts in the language."""
    if names:
        return [Path(name) for name in names]
    return [
        path
        for path in sorted(NOTEBOOKS.glob("*.ipynb"))
        if language is None or notebook_language.texts_of(path.stem, language).exists()
    ]


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Run notebooks, or translate them.")
    parser.add_argument("--language", help="write them with the texts of docs/LANGUAGE")
    parser.add_argument("notebooks", nargs="*", help="all by default")
    given = parser.parse_args(arguments)
    paths = chosen(given.notebooks, given.language)
    if not paths:
        parser.error(f"no notebook has texts in docs/{given.language}/notebooks")
    # Whoever runs them stores drawings in characters of the same width.
    os.environ["COLUMNS"] = "80"
    for path in paths:
        if given.language:
            print(f"{path.name}: {notebook_language.write(path, given.language)}")
        else:
            nbformat.write(execute(path), path)
            print(f"{path.name}: run, outputs stored")


if __name__ == "__main__":
    main()
