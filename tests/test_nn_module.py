"""Modules beyond the golden cases: moving, states, hooks, lazy layers, and what errors say."""

import copy
import io
import pickle
import warnings
from collections import OrderedDict

import pytest
from counting import Counting

import pydevtensor as torch
from pydevtensor import nn


def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))


# --- moving


def test_moving_keeps_the_parameters_and_their_gradients(gpu):
    net = small()
    net(torch.ones(2, 3)).sum().backward()
    before = [*net.parameters()]
    gradients = [p.grad.tolist() for p in before]
    assert net.to(gpu) is net
    after = [*net.parameters()]
    assert all(a is b for a, b in zip(before, after, strict=True))
    assert {str(p.device) for p in after} == {gpu}
    assert {str(p.grad.device) for p in after} == {gpu}
    assert {str(b.device) for b in net.buffers()} == {gpu}
    assert [p.grad.tolist() for p in after] == gradients
    assert all(p.is_leaf and p.requires_grad for p in after)
    assert net.cpu() is net and net[0].weight.device.type == "cpu"
    assert net.cuda(gpu)[0].weight.device == torch.device(gpu)


def test_an_optimiser_made_before_the_move_still_fits(gpu):
    net = small()
    optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
    net.to(gpu)
    before = net[3].bias.tolist()
    net(torch.ones(2, 3, device=gpu)).sum().backward()
    optimizer.step()
    assert net[3].bias.tolist() == pytest.approx([b - 2 for b in before])


def test_moving_without_need_copies_nothing(device):
    net = small().to(device)
    places = [t.data_ptr() for t in net.state_dict().values()]
    net.to(device).float().to(torch.float32)
    assert [t.data_ptr() for t in net.state_dict().values()] == places


def test_moving_by_example_and_by_words(device):
    net = small().to(torch.ones(1, dtype=torch.float64, device=device))
    assert net[0].weight.dtype is torch.float64 and str(net[0].weight.device) == device
    # What counts stays a whole number.
    assert net[1].num_batches_tracked.dtype is torch.int64
    net.to(device="cpu", dtype=torch.float32, non_blocking=True)
    assert net[0].weight.dtype is torch.float32 and net[0].weight.device.type == "cpu"


def test_shared_parameters_stay_shared(device):
    layer = nn.Linear(2, 2)
    tied = nn.Sequential(layer, nn.Linear(2, 2))
    tied[1].weight = layer.weight
    tied.to(device).double()
    assert tied[1].weight is tied[0].weight and tied[0].weight.dtype is torch.float64
    tied(torch.ones(1, 2, dtype=torch.float64, device=device)).sum().backward()
    assert tied[0].weight.grad is not None
    assert len([*tied.parameters()]) == 3 and len(tied.state_dict()) == 4


def test_making_room_without_values(device):
    net = small()
    net.to_empty(device=device)
    assert {str(t.device) for t in net.state_dict().values()} == {device}
    assert net[0].weight.shape == (4, 3) and net[0].weight.requires_grad


# --- copies


def test_a_deep_copy_is_apart(device):
    net = Counting().to(device)
    net(torch.ones(3, 2, device=device)).sum().backward()
    other = copy.deepcopy(net)
    with torch.no_grad():
        other.scale += 1
        other.calls += 1
    assert net.scale.tolist() == [1, 1] and net.scale.grad.tolist() == [3, 3]
    assert net.calls.item() == 1 and str(other.scale.device) == device
    assert isinstance(other.scale, nn.Parameter) and other.scale.grad is None
    assert "recent" not in other.state_dict()


def test_a_deep_copy_takes_hooks_along():
    seen = []
    net = nn.Identity()
    net.register_forward_hook(lambda module, args, result: seen.append(module))
    other = copy.deepcopy(net)
    other(1)
    assert seen == [other]


def test_pickling(device):
    net = small().to(device).eval()
    other = pickle.loads(pickle.dumps(net))
    x = torch.ones(2, 3, device=device)
    assert str(other) == str(net) and not other.training
    assert other(x).tolist() == net(x).tolist()
    assert [*other.state_dict()] == [*net.state_dict()]
    assert {str(p.device) for p in other.parameters()} == {device}


