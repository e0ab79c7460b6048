"""Ranks that exchange tensors by MPI, through the package mpi4py.

Calls are nonblocking ones of MPI with a loop around them, which looks for the end of
the time and for Ctrl-C. Before the elements, ranks exchange a header: what they call at
which line, whether they give and whether they take.
"""

from __future__ import annotations

import contextlib
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

from pydevtensor import _C
from pydevtensor.distributed._agreement import check_same
from pydevtensor.distributed._errors import DistBackendError
from pydevtensor.distributed._rendezvous import from_environment
from pydevtensor.distributed._shared_engine import Buffers, Call, Tensors

_KEY, _LINE = 160, 128
_HEADER = struct.Struct(f"{_KEY}s{_LINE}sqBB")
_MEETING = 32767  # the tag of messages of ranks that make a group
_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "SUM": lambda a, b: a.add_(b),
    "PRODUCT": lambda a, b: a.mul_(b),
    "MIN": lambda a, b: a.copy_(a.minimum(b)),
    "MAX": lambda a, b: a.copy_(a.maximum(b)),
    "BAND": lambda a, b: a.bitwise_and_(b),
    "BOR": lambda a, b: a.bitwise_or_(b),
    "BXOR": lambda a, b: a.bitwise_xor_(b),
}


def mpi() -> Any:
    """The module mpi4py.MPI. DistBackendError where it is missing."""
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise DistBackendError(
            f"the backend mpi needs the package mpi4py and an MPI ({error}); install "
            "them with: pip install 'pydevtensor[mpi]', and use mpirun"
        ) from None
    return MPI


_is_hooked = False


def _end_all_with_this_one(found: Any) -> None:
    """Let an error that ends this rank end the others: with MPI they would hang."""
    global _is_hooked
    if _is_hooked:
        return
    _is_hooked = True
    before = sys.excepthook

    def end(kind: Any, error: Any, trace: Any) -> None:
        before(kind, error, trace)
        sys.stderr.flush()
        _wait_for_the_reader(sys.stderr)
        found.COMM_WORLD.Abort(1)

    sys.excepthook = end


def _wait_for_the_reader(stream: Any) -> None:
    """Wait, at most a second, until mpirun has read the pipe: an abort would lose its
    contents."""
    import fcntl
    import termios

    end = time.monotonic() + 1
    with contextlib.suppress(OSError, ValueError):
        while time.monotonic() < end:
            left = fcntl.ioctl(stream.fileno(), termios.FIONREAD, bytes(4))
            if not any(left):
                break
            time.sleep(0.01)


def rank_and_size(wanted: int) -> tuple[int, int]:
    """This process's rank among those that mpirun has started, and their number.

    wanted: how many there should be; negative: as WORLD_SIZE says, if it is set.
    DistBackendError for another number: each process would be a world of its own.
    """
    world = mpi().COMM_WORLD
    if wanted < 0:
        found = from_environment(("WORLD_SIZE",))
        wanted = world.size if found is None else found
    if wanted != world.size:
        raise DistBackendError(
            f"the backend mpi: {wanted} ranks are wanted, and MPI has {world.size}; "
            f"start the program with: mpirun -n {wanted}, or with: python -m "
            "pydevtensor launch --nnodes, or use 'gloo' on one machine"
        )
    return int(world.rank), int(world.size)


