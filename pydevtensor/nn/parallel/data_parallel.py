"""A module whose batches are split over GPUs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from pydevtensor import _C
from pydevtensor._names import publish as _publish
from pydevtensor.nn.modules.module import Module
from pydevtensor.nn.parallel.parallel_apply import parallel_apply
from pydevtensor.nn.parallel.replicate import replicate
from pydevtensor.nn.parallel.scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


def _index(device: Any) -> int:
    return _C._device_index(device)


def _check(module: Module, first: int) -> None:
    """All parameters and buffers have to be on the first GPU."""
    home = _C.device("cuda", first)
    for t in itertools.chain(module.parameters(), module.buffers()):
        if t.device != home:
            raise RuntimeError(
                f"DataParallel: the module has to be on {home}, the first of "
                f"device_ids, and has a parameter or buffer on {t.device}; move it "
                f"with module.to('{home}')"
            )


def _run(
    module: Module,
    ids: list[int],
    output: Any,
    dim: int,
    inputs: tuple[Any, ...],
    kwargs: Any,
) -> Any:
    _check(module, ids[0])
    parts, named = scatter_kwargs(inputs, kwargs, ids, dim)
    if not parts:
        parts, named = ((),), ({},)
    if len(ids) == 1:
        return module(*parts[0], **named[0])
    copies = replicate(module, ids[: len(parts)], not _C.is_grad_enabled())
    return gather(parallel_apply(copies, parts, named, ids[: len(parts)]), output, dim)


class DataParallel(Module):
    """Runs a module on several GPUs: each computes a part of the batch.

    module      is on the first of device_ids
    device_ids  GPUs, by default all
    output_device  where the outputs are joined, by default the first of device_ids
    dim         the dimension of the inputs, and of the outputs, that is split

    Each call copies the parameters to the other GPUs, and backward() adds the gradients
    of all parts to the module's. Buffers are changed by the first GPU's part alone.
    Without a GPU it calls the module itself. The module is `.module`. RuntimeError if
    the module is not on the first GPU.

    >>> net = nn.DataParallel(nn.Linear(3, 2).cuda(), device_ids=[0, 1])
    >>> net(torch.ones(4, 3, device='cuda:0')).shape
    torch.Size([4, 2])
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.module = module
        self.dim = dim
        self.device_ids: list[int] = []
        count = _C._device_count("cuda")
        if not count:
            return
        ids = [*(range(count) if device_ids is None else device_ids)]
        if not ids:
            raise RuntimeError(
                "DataParallel: device_ids is empty; give one GPU or more"
            )
        self.device_ids = [_index(each) for each in ids]
        self.output_device: int = _index(
            self.device_ids[0] if output_device is None else output_device
        )
        if len(self.device_ids) == 1:
            self.module.to(_C.device("cuda", self.device_ids[0]))

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The module's outputs for the whole batch.

        inputs  arguments of the module; Tensors are split along dim, the rest repeated
        kwargs  arguments by name, split likewise
        """
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        return _run(
            self.module, self.device_ids, self.output_device, self.dim, inputs, kwargs
        )


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[Any, Any] | None = None,
) -> Any:
    """The outputs of a module for inputs that are split over GPUs; see DataParallel.

    RuntimeError if the module is not on the first GPU, or there is none.

    module         is on the first of device_ids
    inputs         the argument of the call, or a tuple of them; Tensors are split along
                   dim
    device_ids     GPUs, numbers or devices, by default all
    output_device  where the outputs are joined, by default the first of device_ids
    dim            the dimension of the inputs, and of the outputs, that is split
    module_kwargs  arguments by name, a dict, split likewise

    >>> net = nn.Linear(3, 2).cuda()
    >>> nn.parallel.data_parallel(net, torch.ones(4, 3), [0, 1]).shape
    torch.Size([4, 2])
    """
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    ids = [*(range(_C._device_count("cuda")) if device_ids is None else device_ids)]
    if not ids:
        raise RuntimeError("data_parallel(): there is no GPU in device_ids")
    ids = [_index(each) for each in ids]
    output = ids[0] if output_device is None else output_device
    return _run(module, ids, output, dim, inputs, module_kwargs)


_publish(__name__)
