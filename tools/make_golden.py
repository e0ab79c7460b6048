"""Ask PyTorch again what the golden files in tests/golden record.

    python tools/make_golden.py            evaluate every case, write what changed
    python tools/make_golden.py random     evaluate the cases of one file
    python tools/make_golden.py --check    write nothing, fail if a file would change

The files are the only source of the cases: this evaluates their rows and puts
PyTorch's answers beside them. A recorded answer stays where the new one agrees with it
to rounding, because the last bits depend on the processor. Run it in an environment
with PyTorch 2.13 (its CPU build is enough) and NumPy; pydevtensor is not needed.
tests/golden/README.md describes the files and says how to add a case.
"""

import argparse
import base64
import importlib
import io
import json
import math
import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1] / "tests"
GOLDEN = TESTS / "golden"
RELEASE = "2.13"

sys.path.insert(0, str(TESTS))
from golden import (  # noqa: E402
    checkpoints,
    descent,
    dtensors,
    learning,
    optim,
    printing,
    programs,
    promotion,
)
from golden import random as random_numbers  # noqa: E402
from golden.describe import answer, difference, run  # noqa: E402


def import_torch():
    install = f"install it: {sys.executable} -m pip install torch=={RELEASE}.0"
    try:
        import torch
        import torch.fx.passes.shape_prop
        import torch.fx.passes.split_module
        import torch.nn.attention.flex_attention
        import torch.nn.utils.prune
        import torch.utils.benchmark
        import torch.utils.checkpoint
    except ImportError:
        sys.exit(f"make_golden.py: there is no PyTorch in this environment; {install}")
    if not torch.__version__.startswith(f"{RELEASE}."):
        sys.exit(
            f"make_golden.py: this is PyTorch {torch.__version__}, the files are "
            f"of {RELEASE}; {install}, or change RELEASE and review the diff"
        )
    torch.set_num_threads(1)
    return torch


# --- one function for each kind of file: the same rows with PyTorch's answers


def cases(golden, torch):
    """Rows of heading, source and answer, as breadth.json and most others have."""

    def evaluate(source):
        found, _ = answer(golden["setup"], source, torch)
        return found if golden["strides"] else without_strides(found)

    rows = [[row[0], row[1], evaluate(row[1])] for row in golden["cases"]]
    return {**golden, "cases": rows}


def without_strides(described):
    if isinstance(described, dict):
        rest = {k: v for k, v in described.items() if k != "stride"}
        return {k: without_strides(v) for k, v in rest.items()}
    if isinstance(described, list):
        return [without_strides(each) for each in described]
    return described


def make_errors(golden, torch):
    made = cases(golden, torch)
    accepted = [row[1] for row in made["cases"] if "raises" not in (row[2] or {})]
    if accepted:
        sys.exit(
            f"make_golden.py: PyTorch accepts what errors.json rejects: {accepted}"
        )
    return made


def make_checkpoints(golden, torch):
    def saved(row):
        file, value = io.BytesIO(), run(row["source"], {"torch": torch})
        torch.save(value, file, **row.get("options", {}))
        made = {**row, "file": base64.b64encode(file.getvalue()).decode()}
        if "value" in row:
            made["value"] = checkpoints.contents(value, torch)
        return made

    kinds = ("files", "refused", "trusted")
    return {key: [saved(row) for row in golden[key]] for key in kinds}


def make_learning(golden, torch):
    return {"found": rounded(learning.learn(torch, "cpu"), golden["found"])}


def make_optim(golden, torch):
    return {"found": rounded(optim.optimise(torch, "cpu"), golden["found"])}


def make_descent(golden, torch):
    return {"found": rounded(descent.descend(torch, "cpu"), golden["found"])}


def rounded(found, recorded):
    """Texts, and lists of numbers with as many digits as float32 needs, or float64
    where the name begins with that. Training multiplies rounding errors: the recorded
    list stays where all its numbers are close."""

    def value(name, new):
        if isinstance(new, str):
            return new
        wide = name.startswith("float64")
        digits, relative, absolute = (16, 1e-12, 1e-14) if wide else (9, 2e-5, 5e-7)
        new, old = [float(f"{v:.{digits}g}") for v in new], recorded.get(name, ())
        near = len(old) == len(new) and all(
            math.isclose(a, b, rel_tol=relative, abs_tol=absolute)
            for a, b in zip(old, new, strict=True)
        )
        return old if near else new

    return {name: value(name, new) for name, new in found.items()}


