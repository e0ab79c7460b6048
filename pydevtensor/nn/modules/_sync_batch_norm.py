"""The mean and variance of channels over the batches of all ranks."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor import distributed as dist
from pydevtensor.autograd import Function

Tensor = _C.Tensor


class _Gather(Function):
    """A tensor of every rank, in rows. A rank's gradient is the sum over all ranks'."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: Any) -> Tensor:
        ctx.group = group
        rows = _C.empty(
            (dist.get_world_size(group), *tensor.shape),
            dtype=tensor.dtype,
            device=tensor.device,
        )
        dist.all_gather_into_tensor(rows, tensor, group)
        return rows

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        total = gradient.contiguous()
        if total is gradient:
            total = gradient.clone()
        dist.all_reduce(total, group=ctx.group)
        return total[dist.get_rank(ctx.group)], None


def statistics(input: Tensor, group: Any) -> tuple[Tensor, Tensor, float]:
    """Mean and biased variance of each channel, and the number of its values.

    In float32 for halves. Ranks may have batches of different sizes, and none.
    """
    # Chan, Golub, LeVeque: Updating Formulae and a Pairwise Algorithm for Computing
    # Sample Variances (1979): the ranks' means and variances give those of all.
    wide = input.float() if input.dtype.itemsize == 2 else input
    dims = [0, *range(2, input.ndim)]
    channels = input.shape[1]
    count = input.numel() // channels
    # Without values too, it has a history: all ranks meet in the backward pass.
    mean = wide.sum(dims) / max(count, 1)
    apart = wide - mean.view(1, -1, *[1] * (input.ndim - 2))
    mine = _C.stack([mean, apart.square().sum(dims) / max(count, 1)])
    row = _C.cat([mine.reshape(-1), mine.new_full((1,), float(count))])
    rows = _Gather.apply(row, group)
    counts = rows[:, -1:].detach()
    total = counts.sum()
    means, spreads = rows[:, :channels], rows[:, channels:-1]
    share = counts / total
    mean = (means * share).sum(0)
    variance = ((spreads + (means - mean).square()) * share).sum(0)
    return mean, variance, float(total.item())
