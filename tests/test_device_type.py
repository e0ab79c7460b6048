"""`device`: a value that names a device, and the default device of new tensors."""

import copy
import pickle
import threading

import pytest

import pydevtensor as torch


@pytest.mark.parametrize(
    ("made", "shown", "text"),
    [
        (lambda: torch.device("cpu"), "device(type='cpu')", "cpu"),
        (lambda: torch.device("cpu:0"), "device(type='cpu', index=0)", "cpu:0"),
        (lambda: torch.device("cuda"), "device(type='cuda')", "cuda"),
        (lambda: torch.device("cuda:1"), "device(type='cuda', index=1)", "cuda:1"),
        (lambda: torch.device("cuda", 1), "device(type='cuda', index=1)", "cuda:1"),
        (
            lambda: torch.device(type="cuda", index=1),
            "device(type='cuda', index=1)",
            "cuda:1",
        ),
        (lambda: torch.device("cuda", index=None), "device(type='cuda')", "cuda"),
        (lambda: torch.device("cuda:63"), "device(type='cuda', index=63)", "cuda:63"),
        (
            lambda: torch.device(torch.device("cuda:1")),
            "device(type='cuda', index=1)",
            "cuda:1",
        ),
    ],
)
def test_forms(made, shown, text):
    device = made()
    assert repr(device) == shown
    assert str(device) == f"{device}" == text
    assert device == torch.device(text) and hash(device) == hash(torch.device(text))
    assert pickle.loads(pickle.dumps(device)) == device
    assert copy.deepcopy(device) == device


def test_values():
    assert torch.device("cuda") != torch.device("cuda:0")
    assert torch.device("cpu") != torch.device("cpu:0")
    assert torch.device("cuda:0") != torch.device("cuda:1")
    assert torch.device("cpu") != "cpu"
    assert (
        len({torch.device("cuda", 1), torch.device("cuda:1"), torch.device("cuda")})
        == 2
    )
    assert torch.device("cuda:1").type == "cuda"
    assert torch.device("cuda:1").index == 1
    assert torch.device("cuda").index is None
    with pytest.raises(TypeError):
        assert torch.device("cpu") < torch.device("cuda")
    with pytest.raises(AttributeError):
        torch.device("cpu").index = 1


@pytest.mark.parametrize(
    "text",
    ["", "gpu", "CPU", "cuda:", "cuda:-1", "cuda:01", "cuda:1.5", "cuda:x", "cuda:999999999999",
     " cpu", "cuda 1", "cuda:1 ", "cuda\0", "cpu\0:1", "cudа", "\udc80"],
)  # fmt: skip
def test_bad_strings(text):
    with pytest.raises(RuntimeError, match="'cuda:0'"):
        torch.device(text)
    with pytest.raises(RuntimeError):
        torch.zeros(2, device=text)


@pytest.mark.parametrize("value", [None, 1.5, [], b"cpu", object()])
def test_bad_types(value):
    with pytest.raises(TypeError):
        torch.device(value)


def test_bad_indices():
    for index in (-1, 128, 2**40):
        with pytest.raises(RuntimeError):
            torch.device("cuda", index)
    with pytest.raises(RuntimeError):
        torch.device("cuda:1", 1)
    with pytest.raises(TypeError):
        torch.device("cuda", "1")
    with pytest.raises(RuntimeError):
        torch.device(-1)


def test_an_int_is_a_gpu():
    if torch.cuda.device_count():
        assert torch.device(0) == torch.device("cuda:0")
    else:
        with pytest.raises(RuntimeError, match="no GPU"):
            torch.device(0)


def test_a_device_that_is_not_there():
    there = torch.cuda.device_count()
    missing = torch.device("cuda", 50)
    for use in (
        lambda: torch.zeros(2, device=missing),
        lambda: torch.zeros(2).to(missing),
        lambda: torch.zeros(2).cuda(50),
        lambda: torch.zeros_like(torch.zeros(2), device="cuda:50"),
    ):
        with pytest.raises(RuntimeError):
            use()
    assert torch.cuda.device_count() == there
    # There is one CPU, whatever number it is given.
    assert torch.zeros(2, device="cpu:1").device == torch.device("cpu")


def test_with_device(device):
    here = torch.device(device)
    with here as entered:
        assert entered is here
        assert torch.zeros(2).device == here
        assert torch.arange(3).device == here
        assert torch.zeros(2, device="cpu").device == torch.device("cpu")
        with torch.device("cpu"):
            assert torch.zeros(2).device == torch.device("cpu")
        assert torch.get_default_device() == here
    assert torch.zeros(2).device == torch.device("cpu")


def test_with_device_ends_with_an_exception(device):
    with pytest.raises(ValueError), torch.device(device):
        raise ValueError
    assert torch.get_default_device() == torch.device("cpu")


def test_likes_stay_where_they_are(device):
    x = torch.zeros(2, device=device)
    with torch.device("cpu"):
        assert torch.ones_like(x).device == x.device
        assert x.new_zeros(3).device == x.device
    # The default may not even exist.
    with torch.device("cuda:50"):
        assert torch.ones_like(x).device == x.device
        assert (x + 1).device == x.device
        with pytest.raises(RuntimeError):
            torch.zeros(2)


def test_set_default_device(device):
    torch.set_default_device(device)
    assert torch.ones(2).device == torch.device(device)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.ones(2).device))
    thread.start()
    thread.join()
    assert seen == [torch.device("cpu")]
    torch.set_default_device(None)
    assert torch.ones(2).device == torch.device("cpu")


def test_same_object_where_nothing_changes(device):
    x = torch.zeros(2, device=device)
    assert x.to(device) is x
    assert x.to(x.device) is x
    assert x.to(torch.float32) is x
    assert x.to(device, torch.float32) is x
    assert x.to(dtype=torch.float32, device=device) is x
    assert x.to(torch.zeros(1, device=device)) is x
    assert x.to(device, copy=True) is not x
    assert x.to(torch.float64) is not x
    assert x.float() is x
    if device == "cpu":
        assert x.cpu() is x
    else:
        assert x.cuda(x.device.index) is x
        assert x.cpu().device == torch.device("cpu")


def test_the_name_of_a_dtype_is_no_device():
    with pytest.raises(RuntimeError, match=r"name of a dtype.*torch\.float32"):
        torch.ones(2).to("float32")


def test_float32_matmul_precision(device):
    """Only real GPUs compute with fewer digits."""
    a = torch.tensor([[1 + 2**-20, 3.0]], device=device)
    torch.set_float32_matmul_precision("high")
    try:
        assert torch.get_float32_matmul_precision() == "high"
        exact = device == "cpu" or torch.cuda.is_simulated()
        assert (a @ a.t()).item() == pytest.approx(
            10 + 2**-19, rel=1e-7 if exact else 1e-2
        )
    finally:
        torch.set_float32_matmul_precision("highest")
    with pytest.raises(RuntimeError, match="give 'highest'"):
        torch.set_float32_matmul_precision("full")
    with pytest.raises(TypeError):
        torch.set_float32_matmul_precision(1)


def test_a_type_of_devices_is_found_by_its_name():
    assert torch._C._device_count("cpu") == 1
    assert torch._C._device_why("cpu") == ""
    assert torch._C._device_loaded("cpu")
    assert torch._C._device_count("cuda") == torch.cuda.device_count()
    for name in ("", "cud", "cuda:0", "gpu"):
        message = f"'{name}' is not a type of devices; give 'cpu' or 'cuda'"
        with pytest.raises(RuntimeError, match=message):
            torch._C._device_count(name)
