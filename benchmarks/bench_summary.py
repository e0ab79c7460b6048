"""Operations and small programs beside other libraries, and their limits.

    python benchmarks/bench_summary.py [rounds] [--write]

Each round starts a process for each library, one after the other: threads of one that
wait awake take no core from the next. Prints a table: medians of the rounds, their
spread, the time that the machine's limits allow, and the ratio to the best of the
others. --write: also to results/summary-cpu.md, with a picture. Cases marked "fused"
run in torch.fused() here, and are compiled by torch.compile (inductor) in one column of
PyTorch.

The limit of a case is its bytes over the largest rate of bytes that any library reached
in the run, or its multiplications and additions over the largest rate of those.
"""

import json
import platform
import statistics
import subprocess
import sys
from datetime import date
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from compare import UNITS, measure, rounds
from gpu_report import table
from summary_plot import svg

COMPILED = "torch.compile"
NAMES = "pydevtensor", "torch", COMPILED, "tensorplay", "numpy"
RESULTS = Path(__file__).parent / "results"
THREADS = 2
SETUP = """
torch.manual_seed(0)
big, other, small = (torch.randn(10_000_000) for _ in range(3))
rows, wide = torch.randn(4000, 2500), torch.randn(10_000, 1000)
parts = [torch.randn(1000, 1000) for _ in range(8)]
m256, m1024 = torch.randn(256, 256), torch.randn(1024, 1024)
weight, bias = torch.randn(1000), torch.randn(1000)
x = torch.randn(4)
"""
# Names that TensorPlay has not, or has otherwise.
MORE = """
F, nn = torch.nn.functional, torch.nn
linear, four = nn.Linear(4, 4), torch.randn(4)
images = torch.randint(0, 256, (32, 224, 224, 3), dtype=torch.uint8)
at = torch.randint(0, 1000, (1_000_000,))
values, sums = torch.randn(1_000_000), torch.zeros(1000)
def gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x ** 3)))
def adam(x, m, v):
    return x - 0.1 * (0.9 * m + 0.1 * x) / ((v * v).sqrt() + 1e-8)
def learner(optimizer):
    net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    data, labels = torch.randn(256, 784), torch.arange(256) % 10
    steps = optimizer(net.parameters())
    def learn():
        steps.zero_grad()
        F.cross_entropy(net(data), labels).backward()
        steps.step()
    return learn
with_sgd = learner(lambda p: torch.optim.SGD(p, 0.1))
with_adam = learner(lambda p: torch.optim.Adam(p))
"""
ARRAYS = """
generator = np.random.default_rng(0)
def randn(*shape):
    return generator.standard_normal(shape, np.float32)
big, other, small = (randn(10_000_000) for _ in range(3))
rows, wide = randn(4000, 2500), randn(10_000, 1000)
parts = [randn(1000, 1000) for _ in range(8)]
m256, m1024 = randn(256, 256), randn(1024, 1024)
x, four = randn(4), randn(4)
at, values, sums = generator.integers(0, 1000, 1_000_000), randn(1_000_000), randn(1000)
"""


class Case(NamedTuple):
    """What a row times. all: TensorPlay has it. bytes, flops: of a call. fused: our
    calls are fused, and torch.compile takes part."""

    label: str
    code: str
    numpy: str | None = None
    bytes: float = 0
    flops: float = 0
    all: bool = False
    fused: bool = False


