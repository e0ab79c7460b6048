"""Workers of loaders that meet no memory, no descriptors and no reader, and what they send."""

import errno
import os
import resource
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from data_sets import Numbers, Spoilt, values
from isolated import python

import pydevtensor as torch
from pydevtensor.utils.data import DataLoader, default_collate, worker

# --- loaders ------------------------------------------------------------------------


LONG = [pytest.mark.slow, pytest.mark.core]


@pytest.mark.slow
@pytest.mark.parametrize("times", [6, pytest.param(50, marks=LONG)])
def test_loaders_in_several_threads(times):
    def read(_):
        made = [values(DataLoader(range(6), 3, num_workers=2)) for _ in range(times)]
        assert made == [[[0, 1, 2], [3, 4, 5]]] * times

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(read, range(6)))


# --- no memory, no descriptors ------------------------------------------------------


def limit(name, count):
    return lambda: resource.setrlimit(getattr(resource, name), (count, count))


def without_memfd():
    def memfd_create(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    os.memfd_create = memfd_create


@pytest.mark.parametrize(
    "how, reason",
    [
        (limit("RLIMIT_NOFILE", 3), "Too many open files"),
        (limit("RLIMIT_FSIZE", 1000), "File too large"),  # in the middle of the batch
        (without_memfd, "No space left"),
    ],
)
def test_no_shared_memory_in_a_worker(how, reason):
    loader = DataLoader(
        Spoilt(how), num_workers=2, collate_fn=lambda batch: torch.zeros(10_000)
    )
    iterator = iter(loader)
    assert [len(next(iterator)) for _ in range(5)] == [10_000] * 5
    with pytest.raises(RuntimeError, match="no shared memory for") as caught:
        next(iterator)
    text = str(caught.value)
    assert "worker process 1" in text and reason in text and "ulimit" in text


@pytest.mark.skipif(
    bool(os.environ.get("PYDEVTENSOR_SANITIZE")),
    reason="limits the address space, of which a sanitizer takes terabytes",
)
def test_no_memory_in_a_worker():
    def how():
        limit("RLIMIT_AS", 1 << 31)()
        bytearray(1 << 40)

    with pytest.raises(MemoryError, match="worker process 1"):
        list(DataLoader(Spoilt(how), num_workers=2))


# Only the batches, and then only the lists of indices, are too big for the pipe.
@pytest.mark.parametrize(
    "loaded, words",
    [
        ("[[0.5] * 5000] * 16, 2, collate_fn=torch.tensor", "cannot map a batch of"),
        ("range(40000), 5000, collate_fn=len", "no shared memory for"),
    ],
    ids=["receives", "sends"],
)
def test_no_descriptors_in_the_reader(loaded, words):
    out = python(f"""
import multiprocessing, os, resource
from contextlib import suppress
import pydevtensor as torch
from pydevtensor.utils.data import DataLoader
loader = DataLoader({loaded}, num_workers=2, prefetch_factor=1)
iterator = iter(loader)
next(iterator)
resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50))
with suppress(OSError):
    while True:
        os.dup(0)
try:
    list(iterator)
except RuntimeError as error:
    print(error)
print(multiprocessing.active_children(), list(iterator))
""")
    assert words in out and "ulimit" in out and out.endswith("[] []\n")


def test_batches_need_no_file_in_dev_shm():
    out = python("""
import sys
def refuse(event, arguments):
    if event == 'open' and str(arguments[0]).startswith('/dev/shm'):
        raise OSError(28, 'No space left on device')
sys.addaudithook(refuse)
import pydevtensor as torch
from pydevtensor.utils.data import DataLoader
loader = DataLoader(range(4), 2, num_workers=2, collate_fn=lambda _: torch.ones(10**5))
print([batch.sum().item() for batch in loader])
""")
    assert out == "[100000.0, 100000.0]\n"


def test_timeout():
    loader = DataLoader(
        Spoilt(lambda: time.sleep(60)), num_workers=1, timeout=0.3, prefetch_factor=1
    )
    with pytest.raises(RuntimeError, match=r"0\.3 seconds"):
        list(loader)


# --- the reader ends ----------------------------------------------------------------


# isolated.python() checks that no worker outlives it.
READER = """
import os, signal, sys, threading, time, multiprocessing
import pydevtensor as torch
from pydevtensor.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 99

    def __getitem__(self, index):
        if index > 9:
            {worker}
        return index

if __name__ == "__main__":
    loader = DataLoader(Slow(), num_workers=2, multiprocessing_context={method!r})
    iterator = iter(loader)
    next(iterator)
    {reader}
"""


def read(tmp_path, reader, worker="time.sleep(600)", method="fork", **expected):
    script = tmp_path / "reader.py"
    script.write_text(READER.format(reader=reader, worker=worker, method=method))
    return python(None, arguments=[str(script)], **expected)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize(
    "reader, status",
    [
        ("pass", 0),
        ("sys.exit(3)", 3),
        ("del iterator; print(multiprocessing.active_children())", 0),
        ("os.kill(iterator.processes[1].pid, 9); list(iterator)", 1),
        ("list(iterator)", 1),
    ],
)
def test_no_worker_outlives_its_reader(reader, status, method, tmp_path):
    worker = "raise ValueError" if reader == "list(iterator)" else "time.sleep(600)"
    assert read(tmp_path, reader, worker, method, status=status) in ("", "[]\n")


@pytest.mark.parametrize(
    "reader, status",
    [("os.kill(os.getpid(), 9)", -9), ("os._exit(4)", 4)],
)
def test_workers_notice_that_their_reader_is_gone(reader, status, tmp_path):
    read(tmp_path, reader, "time.sleep(0.1)", status=status)


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["pass", "del iterator"])
def test_workers_that_ignore_signals_are_killed(reader, tmp_path):
    stop = (
        "import pydevtensor.utils.data.dataloader as module; module._PATIENCE = 0.2; "
        "[next(iterator) for _ in range(9)]; time.sleep(0.2); "
        "os.kill(iterator.processes[1].pid, signal.SIGSTOP); "
    )
    worker = "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    read(tmp_path, stop + reader, worker)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["kill(os.getpid()", "killpg(0"])
def test_an_interrupt_while_it_waits(target, tmp_path):
    reader = f"""
    threading.Timer(0.2, lambda: os.{target}, signal.SIGINT)).start()
    try:
        for batch in iterator:
            pass
    except KeyboardInterrupt:
        print('interrupted')
    workers = multiprocessing.active_children()
    print(len(workers), iterator.closed)
    del iterator, batch
    print(multiprocessing.active_children())
    print([batch.tolist() for batch, _ in zip(loader, range(9))][-1])
    """
    out = read(tmp_path, reader.strip())
    assert out.splitlines() == ["interrupted", "2 False", "[]", "[8]"]


def test_a_fork_of_the_reader_has_its_own_iterators(tmp_path):
    reader = """
    kept = DataLoader(range(4), 2, num_workers=2, persistent_workers=True)
    first = iter(kept)
    print(next(first).tolist(), flush=True)
    if not os.fork():
        try:
            next(first)
        except RuntimeError as error:
            print(error)
        print([batch.tolist() for batch in kept], flush=True)
        kept = first = None
        os._exit(0)
    os.wait()
    print(next(first).tolist())
    """
    out = read(tmp_path, reader.strip()).splitlines()
    assert out[0] == "[0, 1]" and "call iter() on the loader" in out[1]
    assert out[2:] == ["[[0, 1], [2, 3]]", "[2, 3]"]


@pytest.mark.slow
def test_workers_forked_while_threads_compute(tmp_path):
    reader = """
    done = False
    def compute():
        x = torch.rand(200, 200)
        while not done:
            (x @ x).sum(); torch.rand(50_000).sort(); x + 1
    threads = [threading.Thread(target=compute) for _ in range(3)]
    [thread.start() for thread in threads]
    def batch(indices):
        torch.set_num_threads(2)
        return torch.ones(50_000).sin().sort()[0], torch.rand(99, 99) @ torch.rand(99, 99)
    for _ in range(10):
        made = DataLoader(range(8), 2, num_workers=3, collate_fn=batch)
        print(len(list(made)))
    done = True
    """
    assert read(tmp_path, reader.strip()) == "4\n" * 10


# --- what travels -------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 1000, 5000, 100_000])
def test_tensors_arrive_whole_and_writable(size):
    def make(batch):
        x = torch.arange(size)
        y = x.numpy().astype("f4")
        return (
            x,
            (y, "t" * size),
            x.reshape(1, -1).t(),
            torch.ones(size).requires_grad_(),
        )

    wanted = np.arange(size)
    for x, (y, text), z, w in DataLoader(range(3), num_workers=2, collate_fn=make):
        assert (x.numpy() == wanted).all() and (y == wanted).all() and len(text) == size
        assert (z.numpy()[:, 0] == wanted).all() and z.shape == (size, 1)
        assert w.requires_grad and w.is_leaf
        x += 1
        y += 1
        assert x[-1].item() == size


def test_memory_of_batches_is_written_again_when_nothing_uses_it():
    numbers = range(40)
    loader = DataLoader(
        numbers, num_workers=2, collate_fn=lambda b: torch.full((20_000,), float(b[0]))
    )
    files, kept = set(), {}
    for number, batch in enumerate(loader):
        assert (batch == number).all()
        files.add(_file_of(batch))
        if number % 7 == 0:
            kept[number] = batch[1:].numpy() if number % 2 else batch[1:]
    del batch
    # Two made ahead by each worker, one in use, and those that are kept.
    assert len(files) <= 2 * (2 + 2) + len(kept)
    for number, part in kept.items():
        assert (part == number).all()
    # Kept batches take files beyond a worker's number of them, each its own.
    all_kept = [*loader]
    assert [int(batch[-1]) for batch in all_kept] == [*numbers]
    assert len({_file_of(batch) for batch in all_kept}) == len(numbers)


def _file_of(batch):
    """The inode of the mapping that has the batch's memory."""
    with open("/proc/self/maps") as file:
        for line in file:
            begin, end = (int(x, 16) for x in line.split()[0].split("-"))
            if begin <= batch.data_ptr() < end:
                return line.split()[4]
    raise AssertionError


def test_a_fork_keeps_the_batches_that_it_has(tmp_path):
    reader = """
    import os
    loader = DataLoader(range(30), num_workers=1, collate_fn=lambda b: torch.full((20_000,), float(b[0])))
    batches = iter(loader)
    batch = next(batches)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.read(read, 1)  # when the parent has loaded all others
        os._exit(0 if (batch == 0).all() else 1)
    for number in range(1, 30):
        batch = next(batches)
        assert (batch == number).all()
    os.write(write, b"x")
    print(os.waitpid(child, 0)[1])
    done = True
    """
    assert read(tmp_path, reader.strip()) == "0\n"


def test_long_lists_of_indices_and_answers_do_not_block():
    loader = DataLoader(
        range(200_000), 100_000, num_workers=1, collate_fn=list, prefetch_factor=8
    )
    assert [len(batch) for batch in loader] == [100_000, 100_000]


def test_recorded_results_do_not_travel():
    x = torch.ones(5000, requires_grad=True)
    loader = DataLoader(range(1), num_workers=1, collate_fn=lambda _: x * 2)
    with pytest.raises(RuntimeError, match="detach"):
        list(loader)


@pytest.mark.parametrize(
    "words",
    [
        {"num_workers": -1},
        {"timeout": -1},
        {"prefetch_factor": 2},
        {"num_workers": 1, "prefetch_factor": 0},
        {"persistent_workers": True},
        {"shuffle": True, "sampler": range(3)},
        {"batch_sampler": [[0]], "batch_size": 2},
        {"batch_sampler": [[0]], "shuffle": True},
        {"batch_size": None, "drop_last": True},
        {"batch_size": 0},
        {"multiprocessing_context": "fork"},
    ],
    ids=str,
)
def test_arguments_that_do_not_go_together(words):
    with pytest.raises(ValueError, match=r"give|leave"):
        DataLoader(range(3), **words)


def test_an_iterable_has_its_own_order():
    for words in ({"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}):
        with pytest.raises(ValueError, match="own order"):
            DataLoader(Numbers(3), **words)


def test_loaded_when_used():
    out = python("""
import sys
import pydevtensor as torch
print('pydevtensor.utils' in sys.modules, 'multiprocessing' in sys.modules)
loader = torch.utils.data.DataLoader(range(3))
list(loader)
print('multiprocessing' in sys.modules)
from pydevtensor.utils import data
assert data is torch.utils.data
""")
    assert out == "False False\nFalse\n"


def test_what_is_no_dataset():
    with pytest.raises(TypeError, match=r"dataset is 5 \(int\).*__getitem__"):
        DataLoader(5)


class Made:
    """Images with labels, and the batches that its collate_fn has made."""

    def __init__(self, kind="plain"):
        self.kind, self.kept = kind, []

    def __len__(self):
        return 60

    def __getitem__(self, i):
        image = torch.full((30, 41), float(i))
        if self.kind == "two":
            return image, image.long(), i
        if self.kind == "arrays":
            return image.numpy(), i
        if self.kind == "types":
            return image.double() if i % 3 else image, i
        return image, i

    def collate(self, samples):
        batch = default_collate(samples)
        if self.kind == "dropped":
            return batch[1]
        if self.kind == "turned":
            return batch[1], torch.ones(5000), batch[0]
        if self.kind == "kept":
            self.kept.append(batch[0])
            sums = [int(each.sum()) for each in self.kept]
            return [*batch, torch.tensor(sums)]
        if self.kind == "changed":
            batch[0] += 1
        return batch


KINDS = ["plain", "two", "arrays", "types", "dropped", "turned", "kept", "changed"]


@pytest.mark.parametrize("hold", [0, 3, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_batches_that_are_made_where_they_are_sent(kind, hold):
    """The reader holds the last batches, so that files come back early or late."""
    made = Made(kind)
    batches = []
    for at, batch in enumerate(
        DataLoader(made, 4, num_workers=2, collate_fn=made.collate, prefetch_factor=3)
    ):
        batches = [*batches, (at, batch)][-hold - 1 :]
        for first, each in batches:
            want = made.collate([made[i] for i in range(4 * first, 4 * first + 4)])
            if kind == "kept":
                # Later batches have not changed those that the worker keeps.
                mine = [
                    4 * n + k for n in range(first % 2, first + 1, 2) for k in range(4)
                ]
                sums = [sum(mine[i : i + 4]) * 30 * 41 for i in range(0, len(mine), 4)]
                assert each[2].tolist() == sums
                each, want = each[:2], want[:2]
            if isinstance(want, torch.Tensor):
                each, want = [each], [want]
            for got, wanted in zip(each, want, strict=True):
                assert got.dtype == wanted.dtype and torch.equal(got, wanted)


def test_a_stack_needs_no_copy_to_be_sent():
    files = worker.Files(3)
    like = [torch.full((5000,), float(i)) for i in range(3)]
    assert files.lend(like) is None  # there is no file yet
    _, shared = files.write([memoryview(torch.zeros(20_000))])
    files.returned([(shared.file, True)])
    out = torch.stack(like, out=files.lend(like))
    assert files.lend(like) is None  # one for a batch
    fd, shared = files.write([memoryview(out), memoryview(b"text")])
    assert shared == ([60_000, 4], 1, False)
    seen = torch._C._map_file(fd)
    assert torch.frombuffer(seen, dtype=torch.float32)[:15_000].equal(out.reshape(-1))
    assert bytes(memoryview(seen)[60_032:60_036]) == b"text"
    files.returned([(1, True)])
    files.lent = None
    assert files.lend(like) is None  # out is still used here
    del out
    assert files.lend([t.requires_grad_() for t in like]) is None
    assert files.lend(like[:1]) is None and files.free == [1]
