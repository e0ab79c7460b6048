"""Structs with pointers in them, as parameters of kernels from source."""

import ctypes
import re
import struct

import numpy as np
import pytest
from conftest import GPUS, SIMULATED
from isolated import python
from kernel_programs import compiled, simulated

import pydevtensor as torch

MATRIX = """
struct Matrix { float *data; int rows, cols; };
__global__ void scale(Matrix m, float by)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < m.rows * m.cols)
        m.data[i] *= by;
}
struct Pair { Matrix from, to; const int *places[2]; };
__global__ void place(Pair p, int which)
{
    int i = threadIdx.x;
    p.to.data[p.places[which][i]] = p.from.data[i];
}
struct Range { const float *begin, *end; float *sum; };
__global__ void sum(Range range)
{
    float sum = 0;
    for (const float *x = range.begin; x != range.end; x++)
        sum += *x;
    *range.sum = sum;
}"""


class Matrix(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("rows", ctypes.c_int),
        ("cols", ctypes.c_int),
    )

    @classmethod
    def of(cls, x):
        return cls(x.data_ptr(), *x.shape)


RECORD = np.dtype([("data", "<u8"), ("rows", "<i4"), ("cols", "<i4")])


def as_record(x):
    return np.array((x.data_ptr(), *x.shape), RECORD)


def as_bytes(x):
    return struct.pack("<Qii", x.data_ptr(), *x.shape)


@pytest.mark.parametrize("made", [Matrix.of, as_record, as_bytes])
@pytest.mark.parametrize("mode", ["error", "off"])
def test_a_struct_leads_to_a_tensor(here, made, mode):
    x = torch.arange(42.0, device=here).reshape(6, 7)
    with torch.cuda.kernel_checks(mode):
        compiled(MATRIX, "scale")((1,), (64,), (made(x), 2.0))
        assert x.tolist() == (2 * torch.arange(42.0).reshape(6, 7)).tolist()


def test_structs_in_a_struct_and_arrays_of_pointers(here):
    x, y = torch.arange(5.0, device=here), torch.zeros(5, 1, device=here)
    turned = torch.arange(4, -1, -1, dtype=torch.int32, device=here)
    straight = torch.arange(5, dtype=torch.int32, device=here)
    pair = as_bytes(x.reshape(1, 5)) + as_bytes(y)
    pair += struct.pack("<QQ", straight.data_ptr(), turned.data_ptr())
    for which, expected in ((0, [0, 1, 2, 3, 4]), (1, [4, 3, 2, 1, 0])):
        compiled(MATRIX, "place")((1,), (5,), (pair, which))
        assert y.flatten().tolist() == expected


@pytest.mark.parametrize("n", [100, 127, 128, 256])
def test_a_pointer_past_the_end_ends_a_range(here, n):
    # Of 128 floats, another tensor may begin there.
    x, behind = torch.ones(n, device=here), torch.ones(n, device=here)
    total = torch.zeros(1, device=here)
    for to in (total, behind):
        begin = x.data_ptr()
        made = struct.pack("<QQQ", begin, begin + 4 * n, to.data_ptr())
        compiled(MATRIX, "sum")(args=(made,))
        assert to[0].item() == n


def test_numbers_in_a_struct_are_no_pointers(here):
    kernel = compiled("""
        struct Numbers { double x; long long n; double *y; };
        __global__ void f(Numbers numbers) { *numbers.y = numbers.x + numbers.n; }""")
    y = torch.zeros(1, dtype=torch.float64, device=here)
    kernel(args=(struct.pack("<dqQ", 0.5, 1 << 40, y.data_ptr()),))
    assert y.item() == (1 << 40) + 0.5


only_checks = pytest.mark.skipif(
    GPUS > 0 and not SIMULATED, reason="the checks are those of the simulator"
)


@only_checks
def test_checks_know_how_large_the_tensor_is(here):
    x = torch.ones(6, 7, device=here)
    torch.ones(6, 7, device=here)
    compiled(MATRIX, "scale")((1,), (64,), (Matrix(x.data_ptr(), 6, 8), 2.0))
    with pytest.raises(torch.cuda.KernelError) as caught:
        torch.cuda.synchronize()
    assert (caught.value.kind, caught.value.line) == ("out_of_bounds", 7)
    assert (
        "element 42 of the tensor whose address is byte 0 of m, past its last: the "
        "tensor spans 42 elements" in str(caught.value)
    )


@only_checks
def test_the_address_of_a_tensor_that_is_gone(here):
    """Also where it is the end of one that exists."""
    write = compiled("struct S { float *x; }; __global__ void f(S s) { *s.x = 1; }")
    for _ in range(3):
        kept = torch.zeros(128, device=here)
        gone = torch.zeros(128, device=here).data_ptr()
        with pytest.raises((ValueError, torch.cuda.KernelError)):
            write(args=(struct.pack("P", gone),))
            torch.cuda.synchronize()
        assert kept.sum().item() == 0


@only_checks
def test_checks_find_races_and_reads_without_a_value(here):
    source = """
        struct Pair { float *from, *to; };
        __global__ void f(Pair p)
        {
            p.to[threadIdx.x / 2] = p.from[threadIdx.x];
        }"""
    x = torch.arange(8.0, device=here)
    for source_of, kind in (
        (x, "race"),
        (torch.empty(8, device=here), "uninitialized"),
    ):
        y = torch.zeros(8, device=here)
        made = struct.pack("<QQ", source_of.data_ptr(), y.data_ptr())
        compiled(source)((1,), (8,), (made,))
        with pytest.raises(torch.cuda.KernelError, match=r"byte [08] of p") as caught:
            torch.cuda.synchronize()
        assert (caught.value.kind, caught.value.line) == (kind, 5)


@only_checks
def test_an_address_of_the_host_in_a_struct(here):
    x = torch.ones(6, 7)
    compiled(MATRIX, "scale")((1,), (64,), (Matrix.of(x), 2.0))
    with pytest.raises(torch.cuda.KernelError, match="pass a tensor of this GPU"):
        torch.cuda.synchronize()


@simulated
def test_an_address_of_no_tensor_on_the_gpu(here):
    kernel = compiled(MATRIX, "scale")
    x = torch.ones(1 << 20, device=here)
    # Its first byte may be one past the end of a tensor that is there.
    gone = Matrix(x.data_ptr() + 4096, 1, 1)
    del x
    with pytest.raises(ValueError, match=r"struct of argument 1 of scale .* released"):
        kernel((1,), (64,), (gone, 2.0))
    assert torch.ones(2, device=here).tolist() == [1, 1]


ELSEWHERE = """
import ctypes
import pydevtensor as torch
class Box(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p)]
put = torch.cuda.compile_kernel(
    'struct Box { float *data; }; __global__ void put(Box box) { *box.data = 1; }', "put")
x = torch.ones(3, device="cuda:1")
try:
    put((1,), (1,), (Box(x.data_ptr()),))
except ValueError as error:
    print(error)
"""


@simulated
def test_an_address_of_another_gpu():
    # In a new process: a copy between two GPUs lets each reach the other.
    said = python(ELSEWHERE, PYDEVTENSOR_SIM_GPUS="2")
    assert re.search(r"cuda:1.* the data_ptr\(\) of a tensor", said)
