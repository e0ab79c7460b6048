"""The pages of the reference, from the docstrings of the installed package."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import entries
import families
import public_api

# PyTorch's names of files: of these only what no other module has is shown.
OF_NN = ("nn.modules.module", "nn.parameter")
SECOND_NAMES = {*OF_NN, "autograd.function", "autograd.grad_mode", "autograd.variable"}
SECOND_NAMES |= {"cuda.streams", "functional"}
# A page: its file, its title, its modules. The root, a page for each group, comes after
# these, so that a class stands with its members on the page of its subject.
PAGES = (
    ("nn", "Layers: nn", ("nn", "nn.init", "nn.parallel", *OF_NN)),
    (
        "nn-utils",
        "Helpers of layers: nn.utils",
        ("nn.utils", "nn.utils.rnn")
        + ("nn.utils.parametrize", "nn.utils.parametrizations", "nn.utils.stateless"),
    ),
    ("nn-functional", "Functions of layers: nn.functional", ("nn.functional",)),
    ("optim", "Optimizers: optim", ("optim", "optim.lr_scheduler", "optim.swa_utils")),
    ("data", "Data: utils.data", ("utils.data", "utils.checkpoint", "utils.dlpack")),
    ("cuda", "GPUs: cuda", ("cuda", "cuda.memory", "cuda.random", "cuda.comm", "cpu")),
    ("fft", "Fourier transforms: fft", ("fft",)),
    ("linalg", "Linear algebra: linalg", ("linalg",)),
    ("special", "Special functions: special", ("special",)),
    ("distributions", "Distributions: distributions", ("distributions",)),
    (
        "autograd",
        "Derivatives: autograd",
        ("autograd", "autograd.functional", "autograd.function"),
    ),
    ("amp", "Mixed precision: amp", ("amp",)),
    ("func", "Function transforms: func", ("func",)),
    (
        "vision",
        "Images: vision",
        ("vision.datasets", "vision.transforms") + ("vision.models", "vision.utils"),
    ),
    ("profiler", "Profiles: profiler", ("profiler",)),
    (
        "files",
        "Files: serialization, safetensors, jit",
        ("serialization",) + ("safetensors", "jit"),
    ),
    ("tools", "Tests, printing, random states", ("testing", "printing", "random")),
)
FIRST = ("tensor", "torch")  # in the list of pages


def all_pages() -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """The pages, with one for public modules that none of them names."""
    named = {"", *SECOND_NAMES}.union(*(modules for _, _, modules in PAGES))
    others = tuple(name for name in public_api.MODULES if name not in named)
    # A module that only holds others, such as vision, has no entries.
    others = tuple(name for name in others if has_entries(name))
    return (*PAGES, ("more", "Other modules", others)) if others else PAGES


def has_entries(name: str) -> bool:
    where = public_api.module(name)
    values = (getattr(where, each) for each in public_api.public_names(where))
    return any(not isinstance(value, types.ModuleType) for value in values)


def title(text: str) -> list[str]:
    return [text, "=" * len(text), ""]


def summaries(named: dict[str, Any]) -> list[str]:
    """A table of names with a sentence on each; x_ stands beside x."""
    if not named:
        return []
    lines = [".. list-table::", "   :class: names", "   :widths: 30 70", ""]
    for name, value in named.items():
        both = [name]
        if name.endswith("_") and name.removesuffix("_") in named:
            continue
        if f"{name}_" in named:
            both.append(f"{name}_")
        shown = ", ".join(f":py:obj:`{n.rpartition('.')[2]} <{n}>`" for n in both)
        lines += [f"   * - {shown}", f"     - {entries.summary(value)}".rstrip()]
    return [*lines, ""]


def section(heading: str) -> list[str]:
    return [heading, "-" * len(heading), ""]


def toctree(files: Iterable[str], *options: str) -> list[str]:
    shown = [f"   :{option}" for option in options]
    return [".. toctree::", *shown, "", *(f"   {file}" for file in files), ""]


def by_group(named: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Names of torch, or of Tensor's members, by the file of their group."""
    found: dict[str, dict[str, Any]] = {file: {} for file, _, _ in families.GROUPS}
    for name, value in named.items():
        found[families.group(name.rpartition(".")[2], value)][name] = value
    return found


