"""The array API namespace computes what array-api-strict does."""

import itertools

import numpy
import pytest
from cases import Cases
from standard_arrays import ARRAY, DTYPE, DTYPES, PD, RECT, find, strict

import pydevtensor as torch

xp = torch.array_api
SPECIAL = [0.0, -0.0, 1.0, -1.5, 2.5, 3.0, -3.0, numpy.inf, -numpy.inf, numpy.nan, 0.5]


# --- values ----------------------------------------------------------------------------


def theirs_of(value):
    if isinstance(value, numpy.ndarray):
        return strict.asarray(value)
    if isinstance(value, torch.dtype):
        return getattr(strict, str(value).removeprefix("torch."))
    if isinstance(value, (list, tuple)):
        return type(value)(theirs_of(each) for each in value)
    return value


def ours_of(value, device):
    if isinstance(value, numpy.ndarray):
        return xp.asarray(value, device=device)
    if isinstance(value, (list, tuple)):
        return type(value)(ours_of(each, device) for each in value)
    return value


def check_same(theirs, ours, device, signs=True):
    """One value, type and shape; uint64, which the library lacks, is int64."""
    if isinstance(theirs, tuple):
        assert len(theirs) == len(ours)
        for i, one in enumerate(theirs):
            # unique_all() and others have names, and broadcast_shapes() has ints.
            field = theirs._fields[i] if hasattr(theirs, "_fields") else None
            check_same(one, getattr(ours, field) if field else ours[i], device, signs)
    elif isinstance(theirs, ARRAY):
        assert isinstance(ours, torch.Tensor) and ours.device == torch.device(device)
        wanted = str(theirs.dtype).removeprefix("array_api_strict.")
        wanted = "int64" if wanted == "uint64" else wanted
        assert str(ours.dtype) == f"torch.{wanted}"
        assert theirs.shape == tuple(ours.shape)
        a, b = numpy.from_dlpack(theirs), ours.cpu().numpy()
        tolerance = {"float32": 1e-5, "float64": 1e-12}
        tolerance |= {"complex64": 1e-5, "complex128": 1e-12}
        tolerance = tolerance.get(wanted, 0)
        numpy.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance)
        if signs and wanted.startswith("float"):
            zeros = (a == 0) & (b == 0)
            numpy.testing.assert_array_equal(
                numpy.signbit(a[zeros]), numpy.signbit(b[zeros])
            )
    elif isinstance(theirs, DTYPE):
        assert str(ours).removeprefix("torch.") == str(theirs).removeprefix(
            "array_api_strict."
        )
    else:
        assert type(theirs) is type(ours) and theirs == ours


def check(device, name, *args, **kwargs):
    """Compare both libraries' results; False where the standard leaves the call open."""
    words = {k: theirs_of(v) for k, v in kwargs.items()}
    try:
        with numpy.errstate(all="ignore"):
            theirs = find(strict, name)(*theirs_of(args), **words)
    except TypeError:  # the strict package refuses what the standard leaves open
        return False
    words = {k: ours_of(v, device) for k, v in kwargs.items()}
    ours = find(xp, name)(*ours_of(args, device), **words)
    check_same(theirs, ours, device, name not in SIGN_IS_OPEN)
    return True


def plain(*arrays):
    """Finite numbers other than 0 where one of two arrays is complex: the standard has no
    quotients and powers of others."""
    if not any(x.dtype.kind == "c" for x in arrays):
        return arrays
    return [
        numpy.asarray(numpy.where(numpy.isfinite(x) & (x != 0), x, 1), dtype=x.dtype)
        for x in arrays
    ]


def data(dtype, shape, seed=0):
    rng = numpy.random.default_rng([seed, *shape, DTYPES.index(dtype)])
    if dtype.startswith("complex"):  # the standard says little of infinite ones
        values = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    elif dtype.startswith("float"):
        values = rng.choice(SPECIAL, shape)
    else:
        values = rng.integers(
            0 if dtype[0] in "ub" else -9, 2 if dtype == "bool" else 10, shape
        )
    return numpy.asarray(values).astype(dtype)


# Quotients and remainders that are 0 have another sign than the standard says; of 0 and
# -0 either may be the greatest.
SIGN_IS_OPEN = ("remainder", "max", "min")
CREATION = ("arange", "eye", "full", "linspace", "ones", "zeros")
CREATION += ("fft.fftfreq", "fft.rfftfreq")


