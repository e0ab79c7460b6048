"""Compiles and links, in parallel, only what has changed.

An object lies in a folder named by a digest of its command line and its compiler's
version, so builds with other flags (gcc or clang, plain or sanitized) sit side by side
and a changed flag needs no rule of its own. Within a folder, an object is fresh while
no file that its depfile names is newer.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import fcntl
import hashlib
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from toolchain import BuildError, tool_environment

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"


@dataclass(frozen=True)
class Object:
    """One source compiled one way. `key` stands for the command in the digest, where
    the command holds paths that differ though what they name does not."""

    source: str
    command: tuple[str, ...]
    key: tuple[str, ...]
    label: str
    suffix: str = ".o"
    weight: int = field(default=0, compare=False)

    @property
    def path(self) -> Path:
        digest = hashlib.sha256("\0".join(self.key).encode()).hexdigest()[:12]
        return BUILD / "objects" / digest / (self.source + self.suffix)


@dataclass(frozen=True)
class Product:
    """A shared library or a program, linked from objects."""

    name: str
    objects: tuple[Object, ...]
    command: tuple[str, ...]
    libraries: tuple[str, ...]
    key: tuple[str, ...]
    label: str

    @property
    def path(self) -> Path:
        text = "\0".join([*self.key, *(str(o.path) for o in self.objects)])
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return BUILD / "products" / digest / self.name


_lock = threading.RLock()
_held = 0
_file = None


@contextlib.contextmanager
def build_lock() -> Iterator[None]:
    """Keeps other processes out of build/; its holder may take it again."""
    global _held, _file
    with _lock:
        if _held == 0:
            BUILD.mkdir(exist_ok=True)
            _file = open(BUILD / ".lock", "w")  # noqa: SIM115
            fcntl.flock(_file, fcntl.LOCK_EX)
        _held += 1
        try:
            yield
        finally:
            _held -= 1
            if _held == 0 and _file:
                _file.close()
                _file = None


def job_count() -> int:
    text = os.environ.get("PYDEVTENSOR_JOBS", "")
    return int(text) if text.isdigit() and int(text) else len(os.sched_getaffinity(0))


def _dependencies(depfile: Path) -> list[str] | None:
    try:
        text = depfile.read_text()
    except OSError:
        return None
    text = text.replace("\\\n", " ").partition(": ")[2]
    words = re.findall(r"(?:\\.|[^\s\\])+", text)
    return [re.sub(r"\\(.)", r"\1", word) for word in words]


def _mtime(path: str | Path) -> int | None:
    try:
        return os.stat(os.path.join(ROOT, path)).st_mtime_ns
    except OSError:
        return None


def is_fresh(unit: Object) -> bool:
    built = _mtime(unit.path)
    names = _dependencies(unit.path.with_suffix(unit.path.suffix + ".d"))
    if built is None or names is None:
        return False
    times = [_mtime(name) for name in (unit.source, *names)]
    return all(time is not None and time < built for time in times)


def _run(command: Sequence[str], what: str) -> str:
    done = subprocess.run(
        command,
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
    return done.stdout


def _compile(unit: Object) -> None:
    path = unit.path
    path.parent.mkdir(parents=True, exist_ok=True)
    depfile = path.with_suffix(path.suffix + ".d")
    fresh = path.with_suffix(path.suffix + ".new")
    stamp = BUILD / f".clock-{threading.get_ident()}"
    stamp.touch()
    before = os.stat(stamp).st_mtime_ns
    stamp.unlink()
    said = _run(
        [*unit.command, "-MMD", "-MF", str(depfile), "-c", unit.source]
        + ["-o", str(fresh)],
        f"Compiling {unit.source}",
    )
    # An edit made while the compiler ran has to count as newer.
    os.utime(fresh, ns=(before, before))
    fresh.replace(path)
    if said.strip():
        sys.stderr.write(said)


def _link(product: Product) -> None:
    path = product.path
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".new")
    objects = [str(unit.path) for unit in product.objects]
    said = _run(
        [*product.command, *objects, *product.libraries, "-o", str(fresh)],
        f"Linking {product.name}",
    )
    fresh.replace(path)
    if said.strip():
        sys.stderr.write(said)


def build(
    products: Sequence[Product], say: Callable[[str], None] = lambda line: None
) -> list[Path]:
    """Brings products up to date and returns their paths; BuildError on a failure."""
    with build_lock():
        units = list(dict.fromkeys(u for p in products for u in p.objects))
        stale = [unit for unit in units if not is_fresh(unit)]
        # The long ones first, so that no core is left waiting for the last.
        stale.sort(key=lambda unit: unit.weight, reverse=True)
        with concurrent.futures.ThreadPoolExecutor(job_count()) as pool:
            running = []
            for unit in stale:
                running.append(pool.submit(_announced, unit, say))
            try:
                for job in concurrent.futures.as_completed(running):
                    job.result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        for product in products:
            linked = _mtime(product.path)
            inputs = [_mtime(unit.path) for unit in product.objects]
            if linked is None or any(time and time >= linked for time in inputs):
                say(f"{product.label} {product.name}")
                _link(product)
    return [product.path for product in products]


def _announced(unit: Object, say: Callable[[str], None]) -> None:
    variant = unit.suffix.split(".")[1:-1]
    say(" ".join([unit.label, unit.source, *(f"[{name}]" for name in variant)]))
    _compile(unit)
