"""Calls with DTensors: what PyTorch answers, and what ranks do with their parts."""

import json
from pathlib import Path

import pytest
import ranks
from cases import Cases

TESTS = Path(__file__).resolve().parent
GOLDEN = json.loads((TESTS / "golden/dtensors.json").read_text())["calls"]

# Same values, in other placements: PyTorch gathers the first operand of some.
ELSEWHERE = {
    "x.sum() * x.sum()",
    "x * x.sum()",
    "x.amax() + x.amax()",
    "x.norm() + x.sum()",
    "x.sum(0) + x.mean(0)",
    "x.aminmax()",
    "x.nansum()",
    "x / x.norm()",
    "x - x.mean()",
    "x - x.mean(0)",
    "x - x.mean(1, keepdim=True)",
    "x / x.norm(dim=1, keepdim=True)",
    "x + x.sum(0)",
    "x + torch.ones(())",
    "x.transpose(0, 1).reshape(3, 20)",
    "x.any()",
    "torch.linalg.norm(m)",
    "torch.stack([x.sum(), x.norm()])",
}

ASK = f"""
import json
sys.path.insert(0, {str(TESTS)!r})
from golden import dtensors
sources = json.load(open({str(TESTS / "golden/dtensors.json")!r}))["calls"]
begin()
found = dtensors.answers([row[0] for row in sources], torch, rank)
if rank == 0:
    print(json.dumps(found))
"""

HEAD = """
import io, pickle, zipfile
from pydevtensor.distributed.fsdp import fully_shard
from pydevtensor.distributed import tensor as parts
from pydevtensor.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
begin()
mesh = dist.init_device_mesh("cpu", (size,))
def rows(*shape, dtype=torch.float32):
    return distribute_tensor(torch.arange(1, 1 + torch.Size(shape).numel(), dtype=dtype).view(shape), mesh, [Shard(0)])
def raises(kind, text, function):
    try:
        function()
    except kind as error:
        assert text in str(error), error
    else:
        assert False, text
"""

# Numbers are those of all ranks, where PyTorch's are this rank's.
NUMBERS = """
x = rows(5, 2)
def near(a, b):
    return abs(a - b) <= 1e-5 * abs(b)
assert x.sum().item() == float(x.sum()) == int(x.sum()) == 55 and near(x.norm().item(), x.full_tensor().norm().item())
assert bool((x > 9).any()) and not bool((x > 9).all()) and f"{x.mean():.2f}" == "5.50" and complex(x.amax()) == 10
assert (torch.tensor(110.0) / x.sum()).item() == (110 / x.sum()).item() == 2
assert x.sum().div(2, rounding_mode="floor").item() == 27 and (torch.tensor(2.0) * x.sum()).item() == 110
total = torch.zeros(())
total += x.mean()
assert (total + x.sum()).item() == 60.5
assert [10, 20][(x.argmax() == 9).int()] == 20 and len(x.sum(0)) == 2
assert near(torch.linalg.norm(x, 2).item(), torch.linalg.norm(x.full_tensor(), 2).item())
assert near(x.norm("nuc").item(), x.full_tensor().norm(p="nuc").item())
equal = distribute_tensor(torch.ones(8, requires_grad=True), mesh, [Shard(0)])
equal.amax().backward()
assert equal.grad.full_tensor().eq(1 / 8).all()
one = rows(1, 3)  # the last ranks have no rows
for name in ("sum", "mean", "amax", "amin", "max", "min", "prod", "norm", "std", "any", "all", "argmin"):
    assert near(getattr(one, name)().item(), getattr(one.full_tensor(), name)().item()), name
assert one.norm(float("inf")).item() == 3 and one.amax(1).full_tensor().tolist() == [3]
assert one.squeeze(-1).shape == (1, 3) and one.T.full_tensor().tolist() == [[1], [2], [3]]
for wide in (torch.bfloat16, torch.float16, torch.int64, torch.int32):
    y = rows(5, 2, dtype=wide)
    assert y.sum().item() == 55 and y.max().item() == 10 and y.sum().dtype == y.full_tensor().sum().dtype
"""