class Reference:
    """Writes the pages; remembers which classes have been shown with their members."""

    def __init__(self, folder: Path, sources: str) -> None:
        self.folder = folder
        self.sources = sources
        self.shown: dict[Any, str] = {}
        self.seen: set[int] = set()
        self.classes = public_api.class_names()
        self.count = 0

    def entry(self, name: str, value: Any, member: bool) -> list[str]:
        kind = entries.kind_of(value, member)
        label = name.rpartition(".")[2] if member else f"torch.{name}"
        self.count += 1
        return entries.lines(kind, name, label, value, self.sources)

    def class_entry(self, name: str, value: type) -> list[str]:
        lines = self.entry(name, value, False)
        if value in self.shown:
            first = f"torch.{self.shown[value]}"
            return [*lines, f"   The same class as :py:obj:`{first}`.", ""]
        self.shown[value] = name
        for member in entries.member_names(value, self.classes):
            inner = public_api.member(value, member)
            if inner is not None:
                found = self.entry(f"{name}.{member}", inner, True)
                lines += [f"   {line}".rstrip() for line in found]
        return lines

    def names(self, name: str) -> dict[str, Any]:
        """The names of a module that have entries on its page."""
        where = public_api.module(name)
        found = {}
        for each in sorted(public_api.public_names(where)):
            value = getattr(where, each)
            full = f"{name}.{each}".strip(".")
            if isinstance(value, types.ModuleType) or full == "Tensor":
                continue
            if name in SECOND_NAMES and id(value) in self.seen:
                continue
            self.seen.add(id(value))
            found[f"torch.{full}"] = value
        return found

    def entries(self, named: dict[str, Any]) -> list[str]:
        lines = []
        for name, value in named.items():
            full = name.removeprefix("torch.")
            if isinstance(value, type):
                lines += self.class_entry(full, value)
            else:
                lines += self.entry(full, value, False)
        return lines

    def page(self, modules: tuple[str, ...]) -> list[str]:
        text = []
        for name in modules:
            named = self.names(name)
            if len(modules) > 1:
                text += section(f"torch.{name}")
            text += [*summaries(named), *self.entries(named)]
        return text

    def torch(self) -> list[str]:
        """All functions of torch in short; the pages of their groups have the rest."""
        grouped = by_group(self.names(""))
        text = toctree((f"torch-{file}" for file in grouped), "hidden:")
        for file, heading, _ in families.GROUPS:
            text += [*section(heading), *summaries(grouped[file])]
            self.save(f"torch-{file}", heading, self.entries(grouped[file]))
        return text

    def tensor(self) -> list[str]:
        value = public_api.module("").Tensor
        members = {
            f"torch.Tensor.{name}": inspect.getattr_static(value, name)
            for name in entries.member_names(value, self.classes)
        }
        text = []
        grouped = by_group(members)
        for file, heading, _ in families.GROUPS:
            if grouped[file]:
                text += [*section(heading), *summaries(grouped[file])]
        return [*text, *section("The class"), *self.class_entry("Tensor", value)]

    def write(self) -> int:
        """The number of entries that were written."""
        self.folder.mkdir(parents=True, exist_ok=True)
        titles = {"tensor": "Methods of Tensor"}
        for file, heading, modules in all_pages():
            titles[file] = heading
            self.save(file, heading, self.page(modules))
        titles["torch"] = "Functions of torch"
        self.save("torch", titles["torch"], self.torch())
        self.save("tensor", titles["tensor"], self.tensor())
        order = dict.fromkeys((*FIRST, *titles))
        self.save(
            "index",
            "Reference",
            [
                "Made from the docstrings of the installed package, whose examples the "
                "tests run. Names are those after ``import pydevtensor as torch``.",
                "",
                *toctree(order, "maxdepth: 1"),
            ],
        )
        return self.count

    def save(self, file: str, heading: str, lines: list[str]) -> None:
        text = "\n".join([*title(heading), *lines]) + "\n"
        (self.folder / f"{file}.rst").write_text(text)
