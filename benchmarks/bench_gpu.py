"""GPU time of every family of kernels, beside PyTorch, CuPy and a plain copy.

    bench_gpu.py [--out FOLDER] [--seconds N] [--only PATTERN] [--simulated]

Writes bench.md, bench.svg and bench.json into the folder, and says which cases miss
their goals. Each time is the median of rounds between two events, over buffers in turn
that exceed L2. Once the seconds are over, it leaves out the rest. --only takes the
cases whose "family: case" matches a regular expression, and no networks. --simulated
runs everything on small sizes on a simulated GPU and reports no times.
"""

from __future__ import annotations

import argparse
import collections
import ctypes
import gc
import importlib
import json
import re
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import gpu_report
from gpu_cases import CASES, GOAL, GOALS, PRODUCTS, TINY
from gpu_layers import LAYERS, NETWORK_GOAL, NETWORKS
from gpu_report import SIMULATED

SIZES = (1e7, 1e9, 1e5)  # bytes of an operand; what matters most comes first
ROUNDS = 20
OURS = "pydevtensor"
GOAL_SIZE = 1e9  # where neither launches nor caches count
LARGE = (1, 4096, 4096, 4096)  # the product whose rate a GPU can reach


class Clock:
    """Milliseconds between two events on the current stream of a library."""

    def __init__(self, lib):
        self.lib, self.cuda = lib, lib.cuda
        if lib.__name__ == "cupy":
            self.events = self.cuda.Event(), self.cuda.Event()
        else:
            self.events = tuple(self.cuda.Event(enable_timing=True) for _ in range(2))

    def milliseconds(self, work):
        begin, end = self.events
        begin.record()
        work()
        end.record()
        end.synchronize()
        if self.lib.__name__ == "cupy":
            return self.cuda.get_elapsed_time(begin, end)
        return begin.elapsed_time(end)


def synchronize(lib):
    if lib.__name__ == "cupy":
        lib.cuda.Device().synchronize()
    else:
        lib.cuda.synchronize()


