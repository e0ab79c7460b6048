"""Lists and dicts that the arguments of a node are made of."""

from __future__ import annotations

from typing import Any, NoReturn

from pydevtensor._names import publish as _publish

__all__ = ["immutable_dict", "immutable_list"]


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(
        f"{type(self).__name__} cannot be changed in place; assign a new value to "
        "node.args or node.kwargs"
    )


class immutable_list(list[Any]):
    """A list that raises TypeError where it would change.

    iterable: its items.

    >>> torch.fx.immutable_collections.immutable_list([1, 2])
    [1, 2]
    """

    append = extend = insert = pop = remove = reverse = sort = clear = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return type(self), (list(self),)


class immutable_dict(dict[Any, Any]):
    """A dict that raises TypeError where it would change.

    >>> torch.fx.immutable_collections.immutable_dict(a=1)
    {'a': 1}
    """

    clear = pop = popitem = setdefault = update = _refuse
    __setitem__ = __delitem__ = __ior__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return type(self), (dict(self),)


_publish(__name__)
