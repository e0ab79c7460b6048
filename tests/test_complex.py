"""Complex numbers beside golden/complex.json: every function takes them or says why not."""

import pytest
import signatures
from signatures import PROCESS_WIDE, bound, function_of, known, valid

import pydevtensor as torch

ANSWERS = (
    AttributeError,
    BufferError,
    IndexError,
    RuntimeError,
    TypeError,
    ValueError,
)


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


def is_answered(name, found, value):
    """Whether a function takes arguments; where it does not, its error has a text."""
    try:
        values = [value(p) for p in found if not p.keyword]
        words = {p.name: value(p) for p in found if p.keyword}
    except Exception:
        return None
    try:
        function_of(name)(*values, **words)
    except ANSWERS as e:
        assert str(e), name
        return False
    return True


def test_every_function_answers(device, complex_arguments):
    answers = {}
    for name, form in calls():
        found = signatures.parameters(form)
        needed = [p for p in found if p.required or p.name in known(name)]
        answers[name] = is_answered(
            name, needed, lambda p, name=name: valid(name, p, device)
        )
    assert all(answers[name] for name in ("exp", "matmul", "cat", "stack"))
    assert not answers["sort"]
    assert not answers["floor"]


def test_every_number_may_be_complex(device):
    """One after the other, and all of a call."""
    answers = set()
    for name, form in calls():
        found = signatures.parameters(form)
        numbers = [p for p in found if p.word in ("Number", "Value", "float")]
        for chosen in [*([p] for p in numbers), numbers] if numbers else []:

            def value(p, name=name, chosen=chosen):
                return 1j if p in chosen else valid(name, p, device)

            needed = [
                p for p in found if p.required or p.name in known(name) or p in chosen
            ]
            answers.add((name, is_answered(name, needed, value)))
    assert {("add", True), ("full", True), ("where", True)} <= answers
    assert {("addcmul", False), ("nn.functional.elu", False)} <= answers
