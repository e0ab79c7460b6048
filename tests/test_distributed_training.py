"""Modules whose gradients are the mean of several processes', and the data they read."""

import pytest
import ranks

import pydevtensor as torch
from pydevtensor.utils.data import DataLoader, DistributedSampler

# Trains a module on a part of each batch, and beside it a copy on all of it: the same
# parameters come out, to rounding.
TRAINING = """
import copy
from pydevtensor.distributed.algorithms.ddp_comm_hooks import default_hooks
case = {name}
device = os.environ["DEVICE"].format(rank=rank)
dtype = getattr(torch, os.environ["DTYPE"])
torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 300), nn.Linear(300, 300)
        self.last = nn.Linear(300, 2)
        self.unused = nn.Linear(3, 3, bias=False)

    def forward(self, x, use=True):
        x = torch.tanh(self.first(x))
        if use:
            x = torch.tanh(self.second(x))
        return self.last(x) if not {all} else self.last(x) + 0.01 * self.unused.weight.sum()

whole = Net().to(device, dtype)
parts = nn.parallel.DistributedDataParallel(copy.deepcopy(whole), {options})
if {hook}:
    parts.register_comm_hook(None, {hook})
optimizers = [
    torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9) for m in (whole, parts)]
for step in range(3):
    torch.manual_seed(step)
    x = torch.randn(4 * size, 6).to(device, dtype)
    for optimizer in optimizers:
        optimizer.zero_grad({to_none})
    use = not {sometimes} or step != 1
    whole(x, use).square().mean().backward()
    half = x[rank * 4 : rank * 4 + 4]
    if {accumulates}:
        with parts.no_sync():
            (parts(half[:2], use).square().mean() / 2).backward()
        (parts(half[2:], use).square().mean() / 2).backward()
    else:
        parts(half, use).square().mean().backward()
    for optimizer in optimizers:
        optimizer.step()
    halves = dtype != torch.float32 or "compress" in case
    tolerance = 0.06 if halves else 3e-6
    for (name, a), b in zip(whole.named_parameters(), parts.parameters()):
        assert (a.grad is None) == (b.grad is None), (case, step, name)
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance, msg=lambda text: f"{case}: {text}")
everyone = [None] * size
dist.all_gather_object(everyone, [p.detach().cpu().double().sum().item() for p in parts.parameters()])
assert everyone == everyone[:1] * size, case
"""
CASES = {
    "plain": {},
    "small buckets": {"options": "bucket_cap_mb=0.01"},
    "views": {"options": "gradient_as_bucket_view=True"},
    "views, zeroed": {"options": "gradient_as_bucket_view=True", "to_none": "False"},
    "accumulated": {"accumulates": "True"},
    "accumulated views": {
        "accumulates": "True",
        "options": "gradient_as_bucket_view=True, bucket_cap_mb=0.01",
    },
    "unused": {
        "options": "find_unused_parameters=True, bucket_cap_mb=0.01",
        "all": "False",
        "sometimes": "True",
    },
    "static graph": {"options": "static_graph=True", "all": "False"},
    "hook": {
        "hook": "default_hooks.allreduce_hook",
        "options": "find_unused_parameters=True, bucket_cap_mb=0.01",
        "all": "False",
        "sometimes": "True",
    },
    "hook that compresses": {
        "hook": "default_hooks.bf16_compress_hook",
        "options": "gradient_as_bucket_view=True",
    },
}


def train(tmp_path, names, size=2, device="cpu", dtype="float32", **environment):
    """One case after the other, in the same processes."""
    program = "begin()\n"
    for name in names:
        given = {"options": "", "all": "True", "sometimes": "False", "to_none": "True"}
        given |= {
            "accumulates": "False",
            "hook": "None",
            **CASES[name],
            "name": repr(name),
        }
        code = TRAINING
        for word, value in given.items():
            code = code.replace(f"{{{word}}}", value)
        program += code
    ranks.run(tmp_path, size, program, DEVICE=device, DTYPE=dtype, **environment)


def test_gradients_are_those_of_one_process(tmp_path):
    train(tmp_path, CASES)


@pytest.mark.slow
@pytest.mark.parametrize("given", [{"size": 4}, {"dtype": "bfloat16"}])
def test_gradients_of_four_ranks_and_of_halves(tmp_path, given):
    train(tmp_path, CASES, **given)


@pytest.mark.parametrize(
    "schedule",
    ["random:1", *(pytest.param(s, marks=pytest.mark.slow) for s in ("eager", "lazy"))],
)
def test_gradients_on_gpus(tmp_path, schedule):
    train(
        tmp_path,
        ("plain", "views"),
        device="cuda:{rank}",
        PYDEVTENSOR_SIM_GPUS="2",
        PYDEVTENSOR_SIM_SCHEDULE=schedule,
    )