# --- states


def test_a_state_goes_through_a_file(device):
    net, other = Counting().to(device), Counting().to(device)
    net(torch.ones(1, 2, device=device))
    with torch.no_grad():
        net.scale *= 3
    file = io.BytesIO()
    torch.save({"whole": net.state_dict(), "one": net.scale}, file)
    file.seek(0)
    loaded = torch.load(file)
    assert isinstance(loaded["one"], nn.Parameter) and loaded["one"].requires_grad
    result = other.load_state_dict(loaded["whole"])
    assert repr(result) == "<All keys matched successfully>"
    assert other.scale.tolist() == [3, 3] and other.calls.item() == 1
    assert str(other.scale.device) == device


def test_a_state_crosses_devices(gpu):
    net, other = small(), small().to(gpu)
    with torch.no_grad():
        net[0].weight += 1
    parameter = other[0].weight
    other.load_state_dict(net.state_dict())
    assert other[0].weight is parameter and str(parameter.device) == gpu
    assert parameter.tolist() == net[0].weight.tolist()
    other.load_state_dict(net.state_dict(), assign=True)
    assert other[0].weight.device.type == "cpu"
    assert isinstance(other[0].weight, nn.Parameter)


def test_what_does_not_fit_is_said_at_once_and_changes_nothing():
    net = small()
    before = {k: v.tolist() for k, v in net.state_dict().items()}
    state = small().state_dict()
    with torch.no_grad():
        state["0.weight"] = state["0.weight"] + 1
    del state["3.bias"]
    state["0.bias"] = torch.zeros(5)
    state["1.weight"] = "text"
    state["more"] = state["less"] = torch.zeros(1)
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(state)
    message = str(caught.value)
    for part in (
        "state_dict for Sequential",
        'Missing key(s) in state_dict: "3.bias"',
        'Unexpected key(s) in state_dict: "more", "less"',
        "size mismatch for 0.bias",
        "[5]",
        "[4]",
        "1.weight is str",
    ):
        assert part in message
    assert {k: v.tolist() for k, v in net.state_dict().items()} == before
    # Without strict, shapes still have to fit.
    with pytest.raises(RuntimeError, match=r"size mismatch for 0\.bias"):
        net.load_state_dict(state, strict=False)
    for key in ("0.bias", "1.weight"):
        del state[key]
    missing, unexpected = net.load_state_dict(state, strict=False)
    assert missing == ["0.bias", "1.weight", "3.bias"] and unexpected == [
        "more",
        "less",
    ]
    assert net[0].weight.tolist() == state["0.weight"].tolist()


def test_extra_state():
    class Named(nn.Module):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def get_extra_state(self):
            return {"name": self.name}

        def set_extra_state(self, state):
            self.name = state["name"]

    net, other = nn.Sequential(Named("a")), nn.Sequential(Named("b"))
    state = net.state_dict()
    assert [*state] == ["0._extra_state"]
    other.load_state_dict(state)
    assert other[0].name == "a"
    with pytest.raises(RuntimeError, match=r'Missing key\(s\).*"0\._extra_state"'):
        other.load_state_dict({})


def test_hooks_of_states():
    net = nn.Sequential(nn.Linear(1, 1))
    order = []
    net[0].register_state_dict_pre_hook(lambda m, prefix, keep: order.append(prefix))

    def rename(module, state, prefix, metadata):
        assert metadata == {"version": 1}
        state[prefix + "w"] = state.pop(prefix + "weight")

    handle = net[0].register_state_dict_post_hook(rename)
    state = net.state_dict()
    assert order == ["0."] and [*state] == ["0.bias", "0.w"]

    def rename_back(module, given, prefix, local, strict, missing, unexpected, faults):
        given[prefix + "weight"] = given.pop(prefix + "w")

    net[0].register_load_state_dict_pre_hook(rename_back)
    assert repr(net.load_state_dict(state)).startswith("<All keys")
    assert [*state] == ["0.bias", "0.w"]  # it was a copy that was changed
    handle.remove()
    assert [*net.state_dict()] == ["0.weight", "0.bias"]


