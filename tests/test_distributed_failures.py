"""Wrong programs of several processes: each ends in time, with an error that says why."""

import os
import random
import re
import signal
import time

import pytest
import ranks

# Each program: what ranks 0 and 1 do, and what the error of rank 0 says; "0:" and "1:"
# stand for the lines of the calls. Both ranks of a mismatch get one.
MISMATCHES = {
    "another call": (
        "dist.all_reduce(x(), group=g)",
        "dist.broadcast(x(), 0, g)",
        "rank 0 calls all_reduce(SUM) of 3 float32 at 0:, and rank 1 calls "
        "broadcast(src=0) of 3 float32 at 1:",
    ),
    "another size": (
        "dist.all_reduce(x(), group=g)",
        "dist.all_reduce(x(4), group=g)",
        "all_reduce(SUM) of 3 float32 at 0:, and rank 1 calls all_reduce(SUM) of 4 "
        "float32 at 1:",
    ),
    "another type": (
        "dist.all_reduce(x(), group=g)",
        "dist.all_reduce(x().double(), group=g)",
        "of 3 float32 at 0:, and rank 1 calls all_reduce(SUM) of 3 float64 at 1:",
    ),
    "another reduction": (
        "dist.all_reduce(x(), group=g)",
        "dist.all_reduce(x(), dist.ReduceOp.MAX, g)",
        "all_reduce(SUM) of 3 float32 at 0:, and rank 1 calls all_reduce(MAX) of 3 "
        "float32 at 1:",
    ),
    "another root": (
        "dist.broadcast(x(), 0, g)",
        "dist.broadcast(x(), 1, g)",
        "broadcast(src=0) of 3 float32 at 0:, and rank 1 calls broadcast(src=1) of 3 "
        "float32 at 1:",
    ),
    "another destination": (
        "dist.reduce(x(), 0, group=g)",
        "dist.reduce(x(), 1, group=g)",
        "reduce(SUM, dst=0) of 3 float32 at 0:, and rank 1 calls reduce(SUM, dst=1) "
        "of 3 float32 at 1:",
    ),
    "a barrier": (
        "dist.barrier(g)",
        "dist.all_reduce(x(), group=g)",
        "rank 0 calls barrier at 0:, and rank 1 calls all_reduce(SUM) of 3 float32 at 1:",
    ),
    "another order": (
        "dist.all_reduce(x(), group=g); dist.all_reduce(x(9), group=g)",
        "dist.all_reduce(x(9), group=g); dist.all_reduce(x(), group=g)",
        "of 3 float32 at 0:, and rank 1 calls all_reduce(SUM) of 9 float32 at 1:",
    ),
    "a call that one rank skips": (
        "dist.all_reduce(x(), group=g); dist.barrier(g)",
        "dist.barrier(g)",
        "rank 0 calls all_reduce(SUM) of 3 float32 at 0:, and rank 1 calls barrier at 1:",
    ),
    "gather and all_gather": (
        "dist.gather(x(), [x(), x()], 0, g)",
        "dist.all_gather([x(), x()], x(), g)",
        "gather(dst=0) of 3 float32 at 0:, and rank 1 calls all_gather of 3 "
        "float32 at 1:",
    ),
    "sizes of gather": (
        "dist.gather(x(), [x(), x()], 0, g)",
        "dist.gather(x(2), None, 0, g)",
        "gather(dst=0) of 3 float32 at 0:, and rank 1 calls gather(dst=0) of 2 "
        "float32 at 1:",
    ),
    "sizes of scatter": (
        "dist.scatter(x(), [x(), x()], 0, g)",
        "dist.scatter(x(2), None, 0, g)",
        "scatter(src=0) of 3 float32 at 0:, and rank 1 calls scatter(src=0) of 2 "
        "float32 at 1:",
    ),
    "sizes of reduce_scatter": (
        "dist.reduce_scatter(x(), [x(), x()], group=g)",
        "dist.reduce_scatter(x(2), [x(2), x(2)], group=g)",
        "reduce_scatter(SUM) of 3 float32 at 0:, and rank 1 calls "
        "reduce_scatter(SUM) of 2 float32 at 1:",
    ),
    "types of all_to_all": (
        "dist.all_to_all([x(), x()], [x(), x()], g)",
        "dist.all_to_all([x().int()] * 2, [x().int()] * 2, g)",
        "all_to_all of float32 at 0:, and rank 1 calls all_to_all of int32 at 1:",
    ),
    "what all_to_all sends": (
        "dist.all_to_all([x(), x(5)], [x(), x()], g)",
        "dist.all_to_all([x(), x()], [x(), x()], g)",
        "rank 1 gives 12 bytes at 1: to rank 0, which has room for 20 at 0:",
    ),
    "splits": (
        "dist.all_to_all_single(x(4), x(4), [2, 2], [1, 3], g)",
        "dist.all_to_all_single(x(4), x(4), [2, 2], [2, 2], g)",
        None,  # rank 1's error is the other test's
    ),
    "objects": (
        "dist.all_gather_object([None] * 2, 1, g)",
        "dist.broadcast_object_list([None], 0, g)",
        "all_gather of 1 int64 at 0:, and rank 1 calls broadcast(src=0) of 1 int64 at 1:",
    ),
    "async calls": (
        "dist.all_reduce(x(), group=g, async_op=True).wait()",
        "dist.barrier(g, async_op=True).wait()",
        "all_reduce(SUM) of 3 float32 at 0:, and rank 1 calls barrier at 1:",
    ),
    "gradients of different modules": (
        "nn.parallel.DistributedDataParallel(nn.Linear(2, 3), process_group=g)",
        "nn.parallel.DistributedDataParallel(nn.Linear(2, 4), process_group=g)",
        "rank 0 has parameter ('weight', [3, 2], 'torch.float32') at 0:, and rank 1 has "
        "('weight', [4, 2], 'torch.float32') at 1:;",
    ),
    "modules with more parameters": (
        "nn.parallel.DistributedDataParallel(nn.Linear(2, 3), process_group=g)",
        "nn.parallel.DistributedDataParallel("
        "nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)), process_group=g)",
        "rank 0 has parameter ('weight', [3, 2], 'torch.float32') at 0:, and rank 1 has "
        "('0.weight', [3, 2], 'torch.float32') at 1:; make the same module on all ranks",
    ),
    "a message of another size": (
        "dist.recv(x(), 1, g)",
        "dist.send(x(5), 0, g)",
        "rank 0 receives 3 float32 at 0:, and rank 1 has sent 5 float32 at 1:",
    ),
    "a message of another type": (
        "dist.recv(x(), 1, g)",
        "dist.send(x().long(), 0, g)",
        "rank 0 receives 3 float32 at 0:, and rank 1 has sent 3 int64 at 1:",
    ),
}
# Rank 1 does something else meanwhile, and rank 0 waits in vain.
DEADLOCKS = {
    "no call": (
        "dist.all_reduce(x(), group=g)",
        "pass",
        "rank 1 has not come within 2 seconds, while rank 0 waits for it in "
        "all_reduce(SUM) of 3 float32 at 0:; its last call was new_group",
    ),
    "a call too few": (
        "dist.all_reduce(x(), group=g); dist.all_reduce(x(), group=g)",
        "dist.all_reduce(x(), group=g)",
        "its last call was all_reduce(SUM) of 3 float32 at 1:",
    ),
    "both receive": (
        "dist.recv(x(), 1, g)",
        "time.sleep(0.3); dist.recv(x(), 0, g)",
        "rank 1 has not come within 2 seconds, while rank 0 waits for it in recv of 3 "
        "float32 at 0:; its last call was recv of 3 float32 at 1:",
    ),
    "both send much": (
        "dist.send(x(1 << 20), 1, g)",
        "time.sleep(0.3); dist.send(x(1 << 20), 0, g)",
        "waits for it in send of 1048576 float32 at 0:; its last call was send of",
    ),
    "another tag": (
        "dist.recv(x(), 1, g, tag=2)",
        "dist.send(x(), 0, g, tag=1)",
        "while rank 0 waits for it in recv of 3 float32 at 0:; its last call was send of",
    ),
    "a message of any rank": (
        "dist.recv(x(), group=g)",
        "pass",
        "has not come within 2 seconds",
    ),
    "a message that is not received": (
        "dist.send(x(1 << 20), 1, g)",
        "dist.barrier(g)",
        "waits for it in send of 1048576 float32 at 0:; its last call was barrier at 1:",
    ),
    "rank 1 has left": (
        "time.sleep(0.1); dist.barrier(g)",
        "dist.destroy_process_group(g)",
        "rank 1 has left the process group (destroy_process_group() at 1:), while rank 0 "
        "waits for it in barrier at 0:",
    ),
    "rank 1 leaves while this one waits": (
        "dist.barrier(g)",
        "time.sleep(0.1); dist.destroy_process_group(g)",
        "rank 1 has left the process group (destroy_process_group() at 1:), while rank 0 "
        "waits for it in barrier at 0:",
    ),
    "rank 1 raises": (
        "dist.barrier(g); dist.barrier(g)",
        "dist.barrier(g); dist.destroy_process_group(g); raise ValueError('mine')",
        "rank 1 has left the process group (destroy_process_group() at 1:), while rank 0 "
        "waits for it in barrier at 0:; its last call was barrier at",
    ),
    "a wait that ends": (
        "dist.all_reduce(x(), group=g, async_op=True).wait()",
        "pass",
        "rank 1 has not come within 2 seconds",
    ),
}
HEAD = """
from datetime import timedelta
def x(n=3):
    return torch.ones(n)
begin()
"""
# Programs one after the other, each with a group of its own: a failure spoils it.
STEP = """
g = dist.new_group(timeout=timedelta(seconds={seconds}))
try:
{calls}
    print({name!r}, "ran")
except Exception as error:
    print({name!r}, type(error).__name__, error)
dist.barrier()
"""


