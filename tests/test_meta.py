"""The device meta: shapes and types without data. Results are compared with the CPU's."""

import copy
import functools
import io
import pickle

import pytest
import signatures
from cases import Cases

import pydevtensor as torch
from pydevtensor import nn

# They read elements: the shape of the result depends on them, or Python gets numbers.
NEEDS_DATA = {
    *("allclose", "argwhere", "bincount", "binomial", "combinations", "equal", "histc"),
    *(
        "histogram",
        "histogramdd",
        "is_nonzero",
        "istft",
        "item",
        "masked_scatter",
        "masked_select",
        "matrix_exp",
    ),
    *("multinomial", "nonzero", "nonzero_static", "one_hot", "pdist", "poisson"),
    *("repeat_interleave", "tolist", "unique", "unique_consecutive", "linalg.eig"),
    *("linalg.eigvals", "linalg.matrix_exp", "gaussian_nll_loss", "unique_dim"),
}
# Not on this device.
ELSEWHERE = {"cuda", "numpy", "to_dlpack", "pin_memory", "share_memory_"}


def calls():
    for name, forms in signatures.bound():
        if name not in ELSEWHERE | signatures.PROCESS_WIDE and is_function(name):
            for form in forms:
                yield name, form


def is_function(name):
    try:
        return signatures.function_of(name) is not None
    except AttributeError:
        return False  # a method


def described(value):
    """What is true of a result without its elements."""
    if isinstance(value, torch.Tensor):
        return value.dtype, value.shape, value.stride(), value.requires_grad
    if isinstance(value, tuple | list):
        return [described(each) for each in value]
    return type(value)


def made(name, form, device):
    needed = [p for p in signatures.parameters(form) if p.required]
    values = []
    for p in needed:
        value = signatures.valid(name, p, device)
        if not p.keyword:
            values += value if p.rest and type(value) is tuple else [value]
    words = {p.name: signatures.valid(name, p, device) for p in needed if p.keyword}
    return signatures.function_of(name), values, words


def meta(*size, **options):
    return torch.ones(*size, device="meta", **options)


def test_a_tensor_without_data():
    x = meta(2, 3)
    assert x.is_meta and not x.is_cpu and not x.is_cuda and not torch.ones(1).is_meta
    assert x.device == torch.device("meta") and x.device.index is None
    assert str(x.device) == "meta" and repr(x.device) == "device(type='meta')"
    assert meta(1).to("meta:0").device == torch.device("meta")
    assert repr(torch.device("meta", 0)) == "device(type='meta', index=0)"
    assert x.get_device() == -1 and x.data_ptr() == 0
    assert x.nbytes == x.untyped_storage().nbytes() == 24
    assert x.shape == (2, 3) and x.stride() == (3, 1) and x.element_size() == 4
    assert pickle.loads(pickle.dumps(x.device)) == x.device


def test_texts_are_pytorchs():
    x = meta(2, 3)
    assert repr(x) == "tensor(..., device='meta', size=(2, 3))"
    assert str(x.long()) == "tensor(..., device='meta', size=(2, 3), dtype=torch.int64)"
    assert repr(nn.Parameter(x)) == (
        "Parameter containing:\ntensor(..., device='meta', size=(2, 3), "
        "requires_grad=True)"
    )
    assert f"{meta(())}" == "tensor(..., device='meta', size=())"
    with pytest.raises(TypeError, match="format"):
        f"{meta(()):.2f}"


READS = {
    "item": lambda x: x[0, 0].item(),
    "tolist": lambda x: x.tolist(),
    "bool": lambda x: bool(x[0, 0]),
    "float": lambda x: float(x[0, 0]),
    "cpu": lambda x: x.cpu(),
    "to": lambda x: x.to("cpu"),
    "copy_": lambda x: torch.zeros(2, 3).copy_(x),
    "equal": lambda x: torch.equal(x, x),
    "nonzero": lambda x: x.nonzero(),
    "mask": lambda x: x[x > 0],
    "unique": lambda x: x.unique(),
    "module": lambda x: nn.Linear(2, 2, device="meta").to("cpu"),
}


@pytest.mark.parametrize("read", READS)
def test_elements_cannot_be_read(read):
    with pytest.raises(NotImplementedError, match="device meta"):
        READS[read](meta(2, 3))


def test_copies_between_devices(device):
    x = torch.ones(2, 3, dtype=torch.int16, device=device).to("meta")
    assert x.is_meta and x.dtype == torch.int16 and x.to("meta") is x
    meta(2, 3).copy_(torch.ones(2, 3, device=device))
    with pytest.raises(NotImplementedError, match="no data"):
        x.to(device)
    with pytest.raises(RuntimeError, match="two devices"):
        meta(2, 3) + torch.ones(2, 3, device=device)
    assert (meta(2, 3) + torch.tensor(1.0)).is_meta
    assert torch.empty_like(x, device=device).device == torch.device(device)
    with pytest.raises(TypeError, match="on meta"):
        meta(1).numpy()


def test_shapes_are_saved():
    net = nn.Linear(2, 3, device="meta")
    state = {**net.state_dict(), "view": meta(2, 3).T, "half": meta(4).half()}
    file = io.BytesIO()
    torch.save({"state": state, "own": net.weight}, file)
    file.seek(0)
    found = torch.load(file, weights_only=True)
    for name, x in found["state"].items():
        assert x.is_meta and x.dtype == state[name].dtype, name
        assert x.shape == state[name].shape and x.stride() == state[name].stride()
    assert type(found["own"]) is nn.Parameter and found["own"].requires_grad


