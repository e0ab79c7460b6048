"""Training: microseconds a step, beside PyTorch.

python benchmarks/bench_learning.py [rounds]
"""

from compare import compare, libraries


def tiny_forward(lib):
    """a * b that records a gradient."""
    a = lib.ones(3, requires_grad=True)
    b = lib.ones(3)
    return lambda: a * b


def tiny_linear(lib):
    net = lib.nn.Linear(4, 4)
    x = lib.ones(1, 4)
    return lambda: net(x)


def tiny_backward(lib):
    a = lib.ones(3, requires_grad=True)
    b = lib.ones(3)

    def run():
        a.grad = None
        (a * b).sum().backward()

    return run


def mlp(optimizer, **options):
    """A step of a perceptron 784-256-10 on 256 samples."""

    def make(lib):
        lib.manual_seed(0)
        nn = lib.nn
        net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
        loss = nn.CrossEntropyLoss()
        x, y = lib.randn(256, 784), lib.arange(256) % 10
        trainer = getattr(lib.optim, optimizer)(net.parameters(), **options)

        def run():
            trainer.zero_grad()
            loss(net(x), y).backward()
            trainer.step()

        return run

    return make


def hundred(optimizer, **options):
    """A step over 100 tensors of 1000 elements."""

    def make(lib):
        ps = [lib.nn.Parameter(lib.ones(1000)) for _ in range(100)]
        for p in ps:
            p.grad = lib.full_like(p, 1e-3)
        trainer = getattr(lib.optim, optimizer)(ps, **options)
        return trainer.step

    return make


def clip(lib):
    """clip_grad_norm_ of 100 tensors of 1000 elements."""
    ps = [lib.nn.Parameter(lib.ones(1000)) for _ in range(100)]
    for p in ps:
        p.grad = lib.ones_like(p)
    return lambda: lib.nn.utils.clip_grad_norm_(ps, 1.0)


CASES = [
    ("a * b, recorded", tiny_forward),
    ("Linear(4, 4)", tiny_linear),
    ("(a * b).sum().backward()", tiny_backward),
    ("MLP step, SGD", mlp("SGD", lr=0.01)),
    ("MLP step, SGD momentum", mlp("SGD", lr=0.01, momentum=0.9)),
    ("MLP step, Adam", mlp("Adam", lr=1e-4)),
    ("100 x 1000, SGD", hundred("SGD", lr=1e-3)),
    ("100 x 1000, momentum", hundred("SGD", lr=1e-3, momentum=0.9)),
    ("100 x 1000, Adam", hundred("Adam", lr=1e-4)),
    ("100 x 1000, AdamW", hundred("AdamW", lr=1e-4)),
    ("100 x 1000, RMSprop", hundred("RMSprop", lr=1e-4)),
    ("100 x 1000, clip norm", clip),
]


def main():
    found = libraries("pydevtensor", "torch")
    compare(CASES, found, repeat=25, least=0.01)


if __name__ == "__main__":
    main()
