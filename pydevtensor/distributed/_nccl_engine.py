"""Ranks whose GPUs exchange tensors by NCCL, or by its stand-in for simulated GPUs.

A group has a communicator for each device of this rank, and one for each rank that it
exchanges single messages with. Each has a stream: its calls begin after the work of the
current stream, and wait() lets the current stream go on after them.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from pydevtensor import _C, _graphs
from pydevtensor._streams import Event, Stream, current
from pydevtensor.distributed._errors import DistBackendError
from pydevtensor.distributed._shared_engine import Call
from pydevtensor.distributed._work import Work
from pydevtensor.futures import Future

__all__: list[str] = []

Tensor = _C.Tensor
# As csrc/device/collective.h numbers them.
_ALL_REDUCE, _BROADCAST, _REDUCE, _ALL_GATHER, _REDUCE_SCATTER, _SEND, _RECEIVE = range(
    7
)
_REDUCTIONS = {"SUM": 0, "PRODUCT": 1, "MAX": 2, "MIN": 3, "AVG": 4}
_OF_BOOLS = {"SUM": "MAX", "PRODUCT": "MIN"}
_SECONDS = 0.5  # between two looks at communicators
Item = tuple[int, int, int, Tensor | None, Tensor | None]


def check() -> None:
    """DistBackendError, which says what to install, where there is no NCCL."""
    try:
        _C._nccl_version()
    except RuntimeError as error:
        raise DistBackendError(f"{error}; or use backend='gloo'") from None


def is_there() -> bool:
    """Whether there is a GPU, and NCCL."""
    if not _C._device_count("cuda"):
        return False
    with suppress(RuntimeError):
        return bool(_C._nccl_version())
    return False


class NcclWork(Work):
    """A call on a GPU: wait() lets the current stream wait for it, not the host."""

    def __init__(self, by: Communicator, result: list[Any], held: Any, name: str):
        super().__init__(lambda: None, result)
        self._by, self._held, self._name = by, held, name
        self._end = Event()
        self._begun = time.monotonic()
        self._future = _GpuFuture(self)
        self._returned = None

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Let the current stream wait for the end. Raises the communicator's error.

        timeout: changes nothing; the group's ends calls.
        """
        self._by.check()
        self._end.wait(current("wait", self._by.device))
        self._held = None
        return True

    def is_completed(self) -> bool:
        """Whether the GPU has done it, or the communicator has failed."""
        return self._by.error is not None or self._end.query()

    def exception(self) -> BaseException | None:
        """The communicator's error; None if there was none so far."""
        with suppress(DistBackendError):
            self._by.check()
        return self._by.error

    def synchronize(self) -> None:
        """The same as wait()."""
        self.wait()

    def source_rank(self) -> int:
        """The rank of the sender in its group."""
        return int(self._returned)


class _GpuFuture(Future[Any]):
    """The future of a call on a GPU. Functions of then() queue their work after it."""

    def __init__(self, work: NcclWork, value: Any = None) -> None:
        super().__init__()
        self._work, self._value = work, value or work._result
        self._ended.set()

    def wait(self) -> Any:
        """The value, for which the current stream waits."""
        self._work.wait()
        return self.value()

    def then(self, callback: Callable[[Any], Any]) -> Future[Any]:
        """The future of callback(self), which is called at once, on the stream of the
        call."""
        later = _GpuFuture(self._work)
        try:
            with self._work._by.stream:
                later._value = callback(self)
                self._work._end.record(self._work._by.stream)
        except BaseException as error:
            later._error = error
        return later


