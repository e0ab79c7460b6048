"""use_deterministic_algorithms(): the same bits in every run, whatever the order of blocks."""

import pytest

import pydevtensor as torch

F = torch.nn.functional
N, PLACES = 5000, 7


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def drawn(*shape, high=None, dtype=torch.float32):
    generator = torch.Generator().manual_seed(7)
    if high:
        return torch.randint(high, shape, generator=generator)
    return torch.randn(shape, generator=generator).to(dtype)


def gradient(function, *inputs):
    """Of the first input; weights make each element's contribution another."""
    x = inputs[0].detach().requires_grad_()
    result = function(x, *inputs[1:])
    result.backward(drawn(*result.shape).to(x.device).to(result.dtype))
    return x.grad


def put(accumulate, *shape):
    return lambda d, t: torch.zeros(*shape, dtype=t, device=d).index_put_(
        (drawn(N, high=shape[0]).to(d), drawn(N, high=shape[1]).flip(0).to(d)),
        drawn(N, dtype=t).to(d),
        accumulate=accumulate,
    )


def index(d):
    return drawn(N, high=PLACES).to(d)


# Sums whose order shows.
SUMS = {
    "index_add": lambda d, t: torch.zeros(PLACES, 5, dtype=t, device=d).index_add(
        0, index(d), drawn(N, 5, dtype=t).to(d)
    ),
    "index_add along the last": lambda d, t: torch.ones(
        5, PLACES, dtype=t, device=d
    ).index_add(1, index(d), drawn(5, N, dtype=t).to(d), alpha=2),
    "index_put": put(True, PLACES, 3),
    "scatter_add": lambda d, t: torch.zeros(3, PLACES, dtype=t, device=d).scatter_add(
        1, index(d).expand(3, N), drawn(3, N, dtype=t).to(d)
    ),
    "scatter multiply": lambda d, t: torch.ones(PLACES, dtype=t, device=d).scatter(
        0, index(d), 1 + drawn(N, dtype=t).to(d) / 64, reduce="multiply"
    ),
    "scatter_reduce": lambda d, t: torch.zeros(
        PLACES, dtype=t, device=d
    ).scatter_reduce(0, index(d), drawn(N, dtype=t).to(d), "mean"),
    "bincount": lambda d, t: index(d).bincount(drawn(N, dtype=t).to(d)),
    "embedding": lambda d, t: gradient(
        lambda w: F.embedding(index(d), w), drawn(PLACES, 3, dtype=t).to(d)
    ),
    "gather": lambda d, t: gradient(
        lambda x: x.gather(0, index(d)), drawn(PLACES, dtype=t).to(d)
    ),
    "index_select": lambda d, t: gradient(
        lambda x: x.index_select(0, index(d)), drawn(PLACES, 2, dtype=t).to(d)
    ),
    "indexing": lambda d, t: gradient(
        lambda x: x[:, index(d), index(d).flip(0) % 2],
        drawn(2, PLACES, 2, dtype=t).to(d),
    ),
}
# What any order would give the last digits of, or one of several values to.
OTHERS = {
    "index_put of one value": put(False, PLACES, 3),
    "a broadcast value": lambda d, t: torch.zeros(3, dtype=t, device=d).index_put_(
        (index(d) % 3,), torch.tensor([0.1], dtype=t, device=d), accumulate=True
    ),
    "index_copy": lambda d, t: torch.zeros(PLACES, 5, dtype=t, device=d).index_copy(
        0, index(d), drawn(N, 5, dtype=t).to(d)
    ),
    "scatter": lambda d, t: torch.zeros(PLACES, dtype=t, device=d).scatter(
        0, index(d), drawn(N, dtype=t).to(d)
    ),
    "scatter of whole numbers": lambda d, t: torch.zeros(
        PLACES, dtype=torch.int64, device=d
    ).scatter(0, index(d), torch.arange(N, device=d)),
    "max_pool2d": lambda d, t: gradient(
        lambda x: F.max_pool2d(x, 5, 1), drawn(2, 3, 20, 20, dtype=t).to(d)
    ),
    "avg_pool2d": lambda d, t: gradient(
        lambda x: F.avg_pool2d(x, 5, 1), drawn(2, 3, 20, 20, dtype=t).to(d)
    ),
    "interpolate": lambda d, t: gradient(
        lambda x: F.interpolate(x, (30, 30), mode="bicubic"),
        drawn(2, 3, 7, 7, dtype=t).to(d),
    ),
    "conv2d": lambda d, t: gradient(
        lambda w, x: F.conv2d(x, w, padding=1),
        drawn(4, 3, 3, 3, dtype=t).to(d),
        drawn(5, 3, 12, 12, dtype=t).to(d),
    ),
    "depthwise": lambda d, t: gradient(
        lambda w, x: F.conv2d(x, w, padding=1, groups=3),
        drawn(3, 1, 3, 3, dtype=t).to(d),
        drawn(5, 3, 12, 12, dtype=t).to(d),
    ),
    "attention": lambda d, t: gradient(
        lambda q: F.scaled_dot_product_attention(q, q, q),
        drawn(1, 2, 70, 16, dtype=t).to(d),
    ),
}


