"""torch.version: the release whose behaviour is followed, and what CUDA is here.

pydevtensor's own version is pydevtensor.__version__.
"""

from __future__ import annotations

from typing import Any

from pydevtensor.torch_version import __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

cuda: str | None  # found when it is first read, so that an import touches no GPU
debug = False
git_version = "Unknown"
hip: str | None = None
xpu: str | None = None


def __getattr__(name: str) -> Any:
    if name == "cuda":  # "12.4", or None without a GPU
        from pydevtensor import _C

        return _C._facts("cuda").get("runtime") or None
    from pydevtensor import _find_absent

    return _find_absent(__name__, name)
