"""Printing, character for character, against what PyTorch printed (tests/golden)."""

import pytest
from golden.describe import flat, load
from golden.printing import build, plain

import pydevtensor as torch
from pydevtensor import printing

GOLDEN = load("printing")


@pytest.fixture(autouse=True)
def default_options():
    torch.set_printoptions(profile="default")
    yield
    torch.set_printoptions(profile="default")


def grouped(cases):
    """The cases of each dtype."""
    groups = {}
    for case in cases:
        groups.setdefault(case["dtype"], []).append(case)
    return groups


@pytest.mark.parametrize("dtype", grouped(GOLDEN["tensors"]))
def test_tensors(dtype):
    wrong = []
    for case in grouped(GOLDEN["tensors"])[dtype]:
        tensor = build(case, torch)
        torch.set_printoptions(profile="default")
        torch.set_printoptions(**case.get("options", {}))
        for text in (repr(tensor), str(tensor)):
            if text != case["text"]:
                wrong.append(f"{case}\n--- got\n{text}\n--- expected\n{case['text']}")
    assert not wrong, "\n\n".join(wrong[:5]) + f"\n\n{len(wrong)} texts differ"


class Recorded:
    """A tensor as autograd would make it: the same but for requires_grad and grad_fn."""

    def __init__(self, tensor, requires_grad, node):
        self._tensor = tensor
        self.requires_grad = requires_grad
        node_type = type("Node", (), {"name": lambda self: node})
        self.grad_fn = node_type() if node else None

    def __getattr__(self, name):
        return getattr(self._tensor, name)


Recorded.__name__ = "Tensor"


def test_notes(device):
    """The notes after the elements: device, dtype, requires_grad, grad_fn, and where they wrap."""
    cases = [case for case in GOLDEN["notes"] if case["device"] == device]
    assert cases
    for case in cases:
        tensor = build(case, torch, device)
        if case["requires_grad"]:
            tensor = Recorded(tensor, True, case["grad_fn"])
        assert printing.tensor_repr(tensor) == case["text"]


def test_a_device_adds_only_its_name(device):
    """All other texts of the golden file, on each device: the elements print the same."""
    if device == "cpu":
        pytest.skip("compares a GPU with the CPU")
    wide = {"linewidth": 10000}
    for case in GOLDEN["tensors"]:
        if case.get("options"):
            continue
        torch.set_printoptions(**wide)
        here, there = repr(build(case, torch)), repr(build(case, torch, device))
        note = f", device='{device}'"
        assert note in there, there
        assert there.replace(note, "") == here


@pytest.mark.parametrize(("source", "text"), GOLDEN["objects"])
def test_str_of_objects(source, text):
    assert str(eval(source, {"torch": torch})) == text


@pytest.mark.parametrize(("source", "text"), GOLDEN["objects_repr"])
def test_repr_of_objects(source, text):
    assert repr(eval(source, {"torch": torch})) == text


@pytest.mark.parametrize(
    "case", GOLDEN["formats"], ids=lambda c: f"{c['dtype']}{c['shape']}-{c['spec']}"
)
def test_format(case):
    dtype = getattr(torch, case["dtype"])
    tensor = torch.full(case["shape"], plain(case["value"]), dtype=dtype)
    if "raises" in case:
        with pytest.raises((TypeError, ValueError)) as caught:
            format(tensor, case["spec"])
        assert type(caught.value).__name__ == case["raises"]
    else:
        assert format(tensor, case["spec"]) == case["text"]


def test_options_are_checked():
    before = printing.get_printoptions()
    for wrong in (
        {"profile": "loud"},
        {"precision": -1},
        {"edgeitems": -1},
    ):
        with pytest.raises(ValueError, match="set_printoptions"):
            torch.set_printoptions(**wrong)
    for wrong in (
        {"precision": "4"},
        {"threshold": "all"},
        {"linewidth": None, "edgeitems": 1.5},
    ):
        with pytest.raises(TypeError, match="set_printoptions"):
            torch.set_printoptions(**wrong)
    with pytest.raises(TypeError):
        torch.set_printoptions(nonsense=1)
    assert printing.get_printoptions() == before


def test_options_stay_until_changed():
    torch.set_printoptions(precision=2, sci_mode=True)
    torch.set_printoptions(linewidth=60)
    options = printing.get_printoptions()
    assert (options["precision"], options["linewidth"]) == (2, 60)
    assert options["sci_mode"] is None
    options["precision"] = 9
    assert printing.get_printoptions()["precision"] == 2


class Watched:
    """A tensor that notes how many elements leave its device."""

    def __init__(self, tensor, copies):
        self._tensor = tensor
        self._copies = copies

    def __getattr__(self, name):
        found = getattr(self._tensor, name)
        if name in ("detach", "as_strided", "reshape"):
            return lambda *sizes: Watched(found(*sizes), self._copies)
        if name in ("cpu", "tolist", "item"):
            self._copies.append(self._tensor.numel())
        return found


Watched.__name__ = "Tensor"


@pytest.mark.parametrize(
    ("shape", "shown"),
    [
        ((1000, 1000), 36),
        ((5000,), 6),
        ((2, 1000), 12),
        ((10, 10, 10, 10), 6**4),
        ((4, 5), 20),
        ((1001, 1), 6),
        ((), 1),
        ((0, 3), 0),
    ],
)
def test_only_what_is_shown_leaves_the_device(device, shape, shown):
    copies = []
    tensor = torch.zeros(shape, device=device)
    assert printing.tensor_repr(Watched(tensor, copies)) == repr(tensor)
    assert copies == ([shown] if shown else [])


def test_printing_leaves_the_tensor_alone(device):
    tensor = torch.arange(2000.0, device=device).reshape(40, 50).t()
    before = flat(tensor.tolist())
    repr(tensor)
    assert (tuple(tensor.shape), tensor.stride()) == ((50, 40), (1, 50))
    assert flat(tensor.tolist()) == before


def test_nested_in_containers():
    tensor = torch.tensor([1, 2])
    assert f"{[tensor]}" == "[tensor([1, 2])]"
    assert f"{tensor}" == "tensor([1, 2])"
    assert f"{tensor!r:>20}" == "      tensor([1, 2])"


def test_a_buffer_is_shown_as_a_tensor():
    assert repr(torch.nn.Buffer(torch.ones(2))) == "tensor([1., 1.])"
    norm = torch.nn.BatchNorm1d(1)
    norm.running_mean = torch.nn.Buffer(torch.ones(1))
    assert repr(norm.state_dict()["running_mean"]) == "tensor([1.])"
