"""The element type of every result, or the exception instead of one.

A result type is one character of `codes`; a capital letter names an exception. A table's row
is a left dtype, its column a right dtype, in the order of `dtypes`.
"""

from describe import builtin_name, dtype_name

# fmt: off
DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64", "float16",
    "bfloat16",
)
CODES = dict(zip("buceilfdhg", DTYPES, strict=True))
CODES.update({
    "R": "RuntimeError", "T": "TypeError", "N": "NotImplementedError", "V": "ValueError",
    "Z": "ZeroDivisionError", "I": "IndexError", "A": "AttributeError",
})
CODE = {name: code for code, name in CODES.items()}

# Expressions over a and b: operators, then functions that have none.
BINARY = [
    "a + b", "a - b", "a * b", "a / b", "a // b", "a % b", "a ** b", "a == b", "a != b",
    "a < b", "a <= b", "a > b", "a >= b", "a & b", "a | b", "a ^ b",
]
FUNCTIONS = [
    "torch.maximum(a, b)", "torch.minimum(a, b)", "torch.atan2(a, b)", "torch.fmod(a, b)",
    "torch.logical_and(a, b)", "torch.logical_or(a, b)", "torch.logical_xor(a, b)",
    "torch.add(a, b)", "torch.true_divide(a, b)", "torch.remainder(a, b)",
    "torch.floor_divide(a, b)", "torch.pow(a, b)", "torch.eq(a, b)",
]
IN_PLACE = [
    "a.add_(b)", "a.sub_(b)", "a.mul_(b)", "a.div_(b)", "a.floor_divide_(b)",
    "a.remainder_(b)", "a.pow_(b)", "a.fmod_(b)", "a.copy_(b)", "a.eq_(b)", "a.lt_(b)",
    "a.logical_and_(b)", "a.bitwise_and_(b)",
]
OPERATORS_IN_PLACE = ["a += b", "a -= b", "a *= b", "a /= b", "a //= b", "a %= b", "a **= b"]
SCALARS = {"bool": "True", "int": "1", "float": "1.0"}
UNARY = [
    "abs", "neg", "sign", "square", "sqrt", "rsqrt", "reciprocal", "exp", "expm1", "log",
    "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sigmoid", "relu",
    "floor", "ceil", "trunc", "round", "isnan", "isinf", "isfinite", "logical_not",
    "bitwise_not", "positive",
]
ONE_TENSOR = [
    "-a", "+a", "~a", "abs(a)", "a.sum()", "a.sum(0)", "a.sum(dtype=torch.float64)",
    "a.sum(dtype=torch.int32)", "a.sum(0, dtype=torch.float32)", "a.mean()", "a.mean(0)",
    "a.mean(dtype=torch.float64)", "a.mean(dtype=torch.float32)", "a.mean(dtype=torch.int64)",
    "a.prod()", "a.prod(0)", "a.prod(dtype=torch.float64)", "a.max()", "a.min()",
    "a.max(0).values", "a.max(0).indices", "a.min(0)[0]", "a.amax()", "a.amin()", "a.argmax()",
    "a.argmin(0)", "a.any()", "a.all()", "a.any(0)", "a.all(0)", "a.norm()", "a.norm(1)",
    "a.norm(0)", "a.norm(3)", "a.norm(float('inf'))", "torch.norm(a)",
    "a.norm(dtype=torch.float64)", "torch.sum(a, dim=0)", "a @ a", "m @ m", "m.mm(m)",
    "torch.matmul(m, a)", "torch.addmm(m, m, m)", "m.t()", "a.clone()", "a.contiguous()",
    "torch.zeros_like(a)", "torch.ones_like(a)", "torch.full_like(a, 2)",
    "torch.empty_like(a)", "torch.rand_like(a)", "torch.randn_like(a)",
    "torch.zeros_like(a, dtype=torch.int32)", "a.float()", "a.double()", "a.long()",
    "a.int()", "a.bool()", "a.to(torch.float64)", "a.to(torch.int32)", "a.type(torch.int64)",
    "a.zero_()", "a.fill_(1)", "a.fill_(1.5)", "a.fill_(True)", "a.sqrt_()", "a.exp_()",
    "a.abs_()", "a.neg_()", "a.floor_()", "a.relu_()", "a.sigmoid_()", "a.square_()",
    "a.uniform_()", "a.normal_()", "torch.square(a)", "a.cumsum(0)", "a.clamp(0, 1)",
    "torch.relu(a)", "torch.std(a)",
]
MADE = [
    "torch.zeros(2)", "torch.ones(2)", "torch.empty(2)", "torch.full((2,), 1)",
    "torch.full((2,), 1.0)", "torch.full((2,), True)", "torch.arange(3)", "torch.arange(3.0)",
    "torch.arange(0, 1, 0.5)", "torch.arange(0, 3, 1)", "torch.arange(0.0, 3, 1)",
    "torch.arange(3, dtype=torch.float64)", "torch.tensor(1)", "torch.tensor(1.0)",
    "torch.tensor(True)", "torch.tensor([])", "torch.tensor([1, 2])",
    "torch.tensor([1, 2.0])", "torch.tensor([True, 2])", "torch.tensor([True, 2.0])",
    "torch.tensor([True, False])", "torch.tensor([[]])", "torch.tensor(2**40)",
    "torch.tensor([1, 2], dtype=torch.float32)", "torch.tensor([1.9, -1.9], dtype=torch.int32)",
    "torch.tensor([0.5, 0.0], dtype=torch.bool)", "torch.rand(2)", "torch.randn(2)",
    "torch.rand(2, dtype=torch.float64)", "torch.eye(2)", "torch.linspace(0, 1, 3)",
    "torch.randint(3, (2,))", "torch.randperm(3)", "torch.rand(2, dtype=torch.int64)",
    "torch.tensor([torch.tensor(1), torch.tensor(2)])",
    "torch.tensor([torch.tensor(1.5), 2])",
]
# fmt: on