class Bench:
    def __init__(self, seconds, simulated, only):
        self.only = only
        self.end = time.monotonic() + seconds
        self.simulated = simulated
        self.ours = importlib.import_module(OURS)
        self.libs = {OURS: self.ours}
        for name in () if simulated else ("torch", "cupy"):
            try:
                lib = importlib.import_module(name)
                usable = name == "cupy" or lib.cuda.is_available()
            except Exception as error:  # an installed library that does not work here
                print(f"{name}: {error}", flush=True)
                continue
            if usable:
                self.libs[name] = lib
        self.clocks = {name: Clock(lib) for name, lib in self.libs.items()}
        self.rounds = 2 if simulated else ROUNDS
        self.errors, self.left_out = [], 0
        facts = self.ours.cuda.get_device_properties(0)
        self.l2 = facts.L2_cache_size or 1 << 20
        self.device = {
            "name": self.ours.cuda.get_device_name(0),
            "simulated": simulated,
            "l2": self.l2,
        }

    def late(self):
        return time.monotonic() > self.end

    def sets(self, size):
        """How many buffers of this many bytes exceed L2."""
        return 2 if self.simulated else min(512, max(1, int(2 * self.l2 / size) + 1))

    def median(self, name, calls):
        """Microseconds of one of these calls, which are made in turn."""
        clock, count = self.clocks[name], len(calls)
        kept = collections.deque(maxlen=count)  # so that results do not share memory
        place = 0

        def some(times):
            nonlocal place
            for _ in range(times):
                kept.append(calls[place % count]())
                place += 1

        some(min(count, 3))
        synchronize(self.libs[name])
        once = clock.milliseconds(lambda: some(1))
        inner = 1 if self.simulated else max(1, min(200, int(0.3 / max(once, 1e-3))))
        # A slow case does not take the others' time.
        rounds = self.rounds if once < 50 else 3
        times = [clock.milliseconds(lambda: some(inner)) for _ in range(rounds)]
        return SIMULATED if self.simulated else 1e3 * statistics.median(times) / inner

    def attempt(self, name, what, measure):
        """What measure() returns; a word instead if it fails."""
        try:
            return measure()
        except Exception as error:
            if "out of memory" in str(error).lower():
                return "memory"
            said = f"{name}: {what}: {type(error).__name__}: {error}"
            print(said, flush=True)
            if name == OURS:
                self.errors.append(said)
            return "error"
        finally:
            gc.collect()
            for lib in self.libs.values():
                if lib.__name__ == "cupy":
                    lib.get_default_memory_pool().free_all_blocks()
                else:
                    lib.cuda.empty_cache()

    # --- a plain copy

    def copy_calls(self, size):
        """Copies by the driver's own function, without a library between."""
        t, n = self.ours, max(int(size) // 4, 1)
        pairs = [
            (t.rand(n, device="cuda"), t.empty(n, device="cuda"))
            for _ in range(self.sets(2 * size))
        ]
        if self.simulated:
            return [lambda a=a, b=b: b.copy_(a) for a, b in pairs]
        driver = ctypes.CDLL("libcuda.so.1")
        stream = ctypes.c_void_p(t.cuda.current_stream().cuda_stream)

        def copy(a, b):
            to, source = (ctypes.c_uint64(x.data_ptr()) for x in (b, a))
            status = driver.cuMemcpyDtoDAsync_v2(
                to, source, ctypes.c_size_t(4 * n), stream
            )
            if status:
                raise RuntimeError(f"cuMemcpyDtoDAsync failed with {status}")

        return [lambda a=a, b=b: copy(a, b) for a, b in pairs]

    def copies(self, sizes):
        rows = []
        for size in sizes:
            us = self.attempt(
                OURS, "copy", lambda size=size: self.median(OURS, self.copy_calls(size))
            )
            rate = us if isinstance(us, str) else 2e-3 * size / us
            rows.append({"size": size, "microseconds": us, "rate": rate})
        return rows

    # --- families

    def case_calls(self, name, case, n):
        lib = self.libs[name]
        count = self.sets(case.moved(n))
        maker = self.ours if name == "cupy" else lib
        made = [case.inputs(maker, n) for _ in range(count)]
        if name == "cupy":
            made = [tuple(lib.asarray(x) for x in inputs) for inputs in made]
            return [lambda i=i: case.cupy(lib, *i) for i in made]
        return [lambda i=i: case.work(lib, *i) for i in made]

    def share(self, case, n, us, copied, products):
        """Of the time of these bytes in a copy and these operations in a product; a
        word, or None where one of them was not measured."""
        computed = products.get(case.products) if case.operations else 1
        if isinstance(us, str) or isinstance(copied, str):
            return us if isinstance(us, str) else None
        if not computed or isinstance(computed, str):
            return None
        operations = case.operations(n) if case.operations else 0
        # GB/s and TFLOP/s.
        return (1e-3 * case.moved(n) / copied + 1e-6 * operations / computed) / us

    def families(self, sizes, copies, products):
        """The rows of each size in turn."""
        rates = {row["size"]: row["rate"] for row in copies}
        computed = {
            row["type"]: row["rates"].get(OURS)
            for row in products
            if row["shape"] == str(LARGE)
        }
        for size in sizes:
            rows = []
            n = int(size) // 4
            for case in (*CASES, *LAYERS):
                if not re.search(self.only, f"{case.family}: {case.name}"):
                    continue
                if self.late():
                    self.left_out += 1
                    continue
                us = {}
                for name in self.libs:
                    if name != "cupy" or case.cupy:
                        us[name] = self.attempt(
                            name,
                            f"{case.family}: {case.name}",
                            lambda name=name, case=case, n=n: self.median(
                                name, self.case_calls(name, case, n)
                            ),
                        )
                goal = GOALS.get(case.name, GOAL) if size >= GOAL_SIZE else None
                rows.append(
                    {
                        "size": size,
                        "family": case.family,
                        "case": case.name,
                        "microseconds": us,
                        "share": self.share(case, n, us[OURS], rates[size], computed),
                        "goal": goal,
                    }
                )
            print(f"operands of {size:.0e} bytes: done", flush=True)
            yield rows

    # --- others

    def host(self, name, work):
        """Nanoseconds a call of 100 in a row, without and with waiting for them."""
        lib = self.libs[name]
        maker = lib if name != "cupy" else self.ours
        made = (
            maker.ones(3, device="cuda"),
            maker.ones(3, device="cuda"),
            maker.ones(4, 4, device="cuda"),
        )
        if name == "cupy":
            made = tuple(lib.asarray(x) for x in made)
        times = 2 if self.simulated else 100
        queued, waited = [], []
        for _ in range(self.rounds + 1):
            synchronize(lib)
            start = time.perf_counter()
            for _ in range(times):
                work(lib, *made)
            queued.append((time.perf_counter() - start) / times)
            synchronize(lib)
            waited.append((time.perf_counter() - start) / times)
        if self.simulated:
            return SIMULATED, SIMULATED
        return tuple(1e9 * statistics.median(each[1:]) for each in (queued, waited))

    def tiny(self):
        rows = []
        for label, work in TINY.items():
            row = {"case": label, "host": {}, "waited": {}}
            for name in self.libs:
                found = self.attempt(
                    name, label, lambda name=name, work=work: self.host(name, work)
                )
                both = (found, found) if isinstance(found, str) else found
                row["host"][name], row["waited"][name] = both
            rows.append(row)
        return rows

    def product(self, name, dtype, shape):
        t = self.libs[name]
        batch, m, n, k = shape
        tf32 = dtype == "tf32"
        if tf32:
            t.backends.cuda.matmul.allow_tf32 = True
        try:
            kind = getattr(t, "float32" if tf32 else dtype)
            lead = (batch,) if batch > 1 else ()
            size = t.empty(0, dtype=kind).element_size() * batch * (m * k + k * n)
            made = [
                (
                    t.rand(*lead, m, k, device="cuda").to(kind),
                    t.rand(*lead, k, n, device="cuda").to(kind),
                )
                for _ in range(min(self.sets(size), 16))
            ]
            us = self.median(name, [lambda a=a, b=b: a @ b for a, b in made])
        finally:
            if tf32:
                t.backends.cuda.matmul.allow_tf32 = False
        return us if isinstance(us, str) else 2e-6 * batch * m * n * k / us

    def products(self):
        rows = []
        for shape in (LARGE,) if self.only else PRODUCTS:
            used = tuple(min(size, 8) for size in shape) if self.simulated else shape
            for dtype in ("float32", "tf32", "bfloat16"):
                if self.late():
                    self.left_out += 1
                    continue
                rates = {}
                for name, lib in self.libs.items():
                    # A case that a library lacks is not a failure.
                    able = dtype != "tf32" or hasattr(lib, "backends")
                    if able and name != "cupy":
                        rates[name] = self.attempt(
                            name,
                            f"{dtype} product of {shape}",
                            lambda name=name, dtype=dtype, used=used: self.product(
                                name, dtype, used
                            ),
                        )
                rows.append({"shape": str(shape), "type": dtype, "rates": rates})
        return rows

    def network(self, name, make):
        """Microseconds of a step, by the host's clock."""
        step = make(self.libs[name], self.simulated)
        inner = 1 if self.simulated else 20
        times = []
        for _ in range(self.rounds + 2):
            start = time.perf_counter()
            for _ in range(inner):
                step()
            synchronize(self.libs[name])
            times.append((time.perf_counter() - start) / inner)
        return SIMULATED if self.simulated else 1e6 * statistics.median(times[2:])

    def networks(self):
        rows = []
        for label, make in NETWORKS.items():
            us = {
                name: self.attempt(
                    name, label, lambda name=name, make=make: self.network(name, make)
                )
                for name in self.libs
                if name != "cupy"
            }
            rows.append({"network": label, "microseconds": us, "goal": NETWORK_GOAL})
        return rows


def save(data, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bench.json").write_text(json.dumps(data, indent=1) + "\n")
    (folder / "bench.svg").write_text(gpu_report.svg(data))
    (folder / "bench.md").write_text(gpu_report.markdown(data, "bench.svg"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/bench-gpu"))
    parser.add_argument("--seconds", type=float, default=1200)
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--only", default="")
    chosen, _ = parser.parse_known_args()
    import pydevtensor as torch

    if chosen.simulated:
        torch.cuda.simulate(1)
    elif not torch.cuda.is_available() or torch.cuda.is_simulated():
        print("bench_gpu: there is no real GPU; --simulated only runs the cases")
        return 0
    simulated = torch.cuda.is_simulated()
    kind = "simulated" if simulated else "real"
    print(f"ran on cuda:0 {torch.cuda.get_device_name(0)} ({kind})", flush=True)
    bench = Bench(chosen.seconds, simulated, chosen.only)
    sizes = (4096.0,) if simulated else SIZES
    copies = bench.copies(sizes)
    data = {
        "device": bench.device,
        "libraries": list(bench.libs),
        "rounds": bench.rounds,
        "sizes": sizes,
        "copies": copies,
        "tiny": [] if chosen.only else bench.tiny(),
        "networks": [] if chosen.only else bench.networks(),
        "products": bench.products(),
        "families": [],
        "errors": bench.errors,
    }
    for rows in bench.families(sizes, copies, data["products"]):
        data["families"] += rows
        data["left_out"] = bench.left_out
        # A run that is stopped leaves the sizes before.
        save(data, chosen.out)
    print(f"wrote bench.md, bench.svg and bench.json into {chosen.out}")
    for line in gpu_report.goals(data):
        print(line)
    for error in bench.errors:
        print(error, file=sys.stderr)
    return 1 if bench.errors else 0


if __name__ == "__main__":
    sys.exit(main())
