"""Factorizations, equations and determinants: derivatives, devices, layouts, errors.

Values are compared with PyTorch's in golden/linalg.json.
"""

import itertools

import pytest
from isolated import python

import pydevtensor as torch
from pydevtensor import linalg
from pydevtensor.autograd import gradcheck, gradgradcheck

F64, C128 = torch.float64, torch.complex128
TYPES = ["float32", "float64", "complex64", "complex128"]
A = [[2.0, -1.0, 0.5], [1.0, 3.0, -2.0], [0.25, 1.5, 4.0]]
T = [[1.0, 2.0], [3.0, -4.0], [0.5, 6.0]]
B = [[1.0, 2.0], [0.0, -1.0], [3.0, 0.5]]


def leaf(values, device="cpu", dtype=F64):
    """With imaginary parts too, where the type has them."""
    x = torch.tensor(values, dtype=F64, device=device)
    x = torch.complex(x, (x * x).sin() / 2) if dtype.is_complex else x
    return x.to(dtype).requires_grad_()


def positive(a):
    return a @ a.mH + torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)


def without_phases(U, S, Vh):
    """What does not depend on the directions in the complex plane, which are free."""
    k = S.shape[-1]
    return U.abs(), S, Vh.abs(), U[..., :k] @ Vh[..., :k, :]


def close(a, b, tolerance=1e-12):
    return bool(((a - b).abs() <= tolerance * (1 + b.abs())).all())


SQUARE = {
    "inv": linalg.inv,
    "det": linalg.det,
    "slogdet": lambda a: linalg.slogdet(a)[0 if a.is_complex() else 1],
    "logdet": lambda a: linalg.slogdet(a).logabsdet + torch.logdet(a),
    "cholesky": lambda a: linalg.cholesky(positive(a)),
    "cholesky upper": lambda a: linalg.cholesky(positive(a), upper=True),
    "qr": linalg.qr,
    "qr complete": lambda a: linalg.qr(a, "complete"),
    "svdvals": linalg.svdvals,
    "eigh": lambda a: [x.abs() for x in linalg.eigh(positive(a))],
    "eigvalsh": lambda a: linalg.eigvalsh(positive(a)),
    "lu": lambda a: linalg.lu(a)[1:],
    "pinv": linalg.pinv,
    "matrix_exp": linalg.matrix_exp,
    "cond": linalg.cond,
    "nuc": lambda a: linalg.matrix_norm(a, "nuc"),
    "tensorinv": lambda a: linalg.tensorinv(a.reshape(3, 1, 3)),
    "svd": lambda a: without_phases(*linalg.svd(a)),
    "eig": lambda a: [x.abs() for x in linalg.eig(a)],
    "cholesky_solve": lambda a: torch.cholesky_solve(a, linalg.cholesky(positive(a))),
    "householder_product": lambda a: linalg.householder_product(a, a[0] / 4),
}
OBLONG = {
    "qr": linalg.qr,
    "svd": lambda a: without_phases(*linalg.svd(a, full_matrices=False)),
    "svdvals": linalg.svdvals,
    "lu": lambda a: linalg.lu(a)[1:],
    "lu_factor": lambda a: linalg.lu_factor(a).LU,
    "pinv": linalg.pinv,
}


@pytest.mark.parametrize("dtype", [F64, C128], ids=str)
@pytest.mark.parametrize("name", SQUARE)
def test_derivatives_of_square_matrices(name, dtype):
    x = leaf(A, dtype=dtype)
    assert gradcheck(SQUARE[name], (x,))
    assert gradgradcheck(SQUARE[name], (x,))


@pytest.mark.parametrize("dtype", [F64, C128], ids=str)
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", OBLONG)
def test_derivatives_of_oblong_matrices(name, wide, dtype):
    x = leaf(T, dtype=dtype)
    x = x.detach().mT.requires_grad_() if wide else x
    assert gradcheck(OBLONG[name], (x,))
    assert gradgradcheck(OBLONG[name], (x,))


