"""What each row of csrc/ops/elementwise/ is, in NumPy, computed in float64.

A function of the tables below, or NumPy's of the row's name. A row that has neither is its own
formula, read from the table, with NumPy's functions for its words: that still holds the kernels,
types and layouts of every device against something else than C, and the example that the row shows
holds the formula against what is meant.
"""

import functools
import math
import re
import statistics
from pathlib import Path

import numpy as np

TABLES = Path(__file__).resolve().parents[1] / "csrc" / "ops" / "elementwise"


def digamma(x):
    """By the series of Gauss: a sum of differences, its tail by an integral."""
    n = np.longdouble(4000)
    k = np.arange(n)
    x = np.asarray(x, dtype=np.longdouble)[..., None]
    head = (1 / (k + 1) - 1 / (k + x)).sum(-1)
    below, above = n + 0.5, n + x[..., 0] - 0.5
    tail = np.log(above / below) - (1 / below**2 - 1 / above**2) / 24
    gamma = np.longdouble("0.577215664901532860606512")
    return (head + tail - gamma).astype(np.float64)


def zeta(s, x):
    """The sum itself, and its tail by an integral and two derivatives."""
    s, x = np.broadcast_arrays(s, np.asarray(x, dtype=np.longdouble))
    k = np.arange(200.0)
    y = x + 200 - 0.5
    total = ((x[..., None] + k) ** -s[..., None]).sum(-1)
    total = total + y ** (1 - s) / (s - 1) - s * y ** (-s - 1) / 24
    total = total + 7 * s * (s + 1) * (s + 2) * y ** (-s - 3) / 5760
    return np.where(s > 1, total, np.where(s == 1, np.inf, np.nan)).astype(np.float64)


def polygamma(n, x):
    n = np.rint(n)
    factorial = np.vectorize(math.gamma, otypes=[float])(n + 1)
    sign = np.where(n % 2 == 1, 1, -1)
    return sign * factorial * zeta(n + 1, x)


def erfinv(x):
    def inverse(y):
        if abs(y) == 1:
            return math.copysign(math.inf, y)
        return statistics.NormalDist().inv_cdf((y + 1) / 2) / math.sqrt(2)

    return np.vectorize(inverse, otypes=[float])(x)


def bessel(order, x):
    """exp(-|x|) I(x), the mean of exp(|x| (cos t - 1)) cos(order t) over t."""
    t = (np.arange(512) + 0.5) * np.pi / 512
    size = np.abs(np.asarray(x, dtype=np.float64))[..., None]
    mean = (np.exp(size * (np.cos(t) - 1)) * np.cos(order * t)).mean(-1)
    return mean * np.sign(x) if order else mean


def erfcx(x):
    def one(x):
        if x < 1:
            return math.exp(x * x) * math.erfc(x)
        fraction = x
        for k in range(600, 0, -1):
            fraction = x + k / 2 / fraction
        return 1 / math.sqrt(math.pi) / fraction

    return np.vectorize(one, otypes=[float])(x)


def ndtri(x):
    def inverse(p):
        if p in (0, 1):
            return -math.inf if p == 0 else math.inf
        return statistics.NormalDist().inv_cdf(p)

    return np.vectorize(inverse, otypes=[float])(x)


def log_ndtr(x):
    x = np.asarray(x, dtype=np.float64)
    below = np.log(erfcx(np.maximum(-x, 0) / math.sqrt(2)) / 2) - x * x / 2
    half = np.vectorize(math.erfc, otypes=[float])(x / math.sqrt(2)) / 2
    return np.where(x < 0, below, np.log1p(-half))


def igamma(a, x, terms=200):
    """The series of Abramowitz and Stegun, 6.5.29."""
    total, term = 0.0, np.vectorize(math.gamma, otypes=[float])(np.asarray(a) + 1.0)
    a, x = np.asarray(a, dtype=np.float64), np.asarray(x, dtype=np.float64)
    term = 1 / term
    for k in range(terms):
        total = total + term
        term = term * x / (a + k + 1)
    return np.where((a == 0) & (x == 0), np.nan, total * np.exp(-x) * x**a)


