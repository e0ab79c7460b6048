"""Modules that take a size from their first input."""

from __future__ import annotations

from typing import Any

from pydevtensor._names import publish as _publish
from pydevtensor.nn.modules._layer import Layer
from pydevtensor.nn.modules.module import Module
from pydevtensor.nn.parameter import UninitializedParameter, is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin(Module):
    """Base of modules whose parameters get their shapes in the first call.

    The constructor assigns UninitializedParameters. initialize_parameters(), which a
    subclass defines, gets the arguments of the first call and materializes them. Then
    the module is an instance of cls_to_become, if its own class names one.

    >>> isinstance(nn.LazyLinear(2), torch.nn.modules.lazy.LazyModuleMixin)
    True
    """

    cls_to_become: Any = None

    def has_uninitialized_params(self) -> bool:
        """Whether the first input is still to come."""
        own = (*self.parameters(False), *self.buffers(False))
        return any(is_lazy(value) for value in own)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialize what has no shape yet.

        args, kwargs  those of the first call
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no initialize_parameters(); define it"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.has_uninitialized_params():
            self.initialize_parameters(*args, **kwargs)
            if self.has_uninitialized_params():
                raise RuntimeError(
                    f"{type(self).__name__}.initialize_parameters() has left "
                    "parameters without a shape; materialize() all of them"
                )
        kind = vars(type(self)).get("cls_to_become")
        if kind is not None:
            self.__class__ = kind
        return Module.__call__(self, *args, **kwargs)


class Lazy(LazyModuleMixin, Layer):
    """Base of the lazy layers. Instances of a program's own subclass keep its class."""

    def _make_lazy(self, bias: bool, device: Any, dtype: Any) -> None:
        made = {"device": device, "dtype": dtype}
        self.weight: Any = UninitializedParameter(**made)
        self.register_parameter(
            "bias", UninitializedParameter(**made) if bias else None
        )

    def reset_parameters(self) -> None:
        """Initialize weight and bias again, if their sizes are known."""
        if not self.has_uninitialized_params():
            super().reset_parameters()

    def _shapes_for(self, input: Any) -> dict[str, Any]:
        """Keep the size that an input has; returns the shapes of what is lazy."""
        raise NotImplementedError

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        for name, shape in self._shapes_for(args[0]).items():
            value = getattr(self, name)
            if is_lazy(value):
                value.materialize(shape)
        self.reset_parameters()


_publish(__name__)
