"""List what users can call: names, signatures and the examples of docstrings.

    python tools/public_api.py            # writes tests/golden/public_api.txt
    python tools/public_api.py --check    # writes nothing, fails where the file differs

tests/test_public_api.py holds the package to the file. A name that is new is added by
running this tool; a line that disappears takes something away from users.
"""

import ast
import doctest
import enum
import importlib
import inspect
import re
import sys
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "tests" / "golden" / "public_api.txt"
# The installed package: the source tree has no extension module.
sys.path[:] = [p for p in sys.path if p and Path(p).resolve() != ROOT]
from pydevtensor._stand_ins import is_stand_in  # noqa: E402

PACKAGE = "pydevtensor"
MODULES = (
    "",
    "amp",
    "autograd",
    "autograd.forward_ad",
    "autograd.function",
    "autograd.functional",
    "autograd.grad_mode",
    "autograd.profiler",
    "autograd.variable",
    "cpu",
    "cuda",
    "cuda.comm",
    "cuda.memory",
    "cuda.random",
    "cuda.streams",
    "distributed",
    "distributed.algorithms.ddp_comm_hooks.default_hooks",
    "distributed.checkpoint",
    "distributed.checkpoint.state_dict",
    "distributed.device_mesh",
    "distributed.fsdp",
    "distributed.fsdp.sharded_grad_scaler",
    "distributed.fsdp.wrap",
    "distributed.optim",
    "distributions",
    "fft",
    "func",
    "functional",
    "futures",
    "fx",
    "fx.graph",
    "fx.graph_module",
    "fx.immutable_collections",
    "fx.interpreter",
    "fx.node",
    "fx.proxy",
    "fx.subgraph_rewriter",
    "hub",
    "jit",
    "library",
    "linalg",
    "nn",
    "nn.functional",
    "nn.attention.flex_attention",
    "nn.init",
    "nn.modules.module",
    "nn.parallel",
    "nn.parameter",
    "nn.utils",
    "nn.utils.parametrizations",
    "nn.utils.parametrize",
    "nn.utils.prune",
    "nn.utils.rnn",
    "nn.utils.stateless",
    "onnx",
    "masked",
    "onnx.errors",
    "ops",
    "optim",
    "optim.lr_scheduler",
    "optim.swa_utils",
    "printing",
    "profiler",
    "random",
    "safetensors",
    "serialization",
    "signal.windows",
    "special",
    "testing",
    "utils",
    "utils.benchmark",
    "utils.checkpoint",
    "utils.data",
    "utils.dlpack",
    "utils.flop_counter",
    "utils.model_zoo",
    "utils.hooks",
    "vision",
    "vision.datasets",
    "vision.models",
    "vision.transforms",
    "vision.utils",
    "array_api",
    "array_api.linalg",
)
# Modules whose names come from files of other packages than their own.
INSIDE = {
    f"{PACKAGE}.nn.utils": f"{PACKAGE}.nn.utils.",
    f"{PACKAGE}.nn.functional": f"{PACKAGE}.nn._functional.",
}
# Python gives these to each class, some since 3.12 to 3.14, or the line of the class
# tells of them.
IGNORED = {
    *("__abstractmethods__", "__annotate__", "__annotate_func__", "__annotations__"),
    *("__annotations_cache__", "__buffer__", "__class__", "__delattr__", "__dict__"),
    *("__doc__", "__firstlineno__", "__getattribute__", "__init__", "__match_args__"),
    *("__module__", "__new__", "__orig_bases__", "__parameters__", "__replace__"),
    *("__release_buffer__", "__repr__", "__setattr__", "__slotnames__", "__slots__"),
    *("__static_attributes__", "__type_params__", "__weakref__"),
}


def module(name):
    return importlib.import_module(f"{PACKAGE}.{name}" if name else PACKAGE)


def public_names(where):
    """The public names of a module: its __all__, or what it defines."""
    if hasattr(where, "__all__"):
        yield from where.__all__
        return
    root = module("")
    for name, value in vars(where).items():
        of_module = isinstance(value, types.ModuleType)
        home = getattr(value, "__name__" if of_module else "__module__", None) or ""
        inside = INSIDE.get(where.__name__, where.__name__ + ".")
        own = home == where.__name__ or (home.startswith(inside) and where != root)
        function = inspect.isbuiltin(value) and value.__self__ is module("_C")
        if not name.startswith("_") and (own or function) and not is_stand_in(value):
            yield name


def member(kind, name):
    """What a class stores under a name."""
    getattr(kind, name, None)  # a layer makes its methods when it is asked for them
    return inspect.getattr_static(kind, name)


def resolve(name):
    """The object that a name means, as a class or a module stores it."""
    parts = name.split(".")
    inside = next(
        i for i in range(len(parts) - 1, -1, -1) if ".".join(parts[:i]) in MODULES
    )
    value = module(".".join(parts[:inside]))
    for part in parts[inside:]:
        if isinstance(value, type):
            value = member(value, part)
        else:
            value = getattr(value, part)
    if is_stand_in(value):
        raise AttributeError(f"{name} is a stand-in")
    return value


def signature(value):
    """A call's parameters without their types."""
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    if isinstance(value, enum.EnumType):
        return "(value)"  # Python's versions differ in how they show it
    try:
        found = inspect.signature(value)
    except (ValueError, TypeError):
        return "(...)"
    bare = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    text = str(found.replace(parameters=bare, return_annotation=found.empty))
    return plain(text)


