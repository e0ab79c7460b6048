"""Stateful: what save() and load() of checkpoints ask for its state."""

from typing import Any, Protocol, TypeVar, runtime_checkable

from pydevtensor._names import publish as _publish

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """A class with state_dict() and load_state_dict(), as a program derives it.

    >>> isinstance(nn.Linear(1, 1), torch.distributed.checkpoint.stateful.Stateful)
    True
    """

    def state_dict(self) -> dict[str, Any]:
        """The values that a checkpoint gets."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the values of a checkpoint."""
        ...


StatefulT = TypeVar("StatefulT", bound=Stateful)

_publish(__name__)
