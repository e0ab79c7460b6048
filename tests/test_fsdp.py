"""FullyShardedDataParallel: flat parameters, of which each rank has a part."""

import json
import subprocess
import sys

import pytest
import ranks

HEAD = """
import copy
from functools import partial
from pydevtensor.distributed.fsdp import *
from pydevtensor.distributed.fsdp import FullyShardedDataParallel as FSDP
from pydevtensor.distributed.fsdp.wrap import ModuleWrapPolicy, size_based_auto_wrap_policy
begin()
device = os.environ["DEVICE"].format(rank=rank)
close = partial(torch.testing.assert_close, rtol=1e-5, atol=1e-6)
S, T = ShardingStrategy, StateDictType
"""
HEAD += (
    ranks.NETWORK
    + """
def make(frozen=False):
    torch.manual_seed(0)
    net = Net(nn.BatchNorm1d, ()).to(device)
    net.eval()  # so that the batch of one process is that of all ranks
    return net.requires_grad_(True) if not frozen else freeze(net)
def freeze(net):
    net.frozen.requires_grad_(False)
    return net
def adam(model):
    return torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.01)
def batch(step):
    torch.manual_seed(step)
    return torch.randint(11, (2, 4 * size)).to(device)
mine = slice(4 * rank, 4 * rank + 4)
def backward(model, step, part=slice(None), share=1):
    x, y = batch(step)
    (nn.functional.cross_entropy(model(x[part]), y[part]) / share).backward()
blocks = ModuleWrapPolicy({Block})
"""
)

TRAIN = (
    HEAD
    + """
cases = [
    dict(use_orig_params=True),
    dict(auto_wrap_policy=blocks),
    dict(auto_wrap_policy=blocks, use_orig_params=True, sharding_strategy=S.SHARD_GRAD_OP),
    dict(auto_wrap_policy=partial(size_based_auto_wrap_policy, min_num_params=130), sharding_strategy=S.NO_SHARD),
    dict(auto_wrap_policy=blocks, use_orig_params=True, cpu_offload=CPUOffload(True)),
]
if size == 4:
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("copies", "shards"))
    cases = cases[:2] + [dict(auto_wrap_policy=blocks, sharding_strategy=S.HYBRID_SHARD, device_mesh=mesh)]
for case in cases:
    frozen = case.get("use_orig_params", False)
    one = make(frozen)
    pairs = nn.parallel.DistributedDataParallel(make(frozen), find_unused_parameters=True)
    parts = FSDP(make(frozen), **case)
    assert parts.module.head.weight is parts.module.embed.weight, "tied"
    shares = {S.NO_SHARD: 1, S.HYBRID_SHARD: 2}.get(case.get("sharding_strategy"), size)
    count = sum(p.numel() for p in one.parameters())
    units = len(FSDP.fsdp_modules(parts))
    kept = sum(p.numel() for p in parts.parameters())
    assert kept <= count / shares + units, (case, kept, count)
    models = one, pairs, parts
    optimizers = [adam(m) for m in models]
    for step in range(3):
        for optimizer in optimizers:
            optimizer.zero_grad()
        backward(one, step)
        backward(pairs, step, mine)
        if step == 1:  # two halves, of which the last one sends
            with parts.no_sync():
                backward(parts, step, slice(4 * rank, 4 * rank + 2), 2)
            assert all(p.grad is None for p in parts.parameters())
            backward(parts, step, slice(4 * rank + 2, 4 * rank + 4), 2)
        else:
            backward(parts, step, mine)
        with FSDP.summon_full_params(parts, writeback=False, with_grads=True):
            names = [name for name, _ in parts.named_parameters()]
            assert sorted(names) == sorted(name for name, _ in one.named_parameters()), names
            found = {name: p.grad for name, p in parts.named_parameters()}
        for (name, p), d in zip(one.named_parameters(), pairs.parameters()):
            if "unused" in name or not p.requires_grad:
                assert found[name] is None or not found[name].count_nonzero()
                continue
            close(found[name], p.grad, msg=lambda t: f"{case} {name} {t}")
            if step == 0 and shares == size:
                assert torch.equal(found[name], d.grad), (case, name, "DDP's bits")
        norms = [nn.utils.clip_grad_norm_(m.parameters(), 0.5) for m in models[:2]]
        for kind in (float("inf"), 1.0):
            expected = nn.utils.clip_grad_norm_(one.parameters(), 1e9, kind)
            close(nn.utils.clip_grad_norm_(pairs.parameters(), 1e9, kind), expected)
        close(parts.clip_grad_norm_(0.5).to(device), norms[0])
        for optimizer in optimizers:
            optimizer.step()
    state, expected = parts.state_dict(), one.state_dict()
    assert sorted(state) == sorted(expected)
    for name, value in expected.items():
        assert state[name].shape == value.shape
        close(state[name], value, rtol=1e-4, atol=1e-5)
    # the same parameters in another division, and in one process
    again = FSDP(make(True), use_orig_params=True)
    alone = make()
    assert not [*again.load_state_dict(state)[0], *alone.load_state_dict(state)[0]]
    with torch.no_grad():
        out = parts(batch(9)[0])
        assert torch.equal(again(batch(9)[0]), out), case
        assert torch.equal(alone(batch(9)[0]), out), case
    # states of the optimizer by names
    states = FSDP.optim_state_dict(parts, optimizers[2])
    first = {n: s for n, s in zip(dict(one.named_parameters()), [optimizers[0].state.get(p) for p in one.parameters()])}
    for name, values in states["state"].items():
        if "unused" in name:
            continue
        assert values["step"] == 3
        close(values["exp_avg"], first[name]["exp_avg"].cpu(), rtol=1e-3, atol=1e-6)
    other = adam(again)
    if not case.get("use_orig_params"):
        continue
    other.load_state_dict(FSDP.optim_state_dict_to_load(again, other, states))
    for model, optimizer in (parts, optimizers[2]), (again, other):
        optimizer.zero_grad()
        backward(model, 5, mine)
        optimizer.step()
    for a, b in zip(parts.state_dict().values(), again.state_dict().values()):
        close(a, b)
"""
)


