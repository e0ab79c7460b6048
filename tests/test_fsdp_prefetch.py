"""Parameters by shares: gathered ahead, kept, and in the host's memory."""

import os
import subprocess
import sys

import pytest
import ranks

HEAD = """
import copy
from pydevtensor.distributed.fsdp import *
from pydevtensor.distributed.fsdp import FullyShardedDataParallel as FSDP
begin()
device = os.environ["DEVICE"].format(rank=rank)
order = []
gathers = dist.all_gather_into_tensor
def count(whole, part, *more, **named):
    order.append(part.numel())
    return gathers(whole, part, *more, **named)
dist.all_gather_into_tensor = count
def make():
    torch.manual_seed(0)
    # Rows of one number, two and three: what is gathered says which layer's it is.
    layers = [nn.Linear(2, 6, bias=False), nn.Linear(6, 10, bias=False), nn.Linear(10, 2, bias=False)]
    return nn.Sequential(*layers).to(device)
SIZES = [6, 30, 10]
def shard(net, **options):
    for layer in net:
        fully_shard(layer, **options)
    return fully_shard(net, **options)
def names(found):
    return "".join("abc"[SIZES.index(n)] for n in found if n in SIZES)
def grads(net):
    return [p.grad.full_tensor() for p in net.parameters()]
def step(net, optimizer=None):
    net.zero_grad()
    order.clear()
    net(x).square().mean().backward()
    if optimizer:
        optimizer.step()
torch.manual_seed(1)
x = torch.randn(4, 2).to(device)
plain = make()
plain(x).square().mean().backward()
want = [p.grad for p in plain.parameters()]
def same(net):
    for g, w in zip(grads(net), want, strict=True):
        assert torch.equal(g, w) or torch.allclose(g, w, rtol=1e-6), (g, w)
"""

ORDER = (
    HEAD
    + """
# By themselves, from the second pass on; in the backward pass, always.
net = shard(make())
for i in range(3):
    step(net)
    assert names(order) == "abccb", order  # the gradient of x, which needs a, is not asked for
    same(net)
# Named ones.
for forward, backward, wanted in (
    ({0: [1, 2]}, {2: [1, 0]}, "abccb"),
    ({0: [2, 1]}, {2: [0, 1]}, "acbcb"),
    ({0: []}, {2: []}, "abccb"),
):
    net = shard(make())
    for at, others in forward.items():
        net[at].set_modules_to_forward_prefetch([net[i] for i in others])
    for at, others in backward.items():
        net[at].set_modules_to_backward_prefetch([net[i] for i in others])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    one = make()
    other = torch.optim.SGD(one.parameters(), lr=0.1)
    for i in range(3):
        step(net, optimizer)
        assert names(order) == wanted, (order, wanted)
        one.zero_grad()
        one(x).square().mean().backward()
        other.step()
    for p, q in zip(net.parameters(), one.parameters(), strict=True):
        torch.testing.assert_close(p.full_tensor(), q.detach(), rtol=1e-6, atol=1e-7)
for wrong in ([nn.Linear(1, 1)], ["x"], [None]):
    for call in (net.set_modules_to_forward_prefetch, net.set_modules_to_backward_prefetch):
        try:
            call(wrong)
        except ValueError as error:
            assert "which is not sharded" in str(error), error
        else:
            assert False
try:
    net.set_modules_to_forward_prefetch(net[0])
except TypeError:
    pass
else:
    assert False

# What a pass has gathered ahead and not used is gathered again, once its rows have changed.
class Skips(nn.Sequential):
    skips = False
    def forward(self, x):
        return x @ torch.ones(2, 2, device=device) if self.skips else super().forward(x)
net = shard(Skips(*make()))
step(net)
for writes in (lambda p: p.mul_(2), lambda p: p.data.mul_(2)):
    net.skips = True
    with torch.no_grad():
        net(x)
        for p in net.parameters():
            writes(p)
    net.skips = False
    with torch.no_grad():
        out = net(x)
        whole = x
        for layer in net:
            whole = whole @ layer.weight.full_tensor().t()
    torch.testing.assert_close(out, whole)

# Not the rows of an earlier pass, where a module is called more than once, or twice before backward().
class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
    def forward(self, x):
        return self.a(self.b(self.a(torch.tanh(self.b(x)))))
torch.manual_seed(0)
one = Twice().to(device)
two = copy.deepcopy(one)
for each in (two.a, two.b, two):
    fully_shard(each)
for i in range(2):
    for model in (one, two):
        model.zero_grad()
        (model(x).square().mean() + model(x * 2).square().mean()).backward()
    for p, q in zip(one.parameters(), two.parameters(), strict=True):
        torch.testing.assert_close(q.grad.full_tensor(), p.grad)
# With checkpoints, whose second forward() is in the backward pass.
from pydevtensor.utils.checkpoint import checkpoint
class Kept(nn.Sequential):
    def forward(self, x):
        for layer in self:
            x = checkpoint(layer, x, use_reentrant=False)
        return x
net = shard(Kept(*make()))
for i in range(2):
    step(net)
    same(net)
"""
)


