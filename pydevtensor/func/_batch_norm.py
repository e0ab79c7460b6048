"""Batch normalization without running statistics, and functionalize()."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pydevtensor as torch


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let the batch normalizations of a module keep no running statistics.

    vmap() and the gradients of samples need that, since a statistic is written in
    place. Returns root, which is changed.

    root  the module; itself may be one

    >>> net = nn.Sequential(nn.BatchNorm1d(2))
    >>> torch.func.replace_all_batch_norm_modules_(net)[0].running_mean is None
    True
    """
    for module in root.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.running_mean = module.running_var = None
            module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def functionalize(
    func: Callable[..., Any], *, remove: str = "mutations"
) -> Callable[..., Any]:
    """func itself: PyTorch takes writes in place out of what a compiler sees.

    func    a function of Tensors
    remove  of no effect: 'mutations' or 'mutations_and_views', else RuntimeError

    >>> torch.func.functionalize(lambda x: x.add_(1))(torch.ones(1))
    tensor([2.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"remove is {remove!r}; give 'mutations' or 'mutations_and_views'"
        )
    return func
