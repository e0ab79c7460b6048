"""Complex numbers beside golden/complex.json: every function takes them or says why not."""

import pytest
import signatures
from signatures import PROCESS_WIDE, bound, function_of, known, valid

import pydevtensor as torch
from pydevtensor.autograd import gradcheck, gradgradcheck
from pydevtensor.nn import functional as F

ANSWERS = (
    AttributeError,
    BufferError,
    IndexError,
    RuntimeError,
    TypeError,
    ValueError,
)


def calls():
    for name, forms in bound():
        if name.split(".")[-1] in PROCESS_WIDE:
            continue
        for form in forms:
            yield name, form


def complex_floats(*shape):
    real = signatures.floats_of_reals(*shape)
    return torch.complex(real, 1 - real)


@pytest.fixture
def complex_arguments(monkeypatch):
    monkeypatch.setattr(signatures, "floats_of_reals", signatures.floats, raising=False)
    monkeypatch.setattr(signatures, "floats", complex_floats)


def is_answered(name, found, value):
    """Whether a function takes arguments; where it does not, its error has a text."""
    try:
        values = [value(p) for p in found if not p.keyword]
        words = {p.name: value(p) for p in found if p.keyword}
    except Exception:
        return None
    try:
        function_of(name)(*values, **words)
    except ANSWERS as e:
        assert str(e), name
        return False
    return True


def test_every_function_answers(device, complex_arguments):
    answers = {}
    for name, form in calls():
        found = signatures.parameters(form)
        needed = [p for p in found if p.required or p.name in known(name)]
        answers[name] = is_answered(
            name, needed, lambda p, name=name: valid(name, p, device)
        )
    assert all(answers[name] for name in ("exp", "matmul", "cat", "stack"))
    assert not answers["sort"]
    assert not answers["floor"]


NUMBERS = ("Number", "Scalar", "Value", "float")


def test_every_number_may_be_complex(device):
    """One after the other, and all of a call."""
    answers = set()
    for name, form in calls():
        found = signatures.parameters(form)
        numbers = [p for p in found if p.word in NUMBERS]
        for chosen in [*([p] for p in numbers), numbers] if numbers else []:

            def value(p, name=name, chosen=chosen):
                return 1j if p in chosen else valid(name, p, device)

            needed = [
                p for p in found if p.required or p.name in known(name) or p in chosen
            ]
            answers.add((name, is_answered(name, needed, value)))
    assert {("add", True), ("full", True), ("where", True)} <= answers
    assert {("threshold", False), ("nn.functional.elu", False)} <= answers


