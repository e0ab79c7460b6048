"""What is built from what: the three libraries, and the programs of the C tests.

    _C         the extension module: core, CPU backend, binding
    _cuda_sim  the CUDA backend on simulated GPUs, built by the host's compiler
    _cuda      the CUDA backend, built by nvcc where there is one

As a program, brings them up to date without installing anything:
    python tools/build/products.py
"""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import cuda
import functions
import objects
import toolchain
from objects import ROOT, Object, Product
from toolchain import BuildError, Compiler, Settings, flags_of

CORE = ("base", "ops", "device", "cpu", "tensor", "autograd")
# The symbols that a backend exports: itself, and the simulator's control.
EXPORTS = "tools/build/backend.map"
# The simulator exports CUDA's runtime too, to whole programs.
SIMULATOR_EXPORTS = "tools/build/simulator.map"
FREE_RUNTIME = "benchmarks/free_runtime.cpp"
HOOKS = "tools/kernel_check/hooks.cpp"

WARNINGS = ("-Wall", "-Wextra", "-Wshadow")
# NaN, infinities and signed zeros stay exact, so no -ffast-math. A product and a sum
# are contracted only where a kernel asks for it, so that compilers agree.
# Integers wrap, as they do in NumPy and PyTorch.
ARITHMETIC = ("-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fwrapv")
HIDDEN = ("-fPIC", "-fvisibility=hidden")
# An overrun of an array on the stack or of a block of known size ends the process. The
# CPU's kernels go without: they would pay for each block of elements, and read no
# lengths but those of plans.
GUARDS = ("-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2")
# All arrays are guarded where data from outside is parsed. Elsewhere only text is: what
# runs in every call is full of arrays of DT_MAX_NDIM numbers, whose guards would cost
# 2 to 4 percent of a small operation.
STRONG = (
    *("csrc/device/", "csrc/python/interop/", "csrc/python/functions/"),
    *("csrc/cuda/", "csrc/sim/"),
)
UNGUARDED = "csrc/cpu/kernels/"
# All symbols are bound when a library is loaded, and their table is read-only then.
BOUND = ("relro", "now", "noexecstack")
# gcc's -O3 would also vectorize the rest of each vector loop: a third more code for
# some percent of speed.
SMALLER = ("--param=vect-epilogues-nomask=0",)
# These have no loops that matter: -O3 would make them a third larger, not faster.
SMALL = (
    *("csrc/autograd/ops/", "csrc/tensor/ops/", "csrc/python/functions/"),
    *("csrc/python/interop/", "csrc/python/types/"),
)
# On simulated GPUs -O2 would make these 15 to 30 % quicker, for 60 KB of a wheel.
SMALLEST = tuple(
    f"csrc/cuda/kernels/{name}"
    for name in (
        *("attention_", "chain_end", "chain_wide", "elementwise_complex"),
        *("elementwise_special", "nn_loss"),
    )
)
# For one file. Its loops choose between two values at most, which vectors do without a
# branch: a copy of the loop for each side of it would be code for nothing. Sums have 16
# lanes of doubles, which gcc would unroll before it looks for vectors. Products that
# are added in a matrix product or a convolution are rounded with their sums, as in a
# BLAS.
FILES = {
    "csrc/cpu/kernels/convolution.isa.cpp": ("-ffp-contract=fast",),
    "csrc/cpu/kernels/elementwise.isa.cpp": ("-fno-unswitch-loops",),
    "csrc/cpu/kernels/gemm.isa.cpp": ("-ffp-contract=fast",),
    "csrc/cpu/kernels/winograd.isa.cpp": ("-ffp-contract=fast",),
    "csrc/cpu/kernels/nn.isa.cpp": ("--param=max-completely-peel-times=15",),
}
# Each X.isa.c and X.isa.cpp is compiled once per row, with -DDT_ISA=row.
ISA = {
    "baseline": (),
    "avx2": ("-mavx2", "-mfma", "-mf16c", "-mbmi2"),
    "avx512": (
        *("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl"),
        *("-mfma", "-mf16c", "-mbmi2", "-mprefer-vector-width=512"),
    ),
}
# For the baseline beside others, for processors from before 2013: -O3 would
# make sums there twice as fast, and no other operation, for 200 KB of a wheel.
OLDEST = ("-O2", "-fvect-cost-model=dynamic")


def sources(*patterns: str) -> list[str]:
    found = {p.relative_to(ROOT).as_posix() for g in patterns for p in ROOT.glob(g)}
    return sorted(found)


