"""cuda.transfer_guard: copies between devices that are let be, logged or forbidden."""

import inspect
import logging
import threading
from contextlib import suppress

import pytest
from isolated import python

import pydevtensor as torch
from pydevtensor import nn

guard = torch.cuda.transfer_guard


# What copies without saying so, and what says so.
IMPLICIT = {
    "item": lambda x: x.sum().item(),
    "tolist": lambda x: x.tolist(),
    "repr": repr,
    "bool": lambda x: bool(x.sum() > 0),
    "nonzero": lambda x: x.nonzero(),
    "mask": lambda x: x[x > 0],
    "unique": lambda x: x.unique(),
    "equal": lambda x: torch.equal(x, x),
}
EXPLICIT = {
    "cpu": lambda x: x.cpu(),
    "to": lambda x: x.to("cpu"),
    "to with dtype": lambda x: x.to("cpu", torch.int64),
    "numpy": lambda x: x.numpy(force=True),
    "copy_": lambda x: torch.zeros(2, 3).copy_(x),
    "cuda": lambda x: torch.ones(3).cuda(x.device),
    "tensor": lambda x: torch.tensor([1.0, 2.0], device=x.device),
    "module": lambda x: nn.Linear(3, 2).to(x.device),
}


@pytest.mark.parametrize("name", IMPLICIT)
def test_implicit_copies_are_told_from_those_asked_for(gpu, name):
    x = torch.ones(2, 3, device=gpu)
    IMPLICIT[name](x)
    for mode in ("disallow", "disallow_implicit"):
        with guard(mode), pytest.raises(RuntimeError, match=f"'{mode}'"):
            IMPLICIT[name](x)
    IMPLICIT[name](x)


@pytest.mark.parametrize("name", EXPLICIT)
def test_copies_asked_for_by_name_are_explicit(gpu, name):
    x = torch.ones(2, 3, device=gpu)
    with guard("disallow_implicit"):
        EXPLICIT[name](x)
    with guard("disallow"), pytest.raises(RuntimeError, match="'disallow'"):
        EXPLICIT[name](x)


def test_work_on_the_device_is_free(gpu):
    x = torch.ones(2, 3, device=gpu)
    layer = nn.Linear(3, 2).to(x.device)
    step = torch.optim.SGD(layer.parameters(), lr=0.1)
    with guard("disallow"):
        loss = layer(x).pow(2).sum()
        loss.backward()
        step.step()
        y = torch.arange(6, device=x.device).reshape(2, 3).float() + x
        torch.cuda.synchronize(x.device)
    assert y.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_the_message_names_tensor_line_and_cure(gpu):
    x = torch.ones(2, 3, device=gpu)
    with guard("disallow_implicit"), pytest.raises(RuntimeError) as caught:
        x.tolist()
    text = str(caught.value)
    line = inspect.currentframe().f_lineno - 2
    for part in ("float32", "[2, 3]", f"from {x.device} to the CPU", ".cpu()"):
        assert part in text
    assert f"test_transfer_guard.py:{line}" in text
    with guard("disallow"), pytest.raises(RuntimeError, match="guard\\('allow'\\)"):
        torch.ones(3).to(x.device)


def test_directions(gpu, two_gpus):
    x = torch.ones(2, 3, device=gpu)
    other = two_gpus[0] if str(x.device) == two_gpus[1] else two_gpus[1]
    calls = {
        "host_to_device": lambda: torch.ones(2).to(x.device),
        "device_to_host": lambda: x.cpu(),
        "device_to_device": lambda: x.to(other),
    }
    for direction in calls:
        with guard(**{direction: "disallow"}):
            for name, call in calls.items():
                if name == direction:
                    with pytest.raises(RuntimeError, match="forbidden"):
                        call()
                else:
                    call()


def test_inner_guards_win_and_end(gpu):
    x = torch.ones(2, 3, device=gpu)
    with guard("disallow"):
        with guard(device_to_host="allow"):
            assert x.cpu().shape == (2, 3)
            with pytest.raises(RuntimeError):
                torch.ones(2).to(x.device)
        with pytest.raises(RuntimeError):
            x.cpu()
        with pytest.raises(ZeroDivisionError), guard("allow"):
            1 / 0  # noqa: B018
        with pytest.raises(RuntimeError):
            x.cpu()
    x.cpu()


def test_decorator_and_thread(gpu):
    x = torch.ones(2, 3, device=gpu)

    @guard("disallow")
    def read():
        return x.cpu()

    with pytest.raises(RuntimeError):
        read()
    x.cpu()
    done = []
    with guard("disallow"):
        thread = threading.Thread(target=lambda: done.append(x.cpu()))
        thread.start()
        thread.join()
    assert done  # the guard holds for the thread that entered it


def test_log(gpu, caplog):
    x = torch.ones(2, 3, device=gpu)
    with caplog.at_level(logging.WARNING, "pydevtensor.transfers"), guard("log"):
        x.sum().item()
        torch.ones(5).to(x.device)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert f"from {x.device} to the CPU (test_transfer_guard.py:" in said[0]
    assert f"shape [5] to {x.device}" in said[1]


@pytest.mark.parametrize("mode, copies", [("allow", 1), ("disallow", 0)])
def test_what_is_forbidden_is_not_counted(gpu, mode, copies):
    x = torch.ones(2, 3, device=gpu)
    profile = torch.profiler.profile()
    with profile as prof, torch.cuda.transfers() as moved, suppress(RuntimeError):
        guard(mode)(x.cpu)()
    assert sum(row.device_to_host for row in prof.transfers().rows) == copies
    assert moved.device_to_host == copies and moved.waits == copies


def test_the_environment_guards_a_program():
    code = "import pydevtensor as t; x = t.ones(2, device='cuda'); x.tolist()"
    chosen = {"PYDEVTENSOR_SIM_GPUS": "1"}
    wrong = python(code, fails=True, PYDEVTENSOR_TRANSFER_GUARD="disallow", **chosen)
    assert "transfer_guard('disallow')" in wrong
    one_way = "host_to_device=disallow, device_to_host=log"
    said = python(code + "; t.ones(2).cuda()", fails=True, PYDEVTENSOR_TRANSFER_GUARD=one_way, **chosen)  # fmt: skip
    assert "from cuda:0 to the CPU" in said and "forbidden" in said
    for value, word in (("quiet", "'quiet'"), ("up=allow", "'up'")):
        text = python(code, fails=True, PYDEVTENSOR_TRANSFER_GUARD=value, **chosen)
        assert word in text and "give" in text


def test_wrong_arguments():
    for wrong in ("never", 1, True):
        with pytest.raises(ValueError, match="'disallow_implicit'"):
            guard(wrong)
        with pytest.raises(ValueError, match="device_to_host"):
            guard(device_to_host=wrong)
    with pytest.raises(TypeError, match="give a mode"):
        guard()
