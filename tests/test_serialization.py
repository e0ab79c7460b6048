"""save, load, frombuffer and the buffer protocol."""

import base64
import collections
import fractions
import io
import json
import os
import pickle
import zipfile

import pytest
from checkpoints import ALL, with_records
from golden.checkpoints import contents
from golden.describe import load
from hypothesis import given
from hypothesis import strategies as st

import pydevtensor as torch

GOLDEN = load("checkpoints")


def round_trip(value, **options):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **options)


# --- PyTorch's files


@pytest.mark.parametrize("row", GOLDEN["files"], ids=lambda row: row["name"])
def test_golden(row):
    value = torch.load(io.BytesIO(base64.b64decode(row["file"])))
    assert json.loads(json.dumps(contents(value, torch))) == row["value"]
    again = round_trip(value)
    assert json.loads(json.dumps(contents(again, torch))) == row["value"]


@pytest.mark.parametrize("row", GOLDEN["refused"], ids=lambda row: row["names"])
def test_golden_refused(row):
    with pytest.raises((pickle.UnpicklingError, RuntimeError), match=row["names"]):
        torch.load(io.BytesIO(base64.b64decode(row["file"])))


def test_golden_sharing():
    files = {row["name"]: base64.b64decode(row["file"]) for row in GOLDEN["files"]}
    tied = torch.load(io.BytesIO(files["tied"]))
    assert tied["a"] is tied["b"] or tied["a"].data_ptr() == tied["b"].data_ptr()
    views = torch.load(io.BytesIO(files["views"]))
    views[0][1, 0] = 99
    assert views[1][0, 1] == 99 and views[2][0, 0] == 99
    state = torch.load(io.BytesIO(files["state_dict"]))
    assert type(state) is collections.OrderedDict
    assert state._metadata[""] == {"version": 1}
    assert type(round_trip(state)) is collections.OrderedDict
    assert round_trip(state)._metadata == state._metadata


# --- round trips


def test_round_trip(device):
    base = torch.arange(12.0, device=device).reshape(3, 4)
    value = {"x": base, "t": base.t(), "part": base[1:, ::2], "none": base[:0]}
    got = round_trip(value)
    for name, x in value.items():
        y = got[name]
        assert y.device == x.device and y.tolist() == x.tolist()
        assert y.stride() == x.stride() and y.storage_offset() == x.storage_offset()
    got["x"][1, 0] = 50
    assert got["t"][0, 1].item() == 50 and got["part"][0, 0].item() == 50
    for name in ALL:
        x = torch.tensor([[0], [1]], device=device).to(getattr(torch, name))
        y = round_trip(x)
        assert y.dtype is x.dtype and y.tolist() == x.tolist() and y.device == x.device


leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**300), 2**300)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
)


@given(
    st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner)
            | st.lists(inner).map(tuple)
            | st.dictionaries(st.text() | st.integers(), inner)
        ),
    )
)
def test_plain_values(value):
    got = round_trip(value)
    assert got == value and repr(got) == repr(value)


