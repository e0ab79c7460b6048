"""save, load, frombuffer and the buffer protocol."""

import base64
import collections
import fractions
import io
import json
import os
import pickle
import random
import struct
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest
from golden.checkpoints import contents
from golden.describe import load
from hypothesis import given, settings
from hypothesis import strategies as st

import pydevtensor as torch

GOLDEN = load("checkpoints")
ALL = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"]


def round_trip(value, **options):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **options)


# --- the buffer protocol


def test_buffer_formats():
    for name in ALL:
        x = torch.tensor([0, 1, 1]).to(getattr(torch, name))
        m = memoryview(x)
        assert m.shape == (3,) and m.itemsize == x.itemsize and not m.readonly
        assert m.tolist() == x.tolist()
        assert np.asarray(m).dtype == np.dtype(name)


def test_buffer_shares_and_outlives():
    x = torch.arange(6.0).reshape(2, 3)
    m = memoryview(x.t()[1:])
    assert m.shape == (2, 2) and m.strides == (4, 12)
    x[0, 1] = 9
    assert m[0, 0] == 9
    m2 = memoryview(x)
    x.data = torch.zeros(2, 3)
    del x
    assert m2[0, 1] == 9
    m2[0, 1] = 4
    assert m[0, 0] == 4
    assert bytes(torch.zeros(0, 3)) == b"" and memoryview(torch.tensor(5)).shape == ()
    assert bytes(torch.arange(4, dtype=torch.uint8)[::2].contiguous()) == b"\0\2"


def test_buffer_refusals():
    x = torch.arange(6.0).reshape(2, 3)
    with pytest.raises(BufferError, match="contiguous"):
        io.BytesIO().write(x.t())
    with pytest.raises(BufferError, match="detach"):
        memoryview(x.requires_grad_())
    with pytest.warns(UserWarning, match="read-only"):
        r = torch.frombuffer(b"1234", dtype=torch.uint8)
    assert memoryview(r).readonly
    with pytest.raises((BufferError, TypeError), match="read-"):
        io.BytesIO(b"abcd").readinto(r)


def test_buffer_of_a_gpu(gpu):
    with pytest.raises(BufferError, match=r"\.cpu\(\)"):
        memoryview(torch.zeros(2, device=gpu))
    with pytest.raises(TypeError):
        np.asarray(torch.zeros(2, device=gpu))


def test_frombuffer():
    data = bytearray(struct.pack("<4i", 1, 2, 3, 4))
    x = torch.frombuffer(data, dtype=torch.int32)
    x[1] = 7
    assert struct.unpack("<4i", data) == (1, 7, 3, 4)
    with pytest.raises(BufferError):
        data.append(1)  # it is in use
    assert torch.frombuffer(data, dtype=torch.int32, count=2, offset=4).tolist() == [
        7,
        3,
    ]
    assert torch.frombuffer(
        np.arange(3.0), dtype=torch.float64, requires_grad=True
    ).requires_grad
    del x
    data.append(1)  # and no longer


def test_frombuffer_of_a_tensor_and_read_only():
    x = torch.arange(3)
    y = torch.frombuffer(x, dtype=torch.int64)
    del x
    assert y.tolist() == [0, 1, 2]
    with pytest.warns(UserWarning):
        z = torch.frombuffer(b"abc", dtype=torch.uint8)
    with pytest.raises(RuntimeError):
        z.add_(1)
    assert (z + 1).tolist() == [98, 99, 100]


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (b"", {}),
        (bytearray(4), {"offset": 4}),
        (bytearray(4), {"offset": -1}),
        (bytearray(4), {"count": 0}),
        (bytearray(5), {}),
        (bytearray(5), {"count": 2}),
        (bytearray(8), {"count": 2**62}),
        (bytearray(16), {"offset": 2, "count": 1}),
        ([1], {}),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_frombuffer_refusals(data, options):
    with pytest.raises(ValueError, match=r"frombuffer\(\): .*[;,] \w+"):
        torch.frombuffer(data, dtype=torch.int32, **options)


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

    for value in (Mine(), Mine, len, np.float64(1), slice(1), range(3), ...):
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
    with pytest.raises(NotImplementedError, match="mmap"):
        torch.load(path, mmap=True)


