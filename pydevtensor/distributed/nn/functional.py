"""Calls of all ranks that gradients pass through, by calls in the other direction.

The loss is the sum of the ranks' losses: `all_reduce(x)` of a rank has the sum of all
ranks' gradients. All ranks have to make the backward pass, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pydevtensor import _C
from pydevtensor import distributed as dist
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import Function

__all__ = ["all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast"]
__all__ += ["gather", "reduce", "reduce_scatter", "scatter"]

Tensor = _C.Tensor
ReduceOp = dist.ReduceOp


class _Through(Function):
    """run() of tensors, and back() of the results' gradients."""

    @staticmethod
    def forward(ctx: Any, run: Any, back: Any, *tensors: Tensor) -> Any:
        ctx.back = back
        return run(*tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        found = ctx.back(*gradients)
        return None, None, *(found if isinstance(found, tuple) else (found,))


def _through(run: Callable[..., Any], back: Callable[..., Any], *given: Tensor) -> Any:
    return _Through.apply(run, back, *given)


def _summed(op: str) -> str:
    """op, where it has a gradient."""
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise RuntimeError(
            f"op is {op}, through which no gradient is passed; use SUM or AVG, or "
            "detach() the Tensor"
        )
    return op


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().clone(memory_format=_C.contiguous_format)


def _empty(tensor: Tensor) -> Tensor:
    return _C.empty_like(tensor, memory_format=_C.contiguous_format)


def all_reduce(tensor: Tensor, op: str = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The tensors of all ranks as one, on all ranks.

    op: of ReduceOp; gradients pass through SUM and AVG.

    >>> dist, F = torch.distributed, torch.distributed.nn.functional
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.ones(2, requires_grad=True)
    >>> (3 * F.all_reduce(x)).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    >>> dist.destroy_process_group()
    """

    def run(given: Tensor) -> Tensor:
        made = _copy(given)
        dist.all_reduce(made, op, group)
        return made

    return _through(run, lambda grad: all_reduce(grad, _summed(op), group), tensor)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of rank src, on all ranks.

    Its gradient there is the sum of all ranks' ones; that of others is zero.

    >>> dist, F = torch.distributed, torch.distributed.nn.functional
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.ones(2, requires_grad=True)
    >>> (3 * F.broadcast(x, 0)).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    >>> dist.destroy_process_group()
    """

    def run(given: Tensor) -> Tensor:
        made = _copy(given)
        dist.broadcast(made, src, group)
        return made

    def back(grad: Tensor) -> Tensor:
        found = reduce(grad, src, ReduceOp.SUM, group)
        return found if dist.get_rank() == src else _C.zeros_like(found)

    return _through(run, back, tensor)


def reduce(
    tensor: Tensor, dst: int, op: str = ReduceOp.SUM, group: Any = None
) -> Tensor:
    """The tensors of all ranks as one, on rank dst; its own tensor on each other.

    op: of ReduceOp; gradients, those of rank dst, pass through SUM and AVG.

    >>> dist, F = torch.distributed, torch.distributed.nn.functional
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.ones(2, requires_grad=True)
    >>> (3 * F.reduce(x, 0)).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    >>> dist.destroy_process_group()
    """

    def run(given: Tensor) -> Tensor:
        made = _copy(given)
        dist.reduce(made, dst, op, group)
        return made

    def back(grad: Tensor) -> Tensor:
        part = 1 if _summed(op) == ReduceOp.SUM else dist.get_world_size(group)
        return broadcast(grad / part if part > 1 else grad, dst, group)

    return _through(run, back, tensor)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks, on rank dst; zeros on the others.

    >>> dist, F = torch.distributed, torch.distributed.nn.functional
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.ones(2, requires_grad=True)
    >>> (3 * F.gather(x, 0)[0]).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    >>> dist.destroy_process_group()
    """

    def run(given: Tensor) -> tuple[Tensor, ...]:
        made = [_C.zeros_like(given) for _ in range(dist.get_world_size(group))]
        there = dist.get_rank() == dst
        dist.gather(given.detach(), made if there else None, dst, group)
        return tuple(made)

    found = _through(run, lambda *grads: scatter(grads, dst, group), tensor)
    return tuple(found)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """A tensor for each rank, of rank src. tensors: on each rank, of the same sizes.

    >>> dist, F = torch.distributed, torch.distributed.nn.functional
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.ones(2, requires_grad=True)
    >>> (3 * F.scatter([x], 0)).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    >>> dist.destroy_process_group()
    """

    def run(*given: Tensor) -> Tensor:
        made = _empty(given[dist.get_rank(group)])
        there = dist.get_rank() == src
        parts = [each.detach() for each in given] if there else None
        dist.scatter(made, parts, src, group)
        return made

    def back(grad: Tensor) -> tuple[Tensor, ...]:
        return gather(grad, src, group)

    found: Tensor = _through(run, back, *tensors)
    return found


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks, on all ranks.

    >>> dist, F = torch.distributed, torch.distributed.nn.functional
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.ones(2, requires_grad=True)
    >>> (3 * F.all_gather(x)[0]).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    >>> dist.destroy_process_group()
    """

    def run(given: Tensor) -> tuple[Tensor, ...]:
        made = [_empty(given) for _ in range(dist.get_world_size(group))]
        dist.all_gather(made, given.detach(), group)
        return tuple(made)

    def back(*grads: Tensor) -> Tensor:
        return reduce_scatter(_empty(grads[0]), grads, ReduceOp.SUM, group)

    return tuple(_through(run, back, tensor))


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: str = ReduceOp.SUM,
    group: Any = None,
) -> Tensor:
    """Tensors of all ranks, one for each, as one, of which each rank has its own.

    output: gets the result; gradients pass through what is returned. op: of ReduceOp;
    they pass through SUM and AVG.

    >>> dist, F = torch.distributed, torch.distributed.nn.functional
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.ones(2, requires_grad=True)
    >>> (3 * F.reduce_scatter(torch.empty(2), [x])).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    >>> dist.destroy_process_group()
    """

    def run(*given: Tensor) -> Tensor:
        made = output.detach()
        dist.reduce_scatter(made, [each.detach() for each in given], op, group)
        return made

    def back(grad: Tensor) -> tuple[Tensor, ...]:
        part = 1 if _summed(op) == ReduceOp.SUM else dist.get_world_size(group)
        return all_gather(grad / part if part > 1 else grad, group)

    found: Tensor = _through(run, back, *input_list)
    return found


def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: Any = None,
) -> tuple[Tensor, ...]:
    """Tensor i of every rank, on rank i.

    output_tensor_list: get the results; gradients pass through what is returned.

    >>> dist, F = torch.distributed, torch.distributed.nn.functional
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.ones(2, requires_grad=True)
    >>> (3 * F.all_to_all([torch.empty(2)], [x])[0]).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    >>> dist.destroy_process_group()
    """

    def run(*given: Tensor) -> tuple[Tensor, ...]:
        made = [each.detach() for each in output_tensor_list]
        dist.all_to_all(made, [each.detach() for each in given], group)
        return tuple(made)

    def back(*grads: Tensor) -> tuple[Tensor, ...]:
        return all_to_all([_empty(each) for each in input_tensor_list], grads, group)

    return tuple(_through(run, back, *input_tensor_list))


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
) -> Tensor:
    """Part i, along the first dimension, of every rank's input, on rank i.

    output: gets the parts; gradients pass through what is returned. The sizes are those
    of the parts; equal parts without them.

    >>> dist, F = torch.distributed, torch.distributed.nn.functional
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.ones(2, requires_grad=True)
    >>> (3 * F.all_to_all_single(torch.empty(2), x)).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    >>> dist.destroy_process_group()
    """
    sizes = output_split_sizes, input_split_sizes

    def run(given: Tensor) -> Tensor:
        made = output.detach()
        dist.all_to_all_single(made, given.detach(), *sizes, group)
        return made

    def back(grad: Tensor) -> Tensor:
        return all_to_all_single(_empty(input), grad, *sizes[::-1], group)

    found: Tensor = _through(run, back, input)
    return found


_publish(__name__, errors=True)
