"""The element type of every operation on every pair of types, or the exception instead."""

import warnings

import pytest
from golden.describe import builtin_name, dtype_name, load
from golden.missing import missing

import pydevtensor as torch

GOLDEN = load("promotion")
DTYPES = GOLDEN["dtypes"].split()
CODES = GOLDEN["codes"]
HERE = [name for name in DTYPES if hasattr(torch, name)]
# Where PyTorch's CPU lacks a kernel that its GPUs have, a device may answer either way.
CPU_LACKS = "N"


def code(source, **names):
    names["torch"] = torch
    try:
        if " " in source and source.split()[1] in (
            "+=",
            "-=",
            "*=",
            "/=",
            "//=",
            "%=",
            "**=",
        ):
            exec(source, names)
            result = names["a"]
        else:
            result = eval(source, names)
    except Exception as error:
        return builtin_name(error)
    return dtype_name(result.dtype)


def ones(dtype, dims, device):
    return torch.ones((2,) * dims, dtype=getattr(torch, dtype), device=device)


def require(source):
    lacking = missing(source, torch)
    if lacking:
        pytest.skip(f"pydevtensor has no {lacking} yet")


def check(source, expected, got, where, wrong, device):
    if device != "cpu" and expected == CPU_LACKS:
        return
    if CODES[expected] != got:
        wrong.append(f"{source} with {where}: {got}, expected {CODES[expected]}")


def finish(wrong):
    assert not wrong, "\n".join(wrong[:20]) + f"\n{len(wrong)} combinations differ"


def check_pairs(source, table, left, right, device, wrong):
    for a, row in zip(DTYPES, table.split(), strict=True):
        for b, expected in zip(DTYPES, row, strict=True):
            if a in HERE and b in HERE:
                got = code(source, a=ones(a, left, device), b=ones(b, right, device))
                check(
                    source,
                    expected,
                    got,
                    f"{a} ({left}-d), {b} ({right}-d)",
                    wrong,
                    device,
                )


@pytest.mark.parametrize("source", GOLDEN["two_tensors"])
def test_two_tensors(source, device):
    require(source)
    wrong = []
    for dims, table in GOLDEN["two_tensors"][source].items():
        check_pairs(source, table, int(dims[0]), int(dims[1]), device, wrong)
    finish(wrong)


@pytest.mark.parametrize("source", [*GOLDEN["in_place"], *GOLDEN["operators_in_place"]])
def test_in_place(source, device):
    require(source)
    wrong = []
    table = {**GOLDEN["in_place"], **GOLDEN["operators_in_place"]}[source]
    check_pairs(source, table, 1, 1, device, wrong)
    finish(wrong)


@pytest.mark.parametrize(
    ("section", "source"),
    [
        (section, source)
        for section in ("scalar_left", "scalar_right", "scalar_in_place")
        for source in GOLDEN[section]
    ],
)
def test_a_number_and_a_tensor(section, source, device):
    require(source)
    wrong = []
    tensor, scalar = ("b", "a") if section == "scalar_left" else ("a", "b")
    for kind, tables in GOLDEN[section][source].items():
        for dims, row in zip((1, 0), tables.split(), strict=True):
            for dtype, expected in zip(DTYPES, row, strict=True):
                if dtype in HERE:
                    value = eval(GOLDEN["scalars"][kind])
                    names = {tensor: ones(dtype, dims, device), scalar: value}
                    where = f"{dtype} ({dims}-d) and a Python {kind}"
                    check(source, expected, code(source, **names), where, wrong, device)
    finish(wrong)


@pytest.mark.parametrize("source", GOLDEN["one_tensor"])
def test_one_tensor(source, device):
    require(source)
    wrong = []
    for dtype, expected in zip(DTYPES, GOLDEN["one_tensor"][source], strict=True):
        if dtype in HERE:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                got = code(source, a=ones(dtype, 1, device), m=ones(dtype, 2, device))
            check(source, expected, got, dtype, wrong, device)
    finish(wrong)


@pytest.mark.parametrize("source", GOLDEN["made"])
def test_made(source, device):
    require(source)
    expected = GOLDEN["made"][source]
    with torch.device(device):
        got = code(source)
    wrong = []
    check(source, expected, got, "no operand", wrong, device)
    finish(wrong)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_exists(dtype):
    assert dtype in HERE
