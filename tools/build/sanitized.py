"""Runs a Python program with the sanitizer's runtime loaded before it.

python tools/build/sanitized.py PROGRAM ARGUMENT...

PYDEVTENSOR_SANITIZE names the sanitizer, as for the build.
"""

from __future__ import annotations

import os
import sys

import toolchain
from toolchain import BuildError, Settings

# Name, the libraries' name for it, and options.
RUNTIMES = {
    # Python frees some memory only at exit, fibers switch stacks, and tests allocate
    # more memory than there is.
    "address": (
        "AddressSanitizer",
        "asan",
        "detect_leaks=0:detect_stack_use_after_return=0:allocator_may_return_null=1:"
        "max_allocation_size_mb=65536:handle_segv=1",
    ),
    # The data loader's forked workers compute, the simulator handles SIGSEGV, a fork
    # takes all locks, which are more than the detector of deadlocks counts.
    "thread": (
        "ThreadSanitizer",
        "tsan",
        "die_after_fork=0:allocator_may_return_null=1:max_allocation_size_mb=65536:"
        f"handle_segv=0:detect_deadlocks=0:suppressions={toolchain.ROOT}/tools/build/tsan.supp",
    ),
}


def environment() -> dict[str, str]:
    cc, cxx = toolchain.find_cc(), toolchain.find_cxx()
    chosen = next(n for n in RUNTIMES if n in Settings.from_environment().sanitize)
    label, key, options = RUNTIMES[chosen]
    names = (
        (f"libclang_rt.{key}-x86_64.so", f"libclang_rt.{key}.so")
        if cc.is_clang
        else (f"lib{key}.so",)
    )
    runtime = next((path for path in map(cc.file, names) if path), None)
    if not runtime:
        raise BuildError(
            f"The compiler {cc.command[0]!r} has no {label}; install it with: "
            "sudo apt-get install build-essential"
        )
    libraries = [runtime, cxx.file("libstdc++.so.6") or cxx.file("libstdc++.so") or ""]
    variable = f"{key.upper()}_OPTIONS"
    given = os.environ.get(variable, "")
    return {
        **os.environ,
        "LD_PRELOAD": " ".join(filter(None, libraries)),
        variable: options + (":" + given if given else ""),
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        # Python's own allocator would hide overruns of small blocks.
        "PYTHONMALLOC": "malloc",
    }


def main() -> None:
    try:
        variables = environment()
    except BuildError as error:
        sys.exit(f"pydevtensor: {error}")
    os.execvpe(sys.argv[1], sys.argv[1:], variables)


if __name__ == "__main__":
    main()
