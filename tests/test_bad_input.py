"""No call may crash: every public function and method, with arguments that are spoilt in one way at
a time, gives a result or an exception of a kind that PyTorch raises, leaks nothing, and leaves a
library that works on.

The calls come from the signatures that the extension itself binds calls by, so a new function is
tested as soon as it is there. VALID says what a good call looks like where the words of the
signature do not.
"""

import gc
import re
import warnings

import numpy as np
import pytest
from conftest import DEVICES

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
)

# These change the whole process.
LEFT_OUT = {
    "set_default_device",
    "set_default_dtype",
    "set_num_threads",
    "set_printoptions",
}

PARAMETER = re.compile(r"(\*?)(\w+): (\w+)(?: = (.+))?$")


class Parameter:
    def __init__(self, text, keyword):
        found = PARAMETER.match(text)
        assert found, f"a signature with {text!r} in it"
        self.rest, self.name, self.word, self.default = found.groups()
        self.required = self.default is None
        self.keyword = keyword


def split(text):
    """The parameters of one form, commas in parentheses aside."""
    inner = text[text.index("(") + 1 : text.rindex(")")]
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(inner):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and not depth:
            parts.append(inner[start:place].strip())
            start = place + 1
    return [part for part in [*parts, inner[start:].strip()] if part]


def parameters(form):
    keyword, found = False, []
    for part in split(form):
        if part == "*":
            keyword = True
            continue
        found.append(Parameter(part, keyword))
    return found


def targets():
    for name, text, is_function, is_method in torch._C._signatures():
        if name.startswith("_") or name in LEFT_OUT:
            continue
        for number, form in enumerate(text.split(" | ")):
            if is_function:
                yield pytest.param(name, form, False, id=f"{name}-{number}")
            if is_method:
                yield pytest.param(name, form, True, id=f"Tensor.{name}-{number}")


def floats(*shape):
    n = int(np.prod(shape))
    return (torch.arange(n, dtype=torch.float32) % 5 / 4 + 0.25).reshape(shape)


def index(*numbers):
    return torch.tensor(numbers)


