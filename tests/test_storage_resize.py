"""Storages whose size changes in place, as programs do that free activations."""

import copy
import io
import threading
import time

import numpy as np
import pytest

import pydevtensor as torch
import pydevtensor.nn.functional as F

RELEASED = "storage has no memory, since it was resized to 0 bytes; give it some"


def used(x, y):
    """Calls that read or write the elements of x; y has as many."""
    square, other = x.view(2, -1), y.view(2, -1)
    n = torch.tensor([0, 1], device=y.device)
    parameter = torch.nn.Parameter(y.clone())
    parameter.grad = x
    return {
        "x + 1": lambda: x + 1,
        "y + x": lambda: y + x,
        "x + y": lambda: x + y,
        "y + x[0]": lambda: y + x[0],
        "y.add_(x)": lambda: y.add_(x),
        "x.add_(y)": lambda: x.add_(y),
        "out=x": lambda: torch.add(y, y, out=x),
        "addcmul": lambda: torch.addcmul(y, x, y),
        "where": lambda: torch.where(y > 0, x, y),
        "fill_": lambda: x.fill_(1),
        "uniform_": lambda: x.uniform_(),
        "copy_": lambda: x.copy_(y),
        "copy_ from": lambda: y.copy_(x),
        "clone": lambda: x.clone(),
        "half": lambda: x.half(),
        "deepcopy": lambda: copy.deepcopy(x),
        "save": lambda: torch.save(x, io.BytesIO()),
        "sum": lambda: x.sum(),
        "cumsum": lambda: x.cumsum(0),
        "sort": lambda: x.sort(),
        "nonzero": lambda: x.nonzero(),
        "item": lambda: x[0].item(),
        "bool": lambda: bool(x[0]),
        "tolist": lambda: x.tolist(),
        "tensor": lambda: torch.tensor(x),
        "numpy": lambda: x.numpy(force=True),
        "x[0] = 1": lambda: x.__setitem__(0, 1),
        "y[:] = x": lambda: y.__setitem__(slice(None), x),
        "y[x]": lambda: y[x.long()],
        "x[n]": lambda: x[n],
        "x[n] = y": lambda: x.__setitem__(n, y[:2]),
        "gather": lambda: x.gather(0, n),
        "scatter_": lambda: y.scatter_add_(0, n, x[:2]),
        "cat": lambda: torch.cat([y, x]),
        "cat x": lambda: torch.cat([x, y]),
        "stack": lambda: torch.stack([y, x]),
        "mm": lambda: other @ square.T,
        "mm x": lambda: square @ other.T,
        "einsum": lambda: torch.einsum("i,i", y, x),
        "linear": lambda: F.linear(other, square),
        "conv1d": lambda: F.conv1d(y.view(1, 1, -1), x[:2].view(1, 1, -1)),
        "layer_norm": lambda: F.layer_norm(y, y.shape, x),
        "softmax": lambda: square.softmax(1),
        "cross_entropy": lambda: F.cross_entropy(square, n),
        "embedding": lambda: F.embedding(n, square),
        "dropout": lambda: F.dropout(x),
        "attention": lambda: F.scaled_dot_product_attention(*3 * [square[None]]),
        "attention y": lambda: F.scaled_dot_product_attention(
            other[None], square[None], other[None]
        ),
        "fft": lambda: torch.fft.fft(x),
        "norm": lambda: torch.linalg.norm(x),
        "searchsorted": lambda: torch.searchsorted(y, x),
        "foreach": lambda: torch._foreach_mul([y, x], 2),
        "step": lambda: torch.optim.Adam([parameter]).step(),
    }


@pytest.mark.parametrize("n", [4, 40000])
def test_a_tensor_without_memory_refuses_its_use(device, n):
    """In PyTorch the same calls end the process."""
    x, y = torch.ones(n, device=device), torch.ones(n, device=device)
    view = x[1:]
    storage = x.untyped_storage()
    assert storage.resizable() and storage.resize_(0) is storage
    calls = used(x, y)
    wrong = []
    for name, call in calls.items():
        try:
            call()
        except RuntimeError as error:
            if RELEASED not in str(error):
                wrong.append((name, error))
        else:
            wrong.append((name, None))
    assert not wrong
    other = view.view(3, -1)[1] if n == 4 else view[5:]
    with pytest.raises(RuntimeError, match=RELEASED):
        other.exp()
    with pytest.raises(RuntimeError, match="exceeds the storage of 0 elements"):
        x.as_strided((1,), (1,))
    assert y.sum() == n


