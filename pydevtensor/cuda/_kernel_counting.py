"""Kernel.report(), in which the simulator counts the accesses of a launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydevtensor import _C

if TYPE_CHECKING:
    from pydevtensor.cuda._kernel_report import KernelReport


class Reports:
    """The methods of Kernel for reports."""

    def report(
        self,
        grid: int | Sequence[int] = (1, 1, 1),
        block: int | Sequence[int] = (1, 1, 1),
        args: Sequence[Any] | None = None,
        shared_mem: int = 0,
    ) -> KernelReport:
        """Launch the kernel, wait for it, and count its accesses by line.

        grid and block are the numbers of blocks and of a block's threads, args the
        kernel's arguments, shared_mem bytes of dynamic shared memory of a block, all
        as in a launch. For each line that accesses memory: how
        often it runs, bytes, sectors of 32 bytes that a warp's request takes and those
        that it needs, conflicts of shared memory's banks, collisions of atomics, idle
        lanes; and the occupancy of the card. It counts, and measures no time.

        RuntimeError on real GPUs, and if the kernel was compiled without checks.

        >>> copy = torch.cuda.compile_kernel(
        ...     "__global__ void copy(const float *x, float *y)"
        ...     "{ y[threadIdx.x] = x[8 * threadIdx.x]; }"
        ... )
        >>> x = torch.zeros(256, device='cuda')
        >>> report = copy.report(1, 32, (x, torch.zeros(32, device='cuda')))
        >>> report.lines[0].bytes_read
        128
        """
        kernel: Any = self
        device = _C._device_index(None)
        limits = kernel._limits(device)
        if not limits["simulated"]:
            raise RuntimeError(
                f"{kernel.name}.report(): cuda:{device} is a real GPU, and simulated "
                "GPUs alone count accesses; choose them with torch.cuda.simulate(1)"
            )
        _C._device_synchronize(device)
        _C._sim_control("count_accesses")
        try:
            kernel(grid, block, args, shared_mem)
            _C._device_synchronize(device)
        finally:
            handle, rows = _counted()
        if not handle:
            raise RuntimeError(
                f"{kernel.name}.report(): the kernel has no checks, which count its "
                "accesses; compile and launch it under "
                "torch.cuda.kernel_checks('error')"
            )
        extents = kernel._extent("grid", grid), kernel._extent("block", block)
        from pydevtensor.cuda import _kernel_report

        return _kernel_report.report(
            kernel.name, *extents, shared_mem, limits, handle, rows
        )


def _counted() -> tuple[int, list[list[int]]]:
    rows: list[list[int]] = []
    while True:
        handle, *more = _C._sim_control(f"counted {len(rows)}").splitlines()
        rows += [[int(word) for word in row.split()] for row in more]
        if not more:
            return int(handle), rows
