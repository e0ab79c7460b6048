"""A profile drawn: the host and each stream on a lane of their own."""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Iterable, Iterator
from html import escape

from pydevtensor.profiler._characters import drawn
from pydevtensor.profiler._events import Event
from pydevtensor.profiler._lanes import Bar, Key, Lanes, duration, size

# Pixels; across, everything is in percent. WIDTH is a file's, and what is small in it.
WIDTH, TOP, LABEL, LANE, GAP, CURVE = 980, 26, 16, 22, 6, 40
# Bars of a lane closer than this are drawn as one, so that 20,000 events stay readable.
NARROW = 1 / WIDTH
NARROWEST = 0.0005
ARROWS = 40

CLASS = "pydevtensor-timeline"
# Text and lines take the page's colour, light or dark.
RULES = (
    "text { font: 12px system-ui, sans-serif; fill: currentColor; }",
    "text { pointer-events: none; }",
    ".lane { fill: currentColor; fill-opacity: .07; }",
    ".tick { stroke: currentColor; stroke-opacity: .2; }",
    ".arrow { stroke: currentColor; stroke-opacity: .7; fill: none; }",
    ".kernel { fill: #3b78c4; }",
    ".copy { fill: #e08a2e; }",
    ".call { fill: #8fa8c8; }",
    ".range { fill: none; stroke: #7a8aa0; }",
    ".curve { fill: #3b78c4; fill-opacity: .3; stroke: #3b78c4; }",
    ".curve { vector-effect: non-scaling-stroke; }",
    ".wait { stroke: #b34a4a; stroke-width: .5; }",
    ".hatch { stroke: #b34a4a; }",
    "text.inside { fill: #fff; }",
)
STYLE = "\n".join(f".{CLASS} {rule}" for rule in RULES)
LEGEND = (
    ("kernel", "kernel", 0),
    ("copy", "copy", 75),
    ("wait", "host waits", 140),
    ("call", "host calls", 240),
)


def _percent(part: float) -> str:
    return f"{100 * part:.3f}%"


def _rect(look: str, where: str, inside: str = "") -> str:
    # A pattern's name is the page's: _repr_html_() finds it where it is an attribute.
    fill = ' fill="url(#hatch)"' if look == "wait" else ""
    return f'<rect class="{look}"{fill} {where}>{inside}</rect>'


