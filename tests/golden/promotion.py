"""The dtype that each operation gives for each pair of dtypes, as tables of one-letter codes.

table() makes one entry of promotion.json, with PyTorch or with pydevtensor.
"""

import ast
import warnings

from golden.describe import builtin_name, dtype_name


def outcome(source, torch, **names):
    """The dtype that source gives or, of `a += b`, leaves in a; or the exception."""
    names["torch"] = torch
    try:
        if isinstance(ast.parse(source).body[0], ast.Expr):
            result = eval(source, names)
        else:
            exec(source, names)
            result = names["a"]
    except Exception as error:
        return builtin_name(error)
    return dtype_name(result.dtype)


def table(section, source, golden, torch, device="cpu"):
    """The codes of a source: a row of letters for each left dtype or number of dimensions."""
    dtypes = golden["dtypes"].split()
    letters = {name: letter for letter, name in golden["codes"].items()}

    def code(**names):
        return letters.get(outcome(source, torch, **names), "?")

    def ones(dtype, dims):
        return torch.ones((2,) * dims, dtype=getattr(torch, dtype), device=device)

    def row(make_names):
        return "".join(code(**make_names(dtype)) for dtype in dtypes)

    def pairs(left, right):
        return " ".join(
            row(lambda b, a=a: {"a": ones(a, left), "b": ones(b, right)})
            for a in dtypes
        )

    def with_scalar(scalar):
        tensor, other = ("b", "a") if section == "scalar_left" else ("a", "b")
        return " ".join(
            row(lambda dtype, dims=dims: {tensor: ones(dtype, dims), other: scalar})
            for dims in (1, 0)
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if section == "two_tensors":
            # 1-d and 0-d operands: the two mixed cases show which one counts less.
            return {k: pairs(int(k[0]), int(k[1])) for k in ("11", "10", "01", "00")}
        if section in ("in_place", "operators_in_place"):
            return pairs(1, 1)
        if section in ("scalar_left", "scalar_right", "scalar_in_place"):
            return {k: with_scalar(eval(v)) for k, v in golden["scalars"].items()}
        if section == "one_tensor":
            return row(lambda dtype: {"a": ones(dtype, 1), "m": ones(dtype, 2)})
        with torch.device(device):
            return code()


SECTIONS = (
    *("in_place", "made", "one_tensor", "operators_in_place", "scalar_in_place"),
    *("scalar_left", "scalar_right", "two_tensors"),
)
