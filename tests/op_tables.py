"""The rows of csrc/ops/elementwise.def, as the extension has them."""

from __future__ import annotations

from typing import NamedTuple

from pydevtensor import _C


class Row(NamedTuple):
    """One row; takes: whether it has kernels for bool, integers, floats and complex
    numbers;
    differentiable: whether each input has a derivative."""

    name: str
    arity: int
    kind: str
    low: float
    high: float
    kernels: tuple[bool, bool, bool, bool]
    differentiable: tuple[bool, ...]

    def takes(self, dtype: str) -> bool:
        """Whether tensors of the element type, by name, are taken."""
        if dtype == "bool" and self.kind in ("COUNT", "POWER"):
            return self.kind == "COUNT"  # as int64; pow takes a number beside bools
        kind = 0 if dtype == "bool" else 2 if "float" in dtype else 1
        return self.kind in ("MATH", "FLOAT") or self.kernels[kind]


# Activations are functions alone, and test_activations.py tests them.
ROWS = [Row(*row) for row in _C._operations() if hasattr(_C.Tensor, row[0] + "_")]
ROWS += [Row(*row) for row in _C._operations() if row[0] == "where"]
UNARY = [row for row in ROWS if row.arity == 1]
BINARY = [row for row in ROWS if row.arity == 2]
TERNARY = [row for row in ROWS if row.arity == 3 and row.name != "where"]
