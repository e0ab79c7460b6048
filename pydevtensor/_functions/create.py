"""Tensors from ranges, values and objects of other kinds."""

from __future__ import annotations

import math
import sys
import warnings
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function, method
from pydevtensor._functions.checks import at_least, vector

if TYPE_CHECKING:
    from pydevtensor._functions.types import Device, Dtype, Number, Tensor, Value


def _shared(obj, dtype):
    """A tensor that shares the memory of obj; None if it has none."""
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


def as_factory(made: Tensor, pin_memory: bool, requires_grad: bool) -> Tensor:
    """A computed tensor with what a factory's keywords ask for."""
    made = made.pin_memory() if pin_memory else made
    return made.requires_grad_() if requires_grad else made


@function(out=True, factory=True)
def range(start: Number, end: Number, step: Number = 1, **factory: Any) -> Tensor:
    """Values from start up to and including end, in increments of step.

    Deprecated, as in PyTorch: use arange().

    >>> torch.range(1, 3)
    tensor([1., 2., 3.])
    """
    warnings.warn(
        "torch.range is deprecated, since it includes its end as Python's range does "
        "not; use torch.arange",
        UserWarning,
        stacklevel=2,
    )
    if step == 0:
        raise RuntimeError("step is 0; give one that leads from start to end")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"from {start} to {end} is not finite; give finite numbers")
    dtype = factory.pop("dtype", None) or _C.get_default_dtype()
    if not dtype.is_floating_point:  # integers step by integers
        start, end, step = int(start), int(end), int(step) or step
    if (end - start) * step < 0:
        raise RuntimeError(
            f"a step of {step} does not lead from {start} to {end}; change its sign, "
            "or swap start and end"
        )
    count = math.floor((end - start) / step) + 1
    beyond = count if isinstance(step, int) else count - 0.5  # exact or off the steps
    return _C.arange(start, start + beyond * step, step, dtype=dtype, **factory)


@function()
def fill(input: Tensor, value: Value) -> Tensor:
    """Tensor of input's shape and dtype, filled with value.

    >>> torch.fill(torch.zeros(2), 3)
    tensor([3., 3.])
    """
    return input.clone().fill_(value)


@function()
def asarray(
    obj: Any,
    *,
    dtype: Dtype | None = None,
    device: Device | None = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """Convert obj to a tensor, sharing its memory where possible.

    obj is a Tensor, NumPy array, DLPack or buffer object, or a sequence of numbers.
    copy=True always copies; copy=False raises ValueError where a copy is needed.

    dtype          convert to it; by default obj's type, as tensor() chooses it
    device         copy to it; by default where the memory is
    requires_grad  whether gradients are computed for it; None keeps a Tensor's

    See also as_tensor() and from_dlpack().

    >>> torch.asarray([1, 2])
    tensor([1, 2])
    """
    made = _shared(obj, dtype)
    if made is None:
        if copy is False:
            raise ValueError(
                f"a {type(obj).__name__} has no memory that can be shared; leave "
                "copy=False out"
            )
        made = _C.tensor(obj, dtype=dtype, device=device)
    else:
        there = device or made.device
        if copy is False:
            if there != made.device or dtype not in (None, made.dtype):
                raise ValueError(
                    f"memory of {made.dtype} on {made.device} cannot be shared as "
                    f"{dtype or made.dtype} on {there}; leave copy=False out"
                )
        else:
            made = made.to(there, dtype or made.dtype)
            if copy and (made is obj or not isinstance(obj, _C.Tensor)):
                made = made.clone()
    if requires_grad is None or requires_grad == made.requires_grad:
        return made
    return made.requires_grad_() if requires_grad else made.detach()


@function()
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Vandermonde matrix: powers of the elements of a vector, [x.numel(), N].

    N defaults to x.numel(). The highest power comes first unless increasing. Integers
    give int64.

    >>> torch.vander(torch.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    vector("x", x)
    columns = x.numel() if N is None else N
    at_least(0, "N", columns)
    x = x if x.is_floating_point() or x.is_complex() else x.long()
    powers = x.new_ones(x.numel(), min(columns, 1))
    if columns > 1:
        rest = x.unsqueeze(1).expand(x.numel(), columns - 1).cumprod(1)
        powers = _C.cat([powers, rest], 1)
    return powers if increasing else powers.flip(1)


@method()
def fill_diagonal_(input: Tensor, fill_value: Value, wrap: bool = False) -> Tensor:
    """Fill the main diagonal with a value, in place.

    Tensors of more than 2 dimensions must have equal sizes. wrap=True restarts the
    diagonal in tall matrices, one row after its end.

    fill_value  a number, or a Tensor without dimensions

    See also diagonal().

    >>> torch.zeros(2, 2).fill_diagonal_(5)
    tensor([[5., 0.],
            [0., 5.]])
    """
    shape, steps = input.shape, input.stride()
    if input.dim() < 2:
        raise RuntimeError(
            f"the Tensor has the shape {tuple(shape)}; give at least 2 dimensions"
        )
    if input.dim() > 2 and len(set(shape)) > 1:
        raise RuntimeError(
            f"the sizes in {tuple(shape)} differ; with more than 2 dimensions, give "
            "one whose sizes are all the same"
        )
    offset = input.storage_offset()
    rows, columns = shape[0], shape[-1]
    if wrap and input.dim() == 2 and rows > columns + 1 and columns:
        # The diagonal restarts after each columns + 1 rows.
        count = (rows - columns) // (columns + 1) + 1
        blocks = ((columns + 1) * steps[0], sum(steps))
        input.as_strided((count, columns), blocks, offset).fill_(fill_value)
        rest = input[count * (columns + 1) :]
        rest.diagonal().fill_(fill_value)
    else:
        input.as_strided((min(shape),), (sum(steps),), offset).fill_(fill_value)
    return input


@method()
def new(input: Tensor, *args: Any, device: Device | None = None) -> Tensor:
    """A tensor of input's type and device: of sizes, of data, or a view of a tensor.

    Sizes are ints or a Size, and the elements may have any value; data is a sequence.

    >>> torch.ones(2).new([1, 2])
    tensor([1., 2.])
    """
    device = input.device if device is None else device
    if len(args) == 1 and isinstance(args[0], _C.Tensor):
        if args[0].dtype != input.dtype or args[0].device != device:
            raise TypeError(
                f"the Tensor is of {args[0].dtype} on {args[0].device}; give one of "
                f"{input.dtype} on {device}"
            )
        return args[0].detach()
    if len(args) == 1 and not isinstance(args[0], (int, _C.Size)):
        return _C.tensor(args[0], dtype=input.dtype, device=device)
    size = args[0] if args and isinstance(args[0], _C.Size) else args or (0,)
    return input.new_empty(size, device=device)
