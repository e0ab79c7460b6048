"""Runs a Python program with the sanitizers' runtimes loaded before it.

python tools/build/sanitized.py PROGRAM ARGUMENT...
"""

from __future__ import annotations

import os
import sys

import toolchain
from toolchain import BuildError

# Python frees some memory only at exit, fibers switch stacks, and tests allocate more
# memory than there is.
OPTIONS = (
    "detect_leaks=0:detect_stack_use_after_return=0:allocator_may_return_null=1:"
    "max_allocation_size_mb=65536:handle_segv=1"
)


def environment() -> dict[str, str]:
    cc, cxx = toolchain.find_cc(), toolchain.find_cxx()
    names = (
        ("libclang_rt.asan-x86_64.so", "libclang_rt.asan.so")
        if cc.is_clang
        else ("libasan.so",)
    )
    runtime = next((path for path in map(cc.file, names) if path), None)
    if not runtime:
        raise BuildError(
            f"The compiler {cc.command[0]!r} has no AddressSanitizer; install it with: "
            "sudo apt-get install build-essential"
        )
    libraries = [runtime, cxx.file("libstdc++.so.6") or cxx.file("libstdc++.so") or ""]
    given = os.environ.get("ASAN_OPTIONS", "")
    return {
        **os.environ,
        "LD_PRELOAD": " ".join(filter(None, libraries)),
        "ASAN_OPTIONS": OPTIONS + (":" + given if given else ""),
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