class Communicator:
    """Some ranks of a group, which exchange by one device each."""

    def __init__(self, device: Any, handle: Any) -> None:
        self.device, self.stream = device, Stream(device)
        self.error: DistBackendError | None = None
        self._handle, self._lock = handle, threading.Lock()
        self._simulated = _C._device_properties(device)["simulated"]
        self._under_way: deque[NcclWork] = deque()

    def run(
        self,
        call: Call,
        items: list[Item],
        later: list[Callable[[], Any]],
        result: list[Any],
    ) -> NcclWork:
        """Queue calls that start together, and then what `later` does on the stream."""
        self.check()
        work = NcclWork(self, result, (items, later), call[0] + call[1])
        begin = Event()
        begin.record(current("run", self.device))
        begin.wait(self.stream)
        with self.stream, self._lock:
            try:
                _C._communicator_run(self._handle, call, tuple(items))
            except RuntimeError as error:
                raise DistBackendError(str(error)) from None
            for each in later:
                each()
            work._end.record(self.stream)
        # A simulated GPU's calls have a time limit of their own; those that a graph
        # captures are under way in its replays.
        if not self._simulated and not self._is_capturing():
            self._under_way.append(work)
        return work

    def _is_capturing(self) -> bool:
        return bool(_graphs.captured) and _C._graph_capturing(self.device.index)

    def check(self) -> None:
        """Raise the error that it has had."""
        with self._lock:
            if self.error is None and self._handle is not None:
                self._ask(0)
        if self.error is not None:
            raise self.error

    def _ask(self, event: int) -> bool:
        try:
            return bool(_C._communicator_check(self._handle, event))
        except RuntimeError as error:
            self._fail(str(error))
            return True

    def _fail(self, text: str) -> None:
        """Record the error, and abort the communicator and its calls on the GPU."""
        self.error = DistBackendError(text)
        handle, self._handle = self._handle, None
        _C._communicator_free(handle, True)

    def look(self, seconds: float) -> None:
        """End it if it has failed, or if a call takes longer."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self._handle is None:
                return
            self._ask(0)
            while self._under_way and self.error is None:
                oldest = self._under_way[0]
                if self._ask(oldest._end.cuda_event):
                    self._under_way.popleft()
                elif time.monotonic() - oldest._begun > seconds:
                    self._fail(
                        f"{oldest._name} has not ended within {seconds:g} seconds; "
                        "some rank has not made the call, or makes another one"
                    )
                else:
                    break
        finally:
            self._lock.release()

    def close(self, abort: bool) -> None:
        """End it, with the calls that are under way, or after them."""
        with self._lock:
            handle, self._handle = self._handle, None
            if handle is not None:
                self.error = DistBackendError("the process group has been destroyed")
                _C._communicator_free(handle, abort)


class _Row:
    """A tensor as NCCL takes it: contiguous, of one dimension, of a type that it has.

    reduces: its elements are numbers; else they are bytes if need be.
    """

    def __init__(self, tensor: Tensor, reduces: bool = False) -> None:
        self._tensor = tensor.detach()
        flat = self._tensor.contiguous().view(-1)
        self._own = flat.data_ptr() != tensor.data_ptr()
        self._wide = reduces and flat.dtype == _C.int16
        if flat.dtype.is_complex:
            flat = _C.view_as_real(flat).view(-1)
        elif flat.dtype == _C.bool or (flat.dtype == _C.int16 and not reduces):
            flat = flat.view(_C.uint8)
        elif self._wide:
            flat = flat.to(_C.int32)
        self.memory = flat

    def put_back(self) -> None:
        """Give the tensor what its row has."""
        if self._wide:
            self._tensor.copy_(self.memory.to(_C.int16).view(self._tensor.shape))
        elif self._own:
            flat = self.memory
            if self._tensor.dtype.is_complex:
                flat = _C.view_as_complex(flat.view(-1, 2))
            elif flat.dtype != self._tensor.dtype:
                flat = flat.view(self._tensor.dtype)
            self._tensor.copy_(flat.view(self._tensor.shape))


def _reduction(op: str | None, tensor: Tensor) -> int:
    op = op or "SUM"
    if tensor.dtype == _C.bool:
        op = _OF_BOOLS.get(op, op)
    if op not in _REDUCTIONS or (tensor.dtype.is_complex and op not in ("SUM", "AVG")):
        raise ValueError(
            f"NCCL has no {op} of {str(tensor.dtype)[6:]}; copy the tensor to the CPU, "
            "in a group of the backend gloo"
        )
    return _REDUCTIONS[op]


class NcclEngine:
    """A rank's communicators in a group."""

    def __init__(self, group: Any) -> None:
        self._group = group
        self._known: dict[Any, Communicator] = {}
        self._made = 0
        self._closed = threading.Event()

    def communicator(
        self, device: Any, call: Call, pair: tuple[int, int] | None = None
    ) -> Communicator:
        """That of the device, of all ranks of the group or of two."""
        key = device.index, pair
        if key not in self._known:
            self._known[key] = self._make(device, call, pair)
            if len(self._known) == 1:
                threading.Thread(
                    target=self._watch, name="NCCL's errors", daemon=True
                ).start()
        return self._known[key]

    def _make(
        self, device: Any, call: Call, pair: tuple[int, int] | None
    ) -> Communicator:
        group = self._group
        members = pair or tuple(range(group.size()))
        named = f"{members if pair else 'all'} {sum(p == pair for _, p in self._known)}"
        key = f"communicator of {members}" if pair else "the first call by NCCL"
        try:
            handle = _C._communicator_new(
                device.index,
                self._share(members, named),
                members,
                members.index(group.rank()),
                ("", key, *call[2:]),
            )
        except RuntimeError as error:
            raise DistBackendError(str(error)) from None
        return Communicator(device, handle)

    def _share(self, members: tuple[int, ...], name: str) -> bytes:
        """The bytes by which the members meet, and which the first of them makes."""
        group, engine = self._group, self._group._engine
        is_first = group.rank() == members[0]
        made: bytes = _C._communicator_id() if is_first else b""
        if not group._has_store:  # MPI has its own ways
            row = _C.zeros(128, dtype=_C.uint8)
            if is_first:
                row = _C.frombuffer(bytearray(made), dtype=_C.uint8)
                for each in members[1:]:
                    engine.send(group._call("128 uint8", "send of "), each, 9999, row)
            else:
                call = group._call("128 uint8", "recv of ")
                engine.receive(call, members[0], 9999, row)
            return bytes(row.tolist())
        if is_first:
            group._store.set(f"nccl {name}", made)
            return made
        found: bytes = group._store.get(f"nccl {name}")
        return found

    def _watch(self) -> None:
        while not self._closed.wait(_SECONDS):
            for each in [*self._known.values()]:
                each.look(self._group._timeout)

    def close(self, abort: bool) -> None:
        """Leave all."""
        self._closed.set()
        for each in self._known.values():
            each.close(abort)

    # --- calls

    def collect(self, call: Call, exchange: Any, result: list[Any]) -> NcclWork:
        """A call of all ranks: an Exchange of distributed._collectives."""
        name = call[1].partition("(")[0].partition(" ")[0]
        rank, root, op = self._group.rank(), exchange.root, exchange.reduction
        reduces = op is not None
        row: Callable[[Any], Any] = lambda t: None if t is None else _Row(t, reduces)
        given = [row(t) for t in exchange.inputs or ()]
        taken = given
        if exchange.outputs is not exchange.inputs:
            taken = [row(t) for t in exchange.outputs or ()]
        first = next(t for t in exchange.tensors() if t is not None)
        number = _reduction(op, first) if reduces else 0
        whole = exchange.whole
        items: list[Item]
        later = [each.put_back for each in taken if each]
        if name == "all_reduce":
            items = [(_ALL_REDUCE, number, 0, given[0].memory, taken[0].memory)]
        elif name == "broadcast":
            sent = given[0].memory if rank == root else None
            into = sent if rank == root else taken[root].memory
            items = [(_BROADCAST, 0, root, sent, into)]
        elif name == "reduce":
            into = taken[0].memory if taken[0] else None
            items = [(_REDUCE, number, root, given[0].memory, into)]
        elif name == "all_gather_into_tensor":
            into = _Row(whole)
            items = [(_ALL_GATHER, 0, 0, given[0].memory, into.memory)]
            later = [into.put_back]
        elif name == "all_gather":
            mine = given[0].memory
            room = _C.empty(
                len(taken) * mine.numel(), dtype=mine.dtype, device=mine.device
            )
            items = [(_ALL_GATHER, 0, 0, mine, room)]
            later = [lambda: _spread(room, taken)]
        elif name.startswith("reduce_scatter"):
            rows = _Row(whole, True).memory if whole is not None else _joined(given)
            items = [(_REDUCE_SCATTER, number, 0, rows, taken[0].memory)]
        else:
            items = self._messages(name, root, given, taken)
        return self.communicator(first.device, call).run(call, items, later, result)

    def _messages(
        self, name: str, root: int, given: list[Any], taken: list[Any]
    ) -> list[Item]:
        """gather, scatter, all_to_all: parts for single ranks, and for this one."""
        if name == "gather":
            sent = [(root, given[0])]
        else:
            sent = [*enumerate(given)]
        return [
            *((_SEND, 0, to, row.memory, None) for to, row in sent if row),
            *(
                (_RECEIVE, 0, at, None, row.memory)
                for at, row in enumerate(taken)
                if row
            ),
        ]

    def message(self, call: Call, tensor: Tensor, peer: int, sends: bool) -> NcclWork:
        """Send a tensor to a rank, or receive one."""
        mine = self._group.rank()
        pair = min(mine, peer), max(mine, peer)
        row, item = self._message(tensor, pair.index(peer), sends)
        later = [] if sends else [row.put_back]
        by = self.communicator(tensor.device, call, pair)
        work = by.run(call, [item], later, [tensor])
        work._returned = mine if sends else peer
        return work

    def _message(self, tensor: Tensor, peer: int, sends: bool) -> tuple[_Row, Item]:
        row = _Row(tensor)
        if sends:
            return row, (_SEND, 0, peer, row.memory, None)
        return row, (_RECEIVE, 0, peer, None, row.memory)

    def together(
        self, call: Call, messages: list[tuple[Tensor, int, bool]]
    ) -> list[NcclWork]:
        """Messages that start together: (tensor, peer, whether it is sent)."""
        rows = [self._message(*each) for each in messages]
        later = [
            row.put_back
            for (row, _), (*_, sends) in zip(rows, messages, strict=True)
            if not sends
        ]
        by = self.communicator(messages[0][0].device, call)
        tensors = [tensor for tensor, *_ in messages]
        return [by.run(call, [item for _, item in rows], later, tensors)]


def _joined(rows: list[Any]) -> Tensor:
    return _C.cat([row.memory for row in rows])


def _spread(room: Tensor, rows: list[Any]) -> None:
    for row, part in zip(
        rows, room.chunk(len(rows)) if room.numel() else [], strict=False
    ):
        row.memory = part
        row._own = True
        row.put_back()
