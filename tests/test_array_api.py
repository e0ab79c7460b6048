"""pydevtensor.array_api is the array API standard's namespace.

Signatures, types and values are compared with array-api-strict, which follows the
standard's text to the letter and computes with NumPy.
"""

import inspect

import numpy
import pytest
from cases import Cases
from hypothesis import assume, given, settings, strategies
from hypothesis.extra.array_api import make_strategies_namespace
from isolated import python
from standard_arrays import DTYPE, DTYPES, PD, RECT, find, strict

import pydevtensor as torch

xp = torch.array_api
ABSENT = {"uint16", "uint32", "uint64"}
NOT_STANDARD = {"Device", "__array_api_version__", "__version__"}


def standard_names():
    main = {n for n in strict.__all__ if "strict" not in n.lower()} - NOT_STANDARD
    for space in ("fft", "linalg"):
        main |= {f"{space}.{name}" for name in getattr(strict, space).__all__}
    # array-api-strict 2.6.1 has these and does not list them.
    return sorted(main | {"linalg.eig", "linalg.eigvals"})


def test_the_names_are_those_of_the_standard():
    names = set(standard_names())
    ours = {*xp.__all__}
    for space in ("fft", "linalg"):
        ours |= {f"{space}.{name}" for name in getattr(xp, space).__all__}
    assert ours - {"__array_api_version__"} == names - ABSENT
    assert not [name for name in ABSENT if find(xp, name) is not None]
    assert not [name for name in ours if find(xp, name) is None and name != "newaxis"]
    assert xp.__array_api_version__ == strict.__array_api_version__


def test_it_is_called_as_the_standard_says():
    """What has a place or a keyword there has it here, and nothing else is needed."""
    with Cases() as case:
        for name in standard_names():
            if name not in ABSENT:
                with case(name):
                    compare_parameters(name)


def compare_parameters(name):
    theirs, ours = find(strict, name), find(xp, name)
    if not callable(theirs) or isinstance(theirs, DTYPE):
        return
    wanted = list(inspect.signature(theirs).parameters.values())
    got = inspect.signature(ours).parameters
    in_place = [p for p in got.values() if p.kind <= p.POSITIONAL_OR_KEYWORD]
    if not any(p.kind == p.VAR_POSITIONAL for p in got.values()):
        places = [p for p in wanted if p.kind <= p.POSITIONAL_OR_KEYWORD]
        assert not any(p.kind == p.VAR_POSITIONAL for p in wanted)
        assert len(places) <= len(in_place)
        needed = [p for p in in_place if p.default is p.empty]
        assert len(needed) <= len([p for p in places if p.default is p.empty])
    for parameter in wanted:
        if parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            assert parameter.name in got
        if parameter.kind == parameter.KEYWORD_ONLY and "Undef" not in str(parameter):
            assert got[parameter.name].default == parameter.default


# --- what is not a table ---------------------------------------------------------------


def test_functions_that_agree_are_the_library_s_own():
    for name in [
        "sin",
        "abs",
        "asarray",
        "from_dlpack",
        "zeros_like",
        "moveaxis",
        "tile",
        "broadcast_shapes",
    ]:
        assert getattr(xp, name) is getattr(torch, name)
    for name in [
        "cholesky",
        "det",
        "diagonal",
        "eigh",
        "inv",
        "pinv",
        "qr",
        "slogdet",
        "svd",
    ]:
        assert getattr(xp.linalg, name) is getattr(torch.linalg, name)
    assert (xp.bool, xp.float32) == (torch.bool, torch.float32)
    assert xp.newaxis is None and xp.inf == numpy.inf and xp.pi == numpy.pi


def test_isin_inverted(device):
    """Tested here, since the strict package ignores invert."""
    x = xp.asarray([[1, 2], [3, 1]], device=device)
    found = xp.isin(x, xp.asarray([1, 5], device=device), invert=True)
    assert found.tolist() == [[False, True], [True, False]]
    assert xp.isin(3, x, invert=True).tolist() is False