def test_options_of_pickle_change_nothing():
    x = torch.ones(2)
    files = [io.BytesIO() for _ in range(3)]
    torch.save(x, files[0])
    torch.save(x, files[1], pickle, 4, _use_new_zipfile_serialization=False)
    torch.save(x, files[2], pickle_protocol=5, _disable_byteorder_record=True)
    assert len({file.getvalue() for file in files}) == 1
    files[0].seek(0)
    read = torch.load(files[0], "cpu", pickle, weights_only=False, encoding="latin1")
    assert torch.equal(read, x)
    with pytest.raises(TypeError):
        torch.load(files[0], errors="strict", unknown=1)


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x.pt"
    torch.save([1], path)
    old = path.read_bytes()
    with pytest.raises(pickle.PicklingError):
        torch.save([torch.ones(2), object()], path)
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


def with_records(changes, value=None):
    """A saved checkpoint with some records replaced, or left out (None)."""
    file = io.BytesIO()
    torch.save(torch.ones(2) if value is None else value, file)
    out = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data = changes.get(name.removeprefix("archive/"), old.read(name))
            if callable(data):
                data = data(old.read(name))
            if data is not None:
                new.writestr(name, data)
    out.seek(0)
    return out


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


# --- hostile and damaged files

CALLS = {
    "os.system": b"\x80\x02cos\nsystem\nX\x02\0\0\0ls\x85R.",
    "posix.system": b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02ls\x85R.",
    "builtins.eval": b"\x80\x02c__builtin__\neval\nX\x011\0\0\0\x85R.",
    "pydevtensor._C.empty": b"\x80\x02cpydevtensor._C\nempty\nK\x05\x85R.",
    "torch.save": b"\x80\x02ctorch\nsave\n.",
    "collections.OrderedDict": b"\x80\x02ccollections\nOrderedDict\n.",
}


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_called(name):
    with pytest.raises(pickle.UnpicklingError, match=name.replace(".", r"\.")):
        torch.load(with_records({"data.pkl": CALLS[name]}))


def tensor_pickle(size, stride, offset=0, numel=2, kind="FloatStorage", grad=True):
    """A pickle of one tensor with any numbers."""

    def ints(values):
        return (
            b"("
            + b"".join(
                b"\x8a\x09" + v.to_bytes(9, "little", signed=True) for v in values
            )
            + b"t"
        )

    return (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\n"
        + kind.encode()
        + b"\nX\x01\0\0\x000X\x03\0\0\0cpu"
        + ints([numel])[1:-1]
        + b"tQ"
        + ints([offset])[1:-1]
        + ints(size)
        + ints(stride)
        + (b"\x88" if grad else b"\x89")
        + b"ccollections\nOrderedDict\n)RtR."
    )


# The pickles of PyTorch's torch.save().
FROM_PYTORCH = [
    (
        b"ccollections\nCounter\nq\x00}q\x01(X\x01\x00\x00\x00aq\x02K\x02X\x01\x00\x00\x00bq\x03K\x01u\x85q\x04Rq\x05.",
        collections.Counter("aab"),
    ),
    (b"ccollections\ndeque\nq\x00)Rq\x01(K\x01K\x02e.", collections.deque([1, 2])),
    (
        b"ccollections\ndeque\nq\x00)K\x03\x86q\x01Rq\x02K\x01a.",
        collections.deque([1], 3),
    ),
    (
        b"cfractions\nFraction\nq\x00K\x01K\x03\x86q\x01Rq\x02.",
        fractions.Fraction(1, 3),
    ),
    (
        b"c__builtin__\nfrozenset\nq\x00]q\x01(K\x01K\x02e\x85q\x02Rq\x03.",
        frozenset([1, 2]),
    ),
]