@pytest.mark.parametrize("dtype", [F64, C128], ids=str)
def test_derivatives_of_solutions(dtype):
    a, b, tall = (leaf(x, dtype=dtype) for x in (A, B, T))
    for function in (
        linalg.solve,
        lambda a, b: linalg.solve(a, b.mT, left=False),
        lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b),
        lambda a, b: linalg.lu_solve(
            *linalg.lu_factor(a), b.mT, left=False, adjoint=True
        ),
    ):
        assert gradcheck(function, (a, b))
        assert gradgradcheck(function, (a, b))
    least = lambda a, b: linalg.lstsq(a, b).solution
    assert gradcheck(least, (tall, b))
    assert gradgradcheck(least, (tall, b))


@pytest.mark.parametrize("dtype", [F64, C128], ids=str)
@pytest.mark.parametrize("flags", list(itertools.product([False, True], repeat=3)))
def test_derivatives_of_triangular_systems(flags, dtype):
    upper, left, unit = flags

    def solve(a, b):
        return linalg.solve_triangular(
            a, b if left else b.mT, upper=upper, left=left, unitriangular=unit
        )

    given = leaf(A, dtype=dtype), leaf(B, dtype=dtype)
    assert gradcheck(solve, given)
    assert gradgradcheck(solve, given)


def test_derivative_of_the_determinant_of_a_singular_matrix():
    x = leaf([[1.0, 2.0], [2.0, 4.0]])
    assert gradcheck(linalg.det, (x,))
    linalg.det(x).backward()
    assert close(x.grad, torch.tensor([[4.0, -2.0], [-2.0, 1.0]], dtype=F64))


@pytest.mark.parametrize(
    "E",
    [
        [[1.0, 0.25, 0.125], [0.5, 4.0, 0.25], [0.125, 0.5, 9.0]],
        [[1.0, 2.0, 0.0], [-3.0, 1.0, 0.5], [0.25, 0.5, 2.0]],
    ],
)
def test_eigenvalues(E):
    x = leaf([E, E])
    L, V = linalg.eig(x)
    assert close(x.to(V.dtype) @ V, V * L.unsqueeze(-2))
    assert close(V.abs().square().sum(-2), torch.ones(2, 3, dtype=F64))
    assert close(linalg.eigvals(x), L)
    assert gradcheck(lambda a: [y.abs() for y in linalg.eig(a)], (x,))
    assert gradgradcheck(lambda a: torch.view_as_real(linalg.eigvals(a)), (x,))


def test_a_loss_of_what_an_eigenvector_leaves_free():
    _, V = linalg.eig(leaf([[1.0, 2.0], [-3.0, 1.0]]))
    with pytest.raises(RuntimeError, match="free"):
        V.imag.sum().backward()
    for function in (linalg.eig, linalg.eigh, lambda x: linalg.svd(x)[::-2]):
        vectors = function(leaf(A, dtype=C128))[1]
        with pytest.raises(RuntimeError, match="free"):
            vectors.imag.sum().backward()


@pytest.mark.parametrize("left", [True, False])
def test_complex_systems(left, device):
    x, b = (
        torch.tensor(v, dtype=torch.complex128, device=device, requires_grad=True)
        for v in ([[2 + 1j, 1j], [1, 3 - 1j]], [[1, 2j], [1 - 1j, 0.5]])
    )
    X = linalg.solve(x, b, left=left)
    assert close(x @ X if left else X @ x, b)
    assert close(linalg.inv(x) @ x, torch.eye(2, dtype=x.dtype, device=device))
    assert gradcheck(lambda x, b: linalg.solve(x, b, left=left), (x, b))
    assert gradcheck(linalg.inv, (x,))
    with pytest.raises(linalg.LinAlgError, match="singular"):
        linalg.inv(torch.zeros(2, 2, dtype=torch.complex64, device=device))


