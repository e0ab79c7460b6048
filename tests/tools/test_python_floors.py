"""The building plan of pydevtensor/ in ARCHITECTURE.md, held against its modules.

A module imports from its own layer or lower ones. An extra or a tool stands behind a
wall: nothing of the core needs it, and it uses the public names alone, as a program
does.
"""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import lines
import pytest
import repeats

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "pydevtensor"

ORDER = {
    unit: number
    for number, units in enumerate(lines.LAYERS.values())
    for unit in units.split()
}
EXTRAS = {*lines.LAYERS["extras"].split()}
# Extras that show what the extension module has.
WITH_THE_EXTENSION = {"library", "overrides", "profiler", "sparse"}
# A private name of PyTorch's that programs import.
FROM_PYTORCH = "pydevtensor.utils._pytree"
# What every module of the package is made with.
FRAME = {"pydevtensor._names.publish", "pydevtensor._names.give"}

LONGEST = 600
# Lines with a token, by tools/lines.py. A commit that raises one says why.
BUDGET = {
    "csrc": 86_680,
    "core": 32_005,
    "processes": 6_390,
    "extras": 13_100,
    "imitations": 980,
    "tools": 1_705,
}


# Lines of docstrings that are a copy of another, by tools/repeats.py.
COPIED = 534

# Pairs of runs of five lines, by tools/repeats.py.
REPEATED = {"csrc": 72, "pydevtensor": 70}


def unit(module):
    """The part of pydevtensor that a module belongs to: its name below the package, or
    with one more word where the plan has that."""
    words = module.split(".")[1:3]
    return ".".join(words) if ".".join(words) in ORDER else "".join(words[:1])


@cache
def modules():
    """Every module's name and path."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def nodes(tree):
    """The nodes of a tree but for what only type checkers read."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield node
            waiting += ast.iter_child_nodes(node)


def imported(module, path):
    """The full names that a module imports from the package, at any time."""
    for node in nodes(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module}: write the whole name"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == "pydevtensor")


@cache
def edges():
    """How many imports lead from one part to another."""
    found = Counter()
    for module, path in modules().items():
        for name in imported(module, path):
            found[unit(module), unit(name)] += unit(module) != unit(name)
    return found


def test_every_part_has_a_layer():
    units = {unit(module) for module in modules()} - {""}
    assert units | {"_C"} == set(ORDER)
    plan = (ROOT / "ARCHITECTURE.md").read_text()
    section = plan.partition("## Core, extras, imitations")[2].partition("\n## ")[0]
    assert [name for name in ORDER if f"`{name}`" not in section] == []


def test_imports_lead_down():
    up = {e for e in edges() if ORDER.get(e[1], 0) > ORDER.get(e[0], 99)}
    assert up == set(), "move the thing, or let the higher part hook itself in"


def test_parts_of_a_layer_do_not_import_each_other():
    assert {e for e, n in edges().items() if n and edges()[e[::-1]]} == set()


@pytest.mark.parametrize("part", sorted(EXTRAS))
def test_an_extra_imports_public_names_alone(part):
    private = {
        name
        for module, path in modules().items()
        if unit(module) == part
        for name in imported(module, path)
        if any(word[0] == "_" for word in name.split("."))
        if unit(name) != part and name not in FRAME and name != FROM_PYTORCH
    }
    extension = {"pydevtensor._C"} if part in WITH_THE_EXTENSION else set()
    assert private - extension == set()


def test_tools_import_few_private_names():
    tools = {*lines.LAYERS["tools"].split()}
    private = {
        name
        for module, path in modules().items()
        if unit(module) in tools
        for name in imported(module, path)
        if any(word[0] == "_" and word[:2] != "__" for word in name.split("."))
        if unit(name) not in tools and name not in FRAME | {"pydevtensor._C"}
    }
    assert private == {
        "pydevtensor.cuda._kernel_compiler",
        "pydevtensor.cuda._kernel_source",
        "pydevtensor.cuda._program_source",
        "pydevtensor.distributed._clocks.records",
        "pydevtensor.distributed._links.Cluster",
        "pydevtensor.distributed._rendezvous.LOCAL_RANK",
        "pydevtensor.distributed._rendezvous.RANK",
        "pydevtensor.distributed._rendezvous.from_environment",
    }, "use public names, or make one public"


def test_no_file_is_long():
    lengths = {
        path.relative_to(ROOT).as_posix(): len(path.read_text().splitlines())
        for folder in (PACKAGE, ROOT / "tests")
        for path in folder.rglob("*.py")
    }
    long = {name: n for name, n in lengths.items() if n > LONGEST}
    assert long == {}, "split them"


def test_the_product_stays_in_its_budget():
    found = {part: tokens for part, (_, _, tokens) in lines.count().items()}
    assert {part: n for part, n in found.items() if n > BUDGET[part]} == {}
    assert {p: n for p, n in BUDGET.items() if n > 1.03 * found[p] + 20} == {}, "lower"


@pytest.mark.parametrize("folder", REPEATED)
def test_few_runs_of_lines_stand_twice(folder):
    found = repeats.count(folder)
    assert len(found) <= REPEATED[folder], found[:20]


def test_docstrings_say_most_things_once():
    """A base or another function may say it: publish(__name__, described=True)."""
    found = repeats.copied()
    assert found.total() <= COPIED, found.most_common(20)


def test_a_run_that_stands_twice_is_one_pair():
    a = [*enumerate("xabcdefy", 1)]
    assert repeats.pairs({"a": a, "b": [*enumerate("abcdef", 1)]}, 3) == [
        (6, "a", 2, "b", 1)
    ]
    assert repeats.pairs({"a": [*enumerate("abcabcabc", 1)]}, 3) == [
        (6, "a", 1, "a", 4),
        (3, "a", 1, "a", 7),
    ]
    assert repeats.pairs({"a": [*enumerate("aaaa", 1)]}, 3) == []


def test_lines_with_a_token():
    python = (
        '"""A.\n\nB."""\n\n# c\nx = (  # d\n    """e\nf"""\n)\n\ndef g():\n    "h"\n'
    )
    assert [i for i, _ in lines.numbered_of_python(python)] == [6, 7, 8, 9, 11]
    c = '/* a\n b */\nint x; // c\n\nchar *y = "// d";\n// e\n#define z\n'
    assert [i for i, _ in lines.numbered_of_c(c)] == [3, 5, 7]