UNARY_REFERENCE = {
    "special_i0e": lambda x: bessel(0, x),
    "special_i1": lambda x: bessel(1, x) * np.exp(np.abs(x)),
    "special_i1e": lambda x: bessel(1, x),
    "i0": lambda x: bessel(0, x) * np.exp(np.abs(x)),
    "special_erfcx": erfcx,
    "special_ndtri": ndtri,
    "special_log_ndtr": log_ndtr,
    "special_entr": lambda x: np.where(x > 0, -x * np.log(np.where(x > 0, x, 1)), 0.0),
    "erfinv": erfinv,
    "lgamma": np.vectorize(lambda x: math.lgamma(x) if x else np.inf, otypes=[float]),
    "digamma": digamma,
    "logit": lambda x: np.log(x / (1 - x)),
    "isposinf": lambda x: np.isposinf(x) if x.dtype.kind == "f" else x < x,
    "isneginf": lambda x: np.isneginf(x) if x.dtype.kind == "f" else x < x,
    "signbit": lambda x: x < 0 if x.dtype.kind != "f" else np.signbit(x),
    "square": lambda x: x * x,
    "neg": np.negative,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0),
    "round": np.rint,
    "sign": lambda x: x if x.dtype == bool else np.sign(x),
    "logical_not": np.logical_not,
    "bitwise_not": np.invert,
    "floor": lambda x: np.floor(x).astype(x.dtype),
    "ceil": lambda x: np.ceil(x).astype(x.dtype),
    "trunc": lambda x: np.trunc(x).astype(x.dtype),
    "erf": np.vectorize(math.erf, otypes=[float]),
    "erfc": np.vectorize(math.erfc, otypes=[float]),
    "frac": lambda x: x - np.trunc(x).astype(x.dtype),
}
BINARY_REFERENCE = {
    "special_xlog1py": lambda a, b: np.where(a == 0, 0, a * np.log1p(b)),
    "special_zeta": zeta,
    "igamma": igamma,
    "igammac": lambda a, x: 1 - igamma(a, x),
    "xlogy": lambda a, b: np.where((a == 0) & (b == b), 0, a * np.log(b)),
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "clamp_min": np.maximum,
    "clamp_max": np.minimum,
    "pow": np.power,
    "atan2": np.arctan2,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
}
TERNARY_REFERENCE = {
    "addcmul": lambda a, b, c: a + b * c,
    "addcdiv": lambda a, b, c: a + b / c,
    "lerp": lambda a, b, c: np.where(
        np.abs(c) < 0.5, a + c * (b - a), b - (b - a) * (1 - c)
    ),
    "clamp": lambda a, b, c: np.minimum(np.maximum(a, b), c),
}

# --- formulas


def whole(function):
    """Of numbers: bools are 0 and 1, and integers are not narrower than C's int."""

    def call(*values):
        arrays = [np.asarray(v) for v in values]
        return function(
            *(a.astype(np.int64) if a.dtype.kind in "bui" else a for a in arrays)
        )

    return call


def truncated(function):
    return whole(lambda a: a if a.dtype.kind == "i" else function(a))


def each(function):
    return np.vectorize(function, otypes=[float])


