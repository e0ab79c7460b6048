"""Pooling, padding, interpolation: milliseconds a call, beside PyTorch.

python benchmarks/bench_pooling.py [rounds]
"""

from compare import compare, scopes_of

SETUP = """
F = torch.nn.functional
torch.set_num_threads(2)
x = torch.randn(32, 64, 56, 56)
leaf = x.clone().requires_grad_()
small = torch.randn(256, 6, 28, 28)
few = small.clone().requires_grad_()
long = torch.randn(64, 100, 500)
def learn(f, x):
    x.grad = None
    f(x).sum().backward()
"""
CASES = [
    ("max_pool2d 2 stride 2", "F.max_pool2d(x, 2)"),
    ("max_pool2d 3 stride 2", "F.max_pool2d(x, 3, 2, 1)"),
    ("max_pool2d 2, both", "learn(lambda x: F.max_pool2d(x, 2), leaf)"),
    ("max_pool2d 3 stride 2, both", "learn(lambda x: F.max_pool2d(x, 3, 2, 1), leaf)"),
    ("max_pool2d 2 of 28 x 28", "F.max_pool2d(small, 2)"),
    ("max_pool2d 2 of 28 x 28, both", "learn(lambda x: F.max_pool2d(x, 2), few)"),
    ("max_pool1d over 100", "F.max_pool1d(long, 500)"),
    ("avg_pool2d 2 stride 2", "F.avg_pool2d(x, 2)"),
    ("avg_pool2d 3 stride 2", "F.avg_pool2d(x, 3, 2, 1)"),
    ("avg_pool2d 2, both", "learn(lambda x: F.avg_pool2d(x, 2), leaf)"),
    ("avg_pool2d 3 stride 1, both", "learn(lambda x: F.avg_pool2d(x, 3, 1, 1), leaf)"),
    ("avg_pool2d 2 of 28 x 28, both", "learn(lambda x: F.avg_pool2d(x, 2), few)"),
    ("global average", "F.adaptive_avg_pool2d(x, 1)"),
    ("global average, both", "learn(lambda x: F.adaptive_avg_pool2d(x, 1), leaf)"),
    ("adaptive average to 7 x 7", "F.adaptive_avg_pool2d(x, 7)"),
    ("pad 1 with zeros", "F.pad(x, (1, 1, 1, 1))"),
    ("pad 1 by reflection", "F.pad(x, (1, 1, 1, 1), 'reflect')"),
    (
        "pad 1 by reflection, both",
        "learn(lambda x: F.pad(x, (1, 1, 1, 1), 'reflect'), leaf)",
    ),
    ("nearest to 112 x 112", "F.interpolate(x, scale_factor=2)"),
    ("bilinear to 112 x 112", "F.interpolate(x, scale_factor=2, mode='bilinear')"),
    ("bilinear to 28 x 28", "F.interpolate(x, scale_factor=0.5, mode='bilinear')"),
    (
        "bilinear to 112 x 112, both",
        "learn(lambda x: F.interpolate(x, scale_factor=2, mode='bilinear'), leaf)",
    ),
    ("bicubic to 112 x 112", "F.interpolate(x, scale_factor=2, mode='bicubic')"),
]


def main():
    compare(CASES, scopes_of(SETUP), "ms", 10)


if __name__ == "__main__":
    main()
