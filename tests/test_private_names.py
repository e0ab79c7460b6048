"""Private names of PyTorch that libraries call."""

import os
import re
from importlib import import_module

import pytest
from isolated import python

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor._as_torch import _Extension


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("_check", RuntimeError),
        ("_check_index", IndexError),
        ("_check_value", ValueError),
        ("_check_type", TypeError),
        ("_check_not_implemented", NotImplementedError),
        ("_assert_async", RuntimeError),
    ],
)
def test_checks(name, kind):
    check = getattr(torch, name)
    check(True)
    with pytest.raises(kind, match="no"):
        check(torch.tensor(False), "no")
    with pytest.raises(kind, match="made"):
        check(False, lambda: "made")


def test_checks_of_all_elements():
    torch._check_tensor_all(torch.ones(2).bool())
    with pytest.raises(RuntimeError, match="one is 0"):
        torch._check_tensor_all(torch.tensor([True, False]), "one is 0")


def lists(device):
    first = [torch.randn(3, device=device), torch.randn(2, 2, device=device)]
    return first, [torch.rand_like(x) + 1 for x in first]


LISTS = {
    "add": lambda x, y: x + 2 * y,
    "addcdiv": lambda x, y: x + 2 * x / y,
    "addcmul": lambda x, y: x + 2 * x * y,
    "div": lambda x, y: x / y,
    "lerp": lambda x, y: x + 0.5 * (y - x),
    "maximum": lambda x, y: torch.maximum(x, y),
    "mul": lambda x, y: x * y,
    "neg": lambda x, y: -x,
    "norm": lambda x, y: x.abs().max(),
    "sub": lambda x, y: x - y,
}
MORE = {
    "add": lambda x, y: (y, {"alpha": 2}),
    "addcdiv": lambda x, y: (x, y, 2),
    "addcmul": lambda x, y: (x, y, 2),
    "lerp": lambda x, y: (y, 0.5),
    "neg": lambda x, y: (),
    "norm": lambda x, y: (float("inf"),),
}


@pytest.mark.parametrize("name", LISTS)
def test_functions_of_lists(name, device):
    x, y = lists(device)
    *more, named = [*MORE.get(name, lambda x, y: (y,))(x, y), {}]
    if more and isinstance(more[-1], dict):
        named = more.pop()
    wanted = [LISTS[name](a, b) for a, b in zip(x, y, strict=True)]
    found = getattr(torch, f"_foreach_{name}")(x, *more, **named)
    assert type(found) is tuple
    torch.testing.assert_close([*found], wanted)
    if name != "norm":
        assert getattr(torch, f"_foreach_{name}_")(x, *more, **named) is None
        torch.testing.assert_close(x, wanted)


def test_lists_with_a_number_and_copies(device):
    x, y = lists(device)
    torch._foreach_copy_(x, y)
    torch.testing.assert_close(x, y)
    torch._foreach_maximum_(x, 1.5)
    assert all((each >= 1.5).all() for each in x)
    torch._foreach_zero_(x)
    assert all((each == 0).all() for each in x)
    assert not hasattr(torch, "_foreach_no_such_method")


def test_offsets_and_indices_of_rows(device):
    rows = torch.tensor([0, 0, 2, 2, 2], device=device)
    columns = torch.tensor([1, 2, 0, 1, 2], device=device)
    offsets = torch._convert_indices_from_coo_to_csr(rows, 4, out_int32=True)
    assert offsets.tolist() == [0, 2, 2, 5, 5] and offsets.dtype == torch.int32
    pair = torch._convert_indices_from_csr_to_coo(offsets, columns)
    assert pair.tolist() == [rows.tolist(), columns.tolist()]


def test_softmax_and_its_derivative(device):
    x = torch.randn(2, 3, device=device, requires_grad=True)
    y = torch._softmax(x, 1, False)
    grad = torch.randn(2, 3, device=device)
    y.backward(grad)
    found = torch._softmax_backward_data(grad, y.detach(), 1, x.dtype)
    torch.testing.assert_close(found, x.grad)


def test_arguments_of_to():
    parsed = torch._C._nn._parse_to("cpu", torch.float64)
    assert parsed[:2] == (torch.device("cpu"), torch.float64)


def test_fills_of_parameters():
    weight = nn.Parameter(torch.empty(3))
    for name, args in (("fill", (2.0,)), ("uniform", (3, 4)), ("zero", ())):
        getattr(nn.init, f"_no_grad_{name}_")(weight, *args)
    assert weight.tolist() == [0, 0, 0] and weight.requires_grad


def test_indices_of_gpus():
    index = torch._utils._get_device_index
    assert index("cuda:1") == 1 and index(3) == 3 and index("cpu", allow_cpu=True) == -1
    for wrong in ("cpu", None):
        with pytest.raises(ValueError, match="give 'cuda'"):
            index(wrong)


def test_answers_and_settings():
    assert torch._subclasses.fake_tensor.is_fake(torch.ones(1)) is False
    assert torch._dynamo.is_compiling() is False
    assert _Extension("torch._C")._are_functorch_transforms_active() is False
    with torch._dynamo.config.patch(cache_size_limit=3):
        pass
    assert torch.legacy_contiguous_format is torch.contiguous_format
    assert os.path.basename(torch.hub.get_dir()) == "hub"
    assert re.search(torch.hub.HASH_REGEX, "net-0af3.pth")[1] == "0af3"


def test_a_rule_in_python():
    class Rule(torch.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"differentiable": False})

        @torch.optim.optimizer._use_grad_for_differentiable
        def step(self):
            return torch.is_grad_enabled()

    assert Rule([torch.ones(1, requires_grad=True)]).step() is False
    assert torch.optim.optimizer._default_to_fused_or_foreach([], False) == (
        False,
        False,
    )


