"""Data sets, samplers, batches, and loaders with and without worker processes.

The orders that they draw are held against PyTorch's in test_golden_random.py.
"""

import collections
import multiprocessing
import os
import pickle
import signal
import sys
import time
from contextlib import suppress

import numpy as np
import pytest
from data_sets import Numbers, Spoilt, Squares, values
from isolated import python

import pydevtensor as torch
from pydevtensor.utils import data
from pydevtensor.utils.data import DataLoader, Dataset, TensorDataset

Point = collections.namedtuple("Point", "x y")
pytestmark = pytest.mark.usefixtures("no_process_is_left")


# --- sets ---------------------------------------------------------------------------


def test_tensor_dataset():
    pairs = TensorDataset(torch.arange(6).reshape(3, 2), torch.arange(3))
    assert len(pairs) == 3
    x, y = pairs[-1]
    assert x.tolist() == [4, 5] and y.item() == 2
    with pytest.raises(AssertionError, match="3, 2"):
        TensorDataset(torch.zeros(3), torch.zeros(2))
    with pytest.raises(IndexError):
        pairs[3]


def test_concatenation_and_subsets():
    joined = data.Subset(range(10), [3, 4]) + data.Subset(range(10), [8])
    assert [joined[i] for i in range(3)] == [3, 4, 8] and joined[-1] == 8
    for bad, error in ((3, IndexError), (-4, ValueError)):
        with pytest.raises(error, match="-3 to 2"):
            joined[bad]
    assert data.Subset(range(9), [1, 5]).__getitems__([1, 0]) == [5, 1]
    stacked = data.StackDataset(a=range(3), b=range(3, 6))
    assert stacked[1] == {"a": 1, "b": 4}
    with pytest.raises(AssertionError):
        data.ConcatDataset([Numbers(3)])


def test_random_split():
    parts = data.random_split(range(10), [0.3, 0.3, 0.4])
    assert [len(part) for part in parts] == [3, 3, 4]
    assert sorted(i for part in parts for i in part.indices) == list(range(10))
    assert [len(p) for p in data.random_split(range(7), [0.5, 0.5])] == [4, 3]
    for lengths in ([1, 2], [0.5, 0.6], [11], []):
        with pytest.raises(ValueError, match="random_split"):
            data.random_split(range(10), lengths)


# --- samplers -----------------------------------------------------------------------


def test_samplers():
    assert list(data.SequentialSampler("abc")) == [0, 1, 2]
    assert sorted(data.RandomSampler(range(7))) == list(range(7))
    assert len(data.RandomSampler(range(7), num_samples=3)) == 3
    assert set(data.RandomSampler(range(2), replacement=True, num_samples=99)) == {0, 1}
    assert sorted(data.SubsetRandomSampler([4, 9])) == [4, 9]
    assert set(data.WeightedRandomSampler([0, 1.0, 0], 20)) == {1}
    batches = data.BatchSampler(range(5), 2, False)
    assert list(batches) == [[0, 1], [2, 3], [4]] and len(batches) == 3
    batches = data.BatchSampler(range(5), 2, True)
    assert list(batches) == [[0, 1], [2, 3]] and len(batches) == 2
    for bad in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match="num_samples"):
            data.RandomSampler(range(3), num_samples=bad)
        with pytest.raises(ValueError, match="batch_size"):
            data.BatchSampler(range(3), bad, False)


# --- batches ------------------------------------------------------------------------


def test_collate():
    collate = data.default_collate
    assert collate([torch.ones(2), torch.zeros(2)]).tolist() == [[1, 1], [0, 0]]
    assert collate([1.5, 2.0]).dtype == torch.float64
    assert collate([1, 2]).dtype == torch.int64
    assert collate([True, False]).dtype == torch.bool
    assert collate(["a", "b"]) == ["a", "b"]
    assert collate([np.float32(1), np.float32(2)]).dtype == torch.float32
    assert collate([np.ones((2, 3), "f8")] * 4).shape == (4, 2, 3)
    one = collate([Point(1, "a"), Point(2, "b")])
    assert type(one) is Point and one.x.tolist() == [1, 2] and one.y == ("a", "b")
    one = collate([{"k": (1, 2.0)}, {"k": (3, 4.0)}])
    assert [x.tolist() for x in one["k"]] == [[1, 3], [2.0, 4.0]]
    with pytest.raises(RuntimeError, match=r"sample 1 \[3\]"):
        collate([torch.ones(2), torch.ones(3)])
    with pytest.raises(RuntimeError, match="one length"):
        collate([(1, 2), (1,)])
    with pytest.raises(TypeError, match="object"):
        collate([object()])
    with pytest.raises(TypeError, match="no numbers"):
        collate([np.array(["x"])])