def test_what_is_known_without_memory(device):
    x = torch.ones(2, 3, device=device, dtype=torch.float64)
    x.untyped_storage().resize_(0)
    assert x.shape == (2, 3) and x.device == torch.device(device)
    assert x.is_cpu == (device == "cpu") and x.is_cuda != x.is_cpu and not x.is_meta
    assert x.untyped_storage().nbytes() == x.data_ptr() == 0
    assert x.T.shape == (3, 2) and x.view(6).shape == (6,) and x.to(device) is x
    assert "tensor(..., " in repr(x) and "size=(2, 3)" in repr(x)
    like = [torch.empty_like(x), torch.zeros_like(x), x.new_ones(2), x[:, :0] + 1]
    assert all(made.device == x.device for made in like) and like[1].sum() == 0
    x.grad = torch.ones_like(x)
    assert x.detach().untyped_storage() == x.untyped_storage()


@pytest.mark.parametrize("n", [4, 40000])
def test_memory_that_comes_back(device, n):
    x = torch.arange(float(n), device=device)
    view, storage = x[1:3], x.untyped_storage()
    for fill in (1.0, 2.0):
        storage.resize_(0)
        assert storage.resize_(4 * n).nbytes() == len(storage) == 4 * n
        x.fill_(fill)
        assert x.sum() == fill * n and view.tolist() == [fill, fill]
    storage.resize_(8 * n)
    assert x.tolist() == [2.0] * n and view.tolist() == [2.0, 2.0]
    longer = x.as_strided((2 * n,), (1,)).fill_(3)
    assert x.sum() == 3 * n and longer.sum() == 6 * n
    storage.resize_(8)
    assert x[:2].tolist() == [3.0, 3.0] and x.untyped_storage().nbytes() == 8
    with pytest.raises(RuntimeError, match="exceeds the storage of 2 elements"):
        x.as_strided((3,), (1,))
    storage.resize_(0)
    storage.resize_(8)  # x and longer reach beyond it, and not beyond the memory
    longer.fill_(5)
    assert x.sum() == 5 * n


def test_a_gpu_gets_its_memory_back(gpu):
    x = torch.ones(1 << 20, device=gpu)
    before = torch.cuda.memory_allocated(gpu)
    x.untyped_storage().resize_(0)
    assert torch.cuda.memory_allocated(gpu) == before - x.nbytes
    other = torch.zeros(1 << 20, device=gpu)  # in the same memory
    with pytest.raises(RuntimeError, match=RELEASED):
        x.add_(1)
    assert other.sum() == 0
    x.untyped_storage().resize_(x.nbytes)
    assert x.copy_(other).sum() == 0
    del x, other
    assert torch.cuda.memory_allocated(gpu) < before


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_the_system_gets_the_cpu_s_memory_back():
    x = torch.ones(64 << 20, dtype=torch.uint8)
    before = resident()
    x.untyped_storage().resize_(0)
    assert resident() < before - (60 << 20)
    x.untyped_storage().resize_(64 << 20)
    assert x.fill_(2).sum() == 2 * (64 << 20)


def test_activations_that_are_freed_and_filled_anew(device):
    """The weights are there while a layer needs them alone, as with FSDP."""
    torch.manual_seed(0)
    x = torch.randn(5, 8, device=device)
    flat, expected = torch.randn(64, device=device), torch.randn(64, device=device)
    kept = expected.copy_(flat).clone()
    expected.requires_grad_()
    (x @ expected.view(8, 8)).relu().sum().backward()

    flat.requires_grad_()
    storage, size = flat.untyped_storage(), flat.nbytes

    def bring(gradient=None):
        if storage.nbytes() == 0:
            storage.resize_(size)
            flat.data.copy_(kept)

    y = x.clone().requires_grad_() @ flat.view(8, 8)
    y.register_hook(bring)
    loss = y.relu().sum()
    storage.resize_(0)
    loss.backward()
    assert torch.equal(flat.grad, expected.grad)
    storage.resize_(0)
    optimizer = torch.optim.SGD([flat], lr=1.0)
    with pytest.raises(RuntimeError, match=RELEASED):
        optimizer.step()
    bring()
    optimizer.step()
    assert torch.equal(flat.detach(), kept - expected.grad)


def test_a_saved_tensor_without_memory(device):
    x = torch.ones(3, device=device, requires_grad=True)
    y = x * 2
    z = (y**2).sum()
    y.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match=RELEASED):
        z.backward()


