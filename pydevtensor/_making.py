"""Tensors from ranges, values and objects of other kinds.

Their signatures, docstrings and the checks of their arguments' types are in
csrc/python/functions/composed.def.
"""

import math
import sys
import warnings

from pydevtensor import _C


def range(start, end, step=1, dtype=None, **words):
    warnings.warn(
        "torch.range is deprecated, since it includes its end as Python's range does "
        "not; use torch.arange",
        UserWarning,
        stacklevel=2,
    )
    if step == 0:
        raise RuntimeError("range(): step is 0; give one that leads from start to end")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(
            f"range(): from {start} to {end} is not finite; give finite numbers"
        )
    if dtype == _C.bool:
        raise NotImplementedError(
            "range(): not defined for the type bool; use an integer or floating type"
        )
    dtype = dtype or _C.get_default_dtype()
    if not dtype.is_floating_point:  # such types step by whole numbers
        start, end, step = int(start), int(end), int(step) or step
    if (end - start) * step < 0:
        raise RuntimeError(
            f"range(): a step of {step} does not lead from {start} to {end}; change "
            "its sign, or swap start and end"
        )
    count = math.floor((end - start) / step) + 1
    beyond = count if isinstance(step, int) else count - 0.5  # exact or off the steps
    return _C.arange(start, start + beyond * step, step, dtype=dtype, **words)


def fill(input, value):
    return input.clone().fill_(value)


def _shared(obj, dtype):
    """A tensor over the memory of obj; None where it has none to share."""
    if isinstance(obj, _C.Tensor):
        return obj
    numpy = sys.modules.get("numpy")
    if numpy and isinstance(obj, (numpy.ndarray, numpy.generic)):
        array = isinstance(obj, numpy.ndarray) and obj.flags.writeable
        return _C.from_numpy(obj) if array else None
    if hasattr(obj, "__dlpack__"):
        return _C.from_dlpack(obj)
    try:
        memory = memoryview(obj)
    except TypeError:
        return None
    own = bytearray(memory) if memory.readonly else memory
    return _C.frombuffer(own, dtype=dtype or _C.get_default_dtype())


def asarray(obj, dtype=None, device=None, copy=None, requires_grad=None):
    made = _shared(obj, dtype)
    if made is None:
        if copy is False:
            raise ValueError(
                f"asarray(): a {type(obj).__name__} has no memory that can be shared; "
                "leave copy=False out"
            )
        made = _C.tensor(obj, dtype=dtype, device=device)
    else:
        # A tensor's own device has an index, which a name may leave out.
        there = made.device
        if device is not None:
            there = made.new_empty(0, device=device).device
        if copy is False:
            if there != made.device or dtype not in (None, made.dtype):
                raise ValueError(
                    f"asarray(): what is of {made.dtype} on {made.device} cannot be "
                    f"shared as {dtype or made.dtype} on {there}; leave copy=False out"
                )
        else:
            made = made.to(there, dtype or made.dtype)
            if (copy and made is obj) or (copy and not isinstance(obj, _C.Tensor)):
                made = made.clone()
    if requires_grad is None:
        return made
    if not requires_grad:
        return made.detach() if made.requires_grad else made
    return made if made.requires_grad else made.requires_grad_()