def test_training_by_parts(tmp_path):
    ranks.run(tmp_path, 2, TRAIN, DEVICE="cpu")
    ranks.run(tmp_path, 4, TRAIN, DEVICE="cpu")


@pytest.mark.slow
def test_training_by_parts_on_gpus(tmp_path):
    for count in (2, 4):
        given = {"DEVICE": "cuda:{rank}", "PYDEVTENSOR_SIM_GPUS": str(count)}
        ranks.run(tmp_path, count, TRAIN, **given)


TYPES = (
    HEAD
    + """
# types: a model computes in bfloat16, and its parts stay float32
precision = MixedPrecision(torch.bfloat16, torch.float32, torch.bfloat16)
class Typed(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(6, 8), nn.Linear(8, 4)
        self.register_buffer("shift", torch.ones(4))
    def forward(self, x):
        x = self.inner(x)
        assert x.dtype == self.shift.dtype == torch.bfloat16
        return self.outer(x) + self.shift
def typed():
    torch.manual_seed(0)
    return Typed().to(device)
plain = typed()
torch.manual_seed(1)
x = torch.randn(2 * size, 6).to(device)
def whole(x):
    return plain.outer(plain.inner(x)) + plain.shift
whole(x).square().mean().backward()
for original in (False, True):
    model = FSDP(
        typed(), auto_wrap_policy=ModuleWrapPolicy({nn.Linear}), mixed_precision=precision, use_orig_params=original)
    out = model(x[2 * rank : 2 * rank + 2])
    assert out.dtype == torch.bfloat16
    out.float().square().mean().backward()
    assert all(p.dtype == torch.float32 == p.grad.dtype for p in model.parameters())
    with FSDP.summon_full_params(model, writeback=False, with_grads=True):
        for p, q in zip(model.parameters(), plain.parameters()):
            torch.testing.assert_close(p.grad, q.grad, rtol=0.05, atol=0.05)

# rank 0's values, and modules without memory
torch.manual_seed(rank)
model = FSDP(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).to(device), sync_module_states=True)
torch.manual_seed(0)
expected = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).state_dict()
for name, value in model.state_dict().items():
    assert torch.equal(value.cpu(), expected[name]), name
torch.manual_seed(rank)
with torch.device("meta"):
    empty = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 4))
model = FSDP(
    empty, auto_wrap_policy=ModuleWrapPolicy({nn.Linear}), device_id=torch.device(device), sync_module_states=True)
state = model.state_dict()
every = [None] * size
dist.all_gather_object(every, [v.cpu().tolist() for v in state.values()])
assert every.count(every[0]) == size
assert {str(v.device) for v in state.values()} == {str(torch.empty(0, device=device).device)}

# changes of whole parameters stay, where that is asked for
for writes in (True, False):
    before = [p.detach().clone() for p in model.parameters()]
    with FSDP.summon_full_params(model, writeback=writes):
        for p in model.parameters():
            p.data.mul_(2)
        assert type(p) is nn.Parameter and p.ndim and model[0].weight.shape == (4, 3)
        out = model(torch.ones(1, 3))
    close(model(torch.ones(1, 3)), out) if writes else None
    for p, q in zip(model.parameters(), before):
        assert torch.equal(p, q * 2 if writes else q)
shows = []
with FSDP.summon_full_params(model, writeback=False, rank0_only=True, offload_to_cpu=True):
    shows = [p.ndim for p in model.parameters()]
    assert all(p.device.type == "cpu" for p in model.parameters()) or rank
assert shows == ([2, 1, 2, 1] if rank == 0 else [1, 1]), shows
model.apply(lambda m: nn.init.ones_(m.weight) if isinstance(m, nn.Linear) else None)
assert model.state_dict()["1.weight"].eq(1).all()
"""
)


