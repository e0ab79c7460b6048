"""Convolutions and training steps of small networks: milliseconds, beside PyTorch.

python benchmarks/bench_networks.py [rounds]

After the table come single layers with the share of the machine's peak that they
reach: that of a product of two matrices of 1024 x 1024 here.
"""

import time

from compare import compare, scopes_of

SETUP = """
nn, F = torch.nn, torch.nn.functional
torch.manual_seed(0)

def learner(net, *shape):
    x, y = torch.randn(*shape), torch.arange(shape[0]) % 10
    net(x)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    def step():
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return step

class Residual(nn.Module):
    def __init__(self, channels, out, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(out), nn.BatchNorm2d(out)
        self.conv3 = None
        if stride != 1 or channels != out:
            self.conv3 = nn.Conv2d(channels, out, 1, stride, bias=False)
    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.conv3 is None else self.conv3(x)))

class Mean(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))

def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.Sigmoid(), nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 5), nn.Sigmoid(), nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.Sigmoid(), nn.Linear(120, 84), nn.Sigmoid(),
        nn.Linear(84, 10))

def resnet():
    sizes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1),
             (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        *(Residual(*size) for size in sizes), Mean(), nn.Linear(512, 10))

def vgg():
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 128, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(128, 256, 3, 1, 1), nn.ReLU(),
        nn.Conv2d(256, 256, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2),
        Mean(), nn.Linear(256, 10))

lenet_step = learner(lenet(), 256, 1, 28, 28)
resnet_step = learner(resnet(), 64, 3, 32, 32)
vgg_step = learner(vgg(), 4, 3, 96, 96)
"""
CASES = [
    ("LeNet, batch 256, 28 x 28", "lenet_step()"),
    ("ResNet-18, batch 64, 32 x 32", "resnet_step()"),
    ("VGG's first blocks, batch 4, 96 x 96", "vgg_step()"),
]

LAYER = """
x = torch.randn({0}, {1}, {2}, {2}, requires_grad=True)
w = torch.randn({3}, {1} // {7}, {4}, {4}, requires_grad=True)
options = dict(stride={5}, padding={6}, groups={7})
y = F.conv2d(x, w, **options)
g = torch.ones_like(y)
constant_x, constant_w = x.detach(), w.detach()
"""
PARTS = {
    "forward": "F.conv2d(constant_x, constant_w, **options)",
    "and dx": "torch.autograd.grad(F.conv2d(x, constant_w, **options), x, g)",
    "and dw": "torch.autograd.grad(F.conv2d(constant_x, w, **options), w, g)",
}
# batch, channels, size, channels out, kernel, stride, padding, groups
LAYERS = [
    (256, 1, 28, 6, 5, 1, 2, 1),
    (256, 6, 14, 16, 5, 1, 0, 1),
    (16, 64, 32, 64, 3, 1, 1, 1),
    (16, 64, 32, 128, 3, 2, 1, 1),
    (16, 128, 16, 128, 3, 1, 1, 1),
    (16, 256, 8, 256, 3, 1, 1, 1),
    (16, 512, 4, 512, 3, 1, 1, 1),
    (16, 64, 32, 128, 1, 1, 0, 1),
    (4, 3, 112, 64, 3, 1, 1, 1),
    (16, 64, 32, 64, 3, 1, 1, 64),
]


def seconds(code, scope, rounds=12):
    code = compile(code, "layer", "exec")
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        exec(code, scope)
        best = min(best, time.perf_counter() - start)
    return best


def layers(scopes):
    peaks = {}
    for name, scope in scopes.items():
        exec("a = torch.randn(1024, 1024)", scope)
        peaks[name] = 2 * 1024**3 / seconds("a @ a", scope)
    peak = max(peaks.values())
    print(f"\npeak: {peak / 1e9:.0f} billion operations a second")
    for sizes in LAYERS:
        n, channels, size, out, kernel, stride, padding, groups = sizes
        print(
            f"{n} x {channels} x {size}^2 to {out}, {kernel}^2, stride {stride}", end=""
        )
        print(f", {groups} groups" if groups > 1 else "")
        side = (size + 2 * padding - kernel) // stride + 1
        work = 2 * n * out * side**2 * channels // groups * kernel**2
        for scope in scopes.values():
            exec(LAYER.format(*sizes), scope)
        for part, code in PARTS.items():
            times = {name: seconds(code, scope) for name, scope in scopes.items()}
            of_peak = (
                work * (1 if part == "forward" else 2) / times["pydevtensor"] / peak
            )
            row = "  ".join(f"{name} {t * 1e3:8.2f} ms" for name, t in times.items())
            ratio = times.get("torch", 0) / times["pydevtensor"]
            print(
                f"  {part:8} {row}  {of_peak:4.0%} of the peak  torch/ours {ratio:.2f}"
            )


def main():
    scopes = scopes_of(SETUP)
    compare(CASES, scopes, "ms", 5)
    layers(scopes)


if __name__ == "__main__":
    main()
