"""Files that a program trusts: modules and other objects; memory-mapped files."""

import base64
import collections
import copy
import dataclasses
import enum
import io
import json
import pickle

import numpy as np
import pytest
from golden.checkpoints import contents
from golden.describe import load

import pydevtensor as torch
from pydevtensor import nn

TRUSTED = load("checkpoints")["trusted"]


def saved(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def round_trip(value):
    return torch.load(saved(value), weights_only=False)


@pytest.mark.parametrize("row", TRUSTED, ids=lambda row: row["name"])
def test_files_of_pytorch(row):
    file = io.BytesIO(base64.b64decode(row["file"]))
    with pytest.raises(pickle.UnpicklingError, match="weights_only=False"):
        torch.load(file)
    file.seek(0)
    value = torch.load(file, weights_only=False)
    assert json.loads(json.dumps(contents(value, torch))) == row["value"]
    again = round_trip(value)
    assert json.loads(json.dumps(contents(again, torch))) == row["value"]
    for net, x, out in [] if row["name"] == "numpy" else [value, again]:
        y = net(x)
        torch.testing.assert_close(y[0] if isinstance(y, tuple) else y, out)
        net.double()
        copy.deepcopy(net)(x.double())


class Color(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Options:
    rate: float
    names: list


class Point(collections.namedtuple("Point", "x y")):
    pass


class Odd:
    """Objects with each part of what Python's pickle asks for."""

    class Inner:
        pass

    def __init__(self):
        self.seen = []

    def __reduce_ex__(self, protocol):
        return Odd, (), {"seen": [1]}, None, None, Odd.restore

    def restore(self, state):
        self.seen = state["seen"] + [2]


class Named(dict):
    def __new__(cls, *, key):
        made = super().__new__(cls)
        made.key = key
        return made

    def __init__(self, *, key):
        super().__init__()

    def __getnewargs_ex__(self):
        return (), {"key": self.key}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)
        self.tied = self.layer
        self.function = nn.functional.relu

    def forward(self, x):
        return self.function(self.tied(x))


def hook(module, args, output):
    return output * 2


def test_objects():
    default = collections.defaultdict(list, a=[1])
    value = [Color.RED, Options(0.5, ["a"]), Point(1, 2), Odd.Inner, len, [].append]
    value += [range(3), slice(1, 2), ..., default, np.float32(2), np.arange(3), Named]
    got = round_trip(value)
    assert got[0] is Color.RED and got[1] == value[1] and got[2] == (1, 2)
    assert type(got[2]) is Point and got[3] is Odd.Inner and got[4] is len
    assert got[5].__name__ == "append" and got[6:10] == value[6:10]
    assert got[9].default_factory is list and type(got[10]) is np.float32
    assert got[11].tolist() == [0, 1, 2] and got[12] is Named
    assert round_trip(Odd()).seen == [1, 2]
    named = Named(key=3)
    named["self"] = named
    got = round_trip(named)
    assert got.key == 3 and got["self"] is got
    options = Options(1, [])
    options.names.append(options)
    assert (got := round_trip(options)).names[0] is got


def test_a_module(device):
    torch.manual_seed(0)
    net = Net().to(device)
    net.register_forward_hook(hook)
    optimizer = torch.optim.Adam(net.parameters())
    x = torch.ones(3, 2, device=device)
    net(x).sum().backward()
    optimizer.step()
    again, opt = round_trip([net, optimizer])
    assert again.layer is again.tied and type(again) is Net
    assert again(x).equal(net(x)) and next(again.parameters()).device == x.device
    assert opt.param_groups[0]["params"][0] is again.layer.weight
    state = opt.state[again.layer.weight]["exp_avg"]
    assert state.equal(optimizer.state[net.layer.weight]["exp_avg"])


def test_what_has_no_name():
    for value in (lambda: 1, type("Local", (), {})):
        file = io.BytesIO()
        with pytest.raises(pickle.PicklingError, match="cannot be in a checkpoint"):
            torch.save([value], file)
        assert file.getvalue() == b""
    with pytest.raises(TypeError, match="cannot pickle"):
        torch.save((x for x in ()), io.BytesIO())


def test_nothing_is_executed_unless_it_is_trusted():
    called = []

    class Unpickler(pickle.Unpickler):
        def find_class(self, module, name):
            called.append(name)
            return super().find_class(module, name)

    class own:
        pass

    own.Unpickler = Unpickler
    file = saved([Options(1, [torch.ones(2)])])
    for options in ({}, {"weights_only": None}, {"weights_only": True}):
        with pytest.raises(pickle.UnpicklingError, match=r"Options.*trust"):
            torch.load(file, **options)
        file.seek(0)
    with pytest.raises(RuntimeError, match="pickle_module is for files that you trust"):
        torch.load(file, pickle_module=own, weights_only=True)
    assert torch.load(file, pickle_module=own)[0].names[0].equal(torch.ones(2))
    file.seek(0)
    assert torch.load(file, weights_only=False)[0].rate == 1


def test_names_that_this_library_lacks():
    from checkpoints import with_records

    name = b"\x80\x02ctorch.distributed.rpc\nBackendType\n."
    with pytest.raises(pickle.UnpicklingError, match="which pydevtensor does not have"):
        torch.load(with_records({"data.pkl": name}), weights_only=False)


def test_safe_globals():
    serialization = torch.serialization
    file = saved([Options(1, [2]), Color.RED])
    with serialization.safe_globals([Options, Color]):
        assert serialization.get_safe_globals() == [Options, Color]
        got = torch.load(file)
    assert got == [Options(1, [2]), Color.RED] and not serialization.get_safe_globals()
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="Options"):
        torch.load(file)
    serialization.add_safe_globals(
        [(Odd.Inner, f"{Options.__module__}.Options"), Color]
    )
    file.seek(0)
    assert type(torch.load(file)[0]) is Odd.Inner
    serialization.clear_safe_globals()
    with pytest.raises(TypeError, match="give classes and functions"):
        serialization.add_safe_globals([(1, "a")])
    scalar = type(np.float64(1).__reduce__()[1][0])
    trusted = [np.float64(1).__reduce__()[0], np.dtype, scalar]
    with serialization.safe_globals(trusted):
        assert torch.load(saved({"loss": np.float64(2.5)}))["loss"] == 2.5


def test_memory_of_the_file(tmp_path, device):
    path = tmp_path / "x.pt"
    value = {"w": torch.arange(1000.0), "none": torch.ones(0), "b": torch.ones(3) > 0}
    value["h"] = torch.ones(3, dtype=torch.float16)
    torch.save(value, path)
    got = torch.load(path, mmap=True, map_location=device)
    for name, x in value.items():
        assert got[name].cpu().equal(x) and got[name].device == torch.device(device)
    got["w"][0] = 5  # a copy of the page: the file keeps what it has
    assert torch.load(path)["w"][0] == 0
    whole = torch.load(path, mmap=True, weights_only=False)
    assert whole["w"].equal(value["w"])
    w = torch.load(path, mmap=True)["w"]
    with open(path, "r+b") as file:  # which a tensor sees that is the file's memory
        place = path.read_bytes().index(w[1:].numpy().tobytes())
        file.seek(place)
        file.write(np.float32(7).tobytes())
    assert w[1] == 7
    with pytest.raises(RuntimeError, match="the path of a file"):
        torch.load(io.BytesIO(path.read_bytes()), mmap=True)
