"""float16 and bfloat16 in every family of operations: types, values, gradients, texts.
Recorded as tools/golden/modules_cases.py records its cases; each case asks for both types."""

import modules_cases

SETUP = (
    "import io, copy; nn, F = torch.nn, torch.nn.functional; inf, nan = float('inf'), float('nan'); "
    "r = lambda a, b, *s: (torch.arange(float(a)) * b % 101 / 16 - 3).reshape(s); "
    "x = r(12, 37, 3, 4); y = r(12, 53, 3, 4); w = r(20, 29, 4, 5); p = r(12, 11, 3, 4).abs() + 0.25; "
    "k = torch.tensor([0.3, nan, -inf, 0., -0., inf, 3., -2.]); z = r(2800, 37, 40, 70); "
    "i = torch.tensor([[0, 1], [3, 2]]); j = torch.tensor([2, 0]); c = torch.tensor([1, 3, 0]); "
    "both = lambda f, *of: [f(*(t.to(d) for t in of)) for d in (torch.float16, torch.bfloat16)]; "
    "g = lambda f: lambda *of: [v.detach() for v in torch.autograd.grad((f(*(t.requires_grad_() for t in of)) * 0.5).sum(), of)]; "
    "m = lambda make: lambda x: (torch.manual_seed(3), make().to(x.dtype)(x).detach())[1]"
)