def test_convert():
    found = data.default_convert({"a": np.arange(2), "b": ("c", np.float64(1))})
    assert found["a"].tolist() == [0, 1] and found["b"][0] == "c"
    assert found["b"][1].dtype == torch.float64


def test_collate_keeps_the_device(device):
    x = data.default_collate([torch.ones(2, device=device)] * 3)
    assert x.device == torch.device(device) and x.cpu().tolist() == [[1, 1]] * 3


# --- loaders ------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_batches_in_order(workers):
    loader = DataLoader(Squares(), 4, num_workers=workers)
    assert len(loader) == 3
    for _ in range(2):
        found = [(x[:, -1].tolist(), i.tolist()) for x, i in loader]
        assert found == [
            ([0, 1, 4, 9], [0, 1, 2, 3]),
            ([16, 25, 36, 49], [4, 5, 6, 7]),
            ([64, 81], [8, 9]),
        ]
    short = DataLoader(Squares(), 4, num_workers=workers, drop_last=True)
    assert len(list(short)) == len(short) == 2


@pytest.mark.parametrize("workers", [0, 2])
def test_without_batches_and_with_lists_of_indices(workers):
    single = DataLoader(Squares(3), batch_size=None, num_workers=workers)
    assert [i for _, i in single] == [0, 1, 2] and len(single) == 3
    lists = [[5, 1], [2]]
    by_list = DataLoader(Squares(), batch_sampler=lists, num_workers=workers)
    assert [i.tolist() for _, i in by_list] == lists and len(by_list) == 2


@pytest.mark.parametrize("workers", [0, 2])
def test_iterable(workers):
    found = values(DataLoader(Numbers(7), 3, num_workers=workers))
    assert found == (
        [[0, 1, 2], [3, 4, 5], [6]] if not workers else [[0, 2, 4], [1, 3, 5], [6]]
    )
    found = values(DataLoader(Numbers(7), 3, num_workers=workers, drop_last=True))
    assert found == ([[0, 1, 2], [3, 4, 5]] if not workers else [[0, 2, 4], [1, 3, 5]])
    assert list(DataLoader(Numbers(3), None, num_workers=workers)) == [0, 1, 2]
    with pytest.raises(TypeError):
        len(DataLoader(Numbers(3)))


def first_info(samples):
    info = data.get_worker_info()
    return info.id, info.num_workers, info.seed, torch.initial_seed(), samples


def test_worker_info():
    assert data.get_worker_info() is None
    loader = DataLoader(
        range(4),
        num_workers=2,
        collate_fn=first_info,
        generator=torch.Generator().manual_seed(1),
    )
    found = list(loader)
    base = found[0][2]
    assert found == [(i % 2, 2, base + i % 2, base + i % 2, [i]) for i in range(4)]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_every_way_to_start_brings_the_same(method, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"""
import multiprocessing
import pydevtensor as torch
from pydevtensor.utils.data import DataLoader, TensorDataset, get_worker_info

def collate(samples):
    batch = torch.utils.data.default_collate(samples)
    return batch, get_worker_info() is not None

if __name__ == "__main__":
    torch.manual_seed(0)
    pairs = TensorDataset(torch.arange(9), torch.ones(9, 5000))
    loader = DataLoader(pairs, 4, shuffle=True, num_workers=2, collate_fn=collate,
                        multiprocessing_context={method!r})
    for (x, y), there in loader:
        print(x.tolist(), y.sum().item(), there)
    print(multiprocessing.active_children())
""")
    out = python(None, arguments=[str(script)])
    torch.manual_seed(0)
    torch.ones(9)
    order = values(DataLoader(range(9), 4, shuffle=True))
    lines = [f"{part} {5000.0 * len(part)} True" for part in order]
    assert out.splitlines() == [*lines, "[]"]


def test_init_function_and_getitems():
    class Whole(Squares):
        def __getitems__(self, indices):
            return [(each, offset[0]) for each in indices]

    offset = [0]

    def begin(worker):
        offset[0] = 100 + worker

    loader = DataLoader(Whole(4), 2, num_workers=2, worker_init_fn=begin)
    assert [[x.tolist() for x in batch] for batch in loader] == [
        [[0, 1], [100, 100]],
        [[2, 3], [101, 101]],
    ]


