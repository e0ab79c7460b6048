"""What beginners get wrong: the message says what was given, what was expected, what to do.

The types of the errors are those that PyTorch 2.13 raises for the same call.
"""

import re

import numpy as np
import pytest

import pydevtensor as torch
from pydevtensor import nn, optim
from pydevtensor.nn import functional as F
from pydevtensor.utils import data


class NoLength(data.Dataset):
    def __getitem__(self, index):
        return index


def net():
    return nn.Linear(3, 2)


def sgd():
    return optim.SGD(net().parameters(), lr=0.1)


def if_many():
    if torch.ones(2, 3) > 0:
        pass


def schedule(factor):
    return optim.lr_scheduler.LambdaLR(sgd(), factor)


# The mistake, PyTorch's type of error, and what the message has to say.
MISTAKES = {
    "a loss of a str": (
        lambda: F.mse_loss(torch.ones(2), "a"),
        TypeError,
        ["mse_loss", "target is 'a' (str)", "give a Tensor"],
    ),
    "a loss of a number": (
        lambda: F.l1_loss(1.0, torch.ones(2)),
        TypeError,
        ["l1_loss", "input is 1.0 (float)", "give a Tensor"],
    ),
    "a layer of a str": (
        lambda: nn.Linear("3", 2),
        TypeError,
        ["Linear", "in_features is '3' (str)", "give an int"],
    ),
    "a layer of a float": (
        lambda: nn.Conv2d(1, 2.5, 3),
        TypeError,
        ["Conv2d", "out_channels is 2.5 (float)", "give an int"],
    ),
    "a norm of a float": (
        lambda: nn.BatchNorm1d(4.5),
        TypeError,
        ["BatchNorm1d", "num_features is 4.5 (float)", "give an int"],
    ),
    "a table of a str": (
        lambda: nn.Embedding(3, "8"),
        TypeError,
        ["Embedding", "embedding_dim is '8' (str)", "give an int"],
    ),
    "a list of layers": (
        lambda: nn.Sequential([nn.ReLU()]),
        TypeError,
        ["list is not a Module subclass", "one by one", "Sequential(*modules)"],
    ),
    "a function as a layer": (
        lambda: nn.Sequential(F.relu),
        TypeError,
        ["function_or_method is not a Module subclass", "nn.ReLU()"],
    ),
    "a class as a layer": (
        lambda: nn.Sequential(nn.ReLU),
        TypeError,
        ["ReLU is not a Module subclass", "this is the class", "ReLU(...)"],
    ),
    "a str for p": (
        lambda: F.dropout(torch.ones(2), p="half"),
        TypeError,
        ["p is 'half' (str)", "give a float"],
    ),
    "apply() of a number": (
        lambda: net().apply(3),
        TypeError,
        ["apply()", "3 (int)", "a function of a module"],
    ),
    "a str as a mode": (
        lambda: net().train("yes"),
        ValueError,
        ["expected to be boolean", "'yes'", "give True or False"],
    ),
    "a path as a state": (
        lambda: net().load_state_dict("net.pt"),
        TypeError,
        ["dict-like", "got str", "torch.load()"],
    ),
    "a module for its gradients": (
        lambda: nn.utils.clip_grad_norm_(net(), 1.0),
        TypeError,
        ["parameters to clip", "Linear", ".parameters()"],
    ),
    "one beta": (
        lambda: optim.Adam(net().parameters(), betas=0.9),
        TypeError,
        ["betas is 0.9 (float)", "two numbers"],
    ),
    "a tuple of one beta": (
        lambda: optim.Adam(net().parameters(), betas=(0.9,)),
        IndexError,
        ["betas is (0.9,)", "two numbers"],
    ),
    "a beta too large": (
        lambda: optim.Adam(net().parameters(), betas=(0.9, 1.0)),
        ValueError,
        ["beta parameter at index 1: 1.0", "below 1"],
    ),
    "a rate below 0": (
        lambda: optim.SGD(net().parameters(), lr=-1),
        ValueError,
        ["learning rate: -1", "0 or more"],
    ),
    "a number as a closure": (
        lambda: sgd().step(3),
        TypeError,
        ["step()", "closure is 3 (int)", "a function"],
    ),
    "a number as a schedule": (
        lambda: schedule(0.5),
        TypeError,
        ["lr_lambda is 0.5 (float)", "function of the epoch"],
    ),
    "a data set without a length": (
        lambda: len(data.DataLoader(NoLength())),
        TypeError,
        ["'NoLength' has no len()", "define __len__"],
    ),
    "a random order of no length": (
        lambda: data.DataLoader(NoLength(), shuffle=True),
        TypeError,
        ["'NoLength' has no len()", "define __len__"],
    ),
    "a str as a number of workers": (
        lambda: data.DataLoader([1, 2], num_workers="2"),
        TypeError,
        ["num_workers is '2' (str)", "give an int"],
    ),
    "a number as a sampler": (
        lambda: next(iter(data.DataLoader([1, 2], sampler=5))),
        TypeError,
        ["sampler is 5 (int)", "not iterable", "a Sampler"],
    ),
    "a number as a collate_fn": (
        lambda: next(iter(data.DataLoader([1, 2], collate_fn=5))),
        TypeError,
        ["collate_fn is 5 (int)", "a function of a list of samples"],
    ),
    "samples of two types": (
        lambda: next(iter(data.DataLoader([1, "a"], batch_size=2))),
        TypeError,
        ["sample 0 is of type int, sample 1 of type str", "collate_fn"],
    ),
    "a list for a Tensor": (
        lambda: data.TensorDataset(torch.ones(2), [1, 2]),
        AttributeError,
        ["TensorDataset()", "item 1 is a list", "give Tensors"],
    ),
    "an array for a Tensor": (
        lambda: data.TensorDataset(np.ones(3)),
        TypeError,
        ["TensorDataset()", "item 0 is a ndarray", "give Tensors"],
    ),
    "one length": (
        lambda: data.random_split([1, 2, 3], 2),
        TypeError,
        ["lengths is 2 (int)", "[0.8, 0.2]"],
    ),
    "if of many": (
        if_many,
        RuntimeError,
        ["more than one element is ambiguous", "shape [2, 3]", ".any() or .all()"],
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_message(name):
    mistake, kind, parts = MISTAKES[name]
    with pytest.raises(kind) as error:
        mistake()
    assert type(error.value) is kind
    for part in parts:
        assert part in str(error.value)


FORMS = {
    "to": lambda: torch.ones(2).to(3.5),
    "arange": lambda: torch.arange("3"),
    "softmax": lambda: torch.softmax(torch.ones(2)),
    "randint": lambda: torch.randint(5),
    "gather": lambda: torch.ones(2).gather(),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_are_shown_as_python(name):
    """No words such as Sizes or Dtype, which are the extension's own."""
    with pytest.raises(TypeError) as error:
        FORMS[name]()
    found = re.search(rf"(?:its forms:|as in) ({name}\(.*)", str(error.value))
    for form in found[1].split(" | "):
        assert re.fullmatch(rf"{name}\([\w=, *.-]*\)", form), form


def test_help_shows_forms_as_python():
    doc = torch.Tensor.max.__doc__
    assert doc.endswith(
        "Forms:\n"
        "    max(*, out=None)\n"
        "    max(dim, keepdim=False, *, out=None)\n"
        "    max(other, *, out=None)"
    )
    assert "    max(input, dim, keepdim=False, *, out=None)\n" in torch.max.__doc__
    # Forms that differ in types alone are one, and one form is the signature.
    assert "Forms:" not in torch.hsplit.__doc__
    assert torch.repeat_interleave.__doc__.count("(input, repeats, dim") == 1
    for name in dir(torch.Tensor):
        shown = getattr(torch.Tensor, name).__doc__ or ""
        assert "Forms:" not in shown or ": " not in shown.rpartition("Forms:\n")[2]
