"""The backend nccl: what stands for NCCL on simulated GPUs."""

import re
import signal
from pathlib import Path

import pytest
import ranks
from test_distributed import COLLECTIVES

ROOT = Path(__file__).parent.parent
SCHEDULES = ["eager", "lazy", "random:5"]


def on_gpus(schedule="eager", **more):
    """The environment of ranks that exchange by NCCL."""
    return {
        "BACKEND": "nccl",
        "DEVICE": "cuda",
        "PYDEVTENSOR_SIM_GPUS": "1",
        "PYDEVTENSOR_SIM_SCHEDULE": schedule,
        **more,
    }


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_collectives_against_numpy_on_gpus(tmp_path, schedule):
    seed = str(SCHEDULES.index(schedule))
    ranks.run(tmp_path, 2, COLLECTIVES, SEED=seed, CASES="12", **on_gpus(schedule))


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_collectives_of_four_gpus_against_numpy(tmp_path, schedule):
    for seed in range(3):
        environment = on_gpus(schedule, SEED=str(seed), CASES="20")
        ranks.run(tmp_path, 4, COLLECTIVES, **environment)


def test_both_backends_in_one_group(tmp_path):
    code = """
    dist.init_process_group(
        "cpu:gloo,cuda:nccl", init_method="file://" + FILE, rank=rank, world_size=size)
    assert dist.is_nccl_available()
    on_cpu, on_gpu = torch.ones(3), torch.ones(3, device="cuda")
    works = [dist.all_reduce(x, async_op=True) for x in (on_cpu, on_gpu)]
    for each in works:
        each.wait()
    assert on_cpu.tolist() == on_gpu.tolist() == [2.0] * 3
    dist.barrier()
    dist.destroy_process_group()
    """
    ranks.run(tmp_path, 2, code, **on_gpus())


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_mean_and_elements_that_nccl_lacks(tmp_path, schedule):
    code = """
    begin()
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        x = torch.tensor([1.0, 2.0], device="cuda", dtype=dtype) * (rank + 1)
        dist.all_reduce(x, dist.ReduceOp.AVG)
        assert x.tolist() == [1.5, 3.0]
    for dtype in (torch.int8, torch.int16, torch.int32, torch.int64):
        x = torch.tensor([4, 1 + rank, -1 - 3 * rank], device="cuda", dtype=dtype)
        dist.all_reduce(x, dist.ReduceOp.AVG)
        assert x.tolist() == [4, 1, -2]  # rounded towards 0, as NCCL does
    x = torch.tensor([30000, -2], dtype=torch.int16, device="cuda")
    dist.all_reduce(x)
    assert x.tolist() == [60000 - 65536, -4]
    z = torch.tensor([1 + 2j, 3j], device="cuda") * (rank + 1)
    dist.all_reduce(z)
    assert z.tolist() == [3 + 6j, 9j]
    dist.broadcast(z, 1)
    for op in ("BAND", "PRODUCT"):
        try:
            dist.all_reduce(torch.ones(2, device="cuda", dtype=torch.int32)
                            if op == "BAND" else z, op)
        except ValueError as error:
            assert "NCCL has no " + op in str(error)
        else:
            assert False
    dist.destroy_process_group()
    """
    ranks.run(tmp_path, 2, code, **on_gpus(schedule))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_messages_between_gpus(tmp_path, schedule):
    """Both ways at once, and more than fits between two ranks."""
    code = """
    begin()
    right, left = (rank + 1) % size, (rank - 1) % size
    big = torch.full((300_000,), float(rank), device="cuda")
    got, small = torch.empty_like(big), torch.zeros(2, 3, device="cuda").t()
    ops = [dist.P2POp(dist.isend, big, right), dist.P2POp(dist.irecv, got, left)]
    ops += [dist.P2POp(dist.isend, torch.ones(3, 2, device="cuda") * rank, left),
            dist.P2POp(dist.irecv, small, right)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert (got == left).all() and (small == right).all()
    # Of two ranks alone, which need not have made a call of all before.
    if rank < 2:
        x = torch.arange(4, device="cuda") if rank == 0 else torch.zeros(
            4, dtype=torch.int64, device="cuda")
        if rank == 0:
            dist.send(x, 1)
        else:
            work = dist.irecv(x, 0)
            work.wait()
            assert work.source_rank() == 0
        assert x.tolist() == [0, 1, 2, 3]
        try:
            dist.recv(x)
        except ValueError as error:
            assert "src" in str(error)
        else:
            assert False
    dist.barrier()
    dist.destroy_process_group()
    """
    ranks.run(tmp_path, 3, code, **on_gpus(schedule))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_calls_come_after_what_they_read_and_before_what_waits(tmp_path, schedule):
    """The host does not wait: a chain of calls, products and a function of then()."""
    code = """
    begin()
    torch.manual_seed(3)
    w = torch.randn(64, 64, device="cuda") / 8
    x = torch.ones(8, 64, device="cuda") * (rank + 1)
    want = torch.ones(8, 64) * (rank + 1)
    other = torch.ones(8, 64) * (2 - rank)
    with torch.no_grad():
        for _ in range(5):
            x = x @ w
            dist.all_reduce(x)
            y = x.clone()
            future = dist.all_reduce(y, async_op=True).get_future()
            twice = future.then(lambda f: f.value()[0] * 2)
            z = x * 3
            x = twice.wait() + z
            want, other = want @ w.cpu(), other @ w.cpu()
            total = want + other
            want = other = total * 2 * 2 + total * 3
    torch.testing.assert_close(x.cpu(), want)
    dist.destroy_process_group()
    """
    ranks.run(tmp_path, 2, code, **on_gpus(schedule))


