"""Layers that are one record: a class that names the function it calls."""

import copy
import inspect
import pickle
import traceback

import pytest

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor.nn import functional as F
from pydevtensor.nn.modules._function_layer import FunctionLayer
from pydevtensor.nn.modules._layer import Layer


class Leaky(FunctionLayer, calls=F.leaky_relu):
    """x, or less where x is negative.

    negative_slope  what negative elements are multiplied by

    >>> Leaky(0.1)(torch.tensor([-1.0]))
    tensor([-0.1000])
    """


class Weighted(FunctionLayer, calls=F.binary_cross_entropy, takes="weight, reduction"):
    """A loss whose weight is a buffer."""


class Sizes(FunctionLayer, calls=F.pad, takes="pad, mode, value=9"):
    """A default of its own, and a check."""

    def _set_options(self, **options):
        if not options["pad"]:
            raise ValueError("give numbers")
        super()._set_options(**options)


def test_a_record_is_a_whole_layer(device):
    layer = Leaky(0.5)
    assert str(inspect.signature(Leaky)) == (
        "(negative_slope: 'float' = 0.01, inplace: 'bool' = False) -> 'None'"
    )
    assert str(inspect.signature(layer.forward)) == "(input: 'Any') -> 'Any'"
    assert repr(layer) == "Leaky(negative_slope=0.5, inplace=False)"
    lines = inspect.getdoc(Leaky).splitlines()
    assert lines[0] == "x, or less where x is negative."
    assert lines[2:4] == [
        "negative_slope  what negative elements are multiplied by",
        "inplace         write the result into the input",
    ]
    assert lines[5] == ">>> Leaky(0.1)(torch.tensor([-1.0]))"
    assert layer(torch.tensor([-2.0, 2.0], device=device)).tolist() == [-1.0, 2.0]
    layer.negative_slope = 0.25
    assert layer(torch.tensor([-2.0], device=device)).tolist() == [-0.5]
    for same in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert vars(same).keys() == vars(layer).keys() and repr(same) == repr(layer)


def test_a_class_of_its_own_kind():
    class Steep(Leaky):
        def __init__(self, slope):
            super().__init__(slope)
            self.more = nn.Linear(2, 2)

    layer = Steep(0.5)
    assert str(inspect.signature(Steep)) == "(slope)"
    assert layer(torch.tensor([-2.0])).tolist() == [-1.0]
    assert list(layer.state_dict()) == ["more.weight", "more.bias"]


def test_optional_tensors_are_buffers(device):
    layer = Weighted(torch.tensor([2.0]), "sum").to(device)
    assert list(layer.state_dict()) == ["weight"]
    assert layer.weight.device == torch.device(device)
    p = torch.tensor([0.5], device=device)
    assert layer(p, torch.ones_like(p)).item() == pytest.approx(1.3863, abs=1e-4)
    assert str(inspect.signature(layer.forward)) == (
        "(input: 'Any', target: 'Any') -> 'Any'"
    )


def test_defaults_and_checks():
    layer = Sizes((1, 0))
    assert layer(torch.tensor([1.0])).tolist() == [9.0, 1.0]
    assert repr(layer) == "Sizes(pad=(1, 0), mode='constant', value=9)"
    with pytest.raises(ValueError, match="give numbers"):
        Sizes(())


def test_errors_name_the_layer():
    with pytest.raises(TypeError, match=r"Leaky.__init__\(\) got an unexpected.*slope"):
        Leaky(slope=1)
    with pytest.raises(TypeError) as error:
        Leaky()(3)
    last = traceback.extract_tb(error.value.__traceback__)[-1]
    assert last.name == "forward" and last.line.startswith("class Leaky(FunctionLayer")


def test_a_base_may_be_a_layer_too():
    assert repr(nn.Fold((4, 4), 2)) == (
        "Fold(output_size=(4, 4), kernel_size=2, dilation=1, padding=0, stride=1)"
    )
    assert nn.Fold((4, 4), 2)(nn.Unfold(2)(torch.ones(1, 4, 4))).shape == (1, 4, 4)


def test_a_function_of_another_namespace_is_refused():
    class Wrong(FunctionLayer, calls=len):
        pass

    with pytest.raises(TypeError, match="len is not a function of nn"):
        Wrong()


class Table(
    Layer, calls=F.linear, takes="rows: int, columns: int = 2, bias, device, dtype"
):
    """A layer with parameters."""

    _ints = ("rows", "columns")
    _repr = "rows columns= bias="

    def _shapes(self):
        return {"weight": (self.rows, self.columns), "bias": (self.rows,)}


def test_a_layer_with_parameters_is_a_record(device):
    layer = Table(3, device=device)
    assert str(inspect.signature(Table)) == (
        "(rows: 'int', columns: 'int' = 2, bias: 'bool' = True, "
        "device: 'Any' = None, dtype: 'Any' = None) -> 'None'"
    )
    assert repr(layer) == "Table(3, columns=2, bias=True)"
    assert [*layer.state_dict()] == ["weight", "bias"]
    assert layer(torch.ones(2, device=device)).tolist() == [2.0, 2.0, 2.0]
    assert Table(3, bias=False).bias is None
    with pytest.raises(TypeError, match=r"Table\(\): rows is 'a'"):
        Table("a")
    with pytest.raises(
        RuntimeError, match=r"^Table\(3, columns=2, bias=True\): lin"
    ) as e:
        layer(torch.ones(3, device=device))
    frames = traceback.extract_tb(e.value.__traceback__)
    assert {f.filename for f in frames if f.name == "forward"} == {__file__}


def test_records_describe_what_their_family_does():
    for kind in (nn.Conv3d, nn.LazyBatchNorm2d, nn.GRUCell, torch.optim.NAdam):
        names = [*inspect.signature(kind).parameters]
        entries = inspect.getdoc(kind).replace(",", " ").split()
        assert [name for name in names if name not in entries] == []


def test_a_subclass_of_a_record_begins_as_that(device):
    class Own(nn.LSTM):
        def __init__(self, size):
            super().__init__(size, size, batch_first=True)

        def _make(self):
            raise AssertionError("this is the program's own method")

    assert Own(3).to(device)(torch.ones(2, 4, 3, device=device))[0].shape == (2, 4, 3)