def test_a_break_ends_the_workers():
    for _ in DataLoader(Squares(100), num_workers=2):
        assert len(multiprocessing.active_children()) == 2
        break
    assert not multiprocessing.active_children()  # at once: nothing waits for gc


def test_persistent_workers_stay_after_a_break():
    loader = DataLoader(range(8), 2, num_workers=2, persistent_workers=True)
    for _ in loader:
        break
    pids = {process.pid for process in multiprocessing.active_children()}
    assert values(loader) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert values(loader) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert {process.pid for process in multiprocessing.active_children()} == pids
    again = DataLoader(Numbers(4), num_workers=2, persistent_workers=True)
    assert values(again) == values(again) == [[0], [1], [2], [3]]


class Peculiar(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)


def raising(error):
    def how():
        raise error

    return how


@pytest.mark.parametrize(
    "error, kind",
    [
        (ValueError("no good"), ValueError),
        (KeyError("key"), KeyError),
        (Peculiar(1, 2), RuntimeError),
        (StopIteration(), StopIteration),
    ],
)
def test_an_exception_in_a_worker(error, kind):
    seen = []
    iterator = iter(DataLoader(Spoilt(raising(error)), num_workers=2))
    with pytest.raises(kind) as caught:
        for _ in range(8):
            seen.append(next(iterator).item())
    assert seen == [0, 1, 2, 3, 4]
    text = str(caught.value)
    assert "worker process 1" in text and "test_data.py" in text and "\n" in text
    assert next(iterator).item() == 6  # the others go on


def test_an_exception_of_a_local_type():
    class Local(Exception):
        pass

    with pytest.raises(RuntimeError, match="Local"):
        list(DataLoader(Spoilt(raising(Local())), num_workers=1))


def test_a_batch_that_cannot_be_sent():
    loader = DataLoader(range(2), num_workers=1, collate_fn=lambda batch: lambda: 0)
    with pytest.raises(Exception, match=r"pickle|local object"):
        list(loader)


def test_an_init_function_that_fails():
    loader = DataLoader(range(4), num_workers=2, worker_init_fn=lambda i: 1 // 0)
    with pytest.raises(ZeroDivisionError, match="worker process 0"):
        list(loader)


def kill(number):
    return lambda: os.kill(os.getpid(), number)


@pytest.mark.parametrize(
    "how, words",
    [
        (kill(signal.SIGKILL), "SIGKILL; the system may be out of memory"),
        (kill(signal.SIGTERM), "SIGTERM; the data set or a library"),
        (lambda: os._exit(3), "exit code 3; the data set or a library"),
        (sys.exit, "exit code 0; the data set or a library"),
    ],
)
def test_a_worker_that_dies(how, words):
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match=words):
        list(DataLoader(Spoilt(how), num_workers=2))
    assert time.monotonic() - begin < 10


def sockets():
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the folder's own
            if os.readlink(f"/proc/self/fd/{fd}").startswith("socket:"):
                found.add(int(fd))
    return found


def test_a_worker_that_loses_its_descriptors(capfd):
    def close():
        for fd in sockets():
            os.close(fd)

    with pytest.raises(RuntimeError, match="failed outside the data set") as caught:
        list(DataLoader(Spoilt(close), num_workers=1))
    assert "num_workers" not in str(caught.value)
    assert "Bad file descriptor" in capfd.readouterr().err


class Sockets(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return len(sockets())


def test_no_process_inherits_an_end_of_another_worker():
    before = len(sockets())
    readers = [iter(DataLoader(Sockets(), num_workers=2)) for _ in range(2)]
    assert len(sockets()) == before + 4
    assert [batch.item() for reader in readers for batch in reader] == [before + 1] * 8
    reader = iter(DataLoader(Sockets(), num_workers=1))
    child = os.fork()
    if child == 0:
        os._exit(len(sockets()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == before
    del reader


class Remade(DataLoader):
    """Pickled as a call with the arguments of object.__reduce__(), and its state."""

    def __init__(self, dataset, *unused):
        super().__init__(dataset, batch_size=2)

    def __reduce__(self):
        return (type(self), *super().__reduce__()[1:])


def test_a_loader_that_is_made_anew_by_pickle():
    loader = pickle.loads(pickle.dumps(Remade([1, 2, 3])))
    assert [batch.tolist() for batch in loader] == [[1, 2], [3]]