@pytest.mark.filterwarnings("ignore")
def test_results_have_the_shapes_of_the_cpus():
    """Each function of C, by the arguments that tests call it with."""
    with Cases() as case:
        for name, form in calls():
            with case(f"{name}: {form}"):
                compare_with_the_cpu(name, form)


def compare_with_the_cpu(name, form):
    target, values, words = made(name, form, "cpu")
    try:
        expected = described(target(*values, **words))
    except (TypeError, RuntimeError, ValueError, IndexError):
        pytest.skip("not a call of this form")
    target, values, words = made(name, form, "meta")
    try:
        found = described(target(*values, **words))
    except NotImplementedError as error:
        last = name.removeprefix("nn.functional.")
        assert last in NEEDS_DATA or form.startswith("where(condition: Tensor) "), error
    else:
        assert found == expected


CREATED = {
    "empty": lambda d: torch.empty(2, 3, device=d),
    "zeros": lambda d: torch.zeros(2, dtype=torch.bool, device=d),
    "full": lambda d: torch.full((2,), 3, device=d),
    "tensor": lambda d: torch.tensor([1, 2], device=d),
    "arange": lambda d: torch.arange(5, device=d),
    "linspace": lambda d: torch.linspace(0, 1, 5, device=d),
    "eye": lambda d: torch.eye(3, device=d),
    "randn": lambda d: torch.randn(2, 3, device=d),
    "randint": lambda d: torch.randint(5, (2,), device=d),
    "randperm": lambda d: torch.randperm(4, device=d),
    "like": lambda d: torch.zeros_like(torch.ones(2, 3).T, device=d),
    "svd": lambda d: torch.linalg.svd(torch.eye(3, 2, device=d)),
    "inv": lambda d: torch.linalg.inv(torch.eye(3, device=d)),
    "sort": lambda d: torch.ones(2, 3, device=d).sort(),
    "einsum": lambda d: torch.einsum("ij,kj->ik", *2 * [torch.ones(2, 3, device=d)]),
    "channels": lambda d: torch.ones(1, 2, 3, 3, device=d).to(
        memory_format=torch.channels_last
    ),
    "large": lambda d: (
        torch.ones(1 << 20, 1 << 20, device=d).T if d == "meta" else None
    ),
}


@pytest.mark.parametrize("what", CREATED)
def test_creation(what):
    here, there = CREATED[what]("meta"), CREATED[what]("cpu")
    if there is None:
        assert here.nbytes == 1 << 42 and (here @ here).shape == here.shape
    else:
        assert described(here) == described(there)


MODULES = {
    "mlp": (lambda: nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 1)), (2, 3)),
    "conv": (
        lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.MaxPool2d(2)),
        (2, 1, 8, 8),
    ),
    "transformer": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
        (2, 5, 8),
    ),
    "lstm": (lambda: nn.LSTM(3, 4, num_layers=2), (5, 2, 3)),
    "dropout": (lambda: nn.Sequential(nn.Dropout(), nn.LayerNorm(3)), (2, 3)),
}


@pytest.mark.parametrize("what", MODULES)
def test_modules_train_without_data(what):
    make, size = MODULES[what]
    with torch.device("meta"):
        module = make()
        result = module(torch.ones(size))
    here = make()
    expected = here(torch.ones(size))
    assert described(result) == described(expected)
    first = result[0] if isinstance(result, tuple) else result
    first.sum().backward()
    parameters = list(module.parameters())
    assert all(p.is_meta and p.grad.is_meta for p in parameters)
    assert [p.grad.shape for p in parameters] == [p.shape for p in here.parameters()]
    optimizer = torch.optim.AdamW(parameters)
    optimizer.step()
    assert all(s["exp_avg"].is_meta for s in optimizer.state.values())
    assert copy.deepcopy(module).state_dict().keys() == here.state_dict().keys()


def test_a_module_gets_its_data_later(device):
    with torch.device("meta"):
        net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    given = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).to(device)
    with pytest.warns(UserWarning, match="assign=True"):
        net.load_state_dict(given.state_dict())
    assert net[0].weight.is_meta
    empty = copy.deepcopy(net).to_empty(device=device)
    assert empty[0].weight.device == torch.device(device)
    empty.load_state_dict(given.state_dict())
    net.load_state_dict(given.state_dict(), assign=True)
    for module in (empty, net):
        for key, value in module.state_dict().items():
            assert torch.equal(value, given.state_dict()[key])
        assert all(isinstance(p, nn.Parameter) for p in module.parameters())


def test_no_memory_is_taken():
    """A model of 7 billion parameters, with gradients and the state of Adam."""
    with torch.device("meta"):
        net = nn.Sequential(*(nn.Linear(8192, 8192, bias=False) for _ in range(104)))
    functools.reduce(lambda x, f: f(x), net, meta(1, 8192)).sum().backward()
    optimizer = torch.optim.Adam(net.parameters())
    optimizer.step()
    used = sum(p.nbytes + p.grad.nbytes for p in net.parameters())
    used += sum(s["exp_avg"].nbytes * 2 for s in optimizer.state.values())
    assert used == 4 * 4 * 104 * 8192**2


def test_a_tensor_that_is_too_large_even_so():
    with pytest.raises(RuntimeError, match="too large"):
        torch.empty(1 << 40, 1 << 19, device="meta")


def test_the_default_device():
    with torch.device("meta"):
        assert torch.ones(2).is_meta and torch.tensor([1]).is_meta
    assert not torch.ones(2).is_meta