@dataclass(frozen=True)
class Plan:
    """How this machine, with these settings, builds each kind of file."""

    settings: Settings
    cc: Compiler
    cxx: Compiler

    @staticmethod
    def from_environment() -> Plan:
        settings = Settings.from_environment()
        return Plan(settings, toolchain.find_cc(), toolchain.find_cxx())

    @property
    def only_isa(self) -> str:
        """The one instruction set that is built for; empty: all, chosen at run time."""
        if not self.cc.is_x86_64:
            return "baseline"
        if not self.settings.quick:
            return ""
        here = self.cc.macros("-march=native")
        return next(
            name
            for name, flags in reversed(ISA.items())
            if all(
                f"__{flag[2:].upper()}__" in here for flag in flags if "=" not in flag
            )
        )

    # --- objects

    def _unit(
        self, compiler: Compiler, source: str, flags: Iterable[str], suffix: str = ".o"
    ) -> Object:
        label = "cc" if source.endswith(".c") else "c++"
        command = (*compiler.command, *flags)
        size = (ROOT / source).stat().st_size
        return Object(source, command, compiler.identity, label, suffix, size)

    def _common(self, level: str, quick: str = "-O1") -> tuple[str, ...]:
        """The flags of all files; quick: the level with PYDEVTENSOR_QUICK."""
        level = quick if self.settings.quick else level
        # Without tables for unwinding, which take 150 KB: no exception passes through
        # C, and functions that throw in C++ have their own.
        optimize = (level, "-g0", "-DNDEBUG", "-fno-asynchronous-unwind-tables")
        if self.settings.sanitize:
            optimize = (
                *("-O1", "-g1", "-fno-omit-frame-pointer"),
                *(*self._sanitize(), "-fno-sanitize-recover=all"),
            )
        werror = ("-Werror",) if self.settings.werror else ()
        one = (f"-DDT_ISAS(ISA)=ISA({self.only_isa},1)",) if self.only_isa else ()
        return (*optimize, *ARITHMETIC, *HIDDEN, *WARNINGS, *werror, *one)

    def _guards(self, source: str) -> tuple[str, ...]:
        """Flags for checked calls; none with sanitizers, which check more."""
        if self.settings.sanitize or source.startswith(UNGUARDED):
            return ()
        strong = "-strong" if source.startswith(STRONG) else ""
        return (*GUARDS, "-fstack-protector" + strong)

    def _sanitize(self) -> tuple[str, ...]:
        names = ",".join(self.settings.sanitize)
        return (f"-fsanitize={names}",) if names else ()

    def c(self, source: str, *extra: str, suffix: str = ".o") -> Object:
        smaller = () if self.cc.is_clang else (*SMALLER, *FILES.get(source, ()))
        level = "-O2" if source.startswith(SMALL) else "-O3"
        flags = (
            # Empty, so that a file may define it as well.
            *("-std=c11", "-D_GNU_SOURCE=", "-Icsrc", *self._common(level)),
            *("-Wstrict-prototypes", *self._guards(source), *smaller, *extra),
            *(*flags_of("CPPFLAGS"), *flags_of("CFLAGS")),
        )
        return self._unit(self.cc, source, flags, suffix)

    def kernels(self, source: str, *extra: str, suffix: str = ".o") -> Object:
        """A C++ source of the CPU backend: templates alone, which need no libstdc++."""
        flags = (
            *("-std=c++17", "-Icsrc"),
            # The speed of large operations is in these files.
            *(*self._common("-O3", "-O3"), "-fno-exceptions", "-fno-rtti"),
            *(() if self.cxx.is_clang else (*SMALLER, *FILES.get(source, ()))),
            *(*extra, *flags_of("CPPFLAGS"), *flags_of("CXXFLAGS")),
        )
        return self._unit(self.cxx, source, flags, suffix)

    def variants(self, source: str) -> list[Object]:
        """One object, or for X.isa.c and X.isa.cpp one for each instruction set."""
        compile = self.c if source.endswith(".c") else self.kernels
        if ".isa." not in source:
            return [compile(source)]
        names = [self.only_isa] if self.only_isa else [*ISA]
        few = not (self.only_isa or self.settings.sanitize or self.cc.is_clang)
        levels = {"baseline": OLDEST} if few else {}
        return [
            compile(
                source,
                *(*ISA[name], *levels.get(name, ()), f"-DDT_ISA={name}"),
                suffix=f".{name}.o",
            )
            for name in names
        ]

    def binding(self, source: str) -> Object:
        """A file of csrc/python, which alone sees Python's and NumPy's headers."""
        folders = [*toolchain.python_include(), toolchain.numpy_include()]
        system = (word for f in folders for word in ("-isystem", f))
        return self.c(source, f"-I{functions.include()}", *system)

    def sim(self, source: str, *extra: str) -> Object:
        """A CUDA or C++ source as simulated GPUs run it: one thread at a time, so -O3
        would only make larger code."""
        level = "-Os" if source.startswith(SMALLEST) else "-O2"
        flags = (
            *("-x", "c++", "-std=c++17", "-Icsrc", "-Icsrc/sim", "-DDT_SIMULATED"),
            *(*self._common(level), *self._guards(source), *extra),
            *(*flags_of("CPPFLAGS"), *flags_of("CXXFLAGS")),
        )
        return self._unit(self.cxx, source, flags)

    def core(self) -> list[Object]:
        found = sources(
            *(f"csrc/{layer}/**/*.c" for layer in CORE), "csrc/cpu/**/*.cpp"
        )
        return [unit for source in found for unit in self.variants(source)]

    def base(self) -> list[Object]:
        found = sources("csrc/base/*.c", "csrc/ops/*.c")
        return [self.c(source) for source in found]

    def simulator(self) -> list[Object]:
        return [self.sim(source) for source in sources("csrc/sim/*.cpp")]

    def cuda_sources(self) -> list[str]:
        return sources("csrc/cuda/**/*.cu", "csrc/cuda/**/*.cpp")

    def kernel_sources(self) -> list[str]:
        return sources("csrc/cuda/kernels/*.cu")

    # --- products

    def _link(
        self,
        compiler: Compiler,
        name: str,
        units: Iterable[Object],
        *flags: str,
        strip: bool = True,
    ) -> Product:
        sanitize = self._sanitize() or (("-Wl,-s",) if strip else ())
        bound = (f"-Wl,-z,{word}" for word in BOUND)
        more = (
            *("-pthread", "-Wl,--as-needed", *bound, *sanitize),
            *flags_of("LDFLAGS"),
        )
        return Product(
            name,
            tuple(units),
            (*compiler.command, *flags, *more),
            compiler.identity,
            libraries=("-ldl", "-lpthread", "-lm"),
        )

    def test(self, source: str) -> Product:
        """A program of tests/core, which needs no Python, with what it is linked to."""
        # Asserts are the tests' own language, so they stay on here.
        flags = ("-UNDEBUG", "-g1", "-Itests/core")
        name = Path(source).stem
        if source.endswith(".c"):
            more = sources(source.replace("_test.c", "_reference.cpp"))
            units = [*self.core(), *(self.kernels(reference) for reference in more)]
            if name.startswith("null_"):
                units.append(self.c("tests/core/null_backend.c", *flags))
            return self._link(self.cc, name, [self.c(source, *flags), *units])
        if name.startswith("null_"):
            units = [*self.core(), self.c("tests/core/null_backend.c", *flags)]
            return self._link(self.cxx, name, [self.sim(source, *flags), *units])
        units = [*self.simulator(), *self.base()]
        if name.startswith("cuda_"):
            units += [self.sim(source) for source in self.cuda_sources()]
        return self._link(self.cxx, name, [self.sim(source, *flags), *units])

    def checker(self) -> Product:
        """The test of the CUDA backend, which can also test a built `_cuda.so`."""
        return self.test("tests/core/cuda_backend_test.cpp")

    def extension(self) -> Product:
        binding = [self.binding(source) for source in sources("csrc/python/**/*.c")]
        name = "_C" + (sysconfig.get_config_var("EXT_SUFFIX") or ".so")
        return self._link(self.cc, name, [*self.core(), *binding], "-shared")

    def _static(self) -> tuple[str, ...]:
        """Links the C++ runtime into a backend, where it can be."""
        static = not self.settings.sanitize and self.cxx.file("libstdc++.a")
        return ("-static-libstdc++", "-static-libgcc") if static else ()

    def linked(self) -> dict[str, str]:
        """Name and version of what a backend's library has a copy of."""
        gcc = () if self.cxx.is_clang else (*self.cxx.command, "-dumpfullversion")
        version = toolchain.output_of(*gcc).strip() if gcc else ""
        return {"libstdc++": version} if self._static() else {}

    def cuda_sim(self, checks: Iterable[str] = ()) -> Product:
        """checks: flags of the kernels, for tools/kernel_check."""
        flags = (*checks,)
        units = [
            self.sim(source, *(flags if source in self.kernel_sources() else ()))
            for source in self.cuda_sources()
        ]
        if flags:
            units.append(self.sim(HOOKS))
        link = ["-shared", *self._static()]
        if self._static():
            link += ["-Wl,--exclude-libs,ALL"]
            link += [f"-Wl,--version-script={SIMULATOR_EXPORTS}"]
        link.append("-Wl,-Bsymbolic-functions")
        if not self.settings.sanitize:  # whose functions come with the program
            link.append("-Wl,-z,defs")
        units += [*self.simulator(), *self.base()]
        return self._link(self.cxx, "_cuda_sim.so", units, *link, strip=not flags)

    def cuda(self, nvcc: cuda.Nvcc, free: bool = False) -> Product:
        """free: with a CUDA runtime whose functions do nothing, to be timed."""
        archs = nvcc.archs(self.settings.archs)
        host = (*HIDDEN, *self._guards("csrc/cuda/"))
        units = []
        for source in [*self.cuda_sources(), *([FREE_RUNTIME] if free else ())]:
            # nvcc takes about ten times as long for a file of a given size.
            slow = 10 * len(archs) if source.endswith(".cu") else len(archs)
            weight = (ROOT / source).stat().st_size * slow
            flags = nvcc.flags(archs, self.settings.werror, host, source)
            command = (*nvcc.command, *flags)
            units.append(Object(source, command, nvcc.identity, "nvcc", ".o", weight))
        link = (
            *(*nvcc.command, "-shared", "-cudart", "none" if free else "static"),
            *(f"-Xcompiler={flag}" for flag in self._static()),
            *("-Xlinker=-s", "-Xlinker=--as-needed", "-Xlinker=--exclude-libs=ALL"),
            *(f"-Xlinker=-z,{word}" for word in (*BOUND, "defs")),
            f"-Xlinker=--version-script={EXPORTS}",
        )
        return Product("_cuda.so", (*units, *self.base()), link, nvcc.identity, "nvcc")


