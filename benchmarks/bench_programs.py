"""Training steps of whole programs: milliseconds and memory, beside PyTorch.

python benchmarks/bench_programs.py [rounds]

Each program runs in a process of its own, of each library in turn, so that its largest
memory is its own: what the steps add to the imports. Times are the least of a step.
"""

import itertools
import json
import os
import resource
import subprocess
import sys
import time

from compare import rounds

NAMES = ("pydevtensor", "torch")


def lenet_of(nn):
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.Sigmoid(), nn.AvgPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.Sigmoid(), nn.AvgPool2d(2), nn.Flatten()),
        *(nn.Linear(400, 120), nn.Sigmoid(), nn.Linear(120, 84), nn.Sigmoid()),
        nn.Linear(84, 10),
    )


def lenet(torch, nn, F):
    net = lenet_of(nn)
    x, y = torch.randn(256, 1, 28, 28), torch.arange(256) % 10
    return net, lambda: F.cross_entropy(net(x), y)


def resnet(torch, nn, F):
    class Residual(nn.Module):
        def __init__(self, channels, out, stride):
            super().__init__()
            self.one = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
            self.two = nn.Conv2d(out, out, 3, 1, 1, bias=False)
            self.norms = nn.ModuleList([nn.BatchNorm2d(out), nn.BatchNorm2d(out)])
            self.side = nn.Identity()
            if stride > 1 or channels != out:
                self.side = nn.Conv2d(channels, out, 1, stride, bias=False)

        def forward(self, x):
            y = F.relu(self.norms[0](self.one(x)))
            return F.relu(self.norms[1](self.two(y)) + self.side(x))

    widths = (64, 64, 64, 128, 128, 256, 256, 512, 512)
    blocks = [Residual(a, b, 1 if a == b else 2) for a, b in itertools.pairwise(widths)]
    net = nn.Sequential(
        *(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()),
        *(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)),
    )
    x, y = torch.randn(32, 3, 32, 32), torch.arange(32) % 10
    return net, lambda: F.cross_entropy(net(x), y)


