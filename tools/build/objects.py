"""Compiles and links in parallel, and only what has changed.

An object's folder is named by a digest of its command and its compiler's version, so
builds with other flags (gcc or clang, plain or sanitized) exist side by side, and a
changed flag needs no rule of its own. An object is fresh while no file that its depfile
names is newer.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import itertools
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from toolchain import ROOT, BuildError, tool_environment

BUILD = ROOT / "build"


def digest(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Object:
    """One source compiled one way, by one version of a compiler."""

    source: str
    command: tuple[str, ...]
    compiler: str
    label: str
    suffix: str = ".o"
    weight: int = field(default=0, compare=False)

    @property
    def path(self) -> Path:
        folder = BUILD / "objects" / digest(self.compiler, *self.command)
        return folder / (self.source + self.suffix)


@dataclass(frozen=True)
class Product:
    """A shared library or a program, linked from objects."""

    name: str
    objects: tuple[Object, ...]
    command: tuple[str, ...]
    compiler: str
    label: str = "link"
    libraries: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        parts = (*self.command, *self.libraries, *(str(o.path) for o in self.objects))
        return BUILD / "products" / digest(self.compiler, *parts) / self.name


@contextlib.contextmanager
def build_lock(name: str = ".lock") -> Iterator[None]:
    """Keeps other processes from building at the same time."""
    BUILD.mkdir(exist_ok=True)
    with open(BUILD / name, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def job_count() -> int:
    text = os.environ.get("PYDEVTENSOR_JOBS", "")
    return int(text) if text.isdigit() and int(text) else len(os.sched_getaffinity(0))


def _mtime(path: str | Path) -> int | None:
    try:
        return os.stat(os.path.join(ROOT, path)).st_mtime_ns
    except OSError:
        return None


def _depfile(path: Path) -> Path:
    return path.with_suffix(path.suffix + ".d")


def is_fresh(unit: Object) -> bool:
    try:
        rule = _depfile(unit.path).read_text().replace("\\\n", " ")
    except OSError:
        return False
    names = re.findall(r"(?:\\.|[^\s\\])+", rule.partition(": ")[2])
    times = [_mtime(re.sub(r"\\(.)", r"\1", name)) for name in (unit.source, *names)]
    built = _mtime(unit.path)
    return built is not None and all(t is not None and t < built for t in times)


def _run(command: Sequence[str], path: Path, what: str) -> None:
    """Runs a compiler that writes to path; its output is complete or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(path.suffix + ".new")
    before = time.time_ns() - 20_000_000  # file systems have clocks that lag a little
    done = subprocess.run(
        [*command, "-o", str(fresh)],
        cwd=ROOT,
        env=tool_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode:
        sys.stderr.write(shlex.join(command) + "\n" + done.stdout)
        raise BuildError(f"{what} failed; the compiler's message is above.")
    sys.stderr.write(done.stdout)
    # An edit made while the compiler ran counts as newer.
    os.utime(fresh, ns=(before, before))
    fresh.replace(path)


def _compile(unit: Object, say: Callable[[str], None]) -> None:
    variant = unit.suffix.split(".")[1:-1]
    say(" ".join([unit.label, unit.source, *(f"[{name}]" for name in variant)]))
    more = ("-MMD", "-MF", str(_depfile(unit.path)), "-c", unit.source)
    _run([*unit.command, *more], unit.path, f"Compiling {unit.source}")


def _link(product: Product, say: Callable[[str], None]) -> None:
    linked = _mtime(product.path)
    inputs = [_mtime(unit.path) or 0 for unit in product.objects]
    if linked is None or any(time >= linked for time in inputs):
        say(f"{product.label} {product.name}")
        names = [str(unit.path) for unit in product.objects]
        command = [*product.command, *names, *product.libraries]
        _run(command, product.path, f"Linking {product.name}")


def build(
    products: Sequence[Product], say: Callable[[str], None] = lambda line: None
) -> list[Path]:
    """Brings products up to date and returns their paths; BuildError on a failure."""
    with build_lock(), ThreadPoolExecutor(job_count()) as pool:
        units = dict.fromkeys(u for p in products for u in p.objects)
        # The long ones first, so that no core waits for the last one.
        stale = sorted(
            (unit for unit in units if not is_fresh(unit)), key=lambda u: -u.weight
        )
        numbers = itertools.count(1)

        def numbered(line: str) -> None:
            say(f"[{next(numbers)}/{len(stale)}] {line}")

        try:
            jobs = [pool.submit(_compile, unit, numbered) for unit in stale]
            for job in as_completed(jobs):
                job.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
        for product in products:
            _link(product, say)
    return [product.path for product in products]
