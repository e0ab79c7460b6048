"""The pages of the reference, from the docstrings of the installed package."""

from __future__ import annotations

import inspect
import types
from pathlib import Path
from typing import Any

import entries
import public_api

# PyTorch's names of files: of these only what no other module has is shown.
OF_NN = ("nn.modules.module", "nn.parameter")
SECOND_NAMES = {*OF_NN, "autograd.function", "autograd.grad_mode", "autograd.variable"}
SECOND_NAMES |= {"cuda.streams", "functional"}
# A page: its file, its title, its modules. The root comes after the others, so that a
# class stands with its members on the page of its subject.
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
    ("torch", "Functions of torch", ("",)),
)
FIRST = ("tensor", "torch")  # in the list of pages


def all_pages() -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """The pages, with one for public modules that none of them names."""
    named = SECOND_NAMES.union(*(modules for _, _, modules in PAGES))
    others = tuple(name for name in public_api.MODULES if name not in named)
    *before, root = PAGES
    # A module that only holds others, such as vision, has no entries.
    others = tuple(name for name in others if has_entries(name))
    return (*before, ("more", "Other modules", others), root) if others else PAGES


def has_entries(name: str) -> bool:
    where = public_api.module(name)
    values = (getattr(where, each) for each in public_api.public_names(where))
    return any(not isinstance(value, types.ModuleType) for value in values)


def title(text: str) -> list[str]:
    return [text, "=" * len(text), ""]


def links(names: list[str]) -> list[str]:
    """All names of a page in one paragraph, to find one without scrolling."""
    if len(names) < 8:
        return []
    last = [name.rpartition(".")[2] for name in names]
    shown = (
        f":py:obj:`{short} <{name}>`" for short, name in zip(last, names, strict=True)
    )
    return [".. container:: names", "", "   " + " ".join(shown), ""]


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
            inner = inspect.getattr_static(value, member)
            if inner is not None:
                found = self.entry(f"{name}.{member}", inner, True)
                lines += [f"   {line}".rstrip() for line in found]
        return lines

    def module(self, name: str) -> tuple[list[str], list[str]]:
        """The entries of a module, and their names."""
        where = public_api.module(name)
        lines, names = [], []
        for each in sorted(public_api.public_names(where)):
            value = getattr(where, each)
            full = f"{name}.{each}".strip(".")
            if isinstance(value, types.ModuleType) or full == "Tensor":
                continue
            if name in SECOND_NAMES and id(value) in self.seen:
                continue
            self.seen.add(id(value))
            if isinstance(value, type):
                lines += self.class_entry(full, value)
            else:
                lines += self.entry(full, value, False)
            names.append(f"torch.{full}")
        return lines, names

    def page(self, modules: tuple[str, ...]) -> list[str]:
        text = []
        for name in modules:
            lines, names = self.module(name)
            if len(modules) > 1:
                heading = f"torch.{name}"
                text += [heading, "-" * len(heading), ""]
            text += [*links(names), *lines]
        return text

    def tensor(self) -> list[str]:
        value = public_api.module("").Tensor
        names = [f"torch.Tensor.{n}" for n in entries.member_names(value, self.classes)]
        return [*links(names), *self.class_entry("Tensor", value)]

    def write(self) -> int:
        """The number of entries that were written."""
        self.folder.mkdir(parents=True, exist_ok=True)
        pages = all_pages()
        titles = {"tensor": "Methods of Tensor", **{f: t for f, t, _ in pages}}
        for file, _, modules in pages:
            self.save(file, titles[file], self.page(modules))
        self.save("tensor", titles["tensor"], self.tensor())
        order = dict.fromkeys((*FIRST, *titles))
        toc = [".. toctree::", "   :maxdepth: 1", "", *(f"   {each}" for each in order)]
        self.save(
            "index",
            "Reference",
            [
                "Made from the docstrings of the installed package, whose examples the "
                "tests run. Names are those after ``import pydevtensor as torch``.",
                "",
                *toc,
            ],
        )
        return self.count

    def save(self, file: str, heading: str, lines: list[str]) -> None:
        text = "\n".join([*title(heading), *lines]) + "\n"
        (self.folder / f"{file}.rst").write_text(text)
