"""Fails every allocation, copy, launch and event in turn, and looks at what is left.

    make faults                               everything
    python -P tools/faults/run.py --quick     a few hundred faults, as the tests do
    python -P tools/faults/run.py -c matmul -k python -n 17 -d cpu    one fault

Each case of program.py runs again and again, on the CPU and on a simulated GPU. The
first time its first allocation fails, then the second, until a run has none left to
fail; then once more, and from the chosen one on all fail. So for each kind: allocations
of the libraries, of Python, of the device; copies, launches, streams, events.

Each run has to give the right result or raise the right exception. Then no storage may
be left and no memory lost; every element of what the case uses has to be as it was or
as the whole case makes it; and a run without faults has to give the right result.

Each case runs in a process of its own, so a crash or a hang is one finding. --first
gives each fault a process, so that what the first call makes for good fails too.

Allocations of the interpreter are a kind of their own: CPython itself may lose objects
when they fail, so these runs are not searched for lost memory, and each fails alone.
"""

import argparse
import ctypes
import gc
import itertools
import json
import mmap
import os
import select
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import types
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
ALLOCATORS = {"host": 1, "python": 2, "interpreter": 4}
DEVICE = ("malloc", "host", "copy", "memset", "launch", "stream", "event", "record")
DEVICE += ("wait",)
KINDS = (*ALLOCATORS, *("gpu-" + kind for kind in DEVICE))
ENDLESS = 1 << 40
SECONDS = 120  # for one fault: more is a hang


def compiled(folder):
    """The library of faults.c. It is preloaded, except under a sanitizer."""
    library = folder / "faults.so"
    compiler = os.environ.get("CC", "cc").split()
    include = "-I" + sysconfig.get_path("include")
    flags = ["-O1", "-shared", "-fPIC", "-fno-builtin", include]
    subprocess.run([*compiler, *flags, HERE / "faults.c", "-o", library], check=True)
    return library


def start_again():
    """Run this program in an environment in which everything can fail."""
    folder = Path(tempfile.mkdtemp())
    library = compiled(folder)
    chosen = {
        "PYDEVTENSOR_FAULTS": str(library),
        "PYDEVTENSOR_CPU_CACHE": "0",  # each tensor of more than 64 bytes allocates
        "PYDEVTENSOR_NO_CACHE": "1",  # so does each tensor on a GPU
        "PYDEVTENSOR_SIM_GPUS": "2",
        "PYDEVTENSOR_SIM_MEMORY": "64M",
        "PYDEVTENSOR_SIM_SCHEDULE": "lazy",
    }
    if not os.environ.get("LD_PRELOAD"):
        chosen["LD_PRELOAD"] = str(library)
    try:
        command = [sys.executable, "-P", str(Path(__file__).resolve()), *sys.argv[1:]]
        return subprocess.run(command, env={**os.environ, **chosen}).returncode
    finally:
        shutil.rmtree(folder)


# --- what a case uses and gives ------------------------------------------------------


def described(value, seen=None):
    """A result or the state of a case as nested tuples of NumPy arrays and text."""
    seen = {} if seen is None else seen
    if id(value) in seen or isinstance(value, types.ModuleType | type):
        return None
    if isinstance(value, torch.Tensor):
        seen[id(value)] = value
        data = value.detach().cpu().to(memory_format=torch.contiguous_format)
        bits = data.view(torch.int16) if data.dtype is torch.bfloat16 else data
        about = (str(value.dtype), str(value.device), value.requires_grad)
        grad = value.grad if value.is_leaf else None
        return [*about, bits.numpy().copy(), described(grad, seen)]
    if isinstance(value, np.ndarray):
        return (value.copy(),)
    if isinstance(value, dict | list | tuple | set):
        seen[id(value)] = value
        items = value.items() if isinstance(value, dict) else value
        return tuple(described(item, seen) for item in items)
    if isinstance(value, types.FunctionType):
        seen[id(value)] = value
        cells = value.__closure__ or ()
        return tuple(described(cell.cell_contents, seen) for cell in cells)
    if isinstance(value, torch.nn.Module | torch.optim.Optimizer):
        seen[id(value)] = value
        return described(vars(value), seen)
    if isinstance(value, bool | int | str | bytes | type(None)):
        return value
    if isinstance(value, float):
        return (np.float64(value),)
    return type(value).__name__