def both(programs, seconds, tmp_path, at_once=1):
    """What each rank prints for each program, and the line of its calls."""
    rows, numbers, started = [{}, {}], {}, []
    for part in range(at_once):
        names = [*programs][part::at_once]
        code = code_of({name: programs[name] for name in names}, seconds, numbers)
        (folder := tmp_path / f"part {part}").mkdir()
        started.append(ranks.start(folder, 2, code))
    for processes in started:
        for row, text in zip(rows, ranks.printed(processes), strict=True):
            row.update(_row(line) for line in text.splitlines())
    return rows, numbers


def code_of(programs, seconds, numbers):
    """The code of a rank, which has the calls of each program at the line in numbers."""
    code = HEAD
    for name, (first, second, _) in programs.items():
        calls = f"    if rank == 0: {first}\n    else: {second}"
        if ";" in second:  # a block of its own, for calls on several lines
            second = second.replace("; ", "\n        ")
            calls = f"    if rank == 0: {first}\n    else:\n        {second}"
        before = ranks.HEAD + code
        code += STEP.format(name=name, calls=calls, seconds=seconds)
        at = before.count("\n") + STEP.partition("{calls}")[0].count("\n") + 1
        numbers[name] = at
    return code


def _row(line):
    for name in {**MISMATCHES, **DEADLOCKS}:
        if line.startswith(f"{name} "):
            return name, line.removeprefix(name).strip()
    raise AssertionError(line)


