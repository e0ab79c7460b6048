"""Functions of floats over the whole range of their types, beyond the golden files."""

import math
from textwrap import dedent

import numpy as np
import pytest
from isolated import python

import pydevtensor as torch
from pydevtensor.autograd import gradcheck, gradgradcheck


def numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_parts_of_floats_are_those_of_numpy(name, device):
    information = np.finfo(name)
    values = np.concatenate(
        [numbers(12, 100).astype(name) * np.exp(30 * numbers(13, 100)).astype(name)]
        + [np.array([0, -0.0, information.tiny, information.max, 1, -1], dtype=name)]
        + [
            np.array(
                [information.tiny / 8, -information.smallest_subnormal], dtype=name
            )
        ]
    )
    x = torch.tensor(values, device=device)
    mantissa, exponent = torch.frexp(x)
    wanted = np.frexp(values)
    assert mantissa.tolist() == wanted[0].tolist()
    assert exponent.tolist() == wanted[1].tolist()
    other = torch.tensor(values[::-1].copy(), device=device)
    assert x.nextafter(other).tolist() == np.nextafter(values, values[::-1]).tolist()
    assert exponent.dtype == torch.int32


def test_gradients_of_parts_of_floats(device):
    x = torch.tensor([0.3, -5.0, 100.0], dtype=torch.float64, device=device)
    x.requires_grad_()
    powers = torch.tensor([2, -3, 0], device=device)
    assert gradcheck(lambda a: torch.ldexp(a, powers), (x,))
    assert gradcheck(lambda a: torch.frexp(a).mantissa, (x,))
    assert gradcheck(lambda a: torch.erfinv(a / 200), (x,))
    assert gradgradcheck(lambda a: torch.erfinv(a / 200), (x,))
    y = torch.tensor(numbers(14, 3, 4), device=device).requires_grad_()
    assert gradcheck(lambda a: a.renorm(3, 1, 1.2), (y,))
    assert gradcheck(lambda a: torch.gradient(a, edge_order=2), (y,))
    assert gradcheck(lambda a: torch.cumulative_trapezoid(a, dim=0), (y,))


def test_erfinv_is_the_inverse(device):
    y = torch.tensor(np.linspace(-5, 5, 401), device=device)
    found = torch.erf(y).erfinv()
    near = y.abs() < 2
    assert (found - y)[near].abs().max().item() < 1e-14
    for value in (1e-300, 1e-10, 0.0999, 0.1001, 0.5):
        x = torch.tensor(value, dtype=torch.float64, device=device).erfinv().item()
        assert math.erf(x) == pytest.approx(value, rel=4e-16)


SPECIAL = [
    0,
    1,
    1.5,
    3,
    math.inf,
    math.nan,
    1e-310,
    5e-324,
    1e-42,
    1e-45,
    3.4e38,
    1e300,
]


def pairs(name, n=40000):
    """Floats of any bits, most of the second ones near the first or a part of them."""
    random = np.random.default_rng(20)
    bits = {"float32": np.uint32, "float64": np.uint64}[name]
    with np.errstate(all="ignore"):
        x, y = np.frombuffer(random.bytes(2 * n * bits().itemsize), name).reshape(2, n)
        near = np.ldexp(x, random.integers(-60, 60, n)) * (random.normal(size=n) + 2)
        part = x / random.integers(1, 2**30, n)
        y = np.choose(random.integers(0, 3, n), [y, near, part]).astype(name)
        some = np.array([*SPECIAL, *(-v for v in SPECIAL)]).astype(name)
        others = np.meshgrid(some, some)
    # As many numbers as fill no whole block, and NaN in places of their own.
    return [np.append(v, o.reshape(-1)) for v, o in zip((x, y), others, strict=True)]


def check_bits(found, wanted):
    found = found.cpu().numpy()
    unequal = found.view(f"i{found.itemsize}") != wanted.view(f"i{wanted.itemsize}")
    assert not (unequal & ~(np.isnan(found) & np.isnan(wanted))).any()


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_remainders_are_exact(name, device):
    a, b = pairs(name)
    x, y = torch.tensor(a, device=device), torch.tensor(b, device=device)
    with np.errstate(all="ignore"):
        wanted = np.fmod(a, b)
        check_bits(x.fmod(y), wanted)
        check_bits(x.fmod(0.7), np.fmod(a, np.array(0.7, name)))
        check_bits(x[::3].fmod(y[::3]), wanted[::3])
        whole = np.where((wanted != 0) & ((wanted < 0) != (b < 0)), wanted + b, wanted)
        check_bits(x.remainder(y), whole)
    z = x.clone()
    z.fmod_(y)
    check_bits(z, wanted)
    check_bits(torch.fmod(x, y, out=y), wanted)


