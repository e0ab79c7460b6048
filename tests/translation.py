"""Compares a page in Markdown with its translation.

They are in step if their blocks follow each other alike (headings by level, code,
tables, list items and paragraphs), and if each section has the same code spans, numbers
and names. Comments in code may be translated.
"""

import re
from itertools import zip_longest

CHINESE = re.compile(r"[\u4e00-\u9fff]")
# A number, or a word in ASCII with a capital that does not begin it.
NAME = re.compile(
    r"(?<![A-Za-z0-9_])(?:[A-Z]{2,}[A-Za-z0-9]*|[A-Z]*[a-z]+[A-Z][A-Za-z0-9]*|"
    r"\d+(?:\.\d+)*)(?![A-Za-z0-9_])"
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


class Block:
    """A heading, a code block, a table, a list item or a paragraph of a page."""

    def __init__(self, kind, lines, line):
        self.kind, self.lines, self.line = kind, lines, line

    def text(self):
        return " ".join(line.strip() for line in self.lines)

    def shape(self):
        """What a translation has in common with it."""
        if self.kind == "heading":
            return self.kind, len(self.lines[0].split()[0])
        if self.kind == "table":
            return self.kind, len(self.lines), columns(self.lines[1])
        return (self.kind,)

    def __str__(self):
        start = self.lines[0].strip() if self.lines else ""
        return f"{' '.join(map(str, self.shape()))} in line {self.line} ({start[:50]})"


def columns(line):
    return len(re.findall(r"(?<!\\)\|", line)) - 1


def kind_of(line):
    if re.match(r"#+ ", line):
        return "heading"
    if re.match(r"(-|\d+\.) ", line):
        return "item"
    return "table" if line.startswith("|") else "paragraph"


def blocks(text):
    """The blocks of a page in their order."""
    found, fenced, ended = [], False, True
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced, ended = not fenced, True
            if fenced:
                found.append(Block("code", [line], number))
        elif fenced:
            found[-1].lines.append(line)
        elif not line.strip():
            ended = True
        else:
            kind = kind_of(line)
            starts = ended or kind in ("heading", "item") or kind != found[-1].kind
            if starts and not (found and continues(found[-1], kind, ended)):
                found.append(Block(kind, [line], number))
            else:
                found[-1].lines.append(line)
            ended = kind == "heading"
    return found


def continues(block, kind, ended):
    """Whether a line belongs to the list item before it."""
    return not ended and block.kind == "item" and kind == "paragraph"


def names(block):
    """What no translation changes: code spans, numbers, and names such as cuBLAS.

    The contents of code blocks are compared as code.
    """
    if block.kind == "code":
        return set()
    text = block.text()
    spans = {" ".join(span.split()) for span in re.findall(r"`([^`]+)`", text)}
    prose = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]+`", " ", text))
    return spans | {re.sub(r"(?<=\w\w)s$", "", name) for name in NAME.findall(prose)}


def split_comment(line):
    code, mark, comment = re.match(r"(.*?)(?:(?:^|(?<=\s))(#)\s(.*))?$", line).groups()
    return code.rstrip(), comment if mark else None


def same_code(english, translated):
    """Whether two code blocks differ only in comments that are in Chinese."""
    if len(english.lines) != len(translated.lines):
        return False
    for ours, theirs in zip(english.lines, translated.lines, strict=True):
        (code, comment), (other, note) = split_comment(ours), split_comment(theirs)
        chinese = comment is not None and note is not None and CHINESE.search(note)
        if code != other or (comment != note and not chinese):
            return False
    return True


def sections(page):
    """Lists of blocks, each of which begins at a heading."""
    result = [[]]
    for block in page:
        if block.kind == "heading":
            result.append([])
        result[-1].append(block)
    return result


def differences(english, translated):
    """What keeps a translation from being in step with its page, in sentences."""
    ours, theirs = blocks(english), blocks(translated)
    for one, other in zip_longest(ours, theirs):
        if one is None or other is None or one.shape() != other.shape():
            return [f"English: {one or 'the end'}; translated: {other or 'the end'}"]
    wrong = [
        f"the code differs: {one}"
        for one, other in zip(ours, theirs, strict=True)
        if one.kind == "code" and not same_code(one, other)
    ]
    for one, other in zip(sections(ours), sections(theirs), strict=True):
        ours_here = set().union(*map(names, one))
        theirs_here = set().union(*map(names, other))
        place = f"in the section of {one[0]}" if one else "at the start"
        wrong += [
            f"not translated, {place}: {name}"
            for name in sorted(ours_here - theirs_here)
        ]
        wrong += [
            f"not in English, {place}: {name}"
            for name in sorted(theirs_here - ours_here)
        ]
    return wrong


def links(text):
    """Where a page links to, outside code."""
    return [
        link
        for block in blocks(text)
        if block.kind != "code"
        for link in LINK.findall(block.text())
    ]


def anchors(text):
    """The names of a page's headings in links, in their order."""
    found = []
    for block in blocks(text):
        if block.kind == "heading":
            title = block.lines[0].lstrip("#").strip().lower()
            found.append(re.sub(r"[^\w -]", "", title).replace(" ", "-"))
    return found


def style(text):
    """Marks that a reader would see wrongly: of emphasis, and of the other script."""
    wrong = []
    for block in blocks(text):
        if block.kind == "code":
            continue
        prose = re.sub(r"`[^`]*`", "x", block.text())
        for pattern in r"[，。：；、！？）]\*\*\w", r"[\u4e00-\u9fff][,;:!?(]", r"  ":
            wrong += [
                f"line {block.line}: {found}" for found in re.findall(pattern, prose)
            ]
    return wrong