def test_a_buffer_that_is_not_stored():
    net = Counting()
    assert [*net.state_dict()] == ["scale", "calls"]
    assert [name for name, _ in net.named_buffers()] == ["calls", "recent"]
    net.recent = torch.ones(2)
    assert [*net.state_dict()] == ["scale", "calls"]
    net.register_buffer("recent", torch.ones(2))
    assert [*net.state_dict()] == ["scale", "calls", "recent"]


def test_buffers_by_their_class(device):
    net = nn.Module()
    net.kept = nn.Buffer(torch.ones(2))
    net.lost = nn.Buffer(torch.zeros(2), persistent=False)
    net.to(device)
    assert [*net.state_dict()] == ["kept"] and str(net.lost.device) == device
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert [*other.state_dict()] == ["kept"]
        assert [name for name, _ in other.named_buffers()] == ["kept", "lost"]
    file = io.BytesIO()
    torch.save(nn.Buffer(torch.ones(2)), file)
    file.seek(0)
    assert torch.load(file).tolist() == [1, 1]


# --- modes and trees


def test_modes_reach_the_whole_tree_and_layers_obey(device):
    net = nn.Sequential(nn.Dropout(0.5), nn.Sequential(nn.Dropout(0.5))).to(device)
    x = torch.ones(200, device=device)
    assert (net(x) == 0).any().item()
    assert net.eval() is net and net(x).tolist() == x.tolist()
    net.train()
    net[1].eval()
    assert net[0].training and not net[1][0].training


def test_apply_goes_from_the_leaves_up():
    order = []
    net = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Sequential(nn.Tanh())))
    net.apply(lambda module: order.append(type(module).__name__))
    assert order == ["ReLU", "Tanh", "Sequential", "Sequential"]


def test_a_module_that_holds_itself():
    net = nn.Module()
    net.child = nn.Linear(1, 1)
    net.child.parent = net
    assert len([*net.modules()]) == 2 and len([*net.parameters()]) == 2
    net.child.parent = None


# --- lazy layers


def test_lazy_layers_learn_their_size(device):
    torch.manual_seed(2)
    net = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(2)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    first = net[0].weight
    x = torch.ones(2, 3, device=device)
    net(x).sum().backward()
    assert net[0].weight is first and type(first) is nn.Parameter
    assert first.shape == (4, 3) and net[2].in_features == 4
    before = net[2].bias.tolist()
    optimizer.step()
    assert net[2].bias.tolist() != before
    assert str(net[0]) == "Linear(in_features=3, out_features=4, bias=True)"
    with pytest.raises(RuntimeError, match="last size has to be 3"):
        net(torch.ones(2, 5, device=device))


def test_lazy_layers_say_that_they_wait():
    net = nn.LazyLinear(3)
    assert net.has_uninitialized_params()
    with pytest.raises(RuntimeError, match="no shape yet"):
        _ = net.weight.shape
    other = copy.deepcopy(net)
    other(torch.ones(1, 2))
    assert other.weight.shape == (3, 2) and net.has_uninitialized_params()


# --- initial values on GPUs: of their own numbers, but of the right kind


def test_truncated_normal_numbers_are_within(device):
    torch.manual_seed(0)
    x = nn.init.trunc_normal_(torch.empty(4000, device=device), 1.0, 2.0, 0.0, 3.0)
    assert x.min().item() >= 0 and x.max().item() <= 3
    spread = (x - x.mean()).square().mean().sqrt()
    assert abs(x.mean().item() - 1.4) < 0.1 and 0.7 < spread.item() < 0.95
    x = nn.init.trunc_normal_(torch.empty(4000, device=device), 0.0, 1.0, 2.0, 3.0)
    assert x.min().item() >= 2 and x.max().item() <= 3
    assert 2.2 < x.mean().item() < 2.4  # denser towards 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nn.init.trunc_normal_(torch.empty(2, device=device), 0.0, 1.0, 3.0, 4.0)
    assert "trunc_normal_" in str(caught[0].message)