UNARY = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bitwise_invert",
    "ceil",
    "conj",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "floor",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log1p",
    "log2",
    "log10",
    "logical_not",
    "negative",
    "positive",
    "real",
    "reciprocal",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
]


BINARY = [
    "add",
    "atan2",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "copysign",
    "divide",
    "equal",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "less",
    "less_equal",
    "logaddexp",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "nextafter",
    "not_equal",
    "pow",
    "remainder",
    "subtract",
]


OF_COMPLEX = ("add", "divide", "equal", "multiply", "not_equal", "pow", "subtract")


@pytest.mark.parametrize("name", UNARY)
def test_unary(device, name):
    ran = [check(device, name, data(dtype, shape))
           for dtype in DTYPES for shape in [(), (3,), (4, 5), (0, 2)]]  # fmt: skip
    if ran[DTYPES.index("float64") * 4]:
        assert check(device, name, numpy.array(SPECIAL))
    assert any(ran)


def divisor(name, b):
    """Without what is an error or open: dividing ints by 0, negative shifts and powers."""
    if b.dtype.kind in "iu" and name in ("floor_divide", "remainder"):
        return numpy.asarray(numpy.where(b == 0, 1, b), dtype=b.dtype)
    if name.endswith("shift") or (name == "pow" and b.dtype.kind in "iu"):
        return numpy.asarray(numpy.nan_to_num(abs(b)) % 7, dtype=b.dtype)
    return b


@pytest.mark.parametrize("name", BINARY)
def test_binary(device, name):
    """Every pair of types, with and without dimensions: all take part in promotion."""
    shapes = [((3,), (3,)), ((), (3,)), ((3,), ())]
    more = [((2, 1), (3,)), ((), ()), ((0,), (1,))]
    ran = []
    for one, two in itertools.product(DTYPES, DTYPES):
        for first, second in shapes + (more if one == two else []):
            a, b = plain(data(one, first), divisor(name, data(two, second, 1)))
            ran.append(check(device, name, a, b))
    assert any(ran)


@pytest.mark.parametrize("name", BINARY)
def test_binary_with_a_number(device, name):
    ran = []
    numbers = [True, 2, 1.5, *([0.5 - 1j] if name in OF_COMPLEX else [])]
    for dtype, number in itertools.product(DTYPES, numbers):
        for shape in [(), (3,)]:
            x = plain(data(dtype, shape), numpy.asarray(number))[0]
            ran += [check(device, name, x, number),
                    check(device, name, number, divisor(name, x))]  # fmt: skip
    assert any(ran)
    with pytest.raises(TypeError):
        find(xp, name)(1.0, "a")


def test_special_values_of_pairs(device):
    """Signed zeros, infinities and NaN in both places."""
    pairs = numpy.array(list(itertools.product(SPECIAL, SPECIAL)))
    for name in BINARY:
        if name in ("floor_divide", "remainder") or name.endswith("shift"):
            continue
        check(device, name, pairs[:, 0].copy(), pairs[:, 1].copy())
    finite = pairs[numpy.isfinite(pairs).all(1) & (pairs[:, 1] != 0)]
    for name in ("floor_divide", "remainder"):
        assert check(device, name, finite[:, 0].copy(), finite[:, 1].copy())


@pytest.mark.parametrize(
    "name",
    ["all", "any", "count_nonzero", "max", "mean", "min"]
    + ["prod", "std", "sum", "var"],
)
def test_reductions(device, name):
    ran = []
    for dtype in DTYPES:
        x = numpy.nan_to_num(data(dtype, (2, 3, 2)), posinf=2, neginf=-2)
        for axis in [None, 0, -1, (0, 2), (1,), ()]:
            for keepdims in (False, True):
                ran.append(check(device, name, x, axis=axis, keepdims=keepdims))
        ran.append(check(device, name, x[0, 0, 0, ...]))
        if name in ("std", "var"):
            check(device, name, x, correction=1, axis=1)
            check(device, name, x, correction=0.5)
        if name in ("sum", "prod"):
            for other in (torch.float64, torch.int64):
                check(device, name, x, dtype=other, axis=1)
    assert any(ran)
    with pytest.raises((RuntimeError, ValueError, IndexError)):
        find(xp, name)(xp.ones((2, 2), device=device), axis=(0, 0))
    with pytest.raises(IndexError):
        find(xp, name)(xp.ones((2, 2), device=device), axis=2)