class MpiEngine:
    """A rank's end of a group whose ranks exchange by MPI."""

    def __init__(self, ranks: list[int], number: int, call: Call) -> None:
        self._mpi = mpi()
        world = self._mpi.COMM_WORLD
        if ranks[-1] >= world.size:
            raise DistBackendError(
                f"the backend mpi: {len(ranks)} ranks are wanted, and MPI has "
                f"{world.size}; start the program with: mpirun -n {ranks[-1] + 1}"
            )
        self._failed = False
        _end_all_with_this_one(self._mpi)
        self.rank = int(world.rank)
        self._agree(world, ranks, call)
        self._comm = world.Create_group(world.group.Incl(ranks), number % 32768)
        self.rank, self.size = int(self._comm.rank), int(self._comm.size)

    def _agree(self, world: Any, ranks: list[int], call: Call) -> None:
        """Wait for the same call of all ranks. MPI has no timeout of its own."""
        _, key, line, _ = call
        byte, mine = self._mpi.BYTE, f"{key}\n{line}".encode()[: _HEADER.size]
        others = [rank for rank in ranks if rank != world.rank]
        sent = [world.Isend([mine, byte], rank, _MEETING) for rank in others]
        rooms = [bytearray(_HEADER.size) for _ in others]
        pairs = zip(rooms, others, strict=True)
        came = [world.Irecv([room, byte], rank, _MEETING) for room, rank in pairs]
        for rank, room, request in zip(others, rooms, came, strict=True):
            self._wait(call, request, f"rank {rank}")
            text = room.rstrip(b"\0").decode(errors="replace")
            check_same(world.rank, (key, line), rank, text)
        for request in sent:
            self._wait(call, request)

    def tell(self, rank: int) -> tuple[str, str]:
        """No reason and no last call: MPI does not report them."""
        return "", "is not known"

    # --- waiting

    def _wait(self, call: Call, request: Any, whom: str = "some rank") -> None:
        """Wait until MPI has completed a request. whom: the ranks that have to come."""
        name, key, line, seconds = call
        begin, pause = time.monotonic(), 0.0
        while not request.Test():
            waited = time.monotonic() - begin
            if waited > seconds:
                self._failed = True
                raise RuntimeError(
                    f"{whom} has not come within {seconds:g} seconds, while rank "
                    f"{self.rank} waits in {name}{key}{' at ' if line else ''}{line}"
                )
            if waited > 1e-3:
                pause = min(pause + 1e-5, 1e-3)
                time.sleep(pause)

    def _begin(self) -> None:
        if self._failed:
            raise RuntimeError(
                "an earlier call of this process group has failed; end the program on "
                "all ranks"
            )

    # --- exchanges

    def run(self, call: Call, buffers: Buffers) -> None:
        """An exchange, as dt_group_exchange describes it."""
        self._begin()
        inputs, outputs, segments, reduction = buffers
        gives = inputs is not None
        takes = outputs is not None and any(t is not None for t in outputs)
        headers = self._headers(call, gives, takes)
        givers = [rank for rank, each in enumerate(headers) if each[3]]
        takers = [rank for rank, each in enumerate(headers) if each[4]]
        if not givers:
            return
        if reduction and outputs is inputs and self.size > 2:
            self._reduce_by_shares(call, inputs, reduction)
        elif reduction:
            self._reduce(call, buffers, takers)
        elif segments == 1 and len(givers) == 1 and self.size > 1:
            self._broadcast(call, inputs, outputs, givers[0])
        elif segments == 1:
            self._gather(call, inputs, outputs, takers)
        else:
            self._transpose(call, inputs, outputs)

    def _headers(self, call: Call, gives: bool, takes: bool) -> list[Any]:
        """The headers of all ranks, which call the same."""
        key, line = call[1].encode()[:_KEY], call[2].encode()[:_LINE]
        mine = _HEADER.pack(key, line, 0, gives, takes)
        found = bytearray(len(mine) * self.size)
        byte = self._mpi.BYTE
        self._wait(call, self._comm.Iallgather([mine, byte], [found, byte]))
        headers = list(_HEADER.iter_unpack(found))
        for rank, each in enumerate(headers):
            if each[0] != headers[self.rank][0]:
                here, there = _said(*headers[self.rank][:2]), _said(*each[:2])
                raise RuntimeError(
                    f"rank {self.rank} calls {here}, and rank {rank} calls {there}; "
                    "all ranks of a group have to make the same calls in the same order"
                )
        return headers

    def _broadcast(
        self, call: Call, inputs: Tensors, outputs: Tensors, root: int
    ) -> None:
        tensor = inputs[0] if inputs else outputs[root] if outputs else None
        self._wait(call, self._comm.Ibcast(self._bytes(tensor), root))

    def _gather(
        self, call: Call, inputs: Tensors, outputs: Tensors, takers: list[int]
    ) -> None:
        given = inputs[0] if inputs else None
        rows = [*(outputs or [None] * self.size)]
        room = _together(rows)
        if len(takers) == 1 < self.size:
            target = self._bytes(room) if self.rank == takers[0] else None
            request = self._comm.Igather(self._bytes(given), target, takers[0])
        else:
            room = _C.empty(0) if room is None else room
            request = self._comm.Iallgather(self._bytes(given), self._bytes(room))
        self._wait(call, request)
        if self.rank in takers:
            _apart(room, rows)

    def _transpose(self, call: Call, inputs: Tensors, outputs: Tensors) -> None:
        """Segment i of every rank to rank i."""
        given = [*(inputs or [None] * self.size)]
        rows = [*(outputs or [None] * self.size)]
        counts = [_size(t) for t in given]
        wanted = [_size(t) for t in rows]
        sent = (_C.tensor(counts), _C.zeros(self.size, dtype=_C.int64))
        long = self._mpi.INT64_T
        self._wait(call, self._comm.Ialltoall([sent[0], 1, long], [sent[1], 1, long]))
        coming = sent[1].tolist()
        source, target = _together(given), _C.empty(sum(coming), dtype=_C.uint8)
        if source is None:
            source = _C.empty(0, dtype=_C.uint8)
        byte = self._mpi.BYTE
        request = self._comm.Ialltoallv(
            [self._bytes(source)[0], (counts, None), byte],
            [self._bytes(target)[0], (coming, None), byte],
        )
        self._wait(call, request)
        for rank, (have, want) in enumerate(zip(coming, wanted, strict=True)):
            if rows[rank] is not None and have != want:
                raise RuntimeError(
                    f"{call[1]}: rank {rank} gives {have} bytes to rank {self.rank}, "
                    f"which has room for {want}; make the sizes of inputs and outputs "
                    "agree"
                )
        for row, piece in zip(rows, target.split(coming), strict=True):
            if row is not None and row.numel():
                _flat(row).copy_(piece)

    def _reduce(self, call: Call, buffers: Buffers, takers: list[int]) -> None:
        """Combines in the order of ranks, so that all get the same bits."""
        inputs, outputs, segments, reduction = buffers
        assert inputs is not None and reduction is not None
        like = inputs[0] if segments == 1 else inputs[self.rank]
        if like is None:
            return
        rows = [_C.empty_like(like.detach()) for _ in range(self.size)]
        if segments == 1:
            self._gather(call, inputs, tuple(rows), [*range(self.size)])
        else:
            self._transpose(call, inputs, tuple(rows))
        if self.rank in takers and outputs is not None and outputs[0] is not None:
            total = rows[0]
            for each in rows[1:]:
                _COMBINE[reduction](total, each)
            outputs[0].detach().copy_(total.view(outputs[0].shape))

    def _reduce_by_shares(self, call: Call, tensors: Tensors, reduction: str) -> None:
        """Each rank combines a share of the elements, and gives it to all."""
        assert tensors is not None
        flat = tensors[0].detach().view(-1)
        size = max(1, -(-flat.numel() // self.size))
        parts = tuple(flat[r * size : (r + 1) * size] for r in range(self.size))
        mine = parts[self.rank].clone()
        ranks = [*range(self.size)]
        shares = Buffers(parts, (mine,), self.size, reduction)
        self._reduce(call, shares, ranks)
        counts = [_size(part) for part in parts]
        room = [self._bytes(flat)[0], (counts, None), self._mpi.BYTE]
        self._wait(call, self._comm.Iallgatherv(self._bytes(mine), room))

    def _bytes(self, tensor: Any) -> list[Any]:
        if tensor is None:
            return [bytearray(0), self._mpi.BYTE]
        return [memoryview(_flat(tensor)), self._mpi.BYTE]

    # --- messages

    def send(self, call: Call, peer: int, tag: int, tensor: Any) -> None:
        """Send a tensor to a rank."""
        self._begin()
        header = _HEADER.pack(
            call[1].encode()[:_KEY], call[2].encode()[:_LINE], _size(tensor), 1, 0
        )
        byte = self._mpi.BYTE
        first = self._comm.Isend([header, byte], peer, 2 * tag)
        second = self._comm.Isend(self._bytes(tensor), peer, 2 * tag + 1)
        self._wait(call, first)
        self._wait(call, second)

    def receive(self, call: Call, peer: int, tag: int, tensor: Any) -> int:
        """Receive a tensor from a rank, or any (-1). The rank."""
        self._begin()
        header, status = bytearray(_HEADER.size), self._mpi.Status()
        byte, source = self._mpi.BYTE, self._mpi.ANY_SOURCE if peer < 0 else peer
        request = self._comm.Irecv([header, byte], source, 2 * tag)
        self._wait(call, _WithStatus(request, status))
        sender = int(status.source)
        key, line, size, _, _ = _HEADER.unpack(header)
        fits = key == call[1].encode()[:_KEY].ljust(_KEY, b"\0")
        room = tensor if fits else _C.empty(size, dtype=_C.uint8)
        request = self._comm.Irecv(self._bytes(room), sender, 2 * tag + 1)
        self._wait(call, request)
        if not fits:
            raise RuntimeError(
                f"rank {self.rank} receives {call[1]} at {call[2]}, and rank {sender} "
                f"has sent {_said(key, line)}; give a Tensor of the size and type that "
                "is sent"
            )
        return sender

    def close(self, why: str = "") -> None:
        """Leave the group. MPI frees it at the end: the ranks would have to meet."""


class _WithStatus:
    """A request whose end fills a status."""

    def __init__(self, request: Any, status: Any) -> None:
        self._request, self._status = request, status

    def Test(self) -> bool:
        return bool(self._request.Test(self._status))


def _said(key: bytes, line: bytes) -> str:
    """A call as messages show it, from texts with zeros at their ends."""
    texts = [each.rstrip(b"\0").decode(errors="replace") for each in (key, line)]
    return " at ".join(filter(None, texts))


def _flat(tensor: Any) -> Any:
    return tensor.detach().reshape(-1).view(_C.uint8)


def _size(tensor: Any) -> int:
    return 0 if tensor is None else int(tensor.numel() * tensor.element_size())


def _together(tensors: list[Any]) -> Any:
    """The bytes of all, one after another; None if there is no tensor."""
    found = [_flat(t) for t in tensors if t is not None]
    return _C.cat(found) if found else None


def _apart(whole: Any, tensors: list[Any]) -> None:
    for t, piece in zip(tensors, whole.split([_size(t) for t in tensors]), strict=True):
        if t is not None and t.numel():
            _flat(t).copy_(piece)
