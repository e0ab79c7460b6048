"""Layers that normalize channels over a batch."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor.nn import functional as F
from pydevtensor.nn.modules._layer import Layer, Parametrized, explain
from pydevtensor.nn.modules.lazy import Lazy
from pydevtensor.nn.parameter import (
    UninitializedBuffer,
    UninitializedParameter,
    is_lazy,
)

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]


class _NormBase(
    Layer,
    takes="num_features: int, eps, momentum: float | None = 0.1, affine: bool = True, "
    "track_running_stats: bool = True, device, dtype, bias",
):
    """Channels, their running statistics and their parameters.

    num_features         C, the number of channels
    eps                  added to the variance, against a division by 0
    affine               whether there are a weight and a bias
    track_running_stats  keep running statistics, for eval()
    bias                 whether there is a bias, if affine
    """

    _ints = ("num_features",)
    _repr = "num_features eps= momentum= affine= bias= track_running_stats="

    _dims: tuple[int, ...] = ()
    _version = 2  # since PyTorch counts batches
    num_features: int

    def _make(self, *, device: Any, dtype: Any, bias: Any, **options: Any) -> None:
        Parametrized._make(self, **options)
        size = self.num_features if self.track_running_stats else None
        made = {"device": device, "dtype": dtype}
        for name in ("running_mean", "running_var"):
            buffer = None if size is None else _C.empty(size, **made)
            self.register_buffer(name, buffer)
        count = None if size is None else _C.tensor(0, device=device)
        self.register_buffer("num_batches_tracked", count)
        shape = self.num_features if self.affine else None
        self._add({"weight": shape, "bias": shape if bias else None}, **made)
        self.reset_parameters()

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

    def _check_dims(self, input: Any) -> None:
        if input.ndim not in self._dims:
            wanted = " or ".join(f"{d}D" for d in self._dims)
            raise ValueError(
                f"{self}: expected {wanted} input (got {input.ndim}D input)"
            )


class _BatchNorm(_NormBase):
    """Base of the layers that normalize over a batch.

    momentum  weight of a batch in the running statistics; None: their plain mean
    """

    def _check_shape(self, input: Any) -> None:
        self._check_dims(input)
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
            explain(self, error, input=input)
            raise
        if tracks:
            self.num_batches_tracked.add_(1)
        return result


class BatchNorm1d(_BatchNorm):
    """Normalizes each channel of (N, C) or (N, C, L).

    In training with the batch's statistics, which also update running_mean and
    running_var; after eval() with those. Raises ValueError for another number of
    dimensions, and in training for one value per channel. See also LayerNorm, which
    needs no batch.

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


class BatchNorm3d(_BatchNorm):
    """Normalizes each channel of (N, C, D, H, W), as BatchNorm1d.

    >>> nn.BatchNorm3d(3)(torch.rand(2, 3, 4, 4, 4)).shape
    torch.Size([2, 3, 4, 4, 4])
    """

    _dims = (5,)


class _LazyNorm(
    Lazy,
    _NormBase,
    takes="eps, momentum: float | None = 0.1, affine: bool = True, "
    "track_running_stats: bool = True, device, dtype, *, bias",
):
    """Takes num_features from its first input."""

    def _make(
        self, *, affine: Any, device: Any, dtype: Any, bias: Any, **options: Any
    ) -> None:
        made = {"device": device, "dtype": dtype}
        options = {"num_features": 0, "affine": False, "bias": True, **options}
        super()._make(**options, **made)
        self.affine = affine
        if affine:
            self.weight: Any = UninitializedParameter(**made)
            if bias:
                self.bias: Any = UninitializedParameter(**made)
        if self.track_running_stats:
            self.running_mean: Any = UninitializedBuffer(**made)
            self.running_var: Any = UninitializedBuffer(**made)

    def _shapes_for(self, input: Any) -> dict[str, Any]:
        self._check_dims(input)
        self.num_features = input.shape[self._channel_dim(input)]
        names = ("weight", "bias", "running_mean", "running_var")
        return dict.fromkeys(names, (self.num_features,))

    def _channel_dim(self, input: Any) -> int:
        return 1

    def _load_one(self, name: str, value: Any, given: Any, assign: bool) -> None:
        super()._load_one(name, value, given, assign)
        if is_lazy(value) or name in ("weight", "running_mean"):
            self.num_features: int = given.shape[0]


