"""Calls bind as the signatures say: by position, by name, in either spelling; anything else is
a TypeError that says what was given and what is expected."""

import inspect

import pytest
import signatures
from cases import Cases

import pydevtensor as torch

PUBLIC = [
    *((name, torch) for name in dir(torch) if inspect.isroutine(getattr(torch, name))),
    *((name, torch.Tensor) for name in dir(torch.Tensor)),
]


def example():
    return torch.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.sum(x, 1, True),
        lambda x: torch.sum(x, dim=1, keepdim=True),
        lambda x: torch.sum(x, axis=1, keepdims=True),
        lambda x: torch.sum(input=x, dim=1, keepdim=True),
        lambda x: torch.sum(a=x, axis=(1,), keepdim=True),
        lambda x: torch.sum(x=x, dim=[-1], keepdim=True),
        lambda x: torch.sum(x1=x, dim=torch.tensor(1), keepdim=True),
        lambda x: x.sum(1, True),
        lambda x: x.sum(keepdim=True, dim=1),
        lambda x: x.sum(axis=-1, keepdims=True),
    ],
)
def test_spellings_of_a_reduction(call):
    assert call(example()).tolist() == [[3.0], [12.0]]


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.zeros(2, 3),
        lambda: torch.zeros((2, 3)),
        lambda: torch.zeros([2, 3]),
        lambda: torch.zeros(size=(2, 3)),
        lambda: torch.zeros(torch.Size([2, 3])),
        lambda: torch.zeros(torch.tensor(2), 3),
        lambda: torch.zeros(*range(2, 4), dtype=None, device=None),
        lambda: torch.empty(2, 3).zero_(),
        lambda: torch.full((2, 3), 0.0),
        lambda: torch.full(size=[2, 3], fill_value=0.0),
        lambda: torch.randint(1, (2, 3)).float(),
        lambda: torch.randint(0, 1, (2, 3), dtype=torch.float32),
        lambda: torch.randint(low=0, high=1, size=(2, 3)).float(),
        lambda: torch.zeros(6).view(2, 3),
        lambda: torch.zeros(6).view((2, -1)),
        lambda: torch.zeros(6).reshape(shape=(2, 3)),
    ],
)
def test_spellings_of_sizes(call):
    result = call()
    assert result.shape == (2, 3)
    assert result.dtype is torch.float32
    assert not result.any()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: torch.sum(), ["sum()", "input"]),
        (lambda x: x.sum(0, True, 3), ["sum()", "at most 2", "3"]),
        (lambda x: x.sum(foo=1), ["sum()", "'foo'", "keepdim"]),
        (lambda x: x.sum(0, dim=1), ["sum()", "dim", "twice"]),
        (lambda x: x.sum(dim=0, axis=1), ["sum()", "dim", "twice"]),
        (lambda x: x.sum("a"), ["sum()", "dim", "'a' (str)", "int"]),
        (lambda x: x.sum(0.5), ["sum()", "dim", "0.5 (float)"]),
        (lambda x: x.sum(True), ["sum()", "dim", "True (bool)"]),
        (lambda x: x.sum(keepdim=1), ["sum()", "keepdim", "1 (int)", "bool"]),
        (lambda x: x.sum(dtype="float32"), ["sum()", "dtype", "'float32'"]),
        (lambda x: torch.sum([1, 2]), ["sum()", "input", "[1, 2] (list)", "Tensor"]),
        (lambda x: torch.zeros(2, "a"), ["zeros()", "size", "'a' (str)", "item 1"]),
        (lambda x: torch.zeros(2.0), ["zeros()", "size", "2.0 (float)"]),
        (lambda x: torch.zeros(2, device=3.5), ["zeros()", "device", "3.5 (float)"]),
        (lambda x: torch.full((2,)), ["full()", "fill_value"]),
        (lambda x: x.max("a"), ["max()", "str", "max(dim, keepdim=False"]),
        (lambda x: x.add(None), ["add()", "other", "None"]),
        (lambda x: x.add(1, 2, 3), ["add()", "3"]),
        (lambda x: x.normal_(1j), ["complex"]),
        (lambda x: torch.add(x, "a"), ["add()", "other", "'a' (str)"]),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, words):
    with pytest.raises(TypeError) as caught:
        call(example())
    for word in words:
        assert word in str(caught.value)


class Strange:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


