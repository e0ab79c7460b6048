"""Compiles the CUDA C of a program for real GPUs, by NVRTC.

NVRTC returns code for one architecture, and the symbols of kernels and variables. The
types of a kernel's parameters are encoded in a symbol too: that of a template whose
arguments are the numbers that csrc/device/describe.h computes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydevtensor import _C
from pydevtensor.cuda._kernel_compiler import FILE, HEADER, Compiled, Error, flags_of
from pydevtensor.cuda.kernels import CompileError

# Inserted after describe.h, before the program's source.
BEFORE = """
namespace dt {
template <unsigned long long...> struct Rows {};
template <class... P> __device__ Rows<Row<P>::value...> rows_of(void (*)(P...));
template <class R> __global__ void described() {}
}
"""
AFTER = """
#ifdef __CUDA_FP16_TYPES_EXIST__
DT_HALVES('h', __half, __half2)
#endif
#ifdef __CUDA_BF16_TYPES_EXIST__
DT_HALVES('g', __nv_bfloat16, __nv_bfloat162)
#endif
"""
# Headers that NVRTC does not need, or whose declarations it has built in.
BUILT_IN = {
    **dict.fromkeys(("assert.h", "cassert", "cmath", "cstdio", "cuda_runtime.h"), ""),
    **dict.fromkeys(("device_launch_parameters.h", "math.h", "stdio.h"), ""),
}
# The options that nvcc and NVRTC share.
KNOWN = re.compile(
    r"-[DUIG].*|-w|--?(std|fmad|ftz|prec-div|prec-sqrt|maxrregcount|diag-suppress)=.*|"
    r"--?(use_fast_math|lineinfo|generate-line-info|device-debug|"
    r"extra-device-vectorization|default-device|disable-warnings)"
)


class Cubin(Compiled):
    """Code for GPUs of an architecture, such as '90'."""

    suffix = ".cubin"

    def __init__(self, architecture: str, *given: Any) -> None:
        path, version = _C._module_compiler()
        self.compiler = Path(path)
        self.version = f"{version // 1000}.{version % 1000 // 10}"
        self.architecture = architecture
        self._names: dict[str, str] = {}
        self._given = given
        super().__init__(*given)

    def on(self, device: int) -> Cubin:
        architecture = architecture_of(device)
        if architecture == self.architecture:
            return self
        return Cubin(architecture, *self._given)

    def chosen(self, options: Sequence[str]) -> list[str]:
        flags_of(options)  # raises for an unknown option
        return [option for option in options if KNOWN.fullmatch(option)]

    def whole(self) -> str:
        text = HEADER.read_text()
        start = text.index("#ifndef DT_DEVICE_DESCRIBE_H")
        end = text.index("#endif", text.index("} /* namespace dt */", start)) + 6
        return (
            f'#line 1 "pydevtensor"\n{text[start:end]}{BEFORE}'
            f'#line 1 "{FILE}"\n{self.source}\n#line 1 "pydevtensor"\n{AFTER}'
        )

    def identity(self) -> list[str]:
        # The text does not say which kernels of templates the code has.
        return [str(self.compiler), self.version, self.architecture, *self.named]

    def expressions(self) -> dict[str, str]:
        """The expressions to ask NVRTC symbols for, each with its key in the result."""
        found = {name: name for name in self.named}
        found |= {
            f"dt::described<decltype(dt::rows_of(&{name}))>": f"rows {name}"
            for name in self.named
        }
        return found | {f"&{name}": f"&{name}" for name in self.variables}

    def folders(self) -> list[str]:
        """The folders that may have CUDA's headers: beside NVRTC, or in a toolkit."""
        homes = [os.environ.get(name) for name in ("CUDA_PATH", "CUDA_HOME")]
        candidates = [self.compiler.parents[1] if self.compiler.is_absolute() else None]
        candidates += [Path(home) for home in (*homes, "/usr/local/cuda") if home]
        folders = [home / "include" for home in candidates if home]
        folders = [f for f in folders if (f / "cuda_fp16.h").is_file()]
        # They include those of libcu++, which may be in a package of its own.
        libraries = [
            each
            for folder in folders
            for each in (folder / "cccl", folder)
            if (each / "nv" / "target").is_file()
        ]
        return [f"-I{each}" for each in (*folders[:1], *libraries[:1])]

    def compile(self) -> bytes:
        headers = {**BUILT_IN, **self.headers}
        asked = self.expressions()
        code, log, lowered = _C._module_compile(
            self.text,
            (*headers,),
            (*headers.values(),),
            (
                f"--gpu-architecture=sm_{self.architecture}",
                *self.flags,
                *self.folders(),
            ),
            (*asked,),
        )
        if code is None:
            if "--gpu-architecture" in log:
                raise RuntimeError(
                    f"compile_kernel(): NVRTC {self.version} has no code for GPUs of "
                    f"compute capability {self.architecture}; install a newer "
                    "nvidia-cuda-nvrtc"
                )
            raise CompileError(self.explain(errors(log, self.headers), log))
        names = dict(zip(asked.values(), lowered, strict=True))
        return json.dumps(names).encode() + b"\n" + bytes(code)

    def code(self, data: bytes) -> bytes:
        names, _, code = data.partition(b"\n")
        self._names = json.loads(names)
        return code

    def symbol(self, name: str) -> str:
        if not self._names:
            self.code(self.data())
        return self._names[name if name in self._names else f"&{name}"]

    def described(self, name: str) -> tuple[str, tuple[int, ...]]:
        rows = re.findall(r"Ly(\d+)E", self.symbol(f"rows {name}"))
        return self.symbol(name), tuple(map(int, rows))


def architecture_of(device: int) -> str:
    properties = _C._device_properties(device)
    return f"{properties['major']}{properties['minor']}"


def errors(log: str, headers: Iterable[str] = ()) -> Iterator[Error]:
    """Yield NVRTC's errors. headers: the names of the program's headers."""
    rows = log.splitlines()
    for i, row in enumerate(rows):
        found = re.match(r"(.+?)\((\d+)\): (?:catastrophic )?error: (.*)", row)
        if not found:
            continue
        # NVRTC shows the line indented by two columns, and a mark below it.
        marks = (r.index("^") - 1 for r in rows[i + 1 : i + 6] if r.strip() == "^")
        if found[1] == FILE or found[1] in headers:
            file = "" if found[1] == FILE else found[1]
            yield Error(int(found[2]), next(marks, 1), found[3], file)
        else:
            yield Error(0, 0, found[3])
