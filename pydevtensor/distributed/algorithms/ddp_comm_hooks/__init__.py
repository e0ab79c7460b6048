"""Hooks for DistributedDataParallel.register_comm_hook()."""

from pydevtensor._names import publish as _publish

__all__ = ["default_hooks"]

_publish(__name__, later=__all__)