# Good arguments by the names of parameters, where the word alone does not say enough.
BY_NAME = {
    "mask": lambda: floats(2, 3) > 1,
    "condition": lambda: floats(2, 3) > 1,
    "index": lambda: index(0, 1, 0).reshape(1, 3),
    "indices": lambda: index(0, 1, 0).reshape(1, 3),
    "n": lambda: 2,
    "steps": lambda: 3,
    "k": lambda: 1,
    "chunks": lambda: 2,
    "split_size_or_sections": lambda: 1,
    "indices_or_sections": lambda: 1,
    "length": lambda: 1,
    "size": lambda: (2, 3),
    "shape": lambda: (2, 3),
    "dims": lambda: (0, 1),
    "sizes": lambda: (2, 3),
    "repeats": lambda: 2,
    "dim0": lambda: 0,
    "dim1": lambda: 1,
    "source": lambda: 0,
    "destination": lambda: 1,
    "end": lambda: 3,
    "num_samples": lambda: 1,
    "high": lambda: 5,
    "dtype": lambda: torch.float64,
    "fill_value": lambda: 1,
    "tensors": lambda: [floats(2, 3), floats(2, 3)],
    "data": lambda: [1, 2],
    "obj": lambda: floats(2),
    "ndarray": lambda: np.ones(2),
    "ext_tensor": lambda: np.ones(2),
    "buffer": lambda: bytearray(8),
    "device": lambda: "cpu",
    "exponent": lambda: 2,
    "weight": lambda: 0.5,
}
V, M, N, S = (lambda: floats(3)), (lambda: floats(2, 3)), (lambda: floats(3, 4)), None
S, B, C = (lambda: floats(3, 3)), (lambda: floats(2, 2, 3)), (lambda: floats(2, 3, 4))
VALID = {
    "mm": {"input": M, "mat2": N},
    "matmul": {"input": M, "other": N},
    "mv": {"input": M, "vec": V},
    "dot": {"input": V, "tensor": V},
    "vdot": {"input": V, "other": V},
    "bmm": {"input": B, "mat2": C},
    "addmm": {"input": lambda: floats(2, 4), "mat1": M, "mat2": N},
    "addmv": {"input": lambda: floats(2), "mat": M, "vec": V},
    "addr": {"input": M, "vec1": lambda: floats(2), "vec2": V},
    "addbmm": {"input": lambda: floats(2, 4), "batch1": B, "batch2": C},
    "baddbmm": {"input": lambda: floats(2, 2, 4), "batch1": B, "batch2": C},
    "outer": {"input": V, "vec2": V},
    "ger": {"input": V, "vec2": V},
    "clamp": {"min": lambda: 0},
    "clip": {"min": lambda: 0},
    "select": {"index": lambda: 0},
    "as_strided": {"size": lambda: (2, 2), "stride": lambda: (1, 1)},
    "random_": {"to": lambda: 5},
    "manual_seed": {"seed": lambda: 5},
    "register_hook": {"input": lambda: M().requires_grad_(), "hook": lambda: abs},
    "retain_grad": {"input": lambda: M().requires_grad_() * 1},
    "backward": {"input": lambda: M().requires_grad_().sum()},
    "cross": {"dim": lambda: 1},
    "matrix_power": {"input": S},
    "tensordot": {"a": M, "b": M},
    "cdist": {"x1": M, "x2": M},
    "index_select": {"dim": lambda: 1, "index": lambda: index(0, 2)},
    "index_add": {"index": lambda: index(0, 1), "source": M},
    "index_copy": {"index": lambda: index(0, 1), "source": M},
    "index_fill": {"index": lambda: index(0, 1), "value": lambda: 1},
    "index_put": {"indices": lambda: (index(0, 1),), "values": M},
    "scatter": {"src": M, "index": lambda: index(0, 1, 0).reshape(1, 3)},
    "masked_fill": {"value": lambda: 1},
    "masked_scatter": {"source": M},
    "lerp": {"end": M},
    "bitwise_not": {"input": lambda: index(1, 2)},
    "view": {"size": lambda: (3, 2)},
    "reshape": {"shape": lambda: (3, 2)},
    "expand": {"size": lambda: (2, 3)},
    "permute": {"dims": lambda: (1, 0)},
    "item": {"self": lambda: torch.tensor(1.0)},
    "squeeze": {"dim": lambda: 0},
    "copy_": {"src": M},
    "bernoulli": {"input": lambda: floats(2, 3) / 2},
    "multinomial": {"input": M},
    "bincount": {"input": lambda: index(0, 1, 1)},
    "bucketize": {"boundaries": V},
    "dsplit": {"input": lambda: floats(2, 3, 4)},
    "nanquantile": {"q": lambda: 0.5},
    "quantile": {"q": lambda: 0.5},
    "repeat": {"repeats": lambda: (2, 2)},
    "split_with_sizes": {"split_sizes": lambda: (1, 1)},
    "unflatten": {"dim": lambda: 1, "sizes": lambda: (3, 1)},
    "unfold": {"size": lambda: 2, "step": lambda: 1},
    "slice_scatter": {
        "src": lambda: floats(1, 3),
        "dim": lambda: 0,
        "start": lambda: 0,
        "end": lambda: 1,
    },
    "fill": {"value": lambda: 1},
    "select_scatter": {"src": V, "index": lambda: 0},
    "diagonal_scatter": {"src": lambda: floats(2)},
    "as_strided_scatter": {
        "src": lambda: floats(2, 2),
        "size": lambda: (2, 2),
        "stride": lambda: (2, 1),
    },
    "cartesian_prod": {"tensors": lambda: [floats(2), floats(3)]},
    "combinations": {"input": V, "r": lambda: 2},
    "vander": {"x": V, "N": lambda: 3},
    "unravel_index": {"indices": lambda: index(0, 1), "shape": lambda: (2, 3)},
    "broadcast_shapes": {"shapes": lambda: (2, 3)},
    "tril_indices": {"row": lambda: 2, "col": lambda: 3},
    "triu_indices": {"row": lambda: 2, "col": lambda: 3},
    "empty_strided": {"stride": lambda: (3, 1)},
    "new_empty_strided": {"stride": lambda: (3, 1)},
    "empty_permuted": {"physical_layout": lambda: (1, 0)},
    "asarray": {"obj": lambda: [1, 2]},
    "scatter_reduce": {
        "src": M,
        "index": lambda: index(0, 1, 0).reshape(1, 3),
        "reduce": lambda: "sum",
    },
    "index_reduce": {
        "index": lambda: index(0, 1),
        "source": M,
        "reduce": lambda: "prod",
    },
    "put": {"index": lambda: index(0, 3), "source": lambda: floats(2)},
    "trapezoid": {"y": M},
    "cumulative_trapezoid": {"y": M},
    "gradient": {"input": S},
    "histogram": {"input": M, "bins": lambda: 3},
    "renorm": {"p": lambda: 2, "dim": lambda: 0, "maxnorm": lambda: 1},
    "geometric_": {"p": lambda: 0.5},
    **{
        f"{name}_window": {"window_length": lambda: 4}
        for name in ("hann", "hamming", "blackman", "bartlett", "kaiser")
    },
    "is_nonzero": {"input": lambda: floats(1)},
    "batch_norm": {"weight": V, "bias": V, "running_mean": V, "running_var": V},
}
BITS = ("gcd", "lcm", "bitwise_and", "bitwise_or", "bitwise_xor")
for each in (*BITS, "bitwise_left_shift", "bitwise_right_shift"):
    VALID[each] = {"input": lambda: index(1, 2), "other": lambda: index(1, 2)}

