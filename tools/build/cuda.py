"""The CUDA backend as nvcc builds it: which nvcc, which architectures, which flags."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from objects import BUILD, digest
from toolchain import BuildError, Settings, flags_of, output_of

# What a release carries. Cubins run on later minor versions of their major one, so 8.6
# and 8.9 need none of their own; PTX of the newest covers later GPUs.
RELEASE_ARCHS = (75, 80, 90, 100, 120)
# For a development build on a machine without a GPU.
FALLBACK_ARCH = 90


@dataclass(frozen=True)
class Once:
    """A source that is compiled for one architecture, if that is wanted, with `flags`.

    Else it is PTX of the oldest one that is wanted, but not older than `since` if there
    is another, which drivers compile when a kernel is first used.
    """

    arch: int = 0
    flags: tuple[str, ...] = ()
    since: int = 0


# Instructions that 9.0 has and no later one. Their PTX is empty, and never started.
WARPGROUPS = Once(90, ("-gencode=arch=compute_90a,code=sm_90a", "-DDT_WARPGROUPS"))
# For 7.5, which has no other kernels of the kind, and PTX of it for later ones.
OLDEST = Once(
    75,
    (
        "-gencode=arch=compute_75,code=sm_75",
        "-gencode=arch=compute_75,code=compute_75",
    ),
)
# Other sources are compiled for every architecture that is wanted.
ONCE = {
    # From 8.0 on, attention of float64, of sizes beyond 128, of float32 with dropout.
    "csrc/cuda/kernels/attention.cu": OLDEST,
    # Of 16 bits; empty before 8.0.
    "csrc/cuda/kernels/attention_dropout.cu": Once(since=80),
    "csrc/cuda/kernels/attention_warpgroups.cu": WARPGROUPS,
    "csrc/cuda/kernels/attention_warpgroups_backward.cu": WARPGROUPS,
    # Few programs start these: complex numbers, float64, Bessel functions,
    # torch.use_deterministic_algorithms(), chains of torch.compile(), losses of
    # probabilities, products of integers and of sparse matrices, convolutions by
    # depth, pooling, interpolation, sorts, cumulative sums, norms of many tensors, and
    # what looks at a matrix before cuSOLVER does.
    "csrc/cuda/kernels/chain.cu": Once(),
    "csrc/cuda/kernels/chain_end.cu": Once(),
    "csrc/cuda/kernels/chain_wide.cu": Once(),
    "csrc/cuda/kernels/depthwise.cu": Once(),
    "csrc/cuda/kernels/elementwise_complex.cu": Once(),
    "csrc/cuda/kernels/elementwise_float64.cu": Once(),
    "csrc/cuda/kernels/elementwise_special.cu": Once(),
    "csrc/cuda/kernels/foreach_norm.cu": Once(),
    "csrc/cuda/kernels/index_ordered.cu": Once(),
    "csrc/cuda/kernels/lapack_finite.cu": Once(),
    "csrc/cuda/kernels/matmul_integers.cu": Once(),
    "csrc/cuda/kernels/nn_loss_soft.cu": Once(),
    "csrc/cuda/kernels/pooling.cu": Once(),
    "csrc/cuda/kernels/resample.cu": Once(),
    "csrc/cuda/kernels/rnn_float64.cu": Once(),
    "csrc/cuda/kernels/scan.cu": Once(),
    "csrc/cuda/kernels/sort.cu": Once(),
    "csrc/cuda/kernels/sparse.cu": Once(),
}
# What a machine with a GPU has: Linux with NVIDIA's driver, and WSL2.
CARDS = ("/dev/nvidiactl", "/dev/dxg")


@dataclass(frozen=True)
class Nvcc:
    path: str

    @functools.cached_property
    def version(self) -> tuple[int, int]:
        found = re.search(r"release (\d+)\.(\d+)", output_of(self.path, "--version"))
        return (int(found[1]), int(found[2])) if found else (0, 0)

    @property
    def name(self) -> str:
        return f"nvcc {self.version[0]}.{self.version[1]}"

    @functools.cached_property
    def command(self) -> tuple[str, ...]:
        named = flags_of("NVCC_CCBIN") or flags_of("CXX")
        host = [word for word in named if word != "ccache"][:1]
        return (self.path, *(("-ccbin", *host) if host else ()))

    @functools.cached_property
    def identity(self) -> str:
        """Differs between versions of nvcc and of its host compiler."""
        host = shutil.which((os.environ.get("NVCC_CCBIN") or "g++").split()[0]) or ""
        versions = (output_of(name, "--version") for name in (self.path, host))
        return f"{os.path.realpath(self.path)} {' '.join(versions)}"

    @functools.cached_property
    def known_archs(self) -> tuple[int, ...]:
        text = output_of(self.path, "--list-gpu-code")
        return tuple(sorted({int(n) for n in re.findall(r"\bsm_(\d+)\b", text)}))

    def archs(self, wanted: str) -> tuple[int, ...]:
        """The architectures to build, ascending; BuildError for an unknown one."""
        known = self.known_archs
        if wanted == "release":
            archs = [arch for arch in RELEASE_ARCHS if arch in known]
            if not archs:
                raise BuildError(
                    f"{self.name} knows none of the GPUs of a release; "
                    "install CUDA 12 or newer, or set PYDEVTENSOR_CUDA=0."
                )
        elif wanted == "native":
            query = ("--query-gpu=compute_cap", "--format=csv,noheader")
            text = output_of("nvidia-smi", *query)
            found = [int(a + b) for a, b in re.findall(r"^(\d+)\.(\d)$", text, re.M)]
            archs = [arch for arch in found if arch in known]
            if not archs:
                archs = [FALLBACK_ARCH if FALLBACK_ARCH in known else known[-1]]
        else:
            archs = [self._arch(part) for part in re.split(r"[;,\s]+", wanted)]
        return tuple(sorted(set(archs)))

    def _arch(self, text: str) -> int:
        number = re.fullmatch(r"(?:sm_)?(\d+)\.?(\d)", text)
        arch = int(number[1] + number[2]) if number else 0
        if arch not in self.known_archs:
            raise BuildError(
                f"PYDEVTENSOR_CUDA_ARCHS names {text!r}, which {self.name} does not "
                "build; set it to release, native, or a list of "
                + " ".join(map(str, self.known_archs))
            )
        return arch

    @property
    def language(self) -> list[str]:
        """The flags that the code of a kernel depends on, beside the architecture."""
        return [
            *("-std=c++17", "-O3", "-DNDEBUG", "-Icsrc"),
            # As on the host: a product and a sum are fused only where a kernel asks.
            "-fmad=false",
            # Variables that only some ops use, and comparisons that are always true of
            # some element types.
            "-diag-suppress=177,186,550",
        ]

    def targets(self, archs: Sequence[int], source: str) -> list[str]:
        """The flags that say for which architectures a source is compiled."""
        once = ONCE.get(source)
        if once and once.arch in archs and self.version >= (12, 0):
            return list(once.flags)
        ptx = archs[-1]
        if once:
            ptx = next((a for a in archs if a >= once.since), archs[0])
        return [
            *(f"-gencode=arch=compute_{a},code=sm_{a}" for a in archs if not once),
            f"-gencode=arch=compute_{ptx},code=compute_{ptx}",
        ]

    def flags(
        self, archs: Sequence[int], werror: bool, host: Iterable[str], source: str = ""
    ) -> list[str]:
        compress = ["-Xfatbin", "-compress-all"]
        # Smaller, and unreadable for drivers before CUDA 12.4, which 12.8 would run on.
        if self.version >= (13, 0):
            compress = ["--compress-mode=size"]
        return [
            *(*self.language, *self.targets(archs, source), *compress),
            *(("-Werror", "all-warnings") if werror else ()),
            "-Xcompiler=" + ",".join((*host, "-Wall", "-Wextra")),
            *flags_of("NVCCFLAGS"),
        ]

    def why_unusable(self, arch: int) -> str | None:
        """Compiles two lines, once: nvcc rejects host compilers newer than itself."""
        verdict = (
            BUILD / "objects" / digest(self.identity, *self.command) / "nvcc.works"
        )
        if verdict.exists():
            return None
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "probe.cu")
            source.write_text("#include <vector>\n__global__ void probe() {}\n")
            options = ("-std=c++17", f"-arch=sm_{arch}", "-c", str(source))
            done = subprocess.run(
                [*self.command, *options, "-o", str(source.with_suffix(".o"))],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        if done.returncode:
            said = done.stdout.strip().splitlines() or ["it gave no reason"]
            why = next((line for line in said if "error" in line), said[0]).strip()
            return f"{self.name} ({self.path}) cannot compile here: {why}"
        verdict.parent.mkdir(parents=True, exist_ok=True)
        verdict.touch()
        return None


@functools.cache
def find_nvcc() -> Nvcc | None:
    """nvcc from PATH, CUDA_HOME, CUDA_PATH or /usr/local/cuda."""
    found = shutil.which("nvcc")
    homes = [os.environ.get(v) for v in ("CUDA_HOME", "CUDA_PATH")]
    for home in [*homes, "/usr/local/cuda"]:
        if not found and home:
            found = shutil.which("nvcc", path=os.path.join(home, "bin"))
    nvcc = Nvcc(found) if found else None
    # A wrapper whose toolkit is gone answers nothing.
    return nvcc if nvcc and nvcc.version >= (11, 0) and nvcc.known_archs else None


def choose(settings: Settings) -> tuple[Nvcc | None, str | None]:
    """The nvcc to build with, or why there is none."""
    if settings.sanitize and settings.cuda != "1":
        return None, "it was built with sanitizers"
    if settings.cuda == "0":
        return None, "it was built with PYDEVTENSOR_CUDA=0"
    if (
        settings.quick
        and settings.cuda == "auto"
        and not any(map(os.path.exists, CARDS))
    ):
        return None, "there was no NVIDIA GPU when it was built (PYDEVTENSOR_QUICK=1)"
    nvcc = find_nvcc()
    if nvcc is None:
        if settings.cuda == "1":
            raise BuildError(
                "PYDEVTENSOR_CUDA=1 asks for the CUDA backend, but nvcc is neither on "
                "PATH nor in CUDA_HOME nor in /usr/local/cuda; install the CUDA "
                "toolkit, name its folder with CUDA_HOME, or set PYDEVTENSOR_CUDA=0."
            )
        return None, "nvcc was not found when it was built"
    why = nvcc.why_unusable(nvcc.archs(settings.archs)[-1])
    if why and settings.cuda == "1":
        raise BuildError(
            f"{why}; name a host compiler that it accepts with NVCC_CCBIN, "
            "or set PYDEVTENSOR_CUDA=0."
        )
    return (None, why) if why else (nvcc, None)