def test_index_protocol():
    x = example()
    assert x.sum(Strange(1)).tolist() == [3.0, 12.0]
    with pytest.raises(ZeroDivisionError):
        x.sum(Strange(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        torch.zeros(2, Strange(ZeroDivisionError()))


def test_arguments_that_change_a_list_while_it_is_read():
    sizes = [2, 3]

    class Clears:
        def __index__(self):
            sizes.clear()
            return 2

    sizes[0] = Clears()
    assert torch.zeros(sizes).shape == (2, 3)
    assert sizes == []


def test_repr_that_fails_does_not_hide_the_error():
    x = example()

    class Broken:
        def __repr__(self):
            raise ValueError("no text")

    with pytest.raises(TypeError, match="Broken"):
        x.sum(Broken())


def test_too_many_dimensions():
    x = example()
    with pytest.raises(RuntimeError, match="16"):
        torch.zeros([1] * 17)
    with pytest.raises((RuntimeError, IndexError)):
        x.sum(list(range(40)))


def test_an_enormous_int_is_refused():
    x = example()
    with pytest.raises(OverflowError):
        x + 2**70
    with pytest.raises(TypeError):
        torch.zeros(2**70)
    with pytest.raises((OverflowError, TypeError)):
        x.sum(2**70)


def test_hundreds_of_arguments():
    x = example()
    with pytest.raises(TypeError):
        x.sum(*range(500))
    with pytest.raises(RuntimeError):
        torch.zeros(*[1] * 500)


def test_out():
    x = example()
    y = torch.empty(2, 3)
    assert torch.exp(x, out=y) is y
    assert torch.equal(y, x.exp())
    z = torch.empty(0)
    assert torch.add(x, 1, out=z) is z
    assert torch.equal(z, x + 1)
    with pytest.raises(RuntimeError, match=r"\[2\].*\[2, 3\]"):
        torch.add(x, 1, out=torch.empty(2))
    with pytest.raises(RuntimeError, match="int64"):
        torch.add(x, 1, out=torch.empty(2, 3, dtype=torch.int64))
    w = torch.empty(2, 3, dtype=torch.float64)
    assert torch.mul(x, 2, out=w).tolist() == (x * 2).tolist()
    values, where = torch.empty(0), torch.empty(0, dtype=torch.int64)
    found = torch.max(x, 1, out=(values, where))
    assert found.values is values
    assert where.tolist() == [2, 2]
    # The result may overlap its own input.
    assert torch.add(x, x, out=x) is x
    assert x.tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]


def test_signatures_are_readable():
    with Cases() as case:
        for name, home in PUBLIC:
            with case(f"{home.__name__}.{name}"):
                signature_is_readable(name, home)


def signature_is_readable(name, home):
    function = getattr(home, name)
    text = getattr(function, "__text_signature__", None)
    if name.startswith("__") or text is None:
        pytest.skip("not written through the argument parser")
    signature = inspect.signature(function)
    parameters = list(signature.parameters)
    if home is torch.Tensor:
        assert parameters[0] == "self"
        bound = inspect.signature(getattr(torch.zeros(()), name))
        assert "self" not in bound.parameters
    assert function.__doc__
    assert ":" not in text


WRONG = {
    "Tensor": (object(), [], [[1.0]], 1.5, "a", None),
    "int": ("a", object(), 1.5, None),
    "Value": (object(), [1.0], "a", None),
    "Number": (object(), [1.0], "a", None),
    "Scalar": (object(), [1.0], "a", None),
    "float": (object(), [1.0], "a", None),
    "bool": ("a", object(), None),
    "str": (1, object(), None),
    "Dims": ("a", object(), 1.5, None),
    "Lengths": ("a", object(), 1.5, None),
    "Dtype": ("a", object(), 1),
}


def test_an_argument_of_another_type_is_named():
    """In whatever language the function is written."""
    with Cases() as case:
        for name, forms in signatures.bound():
            with case(name):
                argument_is_named(name, forms)


def argument_is_named(name, forms):
    known, *others = map(signatures.parameters, forms)
    given = {p.name: signatures.valid(name, p, "cpu") for p in known if p.required}
    function = signatures.function_of(name)
    for p in known:
        shared = all((p.name, p.word) in {(q.name, q.word) for q in o} for o in others)
        for wrong in WRONG.get(p.word, ()) if shared and not p.rest else ():
            if wrong is None and p.none:
                continue
            with pytest.raises(TypeError) as error:
                function(**{**given, p.name: wrong})
            text = str(error.value)
            assert f"{forms[0].partition('(')[0]}()" in text, (p.name, wrong, text)
            assert others or f": {p.name} is" in text, (wrong, text)


def test_a_wrong_item_of_a_tuple_is_named():
    """Also where a copy of the sequence was all that held it."""
    wrong = torch.Size([2**40 + 1, 3])
    with pytest.raises(TypeError, match=f"item 0 of tensors is {2**40 + 1}"):
        torch.cat(wrong)
    with pytest.raises(TypeError, match=f"item 1 of tensors is {2**40 + 1}"):
        torch.stack([torch.ones(1), 2**40 + 1, *[torch.ones(1)] * 40])
