"""Collective calls of several processes, against NumPy."""

import pytest
import ranks

# What each call gives is computed by NumPy from the inputs of all ranks, which every rank
# can draw again.
COLLECTIVES = """
import numpy as np
begin()
draw = np.random.default_rng(int(os.environ["SEED"]))
own = np.random.default_rng(rank)
device = os.environ.get("DEVICE", "cpu")
FUNCTIONS = {
    "SUM": np.add, "PRODUCT": np.multiply, "MIN": np.minimum, "MAX": np.maximum,
    "BAND": np.bitwise_and, "BOR": np.bitwise_or, "BXOR": np.bitwise_xor,
}
DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8",
          "uint8", "bool"]

def numbers(dtype, *shape):
    "A Tensor of a rank, of small numbers."
    x = torch.from_numpy(draw.integers(0, 5, shape))
    return x.to(device, getattr(torch, dtype))

def combine(tensors, op):
    "In the order of ranks, rounded to the type after each step."
    total, *others = [each.cpu() for each in tensors]
    for each in others:
        if total.dtype in (torch.float16, torch.bfloat16):
            made = FUNCTIONS[op](total.float().numpy(), each.float().numpy())
        else:
            made = FUNCTIONS[op](total.numpy(), each.numpy())
        total = torch.as_tensor(np.asarray(made)).to(total.dtype)
    return total

def strided(x):
    "The same elements, not contiguous where that is possible."
    return x.t().contiguous().t() if x.ndim == 2 and own.integers(2) else x.clone()

def equal(a, b):
    assert a.dtype == b.dtype and torch.equal(a.cpu(), b.cpu()), (what, a, b)

for case in range(int(os.environ["CASES"])):
    members = sorted(draw.permutation(size)[: draw.integers(2, size + 1)].tolist())
    group = dist.new_group(members)
    n, root = len(members), int(draw.integers(len(members)))
    dtype = DTYPES[draw.integers(len(DTYPES))]
    bits = device == "cpu" and "float" not in dtype  # NCCL does not combine bits
    op = list(FUNCTIONS)[draw.integers(7 if bits else 4)]
    shape = [(), (1,), (0,), (7,), (3, 5), (130, 40), (300, 1100)][draw.integers(7)]
    given = [numbers(dtype, *shape) for _ in range(n)]
    lists = [[numbers(dtype, *shape) for _ in range(n)] for _ in range(n)]
    sizes = draw.integers(0, 40, (n, n))
    ragged = [[numbers(dtype, int(s), 3) for s in row] for row in sizes]
    what = case, members, dtype, op, shape, root
    if rank not in members:
        assert group == dist.GroupMember.NON_GROUP_MEMBER
        continue
    i = members.index(rank)
    assert dist.get_rank(group) == i and dist.get_world_size(group) == n
    mine = given[i]
    total = combine(given, op)

    x = strided(mine)
    work = dist.all_reduce(x, op, group, async_op=bool(case % 2))
    if work:
        assert work.wait() and (device != "cpu" or work.is_completed())
        assert device != "cpu" or work.is_success()
    equal(x, total)
    x = strided(mine)
    dist.reduce(x, group=group, group_dst=root, op=op)
    equal(x, total if i == root else mine)
    x = strided(mine)
    dist.broadcast(x, members[root], group)
    equal(x, given[root])
    outs = [strided(torch.zeros_like(mine)) for _ in range(n)]
    dist.all_gather(outs, strided(mine), group)
    for a, b in zip(outs, given):
        equal(a, b)
    whole = torch.zeros(n * mine.numel(), dtype=mine.dtype, device=device)
    dist.all_gather_into_tensor(whole, strided(mine), group)
    equal(whole, torch.cat([x.reshape(-1) for x in given]))
    outs = [torch.zeros_like(mine) for _ in range(n)] if i == root else None
    dist.gather(mine, outs, group=group, group_dst=root)
    for a, b in zip(outs or [], given):
        equal(a, b)
    x = strided(torch.zeros_like(mine))
    dist.scatter(x, lists[root] if i == root else None, members[root], group)
    equal(x, lists[root][i])
    x = strided(torch.zeros_like(mine))
    dist.reduce_scatter(x, lists[i], op, group)
    equal(x, combine([row[i] for row in lists], op))
    x = torch.zeros_like(mine)
    dist.reduce_scatter_tensor(x, torch.cat([t.reshape(-1) for t in lists[i]]), op, group)
    equal(x, combine([row[i] for row in lists], op))
    outs = [torch.zeros_like(row[i]) for row in ragged]
    dist.all_to_all(outs, ragged[i], group)
    for a, row in zip(outs, ragged):
        equal(a, row[i])
    x = torch.zeros(int(sizes[:, i].sum()), 3, dtype=mine.dtype, device=device)
    dist.all_to_all_single(
        x, torch.cat(ragged[i]), sizes[:, i].tolist(), sizes[i].tolist(), group)
    equal(x, torch.cat([row[i] for row in ragged]))
    objects = [None] * n
    dist.all_gather_object(objects, {"rank": rank, "shape": shape}, group)
    assert objects == [{"rank": r, "shape": shape} for r in members]
    dist.destroy_process_group(group)
dist.barrier()
"""


