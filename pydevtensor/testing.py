"""torch.testing: a comparison for tests, and random tensors."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydevtensor import _C
from pydevtensor._functions.dtypes import finfo, iinfo
from pydevtensor._kinds import is_distributed
from pydevtensor._names import publish as _publish

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

# rtol and atol; other types are compared exactly.
_TOLERANCES = {
    _C.float16: (1e-3, 1e-5),
    _C.bfloat16: (1.6e-2, 1e-5),
    _C.float32: (1.3e-6, 1e-5),
    _C.float64: (1e-7, 1e-7),
    _C.complex64: (1.3e-6, 1e-5),
    _C.complex128: (1e-7, 1e-7),
}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless |actual - expected| <= atol + rtol * |expected|.

    For tensors, numbers, arrays, and sequences and mappings of them, which have to be
    alike. Without rtol and atol, they follow from the type: float32 1.3e-6 and 1e-5,
    float64 1e-7 and 1e-7, float16 1e-3 and 1e-5, bfloat16 1.6e-2 and 1e-5, complex
    types as their parts, else 0.
    msg replaces the message, or is a function that gets it and returns another one.
    Raises TypeError for what cannot be compared, ValueError for one tolerance alone.

    equal_nan                                              NaN is close to NaN
    allow_subclasses                                       one type may be a subclass of
                                                           the other, else both are the
                                                           same
    check_device, check_dtype, check_layout, check_stride  whether these have to be the
                                                           same; else the values are
                                                           brought together first

    >>> torch.testing.assert_close(torch.tensor(1.0), torch.tensor(1.0 + 1e-7))
    >>> torch.testing.assert_close(torch.tensor([1, 2]), torch.tensor([1, 4]))
    Traceback (most recent call last):
        ...
    AssertionError: 1 of 2 elements (50.0%) are not equal; the greatest absolute \
difference is 2 at index (1,), the greatest relative one 0.5 at index (1,)
    """
    if (rtol is None) != (atol is None):
        raise ValueError(
            f"assert_close(): rtol is {rtol} and atol {atol}; give both or none"
        )
    checks = {"device": check_device, "dtype": check_dtype, "layout": check_layout}
    checks["stride"] = check_stride
    tolerances = None if rtol is None or atol is None else (rtol, atol)

    def compare(a: Any, e: Any, where: str) -> None:
        both = (a, e)
        if all(isinstance(v, Sequence) and not isinstance(v, str) for v in both):
            if len(a) != len(e):
                raise AssertionError(f"the lengths{where} are {len(a)} and {len(e)}")
            for i in range(len(a)):
                compare(a[i], e[i], f"{where}[{i}]" if where else f" of item [{i}]")
        elif all(isinstance(v, Mapping) for v in both):
            if set(a) != set(e):
                raise AssertionError(
                    f"the keys{where} differ: only actual has {sorted(set(a) - set(e))}"
                    f", only expected {sorted(set(e) - set(a))}"
                )
            for key in a:
                next_ = f"[{key!r}]"
                compare(a[key], e[key], f"{where or ' of item '}{next_}")
        elif a is None or e is None:
            if a is not e:
                raise AssertionError(f"the values{where} are {a} and {e}")
        elif any(map(is_distributed, both)):
            _compare(*_parts(a, e), False, where)
        else:
            _compare(*_pair(a, e, allow_subclasses), where)

    def _compare(a: Any, e: Any, is_number: bool, where: str) -> None:
        if not is_number and a.shape != e.shape:
            raise AssertionError(f"the shapes{where} are {[*a.shape]} and {[*e.shape]}")
        for name, checked in checks.items():
            mine, theirs = getattr(a, name), getattr(e, name)
            if name == "stride":
                mine, theirs = mine(), theirs()
            if checked and mine != theirs:
                raise AssertionError(f"the {name}s{where} are {mine} and {theirs}")
        found = tolerances or tuple(
            map(max, *(_TOLERANCES.get(t.dtype, (0.0, 0.0)) for t in (a, e)))
        )
        if a.device != e.device:
            a, e = a.cpu(), e.cpu()
        if a.dtype != e.dtype:
            common = _C.promote_types(a.dtype, e.dtype)
            a, e = a.to(common), e.to(common)
        close = _C.isclose(a, e, rtol=found[0], atol=found[1], equal_nan=equal_nan)
        if not close.all().item():
            raise AssertionError(_difference(a, e, close, found, where))

    try:
        compare(actual, expected, "")
    except AssertionError as error:
        text = str(error)
        if msg is not None:
            text = msg(text) if callable(msg) else msg
        raise AssertionError(text) from None


