"""Training of which each rank has a share: of the optimizer's states."""

import pytest
import ranks

import pydevtensor as torch

ZERO = """
from pydevtensor.distributed.optim import ZeroRedundancyOptimizer
begin()
device = os.environ["DEVICE"].format(rank=rank)
def net():
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3), nn.Tanh(), nn.Linear(3, 1))
    return made.to(device)
def groups(net):
    return [{"params": [*net[0].parameters()]}, {"params": [*net[2].parameters(), *net[4].parameters()], "lr": 0.02}]
def train(net, optimizer, schedule, steps):
    for step in steps:
        torch.manual_seed(step)
        optimizer.zero_grad()
        net(torch.randn(8, 5).to(device)).square().mean().backward()
        optimizer.step()
        schedule.step()
def check(mine, other):
    for a, b in zip(mine.parameters(), other.parameters()):
        assert torch.equal(a, b), (a, b)
for views in (False, True):
    whole, parts = net(), net()
    one = torch.optim.Adam(groups(whole), lr=0.1)
    zero = ZeroRedundancyOptimizer(
        groups(parts), torch.optim.Adam, parameters_as_bucket_view=views, lr=0.1)
    assert [g["lr"] for g in zero.param_groups] == [0.1, 0.02]
    assert zero.param_groups[0]["betas"] == (0.9, 0.999)
    schedules = [torch.optim.lr_scheduler.StepLR(o, 2, 0.5) for o in (one, zero)]
    train(whole, one, schedules[0], range(3))
    train(parts, zero, schedules[1], range(3))
    check(whole, parts)
    # each parameter's state is on one rank
    counts = [None] * size
    dist.all_gather_object(counts, len(zero.optim.state))
    assert sum(counts) == 6 and min(counts) >= 1, counts
    elements = [None] * size
    dist.all_gather_object(elements, sum(s["exp_avg"].numel() for s in zero.optim.state.values()))
    assert sum(elements) == 70 and max(elements) < 50, elements
    try:
        zero.state_dict()
    except RuntimeError as error:
        assert f"consolidate_state_dict(to={rank})" in str(error)
    else:
        assert False
    zero.consolidate_state_dict(to=1)
    expected = one.state_dict()
    if rank == 1:
        found = zero.state_dict()
        assert [*found["state"]] == [*range(6)]
        assert found["param_groups"] == expected["param_groups"]
        for i, kept in expected["state"].items():
            for name, value in kept.items():
                assert torch.equal(found["state"][i][name], value.cpu())
    # states of one process go on in many, and the other way round
    again = net()
    again.load_state_dict(whole.state_dict())
    zero = ZeroRedundancyOptimizer(groups(again), torch.optim.Adam, lr=0.7)
    zero.load_state_dict(expected)
    schedule = torch.optim.lr_scheduler.StepLR(zero, 2, 0.5)
    schedule.load_state_dict(schedules[0].state_dict())
    train(whole, one, schedules[0], range(3, 5))
    train(again, zero, schedule, range(3, 5))
    check(whole, again)
zero.add_param_group({"params": [nn.Parameter(torch.ones(3, device=device))], "lr": 1.0})
assert zero.param_groups[2]["lr"] == 1.0 and len(zero.optim.param_groups) == 3
zero.step()
try:
    ZeroRedundancyOptimizer(net().parameters(), torch.optim.SGD, overlap_with_ddp=True)
except NotImplementedError as error:
    assert "call step() after backward()" in str(error)
else:
    assert False
"""


def test_states_of_an_optimizer_by_shares(tmp_path):
    ranks.run(tmp_path, 2, ZERO, DEVICE="cpu")
    ranks.run(tmp_path, 4, ZERO, DEVICE="cpu")


@pytest.mark.slow
def test_states_of_an_optimizer_by_shares_on_gpus(tmp_path):
    given = {"DEVICE": "cuda:{rank}", "PYDEVTENSOR_SIM_GPUS": "2"}
    ranks.run(tmp_path, 2, ZERO, **given)