def test_empty():
    assert xp.empty((2, 3), dtype=xp.int8).dtype == xp.int8
    assert xp.empty(3).shape == (3,) and xp.empty_like(xp.ones(2)).shape == (2,)
    assert xp.zeros(tuple(numpy.array([2, 1]))).shape == (2, 1)


@pytest.mark.parametrize("num", [2, 3, 4, 7])
def test_linspace_ends_at_stop(device, num):
    """Also where start is so large that steps back from it do not reach stop."""
    for start, stop in [(2.0**54, 1.0), (-(2.0**60), 0.1), (1e30, 3.0)]:
        for dtype in (xp.float32, xp.float64):
            x = xp.linspace(start, stop, num, dtype=dtype, device=device)
            ends = xp.asarray([start, stop], dtype=dtype, device=device)
            assert x[0] == ends[0] and x[-1] == ends[1]


def test_factorizations(device):
    """They are not unique, so their products are compared."""
    x = xp.asarray(RECT, device=device)
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    torch.testing.assert_close((u * s[:, None, :]) @ vh, x)
    q, r = xp.linalg.qr(x, mode="complete")
    assert q.shape == (2, 3, 3) and r.shape == (2, 3, 2)
    torch.testing.assert_close(q @ r, x)
    found = xp.linalg.eigh(xp.asarray(PD, device=device))
    vectors = found.eigenvectors
    again = (vectors * found.eigenvalues[:, None, :]) @ vectors.mT
    torch.testing.assert_close(again, xp.asarray(PD, device=device))


