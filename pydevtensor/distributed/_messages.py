"""Tensors that one rank sends to another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydevtensor import _C
from pydevtensor.distributed import _clocks
from pydevtensor.distributed._collectives import _started, check_tensor
from pydevtensor.distributed._exchange import Host
from pydevtensor.distributed._groups import (
    ProcessGroup,
    get_group_rank,
    member_of,
    own_group,
)
from pydevtensor.distributed._work import Work

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]

Tensor = _C.Tensor


def _peer(found: ProcessGroup, rank: Any, in_group: Any, what: str) -> int:
    if (rank is None) == (in_group is None):
        raise ValueError(f"give either {what} or group_{what}")
    peer = get_group_rank(found, int(rank)) if in_group is None else int(in_group)
    if peer == found.rank() or not 0 <= peer < found.size():
        raise ValueError(
            f"{what} is {rank if in_group is None else in_group}, and this is rank "
            f"{found.rank()} of {found.size()}; give another rank"
        )
    return peer


def _key(tensor: Tensor) -> str:
    return f"{tensor.numel()} {str(tensor.dtype)[6:]}"


def _send(
    tensor: Tensor, dst: Any, group: Any, tag: int, group_dst: Any, is_async: bool
) -> Work | None:
    found = own_group(group)
    check_tensor("tensor", tensor)
    peer = _peer(found, dst, group_dst, "dst")
    call = found._call(_key(tensor), "send of ")
    if nccl := found._nccl_for([tensor]):
        return _started(nccl.message(call, tensor, peer, True), is_async)

    def run() -> int:
        found._engine.send(call, peer, tag, Host(tensor).memory)
        return found.rank()

    line = f"to {peer}"
    found._refuse_copies([tensor], [])
    if not _clocks.RUNS:
        return found._do(run, [tensor], is_async, line)
    timed = _clocks.Timed(found, call, [tensor], line)
    do = lambda: timed.send(peer, tag, run)
    return found._do(do, [tensor], is_async, line, timed)


def _receive(
    tensor: Tensor, src: Any, group: Any, tag: int, group_src: Any, is_async: bool
) -> tuple[Work | None, list[int]]:
    """The work, and a list that will have the sender's rank in the program."""
    found = member_of(group)
    sender: list[int] = []
    if found is None:
        return None, [-1]
    check_tensor("tensor", tensor)
    peer = -1
    if src is not None or group_src is not None:
        peer = _peer(found, src, group_src, "src")
    call = found._call(_key(tensor), "recv of ")
    if nccl := found._nccl_for([tensor]):
        if peer < 0:
            raise ValueError(
                "src is not given, and NCCL receives from one rank; give src, or use "
                "a tensor of the CPU"
            )
        sender.append(found._ranks[peer])
        work = nccl.message(call, tensor, peer, False)
        return _started(work, is_async), sender

    def run(giver: int = peer) -> int:
        host = Host(tensor)
        rank = found._engine.receive(call, giver, tag, host.memory)
        host.put_back()
        sender.append(found._ranks[rank])
        return rank

    line = f"from {peer}"
    found._refuse_copies([tensor], [tensor])
    if not _clocks.RUNS:
        return found._do(run, [tensor], is_async, line), sender
    timed = _clocks.Timed(found, call, [tensor], line)
    do = lambda: timed.receive(peer, tag, run)
    return found._do(do, [tensor], is_async, line, timed), sender


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to a rank, which calls recv() with one of its size and type.

    dst: the rank in the program; group_dst: in the group instead. tag: a number that
    recv() can ask for. ValueError for this rank itself, or one that there is not.
    """
    _send(tensor, dst, group, tag, group_dst, False)


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """send() without waiting: a Work, and tensor must not change until its end.

    dst, group_dst, tag: as for send().
    """
    return _send(tensor, dst, group, tag, group_dst, True)


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive a tensor from a rank; without src, from any rank. Returns the sender.

    src: the rank in the program; group_src: in the group instead. tag: the sender's.
    RuntimeError if the sent tensor has another size or type; it names both lines.
    """
    return _receive(tensor, src, group, tag, group_src, False)[1][0]


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """recv() without waiting: a Work, at whose end tensor has been received.

    src, group_src, tag: as for recv().
    """
    return _receive(tensor, src, group, tag, group_src, True)[0]


class P2POp:
    """A call of isend or irecv for batch_isend_irecv().

    op: isend or irecv. tensor, tag: its arguments. peer: the other rank in the program;
    group_peer: in the group instead.
    """

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Tensor,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        # Public functions are wrapped, to name their errors.
        if getattr(op, "__wrapped__", op) not in (isend, irecv):
            raise ValueError(
                f"P2POp(): op is {op!r}; give torch.distributed.isend or irecv"
            )
        self.op, self.tensor = op, check_tensor("tensor", tensor)
        self.peer, self.group, self.tag = peer, group, tag
        self.group_peer = group_peer


def _batch(found: ProcessGroup, given: list[P2POp]) -> tuple[Any, list[Any]]:
    """The call, and for each message its tensor, the peer, and whether it is sent."""
    messages = []
    for each in given:
        if member_of(each.group) is not found:
            raise ValueError("P2POps of several groups; give those of one group")
        sends = getattr(each.op, "__wrapped__", each.op) is isend
        what = "dst" if sends else "src"
        peer = _peer(found, each.peer, each.group_peer, what)
        messages.append((each.tensor, peer, sends))
    return found._call(f"{len(given)} messages", "batch_isend_irecv of "), messages


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Any]:
    """Start several sends and receptions at once. Their Works.

    p2p_op_list: P2POps. ValueError for other things, and for an empty list.
    """
    if not p2p_op_list or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError(
            f"batch_isend_irecv(): {p2p_op_list!r}; give a list of P2POp, not empty"
        )
    first = member_of(p2p_op_list[0].group)
    tensors = [each.tensor for each in p2p_op_list]
    if first and (nccl := first._nccl_for(tensors)):
        return nccl.together(*_batch(first, p2p_op_list))
    return [
        each.op(each.tensor, each.peer, each.group, each.tag, each.group_peer)
        for each in p2p_op_list
    ]
