"""Runs the GPU notebook and prints, section by section, what happened where.

On two real GPUs where the machine has them, else on two simulated ones.
"""

import os
import shutil
import sys
from pathlib import Path

from nbclient.exceptions import CellExecutionError

import notebooks

PATH = notebooks.NOTEBOOKS / "gpu.ipynb"


def texts(cell):
    for output in cell.get("outputs", ()):
        if output.output_type == "stream":
            yield output.text.rstrip()
        elif "text/plain" in output.get("data", {}):
            yield output.data["text/plain"].rstrip()


def main():
    os.environ.setdefault("PYDEVTENSOR_NOTEBOOK_GPUS", "2")
    # The kernel, which has no terminal, draws as wide as this one.
    os.environ["COLUMNS"] = str(shutil.get_terminal_size().columns)
    try:
        notebook = notebooks.execute(Path(PATH))
    except CellExecutionError as error:
        print(error)
        return "demo: a cell of notebooks/gpu.ipynb failed; its error is above"
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for line in cell.source.splitlines():
                if line.startswith("#"):
                    print(f"\n{line.lstrip('# ')}\n{'-' * len(line.lstrip('# '))}")
        else:
            for text in texts(cell):
                print(text)
    print("\ndemo: every cell ran")
    if os.environ.get("PYDEVTENSOR_QUICK", "0") not in ("", "0"):
        print(
            "demo: this was a quick build; `make build` compiles all as a release does"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
