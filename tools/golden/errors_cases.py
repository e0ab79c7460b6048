"""Wrong calls and the exceptions that PyTorch raises for them: the type, not the words.

In each call x is 2 x 3, v has 3 elements, e has none; i is of int64, b of bool.
"""

import math

import numpy
from describe import builtin_name

SETUP = (
    "x = torch.arange(6.0).reshape(2, 3); v = torch.arange(3.0); e = torch.empty(0); "
    "i = torch.arange(3); b = torch.tensor([True, False, True])"
)

CALLS = {
    "device strings": """
        torch.device('gpu')
        torch.device('')
        torch.device('cuda:')
        torch.device('cuda:-1')
        torch.device('cuda:01')
        torch.device('cuda:1.5')
        torch.device('cuda:x')
        torch.device('cuda 1')
        torch.device(':0')
        torch.device('CPU')
        torch.device('cpu:x')
        torch.device(1.5)
        torch.device(None)
        torch.device()
        torch.device('cuda', 'cpu')
        torch.device('cuda', -1)
        torch.device('cuda:1', 1)
        torch.device('cuda', index=1.5)
        torch.device('cpu', nonsense=1)
        torch.zeros(2, device='gpu')
        torch.zeros(2, device='cuda:-1')
        torch.zeros(2, device=1.5)
        torch.zeros(2, device=[])
        torch.ones(2, device='nothing:0')
        torch.tensor([1], device='gpu')
        x.to('gpu')
        x.to('cuda:-2')
        x.to(device='gpu')
        torch.arange(3, device='gpu')
        torch.rand(2, device='gpu')
        torch.device('cpu').index = 1
        torch.set_default_device('gpu')
        torch.cuda.device('cpu')
        torch.cuda.set_device('gpu')
        torch.Generator('gpu')
        """,
    "shapes that do not broadcast": """
        x + torch.ones(2)
        x * torch.ones(4)
        x - torch.ones(3, 2)
        x / torch.ones(2, 2)
        x // torch.ones(4)
        x % torch.ones(4)
        x ** torch.ones(4)
        x == torch.ones(4)
        x < torch.ones(4)
        torch.maximum(x, torch.ones(4))
        torch.add(v, torch.ones(4))
        v.add_(torch.ones(4))
        v += x
        v.add_(torch.ones(2, 3))
        v.copy_(torch.ones(4))
        v.mul_(torch.ones(2, 3))
        e + torch.ones(2)
        x.expand(4, 3)
        x.expand(3)
        x.expand(-1, 2, 3)
        x.expand(2, 4)
        torch.broadcast_to(v, (2, 4))
        """,
    "indices": """
        x[2]
        x[-3]
        x[0, 3]
        x[0, 0, 0]
        x['a']
        x[1.5]
        x[0, 'a']
        x[::-1]
        x[::0]
        x[slice('a')]
        x[1.0:2.0]
        v[5]
        v[-4]
        e[0]
        torch.tensor(1.0)[0]
        torch.tensor(1.0)[:]
        x[torch.tensor(2)]
        x[torch.tensor(0.5)]
        x[torch.tensor(1), torch.tensor(5)]
        x[2] = 1
        x[0, 3] = 1
        x[0] = torch.ones(2)
        x[:, 0] = torch.ones(3)
        x[0] = torch.ones(2, 3)
        x[0] = 'a'
        x[0] = None
        x[0] = [1, 2]
        torch.tensor(1.0)[0] = 1
        del x[0]
        x.select(2, 0)
        x.select(0, 2)
        x.select(0, -3)
        x.narrow(0, 1, 2)
        x.narrow(0, 0, -1)
        x.narrow(2, 0, 1)
        x.narrow(0, 3, 0)
        """,
    "sizes": """
        torch.zeros(-1)
        torch.zeros(2, -1)
        torch.zeros((2, -3))
        torch.ones(-1)
        torch.empty(-1)
        torch.full((-1,), 1)
        torch.rand(-1)
        torch.randn(2, -1)
        torch.zeros(1.5)
        torch.zeros(2, 1.5)
        torch.zeros('a')
        torch.ones(True)
        torch.zeros((2, 'a'))
        torch.zeros([2, [3]])
        torch.zeros(None)
        torch.zeros()
        torch.ones()
        torch.empty()
        torch.rand()
        torch.zeros(2**62, 2**62)
        torch.zeros(2**63)
        torch.zeros(10**30)
        torch.empty(2**50)
        torch.full(3, 1)
        torch.full((2,))
        torch.full((2,), 'a')
        torch.full((2,), [1])
        torch.zeros(torch.ones(2))
        torch.eye(-1)
        torch.arange(5, 0)
        torch.arange(0, 5, 0)
        torch.arange(0, 5, -1)
        torch.arange()
        torch.arange('a')
        torch.arange(0, float('inf'))
        torch.arange(float('nan'))
        torch.arange(1, 2, 3, 4)
        """,
    "views": """
        x.view(4)
        x.view(-1, -1)
        x.view(-1, 4)
        x.view(2, -2)
        x.view(-2, 3)
        x.view('a')
        x.view()
        x.t().view(6)
        x.t().view(-1)
        x.reshape(4)
        x.reshape(-1, 4)
        x.reshape(-1, -1)
        e.view(-1, 0)
        e.reshape(0, -1)
        x.reshape(1.5)
        torch.reshape(x, 6)
        torch.reshape(x)
        x.transpose(0, 2)
        x.transpose(0)
        x.transpose(-3, 0)
        x.transpose('a', 'b')
        torch.ones(1, 2, 3).t()
        x.permute(0)
        x.permute(0, 0)
        x.permute(0, 2)
        x.permute(0, 1, 2)
        x.permute()
        x.squeeze(2)
        x.squeeze(-3)
        x.squeeze((0, 0))
        x.unsqueeze(3)
        x.unsqueeze(-4)
        x.unsqueeze()
        x.flatten(2)
        x.flatten(1, 0)
        x.flatten(0, 2)
        torch.ones(1, 2, 3).mT.mT.T.t()
        x.chunk(0)
        x.chunk(-1)
        x.chunk(2, 2)
        x.split(-1)
        x.split(0)
        x.split([1, 2])
        x.split([1, -1, 2])
        x.split(1, dim=2)
        x.as_strided((2, 2), (3, 4))
        x.as_strided((2,), (-1,))
        x.as_strided((2, 2), (1,))
        v.mT
        """,
    "dimensions": """
        x.sum(2)
        x.sum(-3)
        x.sum((0, 0))
        x.sum((0, 2))
        x.sum((0, -2))
        x.sum('a')
        x.sum(1.5)
        x.sum(dim='a')
        x.mean(2)
        x.max(2)
        x.min(-3)
        x.prod(2)
        x.prod((0, 1))
        x.norm(2, 5)
        x.argmax(2)
        x.argmin(-3)
        x.amax(2)
        x.amax((0, 0))
        x.any(2)
        torch.tensor(1.0).sum(1)
        torch.tensor(1.0).max(1)
        x.size(2)
        x.size(-3)
        x.stride(2)
        len(torch.tensor(1))
        iter(torch.tensor(1))
        list(torch.tensor(1.0))
        """,
    "nothing to reduce": """
        e.max()
        e.min()
        e.argmax()
        e.argmin()
        e.amax()
        e.max(0)
        e.amin(0)
        torch.empty(0, 3).max(0)
        torch.empty(0, 3).argmax(0)
        torch.empty(2, 0).max(1)
        """,
    "element types": """
        i.mean()
        b.mean()
        i.mean(0)
        i.norm()
        torch.norm(i)
        i.float().norm(dtype=torch.int64)
        -b
        b - b
        b - True
        1 - b
        ~v
        v & v
        v | 1
        i & 1.5
        v << 1
        i.sqrt_()
        i.exp_()
        i += 1.5
        i.add_(1.5)
        i.mul_(v)
        i /= 2
        i.div_(2)
        b += 1
        b.add_(i)
        i.uniform_()
        i.normal_()
        torch.rand(2, dtype=torch.int64)
        torch.randn(2, dtype=torch.int32)
        torch.zeros(2, dtype='float32')
        torch.zeros(2, dtype=1)
        torch.tensor([1], dtype='int64')
        x.to('float32')
        x.to(dtype='float32')
        x.type('nonsense')
        torch.matmul(v, i)
        x.mm(torch.ones(3, 2, dtype=torch.float64))
        torch.dot(v, i)
        b @ b
        torch.full((2,), 300, dtype=torch.uint8)
        torch.full((2,), 2**40, dtype=torch.int32)
        torch.tensor(300, dtype=torch.uint8)
        torch.tensor(2**70)
        torch.tensor([2**63])
        torch.tensor(2**40, dtype=torch.int32)
        torch.tensor(float('nan'), dtype=torch.int64)
        torch.tensor(float('inf'), dtype=torch.int32)
        i.fill_(float('nan'))
        i.fill_(2**70)
        i + 2**70
        v + 10**400
        torch.arange(3, dtype=torch.bool)
        """,
    "integer arithmetic": """
        i // 0
        i % 0
        i // torch.zeros(3, dtype=torch.int64)
        i % torch.zeros(3, dtype=torch.int64)
        torch.fmod(i, 0)
        i.floor_divide_(0)
        1 // torch.tensor(0)
        i ** -1
        torch.tensor(2) ** -2
        """,
    "matrix products": """
        x @ x
        x @ torch.ones(2)
        v @ torch.ones(4)
        v @ torch.ones(2, 3)
        torch.tensor(1.0) @ v
        v @ torch.tensor(1.0)
        x @ torch.tensor(1.0)
        x @ 2
        2 @ x
        x @ [1, 2, 3]
        torch.matmul(x)
        torch.matmul(x, 2)
        torch.matmul(torch.ones(2, 3, 4), torch.ones(3, 4, 5))
        torch.matmul(torch.ones(2, 3, 4), torch.ones(3, 5))
        x.mm(x)
        x.mm(v)
        v.mm(x)
        torch.mm(torch.ones(1, 2, 3), torch.ones(1, 3, 2))
        x.mv(torch.ones(2))
        x.mv(x)
        v.dot(torch.ones(4))
        v.dot(x)
        torch.bmm(x, x)
        torch.bmm(torch.ones(2, 3, 4), torch.ones(3, 4, 5))
        torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 3, 4))
        torch.addmm(torch.ones(3), x, x)
        torch.addmm(torch.ones(4), x, x.t())
        torch.addmm(torch.ones(2, 2), x, v)
        torch.addmm(torch.ones(2, 2), x)
        torch.addmm(torch.ones(2, 2), x, x.t(), alpha='a')
        """,
    "conversions": """
        x.item()
        e.item()
        bool(x)
        bool(e)
        int(x)
        float(v)
        float(e)
        complex(x)
        if x: pass
        not x
        x and v
        range(v[0])
        range(torch.tensor(2.0))
        [1, 2, 3][torch.tensor(1.0)]
        [1, 2, 3][v]
        hex(torch.tensor(1.5))
        format(x, '.2f')
        f'{v:.3f}'
        f'{torch.tensor(1):nonsense}'
        '%d' % v
        math.sqrt(v)
        round(v, 'a')
        int(torch.tensor(float('nan')))
        int(torch.tensor(float('inf')))
        x.tolist(1)
        x.item(0)
        """,
    "tensor()": """
        torch.tensor()
        torch.tensor('a')
        torch.tensor(['a', 'b'])
        torch.tensor([1, 'a'])
        torch.tensor([1, None])
        torch.tensor(None)
        torch.tensor([[1, 2], [3]])
        torch.tensor([1, [2]])
        torch.tensor([[1], 2])
        torch.tensor([[1, 2], [3, 4, 5]])
        torch.tensor({1: 2})
        torch.tensor({1, 2})
        torch.tensor(object())
        torch.tensor(1, 2)
        torch.tensor([1], dtype=torch.float32, nonsense=1)
        torch.tensor([x, x])
        torch.tensor([torch.ones(2), 3])
        torch.tensor([lambda: 1])
        torch.tensor(range)
        torch.tensor(data=[1], data2=3)
        torch.tensor([1, 2], requires_grad=True)
        torch.Size('a')
        torch.Size([1.5])
        """,
    "arguments": """
        torch.zeros(2, nonsense=1)
        torch.zeros(2, 3, size=(2, 3))
        torch.ones(2, dtype=torch.float32, dtyp=1)
        torch.rand(2, sise=3)
        torch.arange(3, stop=5)
        x.sum(dims=0)
        x.sum(0, axis=0)
        x.sum(dim=0, axis=0)
        x.sum(0, True, True, True)
        x.sum(keepdim='a')
        x.mean(dim=0, keepdim=1.5)
        x.mean(nonsense=0)
        x.max(0, 1, 2)
        x.max(dim=0, keepdim='yes')
        x.max(keepdim=True)
        x.max(torch.ones(2, 3), 1)
        torch.max(x, (0, 1))
        x.norm('a')
        x.norm(p='nonsense')
        x.norm(p='nuc2')
        torch.norm()
        torch.sum()
        torch.sum([1, 2])
        torch.sum(1)
        torch.sum(x, out=3)
        torch.exp()
        torch.exp(1.0)
        torch.exp([1.0])
        torch.exp(x, x)
        torch.exp('a')
        torch.exp(None)
        torch.sqrt(2)
        torch.abs(-1)
        torch.add(x)
        torch.add(x, 'a')
        torch.add(x, None)
        torch.add(x, [1, 2, 3])
        torch.maximum(x, 1)
        torch.pow(2, 3)
        x.add()
        x.add(1, 2, 3)
        x.add(1, nonsense=2)
        x.add(x, alpha='a')
        i.add(i, alpha=1.5)
        b.add(b, alpha=1.5)
        x.sub('a')
        x + 'a'
        x - None
        x * [1, 2, 3]
        x / 'a'
        x // 'a'
        x % None
        x ** 'a'
        'a' + x
        None + x
        [1] * x
        x < 'a'
        x >= None
        x < [1, 2, 3]
        {} < x
        x.exp(1)
        x.exp_(nonsense=1)
        x.abs(out=1)
        x.fill_('a')
        x.fill_(torch.ones(2))
        x.fill_()
        x.fill_(None)
        x.zero_(1)
        x.copy_()
        x.copy_('a')
        x.to(nonsense=1)
        x.to(other=i)
        x.to('cpu', 'cpu')
        x.cpu(1)
        x.clone(1)
        x.uniform_(2, 1)
        x.normal_(0, -1)
        x.uniform_('a')
        x.dim(1)
        x.numel(1)
        x.nonsense
        x.nonsense()
        x.shape = (3, 2)
        x.dtype = torch.int64
        x.device = 'cpu'
        torch.nonsense
        torch.manual_seed()
        torch.manual_seed(2**64)
        torch.Generator().manual_seed('a')
        torch.rand(2, generator=1)
        torch.set_printoptions(nonsense=1)
        x.is_nonsense()
        torch.device('cpu')(1, 2)
        x()
        x.numpy(1, 2, 3)
        """,
    "NumPy": """
        torch.from_numpy([1, 2])
        torch.from_numpy(x)
        torch.from_numpy(1.0)
        torch.from_numpy(numpy.array(['a']))
        torch.from_numpy(numpy.array([object()]))
        torch.from_numpy(numpy.arange(3)[::-1])
        torch.from_numpy(numpy.array([1 + 2j], dtype='clongdouble'))
        torch.from_numpy(numpy.float32(1))
        torch.tensor(numpy.array(['a']))
        torch.tensor(numpy.array([None]))
        torch.from_numpy()
        torch.from_numpy(numpy.zeros(2, dtype='>f4'))
        """,
    "put together and rearranged": """
        torch.cat([])
        torch.cat(())
        torch.cat()
        torch.cat(x)
        torch.cat(5)
        torch.cat([v, 3])
        torch.cat([v, None])
        torch.cat([[1.0]])
        torch.cat(t for t in [v])
        torch.cat([v], 'x')
        torch.cat([v], None)
        torch.cat([v], 0.5)
        torch.cat([v], True)
        torch.cat([v], 1)
        torch.cat([v], 0, e)
        torch.cat([torch.tensor(1.0)])
        torch.cat([x, v])
        torch.cat([x, torch.ones(3, 2)])
        torch.cat([x, torch.ones(3, 3)], 1)
        torch.cat([x], -3)
        torch.cat([v], out=torch.empty(0, dtype=torch.int64))
        torch.cat([x[:1], x[:1]], out=x)
        torch.cat([v.clone().requires_grad_()], out=torch.empty(0))
        torch.stack([])
        torch.stack(x)
        torch.stack([v, 1])
        torch.stack([v, e])
        torch.stack([v, x])
        torch.stack([v], 2)
        torch.stack([v], -3)
        torch.hstack([])
        torch.hstack(x)
        torch.hstack([x, torch.ones(3, 3)])
        torch.vstack([v, torch.ones(2)])
        torch.dstack([v, torch.ones(2, 2)])
        torch.column_stack([torch.ones(2, 3, 4), x])
        torch.atleast_1d(3)
        torch.atleast_2d([v, 3])
        torch.broadcast_tensors(v, torch.ones(2))
        torch.broadcast_tensors(v, 3)
        torch.flip(x, 0)
        x.flip(2)
        x.flip(0, 0)
        x.flip()
        torch.fliplr(v)
        torch.flipud(torch.tensor(1.0))
        x.roll((1, 2), 0)
        x.roll((1, 2))
        x.roll(1, 2)
        x.roll(())
        x.roll(1.5, 0)
        torch.tensor(1.0).roll(1, 0)
        torch.rot90(v)
        torch.rot90(x, 1, (1, 1))
        torch.rot90(x, 1, (1, 2))
        torch.rot90(x, 1, (1,))
        x.repeat(2)
        x.repeat()
        x.repeat(2, -1)
        x.repeat(2.0, 1)
        torch.tile(x, 2)
        torch.tile(x, (-1,))
        x.repeat_interleave(-1)
        x.repeat_interleave(2.5)
        x.repeat_interleave(2, 2)
        x.repeat_interleave(i)
        x.repeat_interleave(i - 1, 1)
        x.repeat_interleave(v, 1)
        x.repeat_interleave(i.to(torch.int8), 1)
        x.repeat_interleave(2, 1, output_size=7)
        torch.repeat_interleave(x, [1, 2, 0], 1)
        torch.repeat_interleave(torch.tensor(3))
        torch.diagonal(v)
        torch.diagonal(x, 0, 1, 1)
        torch.diagonal(x, 0, 2, 1)
        torch.diag(torch.tensor(1.0))
        torch.diag(x[None])
        torch.diag_embed(x, 0, 0, 0)
        torch.diag_embed(torch.tensor(1.0))
        torch.trace(v)
        torch.trace(x > 0)
        x.unfold(1, 4, 1)
        x.unfold(1, 2, 0)
        x.unfold(1, -1, 1)
        x.unfold(2, 1, 1)
        x.unflatten(1, (2, 2))
        x.unflatten(1, (-1, -1))
        x.unflatten(1, ())
        x.unflatten(2, (1,))
        x.unflatten(1, 3)
        x.tensor_split(0)
        x.tensor_split(2, 2)
        x.tensor_split(2.5)
        x.tensor_split(torch.ones(2))
        torch.tensor(1.0).tensor_split(2)
        x.hsplit(2)
        x.hsplit(0)
        x.dsplit(2)
        v.vsplit(1)
        torch.tensor(1.0).hsplit(1)
        x.split_with_sizes((1, 1), 1)
        x.split_with_sizes((4, -1), 1)
        x[None].t_()
        x.clone().requires_grad_().t_()
        x.clone().requires_grad_()[0].unsqueeze_(0)
        x.unsqueeze_(4)
        """,
}


def make(torch):
    calls = []
    for heading, block in CALLS.items():
        for line in block.strip().splitlines():
            calls.append([heading, line.strip(), *outcome(line.strip(), torch)])
    return {"setup": SETUP, "calls": calls}


def outcome(call, torch):
    """The exception's name, and the class of Python's own that it is or derives from."""
    names = {"torch": torch, "math": math, "numpy": numpy}
    exec(SETUP, names)
    try:
        exec(call, names)
    except Exception as error:
        return type(error).__name__, builtin_name(error)
    raise AssertionError(f"PyTorch accepts {call}: it belongs into semantics_cases.py")
