"""How the processes of torch.distributed start, and how they find each other."""

import os
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from datetime import timedelta
from textwrap import dedent

import isolated
import pytest

from pydevtensor import distributed as dist
from pydevtensor import multiprocessing as mp

SHORT = timedelta(seconds=0.1)

# --- stores


@pytest.fixture(params=["hash", "file", "tcp", "prefix"])
def store(request, tmp_path):
    """Each kind of store."""
    if request.param == "hash":
        return dist.HashStore()
    if request.param == "file":
        return dist.FileStore(str(tmp_path / "store"))
    if request.param == "tcp":
        return dist.TCPStore("127.0.0.1", 0, is_master=True)
    return dist.PrefixStore("before", dist.HashStore())


def test_keys_and_values(store):
    store.set("a", "text")
    store.set("b", bytes(range(256)))
    assert store.get("a") == b"text" and store.get("b") == bytes(range(256))
    assert store.add("n", 3) == 3 and store.add("n", -1) == 2 and store.get("n") == b"2"
    store.append("a", " and more")
    assert store.get("a") == b"text and more"
    assert store.compare_set("a", "other", "new") == b"text and more"
    assert store.compare_set("a", "text and more", "new") == b"new"
    assert store.compare_set("c", "", "first") == b"first"
    assert store.check(["a", "b"]) and not store.check(["a", "z"])
    store.multi_set(["x", "y"], ["1", "2"])
    assert store.multi_get(["x", "y"]) == [b"1", b"2"]
    assert store.num_keys() >= 6
    assert store.delete_key("a") and not store.delete_key("a")
    assert not store.check(["a"])


def test_waiting_for_keys(store):
    store.set_timeout(SHORT)
    assert store.timeout == SHORT
    store.set("there", "")
    with pytest.raises(dist.DistStoreError, match="no process has set 'absent' within"):
        store.wait(["there", "absent"])
    with pytest.raises(dist.DistStoreError, match="'absent'"):
        store.get("absent")
    store.set_timeout(timedelta(seconds=20))
    late = threading.Timer(0.1, store.set, ["late", "value"])
    if not isinstance(store, dist.TCPStore):  # one connection, which waits
        late.start()
        assert store.get("late") == b"value"


def test_wrong_arguments_of_stores(store):
    with pytest.raises(TypeError, match="value is 3"):
        store.set("a", 3)
    with pytest.raises(TypeError, match="give a list of str"):
        store.wait("key")
    with pytest.raises(TypeError, match=r"give a datetime\.timedelta"):
        store.set_timeout(3)
    with pytest.raises(TypeError, match="give a Store"):
        dist.PrefixStore("a", "b")


def test_two_ends_of_a_file(tmp_path):
    one, two = (dist.FileStore(str(tmp_path / "store")) for _ in range(2))
    threads = [
        threading.Thread(target=lambda s=s: [s.add("n", 1) for _ in range(50)])
        for s in (one, two)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert one.add("n", 0) == 100
    (tmp_path / "other").write_text("no store")
    with pytest.raises(dist.DistStoreError, match="not a file of FileStore"):
        dist.FileStore(str(tmp_path / "other")).get("a")


def test_two_ends_of_a_connection():
    server = dist.TCPStore("127.0.0.1", 0, is_master=True)
    client = dist.TCPStore("127.0.0.1", server.port)
    late = threading.Timer(0.1, server.set, ["late", "value"])
    late.start()
    assert client.get("late") == b"value"
    with pytest.raises(dist.DistNetworkError, match="cannot be listened at"):
        dist.TCPStore("127.0.0.1", server.port, is_master=True)
    with pytest.raises(dist.DistStoreError, match="1 of 2 processes"):
        dist.TCPStore("127.0.0.1", 0, 2, is_master=True, timeout=SHORT)
    del server
    with pytest.raises(
        dist.DistNetworkError, match=r"no connection to 127\.0\.0\.1:1 "
    ):
        dist.TCPStore("127.0.0.1", 1, timeout=SHORT)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack("!I", 1 << 31),
        struct.pack("!I", 3) + b"{}}",
        struct.pack("!I", 15) + b'["__class__", 1]'[:15],
        struct.pack("!I", 13) + b'["__init__"] ',
        struct.pack("!I", 12) + b'["set", "a"]',
        struct.pack("!I", 2) + b"[]",
        struct.pack("!I", 4) + b"null",
        struct.pack("!I", 100),
    ],
)
def test_whatever_comes_a_store_goes_on(sent):
    server = dist.TCPStore("127.0.0.1", 0, is_master=True)
    with socket.create_connection(("127.0.0.1", server.port)) as hostile:
        hostile.sendall(sent)
        hostile.settimeout(0.2)
        with suppress(OSError):
            hostile.recv(100)
    server.set("a", "b")
    assert dist.TCPStore("127.0.0.1", server.port).get("a") == b"b"


