"""torchvision.ops.misc: a layer of normalization that does not learn."""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor._names import publish as _publish

__all__ = ["FrozenBatchNorm2d"]


class FrozenBatchNorm2d(nn.Module):
    """BatchNorm2d with fixed statistics, weight and bias: (N, C, H, W) to the same.

    All four are buffers, so they are saved and no optimizer changes them.

    num_features  the number of channels C
    eps           what is added to the variance

    >>> torch.vision.ops.misc.FrozenBatchNorm2d(3)(torch.ones(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    def __init__(self, num_features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        for name in ("weight", "bias", "running_mean", "running_var"):
            fill = torch.ones if name in ("weight", "running_var") else torch.zeros
            self.register_buffer(name, fill(num_features))

    def _load_from_state_dict(self, state: Any, prefix: str, *rest: Any) -> None:
        state.pop(prefix + "num_batches_tracked", None)  # BatchNorm2d's
        super()._load_from_state_dict(state, prefix, *rest)

    def forward(self, x: Any) -> Any:
        return nn.functional.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
        )

    def extra_repr(self) -> str:
        return f"{len(self.weight)}, eps={self.eps}"


_publish(__name__)
