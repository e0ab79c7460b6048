"""Copies to several GPUs, and sums of tensors on several.

All of them are recorded, so that gradients come back to where the Tensors came from.
Copies wait for nobody; work that uses them on their device comes after them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pydevtensor import _C, _tree
from pydevtensor._names import publish as _publish
from pydevtensor._streams import Stream, current

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add"]
__all__ += ["reduce_add_coalesced", "scatter"]

Tensor = _C.Tensor


def _gpu(device: Any) -> _C.device:
    """A device given as a name, an index or None, which means the current GPU."""
    return _C.device("cuda", _C._device_index(device))


def _gpus(function: str, devices: Iterable[Any] | None) -> list[_C.device]:
    if devices is None:
        devices = range(_C._device_count("cuda"))
    found = [_gpu(each) for each in devices]
    if not found:
        raise RuntimeError(f"{function}(): devices is empty; give one GPU or more")
    return found


def _sent(tensor: Tensor, device: _C.device) -> Tensor:
    return tensor.to(device, non_blocking=True)


def _into(function: str, out: Any, values: list[Tensor]) -> tuple[Tensor, ...]:
    """Copies values to out, one Tensor for each."""
    _tree.need_alike(function, "out", out, "the result", values)
    for target, value in zip(out, values, strict=True):
        target.copy_(value, non_blocking=True)
    return tuple(out)


def broadcast(
    tensor: Tensor, devices: Iterable[Any] | None = None, *, out: Any = None
) -> tuple[Tensor, ...]:
    """The tensor on each of the devices; itself where it is already.

    Either devices or out, Tensors of its shape on GPUs, is given: RuntimeError where
    not.

    >>> torch.cuda.comm.broadcast(torch.ones(2, device='cuda:0'), (0, 1))[1]
    tensor([1., 1.], device='cuda:1')
    """
    if (devices is None) == (out is None):
        raise RuntimeError("broadcast(): give either devices or out")
    if out is not None:
        return _into("broadcast", out, [tensor] * len(out))
    return tuple(_sent(tensor, each) for each in _gpus("broadcast", devices))


def _runs(tensors: Sequence[Tensor], size: int) -> list[list[int]]:
    """The numbers of the tensors, in groups that one buffer of size bytes holds."""
    runs: list[list[int]] = []
    open_runs: dict[tuple[Any, ...], tuple[list[int], int]] = {}
    for i, t in enumerate(tensors):
        kind = (t.dtype, t.device, t.requires_grad)
        bytes_of = t.numel() * t.element_size()
        run, used = open_runs.get(kind, ([], 0))
        if not run or used + bytes_of > size:
            run, used = [], 0
            runs.append(run)
        run.append(i)
        open_runs[kind] = run, used + bytes_of
    return runs


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    return _C.cat([t.reshape(-1) for t in tensors])


def _parts(flat: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    pieces = flat.split([t.numel() for t in like])
    return [p.reshape(t.shape) for p, t in zip(pieces, like, strict=True)]


def broadcast_coalesced(
    tensors: Sequence[Tensor], devices: Iterable[Any], buffer_size: int = 10485760
) -> list[list[Tensor]]:
    """The tensors on each of the devices: a list for each device.

    Small tensors of one type travel together, in buffers of buffer_size bytes, so
    there are few copies. On their own device they are the tensors themselves.

    >>> weights = [torch.ones(2, device='cuda:0'), torch.zeros(1, device='cuda:0')]
    >>> torch.cuda.comm.broadcast_coalesced(weights, (0, 1))[1]
    [tensor([1., 1.], device='cuda:1'), tensor([0.], device='cuda:1')]
    """
    where = _gpus("broadcast_coalesced", devices)
    copies: list[dict[int, Tensor]] = [{} for _ in where]
    for run in _runs(tensors, buffer_size):
        few = [tensors[i] for i in run]
        away = [k for k, device in enumerate(where) if device != few[0].device]
        flat = _flat(few) if away and len(few) > 1 else few[0]
        for k, device in enumerate(where):
            sent = few
            if k in away:
                sent = [_sent(flat, device)]
                sent = _parts(sent[0], few) if len(few) > 1 else sent
            copies[k].update(zip(run, sent, strict=True))
    return [[made[i] for i in range(len(tensors))] for made in copies]


def reduce_add(inputs: Sequence[Tensor], destination: Any = None) -> Tensor:
    """The sum of inputs, Tensors of one shape on GPUs.

    destination: the GPU of the result, by default the current one. ValueError for
    Tensors of different shapes, RuntimeError for none.

    >>> parts = [torch.ones(2, device='cuda:0'), torch.ones(2, device='cuda:1')]
    >>> torch.cuda.comm.reduce_add(parts, 0)
    tensor([2., 2.], device='cuda:0')
    """
    if not inputs:
        raise RuntimeError("reduce_add(): inputs is empty; give one Tensor or more")
    device = _gpu(destination)
    for i, each in enumerate(inputs):
        if each.device.type != "cuda":
            raise ValueError(
                f"reduce_add(): inputs[{i}] is on {each.device}; bring it to a GPU"
            )
        if each.shape != inputs[0].shape:
            raise ValueError(
                f"reduce_add(): inputs[{i}] has shape {[*each.shape]} and inputs[0] "
                f"{[*inputs[0].shape]}; give tensors of one shape"
            )
    total, fresh = _sent(inputs[0], device), inputs[0].device != device
    for each in inputs[1:]:
        # The second sum and later ones have memory of their own to be written to.
        total = (
            total.add_(_sent(each, device)) if fresh else total + _sent(each, device)
        )
        fresh = True
    return total


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]],
    destination: Any = None,
    buffer_size: int = 10485760,
) -> tuple[Tensor, ...]:
    """The sums of several tensors over devices, few copies for many small tensors.

    inputs: for each device a list of tensors, of the same shapes on all. destination:
    the GPU of the results, by default the current one. buffer_size: the bytes that
    travel together.

    >>> parts = [[torch.ones(2, device=d), torch.ones((), device=d)] for d in (0, 1)]
    >>> torch.cuda.comm.reduce_add_coalesced(parts, 0)
    (tensor([2., 2.], device='cuda:0'), tensor(2., device='cuda:0'))
    """
    made: dict[int, Tensor] = {}
    for run in _runs(inputs[0], buffer_size):
        few = [inputs[0][i] for i in run]
        buffers = [_flat([each[i] for i in run]) for each in inputs]
        sums = _parts(reduce_add(buffers, destination), few)
        made.update(zip(run, sums, strict=True))
    return tuple(made[i] for i in range(len(made)))


_copying: dict[tuple[Any, ...], Stream] = {}


def _copying_stream(device: _C.device) -> Stream:
    """The stream on which copies from the CPU reach a GPU while it computes."""
    return _copying.setdefault((device.type, device.index), Stream(device))


def _sent_on(stream: Stream | None, tensor: Tensor, device: _C.device) -> Tensor:
    """A copy made on a stream of its own, for which the current stream waits."""
    if stream is None or tensor.device == device:
        return _sent(tensor, device)
    here = current("scatter", device)
    with stream:
        copy = _sent(tensor, device)
    here.wait_stream(stream)
    copy.record_stream(here)
    return copy


def scatter(
    tensor: Tensor,
    devices: Iterable[Any] | None = None,
    chunk_sizes: Iterable[int] | None = None,
    dim: int = 0,
    streams: Sequence[Stream | None] | None = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """The pieces of a tensor along dim, one on each of devices (by default all GPUs).

    chunk_sizes: the sizes of the pieces, equal ones by default. streams: where the
    copies run; copies from the CPU have streams of their own, so from pinned memory
    they overlap with work. A piece that is on its device already is a view.

    >>> torch.cuda.comm.scatter(torch.arange(4), (0, 1))
    (tensor([0, 1], device='cuda:0'), tensor([2, 3], device='cuda:1'))
    """
    if out is not None:
        if devices is not None or chunk_sizes is not None:
            raise RuntimeError("scatter(): give either out, or devices and chunk_sizes")
        pieces = tensor.split([t.shape[dim] for t in out], dim)
        return _into("scatter", out, [*pieces])
    where = _gpus("scatter", devices)
    if chunk_sizes is None:
        pieces = tensor.chunk(len(where), dim)
    else:
        sizes = [*chunk_sizes]
        if len(sizes) != len(where):
            raise RuntimeError(
                f"scatter(): {len(sizes)} chunk_sizes and {len(where)} devices were "
                "given; give a size for each device"
            )
        pieces = tensor.split(sizes, dim)
    if streams is None:
        on_cpu = tensor.device.type == "cpu"
        streams = [_copying_stream(d) if on_cpu else None for d in where]
    return tuple(
        _sent_on(stream, piece, device)
        for stream, piece, device in zip(streams, pieces, where, strict=False)
    )


def gather(
    tensors: Sequence[Tensor],
    dim: int = 0,
    destination: Any = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Tensors of several GPUs joined along dim, on one device.

    destination: a device, by default the current GPU; 'cpu' or -1 means the CPU.

    >>> parts = [torch.ones(1, device='cuda:0'), torch.zeros(1, device='cuda:1')]
    >>> torch.cuda.comm.gather(parts, destination='cpu')
    tensor([1., 0.])
    """
    if out is not None:
        if destination is not None:
            raise RuntimeError("gather(): give either destination or out")
        whole = _C.cat([_sent(each, out.device) for each in tensors], dim)
        return _into("gather", [out], [whole])[0]
    on_cpu = destination in (-1, "cpu", _C.device("cpu"))
    device = _C.device("cpu") if on_cpu else _gpu(destination)
    # A copy to the CPU that does not wait would be read before it has arrived.
    return _C.cat([each.to(device, non_blocking=not on_cpu) for each in tensors], dim)


_publish(__name__)
