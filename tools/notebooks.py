"""Runs notebooks in a real Jupyter kernel and stores their outputs.

python tools/notebooks.py [NOTEBOOK...]     all of notebooks/ by default
"""

import sys
from pathlib import Path

import nbformat
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


def main(names):
    for path in [Path(name) for name in names] or sorted(NOTEBOOKS.glob("*.ipynb")):
        nbformat.write(execute(path), path)
        print(f"{path.name}: run, outputs stored")


if __name__ == "__main__":
    main(sys.argv[1:])
