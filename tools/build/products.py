"""What is built from what: the three libraries, and the C tests' programs.

    _C         the extension module: core, CPU backend, binding
    _cuda_sim  the CUDA backend on simulated GPUs, built by the host's compiler
    _cuda      the CUDA backend, built by nvcc where there is one

As a program, brings them up to date without installing anything:
    python tools/build/products.py
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import objects
import toolchain
from objects import ROOT, Object, Product
from toolchain import BuildError, Compiler, Nvcc, Settings, flags_of

# The one exported symbol of each backend, and the simulator's control.
EXPORTS = "tools/build/backend.map"

CORE = ("base", "ops", "device", "cpu", "tensor", "autograd")

WARNINGS = ("-Wall", "-Wextra", "-Wshadow")
# NaN, infinities and signed zeros stay exact, so no -ffast-math; a product and a sum
# are contracted only where a kernel asks for it, so that compilers agree.
# Integers wrap, as they do in NumPy and PyTorch.
ARITHMETIC = (
    *("-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fwrapv"),
)
HIDDEN = ("-fPIC", "-fvisibility=hidden")
# What gcc's -O3 would do to loops for some percent of speed and a third of the code: a
# vector version of what is left over at the end of a vector loop.
SMALLER = ("--param=vect-epilogues-nomask=0",)
# For a file alone. Rows of the op tables choose between two values at most, which
# vectors do without a branch: a loop for each side of it is code for nothing.
FILES = {"csrc/cpu/kernels/elementwise.isa.c": ("-fno-unswitch-loops",)}

# Each X.isa.c is compiled once per row, with -DDT_ISA=row.
ISA = {
    "baseline": (),
    "avx2": ("-mavx2", "-mfma", "-mf16c", "-mbmi2"),
    "avx512": (
        *("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl"),
        *("-mfma", "-mf16c", "-mbmi2", "-mprefer-vector-width=512"),
    ),
}


def sources(*patterns: str) -> list[str]:
    found = {p.relative_to(ROOT).as_posix() for g in patterns for p in ROOT.glob(g)}
    return sorted(found)


def _weight(source: str) -> int:
    # nvcc takes some ten times as long for a file of a given size.
    size = (ROOT / source).stat().st_size
    return size * (10 if source.endswith(".cu") else 1)


@dataclass(frozen=True)
class Plan:
    """How this machine, with these settings, builds each kind of file."""

    settings: Settings
    cc: Compiler
    cxx: Compiler

    @staticmethod
    def from_environment() -> Plan:
        return Plan(
            Settings.from_environment(), toolchain.find_cc(), toolchain.find_cxx()
        )

    def _common(self, level: str) -> tuple[str, ...]:
        sanitize = self.settings.sanitize
        debug = (
            (
                *("-O1", "-g1", "-fno-omit-frame-pointer"),
                "-fsanitize=" + ",".join(sanitize),
                "-fno-sanitize-recover=all",
            )
            if sanitize
            else (level, "-g0", "-DNDEBUG")
        )
        werror = ("-Werror",) if self.settings.werror else ()
        return (*debug, *ARITHMETIC, *HIDDEN, *WARNINGS, *werror)

    def _unit(
        self,
        compiler: Compiler,
        source: str,
        flags: Iterable[str],
        key: Iterable[str] | None = None,
        suffix: str = ".o",
    ) -> Object:
        flags = tuple(flags)
        return Object(
            source=source,
            command=(*compiler.command, *flags),
            key=(compiler.identity, *compiler.command, *(key or flags)),
            label="cc" if source.endswith(".c") else "c++",
            suffix=suffix,
            weight=_weight(source),
        )

    def c(self, source: str, *extra: str, suffix: str = ".o") -> Object:
        smaller = () if self.cc.is_clang else (*SMALLER, *FILES.get(source, ()))
        flags = (
            # Empty, so that a file may define it as well.
            *("-std=c11", "-D_GNU_SOURCE=", "-Icsrc", *self._common("-O3")),
            *("-Wstrict-prototypes", *smaller, *extra),
            *(*flags_of("CPPFLAGS"), *flags_of("CFLAGS")),
        )
        return self._unit(self.cc, source, flags, suffix=suffix)

    def variants(self, source: str) -> list[Object]:
        """One object, or one per instruction set for a file X.isa.c."""
        if not source.endswith(".isa.c"):
            return [self.c(source)]
        names = ISA if self.cc.is_x86_64 else ("baseline",)
        # Nothing is thrown through a kernel, and there are thousands of them.
        flags = ("-fno-asynchronous-unwind-tables",)
        return [
            self.c(source, *ISA[name], *flags, f"-DDT_ISA={name}", suffix=f".{name}.o")
            for name in names
        ]

    def binding(self, source: str) -> Object:
        """A file of csrc/python, which alone sees Python's and NumPy's headers."""
        numpy, version = toolchain.numpy_include()
        python = [flag for f in toolchain.python_include() for flag in ("-isystem", f)]
        # An isolated build has NumPy in a new folder each time; its version tells more.
        base = self.c(source, *python, "-isystem", numpy)
        key = tuple(version if word == numpy else word for word in base.key)
        return Object(base.source, base.command, key, base.label, weight=base.weight)

    def sim(self, source: str, *extra: str) -> Object:
        """A CUDA or C++ source as simulated GPUs run it, which is a thread at a time:
        there is nothing that -O3 could make of it but larger code."""
        flags = (
            *("-x", "c++", "-std=c++17", "-Icsrc", "-Icsrc/sim", "-DDT_SIMULATED"),
            *(*self._common("-O2"), *extra),
            *(*flags_of("CPPFLAGS"), *flags_of("CXXFLAGS")),
        )
        return self._unit(self.cxx, source, flags)

    def core(self) -> list[Object]:
        found = sources(*(f"csrc/{floor}/**/*.c" for floor in CORE))
        return [unit for source in found for unit in self.variants(source)]

    def base(self) -> list[Object]:
        return [unit for s in sources("csrc/base/*.c") for unit in self.variants(s)]

    def simulator(self) -> list[Object]:
        return [self.sim(source) for source in sources("csrc/sim/*.cpp")]

    def cuda_sources(self) -> list[str]:
        return sources("csrc/cuda/**/*.cu", "csrc/cuda/**/*.cpp")

    def link(
        self,
        compiler: Compiler,
        name: str,
        units: Iterable[Object],
        flags: Iterable[str],
        libraries: Iterable[str] = ("-ldl", "-lpthread", "-lm"),
    ) -> Product:
        units = tuple(units)
        sanitize = self.settings.sanitize
        extra = ("-fsanitize=" + ",".join(sanitize),) if sanitize else ("-Wl,-s",)
        flags = (*flags, "-pthread", "-Wl,--as-needed", *extra, *flags_of("LDFLAGS"))
        libraries = tuple(libraries)
        return Product(
            name=name,
            objects=units,
            command=(*compiler.command, *flags),
            libraries=libraries,
            key=(compiler.identity, *compiler.command, *flags, *libraries),
            label="link",
        )

    def _static_cxx(self) -> tuple[str, ...]:
        """Flags that leave only libc to be found at run time, where that can be."""
        if self.settings.sanitize or not self.cxx.file("libstdc++.a"):
            return ()
        return (
            *("-static-libstdc++", "-static-libgcc", "-Wl,--exclude-libs,ALL"),
            f"-Wl,--version-script={EXPORTS}",
        )

    def _complete(self) -> tuple[str, ...]:
        """Lets the linker refuse a library that lacks a function. The sanitizers' own
        functions come with the program."""
        return () if self.settings.sanitize else ("-Wl,-z,defs",)

    def extension(self) -> Product:
        binding = [self.binding(source) for source in sources("csrc/python/**/*.c")]
        name = "_C" + (sysconfig.get_config_var("EXT_SUFFIX") or ".so")
        return self.link(self.cc, name, [*self.core(), *binding], ["-shared"])

    def cuda_sim(self) -> Product:
        units = [self.sim(source) for source in self.cuda_sources()]
        return self.link(
            self.cxx,
            "_cuda_sim.so",
            [*units, *self.simulator(), *self.base()],
            ["-shared", *self._static_cxx(), *self._complete()],
        )

    def cuda(self, nvcc: Nvcc) -> Product:
        return Gpu(self, nvcc).product()

    def program(self, name: str, test: Object, units: Iterable[Object]) -> Product:
        """A test of the core that needs no Python."""
        compiler = self.cc if test.source.endswith(".c") else self.cxx
        return self.link(compiler, name, [test, *units], ())


@dataclass(frozen=True)
class Gpu:
    """The same CUDA sources as nvcc builds them."""

    plan: Plan
    nvcc: Nvcc

    def archs(self) -> tuple[int, ...]:
        return toolchain.choose_archs(self.nvcc, self.plan.settings.archs)

    def command(self) -> tuple[str, ...]:
        host = os.environ.get("NVCC_CCBIN") or os.environ.get("CXX")
        return (self.nvcc.path, *(("-ccbin", host) if host else ()))

    def flags(self) -> tuple[str, ...]:
        archs = self.archs()
        targets = [f"-gencode=arch=compute_{a},code=sm_{a}" for a in archs]
        targets.append(f"-gencode=arch=compute_{archs[-1]},code=compute_{archs[-1]}")
        small = (
            ("--compress-mode=size",)
            if self.nvcc.version >= (12, 8)
            else ("-Xfatbin", "-compress-all")
        )
        werror = ("-Werror", "all-warnings") if self.plan.settings.werror else ()
        return (
            *("-std=c++17", "-O3", "-DNDEBUG", "-Icsrc", *targets, *small, *werror),
            # Variables that only some rows of an op table use, and comparisons that are
            # always true of some element types.
            "-diag-suppress=177,186,550",
            "-Xcompiler=" + ",".join((*HIDDEN, "-Wall", "-Wextra")),
            *flags_of("NVCCFLAGS"),
        )

    def object(self, source: str) -> Object:
        command = (*self.command(), *self.flags())
        return Object(
            source=source,
            command=command,
            key=(self.nvcc.identity, *command),
            label="nvcc",
            weight=_weight(source) * len(self.archs()),
        )

    def product(self) -> Product:
        units = [self.object(source) for source in self.plan.cuda_sources()]
        static = [f for f in self.plan._static_cxx() if not f.startswith("-Wl")]
        command = (
            *(*self.command(), "-shared", "-cudart", "static"),
            *(f"-Xcompiler={flag}" for flag in static),
            *("-Xlinker=-s", "-Xlinker=--as-needed", "-Xlinker=--exclude-libs=ALL"),
            *("-Xlinker=-z", "-Xlinker=defs"),
            f"-Xlinker=--version-script={EXPORTS}",
        )
        return Product(
            name="_cuda.so",
            objects=(*units, *self.plan.base()),
            command=command,
            libraries=(),
            key=(self.nvcc.identity, *command),
            label="nvcc",
        )

    def why_unusable(self) -> str | None:
        """Compiles two lines, once: nvcc refuses host compilers newer than itself."""
        probe = Object("probe.cu", (), (self.nvcc.identity, *self.command()), "")
        verdict = probe.path.with_suffix(".works")
        if verdict.exists():
            return None
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "probe.cu")
            source.write_text("#include <vector>\n__global__ void probe() {}\n")
            arch = f"-arch=sm_{self.archs()[-1]}"
            done = subprocess.run(
                [*self.command(), "-std=c++17", arch, "-c", str(source)]
                + ["-o", str(source.with_suffix(".o"))],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        if done.returncode:
            lines = [line for line in done.stdout.splitlines() if "error" in line]
            version = ".".join(map(str, self.nvcc.version))
            return (
                f"nvcc {version} ({self.nvcc.path}) cannot compile here: "
                + (lines or ["it gave no reason"])[0].strip()
            )
        verdict.parent.mkdir(parents=True, exist_ok=True)
        verdict.touch()
        return None


@dataclass(frozen=True)
class Libraries:
    """What a build yields, and what is to be known of it at run time."""

    extension: Product
    cuda_sim: Product
    cuda: Product | None
    info: dict[str, object]

    def products(self) -> list[Product]:
        optional = [self.cuda] if self.cuda else []
        return [self.extension, self.cuda_sim, *optional]


def _gpu(plan: Plan) -> tuple[Gpu | None, str | None]:
    """The CUDA build, or why there is none."""
    wanted = plan.settings.cuda
    if plan.settings.sanitize and wanted != "1":
        return None, "it was built with sanitizers"
    if wanted == "0":
        return None, "it was built with PYDEVTENSOR_CUDA=0"
    nvcc = toolchain.find_nvcc()
    if nvcc is None:
        why = "nvcc was not found when it was built"
        if wanted == "1":
            raise BuildError(
                "PYDEVTENSOR_CUDA=1 asks for the CUDA backend, but nvcc is neither on "
                "PATH nor in CUDA_HOME nor in /usr/local/cuda; install the CUDA "
                "toolkit, name its folder with CUDA_HOME, or set PYDEVTENSOR_CUDA=0."
            )
        return None, why
    gpu = Gpu(plan, nvcc)
    why_not = gpu.why_unusable()
    if why_not and wanted == "1":
        raise BuildError(
            why_not + "; name a host compiler that it accepts with NVCC_CCBIN, "
            "or set PYDEVTENSOR_CUDA=0."
        )
    return (None, why_not) if why_not else (gpu, None)


def libraries() -> Libraries:
    plan = Plan.from_environment()
    extension, cuda_sim = plan.extension(), plan.cuda_sim()
    gpu, why_not = _gpu(plan)
    info: dict[str, object] = {
        "compiler": (toolchain.output_of(*plan.cc.command, "--version") + "\n")
        .splitlines()[0]
        .strip(),
        "sanitize": list(plan.settings.sanitize),
        "cuda": None,
        "why_no_cuda": why_not,
    }
    if gpu:
        archs = [f"{arch // 10}.{arch % 10}" for arch in gpu.archs()]
        info["cuda"] = {
            "nvcc": ".".join(map(str, gpu.nvcc.version)),
            "architectures": archs,
            "ptx": archs[-1],
        }
    return Libraries(extension, cuda_sim, gpu.product() if gpu else None, info)


def build(say: Callable[[str], None]) -> tuple[dict[str, Path], dict[str, object]]:
    """Builds all; returns the files by name, and the facts for _build.json."""
    with objects.build_lock():
        wanted = libraries()
        if why := wanted.info["why_no_cuda"]:
            say(f"no CUDA backend: {why}")
        paths = objects.build(wanted.products(), say)
        _check_symbols(paths[0])
        return {path.name: path for path in paths}, wanted.info


def _check_symbols(extension: Path) -> None:
    """A function that was declared and never written would show only at import."""
    if not shutil.which("nm"):
        return
    text = toolchain.output_of("nm", "-D", "--undefined-only", str(extension))
    missing = [word for word in text.split() if word.startswith("dt_")]
    if missing:
        raise BuildError(f"{extension.name} lacks {', '.join(sorted(missing))}.")


def main() -> int:
    try:
        _, info = build(lambda line: print(line, flush=True))
    except BuildError as error:
        print(f"pydevtensor: {error}", file=sys.stderr)
        return 1
    if "--info" in sys.argv:
        print(json.dumps(info, indent=4))
    return 0


if __name__ == "__main__":
    sys.exit(main())
