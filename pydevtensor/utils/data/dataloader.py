"""DataLoader: batches of a data set, made in this process or by workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import repeat
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar
from warnings import warn

import pydevtensor as torch
from pydevtensor.utils.data import worker as work
from pydevtensor.utils.data.collate import default_collate, default_convert, pinned
from pydevtensor.utils.data.dataset import Dataset, IterableDataset, Samples
from pydevtensor.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    draw_seed,
)

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

_Sample_co = TypeVar("_Sample_co", covariant=True)


class _Endless(Sampler[None]):
    """The sampler of an IterableDataset, which has no indices."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __iter__(self) -> Iterator[None]:
        return repeat(None)

    def __len__(self) -> int:
        return len(self.dataset)


def _check_types(
    dataset: Any, num_workers: Any, collate_fn: Any, **orders: Any
) -> None:
    """Raise TypeError for arguments of another kind; orders: samplers by name."""
    known = isinstance(dataset, IterableDataset) or hasattr(dataset, "__getitem__")
    # A class may stand in a pickled loader's place until its state comes.
    if not known and not isinstance(dataset, type):
        raise TypeError(
            f"DataLoader: dataset is {repr(dataset)[:60]} "
            f"({type(dataset).__name__}), which has no __getitem__; give a "
            "Dataset, a list or an IterableDataset"
        )
    if not hasattr(num_workers, "__index__"):
        raise TypeError(
            f"DataLoader: num_workers is {num_workers!r} "
            f"({type(num_workers).__name__}); give an int"
        )
    for name, given in orders.items():
        if given is None or hasattr(given, "__iter__"):
            continue
        if not hasattr(given, "__getitem__"):
            raise TypeError(
                f"DataLoader: {name} is {given!r:.60} ({type(given).__name__}), "
                "which is not iterable; give a Sampler, or indices in a list"
            )
    if collate_fn is not None and not callable(collate_fn):
        raise TypeError(
            f"DataLoader: collate_fn is {collate_fn!r:.60} "
            f"({type(collate_fn).__name__}); give a function of a list of samples"
        )


def _check_options(
    is_iterable: bool,
    batch_size: int | None,
    shuffle: bool | None,
    sampler: Any,
    batch_sampler: Any,
    num_workers: int,
    drop_last: bool,
    timeout: float,
    workers: tuple[Any, ...],
) -> None:
    """Raise ValueError for options that exclude each other; workers: those of workers,
    of which prefetch_factor comes first."""
    prefetch_factor = workers[0]
    ordered = bool(shuffle or sampler is not None)
    for wrong, why in (
        (num_workers < 0, f"num_workers is {num_workers}; give 0 or more"),
        (timeout < 0, f"timeout is {timeout}; give seconds, or 0 for no limit"),
        (
            num_workers == 0 and any(option is not None for option in workers),
            "prefetch_factor, multiprocessing_context and persistent_workers are "
            "for workers; give num_workers too",
        ),
        (
            prefetch_factor is not None and prefetch_factor < 1,
            f"prefetch_factor is {prefetch_factor}; give 1 or more",
        ),
        (
            is_iterable and (ordered or batch_sampler is not None),
            "an IterableDataset has its own order; leave out shuffle, sampler and "
            "batch_sampler",
        ),
        (
            shuffle and sampler is not None,
            "shuffle and sampler exclude each other; give one of them",
        ),
        (
            batch_sampler is not None and (batch_size != 1 or ordered or drop_last),
            "batch_sampler decides the batches; leave out batch_size, shuffle, "
            "sampler and drop_last",
        ),
        (
            batch_size is None and drop_last,
            "drop_last needs batches; give a batch_size other than None",
        ),
    ):
        if wrong:
            raise ValueError("DataLoader: " + why)