M, F = data("int32", (3, 4)), data("float32", (2, 3, 4))
M0, TRUE = numpy.array(8, dtype="int32"), numpy.array(True)  # without dimensions
T = numpy.arange(24.0, dtype="float32").reshape(2, 3, 4)
V, B = numpy.array([3, 1, 3, 2, 1]), numpy.array([True, False, True])
I8 = numpy.array([2, 0, -1], dtype="int8")
Z = numpy.array([1 + 2j, -0.5j, 1 + 2j, 0.25 - 1j, 1 - 2j])
C = numpy.round(data("complex64", (2, 3, 4)) * 4) / 4
HPD = PD + numpy.array([[0, 0.25j], [-0.25j, 0]])  # Hermitian


CASES = [
    # creation
    ("arange", (5,), {}), ("arange", (1, 6, 2), {}), ("arange", (3, 1), {}), ("arange", (5, 0, -2), {}),
    ("arange", (0.0, 1.0, 0.25), {}), ("arange", (3,), {"dtype": torch.float64}), ("arange", (0, 3, -1), {}),
    ("arange", (2.0, 1.0), {}), ("arange", (1,), {"stop": 4, "step": 2}),
    ("eye", (3,), {}), ("eye", (2, 3), {"k": 1}), ("eye", (3, 2), {"k": -2}), ("eye", (2, 2), {"k": 5}),
    ("full", (3, 2), {}), ("full", ((2, 1), True), {}), ("full", (), {"shape": (2,), "fill_value": 1.5}),
    ("full", ((2,), 1), {"dtype": torch.float32}), ("full_like", (M, 3), {}), ("full_like", (M,), {"fill_value": 1, "dtype": torch.int8}),
    ("linspace", (0, 1, 5), {}), ("linspace", (0, 1, 5), {"endpoint": False}), ("linspace", (2.0, 1.0), {"num": 3, "dtype": torch.float64}),
    ("linspace", (0, 1, 0), {}), ("linspace", (0, 1, 1), {}), ("linspace", (0, 1, 0), {"endpoint": False}),
    ("ones", (3,), {}), ("ones", (), {"shape": (2, 3), "dtype": torch.bool}), ("ones_like", (M,), {"dtype": torch.float32}),
    ("zeros", ((),), {}), ("zeros", (), {"shape": 2, "dtype": torch.int8}), ("zeros_like", (M,), {}),
    ("tril", (F,), {}), ("triu", (F,), {"k": 1}), ("tril", (M,), {"k": -1}),
    ("meshgrid", (V, V[:3]), {}), ("meshgrid", (V, V), {"indexing": "ij"}), ("meshgrid", (), {}), ("meshgrid", (V,), {}),
    # types
    ("astype", (M, torch.float64), {}), ("astype", (T, torch.int8), {}), ("astype", (M, torch.bool), {"copy": False}),
    ("result_type", (M, torch.int8, 1), {}), ("result_type", (torch.float32, torch.float64), {}), ("result_type", (torch.uint8, torch.int8), {}),
    # shapes
    ("broadcast_to", (V, (2, 5)), {}), ("broadcast_to", (V[:1], (3, 4)), {}), ("broadcast_arrays", (M, M[:1], M0), {}),
    ("broadcast_shapes", ((2, 1), (3,), ()), {}),
    ("concat", ([M, M[:1]],), {}), ("concat", ((M, M[:, :2].astype("int8")),), {"axis": 1}), ("concat", ([I8, V],), {}), ("concat", ([M, V],), {"axis": None}),
    ("expand_dims", (M,), {"axis": 0}), ("expand_dims", (M, -1), {}), ("expand_dims", (M, 1), {}),
    ("flip", (F,), {}), ("flip", (F,), {"axis": 1}), ("flip", (F,), {"axis": (0, -1)}), ("flip", (M0,), {}),
    ("moveaxis", (F, 0, -1), {}), ("moveaxis", (F, (0, 1), (2, 0)), {}), ("permute_dims", (F, (2, 0, 1)), {}), ("permute_dims", (F,), {"axes": (0, -1, 1)}),
    ("repeat", (V, 2), {}), ("repeat", (M, 3), {"axis": 1}), ("repeat", (I8, I8 * 0 + 2), {}), ("repeat", (M, numpy.array([0, 1, 2])), {"axis": 0}), ("repeat", (M, 2), {}),
    ("reshape", (M, (2, 6)), {}), ("reshape", (M,), {"shape": (-1,), "copy": True}), ("reshape", (M, (4, 3)), {"copy": False}),
    ("roll", (V, 2), {}), ("roll", (M, -1), {}), ("roll", (M, (1, 2)), {"axis": (0, 1)}), ("roll", (M, 1), {"axis": (0, 1)}), ("roll", (M,), {"shift": (1, 1), "axis": (0, 0)}),
    ("squeeze", (M[None],), {"axis": 0}), ("squeeze", (M[None, :, None], (0, 2)), {}), ("squeeze", (M[None], -3), {}),
    ("stack", ([M, M],), {}), ("stack", ([I8, I8.astype("int16")],), {"axis": -1}),
    ("tile", (M, (2,)), {}), ("tile", (V, (2, 1, 3)), {}), ("tile", (M, (2, 0)), {}), ("unstack", (F,), {}), ("unstack", (F,), {"axis": -1}),
    # searching
    ("argmax", (T,), {}), ("argmax", (M,), {"axis": 1}), ("argmin", (M,), {"axis": 0, "keepdims": True}), ("argmax", (V,), {"keepdims": True}),
    ("argsort", (M,), {}), ("argsort", (V,), {"descending": True}), ("argsort", (M,), {"axis": 0, "descending": True}),
    ("sort", (M,), {}), ("sort", (V,), {"descending": True, "stable": False}), ("sort", (F,), {"axis": 0}), ("sort", (M[0, 0:0],), {}),
    ("isin", (M, V), {}), ("isin", (M, 3), {}), ("isin", (3, M), {}), ("isin", (I8, V), {}), ("isin", (M, M0), {}),
    ("nonzero", (M,), {}), ("nonzero", (B,), {}),
    ("searchsorted", (numpy.sort(V), M), {}), ("searchsorted", (numpy.sort(V), M), {"side": "right"}), ("searchsorted", (numpy.sort(V), 2), {}),
    ("searchsorted", (V, M), {"sorter": numpy.argsort(V)}), ("searchsorted", (V, M), {"sorter": numpy.argsort(V).astype("int64"), "side": "right"}),
    ("searchsorted", (numpy.sort(I8), V), {}), ("searchsorted", (numpy.sort(V), M0), {}),
    ("take", (M, I8), {"axis": 0}), ("take", (V, I8), {}), ("take", (F, numpy.array([-1, 0])), {"axis": -1}),
    ("take_along_axis", (M, numpy.array([[0], [-1], [2]])), {}), ("take_along_axis", (M, numpy.array([[0, 1, 2, -1]])), {"axis": 0}),
    ("unique_all", (V,), {}), ("unique_all", (M,), {}), ("unique_counts", (M,), {}), ("unique_inverse", (M,), {}), ("unique_values", (B,), {}),
    ("unique_all", (numpy.array([numpy.nan, 1.0, numpy.nan, -0.0, 0.0]),), {}), ("unique_all", (V[:0],), {}), ("unique_inverse", (numpy.array(3),), {}),
    ("where", (B, I8, V[:3]), {}), ("where", (B, 1, I8), {}), ("where", (B, T[0, :, 0], 2.0), {}), ("where", (TRUE, I8, V[:3]), {}), ("where", (B, I8, numpy.array(3)), {}),
    # statistics
    ("cumulative_sum", (V,), {}), ("cumulative_sum", (I8,), {"include_initial": True}), ("cumulative_sum", (M,), {"axis": 1, "dtype": torch.float64}),
    ("cumulative_sum", (T,), {"axis": -2, "include_initial": True}), ("cumulative_sum", (V.astype("uint8"),), {}),
    ("cumulative_prod", (V,), {}), ("cumulative_prod", (M,), {"axis": 0, "include_initial": True}), ("cumulative_prod", (T,), {"axis": 1}),
    ("diff", (V,), {}), ("diff", (M,), {"n": 2}), ("diff", (M,), {"axis": 0}), ("diff", (V,), {"prepend": V[:2], "append": V[:1]}), ("diff", (V,), {"n": 0}),
    ("clip", (M, 0, 5), {}), ("clip", (M,), {}), ("clip", (F, -1.0), {}), ("clip", (M,), {"max": 2}), ("clip", (M, M[:1] * 0, 5), {}), ("clip", (T, T[:1] * 0 + 2), {"max": T[:1] * 0 + 9}),
    ("clip", (I8, numpy.int64(0) + V[:3] * 0, 1), {}),
    # products
    ("matmul", (M, M.T), {}), ("matmul", (T, T[0].T), {}), ("matmul", (V, V), {}), ("matmul", (I8, I8.astype("int32")), {}), ("matmul", (T, T[0, 0]), {}),
    ("matrix_transpose", (F,), {}), ("tensordot", (T, T[0]), {"axes": ((1, 2), (0, 1))}), ("tensordot", (V, V), {"axes": 0}), ("tensordot", (M, M.T), {"axes": 1}),
    ("tensordot", (I8, I8.astype("int16")), {"axes": 1}), ("tensordot", (T, T), {"axes": ([-1], [-1])}),
    ("vecdot", (T, T[0]), {}), ("vecdot", (I8, I8), {}), ("vecdot", (M, M), {"axis": -2}), ("vecdot", (I8, I8.astype("int32")), {}),
    # complex numbers
    ("full", ((2,), 1 - 2j), {"dtype": torch.complex128}), ("linspace", (1j, 2.0, 4), {"dtype": torch.complex128}), ("zeros", (2,), {"dtype": torch.complex64}),
    ("eye", (2, 3), {"dtype": torch.complex64, "k": 1}), ("ones_like", (T,), {"dtype": torch.complex64}), ("full_like", (Z, 1j), {}), ("tril", (C,), {}),
    ("astype", (T, torch.complex64), {}), ("astype", (Z, torch.complex64), {}), ("result_type", (torch.float32, torch.complex64), {}), ("result_type", (torch.float64, torch.complex64, 1.0), {}),
    ("result_type", (torch.float32, 1j), {}), ("concat", ((Z, Z[:1]),), {}), ("stack", ([C, C],), {"axis": 1}), ("flip", (C,), {"axis": 0}), ("roll", (Z, 2), {}), ("repeat", (Z, 2), {}),
    ("nonzero", (Z,), {}), ("take", (Z, I8), {}), ("take_along_axis", (C, numpy.array([[[1]]])), {}),
    ("unique_all", (Z,), {}), ("unique_counts", (C,), {}), ("unique_inverse", (C,), {}), ("unique_values", (Z[:0],), {}), ("where", (B, Z[:3], 1j), {}), ("where", (B, T[0, :, 0], Z[:3].astype("complex64")), {}),
    ("cumulative_sum", (Z,), {"include_initial": True}), ("cumulative_prod", (C,), {"axis": 1}), ("diff", (Z,), {"n": 2}), ("count_nonzero", (C,), {"axis": 1}),
    ("matmul", (C, C[0].T), {}), ("matmul", (C, T[0].T), {}), ("vecdot", (C, C[0]), {}), ("vecdot", (Z, Z), {}), ("vecdot", (T, C), {}), ("tensordot", (C, C[0]), {"axes": ((1, 2), (0, 1))}),
    ("linalg.cholesky", (HPD,), {}), ("linalg.cholesky", (HPD,), {"upper": True}), ("linalg.cross", (C[:, :, :3], C[0, :, :3]), {}), ("linalg.det", (HPD,), {}), ("linalg.eigvalsh", (HPD,), {}), ("linalg.inv", (HPD,), {}),
    ("linalg.matrix_norm", (C,), {}), ("linalg.matrix_norm", (C,), {"ord": "nuc"}), ("linalg.matrix_norm", (C,), {"ord": 1}), ("linalg.matrix_power", (HPD, -2), {}), ("linalg.matrix_rank", (C,), {}), ("linalg.outer", (Z, Z), {}),
    ("linalg.pinv", (C,), {}), ("linalg.slogdet", (HPD,), {}), ("linalg.solve", (HPD, HPD[0]), {}), ("linalg.svdvals", (C,), {}), ("linalg.trace", (C,), {}), ("linalg.vector_norm", (C,), {"axis": 1}), ("linalg.vector_norm", (C,), {"ord": 1}),
    # transforms
    *((f"fft.{name}", (Z,), words) for name in ("fft", "ifft", "irfft", "hfft") for words in ({}, {"n": 4}, {"norm": "ortho"}, {"norm": "forward", "axis": 0})),
    *((f"fft.{name}", (C,), words) for name in ("fftn", "ifftn", "irfftn") for words in ({}, {"axes": (0, 2)}, {"s": (3, 2), "axes": (1, 0), "norm": "ortho"})),
    *((f"fft.{name}", (T,), words) for name in ("rfft", "ihfft") for words in ({}, {"n": 3}, {"axis": 1, "norm": "forward"})), ("fft.rfftn", (T,), {}), ("fft.rfftn", (T,), {"axes": (0, 1)}),
    ("fft.fftfreq", (5,), {"d": 0.5}), ("fft.rfftfreq", (4,), {"dtype": torch.float64}), *((f"fft.{name}", (x,), {"axes": axes}) for name in ("fftshift", "ifftshift") for x, axes in ((C, None), (T, 1), (C, (0, 2)))),
    ("linalg.cholesky", (PD,), {}), ("linalg.cholesky", (PD,), {"upper": True}), ("linalg.cross", (RECT, RECT[:1]), {"axis": -2}), ("linalg.cross", (I8, I8[::-1].copy()), {}),
    ("linalg.cross", (F[:, :, :3], I8.astype("float32")), {}), ("linalg.cross", (I8, M[:, :3]), {}), ("linalg.cross", (M, numpy.array([M, M + 1])), {"axis": -2}), ("linalg.cross", (M[:0, :3], I8), {}),
    ("linalg.det", (PD,), {}), ("linalg.diagonal", (F,), {}), ("linalg.diagonal", (F,), {"offset": 1}), ("linalg.eigvalsh", (PD,), {}),
    ("linalg.inv", (PD,), {}), ("linalg.matrix_norm", (RECT,), {}), ("linalg.matrix_norm", (RECT,), {"ord": 2, "keepdims": True}), ("linalg.matrix_norm", (RECT,), {"ord": "nuc"}),
    ("linalg.matrix_norm", (RECT,), {"ord": -1}), ("linalg.matrix_norm", (RECT,), {"ord": numpy.inf}), ("linalg.matrix_norm", (RECT,), {"ord": -2}),
    ("linalg.matrix_power", (PD, 3), {}), ("linalg.matrix_power", (PD, -2), {}), ("linalg.matrix_power", (PD, 0), {}),
    ("linalg.matrix_rank", (RECT,), {}), ("linalg.matrix_rank", (RECT,), {"rtol": 0.5}), ("linalg.outer", (V, I8), {}), ("linalg.outer", (T[0, 0], T[0, 1]), {}),
    ("linalg.pinv", (RECT,), {}), ("linalg.pinv", (RECT,), {"rtol": 0.5}), ("linalg.slogdet", (PD,), {}),
    ("linalg.solve", (PD, PD[0, 0]), {}), ("linalg.solve", (PD, RECT[0, :2]), {}), ("linalg.solve", (PD, PD[:, :, :1]), {}), ("linalg.solve", (PD[0], RECT[:, :2]), {}),
    ("linalg.solve", (PD, PD[0]), {}),
    ("linalg.svdvals", (RECT,), {}), ("linalg.trace", (M,), {}), ("linalg.trace", (F,), {"offset": 1}), ("linalg.trace", (RECT,), {"dtype": torch.float64}), ("linalg.trace", (I8[:, None],), {}),
    ("linalg.vector_norm", (RECT,), {}), ("linalg.vector_norm", (RECT,), {"axis": (0, 2), "keepdims": True}), ("linalg.vector_norm", (RECT,), {"axis": 1, "ord": 1}),
    ("linalg.vector_norm", (RECT,), {"ord": numpy.inf}), ("linalg.vector_norm", (RECT,), {"ord": 0, "axis": 0}), ("linalg.vector_norm", (RECT,), {"axis": ()}),
]  # fmt: skip


