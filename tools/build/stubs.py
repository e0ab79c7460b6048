"""Writes the stubs of the package: what its C functions take and give.

python tools/build/stubs.py EXTENSION FOLDER [--shown]

They come from the built extension, which knows its functions, methods and signatures;
from the annotations of public functions in Python (functions.py); from stub_types.py,
which has the types that signatures in C leave out; and from pydevtensor/__init__.py and
the modules of namespaces such as linalg. Other
modules carry their annotations themselves. Nothing here is listed a second time, so a
new function is in the stubs with the next build. Docstrings are in the stubs too, since
that is where editors find them; where a function's body is in Python, a comment says
in which file, and __init__.pyi imports it from there if its types are the same.

--shown leaves out what inspect.signature cannot show: further forms of a function, and
NumPy's words for arguments. Such stubs can be compared with the package word by word.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import inspect
import re
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import functions
import records
import stub_types as known
from texts import split
from toolchain import BuildError

IN_PYTHON = functions.read()
for each in IN_PYTHON:
    known.RESULTS.setdefault(each.full, each.result)
    for parameter, kind in each.types.items():
        known.PARAMETERS[f"{each.full}.{parameter}"] = kind

ROOT = Path(__file__).resolve().parents[2]
# The exit status where the extension is another machine's.
FOREIGN = 3
NOTE = "# Made by tools/build/stubs.py from the extension and its signatures.\n"


# --- signatures ---------------------------------------------------------------------


@dataclass(frozen=True)
class Parameter:
    """One parameter as the stub writes it; star: `*` for `*sizes`."""

    name: str
    type: str
    default: str | None = None
    star: str = ""
    keyword: bool = False

    def __str__(self) -> str:
        default = f" = {self.default}" if self.default is not None else ""
        return f"{self.star}{self.name}: {self.type}{default}"


@dataclass(frozen=True)
class Form:
    """One way to call a function."""

    parameters: tuple[Parameter, ...]
    result: str

    def text(self, name: str, method: bool, positional: bool = False) -> str:
        first, rest = [], list(self.parameters)
        if method:
            rest = rest[1:] if rest and not rest[0].star else rest
            first = ["self"]
        words = [*first, *(str(p) for p in rest if not p.keyword)]
        if positional:
            words.append("/")
        keywords = [str(p) for p in rest if p.keyword]
        if keywords and not any(p.star for p in rest):
            words.append("*")
        return f"def {name}({', '.join([*words, *keywords])}) -> {self.result}: ..."


PARAMETER = re.compile(r"(\*?)(\w+): (\w+\??)(?: = (.+))?$")


def read_form(text: str, name: str) -> Form:
    """One form of a signature; its result where that is always the same.

    name: with the namespace, as in functions.Function.full.
    """
    text, _, results = text.partition(" -> ")
    inner = text[text.index("(") + 1 : text.rindex(")")]
    keyword, parameters = False, []
    for part in split(inner):
        if part == "*":
            keyword = True
            continue
        found = PARAMETER.match(part)
        if not found:
            raise ValueError(f"no parameter of a signature: {part!r} in {text!r}")
        star, parameter, word, default = found.groups()
        kind = known.WORDS[word.rstrip("?")]
        if word == "Any":
            kind = known.PARAMETERS.get(
                f"{name}.{parameter}", known.PARAMETERS.get(parameter, kind)
            )
        if star and word != "Any":
            kind = known.ONE_OF[word]
        none = default == "None" or word.endswith("?")
        if none and "None" not in kind and kind != "Any":
            kind += " | None"
        parameters.append(Parameter(parameter, kind, default, star, keyword))
        keyword = keyword or bool(star)
    result = result_of_schema(name, results.strip())
    return Form(tuple(parameters), result or known.RESULTS.get(name, "Tensor"))


def result_of_schema(name: str, results: str) -> str:
    """The type of what stands after "->" in a schema; "" where nothing does."""
    if "?" in results:  # whose number depends on the arguments
        return "Any"
    if not results.startswith("("):
        return known.RESULT_WORDS[results] if results else ""
    if not results.startswith("(Tensor"):
        return f"_{name.rpartition('.')[2]}"
    each = [known.RESULT_WORDS[word] for word in split(results[1:-1])]
    return f"tuple[{', '.join(each)}]"


def as_sequence(form: Form) -> Form | None:
    """The form that takes what `*name` stands for as one sequence."""
    for place, parameter in enumerate(form.parameters):
        if parameter.star and parameter.type != "Any":
            whole = replace(parameter, star="", type=f"Sequence[{parameter.type}]")
            before, after = form.parameters[:place], form.parameters[place + 1 :]
            return replace(form, parameters=(*before, whole, *after))
    return None


def with_axis(form: Form) -> list[Form]:
    """The forms that take NumPy's words too: axis for dim and keepdims for keepdim."""
    names = {p.name: p for p in form.parameters}
    if "axis" in names or ("dim" not in names and "keepdim" not in names):
        return [form]
    words = []
    for name, spelling in (("dim", "axis"), ("keepdim", "keepdims")):
        if name in names:
            words.append(replace(names[name], name=spelling, keyword=True))
    required = words[0].name == "axis" and words[0].default is None
    if not required:
        return [replace(form, parameters=(*form.parameters, *words))]
    # Either dim or axis has to be there: two forms, what follows being keywords.
    plain = replace(form, parameters=(*form.parameters, *words[1:]))
    after = False
    others = []
    for p in form.parameters:
        after = after or p.name == "dim"
        if p.name != "dim":
            others.append(replace(p, keyword=p.keyword or after))
    # A parameter without default cannot follow one that has one.
    return [plain, replace(form, parameters=(*others, *words))]


