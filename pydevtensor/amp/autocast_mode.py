"""autocast, and the state that it sets."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, Literal, Self

from pydevtensor import _C
from pydevtensor._autocast import cast
from pydevtensor._names import publish as _publish

__all__ = ["autocast", "clear_autocast_cache", "custom_bwd", "custom_fwd"]
__all__ += ["get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype"]
__all__ += ["is_autocast_available", "is_autocast_cache_enabled"]
__all__ += ["is_autocast_cpu_enabled", "is_autocast_enabled"]
__all__ += ["set_autocast_cache_enabled", "set_autocast_cpu_dtype"]
__all__ += ["set_autocast_cpu_enabled", "set_autocast_dtype", "set_autocast_enabled"]
__all__ += ["set_autocast_gpu_dtype"]

_TYPES = ("cpu", "cuda")
_LOWER = (_C.bfloat16, _C.float16)


def _known(function: str, device_type: Any) -> str:
    if not isinstance(device_type, str):
        raise ValueError(
            f"{function}(): device_type is {device_type!r}; give 'cpu' or 'cuda'"
        )
    if device_type not in _TYPES:
        raise RuntimeError(
            f"{function}(): there are no devices of type '{device_type}'; give 'cpu' "
            "or 'cuda'"
        )
    return device_type


# --- the state ---------------------------------------------------------------------


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast knows device_type, a str: True for 'cuda' and 'cpu'.

    >>> torch.amp.is_autocast_available('cuda')
    True
    """
    return device_type in _TYPES


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether autocast is on in this thread.

    device_type: 'cuda', the default, or 'cpu'. False for a type of devices that is not
    there, such as 'mps', and RuntimeError for a text that names none.

    >>> with torch.autocast('cpu'):
    ...     torch.is_autocast_enabled('cpu')
    True
    """
    name = "cuda" if device_type is None else device_type
    if name not in _TYPES and isinstance(name, str) and ":" not in name:
        _C.device(name)
        return False
    return _C._autocast_state(_known("is_autocast_enabled", name))[0]


def is_autocast_cpu_enabled() -> bool:
    """Whether autocast is on for the CPU in this thread.

    >>> torch.is_autocast_cpu_enabled()
    False
    """
    return is_autocast_enabled("cpu")


def get_autocast_dtype(device_type: str) -> Any:
    """The lower dtype of autocast, for a type of devices.

    device_type: 'cuda' or 'cpu'; RuntimeError for others.

    >>> torch.get_autocast_dtype('cpu'), torch.get_autocast_dtype('cuda')
    (torch.bfloat16, torch.float16)
    """
    return _C._autocast_state(_known("get_autocast_dtype", device_type))[1]


def get_autocast_cpu_dtype() -> Any:
    """The lower dtype of autocast on the CPU.

    >>> torch.get_autocast_cpu_dtype()
    torch.bfloat16
    """
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> Any:
    """The lower dtype of autocast on GPUs.

    >>> torch.get_autocast_gpu_dtype()
    torch.float16
    """
    return get_autocast_dtype("cuda")


def set_autocast_enabled(device_type: Any, enabled: bool | None = None) -> None:
    """Turn autocast on or off in this thread.

    device_type: 'cuda' or 'cpu'; RuntimeError for others. enabled: whether it is on.
    One argument is enabled, for GPUs. See also autocast(), which ends with a block.

    >>> torch.set_autocast_enabled('cpu', False)
    """
    if enabled is None:
        device_type, enabled = "cuda", device_type
    name = _known("set_autocast_enabled", device_type)
    _C._autocast_state(name, bool(enabled), _C._autocast_state(name)[1])


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Turn autocast on (enabled true) or off for the CPU in this thread.

    >>> torch.set_autocast_cpu_enabled(False)
    """
    set_autocast_enabled("cpu", enabled)


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Set dtype as the lower one of autocast in this thread.

    device_type: 'cuda' or 'cpu'; RuntimeError for others.

    >>> torch.set_autocast_dtype('cpu', torch.bfloat16)
    """
    name = _known("set_autocast_dtype", device_type)
    if not isinstance(dtype, _C.dtype):
        raise TypeError(f"set_autocast_dtype(): dtype is {dtype!r}; give a torch.dtype")
    _C._autocast_state(name, _C._autocast_state(name)[0], dtype)


def set_autocast_cpu_dtype(dtype: Any) -> None:
    """Set the lower dtype of autocast on the CPU.

    >>> torch.set_autocast_cpu_dtype(torch.bfloat16)
    """
    set_autocast_dtype("cpu", dtype)


def set_autocast_gpu_dtype(dtype: Any) -> None:
    """Set the lower dtype of autocast on GPUs.

    >>> torch.set_autocast_gpu_dtype(torch.float16)
    """
    set_autocast_dtype("cuda", dtype)


def is_autocast_cache_enabled() -> bool:
    """Whether an autocast block keeps casts of parameters.

    >>> torch.is_autocast_cache_enabled()
    True
    """
    return _C._autocast_cache()


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Set whether autocast blocks keep casts of parameters, in this thread.

    enabled: a bool. autocast(cache_enabled=) sets it for a block.

    >>> torch.set_autocast_cache_enabled(True)
    """
    _C._autocast_cache(bool(enabled))


