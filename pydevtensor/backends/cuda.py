"""torch.backends.cuda."""

from __future__ import annotations

from pydevtensor import _C

__all__ = ["is_built", "matmul"]


class _Products:
    """allow_tf32: whether float32 products on GPUs may round their inputs to TF32.

    The same setting as torch.set_float32_matmul_precision().
    """

    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True

    @property
    def allow_tf32(self) -> bool:
        return _C.get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        _C.set_float32_matmul_precision("high" if value else "highest")


matmul: _Products = _Products()


def is_built() -> bool:
    """Whether this installation has a backend for GPUs, real or simulated.

    >>> torch.backends.cuda.is_built() in (True, False)
    True
    """
    from pydevtensor.cuda import is_available, why_unavailable

    return is_available() or "PYDEVTENSOR_CUDA=0" not in (why_unavailable() or "")
