"""Storages: the memory of tensors in bytes and elements, shared by views and processes."""

import os
import threading
import warnings

import numpy as np
import pytest

import pydevtensor as torch


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "a TypedStorage")
        yield


def test_bytes(device):
    y = torch.arange(4, dtype=torch.int16, device=device)
    whole = y.untyped_storage()
    assert whole.tolist() == list(whole) == [0, 0, 1, 0, 2, 0, 3, 0]
    assert len(whole) == whole.size() == whole.nbytes() == 8
    assert whole.element_size() == 1 and whole.device == y.device
    assert whole[2] == 1 and whole[-2] == 3 and whole[2:4].tolist() == [1, 0]
    whole[2] = 7
    whole[4:] = 1
    assert y.tolist() == [0, 7, 257, 257]
    assert whole.is_cuda == (device != "cpu") == whole.is_shared()


def test_elements(device):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device=device)
    s = x[1].storage()
    assert s.tolist() == x.t().storage().tolist() == [1, 2, 3, 4]
    assert (s[2], s[-1], s.dtype, len(s), s.nbytes()) == (3, 4, torch.float32, 4, 16)
    s[0] = 9
    assert x[0, 0] == 9 and x.t()[0, 0] == 9
    assert s.fill_(2) is s and x.tolist() == [[2, 2], [2, 2]]
    copy = s.clone()
    copy[0] = 5
    assert s[0] == 2 and s.copy_(copy)[0] == 5 == x[0, 0]
    assert s.untyped() == x.untyped_storage()
    assert s.cpu().tolist() == s.tolist()
    if device != "cpu":
        assert s.cpu().cuda(device).device == s.device == s.cuda(device).device


def test_views_have_one_storage(device):
    x = torch.zeros(3, 4, device=device)
    same = x.untyped_storage()
    for view in (x[1:], x.t(), x.detach(), x.view(torch.int32)):
        other = view.untyped_storage()
        assert other == same and hash(other) == hash(same)
        assert other.data_ptr() == same.data_ptr() and other._cdata == same._cdata
    assert x.clone().untyped_storage() != same and same != x.storage()


def test_shown():
    x = torch.tensor([1.5, 2.0])
    assert repr(x.storage()) == (
        " 1.5\n 2.0\n[pydevtensor.storage.TypedStorage(dtype=torch.float32, "
        "device=cpu) of size 2]"
    )
    assert repr(x.untyped_storage()[2:4]) == (
        " 192\n 63\n[pydevtensor.storage.UntypedStorage(device=cpu) of size 2]"
    )


def test_made():
    assert torch.UntypedStorage(3).size() == 3 and torch.UntypedStorage().size() == 0
    assert torch.UntypedStorage([1, 2]).tolist() == [1, 2]
    typed = torch.TypedStorage([1, 2], dtype=torch.int64)
    assert typed.untyped().nbytes() == 16
    wrapped = torch.TypedStorage(wrap_storage=typed.untyped(), dtype=torch.int32)
    assert wrapped.tolist() == [1, 0, 2, 0]
    odd = torch.TypedStorage(wrap_storage=torch.UntypedStorage(7), dtype=torch.int32)
    assert len(odd) == 1


@pytest.mark.parametrize(
    "wrong, error",
    [
        (lambda s: s["a"], TypeError),
        (lambda s: s[16], IndexError),
        (lambda s: s[-17], IndexError),
        (lambda s: s[::2], RuntimeError),
        (lambda s: s.copy_(torch.UntypedStorage(3)), RuntimeError),
        (lambda s: torch.UntypedStorage("a"), TypeError),
        (lambda s: torch.UntypedStorage(1, 2), TypeError),
        (lambda s: torch.UntypedStorage(-1), RuntimeError),
        (lambda s: torch.TypedStorage(3, wrap_storage=s), TypeError),
        (lambda s: torch.TypedStorage(wrap_storage=3), TypeError),
        (lambda s: torch.TypedStorage(3)[0:1], RuntimeError),
    ],
)
def test_wrong(wrong, error):
    with pytest.raises(error):
        wrong(torch.ones(4).untyped_storage())


def test_typed_storages_warn():
    with pytest.warns(UserWarning, match="untyped_storage"):
        torch.ones(1).storage()