@pytest.mark.parametrize("shape", [(5, 5), (3, 7), (7, 3), (4, 2, 3)])
def test_orthogonal_matrices(device, shape):
    x = nn.init.orthogonal_(torch.empty(*shape, device=device), gain=2.0)
    rows = x.reshape(shape[0], -1).double()
    few = rows if rows.shape[0] <= rows.shape[1] else rows.T
    gap = few @ few.T - 4 * torch.eye(few.shape[0], dtype=torch.float64, device=device)
    assert gap.abs().max().item() < 1e-5


def test_vectors_of_parameters(device):
    net = small().to(device)
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert vector.shape == (sum(p.numel() for p in net.parameters()),)
    (vector * 2).sum().backward()
    assert net[3].bias.grad.tolist() == [2, 2]
    nn.utils.vector_to_parameters(
        torch.arange(vector.numel(), device=device) * 1.0, net.parameters()
    )
    assert net[0].weight[0].tolist() == [0, 1, 2] and net[0].weight.requires_grad
    assert net[3].bias.tolist() == [vector.numel() - 2, vector.numel() - 1]


def test_what_is_not_a_module_is_named():
    utils, layer, norm = nn.utils, nn.Linear(2, 2), nn.BatchNorm1d(2)
    for name, call in {
        "weight_norm": utils.weight_norm,
        "remove_weight_norm": utils.remove_weight_norm,
        "spectral_norm": utils.spectral_norm,
        "remove_spectral_norm": utils.remove_spectral_norm,
        "fuse_conv_bn_eval": lambda m: utils.fuse_conv_bn_eval(m, norm),
        "fuse_linear_bn_eval": lambda m: utils.fuse_linear_bn_eval(layer, m),
        "convert_conv2d_weight_memory_format": lambda m: (
            utils.convert_conv2d_weight_memory_format(m, torch.channels_last)
        ),
        "functional_call": lambda m: torch.func.functional_call(m, {}, ()),
        "stack_module_state": lambda m: torch.func.stack_module_state([m]),
        "register_parametrization": lambda m: (
            utils.parametrize.register_parametrization(layer, "weight", m)
        ),
    }.items():
        with pytest.raises(TypeError, match=rf"^{name}\(\): str is not a Module"):
            call("w")
    with pytest.raises(TypeError, match=r"calculate_gain\(\): nonlinearity is 1"):
        nn.init.calculate_gain(1)


def test_what_is_not_a_tensor_is_named():
    names = [name for name in dir(nn.init) if name.endswith("_") and name[0] != "_"]
    for name in names:
        with pytest.raises(TypeError, match=rf"^{name}\(\): tensor is 'w' \(str\)"):
            getattr(nn.init, name)("w", *[1] * (name in ("constant_", "sparse_")))
    assert "xavier_uniform_" in names and "kaiming_normal_" in names
    utils, w = nn.utils, torch.ones(2)
    for call in (
        lambda: utils.parameters_to_vector([w, "w"]),
        lambda: utils.vector_to_parameters(w, [w, "w"]),
        lambda: utils.clip_grad_norm_([w, "w"], 1),
        lambda: utils.clip_grad_value_([w, "w"], 1),
        lambda: utils.get_total_norm([w, "w"]),
    ):
        with pytest.raises(TypeError, match=r"1.* is 'w' \(str\); give a Tensor"):
            call()


def test_vectors_are_of_one_device(gpu):
    parameters = [torch.ones(1), torch.ones(1, device=gpu)]
    with pytest.raises(TypeError, match=f"cpu.*{gpu}"):
        nn.utils.parameters_to_vector(parameters)
    with pytest.raises(TypeError, match=f"cpu.*{gpu}"):
        nn.utils.vector_to_parameters(torch.ones(2), parameters)


