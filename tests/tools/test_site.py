"""The documentation site builds without a warning, and its links lead somewhere."""

import html
import importlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import types
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import public_api
import pytest

import pydevtensor as torch

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
NEEDED = ("sphinx", "myst_parser", "furo", "nbformat")
SOURCES = "https://example.org/sources"


class Page(HTMLParser):
    """The anchors of a page, what it links to, and its language."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links = set(), []
        self.language = self.other_language = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "html":
            self.language = given.get("lang")
        if given.get("class") == "sidebar-language":
            self.other_language = given["href"]
        self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
        for key in ("href", "src"):
            if given.get(key):
                self.links.append(given[key])


def broken_links(folder):
    """Links within a folder of pages that lead to no file, or to no anchor."""
    pages = {path: Page(path.read_text()) for path in folder.rglob("*.html")}
    for path, page in pages.items():
        for link in page.links:
            if link.startswith(("http:", "https:", "data:", "mailto:", "javascript:")):
                continue
            file, _, anchor = unquote(link).partition("#")
            target = (path.parent / file.partition("?")[0]).resolve() if file else path
            if not target.is_file():
                yield f"{path.relative_to(folder)}: {link}: no such file"
            elif anchor and target in pages and anchor not in pages[target].anchors:
                yield f"{path.relative_to(folder)}: {link}: no such anchor"


def test_a_broken_link_is_found(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#x">b</a><a href="#here">a</a>')
    (tmp_path / "b.html").write_text('<p id="x"><img src="c.png"><a href="a.html#y">')
    assert sorted(broken_links(tmp_path)) == [
        "a.html: #here: no such anchor",
        "b.html: a.html#y: no such anchor",
        "b.html: c.png: no such file",
    ]


def build(folder):
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}; `make site` installs them")
    tool = ROOT / "tools" / "website" / "build.py"
    return subprocess.run(
        [sys.executable, "-P", tool, "--output", folder, "--sources", SOURCES],
        capture_output=True,
        text=True,
    )


def test_a_folder_of_others_is_kept(tmp_path):
    (tmp_path / "mine.txt").write_text("kept")
    done = build(tmp_path)
    assert done.returncode == 1 and "remove it yourself" in done.stderr
    assert (tmp_path / "mine.txt").read_text() == "kept"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("website") / "site"
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.slow
def test_links(site):
    assert not list(broken_links(site))


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
def test_navigation(site, language):
    """The first page leads to each page of docs/ in its language and each notebook."""
    folder, docs = {"en": (site, ROOT / "docs"), "zh": (site / "zh", ROOT / "docs/zh")}[
        language
    ]
    links = set(Page((folder / "index.html").read_text()).links)
    wanted = {f"{path.stem}.html" for path in docs.glob("*.md")} - {"start.html"}
    wanted |= {f"notebooks/{path.stem}.html" for path in NOTEBOOKS}
    if language == "en":
        wanted |= {"ARCHITECTURE.html", "CHANGELOG.html", "reference/index.html"}
    else:
        wanted.add("english.html")
    assert wanted <= links


@pytest.mark.slow
def test_languages(site):
    """Each page says its language, and leads to itself in the other one."""
    english = {path.name for path in site.glob("*.html")}
    for path in site.rglob("*.html"):
        page = Page(path.read_text())
        is_chinese = path.is_relative_to(site / "zh")
        assert page.language == ("zh-CN" if is_chinese else "en"), path
        other = (path.parent / page.other_language).resolve()
        assert other.is_file() and other.is_relative_to(site / "zh") != is_chinese
        if (path.parent.name, path.name) == ("zh", "races.html"):
            assert other == site / "races.html"
    for path in (ROOT / "docs" / "zh").glob("*.md"):
        if path.stem not in ("start", "glossary"):
            assert f"{path.stem}.html" in english


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_are_shown_with_their_outputs(site, path, language):
    folder = site if language == "en" else site / "zh"
    text = (folder / "notebooks" / f"{path.stem}.html").read_text()
    plain = " ".join(html.unescape(re.sub("<[^>]*>", "", text)).split())
    pictures = drawings = 0
    for cell in json.loads(path.read_text())["cells"]:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "text/html" in data:
                drawings += "<svg" in "".join(data["text/html"])
            elif "image/svg+xml" in data:
                pictures += 1
            else:
                said = "".join(output.get("text") or data["text/plain"])
                said = re.sub(r"\x1b\[[0-9;]*m", "", said)
                assert " ".join(said.split()) in plain
    images = [link for link in Page(text).links if link.endswith(".svg")]
    assert len(set(images)) == pictures
    assert text.count('class="pydevtensor-timeline"') == drawings
    plain_ones = ("parameters", "several-gpus", "several-machines")
    assert pictures + drawings > 0 or path.stem in plain_ones


@pytest.mark.slow
def test_the_search_divides_chinese(site):
    index = (site / "zh" / "searchindex.js").read_text()
    index = json.loads(index[index.index("{") : index.rindex("}") + 1])

    def pages(term):
        found = index["terms"].get(term, [])
        found = found if isinstance(found, list) else [found]
        return {index["docnames"][i] for i in found}

    data = (site / "zh" / "_static" / "language_data.js").read_text()
    # The index is divided as a query is: a page that has its words is found.
    assert "races" in pages("调度") & pages("度方") & pages("方式")
    assert "races" in pages("锁") and "races" in pages("pytorch")
    assert "errors" not in pages("时钟")
    assert "ChineseStemmer" not in data  # which does not exist
    node = shutil.which("node")
    if node is None:
        pytest.skip("not installed: node, which runs what browsers run")
    program = f"{data}\nconsole.log(JSON.stringify(splitQuery('调度方式 CUDA:0，锁')))"
    program = program.replace("window.", "globalThis.")
    done = subprocess.run([node, "-e", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["调度", "度方", "方式", "CUDA", "0", "锁"]


@pytest.fixture
def families(monkeypatch):
    for folder in ("build", "website"):
        monkeypatch.syspath_prepend(str(ROOT / "tools" / folder))
    return importlib.import_module("families")


def test_each_name_of_torch_has_a_group(families):
    """That of the table of C, or of the file of Python, in which it is written."""
    groups = {
        name: families.group(name, getattr(torch, name))
        for name in public_api.public_names(torch)
    }
    assert set(groups.values()) == {file for file, _, _ in families.GROUPS}
    for name, file in {
        "zeros": "creation",
        "rand": "random",
        "manual_seed": "random",
        "exp": "elementwise",
        "arccos_": "elementwise",
        "quantile": "reductions",
        "sum": "reductions",
        "cumsum": "scans",
        "topk": "sorting",
        "cat": "shapes",
        "gather": "indexing",
        "einsum": "linear-algebra",
        "float32": "types",
        "no_grad": "gradients",
        "load": "other-libraries",
        "try_gpu": "settings",
    }.items():
        assert groups[name] == file, name
    with pytest.raises(families.UnknownFamily, match="'nowhere', which no group"):
        families.group(
            "unwritten", type("X", (), {"__module__": "pydevtensor.nowhere"})
        )


@pytest.mark.slow
def test_torch_is_grouped_with_a_sentence_on_each_name(site, families):
    text = (site / "reference" / "torch.html").read_text()
    for file, heading, _ in families.GROUPS:
        assert f">{heading}<" in text and f'href="torch-{file}.html"' in text
    assert 'href="torch-reductions.html#torch.sum"' in text
    rows = re.findall(r"<tr.*?</tr>", text, re.DOTALL)
    named = set()
    for row in rows:
        names, said = re.findall(r"<td>(.*?)</td>", row, re.DOTALL)
        named |= set(re.findall(r'href="[^"]*#torch\.(\w+)"', names))
        assert re.sub("<[^>]*>", "", said).strip(), row
    functions = {
        name
        for name in public_api.public_names(torch)
        if not isinstance(getattr(torch, name), types.ModuleType)
    }
    assert named == functions - {"Tensor"}


@pytest.mark.slow
def test_reference(site):
    """Entries have signature, text, example, and a link where the body is Python."""
    anchors, links = set(), set()
    for path in (site / "reference").glob("*.html"):
        page = Page(path.read_text())
        anchors |= page.anchors
        links |= set(page.links)
    public = (ROOT / "tests" / "golden" / "public_api.txt").read_text()
    for name in ("add", "Tensor.view", "nn.Linear", "nn.functional.gelu", "optim.Adam"):
        assert name in public and f"torch.{name}" in anchors
    assert "torch.nn.modules.module.register_module_forward_hook" in anchors
    assert len([name for name in anchors if name.startswith("torch.")]) > 2000
    text = (site / "reference" / "linalg.html").read_text()
    assert "full_matrices" in text and "tensor([4., 3.])" in text
    files = {link for link in links if link.startswith(SOURCES)}
    assert any("pydevtensor/nn/modules/linear.py#L" in link for link in files)
    assert any("pydevtensor/_functions/linalg.py#L" in link for link in files)
    for link in files:
        path, _, line = link.removeprefix(SOURCES + "/").partition("#L")
        assert (ROOT / path).is_file(), link
        if line:
            assert 0 < int(line) <= len((ROOT / path).read_text().splitlines()), link


@pytest.mark.slow
def test_names_at_the_top_of_a_page_are_links(site):
    text = (site / "reference" / "special.html").read_text()
    assert 'href="#torch.special.erf"' in text