def test_the_host_does_not_wait_for_other_ranks(tmp_path):
    """Rank 0's call returns before rank 1 makes it, which waits for a word by gloo."""
    code = """
    dist.init_process_group(
        "cpu:gloo,cuda:nccl", init_method="file://" + FILE, rank=rank, world_size=size)
    x, word = torch.ones(3, device="cuda"), torch.ones(1)
    dist.all_reduce(x)  # makes the communicator
    if rank == 0:
        dist.all_reduce(x)
        y = x * 2
        dist.send(word, 1)
    else:
        dist.recv(word, 0)
        dist.all_reduce(x)
        y = x * 2
    assert y.tolist() == [8.0] * 3
    """
    for schedule in SCHEDULES:
        ranks.run(tmp_path, 2, code, **on_gpus(schedule))


DIFFERENT = """
begin()
x, y = torch.ones(3, device="cuda"), torch.ones(4, device="cuda")
dist.all_reduce(x)
try:
    if rank == 0:
        dist.all_reduce(x)
    else:
        dist.all_reduce(y)
    print(x.sum().item())
except RuntimeError as error:
    print(error)
try:
    dist.all_reduce(x)
except dist.DistBackendError as error:
    print("again", error)
"""


def test_different_calls_are_named_with_both_lines(tmp_path):
    for schedule in SCHEDULES:
        for text in ranks.run(tmp_path, 2, DIFFERENT, **on_gpus(schedule)):
            first, again = text.split("again")
            for part in (first, again):
                assert "all_reduce(SUM) of 3 float32 at program.py:17" in part
                assert "all_reduce(SUM) of 4 float32 at program.py:19" in part


def test_a_rank_that_dies_and_one_that_does_not_come(tmp_path):
    code = """
    from datetime import timedelta
    begin(timeout=timedelta(seconds=60))
    x = torch.ones(3, device="cuda")
    dist.all_reduce(x)
    x.sum().item()
    store = dist.group.WORLD.get_group_store()
    if rank == 0:
        if not os.environ["DIES"]:
            dist.group.WORLD.set_timeout(timedelta(seconds=1))
        try:
            dist.all_reduce(x)
            x.sum().item()
        except RuntimeError as error:
            print(error)
        store.set("over", "yes")
    elif os.environ["DIES"]:
        os.kill(os.getpid(), 9)
    else:
        store.wait(["over"])
    """
    for dies in ("", "yes"):
        ended = ranks.end(ranks.start(tmp_path, 2, code, DIES=dies, **on_gpus()), 60)
        assert ended[0].status == 0, ended[0].errors
        what = "ended without leaving" if dies else "not come within 1 seconds"
        assert f"rank 1 has {what}" in ended[0].printed
        assert "rank 0 waits for it in all_reduce(SUM) of 3" in ended[0].printed


