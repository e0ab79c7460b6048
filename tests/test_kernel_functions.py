"""Functions of CUDA C that C++ does not have: integers, conversions, roundings."""

from fractions import Fraction

import pytest
from kernel_programs import compiled

import pydevtensor as torch

# An expression, and its value.
VALUES = """
__funnelshift_l(0x12345678u,0x9abcdef0u,8) | 3168727058
__funnelshift_r(0x12345678u,0x9abcdef0u,8) | 4027724886
__funnelshift_lc(0x12345678u,0x9abcdef0u,40) | 305419896
__funnelshift_rc(0x12345678u,0x9abcdef0u,40) | 2596069104
__byte_perm(0x03020100u,0x07060504u,0x7531u) | 117768961
__umul64hi(1ull<<63,4ull) | 2
__mul64hi(-(1ll<<62),8ll) | -2
__mulhi(1<<30,8) | 2
__umulhi(1u<<31,4u) | 2
__mul24(3,-5) | -15
__umul24(3u,5u) | 15
__sad(3,-5,2u) | 10
__usad(3u,5u,2u) | 4
__hadd(7,4) | 5
__rhadd(7,4) | 6
__uhadd(7u,4u) | 5
__urhadd(7u,4u) | 6
__dp4a(0x01020304,0x01010101,5) | 15
__dp4a(0x01020304u,0x01010101u,5u) | 15
__dp2a_lo(0x00010002,0x01010203,5) | 13
__popc(255u) | 8
__popcll(255ull) | 8
__clz(1) | 31
__clzll(1) | 63
__ffs(8) | 4
__ffsll(8) | 4
__brev(1u) | 2147483648
__brevll(1ull)>>60 | 8
__vadd4(0x01020304u,0x01010101u) | 33752069
__vadd2(0x00010002u,0x00010001u) | 131075
__vsub4(0x02030405u,0x01010101u) | 16909060
__vmaxu4(0x01050104u,0x02020202u) | 33882628
__vcmpeq4(0x01020304u,0x01000300u) | 4278255360
__vabsdiffu4(0x01020304u,0x02020202u) | 16777474
__float2int_rn(2.5f) | 2
__float2int_rz(-2.7f) | -2
__float2int_rd(-2.1f) | -3
__float2int_ru(2.1f) | 3
__float2uint_rn(2.5f) | 2
__float2uint_rd(2.9f) | 2
__float2uint_ru(2.1f) | 3
__float2ll_rn(3.5f) | 4
__float2ll_rz(3.5f) | 3
__float2ull_rn(3.5f) | 4
__float2ull_rz(3.5f) | 3
__double2int_rd(-2.5) | -3
__double2int_ru(2.5) | 3
__double2uint_rn(2.5) | 2
__double2uint_rz(2.5) | 2
__double2ll_rn(2.5) | 2
__double2ll_rz(2.5) | 2
__double2ull_rn(2.5) | 2
__double2ull_rz(2.5) | 2
__ll2float_rn(3ll) | 3
__ull2float_rn(3ull) | 3
__ll2double_rn(3ll) | 3
__ull2double_rn(3ull) | 3
__int2float_rz(3) | 3
__uint2float_rz(3u) | 3
__uint2double_rn(3u) | 3
__double2float_rz(2.5) | 2.5
__double2float_rd(2.5) | 2.5
__double2float_ru(2.5) | 2.5
__double2hiint(1.0) | 1072693248
__double2loint(1.0) | 0
__hiloint2double(1072693248,0) | 1
__float_as_int(1.0f) | 1065353216
__int_as_float(1065353216) | 1
__float_as_uint(1.0f) | 1065353216
__uint_as_float(1065353216u) | 1
__double_as_longlong(1.0)>>52 | 1023
__longlong_as_double(1023ll<<52) | 1
__saturatef(1.5f) | 1
__fadd_rn(1.f,2.f) | 3
__fadd_rz(1.f,2.f) | 3
__fadd_rd(1.f,2.f) | 3
__fadd_ru(1.f,2.f) | 3
__fsub_rn(1.f,2.f) | -1
__fsub_rz(1.f,2.f) | -1
__fmul_rn(3.f,2.f) | 6
__fmul_rz(3.f,2.f) | 6
__fmul_rd(3.f,2.f) | 6
__fmul_ru(3.f,2.f) | 6
__fdiv_rn(3.f,2.f) | 1.5
__fdiv_rz(3.f,2.f) | 1.5
__fmaf_rn(1.f,2.f,3.f) | 5
__fmaf_rz(1.f,2.f,3.f) | 5
__frcp_rn(2.f) | .5
__frcp_rz(2.f) | .5
__fsqrt_rn(4.f) | 2
__fsqrt_rz(4.f) | 2
__frsqrt_rn(4.f) | .5
__dadd_rn(1.,2.) | 3
__dadd_rz(1.,2.) | 3
__dsub_rn(1.,2.) | -1
__dmul_rn(3.,2.) | 6
__dmul_rz(3.,2.) | 6
__ddiv_rn(3.,2.) | 1.5
__drcp_rn(2.) | .5
__dsqrt_rn(4.) | 2
__fma_rn(1.,2.,3.) | 5
__fdividef(3.f,2.f) | 1.5
__expf(1.f) | 2.718281828
__exp10f(2.f) | 100
__logf(10.f) | 2.302585
__log2f(8.f) | 3
__log10f(100.f) | 2
__sinf(1.f) | .841471
__cosf(1.f) | .5403023
__tanf(1.f) | 1.5574077
__powf(2.f,3.f) | 8
__tanhf(1.f) | .76159416
rsqrtf(4.f) | .5
rsqrt(4.) | .5
rcbrtf(8.f) | .5
rcbrt(8.) | .5
rhypotf(3.f,4.f) | .2
rhypot(3.,4.) | .2
norm3df(1.f,2.f,2.f) | 3
norm3d(1.,2.,2.) | 3
rnorm3df(1.f,2.f,2.f) | .33333333
norm4df(1.f,1.f,1.f,1.f) | 2
norm4d(1.,1.,1.,1.) | 2
rnorm4df(1.f,1.f,1.f,1.f) | .5
erfcxf(.5f) | .6156903
erfcx(.5) | .6156903
erfinvf(.5f) | .47693628
erfinv(.5) | .47693628
erfcinvf(.5f) | .47693628
erfcinv(.5) | .47693628
normcdff(1.f) | .8413447
normcdf(1.) | .8413447
normcdfinvf(.8413447f) | 1
normcdfinv(.8413447460685429) | 1
cyl_bessel_i0f(1.f) | 1.2660659
cyl_bessel_i1f(1.f) | .5651591
cyl_bessel_i0(1.) | 1.2660659
sinpif(.5f) | 1
cospif(1.f) | -1
sinpi(.5) | 1
llmin(1ll,2ll) | 1
llmax(1ll,2ll) | 2
ullmin(1ull,2ull) | 1
ullmax(1ull,2ull) | 2
umin(1u,2u) | 1
umax(1u,2u) | 2
__ldg(o) | 0
__ldcg(o) | 0
__ldca(o) | 0
__ldcs(o) | 0
__ldlu(o) | 0
__ldcv(o) | 0
(clock64()>0) | 1
(clock()!=0) | 1
__CUDA_ARCH__>=700 | 1
""".strip().splitlines()


