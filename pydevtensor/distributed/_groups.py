"""Groups of processes: which there are, who is in them, and by what they exchange."""

from __future__ import annotations

import atexit
import os
import sys
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, ClassVar

from pydevtensor import _C
from pydevtensor._names import Returned
from pydevtensor._tree import flatten
from pydevtensor.distributed import _clocks, _nccl_engine
from pydevtensor.distributed._agreement import agree
from pydevtensor.distributed._nccl_engine import NcclEngine
from pydevtensor.distributed._rendezvous import LOCAL_RANK, from_environment, meet
from pydevtensor.distributed._shared_engine import (
    Buffers,
    Call,
    NoEngine,
    SharedEngine,
    machine,
)
from pydevtensor.distributed._stores import HashStore, PrefixStore, Store, seconds_of
from pydevtensor.distributed._work import Line, Work

__all__ = ["Backend", "GroupMember", "ProcessGroup", "default_pg_timeout"]
__all__ += ["destroy_process_group", "get_backend", "get_global_rank"]
__all__ += ["get_group_rank", "get_node_local_rank", "get_process_group_ranks"]
__all__ += ["get_rank", "get_world_size", "group", "init_process_group"]
__all__ += ["is_initialized", "new_group", "new_subgroups"]
__all__ += ["new_subgroups_by_enumeration"]

default_pg_timeout = timedelta(minutes=30)


class Backend(str):
    """The name of a backend: by what the ranks of a group exchange tensors.

    >>> torch.distributed.Backend('GLOO')
    'gloo'
    """

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    MPI = "mpi"
    # The backend for tensors of a device type.
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": GLOO, "cuda": NCCL}
    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, NCCL, MPI]

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend(): {name!r}; give a str, such as 'gloo'")
        return str.__new__(cls, name.lower())


def _never(*given: Any) -> bool:
    return False


class ProcessGroup:
    """Some ranks that make collective calls together; new_group() makes one.

    name: the group's. ranks: its members, as ranks of the program. store: by which they
    meet. backend: its name. timeout: seconds that calls wait.
    """

    def __init__(
        self, name: str, ranks: list[int], store: Store, backend: str, timeout: float
    ) -> None:
        self._name, self._ranks, self._store = name, ranks, store
        self._backend, self._timeout = Backend(backend), timeout
        self._rank = ranks.index(_world_rank())
        self._engine: Any
        self._has_store = _engine_name(backend) != "mpi"
        if not self._has_store:
            from pydevtensor.distributed._mpi_engine import MpiEngine

            what = f"new_group({ranks})" if name != "world" else "init_process_group"
            call = self._call(what)
            self._engine = MpiEngine(ranks, zlib.crc32(name.encode()), call)
        elif backend == "nccl" and not _are_here(store, self._rank, len(ranks)):
            self._engine = NoEngine()
        else:
            self._engine = SharedEngine(store, self._rank, len(ranks))
        # On a simulated cluster the clock's model replaces it.
        uses_nccl = "nccl" in backend and not _clocks.RUNS
        self._nccl = NcclEngine(self) if uses_nccl else None
        # A call of all ranks by the quick way of csrc/python/groups_quick.c: (name, op,
        # root, part, whole, timeout). False: the call is not for that way.
        self._quick: Callable[..., bool] = _never
        counts = None
        if isinstance(self._engine, SharedEngine):
            quick, *counts = self._engine.queue
            if not _clocks.RUNS:
                self._quick = quick
        self._lines: dict[Any, Line] = {"all": Line(f"{self._name} all", counts)}
        self._clocks: dict[Any, int] = {}  # by line: the end of the last call

    def rank(self) -> int:
        """This process's rank in the group."""
        return self._rank

    def size(self) -> int:
        """How many ranks the group has."""
        return len(self._ranks)

    def name(self) -> str:
        """The backend's name."""
        return str(self._backend)

    @property
    def group_name(self) -> str:
        """The group's name."""
        return self._name

    group_desc = group_name

    def get_group_store(self) -> Store:
        """The store that its ranks met by."""
        return self._store

    def set_timeout(self, timeout: timedelta) -> None:
        """Let calls wait for the other ranks for `timeout` from now on."""
        self._timeout = seconds_of(timeout, default_pg_timeout)

    def __repr__(self) -> str:
        return f"<ProcessGroup {self._name}: {self._backend}, ranks {self._ranks}>"

    def _call(self, key: str, name: str = "", timeout: float | None = None) -> Call:
        """A call for the engine, with what its messages say, and the line it is at."""
        seconds = self._timeout if timeout is None else timeout
        return name, key, _C._source_line(), seconds

    def _nccl_for(self, tensors: Iterable[Any]) -> NcclEngine | None:
        """The engine for these tensors if NCCL exchanges them."""
        if self._nccl is None:
            return None
        on_gpu = any(t is not None and t.device.type == "cuda" for t in tensors)
        return self._nccl if on_gpu else None

    def _refuse_copies(self, given: Iterable[Any], taken: Iterable[Any]) -> None:
        """Raise if cuda.transfer_guard refuses to copy what is on a GPU to the host, or
        back what is taken: here, as another thread may make the copies."""
        if _clocks.RUNS:  # where a model replaces NCCL
            return
        for to_host, tensors in ((True, given), (False, taken)):
            for t in tensors:
                if isinstance(t, _C.Tensor) and t.device.type == "cuda":
                    hint = (
                        f"the backend {self._backend} exchanges in the host's memory; "
                        "use 'nccl', or give a tensor of the CPU"
                    )
                    _C._refuse_copy(t, to_host, hint)

    def _do(
        self,
        run: Callable[[], Any],
        results: Iterable[Any],
        is_async: bool,
        line: Any,
        timed: _clocks.Timed | None = None,
    ) -> Work | None:
        """Run a call after the others of its line: the collectives, or the messages to
        or from one rank. Returns the work if is_async. timed: on the clock."""
        if line not in self._lines:
            self._lines[line] = Line(f"{self._name} {line}")
        work = self._lines[line].do(run, list(results), is_async)
        if timed and work:
            work._future._arrive = timed.arrive
        elif timed:
            timed.arrive()
        return work

    def _collect(
        self,
        run: Callable[[], Any],
        results: Iterable[Any],
        is_async: bool,
        call: Call,
        tensors: Any,
    ) -> Work | None:
        """Run a call of all ranks, with the tensors that this one gives and takes."""
        results, timed = list(results), None
        if _C._device_loaded("cuda"):
            self._refuse_copies(flatten(tensors)[0], results)
        if _clocks.RUNS:
            timed, untimed = _clocks.Timed(self, call, tensors, "all"), run
            run = lambda: timed.collect(untimed)
        return self._do(run, results, is_async, "all", timed)

    def _meet(self, name: str) -> None:
        """The first call: waits until all ranks are there."""
        try:
            if not isinstance(self._engine, NoEngine):  # else they met by the store
                self._engine.run(self._call(name), Buffers(None, None))
        except BaseException:
            self._close(abort=True)
            raise

    def _close(self, abort: bool = False, why: str = "") -> None:
        """Leave; with `abort`, also calls that are under way on GPUs. why: for the
        other ranks' messages."""
        if self._nccl is not None:
            self._nccl.close(abort)
        for line in self._lines.values():
            line.end()
        self._engine.close(why)
        for line in self._lines.values():
            line.join(1)  # takes as long only if a call waits for a lost rank


