"""The CPU's matrix products by the library's own kernel and by the BLAS.

    python benchmarks/bench_matmul.py [rounds] [--threads N]

Each has a process of its own, since a process chooses once (PYDEVTENSOR_BLAS). Their
rounds are interleaved, and minima compared, so that a busy machine slows both.
"""

import json
import os
import subprocess
import sys
import time

from compare import rounds

# m, n, k of (m, k) @ (k, n).
SQUARE = [(n, n, n) for n in (256, 512, 1024, 2048)]
THIN = [
    (2048, 64, 512),
    (64, 2048, 512),
    (2048, 2048, 64),
    (32, 1024, 1024),
    (1024, 32, 1024),
    (256, 256, 2048),
    (2048, 16, 2048),
    (16, 2048, 2048),
    (1000, 1000, 300),
]
# How the operands lie: as they are, or transposed.
LAYOUTS = ["n n", "n t", "t n"]


def cases():
    for dtype in ("float32", "float64"):
        for mnk in SQUARE + THIN:
            for layout in LAYOUTS if mnk in ((512,) * 3, *THIN[:2]) else LAYOUTS[:1]:
                yield dtype, mnk, layout


def operand(torch, shape, dtype, layout):
    shape = shape[::-1] if layout == "t" else shape
    made = torch.rand(*shape, dtype=getattr(torch, dtype))
    return made.T if layout == "t" else made


def worker(threads):
    """Answers each line, the number of a case, with the best of some calls in seconds.

    One thread's time is the processor's, which other processes change less.
    """
    import pydevtensor as torch

    clock = time.thread_time if threads == "1" else time.perf_counter
    made, last = list(cases()), None
    for line in sys.stdin:
        dtype, (m, n, k), layout = made[int(line)]
        if line != last:
            a = operand(torch, (m, k), dtype, layout[0])
            b = operand(torch, (k, n), dtype, layout[2])
            a @ b
            last = line
        times = []
        for _ in range(max(2, int(2e8 / (m * n * k)))):
            start = clock()
            a @ b
            times.append(clock() - start)
        print(json.dumps(min(times)), flush=True)


def start(blas, threads):
    environment = {
        **os.environ,
        "PYDEVTENSOR_BLAS": blas,
        "PYDEVTENSOR_NUM_THREADS": threads,
    }
    return subprocess.Popen(
        [sys.executable, __file__, "--worker", "--threads", threads],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def ask(process, number):
    print(number, file=process.stdin, flush=True)
    return json.loads(process.stdout.readline())


def main():
    named = "--threads" in sys.argv
    threads = sys.argv[sys.argv.index("--threads") + 1] if named else "1"
    if "--worker" in sys.argv:
        return worker(threads)
    workers = [start("own", threads), start("auto", threads)]
    title = "GFLOP/s, minima; threads: " + threads
    print(title.ljust(46), *(f"{t:>8}" for t in ("own", "BLAS", "own/BLAS")))
    for number, (dtype, (m, n, k), layout) in enumerate(cases()):
        best = [float("inf")] * 2
        for _ in range(rounds(7)):
            for i, process in enumerate(workers):
                best[i] = min(best[i], ask(process, number))
        rates = [2e-9 * m * n * k / seconds for seconds in best]
        label = f"{dtype}  ({m}, {k}) @ ({k}, {n})  {layout}"
        print(
            label.ljust(46),
            *(f"{rate:8.1f}" for rate in rates),
            f"{rates[0] / rates[1]:8.2f}",
            flush=True,
        )
    for process in workers:
        process.stdin.close()
        process.wait()


if __name__ == "__main__":
    main()
