"""Docstrings of the package as reStructuredText."""

from __future__ import annotations

import re
import textwrap

# A name, two spaces or more, and what it means.
ROW = re.compile(r"(\S.*?) {2,}(\S.*)")


def escaped(text: str) -> str:
    """Text without meaning to reStructuredText; what is in backticks is code."""
    parts = re.split(r"`([^`]+)`", text)
    for i, part in enumerate(parts):
        if i % 2:
            parts[i] = f"``{part}``\\ "
        else:
            parts[i] = re.sub(r"([\\*`|_<>\[\]:])", r"\\\1", part)
    return "".join(parts).strip()


def code(lines: list[str], language: str) -> list[str]:
    inner = textwrap.indent(textwrap.dedent("\n".join(lines)), "   ").splitlines()
    return [f".. code-block:: {language}", "", *inner, ""]


def rows(lines: list[str]) -> list[tuple[str, str]] | None:
    """The rows of a table of names and meanings, or None if the lines are none."""
    found: list[tuple[str, str]] = []
    for line in lines:
        row = ROW.fullmatch(line)
        if row and not line.startswith(" "):
            found.append((row[1], row[2]))
        elif found and line.startswith("  "):
            name, meaning = found[-1]
            found[-1] = name, f"{meaning} {line.strip()}"
        else:
            return None
    return found


def paragraph(lines: list[str]) -> list[str]:
    """One paragraph: an example, a table of names, a formula, or text."""
    if lines[0] == "Forms:":
        return []  # the signatures show them
    if lines[0].startswith(">>>"):
        return code(lines, "pycon")
    table = rows(lines)
    if table:
        shown = []
        for name, meaning in table:
            shown += [f"``{name}``", f"   {escaped(meaning)}", ""]
        return shown
    if any(line.startswith(" ") for line in lines):
        return code(lines, "text")
    # A line of text must not begin like a list.
    text = escaped(" ".join(lines))
    return [re.sub(r"^([-+#]|\w+[.)])(?= )", r"\\\1", text), ""]


def converted(doc: str) -> list[str]:
    lines: list[str] = []
    for part in re.split(r"\n\s*\n", doc.strip("\n")):
        said = part.splitlines()
        # Text and the example that follows it without an empty line.
        first = next((i for i, each in enumerate(said) if each[:3] == ">>>"), 0)
        for piece in (said[:first], said[first:]):
            if piece:
                lines += paragraph(piece)
    return lines