@pytest.mark.parametrize(("pickled", "value"), FROM_PYTORCH)
def test_values_of_the_standard_library_from_pytorch(pickled, value):
    got = torch.load(with_records({"data.pkl": b"\x80\x02" + pickled}))
    assert type(got) is type(value) and repr(got) == repr(value)


def test_fractions_that_take_long_to_reduce():
    many = b"\x8b" + (4000).to_bytes(4, "little") + b"\x01" * 4000
    for numbers, match in ((many * 2, "digits"), (b"K\x01K\x00", "ZeroDivision")):
        pickled = b"\x80\x02cfractions\nFraction\n" + numbers + b"\x86R."
        with pytest.raises(pickle.UnpicklingError, match=match):
            torch.load(with_records({"data.pkl": pickled}))


def test_the_pickle_of_a_tensor_is_right():
    x = torch.load(with_records({"data.pkl": tensor_pickle([2], [1])}))
    assert x.tolist() == [1, 1] and x.requires_grad


@pytest.mark.parametrize(
    "pickled",
    [
        tensor_pickle([3], [1]),
        tensor_pickle([2], [-1], 1),
        tensor_pickle([2], [1], -1),
        tensor_pickle([2], [1], 2**63),
        tensor_pickle([2**62, 4], [1, 1]),
        tensor_pickle([2**62, 2**62], [0, 0]),
        tensor_pickle([-1], [1]),
        tensor_pickle([2], [2**62]),
        tensor_pickle([2], [1, 1]),
        tensor_pickle([1] * 100, [1] * 100),
        tensor_pickle([2], [1], numel=2**62),
        tensor_pickle([2], [1], numel=-2),
        tensor_pickle([2], [1], kind="LongStorage"),
        tensor_pickle([2], [1], kind="ComplexFloatStorage"),
        b"",
        b"\x80\x02",
        b"\x80\x02.",
        b"\x80\x02(.",
        b"\x80\x02K\x01K\x02.",
        b"\x80\x02)R.",
        b"\x80\x02h\x05.",
        b"\x80\x02K\x01r\xff\xff\xff\xff0j\xff\xff\xff\x7f.",
        b"\x80\x04\x8e" + b"\xff" * 8 + b".",
        b"\x80\x04\x96" + b"\xff" * 7 + b"\x7f.",
        b"\x80\x02}]K\x01s.",
        b"\x80\x02}(K\x01u.",
        b"\x80\x02](a.",
        b"\x80\x02](K\x01s.",
        b"\x80\x02ccollections\nOrderedDict\n}b.",
        b"\x80\x02ccollections\nOrderedDict\n)R}X\x04\0\0\0keysK\x01sb.",
        b"\x80\x02ctorch\nFloatStorage\n.",
        b"\x80\x02]ctorch\nSize\na.",
        b"\x80\x02}" + b")" + b"\x85" * 100_000 + b"K\x01s.",
        b"\x80\x02})" + b"q\0h\0\x86" * 200 + b"K\x01s.",
        b"\x80\x01K\x01.",
        b"I1\n.",
        b"\x80\x02(" + tensor_pickle([2], [1])[2:-1] + b"NNNNtQ.",
        b"\x80\x02c_codecs\nencode\nX\1\0\0\0a"
        + tensor_pickle([2], [1])[2:-1]
        + b"\x86R.",
        b"\x80\x02ccollections\nCounter\n" + tensor_pickle([2], [1])[2:-1] + b"\x85R.",
        b"\x80\x02" + tensor_pickle([2], [1])[2:-1] + b"}X\5\0\0\0shapeK\1sb.",
        b"\x80\x02" + tensor_pickle([2], [1])[2:-1] + b"(K\1\x90.",
    ],
    ids=range(41),
)
def test_hostile_pickles(pickled):
    with pytest.raises(pickle.UnpicklingError, match=r"load\(\): "):
        torch.load(with_records({"data.pkl": pickled}))