def _parts(a: Any, e: Any) -> tuple[Any, Any]:
    """This rank's parts of two DTensors."""
    if not (is_distributed(a) and is_distributed(e)):
        raise TypeError(
            f"assert_close(): a {type(a).__name__} and a {type(e).__name__} cannot be "
            "compared; call full_tensor() of the DTensor, or to_local() for a part"
        )
    if a.shape != e.shape:
        raise AssertionError(f"the shapes are {[*a.shape]} and {[*e.shape]}")
    if a.placements != e.placements:
        a = a._without_terms()
        e = e.redistribute(a.device_mesh, a.placements)
    return a.to_local().detach(), e.to_local().detach()


# The tolerances of assert_allclose(); 0 for other types.
_WIDE = {
    _C.float16: (1e-3, 1e-3),
    _C.float32: (1e-4, 1e-5),
    _C.float64: (1e-5, 1e-8),
}


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """assert_close() of values of any types, with wider tolerances, for old programs.

    It warns; new programs use assert_close().

    actual, expected  Tensors, or what tensor() takes
    rtol, atol  float32 1e-4 and 1e-5, float64 1e-5 and 1e-8, float16 1e-3 and 1e-3,
        other types 0
    equal_nan   whether NaN equals NaN
    msg         what the AssertionError says, instead of where values differ

    >>> import warnings
    >>> with warnings.catch_warnings(action='ignore'):
    ...     torch.testing.assert_allclose(torch.ones(2), [1.0, 1.00001])
    """
    warnings.warn(
        "torch.testing.assert_allclose is for old programs; use assert_close()",
        FutureWarning,
        stacklevel=2,
    )
    if not isinstance(actual, _C.Tensor):
        actual = _C.tensor(actual)
    if not isinstance(expected, _C.Tensor):
        expected = _C.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        known = (_WIDE.get(t.dtype, (0.0, 0.0)) for t in (actual, expected))
        rtol, atol = map(max, *known)
    given: dict[str, Any] = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan}
    assert_close(actual, expected, check_dtype=False, msg=msg or None, **given)


def _pair(a: Any, e: Any, allow_subclasses: bool) -> tuple[Any, Any, bool]:
    """Two tensors of values that can be compared, and whether they are numbers."""
    kinds = type(a), type(e)
    numeric = all(isinstance(v, numbers.Number) for v in (a, e))
    related = isinstance(a, kinds[1]) or isinstance(e, kinds[0])
    same = kinds[0] is kinds[1] or (related and allow_subclasses)
    if not numeric and not same:
        raise TypeError(
            f"assert_close(): a {kinds[0].__name__} and a {kinds[1].__name__} cannot "
            "be compared; convert one of them, e.g. with torch.as_tensor()"
        )
    made = []
    for value in (a, e):
        try:
            tensor = _C.as_tensor(value).detach()
        except Exception:
            raise TypeError(
                f"assert_close(): a {type(value).__name__} cannot be compared; give "
                "tensors, numbers or arrays, or sequences and mappings of them"
            ) from None
        if isinstance(value, float):
            tensor = _C.tensor(value, dtype=_C.float64)
        made.append(tensor)
    return made[0], made[1], numeric


