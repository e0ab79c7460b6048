"""Tensors and events of GPUs that processes share."""

import os
import pickle
from multiprocessing.reduction import ForkingPickler

import pytest
from isolated import python

import pydevtensor as torch
import pydevtensor.multiprocessing as mp
from pydevtensor.multiprocessing import reductions

SCHEDULES = ["eager", "lazy", "random:3"]
# Segments of the sender: of one size, or such as grow.
SEGMENTS = ["expandable_segments:False", "expandable_segments:True"]
segments = pytest.mark.parametrize("segments", SEGMENTS)

# A program of two processes and a pipe; a test adds the code of parent and child.
FRAME = """
import gc, os, sys, warnings
import pydevtensor as torch
import pydevtensor.multiprocessing as mp

def slow(n=1 << 18):
    x = torch.zeros(n, device="cuda")
    for _ in range(20):
        x += 1
    return x

{}

if __name__ == "__main__":
    context = mp.get_context("spawn")
    end, other = context.Pipe()
    process = context.Process(target=child, args=(other,))
    process.start()
    other.close()
    parent(end)
    end.close()
    process.join()
    print("exit", process.exitcode)
"""


SIMULATED = torch.cuda.is_simulated() or not torch.cuda.is_available()
simulated_gpus = pytest.mark.skipif(not SIMULATED, reason="of simulated GPUs alone")


def run(tmp_path, code, *, schedule="lazy", **chosen):
    """What the parent and the child print: on real GPUs, if the tests run on these."""
    script = tmp_path / "script.py"
    script.write_text(FRAME.format(code))
    if SIMULATED:
        chosen.update(PYDEVTENSOR_SIM_GPUS="2", PYDEVTENSOR_SIM_SCHEDULE=schedule)
    else:
        chosen["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0")
    chosen["PYTHONUNBUFFERED"] = "1"
    return python(None, arguments=[str(script)], **chosen).splitlines()


@segments
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_processes_use_the_same_memory(tmp_path, schedule, segments):
    """Neither sees the other's work too early, whatever has not run yet."""
    code = """
def child(end):
    whole, part, weight, alone = end.recv()
    print(whole.sum().item() == 20 * whole.numel(), part.shape, part.stride(), part.dtype)
    print(whole.untyped_storage() == part.untyped_storage(), part.storage_offset())
    print(type(weight).__name__, weight.requires_grad, weight.tolist(), alone.is_cuda)
    part.fill_(8), alone.fill_(8)
    torch.cuda.synchronize(alone.device)
    event = torch.cuda.Event(interprocess=True)
    event.record()
    end.send(event)
    end.recv()

def parent(end):
    x = slow()
    weight = torch.nn.Parameter(torch.ones(2, device="cuda"))
    last = torch.cuda.device_count() - 1
    alone = torch.zeros(2, dtype=torch.int64, device=last)
    end.send((x, x[:6].view(2, 3).t(), weight, alone))
    event = end.recv()
    event.wait()
    x += 1
    print(x[:7].tolist())
    event.synchronize()
    print(event.query(), alone.tolist())
    end.send("go on")
"""
    chosen = {"PYTORCH_ALLOC_CONF": segments}
    assert run(tmp_path, code, schedule=schedule, **chosen) == [
        "True torch.Size([3, 2]) (1, 3) torch.float32",
        "True 0",
        "Parameter True [1.0, 1.0] True",
        "[9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 21.0]",
        "True [8, 8]",
        "exit 0",
    ]


