"""Base of layers that take a size from their first input."""

from __future__ import annotations

from typing import Any

from pydevtensor.nn.modules._layer import Layer
from pydevtensor.nn.modules.module import Module
from pydevtensor.nn.parameter import UninitializedParameter, is_lazy


class Lazy(Layer):
    """Takes a size from its first input, then becomes an instance of _becomes.

    Instances of a program's own subclass keep their class.
    """

    _becomes: type[Any]

    def _make_lazy(self, bias: bool, device: Any, dtype: Any) -> None:
        made = {"device": device, "dtype": dtype}
        self.weight: Any = UninitializedParameter(**made)
        self.register_parameter(
            "bias", UninitializedParameter(**made) if bias else None
        )

    def has_uninitialized_params(self) -> bool:
        """Whether the first input is still to come."""
        own = (*self.parameters(False), *self.buffers(False))
        return any(is_lazy(value) for value in own)

    def reset_parameters(self) -> None:
        """Initialize weight and bias again, if their sizes are known."""
        if not self.has_uninitialized_params():
            super().reset_parameters()

    def _shapes_for(self, input: Any) -> dict[str, Any]:
        """Keep the size that an input has; returns the shapes of what is lazy."""
        raise NotImplementedError

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.has_uninitialized_params():
            for name, shape in self._shapes_for(args[0]).items():
                value = getattr(self, name)
                if is_lazy(value):
                    value.materialize(shape)
            self.reset_parameters()
        if "_becomes" in vars(type(self)):
            self.__class__ = self._becomes
        return Module.__call__(self, *args, **kwargs)