@pytest.mark.parametrize("name", TYPES)
def test_factors_make_the_matrix_again(name, device):
    dtype = getattr(torch, name)
    generator = torch.Generator().manual_seed(3)
    a = torch.randn(2, 5, 4, 4, dtype=dtype, generator=generator).to(device)
    eye = torch.eye(4, dtype=dtype, device=device)
    tolerance = 1e-3 if name in ("float32", "complex64") else 1e-10
    s = a @ a.mH + eye
    # Slices and transposed matrices lie in other ways.
    for x, y in ((a, s), (a.mT, s.mT), (a[:, ::2], s[:, ::2])):
        Q, R = linalg.qr(x)
        assert close(Q @ R, x, tolerance)
        assert close(Q.mH @ Q, eye, tolerance)
        P, L, U = linalg.lu(x)
        assert close(P @ L @ U, x, tolerance)
        U, S, Vh = linalg.svd(x)
        assert close(U * S.unsqueeze(-2) @ Vh, x, tolerance)
        L, V = linalg.eigh(y)
        assert close(V * L.unsqueeze(-2) @ V.mH, y, tolerance)
        C = linalg.cholesky(y)
        assert close(C @ C.mH, y, tolerance)
        L, V = linalg.eig(x)
        assert close(x.to(V.dtype) @ V, V * L.unsqueeze(-2), 10 * tolerance)
        assert close(linalg.solve(x, x @ y), y, 10 * tolerance)
        assert close(linalg.inv(y) @ y, eye, tolerance)
        assert close(linalg.lstsq(x, x @ y).solution, y, 10 * tolerance)
        assert close(linalg.pinv(x) @ x, eye, 10 * tolerance)
        assert close(linalg.det(y), linalg.eigvalsh(y).prod(-1), tolerance)
    assert linalg.matrix_rank(a).unique().tolist() == [4]
    assert linalg.inv(y).device == a.device


def test_a_gpu_gives_the_hosts_numbers(gpu):
    for function in (linalg.inv, linalg.svdvals, linalg.cholesky_ex, linalg.qr):
        host = torch.tensor([A, A[::-1]], dtype=F64)
        if function is linalg.cholesky_ex:
            # Each library leaves other numbers where there is no factor.
            host = positive(host)
        ours, theirs = function(host.to(gpu)), function(host)
        if isinstance(ours, torch.Tensor):
            ours, theirs = (ours,), (theirs,)
        for a, b in zip(ours, theirs, strict=True):
            assert str(a.device) == gpu
            same = torch.cuda.get_device_properties(gpu).simulated
            assert torch.equal(a.cpu(), b) if same else close(a.cpu(), b)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (2, 5, 2), (3, 2, 5), (1, 4)])
def test_a_gpu_solves_oblong_matrices(shape, name, gpu):
    """Other sizes than square ones show a leading dimension that is wrong."""
    dtype = getattr(torch, name)
    generator = torch.Generator().manual_seed(5)
    host = torch.randn(shape, dtype=dtype, generator=generator)
    b = torch.randn(*shape[:-1], 2, dtype=dtype, generator=generator)
    x = host.to(gpu)
    tolerance = 1e-4 if name in ("float32", "complex64") else 1e-10
    for full in (False, True):
        U, S, Vh = linalg.svd(x, full_matrices=full)
        k = S.shape[-1]
        assert close((U[..., :k] * S.unsqueeze(-2)) @ Vh[..., :k, :], x, tolerance)
        assert U.shape == linalg.svd(host, full_matrices=full).U.shape
        for Q in (U.mH @ U, Vh @ Vh.mH):
            eye = torch.eye(Q.shape[-1], dtype=dtype, device=gpu)
            assert close(Q, eye, tolerance)
    assert close(linalg.svdvals(x), S, tolerance)
    Q, R = linalg.qr(x, "complete")
    assert close(Q @ R, x, tolerance)
    P, L, U = linalg.lu(x)
    assert close(P @ L @ U, x, tolerance)
    ours, theirs = linalg.lstsq(x, b.to(gpu)), linalg.lstsq(host, b, driver="gels")
    for one, other in zip(ours, theirs, strict=True):
        assert one.shape == other.shape
        assert close(one.cpu(), other, tolerance)


