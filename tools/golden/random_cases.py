"""The numbers that PyTorch's generator on the CPU gives after a seed.

A script is a seed and calls in turn, each with the numbers it gave, as hexadecimal floats.
"""

from describe import describe

SIZES = (1, 2, 5, 15, 16, 17, 31, 32, 33, 100)
DTYPES = ("float32", "float64")

# fmt: off
# After each seed of a row, the row's calls in this order, from one generator.
SCRIPTS = [
    # The second of a pair of normal numbers waits for the next call that needs one, of
    # whatever type, and survives every other draw but not a new seed.
    (0, "torch.randn(1); torch.rand(2); torch.randn(1); torch.randn(3); torch.rand(1); "
        "torch.randn(2)"),
    (1, "torch.randn(3); torch.rand(3); torch.randn(3)"),
    (2, "torch.randn(1); torch.randn(1, dtype=torch.float64); torch.randn(1)"),
    (3, "torch.randn(15); torch.randn(16); torch.randn(15); torch.randn(17)"),
    (4, "torch.randn(1); torch.randn(40); torch.randn(1)"),
    (5, "torch.randn(1); torch.manual_seed(5).initial_seed(); torch.randn(1)"),
    (6, "torch.rand(2, 3); torch.rand((3, 2)); torch.rand(size=(2, 2)); torch.rand(()); "
        "torch.rand(0); torch.rand(1)"),
    (7, "torch.randn(2, 3); torch.randn((3, 2)); torch.randn(size=(4, 4)); torch.randn(()); "
        "torch.randn(0); torch.randn(2)"),
    (8, "torch.rand(3, dtype=torch.float64); torch.rand(3); torch.rand(1, dtype=torch.float64)"),
    (9, "torch.empty(5).uniform_(); torch.empty(5).uniform_(-1, 1); "
        "torch.empty(5).uniform_(10, 20); torch.empty(5).uniform_(0.1, 0.3); "
        "torch.empty(5, dtype=torch.float64).uniform_(-3, 7); torch.empty(17).uniform_(1, 1)"),
    (10, "torch.empty(5).normal_(); torch.empty(5).normal_(10, 2); "
         "torch.empty(20).normal_(-3, 0.01); torch.empty(5).normal_(0, 0); "
         "torch.empty(5, dtype=torch.float64).normal_(1, 2); "
         "torch.empty(20, dtype=torch.float64).normal_(1, 2)"),
    (11, "torch.empty(5).uniform_(to=5); torch.empty(5).uniform_(to=2, **{'from': 1}); "
         "torch.empty(5).normal_(mean=3); torch.empty(5).normal_(std=0.5)"),
    (12, "torch.zeros(3, 4).t().uniform_(); torch.zeros(20)[::2].uniform_(); "
         "torch.zeros(4, 6)[:, 1:3].uniform_(); torch.zeros(2, 3, 4).permute(2, 0, 1).uniform_()"),
    (13, "torch.zeros(3, 4).t().normal_(); torch.zeros(20)[::2].normal_(); "
         "torch.zeros(4, 6)[:, 1:3].normal_(); torch.zeros(5, 4).t().normal_()"),
    (14, "torch.zeros(40)[::2].normal_(); torch.zeros(8, 8).t().normal_(); "
         "torch.zeros(8, 8)[:, :5].normal_(2, 3); torch.randn(1)"),
    (15, "torch.zeros(40, dtype=torch.float64)[::2].normal_(); "
         "torch.zeros(6, 6, dtype=torch.float64).t().normal_()"),
    (16, "torch.rand_like(torch.zeros(2, 3)); torch.randn_like(torch.zeros(2, 3)); "
         "torch.rand_like(torch.zeros(2, 3).t()); torch.randn_like(torch.zeros(4, 5).t()); "
         "torch.rand_like(torch.zeros(3), dtype=torch.float64)"),
    (2**31, "torch.rand(3); torch.randn(3)"),
    (2**32 - 1, "torch.rand(3)"),
    (2**32 + 5, "torch.rand(3)"),
    (5, "torch.rand(3)"),
    (2**63 - 1, "torch.rand(3)"),
    (-1, "torch.rand(3); torch.initial_seed()"),
    (-(2**63), "torch.rand(1)"),
    (17, "torch.rand(700).sum().item() > 0; torch.rand(3)"),
    (18, "torch.initial_seed(); torch.seed() >= 0"),
    (19, "torch.rand(3, generator=torch.Generator().manual_seed(7)); torch.rand(3); "
         "torch.randn(3, generator=torch.Generator().manual_seed(7)); torch.randn(3)"),
    (20, "torch.get_rng_state().shape; torch.get_rng_state().dtype; "
         "torch.Generator().get_state().shape; torch.Generator().initial_seed(); "
         "torch.default_generator.initial_seed(); torch.Generator().device"),
]
# Of names that come after those of the GPU chapter.
LATER = [
    (21, "torch.randint(10, (12,)); torch.randint(-5, 5, (3, 4)); torch.rand(1); "
         "torch.randint(0, 2**27, (5,)); torch.randint(0, 2**28, (5,)); "
         "torch.randint(0, 2**40, (5,)); torch.randint(-2**63, 2**63 - 1, (3,)); "
         "torch.randint(high=3, size=(4,)); torch.randint(3, (4,), dtype=torch.int32)"),
    (22, "torch.randperm(1); torch.randperm(10); torch.rand(1); torch.randperm(33); "
         "torch.randperm(0); torch.rand(1)"),
    (23, "torch.bernoulli(torch.full((12,), 0.3)); "
         "torch.bernoulli(torch.full((12,), 0.3, dtype=torch.float64)); "
         "torch.zeros(12).bernoulli_(0.6); torch.zeros(12).bernoulli_(); torch.rand(1)"),
    (24, "torch.randn(1); torch.randint(5, (2,)); torch.randperm(3); "
         "torch.zeros(2).bernoulli_(0.5); torch.randn(1)"),
    (25, "torch.normal(0, 1, (5,)); torch.normal(2.0, 3.0, size=(20,)); "
         "torch.normal(torch.zeros(3), torch.ones(3)); torch.normal(torch.arange(20.0), 1.0); "
         "torch.normal(0.0, torch.ones(4)); torch.normal(0, 1, (2, 3))"),
    (26, "torch.zeros(5).random_(); torch.zeros(5, dtype=torch.int64).random_(); "
         "torch.zeros(5, dtype=torch.int32).random_(); torch.zeros(5).random_(10); "
         "torch.zeros(5).random_(3, 8)"),
    (27, "torch.zeros(6).exponential_(); torch.zeros(6).exponential_(2.5); torch.rand(1)"),
    (28, "torch.multinomial(torch.tensor([0.1, 0.2, 0.7]), 12, replacement=True); "
         "torch.multinomial(torch.tensor([0.1, 0.2, 0.3, 0.4]), 4); torch.rand(1)"),
    (29, "torch.randint_like(torch.zeros(5), 10); torch.rand(1)"),
    (30, "torch.randperm(7, dtype=torch.int32); torch.randperm(100, generator=torch.Generator().manual_seed(5)); "
         "torch.randperm(4, dtype=torch.float64); torch.rand(1)"),
    (31, "torch.zeros(3, 4).t().exponential_(); torch.zeros(40).exponential_(0.5); "
         "torch.zeros(9, dtype=torch.float64).exponential_(3); torch.rand(1)"),
    (32, "torch.multinomial(torch.tensor([[1.0, 2, 3], [0, 5, 1]]), 2); torch.rand(1); "
         "torch.multinomial(torch.tensor([[1.0, 2, 3], [0, 5, 1]]), 7, replacement=True); torch.rand(1); "
         "torch.multinomial(torch.arange(20.0), 20); torch.multinomial(torch.arange(20.0), 1, True); "
         "torch.arange(9, dtype=torch.float64).multinomial(8); "
         "torch.multinomial(torch.arange(9, dtype=torch.float64), 30, True); torch.rand(1)"),
    (33, "torch.bernoulli(torch.rand(3, 5).t()); torch.bernoulli(torch.zeros(4), 0.5); "
         "torch.zeros(6).bernoulli_(torch.tensor(0.5)); torch.zeros(2, 6).bernoulli_(torch.linspace(0, 1, 6)); "
         "torch.zeros(6, dtype=torch.int64).bernoulli_(torch.full((6,), 0.5, dtype=torch.float64)); "
         "torch.rand(4).bernoulli(); torch.rand(1)"),
    (34, "torch.normal(torch.zeros(2, 1), torch.ones(3)); torch.normal(torch.arange(30.0), torch.arange(30.0)); "
         "torch.normal(torch.arange(4, dtype=torch.float64)); torch.normal(5.0, torch.arange(18.0)); "
         "torch.normal(mean=torch.zeros(3), std=torch.ones(3), generator=torch.Generator().manual_seed(3)); torch.randn(1)"),
    (35, "torch.rand(3); torch.randn(1); torch.get_rng_state()[:20]; torch.get_rng_state()[5016:]; "
         "torch.set_rng_state(torch.Generator().manual_seed(9).get_state()); torch.rand(2); torch.initial_seed()"),
    (36, "torch.tensor([int(i) for b in torch.utils.data.DataLoader(range(10), 3, shuffle=True) for i in b]); "
         "torch.rand(1); "
         "torch.tensor([int(i) for b in torch.utils.data.DataLoader(range(10), 4) for i in b]); "
         "torch.rand(1); "
         "torch.tensor([int(i) for b in torch.utils.data.DataLoader(range(10), 4, shuffle=True, num_workers=2) for i in b]); "
         "torch.rand(1)"),
    (37, "torch.tensor([int(i) for i in torch.utils.data.RandomSampler(range(50), replacement=True, num_samples=40)]); "
         "torch.tensor([int(i) for i in torch.utils.data.RandomSampler(range(10), num_samples=25)]); "
         "torch.tensor([int(i) for i in torch.utils.data.SubsetRandomSampler([3, 5, 8, 9, 1])]); "
         "torch.tensor([int(i) for i in torch.utils.data.WeightedRandomSampler([0.1, 0.5, 0.4, 2], 9)]); "
         "torch.tensor([int(i) for i in torch.utils.data.WeightedRandomSampler([0.1, 0.5, 0.4, 2], 4, replacement=False)]); "
         "torch.rand(1)"),
    (38, "torch.tensor([i for s in torch.utils.data.random_split(range(11), [0.5, 0.3, 0.2]) for i in s.indices]); "
         "torch.tensor([len(s) for s in torch.utils.data.random_split(range(11), [0.5, 0.3, 0.2])]); "
         "torch.tensor([i for s in torch.utils.data.random_split(range(7), [4, 3], generator=torch.Generator().manual_seed(2)) for i in s.indices]); "
         "torch.rand(1)"),
    (39, "torch.tensor([[int(i) for b in torch.utils.data.DataLoader(d, 3, shuffle=True, generator=g) for i in b] for d in [range(8)] for g in [torch.Generator().manual_seed(4)] for _ in range(3)]); "
         "torch.rand(1)"),
    (40, "torch.tensor([[int(i) for b in d for i in b] for d in [torch.utils.data.DataLoader(range(8), 3, shuffle=True, num_workers=1, persistent_workers=True)] for _ in range(3)]); "
         "torch.rand(1)"),
    (41, "torch.tensor([[float(v) for v in b] for b in torch.utils.data.DataLoader(range(6), 2, num_workers=2, collate_fn=lambda s: torch.rand(2))]); "
         "torch.rand(1)"),
    (50, "torch.rand(40, dtype=torch.float16); torch.randn(5, dtype=torch.float16); torch.randn(16, dtype=torch.float16); torch.randn(17, dtype=torch.float16); "
         "torch.randn(45, dtype=torch.float16); torch.rand(1); torch.empty(20, dtype=torch.float16).uniform_(-3, 7); "
         "torch.empty(3, dtype=torch.float16).normal_(1, 2); torch.empty(20, dtype=torch.float16).normal_(1, 2); "
         "torch.zeros(3, 4, dtype=torch.float16).t().normal_(); torch.zeros(40, dtype=torch.float16)[::2].uniform_(); torch.rand(1)"),
    (52, "torch.empty(6, dtype=torch.float16).random_(); torch.empty(6, dtype=torch.float16).random_(3, 200); "
         "torch.randint(5, 90, (5,), dtype=torch.float16); torch.zeros(9, dtype=torch.float16).bernoulli_(0.3); "
         "torch.bernoulli(torch.full((40,), 0.3, dtype=torch.float16)); torch.empty(6, dtype=torch.float16).exponential_(2); "
         "torch.randperm(7, dtype=torch.float16); torch.arange(9, dtype=torch.float16).multinomial(8); "
         "torch.multinomial(torch.arange(9, dtype=torch.float16), 12, True); torch.rand(1)"),
    (51, "torch.rand(40, dtype=torch.bfloat16); torch.randn(5, dtype=torch.bfloat16); torch.randn(16, dtype=torch.bfloat16); torch.randn(17, dtype=torch.bfloat16); "
         "torch.randn(45, dtype=torch.bfloat16); torch.rand(1); torch.empty(20, dtype=torch.bfloat16).uniform_(-3, 7); "
         "torch.empty(3, dtype=torch.bfloat16).normal_(1, 2); torch.empty(20, dtype=torch.bfloat16).normal_(1, 2); "
         "torch.zeros(3, 4, dtype=torch.bfloat16).t().normal_(); torch.zeros(40, dtype=torch.bfloat16)[::2].uniform_(); torch.rand(1)"),
    (53, "torch.empty(6, dtype=torch.bfloat16).random_(); torch.empty(6, dtype=torch.bfloat16).random_(3, 200); "
         "torch.randint(5, 90, (5,), dtype=torch.bfloat16); torch.zeros(9, dtype=torch.bfloat16).bernoulli_(0.3); "
         "torch.bernoulli(torch.full((40,), 0.3, dtype=torch.bfloat16)); torch.empty(6, dtype=torch.bfloat16).exponential_(2); "
         "torch.randperm(7, dtype=torch.bfloat16); torch.arange(9, dtype=torch.bfloat16).multinomial(8); "
         "torch.multinomial(torch.arange(9, dtype=torch.bfloat16), 12, True); torch.rand(1)"),
]
# fmt: on


def make(torch):
    scripts = [run(torch, seed, calls.split("; ")) for seed, calls in SCRIPTS]
    for dtype in DTYPES:
        for seed in (0, 42):
            for size in SIZES:
                for name in ("rand", "randn"):
                    call = f"torch.{name}({size}, dtype=torch.{dtype})"
                    scripts.append(run(torch, seed, [call]))
    return {
        "scripts": scripts,
        "later": [run(torch, seed, calls.split("; ")) for seed, calls in LATER],
    }


def run(torch, seed, calls):
    torch.manual_seed(seed)
    steps = []
    for call in calls:
        found = describe(eval(call, {"torch": torch}), torch)
        if isinstance(found, dict) and "tensor" in found:
            found["values"] = [
                short_hex(each) if isinstance(each, float) else each
                for each in found["values"]
            ]
            del found["stride"]
        steps.append([call, found])
    return {"seed": seed, "steps": steps}


def short_hex(value):
    """float.hex without the zeros at the end of its digits; float.fromhex reads it."""
    mantissa, exponent = value.hex().split("p")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}p{exponent}"
