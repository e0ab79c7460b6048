"""Make the golden files in tests/golden from PyTorch 2.13: what pydevtensor must reproduce.

    python tools/golden/make.py            write every set
    python tools/golden/make.py random     write one
    python tools/golden/make.py --check    write nothing; fail where a file would change

Run it in an environment that has PyTorch 2.13 (its build for the CPU is enough); pydevtensor
itself is not needed. tests/golden/README.md describes the files.
"""

import argparse
import importlib
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE.parent.parent / "tests" / "golden"
SETS = (
    "breadth",
    "checkpoints",
    "composed",
    "errors",
    "half",
    "learning",
    "modules",
    "optim",
    "printing",
    "promotion",
    "random",
    "rowwise",
    "semantics",
)
RELEASE = "2.13"


def import_torch():
    try:
        import torch
    except ImportError:
        sys.exit(
            "make.py: PyTorch is not installed in this environment "
            f"({sys.executable}).\nThe golden files are made from PyTorch {RELEASE}: "
            f"install it with\n    {sys.executable} -m pip install torch=={RELEASE}.0"
        )
    if not torch.__version__.startswith(RELEASE + "."):
        sys.exit(
            f"make.py: this is PyTorch {torch.__version__}, and the golden files are made "
            f"from {RELEASE}: install torch=={RELEASE}.0, or change RELEASE in make.py "
            "and look through what changes."
        )
    return torch


def to_json(golden):
    """One line for each item of a list: compact, and a change shows as a changed line."""
    dump = json.JSONEncoder(
        sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode
    parts = []
    for key in sorted(golden):
        value = golden[key]
        if isinstance(value, list):
            rows = ",\n".join(dump(row) for row in value)
            parts.append(f"{dump(key)}:[\n{rows}\n]")
        elif isinstance(value, dict):
            rows = ",\n".join(f"{dump(k)}:{dump(value[k])}" for k in sorted(value))
            parts.append(f"{dump(key)}:{{\n{rows}\n}}")
        else:
            parts.append(f"{dump(key)}:{dump(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main():
    parser = argparse.ArgumentParser(description="Make the golden files from PyTorch.")
    parser.add_argument(
        "sets", nargs="*", help=f"any of {', '.join(SETS)}; default: all"
    )
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    unknown = sorted(set(options.sets) - set(SETS))
    if unknown:
        parser.error(f"no such set: {', '.join(unknown)}; there are {', '.join(SETS)}")

    torch = import_torch()
    torch.set_num_threads(1)
    sys.path[:0] = [str(GOLDEN), str(HERE)]
    changed = []
    for name in options.sets or SETS:
        golden = importlib.import_module(f"{name}_cases").make(torch)
        golden["made_with"] = f"PyTorch {RELEASE}"
        text = to_json(golden)
        path = GOLDEN / f"{name}.json"
        if options.check:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                changed.append(name)
        else:
            path.write_text(text, encoding="utf-8")
            print(f"{path.name}: {len(text) / 1024:.0f} KiB")
    if changed:
        sys.exit(f"make.py: would change: {', '.join(changed)}")


if __name__ == "__main__":
    main()