def check(programs, rows, numbers):
    for name, (_, second, said) in programs.items():
        if said is None:
            continue
        at = numbers[name]
        lines = {f"{at + 1 + (';' in second)}", f"{at + 1}", f"{at + 2}", f"{at + 3}"}
        text = said.replace("0:", f"program.py:{at}")
        for other in lines:
            if text.replace("1:", f"program.py:{other}") in rows[name]:
                break
        else:
            raise AssertionError(f"{name}: {rows[name]!r}\nexpected {text!r}")


def test_mismatches_name_both_lines(tmp_path):
    assert all(
        "0:" in said and "1:" in said for *_, said in MISMATCHES.values() if said
    )
    (first, second), numbers = both(MISMATCHES, 20, tmp_path)
    check(MISMATCHES, first, numbers)
    for name, (_, _, said) in MISMATCHES.items():
        if "message" not in name and "all_to_all sends" not in name and said:
            assert "Error" in second[name], f"rank 1 has no error: {name}"
    at = numbers["splits"]
    said = f"rank 0 gives 12 bytes at program.py:{at} to rank 1, which has room for 8 "
    assert f"{said}at program.py:{at + 1};" in second["splits"]


@pytest.mark.slow
def test_programs_that_wait_for_ever_end_in_time(tmp_path):
    begin = time.monotonic()
    (first, _), numbers = both(DEADLOCKS, 2, tmp_path, at_once=4)
    check(DEADLOCKS, first, numbers)
    for name, said in first.items():  # the line of rank 0, and one of rank 1
        assert len(re.findall(r"program\.py:\d+", said)) >= 2, f"{name}: {said}"
    assert time.monotonic() - begin < 60


