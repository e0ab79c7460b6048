"""The two types of 16 bits, and their bits as numbers."""

import numpy as np

import pydevtensor as torch

HALVES = ["float16", "bfloat16"]
EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}


def of_bits(bits, name, device="cpu"):
    """The tensor whose elements have these bits: by way of a pickle's bytes."""
    bits = np.asarray(bits, dtype=np.uint16)
    if name == "float16":
        return torch.from_numpy(bits.view(np.float16)).to(device)
    words = (bits.astype(np.uint32) << 16).view(np.float32)
    return torch.from_numpy(words).to(device).to(torch.bfloat16)


def widened(bits, name):
    """What these bits mean, by the definition of the type, as float64."""
    bits = np.asarray(bits, dtype=np.int64)
    mantissa_bits, bias = (10, 15) if name == "float16" else (7, 127)
    sign = np.where(bits >> 15, -1.0, 1.0)
    mantissa = (bits & ((1 << mantissa_bits) - 1)).astype(np.float64)
    exponent = (bits >> mantissa_bits) & (31 if name == "float16" else 255)
    top = 31 if name == "float16" else 255
    value = np.where(
        exponent == 0,
        np.ldexp(mantissa, 1 - bias - mantissa_bits),
        np.ldexp(mantissa + 2.0**mantissa_bits, exponent - bias - mantissa_bits),
    )
    value = np.where(exponent == top, np.where(mantissa > 0, np.nan, np.inf), value)
    return sign * value


ALL = np.arange(65536)


def narrowed(values, name):
    """Rounded to the nearest number of the type, halfway to the even one: by search among
    all of its numbers, as float64."""
    finite = ALL[: 0x7C00 if name == "float16" else 0x7F80]
    numbers = widened(finite, name)
    values = np.asarray(values, dtype=np.float64)
    size = np.abs(values)
    # One more step above the greatest number: from half of it on, infinity.
    beyond = 2 * numbers[-1] - numbers[-2]
    numbers = np.append(numbers, beyond)
    above = np.clip(np.searchsorted(numbers, size), 1, len(numbers) - 1)
    low, high = numbers[above - 1], numbers[above]
    nearer = np.where(size - low < high - size, above - 1, above)
    tie = size - low == high - size
    chosen = np.where(tie, np.where((above - 1) % 2 == 0, above - 1, above), nearer)
    result = np.where(chosen == len(numbers) - 1, np.inf, numbers[chosen])
    result = np.where(size == 0, 0.0, np.where(np.isnan(values), np.nan, result))
    return np.copysign(result, values)


def drawn(shape, dtype, device, seed=0):
    generator = np.random.default_rng(seed)
    values = generator.standard_normal(shape, dtype=np.float32)
    return torch.from_numpy(values).to(device).to(dtype)
