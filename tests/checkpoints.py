"""Checkpoints with records of a test's choice."""

import io
import zipfile

import pydevtensor as torch

ALL = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"]


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
