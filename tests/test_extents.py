"""What the core says of operands, on which race reports rest, is what kernels touch.

With PYDEVTENSOR_SIM_RACES=strict all other bytes of the operands' tensors hold NaN while a
kernel runs, and writing them is a fault. Operands are parts of larger tensors.
"""

from isolated import python

FAMILIES = """
import pydevtensor as torch
import pydevtensor.nn.functional as F

def parts(*shape, device):
    \"\"\"Numbers in the middle of a larger tensor, whose rest is 0.\"\"\"
    torch.manual_seed(len(shape))
    whole = torch.zeros(*(n + 2 for n in shape))
    inner = tuple(slice(1, n + 1) for n in shape)
    whole[inner] = torch.rand(*shape)
    return whole.to(device)[inner]

def gradient(f):
    def run(make):
        x = make(2, 3, 8, 8).detach().clone().requires_grad_()
        f(x).square().sum().backward()
        return x.grad
    return run

def module(kind, *sizes, shape, **options):
    def run(make):
        torch.manual_seed(1)
        net = kind(*sizes, **options).to(make(1).device)
        found = net(make(*shape))
        found = found[0] if isinstance(found, tuple) else found
        found.square().sum().backward()
        return torch.cat([p.grad.flatten() for p in net.parameters()])
    return run

def trained(optimizer, **options):
    def run(make):
        p = [make(5, 4).clone().requires_grad_(), make(7).clone().requires_grad_()]
        steps = getattr(torch.optim, optimizer)(p, lr=0.1, **options)
        for _ in range(3):
            for each in p:
                each.grad = each.detach() * 2
            torch.nn.utils.clip_grad_norm_(p, 1.0)
            steps.step()
        return torch.cat([each.flatten() for each in p])
    return run

def written(write):
    def run(make):
        x = make(6, 5)
        write(x)
        return x
    return run

def attention(make):
    q, k, v = (make(2, 2, 40, 16).clone().requires_grad_() for _ in range(3))
    attend = F.scaled_dot_product_attention
    attend(q, k, v, is_causal=True).square().sum().backward()
    attend(q, k, v, dropout_p=1e-12).square().sum().backward()  # which drops nothing
    return torch.cat([q.grad, k.grad, v.grad])

def composed_attention(make):
    q, learns = make(2, 2, 40, 16), make(40, 40).clone().requires_grad_()
    F.scaled_dot_product_attention(q, q, q, learns, 1e-12).square().sum().backward()
    return learns.grad

FAMILIES = {
    "fill": written(lambda x: x[1:3].fill_(2)),
    "copy": written(lambda x: x[:, 1].copy_(x[:, 3])),
    "add": lambda make: make(6, 5) + make(5)[None],
    "where": lambda make: torch.where(make(6, 5) > 0.5, make(6, 5), 2),
    "sum": lambda make: make(6, 5, 4).sum((0, 2)),
    "argmax": lambda make: make(6, 5, 4).argmax(1),
    "max": lambda make: make(6, 5).max(0).values,
    "var": lambda make: make(6, 50).var(1),
    "mean": lambda make: torch.stack(torch.var_mean(make(6, 50), 0)),
    "matmul": lambda make: make(6, 5) @ make(5, 7),
    "baddbmm": lambda make: torch.baddbmm(make(2, 6, 7), make(2, 6, 5), make(2, 5, 7)),
    "addmm_": lambda make: make(6, 7).clone().addmm_(make(6, 5), make(5, 7)),
    "arange": lambda make: torch.arange(7, device=make(1).device),
    "index": lambda make: make(6, 5)[torch.tensor([4, 0]), 1:3],
    "index_put": written(lambda x: x.__setitem__(torch.tensor([4, 0]), 3.0)),
    "index_add": written(
        lambda x: x.index_add_(0, torch.tensor([1, 1], device=x.device), x[:2] + 1)
    ),
    "gather": lambda make: make(6, 5).gather(1, make(6, 5).argsort(1)),
    "nonzero": lambda make: (make(6, 5) > 0.5).nonzero(),
    "cumsum": lambda make: make(6, 50).cumsum(1),
    "cummax": lambda make: torch.stack([*map(torch.Tensor.double, make(9, 5).cummax(0))]),
    "sort": lambda make: make(6, 50).sort(1).values,
    "topk": lambda make: make(6, 50).topk(3).indices,
    "searchsorted": lambda make: torch.searchsorted(make(50).sort().values, make(6)),
    "softmax": lambda make: make(6, 50).softmax(0),
    "cross_entropy": lambda make: F.cross_entropy(make(6, 5), make(6, 5).argmax(1)),
    "layer_norm": module(torch.nn.LayerNorm, 8, shape=(3, 8)),
    "batch_norm": module(torch.nn.BatchNorm2d, 3, shape=(2, 3, 4, 4)),
    "attention": attention,
    "attention that is composed": composed_attention,
    "conv": module(torch.nn.Conv2d, 3, 4, 3, shape=(2, 3, 8, 8)),
    "conv_transpose": module(torch.nn.ConvTranspose2d, 3, 4, 3, shape=(2, 3, 8, 8)),
    "lstm": module(torch.nn.LSTM, 8, 6, shape=(4, 2, 8), num_layers=2),
    "gru": module(torch.nn.GRU, 8, 6, shape=(4, 2, 8), bidirectional=True),
    "rnn": module(torch.nn.RNN, 8, 6, shape=(4, 2, 8)),
    "max_pool": gradient(lambda x: F.max_pool2d(x, 2)),
    "avg_pool": gradient(lambda x: F.avg_pool2d(x, 3, padding=1)),
    "interpolate": gradient(lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear")),
    "solve": lambda make: torch.linalg.solve(make(4, 4) + torch.eye(4, device=make(1).device), make(4, 2)),
    "sgd": trained("SGD", momentum=0.9),
    "adam": trained("AdamW"),
}
gpu = torch.device("cuda", 0)
for name, run in FAMILIES.items():
    for schedule in torch.cuda.sim_schedules(seeds=0):
        found = run(lambda *shape: parts(*shape, device=gpu)).cpu()
        torch.testing.assert_close(
            found, run(lambda *shape: parts(*shape, device="cpu")), msg=f"{name} is wrong"
        )
x = torch.empty(1000, device=gpu)[10:900].uniform_()  # other numbers than the CPU's
assert 0.4 < x.mean().item() < 0.6
"""


def test_kernels_touch_what_the_core_says():
    python(FAMILIES, PYDEVTENSOR_SIM_GPUS="1", PYDEVTENSOR_SIM_RACES="strict")
