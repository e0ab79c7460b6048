"""Functions that initialize a tensor in place and return it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any

from pydevtensor import _C
from pydevtensor._kinds import is_distributed as _is_distributed
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import no_grad

_skips: ContextVar[bool] = ContextVar("skips", default=False)


@contextmanager
def _skipped() -> Iterator[None]:
    """The functions of this module do nothing in a `with` block."""
    before = _skips.set(True)
    try:
        yield
    finally:
        _skips.reset(before)


def _initializer(function: Callable[..., Any]) -> Callable[..., Any]:
    unrecorded = no_grad()(function)

    @wraps(function)
    def call(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(tensor, _C.Tensor):
            raise TypeError(
                f"{function.__name__}(): tensor is {tensor!r} "
                f"({type(tensor).__name__}); give a Tensor"
            )
        if _skips.get():
            return tensor
        if _is_distributed(tensor):
            # Ranks with equal seeds have parts of the values that one process has.
            whole = _C.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
            unrecorded(whole, *args, **kwargs)
            with no_grad():
                return tensor._take(whole)
        return unrecorded(tensor, *args, **kwargs)

    return call


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """The recommended gain of an activation.

    By it the standard deviation of the weights before the activation is multiplied.
    ValueError for another name. See also kaiming_uniform_(), which uses it.

    nonlinearity  'linear', 'sigmoid', 'conv1d' and others with conv, 'tanh', 'relu',
                  'leaky_relu' or 'selu'
    param         the slope of 'leaky_relu' where x is negative, 0.01 by default

    >>> nn.init.calculate_gain('tanh')
    1.6666666666666667
    """
    if not isinstance(nonlinearity, str):
        raise TypeError(
            f"calculate_gain(): nonlinearity is {nonlinearity!r:.60} "
            f"({type(nonlinearity).__name__}); give a name such as 'relu'"
        )
    if nonlinearity in ("linear", "sigmoid") or nonlinearity.startswith("conv"):
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, (int, float)) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


@_initializer
def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Uniform samples between a and b.

    tensor     the tensor to fill
    a, b       the smallest and the largest value
    generator  of the random numbers, a torch.Generator; None: the device's own

    >>> (nn.init.uniform_(torch.empty(100), 2, 3) >= 2).all()
    tensor(True)
    """
    return tensor.uniform_(a, b, generator=generator)


@_initializer
def normal_(
    tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None
) -> Any:
    """Normal samples.

    mean, std  mean and standard deviation

    Parameters: those of uniform_().

    >>> w = nn.init.normal_(torch.empty(10000), std=2)
    >>> f'{w.std():.0f}'
    '2'
    """
    return tensor.normal_(mean, std, generator=generator)


def _share_within(mean: float, std: float, a: float, b: float) -> float:
    """The probability that a normal sample is between a and b."""
    low, high = ((edge - mean) / (std * math.sqrt(2.0)) for edge in (a, b))
    return (math.erf(high) - math.erf(low)) / 2.0


