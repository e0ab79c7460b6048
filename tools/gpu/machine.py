"""Says what this machine has: GPUs, driver, and the versions of what gpu-check uses.

Fails without a GPU, but for --no-gpu, which a rehearsal gives.
"""

import platform
import shutil
import subprocess
import sys
from importlib import metadata

QUERY = (
    "name,memory.total,compute_cap,driver_version,clocks.max.sm,clocks.max.mem,"
    "ecc.mode.current"
)
PACKAGES = ("numpy", "torch", "pytest", "pytest-xdist", "hypothesis", "setuptools")
PROGRAMS = ("nvcc", "compute-sanitizer", "ncu", "g++")


def output_of(*command):
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, f"{command[0]}: {error}"
    return done.returncode == 0, done.stdout.strip()


def version_of(package):
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def main():
    good, listed = output_of("nvidia-smi", "-L")
    print(listed)
    if "--no-gpu" in sys.argv:
        print("rehearsal: no GPU is wanted")
    elif not good or "GPU 0: " not in listed:
        print("gpu-check: nvidia-smi finds no GPU; run this on a machine that has one")
        return 1
    print(output_of("nvidia-smi", f"--query-gpu={QUERY}", "--format=csv")[1])
    print(f"kernel {platform.release()}, {platform.machine()}")
    print(f"Python {sys.version.split()[0]} ({sys.executable})")
    for package in PACKAGES:
        print(f"{package} {version_of(package)}")
    cupy = [d for d in metadata.distributions() if (d.name or "").startswith("cupy")]
    print("".join(f"{d.name} {d.version}" for d in cupy[:1]) or "cupy not installed")
    for program in PROGRAMS:
        if shutil.which(program):
            lines = output_of(program, "--version")[1].splitlines() or ["?"]
            said = [line for line in lines if any(c.isdigit() for c in line)] or lines
            print(f"{program}: {(said[-2:] if program == 'nvcc' else said)[0].strip()}")
        else:
            print(f"{program}: not on PATH")
    return 0


if __name__ == "__main__":
    sys.exit(main())
