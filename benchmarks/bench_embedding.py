"""Rows 1600 x 64 of a table of 10000, on one thread, beside PyTorch.

python benchmarks/bench_embedding.py [rounds]
"""

from compare import compare, scopes_of

SETUP = """
torch.set_num_threads(1)
embedding = torch.nn.functional.embedding
weight, small = torch.randn(10000, 64), torch.randn(10, 4)
numbers, few = torch.randint(0, 10000, (32, 50)), torch.tensor([1, 2])
leaf = weight.clone().requires_grad_()
"""
CASES = [
    ("forward", "embedding(numbers, weight)"),
    (
        "forward and backward",
        "leaf.grad = None; embedding(numbers, leaf).sum().backward()",
    ),
    ("2 rows of 4", "embedding(few, small)"),
]


def main():
    compare(CASES, scopes_of(SETUP), repeat=7, least=0.05)


if __name__ == "__main__":
    main()