def units(found, wanted, name):
    """How many units in the last place lie between found and wanted, a more exact one."""
    with np.errstate(all="ignore"):
        near = np.abs(wanted).astype(name)
        off = np.abs(found.astype(wanted.dtype) - wanted)
    assert np.array_equal(np.isnan(found), np.isnan(wanted))
    assert (np.signbit(found) == np.signbit(wanted))[~np.isnan(wanted)].all()
    finite = np.isfinite(near)
    assert np.array_equal(found[~finite], wanted[~finite], equal_nan=True)
    return (off[finite] / np.spacing(near[finite]).astype(wanted.dtype)).max()


def test_angles_are_rounded_once(device):
    a, b = pairs("float32")
    most = 0.501 if device == "cpu" else 4
    x, y = torch.tensor(a, device=device), torch.tensor(b, device=device)
    with np.errstate(invalid="ignore"):  # NaN that signals
        a, b = a.astype(np.float64), b.astype(np.float64)
    assert units(x.atan2(y).cpu().numpy(), np.arctan2(a, b), "float32") < most
    assert units(x.atan().cpu().numpy(), np.arctan(a), "float32") < most


def test_erf_of_doubles(device):
    random = np.random.default_rng(21)
    x = np.concatenate([random.uniform(-7, 7, 20000), *pairs("float64", 5000)])
    wanted = np.array([math.erf(v) for v in x])
    found = torch.tensor(x, device=device).erf().cpu().numpy()
    assert units(found, wanted, "float64") <= 2


@pytest.mark.parametrize(
    ("name", "units_off"),
    [
        ("exp", 1.1),
        ("exp2", 1.2),
        ("sinh", 2.5),
        ("cosh", 1.5),
        ("log", 1),
        ("log2", 1),
        ("log10", 1.2),
        ("log1p", 1.1),
        ("expm1", 1.3),
        ("tanh", 1.5),
        ("sin", 1),
        ("cos", 1),
    ],
)
def test_functions_of_doubles(name, units_off, device):
    """Beside long doubles, of 64 bits: near 0, near the quick forms' limits, of any bits."""
    random = np.random.default_rng(22)
    quarters = np.arange(-2000, 2000) * (np.pi / 2)  # where little of the angle is left
    x = np.concatenate(
        [
            random.uniform(low, high, 5000)
            for low, high in ((-1, 3), (-50, 50), (-720, 720), (-2e6, 2e6), (0, 5e-308))
        ]
        + [quarters, quarters + 1, 1 + random.uniform(-1e-3, 1e-3, 1000)]
        + pairs("float64", 5000)
    )
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(x.astype(np.longdouble))
    most = np.finfo(np.float64).max
    wanted[np.abs(wanted) > most] = np.copysign(np.inf, wanted[np.abs(wanted) > most])
    found = getattr(torch.tensor(x, device=device), name)().cpu().numpy()
    assert units(found, wanted, "float64") < (units_off if device == "cpu" else 3)


def test_logarithms_of_powers_are_whole(device):
    powers = np.arange(-1074, 1024)
    x = torch.tensor(np.ldexp(1.0, powers), device=device)
    assert x.log2().tolist() == powers.tolist()
    x = torch.tensor([10.0**n for n in range(23)], dtype=torch.float64, device=device)
    assert x.log10().tolist() == list(range(23))


@pytest.mark.slow
def test_remainders_do_not_depend_on_the_instruction_set():
    code = """
        import hashlib
        import pydevtensor as torch
        n = torch.arange(4000)
        for dtype in (torch.float32, torch.float64):
            x, y = n.to(dtype) * 0.37 - 700, (n * 7919 % 4001).to(dtype) * 0.013 - 20
            for f in (torch.fmod, torch.remainder, torch.floor_divide):
                print(hashlib.sha256(f(x, y).numpy().tobytes()).hexdigest())
    """
    found = {
        python(dedent(code), PYDEVTENSOR_CPU_ISA=name)
        for name in ("baseline", "avx2", "avx512")
    }
    assert len(found) == 1
