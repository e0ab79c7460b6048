"""The benchmark that runs on a machine with a GPU, its report, and the kit that carries it there."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from gpu import install, kit
from isolated import python

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_benchmark_runs_every_case_and_reports_no_time(tmp_path):

    out = python(
        None,
        arguments=[
            str(ROOT / "benchmarks" / "bench_gpu.py"),
            *("--simulated", "--out", str(tmp_path)),
        ],
        PYDEVTENSOR_SIM_GPUS="1",
    )
    assert "ran on cuda:0 Simulated GPU (simulated)" in out
    data = json.loads((tmp_path / "bench.json").read_text())
    assert not data["errors"] and not data["left_out"]
    assert len(data["families"]) > 50
    assert {
        value for row in data["families"] for value in row["microseconds"].values()
    } == {"simulated"}
    report = (tmp_path / "bench.md").read_text()
    assert report.startswith("# Speed on Simulated GPU\n\nThe device is simulated")
    cells = [cell.strip() for cell in re.findall(r"(?<=\|)[^|\n]+(?=\|)", report)]
    assert "softmax of 1024" in cells
    # No cell is a number but the sizes of operands, and goals.
    numbers = {c for c in cells if re.fullmatch(r"[\d.e+%-]*\d[\d.e+%-]*", c)}
    assert numbers <= {"4e+03", "0.9"}
    assert "goals: simulated: nothing is compared" in out
    plot = (tmp_path / "bench.svg").read_text()
    assert "simulated: nothing was measured" in plot and "sort, topk: sort" in plot
    assert plot.count("<circle") == 1  # in the legend


def test_the_report_of_a_measurement():
    """Shares, ratios and what could not be measured."""
    import importlib.util

    spec = importlib.util.spec_from_file_location(
        "gpu_report", ROOT / "benchmarks" / "gpu_report.py"
    )
    gpu_report = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gpu_report)

    def row(case, ours, theirs, share, goal=None):
        times = {"pydevtensor": ours, "torch": theirs}
        return {
            "size": 1e7,
            "family": "f",
            "case": case,
            "microseconds": times,
            "share": share,
            "goal": goal,
        }

    data = {
        "device": {"name": "NVIDIA T4", "simulated": False, "l2": 6e7},
        "libraries": ["pydevtensor", "torch"],
        "rounds": 20,
        "left_out": 2,
        "sizes": [1e7],
        "copies": [{"size": 1e7, "microseconds": 50.0, "rate": 400.0}],
        "families": [row("a", 10.0, 15.0, 0.9, 0.75), row("b", 10.0, "error", 0.4, 0.5)]
        + [row("c", "memory", 1.0, "memory", 0.75), row("d", 10.0, 15.0, 0.2)],
        "tiny": [{"case": "t", "host": {"pydevtensor": 900.0}, "waited": {}}],
        "products": [{"shape": "(1)", "type": "tf32", "rates": {"torch": 40.0}}],
        "networks": [
            {
                "network": "n",
                "microseconds": {"pydevtensor": 100.0, "torch": 50.0},
                "goal": 0.9,
            }
        ],
        "errors": [],
    }
    text = gpu_report.markdown(data, "bench.svg")
    assert "| f | a | 10 | 90% | 75% | 1.50 |" in text
    assert "| f | b | 10 | 40% | 50% | error |" in text
    assert "| f | c | memory | memory | 75% | - |" in text
    assert "| n | 100 | 50 | 0.50 | 0.9 |" in text
    assert gpu_report.goals(data) == [
        "goals: 1 of 3 reached",
        "missed: f: b: 40% of the hardware, not 50%",
        "missed: n: 50% of PyTorch, not 90%",
    ]
    assert "Not measured, the time was over: 2 cases." in text
    assert "| (1) | tf32 | - | 40 |" in text
    plot = gpu_report.svg(data)
    assert plot.count("<circle") == 4 and "NVIDIA T4" in plot


@pytest.mark.slow
def test_the_kit_is_complete_and_small(tmp_path, monkeypatch):
    monkeypatch.setattr(
        kit, "build_checker", lambda folder: (folder / "checker").mkdir()
    )
    folder = tmp_path / "kit"
    assert kit.make(folder) < kit.LIMIT
    for name in (
        "setup.py",
        "csrc/sim/sim.h",
        "tests/conftest.py",
        "check.sh",
        "checker",
    ):
        assert (folder / name).exists(), name
    assert not (folder / "build").exists() and not (folder / ".venv").exists()
    assert (folder / "COMMIT").read_text().strip()
    # Its script runs the pieces; without a GPU the first step says so.
    done = subprocess.run(
        ["sh", "check.sh", tmp_path / "results", "3"],
        cwd=folder,
        env={**os.environ, "PYTHON": sys.executable, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "gpu-check: memcheck: not run: machine has not passed" in done.stdout
    # Carried to another machine, the results go on from there.
    shutil.rmtree(tmp_path / "results")
    done = subprocess.run(
        ["sh", folder / "check.sh", "results", "4"],
        cwd=tmp_path,
        env={**os.environ, "PYTHON": sys.executable, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    said = (tmp_path / "results" / "report.md").read_text()
    assert "| memcheck | 3 |" in said and said.count("| not run: ") == 11


def test_a_wheel_of_another_python_is_not_taken(tmp_path):
    import zipfile

    platform = sysconfig.get_platform().replace("-", "_")

    def wheel(tag, *names):
        path = tmp_path / f"pydevtensor-1-{tag}-{tag}-{platform}.whl"
        with zipfile.ZipFile(path, "w") as file:
            for name in names:
                file.writestr(name, "")
        return path

    own = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    assert not install.fits(wheel("cp39", "pydevtensor/_cuda.so"))
    assert not install.fits(wheel(own, "pydevtensor/_C.so"))
    assert install.fits(wheel(own, "pydevtensor/_cuda.so"))
