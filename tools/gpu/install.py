"""Builds pydevtensor and its checker for the GPU of this machine, without a network.

    install.py wheel RESULTS WORK        RESULTS/wheel/*.whl
    install.py checker RESULTS WORK      WORK/cuda_backend_test
    install.py environment RESULTS WORK  WORK/venv, with the wheel in it

What was built elsewhere and carried here, in wheels/ and checker/ beside the sources,
is taken if it fits this interpreter and machine. With GPU_CHECK_REHEARSAL=1 the wheel
is made without kernels for GPUs, which a rehearsal does not need.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def fits(wheel):
    """Whether a wheel is for this interpreter and has kernels for GPUs."""
    tag = f"-cp{sys.version_info[0]}{sys.version_info[1]}-"
    platform = sysconfig.get_platform().replace("-", "_")
    if tag not in wheel.name or platform not in wheel.name:
        return False
    with zipfile.ZipFile(wheel) as file:
        return "pydevtensor/_cuda.so" in file.namelist()


def make_wheel(results, work):
    folder = results / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    rehearsal = os.environ.get("GPU_CHECK_REHEARSAL") == "1"
    carried = [wheel for wheel in (ROOT / "wheels").glob("*.whl") if fits(wheel)]
    fresh = work / "wheel"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    if carried and not rehearsal:
        print(f"taking {carried[0].name}, which was built elsewhere")
        shutil.copy2(carried[0], fresh)
    else:
        pip = (sys.executable, "-m", "pip", "wheel", "--disable-pip-version-check")
        subprocess.run(
            [*pip, "--no-build-isolation", "--no-deps", "-v", "-w", fresh, ROOT],
            env={
                **os.environ,
                "PYDEVTENSOR_CUDA": "0" if rehearsal else "1",
                "PYDEVTENSOR_CUDA_ARCHS": "native",
            },
            check=True,
        )
    shutil.copytree(fresh, folder)


def works(program):
    """Whether a program starts here: it names a library that is not there."""
    try:
        done = subprocess.run(
            [program, "no-library.so"], capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return "no-library.so" in done.stdout


def make_checker(results, work):
    work.mkdir(parents=True, exist_ok=True)
    target, carried = work / "cuda_backend_test", ROOT / "checker" / "cuda_backend_test"
    if works(carried):
        print("taking the checker that was built elsewhere")
        shutil.copy2(carried, target)
        return
    sys.path.insert(0, str(ROOT / "tools" / "build"))
    import objects
    import products

    plan = products.Plan.from_environment()
    (built,) = objects.build([plan.checker()], print)
    shutil.copy2(built, target)


def make_environment(results, work):
    """A venv of this interpreter that also sees its packages: those of a venv are not
    seen by a venv that is made from it."""
    (wheel,) = (results / "wheel").glob("*.whl")
    venv = work / "venv"
    shutil.rmtree(venv, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = venv / "lib" / version / "site-packages"
    with zipfile.ZipFile(wheel) as file:
        file.extractall(site)
    hidden = {str(ROOT), str(Path(__file__).parent), ""}
    seen = [path for path in sys.path if path not in hidden and os.path.isdir(path)]
    lines = [f"import site; site.addsitedir({path!r})\n" for path in seen]
    (site / "interpreter.pth").write_text("".join(lines))
    # A name that does not depend on the version of Python.
    link = work / "pydevtensor"
    link.unlink(missing_ok=True)
    link.symlink_to(site / "pydevtensor")


def main():
    what, results, work = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    {
        "wheel": make_wheel,
        "checker": make_checker,
        "environment": make_environment,
    }[what](results, work)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"install.py: {error.cmd[0]} failed with status {error.returncode}")
