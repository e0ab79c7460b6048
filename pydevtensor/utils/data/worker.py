"""The worker process of a DataLoader, and its messages.

Each worker has a pipe of its own to the reading process: a worker that is killed closes
it, and leaves no lock behind. Messages are pickled; the elements of large CPU Tensors
and NumPy arrays are in anonymous shared memory, whose descriptor is sent along.

A process that inherits an end of another one's pipe would hide that its owner is gone.
So a fork, whoever asks for it, waits until no end is half made or half closed, and the
child closes all ends but its own.
"""

from __future__ import annotations

import errno
import io
import os
import pickle
import random
import signal
import socket
import sys
import weakref
from _thread import RLock, _local
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from traceback import format_exc, print_exc
from typing import Any, NamedTuple, NoReturn

import pydevtensor as torch

# A module that another thread imports during a fork stays locked in the child for ever.
# So what workers use is imported before they start.
from pydevtensor import _numpy as _numpy
from pydevtensor import _shared_memory
from pydevtensor import _streams as _streams
from pydevtensor._functions import interop as interop
from pydevtensor._sharing import rebuild_cuda_tensor, reduce_tensor
from pydevtensor.utils.data import collate as collating

# Smaller data is sent through the pipe: a mapping costs more than the copy. Small
# messages also never fill the pipes, so the two sides cannot deadlock.
SHARED_FROM = 1 << 13

# The exit code of a worker that failed outside the data set.
FAILED = 70


class WorkerInfo:
    """The result of get_worker_info(); dataset is the worker's own copy.

    id           the number of this worker
    num_workers  how many there are
    seed         the seed of this worker
    """

    __slots__ = ("dataset", "id", "num_workers", "seed")

    id: int
    num_workers: int
    seed: int
    dataset: Any

    def __init__(self, id: int, num_workers: int, seed: int, dataset: Any) -> None:
        self.id = id
        self.num_workers = num_workers
        self.seed = seed
        self.dataset = dataset

    def __repr__(self) -> str:
        return (
            f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, "
            f"seed={self.seed}, dataset={self.dataset!r})"
        )


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """The WorkerInfo of a DataLoader's worker process; None in other processes."""
    return _info


class Failure:
    """An exception in a worker: its type, and its traceback as text."""

    def __init__(self, where: str) -> None:
        kind = sys.exc_info()[0] or RuntimeError
        try:
            pickle.dumps(kind)
        except Exception:  # such as a local class
            kind = RuntimeError
        self.kind = kind
        self.text: str = f"Caught {kind.__name__} in {where}.\nOriginal {format_exc()}"

    def raise_again(self) -> NoReturn:
        if issubclass(self.kind, KeyError):
            raise _readable(self.kind)(self.text)
        try:
            error = self.kind(self.text)
        except Exception:  # its constructor needs other arguments
            error = RuntimeError(self.text)
        raise error


def _readable(kind: type[KeyError]) -> type[KeyError]:
    """A subclass of kind whose str() is not quoted, so that it shows its lines."""
    return type(kind.__name__, (kind,), {"__str__": lambda self: str(self.args[0])})


class Exhausted:
    """The answer of a worker whose part of an IterableDataset is finished."""


# --- messages -----------------------------------------------------------------------


def _tensor_of(
    elements: Any, dtype: torch.dtype, shape: Any, requires_grad: bool
) -> torch.Tensor:
    made = torch.frombuffer(elements, dtype=dtype).reshape(shape)
    return made.requires_grad_(requires_grad)


def _copy_of(requires_grad: bool, *given: Any) -> torch.Tensor:
    """A copy on the GPU: the worker that made the tensor may end before the reader."""
    return rebuild_cuda_tensor(*given).detach().clone().requires_grad_(requires_grad)


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if (
            type(value) is not torch.Tensor
            or value.device.type not in ("cpu", "cuda")
            or value.nbytes < SHARED_FROM
        ):
            return NotImplemented
        if value.requires_grad and not value.is_leaf:
            raise RuntimeError(
                "DataLoader: a worker's batch has a grad_fn, which cannot leave its "
                "process; detach() the Tensor"
            )
        if value.device.type == "cuda":
            return _copy_of, (value.requires_grad, *reduce_tensor(value)[1])
        elements = value.detach().reshape(-1).view(torch.uint8)
        buffer = pickle.PickleBuffer(memoryview(elements))
        return _tensor_of, (buffer, value.dtype, value.shape, value.requires_grad)