def plain(text):
    """Without addresses, the module in which a class happens to stand, and the language
    of a function."""
    text = re.sub(r" at 0x[0-9a-f]+|(?<=<)built-in (?=function )", "", text)
    return re.sub(rf"\b{PACKAGE}\.(\w+\.)*", "", text)


def examples(value):
    """The examples of a docstring, with what they print, as lines."""
    lines = []
    doc = getattr(value, "__doc__", None)
    for example in doctest.DocTestParser().get_examples(doc or ""):
        first, *more = example.source.splitlines()
        lines += [f">>> {first}", *(f"... {line}".rstrip() for line in more)]
        lines += example.want.splitlines()
    return lines


def stub_forms():
    """By name, the parameters of each form that the stubs give a call."""
    forms = {}

    def collect(body, prefix):
        for node in body:
            if isinstance(node, ast.ClassDef):
                collect(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef):
                for each in ast.walk(node.args):
                    if isinstance(each, ast.arg):
                        each.annotation = None
                text = f"({ast.unparse(node.args)})"
                forms.setdefault(f"{prefix}{node.name}", []).append(text)

    for stub in ("_C.pyi", "__init__.pyi"):
        path = Path(module("").__file__).with_name(stub)
        if path.exists():
            collect(ast.parse(path.read_text()).body, "")
    return {name: each for name, each in forms.items() if len(each) > 1}


def bases(value, names):
    """The other public classes and exceptions that a class is one of."""
    for base in value.__mro__[1:]:
        if base in names:
            yield names[base]
        elif base.__module__ == "builtins" and base is not object:
            yield base.__name__


def entry(name, forms, names):
    """What the file says of a name: a line for it and lines that go with it."""
    value = resolve(name)
    if inspect.ismodule(value):
        return [f"module {name}"]
    if isinstance(value, type):
        of = ", ".join(bases(value, names))
        line = f"class {name}{signature(value)}" + (f" is a {of}" if of else "")
    elif isinstance(value, property) or inspect.isdatadescriptor(value):
        line = f"property {name}"
    elif name.endswith("__") and callable(value):
        line = f"method {name}"  # Python's protocols say how it is called
    elif callable(value) or isinstance(value, staticmethod | classmethod):
        line = f"{name}{signature(value)}"
    else:
        line = f"{name} = {plain(repr(value))}"
        return [line]
    more = [f"or {form}" for form in forms.get(name, ()) if name + form != line]
    return [line, *more, *examples(value)]


def members(name, value, names):
    """The members that a class has and no public base of it does."""
    for inner in sorted(dir(value)):
        if inner in IGNORED or (inner.startswith("_") and not inner.startswith("__")):
            continue
        owner = next((c for c in value.__mro__ if inner in vars(c)), object)
        above = [base for base in value.__mro__[1:] if base in names]
        inherited = any(owner in base.__mro__ for base in above)
        of_python = owner.__module__ in ("builtins", "typing")
        # How a private base makes its classes is not called by users.
        making = inner == "__init_subclass__" and owner is not value
        foreign = of_python or making or vars(owner)[inner] is None
        if not inherited and not foreign:
            yield f"{name}.{inner}"


def class_names():
    """Each public class with its name, the shortest where it has several."""
    names = {}
    for where in MODULES:
        for name in public_names(module(where)):
            value = getattr(module(where), name)
            if isinstance(value, type) and repr(value).startswith(
                f"<class '{PACKAGE}."
            ):
                names.setdefault(value, f"{where}.{name}".strip("."))
    return names


def all_names():
    names = class_names()
    for where in MODULES:
        for name in sorted(public_names(module(where))):
            full = f"{where}.{name}".strip(".")
            yield full
            value = getattr(module(where), name)
            if names.get(value if isinstance(value, type) else None) == full:
                yield from members(full, value, names)


def listing():
    """By name, its entry."""
    forms, classes = stub_forms(), class_names()
    return {name: entry(name, forms, classes) for name in all_names()}


def text_of(entries):
    """The file's text: examples that several names share stand once."""
    lines, shown = [], {}
    for name, (line, *rest) in entries.items():
        lines.append(line)
        lines += [f"    {each}" for each in rest if each.startswith("or ")]
        shows = tuple(each for each in rest if not each.startswith("or "))
        first = shown.setdefault(shows, name)
        if first != name and shows:
            lines.append(f"    examples as {first}")
        else:
            lines += [f"    {each}".rstrip() for each in shows]
    return "\n".join(lines) + "\n"


def parse(text):
    """The entries of a file's text."""
    entries, name = {}, None
    for line in text.splitlines():
        if line and not line.startswith(" "):
            words = re.match(r"(?:class |method |module |property )?([\w.]+)", line)
            name = words[1]
            entries[name] = [line]
        elif line.startswith("    examples as "):
            rest = entries[line.removeprefix("    examples as ")][1:]
            entries[name] += [each for each in rest if not each.startswith("or ")]
        else:
            entries[name].append(line[4:])
    return entries


def main():
    text = text_of(listing())
    if sys.argv[1:] == ["--check"]:
        if text != FILE.read_text():
            sys.exit(f"{FILE} is not what the package has: run tools/public_api.py")
    else:
        FILE.write_text(text)


if __name__ == "__main__":
    main()