def test_set(device):
    y = torch.arange(6, dtype=torch.int16, device=device)

    def fresh():
        return torch.empty(0, dtype=torch.int16, device=device)

    assert fresh().set_(y).is_set_to(y)
    assert fresh().set_(y[2:]).tolist() == [2, 3, 4, 5]
    assert fresh().set_(y[2:], 1, (2,), (1,)).tolist() == [3, 4]
    memory = y.untyped_storage()
    assert fresh().set_(memory).tolist() == y.tolist()
    assert fresh().set_(y.storage()).tolist() == y.tolist()
    assert fresh().set_(memory, 1, (2, 2)).tolist() == [[1, 2], [3, 4]]
    x = fresh()
    assert x.set_(memory, 1, (2, 2), (1, 2)) is x
    x[0, 0] = 9
    assert x.tolist() == [[9, 3], [2, 4]] and y[1] == 9
    assert x.set_().shape == (0,)
    for wrong in (
        lambda: torch.empty(0, device=device).set_(y),
        lambda: fresh().set_(memory, 5, (9,), (-1,)),
        lambda: fresh().set_(memory, -1, (1,)),
        lambda: fresh().set_(y.cpu() if device != "cpu" else y.cuda()),
    ):
        with pytest.raises(RuntimeError):
            wrong()
    with pytest.raises(TypeError, match="int"):
        fresh().set_(3)
    assert y.tolist() == [0, 9, 2, 3, 4, 5]


def in_a_fork(run):
    child = os.fork()
    if not child:
        try:
            run()
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def test_processes_share_memory():
    alone, x = torch.zeros(2, 3), torch.zeros(3, 2).t()
    view = x[0]
    assert x.share_memory_() is x and x.is_shared() and x.t().is_shared()
    assert x.stride() == (1, 2) and not alone.is_shared() and view.is_shared()
    storage = torch.UntypedStorage([1, 2])
    assert storage.share_memory_() is storage and storage.is_shared()
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    weight = net[0].weight
    assert net.share_memory() is net and net[0].weight is weight
    assert all(t.is_shared() for t in net.state_dict().values())
    address = x.data_ptr()
    assert x.share_memory_().data_ptr() == address

    def write():
        assert x.is_shared()
        alone.fill_(1), x.fill_(2), view.fill_(3), storage.fill_(5)
        with torch.no_grad():
            weight.fill_(4)

    in_a_fork(write)
    assert alone.sum() == 0 and x[1:].eq(2).all() and weight.eq(4).all()
    assert view.eq(3).all() and x[0].eq(3).all() and storage.tolist() == [5, 5]


def test_gpu_tensors_are_shared_as_they_are(device):
    for share in (lambda x: x, torch.Tensor.untyped_storage, torch.Tensor.storage):
        x = torch.ones(2, device=device)
        address, shared = x.data_ptr(), share(x)
        assert shared.share_memory_() is shared and x.is_shared()
        assert (x.data_ptr() == address) == (device != "cpu") and x.tolist() == [1, 1]