class GroupMember:
    """NON_GROUP_MEMBER is what new_group() returns to ranks that are not in it."""

    NON_GROUP_MEMBER = -100


class _Groups:
    """The groups of this process."""

    def __init__(self) -> None:
        self.world: ProcessGroup | None = None
        self.others: list[ProcessGroup] = []
        self.begun = 0  # calls of init_process_group(), the same number on all ranks
        self.made = 0  # calls of new_group(), likewise
        self.local: Counter[str] = Counter()  # likewise, of some ranks alone
        self.rank = 0  # in the group that init_process_group() is making


_groups = _Groups()


class _GroupNames(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The default group; None before init_process_group()."""
        return _groups.world


class group(metaclass=_GroupNames):
    """group.WORLD is the default group."""


def _world_rank() -> int:
    return _groups.rank


def default_group() -> ProcessGroup:
    """The group of all ranks. ValueError before init_process_group()."""
    if _groups.world is None:
        raise ValueError(
            "Default process group has not been initialized: call "
            "torch.distributed.init_process_group() first"
        )
    return _groups.world


def member_of(given: Any) -> ProcessGroup | None:
    """The group of a call; None if this rank is not in it."""
    if given is None:
        return _groups.world or default_group()
    if given == GroupMember.NON_GROUP_MEMBER:
        return None
    if not isinstance(given, ProcessGroup):
        raise TypeError(
            f"group is {given!r} ({type(given).__name__}); give what new_group() "
            "returned, or None for all ranks"
        )
    return given


def own_group(given: Any) -> ProcessGroup:
    """The group of a call. The call of a rank outside of it ends here, with None."""
    found = member_of(given)
    if found is None:
        raise Returned(None)
    return found


def _are_here(store: Store, rank: int, size: int) -> bool:
    """Whether all ranks are on this machine. Waits for their answers."""
    store.set(f"machine {rank}", machine())
    found = {store.get(f"machine {r}") for r in range(size)}
    return len(found) == 1


def _engine_name(backend: str) -> str:
    """The backend for tensors of the CPU, and for copies of those of GPUs."""
    return backend.split(",")[0].rpartition(":")[2]


def _check_backend(backend: str | None) -> str:
    """The backend of a name, or of names for types of devices."""
    name = backend or "cpu:gloo,cuda:nccl"
    parts = [part.partition(":")[::2] for part in name.lower().split(",")]
    if len(parts) == 1 and not parts[0][1]:
        parts = [("cpu", parts[0][0])]
    for _, each in parts:
        if each not in ("gloo", "nccl", "mpi"):
            raise ValueError(
                f"backend is {backend!r}; give 'gloo', 'mpi', 'nccl', or "
                "'cpu:gloo,cuda:nccl'"
            )
        if each == "nccl" and backend and not _C._device_count("cuda"):
            raise RuntimeError(
                "the backend nccl needs a GPU, and there is none; "
                "use 'gloo', or torch.cuda.simulate() first"
            )
        if each == "nccl" and backend and not _clocks.RUNS:
            _nccl_engine.check()
    return name.lower()


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Make this process a rank, and wait until the other ranks do so too.

    backend: 'gloo' is memory that ranks of one machine share; 'nccl' is NCCL, for
    tensors of GPUs; None or 'cpu:gloo,cuda:nccl': both; 'mpi' is MPI through the
    package mpi4py, in a program that mpirun has started, which says rank and
    world_size. init_method: 'env://' (None), which takes RANK, WORLD_SIZE, MASTER_ADDR
    and MASTER_PORT from the environment, as `python -m pydevtensor launch` sets them;
    'tcp://127.0.0.1:29500'; or 'file:///path/of/a/new/file'. rank, world_size: -1: as
    the environment says. store: instead of init_method, with rank and world_size.
    timeout: how long calls wait for other ranks, 30 minutes without it. ValueError for
    arguments that do not fit, DistStoreError where a rank does not come.

    >>> dist = torch.distributed
    >>> store = dist.HashStore()
    >>> dist.init_process_group('gloo', store=store, rank=0, world_size=1)
    >>> dist.get_world_size()
    1
    >>> dist.destroy_process_group()
    """
    if _groups.world is not None:
        raise ValueError(
            "trying to initialize the default process group twice: call "
            "destroy_process_group() first"
        )
    backend = _check_backend(backend)
    limit = seconds_of(timeout, default_pg_timeout)
    if store is not None:
        if init_method is not None:
            raise ValueError("give either init_method or store")
        if world_size < 1 or not 0 <= rank < world_size:
            raise ValueError(
                f"rank is {rank} and world_size {world_size}; "
                "with a store give both, ranks being 0 to world_size - 1"
            )
    elif _engine_name(backend) == "mpi":
        from pydevtensor.distributed._mpi_engine import rank_and_size

        store, (rank, world_size) = HashStore(), rank_and_size(world_size)
    else:
        wait = timeout or timedelta(minutes=5)
        store, rank, world_size = meet(init_method or "env://", rank, world_size, wait)
    _groups.begun += 1
    _groups.rank = rank
    own = PrefixStore(f"{group_name or 'world'} {_groups.begun}", store)
    made = ProcessGroup("world", [*range(world_size)], own, backend, limit)
    made._meet("init_process_group")
    _groups.world = made


def new_group(
    ranks: Iterable[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """Make a group of some ranks, or of all. All ranks of the program call it.

    Ranks that are not in it get GroupMember.NON_GROUP_MEMBER at once; the others wait
    for each other. timeout, backend: the default group's without them. With
    use_local_synchronization only the ranks of the new group call it, which then must
    make their groups in one order; others get None. group_desc: a word for its name.
    sort_ranks: number them in the order of the program. ValueError for ranks that the
    program does not have, or that are given twice. RuntimeError where a rank of the
    group makes another one, or none in time.
    """
    world = default_group()
    members = [*range(world.size())] if ranks is None else [int(r) for r in ranks]
    if sort_ranks:
        members.sort()
    known = range(world.size())
    if len({*members}) < len(members) or not all(r in known for r in members):
        raise ValueError(
            f"ranks are {members}; give different ranks of 0 to {world.size() - 1}"
        )
    if use_local_synchronization:
        if world.rank() not in members:
            return None
        name = f"{group_desc or 'group'} of {members}"
        _groups.local[name] += 1
        name += f" {_groups.local[name]}"
    else:
        _groups.made += 1
        name = f"{group_desc or 'group'} {_groups.made}"
    backend = _check_backend(backend) if backend else str(world._backend)
    limit = seconds_of(timeout, timedelta(seconds=world._timeout))
    store = PrefixStore(name, world._store)
    if world._has_store:
        mine = f"new_group({members})", _C._source_line()
        agree(world, store, members, mine, limit)
    if world.rank() not in members:
        return GroupMember.NON_GROUP_MEMBER
    store = PrefixStore(f"of {members}", store)
    made = ProcessGroup(name, members, store, backend, limit)
    made._meet("new_group")
    _groups.others.append(made)
    return made


def new_subgroups(
    group_size: int | None = None,
    group: Any = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Divide all ranks into groups of group_size, in order.

    group_size: the ranks of this machine without it. Returns the group of this rank,
    and all groups. ValueError if it does not divide the number of ranks.
    """
    world = default_group()
    size = group_size or from_environment(("LOCAL_WORLD_SIZE",)) or world.size()
    if size < 1 or world.size() % size:
        raise ValueError(
            f"group_size is {size}; give a divisor of the number of "
            f"ranks, {world.size()}"
        )
    made = [
        new_group(range(begin, begin + size), timeout, backend)
        for begin in range(0, world.size(), size)
    ]
    return made[world.rank() // size], made


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Divide ranks into groups.

    ranks_per_subgroup_list: for each group a list of its ranks in the program. Returns
    the group of this rank, None if it is in no list, and all groups. ValueError for a
    rank in two lists.
    """
    given = [r for ranks in ranks_per_subgroup_list for r in ranks]
    if len({*given}) < len(given):
        raise ValueError(
            f"the lists have {given}; give each rank once, since it can be in one group"
        )
    made = [new_group(ranks, timeout, backend) for ranks in ranks_per_subgroup_list]
    own = default_group().rank()
    for ranks, group in zip(ranks_per_subgroup_list, made, strict=True):
        if own in ranks:
            return group, made
    return None, made


def destroy_process_group(group: Any = None) -> None:
    """Leave a group, or with None all groups: this process is not a rank afterwards.

    Waits for calls that GPUs have under way. Ranks that wait for this one in a call
    fail.
    """
    line = _C._source_line()
    _destroy(group, False, f"destroy_process_group(){' at ' if line else ''}{line}")


def _destroy(group: Any, abort: bool, why: str) -> None:
    found = member_of(group)
    if found is None:
        return
    if found is not _groups.world:
        if found in _groups.others:
            _groups.others.remove(found)
            found._close(abort, why)
        return
    for each in [*_groups.others, found]:
        each._close(abort, why)
    _groups.others.clear()
    _groups.world = None


@atexit.register
def _leave() -> None:
    # A fork of a rank leaves without notifying the others.
    if _groups.world is not None:
        with suppress(Exception):
            _destroy(None, abort=True, why=_end_of_program())


def _end_of_program() -> str:
    """Says how the program has ended: its uncaught exception, with the source line."""
    error = getattr(sys, "last_value", None)
    if error is None:
        return "its program has ended"
    own, line = os.path.dirname(_C.__file__), ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        if not frame.f_code.co_filename.startswith(own):
            line = f" at {os.path.basename(frame.f_code.co_filename)}:{number}"
    return f"{type(error).__name__}: {error!s:.120}{line}"


def is_initialized() -> bool:
    """Whether this process is a rank: init_process_group() was called."""
    return _groups.world is not None


def get_rank(group: Any = None) -> int:
    """This process's rank in a group, or among all; -1 if it is not in the group."""
    found = member_of(group)
    return found.rank() if found else -1


def get_world_size(group: Any = None) -> int:
    """How many ranks a group has, or the program; -1 if this rank is not in it."""
    found = member_of(group)
    return found.size() if found else -1


def get_backend(group: Any = None) -> Backend:
    """The backend of a group. ValueError if this rank is not in it."""
    found = member_of(group)
    if found is None:
        raise ValueError("this rank is not in the group")
    return Backend(_engine_name(found._backend))


def get_process_group_ranks(group: Any = None) -> list[int]:
    """The ranks, in the program, of a group's ranks."""
    found = member_of(group)
    return [*found._ranks] if found else []


def get_group_rank(group: Any, global_rank: int) -> int:
    """The rank in a group of global_rank, a rank of the program.

    ValueError if it is not in it.
    """
    found = member_of(group)
    if found is None or global_rank not in found._ranks:
        raise ValueError(f"rank {global_rank} is not in {group!r}")
    return found._ranks.index(global_rank)


def get_global_rank(group: Any, group_rank: int) -> int:
    """The rank in the program of group_rank, a rank of the group.

    ValueError if there is none.
    """
    found = member_of(group)
    if found is None or not 0 <= group_rank < found.size():
        raise ValueError(f"{group!r} has no rank {group_rank}")
    return found._ranks[group_rank]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's rank among those of its machine, as the launcher has set it.

    fallback_rank: where no launcher has. RuntimeError without both.
    """
    found = from_environment(LOCAL_RANK)
    if found is not None:
        return found
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "the environment variable LOCAL_RANK is not set; start "
        "the program with `python -m pydevtensor launch`, or give fallback_rank"
    )