def test_the_order_of_gathers(tmp_path):
    ranks.run(tmp_path, 2, ORDER, DEVICE="cpu")


REDUCES = (
    HEAD
    + """
events = []
class Seen:
    def __init__(self, work, name):
        self.work, self.name = work, name
    def wait(self):
        events.append(self.name)
        return self.work.wait()
reduces = dist.reduce_scatter_tensor
def reduce(own, flat, *more, **named):
    name = names([own.numel()])
    events.append(name.upper())
    return Seen(reduces(own, flat, *more, **named), name)
dist.reduce_scatter_tensor = reduce
def tell(layer, name):
    def outer(module, given, out):
        if out.requires_grad:  # its gradient has come: the layer's turn
            out.register_hook(lambda g: events.append(name))
    layer.register_forward_hook(outer)
net = make()
for i in range(3):
    tell(net[i], str(i))
net = shard(net)
for i in range(3):
    events.clear()
    step(net)
    # From the second pass on, a layer's gradients are sent while the next one's come.
    assert "".join(events) == ("2C1cB0bAa" if i else "2Cc1Bb0Aa"), events
    same(net)
# A part of the graph alone, and twice.
events.clear()
net.zero_grad()
loss = net(x).square().mean()
(found,) = torch.autograd.grad(loss, [net[2].weight], retain_graph=True)
torch.testing.assert_close(found.full_tensor(), want[2])
loss.backward(retain_graph=True)
same(net)
net.zero_grad()
loss.backward()
same(net)
# Frozen parameters, and a pass that does not reach all layers.
net[1].weight.requires_grad_(False)
net.zero_grad()
step(net)
assert net[1].weight.grad is None
for i in (0, 2):
    torch.testing.assert_close(net[i].weight.grad.full_tensor(), want[i])
"""
)


@pytest.mark.parametrize("place", ["cpu", "cuda:{rank}"])
def test_gradients_are_sent_while_others_are_computed(tmp_path, place):
    ranks.run(tmp_path, 2, REDUCES, DEVICE=place, PYDEVTENSOR_SIM_GPUS="2")