@pytest.mark.parametrize(
    "value",
    [
        collections.Counter("aab"),
        collections.Counter(),
        collections.deque([1, [2]]),
        collections.deque([1, 2], 3),
        collections.deque(),
        fractions.Fraction(-(2**70), 3),
        frozenset(["a", (1, frozenset([2]))]),
        {fractions.Fraction(1, 3): frozenset([1])},
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_of_the_standard_library(value):
    got = round_trip([value, value])
    assert got[0] is got[1]
    assert type(got[0]) is type(value) and got[0] == value
    # A deque shows its limit; the order of a set depends on hashes.
    assert sorted(repr(got[0])) == sorted(repr(value))


def test_a_deque_that_contains_itself():
    value = collections.deque()
    value.append(value)
    got = round_trip(value)
    assert got[0] is got


def test_shared_and_cyclic():
    inner = [1]
    value = [inner, inner, {"a": inner}]
    value.append(value)
    got = round_trip(value)
    assert got[0] is got[1] is got[2]["a"] and got[3] is got
    many = [str(i) * 3 for i in range(1000)]  # beyond the memo's short numbers
    assert round_trip([many, many])[1] == many
    loop = []
    loop.append((loop,))
    with pytest.raises(pickle.PicklingError, match="tuple"):
        round_trip(loop[0])


def test_not_saved():
    class Mine:
        pass

    for value in (Mine(), Mine, lambda: 1):
        file = io.BytesIO()
        with pytest.raises(pickle.PicklingError, match=r"save\(\)"):
            torch.save([value], file)
        assert file.getvalue() == b""
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(pickle.PicklingError, match="deeply"):
        torch.save(deep, io.BytesIO())


# --- files


class Pipe:
    """A file that neither seeks nor tells."""

    def __init__(self, data=b""):
        self.data = io.BytesIO(data)

    def seekable(self):
        return False

    def read(self, *count):
        return self.data.read(*count)

    def write(self, data):
        return self.data.write(data)

    def flush(self):
        pass


def test_files(tmp_path):
    x = torch.arange(5)
    path = tmp_path / "x.pt"
    for f in (path, str(path), os.fsencode(path)):
        torch.save(x, f)
        assert torch.load(f).tolist() == x.tolist()
    with open(path, "wb") as file:
        torch.save(x, file)
    with open(path, "rb") as file:
        assert torch.load(file).tolist() == x.tolist()
    with open(path) as file, pytest.raises(TypeError, match="'rb'"):
        torch.load(file)
    pipe = Pipe()
    torch.save(x, pipe)
    assert torch.load(Pipe(pipe.data.getvalue())).tolist() == x.tolist()
    for bad in (None, 3):
        with pytest.raises(AttributeError, match="path"):
            torch.save(x, bad)
        with pytest.raises(AttributeError, match="path"):
            torch.load(bad)
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "none.pt")
    with pytest.raises(RuntimeError, match="folder"):
        torch.save(x, tmp_path / "none" / "x.pt")
    with pytest.raises(IsADirectoryError):
        torch.save(x, tmp_path)


def test_options_of_pickle_change_nothing():
    x = torch.ones(2)
    files = [io.BytesIO() for _ in range(3)]
    torch.save(x, files[0])
    torch.save(x, files[1], pickle, 4, _use_new_zipfile_serialization=False)
    torch.save(x, files[2], pickle_protocol=5, _disable_byteorder_record=True)
    assert len({file.getvalue() for file in files}) == 1
    files[0].seek(0)
    read = torch.load(files[0], "cpu", pickle, encoding="latin1")
    assert torch.equal(read, x)
    with pytest.raises(TypeError):
        torch.load(files[0], errors="strict", unknown=1)


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x.pt"
    torch.save([1], path)
    old = path.read_bytes()
    with pytest.raises(pickle.PicklingError):
        torch.save([torch.ones(2), lambda: 1], path)
    write = zipfile.ZipFile.open

    def full(self, name, *args, **options):
        if getattr(name, "filename", "").endswith("data/0"):
            raise OSError(28, "No space left on device")
        return write(self, name, *args, **options)

    monkeypatch.setattr(zipfile.ZipFile, "open", full)
    with pytest.raises(OSError, match="space"):
        torch.save([torch.ones(2)], path)
    file = io.BytesIO()
    with pytest.raises(OSError, match="space"):
        torch.save([torch.ones(2)], file)
    with pytest.raises(RuntimeError, match="damaged"):
        torch.load(io.BytesIO(file.getvalue()))
    assert path.read_bytes() == old and os.listdir(tmp_path) == ["x.pt"]


def test_the_file_is_kept_as_it_was(tmp_path):
    path, link = tmp_path / "x.pt", tmp_path / "link.pt"
    torch.save(1, path)
    path.chmod(0o640)
    link.symlink_to(path)
    torch.save(2, link)
    assert link.is_symlink() and torch.load(path) == 2
    assert path.stat().st_mode & 0o777 == 0o640


# --- map_location


def test_map_location(gpu):
    file = io.BytesIO()
    torch.save({"a": torch.ones(2, device=gpu), "b": torch.zeros(2)}, file)

    def places(where):
        file.seek(0)
        got = torch.load(file, map_location=where)
        return str(got["a"].device), str(got["b"].device)

    assert places(None) == (gpu, "cpu")
    assert places("cpu") == places(torch.device("cpu")) == ("cpu", "cpu")
    assert places(gpu) == (gpu, gpu)
    assert places({gpu: "cpu", "cpu": gpu}) == ("cpu", gpu)
    assert places(lambda storage, location: storage) == ("cpu", "cpu")
    assert places(lambda storage, location: None) == (gpu, "cpu")
    assert places(lambda storage, location: storage.cuda(0)) == ("cuda:0", "cuda:0")
    for bad in (1.5, lambda storage, location: 3):
        with pytest.raises((TypeError, RuntimeError), match=r"storage|map_location"):
            places(bad)


def test_a_device_that_is_not_there():
    for tag in (b"cuda:7", b"fish:0"):
        file = with_records(
            {
                "data.pkl": lambda p, tag=tag: p.replace(
                    b"X\3\0\0\0cpu", b"X\6\0\0\0" + tag
                )
            }
        )
        with pytest.raises(RuntimeError, match="map_location='cpu'"):
            torch.load(file)
        file.seek(0)
        assert torch.load(file, map_location="cpu").tolist() == [1, 1]
