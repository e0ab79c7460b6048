"""The documentation site builds without a warning, and its links lead somewhere."""

import importlib.util
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("sphinx", "myst_parser", "furo")
SOURCES = "https://example.org/sources"


class Page(HTMLParser):
    """The anchors of a page, and what it links to."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
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
def test_navigation(site):
    """The first page leads to each page of docs/, and to those at the top."""
    links = Page((site / "index.html").read_text()).links
    pages = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    pages = [path for path in pages if "notebooks" not in path.parts]
    wanted = {path.with_suffix(".html").as_posix() for path in pages}
    wanted = wanted - {"start.html"} | {"ARCHITECTURE.html", "CHANGELOG.html"}
    assert wanted | {"reference/index.html"} <= set(links)


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
