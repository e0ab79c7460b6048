"""The standard's own test suite, array-api-tests, on pydevtensor.array_api.

It is not a package: PYDEVTENSOR_ARRAY_API_TESTS names the folder of a checkout with its
submodules; what it imports (ndindex, pytest-json-report) has to be installed.
tests/array_api_xfails.txt has what is expected to fail, with the reasons.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from isolated import environment

FOLDER = os.environ.get("PYDEVTENSOR_ARRAY_API_TESTS")
XFAILS = Path(__file__).parent / "array_api_xfails.txt"
EXAMPLES = "20"
# Types that the library does not have, which the suite would otherwise ask for.
ABSENT = "uint16,uint32,uint64"
# The suite has no option for the device, but takes code that makes the module.
ON_GPU = """exec(
import pydevtensor
pydevtensor.set_default_device("cuda")
from pydevtensor import array_api as xp
)"""


@pytest.mark.slow
@pytest.mark.skipif(
    not FOLDER, reason="PYDEVTENSOR_ARRAY_API_TESTS names no checkout of the suite"
)
@pytest.mark.parametrize(
    ("module", "gpus", "options"),
    [
        ("pydevtensor.array_api", "0", []),
        # A simulated GPU's memory is out of other libraries' reach.
        (ON_GPU, "1", ["--deselect=array_api_tests/test_dlpack.py"]),
    ],
    ids=["cpu", "cuda"],
)
def test_the_suite(module, gpus, options):
    assert FOLDER and (Path(FOLDER) / "array_api_tests").is_dir(), FOLDER
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "array_api_tests", "-q", "-rfE"]
        + ["-p", "no:cacheprovider", "--maxfail=50", "--max-examples", EXAMPLES]
        # In one word, or pytest takes the file's folder for one with tests.
        + ["--disable-deadline", f"--xfails-file={XFAILS}"]
        + options,
        cwd=FOLDER,
        env=environment(
            ARRAY_API_TESTS_MODULE=module,
            ARRAY_API_TESTS_SKIP_DTYPES=ABSENT,
            PYDEVTENSOR_SIM_GPUS=gpus,
        ),
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    print(done.stdout[-10000:], done.stderr[-2000:])
    passed = re.search(r"(\d+) passed", done.stdout)
    assert done.returncode == 0 and passed and int(passed[1]) > 500


def test_each_exception_has_a_reason():
    """A blank line ends a paragraph, which begins with the reason."""
    text = XFAILS.read_text().strip()
    for paragraph in text.split("\n\n"):
        assert paragraph.startswith("# ")
    names = [line for line in text.splitlines() if line[:1] != "#" and line]
    assert len(names) == len({*names})
