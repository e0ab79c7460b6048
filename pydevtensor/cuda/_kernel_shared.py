"""Shared memory of kernels: the size in a block, and the maximum for a launch."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C

SHARED = 48 << 10  # bytes of shared memory that need no permission


class SharedMemory:
    """The methods and attributes of Kernel for shared memory."""

    name: str
    _handles: dict[int, int]
    _library: Any
    _chosen_dynamic = 0  # bytes that the program has set

    @property
    def shared_size_bytes(self) -> int:
        """Bytes of shared memory of a block, without the dynamic ones."""
        device = _C._device_index(None)
        kernel: Any = self
        if device not in self._handles:
            kernel._load(device)
        known: int | None = _C._module_attribute(self._handles[device], device, 1)
        if known is None:
            known = self._library.fixed(self.name)
        return known

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """Bytes of dynamic shared memory that a launch may ask for."""
        return self._chosen_dynamic or SHARED - self.shared_size_bytes

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, bytes_of_a_block: int) -> None:
        self.set_shared_memory_config(bytes_of_a_block)

    def set_shared_memory_config(self, shared_mem_bytes: int) -> None:
        """Allow launches with up to shared_mem_bytes of dynamic shared memory.

        48 KB, with the arrays of fixed size, need no permission. RuntimeError where a
        block of the GPU has fewer.

        >>> kernel = torch.cuda.compile_kernel("__global__ void f(int *x) {}")
        >>> kernel.set_shared_memory_config(64 * 1024)
        >>> kernel.max_dynamic_shared_size_bytes
        65536
        """
        if not hasattr(shared_mem_bytes, "__index__"):
            raise TypeError(
                f"{self.name}: shared_mem_bytes is {shared_mem_bytes!r}; give a number "
                "of bytes"
            )
        fixed = self.shared_size_bytes
        most = self._most() - fixed
        if not 0 <= shared_mem_bytes <= most:
            raise RuntimeError(
                f"{self.name}: {shared_mem_bytes} bytes of shared memory are more than "
                f"the {most} that a block of this GPU may have{_beside(fixed)}; use "
                "fewer"
            )
        self._chosen_dynamic = max(shared_mem_bytes.__index__(), SHARED - fixed)
        for device in self._handles:
            self._set_shared(device)

    def _most(self) -> int:
        kernel: Any = self
        limits = kernel._limits(_C._device_index(None))
        most: int = limits["shared_memory_per_block_optin"]
        return most

    def _set_shared(self, device: int) -> None:
        """Set the limit on a GPU that has loaded the kernel."""
        if self._chosen_dynamic:
            number, most = 8, self._chosen_dynamic
            _C._module_attribute(self._handles[device], device, number, most)

    def _check_shared(self, shared_mem: Any) -> None:
        """Raise an exception if a launch wants more than it may have."""
        if isinstance(shared_mem, bool) or not hasattr(shared_mem, "__index__"):
            raise TypeError(
                f"{self.name}(): shared_mem is {shared_mem!r}; give a number of bytes"
            )
        if not shared_mem:
            return
        fixed = self.shared_size_bytes
        most = self._most() - fixed
        if not 0 <= shared_mem.__index__() <= most:
            raise ValueError(
                f"{self.name}(): shared_mem is {shared_mem}; a block has at most "
                f"{most} bytes of dynamic shared memory{_beside(fixed)}"
            )
        if shared_mem > self.max_dynamic_shared_size_bytes:
            raise RuntimeError(
                f"{self.name}(): shared_mem is {shared_mem}, and the kernel may have "
                f"{self.max_dynamic_shared_size_bytes} bytes of dynamic shared memory"
                f"{_beside(fixed)}; call set_shared_memory_config({shared_mem}) before"
            )


def _beside(fixed: int) -> str:
    return f" beside its {fixed} bytes of fixed arrays" if fixed else ""
