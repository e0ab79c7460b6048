"""Fuzzing: random programs, compared with NumPy, with PyTorch and between devices.

python tools/fuzz --calls 20000                 the CPU, simulated GPUs and NumPy
python tools/fuzz --calls 20000 --against torch beside PyTorch, where it is installed
python tools/fuzz --against opdb                PyTorch's own samples (op_database.py)
python tools/fuzz --hostile --calls 20000       wrong types and values
python tools/fuzz --gradients --calls 20000     views, writes, hooks, gradients, beside
                                                finite differences or PyTorch
python tools/fuzz --seed 17 --calls 1           the program of one seed again
"""

import argparse
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The installed package, not the source tree, which has no extension module.
sys.path[:] = [
    str(HERE.parent),
    str(HERE.parents[1] / "tests"),
    *(p for p in sys.path if p and Path(p).resolve() not in (HERE, HERE.parents[1])),
]
os.environ.setdefault("PYDEVTENSOR_SIM_GPUS", "2")
os.environ.setdefault("PYDEVTENSOR_SIM_CUDNN", "0")
os.environ.setdefault("PYDEVTENSOR_SIM_MEMORY", "256M")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--calls", type=int, default=20000, help="how many statements")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument(
        "--against", choices=("numpy", "torch", "opdb", "none"), default="numpy"
    )
    parser.add_argument("--hostile", action="store_true", help="wrong types and values")
    parser.add_argument(
        "--gradients", action="store_true", help="views, writes, hooks and gradients"
    )
    parser.add_argument("--devices", default="cpu,cuda:0,cuda:1")
    parser.add_argument("--failures", type=int, default=1, help="stop after so many")
    parser.add_argument(
        "--length", type=int, default=12, help="statements of a program"
    )
    parser.add_argument("--trace", help=argparse.SUPPRESS)
    parser.add_argument("--ops", default="", help="of opdb: a pattern of names")
    parser.add_argument("-v", action="store_true", help="of opdb: every difference")
    chosen = parser.parse_args()
    if chosen.against == "opdb":
        from fuzz.op_database import campaign as database

        sys.exit(min(database(chosen.ops, chosen.v), 1))
    from fuzz.campaign import campaign, watched

    if not chosen.trace:
        sys.exit(watched(sys.argv[1:], [sys.executable, "-P", str(HERE)]))
    with open(chosen.trace, "w") as file:

        def trace(statements):
            file.seek(0)
            file.truncate()
            file.write("\n".join(statements))
            file.flush()

        failed = campaign(chosen, trace)
    os.unlink(chosen.trace)
    sys.exit(min(failed, 1))


if __name__ == "__main__":
    main()
