"""Chains of float64 and of integers on a GPU: one kernel, and the bits of the operations
one by one."""

import itertools

import pytest
from chains import check, launches, reports, same
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pydevtensor as torch
from pydevtensor import _C
from pydevtensor.cuda import _chains

F = torch.nn.functional
N = 5003  # no multiple of a thread's elements

if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

WHOLE = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
TYPES = [
    *(torch.bool, *WHOLE, torch.float16, torch.bfloat16, torch.float32, torch.float64)
]
LEAST = {t: torch.iinfo(t).min for t in WHOLE}
MOST = {t: torch.iinfo(t).max for t in WHOLE}


@pytest.fixture(params=["machine", pytest.param("compiled", marks=pytest.mark.slow)])
def way(request, here):
    """Chains run in the machine, and then in kernels of their own."""
    made = []
    if request.param == "compiled" and here != "cuda:0":
        pytest.skip("kernels have the same sources on each GPU")

    def compile_now(device, number, source, exact):
        made.append(source)
        _chains.compile_now(device, number, source, exact)

    if request.param == "compiled":
        _C._fusion_compiler(compile_now, 1)
    yield made if request.param == "compiled" else None
    _C._fusion_compiler()


def agree(way, f, *args):
    """f has the same values in fused(); by a kernel of its own, if chains have them."""
    found = check(f, *args)
    if way is not None:
        check(f, *args)
        said = reports(f, *(a.clone() for a in args))
        if torch.cuda.is_simulated():
            assert all(compiled for *_, compiled, steps in said if len(steps) > 1)
    return found


def numbers(dtype, here, n=N):
    """Numbers of a type, small and at its ends."""
    if dtype == torch.bool:
        return torch.arange(n, device=here) % 3 == 0
    if dtype.is_floating_point:
        x = torch.linspace(-300, 300, n, device=here).to(dtype)
        ends = (float("inf"), float("-inf"), float("nan"), -0.0, 3e9, -5e18)
        for k, value in enumerate(ends):
            x[k + 2 :: 97] = value
        return x
    x = (torch.arange(n, device=here) * 7919 % 211 - 100).to(dtype)
    for k, value in enumerate((LEAST[dtype], MOST[dtype], LEAST[dtype] + 1, 0)):
        x[k + 2 :: 97] = value
    return x


# --- what is one kernel ---


def masked(labels, scores, ignored):
    """A mask from integers, and what it chooses."""
    kept = (labels != ignored) & (labels < 70)
    return torch.where(kept, scores * 2, 0.0), kept