# --- init methods, and the launcher

MEET = """
import os, sys
import torch, torch.distributed as dist
dist.init_process_group("gloo", {given})
x = torch.ones(1)
dist.all_reduce(x)
sys.stdout.write(f"{dist.get_rank()} {dist.get_world_size()} {x.item()}\\n")
"""


def launch(*arguments, status=0, **environment):
    done = subprocess.run(
        [sys.executable, "-m", "pydevtensor", "launch", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
        cwd="/",
    )
    assert status in (None, done.returncode), done.stdout + done.stderr
    return done


def program(tmp_path, code):
    path = tmp_path / "program.py"
    path.write_text(dedent(code))
    return str(path)


def test_launch(tmp_path):
    path = program(tmp_path, MEET.replace("{given}", ""))
    done = launch("--nproc-per-node=3", path)
    assert sorted(done.stdout.split("\n")[:-1]) == [f"{r} 3 3.0" for r in range(3)]


@pytest.mark.slow
def test_the_launcher_takes_torchruns_options(tmp_path):
    code = """
    import os, sys
    if __name__ == "__main__":
        import torch
        names = "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR"
        words = [os.environ[n] for n in names] + sys.argv[1:]
        sys.stdout.write(f"{' '.join(words)} {torch.get_num_threads()}\\n")
    """
    path = program(tmp_path, code)
    done = launch(
        "--standalone", "--nnodes=1", "--nproc_per_node", "2", path, "--lr", "1"
    )
    rows = [f"{r} {r} 2 2 127.0.0.1 --lr 1 " for r in range(2)]
    assert [row[:-1] for row in sorted(done.stdout.splitlines())] == rows
    done = launch("-m", "timeit", "-n1", "-r1", "pass")
    assert "1 loop" in done.stdout
    done = launch("--no-python", "--nproc-per-node=2", "echo", "hello")
    assert done.stdout == "hello\n" * 2
    done = launch("--nproc-per-node=gpu", path, PYDEVTENSOR_SIM_GPUS="2")
    assert len(done.stdout.splitlines()) == 2


def test_a_wrong_command_line(tmp_path):
    path = program(tmp_path, "")
    for given, words in {
        ("--nproc-per-node=many", path): "give a number, cpu or gpu",
        ("--nproc-per-node=0", path): "give a number, cpu or gpu",
        ("--nnodes=two", path): "--nnodes is two; give a number of machines",
        ("--nnodes=1:4", path): "--nnodes is 1:4; give a number of machines",
        ("--nnodes=2", "--card=t4", path): "leave out --card",
        (): "required: program",
    }.items():
        assert words in launch(*given, status=2).stderr


def test_a_rank_that_fails(tmp_path):
    code = """
    import sys, time, torch, torch.distributed as dist
    dist.init_process_group("gloo")
    if dist.get_rank() == 1:
        sys.exit(7)
    dist.barrier()
    """
    done = launch("--nproc-per-node=2", program(tmp_path, code), status=None)
    assert done.returncode in (1, 7)
    assert "launch: rank 0 has ended with exit status 1" in done.stderr
    assert "launch: rank 1 has ended with exit status 7" in done.stderr
    assert (
        "rank 1 has left the process group (its program has ended), while rank 0 waits "
        "for it in barrier at " in done.stderr
    )


def test_ending_the_launcher_ends_its_ranks(tmp_path):
    code = """
    import os, time
    os.write(1, f"{os.getpid()}\\n".encode())
    time.sleep(100)
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "pydevtensor", "launch", "--nproc-per-node=2"]
        + [program(tmp_path, code)],
        stdout=subprocess.PIPE,
        cwd="/",
        text=True,
    )
    pids = [int(process.stdout.readline()) for _ in range(2)]
    process.terminate()
    assert process.wait(60) == 128 + 15
    process.stdout.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize(
    "given",
    [
        'init_method="tcp://127.0.0.1:{port}", rank={rank}, world_size=2',
        'init_method="tcp://127.0.0.1:{port}?rank={rank}&world_size=2"',
        'init_method="file://{folder}/meeting", rank={rank}, world_size=2',
        'init_method="file://{folder}/meeting"',
        "store=dist.FileStore('{folder}/meeting'), rank={rank}, world_size=2",
        "",  # as in a job for Slurm
    ],
)
def test_init_methods(tmp_path, given):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    code = MEET.replace("{given}", given).replace("{folder}", str(tmp_path))
    code = code.replace("{port}", str(port)).replace(
        "import torch,", "import pydevtensor as torch,"
    )
    code = code.replace("torch.distributed as", "pydevtensor.distributed as")
    of_rank = "OMPI_COMM_WORLD_RANK" if given else "SLURM_PROCID"
    of_size = "WORLD_SIZE" if given else "SLURM_NTASKS"
    master = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code.replace("{rank}", str(rank))],
            env={**os.environ, **master, of_rank: str(rank), of_size: "2"},
            stdout=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
        for rank in range(2)
    ]
    printed = [each.communicate(timeout=60)[0] for each in processes]
    assert printed == ["0 2 2.0\n", "1 2 2.0\n"]


def test_ranks_that_do_not_come(tmp_path):
    given = {"rank": 0, "world_size": 2, "timeout": SHORT}
    begin = time.monotonic()
    with pytest.raises(dist.DistStoreError, match="1 of 2 processes have connected"):
        dist.init_process_group("gloo", "tcp://127.0.0.1:0", **given)
    assert not dist.is_initialized()
    path = f"file://{tmp_path}/meeting"
    with pytest.raises(RuntimeError, match=r"rank 1 has not come within 0\.1 s"):
        dist.init_process_group("gloo", path, **given)
    assert not dist.is_initialized() and time.monotonic() - begin < 30


# --- torch.multiprocessing.spawn


def _double(rank, queue, factor):
    queue.put((rank, rank * factor))


def _fails(rank, how):
    if rank != 1:
        time.sleep(100)
    if how == "raise":
        raise ValueError("mine")
    if how == "exit":
        sys.exit(4)
    os.kill(os.getpid(), 9)


@pytest.mark.slow
def test_spawn(tmp_path):
    code = """
    import torch.multiprocessing as mp

    def double(rank, queue, factor):
        queue.put((rank, rank * factor))

    if __name__ == "__main__":
        queue = mp.get_context("spawn").SimpleQueue()
        assert mp.spawn(double, (queue, 10), nprocs=2) is None
        assert sorted(queue.get() for _ in range(2)) == [(0, 0), (1, 10)]
    """
    isolated.python("", arguments=["-m", "pydevtensor", "run", program(tmp_path, code)])


@pytest.mark.parametrize(
    ("how", "kind", "words"),
    [
        ("raise", mp.ProcessRaisedException, "Process 1 terminated .*ValueError: mine"),
        ("exit", mp.ProcessExitedException, "process 1 terminated with exit code 4"),
        ("kill", mp.ProcessExitedException, "process 1 terminated with signal SIGKILL"),
    ],
)
def test_processes_that_fail(how, kind, words):
    begin = time.monotonic()
    with pytest.raises(kind, match=f"(?s){words}") as caught:
        mp.start_processes(_fails, (how,), nprocs=2, start_method="fork")
    assert caught.value.error_index == 1 and time.monotonic() - begin < 60
    if how == "kill":
        assert caught.value.signal_name == "SIGKILL" and caught.value.exit_code == -9


def test_a_context_to_wait_for():
    queue = mp.get_context("fork").SimpleQueue()
    context = mp.start_processes(
        _double, (queue, 1), nprocs=2, join=False, start_method="fork"
    )
    assert len(context.pids()) == 2
    while not context.join(timeout=30):
        pass
    assert context.join() is True