FSDP = """
import copy
from pydevtensor.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
begin()
device = os.environ["DEVICE"].format(rank=rank)
"""
FSDP += (
    ranks.NETWORK
    + """
torch.manual_seed(0)
whole = Net(nn.LayerNorm, 3).to(device)
whole.frozen.requires_grad_(False)
for case in ({}, {"reshard_after_forward": True}, {"reshard_after_forward": False}, {"mesh": 2}):
    if "mesh" in case:
        case["mesh"] = dist.init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("copies", "shards"))
    one, parts = copy.deepcopy(whole), copy.deepcopy(whole)
    pairs = nn.parallel.DistributedDataParallel(copy.deepcopy(whole), find_unused_parameters=True)
    for block in parts.blocks:
        fully_shard(block, **case)
    assert fully_shard(parts, **case) is parts
    assert isinstance(parts, Net) and isinstance(parts, FSDPModule)
    models = one, pairs, parts
    optimizers = [torch.optim.Adam([p for p in m.parameters() if p.requires_grad], lr=0.01) for m in models]
    for step in range(3):
        torch.manual_seed(step)
        x, y = torch.randint(11, (2, 4 * size)).to(device)
        mine = slice(4 * rank, 4 * rank + 4)
        for optimizer in optimizers:
            optimizer.zero_grad()
        nn.functional.cross_entropy(one(x), y).backward()
        nn.functional.cross_entropy(pairs(x[mine]), y[mine]).backward()
        if step == 1:  # two halves, of which the last one sends
            parts.set_requires_gradient_sync(False)
            a, b = slice(4 * rank, 4 * rank + 2), slice(4 * rank + 2, 4 * rank + 4)
            (nn.functional.cross_entropy(parts(x[a]), y[a]) / 2).backward()
            assert parts.head.weight.grad is None
            parts.set_requires_gradient_sync(True)
            (nn.functional.cross_entropy(parts(x[b]), y[b]) / 2).backward()
        else:
            nn.functional.cross_entropy(parts(x[mine]), y[mine]).backward()
        for (name, p), q, d in zip(one.named_parameters(), parts.parameters(), pairs.parameters()):
            shares = size // 2 if "mesh" in case else size
            assert q.shape == p.shape and q.to_local().shape[0] <= -(-p.shape[0] // shares), name
            if not p.requires_grad:
                assert q.grad is None and not q.requires_grad
                continue
            if "unused" in name:
                assert p.grad is None and not q.grad.full_tensor().any()
                continue
            found = q.grad.full_tensor()
            torch.testing.assert_close(found, p.grad, rtol=1e-5, atol=1e-6, msg=lambda t: f"{case} {name} {t}")
            if step == 0 and "mesh" not in case:
                assert torch.equal(found, d.grad), (case, name, "DDP's bits")
        norms = [nn.utils.clip_grad_norm_(m.parameters(), 0.5) for m in models]
        torch.testing.assert_close(norms[2].full_tensor(), norms[0], rtol=1e-5, atol=1e-6)
        for kind in (1.0, float("inf")):
            norms = [nn.utils.clip_grad_norm_(m.parameters(), 1e9, kind) for m in models]
            torch.testing.assert_close(norms[2].full_tensor(), norms[0], rtol=1e-5, atol=1e-6)
        for optimizer in optimizers:
            optimizer.step()
    for (name, p), (other, q) in zip(one.named_parameters(), parts.named_parameters()):
        assert name == other
        torch.testing.assert_close(q.full_tensor(), p.detach(), rtol=1e-4, atol=1e-5)
        assert q.to_local().data_ptr() == q.data_ptr() and type(q.to_local()) is torch.Tensor
    # the tied weight is one parameter
    assert parts.head.weight is parts.embed.weight
    state = parts.state_dict()
    assert [*state] == [*one.state_dict()]
    for name, p in one.state_dict().items():
        torch.testing.assert_close(state[name].full_tensor(), p, rtol=1e-4, atol=1e-5)
    again = copy.deepcopy(whole)
    for block in again.blocks:
        fully_shard(block, **case)
    fully_shard(again, **case)
    again.load_state_dict(state)
    with torch.no_grad():
        assert torch.equal(again(x), parts(x))
    parts.unshard()
    assert parts.head.weight.shape == (11, 7)
    torch.testing.assert_close(parts.head.weight.detach(), one.head.weight.detach(), rtol=1e-4, atol=1e-5)
    parts.reshard()
    shares = size // 2 if "mesh" in case else size
    assert parts.head.weight.to_local().shape[0] <= -(-11 // shares)

# second derivatives do not pass, an error in forward() leaves the shards
class Fails(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
    def forward(self, x):
        raise KeyError("mine")
fails = fully_shard(Fails())
try:
    fails(torch.ones(1, 2))
except KeyError:
    assert fails.a.weight.to_local().shape[0] <= 1
else:
    assert False
for wrong, text in ((fails, "sharded already"), (nn.ModuleList([nn.Linear(1, 1)]), "has no forward()"), (nn.PReLU(), None)):
    try:
        fully_shard(wrong)
    except ValueError as error:
        assert text in str(error), error
    else:
        assert text is None
scalar = nn.Linear(1, 1)
scalar.s = nn.Parameter(torch.tensor(1.0))
try:
    fully_shard(scalar)
except ValueError as error:
    assert "parameter s has no dimension" in str(error)
else:
    assert False

# types
policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32, torch.float32)
class Typed(nn.Linear):
    def forward(self, x):
        assert x.dtype == self.weight.dtype == torch.bfloat16
        return super().forward(x)
torch.manual_seed(0)
plain = Typed(6, 4).to(device)
typed = fully_shard(copy.deepcopy(plain), mp_policy=policy)
x = torch.randn(2 * size, 6).to(device)
out = typed(x[2 * rank : 2 * rank + 2])
assert out.dtype == torch.float32
out.square().mean().backward()
assert typed.weight.dtype == typed.weight.grad.dtype == torch.float32
nn.functional.linear(x, plain.weight, plain.bias).square().mean().backward()
torch.testing.assert_close(typed.weight.grad.full_tensor(), plain.weight.grad, rtol=0.03, atol=0.03)
assert str(policy.param_dtype) == "torch.bfloat16"
"""
)


