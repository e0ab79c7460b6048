"""A Python without NumPy, and a machine without a BLAS: each test is a process."""

from textwrap import dedent

import pytest
from isolated import python

# Stands before the other finders, so that NumPy counts as not installed.
REFUSE = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Refuse())
import pydevtensor as torch

def refused(kind, work):
    try:
        work()
    except kind as error:
        print(error)
    else:
        print("nothing was raised")
"""


def run(code, packages=("numpy",), **chosen):
    chosen = {"PYDEVTENSOR_BLAS": "own", "PYDEVTENSOR_SIM_GPUS": "2", **chosen}
    return python(REFUSE.format(packages=packages) + dedent(code), **chosen)


def test_numpy_is_refused():
    out = run("refused(ModuleNotFoundError, lambda: __import__('numpy.linalg'))")
    assert out == "No module named 'numpy'\n"


@pytest.mark.parametrize("device", ["cpu", "cuda:0", "cuda:1"])
def test_tensors_and_printing(device):
    out = run(f"""
        x = torch.arange(6.0, device='{device}').reshape(2, 3)
        print(x.cpu())
        print(x[:, torch.tensor([2, 0], device=x.device)].tolist())
        print((x * 2 + 1).sum().item(), x.var(0).tolist(), x.argmax().item())
        print(torch.tensor([[1, 2], [3, 4]]), torch.tensor([True, False]))
        print(memoryview(x.cpu()).shape, torch.from_dlpack(x.cpu()).shape)
        print(torch.utils.data.default_collate([1.5, 2.5]).tolist())
        print('numpy' in sys.modules)
    """)
    assert out.splitlines() == [
        "tensor([[0., 1., 2.],",
        "        [3., 4., 5.]])",
        "[[2.0, 0.0], [5.0, 3.0]]",
        "36.0 [4.5, 4.5, 4.5] 5",
        "tensor([[1, 2],",
        "        [3, 4]]) tensor([ True, False])",
        "(2, 3) torch.Size([2, 3])",
        "[1.5, 2.5]",
        "False",
    ]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_training_data_and_files(device, tmp_path):
    out = run(f"""
        torch.manual_seed(0)
        nn = torch.nn
        net = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
            nn.Linear(4 * 36, 16), nn.Dropout(0.1), nn.LSTM(16, 8)
        ).to('{device}')
        head = nn.Linear(8, 2).to('{device}')
        x = torch.randn(40, 1, 6, 6)
        y = (x.mean((1, 2, 3)) > 0).long()
        data = torch.utils.data.TensorDataset(x, y)
        loader = torch.utils.data.DataLoader(data, 20, shuffle=True, num_workers=1)
        parameters = [*net.parameters(), *head.parameters()]
        optimizer = torch.optim.Adam(parameters, lr=0.01)
        losses = []
        for _ in range(6):
            for a, b in loader:
                out, _ = net(a.to('{device}'))
                loss = nn.functional.cross_entropy(head(out), b.to('{device}'))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        print(sum(losses[-2:]) < sum(losses[:2]))
        path = {str(tmp_path / "net.pt")!r}
        torch.save(net.state_dict(), path)
        read = torch.load(path)
        print(all(torch.equal(v, read[k]) for k, v in net.state_dict().items()))
        print('numpy' in sys.modules)
    """)
    assert out.split() == ["True", "True", "False"]


def test_random_numbers_are_those_with_numpy():
    code = """
        torch.manual_seed(3)
        print(torch.rand(2).tolist(), torch.randn(20)[3].item(), torch.randperm(5))
        print(torch.distributions.Gamma(2.0, 1.0).sample().item())
    """
    assert run(code) == run(code, packages=())


NEEDS_NUMPY = [
    "torch.ones(2).numpy()",
    "torch.ones(2).numpy(force=True)",
    "torch.ones(2).__array__()",
    "torch.from_numpy([1])",
]
IMAGES = "torch.vision.transforms.functional"
NEEDS_NUMPY_FOR_IMAGES = [
    f"{IMAGES}.to_tensor(3)",
    f"{IMAGES}.to_pil_image(torch.ones(3, 2, 2))",
    f"{IMAGES}.resize(torch.ones(3, 4, 4), [2, 2])",
    f"{IMAGES}.pad(torch.ones(3, 4, 4), 1, padding_mode='reflect')",
    "torch.vision.datasets.CIFAR10('nowhere')",
    "torch.vision.datasets.mnist.read_idx('nowhere')",
]


@pytest.mark.parametrize("expression", NEEDS_NUMPY + NEEDS_NUMPY_FOR_IMAGES)
def test_what_needs_numpy_says_so(expression):
    said = run(f"refused(ImportError, lambda: {expression})")
    assert "NumPy" in said and "No module named 'numpy'" in said
    assert "pip install numpy" in said


def test_another_library_s_array_needs_numpy():
    said = run("""
        class Foreign:
            def __array__(self, dtype=None, copy=None):
                raise AssertionError("NumPy is not there to ask")
        from pydevtensor._functions.interop import adopt
        refused(ImportError, lambda: adopt(Foreign(), "tensor"))
    """)
    assert "pip install numpy" in said


def test_constant_borders_and_flips_of_tensors_need_no_numpy():
    out = run(f"""
        F = {IMAGES}
        print(F.pad(torch.ones(1, 1, 1), [1, 0]).tolist(), F.hflip(torch.ones(1, 1, 2)).shape)
    """)
    assert out == "[[[0.0, 1.0, 0.0]]] torch.Size([1, 1, 2])\n"


# --- no BLAS --------------------------------------------------------------------------


@pytest.mark.slow
def test_products_are_the_own_kernel_s():
    out = run("""
        torch.manual_seed(0)
        for dtype, most in ((torch.float32, 1e-4), (torch.float64, 1e-12)):
            for m, n, k in ((1, 1, 1), (7, 5, 3), (130, 70, 300), (13, 2100, 260)):
                for device in ('cpu', 'cuda'):
                    a = torch.rand(k, m, dtype=dtype, device=device)
                    b = torch.rand(n, k, dtype=dtype, device=device)
                    exact = (a.T.double()[:, :, None] * b.T.double()).sum(1)
                    error = (a.T @ b.T - exact).abs().max().item()
                    assert error <= most, (dtype, m, n, k, device, error)
        print(torch._C._facts("cpu")["cpu.blas"])
    """)
    assert out == "own\n"


@pytest.mark.slow
def test_products_do_not_depend_on_threads():
    out = run("""
        torch.manual_seed(0)
        shapes = [(257, 301, 513), (4097, 17, 31), (16, 2048, 700), (40000, 8, 8), (9, 9, 30000)]
        for dtype in (torch.float32, torch.float64, torch.int64):
            for m, n, k in shapes:
                a = (torch.rand(m, k) * 100).to(dtype)
                b = (torch.rand(k, n) * 100).to(dtype)
                c = (torch.rand(m, n) * 100).to(dtype)
                found = []
                for threads in (1, 2, 3, 8):
                    torch.set_num_threads(threads)
                    found.append((a @ b, torch.addmm(c, a, b, beta=2, alpha=3)))
                for other in found[1:]:
                    assert torch.equal(other[0], found[0][0]), (dtype, m, n, k)
                    assert torch.equal(other[1], found[0][1]), (dtype, m, n, k)
        print("same")
    """)
    assert out == "same\n"


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(
    "name", ["inv", "svdvals", "cholesky", "qr", "eigvalsh", "det"]
)
def test_factorizations_say_what_to_install(device, name):
    said = run(
        f"refused(RuntimeError, lambda: torch.linalg.{name}(torch.eye(2, device='{device}')))"
    )
    assert "pip install scipy-openblas64" in said
