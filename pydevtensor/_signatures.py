"""Signatures and docstrings as text, from which others are made.

Classes are made of records (_records.py), and the layers of nn of functions: at run
time and, in the stubs, by tools/build/records.py. So this module imports nothing of the
package, and both can use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

WIDTH = 84  # of docstrings
# Annotations of options by parameter types of schemas (csrc/tensor/schema.h).
_KINDS = {"float": "float", "Number": "float", "int": "int", "str": "str"}
_KINDS |= {"bool": "bool", "Truth": "bool"}
_AS_IS = {"ParamsT", "Optimizer"}  # Python's types, as those with [] and |


class Parameter:
    """One parameter of a schema: `name: type = default`, or `name=default`."""

    def __init__(self, text: str, keyword: bool = False) -> None:
        before, _, self.default = (t.strip() for t in text.partition("="))
        self.name, _, self.type = (t.strip() for t in before.partition(":"))
        self.keyword = keyword

    @property
    def annotation(self) -> str:
        """The type as Python writes it, Any where a layer takes several."""
        if self.type in _AS_IS or "[" in self.type or "|" in self.type:
            return self.type
        kind = _KINDS.get(self.type.rstrip("?"), "Any")
        if kind == "Any" and self.default[:1] == "'":
            return "str"
        none = self.default == "None" or self.type.endswith("?")
        return f"{kind} | None" if none and kind != "Any" else kind

    def __str__(self) -> str:
        default = f" = {self.default}" if self.default else ""
        return f"{self.name}: {self.annotation}{default}"


def split(text: str, opening: str = "([", closing: str = ")]") -> list[str]:
    """The parts between commas, those inside brackets aside."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in opening) - (letter in closing)
        if letter == "," and not depth:
            parts.append(text[start:place].strip())
            start = place + 1
    return [part for part in [*parts, text[start:].strip()] if part]


def parameters(schema: str) -> Iterator[Parameter]:
    """The parameters of `name(a: Tensor, b: int = 1) -> results`."""
    inside = schema.partition(" -> ")[0]
    keyword = False
    for part in split(inside[inside.index("(") + 1 : inside.rindex(")")]):
        if part == "*":
            keyword = True
        else:
            yield Parameter(part, keyword)


class Record:
    """The constructor of a class, as text.

    schema  what the family, or a function, says of the parameters
    takes   those that the constructor takes, a list such as "p, eps=0.1, value: float"
    """

    def __init__(self, schema: str, takes: str) -> None:
        self.parameters = {p.name: p for p in parameters(schema)}
        self.options = [*self._taken(takes)]

    def _taken(self, takes: str) -> Iterator[Parameter]:
        keyword = False
        for text in split(takes):
            option = Parameter(text, keyword)
            if text == "*":
                keyword = True
                continue
            if not option.type:
                known = self.parameters[option.name]
                option.type = known.type
                option.default = option.default or known.default
            yield option

    def constructor(self) -> str:
        """The head of __init__()."""
        plain = [str(p) for p in self.options if not p.keyword]
        keywords = [str(p) for p in self.options if p.keyword]
        each = ["self", *plain, *(["*"] if keywords else []), *keywords]
        return f"def __init__({', '.join(each)}) -> None:"


class Layer(Record):
    """The methods of a layer that calls a function, as text.

    schema  the function's
    takes   what the constructor takes; "": all of the function's parameters but the
            inputs, `training`, and keywords
    inputs  what forward() takes; "": the tensors without a default
    spent   what the constructor takes but the layer has no attribute of
    """

    def __init__(
        self, schema: str, takes: str = "", inputs: str = "", spent: Iterable[str] = ()
    ) -> None:
        super().__init__(schema, takes)
        known = self.parameters.values()
        self.inputs = [Parameter(text) for text in split(inputs)] or [
            p for p in known if p.type in ("Tensor", "Value") and not p.default
        ]
        given = {p.name for p in self.inputs}
        self.options = self.options or [
            p
            for p in known
            if not (p.name in given or p.keyword or p.name[0] == "_")
            and p.name != "training"
        ]
        # The attributes that hold options, and those of them that are buffers.
        self.names = [p.name for p in self.options if p.name not in spent]
        self.tensors = [p.name for p in self.options if p.type.startswith("Tensor")]

    def forward(self) -> str:
        """The head of forward()."""
        each = (
            f"{p.name}: Any" + (f" = {p.default}" if p.default else "")
            for p in self.inputs
        )
        return f"def forward(self, {', '.join(each)}) -> Any:"

    def call(self) -> str:
        """The arguments that forward() calls the function with."""
        given = {p.name for p in self.inputs}
        kept = {*self.names, "training"}
        arguments, by_name = [], ""
        for name, parameter in self.parameters.items():
            if name in given or name in kept:
                value = name if name in given else f"self.{name}"
                by_name = f"{name}=" if by_name or parameter.keyword else ""
                arguments.append(f"{by_name}{value}")
            else:
                by_name = "yes"  # one is left out: names from here on
        return ", ".join(arguments)


