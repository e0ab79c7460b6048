"""DTensor: placements, what moves between ranks, and gradients."""

import pytest
import ranks

HEAD = """
import copy
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

# PyTorch prints these gradients for the same lines, on two ranks.
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

# PyTorch 2.13 has these results, too.
ELEMENTS = """
mesh = dist.init_device_mesh("cpu", (2,))
whole = torch.arange(10.0).view(5, 2)
for placement in (Shard(0), Shard(1), Replicate()):
    x = distribute_tensor(whole.clone(), mesh, [placement])
    y = distribute_tensor(torch.ones(5, 2), mesh, [placement])
    for found, expected in (
        (x + 1, whole + 1), (2 - x, 2 - whole), (x * y, whole), (torch.relu(x - 4), torch.relu(whole - 4)),
        (x.double().sqrt(), whole.double().sqrt()), (torch.zeros_like(x), torch.zeros(5, 2)),
        (x.detach().clone().lerp_(y, 0.5), whole.lerp(torch.ones(5, 2), 0.5)), (x > 3, whole > 3),
        (x.clone().mul_(torch.tensor(3.0)), whole * 3), (torch.where(x > 3, x, y), torch.where(whole > 3, whole, torch.ones(5, 2))),
        (x.data, whole), (torch.clamp(x, min=2), whole.clamp(min=2)), (-x, -whole), (x**2, whole**2),
    ):
        assert isinstance(found, DTensor) and found.placements == (placement,) and found.shape == (5, 2)
        assert found.dtype == expected.dtype and torch.equal(found.full_tensor(), expected), (placement, found)
    assert (x.numel(), x.size(0), x.size(), len(x), x.ndim, x.dim(), x.nbytes, x.stride()) == (10, 5, (5, 2), 5, 2, 2, 40, (2, 1))
    assert torch.numel(x) == 10 and x.is_floating_point() and not x.is_complex()
    assert torch.equal(x, x.clone()) and not torch.equal(x, x + (x == 9))
    total = x
    total += 1
    assert total is x and torch.equal(x.full_tensor(), whole + 1)
    x.zero_()
    x.copy_(y)
    assert torch.equal(x.full_tensor(), torch.ones(5, 2))