def test_a_group_is_whole_after_a_mismatch(tmp_path):
    code = """
    begin()
    for size in (rank, 5):
        x = torch.ones(size)
        try:
            dist.all_reduce(x)
        except RuntimeError:
            assert size == rank
        else:
            assert size == 5 and x[0] == 2
    """
    ranks.run(tmp_path, 2, code)


def test_a_group_is_over_after_a_wait_in_vain(tmp_path):
    code = """
    from datetime import timedelta
    begin()
    g = dist.new_group(timeout=timedelta(seconds=0.2))
    if rank == 0:
        for words in ("rank 1 has not come", "an earlier call of this process group"):
            try:
                dist.barrier(g)
            except RuntimeError as error:
                assert words in str(error), error
            else:
                assert False
    dist.barrier()
    if rank == 1:
        try:
            dist.barrier(g)
        except RuntimeError as error:
            assert "rank 0 has given up after an error of its own" in str(error), error
        else:
            assert False
    """
    ranks.run(tmp_path, 2, code)


def test_a_rank_that_ends(tmp_path):
    code = """
    begin()
    dist.barrier()
    if rank == 1:
        {end}
    try:
        dist.all_reduce(torch.ones(3))
    except RuntimeError as error:
        print(error)
        sys.exit(3)
    """
    for how, status, words in [
        ("sys.exit(5)", 5, "has left the process group (its program has ended)"),
        (
            "raise ValueError('mine')",
            1,
            "has left the process group (ValueError: mine at program.py:15)",
        ),
        ("os._exit(6)", 6, "has ended without leaving the process group"),
        ("os.kill(os.getpid(), 9)", -9, "has ended without leaving the process group"),
    ]:
        first, second = ranks.end(ranks.start(tmp_path, 2, code.replace("{end}", how)))
        assert (first.status, second.status) == (3, status), first.errors
        assert f"rank 1 {words}, while rank 0 waits for it in all_reduce(SUM) of 3" in (
            first.printed
        )


@pytest.mark.slow
def test_ctrl_c_ends_a_wait(tmp_path):
    code = """
    begin()
    dist.barrier()
    print("waits", flush=True)
    if rank == 0:
        try:
            dist.barrier()
        except KeyboardInterrupt:
            print("interrupted")
    else:
        try:
            time.sleep(0.3)
            dist.barrier()
        except RuntimeError as error:
            print(error)
    """
    processes = ranks.start(tmp_path, 2, code)
    for each in processes:
        assert each.stdout.readline() == "waits\n"
    time.sleep(0.1)
    processes[0].send_signal(signal.SIGINT)
    first, second = ranks.end(processes)
    assert first.printed == "interrupted\n"
    assert "rank 0 has" in second.printed