@pytest.mark.parametrize("n", [0, 1, 5, 40_000])
def test_a_storage_moves_with_all_that_views_it(n):
    x = torch.arange(float(n))
    view, storage, leaf = x[n // 2 :], x.untyped_storage(), x.detach().requires_grad_()
    product = leaf * leaf
    whole, key = x.clone(), storage._cdata
    assert storage.share_memory_() is storage and storage.is_shared()
    assert x.untyped_storage() == view.untyped_storage() == storage
    assert storage._cdata == key and storage.nbytes() == 4 * n and view.is_shared()
    x.add_(1)
    assert torch.equal(x, whole + 1) and torch.equal(view, x[n // 2 :])
    assert not storage.resizable() and storage.share_memory_().nbytes() == 4 * n
    with pytest.raises(RuntimeError, match="modified"):
        product.sum().backward()


def test_other_memory_of_storages_that_are_shared():
    array = np.arange(20_000.0)
    shown = torch.arange(20_000.0)
    seen = shown.numpy()
    for x in (
        torch.from_numpy(array),
        shown,
        torch.frombuffer(array, dtype=torch.int64),
    ):
        whole = x.clone()
        x.untyped_storage().share_memory_()
        assert torch.equal(x, whole) and x.is_shared() and x.fill_(7).eq(7).all()
    # The NumPy array keeps the old memory, with its elements.
    assert array[-1] == seen[-1] == 19_999
    if torch.cuda.is_available():
        pinned = torch.ones(4).pin_memory()
        assert pinned.share_memory_().tolist() == [1] * 4 and not pinned.is_pinned()
    part = torch.zeros(4).untyped_storage()[4:8]
    assert part.share_memory_() is part and part.is_shared() and part.nbytes() == 4
    for sizes in ((0, 64), (64, 8), (80_000, 400_000), (400_000, 80)):
        x = torch.arange(10.0)
        reaching = x
        for size in sizes:
            x.untyped_storage().resize_(size)
            reaching = reaching if size < 64 else x.as_strided((size // 4,), (1,))
        reaching.fill_(3)
        x.untyped_storage().share_memory_()
        assert reaching.eq(3).all() and reaching.fill_(4).eq(4).all()
        assert x.is_shared() and x.untyped_storage().nbytes() == sizes[-1]
    released = torch.ones(3)
    released.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="no memory"):
        released.share_memory_()
    with torch.fused():
        x = torch.ones(20_000)
        y, kept = x * 2, x * 3
        x.share_memory_(), y.share_memory_()
    assert y.eq(2).all() and kept.eq(3).all() and x.is_shared() and y.is_shared()


def test_a_storage_that_moves_beside_a_thread_that_computes():
    x = torch.ones(1 << 20)
    stop, seen = threading.Event(), []

    def compute():
        while not stop.is_set():
            seen.append(x.sum().item())

    thread = threading.Thread(target=compute)
    thread.start()
    x.share_memory_()
    stop.set()
    thread.join()
    assert max(seen, default=0) <= 1 << 20 and x.sum() == 1 << 20


def test_files_as_storages(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(bytes([1, 2, 3, 4]))
    own = torch.UntypedStorage.from_file(path, False, 3)
    assert own.tolist() == [1, 2, 3] and own.untyped() is own
    own[0] = 9
    assert own.tolist() == [9, 2, 3] and path.read_bytes()[0] == 1
    shared = torch.UntypedStorage.from_file(path, shared=True, nbytes=6)
    shared[0] = 7
    del shared
    assert path.read_bytes() == bytes([7, 2, 3, 4, 0, 0])
    made = torch.UntypedStorage.from_file(str(tmp_path / "new"), True, 2)
    assert made.tolist() == [0, 0] and (tmp_path / "new").stat().st_size == 2
    assert torch.UntypedStorage.from_file(path).size() == 0
    with pytest.raises(RuntimeError, match="nbytes is 9"):
        torch.UntypedStorage.from_file(path, False, 9)


def test_files_as_vectors(tmp_path):
    path = tmp_path / "numbers"
    torch.arange(4.0).numpy().tofile(path)
    own = torch.from_file(path, size=3)
    assert own.tolist() == [0, 1, 2] and own.dtype == torch.float32
    own.fill_(9)
    shared = torch.from_file(str(path), True, 2, dtype=torch.int32)
    assert shared.tolist() == [0, 0x3F800000]
    shared.fill_(0)
    del shared
    assert torch.from_file(path, size=4, requires_grad=True).tolist() == [0, 0, 2, 3]
    assert torch.from_file(path, size=4, requires_grad=True).requires_grad
    assert torch.from_file(path).shape == (0,)
    for wrong, options in {
        "has 16 bytes": {"size": 5},
        "is -1": {"size": -1},
        "is the CPU's": {"size": 1, "device": "cuda"},
        "and not pinned": {"size": 1, "pin_memory": True},
    }.items():
        with pytest.raises(RuntimeError, match=f"from_file.*: .*{wrong}"):
            torch.from_file(path, **options)
    with pytest.raises(RuntimeError, match="cannot be opened: No such file"):
        torch.from_file(tmp_path / "absent", size=1)
    assert torch.is_storage(own.untyped_storage()) and not torch.is_storage(own)


def test_a_storage_has_an_address():
    x = torch.ones(3)
    assert torch._C._storage_address(x) == torch._C._storage_address(x[1:])
