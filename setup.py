"""Builds the three libraries of pydevtensor and hands them to setuptools.

Everything else is in pyproject.toml; how sources become libraries, in tools/build.
"""

import json
import os
import shutil
import sys
from email import message_from_bytes
from pathlib import Path

import setuptools
from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "tools" / "build"))

import objects  # noqa: E402
import products  # noqa: E402
import sbom  # noqa: E402
import stubs  # noqa: E402
from toolchain import BuildError  # noqa: E402

if int(setuptools.__version__.split(".")[0]) < 77:
    sys.exit(
        f"pydevtensor: setuptools {setuptools.__version__} is too old to build with; "
        "install a newer one with: pip install 'setuptools>=77'"
    )
if not sys.platform.startswith("linux"):
    sys.exit(f"pydevtensor: it builds on Linux only, and this is {sys.platform}.")

# Until this process ends: setuptools writes to build/ too, and two at once would mix.
lock = objects.build_lock("setup.lock")
lock.__enter__()


class BuildPython(build_py):
    def run(self):
        # A file that an earlier build left there would become part of the wheel.
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class BuildLibraries(build_ext):
    """Puts the libraries that tools/build makes beside the Python files, with
    stubs of all functions."""

    def run(self):
        try:
            self._build(lambda line: print(line, flush=True))
        except BuildError as error:
            sys.exit(f"pydevtensor: {error}")

    def _build(self, say):
        self.files, self.info = products.build(say)
        folder = self._folder()
        folder.mkdir(parents=True, exist_ok=True)
        for old in [*folder.glob("_*.so"), *folder.rglob("*.pyi")]:
            if old.name not in self.files:
                old.unlink()
        for name, path in self.files.items():
            # A new file, since a running Python may have the old one mapped.
            fresh = folder / (name + ".new")
            shutil.copy2(path, fresh)
            fresh.replace(folder / name)
        (core,) = (path for name, path in self.files.items() if name.startswith("_C."))
        # An extension that is built with a sanitizer cannot be imported here, since
        # the sanitizer has to be loaded before Python; so there are no stubs of it.
        sanitized = self.info["sanitize"]
        self.stubs = [] if sanitized else stubs.write(core, folder, say)
        facts = json.dumps(self.info, indent=4) + "\n"
        (folder / "_build.json").write_text(facts)

    def _folder(self):
        base = ROOT if self.inplace or self.editable_mode else Path(self.build_lib)
        return base / "pydevtensor"

    def get_outputs(self):
        made = [*getattr(self, "files", ()), *getattr(self, "stubs", ())]
        names = [*made, "_build.json"]
        return [os.path.join(self.build_lib, "pydevtensor", name) for name in names]

    def get_output_mapping(self):
        return {}

    def get_source_files(self):
        return []


class BuildWheel(bdist_wheel):
    """Adds a bill of materials to the metadata of a wheel with libraries."""

    def write_wheelfile(self, wheelfile_base, *arguments):
        super().write_wheelfile(wheelfile_base, *arguments)
        made = self.get_finalized_command("build_ext")
        folder = Path(wheelfile_base)
        metadata = message_from_bytes((folder / "METADATA").read_bytes())
        if files := getattr(made, "files", None):
            bill = sbom.bill(metadata, files, made.info["linked"])
            path = folder / "sboms" / "pydevtensor.cdx.json"
            path.parent.mkdir()
            path.write_text(json.dumps(bill, indent=1) + "\n")


setup(
    ext_modules=[Extension("pydevtensor._C", sources=[])],
    cmdclass={
        "build_py": BuildPython,
        "build_ext": BuildLibraries,
        "bdist_wheel": BuildWheel,
    },
)