@segments
def test_the_sender_keeps_memory_until_it_is_let_go_of(tmp_path, segments):
    code = """
def child(end):
    x = end.recv()
    y = x.view(2, -1)[1]
    del x
    end.send("has it")
    end.recv()
    y += 1
    print(y.sum().item() == 21 * y.numel())
    del y
    end.send("let go of it")
    end.recv()

def parent(end):
    x = slow()
    bytes = x.nbytes
    end.send(x)
    del x
    end.recv()
    torch.cuda.ipc_collect()
    print(torch.cuda.memory_allocated() == bytes)
    others = [torch.ones(1 << 18, device="cuda") for _ in range(4)]
    end.send("go on"), end.recv()
    del others
    torch.cuda.ipc_collect()
    print(torch.cuda.memory_allocated())
    end.send("go on")
"""
    out = run(tmp_path, code, PYTORCH_ALLOC_CONF=segments)
    assert out == ["True", "True", "0", "exit 0"]


def test_memory_of_many_pages(tmp_path):
    """Of a segment that grows: a tensor on three pages, its parts, and others of the pages."""
    code = """
def child(end):
    whole, part, other, small = end.recv()
    print(whole.sum().item() == whole.numel(), other.sum().item() == 2 * other.numel())
    print(whole.untyped_storage() == part.untyped_storage(), small.tolist())
    part.fill_(5), other.fill_(6), small.fill_(7)
    print(torch.cuda.memory_allocated(), (whole == 5).sum().item() == part.numel())
    del whole, part, other, small
    gc.collect()
    again = end.recv()
    print((again == 5).sum().item() == 1 << 20)
    del again
    end.send("let go of it")
    end.recv()

def parent(end):
    whole = torch.ones(10 << 20, device="cuda")
    other = torch.full((3 << 20,), 2.0, device="cuda")
    small = torch.zeros(3, device="cuda")
    end.send((whole, whole[5 << 20 : 6 << 20], other, small))
    end.send(whole)
    end.recv()
    torch.cuda.synchronize()
    print(other.sum().item() == 6 * other.numel(), small.tolist(), whole[0].item())
    files = len(os.listdir("/proc/self/fd"))
    del whole, other, small
    torch.cuda.ipc_collect(), torch.cuda.empty_cache()
    print(torch.cuda.memory_reserved(), files - len(os.listdir("/proc/self/fd")) > 4)
    end.send("go on")
"""
    out = run(tmp_path, code, PYTORCH_ALLOC_CONF="expandable_segments:True")
    assert out == [
        *("True True", "True [0.0, 0.0, 0.0]", "0 True", "True"),
        *("True [7.0, 7.0, 7.0] 1.0", "0 True", "exit 0"),
    ]


@simulated_gpus
def test_want_of_memory_takes_back_what_others_let_go_of(tmp_path):
    code = """
def child(end):
    end.recv()
    gc.collect()
    end.send("let go of it")
    end.recv()

def parent(end):
    end.send(torch.ones(3 << 20, device="cuda"))
    end.recv()
    print(torch.ones(3 << 20, device="cuda").sum().item() == 3 << 20)
    end.send("go on")
"""
    out = run(tmp_path, code, PYDEVTENSOR_SIM_MEMORY="16M")
    assert out == ["True", "exit 0"]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_receiver_lets_go_after_its_work(tmp_path, schedule):
    code = """
def child(end):
    x = end.recv()
    for _ in range(20):
        x += 1
    del x
    end.send("let go of it")
    end.recv()
    torch.cuda.synchronize()
    end.send("all has run")

def parent(end):
    end.send(torch.zeros(1 << 20, device="cuda"))
    end.recv()
    torch.cuda.ipc_collect()
    x = torch.full((1 << 20,), 3.0, device="cuda")
    torch.cuda.synchronize()
    end.send("go on"), end.recv()
    print(x.sum().item() == 3 << 20)
"""
    assert run(tmp_path, code, schedule=schedule) == ["True", "exit 0"]


def test_a_storage_that_comes_twice_is_one(tmp_path):
    code = """
def child(end):
    x, y = end.recv(), end.recv()
    y.fill_(3)
    print(x.untyped_storage() == y.untyped_storage(), x._version == y._version)
    del x
    print(y.tolist(), torch.cuda.memory_allocated())
    z = y.clone()
    try:
        end.send(y)
    except RuntimeError as error:
        print("clone()" in str(error))
    end.send(z)
    end.recv()

def parent(end):
    x = torch.zeros(3, device="cuda")
    end.send(x), end.send(x[1:])
    print(end.recv().tolist())
    end.send("go on")
"""
    assert run(tmp_path, code) == [
        "True True",
        "[3.0, 3.0] 0",
        "True",
        "[3.0, 3.0]",
        "exit 0",
    ]