def named_tuples(schemas: dict[str, str]) -> dict[str, tuple[str, ...]]:
    """The named tuples that functions return, by the function's name."""
    found = {}
    for name, text in schemas.items():
        fields = re.search(r" -> \((?!Tensor)(\w+(?:, \w+)*)\)", text)
        if fields:
            found[name] = tuple(fields[1].split(", "))
    return found


def forms(name: str, text: str, in_place: bool, shown: bool) -> list[Form]:
    """Every way to call the function or method `name`; or, where `shown`, the one that
    inspect.signature shows."""
    texts = text.split(" | ")
    if shown:
        texts = [max(texts, key=lambda form: form.count(":"))]
    if name in known.FORMS and not shown:
        whole = [written(given, result) for given, result in known.FORMS[name]]
    else:
        found = [read_form(part, name) for part in texts]
        if in_place:
            found = [replace(form, result="Self") for form in found]
        if shown:
            return found
        whole = [form for one in found for form in (one, as_sequence(one)) if form]
    return [form for one in whole for form in with_axis(one)]


def written(parameters: str, result: str) -> Form:
    """A form from parameters that are Python already."""
    keyword, found = False, []
    for part in split(parameters):
        if part in ("*", "/"):
            keyword = part == "*" or keyword
            continue
        name, _, rest = part.partition(": ")
        kind, _, default = rest.partition(" = ")
        star = name[: len(name) - len(name.lstrip("*"))]
        name = name.lstrip("*")
        found.append(Parameter(name, kind, default or None, star, keyword))
        keyword = keyword or bool(star)
    return Form(tuple(found), result)


def definitions(
    name: str, found: list[Form], method: bool, doc: str | None, indent: str = ""
) -> Iterator[str]:
    """The forms of a function; the first one has the docstring, where editors look."""
    seen = []
    for form in found:
        line = form.text(name.rpartition(".")[2], method)
        if line not in seen:
            seen.append(line)
    for each in IN_PYTHON:
        if each.full == name and (each.method if method else each.function):
            yield f"{indent}# Its body is in {each.file}, line {each.line}."
    for place, line in enumerate(seen):
        if len(seen) > 1:
            yield f"{indent}@overload"
        yield documented(indent + line, None if place else doc)


