"""What recording costs: `python benchmarks/bench_profiler.py`.

The memory of a profile that sees ten million events and keeps a million of them; then
nanoseconds of `a + b` of three elements while recording is off and on.
"""

import resource
import time

import pydevtensor as torch

WAYS = {
    "off": None,
    "on, without lines": {"with_stack": False},
    "on": {},
    "on, with shapes": {"record_shapes": True},
    "off again": None,
}


def nanoseconds(a, b, calls=10_000, rounds=20):
    """The least time of a call."""
    best = float("inf")
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(calls):
            a + b
        best = min(best, time.perf_counter() - begin)
    return best / calls * 1e9


def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    a, b = torch.ones(3), torch.ones(3)
    before = megabytes()
    with torch.profiler.profile() as prof:
        for _ in range(10_000_000):
            a + b
        during = megabytes()
    kept = len(prof.events())
    print(
        f"ten million events: {kept} kept, {prof.dropped} dropped; "
        f"{during - before:.0f} MB while it ran, {megabytes() - before:.0f} MB with "
        "the list of events"
    )
    del prof
    for name, options in WAYS.items():
        if options is None:
            time_of_call = nanoseconds(a, b)
        else:
            with torch.profiler.profile(**options):
                time_of_call = nanoseconds(a, b)
        print(f"{name:20}{time_of_call:8.0f} ns")


if __name__ == "__main__":
    main()
