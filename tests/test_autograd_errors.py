"""What the backward pass refuses, and anomaly mode."""

import pytest

import pydevtensor as torch
from pydevtensor.autograd import grad

# --- errors


def test_deprecated_arguments_warn(device):
    x = torch.ones(2, device=device, requires_grad=True)
    with pytest.warns(FutureWarning, match="grad_tensors") as warned:
        torch.autograd.backward(x * 2, grad_variables=torch.ones_like(x))
    assert x.grad.tolist() == [2, 2]
    with pytest.warns(FutureWarning, match="only_inputs") as again:
        (found,) = torch.autograd.grad((x * 3).sum(), x, only_inputs=False)
    assert found.tolist() == [3, 3] and x.grad.tolist() == [2, 2]
    assert {each[0].filename for each in (warned, again)} == {__file__}


def test_backward_errors(device):
    x = torch.ones(2, device=device, requires_grad=True)
    with pytest.raises(RuntimeError, match="scalar"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.ones((), device=device).backward()
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.backward()
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(TypeError):
        (x * 2).backward(3)
    with pytest.raises(ValueError):
        grad(y, [])
    with pytest.raises(RuntimeError, match="require grad"):
        grad((x * x).sum(), torch.ones(2))


def test_a_result_has_no_grad_and_says_so(device, recwarn):
    x = torch.ones(2, device=device, requires_grad=True)
    y = x * 2
    assert x.grad is None and x.detach().grad is None and not recwarn.list
    for _ in range(2):
        with pytest.warns(UserWarning, match="MulBackward0 computed it"):
            assert y.grad is None
    y.retain_grad()
    assert y.grad is None
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0] and not recwarn.list


# --- anomaly mode


def test_nan_is_found_with_the_line_of_the_program(device):
    x = torch.tensor([4.0, 0.0], device=device, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        y = x.sqrt()  # this line
        loss = (y * torch.tensor([1.0, 0.0], device=device)).sum()
        with pytest.raises(RuntimeError, match="SqrtBackward0 gave NaN") as caught:
            loss.backward()
    text = str(caught.value)
    assert "input 0" in text and "y = x.sqrt()  # this line" in text
    assert __file__ in text and "anomaly_mode.py" not in text
    assert x.grad is None


def test_a_failing_backward_function_names_its_line(device):
    x = torch.ones(3, device=device, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        y = x.exp()
        z = y * 2
        y.zero_()
        with pytest.raises(RuntimeError, match="ExpBackward0 was called here") as error:
            z.sum().backward()
    assert "y = x.exp()" in str(error.value)


def test_anomaly_mode_is_as_in_pytorch():
    assert not torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()
    with pytest.warns(UserWarning, match="slower"):
        mode = torch.autograd.detect_anomaly(check_nan=False)
    assert not torch.is_anomaly_enabled()
    with mode:
        assert torch.is_anomaly_enabled()
        assert not torch.is_anomaly_check_nan_enabled()
        with torch.autograd.set_detect_anomaly(True):
            assert torch.is_anomaly_check_nan_enabled()
        assert not torch.is_anomaly_check_nan_enabled()
        x = torch.zeros(1, requires_grad=True)
        (x.sqrt() * 0).sum().backward()  # NaN is not looked for
        assert x.grad.isnan().all()
    assert not torch.is_anomaly_enabled()
    torch.autograd.set_detect_anomaly(True)
    try:
        assert torch.is_anomaly_check_nan_enabled()
    finally:
        torch.autograd.set_detect_anomaly(False)
    x = torch.zeros(1, requires_grad=True)
    (x.sqrt() * 0).sum().backward()
    with pytest.raises(TypeError):
        torch.autograd.set_detect_anomaly()


def test_infinities_and_integers_are_no_nan(device):
    x = torch.tensor([0.0, 1.0], device=device, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        (x.log().sum() + x.long().sum()).backward()
        torch.empty(0, device=device, requires_grad=True).sum().backward()
    assert x.grad.tolist() == [float("inf"), 1.0]