@simulated_gpus
def test_a_sender_that_ends(tmp_path):
    """Before its tensor is received, which it warns of, and before its work was done."""
    code = """
def child(end):
    x = torch.ones(3, device="cuda")
    end.send_bytes(ForkingPickler.dumps(x))
    event = torch.cuda.Event(interprocess=True)
    slow(), event.record()
    end.send(event)
    end.recv()
    warnings.simplefilter("error")
    sys.stderr = sys.stdout

def parent(end):
    import pickle
    text, event = end.recv_bytes(), end.recv()
    end.send("go on")
    process.join()
    for attempt in (lambda: pickle.loads(text), lambda: event.synchronize()):
        try:
            attempt()
        except RuntimeError as error:
            print(type(error).__name__, str(error).replace(str(process.pid), "N"))
"""
    imports = "from multiprocessing.reduction import ForkingPickler\n"
    text = "\n".join(run(tmp_path, imports + code))
    assert "other processes still use the memory of tensors" in text
    assert "its sender, process N, has to run until then" in text
    assert "AcceleratorError" in text and "process N ended before its work" in text


def test_an_event_orders_processes(tmp_path):
    """Each records it in turn, and one of another process before its first record."""
    code = """
def child(end):
    event, x = end.recv()
    end.send(event.query())
    for _ in range(3):
        end.recv()
        event.wait()
        x += 1
        event.record()
        end.send("recorded")
    end.recv()

def parent(end):
    event = torch.cuda.Event(interprocess=True)
    x = torch.zeros(1 << 18, device="cuda")
    event.ipc_handle()
    end.send((event, x))
    print(end.recv())
    for _ in range(3):
        event.wait()
        x *= 2
        event.record()
        end.send("recorded"), end.recv()
    event.synchronize()
    print(x[0].item(), x[-1].item())
    end.send("go on")
"""
    for schedule in SCHEDULES:
        assert run(tmp_path, code, schedule=schedule) == [
            "True",
            "7.0 7.0",
            "exit 0",
        ]


def test_a_device_that_the_other_does_not_see(tmp_path):
    code = """
def child(end):
    end.recv()

def parent(end):
    shared = mp.reductions.reduce_tensor(torch.ones(2, device="cuda"))
    function, arguments = shared
    try:
        function(*arguments[:6], 99, *arguments[7:])
    except RuntimeError as error:
        print(error)
    end.send(0)
"""
    (said, _) = run(tmp_path, code)
    assert "cuda:99" in said and "CUDA devices" in said


def test_memory_of_a_loader_that_is_spawned(tmp_path):
    code = """
class Data:
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return torch.full((1 << 13,), float(i), device="cuda")

def child(end):
    end.recv()

def parent(end):
    loader = torch.utils.data.DataLoader(
        Data(), 2, num_workers=1, multiprocessing_context="spawn"
    )
    batches = list(loader)
    print([x.device for x in batches], [x[:, 0].tolist() for x in batches])
    end.send(0)
"""
    for schedule in SCHEDULES:
        out = run(tmp_path, code, schedule=schedule)
        assert "[[0.0, 1.0], [2.0, 3.0]]" in out[0] and "cuda" in out[0]


# --- in one process -------------------------------------------------------------------


def sent(value):
    return pickle.loads(ForkingPickler.dumps(value))


