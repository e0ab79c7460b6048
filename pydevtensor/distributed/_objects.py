"""Collective calls with Python objects, which are pickled.

Unpickling runs code that the sender chooses: ranks have to trust each other.
"""

from __future__ import annotations

import pickle
from typing import Any

from pydevtensor import _C
from pydevtensor.distributed._collectives import (
    all_gather,
    broadcast,
    gather,
    root_of,
    scatter,
)
from pydevtensor.distributed._groups import ProcessGroup, member_of, own_group
from pydevtensor.distributed._messages import recv, send

__all__ = ["all_gather_object", "broadcast_object_list", "gather_object"]
__all__ += ["recv_object_list", "scatter_object_list", "send_object_list"]

Tensor = _C.Tensor


def _pack(value: Any) -> Tensor:
    return _C.frombuffer(bytearray(pickle.dumps(value)), dtype=_C.uint8)


def _unpack(data: Tensor, size: int) -> Any:
    return pickle.loads(data[:size].numpy().tobytes())


def _sizes(data: Tensor, found: ProcessGroup, group: Any) -> list[int]:
    """The sizes of all ranks' objects, which every rank's tensor is then made for."""
    sizes = [_C.zeros(1, dtype=_C.int64) for _ in range(found.size())]
    all_gather(sizes, _C.tensor([data.numel()]), group)
    return [int(size.item()) for size in sizes]


def _padded(data: Tensor, size: int) -> Tensor:
    room = _C.zeros(size, dtype=_C.uint8)
    room[: data.numel()].copy_(data)
    return room


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Give an object of every rank to all ranks.

    obj: this rank's. object_list: takes all, one for each rank. Objects are pickled:
    ranks have to trust each other.
    """
    found = own_group(group)
    _check_list("object_list", object_list, found.size())
    data = _pack(obj)
    sizes = _sizes(data, found, group)
    results = [_C.empty(max(sizes), dtype=_C.uint8) for _ in sizes]
    all_gather(results, _padded(data, max(sizes)), group)
    object_list[:] = map(_unpack, results, sizes)


def _check_list(name: str, given: Any, size: int) -> None:
    if not isinstance(given, list) or len(given) != size:
        raise ValueError(
            f"{name} is {given!r}; give a list with a place for each of {size} ranks"
        )


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Give an object of every rank to one rank.

    obj: this rank's. object_gather_list: takes all, at that rank alone. dst: the rank
    in the program; group_dst: in the group instead. Objects are pickled: ranks have to
    trust each other.
    """
    found = own_group(group)
    root = root_of(found, dst, group_dst, "dst")
    takes = found.rank() == root
    if takes:
        _check_list("object_gather_list", object_gather_list, found.size())
    data = _pack(obj)
    sizes = _sizes(data, found, group)
    results = [_C.empty(max(sizes), dtype=_C.uint8) for _ in sizes] if takes else None
    gather(_padded(data, max(sizes)), results, group=group, group_dst=root)
    if results and object_gather_list is not None:
        object_gather_list[:] = map(_unpack, results, sizes)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Give a rank's object_list to all ranks, into theirs, of the same length.

    src: the rank in the program; group_src: in the group instead. Objects are pickled:
    ranks have to trust each other.
    """
    found = own_group(group)
    root = root_of(found, src, group_src, "src")
    gives = found.rank() == root
    data = _pack(object_list) if gives else _C.empty(0, dtype=_C.uint8)
    size = _C.tensor([data.numel()])
    broadcast(size, group=group, group_src=root)
    room = data if gives else _C.empty(int(size.item()), dtype=_C.uint8)
    broadcast(room, group=group, group_src=root)
    if not gives:
        object_list[:] = _unpack(room, room.numel())


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Give each rank one of the objects of one rank.

    scatter_object_output_list: its first item becomes the object.
    scatter_object_input_list: one for each rank, at that rank alone. src: the rank in
    the program; group_src: in the group instead. Objects are pickled: ranks have to
    trust each other.
    """
    found = own_group(group)
    root = root_of(found, src, group_src, "src")
    gives = found.rank() == root
    if gives:
        _check_list(
            "scatter_object_input_list", scatter_object_input_list, found.size()
        )
    data = [_pack(each) for each in scatter_object_input_list or []] if gives else []
    sizes = _C.tensor([each.numel() for each in data] or [0] * found.size())
    broadcast(sizes, group=group, group_src=root)
    largest = int(sizes.max().item())
    room = _C.empty(largest, dtype=_C.uint8)
    given = [_padded(each, largest) for each in data] if gives else None
    scatter(room, given, group=group, group_src=root)
    value = _unpack(room, int(sizes[found.rank()].item()))
    scatter_object_output_list[:1] = [value]


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send the objects of object_list to a rank, which calls recv_object_list().

    use_batch changes nothing.
    dst: the rank in the program; group_dst: in the group instead. Objects are pickled:
    ranks have to trust each other.
    """
    own_group(group)
    data = _pack(list(object_list))
    send(_C.tensor([data.numel()]), dst, group, group_dst=group_dst)
    send(data, dst, group, group_dst=group_dst)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive objects into object_list, which a rank sends, or any rank without src.

    The result is the sender's rank. use_batch changes nothing.
    src: the rank in the program; group_src: in the group instead. Objects are pickled:
    ranks have to trust each other.
    """
    if member_of(group) is None:
        return -1
    size = _C.zeros(1, dtype=_C.int64)
    sender = recv(size, src, group, group_src=group_src)
    data = _C.empty(int(size.item()), dtype=_C.uint8)
    recv(data, sender, group)
    object_list[:] = _unpack(data, data.numel())
    return sender