DIFFERENTIABLE = {
    "sgn": lambda x, y: x.sgn() * y,
    "abs": lambda x, y: (x.abs(), y.angle()),
    "var": lambda x, y: torch.var_mean(x * y, 1),
    "std": lambda x, y: (x.std(), y.std(0)),
    "cov": lambda x, y: torch.cov(x) @ y,
    "cumsum": lambda x, y: (x * y).cumsum(1),
    "cumprod": lambda x, y: (x * y).cumprod(1),
    "cumprod with a zero": lambda x, y: (x * (y - y[0, 0])).cumprod(1),
    "prod": lambda x, y: (x.prod(1), y.prod()),
    "lerp": lambda x, y: torch.lerp(x, y, x * y),
    "sinc": lambda x, y: x.sinc() + y,
    "silu": lambda x, y: F.silu(x) * y,
    "pad": lambda x, y: F.pad(x, (1, 1), "reflect") + F.pad(y, (1, 1), "circular"),
    "conv1d": lambda x, y: F.conv1d(x, y.reshape(1, 2, 3), x[0, :1], padding=1),
    "conv2d": lambda x, y: F.conv2d(x[None, None], y[None, None, :, :2]),
    "conv_transpose2d": lambda x, y: F.conv_transpose2d(
        x[None, None], y[None, None], stride=2
    ),
    "conv3d": lambda x, y: F.conv3d(x[None, None, None], y[None, None, None]),
    "numbers": lambda x, y: (
        torch.add(x, y, alpha=1j).sub(y, alpha=2 - 1j),
        torch.rsub(x, y, alpha=1j),
        torch.addcmul(x, y, x, value=1 - 1j).addcdiv(y, x + 9, value=2j),
    ),
    "addmm": lambda x, y: torch.addmm(x[:, :2], x, y.mT, beta=1j, alpha=2 - 1j),
    "index_add": lambda x, y: torch.index_add(
        x, 1, torch.tensor([1, 1, 0], device=x.device), y, alpha=1 - 2j
    ),
    "constant_pad_nd": lambda x, y: torch.constant_pad_nd(x, (1, -1), 2j).mul(y),
    "logaddexp": lambda x, y: torch.logaddexp(x, y) * y,
    "logsumexp": lambda x, y: (x.logsumexp(1) * y.logsumexp((0, 1)), x.logsumexp(0)),
    "logcumsumexp": lambda x, y: torch.logcumsumexp(x * y, 1),
    "rms_norm": lambda x, y: F.rms_norm(x, (3,), y[0]),
    "soft_margin_loss": lambda x, y: F.soft_margin_loss(x, y, reduction="none"),
    "eigvals": lambda x, y: torch.linalg.eigvals(x[:, :2]) * y[0, :2],
    "addbmm": lambda x, y: torch.addbmm(
        x[:, :2], x[None], y.mT[None], beta=1j, alpha=2 - 1j
    ),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives(name, device):
    x, y = (
        torch.tensor(v, dtype=torch.complex128, device=device, requires_grad=True)
        for v in (
            [[1 + 2j, -0.5j, 2.0], [0.25 - 1j, 1.5 + 0.5j, -1 + 1j]],
            [[0.5 - 1j, 2 + 0.75j, -1.5j], [1 + 1j, -0.25 + 2j, 0.5]],
        )
    )
    assert gradcheck(DIFFERENTIABLE[name], (x, y))
    assert gradgradcheck(DIFFERENTIABLE[name], (x, y))


def test_a_network_of_complex_numbers_learns(device):
    """A filter, found by gradients of what it gives."""
    torch.manual_seed(1)
    wanted = torch.tensor([[[0.5 - 1j, 2j, 1.0]]], device=device)
    x = torch.randn(8, 1, 16, dtype=torch.complex64).to(device)
    target = F.conv1d(x, wanted)
    layer = torch.nn.Conv1d(1, 1, 3, bias=False, dtype=torch.complex64).to(device)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
    for _ in range(150):
        optimizer.zero_grad()
        (layer(x) - target).abs().square().mean().backward()
        torch.nn.utils.clip_grad_norm_(layer.parameters(), 5.0)
        optimizer.step()
    assert torch.allclose(layer.weight, wanted, atol=0.05)
    assert optimizer.state[layer.weight]["exp_avg_sq"].dtype == torch.complex64


def test_parts_are_assigned(device):
    x = torch.zeros(2, dtype=torch.complex64, device=device)
    x.real = torch.tensor([1.0, 2.0], device=device)
    x.imag = -1
    assert x.tolist() == [1 - 1j, 2 - 1j]
    with pytest.raises(RuntimeError, match="is real"):
        x.real.imag = 1
    with pytest.raises(RuntimeError, match="assign"):
        del x.real


def test_what_complex_numbers_have_not(device):
    x = torch.ones(2, 2, dtype=torch.complex64, device=device)
    for call in (
        lambda: torch.linspace(0, 1j, 3, dtype=torch.float32),
        lambda: x.logaddexp2(x),
        lambda: torch.add(x.real, x.real, alpha=1j),
        lambda: torch.addmm(x.real, x.real, x.real, beta=1j),
        lambda: torch.addcmul(x.real, x.real, x.real, value=1j),
        lambda: torch.constant_pad_nd(x.real, (1, 1), 1j),
        lambda: x.sign(),
        lambda: torch.isin(x, x),
        lambda: torch.int64.to_complex(),
    ):
        with pytest.raises(
            (RuntimeError, NotImplementedError), match=r"give|take|convert|call|compare"
        ):
            call()
    x.requires_grad_().abs().sum().backward()
    with pytest.raises(NotImplementedError, match="real"):
        torch.nn.utils.clip_grad_value_([x], 1.0)