# The words of csrc/ops/formula.h.
WORDS = {
    "ADD": whole(np.add),
    "SUB": whole(np.subtract),
    "MUL": whole(np.multiply),
    "DIV": whole(np.true_divide),
    "NEG": whole(np.negative),
    "ABS": whole(np.abs),
    "SIGN": whole(np.sign),
    "POW": whole(np.power),
    "FLOORDIV": whole(np.floor_divide),
    "REMAINDER": whole(np.mod),
    "FMOD": whole(np.fmod),
    "GCD": np.gcd,
    "LCM": np.lcm,
    "FLOOR": truncated(np.floor),
    "CEIL": truncated(np.ceil),
    "TRUNC": truncated(np.trunc),
    "ROUND": truncated(np.rint),
    "ERF": each(math.erf),
    "ERFC": each(math.erfc),
    "ERFINV": erfinv,
    "LGAMMA": UNARY_REFERENCE["lgamma"],
    "DIGAMMA": digamma,
    "POLYGAMMA": polygamma,
    "ZETA": zeta,
    "I0": UNARY_REFERENCE["i0"],
    "I0E": UNARY_REFERENCE["special_i0e"],
    "I1": UNARY_REFERENCE["special_i1"],
    "I1E": UNARY_REFERENCE["special_i1e"],
    "ERFCX": erfcx,
    "NDTRI": ndtri,
    "IGAMMA": igamma,
    "IGAMMAC": lambda a, x: 1 - igamma(a, x),
    "SIGMOID": lambda a: 1 / (1 + np.exp(-a)),
    "ASIN": np.arcsin,
    "ACOS": np.arccos,
    "ATAN": np.arctan,
    "ASINH": np.arcsinh,
    "ACOSH": np.arccosh,
    "ATANH": np.arctanh,
    "ATAN2": np.arctan2,
    "SIGNBIT": UNARY_REFERENCE["signbit"],
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
    "AND": np.logical_and,
    "OR": np.logical_or,
    "BITAND": np.bitwise_and,
    "BITOR": np.bitwise_or,
    "BITXOR": np.bitwise_xor,
    "BITNOT": np.invert,
    "LSHIFT": np.left_shift,
    "RSHIFT": np.right_shift,
    # Both sides have a value: a division by 0 in the one not chosen is of no account.
    "WHERE": lambda c, a, b: np.where(np.asarray(c) != 0, a, b),
    # NumPy calls them the same.
    **{
        name: getattr(np, name.lower())
        for name in (
            *(
                "SQRT",
                "EXP",
                "EXP2",
                "EXPM1",
                "LOG",
                "LOG2",
                "LOG10",
                "LOG1P",
                "SIN",
                "COS",
            ),
            *("TAN", "SINH", "COSH", "TANH", "HYPOT", "COPYSIGN", "MAXIMUM", "MINIMUM"),
            *("FMAX", "FMIN", "ISINF", "ISFINITE"),
        )
    },
}


@functools.cache
def formulas():
    """The column `value` of each row, by name."""
    text = "".join(path.read_text() for path in TABLES.glob("*.def"))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r'"(\\.|[^"\\])*"', '""', text)  # what is in quotes has commas
    found = {}
    for row in re.finditer(r"^(?:ELEMENTWISE|FUSED)\(", text, re.M):
        columns, depth = [""], 1
        for letter in text[row.end() :]:
            depth += (letter == "(") - (letter == ")")
            if depth == 0:
                break
            if letter == "," and depth == 1:
                columns.append("")
            else:
                columns[-1] += letter
        found[columns[0].strip()] = " ".join(columns[7].split())
    return found


def formula(row):
    """The row's formula as a function of arrays."""
    code = compile(formulas()[row.name], row.name, "eval")

    def call(*values):
        kind = np.result_type(*values)

        def number(value):
            return np.asarray(value).astype(kind)

        words = {"ZERO": number(0), "ONE": number(1), "NUMBER": number, **WORDS}
        words["INFINITE"] = np.inf
        found = eval(code, words, dict(zip("ABC", values, strict=False)))
        return np.asarray(found).astype(bool if row.kind == "PREDICATE" else kind)

    return call


def known(row):
    """A function of arrays that is known to be what a row is; or None."""
    table = {**UNARY_REFERENCE, **BINARY_REFERENCE, **TERNARY_REFERENCE}
    return table.get(row.name, getattr(np, row.name, None))


def reference(row):
    return known(row) or formula(row)