# Training with fully_shard(): logging, clipping, averaging.
TRAINING = """
torch.manual_seed(0)
model = fully_shard(nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1)))
torch.manual_seed(0)
whole = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))
with torch.no_grad():
    for p, q in zip(model.parameters(), whole.parameters()):
        q.copy_(p.full_tensor())
x = torch.ones(2, 3)
for each in (model, whole):
    each(x).sum().backward()
pairs = [*zip(model.parameters(), whole.parameters())]
close = torch.testing.assert_close
norms = [p.grad.norm() for p in model.parameters()]
expected = torch.cat([q.grad.flatten() for q in whole.parameters()]).norm()
close(sum(each**2 for each in norms).sqrt().full_tensor(), expected)
close(torch.linalg.vector_norm(torch.stack(norms)).full_tensor(), expected)
for p, q in pairs:
    for name in ("sum", "mean", "std", "amax", "min", "norm"):
        if name != "std" or p.numel() > 1:
            close(torch.tensor(getattr(p, name)().item()), getattr(q.detach(), name)())
            close(getattr(p.grad, name)().full_tensor(), getattr(q.grad, name)())
    close((p.grad.abs() > 0.1).float().mean().full_tensor(), (q.grad.abs() > 0.1).float().mean())
    close((p.detach().norm() / p.grad.norm()).full_tensor(), q.detach().norm() / q.grad.norm())
total = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
assert isinstance(total, DTensor) and total.placements == (Replicate(),)
close(total.full_tensor(), expected)
close(nn.utils.clip_grad_norm_(whole.parameters(), 0.5), expected)
close(nn.utils.get_total_norm([p.grad for p in model.parameters()]).item(), 0.5, rtol=1e-4, atol=0)
averages = [p.detach().clone() for p in model.parameters()]
with torch.no_grad():
    for mean, (p, q) in zip(averages, pairs):
        mean.lerp_(p + 1, 0.1)
        close(mean.full_tensor(), q + 0.1)
        p.data.copy_(mean)
        close(p.full_tensor(), q + 0.1)
        p.mul_(2 / p.norm())
        close(p.norm().full_tensor(), torch.tensor(2.0))
(penalty,) = [sum((p * p).sum() for p in model.parameters())]
model.zero_grad()
penalty.backward()
for p, _ in pairs:
    close(p.grad, 2 * p.detach())
(slope,) = torch.autograd.grad(pairs[0][0].norm(), pairs[0][0])
close(slope, pairs[0][0].detach() / 2)
file = io.BytesIO()
torch.save({"model": model.state_dict(), "parameter": pairs[0][0]}, file)
before = [p.full_tensor().detach().clone() for p in model.parameters()]
with torch.no_grad():
    for p in model.parameters():
        p.zero_()
file.seek(0)
state = torch.load(file)
model.load_state_dict(state["model"])
for p, old in zip(model.parameters(), before):
    close(p.full_tensor(), old)
again = state["parameter"]
assert isinstance(again, nn.Parameter) and isinstance(again, DTensor) and again.device_mesh == pairs[0][0].device_mesh
assert again.requires_grad and again.to_local().shape == pairs[0][0].to_local().shape
weight = nn.Parameter(distribute_tensor(torch.ones(4, 2), mesh, [Shard(1)]))
assert isinstance(weight, nn.Parameter) and weight.placements == (Shard(1),) and weight.shape == (4, 2)
optimizer = torch.optim.SGD([weight], lr=0.5)
(weight * weight).sum().backward()
optimizer.step()
assert torch.equal(weight.full_tensor(), torch.zeros(4, 2))
"""

VIEWS = """
x = rows(5, 3)
x[:, 0] = 7.0
x[..., 1] = x[..., 2]
x[:, 2].zero_()
assert x.full_tensor()[:, 0].eq(7).all() and x.full_tensor()[:, 2].eq(0).all() and x.full_tensor()[4, 1] == 15
assert [row.shape for row in x] == [(3,)] * 5 and x[1, 0].item() == 7
raises(NotImplementedError, "__setitem__() of a DTensor", lambda: x.__setitem__(0, 1.0))
raises(NotImplementedError, "__getitem__() of a DTensor", lambda: x[[0, 1]])
raises(NotImplementedError, "view() of a DTensor", lambda: x.view(torch.int32))
raises(RuntimeError, "would divide rows of a rank", lambda: x.view(15))
raises(RuntimeError, "does not fit", lambda: x.view(7))
raises(IndexError, "out of range", lambda: x[5])
raises(RuntimeError, "which does not fit into it", lambda: x.sum(0).redistribute().add_(x))
raises(NotImplementedError, "redistribute() it first", lambda: x.sum().add_(1))
assert x.T.stride() == (1, 3) and (x.T * 2).stride() == (1, 3) and x.T.contiguous().stride() == (5, 1)
assert x.storage_offset() == 0 and x.T.T.stride() == (3, 1)
y = parts.randn(5, 2, device_mesh=mesh, placements=[Shard(0)])
torch.manual_seed(1)
z = torch.randn_like(y)
torch.manual_seed(1)
assert z.placements == (Shard(0),) and torch.equal(z.full_tensor(), torch.randn(5, 2))
torch.manual_seed(1)
assert torch.equal(parts.rand(5, device_mesh=mesh, placements=[Shard(0)]).full_tensor(), (torch.manual_seed(1), torch.rand(5))[1])
raises(ValueError, "give a DeviceMesh", lambda: parts.ones(2))
raises(ValueError, "give Shard(dim) or Replicate()", lambda: parts.zeros(2, device_mesh=mesh, placements=[Partial()]))
raises(ValueError, "has no equal factors", lambda: distribute_tensor(torch.ones(2), mesh, [Partial("product")]))
"""

