"""The pages in docs/ and at the top of the repository as pages of the site."""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# The navigation: captions with pages of docs/ or of the top folder, without suffix.
# What is in docs/ and not named here comes at the end.
FIRST = "start"
NAVIGATION = {
    "Using it": (
        "devices",
        "simulator",
        "ci",
        "numpy",
        "array-api",
        "from-pytorch",
        "import-torch",
    ),
    "Guides": ("profiling", "races", "clock", "checkpoints", "errors"),
    "Reference": ("reference/index", "operations"),
    "Inside": ("ARCHITECTURE", "reading", "security", "reliability", "gpu-unchecked")
    + ("platforms", "contributing", "CHANGELOG"),
}
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")


def found() -> dict[str, str]:
    """By path in the repository, the path of the page in the site, without suffix."""
    pages = {"ARCHITECTURE.md": "ARCHITECTURE", "CHANGELOG.md": "CHANGELOG"}
    docs = ROOT / "docs"
    for path in sorted(docs.rglob("*.md")):
        inner = path.relative_to(docs).with_suffix("").as_posix()
        if "notebooks" in path.parts:
            continue  # the texts of cells
        pages[f"docs/{inner}.md"] = "index" if inner == FIRST else inner
    return pages


class BrokenLink(Exception):
    pass


def title(page: str) -> str:
    """The heading of a page of the repository."""
    first = (ROOT / page).read_text().partition("\n")[0]
    return first.removeprefix("# ")


def linked(text: str, page: str, pages: dict[str, str], sources: str) -> str:
    """A page's text with its links led to pages of the site, or to the sources."""
    here = os.path.dirname(page)

    def replaced(match: re.Match[str]) -> str:
        label, target = match[1], match[2]
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        path, _, anchor = target.partition("#")
        wanted = os.path.normpath(os.path.join(here, path))
        if wanted in pages:
            start = os.path.dirname(pages[page]) or "."
            mark = f"#{anchor}" if anchor else ""
            # A link that shows the path of a file shows the title in the site.
            if label in (path, wanted):
                label = title(wanted)
            return f"[{label}]({os.path.relpath(pages[wanted], start)}.md{mark})"
        if wanted.startswith("..") or not (ROOT / wanted).exists():
            raise BrokenLink(f"{page} links to {target}, which is not there")
        return f"[{label}]({sources.rstrip('/')}/{wanted})" if sources else label

    # Odd pieces are between fences: code has no links.
    pieces = re.split(r"(?ms)^(```.*?^```\s*$)", text)
    return "".join(
        piece if i % 2 else LINK.sub(replaced, piece) for i, piece in enumerate(pieces)
    )


def navigation(pages: dict[str, str]) -> str:
    """The tables of contents, which the first page ends with."""
    named = {"index", *(name for names in NAVIGATION.values() for name in names)}
    rest = [name for name in pages.values() if name not in named]
    chinese = [name for name in rest if name.startswith("zh/")]
    more = [name for name in rest if name not in chinese]
    parts = {**NAVIGATION, "More": tuple(more), "中文": tuple(chinese)}
    text = ""
    for caption, names in parts.items():
        if names:
            listed = "\n".join(names)
            text += (
                f"\n```{{toctree}}\n:hidden:\n:maxdepth: 2\n:caption: {caption}\n\n"
                f"{listed}\n```\n"
            )
    return text


def write(folder: Path, sources: str) -> None:
    pages = found()
    for page, name in pages.items():
        text = linked((ROOT / page).read_text(), page, pages, sources)
        if name == "index":
            text += navigation(pages)
        path = folder / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
