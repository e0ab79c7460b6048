"""Parametrized weights beyond the golden cases: copies, devices, replicas, messages."""

import copy
import io
import pickle
import warnings

import pytest

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor.nn.utils import parametrizations, parametrize


class Twice(nn.Module):
    def forward(self, x):
        return x * 2

    def right_inverse(self, x):
        return x / 2


def layer(device="cpu"):
    torch.manual_seed(0)
    made = nn.Linear(3, 2, device=device)
    return parametrize.register_parametrization(made, "weight", Twice())


def test_a_deep_copy_is_parametrized_apart(device):
    net = layer(device)
    other = copy.deepcopy(net)
    parametrize.remove_parametrizations(other, "weight")
    assert type(other) is nn.Linear and isinstance(other.weight, nn.Parameter)
    assert parametrize.is_parametrized(net, "weight")
    assert net.weight.tolist() == other.weight.tolist()
    third = copy.deepcopy(net)
    parametrize.register_parametrization(third, "bias", Twice())
    assert isinstance(net.bias, nn.Parameter) and third.bias.grad_fn is not None


def test_an_optimizer_goes_on_with_the_parameter(device):
    net = nn.Linear(2, 1, bias=False, device=device)
    with torch.no_grad():
        net.weight.fill_(1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    parametrize.register_parametrization(net, "weight", Twice())
    net(torch.ones(1, 2, device=device)).sum().backward()
    optimizer.step()
    # The original was 0.5 and its gradient 2.
    assert net.parametrizations.weight.original.tolist() == [[-0.5, -0.5]]
    assert net.weight.tolist() == [[-1, -1]]
    net.weight = torch.full((1, 2), 3.0, device=device)
    net.zero_grad()
    net(torch.ones(1, 2, device=device)).sum().backward()
    optimizer.step()
    assert net.weight.tolist() == [[1, 1]]
    parametrize.remove_parametrizations(net, "weight")
    net.zero_grad()
    net(torch.ones(1, 2, device=device)).sum().backward()
    optimizer.step()
    assert net.weight.tolist() == [[0.5, 0.5]]


def test_moving(gpu):
    net = nn.Sequential(
        parametrizations.weight_norm(nn.Linear(3, 3)),
        parametrizations.spectral_norm(nn.Linear(3, 3)),
        parametrizations.orthogonal(nn.Linear(3, 3)),
    ).eval()
    x = torch.linspace(-1, 1, 6).reshape(2, 3)
    before = net(x)
    after = net.to(gpu)(x.to(gpu))
    assert str(after.device) == gpu
    torch.testing.assert_close(after.cpu(), before)


@pytest.mark.usefixtures("two_gpus")
def test_replicas_of_data_parallel():
    net = nn.Sequential(
        parametrizations.weight_norm(nn.Linear(3, 4)),
        nn.ReLU(),
        parametrizations.spectral_norm(nn.Linear(4, 2)),
    ).to("cuda:0")
    x = torch.linspace(-1, 1, 12, device="cuda:0").reshape(4, 3)
    state = copy.deepcopy(net.state_dict())
    nn.DataParallel(net)(x).sum().backward()
    found = [p.grad for p in net.parameters()]
    vectors = [b.tolist() for b in net.buffers()]
    net.zero_grad()
    net.load_state_dict(state)
    net(x).sum().backward()
    for parameter, gradient in zip(net.parameters(), found, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
    # The replica on the first GPU writes to the module's own vectors.
    for buffer, vector in zip(net.buffers(), vectors, strict=True):
        assert buffer.tolist() == pytest.approx(vector, abs=1e-6)


@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(4, 4), (2, 5), (5, 2)])
def test_weights_stay_orthogonal(kind, shape, device):
    net = nn.Linear(*shape, device=device)
    parametrizations.orthogonal(net, orthogonal_map=kind)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
    x = torch.linspace(-1, 1, 3 * shape[0], device=device).reshape(3, shape[0])
    before = net.weight.detach()
    for _ in range(3):
        optimizer.zero_grad()
        net(x).square().sum().backward()
        optimizer.step()
    weight = net.weight if shape[0] > shape[1] else net.weight.mT
    one = torch.eye(min(shape), device=device)
    torch.testing.assert_close(weight @ weight.mT, one, atol=1e-5, rtol=0)
    assert (net.weight - before).abs().max().item() > 0.01


