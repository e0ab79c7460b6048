"""The examples in docstrings of nn and optim give what they say."""

import doctest
from importlib import import_module

import pytest

import pydevtensor as torch

MODULES = [
    *(
        f"nn.{name}"
        for name in ("activations", "containers", "embedding", "functional")
    ),
    *(
        f"nn.{name}"
        for name in ("init", "layers", "losses", "module", "parameter", "utils")
    ),
    *(f"optim.{name}" for name in ("algorithms", "lr_scheduler", "optimizer")),
]
# Public classes that show an example.
SHOWN = [name for name in torch.nn.__all__ if isinstance(getattr(torch.nn, name), type)]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = import_module(f"pydevtensor.{name}")
    found = doctest.testmod(module, extraglobs={"torch": torch, "nn": torch.nn})
    assert not found.failed


@pytest.mark.parametrize("name", SHOWN)
def test_every_class_shows_an_example(name):
    if name == "UninitializedParameter":
        pytest.skip("users meet it only inside lazy layers")
    assert ">>> " in getattr(torch.nn, name).__doc__
