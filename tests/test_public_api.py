"""Nothing that users can call is lost: tests/golden/public_api.txt lists it."""

import os

import public_api
import pytest

RECORDED = public_api.parse(public_api.FILE.read_text())
WHAT_TO_DO = "run tools/public_api.py and look at what it changes in the file"


def now(name, forms, classes):
    try:
        return public_api.entry(name, forms, classes)
    except AttributeError:
        return ["is gone"]


@pytest.mark.skipif(
    bool(os.environ.get("PYDEVTENSOR_SANITIZE")),
    reason="a build with sanitizers has no stubs, which tell of overloads",
)
def test_nothing_is_lost():
    """Each recorded name has its signature, its overloads and its examples still."""
    forms, classes = public_api.stub_forms(), public_api.class_names()
    changed = []
    for name, entry in RECORDED.items():
        found = now(name, forms, classes)
        if found != entry:
            changed.append(f"{name} was\n    {entry}\nand is\n    {found}")
    assert not changed, "\n".join([*changed, WHAT_TO_DO])


def test_what_is_new_is_recorded():
    new = sorted(set(public_api.all_names()) - set(RECORDED))
    assert not new, f"new: {new}; {WHAT_TO_DO}"


def test_the_file_reads_back():
    assert public_api.text_of(RECORDED) == public_api.FILE.read_text()
    assert len(RECORDED) > 1500
    assert RECORDED["Tensor.absolute"][1:] == RECORDED["abs"][1:]


def test_a_loss_is_seen(monkeypatch):
    """A parameter, an example and a name that are gone each change an entry."""
    functional = public_api.module("nn.functional")
    entry = now("nn.functional.gelu", {}, {})
    assert entry == RECORDED["nn.functional.gelu"]
    monkeypatch.setattr(functional, "gelu", lambda input: None)
    assert now("nn.functional.gelu", {}, {}) == ["nn.functional.gelu(input)"]
    monkeypatch.delattr(functional, "gelu")
    assert now("nn.functional.gelu", {}, {}) == ["is gone"]
    assert now("Tensor.no_such_name", {}, {}) == ["is gone"]


@pytest.mark.parametrize(
    "name",
    ["autograd", "cuda", "linalg", "nn", "nn.functional", "nn.init", "nn.utils"]
    + ["optim", "optim.lr_scheduler", "random", "serialization", "utils.data"],
)
def test_a_module_lists_its_public_names(name):
    module = public_api.module(name)
    listed = dir(module)
    assert listed and not {"Any", "annotations", "math", "warnings"} & {*listed}
    assert all(getattr(module, each) is not None for each in listed)
    with pytest.raises(AttributeError, match=f"pydevtensor.{name} has no 'Conv9d'"):
        _ = module.Conv9d
