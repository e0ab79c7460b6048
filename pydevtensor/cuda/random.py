"""torch.cuda.random: the generators of GPUs."""

from pydevtensor._names import publish as _publish
from pydevtensor.cuda import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)

__all__ = ["get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed"]
__all__ += ["manual_seed_all", "seed", "seed_all", "set_rng_state"]
__all__ += ["set_rng_state_all"]

_publish(__name__)