KEEPS = (
    HEAD
    + """
# unshard(): the parameters are whole until the end of the next forward().
net = shard(make())
for wait in (True, False):
    handle = net[0].unshard(async_op=True)
    assert isinstance(handle, UnshardHandle)
    if wait:
        assert net[0].weight.to_local().shape[0] == 3
        assert handle.wait() is None and net[0].weight.shape == (6, 2)
        assert torch.equal(net[0].weight.detach(), plain[0].weight.detach())
        handle.wait()
    order.clear()
    out = net(x)
    assert names(order) == "bc" and net[0].weight.to_local().shape[0] == 3
    net.zero_grad()
    out.square().mean().backward()
    same(net)
assert net[1].unshard() is None and net[1].weight.shape == (10, 6)
net[1].weight.square().sum().backward()  # a loss of its own, outside of forward()
net[1].reshard()
assert net[1].weight.to_local().shape[0] == 5
torch.testing.assert_close(grads(net)[1], 2 * plain[1].weight.detach() + want[1])
# An update between unshard() and forward() is seen.
net[1].unshard()
with torch.no_grad():
    for p in net[1]._shards.leaves:
        p.mul_(3)
with torch.no_grad():
    wanted = ((x @ plain[0].weight.t()) @ (3 * plain[1].weight).t()) @ plain[2].weight.t()
    torch.testing.assert_close(net(x), wanted)

# set_reshard_after_forward(False): one gather for all passes without gradients.
net = shard(make())
net.set_reshard_after_forward(False)
order.clear()
with torch.no_grad():
    for i in range(3):
        out = net(x)
assert names(order) == "abc", order
step(net)
assert names(order) == "", order
same(net)
step(net)
assert names(order) == "abc", order
try:
    net.set_reshard_after_forward(1)
except ValueError as error:
    assert "give True or False" in str(error)
else:
    assert False
# set_reshard_after_backward(False): one gather for several passes, until a step.
for forward in (True, False):
    net = shard(make())
    net.set_reshard_after_forward(forward, recurse=True)
    net.set_reshard_after_backward(False)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
    step(net)
    assert names(order) == ("abccb" if forward else "abc"), order
    step(net, optimizer)
    assert names(order) == ("acb" if forward else ""), order
    same(net)
    step(net)
    assert names(order) == ("abccb" if forward else "abc"), order
    net.set_reshard_after_backward(True)
    step(net)
    step(net)
    assert names(order) == ("abccb" if forward else "abc"), order
    same(net)

# Gradients of several passes, and what they are divided by.
net = shard(make())
net.set_requires_gradient_sync(False)
net(x).square().mean().backward()
assert all(p.grad is None for p in net.parameters())
net.set_requires_gradient_sync(True)
net.set_is_last_backward(True)
net(x).square().mean().backward()
for g, w in zip(grads(net), want):
    torch.testing.assert_close(g, 2 * w)
net = shard(make())
for each in (net, *net):
    each.set_gradient_divide_factor(1.0)
step(net)
for g, w in zip(grads(net), want):
    torch.testing.assert_close(g, size * w)
net[1].set_unshard_in_backward(False)
step(net)
assert sorted(names(order)) == sorted("abccb")
# Rows that other ranks have too: reduced over these later.
mesh = dist.init_device_mesh("cpu", (size, 1), mesh_dim_names=("copies", "shards"))
net = shard(make(), mesh=mesh)
net.set_requires_all_reduce(False)
net(x * (rank + 1)).square().mean().backward()
assert all(p.grad is None for p in net.parameters())
net.set_requires_all_reduce(True)
net(x * (rank + 1)).square().mean().backward()
squares = sum((r + 1) ** 2 for r in range(size)) / size
for g, w in zip(grads(net), want):
    torch.testing.assert_close(g, 2 * squares * w)

# Other methods.
class Net(nn.Linear):
    def twice(self, x):
        return None if hasattr(self.weight, "to_local") else 2 * self(x)
net = fully_shard(Net(2, 4).to(device))
assert net.twice(x) is None
register_fsdp_forward_method(net, "twice")
assert net.twice(x).shape == (4, 4)
try:
    register_fsdp_forward_method(net, "thrice")
except ValueError as error:
    assert "has no method thrice" in str(error)
else:
    assert False
"""
)


def test_parameters_stay_whole_where_that_is_asked_for(tmp_path):
    ranks.run(tmp_path, 2, KEEPS, DEVICE="cpu")


OFFLOADS = (
    HEAD
    + """
assert CPUOffloadPolicy().pin_memory and isinstance(CPUOffloadPolicy(), OffloadPolicy)
policies = [OffloadPolicy(), CPUOffloadPolicy(), CPUOffloadPolicy(pin_memory=False)]
gpu = device != "cpu"
for policy in policies:
    offloads = policy is not policies[0]
    for start in {device, "cpu"} if offloads else {device}:
        mesh = dist.init_device_mesh(torch.device(device).type, (size,))
        net, one = shard(make().to(start), mesh=mesh, offload_policy=policy), make()
        optimizers = [torch.optim.Adam(m.parameters(), lr=0.1) for m in (net, one)]
        for i in range(2):
            for model, optimizer in zip((net, one), optimizers):
                model.zero_grad()
                out = model(x)
                assert out.device.type == torch.device(device).type
                out.square().mean().backward()
                if model is net:
                    places = {t.device.type for p in net.parameters() for t in (p, p.grad)}
                    assert places == {"cpu" if offloads else torch.device(device).type}
                    pinned = {p.is_pinned() for p in net.parameters()}
                    assert pinned == {gpu and offloads and policy.pin_memory}, (policy, pinned)
                optimizer.step()
        for p, q in zip(net.parameters(), one.parameters(), strict=True):
            torch.testing.assert_close(p.full_tensor().to(device), q.detach(), rtol=1e-5, atol=1e-6)
"""
)


