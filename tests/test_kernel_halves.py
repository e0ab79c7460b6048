"""Kernels of the program with 16-bit floats: cuda_fp16.h and cuda_bf16.h."""

import math
import random
import struct
from fractions import Fraction

import pytest
from kernel_programs import compiled, simulated

import pydevtensor as torch

HEADERS = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
FORMATS = [("half", torch.float16), ("__nv_bfloat16", torch.bfloat16)]


@pytest.mark.parametrize(("kind", "dtype"), FORMATS)
def test_arithmetic_is_rounded_once(here, kind, dtype):
    """As the library's own of the same type, which rounds float32 results."""
    source = (
        HEADERS
        + """
        template <class T> __global__ void f(const T *a, const T *b, T *out, int n)
        {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i >= n) return;
            T x = a[i], y = b[i];
            out[i] = x + y, out[n + i] = __hsub(x, y), out[2 * n + i] = x * y;
            out[3 * n + i] = __hdiv(x, y), out[4 * n + i] = -x, out[5 * n + i] = hsqrt(__habs(x));
            out[6 * n + i] = __hmax(x, y), out[7 * n + i] = hexp(x);
            out[8 * n + i] = x; out[8 * n + i] += y;
        }"""
    )
    n = 500
    a = (torch.randn(n, device=here) * 3).to(dtype)
    b = (torch.randn(n, device=here) + 3).to(dtype)
    out = torch.empty(9, n, dtype=dtype, device=here)
    compiled(source, f"f<{kind}>")(4, 128, (a, b, out, n))
    wide = a.float(), b.float()
    expected = [
        *(wide[0] + wide[1], wide[0] - wide[1], wide[0] * wide[1], wide[0] / wide[1]),
        *(-wide[0], wide[0].abs().sqrt(), torch.maximum(*wide)),
        *(wide[0].double().exp(), wide[0] + wide[1]),
    ]
    for row, value in zip(out, expected, strict=True):
        assert torch.equal(row, value.to(dtype))


def test_a_fused_product_and_sum_rounds_once(here):
    fused = compiled(
        HEADERS + "__global__ void f(const half *a, half *out)"
        "{ out[threadIdx.x] = __hfma(a[3 * threadIdx.x], a[3 * threadIdx.x + 1],"
        " a[3 * threadIdx.x + 2]); }"
    )
    # 1 + 2^-10 times 1 + 2^-10 lies just above 1 + 2^-9; less 2^-24 more or less of it
    # is on either side of a midpoint.
    step = 2.0**-10
    rows = [
        (1 + step, 1 + step, 1.0),
        (1.0, 1 + step, 2.0**-11),
        (1.0, 1.0, 2.0**-11),
        (1 + step, 1.0, -(2.0**-24)),
        (60000.0, 2.0, -60000.0),
    ]
    exact = [a * b + c for a, b, c in rows]  # no digit is lost in float64
    a = torch.tensor(rows, device=here).half()
    out = torch.empty(len(rows), dtype=torch.float16, device=here)
    fused(1, len(rows), (a, out))
    assert out.tolist() == [
        struct.unpack("<e", struct.pack("<e", value))[0] for value in exact
    ]


@pytest.mark.parametrize(("kind", "dtype"), FORMATS)
def test_pairs(here, kind, dtype):
    name = "half2" if kind == "half" else "__nv_bfloat162"
    source = (
        HEADERS
        + """
        __global__ void f(const PAIR *a, PAIR *out, float *wide, int n)
        {
            int i = threadIdx.x;
            PAIR x = a[i];
            out[i] = __hfma2(x, x, x);
            out[n + i] = __hmul2(x, MAKE(2.0f, 3.0f));
            out[2 * n + i] = __heq2(x, __hneg2(x));
            wide[i] = __low2float(x) - __high2float(x) + (__hbeq2(x, x) ? 0 : 1000);
        }"""
    )
    make = "__floats2half2_rn" if kind == "half" else "__floats2bfloat162_rn"
    options = [f"-DPAIR={name}", f"-DMAKE={make}"]
    a = torch.randn(32, 2, device=here).to(dtype)
    a[3, 1] = 0
    out = torch.empty(3, 32, 2, dtype=dtype, device=here)
    wide = torch.empty(32, device=here)
    compiled(source, options=options)(1, 32, (a, out, wide, 32))
    x = a.double()
    assert torch.equal(out[0], (x * x + x).to(dtype))
    assert torch.equal(out[1], (x * torch.tensor([2.0, 3.0], device=here)).to(dtype))
    assert out[2].sum().item() == 1 and out[2][3, 1].item() == 1
    assert torch.equal(wide, (x[:, 0] - x[:, 1]).float())


