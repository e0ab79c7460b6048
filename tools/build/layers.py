"""Writes the stubs of layers whose methods are made of a function's signature.

pydevtensor/nn/modules/_function_layer.py makes them at run time; here the same text
(pydevtensor/_signatures.py) becomes a stub of the module. What a module defines by hand
is copied, without bodies.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from pathlib import Path

import texts

NOTE = "# Made by tools/build/layers.py from the module and its functions' signatures."
FOLDER = "nn/modules"
PACKAGE = Path(__file__).resolve().parents[2] / "pydevtensor"


class Layers:
    """The classes of nn.modules, by name."""

    def __init__(self, core: types.ModuleType) -> None:
        self.trees = {
            path.name: ast.parse(path.read_text())
            for path in sorted((PACKAGE / FOLDER).glob("*.py"))
        }
        self.classes = {
            node.name: node
            for tree in self.trees.values()
            for node in tree.body
            if isinstance(node, ast.ClassDef)
        }
        self.values: dict[str, object] = {}
        self.schemas: dict[str, str] = {}
        for home in ("", "nn.functional"):
            self.values |= core._namespace(home) if home else vars(core)
            rows = core._signatures(home)
            self.schemas |= {row: text for row, text, function, _ in rows if function}

    def family(self, node: ast.ClassDef) -> Iterator[ast.ClassDef]:
        """A class, its base, and so on, below FunctionLayer."""
        yield node
        base = ast.unparse(node.bases[0]) if node.bases else ""
        if base in self.classes and base not in ("FunctionLayer", "Module"):
            yield from self.family(self.classes[base])

    def keyword(self, node: ast.ClassDef, name: str) -> ast.expr | None:
        """The value that a class, or the base of its family, gives for a keyword."""
        keywords = (k for each in self.family(node) for k in each.keywords)
        return next((k.value for k in keywords if k.arg == name), None)

    def text(self, node: ast.ClassDef) -> texts.Layer:
        def literal(value: ast.expr | None) -> str:
            return ast.literal_eval(value) if value else ""

        spent = (
            statement.value
            for each in self.family(node)
            for statement in each.body
            if isinstance(statement, ast.Assign)
            if ast.unparse(statement.targets[0]) == "_spent"
        )
        return texts.Layer(
            self.schemas[self.function(node)],
            literal(self.keyword(node, "takes")),
            literal(self.keyword(node, "inputs")),
            literal(next(spent, None)),
        )

    def function(self, node: ast.ClassDef) -> str:
        """The name of the function that a class calls; "" where it calls none."""
        calls = (k.value for k in node.keywords if k.arg == "calls")
        return next((v.attr for v in calls if isinstance(v, ast.Attribute)), "")

    def stub(self, tree: ast.Module) -> Iterator[str]:
        yield from (NOTE, "from typing import Any")
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                continue
            if isinstance(node, ast.ClassDef):
                yield from self.class_stub(node)
            elif isinstance(node, ast.FunctionDef):
                yield ast.unparse(bare(node))
            elif not isinstance(node, ast.Expr):
                yield ast.unparse(node)

    def class_stub(self, node: ast.ClassDef) -> Iterator[str]:
        yield f"class {node.name}({', '.join(map(ast.unparse, node.bases))}):"
        doc, body = ast.get_docstring(node), [*by_hand(node)]
        if self.function(node):
            text = self.text(node)
            doc = self.doc(node, text)
            body = [*self.made(node, text), *body]
        if doc:
            quoted = doc.rstrip().replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
            body.insert(0, f'"""{quoted}\n"""')
        for line in "\n".join(body or ["..."]).split("\n"):
            yield f"    {line}" if line else ""

    def made(self, node: ast.ClassDef, text: texts.Layer) -> Iterator[str]:
        """The attributes and methods that a layer has of its function."""
        written = {name for each in self.family(node) for name in members(each)}
        kinds = {p.name: p.annotation for p in text.options}
        kinds |= dict.fromkeys(text.tensors, "Any")
        yield from (f"{n}: {kinds[n]}" for n in text.names if n not in written)
        heads = {"forward": text.forward()}
        heads |= {"__init__": text.constructor()} if text.options else {}
        yield from (f"{head} ..." for n, head in heads.items() if n not in written)

    def doc(self, node: ast.ClassDef, text: texts.Layer) -> str:
        names = [p.name for p in text.options]
        for each in self.family(node):
            for method in each.body:
                if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                    every = [*method.args.args, *method.args.kwonlyargs]
                    names = [argument.arg for argument in every]
        function = self.values[self.function(node)]
        own = ast.get_docstring(node) or ""
        family = [
            texts.read_doc(ast.get_docstring(base) or "", names)[1]
            for base in list(self.family(node))[1:]
            if base.name[0] == "_"
        ]
        others = texts.read_doc(function.__doc__ or "")[1]
        return texts.complete(own, names, *family, others)


def members(node: ast.ClassDef) -> Iterator[str]:
    """The names that a class defines by hand, attributes of its instances too."""
    for each in ast.walk(node):
        if isinstance(each, ast.FunctionDef):
            yield each.name
        elif isinstance(each, ast.AnnAssign):
            yield ast.unparse(each.target).removeprefix("self.")
        elif isinstance(each, ast.Assign):
            for target in each.targets:
                yield ast.unparse(target).removeprefix("self.")


def by_hand(node: ast.ClassDef) -> Iterator[str]:
    """The members that a class defines by hand, and the attributes they set."""
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign):
            target, kind = statement.target, statement.annotation
            yield f"{ast.unparse(target)}: {ast.unparse(kind)}"
        elif isinstance(statement, ast.FunctionDef):
            yield from attributes(statement)
            yield ast.unparse(bare(statement))


def attributes(method: ast.FunctionDef) -> Iterator[str]:
    """`self.a: kind = ...`, and `self.a = a` of a parameter."""
    arguments = [*method.args.args, *method.args.kwonlyargs]
    kinds = {each.arg: each.annotation for each in arguments}
    for each in ast.walk(method):
        if isinstance(each, ast.AnnAssign):
            target, kind = ast.unparse(each.target), each.annotation
        elif isinstance(each, ast.Assign):
            target, kind = ast.unparse(each.targets[0]), None
            if isinstance(each.value, ast.Name):
                kind = kinds.get(each.value.id)
        else:
            continue
        if target.startswith("self.") and kind:
            yield f"{target.removeprefix('self.')}: {ast.unparse(kind)}"


def bare(node: ast.FunctionDef) -> ast.FunctionDef:
    """A function without its body, but for the docstring."""
    doc = node.body[:1] if ast.get_docstring(node) else []
    node.body = [*doc, ast.Expr(ast.Constant(...))]
    return node


def stubs(core: types.ModuleType) -> dict[str, str]:
    """The stubs, by file, of modules with layers that call functions."""
    layers = Layers(core)
    return {
        f"{FOLDER}/{name}i": "\n".join(layers.stub(tree)) + "\n"
        for name, tree in layers.trees.items()
        if any(isinstance(n, ast.ClassDef) and layers.function(n) for n in tree.body)
    }
