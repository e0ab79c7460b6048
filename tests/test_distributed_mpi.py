"""Ranks that exchange by MPI: the same calls as in shared memory."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

import pytest
from test_distributed import COLLECTIVES

MPIEXEC = Path(sys.executable).with_name("mpiexec")
pytestmark = pytest.mark.skipif(
    not find_spec("mpi4py") or not MPIEXEC.exists(),
    reason="needs the packages mpi4py and mpich",
)
HEAD = """
import os, sys, time
import pydevtensor as torch
import pydevtensor.distributed as dist
from pydevtensor import nn
def begin(**given):
    global rank, size
    dist.init_process_group("mpi", **given)
    rank, size = dist.get_rank(), dist.get_world_size()
"""


def run(folder, size, code, status=0, **environment):
    """What all ranks print."""
    program = folder / "program.py"
    program.write_text(HEAD + dedent(code))
    done = subprocess.run(
        [MPIEXEC, "-n", str(size), sys.executable, program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=folder,
        env={**os.environ, "PYDEVTENSOR_NUM_THREADS": "1", **environment},
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 4])
def test_collectives_against_numpy(tmp_path, size):
    run(tmp_path, size, COLLECTIVES, SEED=str(size), CASES="10")


@pytest.mark.slow
def test_messages(tmp_path):
    code = """
    begin()
    if rank == 0:
        dist.send(torch.arange(200_000), 1)
        for tag in (1, 2):
            dist.isend(torch.full((2,), float(tag)), 1, tag=tag).wait()
        dist.send_object_list([{"a": 1}], 1)
    else:
        x = torch.zeros(200_000, dtype=torch.int64)
        assert dist.recv(x) == 0 and torch.equal(x, torch.arange(200_000))
        for tag in (2, 1):
            y = torch.zeros(2)
            dist.recv(y, 0, tag=tag)
            assert y.tolist() == [tag] * 2
        found = [None]
        assert dist.recv_object_list(found, 0) == 0 and found == [{"a": 1}]
    """
    run(tmp_path, 2, code)


@pytest.mark.slow
def test_training(tmp_path):
    code = """
    begin()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 30), nn.Tanh(), nn.Linear(30, 1))
    ddp = nn.parallel.DistributedDataParallel(net)
    x = torch.randn(4 * size, 6)
    whole = net(x).square().mean()
    expected = torch.autograd.grad(whole, [*net.parameters()])
    ddp(x[rank * 4 : rank * 4 + 4]).square().mean().backward()
    for p, g in zip(net.parameters(), expected):
        torch.testing.assert_close(p.grad, g, rtol=1e-5, atol=1e-6)
    """
    run(tmp_path, 2, code)


def test_ranks_that_differ(tmp_path):
    code = """
    begin()
    for here, there in [
        (lambda: dist.all_reduce(torch.ones(3)), lambda: dist.barrier()),
        (lambda: dist.all_reduce(torch.ones(3)), lambda: dist.all_reduce(torch.ones(4))),
        (lambda: dist.recv(torch.ones(3), 1), lambda: dist.send(torch.ones(4), 0)),
    ]:
        try:
            (there if rank else here)()
        except RuntimeError as error:
            sys.stdout.write(f"{rank} {error}\\n")
    dist.barrier()
    """
    printed = run(tmp_path, 2, code)
    for words in (
        "rank 0 calls all_reduce(SUM) of 3 float32 at program.py:13, and rank 1 calls "
        "barrier at program.py:13",
        "rank 1 calls all_reduce(SUM) of 4 float32 at program.py:14, and rank 0 calls",
        "rank 0 receives 3 float32 at program.py:15, and rank 1 has sent 4 float32 at",
    ):
        assert words in printed


@pytest.mark.slow
def test_a_rank_that_does_not_come(tmp_path):
    code = """
    from datetime import timedelta
    begin(timeout=timedelta(seconds=0.5))
    if rank == 0:
        dist.barrier()
    else:
        time.sleep(20)
    """
    printed = run(tmp_path, 2, code, status=1)
    assert (
        "some rank has not come within 0.5 seconds, while rank 0 waits in barrier"
        in (printed)
    )


@pytest.mark.slow
def test_mpi_names_who_does_not_make_the_group(tmp_path):
    code = """
    from datetime import timedelta
    begin(timeout=timedelta(seconds=0.5))
    if rank == 0:
        dist.new_group([0, 1])
    else:
        time.sleep(20)
    """
    said = run(tmp_path, 2, code, status=1)
    assert (
        "rank 1 has not come within 0.5 seconds, while rank 0 waits in new_group([0, 1])"
        in said
    )
    code = """
    begin()
    dist.new_group([0, 1] if rank == 0 else [0, 1, 2])
    """
    said = run(tmp_path, 3, code, status=1)
    assert "new_group([0, 1]) at program.py" in said
    assert "calls new_group([0, 1, 2]) at program.py" in said


def test_another_number_of_ranks(tmp_path):
    code = """
    for given, said in (({}, "2 ranks are wanted, and MPI has 1"),
                        ({"world_size": 3}, "3 ranks are wanted, and MPI has 1")):
        try:
            begin(**given)
        except dist.DistBackendError as error:
            assert said in str(error), error
        else:
            assert False
    """
    run(tmp_path, 1, code, WORLD_SIZE="2")


def test_an_error_ends_all_ranks(tmp_path):
    code = """
    begin()
    if rank == 1:
        raise ValueError("mine")
    dist.barrier()
    """
    assert "ValueError: mine" in run(tmp_path, 2, code, status=1)


def test_the_launcher_hands_ranks_to_mpirun(tmp_path):
    """Both machines are this one."""
    code = """
    import os, torch, torch.distributed as dist
    dist.init_process_group("mpi")
    x = torch.ones(1)
    dist.all_reduce(x)
    names = "RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"
    words = [os.environ[name] for name in names] + [str(dist.get_rank()), str(x.item())]
    os.write(1, f"{' '.join(words)}\\n".encode())
    """
    (tmp_path / "program.py").write_text(dedent(code))
    (tmp_path / "hosts").write_text("localhost:4\n")
    command = [sys.executable, "-m", "pydevtensor", "launch", "--nnodes=2"]
    command += ["--nproc-per-node=2", "--hostfile=hosts", "program.py"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    rows = [f"{r} {r % 2} {r // 2} 4 2 {r} 4.0" for r in range(4)]
    assert sorted(done.stdout.splitlines()) == rows
    (tmp_path / "program.py").write_text("raise SystemExit(7)")
    done = subprocess.run(command, capture_output=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 7