def test_sums_and_shuffles(here):
    source = (
        HEADERS
        + """
        __global__ void f(half *sum, __nv_bfloat16 *other, half2 *both, half *turned)
        {
            int i = threadIdx.x;
            atomicAdd(sum, __float2half(1.0f)), atomicAdd(other, (__nv_bfloat16)0.5f);
            atomicAdd(both, __floats2half2_rn(1, i));
            half mine = __int2half_rn(i);
            turned[i] = __shfl_xor_sync(0xffffffff, mine, 1);
            half2 pair = __shfl_sync(0xffffffff, __half2half2(mine), 5);
            if (i == 0) turned[32] = __high2half(pair);
        }"""
    )
    sums = torch.zeros(3, dtype=torch.float16, device=here)
    other = torch.zeros(1, dtype=torch.bfloat16, device=here)
    both = torch.zeros(2, dtype=torch.float16, device=here)
    turned = torch.zeros(33, dtype=torch.float16, device=here)
    compiled(source)(1, 32, (sums, other, both, turned))
    assert (sums.tolist(), other.tolist()) == ([32, 0, 0], [16])
    assert both.tolist() == [32, 31 * 16]
    assert turned.tolist() == [i ^ 1 for i in range(32)] + [5]


@pytest.mark.parametrize(("kind", "dtype"), FORMATS)
def test_a_number_of_16_bits_is_rounded_to_nearest(here, kind, dtype):
    put = compiled(HEADERS + f"__global__ void put({kind} *x, {kind} v) {{ *x = v; }}")
    x = torch.empty(1, dtype=dtype, device=here)
    draw = random.Random(3)
    for value in [0.1, -2.5, 3e38 if kind != "half" else 65504, 1e-7] + [
        draw.gauss(0, 10) for _ in range(5)
    ]:
        put(args=(x, value))
        assert x.item() == torch.tensor(value).to(dtype).item()
    with pytest.raises(
        TypeError,
        match=rf"takes a tensor of torch.{dtype}".replace("torch.torch", "torch"),
    ):
        put(args=(torch.empty(1, device=here), 1))
    if kind == "half":
        with pytest.raises(OverflowError, match=r"16 bits, .*declare it as float"):
            put(args=(x, 1e6))


# --- one by one -----------------------------------------------------------------------

NUMBERS = [0.0, 1.0, -1.5, 0.3333, 2.5, -2.5, 3.0e-5, 700.7, -9.99, 100.0]
TEN = [2.0, -0.7, 1.0, 1e4, 0.125, -3.0, 5.5, 0.01, -200.0, 1.0]
TO_NEAREST, TO_ZERO, DOWN, UP = round, math.trunc, math.floor, math.ceil
ROUNDINGS = {"_rn": TO_NEAREST, "_rz": TO_ZERO, "_rd": DOWN, "_ru": UP}


def narrow(value, kind, to=TO_NEAREST):
    """A number in 16 bits, by its definition."""
    digits, least = (11, -14) if kind == "half" else (8, -126)
    if not value or not math.isfinite(value):
        return value
    exponent = max(math.frexp(value)[1] - 1, least)
    unit = Fraction(2) ** (exponent - digits + 1)
    made = float(to(Fraction(value) / unit) * unit)
    most = 65504.0 if kind == "half" else float(2**128 - 2**120)
    if abs(made) <= most:
        return made
    return math.copysign(
        most if abs(to(math.copysign(1.5, made))) == 1 else math.inf, made
    )


def results(kind, expressions, of=("x", "y"), more=""):
    """What each expression of x and y is, for the numbers above."""
    lines = "\n".join(
        f"    out[{len(NUMBERS)} * {i} + t] = {text};"
        for i, text in enumerate(expressions)
    )
    source = f"""{HEADERS}
        __global__ void f(const {kind} *a, const {kind} *b, double *out)
        {{
            int t = threadIdx.x;
            {kind} {of[0]} = a[t], {of[1]} = b[t];
            {more}
        {lines}
        }}"""
    dtype = dict(FORMATS)[kind]
    a = torch.tensor(NUMBERS).to(dtype).cuda()
    b = torch.tensor(TEN).to(dtype).cuda()
    shape = (len(expressions), len(NUMBERS))
    out = torch.zeros(*shape, dtype=torch.float64, device="cuda")
    compiled(source)(1, len(NUMBERS), (a, b, out))
    numbers = zip(a.tolist(), b.tolist(), strict=True)
    return [*numbers], out.tolist()


def clamp(value):
    return min(max(value, 0.0), 1.0)


