"""Writes docs/compatibility.md: which names of PyTorch are there, and what the rest is.

python tools/compatibility.py [--check]

PyTorch's modules and names are those of pydevtensor/_torch_names.txt; the tool looks
each of them up. DIFFERS says what a name that is there does in another way. Which
libraries were run, `make libraries` wrote into tools/libraries/results.json. --check
writes nothing and exits with status 1 if the file would change.
"""

from __future__ import annotations

import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
# The installed package, not the source tree.
sys.path[:] = [p for p in sys.path if p and Path(p).resolve() != ROOT]
sys.path.append(str(ROOT / "tools" / "libraries"))

from catalogue import rows  # noqa: E402

import pydevtensor as torch  # noqa: E402
from pydevtensor._absent import advice  # noqa: E402
from pydevtensor._stand_ins import is_module, is_stand_in, table  # noqa: E402

PAGE = ROOT / "docs" / "compatibility.md"
HEAD = """\
# Names of PyTorch

Made by `make docs`, which looks up every public module of PyTorch 2.13 and each of its
names: those of `__all__`, classes and functions, and a few private ones that libraries
import. All can be imported, as `torch` and as
`pydevtensor`. One that the library does not have is a *stand-in*: a module, or a class
that raises `NotImplementedError` when it is called, or when a class derived from it is;
the message says what to do instead. An attribute of it is an `AttributeError`, but for
the members of an enumeration. `isinstance(x, stand_in)` is `False`. What asks for a
part that is not there (`is_available()`, `is_initialized()`, `is_in_onnx_export()`)
says `False`, and `device_count()` 0. A decorator that only marks a function
(`torch.compiler.allow_in_graph`) gives it back; to register something
(`torch._dynamo.mark_static_address`) does nothing; a `Shard` or a `Replicate` can be
made. `hasattr(torch, name)` is `True` for every name of PyTorch. Use
`name in dir(torch)` instead: `dir()`, and so tab completion, leaves stand-ins out.

One exception: `torch.utils.tensorboard` can be imported where the package `tensorboard`
is installed, as in PyTorch.

"""
DIFFERS = {
    "": "`compile` fuses chains and translates nothing",
    "autograd.graph": "`pack_hook` gets a `Parameter` as a plain Tensor; `unpack_hook` "
    "has to give the shape that was saved",
    "overrides": "modes see no attributes of a Tensor, and not a function in Python, "
    "but the functions that it calls",
    "autograd.forward_ad": "a dual Tensor requires a gradient; `no_grad()` inside of a "
    "level drops tangents; `jvp` of a `Function` is not called",
    "backends.cuda": "`matmul.allow_tf32` is `set_float32_matmul_precision`",
    "backends.cudnn": "settings are remembered; `allow_tf32` counts",
    "backends.mkldnn": "settings are remembered",
    "compiler": "chains of elementwise operations are fused",
    "func": "`vmap` calls a function for each element where PyTorch refuses it",
    "fx": "the functions of this package, of `math` and of `wrap()` are recorded while "
    "`symbolic_trace` runs",
    "jit": "`script` and `trace` give the module back; `save` and `load` for layers of "
    "`nn`",
    "library": "operators stay when their `Library` goes; `vmap` loops over them",
    "multiprocessing": "Python's; tensors go as copies but for those in shared memory",
    "nn.attention.flex_attention": "`mask_mod` is asked for all pairs; blocks that are "
    "masked are not skipped",
    "onnx": "`export` writes records of `torch.fx` traces, and gives an "
    "`onnx.ModelProto`",
    "ops": "`aten` has this package's functions and methods; overloads of one name are "
    "one function",
    "profiler": "events are kernels, copies and waits, by source line",
    "quasirandom": "by SciPy; a scrambled sequence has other numbers",
    "serialization": "`load` refuses files of before version 1.6, and storages without "
    "a tensor",
    "utils.flop_counter": "counts kernels, by their names",
    "xpu": "no device",
    "mps": "no device",
}
LIBRARIES = """\
`make libraries` installs each into an environment without PyTorch, with this package as
`torch`, and runs programs in the style of its README (`tests/libraries`), whose numbers
have to be those that they print under PyTorch, and its own tests where its source
distribution has them. `tools/libraries/catalogue.toml` lists the libraries.
"""
TYPES = """\
## Element types

{names} are values of the class `torch.dtype`: they have a text, `itemsize`,
`is_floating_point`, `is_complex`, they compare, hash and pickle. A tensor of such a
type cannot be made: `TypeError`.
"""