class DataLoader(Generic[_Sample_co]):
    """Batches of a data set, in order or shuffled; iterate over it once per epoch.

    The order, and the numbers drawn from the generator, are PyTorch's for the same
    seed. len() is the number of batches. An exception in a worker is raised in this
    process with its type and traceback, the death of a worker as RuntimeError. Workers
    cannot use a GPU that this process has used, unless they are spawned.

    dataset                  has __getitem__ and __len__, or is an IterableDataset
    batch_size               samples per batch; None: single samples, not collated
    shuffle                  use a new random order in each epoch
    sampler, batch_sampler   yield the indices, or lists of them
    num_workers              processes that make batches ahead; 0: this process does
    collate_fn               makes a batch of a list of samples (default_collate)
    pin_memory               put batches into page-locked memory, for copies to a GPU
    drop_last                drop a last, shorter batch
    timeout                  seconds to wait for a worker's batch; 0: no limit
    worker_init_fn           called in each worker with its number, after seeding
    multiprocessing_context  'fork' (the default on Linux), 'spawn' or 'forkserver'
    generator                the source of random numbers, else the default generator
    prefetch_factor          batches that each worker makes ahead (2)
    persistent_workers       keep the workers for the next epoch
    pin_memory_device        no effect: the memory serves all GPUs
    in_order                 no effect: batches come in order

    >>> import pydevtensor as torch
    >>> loader = torch.utils.data.DataLoader(range(5), batch_size=2)
    >>> len(loader), list(loader)
    (3, [tensor([0, 1]), tensor([2, 3]), tensor([4])])
    """

    def __init__(
        self,
        dataset: Dataset[_Sample_co] | Samples[_Sample_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], object] | None = None,
        multiprocessing_context: BaseContext | str | None = None,
        generator: torch.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        samples: Any = dataset
        self._iterable = isinstance(dataset, IterableDataset)
        _check_types(
            dataset,
            num_workers,
            collate_fn,
            sampler=sampler,
            batch_sampler=batch_sampler,
        )
        workers = (prefetch_factor, multiprocessing_context, persistent_workers or None)
        _check_options(
            self._iterable,
            batch_size,
            shuffle,
            sampler,
            batch_sampler,
            num_workers,
            drop_last,
            timeout,
            workers,
        )
        if num_workers and prefetch_factor is None:
            prefetch_factor = 2
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        order: Any = sampler
        if order is None:
            if self._iterable:
                order = _Endless(dataset)
            elif shuffle:
                order = RandomSampler(samples, generator=generator)
            else:
                order = SequentialSampler(samples)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(order, batch_size, drop_last)
        self._batched = batch_sampler is not None
        self.dataset: Any = samples
        self.batch_size: int | None = batch_size
        self.sampler: Any = order
        self.batch_sampler: Any = batch_sampler
        self.num_workers: int = num_workers
        if collate_fn is None:
            collate_fn = default_collate if self._batched else default_convert
        self.collate_fn = collate_fn
        self.pin_memory: bool = pin_memory
        self.pin_memory_device: str = pin_memory_device
        self.drop_last: bool = drop_last
        self.timeout: float = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.prefetch_factor: int | None = prefetch_factor
        self.persistent_workers: bool = persistent_workers
        self.in_order: bool = in_order
        self._kept: _InWorkers | None = None

    @property
    def _batching(self) -> tuple[bool, Callable[[Any], Any], bool]:
        return self._batched, self.collate_fn, self.drop_last

    @property
    def _indices(self) -> Any:
        return self.batch_sampler if self._batched else self.sampler

    def __iter__(self) -> Iterator[Any]:
        if not self.num_workers:
            return _InThisProcess(self)
        if not self.persistent_workers:
            return _InWorkers(self)
        if self._kept is None or self._kept.closed:
            self._kept = _InWorkers(self)
        else:
            self._kept.restart()
        return self._kept

    def __len__(self) -> int:
        return len(self._indices)


