"""Sparse tensors beyond PyTorch's answers (golden/sparse.json): sizes, types, devices, second
derivatives, SciPy, files, modules, and errors."""

import copy
import io

import numpy as np
import pytest
from numpy.testing import assert_allclose

import pydevtensor as torch
from pydevtensor.autograd import gradcheck, gradgradcheck

PRODUCT, SAMPLED = torch._C._sparse_product, torch._C._sparse_sampled_product


def random_coo(device, m=7, n=5, count=12, dtype=torch.float64, seed=0):
    """A matrix some of whose positions occur twice."""
    draw = np.random.default_rng(seed)
    indices = np.stack((draw.integers(0, m, count), draw.integers(0, n, count)))
    values = torch.tensor(draw.standard_normal(count) * 3, device=device).to(dtype)
    return torch.sparse_coo_tensor(indices, values, (m, n))


@pytest.mark.parametrize("n", [1, 2, 31, 64, 100])
@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.half, torch.int32]
)
def test_products_are_those_of_dense_matrices(device, dtype, n):
    x = random_coo(device, 40, 30, 200, dtype)
    dense = torch.tensor(np.random.default_rng(1).standard_normal((30, n)) * 3)
    dense = dense.to(device, dtype)
    wanted = x.to_dense().double().cpu() @ dense.double().cpu()
    off = {torch.half: 0.3, torch.float32: 1e-4}.get(dtype, 1e-12)
    for each in (x, x.coalesce(), x.to_sparse_csr(), x.to_sparse_csc()):
        found = each @ dense
        assert found.dtype == dtype and str(found.device) == device
        assert (found.double().cpu() - wanted).abs().max().item() < off
        turned = dense.t() @ each.t()
        assert (turned.double().cpu() - wanted.t()).abs().max().item() < off


def test_many_rows(device):
    draw = np.random.default_rng(2)
    rows = np.sort(draw.integers(0, 3000, 20000))
    columns = draw.integers(0, 500, 20000)
    x = torch.sparse_coo_tensor(np.stack((rows, columns)), np.ones(20000), (3000, 500))
    dense = torch.arange(500 * 17, dtype=torch.float64).reshape(500, 17)
    found = x.to(device) @ dense.to(device)
    assert_allclose(found.cpu().numpy(), (x.to_dense() @ dense).numpy())


def test_nothing_and_empty_rows(device):
    for shape in ((0, 3), (3, 0), (3, 4)):
        x = torch.sparse_coo_tensor(shape).to(device, torch.float64)
        found = x @ torch.ones(shape[1], 2, dtype=torch.float64, device=device)
        assert found.tolist() == [[0.0, 0.0]] * shape[0]
    left, right = torch.ones(2, 0, device=device), torch.ones(3, 0, device=device)
    where = torch.tensor([1, 0], device=device)
    assert SAMPLED(where, where, left, right).tolist() == [0, 0]


@pytest.mark.parametrize("make", [lambda x: x, lambda x: x.t().to_sparse_csr().t()])
def test_first_and_second_derivatives(device, make):
    x = random_coo(device)
    indices, values = x._indices(), x._values().requires_grad_()
    dense = torch.randn(5, 3, dtype=torch.float64, device=device, requires_grad=True)

    def f(values, dense):
        return make(torch.sparse_coo_tensor(indices, values, (7, 5))) @ dense

    assert gradcheck(f, (values, dense)) and gradgradcheck(f, (values, dense))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: torch.sparse.softmax(x, 1).to_dense(),
        lambda x: torch.sparse.log_softmax(x, 0).coalesce().values(),
        lambda x: torch.sparse.sum(x, 0).to_dense(),
        lambda x: (x * x + x).to_dense(),
        lambda x: (x @ x.t()).to_dense(),
        lambda x: x.to_sparse_csr().values(),
        lambda x: x[2].to_dense(),
        lambda x: x.index_select(1, x._indices()[1, :3]).to_dense(),
    ],
)
def test_derivatives_of_values(device, f):
    x = random_coo(device, 4, 3, 6)
    values = x._values().requires_grad_()
    indices = x._indices()
    assert gradcheck(
        lambda values: f(torch.sparse_coo_tensor(indices, values, (4, 3))), (values,)
    )