def test_resize_and_set_make_the_storage_larger(device):
    x = torch.arange(4.0, device=device)
    view, storage = x[1:3], x.untyped_storage()
    assert view.resize_(6) is view and storage.nbytes() == 28
    assert view[:3].tolist() == [1, 2, 3] and x.tolist() == [0, 1, 2, 3]
    view[0] = 7
    assert x[1] == 7
    storage.resize_(0)
    assert x.resize_(5).fill_(1).sum() == 5 and storage.nbytes() == 20
    y = torch.empty(0, device=device).set_(storage, 0, (2, 4))
    assert y.shape == (2, 4) and storage.nbytes() == 32 and x.sum() == 5
    images = torch.zeros(2, 3, 4, 4, device=device)
    images.resize_(1, 3, 2, 2, memory_format=torch.channels_last)
    assert images.stride() == (12, 1, 6, 3)
    like = torch.zeros(2, 3, 4, 4).to(memory_format=torch.channels_last)
    images.resize_as_(like.to(device), memory_format=torch.preserve_format)
    assert images.stride() == (48, 1, 12, 3)
    with pytest.raises(RuntimeError, match="preserve_format; name the format"):
        images.resize_(2, memory_format=torch.preserve_format)


def test_memory_that_others_use_keeps_its_size():
    array = np.zeros(4)
    shown = torch.zeros(4)
    shown.numpy()
    for x in (torch.from_numpy(array), shown, torch.zeros(4).share_memory_()):
        storage = x.untyped_storage()
        assert storage.resize_(storage.nbytes()) is storage
        for size in (0, 64):
            with pytest.raises(RuntimeError, match=r"not resizable, since .* NumPy"):
                storage.resize_(size)
        assert not storage.resizable()
    with pytest.raises(RuntimeError, match="not resizable"):
        shown.resize_(5)
    x = torch.zeros(4)
    capsule = x.__dlpack__()
    with pytest.raises(RuntimeError, match="not resizable"):
        x.untyped_storage().resize_(0)
    del capsule
    x = torch.zeros(4)
    with memoryview(x), pytest.raises(RuntimeError, match="not resizable"):
        x.untyped_storage().resize_(0)
    assert x.untyped_storage().resize_(0).nbytes() == 0
    for wrong, message in {
        -1: "size is -1",
        2.5: "is a float",
        "a": "is a str",
    }.items():
        with pytest.raises(RuntimeError, match=message):
            torch.zeros(2).untyped_storage().resize_(wrong)
    with pytest.raises(RuntimeError, match="a part of a storage"):
        torch.zeros(2).untyped_storage()[:4].resize_(0)
    meta = torch.empty(4, device="meta").untyped_storage()
    assert meta.resize_(0).resize_(64).nbytes() == 64
    bytes_of = torch.zeros(4).untyped_storage()
    typed = torch.storage.TypedStorage(wrap_storage=bytes_of)
    bytes_of.resize_(8)
    assert typed.size() == 2 and typed.resizable() and typed.get_device() == -1
    assert typed.resize_(3) is None and bytes_of.nbytes() == 12
    x = torch.zeros(4)
    x.untyped_storage().resize_(0)
    for share in (x.__dlpack__, x.pin_memory, x.numpy, lambda: memoryview(x)):
        with pytest.raises(RuntimeError, match=RELEASED):
            share()
    assert x.untyped_storage().resizable()


def test_a_capture_keeps_sizes(here):
    x = torch.ones(100, device=here)
    with pytest.raises(RuntimeError, match="resizing a storage"):  # noqa: SIM117
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            x.untyped_storage().resize_(0)
    assert x.sum() == 100


def test_operations_that_wait_run_before(device):
    x = torch.ones(5000, device=device)
    with torch.fused():
        y = x * 3
        x.untyped_storage().resize_(0)
    assert y.sum() == 15000


def test_a_resize_beside_a_thread_that_computes(device):
    """The thread sees old elements, new ones, zeros, or the error."""
    x = torch.ones(1 << 20, device=device)
    storage, size = x.untyped_storage(), x.nbytes
    seen, stop = [], threading.Event()

    def compute():
        while not stop.is_set():
            try:
                seen.append(x.exp().sum().item())
                x.nonzero()
            except RuntimeError as error:
                seen.append(error)

    thread = threading.Thread(target=compute)
    thread.start()
    for i in range(20):
        storage.resize_(0)
        storage.resize_(size * (1 + i % 2))
        x.fill_(1)
    stop.set()
    thread.join()
    assert all(RELEASED in str(e) for e in seen if isinstance(e, RuntimeError))
    assert x.sum() == 1 << 20


def test_memory_that_was_kept_for_a_thread(device):
    """What is given back later is another tensor's then, not the storage's once more."""
    x = torch.ones(1 << 20, device=device)
    storage, size = x.untyped_storage(), x.nbytes
    product = torch.ones(1500, 1500)
    thread = threading.Thread(target=lambda: product @ product)
    thread.start()
    time.sleep(0.01)
    storage.resize_(0)
    storage.resize_(2 * size)
    thread.join()
    storage.resize_(0)
    others = [torch.zeros(1 << n, device=device) for n in (20, 21)]
    storage.resize_(size)
    x.fill_(1)
    assert not any(other.any() for other in others)
