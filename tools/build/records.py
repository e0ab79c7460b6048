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
        """A class, its base, and so on, below the root: the first base that has a
        schema, or else the first."""
        yield node
        names = [ast.unparse(base) for base in node.bases]
        bases = [self.classes[n] for n in names if n in self.classes and n not in ROOTS]
        if bases:
            yield from self.family(next(filter(self.schema, bases), bases[0]))

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

    def schema(self, node: ast.ClassDef) -> str:
        """What the family of a class says of parameters; "" for layers of functions."""
        return str(self.value(node, "_schema") or "")

    def literal(self, node: ast.ClassDef, name: str, default: str = "") -> str:
        value = self.keyword(node, name)
        return ast.literal_eval(value) if value else default

    def text(self, node: ast.ClassDef) -> texts.Record:
        """The constructor that a class has of its record, or of its family's."""
        takes = self.literal(node, "takes")
        if self.schema(node):
            return texts.Record(self.schema(node), takes)
        inputs = self.literal(node, "inputs")
        spent = self.value(node, "_spent") or ()
        return texts.Layer(self.schemas[self.function(node)], takes, inputs, spent)

    def forward(self, node: ast.ClassDef, text: texts.Record) -> str:
        """The head of forward(), where the class's function says it; else ""."""
        if isinstance(text, texts.Layer):
            return text.forward()
        if not self.function(node):
            return ""
        inputs = self.literal(node, "inputs", "input")
        return texts.Caller(self.schemas[self.function(node)], inputs).forward()

    def is_record(self, node: ast.AST) -> bool:
        """Whether a node is a class of which methods, or the docstring, are made."""
        if not isinstance(node, ast.ClassDef):
            return False
        takes = self.keyword(node, "takes") and self.schema(node)
        return bool(self.function(node) or takes)

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

    def kept(self, node: ast.ClassDef) -> set[str]:
        """The options of a class's record that are attributes."""
        spent = self.value(node, "_spent")
        if spent is None or not any(k.arg == "takes" for k in node.keywords):
            return set()
        return {p.name for p in self.text(node).options} - {*spent}

    def made(self, node: ast.ClassDef, text: texts.Record) -> Iterator[str]:
        """The attributes and methods that a class has of its record."""
        written = {name for each in self.family(node) for name in members(each)}
        kinds = {p.name: p.annotation for p in text.options}
        heads = {"forward": self.forward(node, text)}
        if isinstance(text, texts.Layer):
            kinds |= dict.fromkeys(text.tensors, "Any")
            kinds = {name: kinds[name] for name in text.names}
            heads |= {"__init__": text.constructor()} if text.options else {}
        else:
            own = any(k.arg == "takes" for k in node.keywords)
            kept = self.kept(node) if own else set()
            for base in list(self.family(node))[1:]:
                kept -= self.kept(base)
            kept -= {n.partition(":")[0] for n in by_hand(node)}
            kinds = {name: kind for name, kind in kinds.items() if name in kept}
            heads |= {"__init__": text.constructor()} if own else {}
            written -= {"__init__", "forward"}
        yield from (f"{n}: {k}" for n, k in kinds.items() if n not in written)
        yield from (f"{h} ..." for n, h in heads.items() if h and n not in written)

    def doc(self, node: ast.ClassDef, text: texts.Record) -> str:
        is_layer = isinstance(text, texts.Layer)
        names = [p.name for p in text.options]
        for each in self.family(node):
            if not is_layer and any(k.arg == "takes" for k in each.keywords):
                break
            first = (
                method.args
                for method in each.body
                if isinstance(method, ast.FunctionDef) and method.name == "__init__"
            )
            if given := next(first, None):
                names = [a.arg for a in (*given.args, *given.kwonlyargs)]
                break
        function = self.values.get(self.function(node)) if is_layer else None
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
            if statement.name != "_make":  # each takes what its record says
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