class _Shared(NamedTuple):
    """Stands for a value that is in shared memory: its buffers, and last its pickle."""

    sizes: list[int]
    file: int | None  # its number among the sender's Files
    comes: bool  # whether its descriptor follows; else the reader has mapped it


_SHARED = b"s"  # before such a message; no pickle begins so


class Files:
    """A worker's files of shared memory. The reader says when nothing uses a file,
    which is written again then: memory that is new to the system, and to a process,
    costs more than the copy into it.

    most  how many there are; batches beyond them have a file of their own
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.made = 0
        self.known: dict[int, tuple[int, memoryview]] = {}  # descriptor, bytes
        self.free: list[int] = []
        self.away: set[int] = set()  # with the reader
        self.held: set[int] = set()  # under a tensor of lend(), which may be kept
        self.lent: int | None = None  # to the batch that is made

    def returned(self, given: Iterable[tuple[int, bool]]) -> None:
        """Take back files by number: to be written again, or to be closed."""
        for number, again in given:
            self.away.discard(number)
            if not again:
                os.close(self.known.pop(number)[0])
            elif number not in self.held:
                self.free.append(number)

    def lend(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor | None:
        """Memory of a free file for a stack of tensors of one shape, which write() does
        not copy then. Once for a batch; None if there is no such memory."""
        like = tensors[0]
        size = like.numel() * like.itemsize * len(tensors)
        if self.lent is not None or not self.free or size < SHARED_FROM:
            return None
        if size > len(self.known[self.free[-1]][1]) or any(
            type(each) is not torch.Tensor
            or each.device.type != "cpu"
            or each.layout != torch.strided
            or each.dtype != like.dtype
            or each.requires_grad
            for each in tensors
        ):
            return None
        number = self.lent = self.free.pop()
        self.held.add(number)
        whole: Any = self.known[number][1].obj
        whole = whole.detach()
        weakref.finalize(whole, self._let_go, number).atexit = False
        found = torch.frombuffer(whole, dtype=torch.uint8, count=size)
        return found.view(like.dtype).view(len(tensors), *like.shape)

    def _let_go(self, number: int) -> None:
        self.held.discard(number)
        if number in self.known and number not in self.away:
            self.free.append(number)

    def _is_lent(self, raw: memoryview) -> bool:
        """Whether the bytes are those that were lent to this batch."""
        if self.lent is None:
            return False
        whole: Any = self.known[self.lent][1].obj
        return torch.frombuffer(raw, dtype=torch.uint8).data_ptr() == whole.data_ptr()

    def write(self, buffers: list[memoryview]) -> tuple[int, _Shared]:
        """The descriptor of a file with the buffers, and what stands for them."""
        sizes = [raw.nbytes for raw in buffers]
        places = _shared_memory.places(sizes)
        lent = self._is_lent(buffers[0])  # then that buffer is in its file already
        number = self.lent if lent else self.free[-1] if self.free else None
        if number is None:
            found = _shared_memory.write("pydevtensor-batch", buffers)
            if len(self.known) == self.most:
                return found, _Shared(sizes, None, True)
            number = self.made = self.made + 1
            fits = False
        else:
            found, memory = self.known[number]
            fits = places[-1].stop <= len(memory)
            if fits:  # into memory that is there, which cannot fail
                new = slice(int(lent), None)
                for place, raw in zip(places[new], buffers[new], strict=True):
                    memory[place] = raw
            else:
                _shared_memory.write_to(found, buffers)
            if not lent:
                self.free.pop()
        self.away.add(number)
        if not fits:
            self.known[number] = found, memoryview(torch._C._map_file(found))
        return found, _Shared(sizes, number, not fits)


class Mapped:
    """The reader's mappings of a worker's Files."""

    def __init__(self) -> None:
        self.memory: dict[int, torch.Tensor] = {}
        self.unused: deque[tuple[int, bool]] = deque()

    def use(self, number: int) -> torch.Tensor:
        """A file's bytes; the file is unused when nothing holds this tensor."""
        bytes = self.memory[number].detach()
        give = weakref.finalize(bytes, _give_back, self.unused, number, _forks)
        give.atexit = False
        return bytes

    def returned(self) -> list[tuple[int, bool]]:
        """The numbers of unused files, and whether they can be written again."""
        found = [self.unused.popleft() for _ in range(len(self.unused))]
        for number, again in found:
            if not again:
                del self.memory[number]
        return found