def test_a_gpus_drivers(gpu):
    x = torch.tensor(A, device=gpu)
    for driver in ("gelsy", "gelsd", "gelss", "other"):
        with pytest.raises(RuntimeError, match="give gels"):
            linalg.lstsq(x, x, driver=driver)
    for driver in ("gesvd", "gesvdj", "gesvda", None):
        assert close(
            linalg.svdvals(x, driver=driver), linalg.svd(x, driver=driver).S, 1e-5
        )
    with pytest.raises(RuntimeError, match="gesvdj"):
        linalg.svd(x, driver="gesdd")
    with pytest.raises(RuntimeError, match="for GPUs"):
        linalg.svd(x.cpu(), driver="gesvd")
    # A matrix without full rank is not noticed, as the result shows.
    assert not linalg.lstsq(x * 0, x).solution.isfinite().any()


def test_gradients_on_a_gpu(gpu):
    assert gradcheck(linalg.solve, (leaf(A, gpu), leaf(B, gpu)))
    assert gradcheck(SQUARE["eigh"], (leaf(A, gpu),))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_not_finite_ends(bad, device):
    """No routine runs for ever, prints or crashes."""
    x = torch.tensor(A, dtype=F64, device=device)
    x[1, 1] = bad
    for name in ("svd", "svdvals", "eigh", "eigvalsh", "matrix_rank", "pinv"):
        with pytest.raises(linalg.LinAlgError, match="inf or nan"):
            getattr(linalg, name)(x)
    for name in ("eig", "eigvals"):
        with pytest.raises(RuntimeError, match="inf or nan"):
            getattr(linalg, name)(x)
    with pytest.raises(linalg.LinAlgError, match="inf or nan"):
        linalg.lstsq(x, x)
    for name in ("inv_ex", "cholesky_ex", "lu", "qr", "det", "slogdet", "matrix_exp"):
        getattr(linalg, name)(x)


def test_empty_matrices(device):
    x = torch.zeros(2, 0, 0, device=device)
    assert linalg.det(x).tolist() == [1.0, 1.0]
    assert linalg.slogdet(x).logabsdet.tolist() == [0.0, 0.0]
    for function in (linalg.inv, linalg.cholesky, linalg.matrix_exp, linalg.pinv):
        assert function(x).shape == (2, 0, 0)
    assert linalg.svdvals(x).shape == (2, 0)
    tall = torch.zeros(3, 0, device=device)
    assert linalg.qr(tall, "complete").Q.tolist() == torch.eye(3).tolist()
    assert linalg.svd(tall).U.tolist() == torch.eye(3).tolist()
    none = torch.zeros(0, 3, 3, device=device)
    assert linalg.solve(none, none).shape == (0, 3, 3)
    assert linalg.eigh(none).eigenvectors.shape == (0, 3, 3)
    full = torch.eye(3, device=device)
    assert linalg.solve(full, torch.zeros(3, 0, device=device)).shape == (3, 0)
    assert linalg.lstsq(full, torch.zeros(3, 0, device=device)).solution.shape == (3, 0)