@pytest.mark.parametrize("size", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_collectives_against_numpy(tmp_path, size):
    for seed in range(1 if size == 2 else 4):
        ranks.run(tmp_path, size, COLLECTIVES, SEED=str(seed), CASES="25")


@pytest.mark.slow
def test_more_ranks_than_cores(tmp_path):
    ranks.run(tmp_path, 8, COLLECTIVES, SEED="9", CASES="12")


def test_a_mean_of_floats(tmp_path):
    code = """
    begin()
    x = torch.tensor([1.0, 2.0]) * (rank + 1)
    dist.all_reduce(x, dist.ReduceOp.AVG)
    assert x.tolist() == [1.5, 3.0]
    z = torch.tensor([2 + 4j]) * (rank + 1)
    dist.all_reduce(z, dist.ReduceOp.AVG)
    assert z.tolist() == [3 + 6j]
    for wrong, kind in [(torch.ones(2, dtype=torch.int64), dist.ReduceOp.AVG),
                        (torch.ones(2), dist.ReduceOp.BAND)]:
        try:
            dist.all_reduce(wrong, kind)
        except RuntimeError as error:
            assert str(kind) in str(error)
        else:
            assert False
    """
    ranks.run(tmp_path, 2, code)


def test_all_ranks_have_the_same_bits(tmp_path):
    code = """
    begin()
    torch.manual_seed(rank)
    for n in (10, 100_000):
        x = torch.randn(n) * 10 ** torch.randn(n)
        dist.all_reduce(x)
        outs = [torch.empty(n) for _ in range(size)]
        dist.all_gather(outs, x)
        assert all(torch.equal(a, x) for a in outs)
        print(x.double().sum().item())
    """
    first, *others = ranks.run(tmp_path, 3, code)
    assert others == [first] * 2
    assert ranks.run(tmp_path, 3, code) == [first] * 3


def test_async_works_go_in_order(tmp_path):
    code = """
    begin()
    x = torch.ones(300_000)
    works = [dist.all_reduce(x, async_op=True) for _ in range(4)]
    dist.all_reduce(x)  # comes after them
    assert all(work.is_completed() for work in works)
    assert x[0] == x[-1] == size ** 5
    assert works[0].result()[0] is x
    """
    ranks.run(tmp_path, 2, code)


def test_coalesced_calls(tmp_path):
    code = """
    begin()
    tensors = [torch.ones(3), torch.arange(4)]
    dist.all_reduce_coalesced(tensors)
    assert tensors[0].tolist() == [2] * 3 and tensors[1].tolist() == [0, 2, 4, 6]
    lists = [[torch.zeros(2), torch.zeros(1)] for _ in range(size)]
    work = dist.all_gather_coalesced(
        lists, [torch.full((2,), rank + 1.0), torch.full((1,), 10.0 * rank)], async_op=True)
    work.wait()
    assert [[t.tolist() for t in each] for each in lists] == [[[1, 1], [0]], [[2, 2], [10]]]
    """
    ranks.run(tmp_path, 2, code)


def test_tensors_of_gpus(tmp_path):
    code = """
    begin()
    gpu = f"cuda:{rank}"
    x = torch.full((2, 3), rank + 1.0, device=gpu)
    dist.all_reduce(x)
    assert x.device == torch.device(gpu) and x.cpu().tolist() == [[3.0] * 3] * 2
    y = torch.zeros(3, 2, device=gpu).t()
    outs = [torch.zeros(2, 3, device=gpu) for _ in range(size)]
    dist.all_gather(outs, torch.full((3, 2), float(rank), device=gpu).t())
    assert [t.sum().item() for t in outs] == [0, 6]
    if rank:
        dist.send(x, 0)
    else:
        dist.recv(y, 1)
        assert y.cpu().sum() == 18
    """
    ranks.run(tmp_path, 2, code, PYDEVTENSOR_SIM_GPUS="2")


def test_a_write_is_seen_by_autograd(tmp_path):
    code = """
    begin()
    w = torch.ones(2, requires_grad=True)
    x = w * 2
    loss = (x * x).sum()
    dist.all_reduce(x)
    try:
        loss.backward()
    except RuntimeError as error:
        assert "in place" in str(error) or "inplace" in str(error), error
    else:
        assert False
    """
    ranks.run(tmp_path, 2, code)


def test_groups(tmp_path):
    code = """
    begin()
    assert dist.is_initialized() and dist.get_backend() == "gloo"
    world = dist.group.WORLD
    assert dist.get_process_group_ranks(world) == [0, 1, 2]
    pair = dist.new_group([2, 0])
    if rank == 1:
        assert pair == dist.GroupMember.NON_GROUP_MEMBER
        assert dist.get_rank(pair) == dist.get_world_size(pair) == -1
        x = torch.ones(1)
        assert dist.all_reduce(x, group=pair) is None and x == 1
    else:
        assert dist.get_process_group_ranks(pair) == [0, 2]
        assert dist.get_group_rank(pair, 2) == 1 and dist.get_global_rank(pair, 1) == 2
        x = torch.ones(1)
        dist.all_reduce(x, group=pair)
        assert x == 2
        turned = dist.new_group([2, 0], use_local_synchronization=True, sort_ranks=False)
        assert dist.get_rank(turned) == (rank == 0)
        dist.broadcast(x := torch.full((1,), float(rank)), 2, turned)
        assert x == 2
    own, all_groups = dist.new_subgroups(1)
    assert dist.get_process_group_ranks(own) == [rank] and len(all_groups) == 3
    dist.destroy_process_group()
    assert not dist.is_initialized()
    begin()  # again
    dist.barrier()
    """
    ranks.run(tmp_path, 3, code)


def test_messages(tmp_path):
    code = """
    begin()
    if rank == 0:
        dist.send(torch.arange(200_000), 1)
        for tag in (1, 2, 3):
            dist.send(torch.full((2,), float(tag)), 1, tag=tag)
        work = dist.isend(torch.ones(300_000), 2)
        assert work.wait()
        dist.send_object_list([{"a": 1}, "b"], 2)
    if rank == 1:
        x = torch.zeros(200_000, dtype=torch.int64)
        assert dist.recv(x, 0) == 0 and torch.equal(x, torch.arange(200_000))
        for tag in (3, 1, 2):  # another order than they were sent in
            y = torch.zeros(2)
            dist.recv(y, 0, tag=tag)
            assert y.tolist() == [tag] * 2
        dist.send(torch.ones(3), 2, tag=5)
    if rank == 2:
        x, y = torch.zeros(300_000), torch.zeros(3)
        work = dist.irecv(x, 0)
        assert dist.recv(y, tag=5) == 1 and y.sum() == 3  # of any rank
        work.wait()
        assert x.sum() == 300_000 and work.source_rank() == 0
        found = [None, None]
        assert dist.recv_object_list(found, 0) == 0
        assert found == [{"a": 1}, "b"]
    dist.barrier()
    right, left = (rank + 1) % size, (rank - 1) % size
    x, y = torch.full((100_000,), float(rank)), torch.zeros(100_000)
    for work in dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, x, right), dist.P2POp(dist.irecv, y, left)]):
        work.wait()
    assert y[0] == y[-1] == left
    """
    ranks.run(tmp_path, 3, code)


def test_objects(tmp_path):
    code = """
    begin()
    found = [None] * size
    dist.all_gather_object(found, "x" * rank)
    assert found == ["", "x"]
    found = [None] * size if rank == 1 else None
    dist.gather_object((rank,), found, 1)
    assert found == ([(0,), (1,)] if rank == 1 else None)
    several = ["a", {"b": torch.arange(2)}] if rank == 0 else [None, None]
    dist.broadcast_object_list(several, 0)
    assert several[0] == "a" and several[1]["b"].tolist() == [0, 1]
    one = [None]
    dist.scatter_object_list(one, ["for 0", "for one"] if rank == 0 else None, 0)
    assert one == [["for 0", "for one"][rank]]
    """
    ranks.run(tmp_path, 2, code)


def test_a_group_of_some_ranks_is_made_again(tmp_path):
    code = """
from datetime import timedelta
begin(timeout=timedelta(seconds=10))
for _ in range(3):
    own = dist.new_group([0, 1], use_local_synchronization=True)
    x = torch.ones(1)
    dist.all_reduce(x, group=own)
    assert x == 2
    dist.destroy_process_group(own)
print("made")
"""
    assert ranks.run(tmp_path, 2, code) == ["made\n"] * 2


def test_names_that_programs_ask_for():
    from pydevtensor import distributed as dist
    from pydevtensor.distributed import constants

    assert dist.Backend.default_device_backend_map["cuda"] == "nccl"
    assert dist.Backend.default_device_backend_map["cpu"] in dist.Backend.backend_list
    assert constants.default_pg_timeout == dist.default_pg_timeout
    assert constants.default_pg_nccl_timeout.total_seconds() > 0
