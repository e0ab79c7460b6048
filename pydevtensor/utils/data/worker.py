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
import mmap
import os
import pickle
import random
import signal
import socket
import sys
import weakref
from _thread import RLock, _local
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from traceback import format_exc, print_exc
from typing import Any, NoReturn

import pydevtensor as torch

# A module that another thread imports during a fork stays locked in the child for ever.
# So what workers use is imported before they start.
from pydevtensor import _numpy as _numpy
from pydevtensor import _shared_memory
from pydevtensor import _streams as _streams
from pydevtensor._functions import interop as interop
from pydevtensor._sharing import rebuild_cuda_tensor, reduce_tensor

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
    """kind, a KeyError, whose str() is not quoted, so that it shows its lines."""
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


class _Shared:
    """Stands for a value that is in shared memory: its buffers, and last its pickle."""

    def __init__(self, places: list[slice]) -> None:
        self.places = places


def send(end: Any, value: object) -> None:
    """Send value through the pipe. May wait for the reader."""
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
        with _socket_of(end) as way:
            fd, places = _shared_memory.write("pydevtensor-batch", big)
            try:
                end.send_bytes(pickle.dumps(_Shared(places)))
                socket.send_fds(way, [b"x"], [fd])
            finally:
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


def receive(end: Any) -> Any:
    """Wait for the next value; EOFError or ConnectionError if the other end is gone."""
    value = pickle.loads(end.recv_bytes())
    if not isinstance(value, _Shared):
        return value
    try:
        with _socket_of(end) as way:
            byte, fds, _, _ = socket.recv_fds(way, 1, 1)
        if not byte:
            raise EOFError
        if not fds:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        (fd,) = fds
        try:
            memory = memoryview(mmap.mmap(fd, 0))
        finally:
            os.close(fd)
    except (EOFError, ConnectionError):
        raise
    except OSError as error:
        raise RuntimeError(
            f"DataLoader: cannot map a batch of {value.places[-1].stop} bytes "
            f"({error}); keep fewer batches at a time: each has a file descriptor and "
            "a mapping (see ulimit -n and -v)"
        ) from error
    *buffers, text = (memory[place] for place in value.places)
    return pickle.loads(text, buffers=buffers)


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


os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_close_inherited
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
) -> None:
    """Answer tasks (epoch, number, indices) until the reader is gone."""
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
    while True:
        task_epoch, number, indices = receive(end)
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
            send(end, (epoch, number, answer))
        except ConnectionError:
            raise
        except Exception:  # it cannot be pickled, or no memory is left
            send(end, (epoch, number, Failure(where)))
        answer = None
