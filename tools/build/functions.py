"""Reads public functions in Python and writes the table of the extension.

A decorated function in a folder of NAMESPACES says all there is to say of it:
signature, docstring, options. The table, build/include/composite.def, is what
csrc/python/functions/composite.c makes the public names from, without running their
modules; the stubs come from the same annotations.
"""

from __future__ import annotations

import ast
import doctest
import functools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import stub_types as known
import texts

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "pydevtensor"
# Where public functions are written, and the module that has their names.
NAMESPACES = {
    "_functions": "",
    "_aliases": "",
    "fft": "fft",
    "linalg": "linalg",
    "masked": "masked",
    "nn/_functional": "nn.functional",
    "special": "special",
}
INCLUDE = "build/include"
TABLE = ROOT / INCLUDE / "composite.def"
NOTE = "/* Made by tools/build/functions.py from functions in pydevtensor. */\n"


@functools.cache
def factory_keywords() -> str:
    """The keywords of every factory, as the header has them."""
    header = (ROOT / "csrc" / "tensor" / "schema.h").read_text()
    macro = re.search(r"#define DT_FACTORY_KWARGS (.*\n)+?(?=#define)", header)
    assert macro, "schema.h defines no DT_FACTORY_KWARGS before another macro"
    return "".join(re.findall(r'"(.*)"', macro[0]))


FACTORY = "dtype, layout, device, requires_grad and pin_memory are those of empty()."


def described(doc: str, factory: bool) -> str:
    """The docstring, with a factory's keywords before the example."""
    at = doc.index(">>> ") if factory else 0
    return f"{doc[:at]}{FACTORY}\n\n{doc[at:]}" if factory else doc


@dataclass(frozen=True)
class Function:
    """One public name: a row of the table, and what the stubs say beyond signatures."""

    name: str
    namespace: str  # the module that users find it in, below pydevtensor
    module: str  # that of the body
    signature: str
    function: bool
    method: bool
    in_place: bool
    doc: str
    types: dict[str, str]  # of parameters whose word is Any
    result: str
    line: int  # of the module
    is_plain: bool  # whether the definition has just the types that callers may give

    @property
    def full(self) -> str:
        """The name with the namespace."""
        return f"{self.namespace}.{self.name}".lstrip(".")

    @property
    def file(self) -> str:
        """That of the body, in the repository."""
        return f"pydevtensor/{self.module.replace('.', '/')}.py"

    def row(self) -> str:
        where = (self.function, self.method, self.in_place)
        said = self.name, self.namespace, self.module, self.signature
        columns = [
            self.full.replace(".", "_"),
            *map(literal, said),
            *(str(int(flag)) for flag in where),
            literal(self.doc),
        ]
        return f"COMPOSITE({', '.join(columns)})\n"


def literal(text: str) -> str:
    """A string of C."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{plain}"'


def word(annotation: ast.expr, default: ast.expr | None = None) -> str:
    """The parameter type (csrc/tensor/schema.h) that an annotation names, or Any."""
    none = ""
    if isinstance(annotation, ast.BinOp) and ast.unparse(annotation.right) == "None":
        annotation = annotation.left
        none = "" if default and ast.unparse(default) == "None" else "?"
    name = ast.unparse(annotation)
    name = known.ALIASES.get(name, name)
    if name == "Any" or name not in known.WORDS:
        return "Any"
    return name + none


class Accepted(ast.NodeTransformer):
    """What callers may give for an annotation, as the stubs write it."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        words = known.WORDS | known.UNCHECKED
        return ast.parse(words.get(node.id, node.id), mode="eval").body


def shown(default: ast.expr) -> str:
    """A default as signatures show it: 0.125 for 1 / 8."""
    text = ast.unparse(default)
    return repr(eval(text, {})) if isinstance(default, ast.BinOp) else text


def given_back(annotation: ast.expr) -> str:
    """The annotation of a result, where int and others are Tensor's methods."""
    return re.sub(r"\b(bool|int|str|float)\b", r"builtins.\1", ast.unparse(annotation))


def parameters(node: ast.FunctionDef, out: str, factory: bool) -> str:
    """The signature's text between the parentheses."""
    given, found = node.args, []
    plain = given.args
    missing = [None] * (len(plain) - len(given.defaults))

    def text(argument: ast.arg, default: ast.expr | None) -> str:
        assert argument.annotation, f"{node.name}: annotate {argument.arg}"
        value = f" = {shown(default)}" if default else ""
        return f"{argument.arg}: {word(argument.annotation, default)}{value}"

    found += map(text, plain, [*missing, *given.defaults])
    if given.vararg:
        assert given.vararg.annotation
        many = {"Tensor": "Tensors", "int": "Sizes"}
        kind = many.get(word(given.vararg.annotation), "Any")
        found.append(f"*{given.vararg.arg}: {kind}")
    keywords = list(map(text, given.kwonlyargs, given.kw_defaults))
    keywords += [factory_keywords()] if factory else []
    keywords += [out] if out else []
    return ", ".join(
        [*found, *(["*"] if keywords and not given.vararg else []), *keywords]
    )


