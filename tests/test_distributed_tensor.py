"""DTensor: placements, what moves between ranks, and gradients."""

import pytest
import ranks

HEAD = """
from pydevtensor.distributed.fsdp import fully_shard
from pydevtensor.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
begin()
"""

MOVES = """
torch.manual_seed(0)
whole = torch.randn(5, 3, 4)
meshes = [dist.init_device_mesh("cpu", (size,))]
if size == 4:
    meshes.append(dist.init_device_mesh("cpu", (2, 2)))
for mesh in meshes:
    kinds = [Replicate(), Shard(0), Shard(1), Shard(-1)]
    every = [(a,) for a in kinds] if mesh.ndim == 1 else [(a, b) for a in kinds for b in kinds]
    for have in every:
        given = whole * (dist.get_rank() == 0)  # rank 0's values count
        x = distribute_tensor(given, mesh, have)
        assert isinstance(x, DTensor) and x.shape == whole.shape and x.size(0) == 5
        assert torch.equal(x.full_tensor(), whole), (have, rank)
        own = whole
        for i, each in enumerate(have):
            if isinstance(each, Shard):
                parts = own.chunk(mesh.size(i), each.dim)
                at = mesh.get_local_rank(i)
                own = parts[at] if at < len(parts) else own.narrow(each.dim, 0, 0)
        assert torch.equal(x.to_local(), own), (have, rank)
        for want in every:
            y = x.redistribute(mesh, want)
            assert torch.equal(y.full_tensor(), whole), (have, want)
            assert y.placements == distribute_tensor(whole, mesh, want).placements
            assert torch.equal(y.to_local(), distribute_tensor(whole, mesh, want).to_local())
"""

# Gradients beside PyTorch's: what it prints for the same lines, on two ranks.
GRADIENTS = """
mesh = dist.init_device_mesh("cpu", (2,))
weights = torch.arange(6.0).view(3, 2) * (rank + 1)
for placement in (Shard(0), Shard(1), Replicate()):
    x = distribute_tensor(torch.ones(3, 2, requires_grad=True), mesh, [placement])
    assert x.requires_grad and x.is_leaf
    (x.full_tensor() * weights).sum().backward()
    assert isinstance(x.grad, DTensor) and x.grad.placements == (placement,)
    found = x.grad.to_local()
    expected = distribute_tensor(weights, mesh, [placement], src_data_rank=None).to_local()
    assert torch.equal(found, expected), (placement, found)
    x.grad = None
    (x.full_tensor(grad_placements=[Partial()]) * weights).sum().backward()
    total = torch.arange(6.0).view(3, 2) * 3
    assert torch.equal(x.grad.full_tensor(), total), (placement, x.grad)
    x.grad = None
    (x.to_local() * 2).sum().backward()
    assert torch.equal(x.grad.to_local(), torch.full_like(x.to_local(), 2))
local = torch.full((2,), float(rank + 1), requires_grad=True)
x = DTensor.from_local(local, mesh, [Partial()])
total = x.full_tensor()
assert total.tolist() == [3, 3] and x.redistribute(placements=[Shard(0)]).to_local().tolist() == [3]
(total * 5).sum().backward()
assert local.grad.tolist() == [5, 5]
rows = DTensor.from_local(torch.full((2, 3), float(rank)), mesh, [Shard(0)])
assert rows.shape == (4, 3) and rows.full_tensor()[:, 0].tolist() == [0, 0, 1, 1]
assert "placements=(Shard(dim=0),)" in repr(rows)
assert Partial().is_partial() and Shard(1).is_shard(1) and not Shard(1).is_shard(0) and Replicate().is_replicate()
"""

WRONG = """
mesh = dist.init_device_mesh("cpu", (2,))
x = distribute_tensor(torch.ones(4), mesh, [Shard(0)])
for wrong, kind, text in (
    (lambda: x + 1, NotImplementedError, "compute with to_local()"),
    (lambda: torch.relu(x), NotImplementedError, "relu() of a DTensor"),
    (lambda: distribute_tensor(torch.ones(4), mesh, [Shard(1)]), ValueError, "one of its dimensions"),
    (lambda: distribute_tensor(torch.ones(4), mesh, []), ValueError, "give one for each"),
    (lambda: distribute_tensor(torch.ones(4), None, [Shard(0)]), ValueError, "give a DeviceMesh"),
    (lambda: distribute_tensor(torch.ones(4), mesh, [0]), ValueError, "give Shard(dim), Replicate()"),
    (lambda: distribute_tensor(torch.ones(4), mesh, [Partial()]), ValueError, "from_local()"),
    (lambda: distribute_tensor(x, mesh, [Replicate()]), ValueError, "redistribute()"),
    (lambda: distribute_tensor(torch.ones(4, requires_grad=True) * 2, mesh, [Shard(0)]), RuntimeError, "not a leaf"),
    (lambda: x.redistribute(placements=[Partial()]), RuntimeError, "Can not redistribute from Shard(dim=0)"),
):
    try:
        wrong()
    except kind as error:
        assert text in str(error), error
    else:
        assert False, text
assert distribute_tensor(x, mesh, [Shard(0)]) is x
"""

# What PyTorch 2.13 gives for fully_shard()'s parameters and their gradients.
FSDP = """
for shape in ((size,), (2, size // 2)):
    mesh = dist.init_device_mesh("cpu", shape)
    model = fully_shard(nn.Linear(2, 7), mesh=mesh)
    x = torch.full((1, 2), float(rank))
    model(x).sum().backward()
    mean = sum(range(size)) / size
    weight, gradient = model.weight, model.weight.grad
    placements = (Shard(0),) if len(shape) == 1 else (Replicate(), Shard(0))
    for each in (weight, gradient):
        assert isinstance(each, DTensor) and each.placements == placements
        assert each.device_mesh is mesh and type(each.to_local()) is torch.Tensor
        assert each.full_tensor().shape == (7, 2)
        assert torch.equal(each.redistribute(placements=[Replicate()] * mesh.ndim).to_local(), each.full_tensor())
    assert gradient is weight.grad and gradient.full_tensor().eq(mean).all()
    assert gradient.to_local().data_ptr() == gradient.data_ptr()
    gradient.mul_(2)
    assert weight.grad.full_tensor().eq(2 * mean).all()
    expected = torch.cat([p.grad.full_tensor().flatten() for p in model.parameters()]).norm()
    norm = nn.utils.get_total_norm([p.grad for p in model.parameters()])
    torch.testing.assert_close(norm, expected)
    torch.testing.assert_close(nn.utils.clip_grad_norm_(model.parameters(), 1.0), expected)
    weight.grad = weight.grad * 0  # plain rows
    assert isinstance(weight.grad, DTensor) and not weight.grad.full_tensor().any()
    model(x).sum().backward()
    assert weight.grad.full_tensor().eq(mean).all()
    torch.optim.AdamW(model.parameters()).step()
    model.zero_grad()
    assert weight.grad is None
    del weight.grad
"""


@pytest.mark.parametrize("size", [2, 4])
def test_tensors_move_between_placements(tmp_path, size):
    ranks.run(tmp_path, size, HEAD + MOVES)


def test_gradients_and_sums(tmp_path):
    ranks.run(tmp_path, 2, HEAD + GRADIENTS)


def test_what_is_refused(tmp_path):
    ranks.run(tmp_path, 2, HEAD + WRONG)


@pytest.mark.parametrize("size", [2, 4])
def test_gradients_of_sharded_parameters(tmp_path, size):
    ranks.run(tmp_path, size, HEAD + FSDP)
