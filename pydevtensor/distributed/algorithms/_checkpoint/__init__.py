"""Modules that compute again in the backward pass instead of saving results."""

from pydevtensor._names import publish as _publish
from pydevtensor.distributed.algorithms._checkpoint import checkpoint_wrapper

__all__ = ["checkpoint_wrapper"]

_publish(__name__)