def cases():
    mb = 4e7  # bytes of 1e7 float32
    softmax = "e = np.exp(wide - wide.max(1)[:, None]); e / e.sum(1)[:, None]"
    normal = "(images.permute(0, 3, 1, 2) / 255 - 0.5) / 0.25"
    written = "0.5 * big * (1 + torch.tanh(0.79788456 * (big + 0.044715 * big ** 3)))"
    relu = "torch.relu(big * other + big)"
    relu_of_arrays = "np.maximum(big * other + big, 0)"
    return [
        Case("a + b, 1e7", "big + other", "big + other", 3 * mb, all=True),
        Case("exp, 1e7", "big.exp()", "np.exp(big)", 2 * mb, all=True),
        Case("relu(a * b + a), 1e7", relu, relu_of_arrays, 3 * mb, all=True),
        Case("relu(a * b + a), fused", relu, relu_of_arrays, 3 * mb, all=True,
             fused=True),
        Case("gelu written out, 1e7", written, written.replace("torch", "np"), 2 * mb),
        Case("gelu, fused", "gelu(big)", None, 2 * mb, fused=True),
        Case("SwiGLU, fused", "big * torch.sigmoid(big) * other", None, 3 * mb,
             fused=True),
        Case("Adam written out, fused", "adam(big, other, small)", None, 4 * mb,
             fused=True),
        Case("dropout(a) + b, fused", "torch.dropout(big, 0.1, True) + other", None,
             3 * mb, fused=True),
        Case("layer norm(x + x), fused",
             "F.layer_norm(wide + wide, (1000,), weight, bias)", None, 2 * mb,
             fused=True),
        Case("fmod, 1e7", "torch.fmod(big, other)", "np.fmod(big, other)", 3 * mb),
        Case("atan2, 1e7", "torch.atan2(big, other)", "np.arctan2(big, other)", 3 * mb),
        Case("erf, 1e7", "torch.erf(big)", None, 2 * mb),
        Case("sum, 1e7", "big.sum()", "big.sum()", mb, all=True),
        Case("sums of rows, 4000 x 2500", "rows.sum(1)", "rows.sum(1)", mb, all=True),
        Case("softmax, 10,000 x 1,000", "wide.softmax(1)", softmax, 2 * mb),
        Case("layer norm, 10,000 x 1,000", "F.layer_norm(wide, (1000,), weight, bias)",
             None, 2 * mb),
        Case("cat, 8 x 1000 x 1000", "torch.cat(parts)", "np.concatenate(parts)", 6.4e7,
             all=True),
        Case("sums by index, 1e6 to 1000",
             "sums.scatter_reduce(0, at, values, 'sum')",
             "np.bincount(at, values, 1000)", 1.2e7),
        Case("uint8 images to floats", normal, None, 5 * 32 * 224 * 224 * 3),
        Case("uint8 images, fused", normal, None, 5 * 32 * 224 * 224 * 3, fused=True),
        Case("matmul, 256", "m256 @ m256", "m256 @ m256", flops=2 * 256**3, all=True),
        Case("matmul, 1024", "m1024 @ m1024", "m1024 @ m1024", flops=2 * 1024**3,
             all=True),
        Case("MLP's step, SGD", "with_sgd()", flops=6 * 256 * (784 * 256 + 2560)),
        Case("MLP's step, Adam", "with_adam()", flops=6 * 256 * (784 * 256 + 2560)),
        Case("a + b, 4", "x + x", "x + x", all=True),
        Case("x[0]", "x[0]", "x[0]", all=True),
        Case("float(x[0])", "float(x[0])", "float(x[0])"),
        Case("reshape", "x.reshape(2, 2)", "x.reshape(2, 2)", all=True),
        Case("tensor([1, 2, 3])", "torch.tensor([1, 2, 3])", "np.array([1, 2, 3])"),
        Case("nn.Linear(4, 4)(x)", "linear(four)"),
        Case("numpy()", "x.numpy()"),
    ]  # fmt: skip


def code_of(case, name):
    """What a library runs; None: it has no such thing."""
    if name == "numpy":
        return case.numpy
    has = {"tensorplay": case.all, COMPILED: case.fused}
    return case.code if has.get(name, True) else None


