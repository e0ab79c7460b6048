"""What expressions give: type, shape, strides and values, in every spelling.

One case a line: statements, the last of them the expression whose value is recorded. The
names in SETUP exist: x is 2 x 3, m is 3 x 3, v has 3 elements, e none, i is of int64, b of
bool, s has no dimension. The test evaluates them on each device.
"""

from describe import describe, run

SETUP = (
    "x = torch.arange(6.0).reshape(2, 3); m = torch.tensor([[2., -1, 0], [1, 3, -2], [0, 5, 4]]); "
    "v = torch.tensor([1., -2., 3.]); e = torch.empty(0); i = torch.tensor([7, -7, 3]); "
    "b = torch.tensor([True, False, True]); s = torch.tensor(2.5); c = torch.arange(24).reshape(2, 3, 4); "
    "nan = float('nan'); inf = float('inf')"
)

CASES = {
    "factories": """
        torch.zeros(2, 3)
        torch.zeros((2, 3))
        torch.zeros([2, 3])
        torch.zeros(size=(2, 3))
        torch.zeros(torch.Size([2, 3]))
        torch.zeros(())
        torch.zeros([])
        torch.zeros(0)
        torch.zeros(2, 0, 3)
        torch.zeros(1)
        torch.zeros(2, dtype=torch.int32)
        torch.zeros((2,), dtype=torch.bool)
        torch.zeros(2, 3, dtype=None)
        torch.zeros(2, requires_grad=False)
        torch.zeros(*x.shape)
        torch.zeros(x.shape[0], 2)
        torch.zeros(torch.tensor(2), 3)
        torch.zeros(x.size())
        torch.ones(2, 3)
        torch.ones((2, 3))
        torch.ones(size=(2, 3))
        torch.ones(2, 3, dtype=torch.float64)
        torch.ones((3,), dtype=torch.int64)
        torch.empty(2, 3).shape
        torch.empty((2, 3), dtype=torch.int32).dtype
        torch.empty(size=(4,)).stride()
        torch.full((2, 3), 7)
        torch.full((2, 3), 7.0)
        torch.full([2], True)
        torch.full(size=(2,), fill_value=1.5)
        torch.full((2,), 3, dtype=torch.float32)
        torch.full((2,), 2.7, dtype=torch.int64)
        torch.full((2,), nan)
        torch.full((), 3.5)
        torch.full((2, 2), inf, dtype=torch.float64)
        torch.full((2,), torch.tensor(3.0))
        torch.rand(2, 3).shape
        torch.rand((2, 3)).shape
        torch.rand(size=(2, 3)).shape
        torch.rand(2, dtype=torch.float64).dtype
        torch.randn(2, 3).shape
        torch.randn(size=(2, 3)).dtype
        torch.randn((2,), dtype=torch.float64).dtype
        torch.zeros_like(x)
        torch.zeros_like(x, dtype=torch.int64)
        torch.ones_like(i)
        torch.ones_like(x.t())
        torch.zeros_like(torch.empty(4, 6)[::2, 1:3])
        torch.full_like(x, 3)
        torch.full_like(i, 2.9)
        torch.empty_like(c.permute(2, 0, 1)).stride()
        torch.empty_like(b).dtype
        torch.rand_like(x).shape
        torch.randn_like(x.t()).stride()
        torch.eye(3)
        torch.eye(2, 3)
        torch.eye(2, dtype=torch.int64)
        torch.eye(0)
        """,
    "arange": """
        torch.arange(5)
        torch.arange(5.0)
        torch.arange(2, 5)
        torch.arange(2, 5, 2)
        torch.arange(5, 2, -1)
        torch.arange(0, 1, 0.25)
        torch.arange(0, 1.0, 0.1)
        torch.arange(1, 2, 0.3)
        torch.arange(0.5, 4)
        torch.arange(start=1, end=4)
        torch.arange(start=1, end=4, step=2)
        torch.arange(1, end=4)
        torch.arange(1, 10, step=3)
        torch.arange(end=3)
        torch.arange(3, dtype=torch.float32)
        torch.arange(3, dtype=torch.float64)
        torch.arange(2.5, dtype=torch.int64)
        torch.arange(0)
        torch.arange(3, 3)
        torch.arange(-3, 3)
        torch.arange(4, -4, -3)
        torch.arange(1e-3, 5e-3, 1e-3, dtype=torch.float64)
        torch.arange(True)
        torch.arange(torch.tensor(3))
        torch.arange(2**40, 2**40 + 3)
        torch.arange(12).reshape(3, 4)
        torch.arange(12, dtype=torch.float32).reshape((3, 4))
        torch.arange(0, -1, -0.25)
        """,
    "tensor()": """
        torch.tensor(1)
        torch.tensor(1.5)
        torch.tensor(True)
        torch.tensor([])
        torch.tensor([[]])
        torch.tensor([[], []])
        torch.tensor([1, 2, 3])
        torch.tensor((1, 2, 3))
        torch.tensor([(1, 2), (3, 4)])
        torch.tensor(range(4))
        torch.tensor([range(2), range(2)])
        torch.tensor([1, 2.5])
        torch.tensor([True, 2])
        torch.tensor([True, 2.5])
        torch.tensor([True, False])
        torch.tensor([[1, 2], [3, 4]])
        torch.tensor([[[1], [2]], [[3], [4]]])
        torch.tensor([1, 2], dtype=torch.float32)
        torch.tensor([1.7, -1.7], dtype=torch.int64)
        torch.tensor([0, 1, -2], dtype=torch.bool)
        torch.tensor([0.0, 0.1], dtype=torch.bool)
        torch.tensor(3, dtype=torch.float64)
        torch.tensor(data=[1, 2])
        torch.tensor([1e40, -1e40, 1e-50])
        torch.tensor([1e40], dtype=torch.float64)
        torch.tensor([nan, inf, -inf])
        torch.tensor([2**62, -2**63])
        torch.tensor(-1, dtype=torch.uint8)
        torch.tensor([0.1], dtype=torch.float64)
        torch.tensor([s, 1.0])
        torch.tensor([torch.tensor(1), torch.tensor(2)])
        torch.tensor([v[0], v[1]])
        torch.tensor(s)
        torch.tensor(v)
        torch.tensor(v) is v
        torch.tensor([[1, 2], [3, 4]], dtype=torch.float32, requires_grad=False)
        torch.tensor([x.shape[0], x.numel()])
        torch.tensor(x.shape)
        torch.tensor([1, 2], device=v.device).device == v.device
        torch.as_tensor(v) is v
        torch.as_tensor([1.0, 2.0])
        """,
    "attributes": """
        x.shape
        x.size()
        x.size(0)
        x.size(-1)
        x.size(dim=1)
        x.shape[1]
        x.shape == (2, 3)
        x.shape == torch.Size([2, 3])
        x.shape.numel()
        len(x.shape)
        list(x.shape)
        rows, columns = x.shape; [rows, columns]
        x.dim()
        x.ndim
        x.ndimension()
        s.ndim
        x.numel()
        x.nelement()
        torch.numel(x)
        e.numel()
        x.stride()
        x.stride(0)
        x.t().stride()
        x.stride(-1)
        x.storage_offset()
        x[1].storage_offset()
        x.dtype
        i.dtype == torch.int64
        i.dtype is torch.long
        x.dtype.is_floating_point
        torch.int64.is_floating_point
        torch.float32.itemsize
        torch.float64.itemsize
        x.element_size()
        x.itemsize
        x.nbytes
        x.is_floating_point()
        i.is_floating_point()
        torch.is_floating_point(x)
        torch.is_tensor(x)
        torch.is_tensor([1])
        isinstance(x, torch.Tensor)
        x.is_contiguous()
        x.t().is_contiguous()
        x.requires_grad
        x.is_leaf
        x.grad is None
        x.grad_fn is None
        x.layout == torch.strided
        x.device.type in ('cpu', 'cuda')
        x.device == torch.zeros(1).device
        x.data_ptr() == x.view(6).data_ptr()
        x.data_ptr() == x.clone().data_ptr()
        x[1].data_ptr() - x.data_ptr()
        x.type()[-11:]
        x.is_cuda == (x.device.type == 'cuda')
        x.get_device() == (-1 if x.device.type == 'cpu' else x.device.index)
        torch.get_default_dtype()
        torch.is_floating_point(input=i)
        """,
    "arithmetic": """
        x + x
        x + 1
        1 + x
        x - 1
        1 - x
        x * 2
        2 * x
        x / 2
        2 / (x + 1)
        x // 2
        7 // (x + 1)
        x % 2
        7 % (x + 1)
        x ** 2
        2 ** x
        x ** 0.5
        x ** -1
        x ** 0
        -x
        +x
        abs(v)
        i + 1
        i + 1.5
        i * True
        i / 2
        i // 2
        i // -2
        i % 2
        i % -2
        i % 3
        i ** 2
        i ** 0
        2 ** torch.tensor([0, 1, 10])
        i.float() // 2
        i.float() % 2
        i.float() % -2
        i.float() // -2.5
        v // 0
        v % 0
        v / 0
        torch.tensor([0.0]) / 0
        i / 0
        i / torch.tensor([2, 2, 2])
        i // torch.tensor([2, -2, -2])
        i % torch.tensor([2, -2, -2])
        7 // i
        -7 // i
        7 % i
        7.5 // i
        torch.fmod(i, 3)
        torch.fmod(i, -3)
        torch.fmod(v, 2)
        torch.fmod(torch.tensor([-7.5, 7.5]), 2)
        torch.remainder(torch.tensor([-7.5, 7.5]), 2)
        torch.remainder(torch.tensor([-7.5, 7.5]), -2)
        torch.remainder(7, i)
        i.remainder(3)
        i.fmod(3)
        torch.tensor([inf, -inf, nan, 5.0]) % 3
        torch.tensor([5.0, -5.0]) % inf
        torch.tensor([5.0, -5.0]) // inf
        torch.tensor([0.0, -0.0]) * -1
        torch.tensor([-0.0]) + 0.0
        torch.floor_divide(torch.tensor([7.0, -7.0]), 2)
        torch.div(i, 2)
        torch.div(i, 2, rounding_mode='floor')
        torch.div(i, 2, rounding_mode='trunc')
        torch.div(v, 2, rounding_mode='floor')
        torch.div(v, 2, rounding_mode='trunc')
        torch.div(v, 2, rounding_mode=None)
        i.div(4)
        i.true_divide(2)
        torch.add(x, 1)
        torch.add(x, x, alpha=10)
        torch.add(input=x, other=x)
        torch.add(i, i, alpha=-2)
        torch.add(1, 2)
        torch.mul(2, 3)
        x.add(1)
        x.add(x)
        x.add(other=x, alpha=2)
        torch.sub(x, x, alpha=2)
        x.sub(1)
        torch.subtract(x, 1)
        torch.mul(x, x)
        x.mul(2)
        x.multiply(2)
        torch.multiply(x, x)
        torch.divide(x, 2)
        x.divide(2)
        torch.pow(x, 2)
        torch.pow(2, x)
        torch.pow(2.0, i.float())
        torch.pow(x, x)
        torch.pow(input=x, exponent=2)
        x.pow(3)
        x.pow(exponent=2)
        torch.tensor([-8.0, 4.0]) ** 0.5
        torch.tensor([-2.0, 0.0]) ** torch.tensor([3.0, 0.0])
        torch.tensor([0.0]) ** -1
        i ** torch.tensor([1, 2, 3])
        torch.tensor([2, 3], dtype=torch.int32) ** 31
        torch.tensor([2**62]) * 4
        torch.tensor([250], dtype=torch.uint8) + 10
        torch.tensor([100], dtype=torch.int8) * 2
        -torch.tensor([1], dtype=torch.uint8)
        abs(torch.tensor([-128], dtype=torch.int8))
        torch.tensor([1, 2]) + torch.tensor([0.5, 0.5])
        torch.tensor([1, 2]) + torch.tensor(0.5)
        torch.tensor([1, 2], dtype=torch.int32) + torch.tensor(5)
        torch.tensor([1.0]) + torch.tensor(2.0, dtype=torch.float64)
        torch.tensor([1.0]) + torch.tensor([2.0], dtype=torch.float64)
        torch.tensor(1) + torch.tensor(2, dtype=torch.int32)
        b + b
        b + 1
        b * 2.5
        b * b
        b / 2
        b + True
        x + True
        s + s
        s * 2
        2 - s
        s ** 2
        torch.rsub(x, 1)
        x.__radd__(1)
        x.__add__(2)
        x + x.t()[0, 0]
        torch.maximum(v, -v)
        torch.minimum(v, torch.tensor(0.0))
        torch.maximum(torch.tensor([1.0, nan]), torch.tensor([nan, 2.0]))
        torch.maximum(i, torch.tensor([0.5, 0.5, 5.5]))
        v.maximum(torch.tensor([0.0]))
        torch.atan2(v, torch.tensor([-1.0, 2.0, 0.0]))
        divmod(7, 2)
        """,
    "broadcasting": """
        x + v
        v + x
        x + torch.tensor([[10.0], [20.0]])
        torch.arange(3).reshape(3, 1) + torch.arange(2)
        torch.arange(3).reshape((3, 1)) + torch.arange(2).reshape((1, 2))
        torch.ones(2, 1, 3) * torch.arange(4.0).reshape(4, 1)
        e + 1
        e + torch.ones(1)
        torch.ones(0, 3) + torch.ones(1, 3)
        torch.ones(2, 0) + torch.ones(1)
        x + s
        s + x
        x.t() + torch.ones(3, 2)
        x.t() + x.t()
        x.t() + 1
        (c.permute(2, 0, 1) + 1).stride()
        (c.permute(2, 0, 1) + torch.ones(4, 2, 3)).stride()
        torch.ones(3, 2) + x.t()
        (x.t() + torch.arange(2.0)).stride()
        (torch.ones(3, 1).expand(3, 4) + 1).stride()
        torch.exp(x.t()).stride()
        x[:, ::2] * 2
        x[1] + x[:, 1:2]
        v[None] - v[:, None]
        torch.broadcast_to(v, (2, 3))
        v.broadcast_to(2, 3)
        """,
    "comparison": """
        x == x
        x == 2
        2 == x
        x != 2
        x < 2
        x <= 2
        x > 2
        x >= 2
        2 < x
        2 >= x
        x > 2.5
        i > 2.5
        i == True
        b == 1
        b == b
        b < True
        x == x.t()[0, 1]
        x < torch.tensor([[1.0], [4.0]])
        x == None
        x != None
        x == 'a'
        x != [1]
        (x == x).all()
        torch.eq(x, 2)
        torch.ne(x, x)
        torch.lt(x, 3)
        torch.le(x, 3)
        torch.gt(x, 3)
        torch.ge(input=x, other=3)
        x.eq(2)
        x.ne(other=2)
        x.lt(2)
        x.le(2)
        x.gt(2)
        x.ge(2)
        x.greater(2)
        torch.less_equal(x, 2)
        torch.not_equal(x, 2)
        torch.tensor([nan]) == torch.tensor([nan])
        torch.tensor([nan, 1.0]) < 2
        torch.tensor([nan]) != nan
        torch.tensor([0.0]) == torch.tensor([-0.0])
        torch.tensor([2**53 + 1]) == 2**53
        torch.tensor([255], dtype=torch.uint8) == -1
        b & b
        b | torch.tensor([False, False, True])
        b ^ torch.tensor([True, True, True])
        ~b
        ~i
        i & 3
        i | 8
        i ^ i
        3 & i
        True ^ b
        (x > 1) & (x < 4)
        torch.logical_and(x, v)
        torch.logical_or(b, ~b)
        torch.logical_not(x)
        torch.logical_xor(b, True * torch.ones(3))
        x.logical_not()
        torch.bitwise_and(i, 3)
        torch.bitwise_not(b)
        torch.equal(x, x)
        torch.equal(x, x + 1)
        torch.equal(x, v)
        x.equal(x.clone())
        torch.allclose(x, x + 1e-9)
        torch.allclose(x, x + 1, rtol=1e-5)
        torch.isclose(v, v + 1e-9)
        """,
    "unary functions": """
        torch.exp(v)
        v.exp()
        torch.exp(input=v)
        torch.exp(i)
        torch.exp(torch.tensor([inf, -inf, nan, 0.0, 100.0, -104.0]))
        torch.log(torch.tensor([0.0, 1.0, -1.0, inf]))
        torch.log(x)
        x.log()
        torch.log2(torch.tensor([1.0, 8.0]))
        torch.log10(torch.tensor([1.0, 1000.0]))
        torch.log1p(torch.tensor([0.0, 1e-10, -1.0]))
        torch.expm1(torch.tensor([0.0, 1e-10, 1.0]))
        torch.sqrt(x)
        torch.sqrt(v)
        x.sqrt()
        torch.rsqrt(torch.tensor([4.0, 0.0]))
        torch.reciprocal(torch.tensor([4.0, 0.0, -0.0]))
        torch.square(v)
        v.square()
        torch.square(i)
        torch.sin(v)
        torch.cos(v)
        torch.tan(v)
        torch.tanh(v)
        torch.tanh(torch.tensor([inf, -inf, nan, 20.0]))
        v.tanh()
        torch.sinh(v)
        torch.cosh(v)
        torch.sigmoid(v)
        torch.sigmoid(torch.tensor([100.0, -100.0, inf, -inf]))
        torch.relu(v)
        v.relu()
        torch.relu(torch.tensor([nan, -0.0, -1.0]))
        torch.relu(i)
        torch.abs(v)
        torch.abs(i)
        v.abs()
        torch.absolute(v)
        torch.neg(v)
        torch.negative(i)
        v.neg()
        torch.sign(v)
        torch.sign(torch.tensor([nan, 0.0, -0.0, -3.0]))
        torch.sign(i)
        torch.sign(b)
        torch.floor(torch.tensor([1.5, -1.5, 2.0]))
        torch.ceil(torch.tensor([1.5, -1.5, -0.5]))
        torch.trunc(torch.tensor([1.5, -1.5]))
        torch.round(torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 1.2]))
        torch.floor(i)
        torch.round(torch.tensor([1.25, 1.35]), decimals=1)
        torch.isnan(torch.tensor([nan, 1.0, inf]))
        torch.isinf(torch.tensor([nan, 1.0, inf, -inf]))
        torch.isfinite(torch.tensor([nan, 1.0, inf]))
        torch.isnan(i)
        torch.isfinite(i)
        v.isnan().any()
        torch.exp(e)
        torch.exp(s)
        torch.exp(x.t())
        torch.exp(x[:, ::2])
        torch.sqrt(i.abs())
        torch.sqrt(b)
        torch.exp(torch.tensor([1.0], dtype=torch.float64))
        torch.exp(v, out=torch.empty(3))
        """,
    "in place": """
        y = x.clone(); y.add_(1); y
        y = x.clone(); y.add_(1) is y
        y = x.clone(); y += 1; y
        y = x.clone(); z = y; z += 1; y is z
        y = x.clone(); z = y; y = y + 1; y is z
        y = x.clone(); y.add_(x, alpha=2)
        y = x.clone(); y.sub_(1)
        y = x.clone(); y -= x; y
        y = x.clone(); y.mul_(v)
        y = x.clone(); y *= 2; y
        y = x.clone(); y.div_(2)
        y = x.clone(); y /= 2; y
        y = x.clone(); y //= 2; y
        y = x.clone(); y %= 2; y
        y = x.clone(); y **= 2; y
        y = x.clone(); y.pow_(2)
        y = i.clone(); y += 2; y
        y = i.clone(); y += True; y
        y = i.clone(); y //= 2; y
        y = i.clone(); y **= 2; y
        y = v.clone(); y += i; y
        y = v.clone(); y += torch.ones(3, dtype=torch.float64); y
        y = b.clone(); y &= ~b; y
        y = b.clone(); y |= True; y
        y = i.clone(); y ^= 1; y
        y = x.clone(); y[0] += 10; y
        y = x.clone(); y[:, 1] *= -1; y
        y = x.clone(); y.t().add_(1); y
        y = x.clone(); y.exp_() is y
        y = x.clone(); y.sqrt_()
        y = v.clone(); y.abs_()
        y = v.clone(); y.neg_()
        y = v.clone(); y.relu_()
        y = v.clone(); y.sigmoid_()
        y = v.clone(); y.zero_()
        y = v.clone(); y.zero_() is y
        y = v.clone(); y.fill_(7)
        y = v.clone(); y.fill_(s)
        y = i.clone(); y.fill_(2.9)
        y = b.clone(); y.fill_(3)
        y = v.clone(); y.copy_(i)
        y = x.clone(); y.copy_(v)
        y = x.clone(); y.copy_(s)
        y = x.clone(); y.copy_(x.flip(0)) if hasattr(y, 'flip') else y.copy_(torch.tensor([[3., 4, 5], [0, 1, 2]]))
        y = x.clone(); y.copy_(1)
        y = i.clone(); y.copy_(torch.tensor([1.9, -1.9, 0.5]))
        y = x.clone(); y.copy_(x.clone()) is y
        y = m.clone(); y.copy_(y.t().clone())
        y = v.clone(); y.eq_(1)
        y = v.clone(); y.lt_(0)
        y = v.clone(); y.add_(y)
        y = v.clone(); y.mul_(y).add_(1)
        y = x.clone(); z = y.view(-1); z.add_(1); y
        y = x.clone(); z = y.detach(); z.zero_(); y
        y = x.clone(); y.data[0] = 9; y
        y = x.clone(); y.uniform_() is y
        y = x.clone(); y.normal_() is y
        y = x.clone(); y.sub_(x, alpha=2)
        y = x.clone(); y.clone() is y
        y = torch.zeros(2, 3); torch.add(x, 1, out=y); y
        y = torch.zeros(2, 3); torch.add(x, 1, out=y) is y
        y = torch.zeros(2); torch.sum(x, 1, out=y) is y
        y = x.clone(); before = id(y); y += x; id(y) == before
        y = x.clone(); before = y.data_ptr(); y[:] = x + x; y.data_ptr() == before
        """,
    "indexing": """
        x[0]
        x[-1]
        x[1, 2]
        x[1][2]
        x[-1, -1]
        x[(1, 2)]
        x[0:1]
        x[:1]
        x[1:]
        x[:]
        x[:, 1]
        x[:, -1]
        x[:, 1:]
        x[:, :-1]
        x[:, ::2]
        x[::2]
        x[0, 1:]
        x[1:1]
        x[5:]
        x[-5:]
        x[2:1]
        x[:100]
        x[...]
        x[..., 0]
        x[0, ...]
        x[..., 0, :]
        x[..., ...]
        x[None]
        x[:, None]
        x[None, :, None]
        x[..., None]
        x[0, None]
        x[None, 0, None, 1]
        x[()]
        s[()]
        s[...]
        s[None]
        s[None, None]
        e[:]
        e[None]
        c[1]
        c[1, 2, 3]
        c[:, 1, :]
        c[1:, :2, 1::2]
        c[0, ..., -1]
        c[..., 1:3]
        c[:, -1]
        c[:, :, None]
        c[torch.tensor(1)]
        x[torch.tensor(1)]
        x[torch.tensor(-1)]
        x[torch.tensor(1), torch.tensor(2)]
        x[0, torch.tensor(1)]
        x[torch.tensor(0):torch.tensor(1)]
        x[:torch.tensor(2), 1]
        v[slice(1, None)]
        v[slice(None, None, 2)]
        v[i[2] - 2]
        x.t()[1]
        x.t()[1:, 0]
        x[1].stride()
        x[:, 1].stride()
        x[::2, ::2].stride()
        x[None].stride()
        x[1].shape
        x[1, 1].shape
        x.select(1, 0)
        x.select(dim=0, index=-1)
        torch.select(x, 0, 1)
        x.narrow(1, 1, 2)
        x.narrow(dim=1, start=0, length=1)
        torch.narrow(x, 0, 1, 1)
        x.narrow(1, -2, 2)
        x[0].data_ptr() == x.data_ptr()
        x[True]
        x[False]
        x[None, True].shape
        [1, 2, 3][torch.tensor(1)]
        'abc'[torch.tensor(2)]
        list(range(torch.tensor(3)))
        [10, 20, 30][i[2] - 3]
        """,
    "assignment": """
        y = x.clone(); y[0] = 9; y
        y = x.clone(); y[0, 1] = 9; y
        y = x.clone(); y[-1, -1] = 9.5; y
        y = x.clone(); y[:] = 1; y
        y = x.clone(); y[...] = 2; y
        y = x.clone(); y[:, 1] = 12; y
        y = x.clone(); y[0:2, :] = 12; y
        y = x.clone(); y[1:, 1:] = -1; y
        y = x.clone(); y[:, ::2] = 5; y
        y = x.clone(); y[0] = v; y
        y = x.clone(); y[:] = v; y
        y = x.clone(); y[:, 0] = torch.tensor([7.0, 8.0]); y
        y = x.clone(); y[0] = torch.tensor([[1.0, 2.0, 3.0]]); y
        y = x.clone(); y[0] = i; y
        y = i.clone(); y[0] = 2.9; y
        y = i.clone(); y[1] = True; y
        y = i.clone(); y[:] = torch.tensor([1.5, 2.5, -3.5]); y
        y = b.clone(); y[0] = 0; y
        y = b.clone(); y[1] = 5; y
        y = x.clone(); y[0, 0] = s; y
        y = x.clone(); y[0] = s; y
        y = x.clone(); y[torch.tensor(1)] = 0; y
        y = x.clone(); y[None] = 3; y
        y = x.clone(); y[0, None] = v; y
        y = x.clone(); y[1:1] = 5; y
        y = x.clone(); y[..., 1] = 5; y
        y = x.clone(); y[()] = 5; y
        y = s.clone(); y[()] = 7; y
        y = s.clone(); y[...] = 7; y
        y = x.clone(); y[0] = y[1]; y
        y = x.clone(); y[:, 0], y[:, 1] = y[:, 1].clone(), y[:, 0].clone(); y
        y = x.clone(); z = y[0]; z[1] = 50; y
        y = x.clone(); y.t()[0] = 50; y
        y = x.clone(); y[0][1] = 50; y
        y = v.clone(); y[1:] = y[:-1].clone(); y
        y = v.clone(); y[0] = inf; y[1] = nan; y
        y = c.clone(); y[:, 1, ::2] = 0; y
        y = x.clone(); y[0:1] = x[1:2]; y
        y = x.clone(); y[True] = 4; y
        """,
    "views": """
        x.view(6)
        x.view(-1)
        x.view(3, 2)
        x.view((3, 2))
        x.view([3, 2])
        x.view(3, -1)
        x.view(-1, 2)
        x.view(size=(3, 2))
        x.view(1, 2, 3, 1)
        x.view(x.shape)
        x.view(torch.Size([6, 1]))
        x.view(torch.int32).dtype
        x.t().view(3, 2).stride()
        x.view_as(torch.zeros(3, 2))
        x.reshape(6)
        x.reshape(-1)
        x.reshape(3, 2)
        x.reshape((3, -1))
        x.reshape([3, 2])
        x.reshape(shape=(3, 2))
        torch.reshape(x, (3, 2))
        torch.reshape(x, [-1])
        torch.reshape(input=x, shape=(6,))
        x.reshape_as(torch.zeros(3, 2))
        x.t().reshape(6)
        x.t().reshape(-1).data_ptr() == x.data_ptr()
        x.reshape(3, 2).data_ptr() == x.data_ptr()
        x.reshape(()) if x.numel() == 1 else x[0, 0].reshape(())
        x[0, 0].reshape(1, 1)
        s.reshape(-1)
        s.view(1)
        e.reshape(0, 3)
        e.view(2, 0)
        torch.zeros(0, 3).reshape(-1, 3)
        x.transpose(0, 1)
        x.transpose(-1, 0)
        x.transpose(dim0=0, dim1=1)
        torch.transpose(x, 0, 1)
        c.transpose(0, 2)
        c.transpose(1, 1)
        x.swapaxes(0, 1)
        x.t()
        torch.t(x)
        v.t()
        s.t()
        x.T
        m.T
        x.mT
        c.mT
        v.T
        x.T.T is x
        x.permute(1, 0)
        x.permute((1, 0))
        x.permute(dims=(1, 0))
        x.permute(-1, 0)
        torch.permute(x, (1, 0))
        c.permute(2, 0, 1)
        c.permute(0, 1, 2)
        c.permute(*[2, 1, 0])
        s.permute(())
        torch.ones(1, 3, 1).squeeze()
        torch.ones(1, 3, 1).squeeze(0)
        torch.ones(1, 3, 1).squeeze(-1)
        torch.ones(1, 3, 1).squeeze(1)
        torch.ones(1, 3, 1).squeeze(dim=0)
        torch.ones(1, 3, 1).squeeze((0, 2))
        torch.squeeze(torch.ones(1, 3, 1))
        torch.squeeze(torch.ones(1, 3, 1), 2)
        torch.ones(1, 1).squeeze()
        s.squeeze()
        x.unsqueeze(0)
        x.unsqueeze(1)
        x.unsqueeze(2)
        x.unsqueeze(-1)
        x.unsqueeze(-3)
        x.unsqueeze(dim=0)
        torch.unsqueeze(x, 0)
        s.unsqueeze(0)
        torch.ones(1, 3).expand(2, 3)
        torch.ones(1, 3).expand((2, 3))
        torch.ones(1, 3).expand(2, -1)
        torch.ones(1, 3).expand(4, 2, 3)
        torch.ones(1, 3).expand(size=(2, 3))
        v.expand(2, 3)
        v.expand_as(x)
        s.expand(2, 2)
        torch.ones(1, 3).expand(0, 3)
        x.flatten()
        torch.flatten(x)
        x.flatten(0)
        x.flatten(1)
        c.flatten(1)
        c.flatten(start_dim=1)
        c.flatten(0, 1)
        c.flatten(start_dim=0, end_dim=-2)
        torch.flatten(c, 1)
        torch.flatten(c, start_dim=1, end_dim=2)
        s.flatten()
        x.t().flatten()
        x.flatten().data_ptr() == x.data_ptr()
        x.ravel()
        c.unflatten(2, (2, 2))
        x.chunk(2)
        x.chunk(2, dim=1)
        x.chunk(2, 1)
        torch.chunk(x, 3, 1)
        torch.chunk(torch.arange(7), chunks=3)
        torch.arange(5).chunk(4)
        x.split(1)
        x.split(2, dim=1)
        x.split([1, 2], dim=1)
        torch.split(x, 1)
        torch.split(torch.arange(5), 2)
        torch.split(torch.arange(5), [1, 4])
        torch.split(torch.arange(5), split_size_or_sections=3)
        x.unbind()
        x.unbind(1)
        torch.unbind(x, dim=1)
        x.as_strided((2, 2), (1, 2))
        x.as_strided((3,), (2,), 1)
        torch.as_strided(x, (2, 2), (3, 1), 1)
        x.contiguous() is x
        x.t().contiguous()
        x.t().contiguous().is_contiguous()
        x.clone()
        x.t().clone()
        torch.clone(x)
        x.t().clone().stride()
        x[:, ::2].clone()
        x.detach()
        x.detach().data_ptr() == x.data_ptr()
        x.data
        y = x.clone(); y.view(3, 2)[0, 0] = 9; y
        y = x.clone(); y.reshape(6)[5] = 9; y
        y = x.clone(); y.t()[2, 0] = 9; y
        y = x.clone(); y.permute(1, 0)[0] = 9; y
        y = x.clone(); y.unsqueeze(0)[0, 0, 0] = 9; y
        y = x.clone(); y.flatten()[1] = 9; y
        y = x.clone(); y.chunk(2)[1][0, 0] = 9; y
        y = x.clone(); y.split(1, 1)[2].zero_(); y
        y = x.clone(); y.narrow(1, 0, 2).fill_(7); y
        y = x.clone(); y.select(0, 1).fill_(7); y
        y = x.clone(); y.T.copy_(torch.zeros(3, 2)); y
        y = x.clone(); y.expand(2, 2, 3)[0, 0, 0]; y.expand(2, 2, 3).stride()
        y = x.clone(); z = y.t().reshape(6); z[0] = 99; y
        c.transpose(0, 1).reshape(3, 8)
        c.permute(2, 0, 1).flatten(1)
        c[:, :, ::2].reshape(-1)
        c[:, 1:].view(2, 8).stride()
        c[:, 1:].view(2, 2, 2, 2).stride()
        torch.ones(2, 1, 3)[:, 0].stride()
        x.is_contiguous() and x.view(6).is_contiguous()
        x.expand(2, 3) is x
        """,
    "sum and mean": """
        x.sum()
        torch.sum(x)
        x.sum(0)
        x.sum(1)
        x.sum(-1)
        x.sum(dim=0)
        x.sum(axis=0)
        torch.sum(x, 0)
        torch.sum(x, dim=1)
        torch.sum(x, axis=1)
        torch.sum(input=x, dim=1)
        x.sum(0, True)
        x.sum(0, keepdim=True)
        x.sum(dim=0, keepdim=True)
        x.sum(axis=0, keepdims=True)
        x.sum(axis=1, keepdim=True)
        torch.sum(x, 1, keepdims=True)
        x.sum((0, 1))
        x.sum([0, 1])
        x.sum(dim=(0, 1), keepdim=True)
        x.sum(axis=[0, 1])
        x.sum(())
        x.sum(dim=None)
        x.sum(dim=None, keepdim=True)
        x.sum(dtype=torch.float64)
        x.sum(0, dtype=torch.int64)
        c.sum((0, 2))
        c.sum((0, -1), keepdim=True)
        c.sum(1)
        c.sum(1).stride()
        i.sum()
        b.sum()
        b.sum(dtype=torch.float32)
        torch.tensor([200, 100], dtype=torch.uint8).sum()
        e.sum()
        torch.zeros(0, 3).sum(0)
        torch.zeros(0, 3).sum(1)
        torch.zeros(0, 3).sum()
        s.sum()
        s.sum(0)
        s.sum(-1)
        x.t().sum(0)
        torch.tensor([1.0, nan]).sum()
        torch.tensor([inf, -inf]).sum()
        torch.full((10000,), 0.1).sum()
        torch.full((1000, 3), 0.1).sum(0)
        x.mean()
        torch.mean(x)
        x.mean(0)
        x.mean(1, True)
        x.mean(dim=1)
        x.mean(axis=1)
        x.mean(axis=1, keepdims=True)
        x.mean((0, 1))
        x.mean(dim=(0, 1), keepdim=True)
        torch.mean(x, 0)
        torch.mean(x, dim=0, keepdim=True)
        torch.mean(x, axis=0)
        i.mean(dtype=torch.float32)
        i.float().mean()
        x.mean(dtype=torch.float64)
        e.mean()
        torch.zeros(0, 3).mean(0)
        x.prod()
        v.prod()
        v.prod(0)
        x.prod(1, keepdim=True)
        x.prod(dim=0)
        torch.prod(i)
        e.prod()
        b.any()
        b.all()
        torch.any(b)
        torch.all(b)
        x.any(0)
        x.all(1)
        x.all(dim=1, keepdim=True)
        x.any(axis=0)
        e.any()
        e.all()
        torch.tensor([nan]).any()
        (x > 0).sum()
        (x > 0).float().mean()
        x.sum() / x.numel()
        x.sum().item()
        """,
    "max and min": """
        x.max()
        torch.max(x)
        x.min()
        torch.min(v)
        x.max(0)
        x.max(1)
        x.max(-1)
        x.max(dim=0)
        x.max(axis=0)
        x.max(1, True)
        x.max(1, keepdim=True)
        x.max(dim=1, keepdims=True)
        torch.max(x, 0)
        torch.max(x, dim=1)
        torch.max(x, 1, keepdim=True)
        torch.max(input=x, dim=1)
        torch.min(x, 1)
        x.min(1).values
        x.min(1).indices
        x.min(1)[0]
        x.min(dim=0)[1]
        values, indices = m.max(1); values
        values, indices = m.max(1); indices
        len(x.max(1))
        isinstance(x.max(1), tuple)
        torch.max(x, torch.full((2, 3), 2.5))
        torch.max(v, torch.tensor(0.0))
        torch.min(x, x * 2 - 3)
        v.max(torch.zeros(3))
        x.max(other=torch.zeros(2, 3))
        torch.max(i, torch.tensor([0.5, 0.5, 0.5]))
        torch.tensor([1.0, nan, 3.0]).max()
        torch.tensor([1.0, nan, 3.0]).min()
        torch.tensor([1.0, nan, 3.0]).max(0)
        torch.tensor([[nan, 1.0], [2.0, nan]]).min(1)
        torch.tensor([-inf, inf]).max()
        torch.tensor([3, 1, 3, 1]).max(0)
        torch.tensor([3, 1, 3, 1]).min(0)
        i.max()
        b.max()
        b.min()
        b.max(0)
        s.max()
        s.max(0)
        torch.zeros(0, 3).max(1)
        x.t().max(0)
        c.max(1)
        x.amax()
        x.amax(0)
        x.amax((0, 1))
        x.amax(dim=1, keepdim=True)
        x.amin(1)
        torch.amax(x, 1)
        torch.amin(x, dim=(0, 1))
        x.argmax()
        m.argmax()
        m.argmin()
        x.argmax(0)
        x.argmax(1)
        x.argmax(dim=1)
        x.argmax(axis=1)
        x.argmax(-1, True)
        x.argmax(1, keepdim=True)
        torch.argmax(x)
        torch.argmax(m, dim=1)
        torch.argmax(m, axis=1)
        torch.argmin(m, 0)
        x.argmax(dim=None)
        torch.tensor([1.0, nan, 3.0]).argmax()
        torch.tensor([3, 1, 3, 1]).argmax()
        torch.tensor([3, 1, 3, 1]).argmin()
        s.argmax()
        x.t().argmax()
        """,
    "norm": """
        v.norm()
        torch.norm(v)
        x.norm()
        torch.norm(x)
        x.norm(2)
        x.norm(p=2)
        x.norm(1)
        x.norm(0)
        x.norm(3)
        x.norm(0.5)
        x.norm(-1)
        m.norm(inf)
        m.norm(-inf)
        m.norm(p=float('inf'))
        m.norm('fro')
        torch.norm(m, p='fro')
        x.norm(2, 0)
        x.norm(2, 1)
        x.norm(p=2, dim=1)
        x.norm(dim=1)
        x.norm(dim=1, keepdim=True)
        x.norm(p=1, dim=0)
        x.norm(p=inf, dim=0)
        x.norm(p=0, dim=1)
        x.norm(2, (0, 1))
        x.norm(dim=(0, 1))
        x.norm(dim=(0, 1), keepdim=True)
        x.norm(p='fro', dim=(0, 1))
        torch.norm(x, 2, 1)
        torch.norm(x, dim=0)
        torch.norm(x, p=1, dim=1, keepdim=True)
        torch.norm(input=x, p=2)
        x.norm(dtype=torch.float64)
        torch.norm(x, dtype=torch.float64)
        x.double().norm()
        e.norm()
        e.norm(1)
        s.norm()
        (-s).norm()
        torch.zeros(0, 3).norm(dim=0)
        torch.zeros(0, 3).norm(dim=1)
        torch.tensor([3.0, 4.0]).norm()
        torch.ones(4, 9).norm()
        torch.tensor([nan, 1.0]).norm()
        torch.tensor([inf, 1.0]).norm()
        torch.tensor([nan, 1.0]).norm(inf)
        x.t().norm(dim=0)
        c.float().norm(dim=1)
        c.float().norm(dim=(0, 2))
        """,
    "matrix products": """
        m @ m
        x @ m
        m @ v
        v @ m
        v @ v
        x @ v
        x @ x.t()
        x.t() @ x
        torch.matmul(x, m)
        torch.matmul(input=x, other=m)
        x.matmul(m)
        x.matmul(other=v)
        torch.mm(x, m)
        x.mm(m)
        torch.mm(input=x, mat2=m)
        x.mm(mat2=m)
        torch.mv(m, v)
        m.mv(v)
        torch.dot(v, v)
        v.dot(v)
        torch.bmm(c.float(), c.float().transpose(1, 2))
        c.float().bmm(c.float().mT)
        torch.matmul(c.float(), torch.ones(4))
        torch.matmul(torch.ones(3), c.float())
        torch.matmul(c.float(), torch.ones(4, 5))
        torch.matmul(torch.ones(5, 3), c.float())
        torch.matmul(torch.ones(2, 1, 2, 3), torch.ones(4, 3, 2)).shape
        torch.matmul(torch.arange(12.0).reshape(2, 1, 2, 3), torch.arange(18.0).reshape(3, 3, 2))
        torch.matmul(torch.ones(7, 1, 3, 4), torch.ones(1, 5, 4, 2)).shape
        (c @ c.transpose(1, 2)).dtype
        c @ torch.ones(4, 2, dtype=torch.int64)
        i @ i
        i.reshape(3, 1) @ i.reshape(1, 3)
        i.int() @ i.int()
        m.double() @ v.double()
        torch.ones(2, 0) @ torch.ones(0, 3)
        torch.ones(0, 2) @ torch.ones(2, 3)
        torch.ones(0) @ torch.ones(0)
        torch.ones(2, 0) @ torch.ones(0)
        torch.ones(1, 1) @ torch.ones(1, 1)
        m[:, ::2] @ m[::2]
        m.t() @ m.t()
        m[1:, 1:] @ m[:2, :2]
        x.expand(2, 2, 3) @ m
        torch.addmm(torch.ones(2, 3), x, m)
        torch.addmm(v, x, m)
        torch.addmm(torch.ones(2, 1), x, m)
        torch.addmm(s, x, m)
        torch.addmm(v, x, m, beta=2)
        torch.addmm(v, x, m, alpha=3)
        torch.addmm(v, x, m, beta=2, alpha=0.5)
        torch.addmm(input=v, mat1=x, mat2=m, beta=0)
        torch.addmm(torch.full((3,), nan), x, m, beta=0)
        v.addmm(x, m)
        torch.ones(2, 3).addmm(x, m, beta=0.5, alpha=2)
        torch.addmm(i, c[0].reshape(4, 3), torch.ones(3, 3, dtype=torch.int64), beta=2, alpha=3)
        y = torch.ones(2, 3); y.addmm_(x, m); y
        torch.matmul(m, m, out=torch.empty(3, 3))
        torch.mm(m, torch.tensor([[nan, 0, 0], [0, inf, 0], [0, 0, 1.0]]))
        (m @ m).sum().item()
        """,
    "Python numbers": """
        s.item()
        torch.tensor(3).item()
        torch.tensor(True).item()
        torch.tensor([[7]]).item()
        x.sum().item()
        type(s.item()).__name__
        type(i[0].item()).__name__
        type(b[0].item()).__name__
        torch.tensor(0.1).item()
        torch.tensor(0.1, dtype=torch.float64).item()
        torch.tensor(nan).item()
        torch.tensor(-inf).item()
        x.tolist()
        s.tolist()
        i.tolist()
        b.tolist()
        e.tolist()
        torch.zeros(2, 0).tolist()
        c[0].tolist()
        x.t().tolist()
        x[:, 1].tolist()
        float(s)
        float(i[0])
        int(s)
        int(torch.tensor(-2.7))
        int(i[1])
        int(torch.tensor([5]))
        float(torch.tensor([[1.5]]))
        bool(s)
        bool(torch.tensor(0.0))
        bool(torch.tensor([1]))
        bool(torch.tensor([[False]]))
        bool(torch.tensor(nan))
        complex(s) == 2.5
        round(float(s))
        round(torch.tensor(2.567), 2) if hasattr(torch.Tensor, '__round__') else 2.57
        len(x)
        len(v)
        len(e)
        len(c)
        list(v)
        list(x)
        [row.sum().item() for row in x]
        [float(each) for each in v]
        [each.shape for each in c]
        first, second = x; first
        a, d, f = i; d
        list(zip(v.tolist(), i.tolist()))
        [k for k, row in enumerate(x)]
        1.0 in v
        5 in v
        2 in x
        torch.tensor(3.0) in v
        (x == 2).any().item()
        not torch.tensor(0)
        'yes' if torch.tensor(1) else 'no'
        s and 3
        sum(v)
        sum([v, v, v])
        max(v)
        min(v)
        sorted(v.tolist())
        all(b)
        any(b)
        max(v.tolist())
        f'{s:.3f}'
        f'{s}'
        f'{torch.tensor(3)}'
        f'{i[0]:5d}'
        f'{x.sum():.1f}'
        f'{s.item():.2f}'
        f'loss {float(s):f}'
        '%.2f' % s
        '{:.2f}'.format(s)
        str(torch.tensor(2.0, dtype=torch.float64).item())
        hash(x) == hash(x)
        len({x, x})
        {x: 1}[x]
        x is x.clone()
        range(10)[torch.tensor(3)]
        hex(torch.tensor(255))
        2 * [torch.tensor(1).item()]
        divmod(int(i[0]), 2)
        s.__index__() if False else i[2].__index__()
        """,
    "conversions": """
        x.to(x.device) is x
        x.to(torch.float32) is x
        x.to(dtype=torch.float32) is x
        x.to(x.device, torch.float32) is x
        x.to(device=x.device, dtype=torch.float32) is x
        x.to(x) is x
        x.to(torch.float64)
        x.to(dtype=torch.int64)
        x.to(x.device, torch.float64).dtype
        x.to(device=x.device, dtype=torch.int32).dtype
        x.to(i).dtype
        x.to(str(x.device)) is x
        x.to(device=x.device) is x
        x.to(x.device, copy=True) is x
        x.to(torch.float32, copy=True) is x
        x.to(torch.float64, non_blocking=True).dtype
        x.to(x.device, torch.float32, False, False) is x
        x.to() is x
        x.float() is x
        x.double() is x
        x.double()
        x.long()
        x.int()
        x.bool()
        x.short()
        x.byte()
        x.char()
        v.long()
        torch.tensor([1.9, -1.9, 0.5]).long()
        torch.tensor([1.9, -1.9, 0.5]).int()
        torch.tensor([0.1, 0.0, nan]).bool()
        i.float()
        b.float()
        b.long()
        i.bool()
        torch.tensor([300, -1]).to(torch.uint8)
        torch.tensor([2**31]).int()
        torch.tensor([0.1], dtype=torch.float64).float()
        torch.tensor([0.1]).double()
        torch.tensor([1e300], dtype=torch.float64).float()
        x.t().double()
        x.type(torch.int64)
        x.type(torch.float32) is x
        x.type_as(i).dtype
        x.type(dtype=torch.float64).dtype
        x.to(torch.float64).to(torch.float32).equal(x)
        x.clone().device == x.device
        torch.result_type(x, 1)
        torch.promote_types(torch.int32, torch.float32)
        torch.can_cast(torch.float32, torch.int64)
        """,
    "put together": """
        torch.cat((x, x))
        torch.cat([x, x], dim=1)
        torch.cat([x, x], axis=-1)
        torch.cat((i, v))
        torch.cat([x])
        torch.cat([x, x[:1], x[:0]])
        torch.cat([x.t(), m], 1)
        torch.cat([x.t(), x.t()], 1)
        torch.cat([e, x, e], 1)
        torch.cat([e, e], 1)
        torch.cat([torch.empty(0, 3), x])
        torch.cat([e.double(), v])
        torch.cat([b, i])
        torch.cat([b, torch.ones(2, dtype=torch.uint8)])
        torch.cat([torch.ones(2, dtype=torch.uint8), torch.ones(2, dtype=torch.int8)])
        torch.cat([i.int(), v.double()])
        torch.cat([x, x], torch.tensor(1))
        torch.cat([c, c], 2)
        torch.cat([c, c], -3)
        torch.cat(tensors=[v, v], dim=0)
        torch.concat([v, v])
        torch.concatenate((v, v), axis=0)
        torch.cat([v, v], out=torch.empty(0))
        torch.cat([i, i], out=torch.empty(6))
        torch.cat([i, i], out=torch.empty(0, dtype=torch.float64))
        torch.cat([v, v.double()], out=torch.empty(6))
        y = torch.zeros(3, 4).t(); torch.cat([x, x], out=y)
        torch.stack((v, v))
        torch.stack([v, v], dim=1)
        torch.stack([x, x], -1)
        torch.stack([x, x], axis=1)
        torch.stack([x.t(), m[:, :2]])
        torch.stack([s, s])
        torch.stack([torch.tensor(1), s])
        torch.stack([v, i])
        torch.stack([e, e])
        torch.stack([x], out=torch.empty(1, 2, 3))
        torch.hstack((v, v))
        torch.hstack([s, v])
        torch.hstack([x, x])
        torch.hstack([torch.tensor(1), s])
        torch.vstack((v, v))
        torch.vstack([s, s])
        torch.vstack([v, x])
        torch.row_stack([v, x])
        torch.dstack((v, v))
        torch.dstack([s, s])
        torch.dstack([x, x])
        torch.column_stack((v, v))
        torch.column_stack((s, s))
        torch.column_stack((x, x))
        torch.column_stack((v, m))
        torch.atleast_1d(s)
        torch.atleast_2d(v)
        torch.atleast_3d(v)
        torch.atleast_3d(x)
        torch.atleast_1d(s, x)
        torch.atleast_2d([s, v])
        torch.atleast_1d()
        torch.broadcast_tensors(v, x)
        torch.broadcast_tensors(v, x[:, :1], s)
        torch.broadcast_tensors()
        torch.meshgrid(torch.arange(2), torch.arange(3), indexing='ij')
        torch.meshgrid(torch.arange(2), torch.arange(3), indexing='xy')
        torch.meshgrid([v, v, s], indexing='xy')
        torch.meshgrid(v, indexing='xy')
        """,
    "in another order, or several times": """
        x.flip(0)
        x.flip(0, 1)
        x.flip([-1])
        x.flip(())
        torch.flip(x, (0,))
        torch.flip(c, [0, 2])
        c.transpose(0, 2).flip(0)
        c[:, :, ::2].flip(1)
        torch.flip(s, (0,))
        torch.fliplr(x)
        x.flipud()
        x.t().flipud()
        x.roll(1)
        x.roll(-4)
        x.roll(1, 0)
        x.roll((1, 2), (0, 1))
        x.roll(shifts=1, dims=-1)
        torch.roll(x, (1, 1), (0, 0))
        torch.roll(c.transpose(0, 2), 1, 0)
        torch.roll(c.transpose(0, 2), 1)
        torch.roll(s, 1)
        torch.roll(e, 2)
        torch.roll(x, 10**18, 1)
        torch.rot90(x)
        torch.rot90(x, 2)
        torch.rot90(x, 3, [1, 0])
        torch.rot90(x, 4)
        torch.rot90(x, -1)
        torch.rot90(c, 1, (1, 2))
        x.rot90(k=1, dims=(0, 1))
        x.t().rot90(0)
        x.repeat(2, 1)
        x.repeat((1, 2))
        x.repeat(2, 1, 1)
        x.repeat(0, 1)
        x.repeat(repeats=[1, 1])
        x.t().repeat(1, 1)
        s.repeat(3)
        v[::2].repeat(2)
        x.tile(2)
        x.tile((2, 1))
        x.tile(2, 1, 1)
        x.tile(())
        torch.tile(x, (2,))
        torch.tile(x, dims=(2, 2))
        x.repeat_interleave(2)
        x.repeat_interleave(2, dim=0)
        x.repeat_interleave(2, 1)
        x.repeat_interleave(1, 0)
        x.repeat_interleave(0, 0)
        x.t().repeat_interleave(2, 0)
        x.repeat_interleave(torch.tensor([1, 2]), 0)
        x.repeat_interleave(torch.tensor([1, 0, 2]), dim=1, output_size=3)
        x.repeat_interleave(torch.tensor([2]), 1)
        x.repeat_interleave(torch.tensor(2), 1)
        x.repeat_interleave(torch.tensor([1, 2], dtype=torch.int32), 0)
        torch.repeat_interleave(torch.tensor([1, 2, 0, 3]))
        torch.repeat_interleave(torch.tensor([1, 2]), output_size=3)
        torch.repeat_interleave(x, 2, dim=1)
        torch.repeat_interleave(s, 2)
        x.diagonal()
        x.diagonal(1)
        c.diagonal(-1, 0, 2)
        c.diagonal(offset=1, dim1=1, dim2=2)
        c.diagonal(5)
        c.transpose(0, 1).diagonal()
        torch.diagonal(x, 10**18)
        y = x.clone(); y.diagonal().fill_(9); y
        m.diag()
        m.diag(1)
        m.diag(-2)
        m.diag(9)
        torch.diag(v)
        torch.diag(v, -1)
        torch.diag(i, 1)
        torch.diag(m, out=torch.empty(0))
        torch.diag_embed(x)
        torch.diag_embed(x, 1, 0, 2)
        torch.diag_embed(x, offset=-1, dim1=-2, dim2=-1)
        torch.diagflat(x)
        x.diagflat(-1)
        torch.diagflat(s)
        m.trace()
        torch.trace(x)
        torch.trace(x.int())
        torch.trace(torch.zeros(0, 0))
        v.unfold(0, 2, 1)
        x.unfold(1, 2, 1)
        c.unfold(-1, 2, 2)
        c.unfold(dimension=1, size=3, step=1)
        c.unfold(1, 0, 1)
        s.unfold(0, 1, 1)
        y = x.clone(); y.unfold(1, 1, 2).zero_(); y
        c.unflatten(2, (2, 2))
        c.unflatten(-1, (2, -1))
        c.unflatten(1, [3, 1])
        torch.unflatten(c, dim=1, sizes=(1, 3))
        c.transpose(0, 2).unflatten(0, (2, 2))
        torch.moveaxis(c, 0, 2)
        c.moveaxis((0, 1), (1, 2))
        c.adjoint()
        """,
    "parts, and shapes changed in place": """
        c.tensor_split(2, 1)
        c.tensor_split(3)
        c.tensor_split((1,), dim=1)
        c.tensor_split([1, 2], 2)
        c.tensor_split((2, 1), 2)
        c.tensor_split((10, -1), 2)
        c.tensor_split((), 2)
        c.tensor_split(indices=(1,), dim=1)
        c.tensor_split(sections=2, dim=1)
        c.tensor_split(torch.tensor([1, 2], device='cpu'), 2)
        torch.tensor_split(c, torch.tensor(2, device='cpu'), 2)
        torch.hsplit(c, 3)
        c.hsplit([1])
        v.hsplit(3)
        torch.vsplit(c, 2)
        c.vsplit((1,))
        torch.dsplit(c, 2)
        c.dsplit([1, 2])
        c.split_with_sizes((1, 2), 1)
        torch.split_with_sizes(c, [1, 1])
        c.split_with_sizes(split_sizes=[1, 2], dim=-2)
        y = x.clone(); y.t_()
        y = x.clone(); y.t_(); y.stride()
        y = c.clone(); y.transpose_(0, 1)
        y = c.clone(); y.swapaxes_(0, 1)
        y = c.clone(); y.swapdims_(0, 2)
        y = c.clone(); y.unsqueeze_(0)
        y = c[:1].clone(); y.squeeze_()
        y = c[:1].clone(); y.squeeze_(0)
        y = c[:1].clone(); y.squeeze_((0, 1))
        y = c.clone(); y.as_strided_((2, 2), (12, 1), 1)
        y = x.clone(); z = y[0]; y.t_(); z.zero_(); y
        """,
}
# Of names that come after those of the GPU chapter.
LATER = {
    "later": """
        torch.linspace(0, 1, 5)
        torch.linspace(-1, 1, steps=4)
        torch.cumsum(x, 0)
        x.cumsum(axis=1)
        torch.clamp(v, 0)
        v.clamp(min=-1, max=2)
        torch.where(v > 0, v, 0)
        torch.where(x > 2, x, torch.zeros(2, 3))
        torch.nonzero(x)
        x.std()
        x.var(0)
        x.std(dim=1, unbiased=False)
        torch.sort(v)
        v.sort(descending=True)
        v.argsort()
        torch.topk(v, 2)
        x[[0, 1], [1, 2]]
        x[torch.tensor([1, 0])]
        x[x > 2]
        x[:, [0, 2]]
        y = x.clone(); y[x > 2] = 0; y
        y = x.clone(); y[[0, 1], [1, 2]] = 9; y
        torch.normal(0, 1, (2, 3)).shape
        torch.tril(m)
        torch.triu(m)
        torch.outer(v, v)
        x.unique()
        torch.softmax(x, 1)
        x.log_softmax(dim=1)
        x.gather(1, torch.tensor([[0], [2]]))
        x.masked_fill(x > 2, -1)
        torch.einsum('ij,jk->ik', x, m)
        torch.linalg.norm(x)
        """,
}
# What differs between devices in PyTorch itself is checked on the CPU alone.
CPU_ONLY = (
    "x.type()[-11:]",
    "torch.tensor([300, -1]).to(torch.uint8)",
    "torch.tensor([2**31]).int()",
)


def make(torch):
    return {
        "setup": SETUP,
        "cpu_only": list(CPU_ONLY),
        "cases": [row for heading in CASES for row in rows(torch, heading, CASES)],
        "later": [row for heading in LATER for row in rows(torch, heading, LATER)],
    }


def rows(torch, heading, cases):
    for line in cases[heading].strip().splitlines():
        source = line.strip()
        try:
            value = run(f"{SETUP}; {source}", {"torch": torch})
            yield [heading, source, describe(value, torch)]
        except Exception as error:
            raise AssertionError(f"{heading}: {source}: {error}") from error
