"""torch.testing: make_tensor() and assert_allclose()."""

import math
import warnings

import pytest

import pydevtensor as torch


def made(*shape, **options):
    torch.manual_seed(1)
    return torch.testing.make_tensor(*shape, device="cpu", **options)


def test_random_tensors_of_any_type():
    """Numbers are PyTorch's."""
    assert made(2, 3, dtype=torch.bool).tolist() == [[1, 1, 0], [0, 1, 1]]
    assert made((2, 3), dtype=torch.uint8).tolist() == [[5, 9, 4], [8, 3, 3]]
    assert made([6], dtype=torch.int32).tolist() == [-2, 3, 1, -1, 9, -8]
    assert made(2, dtype=torch.int32, low=-2.5, high=2.5).tolist() == [-2, 2]
    whole = made(2, dtype=torch.int32, low=-math.inf, high=math.inf)
    assert whole.tolist() == [2135392491, 1857819720]
    assert made(2, dtype=torch.bfloat16).tolist() == [4.625, -3.96875]
    large = made(2, dtype=torch.bfloat16, low=-math.inf, high=math.inf)
    assert large.tolist() == [1.7412886744782398e38, -1.4953814952580304e38]
    assert made(2, dtype=torch.float32, low=1, high=1).tolist() == [1, 1]
    assert made(2, dtype=torch.complex64, requires_grad=True).requires_grad
    apart = made(2, 3, dtype=torch.int32, noncontiguous=True)
    assert apart.stride() == (6, 2) and apart.tolist() == [[3, -1, -8], [9, -9, -6]]
    assert made(dtype=torch.float32, noncontiguous=True).shape == ()
    some = made(99, dtype=torch.int32, low=0, high=2, exclude_zero=True)
    assert some.tolist() == [1] * 99
    planes = made(2, 3, 2, 2, dtype=torch.float32, memory_format=torch.channels_last)
    assert planes.is_contiguous(memory_format=torch.channels_last)
    for message, options in {
        "no number of torch.int32 is from 1 to below 1": {"low": 1, "high": 1},
        "no number of torch.bool is from 2 to below 3": {
            "low": 2,
            "high": 3,
            "dtype": torch.bool,
        },
        "no number of torch.float32 is from nan": {
            "low": math.nan,
            "dtype": torch.float32,
        },
        "a tensor of torch.int32 has no gradient": {"requires_grad": True},
        "give one": {"noncontiguous": True, "memory_format": torch.channels_last},
    }.items():
        with pytest.raises(ValueError, match=message):
            made(2, **{"dtype": torch.int32, **options})


def test_made_tensors(device):
    make = torch.testing.make_tensor
    a = make((2, 3), dtype=torch.float32, device=device, low=0, high=1)
    assert a.shape == (2, 3) and a.device.type == torch.device(device).type
    assert ((a >= 0) & (a < 1)).all()
    b = make(4, 3, dtype=torch.int64, device=device, exclude_zero=True)
    assert ((b >= -9) & (b <= 9) & (b != 0)).all()
    c = make(4, 3, dtype=torch.complex64, device=device, noncontiguous=True)
    assert not c.is_contiguous() and c.shape == (4, 3)
    assert make(2, dtype=torch.bool, device=device).dtype == torch.bool
    assert make(2, dtype=torch.uint8, device=device).max().item() <= 9
    assert make(2, dtype=torch.float64, device=device, requires_grad=True).requires_grad


def test_close_in_old_programs():
    """Accepted and refused as by PyTorch 2.13."""
    one, nan = torch.ones(2), torch.tensor([float("nan")])
    with pytest.warns(FutureWarning, match="use assert_close"):
        torch.testing.assert_allclose(one, one + 5e-5)
    with warnings.catch_warnings(action="ignore"):
        close = torch.testing.assert_allclose
        close([1.0, 2.0], [1, 2])
        close(one, one.double())
        close(nan, nan)
        close(one.half(), one.half() + 1e-3)
        close(one, one + 0.05, rtol=0.1, atol=0)
        for other in (one + 5e-4, 1.0, torch.ones(3)):
            with pytest.raises(AssertionError):
                close(one, other)
        with pytest.raises(AssertionError, match=r"^hi$"):
            close(one, one + 0.05, msg="hi")
        with pytest.raises(ValueError, match="give both or none"):
            close(one, one, rtol=0.1)
