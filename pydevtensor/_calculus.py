"""Integrals and derivatives of sampled functions, windows, and the parts of numbers.

Their signatures, docstrings and the checks of their arguments' types are in
csrc/python/functions/composed.def.
"""

import math
from typing import Any

from pydevtensor import _C
from pydevtensor.autograd import no_grad


def _dimension(function, dim, ndim):
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"{function}(): there is no dimension {dim} of {ndim}; give {-ndim} to "
            f"{ndim - 1}"
            if ndim
            else f"{function}(): the Tensor has no dimensions; give one that has some"
        )
    return dim % ndim


# --- integrals


def _areas(function, y, x, dx, dim):
    """Of each two neighbours along dim, the area below the line between them."""
    dim = _dimension(function, dim, y.dim())
    if y.dtype == _C.bool or (x is not None and x.dtype == _C.bool):
        raise RuntimeError(f"{function}(): not for bools; convert them with .float()")
    count = max(y.shape[dim] - 1, 0)
    pairs = y.narrow(dim, y.shape[dim] - count, count) + y.narrow(dim, 0, count)
    if x is None:
        return pairs * (dx / 2), dim
    if x.dim() == 1:
        if x.numel() != y.shape[dim]:
            raise RuntimeError(
                f"{function}(): y has {y.shape[dim]} samples along dimension {dim}, "
                f"and x {x.numel()} values; give one for each"
            )
        widths = x.diff().reshape([-1] + [1] * (y.dim() - 1 - dim))
    else:
        widths = x.diff(dim=_dimension(function, dim - y.dim(), x.dim()))
    return pairs * widths / 2, dim


def trapezoid(y, x=None, dx=None, dim=-1):
    areas, dim = _areas("trapezoid", y, x, 1 if dx is None else dx, dim)
    return areas.sum(dim)


def cumulative_trapezoid(y, x=None, dx=None, dim=-1):
    areas, dim = _areas("cumulative_trapezoid", y, x, 1 if dx is None else dx, dim)
    return areas.cumsum(dim)


# --- derivatives


def _along(f, dim, steps, edge_order):
    """steps: a number, or a tensor of the distances between neighbours."""
    n = f.shape[dim]

    def part(first, count):
        return f.narrow(dim, first, count)

    if isinstance(steps, _C.Tensor):
        lying = [-1 if d == dim else 1 for d in range(f.dim())]
        h = steps.reshape(lying)
        a, b = h.narrow(dim, 0, n - 2), h.narrow(dim, 1, n - 2)
        first, last = (h.narrow(dim, k, 1) for k in (0, n - 2))
    else:
        a = b = first = last = steps
    before, here, after = part(0, n - 2), part(1, n - 2), part(2, n - 2)
    if a is b:
        inner = (after - before) / (2 * a)
    else:
        inner = (
            before * (-b / (a * (a + b)))
            + here * ((b - a) / (a * b))
            + after * (a / (b * (a + b)))
        )
    left = (part(1, 1) - part(0, 1)) / first
    right = (part(n - 1, 1) - part(n - 2, 1)) / last
    if edge_order == 2:
        if a is b:
            left = (part(0, 1) * -1.5 + part(1, 1) * 2 - part(2, 1) * 0.5) / a
            right = (
                part(n - 1, 1) * 1.5 - part(n - 2, 1) * 2 + part(n - 3, 1) * 0.5
            ) / a
        else:
            second, before_last = (h.narrow(dim, k, 1) for k in (1, n - 3))
            left = left + (left - (part(2, 1) - part(1, 1)) / second) * (
                first / (first + second)
            )
            slope = (part(n - 2, 1) - part(n - 3, 1)) / before_last
            right = right + (right - slope) * (last / (last + before_last))
    return _C.cat([left, inner, right], dim)


