"""Layers that normalize the channels of each sample."""

from __future__ import annotations

import warnings
from typing import Any

from pydevtensor.nn import functional as F
from pydevtensor.nn.modules._layer import explain
from pydevtensor.nn.modules.batchnorm import _LazyNorm, _NormBase

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(
    _NormBase,
    takes="num_features: int, eps, momentum: float = 0.1, affine: bool = False, "
    "track_running_stats: bool = False, device, dtype, *, bias",
):
    """Base of the layers that normalize each sample, or each of a batch (_dims).

    momentum             weight of a batch in the running statistics; None: they stay
    track_running_stats  keep running_mean and running_var in training, and use them
                         after eval()
    """

    def _channel_dim(self, input: Any) -> int:
        return 1 if input.ndim == self._dims[-1] else 0

    def forward(self, input: Any) -> Any:
        self._check_dims(input)
        dim = self._channel_dim(input)
        if input.shape[dim] != self.num_features:
            text = (
                f"{self}: expected input's size at dim={dim} to match num_features "
                f"({self.num_features}), but got: {input.shape[dim]}"
            )
            if self.affine:
                raise ValueError(text)
            warnings.warn(f"{text}; without parameters it has no effect", stacklevel=2)
        try:
            result = F.instance_norm(
                input if dim else input.unsqueeze(0),
                self.running_mean,
                self.running_var,
                self.weight,
                self.bias,
                self.training or not self.track_running_stats,
                0.0 if self.momentum is None else self.momentum,
                self.eps,
            )
        except Exception as error:
            explain(self, error, input=input)
            raise
        return result if dim else result.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """Normalizes each channel of each sample of (N, C, L) or (C, L).

    Raises ValueError for another number of dimensions and for one element a channel.

    >>> nn.InstanceNorm1d(1)(torch.tensor([[[1.0, 3.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """

    _dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalizes each channel of each sample of (N, C, H, W), as InstanceNorm1d.

    >>> nn.InstanceNorm2d(3)(torch.rand(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    _dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalizes each channel of each sample of (N, C, D, H, W), as InstanceNorm1d.

    >>> nn.InstanceNorm3d(3)(torch.rand(2, 3, 4, 4, 4)).shape
    torch.Size([2, 3, 4, 4, 4])
    """

    _dims = (4, 5)


class LazyInstanceNorm1d(_LazyNorm, _InstanceNorm):
    """An InstanceNorm1d that takes num_features from its first input.

    >>> nn.LazyInstanceNorm1d()(torch.rand(2, 3, 4)).shape
    torch.Size([2, 3, 4])
    """

    _dims = (2, 3)
    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, _InstanceNorm):
    """An InstanceNorm2d that takes num_features from its first input.

    >>> nn.LazyInstanceNorm2d()(torch.rand(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    _dims = (3, 4)
    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, _InstanceNorm):
    """An InstanceNorm3d that takes num_features from its first input.

    >>> nn.LazyInstanceNorm3d()(torch.rand(2, 3, 4, 4, 4)).shape
    torch.Size([2, 3, 4, 4, 4])
    """

    _dims = (4, 5)
    cls_to_become = InstanceNorm3d