@_initializer
def trunc_normal_(
    tensor: Any,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Any:
    """Normal samples between a and b; others are drawn again.

    PyTorch's numbers for the same seed. If less than 30% of the samples would be in the
    range, uniform samples are accepted by the density. Synchronizes with a GPU.

    mean, std  mean and standard deviation of the samples before any are left out

    Parameters: those of uniform_().

    >>> (nn.init.trunc_normal_(torch.empty(100), a=-1, b=1).abs() <= 1).all()
    tensor(True)
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            f"trunc_normal_: the mean, {mean}, is more than 2 std outside {a} to {b}; "
            "the distribution of the samples may be wrong",
            stacklevel=4,
        )
    if _share_within(mean, std, a, b) > 0.3:
        # The bounds, rounded to the tensor's dtype.
        low, high = (_C.tensor(edge, dtype=tensor.dtype).item() for edge in (a, b))
        tensor.normal_(mean, std, generator=generator)
        outside = (tensor < low) | (tensor > high)
        while outside.any():
            drawn = _C.empty_like(tensor).normal_(mean, std, generator=generator)
            tensor.copy_(_C.where(outside, drawn, tensor))
            outside = (tensor < low) | (tensor > high)
        return tensor
    # The log of the density, relative to its maximum between a and b.
    top = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2

    def rejected(candidates: Any) -> Any:
        chance = ((candidates - mean) / std).square() * -0.5 - top
        draw = _C.empty_like(tensor).uniform_(generator=generator)
        return draw.log_() > chance

    waiting = rejected(tensor.uniform_(a, b, generator=generator))
    while waiting.any():
        candidates = _C.empty_like(tensor).uniform_(a, b, generator=generator)
        tensor.copy_(_C.where(waiting, candidates, tensor))
        waiting = waiting & rejected(candidates)
    return tensor


@_initializer
def constant_(tensor: Any, val: float) -> Any:
    """Fill with one value.

    tensor  the tensor to fill
    val     the value, a number

    >>> nn.init.constant_(torch.empty(2), 7)
    tensor([7., 7.])
    """
    return tensor.fill_(val)


@_initializer
def ones_(tensor: Any) -> Any:
    """Ones.

    tensor  the tensor to fill

    >>> nn.init.ones_(torch.empty(2))
    tensor([1., 1.])
    """
    return tensor.fill_(1.0)


@_initializer
def zeros_(tensor: Any) -> Any:
    """Zeros.

    tensor  the tensor to fill

    >>> nn.init.zeros_(torch.empty(2))
    tensor([0., 0.])
    """
    return tensor.zero_()


@_initializer
def eye_(tensor: Any) -> Any:
    """The identity matrix, also for a matrix that is not square.

    ValueError for a tensor that is not a matrix.

    tensor  the matrix to fill

    >>> nn.init.eye_(torch.empty(2, 3))
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return tensor.copy_(_C.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def _calculate_fan_in_and_fan_out(tensor: Any) -> tuple[int, int]:
    if tensor.ndim < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 "
            f"dimensions; this one has shape {[*tensor.shape]}"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


@_initializer
def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Uniform, of variance 2 gain^2 / (fan in + fan out) (Glorot and Bengio, 2010).

    ValueError for less than 2 dimensions. See also calculate_gain().

    tensor     the weight to fill (out, in, ...)
    gain       a factor of the deviation, for the activation that follows
    generator  of the random numbers, a torch.Generator; None: the device's own

    >>> w = nn.init.xavier_uniform_(torch.empty(4, 2))
    >>> (w.abs() <= 1).all()
    tensor(True)
    """
    bound = (
        math.sqrt(3.0)
        * gain
        * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    )
    return uniform_(tensor, -bound, bound, generator)


@_initializer
def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Normal, of variance 2 gain^2 / (fan in + fan out) (Glorot and Bengio, 2010).

    ValueError for less than 2 dimensions. See also calculate_gain().

    Parameters: those of xavier_uniform_().

    >>> w = nn.init.xavier_normal_(torch.empty(100, 100))
    >>> f'{w.std():.1f}'
    '0.1'
    """
    return normal_(
        tensor,
        0.0,
        gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor))),
        generator,
    )


def _calculate_correct_fan(tensor: Any, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(
            f"Mode {mode} not supported, please use one of fan_in, fan_out"
        )
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def _kaiming_std(tensor: Any, a: float, mode: str, nonlinearity: str) -> float:
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan) if fan else 0.0