CASES = {
    "order": """
        both(lambda x: torch.sort(x, 1), x)
        both(lambda x: torch.sort(x, dim=0, descending=True, stable=True), x)
        both(lambda k: torch.sort(k, stable=True), k)
        both(lambda k: torch.sort(k, descending=True, stable=True), k)
        both(lambda k: torch.argsort(k, stable=True), k)
        both(lambda x: x.topk(2, 1), x)
        both(lambda x: x.topk(2, 0, largest=False), x)
        both(lambda x: x.kthvalue(2, 1), x)
        both(lambda x: x.median(1), x)
        both(lambda k: torch.nanmedian(k), k[k != 0])
        both(lambda x: torch.mode(x.round(), 1).values, x)
        both(lambda x: torch.unique(x.round(), return_inverse=True, return_counts=True), x)
        both(lambda x: torch.unique_consecutive(x.round()), x)
        both(lambda s, v: torch.searchsorted(s, v), x[0].sort().values, y)
        both(lambda s, v: torch.bucketize(v, s, right=True), x[0].sort().values, y)
        both(lambda x: torch.isin(x, x[0]), x)
        both(g(lambda x: x.sort(1).values), x)
    """,
    "running results": """
        both(lambda x: x.cumsum(1), x)
        both(lambda x: x.cumsum(0, dtype=torch.float32), x)
        both(lambda x: x.cumprod(1), x)
        both(lambda x: x.cummax(1), x)
        both(lambda x: x.cummin(0), x)
        both(lambda x: x.logcumsumexp(1), x)
        both(lambda x: torch.diff(x), x)
        both(lambda z: z.cumsum(1)[::9, ::7], z)
        both(g(lambda x: x.cumsum(1)), x)
    """,
    "rows": """
        both(lambda x: x.softmax(1), x)
        both(lambda x: x.softmax(0), x)
        both(lambda x: x.softmax(1, dtype=torch.float32), x)
        x.half().log_softmax(1)
        x.half().log_softmax(0)
        both(lambda x: x.logsumexp(1), x)
        both(lambda x: F.cross_entropy(x, c), x)
        both(lambda x: F.cross_entropy(x, c, reduction='none', label_smoothing=0.1), x)
        both(lambda x, w: F.cross_entropy(x, c, weight=w, reduction='sum'), x, p[0])
        both(lambda x, q: F.cross_entropy(x, q.softmax(1)), x, y)
        both(lambda x: F.nll_loss(x.log_softmax(1), c), x)
        both(lambda x, w, b: F.layer_norm(x, (4,), w, b), x, p[0], y[0])
        both(lambda x: F.batch_norm(x, None, None, training=True), x)
        both(lambda x, a, v: F.batch_norm(x, a, v), x, y[0], p[0])
        both(g(lambda x: x.log_softmax(1)), x)
        both(g(lambda x: F.cross_entropy(x, c)), x)
    """,
    "folds": """
        both(lambda z: z.sum(1), z)
        both(lambda z: z.mean(0), z)
        both(lambda z: [z.sum(), z.mean(), z.var(), z.std(), z.norm()], z)
        both(lambda z: torch.std_mean(z, 1), z)
        both(lambda x: [x.norm(q, 1) for q in (0, 1, 2, 3, inf, -inf)], x)
        both(lambda x: x.prod(1), p)
        both(lambda x: [x.amax(1), x.amin(0), x.max(), x.argmax(), x.argmin(1)], x)
        both(lambda k: [k.nansum(), k.max(), k.argmax(), torch.count_nonzero(k)], k)
        both(lambda x: [(x > 1).any(), x.all(1)], x)
        both(lambda z: z.sum(dtype=torch.float32), z)
        both(g(lambda x: x.var(1)), x)
        both(g(lambda x: x.norm()), p)
    """,
    "three tensors": """
        both(lambda x, y: torch.lerp(x, y, 0.3), x, y)
        both(lambda x, y, p: torch.lerp(x, y, p), x, y, p)
        both(lambda x, y, p: torch.addcmul(x, y, p, value=0.1), x, y, p)
        both(lambda x, y, p: torch.addcdiv(x, y, p, value=0.1), x, y, p)
        both(lambda x: x.clamp(-0.3, 0.7), x)
        both(lambda x: x.clamp(min=0.1), x)
        both(lambda x, y, p: x.clamp(y, p), x, y, p)
        both(lambda x, y: x.clone().lerp_(y, 0.5), x, y)
        both(g(lambda x, y: torch.lerp(x, y, 0.3)), x, y)
        both(lambda x: torch.lerp(x, y, 0.5), x)
    """,
    "choices": """
        both(lambda x, y: torch.where(x > 0, x, y), x, y)
        both(lambda x: torch.where(x > 0, x, 0.1), x)
        both(lambda x: x.masked_fill(x > 0, 0.1), x)
        both(lambda x: x.masked_select(x > 0), x)
        both(lambda x: x.gather(1, i), x)
        both(lambda x: x.take(i), x)
        both(lambda x: x.index_select(0, j), x)
        both(lambda x, y: x.index_add(0, j, y[:2]), x, y)
        both(lambda x, y: x.scatter_add(1, i, y), x, y)
        both(lambda x, y: x.index_put((j,), y[:2], accumulate=True), x, y)
        both(lambda x, y: torch.cat([x, y], 1), x, y)
        both(lambda x: torch.cat([x, y], 1), x)
        both(lambda x, y: torch.stack([x, y], 1), x, y)
        both(lambda x: [x.roll(1, 0), x.flip(1), x.tril(), x.t().contiguous()], x)
        torch.cat([x.half(), x.bfloat16()])
    """,
    "products": """
        both(lambda x, w: x @ w, x, w)
        both(lambda x, w: torch.bmm(x[None], w[None]), x, w)
        both(lambda x, y: torch.dot(x[0], y[1]), x, y)
        both(lambda x, y: torch.outer(x[0], y[1]), x, y)
        both(lambda x, w: torch.einsum('ij,jk->ki', x, w).contiguous(), x, w)
        both(lambda x, w: torch.mv(x, w[:, 0]), x, w)
        both(lambda x, w: F.linear(x, w.t(), w[0]), x, w)
        both(g(lambda x, w: x @ w), x, w)
        x.half() @ w.bfloat16()
        x.half() @ w
    """,
    "functions and numbers": """
        both(lambda x: [x + 0.1, x * 0.1, 1.1 - x, x / 3, x // 0.3, x % 0.3, x ** 2], x)
        both(lambda x, y: [torch.add(x, y, alpha=0.3), torch.sub(x, y, alpha=0.3)], x, y)
        both(lambda x, y: [torch.maximum(x, y), torch.atan2(x, y), torch.hypot(x, y)], x, y)
        both(lambda x: [x > 0.1, x == y, x.isnan(), x.sign()], x)
        both(lambda k: torch.nan_to_num(k), k)
        both(lambda x: [F.gelu(x), F.gelu(x, approximate='tanh'), F.silu(x), F.softplus(x)], x)
        both(lambda x: [F.elu(x), F.leaky_relu(x, 0.1), F.logsigmoid(x), F.relu(x)], x)
        both(g(F.gelu), x)
        both(g(F.softplus), x)
        both(g(F.silu), x)
        both(lambda x: torch.digamma(x), p)
        both(lambda x: torch.polygamma(1, x), p)
        both(lambda x, y: [F.mse_loss(x, y), F.l1_loss(x, y), F.huber_loss(x, y), F.smooth_l1_loss(x, y)], x, y)
        both(lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid()), x, y)
    """,
    "layers": """
        both(m(lambda: nn.LayerNorm(4)), x)
        both(m(lambda: nn.BatchNorm1d(4)), x)
        [p.dtype for p in nn.Linear(2, 2).half().parameters()]
        [v.dtype for v in nn.BatchNorm1d(2).half().state_dict().values()]
        [v.dtype for v in nn.BatchNorm1d(2).bfloat16().state_dict().values()]
        nn.Linear(4, 2).half()(x)
        nn.Linear(4, 2)(x.half())
        nn.Embedding(3, 2).half()(j).dtype
    """,
    "layers drawn on the CPU": """
        both(m(lambda: nn.Linear(4, 3)), x)
        both(m(lambda: nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2), nn.Softmax(1))), x)
    """,
    "numbers": """
        both(lambda x: f'{x[0, 0]:.4f} {x[0, 0].item()!r}', x + 0.1)
        both(lambda x: x.tolist(), x + 0.1)
        both(lambda x: str(x.numpy(force=True).dtype), x)
    """,
    "texts on the CPU": """
        both(repr, x)
        both(repr, k)
        both(repr, torch.tensor([1e4, 6e4, 1e-3, 0.5]))
        both(repr, torch.tensor(1.1))
        both(repr, z)
        both(lambda x: x.type(), x)
    """,
}


def make(torch):
    return modules_cases.make(torch, SETUP, CASES)