def test_a_pair_is_named_by_the_ranks_of_the_group(tmp_path):
    code = """
    begin()
    x = torch.ones(3 + rank, device="cuda")
    dist.barrier()
    if rank:
        try:
            dist.send(x, 2) if rank == 1 else dist.recv(x, 1)
            x.sum().item()
        except RuntimeError as error:
            print(error)
    """
    printed = ranks.run(tmp_path, 3, code, **on_gpus())
    assert "rank 2 receives 5 float32" in printed[2]
    assert "rank 1 has sent 4 float32" in printed[2]


def test_ctrl_c_ends_a_wait(tmp_path):
    code = """
    begin()
    x = torch.ones(3, device="cuda")
    dist.all_reduce(x)
    x.sum().item()
    if rank == 0:
        dist.all_reduce(x)
        try:
            print("waits", flush=True)
            x.sum().item()
        except KeyboardInterrupt:
            print("interrupted")
            os._exit(0)
    else:
        time.sleep(100)
    """
    processes = ranks.start(tmp_path, 2, code, **on_gpus())
    assert processes[0].stdout.readline() == "waits\n"
    processes[0].send_signal(signal.SIGINT)
    assert processes[0].wait(30) == 0
    processes[1].kill()
    assert ranks.end(processes)[0].printed == "interrupted\n"


def test_gradients_of_ddp_are_those_of_one_process(tmp_path):
    code = """
    from torch.nn.parallel import DistributedDataParallel as DDP
    begin()
    for dtype in (torch.float32, torch.bfloat16):
        torch.manual_seed(0)
        layers = [nn.Linear(40, 40) for _ in range(3)]
        alone = nn.Sequential(*layers).to("cuda", dtype)
        x = torch.randn(8, 40, device="cuda").to(dtype)
        alone(x).square().mean().backward()
        want = [p.grad.clone() for p in alone.parameters()]
        alone.zero_grad()
        for size_of in (0.004, 25):
            model = DDP(alone, bucket_cap_mb=size_of)
            model(x.chunk(2)[rank]).square().mean().backward()
            for p, g in zip(alone.parameters(), want):
                torch.testing.assert_close(p.grad, g)
            alone.zero_grad()
    dist.destroy_process_group()
    """.replace("from torch.nn", "from pydevtensor.nn")
    for schedule in SCHEDULES:
        ranks.run(tmp_path, 2, code, **on_gpus(schedule))


def test_fsdp_on_gpus(tmp_path):
    code = """
    from pydevtensor.distributed.fsdp import fully_shard
    begin()
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(12, 12) for _ in range(3)]).to("cuda")
    x = torch.randn(8, 12, device="cuda")
    model(x).square().mean().backward()
    want = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    model(x.chunk(2)[rank]).square().mean().backward()
    for p, g in zip(model.parameters(), want):
        torch.testing.assert_close(p.grad.to_local(), g.chunk(2)[rank])
    dist.destroy_process_group()
    """
    for schedule in SCHEDULES:
        ranks.run(tmp_path, 2, code, **on_gpus(schedule))


def test_without_a_gpu(tmp_path):
    code = """
    assert not dist.is_nccl_available()
    try:
        begin()
    except RuntimeError as error:
        print(error)
    """
    environment = on_gpus(PYDEVTENSOR_SIM_GPUS="0")
    (text,) = ranks.run(tmp_path, 1, code, **environment)
    assert "nccl needs a GPU" in text


def test_races_of_calls_are_named_by_their_lines(tmp_path):
    code = """
    begin()
    x, y = torch.ones(5, device="cuda"), torch.ones(5, device="cuda")
    torch.cuda.synchronize()
    other = torch.cuda.Stream()
    work = dist.broadcast(x, 0, async_op=True)
    try:
        with torch.cuda.stream(other):
            x.fill_(2)
    except RuntimeError as error:
        print(error)
    work.wait()
    work = dist.reduce(y, 0, async_op=True)
    try:
        y.add_(1)
    except RuntimeError as error:
        print(error)
    work.wait()
    dist.destroy_process_group()
    """
    for schedule in SCHEDULES:
        environment = on_gpus(schedule, PYDEVTENSOR_SIM_RACES="error")
        for text in ranks.run(tmp_path, 2, code, **environment):
            for call, line, kernel, at in (
                ("broadcast", 16, "fill", 19),
                ("reduce", 23, "add", 25),
            ):
                assert re.search(
                    rf"\b{call} \w+ them on .* at program.py:{line}\n", text
                )
                assert re.search(
                    rf"\b{kernel} \w+ them on .* at program.py:{at}\n", text
                )