def clear_autocast_cache() -> None:
    """Drop the casts of parameters that autocast keeps in this thread.

    The end of the outermost block does so too.

    >>> torch.clear_autocast_cache()
    """
    _C._autocast_clear()


# --- autocast ----------------------------------------------------------------------


class autocast:
    """Computes in a lower dtype where that is safe: `with torch.autocast('cuda'):`.

    device_type    'cuda' or 'cpu': whose tensors it is for
    dtype          float16 or bfloat16; by default float16 on GPUs, bfloat16 on the CPU
    enabled        False computes as written, also inside of another autocast
    cache_enabled  whether casts of parameters are kept until the outermost block ends

    Products of matrices, linear and recurrent layers, convolutions and attention cast
    float32 tensors to dtype. Losses, and on GPUs also softmax, normalizations, sums,
    powers and exponentials, on the CPU factorizations and equations, cast float16 and
    bfloat16 to float32. Other functions use the types they get. Autocast does not cast
    float64, and does not apply to in-place functions and calls with out=. The functions
    are those of PyTorch's lists, one for the CPU and one for GPUs. It is a decorator
    too, and belongs round the forward pass; the backward pass computes in the same
    types.

    Another dtype, or 'cuda' without a GPU, gives a UserWarning and no autocast.

    >>> x = torch.ones(2, 2)
    >>> with torch.autocast('cpu'):
    ...     (x @ x).dtype, (x + x).dtype
    (torch.bfloat16, torch.float32)
    """

    def __init__(
        self,
        device_type: str,
        dtype: _C.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        self.device: str = _known("autocast", device_type)
        self.fast_dtype: Any = (
            get_autocast_dtype(device_type) if dtype is None else dtype
        )
        if not isinstance(self.fast_dtype, _C.dtype):
            raise TypeError(
                f"autocast(): dtype is {dtype!r}; give torch.float16 or torch.bfloat16"
            )
        self._enabled = bool(enabled)
        self._cache_enabled = (
            is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        )
        if self._enabled and self.device == "cuda" and not _C._device_count("cuda"):
            self._disable("there is no GPU; torch.cuda.why_unavailable() says why")
        elif self._enabled and self.fast_dtype not in _LOWER:
            self._disable(
                f"it cannot compute in {self.fast_dtype}; give torch.float16 or "
                "torch.bfloat16"
            )
        self._before: list[tuple[Any, ...]] = []

    def _disable(self, why: str) -> None:
        warnings.warn(f"autocast('{self.device}') is disabled: {why}", stacklevel=3)
        self._enabled = False

    def __enter__(self) -> Self:
        cache = _C._autocast_cache(self._cache_enabled)
        # A disabled one may have a dtype that nothing can be cast to.
        before = _C._autocast_state(self.device)
        lower = self.fast_dtype if self._enabled else before[1]
        _C._autocast_state(self.device, self._enabled, lower)
        _C._autocast_enter()
        self._before.append((before, cache))
        return self

    def __exit__(self, *error: object) -> Literal[False]:
        before, cache = self._before.pop()
        _C._autocast_leave()
        _C._autocast_state(self.device, *before)
        _C._autocast_cache(cache)
        return False

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def in_autocast(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return in_autocast


# --- custom operations -------------------------------------------------------------


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: Any = None
) -> Callable[..., Any]:
    """Decorates fwd, forward() of an autograd.Function, for use under autocast.

    cast_inputs: the dtype that floating arguments are cast to; forward() then runs
    without autocast. Without it forward() runs in the mode of its caller.

    device_type: 'cuda' or 'cpu', whose autocast is meant; RuntimeError for others.

    >>> class Square(torch.autograd.Function):
    ...     @staticmethod
    ...     @torch.amp.custom_fwd(device_type='cpu', cast_inputs=torch.float32)
    ...     def forward(ctx, x):
    ...         return x * x
    >>> with torch.autocast('cpu'):
    ...     Square.apply(torch.ones(1, dtype=torch.bfloat16)).dtype
    torch.float32
    """
    _known("custom_fwd", device_type)
    if fwd is None:
        return functools.partial(
            custom_fwd, device_type=device_type, cast_inputs=cast_inputs
        )

    @functools.wraps(fwd)
    def forward(*args: Any, **kwargs: Any) -> Any:
        enabled, dtype = _C._autocast_state(device_type)
        args[0]._autocast = (enabled and cast_inputs is None, dtype)
        if cast_inputs is None or not enabled:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(
                *cast(args, device_type, cast_inputs),
                **cast(kwargs, device_type, cast_inputs),
            )

    return forward


def custom_bwd(
    bwd: Callable[..., Any] | None = None, *, device_type: str
) -> Callable[..., Any]:
    """Decorates bwd, backward() beside custom_fwd(): it runs in the mode of forward().

    device_type: 'cuda' or 'cpu', whose autocast is meant; RuntimeError for others.

    >>> @torch.amp.custom_bwd(device_type='cpu')
    ... def backward(ctx, gradient):
    ...     return gradient
    """
    _known("custom_bwd", device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args: Any, **kwargs: Any) -> Any:
        enabled, dtype = getattr(args[0], "_autocast", (False, None))
        with autocast(device_type, dtype, enabled):
            return bwd(*args, **kwargs)

    return backward


_publish(__name__)
