"""The examples in docstrings print what they show, and every public name has one."""

import doctest
import inspect
import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pytest
from cases import Cases
from conftest import GPUS
from signatures import bound, function_of

import pydevtensor as torch

# Modules in Python that define public names, which do not begin with `_`. The modules of
# a private package, and those below nn.modules, optim and utils.data, define what the
# package above them or their __all__ names. Functions of namespaces are the extension's.
MODULES = ["_functions.dtypes"] + [
    m.name.removeprefix("pydevtensor.")
    for m in pkgutil.walk_packages(torch.__path__, "pydevtensor.")
    if re.search(r"\._(?!functional\.)|\.__|\.worker$|\.linalg\.|nn\._", m.name) is None
    # It needs a package that need not be there; tests/test_tensorboard.py is its test.
    if m.name != "pydevtensor.utils.tensorboard"
]
INNER = re.compile(r"(optim\.(algorithms|optimizer)|utils\.data\.\w+)$")
# Public callables that show no example yet: the tests hold this to be exact.
WITHOUT = (Path(__file__).parent / "without_example.txt").read_text().split()


# Models of a hundred million parameters.
LARGE = ("vision.models.alexnet", "vision.models.vgg")


def module_of(name):
    return pytest.param(name, marks=[pytest.mark.slow] * (name in LARGE))


@pytest.mark.parametrize("name", [*map(module_of, MODULES)])
def test_examples(name, tmp_path, monkeypatch):
    if name == "cuda" and not (GPUS and torch.cuda.is_simulated()):
        pytest.skip("its examples are of simulated GPUs")
    if name.startswith("vision."):
        pytest.importorskip("PIL")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch.hub, "_dir", None)  # which an example sets
    module = import_module(f"pydevtensor.{name}")
    found = doctest.testmod(module, extraglobs={"torch": torch, "nn": torch.nn})
    assert not found.failed


def in_c():
    """Functions and methods of the extension, by the names that users write."""
    for name, value in vars(torch._C).items():
        if name.startswith("_"):
            continue
        if isinstance(value, type):
            if not issubclass(value, BaseException):
                yield name, value
            for inner, method in vars(value).items():
                if not inner.startswith("_") and inspect.isroutine(method):
                    yield f"{name}.{inner}", method
        elif callable(value):
            yield name, value
    for name, _ in bound():
        if "." in name:  # in a namespace
            yield name, function_of(name)


def in_python():
    """Functions and classes of the modules in Python, and methods of their own."""
    for name in MODULES:
        module = import_module(f"pydevtensor.{name}")
        above = import_module(f"pydevtensor.{name}".rpartition(".")[0])
        for inner, value in vars(module).items():
            own = getattr(value, "__module__", None) == module.__name__
            inside = inner not in getattr(module, "__all__", [inner])
            if inner.startswith("_") or inside or not own or not callable(value):
                continue
            if isinstance(value, type) and issubclass(value, BaseException):
                continue
            if INNER.match(name) and not hasattr(above, inner):
                continue
            yield f"{name}.{inner}", value
    for name in ("try_gpu", "try_all_gpus"):
        yield name, getattr(torch, name)


def callables():
    yield from in_c()
    yield from in_python()


DOCTESTS = {}
for each, value in in_c():
    DOCTESTS.setdefault(inspect.getdoc(value) or "", each)


def test_examples_of_c():
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    with Cases() as case:
        for doc, name in ((d, n) for d, n in DOCTESTS.items() if ">>> " in d):
            with case(name):
                if not GPUS and re.search("cuda|pin_memory", doc):
                    pytest.skip("needs a GPU")
                names = {"torch": torch, "nn": torch.nn}
                test, said = parser.get_doctest(doc, names, name, None, 0), []
                assert not runner.run(test, out=said.append).failed, "".join(said)
                test.globs.clear()


def test_everything_shows_an_example():
    without = [n for n, value in callables() if ">>> " not in (value.__doc__ or "")]
    new = sorted(set(without) - set(WITHOUT))
    assert not new, f"a row in C or a docstring is to show {new}"
    shown = sorted(set(WITHOUT) - set(without))
    assert not shown, f"tests/tools/without_example.txt is to lose {shown}"


def test_everything_says_what_it_does():
    silent = [
        n for n, value in callables() if not (inspect.getdoc(value) or "").strip()
    ]
    assert silent == []


# Tensor takes sizes or data, and the others are never constructed.
NO_SIGNATURE = {"Node", "Tensor", "dtype", "layout", "memory_format"}
NO_SIGNATURE |= {"distributed.tensor.DTensor"}
# Dicts, whose signature Python does not know.
NO_SIGNATURE |= {"fx.immutable_collections.immutable_dict"}
NO_SIGNATURE |= {"nn.attention.flex_attention.FlexKernelOptions"}


def test_everything_has_a_signature():
    silent = []
    for name, value in callables():
        try:
            inspect.signature(value)
        except ValueError:
            silent.append(name)
    assert set(silent) <= NO_SIGNATURE
