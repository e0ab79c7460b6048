"""Writes the stubs of classes whose methods are made of a record.

pydevtensor/_records.py makes them at run time, and nn/modules/_function_layer.py those
of layers, from a function's signature; here the same text (pydevtensor/_signatures.py)
becomes a stub of the module. What a module defines by hand is copied, without bodies.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from pathlib import Path

import texts

NOTE = "# Made by tools/build/records.py from the module and its classes' records."
LAYERS = "nn/modules"
FOLDERS = (LAYERS, "optim", "optim/lr_scheduler")
ROOTS = ("FunctionLayer", "Module", "Record")
PACKAGE = Path(__file__).resolve().parents[2] / "pydevtensor"


class Classes:
    """The classes of a folder, by name."""

    def __init__(self, core: types.ModuleType, folder: str) -> None:
        self.trees = {
            path.name: ast.parse(path.read_text())
            for path in sorted((PACKAGE / folder).glob("*.py"))
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
        """A class, its base, and so on, below the root."""
        yield node
        base = ast.unparse(node.bases[0]) if node.bases else ""
        if base in self.classes and base not in ROOTS:
            yield from self.family(self.classes[base])

    def keyword(self, node: ast.ClassDef, name: str) -> ast.expr | None:
        """The value that a class, or the base of its family, gives for a keyword."""
        keywords = (k for each in self.family(node) for k in each.keywords)
        return next((k.value for k in keywords if k.arg == name), None)

    def value(self, node: ast.ClassDef, name: str) -> object:
        """What a class, or the base of its family, assigns to a name; else None."""
        for each in self.family(node):
            for statement in each.body:
                if isinstance(statement, ast.Assign) and name in members(statement):
                    return ast.literal_eval(statement.value)
        return None

    def text(self, node: ast.ClassDef) -> texts.Record | texts.Layer:
        def literal(value: ast.expr | None) -> str:
            return ast.literal_eval(value) if value else ""

        takes = literal(self.keyword(node, "takes"))
        if not self.function(node):
            return texts.Record(str(self.value(node, "_schema")), takes)
        return texts.Layer(
            self.schemas[self.function(node)],
            takes,
            literal(self.keyword(node, "inputs")),
            self.value(node, "_spent") or (),
        )

    def is_record(self, node: ast.AST) -> bool:
        """Whether a node is a class of which methods are made."""
        if not isinstance(node, ast.ClassDef):
            return False
        takes = any(k.arg == "takes" for k in node.keywords)
        return bool(self.function(node)) or (takes and self.value(node, "_schema"))

    def function(self, node: ast.ClassDef) -> str:
        """The name of the function that a class calls; "" where it calls none."""
        calls = (k.value for k in node.keywords if k.arg == "calls")
        return next((v.attr for v in calls if isinstance(v, ast.Attribute)), "")

    def stub(self, tree: ast.Module) -> Iterator[str]:
        yield from (NOTE, "from typing import Any")
        yield from self.imports(tree)
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                continue
            if isinstance(node, ast.ClassDef):
                yield from self.class_stub(node)
            elif isinstance(node, ast.FunctionDef):
                yield ast.unparse(bare(node))
            elif not isinstance(node, ast.Expr):
                yield ast.unparse(node)

    def imports(self, tree: ast.Module) -> Iterator[str]:
        """Those of the modules that say the schemas of its classes."""
        for other in self.trees.values():
            if other is not tree and any("_schema" in members(n) for n in other.body):
                for node in other.body:
                    if isinstance(node, ast.ImportFrom) and node.module != "__future__":
                        yield ast.unparse(node)

    def class_stub(self, node: ast.ClassDef) -> Iterator[str]:
        yield f"class {node.name}({', '.join(map(ast.unparse, node.bases))}):"
        doc, body = ast.get_docstring(node), [*by_hand(node)]
        if self.is_record(node):
            text = self.text(node)
            doc = self.doc(node, text)
            body = [*self.made(node, text), *body]
        if doc:
            quoted = doc.rstrip().replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
            body.insert(0, f'"""{quoted}\n"""')
        for line in "\n".join(body or ["..."]).split("\n"):
            yield f"    {line}" if line else ""

    def made(
        self, node: ast.ClassDef, text: texts.Record | texts.Layer
    ) -> Iterator[str]:
        """The attributes and methods that a class has of its record."""
        kinds = {p.name: p.annotation for p in text.options}
        if not isinstance(text, texts.Layer):
            spent = self.value(node, "_spent")
            if spent is not None:
                yield from (f"{n}: {k}" for n, k in kinds.items() if n not in spent)
            yield f"{text.constructor()} ..."
            return
        written = {name for each in self.family(node) for name in members(each)}
        kinds |= dict.fromkeys(text.tensors, "Any")
        yield from (f"{n}: {kinds[n]}" for n in text.names if n not in written)
        heads = {"forward": text.forward()}
        heads |= {"__init__": text.constructor()} if text.options else {}
        yield from (f"{head} ..." for n, head in heads.items() if n not in written)

    def doc(self, node: ast.ClassDef, text: texts.Record | texts.Layer) -> str:
        names = [p.name for p in text.options]
        is_layer = isinstance(text, texts.Layer)
        for each in self.family(node) if is_layer else ():
            for method in each.body:
                if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                    every = [*method.args.args, *method.args.kwonlyargs]
                    names = [argument.arg for argument in every]
        function = self.values.get(self.function(node))
        own = ast.get_docstring(node) or ""
        family = [
            texts.read_doc(ast.get_docstring(base) or "", names)[1]
            for base in list(self.family(node))[1:]
            if base.name[0] == "_" or not is_layer
        ]
        others = texts.read_doc(function.__doc__ or "" if function else "")[1]
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
    done: set[str] = set()
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign):
            target, kind = statement.target, statement.annotation
            done.add(ast.unparse(target))
            yield f"{ast.unparse(target)}: {ast.unparse(kind)}"
        elif isinstance(statement, ast.FunctionDef):
            for attribute in attributes(statement):
                name = attribute.partition(":")[0]
                if name not in done:
                    yield attribute
                done.add(name)
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
    """The stubs, by file, of modules with classes that are records."""
    found = {}
    for folder in FOLDERS:
        classes = Classes(core, folder)
        for name, tree in classes.trees.items():
            if any(map(classes.is_record, tree.body)):
                found[f"{folder}/{name}i"] = "\n".join(classes.stub(tree)) + "\n"
    return found
