"""Complex numbers beside golden/complex.json: every function takes them or says why not."""

import pytest
import signatures
from signatures import PROCESS_WIDE, bound, function_of, known, valid

import pydevtensor as torch


def calls():
    for name, forms in bound():
        if name.split(".")[-1] in PROCESS_WIDE:
            continue
        for form in forms:
            yield name, form


def complex_floats(*shape):
    real = signatures.floats_of_reals(*shape)
    return torch.complex(real, 1 - real)


@pytest.fixture
def complex_arguments(monkeypatch):
    monkeypatch.setattr(signatures, "floats_of_reals", signatures.floats, raising=False)
    monkeypatch.setattr(signatures, "floats", complex_floats)


def test_every_function_answers(device, complex_arguments):
    refused, took = [], []
    for name, form in calls():
        found = signatures.parameters(form)
        needed = [p for p in found if p.required or p.name in known(name)]
        try:
            values = [valid(name, p, device) for p in needed if not p.keyword]
            words = {p.name: valid(name, p, device) for p in needed if p.keyword}
        except Exception:
            continue
        try:
            function_of(name)(*values, **words)
        except (
            AttributeError,
            BufferError,
            IndexError,
            RuntimeError,
            TypeError,
            ValueError,
        ) as e:
            assert str(e), name
            refused.append(name)
        else:
            took.append(name)
    assert {"exp", "matmul", "cat", "stack"} <= set(took)
    assert {"sort", "floor"} <= set(refused)
