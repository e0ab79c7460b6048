#!/bin/sh
# make gpu-check: on a machine with an NVIDIA GPU, builds pydevtensor for it, runs the tests on
# it, compute-sanitizer over a short program, and the benchmarks beside PyTorch and CuPy where
# they are installed. Writes one report, benchmarks/results/gpu-DATE.md, and exits with 1 when
# a step failed.
#
#   PYTHON=python3      the interpreter; its own packages (NumPy, pytest, PyTorch) are used
#   RESULTS=FOLDER      another place for the report
set -u
cd "$(dirname "$0")/.." || exit 1
PYTHON=${PYTHON:-python3}
RESULTS=${RESULTS:-benchmarks/results}

if ! command -v nvidia-smi >/dev/null 2>&1 || ! nvidia-smi -L 2>/dev/null | grep -q GPU; then
    echo "gpu-check: nvidia-smi finds no GPU here; run it on a machine that has one." >&2
    exit 1
fi

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
site=$work/site
mkdir -p "$RESULTS" "$site"
report=$RESULTS/gpu-$(date -u +%Y-%m-%d).md
failed=0

# step TITLE COMMAND...: runs it, keeps the end of what it says, notes whether it worked.
step() {
    title=$1
    shift
    echo "gpu-check: $title"
    start=$(date +%s)
    if "$@" >"$work/log" 2>&1; then verdict=passed; else verdict=FAILED; failed=1; fi
    seconds=$(($(date +%s) - start))
    {
        printf '\n## %s: %s, %s s\n\n```\n' "$title" "$verdict" "$seconds"
        tail -n "${LINES_KEPT:-25}" "$work/log" | sed "s|$work|.|g"
        printf '```\n'
    } >>"$report"
    [ "$verdict" = passed ] || tail -n 25 "$work/log" >&2
}

{
    echo "# GPU check of $(date -u '+%Y-%m-%d %H:%M') UTC"
    echo
    echo "Commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)."
    echo
    echo '```'
    nvidia-smi --query-gpu=name,memory.total,compute_cap,driver_version --format=csv
    "$PYTHON" --version
    nvcc --version 2>/dev/null | tail -n 2
    echo '```'
} >"$report"

# The tests see this build alone, not another one that may be installed.
PYTHONPATH=$site
PYDEVTENSOR_CUDA=1
PYDEVTENSOR_CUDA_ARCHS=${PYDEVTENSOR_CUDA_ARCHS:-native}
export PYTHONPATH PYDEVTENSOR_CUDA PYDEVTENSOR_CUDA_ARCHS
unset PYDEVTENSOR_SIM_GPUS PYDEVTENSOR_VIRTUAL_GPUS

cat >"$work/short.py" <<'END'
"""Every kind of kernel once, on sizes that end inside a block."""
import pydevtensor as torch

assert torch.cuda.is_available(), "no CUDA device"
assert "simulated" not in torch.cuda.get_device_name(0).lower(), "a simulated device"
for n in (1, 31, 257, 4099):
    x = torch.rand(n, n % 7 + 1, device="cuda") + 0.5
    y = (x * 2 - x).exp().log() + x.sqrt()
    z = x.t() + 1
    parts = [y.sum(), y.mean(), y.max(), x.sum(dim=0).sum(), x.sum(dim=1).sum(), z.sum()]
    whole = torch.arange(n, device="cuda")
    assert whole.sum().item() == n * (n - 1) // 2
    assert whole.to(torch.float32).sum().item() <= n * n
    assert abs(z.sum().item() - (x.sum().item() + x.numel())) < 1e-3 * x.numel()
    product = torch.matmul(x.t(), x)
    reference = torch.matmul(x.cpu().t(), x.cpu())
    assert (product.cpu() - reference).abs().max().item() < 1e-3 * n
    assert all(part.item() == part.item() for part in parts)

F = torch.nn.functional