class Caller(Layer):
    """The forward() of a layer that has an attribute for each parameter."""

    def __init__(self, schema: str, inputs: str) -> None:
        given = {Parameter(text).name for text in split(inputs)}
        kept = (p for p in parameters(schema) if p.name not in given and not p.keyword)
        super().__init__(schema, ", ".join(p.name for p in kept), inputs)


# --- docstrings ---

Entries = dict[tuple[str, ...], str]


def _entry(line: str, between: str) -> tuple[tuple[str, ...], str] | None:
    """The names and the text of a line such as `low, high  the bounds`."""
    names, found, text = line.partition(between)
    each = tuple(name.strip(" *`") for name in names.split(","))
    if found and text and all(name.isidentifier() for name in each):
        return each, text.strip()
    return None


def read_doc(
    doc: str, names: Iterable[str] | None = None
) -> tuple[list[str], Entries, str]:
    """The paragraphs of a docstring, what it says of parameters, and the examples.

    Parameters stand in a table, two spaces after the names, or in paragraphs of their
    own, such as `dim: the dimension.` Where names are given, only of these.
    """
    at = doc.find(">>> ")
    prose, examples = (doc, "") if at < 0 else (doc[:at], doc[at:])
    paragraphs: list[str] = []
    found: Entries = {}
    for block in filter(None, map(str.strip, prose.split("\n\n"))):
        lines = block.split("\n")
        if _entry(lines[0], "  "):
            for line in lines:
                if line[0] != " " and (entry := _entry(line, "  ")):
                    last = entry[0]
                    found[last] = entry[1]
                else:
                    found[last] += " " + line.strip()
            continue
        entry = _entry(" ".join(map(str.strip, lines)), ": ")
        if entry and (names is None or entry[0][0] in names):
            found[entry[0]] = entry[1].removesuffix(".")
        else:
            paragraphs.append(block)
    return paragraphs, found, examples.rstrip()


def table(entries: Entries) -> str:
    """The parameters and their descriptions, as lines of two columns."""
    wide = max(len(", ".join(names)) for names in entries) + 2
    lines = []
    for names, text in entries.items():
        line = ", ".join(names).ljust(wide - 1)
        for word in text.split():
            if len(line) + 1 + len(word) > WIDTH:
                lines.append(line)
                line = " " * (wide - 1)
            line += " " + word
        lines.append(line)
    return "\n".join(lines)


def compose(
    paragraphs: list[str], names: Iterable[str], entries: list[Entries], examples: str
) -> str:
    """A docstring that says of each name what the first entries that have it say.

    Names that an entry has together stay together, those of them that are asked for.
    Names that no entry has are left out, and other names of the first entries come
    last.
    """
    said: Entries = {}
    done: set[str] = set()
    names = [*names]
    for name in names:
        for each in entries:
            key = next((key for key in each if name in key), None)
            if key and name not in done:
                asked = tuple(n for n in key if n in names)
                said[key if each is entries[0] else asked] = each[key]
                done.update(key)
    said |= {key: text for key, text in entries[0].items() if not done & {*key}}
    blocks = [*paragraphs, *([table(said)] if said else []), examples]
    return "\n\n".join(filter(None, blocks)) + "\n"


def complete(doc: str, names: Iterable[str], *others: Entries) -> str:
    """A docstring with what the others say of the names that it leaves out."""
    names = [*names]
    paragraphs, said, examples = read_doc(doc, names)
    return compose(paragraphs, names, [said, *others], examples)


REFERENCE = "Parameters: those of "  # and then "name()."


def resolve(doc: str, names: Iterable[str], doc_of: Callable[[str], str | None]) -> str:
    """A docstring that has what another one says of the parameters `names`.

    "Parameters: those of name()." stands for it; doc_of(name) is the other docstring.
    """
    before, _, rest = dedented(doc).partition(REFERENCE)
    other, _, after = rest.partition("().")
    said = read_doc(dedented(doc_of(other) or ""), names)[1]
    return complete(before.rstrip() + "\n\n" + after.lstrip(), names, said)


def dedented(doc: str) -> str:
    """A docstring without its indentation, as inspect.cleandoc() makes it."""
    first, *others = doc.strip().split("\n")
    indent = min((len(t) - len(t.lstrip()) for t in others if t.strip()), default=0)
    return "\n".join([first, *(line[indent:].rstrip() for line in others)])


def like(model: Callable[_P, Any]) -> Callable[[Callable[..., _R]], Callable[_P, _R]]:
    """Give a function of *args and **named the parameters of another."""

    def add(body: Any) -> Any:
        whole: Any = model
        while hasattr(whole, "__wrapped__"):
            whole = whole.__wrapped__
        # inspect.signature() reads it of what a function wraps.
        shown = FunctionType(whole.__code__, whole.__globals__)
        shown.__defaults__ = whole.__defaults__
        shown.__kwdefaults__ = whole.__kwdefaults__
        result = body.__annotations__["return"]
        shown.__annotations__ = whole.__annotations__ | {"return": result}
        body.__wrapped__ = shown
        return body

    return add