def gradient(input, spacing=1, dim=None, edge_order=1):
    if edge_order not in (1, 2):
        raise RuntimeError(f"gradient(): edge_order is {edge_order}; give 1 or 2")
    if input.dtype in (_C.uint8, _C.bool):
        raise RuntimeError(
            f"gradient(): differences are not for {input.dtype}; convert it "
            "with .float()"
        )
    ndim = input.dim()
    dims = range(ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    dims = [_dimension("gradient", d, ndim) for d in dims]
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"gradient(): {dim} names a dimension twice; name each once")
    if isinstance(spacing, (tuple, list)):
        if len(spacing) != len(dims):
            raise RuntimeError(
                f"gradient(): there are {len(spacing)} spacings for {len(dims)} "
                "dimensions; give one for each"
            )
        steps = list(spacing)
    else:
        one = spacing.item() if isinstance(spacing, _C.Tensor) else spacing
        steps = [one] * len(dims)
    found = []
    for d, step in zip(dims, steps, strict=True):
        if input.shape[d] <= edge_order:
            raise RuntimeError(
                f"gradient(): dimension {d} has size {input.shape[d]}; give at least "
                f"{edge_order + 1} samples"
            )
        if isinstance(step, _C.Tensor):
            if step.dim() != 1 or step.numel() != input.shape[d]:
                raise RuntimeError(
                    f"gradient(): the coordinates for dimension {d} have the shape "
                    f"{tuple(step.shape)}; give one for each of "
                    f"{input.shape[d]} samples"
                )
            step = step.diff()
        elif not isinstance(step, (int, float)):
            raise TypeError(
                f"gradient(): spacing is {step!r}; give numbers, or Tensors of "
                "coordinates"
            )
        found.append(_along(input, d, step, edge_order))
    return tuple(found)


# --- windows


def _window(function, length, periodic, make, dtype, words):
    dtype = dtype or _C.get_default_dtype()
    if length < 0:
        raise RuntimeError(f"{function}(): window_length is {length}; give 0 or more")
    if not dtype.is_floating_point:
        raise RuntimeError(f"{function}(): dtype is {dtype}; give a floating type")
    if length < 2:
        return _C.ones(length, dtype=dtype, **words)
    steps = length if periodic else length - 1
    wanted = words.pop("requires_grad", False)
    pinned = words.pop("pin_memory", False)
    made = make(_C.arange(length, dtype=dtype, **words), steps)
    made = made.pin_memory() if pinned else made
    return made.requires_grad_() if wanted else made


def hamming_window(
    window_length, periodic=True, alpha=0.54, beta=0.46, dtype=None, **words
):
    def make(n, steps):
        return (n * (2 * math.pi / steps)).cos() * -beta + alpha

    return _window("hamming_window", window_length, periodic, make, dtype, words)


def hann_window(window_length, periodic=True, dtype=None, **words):
    def make(n, steps):
        return (n * (2 * math.pi / steps)).cos() * -0.5 + 0.5

    return _window("hann_window", window_length, periodic, make, dtype, words)


def blackman_window(window_length, periodic=True, dtype=None, **words):
    def make(n, steps):
        angle = n * (math.pi / steps)
        return (angle * 4).cos() * 0.08 - (angle * 2).cos() * 0.5 + 0.42

    return _window("blackman_window", window_length, periodic, make, dtype, words)


def bartlett_window(window_length, periodic=True, dtype=None, **words):
    def make(n, steps):
        rising = n * (2 / steps)
        return _C.where(n * 2 <= steps, rising, 2 - rising)

    return _window("bartlett_window", window_length, periodic, make, dtype, words)


def kaiser_window(window_length, periodic=True, beta=12.0, dtype=None, **words):
    def make(n, steps):
        # Bessel's I0(x) is the mean of e^(x cos t) over t, which equidistant t give to
        # all digits once there are more of them than x is great.
        count = 40 + int(min(abs(beta), 1e6))
        half = (_C.arange(count, dtype=_C.float64, device=n.device) + 0.5) * math.pi
        cosines = (half / count).cos()
        x = (1 - (n.double() * (2 / steps) - 1) ** 2).clamp(min=0).sqrt() * abs(beta)
        above = (x.unsqueeze(1) * cosines - abs(beta)).exp().mean(1)
        below = (cosines * abs(beta) - abs(beta)).exp().mean()
        return (above / below).to(n.dtype)

    return _window("kaiser_window", window_length, periodic, make, dtype, words)


