"""DataLoader: batches of a data set, made here or by worker processes."""

import os
import weakref
from itertools import repeat
from time import monotonic
from warnings import warn

import pydevtensor as torch
from pydevtensor.utils.data import worker as work
from pydevtensor.utils.data.collate import default_collate, default_convert, pinned
from pydevtensor.utils.data.dataset import IterableDataset
from pydevtensor.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    draw_seed,
)


class _Endless(Sampler):
    """Stands in for indices where a set has none."""

    def __iter__(self):
        return repeat(None)


class DataLoader:
    """Batches of a data set, in order or shuffled; iterate over it, once an epoch.

    dataset           has __getitem__ and __len__, or is an IterableDataset
    batch_size        samples in a batch; None: single samples, not collated
    shuffle           a new random order in each epoch
    sampler           gives the indices instead; batch_sampler gives lists of them
    num_workers       processes that make batches ahead; 0: they are made here
    collate_fn        turns a list of samples into a batch; default_collate
    pin_memory        put batches into page-locked memory, for copies to a GPU
    drop_last         leave a last, shorter batch out
    timeout           seconds to wait for a worker's batch; 0: for ever
    worker_init_fn    called in each worker with its number, after seeding
    multiprocessing_context   'fork' (the default on Linux), 'spawn' or 'forkserver'
    generator         the source of random numbers; the default one
    prefetch_factor   batches that each worker makes ahead; 2
    persistent_workers   keep workers for the next epoch

    The order, and the numbers drawn from the generator, are PyTorch's for the same
    seed. len() is the number of batches. An exception in a worker is raised here, in
    its type and with its traceback; a worker that dies is a RuntimeError. Workers
    cannot use a GPU that this process has used, unless they are spawned.

    >>> import pydevtensor as torch
    >>> loader = torch.utils.data.DataLoader(range(5), batch_size=2)
    >>> len(loader), list(loader)
    (3, [tensor([0, 1]), tensor([2, 3]), tensor([4])])
    """

    def __class_getitem__(cls, item):
        return cls

    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=None,
        sampler=None,
        batch_sampler=None,
        num_workers=0,
        collate_fn=None,
        pin_memory=False,
        drop_last=False,
        timeout=0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor=None,
        persistent_workers=False,
        pin_memory_device="",
        in_order=True,
    ):
        if num_workers < 0:
            raise ValueError(
                f"DataLoader: num_workers is {num_workers}; give 0 (none) or more"
            )
        if timeout < 0:
            raise ValueError(
                f"DataLoader: timeout is {timeout}; give seconds, or 0 to wait for ever"
            )
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "DataLoader: prefetch_factor is for workers; give num_workers too"
            )
        if num_workers and prefetch_factor is None:
            prefetch_factor = 2
        if prefetch_factor is not None and prefetch_factor < 1:
            raise ValueError(
                f"DataLoader: prefetch_factor is {prefetch_factor}; give 1 or more"
            )
        if persistent_workers and num_workers == 0:
            raise ValueError(
                "DataLoader: persistent_workers needs workers; give num_workers too"
            )
        if num_workers == 0 and multiprocessing_context is not None:
            raise ValueError(
                "DataLoader: multiprocessing_context is for workers; give num_workers"
            )
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable:
            if shuffle or sampler is not None or batch_sampler is not None:
                raise ValueError(
                    "DataLoader: an IterableDataset has its own order; leave shuffle, "
                    "sampler and batch_sampler away"
                )
        elif shuffle and sampler is not None:
            raise ValueError("DataLoader: give shuffle or a sampler, not both")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "DataLoader: a batch_sampler decides all of it; leave batch_size, "
                    "shuffle, sampler and drop_last away"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError(
                "DataLoader: drop_last needs batches; give a batch_size, not None"
            )
        if sampler is None:
            if self._iterable:
                sampler = _Endless()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self._batched = batch_sampler is not None
        self.dataset = dataset
        self.batch_size = batch_size
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        if collate_fn is None:
            collate_fn = default_collate if self._batched else default_convert
        self.collate_fn = collate_fn
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.drop_last = drop_last
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.prefetch_factor = prefetch_factor
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self._kept = None

    @property
    def _indices(self):
        return self.batch_sampler if self._batched else self.sampler

    def __iter__(self):
        if not self.num_workers:
            return _Here(self)
        if not self.persistent_workers:
            return _There(self)
        if self._kept is None or self._kept.closed:
            self._kept = _There(self)
        else:
            self._kept.restart()
        return self._kept

    def __len__(self):
        if not self._iterable:
            return len(self._indices)
        length = len(self.dataset)
        if self.batch_size is None:
            return length
        if self.drop_last:
            return length // self.batch_size
        return (length + self.batch_size - 1) // self.batch_size


class _Batches:
    """What the two kinds of iterators share."""

    def __init__(self, loader):
        self.loader = loader
        self.indices = iter(loader._indices)
        # Drawn in each epoch, with and without workers: the same numbers follow.
        self.base_seed = draw_seed(loader.generator)
        self.pins = loader.pin_memory and self._can_pin()

    def _can_pin(self):
        if torch.cuda.is_available() and hasattr(torch.Tensor, "pin_memory"):
            return True
        warn(
            "DataLoader: pin_memory=True has no effect: there is no GPU to copy to, or "
            "no page-locked memory",
            stacklevel=4,
        )
        return False

    def __iter__(self):
        return self

    def __len__(self):
        return len(self.loader._indices)