def same(function, *shapes, least=0.1):
    """What `function` makes of random numbers on the GPU is what it makes on the CPU."""
    given = [torch.rand(shape) + least for shape in shapes]
    moved = [x.to("cuda").requires_grad_() for x in given]
    given = [x.requires_grad_() for x in given]
    results = function(*moved), function(*given)
    for result in results:
        weights = torch.linspace(1, 2, result.numel()).reshape(result.shape)
        (result.float() * weights.to(result.device)).sum().backward()
    pairs = [results, *((m.grad, g.grad) for m, g in zip(moved, given))]
    for theirs, ours in pairs:
        off = (theirs.detach().cpu() - ours.detach()).abs().max().item()
        assert off <= 2e-3 * (1 + ours.detach().abs().max().item()), (shapes, off)


for n in (3, 31, 257, 1021, 2052, 5000):
    target = torch.arange(7) % n
    same(lambda x: x.softmax(-1) * x, (7, n))
    same(lambda x: x.log_softmax(0) * x, (n, 7))
    same(lambda x: x.logsumexp(-1), (7, n))
    same(lambda x, w, b: F.layer_norm(x, (n,), w, b), (7, n), (n,), (n,))
    same(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (n, 5), (5,), (5,))
    same(lambda x: F.cross_entropy(x, target.to(x.device), label_smoothing=0.1), (7, n))
    same(lambda x: F.nll_loss(x, target.to(x.device)), (7, n))
    for scan in ("cumsum", "cumprod", "logcumsumexp"):
        same(lambda x: getattr(x, scan)(-1), (3, n), least=0.4)
    same(lambda x: x.cummax(0).values, (n, 3))
    same(lambda x: x.sort(dim=-1).values * x, (3, n))
    same(lambda x: x.topk(3).values, (3, n))
    same(lambda x: x.var(0) + x.std(0) + x.amax(0) + x.norm(3, dim=0), (n, 3))
    same(lambda x: x.half() * 2 + x.bfloat16() + x.half().sum(), (n, 3))
    same(lambda x: torch.where(x > 0.5, x, -x).lerp(x * 2, 0.25), (3, n))
    same(lambda x: x[:, torch.arange(n).flip(0).to(x.device)] * x, (3, n))
    same(lambda x: x.index_add(0, torch.tensor([0, 2]).to(x.device), x[:2]), (3, n))
    same(lambda x: F.embedding(target.to(x.device), x), (n, 5))
    same(lambda x: x[x > 0.5], (n,))
    assert (torch.rand(n, device="cuda") > 0.5).nonzero().shape[1] == 1
    assert (torch.arange(n, device="cuda") // 3 % 5).max().item() == min((n - 1) // 3, 4)
    net = torch.nn.Linear(n, 3).to("cuda")
    for make in (torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop):
        F.dropout(net(torch.rand(2, n, device="cuda"))).sum().backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        make(net.parameters(), lr=0.01).step()
torch.cuda.synchronize()
print("short program: fine")
END

step "Build and install" "$PYTHON" -m pip install -q --no-build-isolation --no-deps \
    --target "$site" .
LINES_KEPT=60
step "What it finds" "$PYTHON" -m pydevtensor
LINES_KEPT=25
step "Short program" "$PYTHON" "$work/short.py"
step "Short program, two virtual GPUs" env PYDEVTENSOR_VIRTUAL_GPUS=2 \
    "$PYTHON" "$work/short.py"
step "Tests" "$PYTHON" -m pytest -q -p no:cacheprovider

if command -v compute-sanitizer >/dev/null 2>&1; then
    for tool in memcheck racecheck synccheck; do
        step "compute-sanitizer $tool" compute-sanitizer --tool "$tool" \
            --error-exitcode 1 "$PYTHON" "$work/short.py"
    done
else
    printf '\n## compute-sanitizer: not installed\n' >>"$report"
    failed=1
fi

LINES_KEPT=200
for other in torch cupy; do
    "$PYTHON" -c "import $other" 2>/dev/null ||
        printf '\n%s is not installed, so nothing is compared with it.\n' "$other" >>"$report"
done
if [ -f benchmarks/run.py ]; then
    step "Benchmarks" "$PYTHON" benchmarks/run.py
else
    printf '\n## Benchmarks: benchmarks/run.py is missing\n' >>"$report"
    failed=1
fi

echo "gpu-check: the report is $report"
exit $failed