def test_parameters_by_shares(tmp_path):
    ranks.run(tmp_path, 2, FSDP, DEVICE="cpu")
    ranks.run(tmp_path, 4, FSDP, DEVICE="cpu")


@pytest.mark.slow
def test_parameters_by_shares_on_gpus(tmp_path):
    given = {"DEVICE": "cuda:{rank}", "PYDEVTENSOR_SIM_GPUS": "2"}
    ranks.run(tmp_path, 2, FSDP, **given)


@pytest.mark.slow
def test_memory_of_a_share(tmp_path):
    # Twelve layers of 1 MB, of which two are whole at a time.
    code = """
    from pydevtensor.distributed.fsdp import fully_shard
    begin()
    device = f"cuda:{rank}"
    def train(sharded):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
        layers = []
        for _ in range(12):
            layer = nn.Linear(512, 512, bias=False).to(device)
            layers.append(fully_shard(layer, reshard_after_forward=True) if sharded else layer)
        net = nn.Sequential(*layers)
        optimizer = torch.optim.Adam(net.parameters())
        for _ in range(2):
            optimizer.zero_grad()
            net(torch.ones(4, 512, device=device)).mean().backward()
            optimizer.step()
        torch.cuda.synchronize(device)
        return torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device)
    torch.cuda.set_device(device)
    (held, most), (all_held, all_most) = train(True), train(False)
    # parameters, gradients and two states: a share of each
    assert held < all_held / size * 1.1, (held, all_held)
    assert most < held + 8 * 2**20, (most, held)
    assert most < 0.75 * all_most, (most, all_most)
    """
    given = {"PYDEVTENSOR_SIM_GPUS": "2"}
    ranks.run(tmp_path, 2, code, **given)


