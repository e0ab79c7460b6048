"""The worker process of a DataLoader, and its messages.

Each worker has a socket pair with the reading process: a worker that is killed closes
it, and leaves no lock behind. Messages are pickled; the elements of large CPU Tensors
and NumPy arrays are in anonymous shared memory, whose descriptor is sent along.
"""

import io
import mmap
import os
import pickle
import socket
import struct
import weakref
from traceback import format_exc

import pydevtensor as torch

# Smaller data goes through the socket: a mapping costs more than the copy. Small
# messages also never fill the sockets, so the two sides cannot deadlock.
SHARED_FROM = 1 << 13
_ALIGN = 64
_HEAD = struct.Struct("<QQ")  # bytes of the pickle; bytes of shared memory

# The reader's ends of the sockets, which a forked worker has to close.
_ends: weakref.WeakSet[socket.socket] = weakref.WeakSet()


class WorkerInfo:
    """The result of get_worker_info(); dataset is the worker's own copy."""

    __slots__ = ("dataset", "id", "num_workers", "seed")

    def __init__(self, id, num_workers, seed, dataset):
        self.id = id
        self.num_workers = num_workers
        self.seed = seed
        self.dataset = dataset

    def __repr__(self):
        return (
            f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, "
            f"seed={self.seed}, dataset={self.dataset!r})"
        )


_info = None


def get_worker_info():
    """The WorkerInfo of a DataLoader's worker process; None in other processes."""
    return _info


class Failure:
    """An exception in a worker: its type, and its traceback as text."""

    def __init__(self, where):
        import sys

        kind = sys.exc_info()[0] or RuntimeError
        try:
            pickle.dumps(kind)
        except Exception:  # such as a local class
            kind = RuntimeError
        self.kind = kind
        self.text = f"Caught {kind.__name__} in {where}.\nOriginal {format_exc()}"

    def raise_again(self):
        if issubclass(self.kind, KeyError):
            raise _readable(self.kind)(self.text)
        try:
            error = self.kind(self.text)
        except Exception:  # its constructor needs other arguments
            error = RuntimeError(self.text)
        raise error


def _readable(kind):
    """kind, a KeyError, whose str() is not quoted, so that it shows its lines."""
    return type(kind.__name__, (kind,), {"__str__": lambda self: str(self.args[0])})


class Exhausted:
    """The answer of a worker whose part of an IterableDataset is finished."""


# --- messages -----------------------------------------------------------------------


def _tensor_of_array(array, requires_grad):
    return torch.from_numpy(array).requires_grad_(requires_grad)


class _Pickler(pickle.Pickler):
    def reducer_override(self, value):
        if (
            isinstance(value, torch.Tensor)
            and type(value) is torch.Tensor
            and value.device.type == "cpu"
            and value.numel() * value.element_size() >= SHARED_FROM
        ):
            if value.requires_grad and not value.is_leaf:
                raise RuntimeError(
                    "DataLoader: a worker's batch has a grad_fn, which cannot leave "
                    "its process; detach() the Tensor"
                )
            array = value.detach().contiguous().numpy()
            return _tensor_of_array, (array, value.requires_grad)
        return NotImplemented


def send(end, value):
    """Send value through the socket. May wait for the reader."""
    big = []

    def aside(buffer):
        raw = buffer.raw()
        if raw.nbytes < SHARED_FROM:
            return True  # into the pickle
        big.append(raw)
        return False

    text = io.BytesIO()
    _Pickler(text, 5, buffer_callback=aside).dump(value)
    inline = text.tell() < SHARED_FROM
    if not inline:
        big.append(text.getbuffer())
    size, places = 0, []
    for raw in big:
        places.append((size, raw.nbytes))
        size += -(-raw.nbytes // _ALIGN) * _ALIGN
    body = pickle.dumps((places, text.getvalue() if inline else None))
    message = _HEAD.pack(len(body), size) + body
    if not size:
        end.sendall(message)
        return
    fd = os.memfd_create("pydevtensor-batch", os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, size)
        with mmap.mmap(fd, size) as memory:
            for (start, length), raw in zip(places, big, strict=True):
                memory[start : start + length] = raw
        sent = socket.send_fds(end, [message], [fd])
    finally:
        os.close(fd)
    end.sendall(message[sent:])


def _take(end, size):
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = end.recv_into(view)
        if not count:
            raise EOFError
        view = view[count:]
    return data


def receive(end):
    """Wait for the next value; raises EOFError if the other end is closed."""
    head, fds, _, _ = socket.recv_fds(end, _HEAD.size, 1)
    try:
        if not head:
            raise EOFError
        head += _take(end, _HEAD.size - len(head))
        length, size = _HEAD.unpack(head)
        places, text = pickle.loads(_take(end, length))
        buffers = []
        if size:
            memory = memoryview(mmap.mmap(fds[0], size))
            buffers = [memory[start : start + count] for start, count in places]
        if text is None:
            text = buffers.pop()
        return pickle.loads(text, buffers=buffers)
    finally:
        for fd in fds:
            os.close(fd)


def pair():
    """(the reader's end, the worker's end)"""
    ours, theirs = socket.socketpair()
    _ends.add(ours)
    return ours, theirs


# --- the process --------------------------------------------------------------------


def samples(dataset, iterator, indices, batched, collate, drop_last):
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


def _seed(seed, base_seed, worker):
    import random
    import sys

    random.seed(seed)
    torch.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:  # with the words that PyTorch uses
        words = [worker, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
        numpy.random.seed(numpy.random.SeedSequence(words).generate_state(4))


def main(end, job, base_seed, worker, workers, init):
    """Answer tasks (epoch, number, indices) until the reader is gone."""
    global _info
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the reader terminates this process
    for other in list(_ends):
        other.close()
    dataset, iterable, *batching = job
    where = f"DataLoader worker process {worker}"
    seed = base_seed + worker
    iterator = failure = None
    try:
        torch.set_num_threads(1)
        _seed(seed, base_seed, worker)
        _info = WorkerInfo(worker, workers, seed, dataset)
        if init is not None:
            init(worker)
        if iterable:
            iterator = iter(dataset)
    except Exception:
        failure = Failure(where)
    epoch = 0
    over = False
    try:
        while True:
            task = receive(end)
            if task is None:
                return
            if task[0] != epoch:
                epoch, over, failure = task[0], False, None
                if iterable:
                    try:
                        iterator = iter(dataset)
                    except Exception:
                        failure = Failure(where)
            answer: object = failure
            failure = None
            if answer is None:
                try:
                    answer = Exhausted()
                    if not over:
                        answer = samples(dataset, iterator, task[2], *batching)
                    over = isinstance(answer, Exhausted)
                except Exception:
                    answer = Failure(where)
                    over = iterable
            try:
                send(end, (epoch, task[1], answer))
            except OSError:
                raise
            except Exception:  # it cannot be pickled
                send(end, (epoch, task[1], Failure(where)))
            answer = None
    except (EOFError, OSError):
        pass  # the reader is gone