def index_of(rows, columns):
    """Positions in a table of windows."""
    return (rows * 7 + columns // 3) % 1009 - (rows >> 2)


def brighter(images):
    """uint8 to uint8 by way of floats."""
    return (images.float() * 1.5 + 10).clamp(0, 255).to(torch.uint8)


def mean_of_bytes(a, b):
    return (a & b) + ((a ^ b) // 2)


def newton(x):
    y = x * 0.5
    for _ in range(3):
        y = y - (y * y - x) / (2 * y)
    return y


@pytest.mark.skipif(not torch.cuda.is_simulated(), reason="counts launches")
def test_launches(here):
    whole, scores = numbers(torch.int64, here), torch.randn(N, device=here)
    images = numbers(torch.uint8, here)
    assert launches(lambda a, b: masked(a, b, 3), whole, scores) == 1
    assert launches(index_of, whole, whole.flip(0)) == 1
    assert launches(brighter, images) == 1
    assert launches(mean_of_bytes, images, images.flip(0)) == 1
    assert launches(newton, scores.double()) == 1


def test_programs(here, way):
    whole, scores = numbers(torch.int64, here), torch.randn(N, device=here)
    images = numbers(torch.uint8, here)
    names = agree(way, lambda a, b: masked(a, b, 3), whole, scores)
    assert names == [["ne", "lt", "bitwise_and", "mul", "where"]]
    agree(way, index_of, whole, numbers(torch.int64, here).flip(0))
    agree(way, index_of, whole.int(), whole.int().flip(0))
    agree(way, brighter, images)
    agree(way, mean_of_bytes, images, images.flip(0))
    agree(way, newton, scores.double().abs())
    agree(way, lambda m, a: m.double() * a + m, whole > 3, scores.double())


# --- values ---


@pytest.mark.parametrize("dtype", WHOLE, ids=str)
def test_every_function_of_integers(here, way, dtype):
    a = numbers(dtype, here)
    if way is not None and dtype not in (torch.uint8, torch.int64):
        pytest.skip("kernels compute in int64, as with these two")
    b = a.flip(0)
    one = [torch.neg, torch.abs, torch.sign, torch.square, torch.bitwise_not]
    one += [torch.isnan, torch.isfinite, torch.signbit, torch.relu, torch.positive]
    one += [torch.logical_not, lambda x: x.clamp(-3, 90), lambda x: x**3]
    one += [lambda x: x // 7, lambda x: x % 5, lambda x: x - 1, lambda x: x == 4]
    one += [lambda x: x >> 2, lambda x: 100 - x]
    two = ["add", "sub", "mul", "maximum", "minimum", "fmax", "fmin", "eq", "ne", "lt"]
    two += ["le", "gt", "ge", "floor_divide", "remainder", "fmod", "gcd", "lcm", "pow"]
    two += ["bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_xor"]
    two += ["bitwise_left_shift", "bitwise_right_shift"]
    unsigned = dtype == torch.uint8

    def unary(x):
        return [f(x * 3) for f in one if not (unsigned and f is torch.neg)]

    def binary(x, y):
        pairs = ((x, y), (y, x), (x, y % 40), (x, y % 90 - 10))
        return [getattr(torch, name)(p + 0, q) for name in two for p, q in pairs]

    found = agree(way, unary, a)
    found += agree(way, binary, a, b)
    assert max(map(len, found)) > 8
    agree(way, lambda x, y: torch.addcmul(x, x, y + 1, value=3) - 1, a, b)


def test_every_function_of_float64(here, way):
    x = torch.linspace(-3, 3, 1003, device=here, dtype=torch.float64)
    positive = x.abs() + 0.1
    names = [
        *("abs", "ceil", "cos", "erf", "exp", "expm1", "floor", "frac", "log1p"),
        *("neg", "relu", "round", "rsqrt", "sigmoid", "sign", "sin", "sqrt", "tanh"),
        *("trunc", "isnan", "isinf", "isfinite", "square", "reciprocal", "log", "tan"),
        *("atan", "asinh", "sinh", "cosh", "exp2", "log2", "log10", "logit", "sinc"),
    ]
    two = ["add", "sub", "mul", "div", "pow", "atan2", "fmod", "remainder", "maximum"]
    two += ["minimum", "fmax", "fmin", "hypot", "copysign", "logaddexp", "xlogy", "eq"]
    two += ["floor_divide", "gt"]

    def unary(x, p):
        return [getattr(torch, name)(t * 1.5) for name in names for t in (x, p)]

    def binary(x, p):
        pairs = ((x, p), (p, x), (p, p.flip(0)))
        return [getattr(torch, name)(a * 2, b + 1) for name in two for a, b in pairs]

    def layers(x):
        made = [getattr(F, name)(x * 2) for name in ("gelu", "silu", "mish", "elu")]
        return [*made, x.clamp(-1, 2), x.lerp(-x, 0.3), F.gelu(x, approximate="tanh")]

    for f in (unary, binary):
        assert max(map(len, agree(way, f, x, positive))) == 16
    agree(way, layers, x)


@pytest.mark.parametrize("a", TYPES, ids=str)
def test_conversions(here, way, a):
    """Between all types, of numbers that the target does not have, too."""
    x = numbers(a, here)

    def there_and_back(x):
        made = [x.to(b) for b in TYPES if b != a]
        return made, [t.to(a) for t in made]

    assert max(map(len, agree(way, there_and_back, x))) > 8


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float64], ids=str)
def test_layouts(here, way, dtype):
    rows, n = 37, 41
    x = numbers(dtype, here, rows * n).view(rows, n)
    y = numbers(torch.int16, here, rows * n).view(n, rows).t().to(dtype)
    y = torch.where(y == 0, 1, y)
    bits = torch.randint(0, 3, (rows, n), dtype=torch.uint8, device=here)

    def chain(x, y, row, column, one, bits, turned):
        h = (x * 2 + turned) - row * column
        return torch.where(bits > 1, h, column + one), (h > 5) & (y != x)

    agree(way, chain, x, y, x[0], x[:, :1], x[:1, :1], bits, y)
    agree(way, lambda x: (x[:, 1:] - x[:, :-1]) * x[0, 1:], x)
    agree(way, lambda x: x.view(-1)[1:] * 2 + x.view(-1)[:-1], x)
    for m in (1, 2, 3, 4, 5, 127, 128, 511, 513):
        agree(way, lambda x, r: (x + 1) * r - x, numbers(dtype, here, 3 * m), x[0, :1])


@pytest.mark.parametrize("n", [5003, 1_100_003])
def test_more_values_than_a_blocks_memory_has_room_for(here, n):
    values = [numbers(torch.int32, here, n) + k for k in range(4)]

    def chain(*values):
        total = values[0] * 3
        for value in (*values[1:], *values, *values[:2]):
            total = total + value
        return total.double() * 0.5, (total > 3).float() * 2

    check(chain, *values)


def test_numbers_that_only_integers_have(here, way):
    x = numbers(torch.int64, here)
    large = 2**53 + 1
    agree(way, lambda x: (x * 0 + large, x.clamp(max=large) - large, x == large), x)
    agree(way, lambda x: torch.where(x > 0, x, large) + 1, x)


def test_results_in_place(here, way):
    def f(x, y, mask):
        a = x * 2
        b = a + 1
        a.add_(y)
        x.clamp_(min=0)
        mask.logical_and_(x > 3)
        a[:] = b - x
        x.masked_fill_(mask, 7)
        x[::2] = 0
        return a, b, x + y

    for dtype in (torch.int32, torch.int64, torch.float64):
        x = numbers(torch.int8, here).to(dtype)
        agree(way, f, x, x.flip(0), x > 2)


def test_ends_of_chains_that_have_integers(here, way):
    """The end has a kernel of its own in the machine."""
    labels, scores = numbers(torch.int64, here), torch.randn(N, device=here)

    def f(labels, scores):
        kept = labels % 5 != 0
        return (torch.where(kept, scores, 0.0) * 2).sum(), kept.float().mean()

    for each in (
        f,
        lambda a, b: (a.float() - b).view(-1, 5003).softmax(-1),
        lambda a, b: ((a > 3).half() * b.half()).amax(),
    ):
        for _ in range(3):  # once more with a kernel of the steps' own, if there is one
            check(each, labels, scores)
    assert way is None or way


def test_gradients_of_float64(here):
    x, w = torch.randn(2, 31, 67, device=here, dtype=torch.float64).unbind()

    def f(x, w):
        x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
        y = torch.tanh(x * w + x)
        (F.gelu(y) * torch.sigmoid(y) - x).square().mean().backward()
        return x.grad, w.grad

    assert max(map(len, check(f, x, w))) >= 6


# --- random programs ---

ONE = ["neg", "abs", "sign", "square", "bitwise_not", "logical_not", "isfinite", "sin"]
TWO = ["add", "sub", "mul", "maximum", "fmod", "lt", "eq", "bitwise_and", "div", "pow"]
TWO += ["floor_divide", "remainder", "bitwise_xor", "bitwise_left_shift", "logical_or"]
SHAPE = (60, 67)
KINDS = ["one", "two", "number", "cast", "row", "where", "in_place", "part", "end"]


def program(seeds, pool):
    """Runs steps; what fails, fails in the same way in both runs."""
    kept, notes = list(pool), []
    for kind, i, j, k in seeds:
        a, b = kept[i % len(kept)], kept[j % len(kept)]
        made = None
        try:
            if kind == "one":
                made = getattr(torch, ONE[k % len(ONE)])(a)
            elif kind == "two":
                made = getattr(torch, TWO[k % len(TWO)])(a, b)
            elif kind == "number":
                made = getattr(torch, TWO[k % len(TWO)])(a, k % 11 - 3)
            elif kind == "cast":
                made = a.to(TYPES[k % len(TYPES)])
            elif kind == "row":
                made = a + b[k % 60]
            elif kind == "where":
                made = torch.where(a > k % 5, a, b)
            elif kind == "in_place":
                getattr(a, ["add_", "mul_", "copy_", "fill_"][k % 4])(
                    b if k % 4 < 3 else k
                )
            elif kind == "part":
                a.view(-1)[k : k + 20] *= 2
            else:
                notes.append(repr(a.float().sum(-1)[k % 60].item()))
        except (RuntimeError, NotImplementedError, TypeError) as error:
            notes.append(str(error))
        if made is not None:
            kept = [*kept[-6:], made]
    return kept, notes


def one_nan(tensors):
    """With the same NaN for each: of two that are added, a host's compiler may give either."""
    return [
        torch.where(t.isnan(), float("nan"), t) if t.is_floating_point() else t
        for t in tensors
    ]


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(KINDS),
            *(st.integers(0, 6), st.integers(0, 6), st.integers(0, 120)),
        ),
        max_size=24,
    )
)
def test_random_programs(here, schedule, seeds):
    n = SHAPE[0] * SHAPE[1]
    pool = [numbers(dtype, here, n).view(SHAPE) for dtype in TYPES[3::2]]
    pool += [numbers(dtype, here, n).view(SHAPE) for dtype in (torch.int64, torch.bool)]
    want, said = program(seeds, [t.clone() for t in pool])
    with torch.fused():
        got, told = program(seeds, [t.clone() for t in pool])
    assert told == said
    assert same(one_nan(got), one_nan(want))


def test_pairs_of_types(here):
    """Each type beside each other one, promoted, chosen and compared."""
    made = {t: numbers(t, here, 1003) for t in TYPES}
    for a, b in itertools.product(TYPES, repeat=2):
        check(
            lambda x, y: (
                x + y,
                x * 2 + y,
                torch.where(x > y, x, y),
                (x == y) & (x > 1),
            ),
            *(made[a], made[b].flip(0)),
        )