def test_no_race_in_right_programs(tmp_path):
    environment = on_gpus("lazy", PYDEVTENSOR_SIM_RACES="error")
    ranks.run(tmp_path, 2, COLLECTIVES, SEED="4", CASES="4", **environment)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_calls_of_gloo_are_in_the_order_of_their_streams(tmp_path, schedule):
    """A thread makes them: after what the caller's stream has queued, and before what the
    stream queues that waits for them."""
    code = """
    begin()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x = torch.full((1000,), rank + 1.0, device="cuda")
        works = [dist.all_reduce(x, async_op=True)]
    works[0].wait()
    y = x * 2
    x.record_stream(torch.cuda.current_stream())
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x.add_(rank)
        future = dist.broadcast(x, 1, async_op=True).get_future()
        future.then(lambda done: done.value()[0].mul_(2)).wait()
    torch.cuda.synchronize()
    assert y.tolist() == [6.0] * 1000 and x.tolist() == [8.0] * 1000
    dist.destroy_process_group()
    """
    races = {"BACKEND": "gloo", "PYDEVTENSOR_SIM_RACES": "error"}
    ranks.run(tmp_path, 2, code, **on_gpus(schedule, **races))


def test_copies_of_gloo_are_counted_and_refused(tmp_path):
    code = """
    begin()
    x = torch.ones(5, device="cuda")
    with torch.cuda.transfers() as seen:
        dist.all_reduce(x)
    assert (seen.device_to_host, seen.host_to_device) == (1, 1), seen
    assert seen.device_to_host_bytes == seen.host_to_device_bytes == 20
    host = torch.ones(5)
    calls = [
        lambda: dist.all_reduce(x),
        lambda: dist.all_reduce(x, async_op=True).wait(),
        lambda: dist.all_gather_into_tensor(torch.empty(5 * size), x),
        lambda: dist.broadcast(x, 0, async_op=True).wait(),
        lambda: dist.send(x, 1 - rank),
        lambda: dist.recv(x, 1 - rank),
    ]
    for mode in ("disallow", "disallow_implicit"):
        with torch.cuda.transfer_guard(mode):
            dist.all_reduce(host)
            for call in calls:
                try:
                    call()
                except RuntimeError as error:
                    print(error)
                else:
                    assert False
    with torch.cuda.transfer_guard(host_to_device="disallow_implicit"):
        dist.send(x, 1) if rank == 0 else dist.recv(host, 0)
        y = x.cpu()
        dist.all_reduce(y)
    # Of a whole process, which a thread that makes calls for the program is in, too.
    before = torch._C._transfer_rules(False, 4, 4, 4)
    with torch.cuda.transfer_guard("allow"):
        dist.all_reduce(x, async_op=True).wait()
    torch._C._transfer_rules(False, *before)
    """
    for text in ranks.run(tmp_path, 2, code, **on_gpus(BACKEND="gloo")):
        rows = text.splitlines()
        assert len(rows) == 12
        for i, row in enumerate(rows):
            assert f"(program.py:{20 + i % 6})" in row
            assert "the copy of a float32 tensor of shape [5] from cuda:0" in row
            assert f"transfer_guard('disallow{'_implicit' * (i > 5)}')" in row
            assert "use 'nccl', or give a tensor of the CPU" in row


def test_the_clock_makes_no_copies_for_a_program(tmp_path):
    code = """
    begin()
    x = torch.ones(5, device="cuda")
    with torch.cuda.transfer_guard("disallow"):
        dist.all_reduce(x)
        dist.all_reduce(x, async_op=True).wait()
    assert x.tolist() == [4.0] * 5
    """
    more = {"PYDEVTENSOR_SIM_LINK": "ib400", "PYDEVTENSOR_SIM_CARD": "t4"}
    ranks.run(tmp_path, 2, code, **on_gpus(**more))
