"""torch.onnx: writes networks as ONNX models, with the package `onnx`.

export() traces a module by torch.fx (_export.py) and writes each call by the record of
its name or layer (_records.py), which _elementwise.py, _reductions.py, _shapes.py,
_functional.py and _layers.py make.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from pydevtensor._names import publish as _publish
from pydevtensor.onnx import errors as errors

__all__ = ["errors", "export", "is_in_onnx_export"]

_exporting = False


def is_in_onnx_export() -> bool:
    """Whether export() runs.

    >>> torch.onnx.is_in_onnx_export()
    False
    """
    return _exporting


def export(
    model: Any,
    args: Any = (),
    f: Any = None,
    *,
    kwargs: dict[str, Any] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamic_axes: Mapping[str, Any] | None = None,
    training: Any = None,
    **options: Any,
) -> Any:
    """Write what a module computes as an ONNX model, and return it, an onnx.ModelProto.

    The module runs once, with the arguments, in evaluation mode, and is then in the
    mode in which it was. The model is checked by onnx.checker. UnsupportedOperatorError
    for a call that has no record, TraceError for control flow that depends on values,
    ModuleNotFoundError without the package onnx.

    model           a Module, or a function of Tensors
    args            its arguments: a Tensor, or a tuple
    f               the file, a path or a file object; None: none
    kwargs          arguments by name
    input_names     names of the inputs, in order; by default those of the parameters
    output_names    names of the outputs
    opset_version   13 or more, by default 20: of an older one, what has no operator
                    there is written with others
    dynamic_axes    the dimensions of inputs and outputs that may have another size, by
                    name: {"x": {0: "batch"}}, or {"x": [0]}. The first one stays open
                    through reshapes; others that a size enters are fixed
    training        has to be None or the mode of evaluation
    options         PyTorch's others, without effect
    """
    global _exporting
    from pydevtensor.onnx._export import write

    if getattr(training, "value", training) not in (None, 0):
        raise NotImplementedError(
            "export(): the mode of training is not written; leave training out"
        )
    given = args if isinstance(args, (tuple, list)) else (args,)
    names = list(input_names or ()), list(output_names or ())
    version = 20 if opset_version is None else opset_version
    if version < 13:
        raise ValueError(f"opset_version is {version}; give 13 or more")
    _exporting = True
    try:
        made = write(
            model, tuple(given), kwargs or {}, names, version, dynamic_axes or {}
        )
    finally:
        _exporting = False
    if hasattr(f, "write"):
        f.write(made.SerializeToString())
    elif f is not None:
        with open(os.fspath(f), "wb") as file:
            file.write(made.SerializeToString())
    return made


_publish(__name__)
