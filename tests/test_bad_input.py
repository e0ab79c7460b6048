"""No call may crash. Every public function and method, with one argument at a time spoilt, gives a
result or an exception of a kind that PyTorch raises, leaks nothing, and leaves a library that
works on. The calls are made from the extension's signatures (tools/signatures.py).
"""

import gc
import warnings

import numpy as np
import pytest
from conftest import DEVICES
from signatures import PROCESS_WIDE, bound, function_of, known, parameters, valid

import pydevtensor as torch

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

# What PyTorch raises for bad calls. A SystemError, a MemoryError or a KeyError is our own fault.
ALLOWED = (
    TypeError,
    ValueError,
    IndexError,
    RuntimeError,
    NotImplementedError,
    OverflowError,
    BufferError,
    AssertionError,
    ZeroDivisionError,
)


def targets():
    for name, text, is_function, is_method in torch._C._signatures():
        if name.startswith("_") or name in PROCESS_WIDE:
            continue
        for number, form in enumerate(text.split(" | ")):
            if is_function:
                yield pytest.param(name, form, False, id=f"{name}-{number}")
            if is_method:
                yield pytest.param(name, form, True, id=f"Tensor.{name}-{number}")
    for name, forms in bound():
        if "." in name:  # in a namespace
            for number, form in enumerate(forms):
                yield pytest.param(name, form, False, id=f"{name}-{number}")


def read_only(device):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    array.flags.writeable = False
    return torch.from_numpy(array)


class Hostile:
    """Answers questions with errors of its own."""

    def __index__(self):
        raise ValueError("mine")

    def __float__(self):
        raise ValueError("mine")

    def __len__(self):
        raise ValueError("mine")

    def __repr__(self):
        raise ValueError("mine")


WRONG_KINDS = [
    lambda: "a",
    lambda: None,
    lambda: object(),
    list,
    dict,
    lambda: 1.5,
    lambda: True,
    lambda: 1j,
    lambda: b"x",
    lambda: [[1], "a"],
    lambda: ("a", None),
    lambda: float("nan"),
    lambda: Hostile(),
    lambda: torch.float32,
    lambda: torch.device("cpu"),
    lambda: np.float32(1),
    lambda: np.ones((2, 3), dtype=np.complex64),
    lambda: (0,) * 40,
]
WRONG_NUMBERS = [2**62, -(2**62), 2**63, -(2**63) - 1, 99, -99, -1, 0, 1e300]


def wrong_tensors(value, device):
    """Tensors that differ from a good one in one respect."""
    yield torch.zeros(0, device=device)
    yield torch.zeros(0, 3, device=device)
    yield torch.tensor(1.0, device=device)
    yield torch.zeros(2, 4, device=device)
    yield torch.zeros(3, 3, device=device)
    yield torch.zeros(7, device=device)
    yield torch.zeros((1,) * 16, device=device)
    yield torch.ones(1, device=device).expand(2, 3)
    yield torch.full((2, 3), 99, dtype=torch.int64, device=device)
    yield torch.full((3,), -99, dtype=torch.int64, device=device)
    yield torch.full((2, 3), float("nan"), device=device)
    yield torch.ones(2, 3, device=device, requires_grad=True)
    for other in ("bool", "uint8", "int32", "float64", "complex64"):
        yield torch.ones(2, 3, dtype=getattr(torch, other), device=device)
    for other in DEVICES[:2]:
        if other != device:
            yield torch.ones(2, 3, device=other)
    if device == "cpu":
        yield read_only(device)
    if isinstance(value, torch.Tensor) and value.dim() and not value.is_sparse:
        yield value[..., :-1]
        yield value.unsqueeze(0)
        yield value.transpose(0, -1)
        yield value.to(torch.int64)


