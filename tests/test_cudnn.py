"""Convolutions by cuDNN: on real GPUs that of the machine, on simulated ones the CPU's."""

import pytest
from conftest import SIMULATED
from isolated import python

import pydevtensor as torch
import pydevtensor.nn.functional as F

cudnn = torch.backends.cudnn

SIM = {"PYDEVTENSOR_SIM_GPUS": "1", "PYDEVTENSOR_SIM_CUDNN": "1"}

# Results and gradients of each way to convolve, on the CPU and on a GPU.
COMPARE = """
import itertools
import pydevtensor as torch
F = torch.nn.functional
FORWARD = F.conv1d, F.conv2d, F.conv3d
TRANSPOSED = F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d
WINDOWS = (1, 0, 1), (2, 1, 1), (1, 2, 2), (3, 1, 2)

def parts(device, dtype, dims, groups, window):
    torch.manual_seed(dims)
    stride, padding, dilation = window
    made = (
        torch.randn(2, 4, *(9, 8, 7)[:dims]),
        torch.randn(8, 4 // groups, *(3, 2, 3)[:dims]),
        torch.randn(8),
        torch.randn(4, 8 // groups, *(3, 2, 3)[:dims]),
        torch.randn(8),
    )
    x, w, bias, back, out = (t.to(device, dtype).requires_grad_() for t in made)
    y = FORWARD[dims - 1](x, w, bias, stride, padding, dilation, groups)
    weights = torch.linspace(-1, 1, y.numel()).reshape(y.shape).to(device, dtype)
    shape = stride, padding, stride - 1, groups, dilation
    z = TRANSPOSED[dims - 1](x, back, out, *shape)
    gradients = torch.autograd.grad((y * weights).sum(), (x, w, bias))
    return [t.detach().cpu().double() for t in (y, z, *gradients)]

def compare(dtypes=(torch.float32, torch.float64, torch.float16, torch.bfloat16)):
    for case in itertools.product(dtypes, (1, 2, 3), (1, 2, 4), WINDOWS):
        within = {torch.float32: 5e-5, torch.float64: 1e-12}.get(case[0], 2e-2)
        pairs = zip(parts("cuda", *case), parts("cpu", *case), strict=True)
        for part, (found, expected) in enumerate(pairs):
            off = ((found - expected).abs() / (1 + expected.abs())).max().item()
            assert off <= within, (case, part, off)

def launches(work):
    # 1 for cuDNN; products of patches take two.
    before = torch.cuda.sim_counters()["launches"]
    work()
    return torch.cuda.sim_counters()["launches"] - before

x = torch.ones(1, 2, 5, 5, device="cuda")
w = torch.ones(2, 2, 3, 3, device="cuda")
b = torch.ones(2, device="cuda")
"""


@pytest.mark.slow
def test_every_part_agrees_with_the_cpu():
    python(COMPARE + "compare()", **SIM)


@pytest.mark.skipif(
    SIMULATED or not cudnn.is_available(), reason="needs a real GPU and cuDNN"
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "x, w, numbers",
    [
        ((16, 32, 65, 129), (48, 32, 3, 3), {"padding": 1}),
        ((16, 32, 200, 129), (48, 16, 3, 5), {"groups": 2, "stride": (2, 1)}),
        ((64, 16, 33, 33, 17), (8, 16, 3, 2, 3), {"dilation": 2, "padding": 2}),
        ((64, 32, 9000), (16, 32, 9), {}),
    ],
)
def test_large_ones_agree_with_our_own_kernels(x, w, numbers, dtype, gpu):
    """Small ones are not left to cuDNN."""
    with torch.device(gpu):
        given = [torch.randn(*shape, dtype=dtype) for shape in (x, w, w[:1])]
        of = (F.conv1d, F.conv2d, F.conv3d)[len(x) - 3]
        upstream = torch.randn(of(*given, **numbers).shape, dtype=dtype)

    def results(**settings):
        with cudnn.flags(allow_tf32=False, **settings):
            leaves = [t.detach().requires_grad_() for t in given]
            y = of(*leaves, **numbers)
            return [y.detach(), *torch.autograd.grad(y, leaves, upstream)]

    ours = results(enabled=False)
    for settings in ({}, {"deterministic": True}):
        for found, expected in zip(
            results(enabled=True, **settings), ours, strict=True
        ):
            off = (found.double() - expected.double()).norm()
            within = 1e-5 if dtype == torch.float32 else 1e-2
            assert off <= within * expected.double().norm()


def test_it_is_used_where_it_may_be():
    out = python(
        COMPARE
        + """
cudnn = torch.backends.cudnn
def uses():
    return launches(lambda: F.conv2d(x, w)) == 1
print(uses(), cudnn.version(), cudnn.is_available(), cudnn.is_acceptable(x))
with cudnn.flags(enabled=False):
    print(uses(), cudnn.is_acceptable(x))
with cudnn.flags(enabled=True, deterministic=True):
    print(uses())
print(uses(), cudnn.is_acceptable(x.cpu()), cudnn.is_acceptable(x.long()))
"""
        + "print(launches(lambda: F.conv2d(x, w, b)))",
        **SIM,
    )
    assert out.splitlines() == [
        "True 90000 True True",
        "False False",
        "True",
        "True False False",
        "2",  # the bias is added
    ]


def test_where_it_cannot_start_other_kernels_convolve():
    program = COMPARE + "print(launches(lambda: F.conv2d(x, w)), F.conv2d(x, w).sum())"
    out = python(program, **SIM, PYDEVTENSOR_SIM_FAIL="cudnn:1+")
    assert out == "2 tensor(324., device='cuda:0')\n"


def test_a_capture_before_its_first_use_goes_without_it():
    out = python(
        COMPARE
        + """
def capture():
    global y
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = F.conv2d(x, w)
    graph.replay()
for _ in range(2):
    print(launches(capture), y.sum().item())
    F.conv2d(x, w)
""",
        **SIM,
    )
    assert out == "2 324.0\n1 324.0\n"


@pytest.mark.parametrize("name", ["enabled", "deterministic", "allow_tf32"])
def test_settings_are_bools(name):
    before = getattr(cudnn, name)
    with pytest.raises(RuntimeError, match=f"{name} is a int; give True or False"):
        setattr(cudnn, name, 1)
    assert getattr(cudnn, name) is before