BOTH = {
    "__hadd": lambda x, y: x + y,
    "__hadd_rn": lambda x, y: x + y,
    "__hadd_sat": lambda x, y: clamp(x + y),
    "__hsub": lambda x, y: x - y,
    "__hsub_rn": lambda x, y: x - y,
    "__hsub_sat": lambda x, y: clamp(x - y),
    "__hmul": lambda x, y: x * y,
    "__hmul_rn": lambda x, y: x * y,
    "__hmul_sat": lambda x, y: clamp(x * y),
    "__hdiv": lambda x, y: x / y,
    "__hmin": min,
    "__hmax": max,
    "__hmin_nan": min,
    "__hmax_nan": max,
    "__heq": lambda x, y: x == y,
    "__hne": lambda x, y: x != y,
    "__hlt": lambda x, y: x < y,
    "__hle": lambda x, y: x <= y,
    "__hgt": lambda x, y: x > y,
    "__hge": lambda x, y: x >= y,
    "__hequ": lambda x, y: x == y,
    "__hneu": lambda x, y: x != y,
    "__hltu": lambda x, y: x < y,
    "__hleu": lambda x, y: x <= y,
    "__hgtu": lambda x, y: x > y,
    "__hgeu": lambda x, y: x >= y,
}
ONE = {
    "__habs": abs,
    "__hneg": lambda x: -x,
    "__hisnan": lambda x: 0,
    "__hisinf": lambda x: 0,
    "hexp2(-__habs": lambda x: 2 ** -abs(x),
    "hexp10(-__habs": lambda x: 10 ** -abs(x),
    "hexp(-__habs": lambda x: math.exp(-abs(x)),
    "hlog(one + __habs": lambda x: math.log(x),
    "hlog2(one + __habs": lambda x: math.log2(x),
    "hlog10(one + __habs": lambda x: math.log10(x),
    "hsqrt(one + __habs": lambda x: math.sqrt(x),
    "hrsqrt(one + __habs": lambda x: 1 / math.sqrt(x),
    "hrcp(one + __habs": lambda x: 1 / x,
    "hsin": math.sin,
    "hcos": math.cos,
    "htanh": math.tanh,
    "htanh_approx": math.tanh,
    "hfloor": math.floor,
    "hceil": math.ceil,
    "htrunc": math.trunc,
    "hrint": round,
}


@simulated
@pytest.mark.parametrize("kind", dict(FORMATS))
def test_each_function_of_one_and_of_two_numbers(here, kind):
    texts = [f"{name}(x, y)" for name in BOTH]
    texts += [f"(float){name}(x{')' * name.count('(')})" for name in ONE]
    one = f"{kind} one = 1.0f;"
    numbers, out = results(kind, texts, more=one)
    for (name, right), row in zip([*BOTH.items(), *ONE.items()], out, strict=True):
        for (x, y), found in zip(numbers, row, strict=True):
            if name in BOTH:
                value = right(x, y)
            else:
                value = right(narrow(1 + abs(x), kind) if "one" in name else x)
            assert found == narrow(float(value), kind), (name, x, y)


@simulated
@pytest.mark.parametrize("kind", dict(FORMATS))
def test_each_function_of_pairs(here, kind):
    pair = f"{kind}2"
    names = [n for n in BOTH if n != "__hdiv"]
    tests = [n for n in names if type(BOTH[n](1.0, 2.0)) is bool]
    other = [n for n in names if n not in tests]

    def of_pairs(name):
        base, _, end = name.removeprefix("__").partition("_")
        return f"__{base}2{'_' * bool(end)}{end}"

    make = f"{pair} p(x, y), q(y, x);"
    wide = "__low2float(r) * 1000 + __high2float(r)"
    texts = [
        f"[&] {{ {pair} r = {of_pairs(n)}(p, q); return __low2float(r); }}()"
        for n in other
    ]
    texts += [
        f"[&] {{ {pair} r = {of_pairs(n)}(p, q); return {wide}; }}()" for n in tests
    ]
    texts += [f"__hb{n[3:]}2(p, q)" for n in tests]
    texts += [f"{of_pairs(n)}_mask(p, q)" for n in tests]
    texts += ["__high2float(__h2div(p, q))", "__low2float(__hcmadd(p, q, p))"]
    texts += [
        "__low2float(__hfma2_relu(p, q, p))",
        "__high2float(__hfma2_sat(p, q, p))",
    ]
    texts += ["p != q", "p < q", "__low2float(__hisnan2(p))"]
    numbers, out = results(kind, texts, more=make)
    rows = iter(out)
    for name in other:
        for (x, y), found in zip(numbers, next(rows), strict=True):
            assert found == narrow(float(BOTH[name](x, y)), kind), (name, x, y)
    for value in (
        lambda a, b: 1000 * a + b,
        lambda a, b: a and b,
        lambda a, b: 0xFFFF * a + 0xFFFF0000 * b,
    ):
        for name in tests:
            for (x, y), found in zip(numbers, next(rows), strict=True):
                low, high = BOTH[name](x, y), BOTH[name](y, x)
                assert found == value(low, high), (name, x, y)
    for right in (
        lambda x, y: y / x if x else math.copysign(math.inf, y),
        lambda x, y: narrow(narrow(x * y + x, kind) - y * x, kind),
        lambda x, y: max(narrow(x * y + x, kind), 0),
        lambda x, y: clamp(narrow(x * y + y, kind)),
        lambda x, y: x != y,
        lambda x, y: x < y and y < x,
        lambda x, y: 0,
    ):
        for (x, y), found in zip(numbers, next(rows), strict=True):
            assert found == narrow(float(right(x, y)), kind), (x, y)