class Timeline:
    """A drawing of a profile: shown by notebooks, written to a file by save().

    In a terminal it is one in characters, as wide as the terminal.
    """

    def __init__(self, events: list[Event]) -> None:
        self._lanes = Lanes(events)
        self._merged = 0

    def _merge(self, bars: Iterable[Bar]) -> list[Bar]:
        """The bars. Those too close to be seen separately are joined."""
        narrow = NARROW * (self._lanes.end - self._lanes.begin)
        found: list[Bar] = []
        last: dict[str, Bar] = {}
        for bar in sorted(bars, key=lambda b: b.start):
            before = last.get(bar.look)
            small = before and max(before.end, bar.end) - before.start < 3 * narrow
            if before and small and bar.start - before.end < narrow:
                before.end = max(before.end, bar.end)
                before.count += 1
                self._merged += 1
                continue
            last[bar.look] = Bar(bar.start, bar.end, bar.look, bar.name)
            found.append(last[bar.look])
        return found

    def _bar(self, bar: Bar, y: float) -> str:
        x = self._lanes.part(bar.start)
        width = max(self._lanes.part(bar.end) - x, NARROWEST)
        more = f" and {bar.count - 1} more" if bar.count > 1 else ""
        title = f"{bar.name}{more}: {duration(bar.end - bar.start)}"
        where = f'x="{_percent(x)}" y="{y}" width="{_percent(width)}" '
        where += f'height="{LANE - 6}"'
        shown = _rect(bar.look, where, f"<title>{escape(title)}</title>")
        # The bar's name, cut off where the page is too narrow for it.
        if bar.count == 1 and width * WIDTH >= 8 * len(bar.name) + 6:
            look = "inside" if bar.look in ("kernel", "copy") else "plain"
            shown += (
                f'<svg {where}><text class="{look}" x="3" y="12">'
                f"{escape(bar.name)}</text></svg>"
            )
        return shown

    def _ticks(self, bottom: float) -> Iterator[str]:
        for part, label in self._lanes.ticks(8):
            x = _percent(part)
            yield f'<line class="tick" x1="{x}" x2="{x}" y1="4" y2="{bottom}"/>'
            if part < 0.9:  # or the page would cut its label off
                yield f'<text x="{x}" y="14" dx="4">{label}</text>'

    def _curves(self, y: float) -> Iterator[str]:
        for device, curve in self._lanes.memory.items():
            peak = max(held for _, held in curve) or 1
            points, height = [f"0,{CURVE}"], 0.0
            for time, held in curve:
                x = WIDTH * self._lanes.part(time)
                points.append(f"{x:.1f},{CURVE - height:.1f}")
                height = CURVE * held / peak
                points.append(f"{x:.1f},{CURVE - height:.1f}")
            points += [f"{WIDTH},{CURVE - height:.1f}", f"{WIDTH},{CURVE}"]
            text = f"{device} memory, up to {size(peak)} more"
            yield f'<text x="0" y="{y + 12}">{escape(text)}</text>'
            yield (
                f'<svg x="0" y="{y + LABEL}" width="100%" height="{CURVE}" '
                f'viewBox="0 0 {WIDTH} {CURVE}" preserveAspectRatio="none">'
                f'<polygon class="curve" points="{" ".join(points)}"/></svg>'
            )
            y += LABEL + CURVE + GAP

    def _drawing(self) -> tuple[str, int]:
        """The content of the svg element, and its height."""
        self._merged = 0
        parts: list[str] = []
        y = TOP
        middles: dict[Key, int] = {}
        for key, lane in self._lanes.lanes.items():
            parts.append(f'<text x="0" y="{y + 12}">{escape(lane.label)}</text>')
            y += LABEL
            middles[key] = y + LANE // 2
            parts.append(_rect("lane", f'y="{y}" width="100%" height="{LANE}"'))
            parts += [self._bar(bar, y + 3) for bar in self._merge(lane.bars)]
            y += LANE + GAP
        arrows = self._lanes.arrows
        for start, time, end in arrows if len(arrows) <= ARROWS else ():
            x = _percent(self._lanes.part(time))
            parts.append(
                f'<line class="arrow" x1="{x}" x2="{x}" y1="{middles[start]}" '
                f'y2="{middles[end]}" marker-end="url(#head)"/>'
            )
        parts += self._curves(y)
        y += (LABEL + CURVE + GAP) * len(self._lanes.memory)
        parts[:0] = self._ticks(y)
        y += GAP
        for look, text, left in LEGEND:
            parts.append(_rect(look, f'x="{left}" y="{y}" width="14" height="11"'))
            parts.append(f'<text x="{left + 19}" y="{y + 10}">{text}</text>')
        if self._merged:
            y += LABEL
            note = f"{self._merged} events are drawn with their neighbours"
            parts.append(f'<text x="0" y="{y + 10}">{note}</text>')
        inside = (
            f"<style>{STYLE}</style><defs>"
            '<pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" '
            'patternTransform="rotate(45)"><line class="hatch" y2="5"/></pattern>'
            '<marker id="head" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" '
            'markerHeight="6" orient="auto"><path class="arrow" d="M0 0 L6 3 L0 6"/>'
            f"</marker></defs>{''.join(parts)}"
        )
        return inside, y + LABEL

    def svg(self) -> str:
        """The drawing as a document of its own, of a fixed size."""
        inside, height = self._drawing()
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{CLASS}" width="{WIDTH}" '
            f'height="{height}" viewBox="0 0 {WIDTH} {height}">'
            f'<rect width="100%" height="100%" fill="#fff"/>{inside}</svg>'
        )

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        """The drawing as part of a page, as wide as that is; texts keep their size."""
        inside, height = self._drawing()
        # Names in url() are the page's: those of two drawings have to differ.
        mark = f"{zlib.crc32(inside.encode()):08x}"
        for name in ("hatch", "head"):
            inside = inside.replace(f'id="{name}"', f'id="{name}-{mark}"')
            inside = inside.replace(f"url(#{name})", f"url(#{name}-{mark})")
        return (
            f'<svg class="{CLASS}" width="100%" height="{height}" '
            f'style="min-width: 300px">{inside}</svg>'
        )

    def __repr__(self) -> str:
        return drawn(self._lanes, shutil.get_terminal_size().columns)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the drawing to a file."""
        with open(os.fspath(path), "w", encoding="utf-8") as file:
            file.write(self.svg())
