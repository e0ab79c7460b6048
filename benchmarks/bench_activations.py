"""Activations: milliseconds a call, forward and with the backward pass, beside PyTorch.

python benchmarks/bench_activations.py [rounds]
"""

from compare import compare, scopes_of

SETUP = """
F = torch.nn.functional
x = torch.randn(4000, 1000)
leaf = x.clone().requires_grad_()
slope = torch.full((1000,), 0.2)
def learn(y):
    leaf.grad = None
    y.sum().backward()
"""
CALLS = [
    "F.relu({})",
    "F.leaky_relu({})",
    "F.elu({})",
    "F.selu({})",
    "F.celu({}, 0.5)",
    "F.gelu({})",
    "F.gelu({}, approximate='tanh')",
    "F.silu({})",
    "F.mish({})",
    "F.softplus({})",
    "F.logsigmoid({})",
    "F.hardtanh({})",
    "F.relu6({})",
    "F.hardswish({})",
    "F.hardsigmoid({})",
    "F.softshrink({})",
    "F.hardshrink({})",
    "F.threshold({}, 0.1, 0.2)",
    "F.prelu({}, slope)",
    "F.glu({})",
    "F.softsign({})",
    "F.tanhshrink({})",
    "{}.clamp(-1, 1)",
]
CASES = [(call.format("x"), call.format("x")) for call in CALLS]
CASES += [
    (call.format("x") + ", both", f"learn({call.format('leaf')})") for call in CALLS
]


def main():
    compare(CASES, scopes_of(SETUP), "ms", 10)


if __name__ == "__main__":
    main()