SCALES = (
    HEAD
    + """
from pydevtensor.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
kind = torch.device(device).type
def rows():
    return fully_shard(nn.Linear(4, 4, bias=False).to(device))
def flat():
    return FSDP(nn.Linear(4, 4, bias=False).to(device), use_orig_params=True)
for make, scaler in (rows, torch.amp.GradScaler(kind)), (flat, ShardedGradScaler(kind, 1024.0)):
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, overflows in enumerate((False, True, False)):
        before = [p.detach().clone() for p in model.parameters()]
        scale = scaler.get_scale()
        optimizer.zero_grad()
        scaler.scale(model(torch.ones(2, 4, device=device)).sum()).backward()
        if overflows and rank == 1:  # in the part of one rank
            gradient = next(model.parameters()).grad
            own = gradient.to_local() if hasattr(gradient, "to_local") else gradient
            own.view(-1)[0] = float("inf")
        scaler.step(optimizer)
        scaler.update()
        stays = all(torch.equal(p, q) for p, q in zip(model.parameters(), before))
        assert stays == overflows, (make, rank, step)
        assert scaler.get_scale() == scale * (0.5 if overflows else 1)
"""
)


def test_a_scaler_leaves_out_a_step_on_all_ranks(tmp_path):
    ranks.run(tmp_path, 2, SCALES, DEVICE="cpu")


@pytest.mark.slow
def test_a_scaler_leaves_out_a_step_on_all_ranks_with_gpus(tmp_path):
    given = {"DEVICE": "cuda:{rank}", "PYDEVTENSOR_SIM_GPUS": "2"}
    ranks.run(tmp_path, 2, SCALES, **given)


def test_types_values_and_whole_parameters(tmp_path):
    ranks.run(tmp_path, 2, TYPES, DEVICE="cpu")


@pytest.mark.slow
def test_types_values_and_whole_parameters_on_gpus(tmp_path):
    given = {"DEVICE": "cuda:{rank}", "PYDEVTENSOR_SIM_GPUS": "2"}
    ranks.run(tmp_path, 2, TYPES, **given)