def test_ranks_in_rows_and_columns(tmp_path):
    code = """
    begin()
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("rows", "columns"))
    assert mesh.shape == (2, 2) and mesh.ndim == 2 and mesh.size() == 4 and mesh.size(1) == 2
    assert mesh.get_coordinate() == (rank // 2, rank % 2) and mesh.get_rank() == rank
    assert mesh.get_local_rank("columns") == rank % 2 == mesh.get_local_rank(-1)
    assert dist.get_process_group_ranks(mesh.get_group("rows")) == [rank % 2, rank % 2 + 2]
    assert dist.get_process_group_ranks(mesh["columns"].get_group()) == [rank // 2 * 2, rank // 2 * 2 + 1]
    x = torch.tensor(float(rank))
    dist.all_reduce(x, group=mesh.get_group(0))
    assert x.item() == 2 + 2 * (rank % 2)
    turned = mesh["columns", "rows"]
    assert turned.mesh.tolist() == [[0, 2], [1, 3]] and turned.get_coordinate() == (rank % 2, rank // 2)
    line = dist.DeviceMesh("cpu", [3, 1])
    assert line.get_coordinate() == {3: (0,), 1: (1,)}.get(rank)
    if rank in (1, 3):
        assert dist.get_rank(line.get_group()) == line.get_local_rank() == (rank == 1)
    for wrong, kind, text in (
        (lambda: dist.init_device_mesh("cpu", (3,)), RuntimeError, "of 3 ranks, and there are 4"),
        (lambda: dist.DeviceMesh("cpu", [0, 0]), ValueError, "give each rank once"),
        (lambda: dist.DeviceMesh("cpu", [0, 1], mesh_dim_names=("a", "b")), ValueError, "give 1 different names"),
        (lambda: mesh.get_group("depth"), RuntimeError, "give one of"),
        (lambda: mesh["depth"], KeyError, "is not one of them"),
    ):
        try:
            wrong()
        except kind as error:
            assert text in str(error), error
        else:
            assert False, text
    """
    ranks.run(tmp_path, 4, code)


# --- saved tensors that come back


def test_a_saved_tensor_comes_back(device):
    w, x = torch.full((3,), 2.0, device=device), torch.ones(3, device=device)
    x.requires_grad_()
    calls = []

    def bring():
        calls.append(1)
        return torch.full((3,), 5.0, device=device)

    torch._C._begin_recall(w, bring)
    y, z = x * w, x * w[1]
    torch._C._end_recalls(1)
    after = x * w
    w.zero_()  # the saved tensor has nothing to do with it any more
    (y.sum() + z.sum()).backward()
    assert x.grad.tolist() == [10, 10, 10] and len(calls) == 2
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        after.sum().backward()


@pytest.mark.parametrize(
    ("bring", "error", "text"),
    [
        (lambda: 1 / 0, ZeroDivisionError, "division"),
        (lambda: 3, TypeError, "has to give a Tensor"),
        (lambda: torch.ones(40), RuntimeError, "400 bytes has come back with 160"),
    ],
)
def test_a_saved_tensor_that_does_not_come_back(bring, error, text):
    w, x = torch.ones(100), torch.ones(100, requires_grad=True)
    torch._C._begin_recall(w, bring)
    y = x * w
    torch._C._end_recalls(1)
    for _ in range(2):
        with pytest.raises(error, match=text):
            y.sum().backward(retain_graph=True)
    with pytest.raises(TypeError, match="takes a Tensor and a function"):
        torch._C._begin_recall(3, bring)