# --- the parts of numbers: how floats are kept, sign, exponent, fraction

_PARTS = {  # the type of as many bits, and how many of them are the fraction
    _C.float16: (_C.int16, 10),
    _C.bfloat16: (_C.int16, 7),
    _C.float32: (_C.int32, 23),
    _C.float64: (_C.int64, 52),
}


def _seen(x: Any, dtype: Any) -> Any:
    """The bits of x as elements of another type."""
    return x.contiguous().view(dtype)


def _powers_of_two(exponent, dtype):
    """2 to the power of integers that are those of numbers at full precision."""
    whole, fraction = _PARTS[dtype]
    bias = (1 << (8 * dtype.itemsize - 2 - fraction)) - 1
    return _seen((exponent.to(whole) + bias) << fraction, dtype)


def ldexp(input, other):
    if not other.is_floating_point():
        wide = input.dtype == _C.float64
        other = other.to(_C.float64 if wide else _C.get_default_dtype())
        if input.is_floating_point():
            return (input * _C.pow(2.0, other)).to(input.dtype)
    return input * _C.pow(2.0, other)


def frexp(input):
    if not input.is_floating_point():
        raise RuntimeError(
            f"frexp(): input is of {input.dtype}; convert it with .float()"
        )
    whole, fraction = _PARTS[input.dtype]
    mask = (1 << (8 * input.dtype.itemsize - 1 - fraction)) - 1
    with no_grad():
        x = input.detach()
        # Numbers too small for full precision are made greater first.
        small = (_seen(x, whole) >> fraction & mask) == 0
        x = _C.where(small, x * float(1 << (fraction + 1)), x)
        kept = _seen(x, whole) >> fraction & mask
        exponent = kept.int() - (mask >> 1) + 1 - small.int() * (fraction + 1)
        exponent = _C.where((x == 0) | (kept == mask), 0, exponent)
        half = exponent.div(2, rounding_mode="floor")
        first = _powers_of_two(-half, input.dtype)
        second = _powers_of_two(half - exponent, input.dtype)
    return input * first * second, exponent


def nextafter(input, other):
    dtype = _C.promote_types(input.dtype, other.dtype)
    if not dtype.is_floating_point:
        raise NotImplementedError(
            f"nextafter(): there is no next number in {dtype}; convert with .float()"
        )
    a, b = _C.broadcast_tensors(input.detach().to(dtype), other.detach().to(dtype))
    bits = _seen(a, _PARTS[dtype][0])
    away = (b > a) == (a > 0)
    step = _seen(bits + _C.where(away, 1, -1).to(bits.dtype), dtype)
    least = _seen(_C.ones_like(bits), dtype)
    step = _C.where(a == 0, _C.where(b > 0, least, -least), step)
    found = _C.where(a == b, b, step)
    return _C.where((a != a) | (b != b), a + b, found)


def renorm(input, p, dim, maxnorm):
    if not input.is_floating_point():
        raise RuntimeError(
            f"renorm(): input is of {input.dtype}; convert it with .float()"
        )
    if input.dim() < 2:
        raise RuntimeError(
            f"renorm(): input has {input.dim()} dimensions; give at least 2"
        )
    if not p > 0:
        raise RuntimeError(f"renorm(): p is {p}; give more than 0")
    if not maxnorm >= 0:
        raise RuntimeError(f"renorm(): maxnorm is {maxnorm}; give 0 or more")
    dim = _dimension("renorm", dim, input.dim())
    others = [d for d in range(input.dim()) if d != dim]
    norm = input.norm(p, dim=others, keepdim=True)
    factor = _C.where(norm > maxnorm, maxnorm / (norm + 1e-7), 1)
    return input * factor.to(input.dtype)


# --- counts