def same(a, b):
    if isinstance(a, np.ndarray | np.float64):
        if not isinstance(b, type(a)) or a.shape != b.shape or a.dtype != b.dtype:
            return False
        return a.tobytes() == b.tobytes()
    if isinstance(a, tuple | list) and type(a) is type(b):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def between(now, old, new):
    """Whether each part of a state is as before or as the whole case makes it."""
    if isinstance(now, np.ndarray):
        arrays = [a for a in (old, new) if isinstance(a, np.ndarray)]
        arrays = [a for a in arrays if (a.shape, a.dtype) == (now.shape, now.dtype)]
        if not arrays:
            return False
        as_bits = [np.frombuffer(a.tobytes(), np.uint8) for a in (now, *arrays)]
        width = now.dtype.itemsize
        each = [(as_bits[0] == b).reshape(-1, width).all(1) for b in as_bits[1:]]
        return bool(np.logical_or.reduce(each).all())
    if same(now, old) or same(now, new):
        return True
    if isinstance(now, list):
        sides = [side for side in (old, new) if isinstance(side, list)]
        return bool(sides) and all(map(between, now, sides[0], sides[-1]))
    return False


def tensors(state):
    """The tensors of a description, in order."""
    if isinstance(state, tuple):
        return [tensor for item in state for tensor in tensors(item)]
    return [state] if isinstance(state, list) else []


def right(kind, error):
    """Whether the exception says what has happened."""
    text = str(error)
    if isinstance(error, MemoryError):
        return kind in ALLOCATORS
    if kind == "host":
        # For a tensor's elements, also of pinned memory, as many results as the call
        # asks for, and in the simulator's cuBLAS, cuSOLVER and kernels.
        known = (
            *("no memory on the CPU", "no page-locked memory"),
            *("no memory for", "in place of cu", "no host memory for the stacks"),
        )
        return isinstance(error, RuntimeError) and any(words in text for words in known)
    if kind == "gpu-malloc":
        return isinstance(error, torch.cuda.OutOfMemoryError)
    if kind == "python" and isinstance(error, SystemError):
        # CPython 3.11 clears the exception that leaves a frame where it can make no
        # object for the frame before it.
        return text.startswith("<function")
    if kind == "interpreter" and not isinstance(error, MemoryError):
        # What CPython itself makes of want of memory.
        own = ("<function", "can't allocate lock", "Can't pickle")
        return text.startswith(own)
    words = any(word in text for word in ("cuda", "cuBLAS", "cuSOLVER", "page-locked"))
    return kind.startswith("gpu-") and isinstance(error, RuntimeError) and words


# --- one case ------------------------------------------------------------------------


