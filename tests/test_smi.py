"""python -m pydevtensor smi."""

import pytest
from isolated import python
from test_top import program

SMI = ["-m", "pydevtensor", "smi"]


def cells(text):
    """The cells of the lines in the frame."""
    lines = [line for line in text.splitlines() if line.startswith(("|", "+"))]
    assert lines[0].startswith("+") and lines[-1].startswith("+")
    assert len({len(line) for line in lines}) == 1
    rows = [line for line in lines if line.startswith("|")]
    return [[c.strip() for c in row.strip("|").split(" | ")] for row in rows]


def test_the_gpus_of_the_environment():
    chosen = {"PYDEVTENSOR_SIM_GPUS": "2", "PYDEVTENSOR_SIM_MEMORY": "64M"}
    head, names, *rows = cells(python("", arguments=SMI, **chosen))
    assert "pydevtensor 0." in head[0] and "Driver: " in head[0]
    assert "simulated" in head[0].partition("CUDA: ")[2]
    assert names == ["GPU", "Name", "Memory used / total", "Load"]
    assert rows[0] == ["0", "Simulated GPU", "0.0 MiB / 64.0 MiB", "-"]
    assert rows[1][:2] == ["1", "Simulated GPU"]


def test_a_card_is_marked_as_simulated():
    chosen = {"PYDEVTENSOR_SIM_GPUS": "1", "PYDEVTENSOR_SIM_CARD": "t4"}
    text = python("", arguments=SMI, **chosen)
    assert "NVIDIA T4 (simulated)" in text and "/ 16.0 GiB" in text


def test_the_gpus_of_a_running_program():
    code = """
import pydevtensor as t
t.cuda.simulate(2, memory="512M")
x = t.zeros(5, 1 << 20, device="cuda:1")
"""
    with program(code) as pid:
        rows = cells(python("", arguments=SMI))
    mine = [row for row in rows[1:] if row[1] == f"Simulated GPU of process {pid}"]
    assert [row[0] for row in mine] == ["0", "1"]
    used, _, total = mine[1][2].partition(" / ")
    assert used.endswith("MiB") and float(used.split()[0]) >= 20
    assert total == "512.0 MiB"
    (row,) = [row for row in rows if row[0] == str(pid)]
    assert row[2] == "2 simulated"


@pytest.mark.slow
@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"PYDEVTENSOR_SIM_GPUS": "0"},
        {"PYDEVTENSOR_SIM_GPUS": "many"},
        {"PYDEVTENSOR_SIM_GPUS": "1", "PYDEVTENSOR_SIM_RACES": "loud"},
        {"PYDEVTENSOR_VIRTUAL_GPUS": "2"},
    ],
    ids=str,
)
def test_without_gpus_it_says_what_to_do(chosen):
    text = python("", arguments=SMI, **chosen)
    assert "pydevtensor 0." in cells(text)[0][0]
    assert "torch.cuda.simulate(2)" in text and "PYDEVTENSOR_SIM_GPUS=2" in text
    for value in set(chosen.values()) & {"many", "loud"}:
        assert value in text


def test_wrong_arguments():
    assert "usage" in python("", arguments=[*SMI, "all"], status=2, fails=True)
