"""Kernels and modules by CuPy's names: RawKernel and RawModule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydevtensor import _C
from pydevtensor.cuda.kernels import Kernel, base_name, library_of

__all__ = ["GlobalVariable", "RawKernel", "RawModule"]


class RawKernel(Kernel):
    """compile_kernel() by CuPy's name and in its order of arguments.

    code      CUDA C
    name      which kernel
    options   as of compile_kernel()

    >>> count = torch.cuda.RawKernel(
    ...     'extern "C" __global__ void count(int *n) { atomicAdd(n, 1); }', 'count'
    ... )
    >>> n = torch.zeros(1, dtype=torch.int32, device='cuda')
    >>> count((4,), (32,), (n,))
    >>> n.item()
    128
    """

    def __init__(self, code: str, name: str, options: Sequence[str] = ()) -> None:
        super().__init__(*library_of("RawKernel", code, name, options, None))


class RawModule:
    """Several kernels and variables of a source, as in CuPy.

    code               CUDA C
    options            as of compile_kernel()
    name_expressions   the kernels of templates, such as ['scale<float>']

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
        *,
        code: str,
        options: Sequence[str] = (),
        name_expressions: Sequence[str] = (),
    ) -> None:
        from pydevtensor.cuda import _kernel_source

        self._code, self._every = code, _kernel_source.kernels(code)
        names = [*name_expressions]
        names += [e.name for e in self._every if e.plain and not e.template]
        self._library, _, _, self._device = library_of(
            "RawModule", code, names[0] if names else None, options, None, names
        )

    def get_function(self, name: str) -> Kernel:
        """A kernel, by name; for one of a template as in name_expressions."""
        if name not in self._library.named:
            there = ", ".join(self._library.named)
            raise ValueError(
                f"get_function(): the module has no kernel {name}; it has {there}. "
                "Name those of templates in name_expressions"
            )
        found = next((e for e in self._every if e.name == base_name(name)), None)
        return Kernel(self._library, name, found, self._device)

    def get_global(self, name: str) -> GlobalVariable:
        """A __device__ or __constant__ variable of the current GPU, by name."""
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
            data = bytes(value)
        if len(data) != self.nbytes:
            raise ValueError(
                f"{self.name} has {self.nbytes} bytes, and was given {len(data)}; give "
                "a tensor of its element type and size"
            )
        self._library.variable(self._device, self.name, data)