# The headers that kernels are compiled with while a program runs, by the names that
# they are installed as: for kernels of the program on simulated GPUs, and whole
# programs after that; for kernels of chains.
KERNEL_HEADERS = (
    {"_module.h": "csrc/sim/module.h", "_program.h": "csrc/sim/program.h"},
    {"_chain.h": "csrc/cuda/kernels/chain_kernel.h"},
)


def kernel_headers() -> list[Path]:
    """A file of each header and what it includes of ours; written where it differs."""
    return [
        path
        for group in KERNEL_HEADERS
        for path in _expanded(group, {ROOT / "csrc/sim/kernel.h"})
    ]


def _expanded(headers: dict[str, str], known: set[Path]) -> Iterator[Path]:
    """Files of headers that are included in this order, without the known ones."""

    def whole(path: Path) -> str:
        if path.suffix == ".h":  # tables are included several times
            known.add(path)
        lines = []
        for line in path.read_text().splitlines():
            found = re.match(r'#include "(.*)"', line)
            if not found:
                lines.append(line)
                continue
            folders = (path.parent, ROOT / "csrc")
            inner = next(f / found[1] for f in folders if (f / found[1]).exists())
            if inner not in known:
                lines.append(whole(inner))
        return "\n".join(lines)

    for name, header in headers.items():
        path = objects.BUILD / name
        # Lines that no program has: the checks of kernels know theirs by the number.
        text = f'#line 1000001 "{name}"\n' + whole(ROOT / header) + "\n"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        yield path