@simulated
@pytest.mark.parametrize("kind", dict(FORMATS))
def test_each_conversion_rounds_as_its_name_says(here, kind):
    name = kind.removeprefix("__nv_")
    integers = {
        "int": (-(2**31), 2**31 - 1),
        "uint": (0, 2**32 - 1),
        "ll": (-(2**63), 2**63 - 1),
        "ull": (0, 2**64 - 1),
        "short": (-(2**15), 2**15 - 1),
        "ushort": (0, 2**16 - 1),
    }
    to = [
        (f"__{name}2{kind}{how}", *integers[kind], ROUNDINGS[how])
        for kind in integers
        for how in ROUNDINGS
    ]
    to += [
        (f"__{name}2char_rz", -128, 127, TO_ZERO),
        (f"__{name}2uchar_rz", 0, 255, TO_ZERO),
    ]
    numbers, out = results(kind, [f"{each}(x)" for each, *_ in to])
    for (each, low, high, how), row in zip(to, out, strict=True):
        for (x, _), found in zip(numbers, row, strict=True):
            assert found == float(min(max(how(x), low), high)), (each, x)
    values = {
        "int": "123457 * (t - 5)",
        "uint": "123457u * t",
        "short": "3277 * (t - 5)",
    }
    values |= {"ushort": "6551 * t", "ll": "(t - 5) * 1234567890123ll"}
    values |= {"ull": "t * 1234567890123ull", "float": "(t - 4) * 0.1f"}
    texts = [
        f"__{base}2{name}{how}({value})"
        for base, value in values.items()
        for how in ROUNDINGS
    ]
    _, out = results(kind, [*values.values(), *texts])
    given, made = out[: len(values)], iter(out[len(values) :])
    for base, row in zip(values, given, strict=True):
        for how in ROUNDINGS:
            for value, found in zip(row, next(made), strict=True):
                assert found == narrow(value, kind, ROUNDINGS[how]), (base, how, value)


@simulated
@pytest.mark.parametrize("kind", dict(FORMATS))
def test_bits_and_parts(here, kind):
    name = kind.removeprefix("__nv_")
    end, pair = name.upper().replace("LOAT", "").replace("HALF", "FP16"), f"{kind}2"
    texts = [
        f"__ushort_as_{name}(__{name}_as_ushort(x))",
        f"__short_as_{name}(__{name}_as_short(x))",
        f"{kind}(({kind}_raw)x)".replace("half_raw", "__half_raw"),
        f"__low2float(__lows2{name}2(p, q))",
        f"__high2float(__highs2{name}2(p, q))",
        "__low2float(__lowhigh2highlow(p))",
        f"__high2float(__low2{name}2(p))",
        f"__low2float(__{name}2{name}2(x))",
        "__ldg(&a[t])",
        f"(float)CUDART_ONE_{end} + (float)CUDART_ZERO_{end} + (float)CUDART_NEG_ZERO_{end}",
        f"__hisinf(CUDART_INF_{end}) + __hisnan(CUDART_NAN_{end})",
        f"CUDART_MAX_NORMAL_{end}",
        f"CUDART_MIN_DENORM_{end}",
        f"__heq(CUDART_NAN_{end}, x) + __hne(CUDART_NAN_{end}, x)",
        f"__hequ(CUDART_NAN_{end}, x) * __hneu(CUDART_NAN_{end}, x) * __hltu(CUDART_NAN_{end}, x)",
        f"__hisnan(__hmax_nan(CUDART_NAN_{end}, x))",
        f"__hmax(CUDART_NAN_{end}, x)",
    ]
    make = f"{pair} p = __halves2{name}2(x, y), q = __halves2{name}2(y, x);"
    numbers, out = results(kind, texts, more=make)
    most = 65504.0 if kind == "half" else float(2**128 - 2**120)
    least = 2.0**-24 if kind == "half" else 2.0**-133
    for t, (x, y) in enumerate(numbers):
        found = [row[t] for row in out]
        assert found == [x, x, x, x, x, y, x, x, x, 1, 2, most, least, 0, 1, 1, x]
