"""The notebooks run in a real Jupyter kernel: on simulated GPUs and on the CPU alone."""

import os
from pathlib import Path

import pytest
from isolated import environment

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
nbformat = pytest.importorskip("nbformat")


def printed(notebook):
    texts = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            assert output.output_type != "error", output
            texts.append(
                output.get("text") or output.get("data", {}).get("text/plain", "")
            )
    return "\n".join(texts)


def run(path, monkeypatch, gpus):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import notebooks

    for name in list(os.environ):
        if name.startswith("PYDEVTENSOR_"):
            monkeypatch.delenv(name)
    for name, value in environment(PYDEVTENSOR_NOTEBOOK_GPUS=str(gpus)).items():
        monkeypatch.setenv(name, value)
    return printed(notebooks.execute(path, timeout=300))


@pytest.mark.parametrize("gpus", [0, 2])
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_runs(path, gpus, monkeypatch):
    text = run(path, monkeypatch, gpus)
    assert f"GPUs: {gpus}" in text
    assert ("cuda:1" in text) == (gpus == 2) or not gpus


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_is_stored_with_the_outputs_of_two_gpus(path):
    text = printed(nbformat.read(path, as_version=4))
    assert "GPUs: 2" in text and "imulated" in text
