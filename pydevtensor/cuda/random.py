"""torch.cuda.random: the generators of GPUs."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor._names import publish as _publish
from pydevtensor.cuda import device_count, is_available

__all__ = ["get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed"]
__all__ += ["manual_seed_all", "seed", "seed_all", "set_rng_state"]
__all__ += ["set_rng_state_all"]


def manual_seed(seed: int) -> None:
    """Seed the current GPU's random numbers; does nothing if there is no GPU.

    >>> torch.cuda.manual_seed(0)
    >>> x = torch.rand(2, device='cuda')
    >>> torch.cuda.manual_seed(0)
    >>> torch.equal(torch.rand(2, device='cuda'), x)
    True
    """
    if is_available():
        _C._device_seed(None, seed)


def manual_seed_all(seed: int) -> None:
    """Seed the random numbers of all GPUs; does nothing if there is none.

    >>> torch.cuda.manual_seed_all(3)
    >>> torch.cuda.initial_seed()
    3
    """
    for i in range(device_count()):
        _C._device_seed(i, seed)


def seed() -> None:
    """Seed the current GPU's random numbers from the system's randomness.

    >>> torch.cuda.seed()
    >>> torch.cuda.initial_seed() >= 0
    True
    """
    if is_available():
        _C._device_seed(None, None)


def seed_all() -> None:
    """Seed all GPUs' random numbers with one seed from the system's randomness.

    >>> torch.cuda.seed_all()
    >>> torch.cuda.initial_seed() >= 0
    True
    """
    if is_available():
        manual_seed_all(_C._device_seed(0, None))


def initial_seed() -> int:
    """The seed of the current GPU's random numbers.

    >>> torch.cuda.manual_seed(3)
    >>> torch.cuda.initial_seed()
    3
    """
    return _C._device_initial_seed(None)


def get_rng_state(device: Any = "cuda") -> _C.Tensor:
    """The state of a GPU's default generator, a Tensor of uint8 on the CPU.

    device: a GPU, by default the current one.

    >>> state = torch.cuda.get_rng_state()
    >>> first = torch.rand(2, device='cuda')
    >>> torch.cuda.set_rng_state(state)
    >>> torch.equal(torch.rand(2, device='cuda'), first)
    True
    """
    return _C._default_generator(
        _C.device("cuda", _C._device_index(device))
    ).get_state()


def set_rng_state(new_state: _C.Tensor, device: Any = "cuda") -> None:
    """Restore the state that get_rng_state() returned.

    new_state: a Tensor of uint8 on the CPU, also of another GPU. device: a GPU, by
    default the current one.

    >>> torch.cuda.set_rng_state(torch.cuda.get_rng_state(1), 1)
    """
    place = _C.device("cuda", _C._device_index(device))
    _C._default_generator(place).set_state(new_state)


def get_rng_state_all() -> list[_C.Tensor]:
    """The states of all GPUs' default generators.

    >>> len(torch.cuda.get_rng_state_all()) == torch.cuda.device_count()
    True
    """
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state_all(new_states: Any) -> None:
    """Restore the states that get_rng_state_all() returned.

    new_states: one for each GPU, in their order.

    >>> torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
    """
    for i, state in enumerate(new_states):
        set_rng_state(state, i)


_publish(__name__)
