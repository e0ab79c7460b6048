"""Every kind of kernel once, on sizes that end inside a block, beside the CPU.

    short.py [--quick] [--no-products]

--quick takes three sizes, for compute-sanitizer; --no-products leaves out the products,
layers and factorizations by cuBLAS and cuSOLVER, whose kernels are not ours to check.
Without a real GPU it fails.
"""

import functools
import sys

import pydevtensor as torch

F = torch.nn.functional
QUICK, PRODUCTS = "--quick" in sys.argv, "--no-products" not in sys.argv


def elements(n):
    x = torch.rand(n, n % 7 + 1, device="cuda") + 0.5
    y = (x * 2 - x).exp().log() + x.sqrt()
    z = x.t() + 1
    parts = [
        y.sum(),
        y.mean(),
        y.max(),
        x.sum(dim=0).sum(),
        x.sum(dim=1).sum(),
        z.sum(),
    ]
    whole = torch.arange(n, device="cuda")
    assert whole.sum().item() == n * (n - 1) // 2
    assert whole.to(torch.float32).sum().item() <= n * n
    assert abs(z.sum().item() - (x.sum().item() + x.numel())) < 1e-3 * x.numel()
    assert all(part.item() == part.item() for part in parts)
    if PRODUCTS:
        product = torch.matmul(x.t(), x)
        reference = torch.matmul(x.cpu().t(), x.cpu())
        assert (product.cpu() - reference).abs().max().item() < 1e-3 * n


def same(function, *shapes, least=0.1, within=2e-5):
    """Checks that `function` of random numbers has the same results on GPU and CPU.

    within: the allowed error, relative to an element plus the mean."""
    given = [torch.rand(shape) + least for shape in shapes]
    moved = [x.to("cuda").requires_grad_() for x in given]
    given = [x.requires_grad_() for x in given]
    results = function(*moved), function(*given)
    for result in results:
        weights = torch.linspace(1, 2, result.numel()).reshape(result.shape)
        (result.float() * weights.to(result.device)).sum().backward()
    pairs = [results, *((m.grad, g.grad) for m, g in zip(moved, given, strict=True))]
    for theirs, ours in pairs:
        halves = ours.dtype in (torch.float16, torch.bfloat16)
        theirs, ours = theirs.detach().cpu().double(), ours.detach().double()
        allowed = (2e-2 if halves else within) * (ours.abs() + ours.abs().mean())
        off = ((theirs - ours).abs() - allowed).max().item()
        assert off <= 0, (shapes, off)


def rows(n):
    target = torch.arange(7) % n
    same(lambda x: x.softmax(-1) * x, (7, n))
    same(lambda x: x.log_softmax(0) * x, (n, 7))
    same(lambda x: x.logsumexp(-1), (7, n))
    same(lambda x, w, b: F.layer_norm(x, (n,), w, b), (7, n), (n,), (n,))
    # A gradient is what is left of sums that cancel.
    batch_norm = lambda x, w, b: F.batch_norm(x, None, None, w, b, True)
    same(batch_norm, (n, 5), (5,), (5,), within=1e-4)
    same(lambda x: F.cross_entropy(x, target.to(x.device), label_smoothing=0.1), (7, n))
    same(lambda x: F.cross_entropy(x, x.softmax(1)), (7, n))
    same(lambda x: F.nll_loss(x, target.to(x.device)), (7, n))
    for scan in ("cumsum", "cumprod", "logcumsumexp"):
        same(lambda x, scan=scan: getattr(x, scan)(-1), (3, n), least=0.4)
    same(lambda x: x.cummax(0).values, (n, 3))
    same(lambda x: x.sort(dim=-1).values * x, (3, n))
    same(lambda x: x.topk(3).values, (3, n))
    same(lambda x: x.var(0) + x.std(0) + x.amax(0) + x.norm(3, dim=0), (n, 3))
    same(lambda x: x.half() * 2 + x.bfloat16() + x.half().sum(), (n, 3))
    same(lambda x: torch.where(x > 0.5, x, -x).lerp(x * 2, 0.25), (3, n))
    same(lambda x: x.double().exp() * 2, (3, n))
    same(lambda x: (x + 1j).exp().abs(), (3, n))
    assert (
        abs(torch.special.airy_ai(torch.ones(n, device="cuda")).sum() / n - 0.1353)
        < 1e-4
    )
    same(lambda x: x[:, torch.arange(n).flip(0).to(x.device)] * x, (3, n))
    same(lambda x: x.index_add(0, torch.tensor([0, 2]).to(x.device), x[:2]), (3, n))
    same(lambda x: F.embedding(target.to(x.device), x), (n, 5))
    same(lambda x: x[x > 0.2], (n,))
    assert (torch.rand(n, device="cuda") > 0.5).nonzero().shape[1] == 1
    assert (torch.arange(n, device="cuda") // 3 % 5).max().item() == min(
        (n - 1) // 3, 4
    )