def test_modules_below_the_extension_are_imported():
    python(
        "import pydevtensor; pydevtensor.install_as_torch()\n"
        "import torch\n"
        "from torch._C._distributed_c10d import Reducer\n"
        "from torch._subclasses.fake_tensor import FakeTensor, is_fake\n"
        "from torch._utils import _get_device_index\n"
        "assert torch.torch is torch and 'pydevtensor' in torch.__config__.show()\n"
    )


@pytest.mark.parametrize(
    "name", ["mps", "xpu", "xla", "hpu", "mtia", "vulkan", "privateuseone"]
)
def test_types_of_devices_that_are_not_there(name):
    device = torch.device(name)
    assert device.type == name and device != torch.device("cpu")
    assert torch.device(f"{name}:1").index == 1 and str(device) == name
    assert torch.is_autocast_enabled(name) is False
    with pytest.raises(RuntimeError, match=r"there is no .* device. Use the CPU"):
        torch.ones(2, device=name)
    with pytest.raises(RuntimeError, match="there is no"):
        nn.Linear(2, 2).to(name)


def test_keywords_of_pytorch():
    parts = torch.split(tensor=torch.arange(4), split_size_or_sections=3)
    assert [part.tolist() for part in parts] == [[0, 1, 2], [3]]
    assert len(torch.arange(4).split(split_size=2)) == 2
    assert len(torch.arange(4).split(split_size=[1, 3], dim=0)) == 2


def test_numpy_without_gradients():
    np = pytest.importorskip("numpy")
    weight = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert (np.asarray(weight.numpy()) == 1).all()
    with pytest.raises(RuntimeError, match=r"detach\(\)\.numpy"):
        weight.numpy()


def test_products_of_groups(device):
    grouped = nn.functional.grouped_mm
    a, b = torch.randn(6, 8, device=device), torch.randn(3, 8, 4, device=device)
    ends = torch.tensor([1, 4, 5], dtype=torch.int32, device=device)
    rows = [a[:1] @ b[0], a[1:4] @ b[1], a[4:5] @ b[2], a.new_zeros(1, 4)]
    torch.testing.assert_close(grouped(a, b, offs=ends), torch.cat(rows))
    columns = grouped(b.mT, a.T, offs=ends)
    torch.testing.assert_close(columns, torch.cat(rows).T)
    inner = grouped(a.T, a, offs=ends)
    assert inner.shape == (3, 8, 8)
    torch.testing.assert_close(inner[1], a[1:4].T @ a[1:4])
    torch.testing.assert_close(grouped(b.mT, b), b.mT @ b)
    for wrong in (
        {},
        {"offs": ends, "bias": b},
        {"offs": ends, "out_dtype": torch.half},
    ):
        with pytest.raises(RuntimeError, match=r"offs|bias"):
            grouped(a, b, **wrong)
    weight = b.clone().requires_grad_()
    grouped(a, weight, offs=ends).sum().backward()
    torch.testing.assert_close(weight.grad[0], a[:1].T.expand(8, 4))


def test_points_of_sobol():
    pytest.importorskip("scipy")
    engine = torch.quasirandom.SobolEngine(3)
    wanted = [[0, 0, 0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75]]
    assert engine.draw(4).tolist() == wanted and engine.num_generated == 4
    assert engine.reset().fast_forward(2).draw(dtype=torch.float64).tolist() == [
        wanted[2]
    ]
    with pytest.raises(ValueError, match="2, 4, 8"):
        engine.draw_base2(1)
    one, two = (torch.quasirandom.SobolEngine(2, True, 3).draw_base2(2) for _ in "ab")
    assert torch.equal(one, two) and ((one >= 0) & (one < 1)).all()
    with pytest.raises(ValueError, match="21201"):
        torch.quasirandom.SobolEngine(0)


def test_the_second_version_of_transforms():
    pytest.importorskip("PIL")
    from pydevtensor.vision.transforms import v2

    x = torch.arange(12, dtype=torch.uint8).view(3, 2, 2)
    change = v2.Compose(
        [v2.ToPILImage(), v2.ToImage(), v2.ToDtype(torch.float32, True)]
    )
    torch.testing.assert_close(change(x), x / 255)
    assert v2.functional.grayscale_to_rgb(x[:1]).shape == (3, 2, 2)
    assert {"RandomCrop", "Normalize", "ToImage"} <= set(dir(v2))
    assert v2.functional.resize(x, [4, 4]).shape == (3, 4, 4)


def test_names_of_the_same_things():
    from pydevtensor.utils.data._utils.collate import default_collate

    assert default_collate is torch.utils.data.default_collate
    with torch.utils._device.DeviceContext(torch.device("meta")):
        assert torch.zeros(2).is_meta
    assert torch._vmap_internals.vmap is torch.func.vmap
    torch._logging.set_logs(dynamo=10)
    assert torch.is_storage(torch.ones(1).storage()) and not torch.is_storage(3)


def test_trees_of_dicts():
    pytree = import_module("pydevtensor.utils._pytree")
    parts, keys = pytree._dict_flatten({"a": 1, "b": 2})
    assert pytree._dict_unflatten(parts, keys) == {"a": 1, "b": 2}


def test_kinds_of_arguments_of_load():
    from pydevtensor.serialization import DEFAULT_PROTOCOL, FILE_LIKE, MAP_LOCATION

    assert DEFAULT_PROTOCOL == 2
    assert isinstance("cpu", MAP_LOCATION) and isinstance(torch.device(0), MAP_LOCATION)
    assert isinstance(None, MAP_LOCATION) and isinstance("a.pt", FILE_LIKE)