def make(torch):
    maker = Maker(torch)
    return {
        "codes": CODES,
        "dtypes": " ".join(DTYPES),
        "scalars": SCALARS,
        "two_tensors": {source: maker.tables(source) for source in BINARY + FUNCTIONS},
        "in_place": {source: maker.pairs(source, "1", "1") for source in IN_PLACE},
        "operators_in_place": {
            source: maker.pairs(source, "1", "1") for source in OPERATORS_IN_PLACE
        },
        "scalar_right": {source: maker.right(source) for source in BINARY + FUNCTIONS},
        "scalar_left": {source: maker.left(source) for source in BINARY},
        "scalar_in_place": {
            source: maker.right(source) for source in IN_PLACE + OPERATORS_IN_PLACE
        },
        "one_tensor": {
            **{f"torch.{name}(a)": maker.one(f"torch.{name}(a)") for name in UNARY},
            **{f"a.{name}()": maker.one(f"a.{name}()") for name in UNARY},
            **{source: maker.one(source) for source in ONE_TENSOR},
        },
        "made": {source: maker.code(source) for source in MADE},
    }


class Maker:
    def __init__(self, torch):
        self.torch = torch

    def ones(self, dtype, dims):
        return self.torch.ones((2,) * dims, dtype=getattr(self.torch, dtype))

    def code(self, source, **names):
        """What source gives: the code of a dtype or of an exception."""
        names["torch"] = self.torch
        try:
            if source in OPERATORS_IN_PLACE:
                exec(source, names)
                result = names["a"]
            else:
                result = eval(source, names)
        except Exception as error:
            return CODE[builtin_name(error)]
        return CODE[dtype_name(result.dtype)]

    def pairs(self, source, left, right):
        return " ".join(
            "".join(
                self.code(source, a=self.ones(a, int(left)), b=self.ones(b, int(right)))
                for b in DTYPES
            )
            for a in DTYPES
        )

    def tables(self, source):
        """For 1-d and 0-d operands: the two mixed cases show who counts for less."""
        return {
            f"{left}{right}": self.pairs(source, left, right)
            for left, right in ("11", "10", "01", "00")
        }

    def right(self, source):
        return {
            kind: " ".join(
                "".join(
                    self.code(source, a=self.ones(a, dims), b=eval(scalar))
                    for a in DTYPES
                )
                for dims in (1, 0)
            )
            for kind, scalar in SCALARS.items()
        }

    def left(self, source):
        return {
            kind: " ".join(
                "".join(
                    self.code(source, a=eval(scalar), b=self.ones(b, dims))
                    for b in DTYPES
                )
                for dims in (1, 0)
            )
            for kind, scalar in SCALARS.items()
        }

    def one(self, source):
        return "".join(
            self.code(source, a=self.ones(a, 1), m=self.ones(a, 2)) for a in DTYPES
        )