def documented(line: str, doc: str | None) -> str:
    """A definition, "def ...: ...", with a docstring in place of the last dots."""
    if not doc:
        return line
    indent = line[: len(line) - len(line.lstrip())] + "    "
    return line.removesuffix(" ...") + "\n" + "\n".join(docstring(doc, indent))


def docstring(doc: str, indent: str) -> Iterator[str]:
    text = doc.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    first, *rest = text.split("\n")
    if not rest and not first.endswith('"'):
        yield f'{indent}"""{first}"""'
        return
    yield f'{indent}"""{first}'
    yield from (indent + line if line else "" for line in rest)
    yield f'{indent}"""'


def doc_of(name: str, value: Any) -> str | None:
    """The docstring of a public name."""
    return None if name.startswith("_") else getattr(value, "__doc__", None)


# --- what has no signature of kinds -------------------------------------------------


def plain(owner: str, name: str, function: Any, method: bool) -> str:
    """A function with the text signature that CPython reads, and types by name."""
    result = known.RESULTS.get(f"{owner}.{name}" if owner else name, "Any")
    try:
        signature = inspect.signature(function)
    except ValueError:
        words = ["self"] if method else []
        return f"def {name}({', '.join([*words, '*args: Any'])}) -> {result}: ..."
    words, last = [], None
    first = "type" if isinstance(function, types.ClassMethodDescriptorType) else "self"
    for parameter in signature.parameters.values():
        if last == parameter.POSITIONAL_ONLY and parameter.kind != last:
            words.append("/")
        last = parameter.kind
        if parameter.name == first:
            words.append("self" if first == "self" else "cls")
            continue
        kind = known.PARAMETERS.get(
            f"{owner}.{name}.{parameter.name}",
            known.PARAMETERS.get(f"{owner}.{parameter.name}", "Any"),
        )
        star = "*" if parameter.kind == parameter.VAR_POSITIONAL else ""
        text = f"{star}{parameter.name}: {kind}"
        if parameter.default is not parameter.empty:
            text += f" = {parameter.default!r}"
        words.append(text)
    if last == inspect.Parameter.POSITIONAL_ONLY and words not in (["self"], ["cls"]):
        words.append("/")
    return f"def {name}({', '.join(words)}) -> {result}: ..."


def slot(owner: str, name: str) -> str | None:
    """A double-underscore method that C has; None: the base's will do."""
    found = known.SLOTS.get(owner, {}).get(name)
    if found is None:
        return None
    parameters, result = found
    first = "cls" if name == "__new__" else "self"
    starred = parameters.startswith("*") or not parameters or name == "__new__"
    words = [first, *split(parameters), *([] if starred else ["/"])]
    line = f"def {name}({', '.join(words)}) -> {result}: ..."
    ignored = known.IGNORED_BY_MYPY.get(name)
    return line + (f"  # type: ignore[{ignored}]" if ignored else "")


def property_lines(owner: str, name: str, doc: str | None) -> Iterator[str]:
    kind = known.RESULTS.get(f"{owner}.{name}", "Any")
    yield "    @property"
    yield documented(f"    def {name}(self) -> {kind}: ...", doc)
    if f"{owner}.{name}" in known.SETTABLE:
        yield f"    @{name}.setter"
        yield f"    def {name}(self, value: {kind}) -> None: ..."


IGNORED = {"__doc__", "__module__", "__dict__", "__weakref__", "__setattr__"}
IGNORED |= {"__delattr__", "__repr__", "__hash__", "__str__"}
ORDER = {"__lt__", "__le__", "__gt__", "__ge__"}


