"""The errors of torch.distributed."""

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError"]


class DistError(RuntimeError):
    """Something failed between processes."""


class DistBackendError(DistError):
    """A backend failed: MPI, NCCL, or the memory that ranks share."""


class DistNetworkError(DistError):
    """A connection between processes failed."""


class DistStoreError(DistError):
    """A store did not get a key in time, or is closed."""
