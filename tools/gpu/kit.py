"""make gpu-kit: one folder, build/gpu-kit, to carry to a machine with a GPU.

    kit.py [--python PYTHON]

It has the sources, the checker, built here, and check.sh, which runs the pieces of
gpu-check there. If PYTHON (such as python3.12), its headers, NumPy and setuptools are
here, and nvcc, it also has a wheel for that Python and the GPUs of
PYDEVTENSOR_CUDA_ARCHS; without one the machine builds its own.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 60_000_000  # bytes of the whole
sys.path.insert(0, str(ROOT / "tools" / "build"))
sys.path.insert(0, str(ROOT / "tools"))

SCRIPT = """\
#!/bin/sh
# The pieces of gpu-check, each of less than nine minutes; all of them if none is named.
#   sh check.sh RESULTS [1 2 3 4]
# RESULTS/report.md is put together from every piece that ran. RESULTS.tar.gz holds all;
# where it is there and RESULTS is not, as on another machine, it is unpacked first.
results=${1:?name a folder for the results}
shift
case $results in /*) ;; *) results=$PWD/$results ;; esac
cd "$(dirname "$0")" || exit 1
if [ -f "$results.tar.gz" ] && [ ! -d "$results" ]; then
    tar -xzf "$results.tar.gz" -C "$(dirname "$results")" || exit 1
fi
status=0
for piece in ${*:-1 2 3 4}; do
    "${PYTHON:-python3}" tools/gpu_check.py --results "$results" --piece "$piece" \\
        --archive "$results.tar.gz" || status=1
done
exit $status
"""


def tracked():
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    names = os.fsdecode(listed.stdout).split("\0")
    return [name for name in names if name and (ROOT / name).is_file()]


def copy_sources(kit):
    for name in tracked():
        target = kit / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)


def build_checker(kit):
    import objects
    import products

    (built,) = objects.build([products.Plan.from_environment().checker()], print)
    (kit / "checker").mkdir()
    shutil.copy2(built, kit / "checker" / "cuda_backend_test")


def build_wheel(kit, python):
    """A sentence about what became of the wheel."""
    code = "import numpy, setuptools, sysconfig; print(sysconfig.get_path('include'))"
    try:
        found = subprocess.run([python, "-c", code], capture_output=True, text=True)
    except OSError:
        return f"no wheel: there is no {python}"
    if found.returncode:
        return f"no wheel: {found.stderr.strip().splitlines()[-1]} ({python})"
    if not Path(found.stdout.strip(), "Python.h").exists():
        return f"no wheel: {python} has no headers"
    pip = (python, "-m", "pip", "wheel", "-q", "--disable-pip-version-check")
    archs = os.environ.get("PYDEVTENSOR_CUDA_ARCHS", "native")
    done = subprocess.run(
        [*pip, "--no-build-isolation", "--no-deps", "-w", kit / "wheels", ROOT],
        env={
            **os.environ,
            "PYDEVTENSOR_CUDA": "1",
            "PYDEVTENSOR_CUDA_ARCHS": archs,
            "PYTHONSAFEPATH": "1",
        },
    )
    if done.returncode:
        return "no wheel: it could not be built, see above"
    (wheel,) = (kit / "wheels").glob("*.whl")
    return f"a wheel: {wheel.name}"


def size_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def make(kit, python=None):
    from gpu_check import commit_of

    shutil.rmtree(kit, ignore_errors=True)
    copy_sources(kit)
    (kit / "COMMIT").write_text(commit_of(ROOT) + "\n")
    (kit / "check.sh").write_text(SCRIPT)
    build_checker(kit)
    print(build_wheel(kit, python) if python else "no wheel: name a Python for it")
    size = size_of(kit)
    print(f"{kit}: {size / 1e6:.1f} MB; there: sh check.sh RESULTS")
    return size


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", help="the interpreter to build a wheel for")
    parser.add_argument("--kit", type=Path, default=ROOT / "build" / "gpu-kit")
    chosen = parser.parse_args()
    size = make(chosen.kit, chosen.python)
    if size > LIMIT:
        sys.exit(f"gpu-kit: {size / 1e6:.1f} MB are more than {LIMIT / 1e6:.0f}")


if __name__ == "__main__":
    main()