def test_deep_nesting_is_read():
    depth = 100_000
    value = torch.load(
        with_records(
            {"data.pkl": b"\x80\x02" + b"]" * depth + b"a" * (depth - 1) + b"."}
        )
    )
    for _ in range(depth - 1):
        (value,) = value
    assert value == []


def archive(*records, **options):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **options) as new:
        for name, data in records:
            new.writestr(name, data)
    file.seek(0)
    return file


GOOD = b"\x80\x02K\x01."


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_hostile_archives():
    assert torch.load(archive(("a/data.pkl", GOOD))) == 1  # the least there can be
    for file in (
        archive(("a/data.pkl", GOOD), ("a/data.pkl", GOOD)),
        archive(("a/data.pkl", GOOD), ("b/data.pkl", GOOD)),
        archive(("data.pkl", GOOD)),
        archive(("../../x/data.pkl", GOOD)),
        archive(("a/data.pkl", GOOD), compression=zipfile.ZIP_DEFLATED),
        archive(("a/data.pkl", GOOD), ("a/version", b"11\n")),
        archive(("a/data.pkl", GOOD), ("a/version", b"x")),
        archive(("a/data.pkl", GOOD), ("a/byteorder", b"odd")),
        archive(("a/data.pkl", GOOD), ("a/constants.pkl", b"")),
        with_records({"data/0": None}),
        with_records({"data/0": b"123"}),
        io.BytesIO(b"PK\3\4"),
    ):
        with pytest.raises((RuntimeError, pickle.UnpicklingError), match=r"load\(\): "):
            torch.load(file)
    # Any byte but 0 is true, and reads as 1.
    odd = torch.load(with_records({"data/0": b"\2"}, torch.tensor([True])))
    assert odd.view(torch.uint8).tolist() == [1]
    with pytest.raises(EOFError):
        torch.load(io.BytesIO())
    with pytest.raises(pickle.UnpicklingError, match="not a checkpoint"):
        torch.load(io.BytesIO(b"hello"))


def test_another_byte_order():
    assert sys.byteorder == "little"
    for name in ALL:
        x = torch.tensor([0, 1, 1]).to(getattr(torch, name))
        swapped = np.asarray(x).astype(np.dtype(name).newbyteorder(">")).tobytes()
        file = with_records({"byteorder": b"big", "data/0": swapped}, x)
        assert torch.load(file).tolist() == x.tolist()


SAMPLE = io.BytesIO()
torch.save({"w": torch.arange(6.0).reshape(2, 3), "n": [1, "a", (2.5, None)]}, SAMPLE)
SAMPLE = SAMPLE.getvalue()
RIGHT = repr(torch.load(io.BytesIO(SAMPLE)))


def load_or_refuse(data):
    try:
        value = torch.load(io.BytesIO(bytes(data)))
    except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
        assert "load()" in str(error)
        return None
    return repr(value)


@given(st.integers(0, len(SAMPLE) - 1))
def test_cut_files(end):
    assert load_or_refuse(SAMPLE[:end]) is None


@settings(max_examples=400)
@given(st.integers(0, len(SAMPLE) - 1), st.integers(1, 255))
def test_flipped_bytes(at, bits):
    data = bytearray(SAMPLE)
    data[at] ^= bits
    # Flips that nobody reads (dates, padding) change nothing; no other values come out.
    assert load_or_refuse(data) in (None, RIGHT)


PICKLED = zipfile.ZipFile(io.BytesIO(SAMPLE)).read("archive/data.pkl")