def run(name):
    """Print the seconds of each case in a library, null for a case that it lacks."""
    library = import_module(name.removesuffix(".compile"))
    scope = {"np" if name == "numpy" else "torch": library}
    if name != "numpy":
        library.set_num_threads(THREADS)
    exec(ARRAYS if name == "numpy" else SETUP, scope)
    if name in (NAMES[0], "torch", COMPILED):
        exec(MORE, scope)
    found = []
    for case in cases():
        code = code_of(case, name)
        if code and case.fused and name in (NAMES[0], COMPILED):
            scope["work"] = library.compile(eval("lambda: " + code, scope))
            code = "work()"
        seen = measure({name: code}, {name: scope}, 5)
        found.append(statistics.median(seen[name]) if seen else None)
    print(json.dumps(found))


def is_there(name):
    return find_spec(name.removesuffix(".compile")) is not None


def measured(times):
    """For each case the seconds of the rounds, by library."""
    names = [name for name in NAMES if is_there(name)]
    seen = [{name: [] for name in names if code_of(c, name)} for c in cases()]
    for _ in range(times):
        for name in names:
            command = [sys.executable, __file__, "--run", name]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            for by_name, took in zip(seen, json.loads(done.stdout), strict=True):
                if took is not None:
                    by_name[name].append(took)
    return seen


def limits(cases, seen):
    """The seconds of each case at the largest rates of the run; None: without one."""
    rates = {
        kind: max(
            getattr(case, kind) / min(times)
            for case, by_name in zip(cases, seen, strict=True)
            for times in by_name.values()
        )
        for kind in ("bytes", "flops")
    }
    return [
        max((getattr(case, kind) / rates[kind] for kind in rates), default=0) or None
        for case in cases
    ]


def shown(seconds):
    unit = "ns" if seconds < 1e-6 else "us" if seconds < 1e-3 else "ms"
    return f"{seconds * UNITS[unit]:.3g} {unit}"


def row_of(case, by_name, limit, others):
    """The row of the table, and our time as a share of the best of the others."""
    medians = {name: statistics.median(times) for name, times in by_name.items()}
    ours = medians["pydevtensor"]
    first, _, last = statistics.quantiles(by_name["pydevtensor"], n=4)
    cells = [case.label, f"{shown(ours)} ({(last - first) / ours:.0%})"]
    cells += [shown(medians[name]) if name in medians else "-" for name in others]
    ratio = ours / min(medians[name] for name in others if name in medians)
    return [*cells, shown(limit) if limit else "-", f"{ratio:.2f}"], ratio


def main():
    chosen, seen = cases(), measured(rounds(5))
    others = [name for name in NAMES[1:] if is_there(name)]
    if not others:
        sys.exit("none of " + ", ".join(NAMES[1:]) + " is installed")
    rows, bars = [], []
    for case, by_name, limit in zip(chosen, seen, limits(chosen, seen), strict=True):
        row, ratio = row_of(case, by_name, limit, others)
        rows.append(row)
        bars.append((case.label, ratio))
    libraries = [name for name in (NAMES[0], *others) if name != COMPILED]
    versions = [f"{name} {version(name)}" for name in libraries]
    python = f"Python {platform.python_version()}"
    about = [str(date.today()), machine(), f"{THREADS} threads", python, *versions]
    lines = [
        "# Operations on a CPU, beside other libraries",
        "",
        ", ".join(about) + "; `bench_summary.py`.",
        "Medians, and the range of the middle half of ours. Below 1, pydevtensor is "
        "faster than the best of the others.",
        "",
        *table(["", "pydevtensor", *others, "limit", "ours / best"], rows),
        "",
        *__doc__.rstrip().splitlines()[-2:],
        "",
        "![The ratios of the table](summary-cpu.svg)",
    ]
    print("\n".join(lines))
    if "--write" in sys.argv:
        (RESULTS / "summary-cpu.md").write_text("\n".join(lines) + "\n")
        (RESULTS / "summary-cpu.svg").write_text(svg(bars, others))


def machine():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.machine()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(sys.argv[2])
    else:
        main()
