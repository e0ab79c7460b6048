"""Element types, layouts and comparisons for tests of operations against NumPy."""

import numpy as np

import pydevtensor as torch

TYPES = {
    "bool": np.bool_,
    "uint8": np.uint8,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "float32": np.float32,
    "float64": np.float64,
    # NumPy has no bfloat16: float32 holds its numbers.
    "float16": np.float16,
    "bfloat16": np.float32,
}
# The step from 1 to the next number.
EPS = {
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float32": 2.0**-23,
    "float64": 2.0**-52,
}


def made(values, name, device):
    return torch.tensor(values, dtype=getattr(torch, name), device=device)


def plain(x):
    return x


def transposed(x):
    return x.t().contiguous().t()


def stepped(x):
    wide = torch.zeros(x.shape[0], 2 * x.shape[1], dtype=x.dtype, device=x.device)
    wide[:, ::2] = x
    return wide[:, ::2]


def misaligned(x):
    longer = torch.zeros(x.numel() + 1, dtype=x.dtype, device=x.device)
    longer[1:] = x.reshape(-1)
    return longer[1:].reshape(x.shape)


LAYOUTS = [plain, transposed, stepped, misaligned]


def check(found, expected, name, rounding=1, absolute=0):
    """found, a Tensor, against expected, an array in float64 where it is floating.

    rounding is the number of roundings one after another, absolute an error that
    cancellation may leave.
    """
    assert tuple(found.shape) == expected.shape
    if not found.dtype.is_floating_point:
        assert found.tolist() == expected.tolist(), name
        return
    dtype = str(found.dtype).removeprefix("torch.")
    eps = EPS[dtype]
    # float16 and bfloat16 are float32's results, rounded once.
    half = dtype in ("float16", "bfloat16")
    if half:
        greatest = torch.finfo(found.dtype).max * (1 + eps / 2)
        expected = np.where(
            np.abs(expected) >= greatest, np.copysign(np.inf, expected), expected
        )
    found = found.cpu().double().numpy()
    relative = 0.51 * eps + 16 * rounding * 2.0**-23 if half else 16 * rounding * eps
    absolute = max(2.0**-20 if half else 8 * eps, absolute)
    with np.errstate(all="ignore"):
        allowed = absolute + relative * np.abs(expected)
        close = (np.abs(found - expected) <= allowed) & np.isfinite(allowed)
    if close.all():
        return
    # Knows infinities and NaN, says where they differ, and takes longer.
    np.testing.assert_allclose(found, expected, relative, absolute, err_msg=str(name))


def same(a, b):
    """Whether two tensors are equal, NaN being equal to NaN."""
    if torch.equal(a, b):
        return True
    nan = a != a
    return torch.equal(nan, b != b) and torch.equal(a[~nan], b[~nan])