SAVES = (
    HEAD
    + """
import pydevtensor.distributed.checkpoint as checkpoint
from pydevtensor.distributed.checkpoint.state_dict import *
original = os.environ["ORIGINAL"] == "1"
def sharded(frozen=False):
    return FSDP(make(frozen), auto_wrap_policy=blocks, use_orig_params=original)
model = sharded()
optimizer = adam(model)
if os.environ["SAVES"] == "1":
    for step in range(2):
        optimizer.zero_grad()
        backward(model, step, mine)
        optimizer.step()
    state, states = get_state_dict(model, optimizer)
    assert [*state] == [*make().state_dict()]
    assert state["embed.weight"].to_local().shape[0] <= -(-11 // size)
    checkpoint.save({"model": state, "optim": states}, checkpoint_id="saved")
    whole = get_state_dict(model, optimizer, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    with FSDP.state_dict_type(model, T.FULL_STATE_DICT, FullStateDictConfig(True, True)):
        full = model.state_dict()
    assert FSDP.get_state_dict_type(model).state_dict_config.rank0_only is False
    assert len(full) == (0 if rank else len(state)) == len(whole[0])
    if rank == 0:
        torch.save({"full": full, "whole": whole}, "whole.pt")
    # the part of this rank alone
    with FSDP.state_dict_type(model, T.LOCAL_STATE_DICT):
        local = model.state_dict()
        assert ("_flat_param" in local) is not original
        torch.save(local, f"local_{rank}.pt")
        again = sharded()
        with FSDP.state_dict_type(again, T.LOCAL_STATE_DICT):
            again.load_state_dict(torch.load(f"local_{rank}.pt"))
        try:
            FSDP.optim_state_dict(model, optimizer)
        except NotImplementedError as error:
            assert "own state_dict()" in str(error)
    for p, q in zip(model.parameters(), again.parameters()):
        assert torch.equal(p, q)
    # a state of sharded rows loads as it is
    with FSDP.state_dict_type(model, T.SHARDED_STATE_DICT):
        rows = model.state_dict()
        found = FSDP.optim_state_dict(model, optimizer)
    again = sharded()
    again.load_state_dict(rows)
    for p, q in zip(model.parameters(), again.parameters()):
        assert torch.equal(p, q)
    for missing in (True, False):
        state = model.state_dict()
        state["head.weight"] = torch.ones(3)
        if missing:
            del state["head.weight"], state["embed.weight"], state["blocks.0.up.bias"]
        try:
            again.load_state_dict(state)
        except RuntimeError as error:
            text = str(error)
        wanted = (
            'Missing key(s) in state_dict: "embed.weight", "head.weight", "blocks.0.up.bias"'
            if missing else "size mismatch for embed.weight: copying a param with shape torch.Size([3]) from"
        )
        assert wanted in text, text
    loaded = again.load_state_dict({"head.weight": torch.zeros(11, 7), "embed.weight": torch.zeros(11, 7)}, strict=False)
    assert not again.state_dict()["embed.weight"].any()
    assert torch.equal(again.state_dict()["frozen.weight"], model.state_dict()["frozen.weight"])
else:
    kept = torch.load("whole.pt", weights_only=False)
    state, states = get_state_dict(model, optimizer)
    loaded = {"model": state, "optim": states}
    checkpoint.load(loaded, checkpoint_id="saved")
    set_state_dict(model, optimizer, model_state_dict=loaded["model"], optim_state_dict=loaded["optim"])
    other = sharded()
    second = adam(other)
    assert str(set_state_dict(other, second, model_state_dict=kept["whole"][0], optim_state_dict=kept["whole"][1])) == "<All keys matched successfully>"
    third = sharded()
    third.load_state_dict(kept["full"])
    for a, b, c in zip(model.parameters(), other.parameters(), third.parameters()):
        assert torch.equal(a, b) and torch.equal(b, c)
    for p, q in zip(model.parameters(), other.parameters()):
        a, b = optimizer.state[p], second.state[q]
        assert all(torch.equal(a[key], b[key]) for key in ("step", "exp_avg", "exp_avg_sq"))
        assert a["step"] == 2
    backward(model, 7, mine)
    backward(other, 7, mine)
    optimizer.step()
    second.step()
    for a, b in zip(model.parameters(), other.parameters()):
        assert torch.equal(a, b)
"""
)