def gpt(torch, nn, F):
    """GPT-2's width and heads, four of its twelve layers, a small vocabulary."""
    width, heads, length, words = 768, 12, 256, 4096

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
            self.mixed = nn.Linear(width, 3 * width)
            self.out = nn.Linear(width, width)
            self.up, self.down = (
                nn.Linear(width, 4 * width),
                nn.Linear(4 * width, width),
            )

        def forward(self, x):
            shape = x.shape[0], length, heads, width // heads
            q, k, v = (
                part.reshape(shape).transpose(1, 2)
                for part in self.mixed(self.norms[0](x)).chunk(3, -1)
            )
            found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(found.transpose(1, 2).reshape(x.shape))
            return x + self.down(F.gelu(self.up(self.norms[1](x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(words, width)
            self.places = nn.Embedding(length, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(4)))
            self.norm = nn.LayerNorm(width)

        def forward(self, at):
            x = self.tokens(at) + self.places(torch.arange(length))
            return self.norm(self.blocks(x)) @ self.tokens.weight.t()

    net = Model()
    at = torch.randint(0, words, (2, length))
    return net, lambda: F.cross_entropy(net(at).flatten(0, 1), at.flatten())


def lstm(torch, nn, F):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(5000, 200)
            self.lstm = nn.LSTM(200, 200, 2, dropout=0.2)
            self.out = nn.Linear(200, 5000)

        def forward(self, at):
            return self.out(self.lstm(self.tokens(at))[0])

    net = Model()
    at = torch.randint(0, 5000, (35, 20))
    return net, lambda: F.cross_entropy(net(at).flatten(0, 1), at.flatten())


def unet(torch, nn, F):
    def pair(channels, out):
        return nn.Sequential(
            *(nn.Conv2d(channels, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU()),
            *(nn.Conv2d(out, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU()),
        )

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList([pair(3, 32), pair(32, 64), pair(64, 128)])
            self.up = nn.ModuleList(
                [nn.ConvTranspose2d(128, 64, 2, 2), nn.ConvTranspose2d(64, 32, 2, 2)]
            )
            self.join = nn.ModuleList([pair(128, 64), pair(64, 32)])
            self.out = nn.Conv2d(32, 2, 1)

        def forward(self, x):
            one = self.down[0](x)
            two = self.down[1](F.max_pool2d(one, 2))
            x = self.down[2](F.max_pool2d(two, 2))
            for up, join, kept in zip(self.up, self.join, (two, one), strict=True):
                x = join(torch.cat([kept, up(x)], 1))
            return self.out(x)

    net = Model()
    x, y = torch.randn(4, 3, 96, 96), torch.randint(0, 2, (4, 96, 96))
    return net, lambda: F.cross_entropy(net(x), y)


def graph(torch, nn, F):
    """A graph network of two layers: messages are gathered and added by index."""
    nodes, edges, width = 5000, 40000, 64

    class Layer(nn.Module):
        def __init__(self, given, out):
            super().__init__()
            self.own, self.sent = nn.Linear(given, out), nn.Linear(given, out)

        def forward(self, x, source, target, degree):
            sums = torch.zeros(nodes, self.sent.out_features)
            sums = sums.index_add(0, target, self.sent(x)[source])
            return self.own(x) + sums / degree

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([Layer(128, width), Layer(width, 7)])

        def forward(self, x, *edge):
            return self.layers[1](F.relu(self.layers[0](x, *edge)), *edge)

    net = Model()
    source, target = torch.randint(0, nodes, (2, edges))
    degree = torch.bincount(target, minlength=nodes).clamp(min=1).unsqueeze(1)
    x, y = torch.randn(nodes, 128), torch.randint(0, 7, (nodes,))
    return net, lambda: F.cross_entropy(net(x, source, target, degree.float()), y)


def diffusion(torch, nn, F):
    """Predicts the noise that an image was given, from the image and the time."""

    class Block(nn.Module):
        def __init__(self, channels, out):
            super().__init__()
            self.norm = nn.GroupNorm(8, channels)
            self.one = nn.Conv2d(channels, out, 3, padding=1)
            self.two = nn.Conv2d(out, out, 3, padding=1)
            self.time = nn.Linear(64, out)
            self.side = nn.Conv2d(channels, out, 1)

        def forward(self, x, time):
            y = self.one(F.silu(self.norm(x))) + self.time(time)[:, :, None, None]
            return self.two(F.silu(y)) + self.side(x)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv2d(3, 32, 3, padding=1)
            self.blocks = nn.ModuleList([Block(32, 64), Block(64, 64), Block(96, 32)])
            self.out = nn.Conv2d(32, 3, 3, padding=1)

        def forward(self, x, at):
            waves = at[:, None] * torch.exp(torch.linspace(0, -6, 32))
            time = torch.cat([waves.sin(), waves.cos()], 1)
            x = self.first(x)
            y = self.blocks[1](self.blocks[0](F.avg_pool2d(x, 2), time), time)
            y = F.interpolate(y, scale_factor=2.0, mode="nearest")
            return self.out(self.blocks[2](torch.cat([x, y], 1), time))

    net = Model()
    x = torch.randn(16, 3, 32, 32)

    def loss():
        noise, at = torch.randn_like(x), torch.rand(16)
        given = at[:, None, None, None]
        return F.mse_loss(net((1 - given).sqrt() * x + given.sqrt() * noise, at), noise)

    return net, loss


PROGRAMS = {
    "LeNet, batch 256": lenet,
    "ResNet-18, batch 32, 32 x 32": resnet,
    "GPT of 768, 4 layers, 2 x 256": gpt,
    "LSTM language model of 200": lstm,
    "U-Net, batch 4, 96 x 96": unet,
    "graph network, 40,000 edges": graph,
    "diffusion, batch 16, 32 x 32": diffusion,
}


def measure(name, title, seconds=4):
    """Runs in a process of its own; prints what main() reads."""
    torch = __import__(name)
    torch.manual_seed(0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    net, loss = PROGRAMS[title](torch, torch.nn, torch.nn.functional)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    best, losses, end = float("inf"), [], time.perf_counter() + seconds
    while len(losses) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        found = loss()
        optimizer.zero_grad()
        found.backward()
        optimizer.step()
        losses.append(found.item())
        best = min(best, time.perf_counter() - start)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"ms": best * 1e3, "MB": (after - before) / 1024}))


def run(name, title):
    done = subprocess.run(
        [sys.executable, __file__, "--measure", name, title],
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout) if done.returncode == 0 else None


def main():
    print(f"{os.cpu_count()} processors; the least of each figure\n")
    for title in PROGRAMS:
        found = {name: [] for name in NAMES}
        for _ in range(rounds(2)):
            for name in NAMES:
                if (result := run(name, title)) is not None:
                    found[name].append(result)
        row = [f"{title:30}"]
        least = {}
        for name, results in found.items():
            if results:
                least[name] = {k: min(r[k] for r in results) for k in ("ms", "MB")}
                row.append("{} {ms:8.1f} ms {MB:6.0f} MB".format(name, **least[name]))
        if len(least) == 2:
            ours, theirs = least["pydevtensor"], least["torch"]
            row.append(f"time {ours['ms'] / theirs['ms']:.2f}")
            row.append(f"memory {ours['MB'] / theirs['MB']:.2f}")
        print("  ".join(row), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(*sys.argv[2:4])
    else:
        main()