class _Batches:
    """Base of the two iterators."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self.loader = loader
        self.indices = iter(loader._indices)
        # Drawn with and without workers, so that the same numbers follow.
        self.base_seed = draw_seed(loader.generator)
        self.pins = loader.pin_memory and self._can_pin()

    def _can_pin(self) -> bool:
        if torch.cuda.is_available() and hasattr(torch.Tensor, "pin_memory"):
            return True
        warn(
            "DataLoader: pin_memory=True has no effect without a GPU and page-locked "
            "memory",
            stacklevel=4,
        )
        return False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.loader._indices)


class _InThisProcess(_Batches):
    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        self.iterator = iter(loader.dataset) if loader._iterable else None

    def __next__(self) -> Any:
        indices, batching = next(self.indices), self.loader._batching
        batch = work.samples(self.loader.dataset, self.iterator, indices, *batching)
        if isinstance(batch, work.Exhausted):
            raise StopIteration
        return pinned(batch) if self.pins else batch


# Seconds that a worker has to end after a signal.
_PATIENCE = 5
_WAITED_FOR = object()  # the batch of a task that a worker has not answered


def _end_workers(ends: list[Any], processes: list[Any]) -> None:
    """Close the pipes, which ends idle workers; then terminate the others."""
    for end in ends:
        work.close(end)
    patience = monotonic() + 0.2
    for process in processes:
        process.join(timeout=max(0, patience - monotonic()))
    for process in processes:
        if process.is_alive():
            process.terminate()
    for process in processes:
        process.join(timeout=_PATIENCE)
        if process.is_alive():
            process.kill()
            process.join()


def _exit_code(process: Any) -> int | None:
    """The exit code of a process that ends; None if it does not."""
    patience = monotonic() + _PATIENCE
    process.join(timeout=_PATIENCE)
    # join() returns early while another thread waits for the same process, as every
    # start of a process does for all.
    while process.exitcode is None and monotonic() < patience:
        sleep(0.01)
    code: int | None = process.exitcode
    return code


class _InWorkers(_Batches):
    """Sends tasks to the workers in turn and returns batches in the tasks' order."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        import multiprocessing
        from multiprocessing.util import Finalize

        context = loader.multiprocessing_context
        if context is None:
            # fork, also in later Pythons: a notebook's data sets cannot be spawned
            context = multiprocessing.get_start_method(allow_none=True) or "fork"
        if isinstance(context, str):
            context = multiprocessing.get_context(context)
        self.ends: list[Any] = []
        self.processes: list[Any] = []
        self.mapped: list[work.Mapped] = []  # files of each worker
        self.epoch = 0
        # Does nothing in a fork, whose children the workers are not. At exit
        # (exitpriority) it precedes multiprocessing's own wait, which has no limit.
        self._end = Finalize(
            self, _end_workers, (self.ends, self.processes), exitpriority=0
        )
        self.owner = os.getpid()
        try:
            for number in range(loader.num_workers):
                self._start(context, number)
        except BaseException:
            self._end()
            raise
        self._begin()

    def _start(self, context: Any, number: int) -> None:
        loader = self.loader
        ours, theirs = work.pair()
        self.ends.append(ours)
        job = loader.dataset, loader._iterable, *loader._batching
        seed, init = self.base_seed, loader.worker_init_fn
        # Those made ahead, one that is written, one that the program uses, one more.
        files = work.Files((loader.prefetch_factor or 1) + 3)
        self.mapped.append(work.Mapped())
        args = theirs, job, seed, number, loader.num_workers, init, files
        process = context.Process(target=work.main, args=args, daemon=True)
        try:
            work.start(process, theirs, context.get_start_method() == "fork")
        finally:
            work.close(theirs)
        self.processes.append(process)

    def _begin(self) -> None:
        self.working = [True] * len(self.processes)
        self.turn = 0
        self.sent = 0
        # By number, in order: the batch, or _WAITED_FOR until then.
        self.tasks: dict[int, Any] = {}
        ahead = self.loader.prefetch_factor or 1
        for _ in range(ahead * len(self.processes)):
            self._send_task()

    @property
    def closed(self) -> bool:
        return os.getpid() != self.owner or not self._end.still_active()

    def restart(self) -> None:
        """Start another epoch with the same workers; drops unfinished batches."""
        self.indices = iter(self.loader._indices)
        self.epoch += 1
        self._begin()

    def _send_task(self) -> None:
        for _ in self.processes:
            number = self.turn
            self.turn = (number + 1) % len(self.processes)
            if self.working[number]:
                break
        else:
            return
        indices = next(self.indices, _WAITED_FOR)
        if indices is _WAITED_FOR:
            return
        self.tasks[self.sent] = _WAITED_FOR
        with self._worker(number):
            files = self.mapped[number].returned()
            work.send(self.ends[number], (self.epoch, self.sent, indices, files))
        self.sent += 1

    @contextmanager
    def _worker(self, number: int) -> Iterator[None]:
        """Around a message to or from a worker; on any error all of them end."""
        try:
            yield
        except (EOFError, ConnectionError):
            self._worker_died(number)
        except BaseException:  # the rest of the message may be in the pipe
            self._end()
            raise

    def _worker_died(self, number: int) -> NoReturn:
        process = self.processes[number]
        code = _exit_code(process)
        see = ": try num_workers=0 to see an error of the data set"
        how, why = f"ended with exit code {code}", "the data set or a library ended it"
        if code is None:
            how, why = "closed its pipe", "the data set or a library closed it"
        elif code == work.FAILED:
            how, see = "failed outside the data set", ""
            why = (
                "its traceback is on stderr. Does the program close descriptors that "
                "it did not open? If not, please report it"
            )
        elif code < 0:
            from signal import Signals

            name = Signals(-code).name
            how = f"was killed by {name}"
            if name in ("SIGKILL", "SIGBUS"):
                why = "the system may be out of memory"
        self._end()
        raise RuntimeError(
            f"DataLoader worker {number} (pid {process.pid}) {how}; {why}{see}"
        )

    def _receive(self) -> None:
        """Wait for a worker's answer and store it."""
        from multiprocessing.connection import wait

        loader = self.loader
        found = wait(self.ends, loader.timeout or None)
        if not found:
            self._end()
            raise RuntimeError(
                f"DataLoader: no worker made a batch within {loader.timeout} seconds; "
                "increase timeout, or find out what the data set waits for"
            )
        for end in found:
            number = self.ends.index(end)
            with self._worker(number):
                epoch, task, answer = work.receive(end, self.mapped[number])
            if epoch != self.epoch:
                continue
            if isinstance(answer, work.Exhausted):
                self.working[number] = False
                self.tasks.pop(task, None)
                self._send_task()
            else:
                self.tasks[task] = answer

    def __next__(self) -> Any:
        if os.getpid() != self.owner:
            raise RuntimeError(
                f"DataLoader: process {self.owner} began this iterator and its workers "
                "answer there alone; call iter() on the loader in this process"
            )
        if self.closed:
            raise StopIteration
        while self.tasks:
            task = next(iter(self.tasks))
            if self.tasks[task] is not _WAITED_FOR:
                break
            self._receive()
        else:
            if not self.loader.persistent_workers:
                self._end()
            raise StopIteration
        batch = self.tasks.pop(task)
        self._send_task()
        if isinstance(batch, work.Failure):
            batch.raise_again()
        return pinned(batch) if self.pins else batch
