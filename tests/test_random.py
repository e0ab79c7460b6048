"""Random functions, linspace, tril and meshgrid, beyond the golden numbers."""

import copy
import math
import pickle

import numpy as np
import pytest

import pydevtensor as torch

DTYPES = ["float32", "float64", "int8", "int32", "int64"]


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2), (2, 3, 4), (0, 3), (2, 0)])
@pytest.mark.parametrize("diagonal", [0, 1, -1, 3, -9, 2**62, -(2**62)])
def test_triangles(device, shape, diagonal):
    x = torch.arange(1, 1 + math.prod(shape)).reshape(shape).to(device)
    k = max(-100, min(100, diagonal))
    for name in ("tril", "triu"):
        wanted = getattr(np, name)(x.cpu().numpy(), k)
        assert (getattr(torch, name)(x, diagonal).cpu().numpy() == wanted).all()
        assert (getattr(x, name)(diagonal).cpu().numpy() == wanted).all()
        y = x.clone().mT
        assert getattr(y, name + "_")(diagonal) is y
        wanted = getattr(np, name)(x.mT.cpu().numpy(), k)
        assert (y.cpu().numpy() == wanted).all()
    with pytest.raises(RuntimeError, match="matrix"):
        torch.ones(3, device=device).tril()
    assert torch.ones(2, 2, dtype=torch.bool, device=device).tril().dtype == torch.bool


def test_gradients_of_triangles(device):
    x = torch.ones(3, 4, device=device, requires_grad=True)
    (x.tril(1) * 2).sum().backward()
    assert (x.grad.cpu().numpy() == 2 * np.tri(3, 4, 1)).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ends", [(0, 1), (-3, 7.5), (5, -5), (2, 2), (0.1, 99.7)])
def test_spaced_numbers(device, dtype, ends):
    kind = getattr(torch, dtype)
    for steps in (0, 1, 2, 3, 17, 1000):
        x = torch.linspace(*ends, steps, dtype=kind, device=device).cpu().numpy()
        start, end = ends if kind.is_floating_point else (math.trunc(e) for e in ends)
        wanted = np.linspace(start, end, steps)
        if kind.is_floating_point:
            assert np.allclose(
                x, wanted, rtol=3e-7, atol=3e-6 if dtype == "float32" else 1e-13
            )
            assert not steps or x[0] == kind_of(dtype, start)
            assert steps < 2 or x[-1] == kind_of(dtype, end)
        else:
            assert np.abs(x - np.trunc(wanted)).max(initial=0) <= 1
    with pytest.raises(RuntimeError, match="steps"):
        torch.linspace(0, 1, -1, device=device)
    with pytest.raises(NotImplementedError, match="bool"):
        torch.linspace(0, 1, 3, dtype=torch.bool, device=device)


def kind_of(dtype, value):
    return np.dtype(dtype).type(value)


def test_powers(device):
    x = torch.logspace(0, 4, 9, base=3, device=device).cpu().numpy()
    assert np.allclose(x, np.logspace(0, 4, 9, base=3), rtol=1e-6)
    x = torch.logspace(0, 3, 4, dtype=torch.int64, device=device)
    assert x.tolist() == [1, 10, 100, 1000]


@pytest.mark.parametrize("indexing", [None, "ij", "xy"])
def test_grids(device, indexing):
    axes = [torch.arange(n, device=device) for n in (2, 3, 4)]
    for count in (1, 2, 3):
        found = torch.meshgrid(*axes[:count], indexing=indexing)
        wanted = np.meshgrid(
            *(a.cpu().numpy() for a in axes[:count]), indexing=indexing or "ij"
        )
        assert type(found) is tuple
        for x, y in zip(found, wanted, strict=True):
            assert (x.cpu().numpy() == y).all() and x.shape == y.shape
    assert torch.meshgrid(axes)[2].data_ptr() == axes[2].data_ptr()
    for bad in ([], [torch.ones(2, 2)], [torch.ones(2), torch.arange(2)]):
        with pytest.raises(RuntimeError, match=r"give|convert"):
            torch.meshgrid(bad)
    with pytest.raises(RuntimeError, match="indexing"):
        torch.meshgrid(axes, indexing="ji")


def test_permutations(device):
    for n in (0, 1, 2, 1000):
        for dtype in (torch.int64, torch.int16, torch.float32):
            x = torch.randperm(n, dtype=dtype, device=device)
            assert x.device == torch.device(device) and x.dtype == dtype
            assert sorted(x.tolist()) == list(range(n))
    torch.manual_seed(3)
    first = torch.randperm(50, device=device).tolist()
    assert torch.randperm(50, device=device).tolist() != first
    torch.manual_seed(3)
    assert torch.randperm(50, device=device).tolist() == first
    for n, dtype in ((-1, torch.int64), (257, torch.uint8), (2**24 + 2, torch.float32)):
        with pytest.raises(RuntimeError, match=r"give|wider"):
            torch.randperm(n, dtype=dtype, device=device)