def in_orders(function, device):
    """The result under several orders of blocks, or, on real devices, of several runs."""
    for seed in range(1, 7):
        if torch.device(device).type == "cuda" and torch.cuda.is_simulated():
            torch.cuda.sim_schedule(f"random:{seed}")
        yield function().cpu()


@pytest.mark.parametrize("name", [*SUMS, *OTHERS])
def test_every_run_gives_the_same_bits(name, deterministic, device):
    function = {**SUMS, **OTHERS}[name]
    first, *others = in_orders(lambda: function(device, torch.float32), device)
    assert all(torch.equal(first, other) for other in others)
    wanted = function("cpu", torch.float64).to(first.dtype)
    assert torch.allclose(first, wanted, rtol=1e-3, atol=1e-3)
    assert first.any()


@pytest.mark.parametrize("name", SUMS)
def test_without_it_the_order_of_blocks_shows(name, gpu):
    if not torch.cuda.is_simulated():
        pytest.skip("a real GPU may happen to add in one order")
    first, *others = in_orders(lambda: SUMS[name](gpu, torch.float32), gpu)
    assert not all(torch.equal(first, other) for other in others)


def test_without_it_any_of_several_values_is_written(gpu):
    if not torch.cuda.is_simulated():
        pytest.skip("a real GPU may happen to write one of them each time")
    first, *others = in_orders(lambda: OTHERS["scatter"](gpu, torch.float32), gpu)
    assert not all(torch.equal(first, other) for other in others)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("name", SUMS)
def test_other_types(name, dtype, deterministic, device):
    first, *others = in_orders(lambda: SUMS[name](device, dtype), device)
    assert all(torch.equal(first, other) for other in others)
    # On the CPU each sum of halves is rounded, and GPUs round the last one.
    if dtype == torch.float64 or torch.device(device).type == "cuda":
        wanted = SUMS[name]("cpu", torch.float64)
        allowed = {torch.float64: 1e-9, torch.float16: 0.05, torch.bfloat16: 0.3}[dtype]
        off = (first.double() - wanted).abs() / (1 + wanted.abs())
        assert off.max() < allowed, off.max()


# Tiles have 32 entries, chunks of a sort 2048.
@pytest.mark.parametrize("n", [1, 31, 32, 33, 64, 65, 1024, 1025, 2049])
@pytest.mark.parametrize("places", [1, 2, 40, 3000])
@pytest.mark.parametrize("width", [1, 3])
def test_whole_numbers_add_up_exactly(n, places, width, deterministic, device):
    where = drawn(n, high=places).to(device)
    values = torch.arange(n * width, device=device).reshape(n, width) % 101
    whole = torch.full((places, width), 3, device=device)
    floats = whole.float().index_add(0, where, values.float())
    assert torch.equal(floats.long(), whole.index_add(0, where, values))


@pytest.mark.parametrize("n", [33, 2100])
def test_the_last_of_several_values_is_written(n, deterministic, device):
    where = drawn(n, high=5)
    last = torch.zeros(6, dtype=torch.int64)
    for i, place in enumerate(where.tolist()):
        last[place] = i
    for dtype in (torch.int64, torch.int16, torch.uint8, torch.float32):
        numbers = torch.arange(n, device=device).to(dtype)
        found = torch.zeros(6, dtype=dtype, device=device)
        found[where.to(device)] = numbers
        assert torch.equal(found.cpu(), last.to(dtype))


def test_a_table_and_values_in_any_layout(deterministic, device):
    where = drawn(3, 80, high=6).to(device)
    values = drawn(4, 3, 80, 2).to(device).permute(1, 2, 0, 3)  # [3, 80, 4, 2]
    table = torch.zeros(2, 4, 6, device=device).permute(2, 1, 0)  # [6, 4, 2]
    table.index_put_((where,), values, accumulate=True)
    wanted = torch.zeros(6, 4, 2).index_put_(
        (where.cpu(),), values.cpu().contiguous(), accumulate=True
    )
    assert torch.allclose(table.cpu(), wanted, atol=1e-5)


def test_an_index_out_of_range_is_reported_and_skipped(deterministic, device):
    x = torch.zeros(4, device=device)
    where = torch.tensor([0, 9, 0, 1], device=device)
    with pytest.raises((RuntimeError, IndexError), match="9"):
        x.index_add_(0, where, torch.ones(4, device=device)).tolist()
    if torch.device(device).type == "cuda":
        assert x.tolist() == [2, 1, 0, 0]


def test_the_mode():
    assert not torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    assert torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(False, warn_only=True)
    assert not torch.are_deterministic_algorithms_enabled()
