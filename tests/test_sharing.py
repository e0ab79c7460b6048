"""Tensors in shared memory, in processes that are forked, spawned or served."""

import gc
import os
import pickle
import resource
import time
from contextlib import suppress
from multiprocessing import resource_sharer
from multiprocessing.reduction import ForkingPickler

import pytest
from isolated import python

import pydevtensor as torch
import pydevtensor.multiprocessing  # lets multiprocessing send tensors by descriptor


def sent(value):
    return pickle.loads(ForkingPickler.dumps(value))


def files():
    """What each open descriptor is of."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the one that listed them
            file = os.stat(f"/proc/self/fd/{number}")
            found.append((file.st_dev, file.st_ino))
    return found


def descriptors(file, expected):
    """How many are of a file, once the thread that sends has closed its own."""
    gc.collect()
    end = time.monotonic() + 20
    while (found := files().count(file)) != expected and time.monotonic() < end:
        time.sleep(0.01)
    return found


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_use_the_same_memory(method, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"""
import pydevtensor as torch
import pydevtensor.multiprocessing as mp

def child(x, net, alone, queue, end):
    weight, bias = net.parameters()
    assert x.is_shared() and x.stride() == (1, 4) and not alone.is_shared()
    assert weight.is_shared() and weight.requires_grad and type(weight) is torch.nn.Parameter
    whole, part = queue.get()
    assert whole.untyped_storage() == part.untyped_storage() and part.is_shared()
    x.fill_(1), alone.fill_(1), part.fill_(2)
    with torch.no_grad():
        weight.fill_(3)
    end.send(torch.arange(3).share_memory_())
    end.recv()

if __name__ == "__main__":
    context = mp.get_context({method!r})
    x, alone = torch.zeros(3, 4).t().share_memory_(), torch.zeros(2)
    net = torch.nn.Linear(1, 1).share_memory()
    queue, (end, other) = context.Queue(), context.Pipe()
    process = context.Process(target=child, args=(x, net, alone, queue, other))
    process.start()
    other.close()  # so that the end of the child is seen
    whole = torch.zeros(2, 2).share_memory_()
    queue.put((whole, whole.t()[1:]))
    made = end.recv()
    end.send("received")
    process.join()
    print(process.exitcode, x.sum().item(), net.weight.item(), alone.tolist(), whole.tolist())
    print(made.is_shared(), made.add_(1).tolist())
""")
    out = python(None, arguments=[str(script)]).splitlines()
    assert out == ["0 12.0 3.0 [0.0, 0.0] [[0.0, 2.0], [0.0, 2.0]]", "True [1, 2, 3]"]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_new_process_gets_many(method, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"""
import os
import pydevtensor as torch
from multiprocessing import get_context

def child(many):
    for x in many:
        x.add_(1)

if __name__ == "__main__":
    before = len(os.listdir("/proc/self/fd"))
    many = [torch.zeros(3).share_memory_() for _ in range(300)]
    print(len(os.listdir("/proc/self/fd")) - before)
    process = get_context({method!r}).Process(target=child, args=(many,))
    process.start(), process.join()
    print(process.exitcode, sum(x.sum() for x in many).item())
""")
    assert python(None, arguments=[str(script)]).split() == ["300", "0", "900.0"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.bool, torch.float64])
def test_dtype_and_geometry_are_kept(dtype):
    x = torch.ones(4, 5, dtype=dtype).share_memory_().t()[1:, 2:]
    y = sent(x)
    assert y.dtype == dtype and y.shape == x.shape and y.stride() == x.stride()
    assert y.storage_offset() == x.storage_offset() and y.is_shared()
    y.zero_()
    assert not x.any()
    for empty in (torch.empty(0, 3), torch.tensor(2)):
        assert torch.equal(sent(empty.to(dtype).share_memory_()), empty.to(dtype))


def test_one_descriptor_for_a_storage():
    before = files()
    x = torch.zeros(6).share_memory_()
    (file,) = {*files()} - {*before}
    typed = torch.TypedStorage(wrap_storage=x.untyped_storage())
    views = sent([x[i:] for i in range(5)] + [x.untyped_storage(), typed])
    more = sent(x)
    assert descriptors(file, 1) == 1
    assert len({view.untyped_storage() for view in views[:5]}) == 1
    more.fill_(1)
    assert views[5].is_shared() and views[6].tolist() == views[0].tolist() == [1] * 6
    assert x.untyped_storage()[4:].is_shared()
    del x, typed, views
    assert descriptors(file, 1) == 1 and more.is_shared() and more.sum() == 6
    del more
    assert descriptors(file, 0) == 0
    assert not any(torch.zeros(6).is_shared() for _ in range(9))


def test_gradients():
    leaf = torch.ones(2, requires_grad=True).share_memory_()
    parameter = torch.nn.Parameter(torch.ones(2), False).share_memory_()
    assert sent(leaf).requires_grad and sent(leaf).is_leaf
    assert type(sent(parameter)) is torch.nn.Parameter
    assert not sent(parameter).requires_grad
    for computed in (leaf * 2, (leaf * 2).share_memory_()):
        with pytest.raises(RuntimeError, match="detach"):
            sent(computed)


class Own(torch.nn.Buffer):
    pass


@pytest.mark.parametrize("kind", [torch.nn.Buffer, Own])
def test_types_of_tensors(kind):
    x = kind(torch.ones(2)).share_memory_()
    sent(x).fill_(2)
    assert x.tolist() == [2, 2]


def test_others_are_copies():
    for x in (torch.ones(2), torch.ones(2).share_memory_()):
        copy = pickle.loads(pickle.dumps(x))
        assert torch.equal(copy, x) and not copy.is_shared()
    assert not sent(torch.ones(2)).is_shared()


def test_parameters_share_memory(device):
    x = torch.ones(2, device=device).share_memory_()
    for value in (x, torch.nn.Parameter(x)):
        copy = sent(value)
        assert copy.device == x.device and type(copy) is type(value)
        copy.data.fill_(2)
        assert x.tolist() == [2, 2]
        x.fill_(1)


def test_a_sender_that_is_gone():
    text = ForkingPickler.dumps(torch.ones(2).share_memory_())
    resource_sharer.stop()
    with pytest.raises(ConnectionError, match="sender"):
        pickle.loads(text)


def test_no_descriptor_is_left():
    x = torch.ones(2)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
    try:
        with pytest.raises(RuntimeError, match=r"for 8 bytes.*ulimit"):
            x.share_memory_()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert not x.is_shared() and x.tolist() == [1, 1]


def test_what_cannot_be_mapped():
    reading, writing = os.pipe()
    with pytest.raises(ValueError, match="no bytes"):
        torch._C._map_file(reading)
    os.close(reading), os.close(writing)
    with pytest.raises(OSError):
        torch._C._map_file(reading)