def make_printing(golden, torch):
    def text(tensor, options):
        torch.set_printoptions(profile="default")
        torch.set_printoptions(**options)
        printed = repr(tensor)
        torch.set_printoptions(profile="default")
        return printed

    def tensor(case):
        shown = text(printing.build(case, torch), case.get("options", {}))
        return {**case, "text": shown}

    def note(case):
        """PyTorch's CPU build has no tensor on a GPU. Its printing asks a tensor for
        its device and its grad_fn, so a subclass answers as such a tensor would.
        The text begins with the name of the class, hence `tensor`."""
        answers = {"device": property(lambda self: torch.device(case["device"]))}
        if case["grad_fn"]:
            node = type(case["grad_fn"], (), {})()
            answers["grad_fn"] = property(lambda self: node)
        if case["requires_grad"]:
            answers["requires_grad"] = property(lambda self: True)
        kind = type("tensor", (torch.Tensor,), answers)
        return {**case, "text": text(printing.build(case, torch).as_subclass(kind), {})}

    def form(case):
        dtype = getattr(torch, case["dtype"])
        value = torch.full(case["shape"], printing.plain(case["value"]), dtype=dtype)
        case = {key: case[key] for key in ("dtype", "shape", "value", "spec")}
        try:
            return {**case, "text": format(value, case["spec"])}
        except (TypeError, ValueError) as error:
            return {**case, "raises": type(error).__name__}

    names = {"torch": torch}
    return {
        "tensors": [tensor(case) for case in golden["tensors"]],
        "notes": [note(case) for case in golden["notes"]],
        "objects": [[row[0], str(eval(row[0], names))] for row in golden["objects"]],
        "objects_repr": [
            [row[0], repr(eval(row[0], names))] for row in golden["objects_repr"]
        ],
        "formats": [form(case) for case in golden["formats"]],
    }


def make_promotion(golden, torch):
    tables = {
        section: {
            source: promotion.table(section, source, golden, torch)
            for source in golden[section]
        }
        for section in promotion.SECTIONS
    }
    return {**golden, **tables}


def make_random(golden, torch):
    def script(row):
        torch.manual_seed(row["seed"])
        calls = [step[0] for step in row["steps"]]
        steps = [[call, random_numbers.numbers(call, torch)] for call in calls]
        return {"seed": row["seed"], "steps": steps}

    return {"scripts": [script(row) for row in golden["scripts"]]}


def make_programs(golden, torch):
    """Lines that agree to rounding stay: the last digits depend on the processor."""
    found = {}
    for name in programs.NAMES:
        old = golden["programs"].get(name, [])
        new = programs.printed([sys.executable], name, "cpu")
        same = programs.difference(new, old, 1e-4) is None
        found[name] = old if same else new
    return {"programs": found}


def make_dtensors(golden, torch):
    sources = [row[0] for row in golden["calls"]]
    found = dtensors.ask(sources, torch)
    return {"calls": [[*row] for row in zip(sources, found, strict=True)]}


def make_homes(golden, torch):
    def home(name):
        module, _, kind = name.rpartition(".")
        return getattr(importlib.import_module(module), kind).__module__

    return {"homes": {name: home(name) for name in golden["homes"]}}


MAKERS = {
    "activations": cases,
    "amp": cases,
    "attention": cases,
    "averages": cases,
    "forms": cases,
    "func": cases,
    "benchmark": cases,
    "breadth": cases,
    "edges": cases,
    "checkpoints": make_checkpoints,
    "descent": make_descent,
    "complex": cases,
    "complex_linalg": cases,
    "flex": cases,
    "fft": cases,
    "composed": cases,
    "distributions": cases,
    "dtensors": make_dtensors,
    "linalg": cases,
    "special": cases,
    "errors": make_errors,
    "fx": cases,
    "half": cases,
    "history": cases,
    "homes": make_homes,
    "hooks": cases,
    "layers": cases,
    "learning": make_learning,
    "losses": cases,
    "masked": cases,
    "modules": cases,
    "conv": cases,
    "nn": cases,
    "optim": make_optim,
    "parametrize": cases,
    "pooling": cases,
    "printing": make_printing,
    "programs": make_programs,
    "promotion": make_promotion,
    "prune": cases,
    "sparse": cases,
    "sparse_gradients": cases,
    "random": make_random,
    "recurrent": cases,
    "resampling": cases,
    "semantics": cases,
    "signal": cases,
    "trees": cases,
}


# --- files


def settle(old, new):
    """The new answers, but the old one of each row that agrees to rounding."""

    def row(before, now):
        return before if difference(before, now) is None else now

    settled = {}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, list) and len(before) == len(value):
            value = [row(a, b) for a, b in zip(before, value, strict=True)]
        elif isinstance(value, dict):
            value = {k: row(before.get(k), v) for k, v in value.items()}
        settled[key] = value
    return settled


def to_json(golden):
    """One line for each item of a section, so that a diff shows which cases change."""
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
    parser = argparse.ArgumentParser(description="Make the golden files with PyTorch.")
    parser.add_argument(
        "files", nargs="*", help=f"any of {', '.join(MAKERS)}; default: all"
    )
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    if unknown := sorted(set(options.files) - set(MAKERS)):
        parser.error(f"no such file: {', '.join(unknown)}")

    torch = import_torch()
    changed = []
    for name in options.files or MAKERS:
        path = GOLDEN / f"{name}.json"
        before = path.read_text(encoding="utf-8")
        old = json.loads(before)
        new = settle(old, MAKERS[name](old, torch))
        text = to_json({**new, "made_with": f"PyTorch {RELEASE}"})
        if text != before:
            changed.append(name)
            if not options.check:
                path.write_text(text, encoding="utf-8")
    if options.check and changed:
        sys.exit(f"make_golden.py: would change: {', '.join(changed)}")
    print(f"changed: {', '.join(changed) or 'nothing'}")


if __name__ == "__main__":
    main()
