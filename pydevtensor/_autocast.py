"""The types in which functions written in Python compute under autocast.

Functions of the core have flags for that (csrc/autograd/autocast.h). A function in
Python is decorated with @casts(...), which also turns autocast off inside of it; or,
where nothing inside would be cast, it converts its tensors by _C._autocast_float() and
the like.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from pydevtensor import _C

_Body = TypeVar("_Body", bound=Callable[..., Any])
_CAST = (_C.float32, _C.float16, _C.bfloat16)


def cast(value: Any, device_type: str, dtype: Any) -> Any:
    """Floating tensors of a device type, inside of lists and dicts too, in a dtype.

    float64 is not cast.
    """
    if isinstance(value, _C.Tensor):
        fits = value.is_floating_point() and value.device.type == device_type
        given = value.dtype
        if not fits or given in (_C.float64, dtype):
            return value
        return _C._autocast_cast(value, dtype)
    if isinstance(value, dict):
        return {key: cast(each, device_type, dtype) for key, each in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(cast(each, device_type, dtype) for each in value)
    return value


def is_cast(tensor: Any) -> bool:
    """Whether autocast is on for the tensor's device, and would cast it."""
    return (
        _C._autocast_on()
        and tensor.dtype in _CAST
        and _C._autocast_state(tensor.device.type)[0]
    )


def _tensors(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, _C.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def casts(*, cpu: str | None = None, cuda: str | None = None) -> Callable[..., Any]:
    """Make a function compute in a type under autocast, by the device of its tensors.

    "lower": the lower type. "float32". "widest": float32 where one tensor is that and
    another is not. "given": what the tensors have. None: as it is written, so what it
    calls may be cast. Calls with out= are computed as without autocast.
    """

    def decorate(body: _Body) -> _Body:
        @functools.wraps(body)
        def function(*args: Any, **options: Any) -> Any:
            if not _C._autocast_on():
                return body(*args, **options)
            return _call(body, args, options, {"cpu": cpu, "cuda": cuda})

        return function  # type: ignore[return-value]

    return decorate


def _call(
    body: Callable[..., Any],
    args: tuple[Any, ...],
    options: dict[Any, Any],
    kinds: dict[str, Any],
) -> Any:
    tensors = [*_tensors(args), *_tensors(options.values())]
    device_type = "cuda" if any(t.is_cuda for t in tensors) else "cpu"
    kind = kinds[device_type]
    enabled, lower = _C._autocast_state(device_type)
    if not enabled or kind is None:
        return body(*args, **options)
    types = {t.dtype for t in tensors}.intersection(_CAST)
    as_given = kind == "given" or (kind == "widest" and len(types) < 2)
    if options.get("out") is None and not as_given:
        dtype = lower if kind == "lower" else _C.float32
        args = cast(args, device_type, dtype)
        options = cast(options, device_type, dtype)
    _C._autocast_state(device_type, False, lower)
    try:
        return body(*args, **options)
    finally:
        _C._autocast_state(device_type, True, lower)