def test_gpus_agree(two_gpus):
    calls = (
        lambda d: torch.randperm(40, device=d),
        lambda d: torch.multinomial(torch.arange(9.0, device=d), 5),
        lambda d: torch.multinomial(torch.arange(9.0, device=d), 50, True),
        lambda d: torch.zeros(30, device=d).exponential_(2),
        lambda d: torch.bernoulli(torch.full((50,), 0.4, device=d)),
        lambda d: torch.normal(torch.zeros(20, device=d), torch.ones(20, device=d)),
    )
    found = []
    for gpu in two_gpus:
        torch.manual_seed(8)
        found.append([call(gpu).tolist() for call in calls])
    assert found[0] == found[1]


def test_shares(device):
    torch.manual_seed(0)
    n = 20_000
    ones = torch.bernoulli(torch.full((n,), 0.3, device=device)).mean().item()
    assert abs(ones - 0.3) < 0.02
    p = torch.tensor([0.0, 1, 2, 7], device=device)
    drawn = torch.multinomial(p, n, replacement=True).cpu().numpy()
    assert np.abs(np.bincount(drawn, minlength=4) / n - [0, 0.1, 0.2, 0.7]).max() < 0.02
    x = torch.zeros(n, device=device).exponential_(4)
    assert abs(x.mean().item() - 0.25) < 0.02 and x.min().item() >= 0
    x = torch.normal(torch.full((n,), 2.0, device=device), 3.0)
    assert (
        abs(x.mean().item() - 2) < 0.1 and abs((x - 2).square().mean().item() - 9) < 0.5
    )
    rows = torch.multinomial(torch.ones(5, 4, device=device), 4)
    assert rows.device == torch.device(device)
    assert [sorted(row) for row in rows.tolist()] == [[0, 1, 2, 3]] * 5


@pytest.mark.parametrize("draw", [torch.rand, torch.randn])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_long_draws_go_on_where_the_one_before_ended(draw, dtype):
    n = 16 * 70_001
    torch.manual_seed(2)
    whole = draw(3 * n, dtype=dtype)
    torch.manual_seed(2)
    assert torch.equal(whole, torch.cat([draw(n, dtype=dtype) for _ in range(3)]))


ERRORS = [
    ("multinomial(torch.tensor([1., -1]), 1)", RuntimeError),
    ("multinomial(torch.tensor([float('nan'), 1]), 1)", RuntimeError),
    ("multinomial(torch.tensor([float('inf'), 1]), 1)", RuntimeError),
    ("multinomial(torch.tensor([0., 0]), 1)", RuntimeError),
    ("multinomial(torch.ones(2), 3)", RuntimeError),
    ("multinomial(torch.ones(2), 0)", RuntimeError),
    ("multinomial(torch.ones(2, 2, 2), 1)", RuntimeError),
    ("multinomial(torch.ones(0), 1, True)", RuntimeError),
    ("multinomial(torch.tensor([1, 1]), 1)", RuntimeError),
    ("zeros(3).exponential_(-1)", RuntimeError),
    ("zeros(3, dtype=torch.int64).exponential_()", RuntimeError),
    ("normal(0., -1., (2,))", RuntimeError),
    ("normal(torch.zeros(2), -torch.ones(2))", RuntimeError),
    ("normal(torch.zeros(2), torch.ones(3))", RuntimeError),
    ("normal(torch.arange(3), 1.0)", NotImplementedError),
    ("normal(0.0, 1.0)", TypeError),
    ("bernoulli(torch.tensor([2.]))", RuntimeError),
    ("bernoulli(torch.tensor([1]))", NotImplementedError),
    ("set_rng_state(torch.zeros(3, dtype=torch.uint8))", RuntimeError),
    ("set_rng_state(torch.zeros(3))", TypeError),
    ("set_rng_state(torch.zeros(5056, dtype=torch.uint8))", RuntimeError),
]


@pytest.mark.parametrize("call, error", ERRORS)
def test_wrong_calls(call, error):
    before = torch.get_rng_state()
    with pytest.raises(error) as caught:
        eval("torch." + call)
    assert len(str(caught.value)) > 20
    if "set_rng_state" in call:
        assert torch.get_rng_state().tolist() == before.tolist()