class Case:
    """Runs one case on one device with faults; note(finding) reports."""

    def __init__(self, name, make, device, step, note):
        self.name, self.make, self.device, self.step = name, make, device, step
        self.note = note
        self.compares = name.split(".")[0] in program.CASES  # not of examples
        self.unraisable = []

    def prepare(self):
        """Run without faults, to know what to expect."""
        sys.unraisablehook = lambda raised: self.unraisable.append(
            f"{raised.exc_value!r} {raised.err_msg} {type(raised.object)}"
        )
        if self.device != "cpu":
            torch.zeros(1, device="cuda:1"), torch.zeros(1, device=self.device)
        run = self.fresh()
        self.before = described(run)
        self.result = self.outcome(run)
        self.after = described(run)
        del run
        gc.collect()
        gc.freeze()
        self.alive = self.storages()

    def storages(self):
        devices = ["cpu"] if self.device == "cpu" else ["cpu", "cuda:0", "cuda:1"]
        for device in devices[1:]:
            torch.cuda.synchronize(device)
        return [torch._C._storage_count(torch.device(device)) for device in devices]

    def fresh(self):
        torch.manual_seed(0)
        if self.device != "cpu":
            torch.cuda.manual_seed_all(0)
            torch.cuda.empty_cache()
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)
        torch.set_grad_enabled(True)
        torch.set_printoptions(profile="default")
        run = self.make(self.device)
        if isinstance(run, list):
            for earlier in run[: self.step]:
                earlier()
            return run[self.step]
        return run

    def outcome(self, run):
        """The result of a run without faults."""
        result = run()
        return described(result)

    def call(self, run, kind, first, last):
        """The result or the exception, and whether a fault happened."""
        if kind in ALLOCATORS:
            try:
                return call(run, ALLOCATORS[kind], first, last), None, FAILED.value > 0
            except Exception as error:
                return None, error.with_traceback(None), FAILED.value > 0
        before = torch.cuda.sim_counters()["failures"]
        torch.cuda.sim_fail(f"{kind[4:]}:{first}{'+' if last > first else ''}")
        result = raised = None
        try:
            result = run()
        except Exception as error:
            raised = error.with_traceback(None)
        torch.cuda.sim_fail("")
        return result, raised, torch.cuda.sim_counters()["failures"] > before

    def fault(self, kind, first, last):
        """One run. Whether a fault happened, and what is wrong after it."""
        run, wrong = self.fresh(), []
        # Empties the free lists of small structs, so that each use allocates.
        x = torch.zeros(1).requires_grad_()
        hold = [x + 1 for _ in range(130)]
        result, error, happened = self.call(run, kind, first, last)
        del hold, x
        if not happened and not error:
            return False, wrong
        if error:
            if not right(kind, error):
                wrong.append(f"raises {type(error).__name__}: {error}"[:300])
            error.__context__ = error.__cause__ = None
        try:
            if self.compares:
                if not error and not same(described(result), self.result):
                    wrong.append("a wrong result without an error")
                now, old, new = map(tensors, (described(run), self.before, self.after))
                old = old if len(old) == len(now) else new
                new = new if len(new) == len(now) else old
                if len(now) != len(old) or not all(map(between, now, old, new)):
                    run()  # what is begun has to be completed by a second attempt
                    if not same(tensors(described(run)), tensors(self.after)):
                        wrong.append("leaves neither the old nor the new state")
        except Exception as broken:
            if kind != "host" or not right(kind, broken):  # cuBLAS fails late
                wrong.append(f"what it leaves cannot be read: {broken!r}")
            broken = None
        del run, result, error
        while self.unraisable:
            text = self.unraisable.pop()
            if kind != "interpreter":
                wrong.append(f"prints {text}")
        if self.storages() != self.alive:
            gc.collect()
            if self.storages() != self.alive and kind != "interpreter":
                wrong.append(f"storages {self.storages()}, before {self.alive}")
            self.alive = self.storages()
        try:
            if not same(self.outcome(self.fresh()), self.result):
                wrong.append("the next call gives a wrong result")
        except Exception as broken:
            wrong.append(f"the next call raises {broken!r}")
            broken = None
        return True, wrong

    def first_call(self, kind, first, last):
        """As fault(), of a case that has not run in this process."""
        run, wrong = self.fresh(), []
        _, error, happened = self.call(run, kind, first, last)
        if error and not right(kind, error):
            wrong.append(f"first raises {type(error).__name__}: {error}"[:300])
        del run, error, _
        try:
            if not same(self.outcome(self.fresh()), self.outcome(self.fresh())):
                wrong.append("the call after the first gives a wrong result")
        except Exception as broken:
            wrong.append(f"the call after the first raises {broken!r}")
        return happened, wrong

    def sweep(self, kind, always, quick, only, start):
        """Faults until a run has none left to fail."""
        count, level, n, step = 0, None, start, 1
        while True:
            last = ENDLESS if always else n
            POSITION[:64] = f"{self.step} {kind} {int(always)} {n}".ljust(64).encode()
            happened, wrong = self.fault(kind, n, last)
            if not happened:
                break
            count += 1
            now = levels()
            # Objects of Python come and go: a few faults do not show which are lost.
            more = level and any(a > b for a, b in zip(now, level, strict=True))
            if more and kind != "interpreter" and not (quick and now[0] <= level[0]):
                now = self.growth(kind, n, last, quick, wrong)
            level = now
            for text in wrong:
                self.note([self.name, self.device, kind, int(always), n, text])
            if only or n >= 5000:
                break
            if quick:
                n, step = n + step, n
            else:
                n += 1 + (n // 40 if kind == "interpreter" else 0)
        return count

    def growth(self, kind, first, last, quick, wrong):
        """Repeat a fault that left more memory, which may be lost each time. The caches
        of the interpreter fill, too, but not for ever."""
        before = levels()
        for _ in range(64):
            for _ in range(8):
                self.fault(kind, first, last)
            now = levels()
            lost = [(b - a) // 8 for a, b in zip(before, now, strict=True)]
            before = now
            if (lost[0] if quick else max(lost)) < 1:
                return now
        wrong.append(f"loses {lost[0]} blocks and {lost[1]} objects each time")
        return levels()


def levels():
    """Blocks of the core, objects of Python."""
    gc.collect()
    return BLOCKS.value, sys.getallocatedblocks()


def in_child(name, make, device, options, start, write):
    """All faults of a case. start: the kind, mode and number to begin with, or None."""

    def send(*what):
        os.write(write, json.dumps(what).encode() + b"\n")

    quiet()
    steps = make(device)
    count = len(steps) if isinstance(steps, list) else 1
    for step in range(count):
        title = f"{name}.{step}" if count > 1 else name
        one = Case(title, make, device, step, lambda finding: send("finding", finding))
        one.prepare()
        for kind in options.kinds:
            if kind not in ALLOCATORS and device == "cpu":
                continue
            if kind == "host" and "faults.so" not in os.environ.get("LD_PRELOAD", ""):
                continue
            for always in (0, 1):
                # CPython 3.11 unwinds for ever where it can make no int.
                if always and kind == "interpreter":
                    continue
                n = options.number or 1
                if start:
                    if (step, kind, always) != start[:3]:
                        continue
                    n, start = start[3], None
                faults = one.sweep(kind, always, options.quick, options.number, n)
                send("count", [kind, faults])


def first_calls(name, make, device, options):
    """Faults in first calls, each in a process of its own: what is made once, too."""
    counts, findings = Counter(), []
    kinds = [k for k in options.kinds if k in ALLOCATORS or device != "cpu"]
    for kind, always in itertools.product(kinds, (0, 1)):
        n = 1
        while n < 1000:
            read, write = os.pipe()
            child = os.fork()
            if not child:
                signal.alarm(SECONDS)
                quiet()
                one = Case(name, make, device, 0, None)
                found = one.first_call(kind, n, ENDLESS if always else n)
                os.write(write, json.dumps(found).encode())
                os._exit(0)
            os.close(write)
            with open(read, "rb") as file:
                data = file.read()
            _, status = os.waitpid(child, 0)
            happened, wrong = json.loads(data) if data else (True, [])
            if status:
                wrong = [f"the first call ends the process with status {status}"]
            findings += [[name, device, kind, always, n, text] for text in wrong]
            if not happened:
                break
            counts[kind] += 1
            n += 1 + n // 4
    return counts, findings


def quiet():
    """Print nothing, warn of nothing, write files elsewhere."""
    import warnings

    sys.displayhook = lambda value: None
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    warnings.simplefilter("ignore")
    os.chdir(tempfile.gettempdir())


def run_case(name, make, device, options):
    """The counts and findings of a case, in child processes."""
    counts, findings, start = Counter(), [], None
    while True:
        read, write = os.pipe()
        POSITION[:64] = b" " * 64
        sys.stdout.flush()
        child = os.fork()
        if not child:
            status = 1
            try:
                in_child(name, make, device, options, start, write)
                status = 0
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                os._exit(status)
        os.close(write)
        data, seen, hung, since = b"", b"", False, time.monotonic()
        while True:
            if select.select([read], [], [], 1)[0]:
                more = os.read(read, 1 << 16)
                if not more:
                    break
                data += more
            position = bytes(POSITION[:64])
            if position != seen:
                seen, since = position, time.monotonic()
            elif time.monotonic() - since > SECONDS:
                hung = True
                os.kill(child, signal.SIGKILL)
        os.close(read)
        _, status = os.waitpid(child, 0)
        for line in data.splitlines():
            what, value = json.loads(line)
            if what == "count":
                counts[value[0]] += value[1]
            else:
                findings.append(value)
        where = POSITION[:64].split()
        if status == 0:
            return counts, findings
        if not where:
            findings.append([name, device, "none", 0, 0, "does not run without faults"])
            return counts, findings
        how = "hangs" if hung else f"ends the process with status {status}"
        step, kind, always, n = int(where[0]), where[1].decode(), *map(int, where[2:])
        findings.append([f"{name}.{step}", device, kind, always, n, how])
        counts[kind] += n
        start = step, kind, always, n + 1
        if options.number or sum(f[5] == how for f in findings) > 20:
            return counts, findings


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-c", "--cases", help="those whose name contains this text")
    parser.add_argument("-d", "--device", action="append", choices=["cpu", "cuda"])
    parser.add_argument("-k", "--kinds", action="append", choices=KINDS)
    parser.add_argument("-n", "--number", type=int, help="only this fault")
    parser.add_argument("--quick", action="store_true", help="a few faults of each")
    parser.add_argument("--every", type=int, default=1, help="each N-th case alone")
    parser.add_argument("--first", action="store_true", help="first calls, too")
    parser.add_argument("--examples", action="store_true", help="examples, too")
    options = parser.parse_args()
    if "PYDEVTENSOR_FAULTS" not in os.environ:
        return start_again()

    global np, program, torch, call, BLOCKS, FAILED, FAULTS, POSITION
    FAULTS = ctypes.PyDLL(os.environ["PYDEVTENSOR_FAULTS"])
    call = FAULTS.faults_call
    call.restype = ctypes.py_object
    call.argtypes = [ctypes.py_object, ctypes.c_int, ctypes.c_long, ctypes.c_long]
    FAILED = ctypes.c_long.in_dll(FAULTS, "faults_failed")
    BLOCKS = ctypes.c_long.in_dll(FAULTS, "faults_blocks")
    FAULTS.faults_install()
    POSITION = mmap.mmap(-1, 64)
    sys.path.insert(0, str(HERE))
    import numpy as np
    import program

    import pydevtensor as torch

    options.kinds = options.kinds or [
        kind for kind in KINDS if kind != "interpreter" or not options.quick
    ]
    cases = dict(program.CASES)
    if options.examples:
        cases |= program.examples()
    counts, findings = Counter(), []
    for name, make in itertools.islice(cases.items(), 0, None, options.every):
        if options.cases and options.cases not in name:
            continue
        for device in options.device or ["cpu", "cuda"]:
            if name.endswith("_large") and device != "cpu":
                continue  # simulated GPUs are slow
            more, found = run_case(name, make, device, options)
            if options.first and not options.number:
                and_more, and_found = first_calls(name, make, device, options)
                more, found = more + and_more, found + and_found
            counts += more
            findings += found
            for case, where, kind, always, n, text in found:
                mode = "from" if always else "number"
                print(f"{case} on {where}: {kind} {mode} {n}: {text}", flush=True)
    print(
        f"{counts.total()} faults:", *(f"{k} {counts[k]}," for k in KINDS if counts[k])
    )
    print(f"{len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