@pytest.mark.parametrize("name", dict.fromkeys(row[0] for row in CASES))
def test_cases(device, name):
    with Cases() as case:
        for _, args, kwargs in (row for row in CASES if row[0] == name):
            with case(f"{args} {kwargs}"):
                compare(device, name, args, kwargs)


def compare(device, name, args, kwargs):
    if name in CREATION:
        theirs = find(strict, name)(
            *theirs_of(args), **{k: theirs_of(v) for k, v in kwargs.items()}
        )
        ours = find(xp, name)(*args, **kwargs, device=device)
        if "dtype" not in kwargs and theirs.dtype == strict.float64:
            theirs = strict.astype(theirs, strict.float32)  # the default types differ
        return check_same(theirs, ours, device)
    assert check(device, name, *args, **kwargs), "the standard leaves this call open"


ONE = V[:1]  # a size of 1, which PyTorch would repeat


REFUSED = [
    ("nonzero", (M0,), {}, ValueError), ("nonzero", (TRUE,), {}, ValueError),
    ("vecdot", (V, ONE), {}, ValueError), ("vecdot", (ONE, V), {}, ValueError), ("vecdot", (M, ONE), {}, ValueError),
    ("vecdot", (V[:0], ONE), {}, ValueError), ("vecdot", (M, M[:1]), {"axis": -2}, ValueError), ("vecdot", (M0, V), {}, ValueError),
    ("vecdot", (V, V), {"axis": 1}, IndexError), ("vecdot", (V, V), {"axis": -2}, IndexError),
    ("linalg.vecdot", (V, ONE), {}, ValueError), ("linalg.tensordot", (V, ONE), {"axes": 1}, ValueError),
    ("tensordot", (V, ONE), {"axes": 1}, ValueError), ("tensordot", (ONE, V), {"axes": 1}, ValueError), ("tensordot", (M, M[:1]), {"axes": 2}, ValueError),
    ("tensordot", (M, M[:1]), {"axes": ((0,), (0,))}, ValueError), ("tensordot", (M, M[:1]), {"axes": ([-2], [-2])}, ValueError),
    ("tensordot", (V, V), {"axes": 3}, IndexError),
    ("linalg.cross", (I8, ONE), {}, RuntimeError), ("linalg.cross", (V, V), {}, RuntimeError), ("linalg.cross", (M, I8), {"axis": -2}, RuntimeError),
    ("take", (M, T[0, 0]), {"axis": 0}, TypeError), ("take", (M, B), {"axis": 0}, TypeError), ("take_along_axis", (M, M.astype("float32")), {}, TypeError),
]  # fmt: skip


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=f"{case[0]}-{i}") for i, case in enumerate(REFUSED)]
)
def test_what_the_standard_refuses(device, case):
    name, args, kwargs, error = case
    with pytest.raises((TypeError, ValueError, IndexError)):
        find(strict, name)(*theirs_of(args), **kwargs)
    with pytest.raises(error):
        find(xp, name)(*ours_of(args, device), **kwargs)