class _Here(_Batches):
    def __init__(self, loader):
        super().__init__(loader)
        self.iterator = iter(loader.dataset) if loader._iterable else None

    def __next__(self):
        loader = self.loader
        batch = work._samples(
            loader.dataset,
            self.iterator,
            next(self.indices),
            loader._batched,
            loader.collate_fn,
            loader.drop_last,
        )
        if isinstance(batch, work.Exhausted):
            raise StopIteration
        return pinned(batch) if self.pins else batch


def _end_workers(owner, ends, processes):
    """Let the workers go: they see that nobody reads any more. Those busy are ended."""
    if os.getpid() != owner:
        return  # in a fork, whose children they are not
    for end in ends:
        end.close()
    patience = monotonic() + 0.2
    for process in processes:
        process.join(timeout=max(0, patience - monotonic()))
    for process in processes:
        if process.is_alive():
            process.terminate()
    for process in processes:
        process.join(timeout=5)
        if process.is_alive():
            process.kill()
            process.join()


class _There(_Batches):
    """Tasks go to the workers in turn; answers are given in the order of the tasks."""

    def __init__(self, loader):
        super().__init__(loader)
        import multiprocessing

        context = loader.multiprocessing_context
        if context is None:
            # fork, on Linux, whatever later Pythons prefer: notebooks define data sets
            context = multiprocessing.get_start_method(allow_none=True) or "fork"
        if isinstance(context, str):
            context = multiprocessing.get_context(context)
        self.ends: list = []
        self.processes: list = []
        self.epoch = 0
        self._end = weakref.finalize(
            self, _end_workers, os.getpid(), self.ends, self.processes
        )
        try:
            for number in range(loader.num_workers):
                self._start(context, number)
        except BaseException:
            self._end()
            raise
        self._begin()

    def _start(self, context, number):
        loader = self.loader
        ours, theirs = work.pair()
        self.ends.append(ours)
        process = context.Process(
            target=work.main,
            args=(
                theirs,
                loader.dataset,
                loader._iterable,
                loader._batched,
                loader.collate_fn,
                loader.drop_last,
                self.base_seed,
                number,
                loader.num_workers,
                loader.worker_init_fn,
            ),
            daemon=True,
        )
        try:
            process.start()
        finally:
            theirs.close()
        self.processes.append(process)

    def _begin(self):
        self.working = [True] * len(self.processes)
        self.turn = 0
        self.sent = 0  # tasks
        self.given = 0  # batches
        self.owner = {}  # task: worker
        self.ready = {}  # task: batch
        for _ in range(self.loader.prefetch_factor * len(self.processes)):
            self._send_task()

    @property
    def closed(self):
        return not self._end.alive

    def restart(self):
        """Begin another epoch with the same workers; what is under way is dropped."""
        self.indices = iter(self.loader._indices)
        self.epoch += 1
        self._begin()

    def _send_task(self):
        for _ in self.processes:
            number = self.turn
            self.turn = (number + 1) % len(self.processes)
            if self.working[number]:
                break
        else:
            return
        indices = next(self.indices, self)
        if indices is self:
            return
        self.owner[self.sent] = number
        try:
            work.send(self.ends[number], (self.epoch, self.sent, indices))
        except OSError:
            self._worker_died(number)
        self.sent += 1

    def _worker_died(self, number):
        process = self.processes[number]
        process.join(timeout=5)
        code, pid = process.exitcode, process.pid
        how = f"ended with exit code {code}"
        if code is not None and code < 0:
            from signal import Signals

            how = f"was killed by {Signals(-code).name}"
        self._end()
        raise RuntimeError(
            f"DataLoader worker {number} (pid {pid}) {how}; the system may have run "
            "out of memory: try num_workers=0 to see an error of the data set itself"
        )

    def _receive(self):
        """Wait for one answer of any worker and note it."""
        from multiprocessing.connection import wait

        loader = self.loader
        found = wait(self.ends, loader.timeout or None)
        if not found:
            self._end()
            raise RuntimeError(
                f"DataLoader: no worker made a batch within {loader.timeout} seconds; "
                "raise timeout, or look for what the data set waits for"
            )
        for end in found:
            number = self.ends.index(end)
            try:
                epoch, task, answer = work.receive(end)
            except (EOFError, OSError):
                self._worker_died(number)
            except BaseException:  # the rest of its message may still be in the socket
                self._end()
                raise
            if epoch != self.epoch:
                continue
            if isinstance(answer, work.Exhausted):
                self.working[number] = False
                self.owner.pop(task, None)
                self._send_task()
            else:
                self.ready[task] = answer

    def __next__(self):
        if self.closed:
            raise StopIteration
        while True:
            while self.given < self.sent and self.given not in self.owner:
                self.given += 1
            if self.given == self.sent:
                if not self.loader.persistent_workers:
                    self._end()
                raise StopIteration
            if self.given in self.ready:
                break
            self._receive()
        batch = self.ready.pop(self.given)
        del self.owner[self.given]
        self.given += 1
        self._send_task()
        if isinstance(batch, work.Failure):
            batch.raise_again()
        return pinned(batch) if self.pins else batch
