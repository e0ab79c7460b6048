"""Hooks that make the mean of all ranks' gradients, in fewer bits where asked to.

Each takes the state that register_comm_hook() was given, which for these is the group
of ranks, process_group (None: all), and the bucket of gradients to send.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydevtensor import _C
from pydevtensor._names import publish as _publish
from pydevtensor.distributed._collectives import all_reduce
from pydevtensor.distributed._grad_bucket import GradBucket
from pydevtensor.distributed._groups import get_world_size
from pydevtensor.futures import Future

__all__ = ["allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper"]
__all__ += ["fp16_compress_hook", "fp16_compress_wrapper"]

Tensor = _C.Tensor
Hook = Callable[[Any, GradBucket], Future[Tensor]]


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The mean of the gradients of all ranks of process_group, in place.

    bucket: what DistributedDataParallel hands over. The same as without a hook.

    >>> dist = torch.distributed
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    >>> hooks = dist.algorithms.ddp_comm_hooks.default_hooks
    >>> model.register_comm_hook(None, hooks.allreduce_hook)
    >>> model(torch.ones(3, 2)).sum().backward()
    >>> model.module.weight.grad
    tensor([[3., 3.]])
    >>> dist.destroy_process_group()
    """
    mean = bucket.buffer().div_(get_world_size(process_group))
    work = all_reduce(mean, group=process_group, async_op=True)
    assert work
    return work.get_future().then(lambda done: done.value()[0])


def _compress(dtype: Any, hook: Hook) -> Hook:
    """A hook that gives `hook` the gradients in a type of fewer bits."""

    def compressing(state: Any, bucket: GradBucket) -> Future[Tensor]:
        whole = bucket.buffer()
        bucket.set_buffer(whole.to(dtype))
        return hook(state, bucket).then(lambda done: whole.copy_(done.value()))

    return compressing


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The mean of the gradients of all ranks of process_group, sent as float16.

    bucket: what DistributedDataParallel hands over. Gradients above 65504 become
    infinite.

    >>> dist = torch.distributed
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    >>> hooks = dist.algorithms.ddp_comm_hooks.default_hooks
    >>> model.register_comm_hook(None, hooks.fp16_compress_hook)
    >>> model(torch.ones(3, 2)).sum().backward()
    >>> model.module.weight.grad
    tensor([[3., 3.]])
    >>> dist.destroy_process_group()
    """
    return _compress(_C.float16, allreduce_hook)(process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The mean of the gradients of all ranks of process_group, sent as bfloat16.

    bucket: what DistributedDataParallel hands over.

    >>> dist = torch.distributed
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    >>> hooks = dist.algorithms.ddp_comm_hooks.default_hooks
    >>> model.register_comm_hook(None, hooks.bf16_compress_hook)
    >>> model(torch.ones(3, 2)).sum().backward()
    >>> model.module.weight.grad
    tensor([[3., 3.]])
    >>> dist.destroy_process_group()
    """
    return _compress(_C.bfloat16, allreduce_hook)(process_group, bucket)


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that calls `hook` with the gradients as float16.

    >>> hooks = torch.distributed.algorithms.ddp_comm_hooks.default_hooks
    >>> hook = hooks.fp16_compress_wrapper(hooks.allreduce_hook)
    """
    return _compress(_C.float16, hook)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that calls `hook` with the gradients as bfloat16.

    >>> hooks = torch.distributed.algorithms.ddp_comm_hooks.default_hooks
    >>> hook = hooks.bf16_compress_wrapper(hooks.allreduce_hook)
    """
    return _compress(_C.bfloat16, hook)


_publish(__name__)
