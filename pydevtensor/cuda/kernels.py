"""Kernels of the program's own, in CUDA C: compile_kernel()."""

from __future__ import annotations

import re
import struct
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pydevtensor import _C
from pydevtensor._streams import Stream
from pydevtensor.cuda import checks
from pydevtensor.cuda._kernel_counting import Reports
from pydevtensor.cuda._kernel_shared import SharedMemory

__all__ = ["CompileError", "Kernel", "compile_kernel"]

_LIMITS = {"grid": (0x7FFFFFFF, 65535, 65535), "block": (1024, 1024, 64)}
# The element types for a pointer to numbers of a kind and size (csrc/device/module.h);
# None: all.
_POINTED: dict[tuple[str, int], tuple[_C.dtype, ...]] = {
    ("f", 4): (_C.float32,),
    ("f", 8): (_C.float64,),
    ("i", 1): (_C.int8,),
    ("c", 1): (_C.int8, _C.uint8, _C.bool),
    ("u", 1): (_C.uint8,),
    ("b", 1): (_C.bool,),
    ("h", 2): (_C.float16,),
    ("g", 2): (_C.bfloat16,),
    **{(kind, 2): (_C.int16,) for kind in "iu"},
    **{(kind, 4): (_C.int32,) for kind in "iu"},
    **{(kind, 8): (_C.int64,) for kind in "iu"},
}
_FORMATS = {("f", 4): "<f", ("f", 8): "<d", ("h", 2): "<e", ("g", 2): "<f"}


class CompileError(RuntimeError):
    """A kernel's source does not compile; the message has lines and columns.

    >>> try:
    ...     torch.cuda.compile_kernel("__global__ void f(int *x) { x[0] = y; }")
    ... except torch.cuda.CompileError as error:
    ...     print(str(error).splitlines()[1].partition(",")[0])
    line 1
    """


def _attribute(number: int, doc: str) -> Any:
    """A property of a kernel on the current GPU, an int or None."""

    def get(kernel: Kernel) -> Any:
        device = _C._device_index(None)
        if device not in kernel._handles:
            kernel._load(device)
        return _C._module_attribute(kernel._handles[device], device, number)

    return property(get, doc=doc)


