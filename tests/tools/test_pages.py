"""The pages in docs/ name what is there, and their programs run."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from isolated import environment, python

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT / "tools" / "website"))

import docstring  # noqa: E402

sys.path.pop(0)


@pytest.fixture
def pages(monkeypatch):
    pytest.importorskip("nbformat")
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "website"))
    return importlib.import_module("pages")


TREE = {
    path.relative_to(ROOT).as_posix()
    for folder in ("csrc", "pydevtensor", "tests", "tools", "docs", "benchmarks")
    for path in (ROOT / folder).rglob("*")
    if "__pycache__" not in path.parts
} | {path.name for path in ROOT.iterdir()}
# What the build makes, what is Python's, and names that stand for any.
MADE = {"Python.h", "build/include/composite.def", "_C.pyi", "__init__.pyi", "_cuda.so"}
MADE |= {"_cuda_sim.so", "meson.build", "conftest.py", "build/site", "dist/"}
SUFFIX = r"c|h|cpp|cu|cuh|def|inc|py|pyi|md|json|txt|toml|supp|map|so|build"


def named_files(text):
    """The files and folders that a page names in backticks, outside of programs."""
    text = re.sub(r"(?ms)^```.*?^```", "", text)
    for name in re.findall(rf"`((?:[\w.-]+/)*[\w.-]+\.(?:{SUFFIX})|(?:\w+/)+)`", text):
        if name not in MADE and not re.search(r"\bX\.|^\.|train\.py|script\.py", name):
            yield name


def is_there(name):
    """Pages name files from the top, or from the folder that they speak of."""
    name = name.rstrip("/")
    return name in TREE or any(path.endswith("/" + name) for path in TREE)


@pytest.mark.parametrize(
    "page",
    ["ARCHITECTURE.md", "CHANGELOG.md", "docs/contributing.md", "docs/start.md"]
    + ["docs/security.md", "docs/reliability.md", "docs/races.md", "docs/reading.md"],
)
def test_named_files_exist(page):
    names = set(named_files((ROOT / page).read_text()))
    missing = sorted(name for name in names if not is_there(name))
    assert not missing, f"no such files: {missing}; correct {page}"


def test_a_file_that_is_gone_is_seen():
    text = "`csrc/base/no_such.h`, `tools/none/`, `autograd/engine.c` and `x.py.y`"
    gone = [name for name in named_files(text) if not is_there(name)]
    assert gone == ["csrc/base/no_such.h", "tools/none/"]
    assert len(set(named_files((ROOT / "ARCHITECTURE.md").read_text()))) > 50


def programs(page):
    return re.findall(r"(?ms)^```python\n(.*?)^```", (DOCS / page).read_text())


@pytest.mark.parametrize("page", ["start.md", "from-pytorch.md"])
def test_programs(page):
    """Each program runs by itself and prints what its comments say."""
    for text in programs(page):
        shown = re.findall(r"^\s*print\(.*\)  # (.*)$", text, re.MULTILINE)
        out = python(text)
        assert out.splitlines() == shown


def test_the_tests_of_ci(tmp_path):
    (text,) = programs("ci.md")
    (tmp_path / "test_it.py").write_text(text)
    options = ["-q", "-p", "no:cacheprovider", "--strict-markers"]
    wanted = (DOCS / "ci.md").read_text()
    assert "pytest --pydevtensor-gpus=2" in wanted
    out = python(
        "",
        arguments=["-m", "pytest", *options, "--pydevtensor-gpus=2", str(tmp_path)],
        PYDEVTENSOR_SIM_RACES="error",
    )
    assert "2 passed" in out


def test_the_first_example(tmp_path):
    """README's program prints what stands below it, and draws docs/timeline.svg."""
    blocks = re.findall(r"(?ms)^```\w*\n(.*?)^```", (ROOT / "README.md").read_text())
    program, printed = blocks[:2]
    (tmp_path / "example.py").write_text(program)
    said = subprocess.run(
        [sys.executable, "example.py"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.replace(f"{tmp_path}/", "")
    # The folder's name makes the column wider.
    words = [
        [word for word in text.split() if set(word) != {"-"}]
        for text in (said, printed)
    ]
    assert words[0] == words[1]
    drawn = (tmp_path / "timeline.svg").read_text()
    assert drawn == (DOCS / "timeline.svg").read_text()


def test_a_forgotten_record_stream():
    text = (DOCS / "races.md").read_text()
    section = text.partition("## A forgotten record_stream")[2].partition("\n## ")[0]
    program, wrong, advice = re.findall(r"(?ms)^```\w*\n(.*?)^```", section)
    assert python(program) == wrong
    forgotten = "# x.record_stream(side)  # forgotten"
    assert "tensor([2., 2., 2.]" in python(program.replace(forgotten, forgotten[2:]))
    for schedule in ("lazy", "eager", "random:1"):
        chosen = program.replace('"lazy"', f'"{schedule}", races="error"')
        said = python(chosen, fails=True)
        assert said.endswith(advice) and "fill writes them on s2" in said


def test_the_workflow():
    yaml = pytest.importorskip("yaml")
    (text,) = re.findall(r"(?ms)^```yaml\n(.*?)^```", (DOCS / "ci.md").read_text())
    (job,) = yaml.safe_load(text)["jobs"].values()
    steps = job["steps"]
    assert job["runs-on"] == "ubuntu-latest" and len(text.splitlines()) <= 12
    assert [step.get("uses", "run").split("@")[0] for step in steps] == [
        "actions/checkout",
        "actions/setup-python",
        "run",
        "run",
    ]


def rows(path, heading):
    """The rows of the table of missing things below a line."""
    text = path.read_text().partition(heading)[2].partition("| area | missing |")[2]
    return [line for line in text.partition("\n\n")[0].splitlines() if "|" in line]


def test_what_is_missing_is_said_alike():
    readme = rows(ROOT / "README.md", "These parts of PyTorch are missing")
    assert len(readme) > 2
    assert rows(DOCS / "from-pytorch.md", "## What is missing") == readme


def test_links_lead_to_pages_or_sources(pages, monkeypatch):
    english = {
        "ARCHITECTURE.md": "ARCHITECTURE",
        "docs/a.md": "a",
        "docs/ci.md": "ci",
        "notebooks/gpu.ipynb": "notebooks/gpu",
    }
    chinese = {
        "docs/zh/a.md": "a",
        "docs/zh/b.md": "b",
        "docs/zh/notebooks/gpu.md": "notebooks/gpu",
    }
    monkeypatch.setattr(pages, "english", lambda: english)
    monkeypatch.setattr(pages, "chinese", lambda: chinese)

    def led(text, page="docs/a.md", sources=""):
        language = "zh" if page in chinese else "en"
        return pages.Site(language, sources).linked(text, page)

    assert led("[x](../ARCHITECTURE.md#y)") == "[x](ARCHITECTURE.md#y)"
    assert led("[x](b.md)", "docs/zh/a.md") == "[x](b.md)"
    assert led("[x](../docs/a.md)", "notebooks/gpu.ipynb") == "[x](../a.md)"
    # From one site to the other, and within the Chinese one to what is written there.
    assert led("[中文](zh/a.md)") == '<a href="zh/a.html">中文</a>'
    assert (
        led("[English](../a.md#y)", "docs/zh/a.md")
        == '<a href="../a.html#y">English</a>'
    )
    up = '<a href="../../ci.html">x</a>'
    assert led("[x](../../ci.md)", "docs/zh/notebooks/gpu.md") == up
    assert (
        led("[x](../../notebooks/gpu.ipynb)", "docs/zh/a.md") == "[x](notebooks/gpu.md)"
    )
    shown = led("See [ARCHITECTURE.md](../ARCHITECTURE.md).")
    assert shown == "See [How pydevtensor is built](ARCHITECTURE.md)."
    shown = led("[gpu.ipynb](../../notebooks/gpu.ipynb)", "docs/zh/a.md")
    assert shown == "[GPU 上的张量](notebooks/gpu.md)"
    assert led("[cards](../csrc/sim/cards.def)") == "cards"
    url = "https://host/o/n/blob/main"
    assert led("[c](../setup.py)", sources=url + "/") == f"[c]({url}/setup.py)"
    kept = "[x](https://example.org) [y](#here)\n```\n[z](gone.md)\n```\n"
    assert led(kept) == kept
    for gone in ("gone.md", "../../outside.md"):
        with pytest.raises(pages.BrokenLink, match=gone):
            led(f"[x]({gone})")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_page_is_in_the_navigation(pages, monkeypatch, language):
    have = {"en": pages.english, "zh": pages.chinese}[language]()
    known = {*pages.english().values(), *pages.chinese().values()}
    name = {"en": "english", "zh": "chinese"}[language]
    monkeypatch.setattr(pages, name, lambda: {**have, "docs/new.md": "new"})
    listed = set(pages.Site(language, "").navigation().split())
    assert {*have.values(), "new"} - {"index"} <= listed
    for names in pages.NAVIGATION.values():
        assert {*names} - {"reference/index", pages.LIST} <= known


def test_docstrings_become_text():
    def shown(doc):
        return "\n".join(docstring.converted(doc)).strip()

    assert shown("x*2, `y` and a_.") == "x\\*2, ``y``\\  and a\\_."
    example = shown("Text.\n\n>>> f(1)\n2\n\nForms:\n    f(x)\n    f()")
    assert example == "Text.\n\n.. code-block:: pycon\n\n   >>> f(1)\n   2"
    table = shown("n     how many\n      of them\nlong  another")
    assert table == "``n``\n   how many of them\n\n``long``\n   another"
    assert shown("Formula:\n\n    y = x | z") == (
        "Formula\\:\n\n.. code-block:: text\n\n   y = x | z"
    )
    assert shown("- no list") == "\\- no list"
