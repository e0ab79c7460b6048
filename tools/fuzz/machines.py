"""Where a program runs: pydevtensor on a device, and PyTorch or NumPy beside it."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import dataclass

import numpy as np

import pydevtensor

from . import hostile


@dataclass
class Value:
    """What a tensor is, wherever it lives: floats as float64."""

    dtype: str
    array: np.ndarray
    requires_grad: bool


# What a program may raise. A SystemError, a MemoryError or a KeyError is our own fault.
ALLOWED = (
    *(TypeError, ValueError, IndexError, RuntimeError, NotImplementedError),
    *(OverflowError, BufferError, AssertionError, AttributeError, ZeroDivisionError),
    hostile.Own,
)


class Missing(Exception):
    """A machine has no counterpart of a call."""


class Machine:
    """Runs statements in a namespace in which `torch` is a module."""

    records = True  # gradients, and what a program did before
    floor = 0.0  # its rounding, where that is coarser than the type's
    device = "PyTorch"

    def __init__(self, module):
        self.module, self.namespace = module, {}
        self.clear()

    def prepare(self, statement, leader):
        """Called before each statement."""

    def run(self, code):
        """The exception that a compiled statement raises, or None."""
        try:
            exec(code, self.namespace)
        except Exception as error:
            # The traceback would keep the statement's tensors alive.
            return error.with_traceback(None)
        return None

    def read(self, name):
        return self.look(self.namespace[name])

    def look(self, found):
        """A result as data that machines share."""
        if isinstance(found, self.module.Tensor):
            return self.tensor(found)
        if isinstance(found, (tuple, list)):
            return tuple(self.look(each) for each in found)
        if isinstance(found, (self.module.dtype, self.module.device)):
            return str(found)
        return "None" if found is None else found

    def tensor(self, x):
        plain = x.detach()
        floating = x.dtype.is_floating_point
        array = (plain.cpu().double() if floating else plain.cpu()).numpy(force=True)
        return Value(str(x.dtype), np.array(array), x.requires_grad)

    def adopt(self, name, value):
        """Takes the value of another machine, so that roundings do not accumulate."""
        x = self.namespace[name]
        # A writeable copy: from_numpy() warns of other arrays.
        x.data.copy_(self.module.from_numpy(np.array(value.array)))

    def settle(self):
        """Waits for the device; gives the error that a kernel has reported."""

    def clear(self):
        # A recorded gradient leads to its own tensor, and hooks to the namespace.
        for found in self.namespace.values():
            if isinstance(found, self.module.Tensor) and found.requires_grad:
                found.grad = None
        self.namespace.clear()
        self.namespace = {"torch": self.module, "hostile": hostile}


class Ours(Machine):
    def __init__(self, device):
        super().__init__(pydevtensor)
        self.device = pydevtensor.device(device)

    def run(self, code):
        with self.device:
            return super().run(code)

    def settle(self):
        if self.device.type == "cuda":
            try:
                pydevtensor.cuda.synchronize(self.device)
            except RuntimeError as error:
                return error.with_traceback(None)
        return None


class Torch(Machine):
    """PyTorch itself, on the CPU."""

    def __init__(self):
        import torch

        torch.set_num_threads(1)
        warnings.filterwarnings("ignore")
        super().__init__(torch)


# The step from 1 to the next number.
EPS = {
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float32": 2.0**-23,
    "float64": 2.0**-52,
}
EPS |= {"complex64": EPS["float32"], "complex128": EPS["float64"]}
NAME = re.compile(r"\b[tr]\d+\b")


def magnitude(values):
    """The largest finite number among them."""
    found = 1.0
    for value in values:
        if isinstance(value, Value) and value.array.size:
            array = np.abs(value.array).astype(np.float64)
            found = max(
                found, float(np.max(array, where=np.isfinite(array), initial=0))
            )
    return found


def defined(values):
    """Whether converting them to integers has one meaning."""
    for value in values:
        if isinstance(value, Value) and "float" in value.dtype:
            array = value.array
            if not np.isfinite(array).all() or (np.abs(array) >= 2**7).any():
                return False
    return True


def difference(found, expected, inputs, strict=True, floor=0.0):
    """What distinguishes two results, as (kind, sentence); None where they agree.

    inputs() has the values that the statement read; strict also compares whether
    gradients are recorded. floor is the smallest step that rounding is held against."""
    if expected is None:  # the machine does not say
        return None
    if isinstance(expected, tuple):
        if not isinstance(found, tuple) or len(found) != len(expected):
            return "value", f"{found} for {expected}"
        pairs = zip(found, expected, strict=True)
        return next(
            filter(None, (difference(a, b, inputs, strict, floor) for a, b in pairs)),
            None,
        )
    if not isinstance(expected, Value) or not isinstance(found, Value):
        if isinstance(found, Value) != isinstance(expected, Value):
            return "type", f"{found} for {expected}"
        if isinstance(expected, float) and isinstance(found, float):
            close = math.isclose(found, expected, rel_tol=1e-4, abs_tol=1e-5)
            if close or (found != found and expected != expected):
                return None
        elif np.array_equal(found, expected) and isinstance(found, type(expected)):
            return None
        return "value", f"{found!r} for {expected!r}"
    if found.dtype != expected.dtype:
        return "dtype", f"{found.dtype} for {expected.dtype}"
    a, b = found.array, expected.array
    if a.shape != b.shape:
        return "shape", f"{a.shape} for {b.shape}"
    if strict and found.requires_grad != expected.requires_grad:
        return "requires_grad", f"{found.requires_grad} for {expected.requires_grad}"
    if np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"):
        return None
    values = inputs()
    dtype = found.dtype.removeprefix("torch.")
    if dtype not in EPS:
        if not defined(values):
            return None
        return "value", f"{a.tolist()} for {b.tolist()}"[:400]
    # The coarsest type that took part rounds; integers compute in float32.
    types = [v.dtype.removeprefix("torch.") for v in values if isinstance(v, Value)]
    eps = max(floor, *(EPS.get(name, EPS["float32"]) for name in [dtype, *types]))
    scale = min(magnitude([*values, expected]), 1e15) ** 2
    with np.errstate(all="ignore"):
        near = np.isclose(a, b, rtol=300 * eps, atol=40 * eps * scale, equal_nan=True)
        # Next to the largest number a rounding decides between it and infinity.
        most = {"float16": 6e4, "bfloat16": 3e38, "float32": 3e38}.get(dtype, 1e308)
        near |= (np.abs(a) >= most) & (np.abs(b) >= most) & (np.sign(a) == np.sign(b))
    if near.all():
        return None
    at = tuple(int(i) for i in np.argwhere(~near)[0])
    return "value", f"at {at} {a[at]!r} for {b[at]!r}"
