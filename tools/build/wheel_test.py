"""What a wheel has to do in an environment without NumPy and without a BLAS.

python -I tools/build/wheel_test.py: status 0, or an exception. With PYDEVTENSOR_CUDA=1,
as the build that makes the wheel, the wheel needs the CUDA backend.
"""

import ctypes
import importlib.util
import io
import os
from pathlib import Path

os.environ["PYDEVTENSOR_SIM_GPUS"] = "2"

import pydevtensor as torch


def refused(work, kind, words):
    try:
        work()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"nothing was raised that says {words!r}")


def train(device):
    """The losses before and after some steps on a small network."""
    nn = torch.nn
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)).to(device)
    x = torch.randn(64, 8).to(device)
    y = x.sum(1, keepdim=True)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    losses = []
    for _ in range(60):
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[0], losses[-1]


def check_cuda(folder):
    """The backend for real GPUs is there and can be loaded, which takes no driver."""
    path = Path(folder, "_cuda.so")
    assert path.exists(), "PYDEVTENSOR_CUDA=1, and the wheel has no _cuda.so"
    assert ctypes.CDLL(str(path)).dt_backend_open


def main():
    assert importlib.util.find_spec("numpy") is None, "NumPy is installed"
    if os.environ.get("PYDEVTENSOR_CUDA") == "1":
        check_cuda(Path(torch.__file__).parent)
    assert torch.cuda.device_count() == 2
    for device in ("cpu", "cuda:0", "cuda:1"):
        first, last = train(device)
        assert last < 0.2 * first, (device, first, last)
        a = torch.rand(70, 90, device=device)
        ones = torch.ones(90, 3, device=device)
        assert ((a @ ones)[:, 0] - a.sum(1)).abs().max().item() < 1e-3
    file = io.BytesIO()
    torch.save({"w": torch.arange(3)}, file)
    file.seek(0)
    assert repr(torch.load(file)["w"]) == "tensor([0, 1, 2])"
    refused(torch.ones(2).numpy, ImportError, "pip install numpy")
    if torch._C._facts("cpu")["cpu.blas"] == "own":  # the system may have a BLAS
        inverse = lambda: torch.linalg.inv(torch.eye(2))
        refused(inverse, RuntimeError, "pip install scipy-openblas64")
    print(f"pydevtensor {torch.__version__} works without other packages")


if __name__ == "__main__":
    main()
