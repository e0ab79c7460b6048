"""float16 and bfloat16 on one thread, beside PyTorch: microseconds a call.

python benchmarks/bench_half.py [rounds]
"""

from compare import compare, libraries

CASES = [
    (f"{label}, {dtype}", work.format(dtype=dtype))
    for dtype in ("float16", "bfloat16")
    for label, work in (
        ("from float32", "wide.to(torch.{dtype})"),
        ("to float32", "{dtype}.float()"),
        ("a + b", "{dtype} + {dtype}"),
        ("exp", "torch.exp({dtype})"),
        ("sum", "{dtype}.sum()"),
        ("256 x 256 x 256", "{dtype}_matrix @ {dtype}_matrix"),
    )
]


def main():
    scopes = {}
    for name, torch in libraries("pydevtensor", "torch").items():
        torch.set_num_threads(1)
        wide, matrix = torch.rand(1_000_000), torch.rand(256, 256)
        scopes[name] = {"torch": torch, "wide": wide}
        for dtype in ("float16", "bfloat16"):
            scopes[name][dtype] = wide.to(getattr(torch, dtype))
            scopes[name][f"{dtype}_matrix"] = matrix.to(getattr(torch, dtype))
    compare(CASES, scopes, repeat=7, least=0.05)


if __name__ == "__main__":
    main()
