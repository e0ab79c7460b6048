"""The schedules of the test suite: tests of simulated GPUs run with delayed work."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from isolated import environment

PROBE = """
import pydevtensor as torch

def test_nothing_waits_to_be_run(device):
    x = torch.zeros(10, device=device)
    for _ in range(20):
        x += 1
    if device != "cpu":
        assert torch.cuda.current_stream(device).query()
"""


@pytest.fixture
def probe(tmp_path):
    """Runs the test above with this suite's conftest; each failure's schedule by device."""
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_probe.py").write_text(PROBE)

    def run(**chosen):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."],
            cwd=tmp_path,
            env=environment(**chosen),
            capture_output=True,
            text=True,
            timeout=120,
        )
        said = dict(
            re.findall(
                r"^_+ test_\w+\[(\S+)\] _+$.*?PYDEVTENSOR_SIM_SCHEDULE=(\S+)$",
                done.stdout,
                re.MULTILINE | re.DOTALL,
            )
        )
        assert f"{len(said)} failed" in done.stdout or not (done.returncode or said)
        return said

    return run


@pytest.mark.slow
def test_work_is_put_off_and_a_failure_says_how(probe):
    said = probe()
    assert said.keys() == {"cuda:0", "cuda:1"} and said["cuda:0"] == "lazy"
    assert re.fullmatch(r"random:\d+", said["cuda:1"])
    again = probe(PYDEVTENSOR_SIM_SCHEDULE=said["cuda:1"])
    assert again["cuda:1"] == said["cuda:1"]
    assert probe(PYDEVTENSOR_SIM_SCHEDULE="eager") == {}