Found = dict[str, tuple[list[str], list[str]] | None]


def look_up(path: str) -> tuple[list[str], list[str]] | None:
    """The names of a module that are there, and its stand-ins; None for a stand-in."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = import_module(f"pydevtensor.{path}".removesuffix("."))
        if is_stand_in(module):
            return None
        names = sorted(name for name in table()[path] if "." not in name)
        absent = [name for name in names if is_stand_in(value_of(module, name))]
    return [name for name in names if name not in absent], absent


def value_of(module: ModuleType, name: str) -> object:
    """An attribute; those that _C lacks are torch._C's."""
    if module is torch._C and name not in vars(module):
        return torch._find_absent(module.__name__, name)
    value: object = getattr(module, name)
    return value


def shortened(names: list[str]) -> str:
    """The names as text; those that begin or end with one word, if many, by that."""
    families = defaultdict(list)
    for name in names:
        first = name.partition("_")[0]
        ends = next((e for e in ("Type", "Storage") if name.endswith(e)), None)
        families[f"…{ends}" if ends else f"{first}_…"].append(name)
    words = []
    for family, members in families.items():
        if len(members) > 3:
            words.append(f"`{family}` ({len(members)})")
        else:
            words += [f"`{name}`" for name in members]
    return ", ".join(sorted(words, key=str.lower))


def title(path: str) -> str:
    return f"`torch.{path}`".replace(".`", "`")


def page() -> str:
    found = {path: look_up(path) for path in sorted(table()) if is_module(path)}
    lines = [HEAD + "## Modules that are there\n"]
    lines += ["| module | names there | differs | stand-ins |", "|---|---|---|---|"]
    whole = []
    for path, names in found.items():
        if names is None:
            continue
        there, absent = names
        if absent or path in DIFFERS:
            count = f"{len(there)} of {len(there) + len(absent)}"
            cells = [title(path), count, DIFFERS.get(path, ""), shortened(absent)]
            lines.append(f"| {' | '.join(cells)} |".replace("|  |", "| |"))
        elif there:
            whole.append(title(path))
    lines += ["", f"All names are there in {', '.join(whole)}.", ""]
    lines += ["## Modules that are stand-ins\n"]
    lines += ["| module | below it | names | instead |", "|---|---|---|---|"]
    lines += list(stand_ins(found))
    lines += ["", "## Libraries that were tried\n"]
    lines += [LIBRARIES]
    lines += ["| library | version | day | programs | own tests | what stops |"]
    lines += ["|---|---|---|---|---|---|"]
    lines += [f"| {' | '.join(row)} |".replace("|  |", "| |") for row in rows()]
    types = sorted(n for n, v in vars(torch).items() if is_absent_type(v))
    lines += ["", TYPES.format(names=", ".join(f"`{n}`" for n in types))]
    return "\n".join(lines)


def is_absent_type(value: object) -> bool:
    return isinstance(value, torch.dtype) and type(value) is not torch.dtype


def stand_ins(found: Found) -> Iterator[str]:
    """A row for each stand-in right below torch, and one for those below a module."""
    rows: dict[str, list[str]] = defaultdict(list)
    for path, names in found.items():
        if names is None:
            top = path.partition(".")[0]
            rows[top if found[top] is None else next(above(path, found))].append(path)
    for top, paths in sorted(rows.items()):
        count = sum("." not in name for path in paths for name in table()[path])
        if found[top] is None:
            cells = [title(top), "", str(count), advice(top) or ""]
        else:
            inside = [path.removeprefix(f"{top}.") for path in paths]
            tops = [n for n in inside if not any(n.startswith(f"{i}.") for i in inside)]
            cells = [title(top), ", ".join(f"`{n}`" for n in tops), str(count), ""]
        yield f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")


def above(path: str, found: Found) -> Iterator[str]:
    """The modules above one that are there, from the nearest on."""
    while path := path.rpartition(".")[0]:
        if found.get(path) is not None:
            yield path


def main() -> None:
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        sys.exit(
            "docs/compatibility.md is not up to date; bring it there with: make docs"
        )


if __name__ == "__main__":
    main()
