"""The statements of a book's GPU chapter, on the CPU alone and on several kinds of GPUs.

They run as a reader's program would: in a fresh Python, against the installed package,
from a folder that has nothing to do with it. What they print is compared as it is.
"""

import pytest
from isolated import python

CHAPTER = """
import pydevtensor as torch

print([torch.device('cpu'), torch.device('cuda'), torch.device('cuda:1')])
print(repr(torch.device('cuda', 1)), torch.device('cuda:1') == torch.device('cuda', 1))
print(torch.cuda.device_count(), torch.cuda.is_available())

def try_gpu(i=0):
    if torch.cuda.device_count() >= i + 1:
        return torch.device(f'cuda:{i}')
    return torch.device('cpu')

def try_all_gpus():
    devices = [torch.device(f'cuda:{i}') for i in range(torch.cuda.device_count())]
    return devices if devices else [torch.device('cpu')]

print((try_gpu(), try_gpu(10), try_all_gpus()))
assert try_all_gpus() == torch.try_all_gpus()
assert [try_gpu(i) for i in range(5)] == [torch.try_gpu(i) for i in range(5)]

x = torch.tensor([1, 2, 3])
print(repr(x.device))
X = torch.ones(2, 3, device=try_gpu())
print(X)
torch.manual_seed(0)
Y = torch.rand(2, 3, device=try_gpu(1))
print(Y.shape, Y.device, bool(((Y >= 0) & (Y < 1)).all()) if hasattr(Y, 'all') else True)

if torch.cuda.device_count() > 1:
    Z = X.cuda(1)
    print(X)
    print(Z)
    print(Z.cuda(1) is Z)
    try:
        X + Y
    except RuntimeError as error:
        print('cuda:0' in str(error) and 'cuda:1' in str(error))
else:
    Z = X.to(try_gpu(1))
print((Y + Z - Y).round() if hasattr(Y, 'round') else Z)
print((Y + Z).device)
print(X ** 2 + 1, (2 * X - 0.5).sum())
print(X.cpu().numpy())

net_input = torch.arange(12, dtype=torch.float32, device=try_gpu()).reshape(3, 4)
print(torch.mm(net_input, net_input.T))
print(net_input @ net_input.T == torch.mm(net_input, net_input.t()))

big = torch.ones(200, 200, device=try_gpu())
print((big @ big).norm())
log = []
for i in range(20):
    a = torch.full((100, 100), float(i), device=try_gpu())
    log.append(torch.mm(a, a).norm())
print([round(v.item()) for v in log][:4], log[1].device)

pair = [torch.eye(3, device=d) * 2 for d in try_all_gpus()[:2]]
products = [torch.mm(p, p) for p in pair]
for p in products:
    print(p)
if torch.cuda.is_available():
    with torch.cuda.device(torch.cuda.device_count() - 1):
        print(torch.cuda.current_device(), torch.ones(1, device='cuda'))
    print(torch.cuda.current_device(), torch.cuda.is_simulated())
    try:
        X.numpy()
    except TypeError as error:
        print('.cpu().numpy()' in str(error))
try:
    torch.ones(1, device='cuda:9')
except RuntimeError:
    print('no cuda:9')
"""


def expected(n):
    """What it prints on n GPUs."""
    first = ", device='cuda:0'" if n else ""
    second = ", device='cuda:1'" if n > 1 else ""
    here = "cuda:0" if n else "cpu"
    there = "cuda:1" if n > 1 else "cpu"
    gpus = [f"device(type='cuda', index={i})" for i in range(n)] or [
        "device(type='cpu')"
    ]
    ones = "tensor([[1., 1., 1.],\n        [1., 1., 1.]]{})"
    out = [
        "[device(type='cpu'), device(type='cuda'), device(type='cuda', index=1)]",
        "device(type='cuda', index=1) True",
        f"{n} {n > 0}",
        f"({gpus[0]}, device(type='cpu'), [{', '.join(gpus)}])",
        "device(type='cpu')",
        ones.format(first),
        f"torch.Size([2, 3]) {there} True",
    ]
    if n > 1:
        out += [ones.format(first), ones.format(second), "True", "True"]
    out += [
        ones.format(second),
        there,
        f"tensor([[2., 2., 2.],\n        [2., 2., 2.]]{first}) tensor(9.{first})",
        "[[1. 1. 1.]\n [1. 1. 1.]]",
        f"""tensor([[ 14.,  38.,  62.],
        [ 38., 126., 214.],
        [ 62., 214., 366.]]{first})""",
        f"""tensor([[True, True, True],
        [True, True, True],
        [True, True, True]]{first})""",
        f"tensor(40000.{first})",
        f"[0, 10000, 40000, 90000] {here}",
    ]
    fours = "tensor([[4., 0., 0.],\n        [0., 4., 0.],\n        [0., 0., 4.]]{})"
    out.append(fours.format(first))
    if n > 1:
        out.append(fours.format(second))
    if n:
        out += [f"{n - 1} tensor([1.], device='cuda:{n - 1}')", "0 True", "True"]
    return "\n".join([*out, "no cuda:9"]) + "\n"


@pytest.mark.parametrize(
    ("n", "schedule"),
    [
        *[(0, "eager"), (1, "lazy"), (2, "eager"), (2, "lazy"), (2, "random:3")],
        *(
            pytest.param(n, schedule, marks=pytest.mark.slow)
            for n, schedule in [
                *[(1, "eager"), (1, "random:3")],
                *[(4, "eager"), (4, "lazy"), (4, "random:3")],
            ]
        ),
    ],
)
def test_on_simulated_gpus(n, schedule):
    seen = python(
        CHAPTER, PYDEVTENSOR_SIM_GPUS=str(n), PYDEVTENSOR_SIM_SCHEDULE=schedule
    )
    assert seen == expected(n)


def test_on_virtual_gpus():
    seen = python(CHAPTER, PYDEVTENSOR_SIM_GPUS="1", PYDEVTENSOR_VIRTUAL_GPUS="2")
    assert seen == expected(2)


def test_without_peer_access():
    seen = python(CHAPTER, PYDEVTENSOR_SIM_GPUS="2", PYDEVTENSOR_SIM_PEER="0")
    assert seen == expected(2)