def test_errors_name_the_matrix(device):
    good, bad = torch.eye(2, device=device), torch.zeros(2, 2, device=device)
    with pytest.raises(linalg.LinAlgError, match=r"inv\(\): matrix 1 of the batch"):
        linalg.inv(torch.stack([good, bad]))
    with pytest.raises(linalg.LinAlgError, match=r"solve\(\): the matrix is singular"):
        linalg.solve(bad, good)
    with pytest.raises(linalg.LinAlgError, match="not positive definite"):
        torch.cholesky(-good)
    assert issubclass(linalg.LinAlgError, RuntimeError)
    info = linalg.cholesky_ex(-good).info
    assert info.dtype == torch.int32
    assert info.item() == 1


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("linalg.inv(torch.ones(3))", "shape"),
        ("linalg.det(torch.ones(2, 3))", "square"),
        ("linalg.svd(torch.ones(2, 2).int())", "float32, float64"),
        ("linalg.qr(torch.ones(2, 2).half())", "float32, float64"),
        ("linalg.solve(torch.eye(2), torch.ones(3))", "do not fit"),
        ("linalg.solve(torch.eye(2), torch.ones(2).double())", "convert one"),
        ("linalg.lu_solve(torch.eye(2), torch.ones(2).long(), torch.eye(2))", "int32"),
        ("linalg.tensorinv(torch.ones(2, 3), 1)", "make them agree"),
        ("linalg.qr(torch.eye(2), 'other')", "mode"),
    ],
)
def test_wrong_arguments(source, error):
    with pytest.raises(RuntimeError, match=error):
        eval(source)


@pytest.mark.parametrize("name", ["float32", "complex128"])
def test_one_matrix_of_a_batch_that_is_not_finite(name, device):
    dtype = getattr(torch, name)
    x = torch.eye(3, dtype=dtype, device=device).expand(4, 3, 3).clone()
    x.real[2, 0, 1] = float("nan")
    _, S, _, info = linalg.lapack.svd(x, False)
    assert info.tolist() == [0, 0, -1000, 0]
    assert S[[0, 1, 3]].tolist() == [[1.0] * 3] * 3
    L, _, info = linalg.lapack.eigh(x, False)
    assert info.tolist() == [0, 0, -1000, 0]
    assert L[3].tolist() == [1.0] * 3
    info = linalg.lapack.eig(x)[2]
    assert info.tolist() == [0, 0, -1000, 0]
    b = torch.ones(4, 3, 1, dtype=dtype, device=device)
    b[1, 2] = float("inf")
    X, _, _, info = linalg.lapack.least_squares(x, b, 0.0, "gels")
    assert info.tolist() == [0, -1000, -1000, 0]
    assert X[0, :, 0].tolist() == [1.0] * 3


def test_least_squares_of_a_transposed_matrix(device):
    a = torch.tensor(T, dtype=F64, device=device)
    b = torch.tensor([B], dtype=F64, device=device).mT[0][:2, :1].contiguous()
    x = torch.zeros(1, 3, dtype=F64, device=device)
    x[0, :2] = b[:, 0]
    S, rank, info = (
        torch.zeros(n, dtype=t, device=device)
        for n, t in ((2, F64), (1, torch.int32), (1, torch.int32))
    )
    operands = [a.mT.contiguous(), x, S, rank, info]
    torch._C._lapack("gels", operands, 3, 2, 1, linalg.lapack.TRANSPOSED)
    assert close(a.mT @ x.mT, b)
    assert close(x.mT, linalg.pinv(a.mT) @ b)


@pytest.mark.parametrize("name", ["gesdd", "gels", "gelsy"])
def test_what_a_gpu_has_not(name, gpu):
    x, b = torch.ones(3, 2, device=gpu), torch.ones(1, 3, device=gpu)
    S, info = torch.ones(2, device=gpu), torch.ones(1, dtype=torch.int32, device=gpu)
    none = torch.ones(0, device=gpu)
    operands = [x, none, S, none, info] if name == "gesdd" else [x, b, S, info, info]
    with pytest.raises(NotImplementedError, match=r"GPU|cuSOLVER"):
        torch._C._lapack(name, operands, 2, 3, 0 if name == "gesdd" else 1)


def test_the_private_call_checks_its_operands():
    x, info = torch.eye(3, dtype=F64), torch.zeros((), dtype=torch.int32)
    for operands, sizes, error in (
        ([x], (3, 3), ValueError),
        ([x, x], (3, 3), RuntimeError),
        ([x, info], (4, 4), RuntimeError),
        ([x[:, ::2], info], (3, 2), RuntimeError),
        ([x.float().half(), info], (3, 3), RuntimeError),
        ([x, info], (0, 0), ValueError),
        ([x, info], (1 << 40, 3), ValueError),
    ):
        with pytest.raises(error):
            torch._C._lapack("potrf", operands, *sizes)
    with pytest.raises(ValueError, match="no operation"):
        torch._C._lapack("other", [x], 3, 3)


