"""The BLAS that was found computes on as many threads as set_num_threads() allows: one
for products, which the pool divides, and for factorizations that are small or whose
threads would wait for each other often. Other users of the library keep their number."""

import subprocess
import sys
from pathlib import Path

import pytest
from isolated import python

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "build"))

import toolchain  # noqa: E402

PRELUDE = """
import ctypes, os, threading
import pydevtensor as torch

folder, library = os.environ["FOLDER"], os.environ["LIBRARY"]
if folder:
    torch._C._find_libraries(os.path.dirname(torch._C.__file__), folder)
lib = ctypes.CDLL(library)
hook = ctypes.c_void_p.in_dll(lib, "hook")
small, large, square = torch.rand(20, 20), torch.eye(1200), torch.rand(300, 300)
torch.set_num_threads(3)

def during(act, call):
    "Run call; act within its first call of the library. What act returned."
    out = []
    def once():
        hook.value = None
        out.append(act())
    function = ctypes.CFUNCTYPE(None)(once)
    hook.value = ctypes.cast(function, ctypes.c_void_p).value
    call()
    return out[0]

def used(call):
    "The most threads that a call of the library could use."
    lib.most_used()
    call()
    return lib.most_used()

def used_beside(call):
    "The same in a thread of its own."
    out = []
    thread = threading.Thread(target=lambda: out.append(used(call)))
    thread.start()
    thread.join()
    return out[0]

def product():
    small @ small

def factor():
    torch.linalg.cholesky(large)
"""

PER_PROCESS, PER_THREAD = ("OPENBLAS", "BLIS"), ("OPENMP", "MKL")
each_library = pytest.mark.parametrize("kind", PER_PROCESS + PER_THREAD)


@pytest.fixture
def run(tmp_path, kind):
    """Runs code with a library of that kind."""
    return lambda code: run_with(tmp_path / "libfake.so", kind, code)


def run_with(library, kind, code, **chosen):
    library.parent.mkdir(parents=True, exist_ok=True)
    source = str(ROOT / "tests" / "core" / "fake_blas.c")
    command = [*toolchain.find_cc().command, "-shared", "-fPIC", f"-D{kind}"]
    subprocess.run([*command, "-o", str(library), source], check=True)
    chosen = {"PYDEVTENSOR_BLAS": str(library), "FOLDER": "", **chosen}
    return python(PRELUDE + code, LIBRARY=str(library), **chosen)


@each_library
def test_one_thread_and_the_number_is_put_back(run):
    run("""
calls = [
    product,
    lambda: square @ square,
    lambda: torch.rand(500, 20, 20) @ small,
    lambda: torch.linalg.cholesky(small),
    lambda: torch.linalg.cholesky(torch.rand(500, 30, 30)),
    lambda: torch.linalg.qr(large, "r"),
]
for i, call in enumerate(calls):
    assert used(call) == 1 and lib.get() == 4, i
""")


@each_library
def test_a_large_factorization_uses_what_is_allowed(run):
    run("""
for number, expected in ((3, 3), (9, 4), (1, 1)):
    torch.set_num_threads(number)
    assert used(factor) == expected and lib.get() == 4, number
torch.set_num_threads(3)
lib.set(2)
assert used(factor) == 2 and lib.get() == 2
""")


@each_library
def test_a_worker_uses_one(run):
    run("""
class Data:
    def __len__(self):
        return 2
    def __getitem__(self, i):
        return used(factor)
loaded = torch.utils.data.DataLoader(Data(), num_workers=1)
assert [int(x) for x in loaded] == [1, 1]
""")


@pytest.mark.parametrize("kind", PER_PROCESS)
def test_what_the_program_sets_meanwhile_stays(run):
    run("""
for call in (product, factor):
    lib.set(4)
    during(lambda: lib.set(2), call)
    assert lib.get() == 2
    during(lambda: (lib.set(3), product()), call)
    assert lib.get() == 3
""")


@pytest.mark.parametrize("kind", PER_PROCESS)
def test_calls_at_once_use_what_all_of_them_want(run):
    run("""
assert during(lambda: used_beside(factor), product) == 1 and lib.get() == 4
assert during(lambda: used_beside(product), factor) == 1 and lib.get() == 4
assert during(lambda: used_beside(factor), factor) == 3 and lib.get() == 4
assert used(factor) == 3
""")


@pytest.mark.parametrize("kind", PER_THREAD)
def test_calls_at_once_have_a_number_each(run):
    run("""
assert during(lambda: used_beside(factor), product) == 3 and lib.get() == 4
assert during(lambda: used_beside(product), factor) == 1 and lib.get() == 4
""")


@pytest.mark.parametrize("kind", PER_PROCESS)
@pytest.mark.parametrize("call", ["product", "factor"])
def test_a_child_forked_during_a_call(run, call):
    run(f"""
def fork():
    child = os.fork()
    if child == 0:
        product()
        os._exit(lib.get())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert during(fork, {call}) == 4 and lib.get() == 4
""")


def test_a_library_that_nobody_else_uses_stays_at_one(tmp_path):
    """scipy-openblas"""
    library = tmp_path / "scipy_openblas64" / "lib" / "libfake.so"
    code = "assert used(product) == used(factor) == lib.get() == 1"
    chosen = {"FOLDER": str(tmp_path), "PYDEVTENSOR_BLAS": "auto"}
    run_with(library, "OPENBLAS", code, **chosen)


def test_numpys_library_keeps_its_number():
    folder = Path(pytest.importorskip("numpy").__path__[0] + ".libs")
    library = next(folder.glob("libscipy_openblas64_*"), None)
    if not library:
        pytest.skip("this NumPy has another BLAS")
    python(
        """
import ctypes, os
import pydevtensor as torch
lib = ctypes.CDLL(os.environ["PYDEVTENSOR_BLAS"])
x = torch.rand(200, 200)
for number in (1, 2, 3):
    lib.scipy_openblas_set_num_threads64_(number)
    for call in (torch.linalg.inv, torch.linalg.svd, torch.linalg.qr, x.mm):
        call(x)
        assert lib.scipy_openblas_get_num_threads64_() == number
""",
        PYDEVTENSOR_BLAS=str(library),
    )


def test_loading_starts_no_thread_that_waits_awake():
    """OpenBLAS starts one for each further core, unless it sees a single one."""
    code = """
import os
import pydevtensor as torch
cores = os.sched_getaffinity(0)
torch.ones(16, 16) @ torch.ones(16, 16)
if "scipy_openblas64/lib" in open("/proc/self/maps").read():
    assert len(os.listdir("/proc/self/task")) == 1
assert os.sched_getaffinity(0) == cores
"""
    python(code)