@_initializer
def kaiming_uniform_(
    tensor: Any,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Any:
    """Uniform, of variance gain^2 / fan (He and others, 2015).

    The gain is that of calculate_gain(). ValueError for another mode or nonlinearity,
    and for less than 2 dimensions.

    tensor        the weight to fill (out, in, ...)
    a             slope of the 'leaky_relu' that follows, where x is negative
    mode          the fan: 'fan_in' keeps the variance of results, 'fan_out' that of
                  gradients
    nonlinearity  the activation that follows, as for calculate_gain()
    generator     of the random numbers, a torch.Generator; None: the device's own

    >>> w = nn.init.kaiming_uniform_(torch.empty(4, 6), nonlinearity='relu')
    >>> (w.abs() <= 1).all()
    tensor(True)
    """
    if 0 in tensor.shape:
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


@_initializer
def kaiming_normal_(
    tensor: Any,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Any:
    """Normal, of variance gain^2 / fan (He and others, 2015).

    The gain is that of calculate_gain(). ValueError for another mode or nonlinearity,
    and for less than 2 dimensions.

    Parameters: those of kaiming_uniform_().

    >>> w = nn.init.kaiming_normal_(torch.empty(1000, 50), nonlinearity='relu')
    >>> f'{w.std():.1f}'
    '0.2'
    """
    if 0 in tensor.shape:
        return tensor
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return normal_(tensor, 0.0, std, generator)


@_initializer
def orthogonal_(tensor: Any, gain: float = 1, generator: Any = None) -> Any:
    """A (semi-)orthogonal matrix, times gain.

    Dimensions after the first are merged. It is Q of the QR factorization of a normal
    matrix with a positive diagonal of R: PyTorch's numbers for the same seed, up to
    rounding. ValueError for less than 2 dimensions. See also
    nn.utils.parametrizations.orthogonal(), which keeps it so.

    tensor     the tensor to fill
    gain       factor of the matrix
    generator  of the random numbers, a torch.Generator; None: the device's own

    >>> w = nn.init.orthogonal_(torch.empty(2, 3))
    >>> torch.allclose(w @ w.T, torch.eye(2), atol=1e-6)
    True
    """
    if tensor.ndim < 2:
        raise ValueError(
            "Only tensors with 2 or more dimensions are supported, and this one has "
            f"shape {[*tensor.shape]}"
        )
    if not tensor.numel():
        return tensor
    rows = tensor.shape[0]
    drawn = _C.empty(
        rows, tensor.numel() // rows, dtype=tensor.dtype, device=tensor.device
    ).normal_(0, 1, generator=generator)
    wide = rows < drawn.shape[1]
    columns = (drawn if wide else drawn.t()).double().contiguous()
    for k in range(columns.shape[0]):
        found, vector = columns[:k], columns[k]
        for _ in range(2 if k else 0):  # twice, for accuracy
            vector = vector - (found @ vector) @ found
        columns[k] = vector / vector.norm()
    made = columns if wide else columns.t()
    return tensor.copy_((made * gain).reshape(tensor.shape))


@_initializer
def dirac_(tensor: Any, groups: int = 1) -> Any:
    """The weight (out, in, ...) of a convolution that preserves its channels.

    3 to 5 dimensions; each of the groups preserves its own channels.

    tensor  the tensor to fill, of 3 to 5 dimensions, else ValueError
    groups  how many groups of channels; ValueError unless it divides the first size

    >>> nn.init.dirac_(torch.empty(2, 2, 1)).squeeze()
    tensor([[1., 0.],
            [0., 1.]])
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError(
            "Only tensors with 3, 4, or 5 dimensions are supported, and this one has "
            f"{tensor.ndim}"
        )
    if tensor.shape[0] % groups:
        raise ValueError(
            f"dim 0 must be divisible by groups: {tensor.shape[0]} is not by {groups}"
        )
    per_group = tensor.shape[0] // groups
    middle = [size // 2 for size in tensor.shape[2:]]
    tensor.zero_()
    for group in range(groups):
        for channel in range(min(per_group, tensor.shape[1])):
            tensor[(group * per_group + channel, channel, *middle)] = 1
    return tensor


@_initializer
def sparse_(
    tensor: Any, sparsity: float, std: float = 0.01, generator: Any = None
) -> Any:
    """Normal samples, of which the part sparsity of each column is 0 (Martens, 2010).

    Raises ValueError for a tensor that is not a matrix.

    tensor     the matrix to fill
    sparsity   the part of each column that is 0, from 0 to 1, rounded up
    std        standard deviation of the others
    generator  of the samples, a torch.Generator; the zeros' positions are drawn with
    the
               device's own

    >>> w = nn.init.sparse_(torch.empty(10, 2), 0.3)
    >>> (w == 0).sum(0)
    tensor([3, 3])
    """
    if tensor.ndim != 2:
        raise ValueError(
            "Only tensors with 2 dimensions are supported, and this one has shape "
            f"{[*tensor.shape]}"
        )
    rows, columns = tensor.shape
    tensor.normal_(0, std, generator=generator)
    for column in range(columns):
        chosen = _C.randperm(rows, device=tensor.device)[: math.ceil(sparsity * rows)]
        tensor[chosen, column] = 0
    return tensor


def _former_name(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function under the name without the underscore, which warns."""
    name = function.__name__

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"nn.init.{name[:-1]} is deprecated; use nn.init.{name}",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    call.__name__ = name[:-1]
    call.__doc__ = f"The same as {name}, with a warning: use that."
    return call


constant: Callable[..., Any] = _former_name(constant_)
dirac: Callable[..., Any] = _former_name(dirac_)
eye: Callable[..., Any] = _former_name(eye_)
kaiming_normal: Callable[..., Any] = _former_name(kaiming_normal_)
kaiming_uniform: Callable[..., Any] = _former_name(kaiming_uniform_)
normal: Callable[..., Any] = _former_name(normal_)
orthogonal: Callable[..., Any] = _former_name(orthogonal_)
sparse: Callable[..., Any] = _former_name(sparse_)
uniform: Callable[..., Any] = _former_name(uniform_)
xavier_normal: Callable[..., Any] = _former_name(xavier_normal_)
xavier_uniform: Callable[..., Any] = _former_name(xavier_uniform_)

_publish(__name__, described=True)