DAMAGED = """
x = rows(4)
file = io.BytesIO()
torch.save({"x": x}, file)
for old, new in ((b"Shard", b"Shart"), (b"X\\x05\\0\\0\\0Shard", b"]"), (b"X\\x03\\0\\0\\0cpu", b"K\\x01")):
    made, whole = io.BytesIO(), zipfile.ZipFile(file)
    with zipfile.ZipFile(made, "w") as zipped:
        for name in whole.namelist():
            assert not name.endswith("data.pkl") or old in whole.read(name)
            zipped.writestr(name, whole.read(name).replace(old, new))
    made.seek(0)
    raises(pickle.UnpicklingError, "is damaged", lambda: torch.load(made))
dist.destroy_process_group()
file.seek(0)
raises(RuntimeError, "call torch.distributed.init_process_group() before", lambda: torch.load(file))
"""

MESHES = """
names = ("copies", "shards")
mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=names)
whole = torch.arange(24.0).view(4, 6)
for have in ([Replicate(), Shard(0)], [Shard(0), Shard(0)], [Shard(0), Shard(1)], [Shard(1), Replicate()]):
    x = distribute_tensor(whole.clone(), mesh, have)
    for each in (lambda t: t.sum(), lambda t: t.mean(), lambda t: t.norm(), lambda t: t.norm(3, 0), lambda t: t.sum(1), lambda t: t.mean(0),
                 lambda t: t.amax(0), lambda t: t.std(1), lambda t: t.T, lambda t: t[:, 2], lambda t: t.view(4, 2, 3),
                 lambda t: t / t.norm(), lambda t: t - t.mean(1, keepdim=True), lambda t: (t > 3).any(0)):
        torch.testing.assert_close(each(x).full_tensor(), each(whole))
    w = distribute_tensor(whole.clone().requires_grad_(), mesh, have)
    v = whole.clone().requires_grad_()
    for t in (w, v):
        ((t / t.norm(3)).amax(0) * t.mean()).sum().backward()
    torch.testing.assert_close(w.grad.full_tensor(), v.grad)
data = pickle.dumps(x.sum(0))
assert pickle.loads(data).device_mesh is mesh and pickle.loads(data).placements == x.sum(0).placements
nobody = data.replace(b"copies", b"shapes")
raises(RuntimeError, "make it by init_device_mesh()", lambda: pickle.loads(nobody))
if rank == 0:
    torch.save(distribute_tensor(whole, dist.init_device_mesh("cpu", (4,)), [Shard(1)], src_data_rank=None), "part")
else:
    distribute_tensor(whole, dist.init_device_mesh("cpu", (4,)), [Shard(1)], src_data_rank=None)
dist.barrier()
if rank < 3:
    assert torch.load("part").to_local().shape == (4, 2)
else:
    raises(RuntimeError, "load the file that this rank has saved", lambda: torch.load("part"))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What this library answers, on two ranks."""
    return json.loads(ranks.run(tmp_path_factory.mktemp("calls"), 2, ASK)[0])


def same(ours, theirs, placements):
    if "_StridedShard" in str(theirs):  # each rank has rows of several places
        theirs = {"raises": "RuntimeError"}
    if isinstance(theirs, dict) and "raises" in theirs:
        kinds = {
            theirs["raises"],
            theirs["raises"].replace("Runtime", "NotImplemented"),
        }
        return isinstance(ours, dict) and ours.get("raises") in kinds
    if isinstance(theirs, dict) and isinstance(ours, dict):
        names = ("dtype", "shape", "values")
        names += ("placements", "stride", "part") if placements else ()
        return all(same(ours.get(n), theirs.get(n), True) for n in names)
    if isinstance(theirs, list) and isinstance(ours, list):
        pairs = zip(ours, theirs, strict=False)
        return len(ours) == len(theirs) and all(
            same(a, b, placements) for a, b in pairs
        )
    if isinstance(theirs, float) and isinstance(ours, float):
        return abs(ours - theirs) <= 1e-4 * abs(theirs) + 1e-5
    return ours == theirs


def test_pytorch_answers_the_same(found):
    with Cases() as case:
        for (source, theirs), ours in zip(GOLDEN, found, strict=True):
            for text, answer in theirs.items():
                with case(f"{source} of {text}"):
                    alike = same(ours[text], answer, source not in ELSEWHERE)
                    assert alike, (ours[text], answer)


@pytest.mark.parametrize("size", [2, 4])
def test_numbers_are_those_of_all_ranks(tmp_path, size):
    ranks.run(tmp_path, size, HEAD + NUMBERS)


def test_what_training_asks_of_parameters(tmp_path):
    ranks.run(tmp_path, 2, HEAD + TRAINING)


def test_views_and_new_tensors(tmp_path):
    ranks.run(tmp_path, 2, HEAD + VIEWS)


def test_files_that_do_not_fit(tmp_path):
    ranks.run(tmp_path, 1, HEAD + DAMAGED)


def test_meshes_of_two_dimensions(tmp_path):
    ranks.run(tmp_path, 4, HEAD + MESHES)