_forks = 0  # of this process


def _give_back(unused: deque[tuple[int, bool]], number: int, forks: int) -> None:
    # A process that was forked meanwhile may use the memory still.
    unused.append((number, forks == _forks))


def send(end: Any, value: object, files: Files | None = None) -> None:
    """Send value through the pipe, in one of files. May wait for the reader."""
    big: list[memoryview] = []

    def aside(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < SHARED_FROM:
            return True  # into the pickle
        big.append(raw)
        return False

    text = io.BytesIO()
    _Pickler(text, 5, buffer_callback=aside).dump(value)
    if not big and text.tell() < SHARED_FROM:
        end.send_bytes(text.getbuffer())
        return
    big.append(text.getbuffer())
    try:
        fd, shared = (files or Files(0)).write(big)
        try:
            end.send_bytes(_SHARED + pickle.dumps((*shared,)))
            if shared.comes:
                with _socket_of(end) as way:
                    socket.send_fds(way, [b"x"], [fd])
        finally:
            if shared.file is None:
                os.close(fd)
    except ConnectionError:
        raise
    except OSError as error:
        raise RuntimeError(
            f"DataLoader: no shared memory for {sum(raw.nbytes for raw in big)} bytes "
            f"({error}); free memory or file descriptors (ulimit), use smaller batches "
            "or fewer workers"
        ) from error


@contextmanager
def _socket_of(end: Any) -> Iterator[Any]:
    """The pipe as a socket, by the same descriptor: a copy would be inherited.

    multiprocessing.reduction sends descriptors too, but since Python 3.14 its sender
    waits until the reader has taken them.
    """
    way = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=end.fileno())
    try:
        way.setblocking(True)  # whatever socket.setdefaulttimeout() says
        yield way
    finally:
        way.detach()


def receive(end: Any, mapped: Mapped | None = None) -> Any:
    """Wait for the next value; EOFError or ConnectionError if the other end is gone.

    mapped: the sender's files.
    """
    message = end.recv_bytes()
    if message[:1] != _SHARED:
        return pickle.loads(message)
    value = _Shared(*pickle.loads(message[1:]))
    memory = _map(end, value) if value.comes else None
    if mapped is not None and value.file is not None:
        if memory is not None:
            mapped.memory[value.file] = memory
        memory = mapped.use(value.file)
    whole = memoryview(memory)  # type: ignore[arg-type]
    *buffers, text = (whole[place] for place in _shared_memory.places(value.sizes))
    return pickle.loads(text, buffers=buffers)


def _map(end: Any, value: _Shared) -> torch.Tensor:
    """The bytes of the file that comes with a value."""
    try:
        with _socket_of(end) as way:
            byte, fds, _, _ = socket.recv_fds(way, 1, 1)
        if not byte:
            raise EOFError
        if not fds:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        (fd,) = fds
        try:
            return torch._C._map_file(fd)
        finally:
            os.close(fd)
    except (EOFError, ConnectionError):
        raise
    except OSError as error:
        raise RuntimeError(
            f"DataLoader: cannot map a batch of {sum(value.sizes)} bytes "
            f"({error}); keep fewer batches at a time: each has a file descriptor and "
            "a mapping (see ulimit -n and -v)"
        ) from error