def spoilt(name, form, method, device):
    """Calls that are wrong in one place: positional arguments and keywords of each."""
    found = parameters(form)
    needed = [p for p in found if p.required or p.name in known(name)]
    positional = [p for p in needed if not p.keyword]

    def base():
        values = [valid(name, p, device) for p in positional]
        words = {p.name: valid(name, p, device) for p in needed if p.keyword}
        return values, words

    yield base()
    first = 1 if method else 0
    for place, parameter in enumerate(positional):
        if parameter.rest:
            continue
        reference = valid(name, parameter, device)
        others = [make() for make in WRONG_KINDS] + WRONG_NUMBERS
        for other in [
            *(others if place >= first else []),
            *wrong_tensors(reference, device),
        ]:
            values, words = base()
            values[place] = other
            yield values, words
    for place in range(first, len(positional)):  # missing
        values, words = base()
        del values[place]
        yield values, words
    values, words = base()
    yield [*values, *[1] * 20], words
    yield values, {**words, "no_such_argument": 1}
    if positional and not positional[-1].rest:
        yield values, {**words, positional[-1].name: values[-1]}  # given twice
    for parameter in found:
        if parameter in positional and not parameter.rest:
            continue
        choices = [make() for make in WRONG_KINDS] + WRONG_NUMBERS
        choices += [
            valid(name, parameter, device),
            (2**62, 2**62),
            (99,),
            (0, 0),
            [-1, -1],
        ]
        if parameter.word in ("Tensor", "Value", "Any"):
            choices += wrong_tensors(None, device)
        for other in choices:
            values, words = base()
            if parameter.rest and positional and positional[-1] is parameter:
                values.pop()
                if isinstance(other, tuple):
                    yield [*values, *other], words
                yield [*values, other], words
            else:
                yield values, {**words, parameter.name: other}
    if any(p.name == "out" for p in found):  # out that is an input
        values, words = base()
        if values and isinstance(values[0], torch.Tensor):
            yield values, {**words, "out": values[0]}


def describe(arguments):
    values, words = arguments
    shown = []
    for value in [*values, *words.values()]:
        if isinstance(value, torch.Tensor):
            shown.append(f"{value.dtype}{list(value.shape)}")
        elif isinstance(value, Hostile):
            shown.append("Hostile()")
        else:
            shown.append(repr(value)[:40])
    return f"({', '.join(shown)}) {list(words)}"


def alive(device):
    return torch._C._storage_count(torch.device(device))


def settle(device):
    """A GPU tells of bad indices when it is next waited for."""
    if device != "cpu":
        for _ in range(2):
            try:
                torch.cuda.synchronize(device)
            except RuntimeError:
                continue


good_calls = {}


@pytest.mark.parametrize(("name", "form", "method"), list(targets()))
@pytest.mark.parametrize("where", DEVICES[:2])
def test_spoilt_calls(name, form, method, where):
    function = getattr(torch.Tensor, name) if method else function_of(name)
    counts = [alive(device) for device in DEVICES]
    for number, arguments in enumerate(spoilt(name, form, method, where)):
        values, words = arguments
        told = describe(arguments)
        if method and not (values and isinstance(values[0], torch.Tensor)):
            del values, words, arguments
            continue
        try:
            with torch.device(where), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function(*values, **words)
            succeeded = True
        except ALLOWED as error:
            succeeded = False
            message = str(error)
            assert "without an error message" not in message, f"{name}{told}: {message}"
            assert message or isinstance(error, AssertionError), f"{name}{told}: silent"
        except BaseException as error:
            pytest.fail(f"{name}{told} raises {type(error).__name__}: {error}")
        if number == 0:
            good_calls[name, method] = good_calls.get((name, method)) or succeeded
        del values, words, arguments
    settle(where)
    torch.set_default_dtype(torch.float32)
    assert (torch.ones(2, device=where) + 1).tolist() == [2, 2]
    gc.collect()
    left = [alive(device) for device in DEVICES]
    assert all(now <= then for now, then in zip(left, counts, strict=True)), (
        f"{name} leaks: storages alive on {DEVICES}: {counts} before, {left} after"
    )


def test_most_first_calls_are_good():
    if len(good_calls) < 100:
        pytest.skip("only a part of the tests above has run")
    bad = sorted(name for (name, _), well in good_calls.items() if not well)
    assert len(bad) < len(good_calls) / 20, bad


def profiled(method):
    def call(file):
        with torch.profiler.profile() as found:
            torch.zeros(2)
        getattr(found, method)(file)

    return call


@pytest.mark.parametrize(
    "call",
    [torch.from_file, torch.UntypedStorage.from_file, torch.load]
    + [lambda file: torch.save({}, file), torch.safetensors.load_file]
    + [lambda file: torch.safetensors.safe_open(file, "pt")]
    + [lambda file: torch.safetensors.save_file({}, file)]
    + [torch.cuda.memory._dump_snapshot]
    + [profiled("export_chrome_trace"), profiled("export_stacks")],
)
def test_a_number_is_no_path(call, tmp_path):
    """Python's open() would take it as a descriptor, and close it."""
    with open(tmp_path / "file", "w+b") as file:
        with pytest.raises((TypeError, AttributeError, ValueError)):
            call(file.fileno())
        assert file.write(b"still open") == 10