def test_a_fork_of_a_rank_is_no_rank(tmp_path):
    code = """
    begin()
    child = os.fork()
    if child == 0:
        try:
            dist.barrier()
        except RuntimeError as error:
            os._exit(0 if "this is a fork of it" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    dist.barrier()
    """
    ranks.run(tmp_path, 2, code)


@pytest.mark.slow
def test_leaving_while_another_thread_waits(tmp_path):
    code = """
    import threading
    begin()
    if rank == 0:
        work = dist.barrier(async_op=True)
        time.sleep(0.1)
        dist.destroy_process_group()
        try:
            work.wait()
        except RuntimeError as error:
            assert "this process has left the group" in str(error), error
        else:
            assert False
    else:
        time.sleep(0.5)
    """
    ranks.run(tmp_path, 2, code)


TRAINING = """
import threading
begin()
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(
    nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1)), bucket_cap_mb=0.001)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
first = 0
if os.path.exists("last.pt"):
    kept = torch.load("last.pt")
    first = kept["step"] + 1
    model.module.load_state_dict(kept["model"])
victim, steps, delay = eval(os.environ["KILL"])
def die():
    time.sleep(delay)
    os.kill(os.getpid(), 9)
for step in range(first, 1000):
    if (rank, step - first) == (victim, steps):
        threading.Thread(target=die, daemon=True).start()
    torch.manual_seed(1000 * rank + step)
    opt.zero_grad()
    model(torch.randn(4, 8)).square().mean().backward()
    opt.step()
    if rank == 0 and step % 10 == 9:
        torch.save({"step": step, "model": model.module.state_dict()}, "new.pt")
        os.replace("new.pt", "last.pt")
"""


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_training_goes_on_after_ranks_are_killed(tmp_path, kills):
    """A thousand steps, begun again after each kill from the last checkpoint, end with
    the bits of a run that nothing has ended."""
    import pydevtensor as torch

    chance = random.Random(kills)
    for _ in range(kills):
        victim = chance.randrange(3)
        kill = (victim, chance.randrange(90) * 10 // kills, chance.uniform(0, 0.003))
        ended = ranks.end(ranks.start(tmp_path, 3, TRAINING, KILL=str(kill)), 60)
        assert ended[victim].status == -signal.SIGKILL
        for rank, each in enumerate(ended):
            assert (
                rank == victim
                or f"rank {victim} has ended" in each.errors
                or (
                    "has given up after an error" in each.errors
                    or "has left the process group" in each.errors
                )
            ), each.errors
        if (tmp_path / "last.pt").exists():
            kept = torch.load(tmp_path / "last.pt")
            assert kept["step"] % 10 == 9 and len(kept["model"]) == 4
    ranks.run(tmp_path, 3, TRAINING, KILL="(-1, 0, 0)")
    (tmp_path / "last.pt").rename(tmp_path / "after.pt")
    ranks.run(tmp_path, 3, TRAINING, KILL="(-1, 0, 0)")
    found, wanted = (torch.load(tmp_path / f"{name}.pt") for name in ("after", "last"))
    assert found["step"] == wanted["step"] == 999
    for name, value in wanted["model"].items():
        assert torch.equal(found["model"][name], value), name


WRONG_ARGUMENTS = """
def fails(kind, words, call, *given, **named):
    try:
        call(*given, **named)
    except kind as error:
        assert type(error) is kind and words in str(error), error
    else:
        assert False, words

fails(ValueError, "Default process group has not been initialized", dist.get_rank)
fails(ValueError, "Default process group has not been initialized", dist.barrier)
fails(ValueError, "backend is 'smoke'; give 'gloo'", dist.init_process_group, "smoke")
fails(ValueError, "init_method is 'http://x'", dist.init_process_group, "gloo", "http://x")
fails(ValueError, "rank is 7 and world_size 1", dist.init_process_group, "gloo",
      "tcp://127.0.0.1:1", rank=7, world_size=1)
fails(ValueError, "with a store give both", dist.init_process_group, "gloo",
      store=dist.HashStore())
os.environ["RANK"] = "one"
fails(ValueError, "RANK is 'one'", dist.init_process_group, "gloo")
os.environ["RANK"] = "0"
fails(ValueError, "MASTER_ADDR is not set", dist.init_process_group, "gloo")
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="many")
fails(ValueError, "MASTER_PORT is 'many'", dist.init_process_group, "gloo")
fails(TypeError, "give a datetime.timedelta", dist.init_process_group, "gloo",
      timeout="long")
begin()
fails(ValueError, "initialize the default process group twice", begin)
fails(TypeError, "tensor is [1] (list); give a Tensor", dist.all_reduce, [1])
fails(ValueError, "op is 'sum'; give one of ReduceOp.SUM", dist.all_reduce,
      torch.ones(1), "sum")
fails(TypeError, "group is 'all' (str)", dist.all_reduce, torch.ones(1), group="all")
fails(TypeError, "tensor_list is None", dist.all_gather, None, torch.ones(1))
fails(ValueError, "tensor_list has 2 Tensors", dist.all_gather, [torch.ones(1)] * 2,
      torch.ones(1))
fails(ValueError, "tensor_list has a Tensor of 2", dist.all_gather, [torch.ones(2)],
      torch.ones(1))
fails(ValueError, "output_tensor has 3", dist.all_gather_into_tensor, torch.ones(3),
      torch.ones(1))
fails(ValueError, "rank 5 is not in", dist.broadcast, torch.ones(1), 5)
fails(ValueError, "give either src or group_src", dist.broadcast, torch.ones(1), 0,
      group_src=0)
fails(ValueError, "input_tensor_list has 0 Tensors", dist.all_to_all, [torch.ones(2)], [])
fails(ValueError, "input_split_sizes is [3]", dist.all_to_all_single, torch.ones(2),
      torch.ones(2), None, [3])
fails(RuntimeError, "the group has no other rank that could send", dist.recv, torch.ones(1))
fails(ValueError, "dst is 0, and this is rank 0 of 1; give another rank", dist.send,
      torch.ones(1), 0)
fails(ValueError, "give torch.distributed.isend or irecv", dist.P2POp, dist.send,
      torch.ones(1), 0)
fails(ValueError, "give a list of P2POp", dist.batch_isend_irecv, [])
fails(ValueError, "ranks are [0, 0]", dist.new_group, [0, 0])
fails(ValueError, "ranks are [1]", dist.new_group, [1])
fails(ValueError, "group_size is 2", dist.new_subgroups, 2)
fails(ValueError, "has no rank 4", dist.get_global_rank, None, 4)
fails(RuntimeError, "no parameter of the module requires a gradient",
      nn.parallel.DistributedDataParallel, nn.ReLU())
fails(ValueError, "give one GPU", nn.parallel.DistributedDataParallel, nn.Linear(1, 1),
      [0, 1])
dist.destroy_process_group()
fails(ValueError, "Default process group has not been initialized", dist.barrier)
"""


def test_wrong_arguments(tmp_path):
    ranks.run(tmp_path, 1, WRONG_ARGUMENTS)


def test_no_memory_is_left_in_a_file_system(tmp_path):
    before = {*os.listdir("/dev/shm")} if os.path.isdir("/dev/shm") else set()
    code = """
    begin()
    dist.all_reduce(torch.ones(10))
    os._exit(0)
    """
    ranks.run(tmp_path, 2, code)
    after = {*os.listdir("/dev/shm")} if os.path.isdir("/dev/shm") else set()
    assert {name for name in after - before if "pydevtensor" in name} == set()
