"""Seeds and the state of the CPU's default generator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydevtensor._C import (
    Tensor,
    default_generator,
    initial_seed,
    manual_seed,
    seed,
)
from pydevtensor._names import publish as _publish

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed"]
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


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """Restore the state of the CPU's generator at the end of a `with` block.

    devices has to be empty or None: the states of GPU generators cannot be saved.

    >>> import pydevtensor as torch
    >>> _ = torch.manual_seed(0)
    >>> with torch.random.fork_rng():
    ...     _ = torch.rand(100)
    >>> torch.rand(1)
    tensor([0.4963])
    """
    if devices:
        raise NotImplementedError(
            "fork_rng(): the states of GPU generators cannot be saved; give devices=[] "
            "and use a Generator(device='cuda') on a GPU"
        )
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)


_publish(__name__)