def _difference(a: Any, e: Any, close: Any, tolerances: Any, where: str) -> str:
    if a.dtype is _C.bool:
        a, e = a.to(_C.int64), e.to(_C.int64)
    wrong = ~close
    absolute = (a - e).abs().to(_C.float64).masked_fill(close, 0)
    relative = absolute / e.abs().to(_C.float64)
    relative = relative.masked_fill(close, 0)
    exact = tolerances == (0, 0)
    count, of = int(wrong.sum().item()), wrong.numel()
    parts: list[str] = []
    for values in (absolute, relative):
        i = int(values.argmax().item())
        index = []
        for size in reversed(wrong.shape):
            index.append(i % size)
            i //= size
        value = values.flatten().max().item()
        at = f" at index {tuple(reversed(index))}" if index else ""
        shown = int(value) if exact and not parts and value < 2**53 else value
        parts.append(f"{shown}{at}")
    subject = f"{count} of {of} elements{where} ({100 * count / of:.1f}%) are"
    if wrong.ndim == 0:
        subject = f"the values{where}, {a.item()} and {e.item()}, are"
    allowed = "" if exact else f" within rtol={tolerances[0]} and atol={tolerances[1]}"
    return (
        f"{subject} not {'equal' if exact else 'close'}{allowed}; the greatest "
        f"absolute difference is {parts[0]}, the greatest relative one {parts[1]}"
    )


def make_tensor(
    *shape: Any,
    dtype: _C.dtype,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: _C.memory_format | None = None,
) -> _C.Tensor:
    """Random values of any type, uniform from low to below high.

    shape          ints, or one sequence of them
    dtype, device  of the elements, and where they are
    low, high      without them, bools are False and True, uint8 is 0 to 9, other
                   integers are -9 to 9, and floating and complex parts -9 to 9
    noncontiguous  every second element of a larger tensor, in the last dimension
    exclude_zero   a 1, or the least normal number, in place of each 0
    memory_format  of a tensor that is not noncontiguous

    Raises ValueError where no number of the type is from low to below high, for
    requires_grad with integers, and for noncontiguous with a memory_format.

    >>> torch.testing.make_tensor(2, 3, dtype=torch.int32, device="cpu").shape
    torch.Size([2, 3])
    """
    sizes = [*shape[0]] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    sizes = [*sizes]
    floating = dtype.is_floating_point or dtype.is_complex
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "make_tensor(): noncontiguous and a memory_format were given; give one"
        )
    if requires_grad and not floating:
        raise ValueError(
            f"make_tensor(): a tensor of {dtype} has no gradient; give a floating or "
            "complex dtype"
        )
    low, high = _limits(dtype, low, high)
    if noncontiguous and math.prod(sizes) > 1:
        sizes[-1] *= 2
    else:
        noncontiguous = False
    if floating:
        made = _C.empty(sizes, dtype=dtype, device=device)
        parts = _C.view_as_real(made) if dtype.is_complex else made
        if high - low < finfo(dtype).max:
            parts.uniform_(low, high)
        else:
            parts.uniform_(low / 2, high / 2).mul_(2)
    else:
        made = _C.randint(
            math.ceil(low), math.ceil(high), sizes, dtype=dtype, device=device
        )
    if noncontiguous:
        made = made[..., 1::2]
    elif memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        made[made == 0] = finfo(dtype).tiny if floating else 1
    return made.requires_grad_(requires_grad)


def _limits(dtype: _C.dtype, low: Any, high: Any) -> tuple[float, float]:
    """low and high, or the type's own, within what the type holds."""
    given = low, high
    least: Any
    end: Any
    whole = not dtype.is_floating_point and not dtype.is_complex
    if not whole:
        usual: tuple[float, float] = (-9, 9)
        least, end = finfo(dtype).min, finfo(dtype).max
    elif dtype is _C.bool:
        usual, least, end = (0, 2), 0, 2
    else:
        usual = (0, 10) if dtype is _C.uint8 else (-9, 10)
        # As in PyTorch, the largest int64 is left out.
        least, end = iinfo(dtype).min, iinfo(dtype).max
        end += dtype is not _C.int64
    low, high = (u if g is None else g for g, u in zip(given, usual, strict=True))
    empty = not (low < high if whole else low <= high)
    if empty or high < least or low >= end:
        raise ValueError(
            f"make_tensor(): no number of {dtype} is from {low} to below {high}; give "
            f"a low that is less than high, within {least} to {end}"
        )
    return min(max(low, least), end), min(max(high, least), end)


_publish(__name__)