def class_lines(kind: type, rows: dict[str, str], shown: bool) -> Iterator[str]:
    owner = kind.__name__
    base = known.BASES.get(owner, kind.__base__.__name__)
    if not kind.__flags__ & 1 << 10:  # Py_TPFLAGS_BASETYPE
        yield "@final"
    elif owner in ("Tensor", "Node", "_ModuleBase"):
        yield "@disjoint_base"
    yield f"class {owner}{'' if base == 'object' else f'({base})'}:"
    if kind.__doc__:
        yield from docstring(inspect.cleandoc(kind.__doc__), "    ")
    constructor = kind.__dict__.get("__new__")
    lines = []
    if constructor is not None and "__new__" not in known.SLOTS.get(owner, {}):
        line = plain(owner, "__new__", kind, False)
        lines.append("    " + line.replace("(", "(cls, ", 1).replace("Any:", "Self:"))
    # Python shows the buffer protocol as a method from 3.12 on.
    members = vars(kind) | ({"__buffer__": None} if owner == "Tensor" else {})
    for name, value in sorted(members.items()):
        if name in rows:
            in_place = name.endswith("_") and not name.endswith("__")
            in_place = in_place and not name.startswith("_")
            found = forms(name, rows[name], in_place, shown)
            lines.extend(definitions(name, found, True, doc_of(name, value), "    "))
        elif name in known.SLOTS.get(owner, {}):
            lines.append(f"    {slot(owner, name)}")
        elif name in IGNORED or (name in ORDER and owner != "Tensor"):
            continue
        elif isinstance(value, types.ClassMethodDescriptorType):
            if not name.startswith("__"):
                line = "    " + plain(owner, name, value, True)
                lines += ["    @classmethod", documented(line, doc_of(name, value))]
        elif isinstance(value, types.GetSetDescriptorType):
            lines.extend(property_lines(owner, name, doc_of(name, value)))
        elif isinstance(value, types.MethodDescriptorType):
            line = "    " + plain(owner, name, value, True)
            lines.append(documented(line, doc_of(name, value)))
        elif not callable(value):
            lines.append(f"    {name}: {known.RESULTS.get(f'{owner}.{name}', 'Any')}")
        elif name == "__eq__":
            lines.append("    def __eq__(self, other: object, /) -> builtins.bool: ...")
    yield from lines or ["    ..."]


# --- the two files ------------------------------------------------------------------


def named_tuple_lines(schemas: dict[str, str]) -> Iterator[str]:
    for name, fields in named_tuples(schemas).items():
        yield f"class _{name}(NamedTuple):"
        yield from (f"    {field}: Tensor" for field in fields)


def core_stub(core: types.ModuleType, shown: bool = False) -> str:
    """The text of _C.pyi."""
    functions: dict[str, str] = {}
    methods: dict[str, str] = {}
    for name, text, is_function, is_method in core._signatures():
        functions |= {name: text} if is_function else {}
        methods |= {name: text} if is_method else {}
    lines = [NOTE, known.HEADER, *named_tuple_lines({**methods, **functions})]
    for name, value in sorted(vars(core).items()):
        if name.startswith("__"):
            continue
        if isinstance(value, type):
            rows = methods if name == "Tensor" else {}
            lines.extend(class_lines(value, rows, shown))
        elif name in functions:
            found = forms(name, functions[name], False, shown)
            lines.extend(definitions(name, found, False, doc_of(name, value)))
        elif callable(value):
            lines.append(documented(plain("", name, value, False), doc_of(name, value)))
        else:
            lines.append(f"{name}: {type(value).__name__}")
    return "\n".join(lines) + "\n"


