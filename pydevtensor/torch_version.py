"""The PyTorch release whose behaviour pydevtensor follows."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

__all__ = ["TorchVersion"]


class TorchVersion(str):
    """A version that compares by its numbers, with text and with tuples.

    >>> from pydevtensor.torch_version import TorchVersion
    >>> TorchVersion('2.13.0') > '2.9', TorchVersion('2.13.0') >= (2, 13)
    (True, True)
    >>> TorchVersion('2.13.0a1') < '2.13.0'
    True
    """

    def __new__(cls, version: str) -> TorchVersion:
        return super().__new__(cls, version)

    def __hash__(self) -> int:
        return str.__hash__(self)


def _comparison(name: str) -> Callable[[str, Any], Any]:
    order = getattr(operator, name)

    def compare(self: str, other: Any) -> Any:
        if isinstance(other, tuple | list):
            other = ".".join(map(str, other))
        if not isinstance(other, str):
            return NotImplemented
        try:
            return order(_key(self), _key(other))
        except ValueError:  # no version: as text
            return order(str(self), str(other))

    return compare


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(TorchVersion, f"__{_name}__", _comparison(_name))

_FORM = re.compile(
    r"v?(\d+(?:\.\d+)*)"
    r"(?:[-_.]?(dev|a|alpha|b|beta|rc|c|post)[-_.]?(\d*))?(?:\+([\w.]+))?\s*$"
)
_STAGES = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "c": -1, "rc": -1}


def _key(version: str) -> tuple[Any, ...]:
    """A sort key of versions: numbers, stage of the release, local label."""
    found = _FORM.match(version.strip())
    if found is None:
        raise ValueError(f"{version!r} is not a version")
    numbers, stage, count, label = found.groups()
    release = [int(n) for n in numbers.split(".")]
    while release and not release[-1]:
        release.pop()
    order = _STAGES.get(stage, 1) if stage else 0
    return tuple(release), order, int(count or 0), label or ""


__version__ = TorchVersion("2.13.0+pydevtensor")
