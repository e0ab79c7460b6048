"""The safetensors format, also against the package of that name."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pydevtensor as torch
from pydevtensor import safetensors as ours

ALL = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"]


def sample(device="cpu"):
    out = {
        name: torch.tensor([[0, 1, 1]], device=device).to(getattr(torch, name))
        for name in ALL
    }
    out["zero"] = torch.tensor(2.5, device=device)
    out["empty"] = torch.zeros(0, 3, device=device)
    out["part é"] = torch.arange(6.0, device=device)[2:4]
    return out


def same(a, b):
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].tolist() == b[name].tolist() and a[name].shape == b[name].shape
        assert str(a[name].dtype).split(".")[-1] == str(b[name].dtype).split(".")[-1]


def test_round_trip(device, tmp_path):
    path = tmp_path / "x.safetensors"
    ours.save_file(sample(device), path, {"format": "pt"})
    got = ours.load_file(path, device)
    same(got, sample())
    assert {str(x.device) for x in got.values()} == {device}
    same(ours.load(ours.save(sample(device))), sample())
    same(torch.safetensors.load(ours.save({})), {})


def test_against_the_package(tmp_path):
    theirs = pytest.importorskip("safetensors.numpy")
    package = pytest.importorskip("safetensors")
    path = tmp_path / "x.safetensors"
    ours.save_file(sample(), path, {"a": "b"})
    same(theirs.load_file(path), sample())
    with package.safe_open(path, "np") as file:
        assert file.metadata() == {"a": "b"}
    arrays = {name: np.array(x.numpy(), order="C") for name, x in sample().items()}
    theirs.save_file(arrays, path, {"c": "d"})
    same(ours.load_file(path), sample())
    assert theirs.save(arrays) == ours.save(sample())


def test_not_saved(tmp_path):
    x = torch.ones(2, 3)
    for tensors, error in (
        ([x], ValueError),
        ({1: x}, ValueError),
        ({"__metadata__": x}, ValueError),
        ({"a": 1}, ValueError),
        ({"a": x.t()}, ValueError),
        ({"a": x, "b": x[0]}, RuntimeError),
        ({"\ud800": x}, ValueError),
    ):
        with pytest.raises(error, match=r"save_file\(\)"):
            ours.save_file(tensors, tmp_path / "x")
    with pytest.raises(ValueError, match="metadata"):
        ours.save({"a": x}, {"a": 1})
    assert list(tmp_path.iterdir()) == []


def build(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype="F32", shape=(1,), offsets=(0, 4), **more):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets), **more}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 7,
        b"\0" * 8,
        b"\xff" * 20,
        build(b"[]"),
        build(b" {}"),
        build(b"{"),
        build(b"{}", b"1"),
        build(b'{"a":' + b"[" * 100_000),
        build(b'{"a":NaN}'),
        build(b"{\xff}"),
        build(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},' * 2, b"1234"),
        build(
            b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},'
            b'"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'
        ),
        build({"a": entry()}),
        build({"a": entry()}, b"12345"),
        build({"a": entry(offsets=(4, 8))}, b"12345678"),
        build({"a": entry(), "b": entry(offsets=(2, 6))}, b"123456"),
        build({"a": entry(), "b": entry(offsets=(5, 9))}, b"123456789"),
        build({"a": entry(offsets=(4, 0))}, b"1234"),
        build({"a": entry(shape=(-1,))}, b"1234"),
        build({"a": entry(shape=(True,))}, b"1234"),
        build({"a": entry(shape=(2**62, 4))}, b"1234"),
        build({"a": entry(shape=(2**62, 2**62, 0), offsets=(0, 0))}),
        build({"a": entry(shape=(1,) * 20)}, b"1234"),
        build({"a": entry(dtype="U16", offsets=(0, 2))}, b"12"),
        build({"a": entry(dtype="X")}, b"1234"),
        build({"a": entry(dtype=[])}, b"1234"),
        build({"a": entry(more=1)}, b"1234"),
        build({"a": {}}, b"1234"),
        build({"a": 3}),
        build({"__metadata__": {"a": 1}}),
        build({"__metadata__": []}),
    ],
    ids=range(32),
)
def test_hostile_files(data, tmp_path):
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(ours.SafetensorError, match=r"load_file\(\)"):
        ours.load_file(path)
    with pytest.raises(ValueError, match=r"load_file\(\)"):
        ours.load(data)


SAMPLE = ours.save({"a": torch.ones(2), "b": torch.arange(3)})


@given(st.integers(0, len(SAMPLE) - 1))
def test_cut_files(end):
    with pytest.raises(ours.SafetensorError):
        ours.load(SAMPLE[:end])


@settings(max_examples=400)
@given(st.integers(0, len(SAMPLE) - 1), st.integers(1, 255))
def test_flipped_bytes(at, bits):
    data = bytearray(SAMPLE)
    data[at] ^= bits
    try:
        got = ours.load(data)
    except ours.SafetensorError:
        return
    assert len(got) == 2  # the format has no checksums: other numbers or names