class Qualify(ast.NodeTransformer):
    """In the package, int and float are tensors' types."""

    def __init__(self, names: set[str]):
        self.names = names

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        # An annotation as text, which the package's own int would not be.
        if not isinstance(node.value, str):
            return node
        return self.visit(ast.parse(node.value, mode="eval").body)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self.names or not hasattr(builtins, node.id):
            return node
        return ast.Attribute(ast.Name("builtins"), node.id)


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Those of a module, with those that it tries."""
    for node in body:
        yield from node.body if isinstance(node, ast.Try) else [node]


def package_stub(core: types.ModuleType, source: str) -> str:
    """The text of __init__.pyi: the names of _C, and those of the package's own."""
    names = {name for name in vars(core) if not name.startswith("_")}
    lines = [NOTE, "import builtins"]
    body: list[str] = []
    for node in statements(ast.parse(source).body):
        if isinstance(node, ast.ImportFrom):
            lines.append(
                f"from {node.module} import "
                + ", ".join(f"{a.name} as {a.name}" for a in node.names)
            )
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
            doc = ast.get_docstring(node)
            node.body = [ast.Expr(ast.Constant(...))]
            stub = ast.unparse(ast.fix_missing_locations(Qualify(names).visit(node)))
            body.append(documented(stub.replace("\n    ...", " ..."), doc))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name == "_LATER":
                for later, where in ast.literal_eval(node.value).items():
                    module = "pydevtensor" + ("" if later == where else f".{where}")
                    lines.append(f"from {module} import {later} as {later}")
            elif isinstance(node.value, ast.Constant):
                kind = type(node.value.value).__name__.replace("NoneType", "None")
                kind = f"builtins.{kind}" if kind != "None" else kind
                body.append(f"{name}: {kind}")
            elif name.startswith("_") and name != "__all__":
                body.append(f"{name} = {ast.unparse(node.value)}")
    lines.append("from pydevtensor._C import *")
    # These are the functions of _C too, and here a step leads to their bodies.
    lines += [
        f"from pydevtensor.{each.module} import {each.name} as {each.name}"
        for each in IN_PYTHON
        if each.is_plain and each.function and not each.namespace
    ]
    public = names | set(re.findall(r" as (\w+)", "\n".join(lines)))
    public |= set(re.findall(r"^(?:def )?(\w+)(?=\(|: )", "\n".join(body), re.M))
    public = {name for name in public if not name.startswith("_")}
    body.append(f"__all__ = {sorted(public)!r}")
    return "\n".join([*lines, *body]) + "\n"


def namespace_stub(core: types.ModuleType, name: str, source: str, shown: bool) -> str:
    """The stub of a namespace: what its module imports, and its functions."""
    rows = {row: text for row, text, is_function, _ in core._signatures(name)}
    values = core._namespace(name)
    lines = [NOTE, known.NAMESPACE_HEADER]
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and node.module != "pydevtensor._names":
            for a in node.names:
                given = f"from {node.module} import {a.name}"
                if a.name == "*":
                    lines.append(given)
                elif a.asname not in (None, a.name):  # no export under another name
                    lines += [f"{given} as _{a.asname}", f"{a.asname} = _{a.asname}"]
                elif not a.name.startswith("_"):
                    lines.append(f"{given} as {a.name}")
    lines += named_tuple_lines(rows)
    for row, text in rows.items():
        full = f"{name}.{row}"
        found = forms(full, text, False, shown)
        lines += definitions(full, found, False, doc_of(row, values[row]))
    return "\n".join(lines) + "\n"


def load(path: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("pydevtensor._C", path)
    assert spec and spec.loader
    core = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(core)
    return core


def write(extension: Path, folder: Path, say: Callable[[str], None]) -> list[str]:
    """Makes the stubs of a built extension in a folder; the names of the files.

    Where the extension cannot be loaded, being built for another machine, there are
    none. BuildError where they cannot be made for another reason.
    """
    # The folder of this file has to be on sys.path, and nothing of the environment's.
    command = [sys.executable, "-s", "-E", __file__, str(extension), str(folder)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode == FOREIGN:
        say(f"no type stubs: {done.stdout.strip()}")
        return []
    if done.returncode:
        raise BuildError(f"the type stubs could not be made:\n{done.stdout.strip()}")
    return done.stdout.split()


def main(extension: str, folder: str, *options: str) -> int:
    try:
        core = load(extension)
    except ImportError as error:
        print(f"{Path(extension).name} cannot be loaded here: {error}")
        return FOREIGN
    shown = "--shown" in options
    source = (functions.PACKAGE / "__init__.py").read_text()
    made = {
        "_C.pyi": core_stub(core, shown),
        "__init__.pyi": package_stub(core, source),
    }
    for name, file in functions.modules().items():
        source = (functions.PACKAGE / file).read_text()
        made[f"{file}i"] = namespace_stub(core, name, source, shown)
    made |= records.stubs(core)
    for name, text in made.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    print(*made)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
