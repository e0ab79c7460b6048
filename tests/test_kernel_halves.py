"""Kernels of the program with 16-bit floats: cuda_fp16.h and cuda_bf16.h."""

import random
import struct

import pytest
from kernel_programs import compiled

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