@pytest.mark.parametrize("original", [pytest.param("0", marks=pytest.mark.slow), "1"])
def test_checkpoints_are_read_by_other_numbers_of_ranks(tmp_path, original):
    given = {"DEVICE": "cpu", "ORIGINAL": original}
    ranks.run(tmp_path, 2, SAVES, SAVES="1", **given)
    for count in (3, 1):
        ranks.run(tmp_path, count, SAVES, SAVES="0", **given)


def test_memory_of_a_part(tmp_path):
    # Ten units of 1 MB, of which one is whole at a time, with its gradients.
    code = (
        HEAD
        + """
torch.cuda.set_device(device)
def train(wrap, steps=2):
    torch.cuda.empty_cache()
    net = nn.Sequential(*[nn.Linear(512, 512, bias=False) for _ in range(10)]).to(device)
    if wrap:
        net = FSDP(net, auto_wrap_policy=ModuleWrapPolicy({nn.Linear}), use_orig_params=True)
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats(device)
        held = torch.cuda.memory_allocated(device)
        loss = net(torch.ones(4, 512, device=device)).mean()
        torch.cuda.synchronize()
        forward = torch.cuda.max_memory_allocated(device) - held
        loss.backward()
        torch.cuda.synchronize()
        most = torch.cuda.max_memory_allocated(device) - held
        optimizer.step()
    # The thread that makes the calls lets go of one's tensors before the next one.
    dist.all_reduce(torch.ones(1, device=device), async_op=True).wait()
    torch.cuda.synchronize(device)
    return torch.cuda.memory_allocated(device), forward, most
MB = 2**20
(held, forward, most), (all_held, _, all_most) = train(True), train(False)
# parameters, gradients and two states: a part of each
assert all_held == pytest.approx(40 * MB, rel=0.02), all_held
assert held == pytest.approx(40 * MB / size, rel=0.02), held
# a unit and what is sent of it, and in the backward pass its gradients and all ranks' parts
assert forward < 3 * MB, forward
assert most < 10 * MB / size + 6 * MB, most
assert all_most > 10 * MB, all_most
"""
    ).replace("import copy", "import copy, pytest")
    ranks.run(tmp_path, 2, code, DEVICE="cuda:{rank}", PYDEVTENSOR_SIM_GPUS="2")


def test_units_have_a_price_on_a_simulated_cluster(tmp_path):
    program = tmp_path / "train.py"
    program.write_text(CLUSTER)
    done = subprocess.run(
        [sys.executable, "-m", "pydevtensor", "launch", "--nodes=2", "--gpus=1"]
        + ["--card=h100", "--link=ib400", "--timeline=trace.json", "train.py"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {}
    for line in done.stdout.splitlines():
        place, _, rest = line.partition(" ")
        if place.startswith("train.py:"):
            call, ranks, calls = rest.split()[:3]
            rows[call] = rows.get(call, 0) + int(calls)
            assert ranks == "2", line
    # three layers and the rest, in both passes but for the outermost, 2 steps
    assert rows["all_gather_into_tensor"] == 2 * (4 + 3), done.stdout
    assert rows["reduce_scatter_tensor"] == 2 * 4, done.stdout
    assert "2 steps" in done.stdout and "MiB on rank" in done.stdout
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {event["name"].split()[0] for event in trace}
    assert {"all_gather_into_tensor", "reduce_scatter_tensor"} <= names, names


CLUSTER = """
import torch, torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

dist.init_process_group("nccl")
layers = [nn.Linear(256, 256) for _ in range(3)]
model = FSDP(nn.Sequential(nn.LayerNorm(256), *layers), auto_wrap_policy=ModuleWrapPolicy({nn.Linear}), device_id=0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    loss = model(torch.ones(4, 256)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