def test_names_of_nodes_and_results():
    x = leaf(A)
    assert "LinalgSvdBackward0" in repr(linalg.svd(x, full_matrices=False).S)
    assert "LinalgInvExBackward0" in repr(linalg.inv(x))
    assert repr(linalg.slogdet(torch.eye(1))) == (
        "torch.return_types.linalg_slogdet(\nsign=tensor(1.),\nlogabsdet=tensor(0.))"
    )
    out = torch.empty(0), torch.empty(0)
    Q, R = linalg.qr(torch.eye(2), out=out)
    assert Q is out[0]
    assert R is out[1]
    out = torch.empty(0, dtype=F64)
    assert linalg.inv(x.detach(), out=out) is out


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_what_to_install_without_lapack(kind):
    said = python(
        "import pydevtensor as torch\n"
        f"x = torch.eye(2, device='{kind}')\n"
        "try:\n    torch.linalg.inv(x)\n"
        "except RuntimeError as error:\n    print(error)",
        PYDEVTENSOR_BLAS="own",
        PYDEVTENSOR_SIM_GPUS="1",
    )
    assert "pip install scipy-openblas64" in said


BATCHED = {
    "cholesky": linalg.cholesky,
    "lu_factor": lambda x: linalg.lu_factor(x)[0],
    "solve": lambda x: linalg.solve(x, x[..., :2]),
    "solve_triangular": lambda x: linalg.solve_triangular(x, x, upper=True),
    "eigvalsh": linalg.eigvalsh,
    "svdvals": linalg.svdvals,
    "svd": linalg.svd,
    "svd of tall ones": lambda x: linalg.svd(x[:, :, :3], full_matrices=False),
}


def definite(n, batch, dtype=torch.float64):
    x = torch.randn(batch, n, n, generator=torch.Generator().manual_seed(n)).to(dtype)
    return x @ x.mT / n + torch.eye(n, dtype=dtype)


@pytest.mark.parametrize("name", BATCHED)
def test_small_matrices_of_a_batch_are_one_call(name, gpu):
    if not torch.cuda.is_simulated():
        pytest.skip("launches of a simulated GPU are counted")

    def launches(batch):
        x = definite(4, batch, torch.float32).to(gpu)
        torch.cuda.synchronize(gpu)
        before = torch.cuda.sim_counters(gpu)["launches"]
        BATCHED[name](x)
        torch.cuda.synchronize(gpu)
        return torch.cuda.sim_counters(gpu)["launches"] - before

    launches(2)
    assert launches(100) == launches(2)
    assert launches(2) < 20


# On both sides of the orders up to which a batch is one call.
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("n", [1, 32, 33, 60])
def test_a_batch_of_factors_is_that_of_each_matrix(n, batch, device):
    x = definite(n, batch)
    on = x.to(device)
    close = lambda a, b: torch.allclose(a.cpu(), b, rtol=1e-9, atol=1e-9)
    assert close(linalg.cholesky(on), torch.stack([linalg.cholesky(m) for m in x]))
    assert close(linalg.inv(on) @ on, torch.eye(n, dtype=x.dtype).expand(x.shape))
    values, vectors = linalg.eigh(on)
    assert close(values, torch.stack([linalg.eigvalsh(m) for m in x]))
    assert close(vectors * values[:, None] @ vectors.mT, x)
    q, r = linalg.qr(torch.cat((on, on), 1))
    assert close(q @ r, torch.cat((x, x), 1))
    tall = torch.cat((on, on), 1)
    assert close(linalg.lstsq(tall, tall).solution @ on, x)