LOSS: texts.Entries = {
    ("size_average", "reduce"): "deprecated; use reduction",
    ("reduction",): "'mean', 'sum', or 'none' for one loss each",
}


def add_old_names(given: ast.arguments, before: str) -> None:
    """Add size_average before a parameter, and reduce before reduction."""
    for name, follower in (("size_average", before), ("reduce", "reduction")):
        at = [each.arg for each in given.args].index(follower)
        required = len(given.args) - len(given.defaults)
        kind = ast.parse("Truth | None", mode="eval").body
        given.args.insert(at, ast.arg(name, kind))
        given.defaults.insert(at - required, ast.Constant(None))


def completed(doc: str, given: ast.arguments, others: texts.Entries) -> str:
    """The docstring, with what others say of parameters that it does not describe."""
    names = [each.arg for each in (*given.args, *given.kwonlyargs)]
    return texts.complete(doc, names, others).rstrip()


def in_place_doc(name: str, doc: str) -> str:
    """The docstring of x_(), with the example of x() made to work in place."""
    *before, last = doctest.DocTestParser().get_examples(doc)
    call = next(
        node
        for node in ast.walk(ast.parse(last.source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == name
    )
    assert isinstance(call.func, ast.Attribute)
    receiver = ast.get_source_segment(last.source, call.func.value) or ""
    rest = (ast.get_source_segment(last.source, call) or "")[len(receiver) + 1 :]
    lines = [example.source.strip() for example in before]
    if receiver != "x":
        lines.append(f"x = {receiver}")
    lines.append(f"x.{rest.replace(name, f'{name}_', 1)} is x")
    shown = "\n".join(f">>> {line}" for line in lines)
    return f"In-place {name}().\n\n{shown}\nTrue"


def read_function(
    node: ast.FunctionDef, call: ast.Call, namespace: str, module: str, tree: ast.Module
) -> Iterator[Function]:
    """The public names of a decorated function of a module's tree."""
    assert isinstance(call.func, ast.Name)
    assert node.returns, f"{node.name}: annotate the result"
    options = {
        k.arg: ast.literal_eval(k.value) for k in call.keywords if k.arg != "given"
    }
    doc = ast.get_docstring(node)
    assert doc, f"{node.name}: write a docstring"
    if texts.REFERENCE in doc:
        names = [each.arg for each in (*node.args.args, *node.args.kwonlyargs)]
        others = functools.partial(model_of, tree=tree)
        doc = texts.resolve(doc, names, lambda n: ast.get_docstring(others(n))).rstrip()
    if "keywords" in options:
        model = model_of(options["keywords"], tree)
        node.args.kwonlyargs[:0] = model.args.kwonlyargs
        node.args.kw_defaults[:0] = model.args.kw_defaults
    if "like" in options:
        model = model_of(options["like"], tree)
        own, node.args = node.args, model.args
        if "order" in options:
            node.args = in_order(options["order"].split(), model.args, own)
        if not doc.startswith("As "):  # which says where to read
            said = texts.read_doc(ast.get_docstring(model) or "")[1]
            doc = completed(doc, node.args, said)
    if options.get("numbered"):
        at = [each.arg for each in node.args.args].index("reduction")
        node.args.args[at].annotation = ast.Name("int")
        node.args.defaults[at - len(node.args.args)] = ast.Constant(0)
    if call.func.id == "loss_function":
        add_old_names(node.args, options.get("around", "reduction"))
        doc = completed(doc, node.args, LOSS)
    results = ""
    if "results" in options:
        results = f" -> ({', '.join(options['results'])})"
    out = f"out: {'Any' if results else 'Tensor'} = None" if options.get("out") else ""
    factory = options.get("factory", False)
    doc = described(doc, factory)
    every = [*node.args.args, *node.args.kwonlyargs]
    every += [node.args.vararg] if node.args.vararg else []
    types = {
        argument.arg: ast.unparse(Accepted().visit(argument.annotation))
        for argument in every
        if argument.annotation and word(argument.annotation) == "Any"
    }
    if out and results:
        types["out"] = f"tuple[{', '.join(['Tensor'] * len(options['results']))}]"
    one = Function(
        name=node.name,
        namespace=namespace,
        module=module,
        signature=f"{node.name}({parameters(node, out, factory)}){results}",
        function=call.func.id in ("function", "loss_function"),
        method=call.func.id == "method" or options.get("method", False),
        in_place=False,
        doc=doc,
        types=types,
        result=given_back(node.returns),
        line=node.lineno,
        is_plain=not options.keys() - {"method"} and is_plain(node),
    )
    yield one
    if options.get("package"):
        shown = doc.replace(f">>> {namespace}.", ">>> torch.")
        yield replace(one, namespace="", doc=shown)
    for alias in options.get("aliases", ()):
        shown = doc[doc.index(">>> ") :]
        yield replace(one, name=alias, doc=f"Alias of {one.name}().\n\n{shown}")
    if options.get("in_place"):
        name = f"{node.name}_"
        yield replace(
            one,
            name=name,
            signature=f"{name}({parameters(node, '', factory)})",
            function=options["in_place"] == "both",
            method=True,
            in_place=True,
            doc=in_place_doc(node.name, doc),
        )


def in_order(
    names: list[str], model: ast.arguments, own: ast.arguments
) -> ast.arguments:
    """The parameters of these names, of a function's own keywords and its model's."""
    every = defaults(model) | defaults(own)
    chosen = [every[name] for name in names]
    return ast.arguments(
        posonlyargs=[],
        args=[argument for argument, _ in chosen],
        kwonlyargs=[],
        kw_defaults=[],
        defaults=[default for _, default in chosen if default],
    )


def defaults(given: ast.arguments) -> dict[str, tuple[ast.arg, ast.expr | None]]:
    """The parameters by name, each with its default or None."""
    missing = [None] * (len(given.args) - len(given.defaults))
    pairs = [
        *zip(given.args, [*missing, *given.defaults], strict=True),
        *zip(given.kwonlyargs, given.kw_defaults, strict=True),
    ]
    return {argument.arg: (argument, default) for argument, default in pairs}


def tree_of(module: str) -> ast.Module:
    """A module of the package, read again, so that its functions may be changed."""
    return ast.parse((PACKAGE / f"{module.replace('.', '/')}.py").read_text())


def model_of(name: str, tree: ast.Module) -> ast.FunctionDef:
    """The function of this name in a module's tree, or in the module before a dot."""
    module, _, name = name.rpartition(".")
    body = tree_of(module).body if module else tree.body
    (found,) = (n for n in body if isinstance(n, ast.FunctionDef) and n.name == name)
    return found


def is_plain(node: ast.FunctionDef) -> bool:
    """Whether type checkers may read the definition in place of a stub.

    Its types have to be those of the stub, which are wider for numbers and sizes, and
    which have NumPy's axis beside dim.
    """
    given = node.args
    every = [*given.args, *given.kwonlyargs, *([given.vararg] if given.vararg else [])]
    words = {ast.unparse(each.annotation) for each in every if each.annotation}
    plain = {"Tensor", "bool", "str", "Any"}
    plain |= {f"{word} | None" for word in plain}
    result = ast.unparse(node.returns) if node.returns else "Any"
    alike = words <= plain and result != "Any" and node.name not in known.FORMS
    if given.vararg and ast.unparse(given.vararg.annotation or given.vararg) != "Any":
        return False  # one sequence will do too
    return alike and not {"dim", "keepdim"} & {each.arg for each in every}


def names_public(call: ast.Call) -> bool:
    """Whether a decorator is one of pydevtensor/_functions/__init__.py, or that of
    losses in pydevtensor/nn/_functional/_reduction.py."""
    names = ("function", "method", "loss_function")
    return isinstance(call.func, ast.Name) and call.func.id in names


def modules() -> dict[str, str]:
    """The file of each namespace's module, in the package."""
    found = {}
    for name in filter(None, NAMESPACES.values()):
        path = name.replace(".", "/")
        is_package = (PACKAGE / path).is_dir()
        found[name] = f"{path}/__init__.py" if is_package else f"{path}.py"
    return found


def read() -> list[Function]:
    """All functions, in the order of namespaces and names."""
    found = []
    for folder, namespace in NAMESPACES.items():
        for path in (PACKAGE / folder).glob("*.py"):
            module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
            tree = ast.parse(path.read_text())
            for node in tree.body:
                if not isinstance(node, ast.FunctionDef):
                    continue
                for call in node.decorator_list:
                    if isinstance(call, ast.Call) and names_public(call):
                        found += read_function(node, call, namespace, module, tree)
    return sorted(found, key=lambda each: (each.namespace, each.name))


@functools.cache
def include() -> str:
    """The folder of the table, for the compiler; writes the table where it is old."""
    text = NOTE + "".join(each.row() for each in read())
    if not TABLE.exists() or TABLE.read_text() != text:
        TABLE.parent.mkdir(parents=True, exist_ok=True)
        fresh = TABLE.with_name(f"{TABLE.name}.{os.getpid()}")
        fresh.write_text(text)
        fresh.replace(TABLE)
    return INCLUDE