class Kernel(Reports, SharedMemory):
    """A kernel that compile_kernel() has compiled; calling it launches it.

    name         as it was given to compile_kernel()
    parameters   the text of each, as in the source
    max_threads_per_block   those that a block may have: the GPU's limit, or that of
                            __launch_bounds__
    max_dynamic_shared_size_bytes   the dynamic shared memory that a launch may ask for;
                            setting it is set_shared_memory_config()
    shared_size_bytes       bytes of shared memory of a block, without the dynamic ones
    num_regs, local_size_bytes, const_size_bytes
                            for a thread registers and bytes of local memory, and bytes
                            of constant memory; None on simulated GPUs

    >>> fill = torch.cuda.compile_kernel(
    ...     "__global__ void fill(float *x, float v) { x[threadIdx.x] = v; }"
    ... )
    >>> fill.parameters
    ('float *x', 'float v')
    >>> x = torch.empty(3, device='cuda')
    >>> fill(grid=(1,), block=(3,), args=(x, 0.5))
    >>> x
    tensor([0.5000, 0.5000, 0.5000], device='cuda:0')
    """

    def __init__(self, _library: Any, _name: str, _found: Any, _device: int) -> None:
        self.name = _name
        self._library = _library
        self._handles: dict[int, int] = {}
        self._properties: dict[int, dict[str, Any]] = {}
        self._types = self._load(_device)
        # A macro may have made a kernel that the text does not show.
        texts = _found.parameters if _found else []
        known = len(texts) == len(self._types)
        self.parameters: tuple[str, ...] = tuple(
            texts if known else [""] * len(self._types)
        )
        limit = self._limits(_device)["max_threads_per_block"]
        bound = _found and _found.max_threads
        most = _C._module_attribute(self._handles[_device], _device, 0)
        self.max_threads_per_block: int = min(limit, bound or limit, most or limit)

    def __getstate__(self) -> dict[str, Any]:
        """Without the handles, which another process or a copy gets for itself."""
        return {**self.__dict__, "_handles": {}}

    def __repr__(self) -> str:
        return f"<torch.cuda.Kernel {self.name}({', '.join(self.parameters)})>"

    def _load(self, device: int) -> Any:
        """Load it on a GPU; gives the types of its parameters."""
        self._handles[device], types = self._library.on(device).kernel(
            device, self.name
        )
        self._set_shared(device)
        return types

    # --- attributes

    num_regs = _attribute(4, "Registers of a thread.")
    local_size_bytes = _attribute(3, "Bytes of local memory of a thread.")
    const_size_bytes = _attribute(2, "Bytes of constant memory.")

    @property
    def attributes(self) -> dict[str, int | None]:
        """All of them, by name."""
        names = "max_threads_per_block shared_size_bytes const_size_bytes "
        names += "local_size_bytes num_regs max_dynamic_shared_size_bytes"
        return {name: getattr(self, name) for name in names.split()}

    def _limits(self, device: int) -> dict[str, Any]:
        if device not in self._properties:
            self._properties[device] = _C._device_properties(device)
        return self._properties[device]

    def __call__(
        self,
        grid: int | Sequence[int] = (1, 1, 1),
        block: int | Sequence[int] = (1, 1, 1),
        args: Sequence[Any] | None = None,
        shared_mem: int = 0,
        stream: Stream | None = None,
    ) -> None:
        """Launch the kernel on the current stream; does not wait for it.

        grid         the number of blocks, of up to three dimensions
        block        the number of threads of a block, of up to three dimensions
        args         for each parameter a number or, for a pointer, a tensor of the
                     GPU or None. A tensor passes the address of its first element
        shared_mem   bytes of dynamic shared memory
        stream       a stream instead of the current one

        Tensors whose pointers are not const count as changed in place.

        >>> count = torch.cuda.compile_kernel(
        ...     "__global__ void count(int *n) { atomicAdd(n, 1); }"
        ... )
        >>> n = torch.zeros(1, dtype=torch.int32, device='cuda')
        >>> count((4,), (32,), (n,))
        >>> n.item()
        128
        """
        if stream is not None:
            if not isinstance(stream, Stream):
                raise TypeError(
                    f"{self.name}(): stream is {stream!r}; give a torch.cuda.Stream"
                )
            with stream:
                device = _C._device_index(stream.device)
                self._launch(device, grid, block, args, shared_mem)
        else:
            self._launch(_C._device_index(None), grid, block, args, shared_mem)

    def _launch(
        self, device: int, grid: Any, block: Any, args: Any, shared_mem: Any
    ) -> None:
        shape = self._extent("grid", grid), self._extent("block", block)
        threads = shape[1][0] * shape[1][1] * shape[1][2]
        if threads > self.max_threads_per_block:
            raise ValueError(
                f"{self.name}(): block is {shape[1]}, {threads} threads, and a block "
                f"has at most {self.max_threads_per_block}; launch more blocks of "
                "fewer threads"
            )
        self._check_shared(shared_mem)
        given = () if args is None else args
        if not isinstance(given, (tuple, list)):
            raise TypeError(
                f"{self.name}(): args is a {type(given).__name__}; give a tuple with "
                "an argument for each parameter, such as args=(x, n)"
            )
        if len(given) != len(self._types):
            raise TypeError(
                f"{self.name}(): {len(given)} arguments were given, and the kernel has "
                f"{len(self._types)} parameters: ({', '.join(self.parameters)})"
            )
        values = tuple(self._value(i, each, device) for i, each in enumerate(given))
        if device not in self._handles:
            self._load(device)
        handle = self._handles[device]
        checks.apply()
        _C._kernel_launch(handle, device, *shape, shared_mem.__index__(), values)

    # --- checks

    def _extent(self, what: str, extent: Any) -> tuple[int, int, int]:
        sizes = (extent,) if hasattr(extent, "__index__") else extent
        if (
            not isinstance(sizes, (tuple, list))
            or not 1 <= len(sizes) <= 3
            or any(isinstance(n, bool) or not hasattr(n, "__index__") for n in sizes)
        ):
            raise TypeError(
                f"{self.name}(): {what} is {extent!r}; give one to three ints, such as "
                f"{what}=(4,)"
            )
        whole = (*(n.__index__() for n in sizes), 1, 1)[:3]
        if any(
            not 1 <= n <= most for n, most in zip(whole, _LIMITS[what], strict=True)
        ):
            raise ValueError(
                f"{self.name}(): {what} is {extent!r}; its dimensions go from 1 to "
                f"{', '.join(map(str, _LIMITS[what]))}"
            )
        return whole[0], whole[1], whole[2]

    def _where(self, i: int) -> str:
        text = self.parameters[i]
        return f"{self.name}(): argument {i + 1}" + (f", {text}," if text else "")

    def _value(self, i: int, value: Any, device: int) -> Any:
        """What _C._kernel_launch takes."""
        kind, pointer, _, components, size, _ = self._types[i]
        if pointer:
            if value is not None:
                self._check_tensor(i, value, device)
            return value
        if components > 1:
            return self._vector(i, value, components)
        if isinstance(value, _C.Tensor):
            raise TypeError(
                f"{self._where(i)} takes a number, and was given a tensor of shape "
                f"{tuple(value.shape)}; pass .item(), which waits for the GPU, or "
                "declare a pointer"
            )
        return self._bytes(i, value, size) if kind == "s" else self._number(i, value)

    def _vector(self, i: int, value: Any, components: int) -> bytes:
        """The bytes of a float4 or its kin."""
        if isinstance(value, _C.Tensor) and value.device.type != "cpu":
            raise TypeError(
                f"{self._where(i)} takes {components} numbers, and was given a tensor "
                f"on {value.device}; pass .tolist(), which waits for the GPU"
            )
        values = value.tolist() if hasattr(value, "tolist") else value
        if not isinstance(values, (tuple, list)) or len(values) != components:
            raise TypeError(
                f"{self._where(i)} takes {components} numbers, and was given "
                f"{value!r}; give a tuple of them"
            )
        return b"".join(self._number(i, each) for each in values)

    def _bytes(self, i: int, value: Any, size: int) -> bytes:
        """The bytes of a struct."""
        try:
            data = memoryview(value).cast("B") if value is not None else b""
        except TypeError:
            data = b""
        if len(data) != size:
            raise TypeError(
                f"{self._where(i)} takes a struct of {size} bytes, and was given "
                + (f"{len(data)} bytes" if data else f"a {type(value).__name__}")
                + "; give bytes, such as those of struct.pack(), a ctypes.Structure "
                "or a record of NumPy's"
            )
        return bytes(data)

    def _number(self, i: int, value: Any) -> bytes:
        kind, _, _, _, size, _ = self._types[i]
        if (kind, size) in _FORMATS:
            return self._float(i, value, kind, size)
        if str(getattr(value, "dtype", "")) == "bool" and not value.shape:
            value = bool(value)  # NumPy's lacks __index__
        if kind == "b":
            return struct.pack("<?", bool(self._int(i, value, "u", 1)))
        if kind in "iuc":
            signed = kind != "u"
            return self._int(i, value, kind, size).to_bytes(
                size, "little", signed=signed
            )
        raise TypeError(
            f"{self._where(i)} is neither a pointer nor a number, which is all that a "
            "launch can pass; declare a pointer, or several numbers"
        )

    def _float(self, i: int, value: Any, kind: str, size: int) -> bytes:
        if not hasattr(value, "__float__") or isinstance(value, (str, bytes)):
            raise TypeError(
                f"{self._where(i)} takes a number, and was given a "
                f"{type(value).__name__}; give a float"
            )
        try:
            data = struct.pack(_FORMATS[kind, size], float(value))
        except OverflowError:
            raise OverflowError(
                f"{self._where(i)} takes a number of {8 * size} bits, which {value!r} "
                f"does not fit; declare it as {'float' if kind == 'h' else 'double'}"
            ) from None
        if kind != "g":
            return data
        number = _C.tensor(float(value), dtype=_C.bfloat16)
        return struct.pack("<f", number.item())[2:]

    def _int(self, i: int, value: Any, kind: str, size: int) -> int:
        if not hasattr(value, "__index__"):
            raise TypeError(
                f"{self._where(i)} takes an integer, and was given {value!r}, a "
                f"{type(value).__name__}; give an int"
            )
        number: int = value.__index__()
        low, high = _range(size, kind != "u")
        if not low <= number <= high:
            fitting = [
                name
                for name, signed in (("long long", True), ("unsigned long long", False))
                if _range(8, signed)[0] <= number <= _range(8, signed)[1]
            ]
            advice = (
                f"declare it as {fitting[0]}"
                if fitting
                else "no integer of CUDA C holds it: pass a double, or parts of it"
            )
            raise OverflowError(
                f"{self._where(i)} takes an integer from {low} to {high}, and was "
                f"given {number}; {advice}"
            )
        return number

    def _check_tensor(self, i: int, value: Any, device: int) -> None:
        kind, _, _, _, size, alignment = self._types[i]
        here = _C.device("cuda", device)
        known = _POINTED.get((kind, size))
        wanted = " or ".join(map(str, known)) + " " if known else ""
        if not isinstance(value, _C.Tensor):
            raise TypeError(
                f"{self._where(i)} takes a {wanted}tensor on {here}, and was given a "
                f"{type(value).__name__}; give a tensor, or None for a null pointer"
            )
        if value.device != here:
            raise ValueError(
                f"{self._where(i)} takes a tensor on {here}, where the kernel is "
                f"launched, and was given one on {value.device}; pass .to('{here}')"
                + (
                    f", or launch under torch.cuda.device({value.device.index})"
                    if value.is_cuda
                    else ""
                )
            )
        if kind == "p" or (kind in "iucbfhg" and known is None):
            raise TypeError(
                f"{self._where(i)} points to what no element type of a tensor is; "
                "declare a pointer to numbers"
            )
        if known and value.dtype not in known:
            raise TypeError(
                f"{self._where(i)} takes a tensor of {wanted.strip()}, and was given "
                f"one of {value.dtype}; pass .to({known[0]}), or declare the pointer "
                "otherwise"
            )
        if alignment > max(size, 1) and value.data_ptr() % alignment:
            raise ValueError(
                f"{self._where(i)} takes an address that is a multiple of {alignment}, "
                f"and the tensor begins at {value.data_ptr():#x}; pass .clone()"
            )
        if not value.is_contiguous():
            warnings.warn(
                f"{self._where(i)} gets a tensor of shape {tuple(value.shape)} whose "
                f"elements are not contiguous, of strides {value.stride()}; pass "
                ".contiguous(), unless the kernel computes with the strides",
                stacklevel=5,
            )


