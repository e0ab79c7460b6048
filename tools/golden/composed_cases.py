"""Golden cases of functions of three tensors, products, norms and the rest of indexing: what they
give and what they raise. Strides are left out: a product may come as another view there."""

import warnings

from describe import builtin_name, describe, run

SETUP = """
def t(*shape, dtype=torch.float32, start=0):
    n = 1
    for size in shape:
        n *= size
    return ((torch.arange(n) * 7 + start) % 11 - 5).to(dtype).reshape(shape) / 2
def i(*numbers):
    return torch.tensor(numbers)
def grad(f, *inputs):
    inputs = [x.detach().clone().requires_grad_() for x in inputs]
    y = f(*inputs)
    (y * t(*y.shape, start=3)).sum().backward()
    return y.detach(), *[x.grad for x in inputs]
v = t(3); w = t(3, start=4); m = t(2, 3); n = t(3, 4, start=2); s = t(3, 3); b = t(2, 2, 3)
c = t(2, 3, 4, start=5); q = torch.arange(6).reshape(2, 3); u = q.to(torch.uint8)
k = torch.tensor([[True, False, True], [False, True, False]]); d = m.double(); z = t(0, 3)
nan = float('nan'); inf = float('inf')
""".strip()

CASES = {
    "lerp": """
        torch.lerp(v, w, 0.3)
        torch.lerp(v, w, 0.7)
        torch.lerp(v, w, t(3))
        torch.lerp(m, v, t(2, 1))
        v.lerp(w, 1)
        torch.lerp(v, w, True)
        torch.lerp(v, w, torch.tensor(0.5, dtype=torch.float64))
        torch.lerp(v[:1], w, 0.5)
        torch.lerp(z, v, 0.5)
        torch.lerp(v, w, nan)
        torch.lerp(v, w, 0.5, out=torch.empty(0))
        x = v.clone(); x.lerp_(w, 0.25); x
        x = v.clone(); x.lerp_(x, 0.25); x
        torch.lerp(d, d, 0.1).dtype
        grad(lambda x, y: torch.lerp(x, y, 0.3), v, w)
        grad(torch.lerp, v, w, t(3, start=1))
        grad(torch.lerp, m, v, t(2, 1))
        grad(lambda x, y: x.clone().lerp_(y, 0.3), v, w)
        torch.lerp(q, q, 0.5)
        torch.lerp(v, d[0], 0.5)
        torch.lerp(v, w, d[0])
        torch.lerp(v, 2.0, 0.5)
        torch.lerp(v, w)
        torch.lerp(v, t(2), 0.5)
        v[:1].clone().lerp_(v, 0.5)
        v.lerp(w, 'a')
        torch.lerp(v, w, 0.5, out=torch.zeros(3, dtype=torch.int64))
    """,
    "addcmul, addcdiv": """
        torch.addcmul(v, w, w)
        torch.addcmul(v, w, m, value=0.5)
        torch.addcmul(q, q, q, value=2)
        torch.addcmul(q, q, q, value=2.5)
        torch.addcmul(v, q, q)
        torch.addcmul(q, v, q)
        torch.addcmul(v, v.double(), v)
        torch.addcmul(v, torch.tensor(2.0), v)
        torch.addcmul(v, v, v, value=torch.tensor(3.0))
        torch.addcmul(v, v, v, out=torch.empty(0))
        x = v.clone(); x.addcmul_(w, w, value=-1); x
        x = v.clone(); x.addcmul_(x, x); x
        v.addcmul(t(2, 1), w)
        grad(torch.addcmul, v, w, t(3, start=1))
        grad(lambda x, y, z: torch.addcmul(x, y, z, value=3), m, v, t(2, 1))
        torch.addcdiv(v, w, t(3, start=2), value=2)
        torch.addcdiv(v, w, q + 1)
        torch.addcdiv(q, v, w + 9)
        torch.addcdiv(v, v, torch.zeros(3))
        x = v.clone(); x.addcdiv_(w, t(3, start=2)); x
        grad(torch.addcdiv, v, w, t(3, start=1))
        torch.addcmul(k, k, k)
        torch.addcmul(v, v, 2.0)
        q.clone().addcmul_(v, v)
        torch.addcmul(v, v, v, value='a')
        torch.addcmul(v, t(2), v)
        torch.addcdiv(q, q, q)
        torch.addcdiv(v, q, q)
        torch.addcdiv(k, k, k)
        v[:1].clone().addcmul_(v, v)
    """,
    "clamp": """
        torch.clamp(m, -1, 1)
        torch.clamp(m, min=0.5)
        torch.clamp(m, max=0)
        torch.clamp(q, 1, 3)
        torch.clamp(q, min=1.5)
        torch.clamp(q, v, w)
        torch.clamp(m, v)
        torch.clamp(m, max=w)
        torch.clamp(m, min=v, max=None)
        torch.clamp(m, 2, -2)
        torch.clamp(m, nan, 2)
        torch.clamp(torch.tensor([nan, 1.0, -inf, inf]), 1, 2)
        torch.clamp(torch.tensor([nan, 1.0, -inf, inf]), min=1)
        torch.clamp(torch.tensor([nan, 1.0, -inf, inf]), max=1)
        torch.clamp(u, max=3)
        torch.clamp(u, 2)
        torch.clamp(q, min=-3)
        torch.clamp(k, min=0)
        torch.clamp(z, 0, 1)
        torch.clip(m, -1, 1)
        m.clip(0)
        m.clamp_min(0)
        m.clamp_max(v)
        torch.clamp_min(q, 3)
        torch.clamp_max(q, 3)
        x = m.clone(); x.clamp_(0, 1); x
        x = m.clone(); x.clamp_min_(0.5); x
        x = q.clone(); x.clamp_max_(2); x
        x = m.clone(); x.clip_(max=v); x
        torch.clamp(m, 0, 1, out=torch.empty(0))
        grad(lambda x: x.clamp(-1, 1), m)
        grad(lambda x: x.clamp(min=0), torch.tensor([-1.0, 0.0, 1.0]))
        grad(lambda x: x.clamp(max=1), torch.tensor([-1.0, 0.0, 1.0]))
        grad(lambda x: x.clamp(1, -1), m)
        grad(lambda x: x.clamp(0, 1), torch.tensor([nan, 0.5]))
        grad(torch.clamp, m, v, w)
        grad(torch.clamp, torch.tensor([0.0, 1, 2, 3]), i(1, 1, 1, 3).float(), i(2, 2, 2, 2).float())
        grad(torch.clamp, torch.tensor([0.0, 1, 2, 3]), i(2, 2, 2, 3).float(), i(2, 2, 2, 2).float())
        grad(lambda x, y: x.clamp(min=y), m, v)
        grad(lambda x, y: x.clamp(max=y), m, v)
        torch.clamp(v)
        torch.clamp(v, '2')
        torch.clamp(v, min=torch.ones(2))
        torch.clamp(u, max=300)
        q.clone().clamp_(1.5)
        q.clone().clamp_(min=2, max=2.5)
    """,
    "products": """
        torch.outer(v, w)
        torch.ger(v, t(2))
        v.outer(q[0])
        torch.outer(v, w, out=torch.empty(0))
        grad(torch.outer, v, t(2))
        torch.inner(v, w)
        torch.inner(m, b)
        torch.inner(torch.tensor(2.0), v)
        grad(torch.inner, m, b)
        torch.vdot(v, w)
        torch.addmv(t(2), m, v, beta=2, alpha=3)
        torch.addmv(torch.tensor(1.0), m, v)
        torch.addmv(torch.full((2,), nan), m, v, beta=0)
        x = t(2); x.addmv_(m, v); x
        grad(torch.addmv, t(2), m, v)
        torch.addr(m, t(2), v, beta=0.5)
        torch.addr(v, t(2), w, alpha=2)
        x = m.clone(); x.addr_(t(2), v); x
        torch.baddbmm(t(2, 2, 4), b, c, beta=0.5, alpha=2)
        torch.baddbmm(t(4), b, c)
        torch.addbmm(t(2, 4), b, c)
        torch.addbmm(t(1), b, c)
        x = t(2, 2, 4); x.baddbmm_(b, c); x
        grad(torch.baddbmm, t(2, 2, 4), b, c)
        torch.bmm(b, c, out=torch.empty(0))
        torch.kron(m, v)
        torch.kron(torch.tensor(2.0), v)
        torch.kron(q, v)
        torch.kron(b, m)
        grad(torch.kron, m, v)
        torch.cross(v, w, dim=0)
        torch.cross(m, m[[1, 0]], dim=1)
        torch.linalg.cross(m, v.reshape(1, 3))
        torch.linalg.cross(s, t(3, 3, start=5))
        grad(lambda x, y: torch.cross(x, y, dim=-1), m, t(2, 3, start=4))
        torch.matrix_power(s, 0)
        torch.matrix_power(s, 1)
        torch.matrix_power(s, 5)
        torch.matrix_power(torch.stack([s, s + 1]), 3)
        torch.matrix_power(torch.tensor([[1, 2], [3, 4]]), 3)
        s.matrix_power(2)
        torch.chain_matmul(m, n, n.T)
        torch.chain_matmul(m)
        torch.linalg.multi_dot([v, n, n.T, s])
        torch.linalg.multi_dot([m, n, t(4)])
        torch.linalg.multi_dot([v, s, w])
        torch.dist(v, w)
        torch.dist(v, w, p=0)
        torch.dist(v, m, inf)
        torch.dist(v, w, 3)
        torch.cdist(m, s)
        torch.cdist(m, b)
        torch.cdist(m, s, p=1)
        torch.cdist(m, s, p=inf)
        torch.cdist(m, s, p=0)
        grad(torch.cdist, m, s)
        torch.tensordot(m, m, dims=2)
        torch.tensordot(m, v, dims=1)
        torch.tensordot(m, m, dims=([1], [1]))
        torch.tensordot(m, m, dims=0)
        torch.tensordot(b, m, dims=([2], [1]))
        torch.tensordot(b, c, ([0, 2], [0, 1]))
        torch.tensordot(m, t(1, 4), 1)
        torch.tensordot(m, m, i(1, 1).reshape(2, 1))
        grad(lambda x, y: torch.tensordot(x, y, ([0, 2], [0, 1])), b, c)
        torch.outer(v, m)
        torch.inner(v, q[0])
        torch.inner(m, torch.ones(2))
        torch.vdot(v, q[0])
        torch.vdot(m, m)
        torch.addmv(v, m, v)
        torch.addr(torch.ones(2, 2), t(2), v)
        torch.addr(v, m, v)
        torch.baddbmm(torch.ones(3, 2, 2), b, b.mT)
        torch.baddbmm(torch.ones(2, 2, 2), b, b)
        torch.baddbmm(torch.ones(2, 2, 2), m, b)
        torch.addbmm(torch.ones(3, 3), b, b.mT)
        torch.cross(m, v)
        torch.cross(torch.ones(2, 2), torch.ones(2, 2))
        torch.cross(v, q[0])
        torch.cross(m, m, dim=0)
        torch.cross(m, m, 5)
        torch.matrix_power(m, 2)
        torch.matrix_power(v, 2)
        torch.matrix_power(s, 2.5)
        torch.linalg.multi_dot([s])
        torch.linalg.multi_dot([])
        torch.linalg.multi_dot([m, t(2)])
        torch.linalg.multi_dot([s, t(3), s])
        torch.chain_matmul()
        torch.dist(q, q)
        torch.dist(v, torch.ones(2))
        torch.cdist(v, v)
        torch.cdist(m, torch.ones(2, 2))
        torch.cdist(m, m, p=-1)
        torch.cdist(q, q)
        torch.cdist(m, d)
        torch.tensordot(m, m, dims=3)
        torch.tensordot(m, m, dims=1)
        torch.tensordot(m, m, dims=-1)
        torch.tensordot(m, m, dims=([0, 1], [0]))
        torch.tensordot(m, m, ([5], [0]))
        torch.tensordot(m, q, 1)
        torch.tensordot(m, m, 'a')
        torch.tensordot(m, m, ([0, 0], [0, 0]))
    """,
    "einsum": """
        torch.einsum('i,i', v, w)
        torch.einsum('i,j', v, w)
        torch.einsum('ij,j', m, v)
        torch.einsum('ij->ji', m)
        torch.einsum('ba', m)
        torch.einsum('ii', s)
        torch.einsum('ii->i', s)
        torch.einsum('...ij,...jk', b, c)
        torch.einsum('i j , j', m, v)
        torch.einsum('ij->', m)
        torch.einsum('i...', m)
        torch.einsum('...', m)
        torch.einsum('...i->...', b)
        torch.einsum('...i,...i', m, v)
        torch.einsum('i->...i', v)
        torch.einsum('i->', q[0])
        torch.einsum('', torch.tensor(2.0))
        torch.einsum(',', torch.tensor(2.0), torch.tensor(3.0))
        torch.einsum('ij,jk,kl', m, n, n.T)
        torch.einsum('iI->Ii', m)
        torch.einsum('->', torch.tensor(1.0))
        torch.einsum('i,j,k->kji', v, w, v)
        torch.einsum('bij,bjk->bik', b, c)
        torch.einsum('bij,bjk->ik', b, c)
        torch.einsum('bij,bjk->bk', b, c)
        torch.einsum('ij,ij->ij', m, m)
        torch.einsum('i,ij->ij', t(2), m)
        torch.einsum('ij,j->ij', m, torch.ones(1))
        torch.einsum('ij,j->i', m, torch.ones(1))
        torch.einsum('...->', m)
        torch.einsum('...ij->ij', b)
        torch.einsum('bij,kj->bik', b, s)
        torch.einsum('ij,jk', [m, n])
        torch.einsum('aij,ajk->aik', c, t(2, 4, 2))
        torch.einsum('bhqd,bhkd->bhqk', t(2, 2, 3, 4), t(2, 2, 3, 4, start=3))
        torch.einsum('iij->j', t(3, 3, 2))
        torch.einsum('ij,jk->ik', q, q.T)
        torch.einsum('ij,jk->ik', z.T, z)
        torch.einsum('ij,kj->ik', z, z)
        torch.einsum(m, [0, 1], n, [1, 2], [0, 2])
        torch.einsum(m, [0, 1], v, [1])
        torch.einsum(b, [..., 0, 1], v, [1])
        grad(lambda x, y: torch.einsum('ij,jk->ik', x, y), m, n)
        grad(lambda x, y: torch.einsum('bij,bjk->k', x, y), b, c)
        grad(lambda x: torch.einsum('ii->i', x), s)
        grad(lambda x, y, z: torch.einsum('i,ij,j->', x, y, z), v, s, w)
        torch.einsum('ij,jk', m, m)
        torch.einsum('ij->ik', m)
        torch.einsum('ij->ii', m)
        torch.einsum('ij,jk->ik', m)
        torch.einsum('ij', v)
        torch.einsum('1j', m)
        torch.einsum('i,i', v, q[0])
        torch.einsum('ij..', m)
        torch.einsum('...i...', m)
        torch.einsum('i->i->i', v)
        torch.einsum('ij-ji', m)
        torch.einsum('i->ij', v)
        torch.einsum('ii', m)
        torch.einsum(m, [0, 60])
        torch.einsum('i')
        torch.einsum()
        torch.einsum('i', 3)
        torch.einsum(3, v)
    """,
    "norms": """
        torch.linalg.norm(m)
        torch.linalg.norm(v, 3)
        torch.linalg.norm(m, 1)
        torch.linalg.norm(m, inf)
        torch.linalg.norm(m, -1)
        torch.linalg.norm(m, -inf)
        torch.linalg.norm(m, 'fro')
        torch.linalg.norm(m, dim=0)
        torch.linalg.norm(m, 2, dim=1)
        torch.linalg.norm(b, dim=(1, 2))
        torch.linalg.norm(b)
        torch.linalg.norm(m, 1, dim=(0, 1), keepdim=True)
        torch.linalg.vector_norm(m)
        torch.linalg.vector_norm(m, 1, dim=0)
        torch.linalg.vector_norm(m, 0)
        torch.linalg.vector_norm(m, -inf, dim=1, keepdim=True)
        torch.linalg.vector_norm(m, dtype=torch.float64)
        torch.linalg.matrix_norm(m)
        torch.linalg.matrix_norm(b)
        torch.linalg.matrix_norm(b, inf)
        torch.linalg.matrix_norm(b, 1, dim=(0, 1))
        torch.linalg.matrix_norm(m, keepdim=True)
        grad(lambda x: torch.linalg.norm(x, 1), m)
        grad(lambda x: torch.linalg.vector_norm(x, 3, dim=1), m)
        torch.linalg.norm(b, 1)
        torch.linalg.norm(m, 'x')
        torch.linalg.norm(q)
        torch.linalg.norm(v, 'fro')
        torch.linalg.norm(m, 0)
        torch.linalg.norm(m, dim=(0, 0))
        torch.linalg.vector_norm(q)
        torch.linalg.vector_norm(m, 'a')
        torch.linalg.matrix_norm(v)
        torch.linalg.matrix_norm(m, 3)
        torch.linalg.matrix_norm(m, dim=(0, 0))
        torch.linalg.matrix_norm(q)
    """,
    "indexing": """
        m[True]
        m[False]
        m[True, True]
        m[True, False]
        m[True, i(0, 1)]
        m[i(0, 1, 0), True]
        m[None, True, i(0, 1, 0)]
        m[:, True, i(0, 1, 0)]
        m[i(0, 1), :, True]
        m[True, 0]
        m[torch.tensor(True)]
        m[torch.tensor(True), i(0, 1, 1)]
        m[False, i(0)]
        m[..., True, i(0, 2)]
        b[:, i(0, 1), :, None, i(0)] if False else b[:, i(0, 1), i(0, 2)]
        b[i(0, 1), :, i(0, 2)]
        b[0, :, i(0, 2)]
        b[i(0, 1), 0]
        b[:, 0, i(0, 2)]
        b[i(0, 1)[:, None], :, i(0, 2)]
        b[i(0, 1)[:, None], i(0, 1)]
        b[None, i(0, 1), None, i(0, 1)]
        b[k[:, :2]]
        b[:, k[:, 0]]
        b[k[:, 0], :, i(0, 2)]
        b[..., i(2, 0)]
        b[1:, ..., i(2, 0)]
        m[k]
        x = m.clone(); x[True] = 7; x
        x = m.clone(); x[False] = 7; x
        x = m.clone(); x[True, i(0)] = v; x
        x = m.clone(); x[k] = -1; x
        x = b.clone(); x[i(0, 1), :, i(0, 2)] = t(2, 2); x
        x = b.clone(); x[:, i(0, 1), i(0, 2)] = t(2, 1); x
        m.clone().index_put_((i(0), i(1)), torch.tensor(1.0))
        torch.zeros(2, 3).index_put_((i(0, 0),), torch.tensor(1.0), accumulate=True)
        torch.zeros(2, 3).index_put_((i(0, 0, 1), i(1, 1, 2)), i(1, 2, 3).float(), True)
        m.clone().index_put_((torch.tensor(0), torch.tensor(0)), torch.tensor(1.0))
        m.clone().index_put_((k,), torch.tensor(1.0), True)
        torch.index_put(m, (i(0),), v)
        m.index_put((i(0, 1), i(2, 2)), i(5, 6).float())
        grad(lambda x, y: x.index_put((i(0, 0),), y), m, v)
        grad(lambda x, y: x.index_put((i(0, 0, 1), i(1, 1, 2)), y, True), m, v)
        torch.masked_select(m, k)
        torch.masked_select(m, torch.tensor([True, False, True]))
        torch.masked_select(torch.tensor(1.0), torch.tensor(True))
        torch.masked_select(v, k)
        m.masked_select(m > 9)
        torch.masked_select(m, k, out=torch.empty(0))
        grad(lambda x: x.masked_select(k), m)
        torch.masked_scatter(m, k, t(9))
        torch.masked_scatter(m, torch.tensor([True, False, True]), t(9))
        x = m.clone(); x.masked_scatter_(k, t(3)); x
        grad(lambda x, y: x.masked_scatter(k, y), m, t(4))
        torch.take_along_dim(m, m.argmax(1, keepdim=True), 1)
        torch.take_along_dim(m, torch.zeros(1, 3, dtype=torch.int64), 0)
        torch.take_along_dim(m, torch.zeros(1, 1, dtype=torch.int64), 1)
        torch.take_along_dim(m, i(5, 0))
        m.take_along_dim(i(1, 0)[:, None], dim=1)
        grad(lambda x: x.take_along_dim(i(1, 0)[:, None], dim=1), m)
        torch.argwhere(m)
        torch.argwhere(torch.tensor(1.0))
        torch.argwhere(torch.tensor(0.0))
        torch.argwhere(z)
        k.argwhere()
        torch.nonzero(torch.tensor(1.0))
        torch.nonzero(b > 0, as_tuple=True)
        torch.nonzero(z, as_tuple=True)
        m[i(0, 1, 0), False]
        m[i(0, 1), i(0, 1, 2)]
        m[k, i(0)]
        m[k[0]]
        m[i(5)] if m.device.type == 'cpu' else i(5)[9]
        m.clone().index_put_((0,), torch.tensor(1.0))
        m.clone().index_put_(i(0), torch.tensor(1.0))
        m.clone().index_put_((i(0),), torch.tensor(1))
        torch.masked_select(m, q)
        torch.masked_select(m, torch.ones(2, dtype=torch.bool))
        torch.masked_scatter(m, k, t(2))
        torch.masked_scatter(m, q, t(9))
        torch.masked_scatter(m, k, q)
        torch.take_along_dim(m, torch.zeros(3, dtype=torch.int64), 0)
        torch.take_along_dim(m, torch.zeros(1, 3, dtype=torch.int32), 0)
        torch.take_along_dim(m, torch.zeros(5, 3, dtype=torch.int64), 1)
    """,
}


def make(torch):
    cases = []
    for heading, block in CASES.items():
        for line in block.strip().splitlines():
            cases.append([heading, line.strip(), outcome(line.strip(), torch)])
    return {"setup": SETUP, "cases": cases}


def outcome(source, torch, setup=SETUP):
    """What the statements give, or the class of Python's own of what they raise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = run(f"{setup}\n{source}", {"torch": torch})
        except Exception as error:
            return {"raises": builtin_name(error)}
    return without_strides(describe(value, torch))


def without_strides(described):
    """The description with no strides in it."""
    if isinstance(described, dict):
        return {
            key: without_strides(value)
            for key, value in described.items()
            if key != "stride"
        }
    if isinstance(described, list):
        return [without_strides(each) for each in described]
    return described
