"""Errors of torch.onnx."""

from __future__ import annotations

from pydevtensor._names import publish as _publish

__all__ = ["UnsupportedOperatorError"]


class UnsupportedOperatorError(RuntimeError):
    """A call that export() has no record of.

    >>> try:
    ...     raise torch.onnx.errors.UnsupportedOperatorError("fft")
    ... except RuntimeError as error:
    ...     print(error)
    fft
    """


_publish(__name__)