def compile_kernel(
    source: str,
    name: str | None = None,
    *,
    options: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
) -> Kernel:
    """Compile a kernel in CUDA C for the current GPU; gives a Kernel to call.

    source    CUDA C: kernels, and the functions and variables that they use
    name      which kernel; for a template an expression such as 'scale<float>'. It may
              be left out where there is one
    options   for the compiler: -DNAME=VALUE, -UNAME, -IFOLDER, -std=c++17. Those that
              say how code for a GPU is made, such as --use_fast_math, have no effect
    headers   the texts of files that the source includes, by name

    CompileError where the source does not compile. Simulated GPUs use the compiler that
    CXX names, c++, g++ or clang++, real ones NVRTC. What was compiled is kept in a
    folder (docs/kernels.md).

    >>> source = '''
    ... template <typename T> __global__ void scale(T *x, T by, int n)
    ... {
    ...     int i = blockIdx.x * blockDim.x + threadIdx.x;
    ...     if (i < n) x[i] *= by;
    ... }'''
    >>> scale = torch.cuda.compile_kernel(source, 'scale<float>')
    >>> x = torch.ones(4, device='cuda')
    >>> scale(grid=(1,), block=(32,), args=(x, 2.5, 4))
    >>> x
    tensor([2.5000, 2.5000, 2.5000, 2.5000], device='cuda:0')
    """
    return Kernel(*library_of("compile_kernel", source, name, options, headers))


