"""torch.distributed.nn: gradients that pass through calls of all ranks."""

import pytest
import ranks

# Each rank has tensors, and a loss of what the call gives it. The gradients are those of
# the sum of all ranks' losses, which one process computes.
GRADIENTS = """
import pydevtensor.distributed.nn.functional as F
begin()
f64 = torch.float64
def everyone(*shapes):
    torch.manual_seed(5)
    return [[torch.randn(*s, dtype=f64, requires_grad=True) for s in shapes] for _ in range(size)]
def loss(results, of):
    results = results if isinstance(results, (tuple, list)) else [results]
    return (of + 1) * sum(((i + 1) * each * each).sum() for i, each in enumerate(results))
def check(name, given, run, whole):
    found = run(*given[rank])
    loss(found, rank).backward()
    wanted = whole(given)
    total = sum(loss(wanted[of], of) for of in range(size))
    for mine, grad in zip(given[rank], torch.autograd.grad(total, given[rank], allow_unused=True)):
        grad = torch.zeros_like(mine) if grad is None else grad
        assert torch.allclose(mine.grad, grad), (name, mine.grad, grad)
    both = found if isinstance(found, tuple) else [found]
    others = wanted[rank] if isinstance(wanted[rank], (tuple, list)) else [wanted[rank]]
    for one, other in zip(both, others):
        assert torch.allclose(one, other), name
for share, op in ((1, "SUM"), (size, "AVG")):
    check("all_reduce", everyone((2, 3)), lambda x: F.all_reduce(x, op),
          lambda all: [sum(x for x, in all) / share] * size)
    check("reduce", everyone((2, 3)), lambda x: F.reduce(x, 1, op),
          lambda all: [sum(x for x, in all) / share if r == 1 else all[r][0].detach() for r in range(size)])
    check("reduce_scatter", everyone(*[(2,)] * size),
          lambda *xs: F.reduce_scatter(torch.empty(2, dtype=f64), list(xs), op),
          lambda all: [sum(xs[r] for xs in all) / share for r in range(size)])
check("of a view", everyone((2, 3)), lambda x: F.all_reduce(x.t()),
      lambda all: [sum(x.t() for x, in all)] * size)
check("broadcast", everyone((3,)), lambda x: F.broadcast(x, 1), lambda all: [all[1][0]] * size)
check("gather", everyone((3,)), lambda x: F.gather(x, 1),
      lambda all: [[x if r == 1 else torch.zeros_like(x) for x, in all] for r in range(size)])
check("scatter", everyone(*[(3,)] * size), lambda *xs: F.scatter(xs, 1), lambda all: all[1])
check("all_gather", everyone((2, 2)), F.all_gather, lambda all: [[x for x, in all]] * size)
sizes = [(q + 1,) for q in range(size)]
check("all_to_all", everyone(*sizes),
      lambda *xs: F.all_to_all([torch.empty(rank + 1, dtype=f64) for _ in xs], list(xs)),
      lambda all: [[xs[r] for xs in all] for r in range(size)])
parts = [q + 1 for q in range(size)]
check("all_to_all_single", everyone((sum(parts), 2)),
      lambda x: F.all_to_all_single(torch.empty(size * (rank + 1), 2, dtype=f64), x, [rank + 1] * size, parts),
      lambda all: [torch.cat([x.split(parts)[r] for x, in all]) for r in range(size)])
# A group, and a second derivative.
pair = dist.new_group([0, 1])
if rank < 2:
    x = torch.tensor([2.0 + rank], dtype=f64, requires_grad=True)
    first, = torch.autograd.grad(F.all_reduce(x ** 3, group=pair), x, create_graph=True)
    assert first.item() == 2 * 3 * x.item() ** 2
    second, = torch.autograd.grad(first, x)
    assert second.item() == 2 * 6 * x.item()
y = F.all_reduce(torch.ones(2, requires_grad=True), dist.ReduceOp.MAX)
try:
    y.sum().backward()
except RuntimeError as error:
    assert "op is MAX, through which no gradient is passed" in str(error), error
else:
    assert False
"""


@pytest.mark.parametrize("size", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_gradients_pass_through_calls(tmp_path, size):
    ranks.run(tmp_path, size, GRADIENTS)


LOSSES = """
import os, torch, torch.distributed as dist, torch.distributed.nn
from torch import nn
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model, x = nn.Linear(4, 3), torch.randn(6, 4)
def loss_of(features):
    features = nn.functional.normalize(features, dim=1)
    return nn.functional.cross_entropy(features @ features.t(), torch.arange(6))
loss_of(model(x)).backward()
alone = model.weight.grad.clone()
model.zero_grad()
model = nn.parallel.DistributedDataParallel(model)
mine = model(x[rank * 3 : rank * 3 + 3])
loss_of(torch.cat(torch.distributed.nn.all_gather(mine))).backward()
assert torch.allclose(model.module.weight.grad, alone, atol=1e-6)
"""


def test_a_contrastive_loss_of_all_ranks_features(tmp_path):
    """The idiom for which programs use it: a loss of pairs, some of other ranks."""
    (tmp_path / "loss.py").write_text(LOSSES)
    from test_distributed_start import launch

    launch("--nproc-per-node=2", str(tmp_path / "loss.py"))
