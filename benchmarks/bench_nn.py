"""Softmax, normalization, losses: milliseconds a call, beside PyTorch.

python benchmarks/bench_nn.py [rounds]
"""

from compare import compare, scopes_of

SETUP = """
F = torch.nn.functional
x = torch.randn(10000, 1000)
y = torch.softmax(x, 1)
tall = torch.randn(1000, 10000)
w, b = torch.randn(1000), torch.randn(1000)
layer = torch.randn(10000, 1000, requires_grad=True)
weight, bias = w.clone().requires_grad_(), b.clone().requires_grad_()
few, few_classes = torch.randn(256, 10, requires_grad=True), torch.arange(256) % 10
many, many_classes = torch.randn(8192, 1000, requires_grad=True), torch.arange(8192)
many_classes = many_classes % 1000
images = torch.randn(64, 32, 28, 28, requires_grad=True)
scale, shift = torch.ones(32, requires_grad=True), torch.zeros(32, requires_grad=True)
def learn(loss, *leaves):
    for leaf in leaves:
        leaf.grad = None
    loss.backward()
"""
CASES = [
    ("softmax 10000 x 1000", "torch.softmax(x, 1)"),
    ("log_softmax 10000 x 1000", "torch.log_softmax(x, 1)"),
    ("logsumexp 10000 x 1000", "torch.logsumexp(x, 1)"),
    ("softmax of columns, 1000 x 10000", "torch.softmax(tall, 0)"),
    ("layer_norm 10000 x 1000", "F.layer_norm(x, (1000,), w, b)"),
    (
        "layer_norm, forward and backward",
        "learn(F.layer_norm(layer, (1000,), weight, bias).sum(), layer, weight, bias)",
    ),
    (
        "batch_norm 64 x 32 x 28 x 28, both",
        "y = F.batch_norm(images, None, None, scale, shift, True)\n"
        "learn(y.sum(), images, scale, shift)",
    ),
    (
        "group_norm of 8 groups, 64 x 32 x 28 x 28, both",
        "y = F.group_norm(images, 8, scale, shift)\n"
        "learn(y.sum(), images, scale, shift)",
    ),
    (
        "instance_norm 64 x 32 x 28 x 28, both",
        "y = F.instance_norm(images, None, None, scale, shift)\n"
        "learn(y.sum(), images, scale, shift)",
    ),
    (
        "rms_norm, forward and backward",
        "learn(F.rms_norm(layer, (1000,), weight).sum(), layer, weight)",
    ),
    ("cross_entropy 256 x 10, both", "learn(F.cross_entropy(few, few_classes), few)"),
    (
        "cross_entropy 8192 x 1000, both",
        "learn(F.cross_entropy(many, many_classes), many)",
    ),
    ("copy 10000 x 1000", "x.clone()"),
]


def main():
    compare(CASES, scopes_of(SETUP), "ms", 20)


if __name__ == "__main__":
    main()