def library_of(
    function: str,
    source: str,
    name: str | None,
    options: Sequence[str],
    headers: Mapping[str, str] | None,
    names: Sequence[str] = (),
) -> tuple[Any, str, Any, int]:
    """What Kernel() takes: the library of a source, a kernel, its text, the GPU."""
    from pydevtensor.cuda import _kernel_source

    for what, value in (("source", source), ("name", name)):
        if not isinstance(value, str) and not (what == "name" and value is None):
            raise TypeError(
                f"{function}(): {what} is a {type(value).__name__}; give a str"
            )
    if re.search("[\ud800-\udfff]", source):
        raise ValueError(
            f"{function}(): source has a surrogate, which UTF-8 text never "
            "has; decode it as UTF-8"
        )
    device = _C._device_index(None, function)
    simulated = _C._device_properties(device)["simulated"]
    texts = _headers(headers)
    for file, text in (("", source), *texts.items()) if simulated else ():
        try:
            _kernel_source.check(text)
        except _kernel_source.Lacking as error:
            raise CompileError(
                f"compile_kernel(): {file and file + ', '}line {error.line}: simulated "
                f"GPUs do not have {error.what}"
            ) from None
    every = _kernel_source.kernels(source)
    macros = _kernel_source.macros_make_kernels(source)
    name = name and _kernel_source.unmangled(name)
    for each in names:
        _chosen(every, each, macros)
    name = _chosen(every, name, macros)
    base = _kernel_source.base_name(name)
    found = next((each for each in every if each.name == base), None)
    plain = [each.name for each in every if each.plain and not each.template]
    named = [*dict.fromkeys((*plain, *names, name))]
    return (
        _compiler(device, simulated)(source, name, named, options, texts),
        name,
        found,
        device,
    )