# --- what is not a table ---------------------------------------------------------------


OPERATORS = [
    "abs",
    "add",
    "and",
    "eq",
    "floordiv",
    "ge",
    "gt",
    "invert",
    "le",
    "lshift",
    "lt",
    "matmul",
    "mod",
    "mul",
    "ne",
    "neg",
    "or",
    "pos",
    "pow",
    "rshift",
    "sub",
    "truediv",
    "xor",
]


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(device, name):
    """Where dimensions do not decide the type: see docs/array-api.md."""
    operator = f"__{name}__"
    ran = 0
    for one, two in itertools.product(DTYPES, DTYPES):
        a, b = plain(data(one, (3, 3)), data(two, (3, 3), 1))
        if name in ("floordiv", "mod", "lshift", "rshift", "pow"):
            b = divisor(
                {"floordiv": "floor_divide", "mod": "remainder"}.get(name, "shift"), b
            )
        if name == "matmul" and one != two:
            continue
        unary = name in ("abs", "invert", "neg", "pos")
        others = (
            [()]
            if unary
            else [(b,)]
            if name == "matmul"
            else [(b,), (2,), (True,), (1.5,)]
        )
        for other in others:
            with numpy.errstate(all="ignore"):
                try:
                    theirs = getattr(theirs_of(a), operator)(*theirs_of(other))
                except TypeError:
                    continue
            if theirs is NotImplemented:
                continue
            ours = getattr(ours_of(a, device), operator)(*ours_of(other, device))
            check_same(theirs, ours, device, name not in ("floordiv", "mod"))
            ran += 1
    assert ran