@settings(max_examples=400)
@given(
    st.lists(
        st.tuples(st.integers(0, len(PICKLED) - 1), st.integers(0, 255)),
        min_size=1,
        max_size=4,
    )
)
def test_fuzzed_pickles(changes):
    """With right checksums the pickle machine alone stands against them."""
    data = bytearray(PICKLED)
    for at, value in changes:
        data[at] = value
    load_or_refuse(
        archive(("a/data.pkl", bytes(data)), ("a/data/0", bytes(24))).getvalue()
    )


# Opcodes and their operands, for pickles that are well-formed but make no sense.
PIECES = [
    *(bytes([code]) for code in b"N()tl]}01.abesuRQ\x85\x86\x87\x8f\x90\x91\x93\x94"),
    *(bytes([code]) + b"\0\0\0\0" for code in b"XTBrj"),
    *(bytes([code, index]) for code in b"qh" for index in range(4)),
    *(b"X" + struct.pack("<I", len(t)) + t for t in (b"storage", b"0", b"cpu", b"append", b"__setstate__", b"__class__")),
    *(b"c" + name + b"\n" for name in (b"torch._utils\n_rebuild_tensor_v2", b"torch._utils\n_rebuild_parameter", b"torch\nFloatStorage", b"collections\nOrderedDict", b"builtins\nset", b"_codecs\nencode", b"os\nsystem", b"torch\nSize")),
    b"K\2", b"J\xff\xff\xff\xff", b"\x8a\x08" + b"\x7f" * 8, b"G" + bytes(8),
    b"\x8e" + b"\xff" * 8, b"\x96" + b"\0\0\0\0\1\0\0\0", b"\x82\1", b"\x97", b"cbuiltins\nset\n](R",
    tensor_pickle([2], [1])[2:-1],
]  # fmt: skip


def mutated(rng, data):
    """data with a few bytes changed, removed, repeated, or pieces put in."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(len(data))
        end = at + rng.randrange(12)
        data[at:end] = rng.choice(
            [rng.randbytes(end - at), b"", data[at:end] * 3, rng.choice(PIECES)]
        )
    return bytes(data)


def test_mutated_files():
    """Thousands of hostile files: a value or our errors, little memory, no imports."""
    rng = random.Random(5)
    files = [base64.b64decode(row["file"]) for row in GOLDEN["files"]]
    pickles = [PICKLED, tensor_pickle([2], [1])]
    assert all(load_or_refuse(data) for data in files)
    modules = set(sys.modules)
    outcomes = collections.Counter()
    tracemalloc.start()
    for turn in range(4500):
        if turn % 3 == 0:
            data = mutated(rng, rng.choice(files))
        else:
            pickled = mutated(rng, rng.choice(pickles))
            if turn % 3 == 1:
                pickled = b"\x80\4(%bl." % b"".join(rng.choices(PIECES, k=8))
            records = ("a/data.pkl", pickled), ("a/data/0", bytes(24))
            data = archive(*records).getvalue()
        outcomes[load_or_refuse(data) is None] += 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20 and set(sys.modules) == modules
    assert min(outcomes.values()) > 100  # some load, some do not


def test_a_small_file_does_not_grow():
    """Constructors that copy an item of the memo again and again."""
    for head, call in (
        (b"(" + b"K\1" * 5000 + b"lq\0", b"cbuiltins\nset\nh\0\x85R"),
        (b"X" + struct.pack("<I", 9000) + b"x" * 9000 + b"q\0", b"c_codecs\nencode\nh\0X\6\0\0\0latin1\x86R"),
    ):  # fmt: skip
        with pytest.raises(pickle.UnpicklingError, match="copies"):
            torch.load(archive(("a/data.pkl", b"\x80\2(" + head + call * 400 + b"l.")))


def test_import_stays_light(tmp_path):
    import subprocess

    code = (
        "import sys, pydevtensor; "
        "print([m for m in ('zipfile', 'pickle', 'json') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path
    )
    assert out.stdout.strip() == "[]", out.stderr
