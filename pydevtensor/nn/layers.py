"""Layers with parameters, and those that change shapes."""

from __future__ import annotations

import itertools
import math
from typing import Any

from pydevtensor import _C
from pydevtensor.nn import functional as F
from pydevtensor.nn import init
from pydevtensor.nn.module import Module
from pydevtensor.nn.parameter import Parameter, UninitializedParameter, is_lazy


def _explain(module: Module, error: Exception, **inputs: Any) -> None:
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


class Identity(Module):
    """Returns its input; accepts any arguments.

    >>> nn.Identity()(torch.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class _Layer(Module):
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


class Linear(_Layer):
    """x @ weight.T + bias, from (..., in_features) to (..., out_features).

    weight and bias start uniform between -k and k, k = 1 / sqrt(in_features). Raises
    RuntimeError for another last size, dtype or device.

    >>> nn.Linear(3, 2)(torch.ones(5, 4, 3)).shape
    torch.Size([5, 4, 2])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        shape = out_features, in_features
        self._add_parameters(shape, shape[:1] if bias else None, device, dtype)

    def reset_parameters(self) -> None:
        """Initialize weight and bias again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Any) -> Any:
        try:
            return F.linear(input, self.weight, self.bias)
        except Exception as error:
            _explain(self, error, input=input)
            raise

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class LazyLinear(Linear):
    """A Linear that takes in_features from its first input, then becomes a Linear.

    Until then its parameters have no shape, and reading it raises RuntimeError.

    >>> net = nn.LazyLinear(2)
    >>> net(torch.ones(4, 3)).shape
    torch.Size([4, 2])
    >>> net
    Linear(in_features=3, out_features=2, bias=True)
    """

    def __init__(
        self,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        Module.__init__(self)
        self.in_features = 0
        self.out_features = out_features
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        lazy = UninitializedParameter(device=device, dtype=dtype) if bias else None
        self.register_parameter("bias", lazy)

    def has_uninitialized_params(self) -> bool:
        """Whether the first input is still to come."""
        return any(is_lazy(parameter) for parameter in self.parameters(False))

    def reset_parameters(self) -> None:
        """Initialize weight and bias again, if their sizes are known."""
        if not is_lazy(self.weight):
            super().reset_parameters()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        lazy: Any = self.weight
        if is_lazy(lazy):
            self.in_features = args[0].shape[-1]
            lazy.materialize((self.out_features, self.in_features))
            lazy = self.bias
            if lazy is not None:
                lazy.materialize((self.out_features,))
            self.reset_parameters()
        if type(self) is LazyLinear:
            self.__class__ = Linear  # type: ignore[assignment]
        return Module.__call__(self, *args, **kwargs)

    def _load_one(self, name: str, value: Any, given: Any, assign: bool) -> None:
        super()._load_one(name, value, given, assign)
        if name == "weight":
            self.in_features = given.shape[1]


class Bilinear(_Layer):
    """x1 @ A @ x2 + bias, with one matrix A for each of out_features.

    From (..., in1_features) and (..., in2_features) to (..., out_features); weight has
    shape (out_features, in1_features, in2_features).

    >>> nn.Bilinear(3, 4, 2)(torch.ones(5, 3), torch.ones(5, 4)).shape
    torch.Size([5, 2])
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        shape = out_features, in1_features, in2_features
        self._add_parameters(shape, shape[:1] if bias else None, device, dtype)

    def reset_parameters(self) -> None:
        """Initialize weight and bias, uniform within 1 / sqrt(in1_features)."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Any, input2: Any) -> Any:
        try:
            return F.bilinear(input1, input2, self.weight, self.bias)
        except Exception as error:
            _explain(self, error, input1=input1, input2=input2)
            raise

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class Flatten(Module):
    """Merges the dimensions start_dim to end_dim, by default all but the first.

    >>> nn.Flatten()(torch.ones(5, 2, 3)).shape
    torch.Size([5, 6])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Any) -> Any:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits dimension dim into unflattened_size, one size of which may be -1.

    Raises RuntimeError if the sizes do not multiply to the dimension's.

    >>> nn.Unflatten(1, (2, 3))(torch.ones(4, 6)).shape
    torch.Size([4, 2, 3])
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                "unflattened_size must be a tuple of ints, but found type "
                f"{type(unflattened_size).__name__}"
            )
        for i, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, but found element of type "
                    f"{type(size).__name__} at pos {i}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Any) -> Any:
        try:
            return input.unflatten(self.dim, self.unflattened_size)
        except Exception as error:
            _explain(self, error, input=input)
            raise

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Dropout(Module):
    """Zeroes elements with probability p in training, divides the others by 1 - p.

    After eval() it returns its input. Raises ValueError for a p outside 0 to 1.

    >>> nn.Dropout(0.5).eval()(torch.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        F._check_probability(p)
        self.p = p
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class LayerNorm(_Layer):
    """Normalizes over the last dimensions, whose shape is normalized_shape.

    With elementwise_affine the result is multiplied by weight and, with bias, bias is
    added, both of that shape. Raises RuntimeError if input's shape ends differently.

    >>> nn.LayerNorm(2)(torch.tensor([[1.0, 3.0]])).detach()
    tensor([[-1.0000,  1.0000]])
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        whole = isinstance(normalized_shape, int)
        shape = (normalized_shape,) if whole else tuple(normalized_shape)
        self.normalized_shape = shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._add_parameters(
            shape if elementwise_affine else None,
            shape if elementwise_affine and bias else None,
            device,
            dtype,
        )

    def forward(self, input: Any) -> Any:
        shape = self.normalized_shape
        try:
            return F.layer_norm(input, shape, self.weight, self.bias, self.eps)
        except Exception as error:
            _explain(self, error, input=input)
            raise

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class _BatchNorm(_Layer):
    _dims: tuple[int, ...] = ()
    _version = 2  # since PyTorch counts batches

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        made = {"device": device, "dtype": dtype}
        for name in ("running_mean", "running_var"):
            buffer = _C.empty(num_features, **made) if track_running_stats else None
            self.register_buffer(name, buffer)
        count = _C.tensor(0, device=device) if track_running_stats else None
        self.register_buffer("num_batches_tracked", count)
        shape = num_features if affine else None
        self._add_parameters(shape, shape if bias else None, **made)

    def reset_running_stats(self) -> None:
        """Set the means and the number of batches to 0, the variances to 1."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Reset the statistics, set weight to ones and bias to zeros."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_shape(self, input: Any) -> None:
        if input.ndim not in self._dims:
            wanted = " or ".join(f"{d}D" for d in self._dims)
            raise ValueError(
                f"{self}: expected {wanted} input (got {input.ndim}D input)"
            )
        if input.shape[1] != self.num_features:
            raise RuntimeError(
                f"{self}: the input of shape {[*input.shape]} has {input.shape[1]} "
                f"channels in dimension 1; it has to have {self.num_features}"
            )

    def forward(self, input: Any) -> Any:
        if isinstance(input, _C.Tensor):
            self._check_shape(input)
        tracks = self.training and self.track_running_stats
        momentum = self.momentum
        if momentum is None:  # the average of all batches
            count = self.num_batches_tracked
            momentum = 1 / (count.item() + 1) if tracks and count is not None else 0.0
        keeps = tracks or not self.training
        try:
            result = F.batch_norm(
                input,
                self.running_mean if keeps else None,
                self.running_var if keeps else None,
                self.weight,
                self.bias,
                self.training or self.running_mean is None,
                momentum,
                self.eps,
            )
        except Exception as error:
            _explain(self, error, input=input)
            raise
        if tracks:
            self.num_batches_tracked.add_(1)
        return result

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Normalizes each channel of (N, C) or (N, C, L).

    In training with the batch's statistics, with which running_mean and running_var are
    updated by momentum (None: their average over all batches); after eval() with those.
    Raises ValueError for another number of dimensions, and in training for one value
    per channel.

    >>> norm = nn.BatchNorm1d(1)
    >>> norm(torch.tensor([[1.0], [3.0]])).detach()
    tensor([[-1.0000],
            [ 1.0000]])
    >>> norm.running_mean, norm.num_batches_tracked
    (tensor([0.2000]), tensor(1))
    """

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalizes each channel of (N, C, H, W), as BatchNorm1d.

    >>> nn.BatchNorm2d(3)(torch.rand(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    _dims = (4,)
