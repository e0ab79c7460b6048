"""Show the devices and libraries that pydevtensor finds.

`python -m pydevtensor run script.py ARGUMENTS` (or `run -m module ARGUMENTS`) runs a
program whose `import torch` means pydevtensor. `python -m pydevtensor smi` shows GPUs,
real and simulated, in the way of nvidia-smi, and `python -m pydevtensor top` the
processes that use pydevtensor.

`python -m pydevtensor launch --nproc-per-node=4 script.py ARGUMENTS` runs it as four
processes that work together: docs/distributed.md. With --nodes 2 --gpus 4 --card h100
they are the ranks of a simulated cluster: docs/scale.md.

`python -m pydevtensor estimate script.py ARGUMENTS --cards t4,h200` says how long it
would take on these cards: docs/clock.md.

`python -m pydevtensor nvcc program.cu -o program` compiles a CUDA program for simulated
GPUs: docs/kernels.md.
"""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator

import pydevtensor
from pydevtensor import _C, cuda


def size(n: int) -> str:
    return f"{n / 2**30:.1f} GiB" if n >= 2**30 else f"{n / 2**20:.0f} MiB"


def table(rows: Iterable[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (c.ljust(w) for c, w in zip(row, widths, strict=True))
        print("  " + "  ".join(cells).rstrip())


def device_rows() -> Iterator[tuple[str, ...]]:
    yield "device", "name", "memory", "compute capability", "kind"
    physical = [
        cuda.get_device_properties(i).physical for i in range(cuda.device_count())
    ]
    for i, card in enumerate(physical):
        facts = cuda.get_device_properties(i)
        kind = "real"
        if physical.count(card) > 1:
            kind = f"virtual, a part of card {card}"
        if facts.simulated:
            shared = "virtual and " if physical.count(card) > 1 else ""
            kind = shared + "simulated"
        try:
            free, total = cuda.mem_get_info(i)
            memory = f"{size(total - free)} used of {size(total)}"
        except RuntimeError as error:
            memory = f"{size(facts.total_memory)} ({error})"
        yield f"cuda:{i}", facts.name, memory, f"{facts.major}.{facts.minor}", kind


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m pydevtensor",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = f"pydevtensor {pydevtensor.__version__}"
    parser.add_argument("--version", action="version", version=version)
    parser.add_argument("run", nargs="*", help="run a program, or estimate its time")
    if parser.parse_args().run:
        parser.error(
            "give what to run: run script.py, run -m module or run -c code; or launch, "
            "smi, top, nvcc"
        )
    try:
        report()
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def report() -> None:
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"pydevtensor {pydevtensor.__version__}, Python {version}")

    print("\nGPUs")
    if cuda.is_available():
        table(list(device_rows()))
    else:
        print("  none")
    why = cuda.why_unavailable()
    if why:
        print(f"  {why}")

    found = _C._facts("cuda")
    if found:
        print("\nCUDA")
        names = {
            "kind": "runtime's kind",
            "driver": "driver's CUDA version",
            "runtime": "runtime's CUDA version",
            "cublas": "cuBLAS",
            "cublas_path": "cuBLAS is from",
            "cusolver": "cuSOLVER",
            "cusolver_path": "cuSOLVER is from",
            "cudnn": "cuDNN",
            "cudnn_path": "cuDNN is from",
            "cufft": "cuFFT",
            "cufft_path": "cuFFT is from",
            "architectures": "kernels for",
        }
        table([(names.get(k, k), v) for k, v in found.items() if v])

    cpu = _C._facts("cpu")
    blas = cpu.get("cpu.blas", "")
    if blas == "own":
        blas = (
            "pydevtensor's own kernel (pip install scipy-openblas64 for a faster one)"
        )
    print("\nCPU")
    table(
        [
            ("vector instructions", cpu.get("cpu.isa", "")),
            ("threads", cpu.get("cpu.threads", "")),
            ("BLAS", blas),
            *(
                (title, cpu[name])
                for title, name in (
                    ("BLAS was built as", "cpu.blas_config"),
                    ("BLAS runs its code for", "cpu.blas_core"),
                )
                if name in cpu
            ),
        ]
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"] and sys.argv[2:]:
        from pydevtensor._run import run

        if "LOCAL_WORLD_SIZE" in os.environ and "RANK" not in os.environ:
            from pydevtensor._launch import take_rank

            take_rank()
        run(sys.argv[2:])
    elif sys.argv[1:2] == ["launch"]:
        from pydevtensor._launch import main as launch

        sys.exit(launch(sys.argv[2:]))
    elif sys.argv[1:2] == ["smi"]:
        from pydevtensor._smi import main as smi

        smi(sys.argv[2:])
    elif sys.argv[1:2] == ["top"]:
        from pydevtensor._top import main as top

        top(sys.argv[2:])
    elif sys.argv[1:2] == ["nvcc"]:
        from pydevtensor._nvcc import main as nvcc

        sys.exit(nvcc(sys.argv[2:]))
    elif sys.argv[1:2] == ["estimate"]:
        from pydevtensor._cluster import estimate as scale
        from pydevtensor._estimate import main as estimate

        sys.exit(estimate(sys.argv[2:], scale))
    else:
        main()