# --- names that other libraries import


def test_names_by_file():
    """Where PyTorch has them: programs import them from there."""
    modules = nn.modules
    for name in ("Conv2d", "Linear", "Module", "ReLU", "Transformer"):
        assert getattr(modules, name) is getattr(nn, name)
    assert modules.activation.MultiheadAttention is nn.MultiheadAttention
    for base, kind in (
        (modules.dropout._DropoutNd, nn.Dropout3d),
        (modules.loss._Loss, nn.MSELoss),
        (modules.loss._WeightedLoss, nn.CrossEntropyLoss),
        (modules.padding._ConstantPadNd, nn.ConstantPad2d),
        (modules.padding._ReflectionPadNd, nn.ReflectionPad1d),
        (modules.pooling._MaxPoolNd, nn.MaxPool2d),
        (modules.pooling._MaxUnpoolNd, nn.MaxUnpool2d),
        (modules.pooling._AvgPoolNd, nn.AvgPool1d),
        (modules.pooling._LPPoolNd, nn.LPPool2d),
        (modules.pooling._AdaptiveMaxPoolNd, nn.AdaptiveMaxPool1d),
        (modules.pooling._AdaptiveAvgPoolNd, nn.AdaptiveAvgPool3d),
    ):
        assert issubclass(kind, base)
    assert type(nn.Linear(1, 1).load_state_dict({}, strict=False)) is (
        modules.module._IncompatibleKeys
    )
    from pydevtensor.nn.common_types import _maybe_indices_t, _size_2_t, _size_any_opt_t

    assert _size_2_t == int | tuple[int, int]
    assert _size_any_opt_t == int | None | tuple[int | None, ...]
    assert _maybe_indices_t == torch.Tensor | tuple[torch.Tensor, torch.Tensor]


def test_what_insert_returns():
    """As in PyTorch, which returns a Sequential alone."""
    net = nn.Sequential(nn.ReLU())
    assert net.insert(0, nn.Tanh()) is net
    layers = nn.ModuleList([nn.ReLU()])
    assert layers.insert(0, nn.Tanh()) is None
    assert [type(layer) for layer in layers] == [nn.Tanh, nn.ReLU]
    with pytest.raises(AssertionError, match="int"):
        layers.insert(0, 3)


def test_complex_modules(device):
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).to(device, torch.complex64)
    kinds = {name: value.dtype for name, value in net.state_dict().items()}
    assert kinds.pop("1.num_batches_tracked") is torch.int64
    assert {*kinds.values()} == {torch.complex64}
    assert net[0].to(torch.complex128).weight.dtype is torch.complex128
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the imaginary parts are lost
        assert net.to(torch.float64)[0].weight.dtype is torch.float64
    with pytest.raises(TypeError, match="floating point or complex dtypes"):
        net.to(torch.int32)


def test_lazy_modules_of_the_program():
    class Scale(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.UninitializedParameter()

        def initialize_parameters(self, x):
            with torch.no_grad():
                self.w.materialize(x.shape[-1:])
                self.w.fill_(2)

        def forward(self, x):
            return x * self.w

    net = Scale()
    assert net.has_uninitialized_params()
    assert net(torch.ones(3)).tolist() == [2.0, 2.0, 2.0]
    assert not net.has_uninitialized_params() and type(net) is Scale
    lazy = nn.LazyLinear(2)
    assert isinstance(lazy, nn.modules.lazy.LazyModuleMixin)
    assert isinstance(lazy.weight, nn.parameter.UninitializedTensorMixin)

    class Nothing(Scale):
        def initialize_parameters(self, x):
            pass

    with pytest.raises(RuntimeError, match="left parameters without a shape"):
        Nothing()(torch.ones(3))


def test_layers_that_pad_with_zeros_pad_with_a_constant():
    pad = nn.ZeroPad2d(1)
    assert isinstance(pad, nn.ConstantPad2d) and pad.value == 0.0
    assert repr(pad) == "ZeroPad2d((1, 1, 1, 1))"
