"""The Chinese pages and texts of notebooks are in step with the English ones."""

import os
import re
from pathlib import Path

import pytest
from translation import anchors, blocks, differences, links, style

nbformat = pytest.importorskip("nbformat")

import notebook_language  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
CHINESE = ROOT / "docs" / "zh"
GLOSSARY = CHINESE / "glossary.md"
# From each English page to the Chinese one.
PAGES = {ROOT / "README.md": ROOT / "README.zh.md"} | {
    ROOT / "docs" / path.name: path
    for path in sorted(CHINESE.glob("*.md"))
    if path != GLOSSARY
}
TEXTS = sorted((CHINESE / "notebooks").glob("*.md"))
pages = pytest.mark.parametrize("english", PAGES, ids=lambda path: path.name)
notebooks = pytest.mark.parametrize("texts", TEXTS, ids=lambda path: path.stem)


def read(path):
    return path.read_text(encoding="utf-8")


def linked(path, text=None):
    """Where a page's links lead: paths with the names of headings, and addresses."""
    found = set()
    for link in links(read(path) if text is None else text):
        if re.match(r"\w+:", link):
            found.add((link, ""))
        else:
            file, _, heading = link.partition("#")
            found.add((Path(os.path.normpath(path.parent / file)), heading))
    return found


def in_chinese(target):
    """Where a Chinese page has to link to, for a link of the English one."""
    path, heading = target
    if heading and path in PAGES:
        at = anchors(read(path)).index(heading)
        heading = anchors(read(PAGES[path]))[at]
    return (PAGES.get(path, path), heading)


def missing(target):
    """Whether nothing is where a link leads."""
    path, heading = target
    if isinstance(path, str):
        return False
    return not path.exists() or (heading and heading not in anchors(read(path)))


def english_notebook(texts):
    return nbformat.read(
        notebook_language.NOTEBOOKS / f"{texts.stem}.ipynb", as_version=4
    )


def test_there_are_pages_and_texts():
    assert {"README.md", "devices.md", "simulator.md"} <= {path.name for path in PAGES}
    assert "gpu" in {path.stem for path in TEXTS}


@pages
def test_page_is_in_step(english):
    assert differences(read(english), read(PAGES[english])) == []


@pages
def test_pages_link_to_each_other(english):
    chinese = PAGES[english]
    assert (chinese, "") in linked(english)
    assert (english, "") in linked(chinese)


@pages
def test_page_links_to_the_same_places(english):
    chinese = PAGES[english]
    ours = {in_chinese(target) for target in linked(english) - {(chinese, "")}}
    theirs = linked(chinese) - {(english, ""), (GLOSSARY, "")}
    assert theirs == ours


@pytest.mark.parametrize(
    "path", [*PAGES.values(), GLOSSARY, *TEXTS], ids=lambda path: path.name
)
def test_chinese_text_can_be_read(path):
    assert [target for target in linked(path) if missing(target)] == []
    assert style(read(path)) == []


@notebooks
def test_texts_of_a_notebook_are_in_step(texts):
    cells = notebook_language.text_cells(english_notebook(texts))
    chinese = notebook_language.split_texts(read(texts))
    assert len(chinese) == len(cells)
    for cell, text in zip(cells, chinese, strict=True):
        assert differences(cell.source, text) == []
        beside = notebook_language.NOTEBOOKS / "x.ipynb"
        ours = {in_chinese(target) for target in linked(beside, cell.source)}
        assert linked(texts, text) == ours


@notebooks
def test_a_notebook_is_written_in_chinese(texts, tmp_path):
    english = english_notebook(texts)
    path = notebook_language.NOTEBOOKS / f"{texts.stem}.ipynb"
    written = notebook_language.write(path, "zh", tmp_path / "zh")
    chinese = nbformat.read(written, as_version=4)
    nbformat.validate(chinese)
    assert len(chinese.cells) == len(english.cells)
    for cell, other in zip(english.cells, chinese.cells, strict=True):
        if cell.cell_type == "markdown":
            assert re.search("[\u4e00-\u9fff]", other.source)
            neighbours = {tmp_path / "zh" / f"{text.stem}.ipynb" for text in TEXTS}
            for target in linked(written, other.source):
                assert target[0] in neighbours or not missing(target)
        else:
            assert cell == other