# Exists once a release was built here: `make demo` then uses it.
RELEASED = objects.BUILD / "released"


def build(say: Callable[[str], None]) -> tuple[dict[str, Path], dict[str, object]]:
    """Builds all libraries; returns files by name, and the facts for _build.json."""
    plan = Plan.from_environment()
    wanted = [plan.extension(), plan.cuda_sim()]
    nvcc, why = cuda.choose(plan.settings)
    facts = None
    linked = {"_cuda_sim.so": plan.linked()}
    if nvcc:
        wanted.append(plan.cuda(nvcc))
        archs = [f"{a // 10}.{a % 10}" for a in nvcc.archs(plan.settings.archs)]
        version = ".".join(map(str, nvcc.version))
        facts = {"nvcc": version, "architectures": archs, "ptx": archs[-1]}
        linked["_cuda.so"] = {**plan.linked(), "cudart_static": version}
    else:
        say(f"no CUDA backend: {why}")
    paths = objects.build(wanted, say)
    if not plan.settings.quick:
        RELEASED.touch()
    _check_symbols(paths[0])
    lines = toolchain.output_of(*plan.cc.command, "--version").splitlines()
    info: dict[str, object] = {
        "compiler": lines[0].strip() if lines else "",
        "sanitize": list(plan.settings.sanitize),
        "cuda": facts,
        "why_no_cuda": why,
        "linked": linked,
    }
    return {path.name: path for path in (*paths, *kernel_headers())}, info


def _check_symbols(extension: Path) -> None:
    """Raise for functions that are declared but not defined, before an import does."""
    text = toolchain.output_of("nm", "-D", "--undefined-only", str(extension))
    missing = [word for word in text.split() if word.startswith("dt_")]
    if missing:
        raise BuildError(f"{extension.name} lacks {', '.join(sorted(missing))}.")


def main() -> int:
    try:
        build(lambda line: print(line, flush=True))
    except BuildError as error:
        print(f"pydevtensor: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
