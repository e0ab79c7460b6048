"""Parameter, Buffer and their uninitialized forms."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor._kinds import is_distributed
from pydevtensor.autograd.variable import detached


class Parameter(_C.Tensor):
    """A Tensor that a Module registers as a parameter when it is assigned to it.

    data           the Tensor, whose memory it shares, detached; an empty one by
                   default; AttributeError if it is not a Tensor
    requires_grad  whether gradients are computed for it

    >>> nn.Parameter(torch.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    __torch_function__ = _C._disabled_torch_function_impl

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        whole = detached("Parameter", data, AttributeError)
        if cls is Parameter and is_distributed(whole):
            return whole._as_parameter(cls, requires_grad)
        return _C._make_subclass(cls, whole, requires_grad)

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __deepcopy__(self, memo: dict[Any, Any]) -> Parameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.detach(), self.requires_grad)


def _rebuild(cls: type[Any], data: Any, requires_grad: bool) -> Any:
    return _C._make_subclass(cls, data, requires_grad)


class Buffer(_C.Tensor):
    """A Tensor that a Module registers as a buffer when it is assigned to it.

    data        the Tensor, whose memory it shares; an empty one by default
    persistent  whether it is part of the state_dict

    >>> net = nn.Module()
    >>> net.mean = nn.Buffer(torch.zeros(2))
    >>> [*net.state_dict()]
    ['mean']
    """

    __torch_function__ = _C._disabled_torch_function_impl

    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Buffer:
        if data is None:
            data = _C.empty(0)
        made = _C._make_subclass(cls, data.detach(), data.requires_grad)
        made.persistent = persistent
        return made


class UninitializedTensorMixin(_C.Tensor):
    """A parameter or buffer without a shape until the first input."""

    __torch_function__ = _C._disabled_torch_function_impl

    _kind = ""
    _known: type[Any] = _C.Tensor  # what it becomes

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    @property
    def shape(self) -> Any:
        """Raises RuntimeError: there is no shape yet."""
        raise RuntimeError(
            f"this {self._kind} has no shape yet; call the module once, which sets it"
        )

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return memo[id(self)]

    def materialize(
        self, shape: tuple[int, ...], device: Any = None, dtype: Any = None
    ) -> None:
        """Become a Parameter, or a Tensor, of that shape with undefined values.

        shape          sizes, a tuple of ints
        device, dtype  of the values; those given before by default
        """
        self.data = _C.empty(
            shape, device=device or self.device, dtype=dtype or self.dtype
        )
        self.__class__ = self._known


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape depends on the first input.

    See also materialize(), which gives it a shape.

    requires_grad  whether gradients will be computed for it
    device, dtype  of the values that it will have

    >>> nn.LazyLinear(2).weight
    <UninitializedParameter>
    """

    _kind, _known = "parameter", Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> Any:
        data = _C.empty(0, device=device, dtype=dtype)
        return _C._make_subclass(cls, data, requires_grad)


class UninitializedBuffer(UninitializedTensorMixin):
    """A buffer whose shape depends on the first input.

    See also materialize(), which gives it a shape.

    requires_grad  whether gradients will be computed for it
    device, dtype  of the values that it will have

    >>> nn.LazyBatchNorm1d().running_mean
    <UninitializedBuffer>
    """

    _kind = "buffer"

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None
    ) -> Any:
        data = _C.empty(0, device=device, dtype=dtype)
        return _C._make_subclass(cls, data, requires_grad)


def is_lazy(value: Any) -> bool:
    """Whether value is an UninitializedParameter or an UninitializedBuffer.

    >>> nn.parameter.is_lazy(nn.LazyLinear(2).weight)
    True
    """
    return isinstance(value, (UninitializedParameter, UninitializedBuffer))


__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter"]
__all__ += ["is_lazy"]
