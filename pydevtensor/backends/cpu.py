"""torch.backends.cpu."""

from pydevtensor import _C

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """The vector instructions in use: 'AVX512', 'AVX2' or 'DEFAULT'.

    >>> torch.backends.cpu.get_cpu_capability() in ('AVX512', 'AVX2', 'DEFAULT')
    True
    """
    name = _C._facts("cpu").get("cpu.isa", "").upper().replace("-", "")
    return name if name in ("AVX2", "AVX512") else "DEFAULT"