def test_glossary_has_the_words_that_are_used():
    text = "".join(map(read, [*PAGES.values(), *TEXTS]))
    (table,) = [block for block in blocks(read(GLOSSARY)) if block.kind == "table"]
    rows = [line.strip("|").split("|") for line in table.lines[2:]]
    terms = [row[0].strip() for row in rows]
    assert len(set(terms)) == len(terms) > 30
    words = [re.findall("[\u4e00-\u9fff]+", row[1]) for row in rows]
    assert all(words)
    assert [some for some in words if not any(word in text for word in some)] == []


# What may happen to an English page, and what is said of the translation then.
CHANGES = {
    "a heading more": ("## Streams", "## Graphs\n\n## Streams", "heading 2"),
    "another level": ("## Streams", "### Streams", "heading 3"),
    "a code block more": ("## Streams", "```\nx\n```\n\n## Streams", "code"),
    "another code block": ("(x * 2).sum()", "(x * 3).sum()", "the code differs"),
    "another result": ("waits=1)", "waits=2)", "the code differs"),
    "a paragraph more": ("## Streams", "More.\n\n## Streams", "paragraph"),
    "a list more": ("## Streams", "- more\n\n## Streams", "item"),
    "another name in code": ("`gels`", "`gelsd`", "gelsd"),
    "another name": ("by LAPACK", "by SciPy", "not translated"),
    "another number": ("a 0-dim", "a 1-dim", "not in English"),
    "no end": ("On a machine without", "\nOn a machine\n\nwithout", "the end"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_page_that_is_not_in_step_is_found(change):
    old, new, said = CHANGES[change]
    english = read(ROOT / "docs" / "devices.md")
    chinese = read(CHINESE / "devices.md")
    assert old in english
    changed = english.replace(old, new, 1)
    assert said in " ".join(differences(changed, chinese))
    assert differences(changed, changed) == []


def test_a_row_more_or_less_is_found():
    english, chinese = read(ROOT / "README.md"), read(ROOT / "README.zh.md")
    row = "| `make soak` |"
    (line,) = [line for line in english.splitlines() if line.startswith(row)]
    for changed in english.replace(line, ""), english.replace(line, f"{line}\n{line}"):
        assert "table" in differences(changed, chinese)[0]


def test_only_comments_in_chinese_may_differ():
    page = "```\nx = 1  # {}\n```\n"
    assert differences(page.format("one"), page.format("一")) == []
    assert differences(page.format("one"), page.format("two")) != []
    assert differences(page.format("one"), "```\nx = 1\n```\n") != []
    assert differences("```\nx = '#1'\n```\n", "```\nx = '#2'\n```\n") != []


def test_dead_links_and_wrong_marks_are_found():
    page = CHINESE / "devices.md"
    dead = "[x](none.md) [y](simulator.md#none) [z](simulator.md)"
    names = {target[0].name for target in linked(page, dead) if missing(target)}
    assert names == {"none.md", "simulator.md"}
    assert (
        style("**学习。**用")
        and style("学习,再用")
        and not style("**学习**：用 `f(x, y)`")
    )


def test_texts_that_do_not_fit_are_refused(tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# One")])
    with pytest.raises(ValueError, match="2 texts for 1 Markdown cells"):
        notebook_language.translated(notebook, ["# 一", "二"])
    (cell,) = notebook_language.translated(notebook, ["# 一"]).cells
    assert cell.source == "# 一"
    assert notebook.cells[0].source == "# One"
    with pytest.raises(FileNotFoundError, match="no texts in 'zh'"):
        notebook_language.write(tmp_path / "none.ipynb", "zh", tmp_path)


def test_command_writes_what_has_texts(tmp_path, monkeypatch, capsys):
    pytest.importorskip("nbclient")
    import notebooks

    monkeypatch.setattr(notebook_language, "ROOT", tmp_path)
    folder = tmp_path / "docs" / "zh" / "notebooks"
    folder.mkdir(parents=True)
    (folder / "gpu.md").write_text(read(CHINESE / "notebooks" / "gpu.md"), "utf-8")
    notebooks.main(["--language", "zh"])
    written = tmp_path / "build" / "notebooks" / "zh" / "gpu.ipynb"
    assert capsys.readouterr().out == f"gpu.ipynb: {written}\n"
    assert list(written.parent.iterdir()) == [written]
    with pytest.raises(SystemExit):
        notebooks.main(["--language", "xx"])
    assert "no notebook has texts in docs/xx/notebooks" in capsys.readouterr().err