def test_the_greatest_singular_value_becomes_one(device):
    for normalize in (parametrizations.spectral_norm, nn.utils.spectral_norm):
        net = normalize(nn.Linear(6, 4, device=device), n_power_iterations=30)
        net(torch.ones(1, 6, device=device))
        norm = torch.linalg.matrix_norm(net.weight, 2).item()
        assert norm == pytest.approx(1, abs=1e-3)


def test_two_passes_before_one_backward(device):
    """As a critic of real and false images is trained: the vectors change between."""
    for normalize in (parametrizations.spectral_norm, nn.utils.spectral_norm):
        net = normalize(nn.Linear(3, 2, device=device))
        x = torch.ones(1, 3, device=device)
        (net(x) - net(2 * x)).sum().backward()
        assert all(p.grad is not None for p in net.parameters())


def test_states_through_a_file(device):
    net = parametrizations.weight_norm(nn.Linear(3, 2, device=device))
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    other = parametrizations.weight_norm(nn.Linear(3, 2, device=device))
    other.load_state_dict(torch.load(file))
    assert other.weight.tolist() == net.weight.tolist()
    with pytest.raises(RuntimeError, match=r"Linear cannot be pickled.*state_dict"):
        pickle.dumps(net)


def test_warnings_name_the_line_that_calls():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nn.utils.weight_norm(nn.Linear(1, 1))
        nn.utils.clip_grad_norm([nn.Parameter(torch.ones(1))], 1)
        nn.utils.stateless.functional_call(nn.ReLU(), {}, torch.ones(1))
    assert [w.category for w in caught] == [FutureWarning] * 3
    assert {w.filename for w in caught} == {__file__}
    assert "parametrizations.weight_norm()" in str(caught[0].message)


def test_skipped_initial_values(device):
    """No function of nn.init runs, and no random number is drawn."""

    class Layer(nn.Module):
        def __init__(self, device=None):
            super().__init__()
            self.weight = nn.Parameter(torch.full((2, 2), 7.0, device=device))
            self.drawn = torch.rand(2, device=device)
            nn.init.orthogonal_(self.weight)
            nn.init.trunc_normal_(tensor=self.weight)

    torch.manual_seed(1)
    expected = torch.rand(2, device=device).tolist()
    torch.manual_seed(1)
    made = nn.utils.skip_init(Layer, device=device)
    assert made.weight.tolist() == [[7, 7], [7, 7]]
    assert torch.rand(2, device=device).tolist() == expected
    assert nn.init.ones_(made.weight).tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: parametrize.register_parametrization(layer(), "wait", Twice()),
            ValueError,
            r"Linear has no .* 'wait'; it has \['bias'\]",
        ),
        (
            lambda: parametrize.remove_parametrizations(layer(), "bias"),
            ValueError,
            "no parametrization of 'bias'",
        ),
        (
            lambda: parametrizations.orthogonal(nn.Linear(2, 2), "bias"),
            ValueError,
            "'bias' has 1 dimensions; a matrix",
        ),
        (
            lambda: parametrizations.orthogonal(nn.Linear(2, 2), "weight", "expm"),
            ValueError,
            "'expm'; give one of matrix_exp, cayley, householder",
        ),
        (
            lambda: parametrizations.spectral_norm(nn.Linear(2, 2), dim=2),
            IndexError,
            "dim is 2.*from -2 to 1",
        ),
        (
            lambda: nn.utils.fuse_conv_bn_eval(nn.Conv1d(1, 1, 1), nn.BatchNorm1d(1)),
            AssertionError,
            r"evaluation mode.*eval\(\)",
        ),
        (lambda: nn.utils.skip_init(nn.ReLU), RuntimeError, "ReLU takes no argument"),
    ],
)
def test_what_errors_say(call, error, text):
    with pytest.raises(error, match=text):
        call()