def test_hooks_for_communication(tmp_path):
    code = """
    from pydevtensor.distributed.algorithms.ddp_comm_hooks import default_hooks
    begin()
    def gradients(hook, state=None, join=False):
        net = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 1))
        for p in net.parameters():
            torch.nn.init.constant_(p, 0.25)
        ddp = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=1e-5)
        ddp.register_comm_hook(state, hook)
        with ddp.join(enable=join):
            for step in range(1 + rank * join):
                ddp.zero_grad()
                ddp(torch.full((1, 4), rank + 1.0)).sum().backward()
        return [p.grad for p in net.parameters()]
    seen = []
    def own(state, bucket):
        assert state == "state" and bucket.buffer().dtype == torch.float32
        assert [g.shape for g in bucket.gradients()] == [p.shape for p in bucket.parameters()]
        seen.append((bucket.index(), bucket.is_last()))
        if rank == 0:
            assert bucket.gradients()[0].flatten()[0] == bucket.buffer()[0]
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        # then() runs beside the other calls, and makes one itself
        def twice(done):
            total = done.value()[0]
            dist.all_reduce(total)
            return total * 10
        return work.get_future().then(twice)
    def raises(*given):
        raise KeyError("mine")
    plain = gradients(default_hooks.allreduce_hook)
    assert plain[-1].item() == 1 and plain[0][0, 0].item() == 0.375, plain
    for sum, mean in zip(gradients(own, "state"), plain):
        torch.testing.assert_close(sum, mean * 2 * 10 * size)
    assert [i for i, last in seen] == [*range(len(seen))] and len(seen) > 1
    assert [last for i, last in seen] == [False] * (len(seen) - 1) + [True]
    for hook in (default_hooks.fp16_compress_hook, default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook)):
        for found, expected in zip(gradients(hook), plain):
            assert found.dtype == torch.float32
            torch.testing.assert_close(found, expected)  # exact in halves
    joined = gradients(default_hooks.allreduce_hook, join=True)
    assert joined[-1].item() == (0.5 if rank else 1), joined
    for wrong, error, text in (
        (lambda s, b: b.buffer(), RuntimeError, "return a torch.futures.Future"),
        (lambda s, b: torch.futures.collect_all([]), RuntimeError, "has \\[\\]; give a Tensor"),
        (raises, KeyError, "mine"),
        (3, TypeError, "hook is 3"),
    ):
        try:
            gradients(wrong)
        except error as found:
            import re
            assert re.search(text, str(found)), found
        else:
            assert False, text
    ddp = nn.parallel.DistributedDataParallel(nn.Linear(1, 1))
    ddp.register_comm_hook(None, own)
    try:
        ddp.register_comm_hook(None, own)
    except RuntimeError as found:
        assert "only be called once" in str(found)
    else:
        assert False
    """
    ranks.run(tmp_path, 2, code)


def test_rank_0_gives_parameters_and_buffers(tmp_path):
    code = """
    begin()
    torch.manual_seed(rank)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    net[1].running_mean.fill_(rank)
    ddp = nn.parallel.DistributedDataParallel(net)
    ddp(torch.randn(5, 3)).sum().backward()
    ddp(torch.randn(5, 3))
    print([t.double().sum().item() for t in [net[0].weight, net[0].bias]])
    ddp.eval()
    ddp(torch.ones(1, 3))  # gives rank 0's buffers
    print(net[1].running_mean.tolist(), [*ddp.state_dict()][0])
    """
    first, second = ranks.run(tmp_path, 2, code)
    assert first == second and "module.0.weight" in first


SYNC = """
begin()
device, dtype = os.environ["DEVICE"].format(rank=rank), getattr(torch, os.environ["DTYPE"])
torch.manual_seed(0)
sizes = [3, 0, 5][:size] if {empty} else [3, 5]
x = (torch.randn(sum(sizes), 4, 6) * 3 + 10).to(device, dtype)
weights = torch.randn(sum(sizes), 4, 6).to(device, dtype)
begins = sum(sizes[:rank])
part = slice(begins, begins + sizes[rank])
for options in ({}, {"momentum": None}, {"affine": False}, {"track_running_stats": False}):
    whole = nn.BatchNorm1d(4, **options).to(device)
    sync = nn.SyncBatchNorm(4, **options).to(device)
    for step in range(2):
        a, b = x.clone().requires_grad_(), x[part].clone().requires_grad_()
        expected, found = whole(a), sync(b)
        assert found.dtype == dtype
        (expected * weights).sum().backward()
        (found * weights[part]).sum().backward()
        close = dict(rtol=2e-4, atol=2e-5) if dtype == torch.float32 else dict(rtol=0.02, atol=0.02)
        torch.testing.assert_close(found, expected[part], **close)
        torch.testing.assert_close(b.grad, a.grad[part], **close)
    for name, value in whole.named_buffers():
        torch.testing.assert_close(dict(sync.named_buffers())[name], value)
    if sync.affine:
        for p, q in zip(sync.parameters(), whole.parameters()):
            dist.all_reduce(p.grad)
            torch.testing.assert_close(p.grad, q.grad, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(sync.eval()(x), whole.eval()(x), **close)
"""


def test_statistics_of_all_ranks(tmp_path):
    given = {"DEVICE": "cpu", "DTYPE": "float32"}
    ranks.run(tmp_path, 2, SYNC.replace("{empty}", "False"), **given)
    ranks.run(tmp_path, 3, SYNC.replace("{empty}", "True"), **given)
    given = {"DEVICE": "cuda:{rank}", "PYDEVTENSOR_SIM_GPUS": "2", "DTYPE": "float32"}
    ranks.run(tmp_path, 2, SYNC.replace("{empty}", "False"), **given)


