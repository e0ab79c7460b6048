"""Seeds and the state of the CPU's default generator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydevtensor import _C
from pydevtensor._C import Tensor, default_generator, initial_seed, manual_seed, seed
from pydevtensor._names import publish as _publish

__all__ = [
    "default_generator",
    "default_generators",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
]
__all__ += ["manual_seed", "seed", "set_rng_state"]


def get_rng_state() -> Tensor:
    """The state of the CPU's default generator, as a Tensor of 5056 uint8.

    The layout is PyTorch's, so that a state can be exchanged with it.

    >>> import pydevtensor as torch
    >>> state = torch.get_rng_state()
    >>> first = torch.rand(3)
    >>> torch.set_rng_state(state)
    >>> bool((torch.rand(3) == first).all())
    True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Restore the state that get_rng_state() returned.

    Raises TypeError if new_state is not a CPU Tensor of uint8, RuntimeError if it is
    not a state; the generator is then unchanged.

    >>> state = torch.get_rng_state()
    >>> x = torch.rand(3)
    >>> torch.set_rng_state(state)
    >>> torch.equal(torch.rand(3), x)
    True
    """
    default_generator.set_state(new_state)


def default_generators(devices: Any = None) -> list[Any]:
    """The default generators of the CPU and of GPUs.

    devices: the indices of the GPUs, by default of all in use.

    >>> torch.random.default_generators([])[0] is torch.default_generator
    True
    """
    if devices is None:
        devices = range(_C._device_count("cuda") if _C._device_loaded("cuda") else 0)
    gpus = [_C._default_generator(_C.device("cuda", i)) for i in devices]
    return [default_generator, *gpus]


@contextmanager
def fork_rng(
    devices: Any = None, enabled: bool = True, *, device_type: Any = None
) -> Iterator[None]:
    """Restore the states of generators at the end of a `with` block.

    They are the generators of the CPU and of the GPUs `devices`, by default of all that
    are in use.

    enabled: False does nothing. device_type: 'cuda', the default; with 'cpu' the GPUs'
    are not restored.

    >>> import pydevtensor as torch
    >>> _ = torch.manual_seed(0)
    >>> with torch.random.fork_rng():
    ...     _ = torch.rand(100)
    >>> torch.rand(1)
    tensor([0.4963])
    """
    if not enabled:
        yield
        return
    if device_type is not None and _C.device(device_type).type == "cpu":
        devices = ()
    generators = default_generators(devices)
    states = [each.get_state() for each in generators]
    try:
        yield
    finally:
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)


_publish(__name__)