def test_solve_takes_a_stack_of_matrices_for_what_it_is():
    """Of this shape torch.linalg.solve() takes x2 for two vectors."""
    x1 = xp.asarray(PD)
    x2 = xp.asarray([[1.0, 2.0], [3.0, 4.0]], dtype=xp.float64)
    torch.testing.assert_close(x1 @ xp.linalg.solve(x1, x2), torch.stack([x2, x2]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_limits(dtype):
    ours, theirs = getattr(xp, dtype), getattr(strict, dtype)
    kind = "finfo" if dtype.startswith(("float", "complex")) else "iinfo"
    if dtype == "bool":
        for call in (xp.finfo, xp.iinfo):
            with pytest.raises(TypeError):
                call(ours)
        return
    expected = getattr(strict, kind)(theirs)
    for either in (ours, xp.ones(1, dtype=ours)):
        found = getattr(xp, kind)(either)
        part = str(expected.dtype).removeprefix("array_api_strict.")
        assert found.dtype == getattr(xp, part) and found.bits == expected.bits
        for name in (
            "max",
            "min",
            *(["eps", "smallest_normal"] if kind == "finfo" else []),
        ):
            assert getattr(found, name) == getattr(expected, name)
            assert type(getattr(found, name)) is type(getattr(expected, name))
    with pytest.raises(TypeError):
        getattr(xp, "iinfo" if kind == "finfo" else "finfo")(ours)


KINDS = ["bool", "signed integer", "unsigned integer", "integral", "real floating"]
KINDS += ["complex floating", "numeric"]


def test_kinds_and_casts():
    for one in DTYPES:
        mine, its = getattr(xp, one), getattr(strict, one)
        for kind in [*KINDS, ("bool", "numeric"), ()]:
            assert xp.isdtype(mine, kind) == strict.isdtype(its, kind), (one, kind)
        for two in DTYPES:
            to = getattr(xp, two)
            assert xp.can_cast(mine, to) == strict.can_cast(
                its, getattr(strict, two)
            ), (one, two)
            assert xp.can_cast(xp.ones(1, dtype=mine), to) == xp.can_cast(mine, to)
            assert xp.isdtype(mine, to) == (one == two) == xp.isdtype(mine, (to, to))
    for wrong in ("float", "Bool"):
        with pytest.raises(ValueError, match="real floating"):
            xp.isdtype(xp.int8, wrong)
    for call in (
        lambda: xp.isdtype(xp.int8, 3),
        lambda: xp.isdtype("int8", "numeric"),
        lambda: xp.can_cast("int8", xp.int8),
        lambda: xp.result_type(xp.int8, "a"),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError):
        xp.result_type(1, 2.0)


def test_info():
    info = xp.__array_namespace_info__()
    assert info.capabilities() == {
        "boolean indexing": True,
        "data-dependent shapes": True,
        "max dimensions": 16,
    }
    most = info.capabilities()["max dimensions"]
    assert xp.ones((1,) * most).ndim == most
    with pytest.raises((RuntimeError, ValueError)):
        xp.ones((1,) * (most + 1))
    assert info.default_device() == torch.device("cpu")
    assert len(info.devices()) == 1 + torch.cuda.device_count()
    for each in info.devices():
        assert xp.ones(1, device=each).device == each
        assert list(info.dtypes(device=each)) == DTYPES
    assert info.default_dtypes()["real floating"] == xp.asarray(1.0).dtype
    assert info.default_dtypes()["integral"] == xp.asarray(1).dtype
    assert info.default_dtypes()["indexing"] == xp.argsort(xp.ones(2)).dtype
    assert info.dtypes(kind=("bool", "unsigned integer")) == {
        "bool": xp.bool,
        "uint8": xp.uint8,
    }
    assert [*info.dtypes(kind="complex floating")] == ["complex64", "complex128"]
    assert info.default_dtypes()["complex floating"] == xp.asarray(1j).dtype
    with pytest.raises(ValueError):
        info.dtypes(kind="float")


def test_the_namespace_of_a_tensor(device):
    x = torch.ones(2, device=device)
    assert x.__array_namespace__() is xp is torch.nn.Parameter(x).__array_namespace__()
    for version in ("2021.12", "2024.12", xp.__array_api_version__, None):
        assert x.__array_namespace__(api_version=version) is xp
    with pytest.raises(ValueError, match=r"2199\.12.*2025\.12"):
        x.__array_namespace__(api_version="2199.12")


def test_to_device(device):
    x = torch.ones(2, requires_grad=True)
    moved = x.to_device(device)
    assert moved.device == torch.device(device) and moved.requires_grad
    assert moved.to_device(moved.device) is moved
    assert xp.astype(x, xp.float64, device=device).device == torch.device(device)
    with pytest.raises(ValueError, match="stream"):
        x.to_device(device, stream=3)
    with pytest.raises(RuntimeError):
        x.to_device("disk")


def test_views_and_copies(device):
    x = xp.asarray([[1, 2], [3, 4]], device=device)
    assert xp.asarray(x, copy=False) is x and xp.asarray(x) is x
    assert xp.astype(x, x.dtype, copy=False) is x
    for copy in (
        xp.asarray(x, copy=True),
        xp.astype(x, x.dtype),
        xp.reshape(x, (4,), copy=True),
        xp.clip(x),
        xp.from_dlpack(x, copy=True),
    ):
        assert copy.data_ptr() != x.data_ptr()
    assert xp.reshape(x, (4,), copy=False).data_ptr() == x.data_ptr()
    with pytest.raises(ValueError, match="copy"):
        xp.reshape(x.mT, (4,), copy=False)
    with pytest.raises(ValueError, match="copy"):
        xp.asarray([1, 2], copy=False)
    assert xp.expand_dims(xp.asarray([1]), (0, 2)).shape == (1, 1, 1)


def test_bad_arguments(device):
    m, v = xp.ones((2, 3), device=device), xp.arange(4, device=device)
    for error, call in (
        (ValueError, lambda: xp.broadcast_to(m, (3, 2))),
        (ValueError, lambda: xp.broadcast_to(m, (3,))),
        (ValueError, lambda: xp.squeeze(m, 0)),
        (IndexError, lambda: xp.squeeze(m, 2)),
        (IndexError, lambda: xp.expand_dims(m, 3)),
        (ValueError, lambda: xp.expand_dims(m, (0, -4))),
        (ValueError, lambda: xp.take(m, v)),
        (ValueError, lambda: xp.cumulative_sum(m)),
        (ValueError, lambda: xp.concat([])),
        (ValueError, lambda: xp.stack([])),
        (ValueError, lambda: xp.meshgrid(v, v, indexing="yx")),
        (ValueError, lambda: xp.prod(m, axis=(0, -2))),
        (TypeError, lambda: xp.maximum(1, 2)),
        (TypeError, lambda: xp.add(x1=m, x2=m)),
        (TypeError, lambda: xp.sum(m, 0)),
        (RuntimeError, lambda: xp.maximum(m, xp.ones(4, device=device))),
        (RuntimeError, lambda: xp.mean(v)),
    ):
        with pytest.raises(error):
            call()
    with pytest.raises((IndexError, torch.AcceleratorError)):
        xp.take(m, xp.asarray([3], device=device), axis=1).tolist()


def test_gradients_pass_through():
    x = torch.tensor([[1.0, 5.0], [3.0, 2.0]], requires_grad=True)
    y = xp.sum(xp.maximum(x, 2) * xp.take_along_axis(x, xp.argsort(x), axis=-1), axis=0)
    xp.linalg.vector_norm(y).backward()
    assert x.grad.shape == (2, 2) and bool(xp.all(x.grad != 0))


def test_it_is_loaded_on_first_use():
    run = "import sys, pydevtensor as t; assert 'pydevtensor.array_api' not in sys.modules; "
    python(
        run
        + "t.ones(1).__array_namespace__().ones(1); assert 'pydevtensor.linalg' in sys.modules"
    )


# --- with Hypothesis's strategies for namespaces of the standard -----------------------


XPS = make_strategies_namespace(xp, api_version="2024.12")
TYPES = strategies.sampled_from([getattr(xp, dtype) for dtype in DTYPES])


@given(drawn=strategies.data())
@settings(max_examples=200, deadline=None)
def test_subscripts_read_and_write(drawn):
    """What the standard lets stand in brackets, but for negative steps."""
    shape = drawn.draw(XPS.array_shapes(min_dims=0, min_side=0, max_side=4))
    x = drawn.draw(XPS.arrays(TYPES, shape))
    index = drawn.draw(XPS.indices(shape, max_dims=6, allow_newaxis=True))
    parts = index if isinstance(index, tuple) else (index,)
    assume(not any(isinstance(p, slice) and (p.step or 1) < 0 for p in parts))
    array = x.numpy().copy()
    numpy.testing.assert_array_equal(x[index].numpy(), array[index])
    written = xp.asarray(x, copy=True)
    written[index] = 1
    array[index] = 1
    numpy.testing.assert_array_equal(written.numpy(), array)
    mask = drawn.draw(XPS.arrays(xp.bool, shape))
    numpy.testing.assert_array_equal(written[mask].numpy(), array[mask.numpy()])


@given(drawn=strategies.data())
@settings(max_examples=100, deadline=None)
def test_broadcasting(drawn):
    shapes = drawn.draw(XPS.mutually_broadcastable_shapes(3))
    together = xp.broadcast_arrays(*map(xp.ones, shapes.input_shapes))
    assert {tuple(each.shape) for each in together} == {shapes.result_shape}
    assert tuple(xp.broadcast_shapes(*shapes.input_shapes)) == shapes.result_shape
    for each in shapes.input_shapes:
        found = xp.broadcast_to(xp.ones(each), shapes.result_shape)
        assert tuple(found.shape) == shapes.result_shape


@pytest.mark.parametrize("call", [
    "multiply(xp.ones(2), xp.ones(3))", "greater(xp.ones(2), xp.ones(3))",
    "unstack(xp.ones(2), axis=4)", "matrix_transpose(xp.ones(2))", "finfo(xp.int8)",
    "linalg.trace(xp.ones(2))", "linalg.matmul(xp.ones(2), xp.ones(3))",
])  # fmt: skip
def test_errors_have_the_names_of_the_standard(call):
    name = call.removeprefix("linalg.").partition("(")[0]
    with pytest.raises(Exception, match=rf"^{name}\(\): "):
        eval(f"xp.{call}")
    assert xp.linalg.matmul is xp.matmul