# --- pipes --------------------------------------------------------------------------

_ends: weakref.WeakSet[Any] = weakref.WeakSet()  # open ends of this process
_lock = RLock()  # held while one is made or closed, and during a fork
_starting = _local()  # .end: of the worker that this thread starts


def pair() -> tuple[Any, Any]:
    """(the reader's end, the worker's end), to be closed by close()"""
    from multiprocessing import Pipe

    with _lock:
        ends = Pipe()
        _ends.update(ends)
    return ends


def close(end: Any) -> None:
    with _lock:
        end.close()


def start(process: Any, end: Any, forks: bool) -> None:
    """Start a worker, which has end."""
    _starting.end = end
    try:
        if forks:
            with _lock:  # no other worker inherits what multiprocessing makes for this
                process.start()
        else:
            process.start()
    finally:
        del _starting.end


def _close_inherited() -> None:
    _lock._at_fork_reinit()  # type: ignore[attr-defined]
    own = vars(_starting).pop("end", None)
    for end in list(_ends):
        if end is not own:
            end.close()


def _count_fork() -> None:
    global _forks
    _forks += 1
    _lock.release()


os.register_at_fork(
    before=_lock.acquire, after_in_parent=_count_fork, after_in_child=_close_inherited
)


# --- the process --------------------------------------------------------------------


def samples(
    dataset: Any,
    iterator: Any,
    indices: Any,
    batched: bool,
    collate: Callable[[Any], Any],
    drop_last: bool,
) -> Any:
    """The batch of a task, or Exhausted at the end of an iterator."""
    if iterator is None:
        if not batched:
            return collate(dataset[indices])
        several = getattr(dataset, "__getitems__", None)
        return collate(several(indices) if several else [dataset[i] for i in indices])
    if not batched:
        for sample in iterator:
            return collate(sample)
        return Exhausted()
    batch = []
    for _ in indices:
        try:
            batch.append(next(iterator))
        except StopIteration:
            break
    if not batch or (drop_last and len(batch) < len(indices)):
        return Exhausted()
    return collate(batch)


def _seed(seed: int, base_seed: int, worker: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:  # with the words that PyTorch uses
        words = [worker, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
        numpy.random.seed(numpy.random.SeedSequence(words).generate_state(4))


def main(end: Any, *work: Any) -> None:
    """Run _answer() with these arguments, as the whole of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the reader terminates this process
    _ends.add(end)  # a spawned worker's is new
    try:
        _answer(end, *work)
    except (EOFError, ConnectionError):
        pass  # the reader is gone
    except Exception:
        print_exc()
        sys.exit(FAILED)


def _answer(
    end: Any,
    job: tuple[Any, ...],
    base_seed: int,
    worker: int,
    workers: int,
    init: Callable[[int], object] | None,
    files: Files,
) -> None:
    """Answer tasks (epoch, number, indices, returned) until the reader is gone."""
    global _info
    dataset, iterable, *batching = job
    where = f"DataLoader worker process {worker}"
    answer: object = None
    try:
        torch.set_num_threads(1)
        _seed(base_seed + worker, base_seed, worker)
        _info = WorkerInfo(worker, workers, base_seed + worker, dataset)
        if init is not None:
            init(worker)
    except Exception:
        answer = Failure(where)  # to the first task
    epoch = over = iterator = None
    collating.lend = files.lend
    while True:
        task_epoch, number, indices, returned = receive(end)
        files.returned(returned)
        files.lent = None
        try:
            if task_epoch != epoch:
                epoch, over = task_epoch, False
                iterator = iter(dataset) if iterable else None
            if answer is None and over:
                answer = Exhausted()
            elif answer is None:
                answer = samples(dataset, iterator, indices, *batching)
                over = isinstance(answer, Exhausted)
        except Exception:
            answer, over = Failure(where), iterable
        try:
            send(end, (epoch, number, answer), files)
        except ConnectionError:
            raise
        except Exception:  # it cannot be pickled, or no memory is left
            send(end, (epoch, number, Failure(where)))
        answer = None
