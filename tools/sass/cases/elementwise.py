"""Elementwise kernels."""

from sass.case import PLACE, Case

# The rows of an elementwise kernel.
ALL, SHORT, LONG = range(3)


def binary(kind: str, inputs: int = 2, rows: int = ALL) -> str:
    return f"elementwise_kernel<{kind}, {kind}, {kind}, {inputs}, {rows}>"


F32 = "elementwise_float32"
ADD = binary("float", rows=SHORT)
CASES = (
    Case(
        "add, one run",
        F32,
        ADD,
        elements=4,
        passes=("load 16", "load 16", "FADD", "store 16"),
        most=36,
        in_flight=32,
        registers=32,
    ),
    Case(
        "add, a row to each row",
        F32,
        ADD,
        elements=4,
        passes=(PLACE, "load 16", "load 16", "FADD", "store 16"),
        most=48,
        in_flight=32,
        registers=32,
    ),
    Case(
        "add, a column to each column",
        F32,
        ADD,
        elements=4,
        passes=(PLACE, "load 16", "load 4", "FADD", "store 16"),
        most=50,
        in_flight=20,
        registers=32,
    ),
    Case(
        "add, rows of an odd length",
        F32,
        ADD,
        elements=4,
        passes=(PLACE, *["load 4"] * 8, "FADD", *["store 4"] * 4),
        most=66,
        in_flight=32,
        registers=32,
    ),
    Case(
        "add, halves in one run",
        F32,
        ADD,
        elements=8,
        passes=("load 16", "load 16", *["HADD2.F32", "FADD", "F2FP"] * 2, "store 16"),
        most=27,
        in_flight=32,
        registers=32,
    ),
    Case(
        "add, halves in rows of a multiple of 4",
        F32,
        ADD,
        elements=4,
        passes=(PLACE, "load 8", "load 8", "HADD2.F32", "FADD", "store 8"),
        most=52,
        in_flight=16,
        registers=32,
    ),
    Case(
        "less than, halves in one run",
        F32,
        f"elementwise_kernel<float, float, bool, 2, {ALL}>",
        elements=8,
        passes=("load 16", "load 16", *["HADD2.F32", "FSETP"] * 2, "store 8"),
        most=28,
        in_flight=32,
        registers=32,
    ),
    Case(
        "add, int16 in one run",
        "elementwise_integer",
        binary("short"),
        elements=8,
        passes=("load 16", "load 16", "store 16"),
        most=15,
        in_flight=32,
        registers=48,
        spilled=40,
    ),
    Case(
        "add, int8 in one run",
        "elementwise_integer",
        binary("signed char"),
        elements=16,
        passes=("load 16", "load 16", "store 16"),
        most=13,
        in_flight=32,
        registers=64,
        spilled=0,
    ),
    Case(
        "divide, one run",
        F32,
        binary("float", rows=LONG),
        elements=4,
        passes=("load 16", "load 16", "MUFU.RCP", "store 16"),
        most=46,
        in_flight=32,
        registers=64,
        spilled=108,
    ),
)
