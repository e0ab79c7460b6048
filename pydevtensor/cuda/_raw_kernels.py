"""Kernels and modules by CuPy's names: RawKernel and RawModule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydevtensor import _C
from pydevtensor.cuda.kernels import Kernel, library_of

__all__ = ["GlobalVariable", "RawKernel", "RawModule"]


class RawKernel(Kernel):
    """compile_kernel() by CuPy's name and in its order of arguments.

    code      CUDA C
    name      which kernel
    options   as of compile_kernel()
    backend, translate_cucomplex, enable_cooperative_groups, jitify
              as in CuPy: 'nvrtc' and 'nvcc' do the same; ValueError for options that
              are not supported

    >>> count = torch.cuda.RawKernel(
    ...     'extern "C" __global__ void count(int *n) { atomicAdd(n, 1); }', 'count'
    ... )
    >>> n = torch.zeros(1, dtype=torch.int32, device='cuda')
    >>> count((4,), (32,), (n,))
    >>> n.item()
    128
    """

    def __init__(
        self,
        code: str,
        name: str,
        options: Sequence[str] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        *,
        enable_cooperative_groups: bool = False,
        jitify: bool = False,
    ) -> None:
        _refuse("RawKernel", backend, translate_cucomplex, enable_cooperative_groups)
        super().__init__(*library_of("RawKernel", code, name, options, None))

    def compile(self, log_stream: Any = None) -> None:
        """Does nothing, as the kernel is compiled already; log_stream gets no text."""


def _refuse(function: str, backend: str, complexes: bool, grids: bool) -> None:
    """ValueError for options of CuPy's that kernels do not have here."""
    if backend not in ("nvrtc", "nvcc"):
        raise ValueError(
            f"{function}(): backend is {backend!r}; give 'nvrtc' or 'nvcc', which are "
            "alike"
        )
    if complexes:
        raise ValueError(
            f"{function}(): translate_cucomplex is not there; write cuComplex.h's "
            "functions, which kernels can include"
        )
    if grids:
        raise ValueError(
            f"{function}(): enable_cooperative_groups needs cooperative launches, "
            "which are not there; groups of a block need no option, and a kernel whose "
            "blocks wait for one another is to end there: launch a second one"
        )


def _check_name(function: str, name: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{function}(): name is {name!r}; give a str")


class RawModule:
    """Several kernels and variables of a source, as in CuPy.

    code               CUDA C
    path               the file that has it, instead of code
    options            as of compile_kernel()
    name_expressions   the kernels of templates, such as ['scale<float>']
    backend, translate_cucomplex, enable_cooperative_groups, jitify
                       as of RawKernel

    >>> module = torch.cuda.RawModule(code='''
    ... __constant__ float weights[2];
    ... __global__ void weigh(float *x) { x[threadIdx.x] *= weights[threadIdx.x]; }''')
    >>> module.get_global('weights').write(torch.tensor([2., 3.]))
    >>> x = torch.ones(2, device='cuda')
    >>> module.get_function('weigh')((1,), (2,), (x,))
    >>> x
    tensor([2., 3.], device='cuda:0')
    """

    def __init__(
        self,
        code: str | None = None,
        *,
        path: str | None = None,
        options: Sequence[str] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        name_expressions: Sequence[str] | None = None,
        jitify: bool = False,
    ) -> None:
        from pydevtensor.cuda import _kernel_source

        _refuse("RawModule", backend, translate_cucomplex, enable_cooperative_groups)
        if (code is None) == (path is None):
            raise TypeError("RawModule(): give either code or path")
        if code is None:
            with open(str(path), encoding="utf-8") as file:
                code = file.read()
        self._code, self._every = code, _kernel_source.kernels(code)
        names = [*(name_expressions or ())]
        names += [e.name for e in self._every if e.plain and not e.template]
        self._library, _, _, self._device = library_of(
            "RawModule", code, names[0] if names else None, options, None, names
        )

    def compile(self, log_stream: Any = None) -> None:
        """Does nothing, as the code is compiled already; log_stream gets no text."""

    def get_function(self, name: str) -> Kernel:
        """A kernel, by name; for one of a template as in name_expressions.

        name may be the one that the code has, such as '_Z5scaleIfEvPfi'.
        """
        from pydevtensor.cuda import _kernel_source

        _check_name("get_function", name)
        spelled = _kernel_source.spelled(_kernel_source.unmangled(name))
        for each in self._library.named:
            if _kernel_source.spelled(each) == spelled:
                name = each
        if name not in self._library.named:
            there = ", ".join(self._library.named)
            raise ValueError(
                f"get_function(): the module has no kernel {name}; it has {there}. "
                "Name those of templates in name_expressions"
            )
        base = _kernel_source.base_name(name)
        found = next((e for e in self._every if e.name == base), None)
        return Kernel(self._library, name, found, self._device)

    def get_global(self, name: str) -> GlobalVariable:
        """A __device__ or __constant__ variable of the current GPU, by name."""
        _check_name("get_global", name)
        if name not in self._library.variables:
            raise ValueError(
                f"get_global(): the module has no variable {name}; it has "
                + (", ".join(self._library.variables) or "none")
            )
        return GlobalVariable(self._library, name, _C._device_index(None))


class GlobalVariable:
    """A __device__ or __constant__ variable of a RawModule, on one GPU.

    name     as in the source
    nbytes   its size

    >>> module = torch.cuda.RawModule(
    ...     code="__device__ int sizes[2] = {3, 5}; __global__ void f() {}"
    ... )
    >>> module.get_global('sizes').read(torch.int32)
    tensor([3, 5], dtype=torch.int32)
    """

    def __init__(self, _library: Any, _name: str, _device: int) -> None:
        self.name = _name
        self._library, self._device = _library.on(_device), _device
        self.nbytes: int = len(self._library.variable(_device, _name))

    def __repr__(self) -> str:
        return f"<torch.cuda.GlobalVariable {self.name}, {self.nbytes} bytes>"

    def read(self, dtype: _C.dtype = _C.uint8) -> _C.Tensor:
        """A tensor of a dtype on the CPU with its value; waits for the GPU."""
        data = bytearray(self._library.variable(self._device, self.name))
        return _C.frombuffer(data, dtype=dtype)

    def write(self, value: Any) -> None:
        """Set it to a value: a tensor's elements, or bytes; waits for the GPU."""
        if isinstance(value, _C.Tensor):
            data = memoryview(value.detach().cpu().contiguous()).tobytes()
        else:
            try:
                data = memoryview(value).tobytes()
            except TypeError:
                raise TypeError(
                    f"{self.name}: write() was given a {type(value).__name__}; give a "
                    "tensor, an array of NumPy's, or bytes"
                ) from None
        if len(data) != self.nbytes:
            raise ValueError(
                f"{self.name} has {self.nbytes} bytes, and was given {len(data)}; give "
                "a tensor of its element type and size"
            )
        self._library.variable(self._device, self.name, data)
