"""docs/reading.md names files that exist, few enough to read, and functions that are in them.

Its roads leave out no file, so that they cannot be made shorter but in the sources.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reading.md").read_text()
STOPS, _, ROADS = PAGE.partition("\n## `a + b`")
BUDGET, ROADS_BUDGET, EVENING_BUDGET = (
    int(number.replace(",", ""))
    for number in re.findall(r"under (\d+,\d+)", PAGE.partition("\n## ")[0])
)
# The layers that a road goes down through. The binding calls functions that are written
# in Python, and forward() of modules.
LAYERS = (
    ("csrc/python/functions/composite.c", "csrc/python/types/module_base.c"),
    "pydevtensor/",
    "csrc/python/",
    "csrc/autograd/",
    "csrc/tensor/",
    "csrc/device/",
    "csrc/c",
)
EVENING = PAGE.partition("## A first evening")[2].partition("\n## ")[0]


def files(name):
    """A name is a file, or stands for all files that differ in the suffix."""
    last = name.rpartition("/")[2]
    pattern = name if "." in last or "*" in last else f"{name}.*"
    return [path for path in ROOT.glob(pattern) if path.is_file()]


def test_nine_stops():
    assert re.findall(r"^\*\*(\d)\. ", STOPS, re.MULTILINE) == list("123456789")
    assert "csrc/device/backend.h" in STOPS.split("**2.")[0]
    assert "csrc/autograd/engine" in STOPS.split("**9.")[1]


def test_the_spine_is_short():
    names = set(re.findall(r"`((?:csrc|pydevtensor)/[\w/.*]+)`", STOPS))
    missing = sorted(name for name in names if not files(name))
    assert not missing, f"no such files: {missing}; correct docs/reading.md"
    spine = {path for name in names for path in files(name)}
    lines = sum(len(path.read_text().splitlines()) for path in spine)
    assert 15_000 < lines < BUDGET, f"the {len(spine)} files have {lines} lines"


def test_a_first_evening_is_short():
    names = set(re.findall(r"`(csrc/[\w/.]+)`", EVENING))
    stops = STOPS.partition("## Nine stops")[2]
    spine = set(re.findall(r"`(csrc/[\w/.*]+)`", stops))
    on_the_spine = {path for name in spine for path in files(name)}
    evening = {path for name in names for path in files(name)}
    assert len(evening) == len(names) > 10 and evening <= on_the_spine
    assert (
        3000
        < sum(len(path.read_text().splitlines()) for path in evening)
        < EVENING_BUDGET
    )


def steps():
    """The functions that the roads enter, each with its file."""
    return re.findall(r"`(\w+)`\s+in\s+`((?:csrc|pydevtensor)/[\w/.]+)`", ROADS)


def is_defined(name, text):
    """Whether a file, in Python or C, defines a function, a class or a record."""
    forms = (
        rf"^ *(?:def|class) {name}\b",
        rf"^\w.*\b{name}\(.*[^;\n]$",
        rf"^\w.*\b{name} = \{{",
        rf'^DT_PUBLIC\(.*"{name}\(',
    )
    return any(re.search(form, text, re.MULTILINE) for form in forms)


def test_the_roads_name_what_is_there():
    assert len(steps()) > 80
    wrong = [
        f"{name} in {file}"
        for name, file in steps()
        if not (ROOT / file).exists() or not is_defined(name, (ROOT / file).read_text())
    ]
    assert not wrong, f"not there any more: {wrong}; correct docs/reading.md"


def test_a_call_is_no_definition():
    assert is_defined(
        "a", "static int a(int x,\n             int y)\n{\n    return b(x);\n}"
    )
    assert not is_defined("b", "int b(int x);\nint a(int x)\n{\n    return b(x);\n}\n")
    assert is_defined("__call__", "class A:\n    def __call__(self):\n        pass\n")
    assert not is_defined("__call__", "if on:\n    A.__call__ = A.run\n")


def callers_of(name, file, texts):
    """The files, of those with texts, from which a step of a road may be called."""
    forms = rf"\b{name}\b"
    if kernel := re.fullmatch(r"dt_(?:cpu|cuda)_(\w+)", name):
        forms += rf"|->{kernel[1]}\("  # of a backend
    if row := re.fullmatch(r"dt_(\w+)_(?:for|back)ward", name):
        forms += rf"|\b{row[1]}\b"  # of a row
    least = {file: 2}  # a file that calls a function of its own
    return [
        path
        for path, text in texts.items()
        if len(re.findall(forms, text)) >= least.get(path, 1)
    ]


def test_the_roads_leave_out_no_file():
    """What a road enters is called by a file that a road enters, its quick file or a table."""
    texts = {file: (ROOT / file).read_text() for _, file in steps()}
    for pattern in ("csrc/**/*_quick.c", "csrc/ops/functions/*.def"):
        texts |= {str(path): path.read_text() for path in ROOT.glob(pattern)}
    lost = [
        f"{name} in {file}"
        for name, file in steps()
        if not callers_of(name, file, texts)
    ]
    assert not lost, f"no file that a road enters calls {lost}; add the step between"


@pytest.mark.parametrize("call", ["nn.Conv2d(", "torch.linalg.solve(", "optim.Adam("])
def test_a_road_leads_down(call):
    """No step enters a higher layer again."""
    road = ROADS.partition(f"## `{call}")[2].partition("\n## ")[0]
    entered = re.findall(r"`\w+`\s+in\s+`([\w/.]+)`", road)
    layers = [
        next(i for i, layer in enumerate(LAYERS) if file.startswith(layer))
        for file in entered
    ]
    assert len(layers) > 7 and len(set(layers)) > 3
    assert layers == sorted(layers), f"order the steps: {entered}"


def test_a_file_left_out_is_found():
    attach, node = "dt_op_node_attach", "csrc/autograd/op_node.c"
    texts = {file: (ROOT / file).read_text() for _, file in steps()}
    assert callers_of(attach, node, texts)
    del texts["csrc/autograd/dispatch.c"]
    assert not callers_of(attach, node, texts)


def test_the_roads_enter_few_lines():
    entered = {ROOT / file for _, file in steps()}
    lines = sum(len(path.read_text().splitlines()) for path in entered)
    assert 10_000 < lines < ROADS_BUDGET, f"the {len(entered)} files have {lines} lines"
