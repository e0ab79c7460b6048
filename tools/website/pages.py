"""The pages and notebooks of the repository as those of a site in one language.

The Chinese site is the folder zh of the English one. A page has the same path in both.
"""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass
from pathlib import Path

import cells
import nbformat
import notebook_language

ROOT = Path(__file__).resolve().parents[2]

# The navigation: captions, also in Chinese, with pages of docs/ or of the top folder,
# without suffix. What is not named here comes at the end.
FIRST = "start"
LIST = "english"  # of the pages that the Chinese site does not have
NAVIGATION: dict[tuple[str, str], tuple[str, ...]] = {
    ("Using it", "使用"): (
        "devices",
        "simulator",
        "ci",
        "numpy",
        "array-api",
        "from-pytorch",
        "import-torch",
        "compatibility",
    ),
    ("Guides", "指南"): (
        "kernels",
        "profiling",
        "races",
        "clock",
        "checkpoints",
        "errors",
    ),
    ("Notebooks", "笔记本"): (
        "notebooks/gpu",
        "notebooks/several-gpus",
        "notebooks/several-machines",
        "notebooks/timeline",
        "notebooks/kernels",
        "notebooks/training",
        "notebooks/convolution",
        "notebooks/parameters",
    ),
    ("Reference", "参考"): ("reference/index", "operations", "glossary", LIST),
    ("Inside", "内部"): ("ARCHITECTURE", "reading", "security", "reliability")
    + ("gpu-unchecked", "platforms", "contributing", "CHANGELOG"),
    ("More", "其他"): (),
}
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")


class BrokenLink(Exception):
    pass


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@functools.cache
def english() -> dict[str, str]:
    """By path in the repository, the path of the page in the site, without suffix."""
    found = {"ARCHITECTURE.md": "ARCHITECTURE", "CHANGELOG.md": "CHANGELOG"}
    found |= {f"docs/{p.name}": p.stem for p in sorted((ROOT / "docs").glob("*.md"))}
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    found |= {f"notebooks/{p.name}": f"notebooks/{p.stem}" for p in notebooks}
    return found | {f"docs/{FIRST}.md": "index"}


@functools.cache
def chinese() -> dict[str, str]:
    """The same of the Chinese pages; a notebook's is where its texts are."""
    found = {}
    for path in sorted((ROOT / "docs" / "zh").rglob("*.md")):
        inner = path.relative_to(ROOT / "docs" / "zh")
        found[f"docs/zh/{inner}"] = inner.with_suffix("").as_posix()
    return found | {f"docs/zh/{FIRST}.md": "index"}


def title(page: str) -> str:
    """The heading of a page of the repository."""
    return cells.first_line(ROOT / page).removeprefix("# ")


@dataclass(frozen=True)
class Site:
    language: str  # "en" or "zh"
    sources: str  # where a browser finds the repository, or ""

    @property
    def pages(self) -> dict[str, str]:
        return chinese() if self.language == "zh" else english()

    def of_the_other_language(self) -> set[str]:
        """The pages of the other site."""
        return set((english() if self.language == "zh" else chinese()).values())

    def elsewhere(self, path: str) -> str:
        """Where the other site has a page of the repository, from this one's folder."""
        if self.language == "en":
            return f"zh/{chinese()[path]}.html" if path in chinese() else ""
        return f"../{english()[path]}.html" if path in english() else ""

    def own(self, path: str) -> str:
        """The file of the repository that this site shows for one of it."""
        if self.language == "zh" and path.endswith(".ipynb"):
            return f"docs/zh/{path.removesuffix('.ipynb')}.md"
        return path

    def linked(self, text: str, page: str) -> str:
        """A page's text with its links led to pages of the sites, or to the sources."""
        folder = os.path.dirname(self.pages[page]) or "."

        def replaced(match: re.Match[str]) -> str:
            label, target = match[1], match[2]
            if re.match(r"[a-z]+:|#", target):
                return match[0]
            path, _, anchor = target.partition("#")
            wanted = os.path.normpath(os.path.join(os.path.dirname(page), path))
            mark = f"#{anchor}" if anchor else ""
            wanted = self.own(wanted)
            inside, outside = self.pages.get(wanted), self.elsewhere(wanted)
            # A link that shows the path of a file shows the title in the site.
            shows_path = os.path.basename(label) == os.path.basename(path)
            if shows_path and (inside or outside):
                label = title(wanted)
            if inside:
                return f"[{label}]({os.path.relpath(inside, folder)}.md{mark})"
            if outside:
                # Sphinx, which knows one of the sites, would find no such page.
                return f'<a href="{os.path.relpath(outside, folder)}{mark}">{label}</a>'
            if wanted.startswith("..") or not (ROOT / wanted).exists():
                raise BrokenLink(f"{page} links to {target}, which is not there")
            link = f"{self.sources.rstrip('/')}/{wanted}"
            return f"[{label}]({link})" if self.sources else label

        # Odd pieces are between fences: code has no links.
        pieces = re.split(r"(?ms)^(```.*?^```\s*$)", text)
        return "".join(
            piece if i % 2 else LINK.sub(replaced, piece)
            for i, piece in enumerate(pieces)
        )

    def notebook(self, page: str, file: Path) -> str:
        """A notebook as a page; its pictures are written beside the file."""
        path = ROOT / "notebooks" / f"{Path(page).stem}.ipynb"
        notebook = nbformat.read(path, as_version=4)
        if self.language == "zh":
            texts = notebook_language.split_texts(read(page))
            notebook = notebook_language.translated(notebook, texts)
        for cell in notebook_language.text_cells(notebook):
            cell.source = self.linked(cell.source, page)
        return cells.markdown(notebook, file.with_suffix(""))

    def navigation(self) -> str:
        """The tables of contents, which the first page ends with."""
        have = {name for name in self.pages.values() if name != "index"}
        have.add(LIST if self.language == "zh" else "reference/index")
        named = {name for names in NAVIGATION.values() for name in names}
        text = ""
        for (caption, translated), names in NAVIGATION.items():
            listed = [name for name in names if name in have]
            listed += [] if names else sorted(have - named)
            if listed:
                shown = translated if self.language == "zh" else caption
                text += (
                    f"\n```{{toctree}}\n:hidden:\n:maxdepth: 2\n:caption: {shown}\n\n"
                    + "\n".join(listed)
                    + "\n```\n"
                )
        return text

    def english_pages(self) -> str:
        """A page of what the Chinese site does not have."""
        have = set(self.pages.values())
        text = "# 只有英文的页面\n\n- [所有名称的参考](../reference/index.html)\n"
        for path, name in english().items():
            if name not in have:
                text += f"- [{title(path)}](../{name}.html)\n"
        return re.sub(r"\[(.*)\]\((.*)\)", r'<a href="\2">\1</a>', text)

    def write(self, folder: Path) -> None:
        for page, name in self.pages.items():
            file = folder / f"{name}.md"
            file.parent.mkdir(parents=True, exist_ok=True)
            if name.startswith("notebooks/"):
                text = self.notebook(page, file)
            else:
                text = self.linked(read(page), page)
            if name == "index":
                text += self.navigation()
            file.write_text(text, encoding="utf-8")
        if self.language == "zh":
            (folder / f"{LIST}.md").write_text(self.english_pages(), encoding="utf-8")
