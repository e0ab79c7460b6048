"""Runs the examples in PyTorch's docstrings, and compares what they print.

python -P tools/docstrings.py PYTHON      PYTHON: an interpreter that has PyTorch
python -P tools/docstrings.py PYTHON -v   and every example that differs

PYTHON runs this file with --record: it collects the docstrings of PyTorch's public
modules, runs their examples and writes down what each prints or raises. Then the same
examples run here. They are the same if their words are, and their numbers to 1e-3;
addresses and line breaks do not count. An example that fails in PyTorch is left out.
"""

from __future__ import annotations

import argparse
import ast
import collections
import contextlib
import doctest
import importlib
import inspect
import io
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

MODULES = """
torch torch.Tensor torch.nn torch.nn.functional torch.nn.init torch.nn.utils
torch.nn.utils.rnn torch.nn.utils.parametrize torch.nn.utils.parametrizations
torch.nn.utils.prune torch.nn.attention torch.optim torch.optim.lr_scheduler
torch.optim.swa_utils torch.linalg torch.special torch.fft torch.distributions
torch.distributions.transforms torch.distributions.constraints torch.autograd
torch.autograd.functional torch.autograd.forward_ad torch.autograd.graph torch.func
torch.utils.data torch.utils.checkpoint torch.utils.dlpack torch.sparse
torch.signal.windows torch.fx torch.amp torch.masked torch.testing torch.futures
torch.library torch.random torch.overrides torch.profiler torch.utils.benchmark
torch.serialization torch.jit torch.cuda torch.storage torch.nested torch.compiler
"""
# They start processes, need a GPU or a network, or do not end.
LEFT_OUT = re.compile(
    r"spawn|multiprocessing|\.hub|breakpoint|init_process_group|DistributedDataParallel"
    r"|set_default_device|DataLoader\(\.\.\.\)"
)
SECONDS = 20  # for an example
NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?")


def docstrings(torch: Any) -> Iterator[tuple[str, str]]:
    """Each public docstring once, by the first of its names."""
    seen = set()
    for module in MODULES.split():
        owner = torch
        for word in module.split(".")[1:]:
            if not hasattr(owner, word):
                owner = importlib.import_module(module)
                break
            owner = getattr(owner, word)
        found = {module: owner}
        for name in sorted(set(dir(owner)) - {"__init__"}):
            value = None if name.startswith("_") else getattr(owner, name, None)
            found[f"{module}.{name}"] = value
            if inspect.isclass(value) and value.__module__.startswith("torch"):
                methods = vars(value).items()
                found |= {f"{module}.{name}.{key}": m for key, m in methods}
        for name, value in found.items():
            text = getattr(value, "__doc__", None)
            if inspect.ismodule(value) and name != module:
                continue
            if isinstance(text, str) and ">>>" in text and text not in seen:
                seen.add(text)
                yield name, text


def examples(text: str) -> list[str]:
    """The sources of a docstring's examples, also where doctest finds it badly set."""
    try:
        return [e.source for e in doctest.DocTestParser().get_examples(text)]
    except ValueError:
        found: list[str] = []
        for line in map(str.strip, text.split("\n")):
            if line.startswith(">>> "):
                found.append(line[4:] + "\n")
            elif line.startswith("...") and found:
                found[-1] += line[4:] + "\n"
        return found


class TooLong(BaseException):
    pass


def ring(*unused: Any) -> None:
    raise TooLong


def run(source: str, names: dict[str, Any]) -> tuple[str, str]:
    """The error that an example raises, or "", and what it prints."""
    if LEFT_OUT.search(source):
        return "left out", ""
    printed = io.StringIO()
    signal.alarm(SECONDS)
    try:
        kind = "single" if len(ast.parse(source).body) == 1 else "exec"
        with contextlib.redirect_stdout(printed):
            exec(compile(source, "<example>", kind), names)
    except TooLong:
        return "too long", ""
    except (Exception, SystemExit) as error:
        return f"{type(error).__name__}: {error}"[:300], ""
    finally:
        signal.alarm(0)
    return "", printed.getvalue()


def run_all(torch: Any, found: dict[str, list[str]]) -> dict[str, list[Any]]:
    """Each docstring's examples in names of its own, with seed 0."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, ring)
    sys.displayhook = lambda value: None if value is None else print(repr(value))
    results = {}
    home = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, sources in found.items():
            names = {"torch": torch, "math": math, "Tensor": torch.Tensor}
            names |= {"nn": torch.nn, "F": torch.nn.functional}
            names["np"] = importlib.import_module("numpy")
            torch.manual_seed(0)
            results[name] = [run(source, names) for source in sources]
            torch.set_default_dtype(torch.float32)
            torch.set_grad_enabled(True)
            torch.set_printoptions(profile="default")
        os.chdir(home)
    return results


def alike(mine: str, other: str) -> bool:
    """Whether two texts have the same words, and numbers that are close."""
    texts = [re.sub(r"0x[0-9a-f]+", "0x", text) for text in (mine, other)]
    texts = [re.sub(r"pydevtensor|torch\._C", "torch", text) for text in texts]
    words = [NUMBER.sub("0", re.sub(r"\s+", "", text)) for text in texts]
    numbers = [[*map(float, NUMBER.findall(text))] for text in texts]
    return words[0] == words[1] and all(
        math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-5)
        for a, b in zip(*numbers, strict=True)
    )


def record(path: str) -> None:
    torch = importlib.import_module("torch")
    found = {name: examples(text) for name, text in docstrings(torch)}
    with open(path, "w") as file:
        json.dump([torch.__version__, found, run_all(torch, found)], file)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -P tools/docstrings.py")
    parser.add_argument("python", help="an interpreter that has PyTorch")
    parser.add_argument("-v", action="store_true", help="show what differs")
    parser.add_argument("--record", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.record:  # `python` is the file
        return record(given.python)
    with tempfile.NamedTemporaryFile("r") as file:
        again = [given.python, "-P", __file__, "--record", file.name]
        subprocess.run(again, check=True)
        version, found, theirs = json.load(file)
    ours = run_all(importlib.import_module("pydevtensor").install_as_torch(), found)
    counts: collections.Counter[str] = collections.Counter()
    for name, sources in found.items():
        rows = zip(sources, theirs[name], ours[name], strict=True)
        for source, (error, text), (mine, printed) in rows:
            fate = "raise" if mine else "same" if alike(printed, text) else "differ"
            counts["left out" if error or mine == "left out" else fate] += 1
            if given.v and not error and fate != "same":
                shown = "\n  ".join(f"{part:.300}" for part in (source, text))
                print(f"{name}: {shown}  {mine or printed:.300}\n")
    total = sum(counts.values()) - counts["left out"]
    print(f"PyTorch {version}, {len(found)} docstrings, {total} examples:", end=" ")
    print(*(f"{n} {fate}" for fate, n in counts.most_common()), sep=", ")


if __name__ == "__main__":
    main()
