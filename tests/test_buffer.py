"""The buffer protocol, and tensors over the buffers of others."""

import io
import struct

import numpy as np
import pytest
from checkpoints import ALL

import pydevtensor as torch


def test_buffer_formats():
    for name in ALL:
        x = torch.tensor([0, 1, 1]).to(getattr(torch, name))
        m = memoryview(x)
        assert m.shape == (3,) and m.itemsize == x.itemsize and not m.readonly
        assert m.tolist() == x.tolist()
        assert np.asarray(m).dtype == np.dtype(name)


def test_buffer_shares_and_outlives():
    x = torch.arange(6.0).reshape(2, 3)
    m = memoryview(x.t()[1:])
    assert m.shape == (2, 2) and m.strides == (4, 12)
    x[0, 1] = 9
    assert m[0, 0] == 9
    m2 = memoryview(x)
    x.data = torch.zeros(2, 3)
    del x
    assert m2[0, 1] == 9
    m2[0, 1] = 4
    assert m[0, 0] == 4
    assert bytes(torch.zeros(0, 3)) == b"" and memoryview(torch.tensor(5)).shape == ()
    assert bytes(torch.arange(4, dtype=torch.uint8)[::2].contiguous()) == b"\0\2"


def test_buffer_refusals():
    x = torch.arange(6.0).reshape(2, 3)
    with pytest.raises(BufferError, match="contiguous"):
        io.BytesIO().write(x.t())
    with pytest.raises(BufferError, match="detach"):
        memoryview(x.requires_grad_())
    with pytest.warns(UserWarning, match="read-only"):
        r = torch.frombuffer(b"1234", dtype=torch.uint8)
    assert memoryview(r).readonly
    with pytest.raises((BufferError, TypeError), match="read-"):
        io.BytesIO(b"abcd").readinto(r)


def test_buffer_of_a_gpu(gpu):
    with pytest.raises(BufferError, match=r"\.cpu\(\)"):
        memoryview(torch.zeros(2, device=gpu))
    with pytest.raises(TypeError):
        np.asarray(torch.zeros(2, device=gpu))


def test_frombuffer():
    data = bytearray(struct.pack("<4i", 1, 2, 3, 4))
    x = torch.frombuffer(data, dtype=torch.int32)
    x[1] = 7
    assert struct.unpack("<4i", data) == (1, 7, 3, 4)
    with pytest.raises(BufferError):
        data.append(1)  # it is in use
    assert torch.frombuffer(data, dtype=torch.int32, count=2, offset=4).tolist() == [
        7,
        3,
    ]
    assert torch.frombuffer(
        np.arange(3.0), dtype=torch.float64, requires_grad=True
    ).requires_grad
    del x
    data.append(1)  # and no longer


def test_frombuffer_of_a_tensor_and_read_only():
    x = torch.arange(3)
    y = torch.frombuffer(x, dtype=torch.int64)
    del x
    assert y.tolist() == [0, 1, 2]
    with pytest.warns(UserWarning):
        z = torch.frombuffer(b"abc", dtype=torch.uint8)
    with pytest.raises(RuntimeError):
        z.add_(1)
    assert (z + 1).tolist() == [98, 99, 100]


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (b"", {}),
        (bytearray(4), {"offset": 4}),
        (bytearray(4), {"offset": -1}),
        (bytearray(4), {"count": 0}),
        (bytearray(5), {}),
        (bytearray(5), {"count": 2}),
        (bytearray(8), {"count": 2**62}),
        (bytearray(16), {"offset": 2, "count": 1}),
        ([1], {}),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_frombuffer_refusals(data, options):
    with pytest.raises(ValueError, match=r"frombuffer\(\): .*[;,] \w+"):
        torch.frombuffer(data, dtype=torch.int32, **options)