BY_WORD = {
    "Tensor": lambda: floats(2, 3),
    "Value": lambda: floats(2, 3),
    "Number": lambda: 1,
    "float": lambda: 0.5,
    "int": lambda: 0,
    "bool": lambda: False,
    "str": lambda: "ij",
    "Dims": lambda: 0,
    "Sizes": lambda: (2, 3),
    "Dtype": lambda: torch.float32,
    "Device": lambda: "cpu",
    "Generator": lambda: None,
    "Layout": lambda: torch.strided,
    "Format": lambda: torch.contiguous_format,
    "Any": lambda: None,
}


def on(value, device):
    return value.to(device) if isinstance(value, torch.Tensor) else value


def good(name, parameter, device):
    """A good value for a parameter, made afresh."""
    known = VALID.get(name) or VALID.get(name.removesuffix("_"), {})
    make = known.get(parameter.name)
    if make is None and parameter.word != "Tensor":
        make = BY_NAME.get(parameter.name)
    if make is None and parameter.name in ("mask", "condition", "index", "indices"):
        make = BY_NAME[parameter.name]
    if parameter.name == "device":
        return device
    return on((make or BY_WORD[parameter.word])(), device)


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
    for other in ("bool", "uint8", "int32", "float64"):
        yield torch.ones(2, 3, dtype=getattr(torch, other), device=device)
    for other in DEVICES[:2]:
        if other != device:
            yield torch.ones(2, 3, device=other)
    if device == "cpu":
        yield read_only(device)
    if isinstance(value, torch.Tensor) and value.dim():
        yield value[..., :-1]
        yield value.unsqueeze(0)
        yield value.transpose(0, -1)
        yield value.to(torch.int64)


def spoilt(name, form, method, device):
    """Calls that are wrong in one place: positional arguments and keywords of each."""
    found = parameters(form)
    known = VALID.get(name) or VALID.get(name.removesuffix("_"), {})
    needed = [p for p in found if p.required or p.name in known]
    positional = [p for p in needed if not p.keyword]

    def base():
        values = [good(name, p, device) for p in positional]
        words = {p.name: good(name, p, device) for p in needed if p.keyword}
        return values, words

    yield base()
    first = 1 if method else 0
    for place, parameter in enumerate(positional):
        if parameter.rest:
            continue
        reference = good(name, parameter, device)
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
            good(name, parameter, device),
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
    function = getattr(torch.Tensor if method else torch._C, name)
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
            assert "without saying why" not in message, f"{name}{told}: {message}"
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