def test_functions(here):
    rows = [row.rpartition(" | ") for row in VALUES]
    body = "".join(f"y[{i}] = (double)({row[0]});\n" for i, row in enumerate(rows))
    with torch.cuda.kernel_checks("off"):
        kernel = compiled(f"__global__ void f(const float *o, double *y) {{\n{body}}}")
    y = torch.zeros(len(rows), dtype=torch.float64, device=here)
    kernel(args=(torch.zeros(1, device=here), y))
    wrong = [
        (row[0], row[2], got)
        for row, got in zip(rows, y.tolist(), strict=True)
        if got != pytest.approx(float(row[2]), rel=2e-6)
    ]
    assert not wrong


KINDS = {"float": ("f", "float32"), "double": ("d", "float64")}


@pytest.mark.parametrize("kind", KINDS)
def test_roundings_by_name(here, kind):
    """Down, up and to zero, beside exact fractions."""
    np = pytest.importorskip("numpy")
    letter, dtype = KINDS[kind]
    numbers = np.random.default_rng(3)
    a, b = (
        (numbers.standard_normal(300) * 2.0 ** numbers.integers(-40, 40, 300)).astype(
            dtype
        )
        for _ in range(2)
    )
    a[:4], b[:4] = (1, -1, 0, 1), (1e-30, 1e-30, 2, -1)
    names = [f"__{letter}{name}" for name in ("add", "sub", "mul", "div")]
    lines = "".join(
        f"y[n * {4 * i + j} + t] = {name}_{how}(a[t], b[t]);\n"
        for i, name in enumerate(names)
        for j, how in enumerate(("rn", "rz", "rd", "ru"))
    )
    with torch.cuda.kernel_checks("off"):
        kernel = compiled(
            f"__global__ void f(const {kind} *a, const {kind} *b, {kind} *y, int n)"
            f"{{ int t = threadIdx.x;\n{lines} }}"
        )
    y = torch.zeros(16, 300, dtype=getattr(torch, dtype), device=here)
    kernel(1, 300, (*(torch.from_numpy(each).to(here) for each in (a, b)), y, 300))
    got = y.cpu().numpy()
    up, down = np.asarray(np.inf, dtype), np.asarray(-np.inf, dtype)
    for i in range(4):
        for t in range(300):
            one, other = Fraction(float(a[t])), Fraction(float(b[t]))
            exact = (one + other, one - other, one * other, one / other)[i]
            near, zero, low, high = got[4 * i : 4 * i + 4, t]
            assert Fraction(float(low)) <= exact <= Fraction(float(high))
            if low != high:
                assert np.nextafter(low, up) == high, (names[i], a[t], b[t])
                assert np.nextafter(high, down) == low and near in (low, high)
            assert zero == (low if exact > 0 else high)
