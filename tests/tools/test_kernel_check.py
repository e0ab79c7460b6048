"""The tools of `make kernel-check` know each file of kernels. They do not run here."""

import subprocess
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools" / "kernel_check"
PROGRAM = f"""
import sys
sys.path.insert(0, {str(TOOLS)!r})
import families, mutate

found = mutate.candidates()
kinds = {{each.kind for each in found}}
assert kinds == {{*mutate.SHARED, *mutate.BOUNDS}}, kinds
for each in found:
    for host in mutate.hosts_of(each.file):
        assert (mutate.KERNELS / f"{{host}}.cu").exists(), each
files = {{path.stem for path in mutate.KERNELS.glob("*.cu")}}
assert set(mutate.FAMILIES) == files, set(mutate.FAMILIES) ^ files
assert set(mutate.FAMILIES.values()) <= {{*families.CASES, mutate.HOPPER}}
for each in mutate.equivalents():
    assert any(mutate.reason(one) == each["reason"] for one in found), each
one, two = (mutate.choose(60, seed, None) for seed in (1, 2))
assert one == mutate.choose(60, 1, None) != two
assert {{each.file for each in one}} == {{each.file for each in found}}
print(len(found))
"""


def test_each_safeguard_has_a_family_that_runs_it():
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 300