def ordered(n):
    """Sums by index whose bits are the same each time."""
    where = (torch.arange(40 * n) * 7 % 5).to("cuda")
    values = torch.randn(40 * n, 3, device="cuda")
    zeros = torch.zeros(5, 3, device="cuda")
    torch.use_deterministic_algorithms(True)
    sums = [zeros.index_add(0, where, values) for _ in range(5)]
    last = zeros.index_copy(0, where, values)
    pair = where, where % 3
    put = zeros.index_put(pair, torch.ones_like(values[:, 0]), accumulate=True)
    torch.use_deterministic_algorithms(False)
    assert put.sum().item() == 40 * n
    assert all(torch.equal(sums[0], again) for again in sums)
    wanted = zeros.double().index_add(0, where, values.double())
    assert (sums[0] - wanted).abs().max().item() < 1e-5 * n
    assert torch.equal(last[where[-1]], values[-1])


def windows(n):
    """Windows and tiles: pooling, depthwise convolutions, resampling, attention,
    transposes."""
    same(lambda x: F.max_pool2d(x, 3, 2, 1), (1, 2, 9, n + 3))
    same(lambda x: F.avg_pool2d(x, (2, 3), 2), (1, 2, 9, n + 3))
    same(lambda x: F.adaptive_avg_pool1d(x, 5), (2, 3, n + 3))
    same(lambda x: F.adaptive_max_pool1d(x, 5), (2, 3, n + 3))
    for mode in ("nearest", "bilinear", "bicubic"):
        same(lambda x, m=mode: F.interpolate(x, (7, n), mode=m), (1, 2, 5, n + 3))
    attend = F.scaled_dot_product_attention
    for shapes in [(1, 2, n % 300 + 2, 24)] * 3, [(1, 2, 9, 130)] * 3:
        same(
            lambda q, k, v: attend(q, k, v, is_causal=True),
            *shapes,
            within=2e-4,  # gradients of q and k are differences
        )
    # Sizes in chunks of 16 bytes, as warpgroups take them on Hopper, and another.
    for t, size in ((torch.float16, 24), (torch.bfloat16, 72), (torch.float16, 21)):
        same(
            lambda *of, t=t: attend(*((4 * x - 2).to(t) for x in of), is_causal=True),
            *[(1, 2, n % 300 + 2, size)] * 3,
            within=0.1,  # of the gradients; products are rounded to 16 bits
        )
    same(lambda x: x.mT.contiguous() * 2, (3, n, 37))
    same(lambda x: x.argmax(-1) + x.amin(-1), (5, n))
    same(lambda x, w: F.conv2d(x, w, groups=4), (2, 4, 6, n % 500 + 3), (8, 1, 3, 3))
    starts, columns = torch.arange(0, 3 * n + 1, 3), torch.arange(3 * n) * 7 % n
    by_rows = lambda v: torch.sparse_csr_tensor(
        starts.to(v.device), columns.to(v.device), v, (n, n)
    )
    same(lambda v, x: torch.sparse.mm(by_rows(v), x), (3 * n,), (n, 5))
    whole = torch.arange(n * 3, device="cuda").reshape(n, 3)
    assert torch.equal((whole.T @ whole).cpu(), whole.cpu().T @ whole.cpu())
    draw = torch.randn(n, device="cuda").isfinite() & (
        torch.randperm(n, device="cuda") < n
    )
    assert draw.all().item()