def test_states(device):
    g = torch.Generator(device=device).manual_seed(6)
    torch.randn(3, device=device, generator=g)
    state, twin = g.get_state(), g.clone_state()
    wanted = [torch.randn(5, device=device, generator=g).tolist() for _ in range(300)]
    assert [
        torch.randn(5, device=device, generator=twin).tolist() for _ in range(300)
    ] == wanted
    assert g.set_state(state) is g
    assert [
        torch.randn(5, device=device, generator=g).tolist() for _ in range(300)
    ] == wanted
    assert g.initial_seed() == 6


def test_a_fork_leaves_no_trace():
    torch.manual_seed(1)
    with torch.random.fork_rng():
        torch.rand(1000)
    x = torch.rand(2)
    torch.manual_seed(1)
    assert (torch.rand(2) == x).all()


def test_a_fork_of_one_type_of_device(gpu):
    def after(device_type, devices=None):
        torch.manual_seed(1)
        with torch.random.fork_rng(devices, device_type=device_type):
            torch.rand(3), torch.rand(3, device=gpu)
        return torch.rand(2), torch.rand(2, device=gpu)

    torch.manual_seed(1)
    wanted = torch.rand(2), torch.rand(2, device=gpu)
    for kind in (None, "cuda", torch.device(gpu)):
        assert all(map(torch.equal, after(kind), wanted)), kind
    host, there = after("cpu")
    assert torch.equal(host, wanted[0]) and not torch.equal(there, wanted[1])
    with pytest.raises(RuntimeError):
        after("gpu")


def test_a_generator_for_numbers_like_a_tensor(device):
    x = torch.zeros(2, 3, device=device)
    for draw in (
        torch.rand_like,
        torch.randn_like,
        lambda x, **options: torch.randint_like(x, 1000, **options),
    ):
        first, again, others = (
            draw(x, generator=torch.Generator(device).manual_seed(seed))
            for seed in (3, 3, 4)
        )
        assert first.shape == x.shape and first.device == x.device
        assert torch.equal(first, again) and not torch.equal(first, others)
    with pytest.raises(TypeError):
        torch.rand_like(x, generator=3)


def test_a_generator_of_another_device_is_refused(gpu):
    with pytest.raises(RuntimeError, match="generator"):
        torch.rand_like(torch.zeros(2, device=gpu), generator=torch.Generator())


def test_filling_what_has_a_history(device):
    x = torch.ones(4, device=device, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        x.exponential_()
    y = x * 2
    y.exponential_()
    y.sum().backward()
    assert x.grad is None or x.grad.tolist() == [0] * 4  # nothing of x is left in y
    y = x * 2
    y.bernoulli_(torch.full((4,), 0.5, device=device))
    assert set(y.tolist()) <= {0, 1}


def test_random_numbers_of_other_distributions(device):
    generator = torch.Generator(device).manual_seed(5)
    n = 20000
    x = torch.empty(n, device=device).geometric_(0.25, generator=generator)
    assert x.min().item() == 1 and abs(x.mean().item() - 4) < 0.15
    y = torch.empty(n, device=device).cauchy_(2, 3, generator=generator)
    quartiles = y.quantile(torch.tensor([0.25, 0.5, 0.75], device=device)).tolist()
    assert quartiles == pytest.approx([-1, 2, 5], abs=0.25)
    z = torch.empty(n, device=device).log_normal_(0.5, 0.25, generator=generator).log()
    assert abs(z.mean().item() - 0.5) < 0.01 and abs(z.std().item() - 0.25) < 0.01
    again = torch.Generator(device).manual_seed(5)
    assert torch.equal(
        x, torch.empty(n, device=device).geometric_(0.25, generator=again)
    )


def test_a_generator_is_copied_and_pickled(device):
    g = torch.Generator(device).manual_seed(7)
    torch.rand(3, device=device, generator=g)
    twins = [copy.copy(g), copy.deepcopy(g), pickle.loads(pickle.dumps(g))]
    wanted = torch.rand(3, device=device, generator=g)
    for twin in twins:
        assert twin.device == g.device and twin.initial_seed() == 7
        assert torch.equal(torch.rand(3, device=device, generator=twin), wanted)


@pytest.mark.parametrize("name", ["log_normal_", "cauchy_", "geometric_"])
def test_samples_of_composed_functions_take_a_generator(name, device):
    values = (0.5,) if name == "geometric_" else ()
    drawn = [
        getattr(torch.empty(5, device=device), name)(
            *values, generator=torch.Generator(device).manual_seed(3)
        ).tolist()
        for _ in range(2)
    ]
    assert drawn[0] == drawn[1]
    for wrong in (5, torch.Size([2, 2**40]), "a"):
        with pytest.raises(TypeError, match="Generator"):
            getattr(torch.empty(5, device=device), name)(*values, generator=wrong)
