"""Base of layers with parameters."""

from __future__ import annotations

import itertools
from typing import Any

from pydevtensor import _C
from pydevtensor.nn import init
from pydevtensor.nn.modules.module import Module
from pydevtensor.nn.parameter import Parameter


def explain(module: Module, error: Exception, **inputs: Any) -> None:
    """Raise the core's error again in the module's terms, if that is of use."""
    home = next(itertools.chain(module.parameters(False), module.buffers(False)), None)
    for name, value in inputs.items():
        if not isinstance(value, _C.Tensor):
            raise TypeError(
                f"{module}: the {name} has to be a Tensor, not {type(value).__name__}; "
                "wrap it in torch.tensor(...)"
            ) from None
        if home is not None and value.device != home.device:
            raise RuntimeError(
                f"{module}: the parameters are on {home.device} and the {name}, of "
                f"shape {[*value.shape]}, on {value.device}; bring them together, e.g. "
                f"with {name}.to('{home.device}')"
            ) from None
    if type(error) in (RuntimeError, ValueError, IndexError):
        raise type(error)(f"{module}: {error}") from None


def need_ints(module: Module, **sizes: Any) -> None:
    """Raise TypeError for a size that is not an int, by the name of the argument."""
    for name, size in sizes.items():
        if not hasattr(size, "__index__"):
            raise TypeError(
                f"{type(module).__name__}(): {name} is {size!r:.60} "
                f"({type(size).__name__}); give an int"
            )


class Layer(Module):
    """Base of layers with a weight and a bias, which may be None."""

    def _add_parameters(
        self, weight: Any, bias: Any, device: Any = None, dtype: Any = None
    ) -> None:
        """Register parameters of these shapes, or None, and initialize them."""
        for name, shape in (("weight", weight), ("bias", bias)):
            value = None
            if shape is not None:
                value = Parameter(_C.empty(shape, device=device, dtype=dtype))
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set weight to ones and bias to zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)