@pytest.mark.parametrize("name", ["float64", "complex128"])
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("shape", [(32, 32), (31, 7), (5, 32), (33, 2)], ids=str)
def test_a_batch_of_singular_values_is_that_of_each_matrix(shape, full, name, device):
    torch.manual_seed(9)
    x = torch.randn(3, *shape, dtype=getattr(torch, name))
    U, S, Vh = (found.cpu() for found in linalg.svd(x.to(device), full))
    least = S.shape[-1]
    close = lambda a, b: torch.allclose(a, b, rtol=1e-9, atol=1e-9)
    assert close(S, torch.stack([linalg.svdvals(m) for m in x]))
    assert close(U[..., :least] * S.unsqueeze(-2) @ Vh[..., :least, :], x)
    for Q in (U.mH @ U, Vh @ Vh.mH):
        assert close(Q, torch.eye(Q.shape[-1], dtype=x.dtype).expand(Q.shape))
    assert U.shape == linalg.svd(x, full).U.shape
    assert Vh.shape == linalg.svd(x, full).Vh.shape


def test_rotations_that_do_not_end(gpu, monkeypatch):
    """gesvd comes after them, unless the driver was named."""
    x, run, flags = torch.tensor(A, device=gpu), linalg.lapack._run, []

    def unfinished(name, operands, m, n, k, given):
        run(name, operands, m, n, k, given)
        flags.append(given & linalg.lapack.ROTATIONS)
        if flags[-1]:
            operands[-1].fill_(n + 1)

    monkeypatch.setattr(linalg.lapack, "_run", unfinished)
    assert close(linalg.svdvals(x).cpu(), linalg.svdvals(x.cpu()), 1e-5)
    assert [bool(rotations) for rotations in flags] == [True, False, False]
    with pytest.raises(linalg.LinAlgError):
        linalg.svd(x, driver="gesvdj")


def test_an_order_beyond_those_of_a_batch(gpu):
    x = definite(513, 2, torch.float32)
    assert torch.allclose(
        linalg.cholesky(x.to(gpu)).cpu(), linalg.cholesky(x), rtol=1e-3, atol=1e-4
    )


def test_a_batch_with_matrices_that_have_no_factor(device):
    x = definite(5, 4)
    x[1] = -x[1]
    x[3, 2] = 0
    x[3, :, 2] = 0
    _, info = linalg.cholesky_ex(x.to(device))
    assert info.tolist() == [0, 1, 0, 3]
    _, info = linalg.inv_ex(x.to(device))
    assert info.tolist() == [0, 0, 0, 3]


def test_symmetric_factors_have_no_gradient(device):
    x = torch.eye(2, device=device, requires_grad=True)
    LD, pivots = torch.linalg.ldl_factor(x)
    assert not pivots.requires_grad
    with pytest.raises(RuntimeError, match="has no derivative"):
        LD.sum().backward()
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        torch.linalg.ldl_factor(torch.zeros(3, 3, device=device))
    with pytest.raises(RuntimeError, match="one for each row"):
        torch.linalg.ldl_solve(LD.detach(), pivots[:1], LD.detach())


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("n", [1, 127, 128, 129, 8191, 8192, 8193, 600_001])
def test_products_of_two_vectors(n, name, device):
    """Long ones are summed in pieces, in the same order for any number of threads."""
    dtype = getattr(torch, name)
    x = torch.randn(n, device=device).to(dtype)
    y = torch.randn(n, device=device).to(dtype)
    terms = x.cpu().double() * y.cpu().double()
    off = {"float32": 1e-6, "float64": 1e-15, "bfloat16": 4e-3}[name]
    off *= terms.abs().sum().item()
    found, apart = x @ y, torch.stack([x, y], 1)
    assert found.dtype == dtype and found.shape == ()
    for each in (found, apart[:, 0] @ apart[:, 1]):
        assert abs(each.item() - terms.sum().item()) <= off
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert (x @ y).item() == found.item()
    finally:
        torch.set_num_threads(before)