def test_an_index_out_of_range_is_an_error(device):
    # Made without a check, since the memory of a GPU is not looked at.
    x = torch.sparse_coo_tensor(
        [[0, 1], [1, 7]], [1.0, 2.0], (2, 3), device=device, check_invariants=False
    )
    bad = torch.tensor([0, 5, 2], device=device), x._indices()[1], x._values()
    ones = torch.ones(3, 2, device=device)
    rows = torch.tensor([0, -1], device=device)
    for call in (
        lambda: x @ ones,
        lambda: PRODUCT(*bad, torch.ones(8, 2, device=device)),
        lambda: SAMPLED(rows, rows.abs(), ones, ones),
    ):
        if device == "cpu":
            with pytest.raises(IndexError, match="out of range"):
                call()
        else:
            call()
            with pytest.raises(torch.AcceleratorError, match="sparse product"):
                torch.cuda.synchronize(device)


def test_what_is_made_in_host_memory_is_checked():
    with pytest.raises(RuntimeError, match="found index 7"):
        torch.sparse_coo_tensor([[0, 1], [1, 7]], [1.0, 2.0], (2, 3))
    with pytest.raises(RuntimeError, match="without decreasing"):
        torch.sparse_csr_tensor([0, 2, 1], [0, 1], [1.0, 2.0], (2, 2))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: PRODUCT(x, x, x, torch.ones(2, 2)),
        lambda x: PRODUCT(x, x[:1], torch.ones(2), torch.ones(2, 2)),
        lambda x: PRODUCT(x, x, torch.ones(2), torch.ones(2)),
        lambda x: PRODUCT(x, x, torch.ones(2) > 0, torch.ones(2, 2) > 0),
        lambda x: PRODUCT(x.reshape(1, 2), x, torch.ones(2), torch.ones(2, 2)),
        lambda x: PRODUCT(x[:0], x, torch.ones(2), torch.ones(2, 2)),
        lambda x: SAMPLED(x, x[:1], torch.ones(2, 2), torch.ones(2, 2)),
        lambda x: SAMPLED(x, x, torch.ones(2, 2), torch.ones(2, 3)),
        lambda x: SAMPLED(x, x, torch.ones(2, 2), torch.ones(2, 2).double()),
    ],
)
def test_kernels_refuse_what_does_not_fit(call):
    with pytest.raises(RuntimeError, match="give"):
        call(torch.tensor([0, 1]))


def test_scipy_both_ways(device):
    scipy = pytest.importorskip("scipy.sparse")
    m = scipy.random(6, 5, 0.4, "coo", np.float32, np.random.default_rng(0))
    x = torch.sparse_coo_tensor(np.vstack((m.row, m.col)), m.data, m.shape).to(device)
    assert_allclose(x.to_dense().cpu().numpy(), m.toarray())
    c = m.tocsr()
    y = torch.sparse_csr_tensor(c.indptr, c.indices, c.data, c.shape, device=device)
    assert y.col_indices().dtype == torch.int32
    assert_allclose((y @ torch.eye(5, device=device)).cpu().numpy(), m.toarray())
    x = x.cpu().coalesce()
    back = scipy.coo_matrix((x.values().numpy(), x.indices().numpy()), x.shape)
    assert_allclose(back.toarray(), m.toarray())
    y = y.cpu()
    parts = (y.values(), y.col_indices(), y.crow_indices())
    back = scipy.csr_matrix(tuple(t.numpy() for t in parts), y.shape)
    assert (back != c).nnz == 0
    old = torch.sparse.FloatTensor(
        torch.LongTensor(np.vstack((m.row, m.col)).astype(np.int64)),
        torch.FloatTensor(m.data),
        torch.Size(m.shape),
    )
    assert isinstance(old, torch.sparse.FloatTensor)
    assert not isinstance(old, torch.sparse.DoubleTensor)
    assert_allclose(old.to_dense().numpy(), m.toarray())


def test_files(device):
    x = random_coo(device)
    kept = {"x": x, "coalesced": x.coalesce(), "rows": x.to_sparse_csr()}
    kept["columns"] = kept["rows"].t()
    file = io.BytesIO()
    torch.save(kept, file)
    file.seek(0)
    for name, read in torch.load(file).items():
        assert read.layout == kept[name].layout and read.device == x.device
        assert torch.equal(read.to_dense(), kept[name].to_dense())
    file.seek(0)
    assert torch.load(file, map_location="cpu")["rows"].device.type == "cpu"


def test_a_file_with_wrong_indices():
    x = torch.sparse_coo_tensor([[0], [9]], [1.0], (2, 3), check_invariants=False)
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    with pytest.raises(Exception, match="found index 9") as caught:
        torch.load(file)
    assert "give" in str(caught.value)


def test_a_buffer_of_a_module(device):
    net = torch.nn.Linear(3, 2)
    net.register_buffer("adjacency", random_coo("cpu", 4, 4).float())
    net = net.to(device).double()
    assert str(net.adjacency.device) == device and net.adjacency.dtype == torch.float64
    other = copy.deepcopy(net)
    other.adjacency.zero_()
    assert net.adjacency._nnz() == 12 and other.adjacency._nnz() == 0
    other.load_state_dict(net.state_dict())
    assert torch.equal(other.adjacency.to_dense(), net.adjacency.to_dense())


