"""Calls of several modules at the same time, a thread and a GPU for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Thread
from typing import Any

from pydevtensor import _C
from pydevtensor._names import publish as _publish
from pydevtensor._streams import current
from pydevtensor.autograd import set_grad_enabled
from pydevtensor.cuda import device as cuda_device
from pydevtensor.cuda import stream as cuda_stream

__all__ = ["parallel_apply"]


def _device_of(value: Any) -> Any:
    """The GPU of the first Tensor in tuples, lists and dicts; None if there is none."""
    if isinstance(value, _C.Tensor):
        return value.device if value.device.type == "cuda" else None
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return None
    return next((found for each in value if (found := _device_of(each))), None)


def parallel_apply(
    modules: Sequence[Callable[..., Any]],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[Any, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """The results of modules[i](*inputs[i], **kwargs_tup[i]), each in its own thread.

    An exception of one is raised after all have ended. AssertionError for lists of
    different lengths.

    modules     modules, such as replicate() gives
    inputs      the arguments of each, a tuple or one value
    kwargs_tup  the arguments by name of each, dicts
    devices     the current GPU of each; None: that of its first Tensor

    >>> inputs = nn.parallel.scatter(torch.ones(2, 3), [0, 1])
    >>> nets = nn.parallel.replicate(nn.Identity(), [0, 1])
    >>> nn.parallel.parallel_apply(nets, inputs)[1]
    tensor([[1., 1., 1.]], device='cuda:1')
    """
    named = [{}] * len(modules) if kwargs_tup is None else kwargs_tup
    given = [None] * len(modules) if devices is None else devices
    for what, values in (("inputs", inputs), ("kwargs", named), ("devices", given)):
        if len(values) != len(modules):
            raise AssertionError(
                f"parallel_apply(): {len(modules)} modules and {len(values)} {what} "
                "were given; give as many"
            )
    recorded = _C.is_grad_enabled()
    results: list[Any] = [None] * len(modules)
    errors: list[BaseException] = []
    # Each thread continues on the stream that is current here.
    where = [
        _device_of((x, k)) if d is None else d
        for x, k, d in zip(inputs, named, given, strict=True)
    ]
    streams = [None if d is None else current("parallel_apply", d) for d in where]

    def call(i: int) -> None:
        args = inputs[i] if isinstance(inputs[i], (tuple, list)) else (inputs[i],)
        try:
            with (
                set_grad_enabled(recorded),
                cuda_device(-1 if where[i] is None else where[i]),
                cuda_stream(streams[i]),
            ):
                results[i] = modules[i](*args, **named[i])
        except BaseException as error:
            errors.append(error)

    if len(modules) == 1:
        call(0)
    else:
        threads = [Thread(target=call, args=(i,)) for i in range(len(modules))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]
    return results


_publish(__name__)