class LazyBatchNorm1d(_LazyNorm, _BatchNorm):
    """A BatchNorm1d that takes num_features from its first input.

    >>> norm = nn.LazyBatchNorm1d()
    >>> norm(torch.rand(4, 3)).shape
    torch.Size([4, 3])
    >>> norm.num_features
    3
    """

    _dims = (2, 3)
    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, _BatchNorm):
    """A BatchNorm2d that takes num_features from its first input.

    >>> norm = nn.LazyBatchNorm2d()
    >>> norm(torch.rand(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    _dims = (4,)
    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, _BatchNorm):
    """A BatchNorm3d that takes num_features from its first input.

    >>> norm = nn.LazyBatchNorm3d()
    >>> norm(torch.rand(2, 3, 4, 4, 4)).shape
    torch.Size([2, 3, 4, 4, 4])
    """

    _dims = (5,)
    cls_to_become = BatchNorm3d


class SyncBatchNorm(
    _BatchNorm,
    takes="num_features: int, eps, momentum: float | None = 0.1, affine: bool = True, "
    "track_running_stats: bool = True, process_group: Any = None, device, dtype, *, "
    "bias",
):
    """Normalizes each channel of (N, C, ...) over the batches of all ranks.

    process_group  the ranks that share statistics; None: all

    In training, mean and variance are those of the batches of all ranks, also for
    gradients. Before init_process_group(), and after eval(), as BatchNorm1d. Raises
    ValueError for fewer than two dimensions.

    >>> norm = nn.SyncBatchNorm(1)
    >>> norm(torch.tensor([[1.0], [3.0]])).detach()
    tensor([[-1.0000],
            [ 1.0000]])
    """

    def _make(self, *, process_group: Any, **options: Any) -> None:
        super()._make(**options)
        self.process_group = process_group

    def _check_dims(self, input: Any) -> None:
        if input.ndim < 2:
            raise ValueError(f"{self}: expected at least 2D input (got {input.ndim}D)")

    def forward(self, input: Any) -> Any:
        from pydevtensor import distributed as dist

        alone = not self.training or not dist.is_initialized()
        if alone or dist.get_world_size(self.process_group) < 2:
            return super().forward(input)
        from pydevtensor.nn.modules._sync_batch_norm import statistics

        self._check_shape(input)
        mean, variance, count = statistics(input, self.process_group)
        if self.track_running_stats:
            self._track(mean.detach(), variance.detach() * count / max(count - 1, 1))
        shape = (1, -1, *[1] * (input.ndim - 2))
        scale = (variance + self.eps).rsqrt()
        if self.weight is not None:
            scale = scale * self.weight
        result = (input - mean.view(shape)) * scale.view(shape)
        if self.bias is not None:
            result = result + self.bias.view(shape)
        return result.to(input.dtype)

    def _track(self, mean: Any, variance: Any) -> None:
        """Move the running statistics towards those of a batch."""
        self.num_batches_tracked.add_(1)
        weight = self.momentum
        if weight is None:
            weight = 1 / self.num_batches_tracked.item()
        for kept, new in ((self.running_mean, mean), (self.running_var, variance)):
            kept.mul_(1 - weight).add_(new.to(kept.dtype), alpha=weight)

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """The module with a SyncBatchNorm in the place of each BatchNorm.

        module         a Module; the modules in it are replaced where they are
        process_group  the ranks that share statistics; None: all

        The new layers have the parameters and buffers of the old ones.

        >>> net = nn.Sequential(nn.BatchNorm2d(3))
        >>> type(nn.SyncBatchNorm.convert_sync_batchnorm(net)[0]).__name__
        'SyncBatchNorm'
        """
        for name, child in module.named_children():
            setattr(module, name, cls.convert_sync_batchnorm(child, process_group))
        if not isinstance(module, _BatchNorm) or isinstance(module, cls):
            return module
        made = cls(
            module.num_features,
            module.eps,
            module.momentum,
            module.affine,
            module.track_running_stats,
            process_group,
        )
        for name in ("weight", "bias", *dict(module.named_buffers())):
            setattr(made, name, getattr(module, name))
        return made.train(module.training)