def test_the_same_process(gpu):
    x = torch.arange(6, device=gpu).view(2, 3)
    y = sent(x.t()[1:])
    y.fill_(9)
    assert x.tolist() == [[0, 9, 9], [3, 9, 9]] and y.device == x.device
    assert sent(torch.empty(0, 2, device=gpu)).shape == (0, 2)
    leaf = torch.ones(2, device=gpu, requires_grad=True)
    assert sent(leaf).requires_grad and sent(leaf).is_leaf
    text = ForkingPickler.dumps(x)
    assert torch.equal(pickle.loads(text), x)
    with pytest.raises(RuntimeError, match="send it again"):
        pickle.loads(text)


def test_what_is_not_sent(gpu):
    x = torch.ones(2, device=gpu)
    with pytest.raises(RuntimeError, match="detach"):
        sent(x.requires_grad_() * 2)
    with pytest.raises(RuntimeError, match="send a Tensor"):
        sent(x.untyped_storage())
    with pytest.raises(RuntimeError, match="interprocess=True"):
        sent(torch.cuda.Event())
    with pytest.raises(TypeError, match="handle is this process's own"):
        pickle.dumps(torch.cuda.Event(interprocess=True))


def test_what_is_not_received(gpu):
    x = torch.ones(2, device=gpu)
    function, arguments = reductions.reduce_tensor(x)
    assert function is reductions.rebuild_cuda_tensor and len(arguments) == 15
    counter, slot = arguments[11:13]
    opened = torch.UntypedStorage._new_shared_cuda
    shared = [*arguments[6:10], *arguments[11:]]
    for place, value, error, text in [
        (1, b"short", ValueError, "65 bytes"),
        (4, b"x" * 99, ValueError, "too long"),
        (4, b"1/2/3", RuntimeError, "process 1"),
        (5, 1 << 40, ValueError, "below"),
    ]:
        with pytest.raises(error, match=text):
            opened(*shared[:place], value, *shared[place + 1 :])
    torch.UntypedStorage._release_ipc_counter_cuda(counter, slot, device=gpu)
    before = torch.cuda.memory_allocated(gpu)
    del x
    torch.cuda.ipc_collect()
    assert torch.cuda.memory_allocated(gpu) < before


def test_events_of_this_process(gpu):
    with torch.cuda.device(gpu):
        event = torch.cuda.Event(interprocess=True)
        handle = event.ipc_handle()
        assert (
            event.device == torch.device(gpu)
            and type(handle) is bytes
            and len(handle) == 64
        )
        x = torch.zeros(3, device=gpu)
        x += 1
        event.record()
        event.wait(torch.cuda.Stream())
        event.synchronize()
        assert event.query() and x.tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="enable_timing or interprocess"):
        torch.cuda.Event(enable_timing=True, interprocess=True)
    with pytest.raises(ValueError, match="64 bytes"):
        torch.cuda.Event.from_ipc_handle(gpu, b"x")
    with pytest.raises(RuntimeError, match="same user"):
        torch.cuda.Event.from_ipc_handle(gpu, b"x" * 64)


def test_many_that_are_sent(gpu):
    """There are fewer events: the sender waits for its work instead."""
    x = torch.ones(2, device=gpu)
    shared = [reductions.reduce_tensor(x)[1] for _ in range(1001)]
    assert [arguments[14] for arguments in shared[-2:]] == [True, False]
    for arguments in shared:
        made = reductions.rebuild_cuda_tensor(*arguments)
        assert made.untyped_storage() == x.untyped_storage()
    torch.cuda.ipc_collect()
    again = reductions.reduce_tensor(x)[1]
    assert again[14]
    torch.UntypedStorage._release_ipc_counter_cuda(*again[11:13])
    torch.cuda.ipc_collect()


def test_a_capture_refuses_to_send(gpu):
    x = torch.ones(2, device=gpu)
    with torch.cuda.device(gpu):
        graph = torch.cuda.CUDAGraph()
        with (
            pytest.raises(RuntimeError, match="sending a tensor"),
            torch.cuda.graph(graph),
        ):
            reductions.reduce_tensor(x)


def test_names_are_those_of_pytorch():
    assert mp.reductions is reductions
    assert reductions.init_reductions() is None
