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


def _refuse(module: Module, name: str, value: Any) -> None:
    raise TypeError(
        f"{module}: the {name} has to be a Tensor, not {type(value).__name__}; wrap it "
        "in torch.tensor(...)"
    )


def _check(module: Module, **inputs: Any) -> None:
    """Inputs are Tensors where the module's first parameter or buffer is."""
    home = next(itertools.chain(module.parameters(False), module.buffers(False)), None)
    for name, value in inputs.items():
        if not isinstance(value, _C.Tensor):
            _refuse(module, name, value)
        if home is not None and value.device != home.device:
            raise RuntimeError(
                f"{module}: the parameters are on {home.device} and the {name}, of "
                f"shape {[*value.shape]}, on {value.device}; bring them together, e.g. "
                f"with {name}.to('{home.device}')"
            )


class Identity(Module):
    """Gives its input back; takes any arguments.

    >>> nn.Identity()(torch.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """The input."""
        return input


class Linear(Module):
    """x @ weight.T + bias, from in_features to out_features in the last dimension.

    (..., in_features) to (..., out_features), in the type of weight. Both start uniform
    between -k and k, k = 1 / sqrt(in_features). RuntimeError where the last size
    differs or the input is on another device.

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
        self.weight = Parameter(
            _C.empty(out_features, in_features, device=device, dtype=dtype)
        )
        if bias:
            self.bias = Parameter(_C.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Any) -> Any:
        """(..., in_features) to (..., out_features)."""
        weight = self.weight
        if not isinstance(input, _C.Tensor):
            _refuse(self, "input", input)
        if not input.ndim or input.shape[-1] != weight.shape[1]:
            raise RuntimeError(
                f"{self}: the input has shape {[*input.shape]}; its last size has to "
                f"be {weight.shape[1]}"
            )
        if input.device != weight.device:
            raise RuntimeError(
                f"{self}: the parameters are on {weight.device} and the input, of "
                f"shape {[*input.shape]}, on {input.device}; bring them together, e.g. "
                f"with input.to('{weight.device}')"
            )
        return F.linear(input, weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class LazyLinear(Linear):
    """A Linear whose in_features the first input tells, after which it is a Linear.

    Until then its parameters have no shape, and asking for it is a RuntimeError.

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
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)
        else:
            self.register_parameter("bias", None)

    def has_uninitialized_params(self) -> bool:
        """Whether the first input is still to come."""
        return any(is_lazy(parameter) for parameter in self.parameters(False))

    def reset_parameters(self) -> None:
        """Draws weight and bias anew, once the sizes are known."""
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
            with _C_no_grad():
                self.reset_parameters()
        if type(self) is LazyLinear:
            self.__class__ = Linear  # type: ignore[assignment]
        return Module.__call__(self, *args, **kwargs)

    def _load_one(self, name: str, value: Any, given: Any, assign: bool) -> None:
        super()._load_one(name, value, given, assign)
        if name == "weight":
            self.in_features = given.shape[1]


_C_no_grad = F._without_grad


class Bilinear(Module):
    """x1 A x2 + bias, with one matrix A for each of out_features.

    (..., in1_features) and (..., in2_features) to (..., out_features); weight is
    (out_features, in1_features, in2_features). RuntimeError where sizes differ.

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
        self.weight = Parameter(
            _C.empty(
                out_features, in1_features, in2_features, device=device, dtype=dtype
            )
        )
        if bias:
            self.bias = Parameter(_C.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew, uniform within 1 / sqrt(in1_features)."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Any, input2: Any) -> Any:
        """(..., in1) and (..., in2) to (..., out)."""
        _check(self, input1=input1, input2=input2)
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class Flatten(Module):
    """The dimensions from start_dim to end_dim as one; by default all but the first.

    >>> nn.Flatten()(torch.ones(5, 2, 3)).shape
    torch.Size([5, 6])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Any) -> Any:
        """The input, flattened."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The dimensions."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Dimension dim as several, of sizes unflattened_size, one of which may be -1.

    RuntimeError where the sizes do not make up the dimension's.

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
        """The input with more dimensions."""
        shape, ndim = [*input.shape], input.ndim
        if not -ndim <= self.dim < ndim:
            raise IndexError(
                f"{self}: the input has {ndim} dimensions; dim has to be from {-ndim} "
                f"to {ndim - 1}"
            )
        at, sizes = self.dim % ndim, [*self.unflattened_size]
        known = math.prod(size for size in sizes if size != -1)
        fits = sizes.count(-1) < 2 and known > 0
        if not fits or (shape[at] % known if -1 in sizes else shape[at] != known):
            raise RuntimeError(
                f"{self}: dimension {at} of the input of shape {shape} does not split "
                f"into {sizes}"
            )
        return input.reshape(shape[:at] + sizes + shape[at + 1 :])

    def extra_repr(self) -> str:
        """The dimension and the sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Dropout(Module):
    """Zeroes elements with probability p in training, and scales the others.

    Any shape; the others are divided by 1 - p, so the mean stays. After eval() it gives
    its input back. ValueError for a p that is not between 0 and 1.

    >>> nn.Dropout(0.5).eval()(torch.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(
                f"dropout probability has to be between 0 and 1, but got {p}"
            )
        self.p = p
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """The input with elements zeroed."""
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}, inplace={self.inplace}"


class LayerNorm(Module):
    """The last dimensions, of shape normalized_shape, to mean 0 and variance 1.

    Then times weight plus bias, both of that shape, where elementwise_affine (bias:
    where bias, too). RuntimeError where the input ends in another shape.

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
        self.normalized_shape = (
            (normalized_shape,) if whole else tuple(normalized_shape)
        )
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in (("weight", True), ("bias", bias)):
            if elementwise_affine and wanted:
                value = _C.empty(self.normalized_shape, device=device, dtype=dtype)
                self.register_parameter(name, Parameter(value))
            else:
                self.register_parameter(name, None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight to ones, bias to zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Any) -> Any:
        """The input, normalised."""
        _check(self, input=input)
        return F.layer_norm(
            input, self.normalized_shape, self.weight, self.bias, self.eps
        )

    def extra_repr(self) -> str:
        """Shape and constants."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class _BatchNorm(Module):
    """Each channel (dimension 1) to mean 0 and variance 1."""

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
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            value = (
                _C.empty(num_features, device=device, dtype=dtype) if wanted else None
            )
            self.register_parameter(name, None if value is None else Parameter(value))
        if track_running_stats:
            self.register_buffer(
                "running_mean", _C.zeros(num_features, device=device, dtype=dtype)
            )
            self.register_buffer(
                "running_var", _C.ones(num_features, device=device, dtype=dtype)
            )
            self.register_buffer(
                "num_batches_tracked", _C.tensor(0, dtype=_C.int64, device=device)
            )
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Means to 0, variances to 1, the count of batches to 0."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Statistics as at the start, weight to ones, bias to zeros."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Any) -> Any:
        """The input, normalised."""
        _check(self, input=input)
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
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / self.num_batches_tracked.item()
        by_batch = self.training or self.running_mean is None
        keeps = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if keeps else None,
            self.running_var if keeps else None,
            self.weight,
            self.bias,
            by_batch,
            momentum,
            self.eps,
        )

    def extra_repr(self) -> str:
        """Sizes and constants."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Each channel of (N, C) or (N, C, L) to mean 0 and variance 1.

    In training by the batch's own figures, which running_mean and running_var follow
    with momentum (None: their average); after eval() by those. ValueError for another
    number of dimensions, or for one value a channel in training.

    >>> norm = nn.BatchNorm1d(1)
    >>> norm(torch.tensor([[1.0], [3.0]])).detach()
    tensor([[-1.0000],
            [ 1.0000]])
    >>> norm.running_mean, norm.num_batches_tracked
    (tensor([0.2000]), tensor(1))
    """

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Each channel of (N, C, H, W) to mean 0 and variance 1; as BatchNorm1d.

    >>> nn.BatchNorm2d(3)(torch.rand(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    _dims = (4,)
