"""Hostile and damaged checkpoints, of which nothing is called."""

import base64
import collections
import fractions
import io
import pickle
import random
import struct
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest
from checkpoints import ALL, with_records
from golden.describe import load
from hypothesis import given, settings
from hypothesis import strategies as st

import pydevtensor as torch

GOLDEN = load("checkpoints")


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


@pytest.mark.parametrize("turns", [1500, pytest.param(4500, marks=pytest.mark.slow)])
def test_mutated_files(turns):
    """Thousands of hostile files: a value or our errors, little memory, no imports."""
    rng = random.Random(5)
    files = [base64.b64decode(row["file"]) for row in GOLDEN["files"]]
    pickles = [PICKLED, tensor_pickle([2], [1])]
    assert all(load_or_refuse(data) for data in files)
    modules = set(sys.modules)
    outcomes = collections.Counter()
    tracemalloc.start()
    for turn in range(turns):
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
    assert min(outcomes.values()) > turns / 45  # some load, some do not


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