def dropped(n):
    """Attention with dropout, beside the whole matrix with the mask of the identity."""
    attend, length = F.scaled_dot_product_attention, n % 300 + 2
    for t, size in (
        (torch.float32, 24),
        (torch.float32, 130),
        (torch.float16, 24),
        (torch.bfloat16, 72),
        (torch.float64, 24),
    ):
        equal = torch.zeros(1, 2, length, 1, device="cuda")
        torch.manual_seed(n)
        identity = torch.eye(length, device="cuda")
        kept = attend(equal, equal, identity, dropout_p=0.3) != 0
        part, shares = kept.double().mean().item(), kept.numel()
        assert abs(part - 0.7) < 5 * (0.21 / shares) ** 0.5, (n, part)
        of = [torch.rand(1, 2, length, size, device="cuda").to(t) for _ in "qkv"]
        of = [x.requires_grad_() for x in of]
        wide = [x.detach().double().requires_grad_() for x in of]
        torch.manual_seed(n)
        found = attend(*of, dropout_p=0.3)
        scores = wide[0] @ wide[1].mT / size**0.5
        whole = (scores.softmax(-1) * kept / 0.7) @ wide[2]
        weight = torch.rand(found.shape, device="cuda").to(t)
        found.backward(weight)
        whole.backward(weight.double())
        pairs = [
            (found, whole),
            *((x.grad, y.grad) for x, y in zip(of, wide, strict=True)),
        ]
        for one, other in pairs:
            off = (one.double() - other).abs().max() / other.abs().max()
            within = 0.1 if t.itemsize == 2 else 2e-4
            assert off.item() < within, (n, t, size, off.item())
    # Where a mask learns, the call is composed, with what stays drawn as a matrix.
    learns = torch.zeros(length, length, device="cuda", requires_grad=True)
    torch.manual_seed(n)
    composed = attend(equal, equal, identity, learns, dropout_p=0.3)
    assert torch.equal(composed != 0, kept), n