def histogram(input, bins, range=None, weight=None, density=False):
    if not input.is_floating_point():
        raise NotImplementedError(
            f"histogram(): input is of {input.dtype}; convert it with .float()"
        )
    x = input.detach().reshape(-1)
    if weight is not None and (
        weight.shape != input.shape or weight.dtype != input.dtype
    ):
        raise RuntimeError(
            f"histogram(): weight is of {weight.dtype} and has the shape "
            f"{tuple(weight.shape)}; give one of input's, {input.dtype} and "
            f"{tuple(input.shape)}"
        )
    if isinstance(bins, _C.Tensor):
        if bins.dim() != 1 or bins.dtype != input.dtype or bins.numel() < 2:
            raise RuntimeError(
                f"histogram(): bins is of {bins.dtype} and has the shape "
                f"{tuple(bins.shape)}; give a vector of at least 2 edges of "
                f"{input.dtype}"
            )
        if range is not None:
            raise TypeError(
                "histogram(): range is for a number of bins; leave it out, as the "
                "edges are given"
            )
        edges = bins.detach()
    elif isinstance(bins, int):
        if bins < 1:
            raise RuntimeError(f"histogram(): bins is {bins}; give 1 or more")
        if range is None:
            low, high = (x.min().item(), x.max().item()) if x.numel() else (0.0, 1.0)
        elif isinstance(range, (tuple, list)) and len(range) == 2:
            low, high = (float(end) for end in range)
        else:
            raise TypeError(
                f"histogram(): range is {range!r}; give two numbers, the least and the "
                "greatest"
            )
        if not (math.isfinite(low) and math.isfinite(high)) or low > high:
            raise RuntimeError(
                f"histogram(): the range from {low} to {high} is none; give finite "
                "numbers, the least first"
            )
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges = _C.linspace(low, high, bins + 1, dtype=x.dtype, device=x.device)
    else:
        raise TypeError(f"histogram(): bins is {bins!r}; give an int or edges")
    count = edges.numel() - 1
    places = _C.searchsorted(edges, x, right=True) - 1
    inside = (x >= edges[0]) & (x <= edges[-1])
    many = _C.ones_like(x) if weight is None else weight.detach().reshape(-1)
    many = _C.where(inside, many, 0)
    hist = x.new_zeros(count).index_add(0, places.clamp(0, count - 1), many)
    if density:
        hist = hist / hist.sum() / edges.diff()
    return hist, edges.clone() if isinstance(bins, _C.Tensor) else edges


# --- random numbers


def _floating(function, x):
    if not x.is_floating_point():
        raise (NotImplementedError if function == "log_normal_" else RuntimeError)(
            f"{function}(): the Tensor is of {x.dtype}; give one of a floating type"
        )


def cauchy_(input, median=0, sigma=1, generator=None):
    _floating("cauchy_", input)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_(): sigma is {sigma}; give more than 0")
    drawn = _C.rand(
        input.shape, dtype=_C.float64, device=input.device, generator=generator
    )
    return input.copy_(((drawn - 0.5) * math.pi).tan() * sigma + median)


def log_normal_(input, mean=1, std=2, generator=None):
    _floating("log_normal_", input)
    if not std > 0:
        raise RuntimeError(f"log_normal_(): std is {std}; give more than 0")
    # With gaps, so that the CPU draws one number after the other, as PyTorch does here.
    steps = (2,)
    drawn = _C.empty_strided(
        (input.numel(),), steps, dtype=_C.float64, device=input.device
    )
    drawn.normal_(mean, std, generator=generator)
    return input.copy_(drawn.exp().reshape(input.shape))


def geometric_(input, p, generator=None):
    if input.dtype == _C.bool:
        raise NotImplementedError("geometric_(): not for bools; give numbers")
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_(): p is {p}; give more than 0 and less than 1")
    drawn = _C.rand(
        input.shape, dtype=_C.float64, device=input.device, generator=generator
    )
    return input.copy_((drawn.log() / math.log1p(-p)).ceil())
