"""The environment in which libraries run: without PyTorch, which pip takes to be there.

A distribution without files has the name and the version of torch, and of torchvision,
so that pip leaves both out where a library requires them. A .pth file lets `import
torch` mean this package in each process, also in those that libraries' tests start.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PLACES = {"torch": "2.13.0", "torchvision": "0.28.0"}
PIP = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]


def hold_places() -> None:
    """Write the distributions without files, and the .pth file."""
    site = Path(sysconfig.get_paths()["purelib"])
    line = "import pydevtensor; pydevtensor.install_as_torch()\n"
    (site / "pydevtensor_as_torch.pth").write_text(line)
    for name, release in PLACES.items():
        folder = site / f"{name}-{release}.dist-info"
        folder.mkdir(exist_ok=True)
        head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {release}\n"
        files = {"METADATA": head, "INSTALLER": "pydevtensor\n", "RECORD": ""}
        for file, text in files.items():
            (folder / file).write_text(text)


def install(requirements: list[str]) -> bool:
    return not subprocess.run([*PIP, "install", *requirements]).returncode


def installed(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def source(distribution: str, into: Path) -> Path | None:
    """The folder of the source distribution of the installed version."""
    wanted = f"{distribution}=={installed(distribution)}"
    options = ["--no-deps", "--no-binary", distribution]
    command = [*PIP, "download", *options, "-d", str(into), wanted]
    if subprocess.run(command).returncode:
        return None
    (archive,) = into.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(into, filter="data")
    (folder,) = (path for path in into.iterdir() if path.is_dir())
    return folder
