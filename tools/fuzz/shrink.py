"""Makes a failing program small: fewer statements, smaller shapes and arguments."""

from __future__ import annotations

import ast
import copy
import re

import pydevtensor as torch


def simpler(node):
    """Simpler nodes to put in place of one."""
    if isinstance(node, ast.Constant):
        value = node.value
        if type(value) is int:
            smaller = {0, 1, value // 2, value - 1 if value > 0 else value + 1}
            for n in sorted(smaller, key=abs):
                if abs(n) < abs(value):
                    yield ast.Constant(n)
        elif type(value) is float and value not in (0.0, 1.0):
            yield ast.Constant(1.0)
            yield ast.Constant(float(round(value)) if abs(value) < 1e9 else 0.0)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, (ast.List, ast.Tuple)):
        count = len(node.elts)
        for keep in {count // 2, count - 1}:
            if 0 < keep < count:
                made = copy.copy(node)
                made.elts = node.elts[:keep]
                yield made
        # A whole matrix gets narrower at once.
        rows = node.elts
        if rows and all(isinstance(r, ast.List) and len(r.elts) > 1 for r in rows):
            made = copy.deepcopy(node)
            for row in made.elts:
                row.elts = row.elts[: len(row.elts) // 2]
            yield made
        if count == 1 and isinstance(node, ast.List):
            yield node.elts[0]
    elif isinstance(node, ast.Call):
        for i in range(len(node.keywords)):
            made = copy.copy(node)
            made.keywords = node.keywords[:i] + node.keywords[i + 1 :]
            yield made
        if node.args:
            made = copy.copy(node)
            made.args = node.args[:-1]
            yield made
        if isinstance(node.func, ast.Attribute) and not (
            isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
        ):
            yield node.func.value
    elif isinstance(node, ast.Subscript):
        yield node.value


class Put(ast.NodeTransformer):
    """Replaces the node at a place, counted as the tree is walked."""

    def __init__(self, place, new):
        self.place, self.new, self.count = place, new, -1

    def visit(self, node):
        self.count += 1
        if self.count == self.place:
            return self.new
        return self.generic_visit(node)


def walk(node):
    yield node
    for child in ast.iter_child_nodes(node):
        yield from walk(child)


def variants(statement):
    """The statement with one node simplified."""
    tree = ast.parse(statement)
    for place, node in enumerate(walk(tree)):
        for new in simpler(node):
            made = Put(place, new).visit(copy.deepcopy(tree))
            yield ast.unparse(ast.fix_missing_locations(made))


def literal(value):
    """The text that makes a tensor anew."""
    if not isinstance(value, torch.Tensor) or value.numel() > 64:
        return None
    data = re.sub(r"-?(nan|inf)", r"float('\g<0>')", repr(value.tolist()))
    return f"torch.tensor({data}, dtype={value.dtype})"


def shrink(statements, fails, budget=600):
    """A small program for which fails(statements) still holds."""
    left = [budget]

    def holds(candidate):
        left[0] -= 1
        return left[0] >= 0 and fails(candidate)

    def fewer(statements):
        size = max(1, len(statements) // 2)
        while size:
            at = len(statements)
            while at > 0:
                candidate = statements[: max(0, at - size)] + statements[at:]
                if candidate and holds(candidate):
                    statements = candidate
                at -= size
            size //= 2
        return statements

    def cut(statements):
        """Writes results as literals, so that what made them can go."""
        namespace = {"torch": torch}
        for i, statement in enumerate(statements[:-1]):
            try:
                exec(statement, namespace)
            except Exception:
                return statements
            name, equals, _ = statement.partition(" = ")
            if not equals or not name.isidentifier() or "torch.tensor(" in statement:
                continue
            text = literal(namespace.get(name))
            if text:
                candidate = [*statements[:i], f"{name} = {text}", *statements[i + 1 :]]
                if holds(candidate):
                    statements = candidate
        return statements

    def joined(statements):
        """Takes an earlier tensor for a later one."""
        names = [statement.partition(" = ")[0] for statement in statements]
        for i in reversed(range(1, len(statements) - 1)):
            for name in filter(str.isidentifier, names[:i]):
                later = [
                    re.sub(rf"\b{names[i]}\b", name, text)
                    for text in statements[i + 1 :]
                ]
                if names[i].isidentifier() and holds([*statements[:i], *later]):
                    return [*statements[:i], *later]
        return statements

    before = None
    while before != statements and left[0] > 0:
        before = statements
        statements = joined(fewer(cut(fewer(statements))))
        for i in range(len(statements)):
            changed = True
            while changed and left[0] > 0:
                changed = False
                for text in variants(statements[i]):
                    candidate = [*statements[:i], text, *statements[i + 1 :]]
                    if holds(candidate):
                        statements, changed = candidate, True
                        break
    return statements