w = distribute_tensor(whole.clone().requires_grad_(), mesh, [Shard(0)])
(w * w).to_local().sum().backward()
assert torch.equal(w.grad.full_tensor(), 2 * whole) and w.grad is w.grad
"""

WRONG = """
mesh = dist.init_device_mesh("cpu", (2,))
x = distribute_tensor(torch.ones(4), mesh, [Shard(0)])
rows = distribute_tensor(torch.ones(4, 2), mesh, [Shard(0)])
terms = DTensor.from_local(torch.ones(4), mesh, [Partial()])
for wrong, kind, text in (
    (lambda: torch.sort(x), NotImplementedError, "compute with to_local()"),
    (lambda: torch.cumsum(x, 0), NotImplementedError, "cumsum() of a DTensor"),
    (lambda: rows @ torch.ones(2, 4), NotImplementedError, "matmul"),
    (lambda: torch.softmax(x, 0), NotImplementedError, "softmax() of a DTensor"),
    (lambda: torch.where(x), NotImplementedError, "where() of a DTensor"),
    (lambda: nn.functional.glu(rows), NotImplementedError, "glu() of a DTensor"),
    (lambda: x.tolist(), NotImplementedError, "tolist"),
    (lambda: x.numpy(), NotImplementedError, "numpy"),
    (lambda: x + torch.ones(4), RuntimeError, "got mixed torch.Tensor and DTensor"),
    (lambda: x.copy_(torch.ones(2)), RuntimeError, "got mixed torch.Tensor and DTensor"),
    (lambda: terms.add_(1), NotImplementedError, "redistribute() it first"),
    (lambda: torch.cat([x, torch.ones(2)]), NotImplementedError, "cat() of a DTensor"),
    (lambda: setattr(x, "grad", torch.ones(2)), RuntimeError, "has to be a DTensor"),
    (lambda: setattr(x, "data", torch.ones(2)), RuntimeError, "has to be a DTensor"),
    (lambda: dist.all_reduce(x), NotImplementedError, "give its to_local()"),
    (lambda: copy.deepcopy(fully_shard(nn.Linear(1, 2))), AssertionError, "does not support deepcopy"),
    (lambda: nn.utils.get_total_norm([terms]), NotImplementedError, "the norm of a DTensor"),
    (lambda: dist.checkpoint.save({"x": distribute_tensor(torch.ones(4, 4), mesh, [Shard(1)])}, checkpoint_id="no"),
     dist.checkpoint.CheckpointException, "nor divided by rows"),
    (lambda: distribute_tensor(torch.ones(4), mesh, [Shard(1)]), ValueError, "one of its dimensions"),
    (lambda: distribute_tensor(torch.ones(4), mesh, []), ValueError, "give one for each"),
    (lambda: distribute_tensor(torch.ones(4), None, [Shard(0)]), ValueError, "give a DeviceMesh"),
    (lambda: distribute_tensor(torch.ones(4), mesh, [0]), ValueError, "give Shard(dim), Replicate()"),
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

# Parameters without memory until each rank has its rows.
META = """
where = os.environ["DEVICE"].format(rank=rank)
def net():
    return nn.Sequential(nn.Linear(4, 7), nn.LayerNorm(7), nn.Linear(7, 1))
with torch.device("meta"):
    parts = net()
for each in parts:
    fully_shard(each)
fully_shard(parts)
parts.to_empty(device=where)
whole = net().to(where)
for model in (parts, whole):
    torch.manual_seed(3)
    for each in model:
        each.reset_parameters()
for p, q in zip(parts.parameters(), whole.parameters()):
    assert p.device == q.device and torch.equal(p.full_tensor(), q)
x = torch.ones(3, 4, device=where)
for model in (parts, whole):
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        model(x).sum().backward()
        optimizer.step()
for p, q in zip(parts.parameters(), whole.parameters()):
    torch.testing.assert_close(p.full_tensor(), q.detach())
state = {name: p * 2 for name, p in parts.state_dict().items()}
parts.load_state_dict(state, assign=True)
for p, q in zip(parts.parameters(), whole.parameters()):
    torch.testing.assert_close(p.full_tensor(), 2 * q.detach())
    q.data.mul_(2)
torch.testing.assert_close(parts(x), whole(x))
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
    assert weight.shape == gradient.shape == weight.data.shape == (7, 2) and weight.numel() == 14
    assert isinstance(weight, nn.Parameter) and len(weight) == 7
    expected = torch.cat([p.grad.full_tensor().flatten() for p in model.parameters()]).norm()
    norm = nn.utils.get_total_norm([p.grad for p in model.parameters()])
    torch.testing.assert_close(norm.full_tensor(), expected)
    torch.testing.assert_close(nn.utils.clip_grad_norm_(model.parameters(), 1.0).full_tensor(), expected)
    weight.grad = weight.grad * 0
    assert isinstance(weight.grad, DTensor) and not weight.grad.full_tensor().any()
    model(x).sum().backward()
    assert weight.grad.full_tensor().eq(mean).all()
    optimizer = torch.optim.AdamW(model.parameters())
    optimizer.step()
    for each in (optimizer.state[weight]["exp_avg"], model.state_dict()["weight"]):
        assert isinstance(each, DTensor) and each.shape == (7, 2) and each.placements == placements
    weight.grad = None
    (weight.to_local() * 2).sum().backward()
    assert weight.grad.full_tensor().eq(2).all()
    weight.grad = None
    (weight.full_tensor() * 3).sum().backward()
    assert weight.grad.full_tensor().eq(3).all()
    twin = copy.deepcopy(weight)
    assert type(twin) is type(weight) and twin.requires_grad and twin.data_ptr() != weight.data_ptr()
    torch.manual_seed(5)
    nn.init.normal_(weight)
    torch.manual_seed(5)
    assert torch.equal(weight.full_tensor(), nn.init.normal_(torch.empty(7, 2)))
    with torch.no_grad():
        weight.copy_(twin)
    assert torch.equal(weight.full_tensor(), twin.full_tensor())
    model.unshard()
    assert type(model.weight) is not type(weight)
    assert isinstance(model.state_dict()["weight"], DTensor) and model.weight is weight
    model.unshard()
    model.load_state_dict({"weight": twin * 2, "bias": model.state_dict()["bias"]})
    assert torch.equal(weight.full_tensor(), 2 * twin.full_tensor())
    model.zero_grad()
    assert weight.grad is None
    del weight.grad
"""


@pytest.mark.parametrize("size", [2, 4])
def test_tensors_move_between_placements(tmp_path, size):
    ranks.run(tmp_path, size, HEAD + MOVES)


def test_gradients_and_sums(tmp_path):
    ranks.run(tmp_path, 2, HEAD + GRADIENTS)


def test_elementwise_operations(tmp_path):
    ranks.run(tmp_path, 2, HEAD + ELEMENTS)


def test_what_is_refused(tmp_path):
    ranks.run(tmp_path, 2, HEAD + WRONG)


@pytest.mark.parametrize("size", [2, 4])
def test_gradients_of_sharded_parameters(tmp_path, size):
    ranks.run(tmp_path, size, HEAD + FSDP)


def test_parameters_without_memory(tmp_path):
    ranks.run(tmp_path, 2, HEAD + META, DEVICE="cpu")


@pytest.mark.slow
def test_parameters_without_memory_on_gpus(tmp_path):
    given = {"DEVICE": "cuda:{rank}", "PYDEVTENSOR_SIM_GPUS": "2", "BACKEND": "nccl"}
    ranks.run(tmp_path, 2, HEAD + META, **given)