def _compiler(device: int, simulated: bool) -> Any:
    """The class that compiles a source for a GPU."""
    if simulated:
        from pydevtensor.cuda._kernel_compiler import Library

        return partial(Library, checked=checks.chosen() != "off")
    from pydevtensor.cuda._kernel_nvrtc import Cubin, architecture_of

    return partial(Cubin, architecture_of(device))


def _range(size: int, signed: bool) -> tuple[int, int]:
    """The least and the greatest integer of some bytes."""
    half = 1 << 8 * size - 1
    return (-half, half - 1) if signed else (0, 2 * half - 1)


def _headers(headers: Any) -> dict[str, str]:
    if headers is None:
        return {}
    for name, text in headers.items() if isinstance(headers, Mapping) else [(0, 0)]:
        if not isinstance(name, str) or not isinstance(text, str):
            raise TypeError(
                "compile_kernel(): headers is to be a dict of texts by name, such as "
                "{'sizes.h': '#define N 16'}"
            )
        if not re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)*", name):
            raise ValueError(
                f"compile_kernel(): the header's name {name!r} is not one below the "
                "source; give such as 'sizes.h' or 'lib/sizes.h'"
            )
    return dict(headers)


def _chosen(every: Sequence[Any], name: str | None, more: bool) -> str:
    """The name, or that of the only kernel; more: there may be others than these."""
    there = ", ".join(each.name for each in every)
    if name is None:
        if len(every) != 1:
            raise ValueError(
                f"compile_kernel(): the source has the kernels {there}; name one"
                if every
                else "compile_kernel(): the source has no kernel, a function that is "
                "declared __global__ void"
            )
        name = str(every[0].name)
    if not re.fullmatch(r"[\w:]+ *(<[\w:<>, *&()+-]*>)?", name):
        raise ValueError(
            f"compile_kernel(): name is {name!r}; give a kernel's name, such as 'add', "
            "or 'add<float>' of a template"
        )
    template = next((e for e in every if e.name == name and e.template), None)
    if template:
        raise ValueError(
            f"compile_kernel(): {name} is a template; name one of its kernels, such as "
            f"'{name}<float>'"
        )
    from pydevtensor.cuda._kernel_source import base_name

    base = base_name(name)
    if not more and base not in {each.name for each in every}:
        raise ValueError(
            f"compile_kernel(): the source has no kernel {base}; it has "
            + (there or "none")
        )
    return name


def _compile_kernel(
    kernel_source: str,
    kernel_name: str,
    compute_capability: str | None = None,
    cuda_include_dirs: Sequence[str] | None = None,
    nvcc_options: Sequence[str] | None = None,
) -> Kernel:
    """compile_kernel() by PyTorch's name, with PyTorch's parameters."""
    folders = [f"-I{folder}" for folder in cuda_include_dirs or ()]
    return compile_kernel(
        kernel_source, kernel_name, options=[*(nvcc_options or ()), *folders]
    )