def test_in_place_on_a_dense_tensor(device):
    x = random_coo(device)
    dense = same = torch.ones(7, 5, dtype=torch.float64, device=device)
    dense += x
    assert dense is same and torch.equal(dense, 1 + x.to_dense())
    dense.add_(x, alpha=-1).sub_(x).mul_(x)
    wanted = (1 - x.to_dense()) * x.to_dense()
    assert torch.allclose(dense, wanted)
    assert torch.equal(torch.zeros_like(dense).copy_(x), x.to_dense())


def test_a_leaf_is_not_changed_in_place(device):
    x = random_coo(device).requires_grad_()
    with pytest.raises(RuntimeError, match="no_grad"):
        x.mul_(2)
    with torch.no_grad():
        x.mul_(2)
    with pytest.raises(RuntimeError, match="only None"):
        x.grad = x
    torch.sparse.sum(x).backward()
    x.grad = None
    assert x.grad is None


@pytest.mark.parametrize(
    "call",
    [
        lambda s: torch.exp(s),
        lambda s: torch.relu_(s),
        lambda s: torch.nn.functional.gelu(s),
        lambda s: torch.linalg.det(s),
        lambda s: torch.flip(s, (0,)),
        lambda s: torch.tril(s),
        lambda s: torch.where(s, s, s),
        lambda s: torch.kron(s, s),
        lambda s: torch.add(torch.ones(7, 5), 1, out=s),
        lambda s: s.exp(),
        lambda s: s.tolist(),
        lambda s: s == s,
        lambda s: s[1:2],
        lambda s: s.permute(0, 1) % 2,
        lambda s: torch.ones(7, 5) < s,
        lambda s: torch.einsum("ij,kj", s, s),
        lambda s: torch.ones(2, layout=s.layout),
        lambda s: torch.zeros(2, 2, layout=torch.sparse_bsr),
    ],
)
def test_what_is_not_there_says_to_use_a_dense_tensor(call):
    with pytest.raises(NotImplementedError, match=r"to_dense\(\)|to_sparse\(\)"):
        call(random_coo("cpu").float())


@pytest.mark.parametrize("name", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_zeros_of_a_layout(device, name):
    layout = getattr(torch, name)
    for make in (torch.zeros, torch.empty):
        x = make(2, 3, layout=layout, device=device, dtype=torch.float64)
        assert x.layout == layout and x.shape == (2, 3) and x._nnz() == 0
        assert str(x.device) == device and x.dtype == torch.float64
        y = make((2, 3), layout=layout, device=device, requires_grad=True)
        assert y.requires_grad and y.is_leaf and not y.to_dense().any()
        assert make(size=(1, 4), layout=layout, device=device).shape == (1, 4)
    with pytest.raises(TypeError):
        torch.zeros("a", layout=layout)


def test_what_has_no_layout_here():
    with pytest.raises(NotImplementedError, match="to_sparse_csr"):
        torch.eye(2).to_sparse_bsr((1, 1))
    with pytest.raises(NotImplementedError, match="to_sparse_csc"):
        torch.eye(2).to_sparse_bsc((1, 1))
    with pytest.raises(RuntimeError, match="batches and blocks"):
        torch.sparse_csr_tensor([[0, 1], [0, 1]], [[0], [0]], [[1.0], [2.0]])


def test_other_mistakes_keep_their_errors(device):
    random_coo(device)  # the module is imported
    with pytest.raises(TypeError, match="give a Tensor"):
        torch.exp("a")
    with pytest.raises(TypeError):
        torch.cat([1, 2])


def test_printing_on_a_gpu(gpu):
    text = repr(torch.eye(2, device=gpu).to_sparse())
    assert f"device='{gpu}'" in text and "layout=torch.sparse_coo" in text


def test_gcn_trains_on_each_device(device):
    """The loss of a small graph network falls, with dropout of its adjacency's values."""
    torch.manual_seed(0)
    ring = torch.arange(10, device=device)
    indices = torch.stack((ring, (ring + 1) % 10))
    scores = torch.zeros(10, device=device, requires_grad=True)
    weight = torch.randn(4, 2, device=device).requires_grad_()
    x, y = torch.randn(10, 4, device=device), ring % 2
    optimizer = torch.optim.Adam([scores, weight], lr=0.1)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        adjacency = torch.sparse_coo_tensor(indices, scores.exp(), (10, 10))
        out = torch.sparse.mm(adjacency, x @ weight)
        loss = torch.nn.functional.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