def test_rows_in_the_memory_of_the_host(tmp_path):
    ranks.run(tmp_path, 2, OFFLOADS, DEVICE="cpu")


def on_gpus(backend, schedule):
    return {
        "BACKEND": backend,
        "DEVICE": "cuda:0",
        "PYDEVTENSOR_SIM_GPUS": "1",
        "PYDEVTENSOR_SIM_SCHEDULE": schedule,
        "PYDEVTENSOR_SIM_RACES": "error",
    }


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["nccl", "gloo"])
@pytest.mark.parametrize("schedule", ["eager", "lazy", "random:3"])
@pytest.mark.parametrize("code", [ORDER, KEEPS, OFFLOADS], ids=["o", "k", "h"])
def test_the_same_on_gpus(tmp_path, code, schedule, backend):
    ranks.run(tmp_path, 2, code, **on_gpus(backend, schedule))


def test_the_order_of_gathers_on_gpus(tmp_path):
    ranks.run(tmp_path, 2, ORDER, **on_gpus("nccl", "lazy"))
    ranks.run(tmp_path, 2, OFFLOADS, **on_gpus("nccl", "random:7"))


CLOCK = """
import os, torch, torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
dist.init_process_group("nccl")
rank, local = dist.get_rank(), int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
def step(net, x):
    torch.cuda.synchronize()
    dist.barrier()
    begin = torch.cuda.clock()
    net(x).square().mean().backward()
    torch.cuda.synchronize()
    return torch.cuda.clock() - begin
def run(ahead):
    torch.manual_seed(0)
    net = nn.Sequential(*[nn.Linear(512, 512, bias=False) for _ in range(4)]).cuda()
    if ahead in ("wrapped", "wrapped alone"):
        net = FullyShardedDataParallel(
            net, auto_wrap_policy=ModuleWrapPolicy({nn.Linear}), forward_prefetch=ahead == "wrapped",
            **({} if ahead == "wrapped" else {"backward_prefetch": None}))
    else:
        for layer in net:
            fully_shard(layer)
        fully_shard(net)
    if isinstance(ahead, int):
        net.set_modules_to_forward_prefetch(net[:ahead])
        for i, layer in enumerate(net):
            layer.set_modules_to_forward_prefetch(net[i + 1 : i + 1 + ahead])
            layer.set_modules_to_backward_prefetch(net[max(i - ahead, 0) : i][::-1])
    x = torch.ones(2048, 512, device="cuda")
    step(net, x)
    time = step(net, x)
    grads = [p.grad for p in net.parameters()]
    return time, torch.cat([(g.to_local() if hasattr(g, "to_local") else g).reshape(-1) for g in grads])
times, grads = zip(*[run(how) for how in (0, 1, "the order", "wrapped alone", "wrapped")])
assert all(torch.equal(g, grads[0]) for g in grads)
os.write(1, f"times {rank} {times}\\n".encode())
"""


@pytest.mark.slow
def test_gathers_overlap_with_computing_on_the_clock(tmp_path):
    program = tmp_path / "train.py"
    program.write_text(CLOCK)
    cluster = ["--nodes=2", "--gpus=1", "--card=h100", "--link=ib400"]
    done = subprocess.run(
        [sys.executable, "-m", "pydevtensor", "launch", *cluster, str(program)],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    row = next(row for row in done.stdout.splitlines() if row.startswith("times 0"))
    alone, one, order, apart, wrapped = eval(row.partition("0 ")[2])
    assert one < 0.92 * alone and order < 0.92 * alone, row
    assert wrapped < 0.92 * apart, row