def convolutions(n):
    for stride in (1, 2):
        same(lambda x, w, s=stride: F.conv1d(x, w, stride=s), (2, 4, n + 5), (6, 4, 3))
    same(lambda x, w: F.conv2d(x, w, padding=1), (1, 4, 6, n % 500 + 3), (6, 4, 3, 3))
    same(lambda x, w: F.conv2d(x, w, groups=2), (2, 4, 6, n % 500 + 3), (6, 2, 3, 3))
    same(lambda x, w: F.conv_transpose1d(x, w, stride=2), (1, 4, n), (4, 3, 3))
    for of, groups in ((F.conv1d, 1), (F.conv1d, 4), (F.conv_transpose1d, 2)):
        of = lambda x, w, f=of, k=groups: f(x.half(), w.half(), groups=k)
        same(of, (2, 4, n + 5), (4, 4 // groups, 3), within=2e-2)


def layers(n):
    """Convolutions and recurrent layers, whose products are cuBLAS's."""
    for by_cudnn in (True, False):  # where it is found
        with torch.backends.cudnn.flags(enabled=by_cudnn, allow_tf32=False):
            convolutions(n)
    for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
        net = kind(n % 100 + 1, 9, bidirectional=True)
        theirs = kind(n % 100 + 1, 9, bidirectional=True).to("cuda")
        theirs.load_state_dict(net.state_dict())
        run = lambda x, a=net, b=theirs: (b if x.is_cuda else a)(
            x.to(a.weight_hh_l0.dtype)
        )[0]
        for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
            net, theirs = net.to(dtype), theirs.to(dtype)
            same(run, (4, 3, n % 100 + 1), within=2e-5 if dtype.itemsize > 2 else 5e-2)


def chains(n):
    """One kernel for a chain, whose bits are those of its operations one by one."""

    def chain(x, row, column):
        y = (x * row + 0.5).tanh() * column - x.sigmoid().half().float()
        z = torch.where((y > 0) & (x < 1), y * y, -y).bfloat16()
        return y, z, z * x[:, :1], (z > 0) | (x == y), y.erf().exp() / (x.sqrt() + 1)

    x, row = torch.rand(5, n, device="cuda"), torch.rand(n, device="cuda")
    for given in (x, x.t().contiguous().t(), x.half(), x[:, 1:]):
        of = given, row[: given.shape[1]], given[:, :1].float()
        with torch.fused():
            results = chain(*of)
        assert all(map(torch.equal, results, chain(*of))), (n, given.dtype)
        for end in (
            ()
            if n < 2
            else (
                *(torch.sum, torch.var, torch.amax, lambda t: t.norm(dim=-1)),
                *(lambda t: t.softmax(-1), lambda t: torch.layer_norm(t, t.shape[-1:])),
            )
        ):
            with torch.fused():
                result = end(given * 2 + 1)
            assert torch.equal(result, end(given * 2 + 1)), (n, given.dtype)

    def wide(labels, x):
        kept = (labels // 3 % 5 != 1) & (labels < n - 2)
        return torch.where(kept, x * 2, 0.5), (x.double() + labels).sqrt(), kept

    of = torch.arange(5 * n, device="cuda").view(5, n), x
    with torch.fused():
        results = wide(*of)
    assert all(map(torch.equal, results, wide(*of))), n


def graphs(n):
    """A step of an optimizer of halves, captured and replayed."""
    weight = torch.ones(n, device="cuda", dtype=torch.bfloat16).requires_grad_()
    weight.grad = torch.ones_like(weight)
    torch.nn.utils.clip_grad_norm_([weight], 2.0 * n)  # which leaves it as it is
    optimizer = torch.optim.Adam([weight], lr=0.125, capturable=True)
    optimizer.step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        optimizer.step()
    graph.replay()
    assert (weight == 0.75).all().item(), weight


def factors(n):
    """By cuSOLVER. Gradients are sums whose terms cancel out."""
    alike = functools.partial(same, within=1e-3)

    def well(x):
        return x @ x.mT + n * torch.eye(n, device=x.device)

    for batch in ((), (3,)):  # one matrix, and one call for all
        alike(lambda x: torch.linalg.cholesky(well(x)), (*batch, n, n))
        solve = lambda x, b: torch.linalg.solve(well(x), b)
        alike(solve, (*batch, n, n), (*batch, n, 2))
        alike(lambda x: torch.linalg.eigvalsh(well(x)), (*batch, n, n), within=3e-3)
        alike(lambda x: torch.linalg.qr(well(x)).R.abs(), (*batch, n, n))
        tall = torch.rand(*batch, n + 2, n, device="cuda")
        U, S, Vh = torch.linalg.svd(tall, full_matrices=False)
        off = (U * S.unsqueeze(-2) @ Vh - tall).abs().max().item()
        assert off < 1e-5 * n, (batch, n, off)
    least = lambda x, b: torch.linalg.lstsq(x, b, driver="gels").solution
    eye = torch.eye(n + 2, n)
    alike(lambda x, b: least(x + n * eye.to(x.device), b), (n + 2, n), (n + 2, 1))
    alike(lambda x: torch.linalg.svdvals(x + n * eye.mT.to(x.device)), (n, n + 2))
    large = (
        torch.linalg.eigvals(well(torch.rand(n, n, device="cuda"))).real.max().item()
    )
    assert large >= n


def training(n):
    net = torch.nn.Linear(n, 3).to("cuda")
    for make in (torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop):
        F.dropout(net(torch.rand(2, n, device="cuda"))).sum().backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        make(net.parameters(), lr=0.01).step()


def main():
    if not torch.cuda.is_available():
        sys.exit(f"short.py: {torch.cuda.why_unavailable()}")
    kind = "simulated" if torch.cuda.is_simulated() else "real"
    print(f"ran on cuda:0 {torch.cuda.get_device_name(0)} ({kind})", flush=True)
    torch.backends.cudnn.allow_tf32 = False  # to compare with the CPU's digits
    torch.manual_seed(0)  # the same numbers each time: some have to exceed a bound
    for n in (1, 31, 257, 4099):
        elements(n)
    for n in (3, 257, 2052) if QUICK else (3, 31, 257, 1021, 2052, 5000):
        rows(n)
        ordered(n)
        windows(n)
        dropped(n)
        chains(n)
        graphs(n)
        if PRODUCTS:
            layers(n)
            training(n)
    if PRODUCTS:
        factors(3)
        factors(65)
    torch.cuda.synchronize()
    print("short program: fine")


if __name__ == "__main__":
    main()
