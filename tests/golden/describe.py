"""Evaluate golden cases, turn results into JSON and compare them: shared by tools/make_golden.py,
which runs PyTorch, and the tests, which run pydevtensor."""

import ast
import json
import math
import pathlib
import warnings
from functools import cache

FOLDER = pathlib.Path(__file__).resolve().parent

# Relative and absolute error that different orders of rounding may cause, by element type.
TOLERANCE = {
    "bfloat16": (1e-2, 1e-3),
    "float16": (2e-3, 1e-5),
    "float32": (2e-6, 1e-7),
    "float64": (1e-13, 1e-15),
    "complex64": (2e-6, 1e-7),
    "complex128": (1e-13, 1e-15),
}


def load(name):
    """The golden set `name`."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


@cache
def compiled(source):
    """The statements in source, and the last one apart if it is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    value = last and compile(ast.Expression(last.value), "<golden>", "eval")
    return compile(tree, "<golden>", "exec"), value


def run(source, scope):
    """Execute the statements in source in scope; return the value of the last one."""
    statements, value = compiled(source)
    exec(statements, scope)
    return value and eval(value, scope)


def answer(setup, source, torch):
    """The described value of source, or the exception that it raises, and its message."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            scope = {"torch": torch}
            run(setup, scope)
            return describe(run(source, scope), torch), None
        except Exception as error:
            return exception(error), str(error)


def exception(error):
    return {"raises": type(error).__name__, "builtin": builtin_name(error)}


def builtin_name(error):
    """The nearest class of the exception that Python itself defines."""
    for each in type(error).__mro__:
        if each.__module__ == "builtins":
            return each.__name__


def dtype_name(dtype):
    return str(dtype).rpartition(".")[2]


def flat(nested):
    """The numbers in nested lists, in order."""
    if not isinstance(nested, list):
        return [nested]
    return [number for part in nested for number in flat(part)]


def number(value):
    """The value, or a dict in place of infinities, NaN and complex numbers, which JSON
    lacks."""
    if isinstance(value, complex):
        return {"complex": [number(value.real), number(value.imag)]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value


def describe(value, torch):
    """A result as JSON: numbers and text as they are, all else as a dict."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, complex)):
        return number(value)
    if isinstance(value, torch.Tensor):
        return {
            "tensor": dtype_name(value.dtype),
            "shape": list(value.shape),
            "stride": list(value.stride()),
            "values": [number(each) for each in flat(value.tolist())],
        }
    if isinstance(value, torch.dtype):
        return {"dtype": dtype_name(value)}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, tuple):
        items = [describe(each, torch) for each in value]
        if type(value).__name__ == "Size":
            return {"Size": items}
        if hasattr(value, "values") and hasattr(value, "indices"):
            return {"values": items[0], "indices": items[1]}
        return {"tuple": items}
    if isinstance(value, list):
        return {"list": [describe(each, torch) for each in value]}
    return {"text": str(value)}


def difference(expected, got, where="result"):
    """Why two descriptions differ, as a sentence; None if they agree to rounding."""
    if isinstance(expected, dict) and "tensor" in expected:
        return tensor_difference(expected, got, where)
    if isinstance(expected, dict) and isinstance(got, dict):
        if expected.keys() != got.keys():
            return f"{where} is {got}, expected {expected}"
        for key, value in expected.items():
            found = difference(value, got[key], f"{where}.{key}")
            if found:
                return found
        return None
    if isinstance(expected, list) and isinstance(got, list):
        if len(expected) != len(got):
            return f"{where} has {len(got)} items, expected {len(expected)}"
        for i, (value, other) in enumerate(zip(expected, got, strict=True)):
            found = difference(value, other, f"{where}[{i}]")
            if found:
                return found
        return None
    if type(expected) is not type(got):
        return (
            f"{where} is {got!r} ({type(got).__name__}), "
            f"expected {expected!r} ({type(expected).__name__})"
        )
    if isinstance(expected, float) and close(expected, got, 2e-6, 1e-7):
        return None
    return None if expected == got else f"{where} is {got!r}, expected {expected!r}"


def tensor_difference(expected, got, where):
    """As difference. A tensor recorded without strides may have any."""
    if not isinstance(got, dict) or "tensor" not in got:
        return f"{where} is {got!r}, expected a tensor {expected}"
    for key in ("tensor", "shape", "stride"):
        if key in expected and expected[key] != got[key]:
            name = "dtype" if key == "tensor" else key
            return f"{where} has {name} {got[key]}, expected {expected[key]}"
    tolerance = TOLERANCE.get(expected["tensor"], (0, 0))
    for i, (value, other) in enumerate(
        zip(expected["values"], got["values"], strict=True)
    ):
        if type(value) is not type(other) or not close(value, other, *tolerance):
            return f"{where} has {other!r} at {i}, expected {value!r}"
    return None


def close(expected, got, relative, absolute):
    if isinstance(expected, dict) and "complex" in expected:
        parts = [*expected["complex"], *got.get("complex", [])]
        if any(isinstance(part, dict) for part in parts):
            return expected == got
        wanted, found = complex(*parts[:2]), complex(*parts[2:])
        return abs(wanted - found) <= absolute + relative * abs(wanted)
    if isinstance(expected, dict | str):  # not finite, or a hexadecimal float
        return expected == got
    if expected == got:
        # Zeros must agree in sign too.
        return math.copysign(1, expected) == math.copysign(1, got)
    return abs(expected - got) <= absolute + relative * abs(expected)