def test_ranks_with_fewer_batches(tmp_path):
    code = """
    begin()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1))
    ddp = nn.parallel.DistributedDataParallel(net)
    with ddp.join(divide_by_initial_world_size={all}):
        for step in range(1 + 2 * rank):
            ddp.zero_grad()
            ddp(torch.tensor([[1.0, 2.0], [0.0, 1.0]])).square().sum().backward()
            grad = net[1].weight.grad.item()
            with torch.no_grad():
                net[0].bias += grad
    print(net[0].bias.item(), net[1].running_mean.item(), grad)
    """
    for all_, ratio in (("True", 0.5), ("False", 1.0)):
        first, second = ranks.run(tmp_path, 2, code.replace("{all}", all_))
        assert first.split()[:2] == second.split()[:2]
        last, of_both = float(second.split()[2]), float(first.split()[2])
        assert last == pytest.approx(ratio * of_both, rel=1e-5)


def test_a_join_that_ends_early(tmp_path):
    code = """
    begin()
    ddp = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    try:
        with ddp.join(throw_on_early_termination=True):
            for step in range(1 + rank):
                ddp(torch.ones(1, 2)).sum().backward()
    except RuntimeError as error:
        assert "another rank has no more batches" in str(error)
    else:
        assert False
    """
    ranks.run(tmp_path, 2, code)


def test_gradients_that_do_not_come(tmp_path):
    code = """
    begin()
    net = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2)})
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
        def forward(self, x):
            return self.a(x)
    ddp = nn.parallel.DistributedDataParallel(Net())
    ddp(torch.ones(1, 2))  # without a backward pass
    ddp(torch.ones(1, 2)).sum().backward()
    try:
        ddp(torch.ones(1, 2))
    except RuntimeError as error:
        assert "no gradient came for b.weight, b.bias" in str(error), error
        assert "find_unused_parameters=True" in str(error)
    else:
        assert False
    """
    ranks.run(tmp_path, 2, code)


# --- DistributedSampler: what PyTorch 2.13 gives


def test_gradients_that_are_not_sent(tmp_path):
    """As in PyTorch, which does not warn: its numbers."""
    code = """
    import warnings
    begin()
    def gradient(loss, **named):
        net.zero_grad()
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            loss.backward(**named)
        said.extend(str(each.message) for each in found)
        return net.weight.grad.tolist()
    net, x, said = nn.Linear(2, 1), torch.full((1, 2), 2.0 * rank), []
    ddp = nn.parallel.DistributedDataParallel(net)
    assert gradient(ddp(x).sum()) == [[1, 1]] and not said
    assert gradient(ddp.module(x).sum()) == [[2 * rank] * 2]
    assert len(said) == 1 and "not computed by calling this module" in said[0]
    ddp(x)
    assert gradient(ddp.module(x).sum()) == [[1, 1]]
    loss = ddp(x).sum()
    assert gradient(loss, retain_graph=True) == [[1, 1]]
    assert gradient(loss) == [[2 * rank] * 2] and len(said) == 1  # once
    """
    ranks.run(tmp_path, 2, code)


def test_parts_of_a_data_set():
    def parts(n, **given):
        return [
            [*DistributedSampler(range(n), num_replicas=3, rank=r, **given)]
            for r in range(3)
        ]

    assert parts(7, shuffle=False) == [[0, 3, 6], [1, 4, 0], [2, 5, 1]]
    assert parts(7, shuffle=False, drop_last=True) == [[0, 3], [1, 4], [2, 5]]
    assert parts(1, shuffle=False) == [[0], [0], [0]]
    assert parts(7) == [[4, 3, 1], [0, 2, 4], [5, 6, 0]]
    assert parts(7, seed=5, drop_last=True) == [[1, 2], [0, 6], [4, 5]]
    assert sorted(n for part in parts(99, seed=3) for n in part) == [*range(99)]


def test_the_order_is_pytorchs():
    assert [*DistributedSampler(range(11), 2, 0)] == [10, 4, 5, 2, 9, 6]
    assert [*DistributedSampler(range(11), 2, 1)] == [0, 3, 8, 1, 7, 10]


def test_a_new_order_in_each_epoch():
    sampler = DistributedSampler(range(50), 2, 1)
    first = [*sampler]
    assert [*sampler] == first and len(sampler) == 25
    sampler.set_epoch(1)
    assert [*sampler] != first
    loader = DataLoader(torch.arange(50), 5, sampler=sampler)
    assert [n for batch in loader for n in batch.tolist()] == [*sampler]


def test_wrong_parts():
    with pytest.raises(ValueError, match="rank is 2 and num_replicas 2"):
        DistributedSampler(range(3), 2, 2)
    with pytest.raises(ValueError, match="has not been initialized"):
        DistributedSampler(range(3))
    with pytest.raises(TypeError, match="has no len"):
        DistributedSampler(iter([]), 2, 0)
