"""The picture of bench_summary.py."""

from html import escape
from math import log2

LEFT, WIDTH, TOP, LINE = 210, 430, 60, 18
LEAST, MOST = 1 / 64, 2  # the ends of the scale, whose steps are halves
OURS, THEIRS = "#1f77b4", "#d62728"


def _place(ratio):
    ratio = min(max(ratio, LEAST), MOST)
    return LEFT + WIDTH * log2(ratio / LEAST) / log2(MOST / LEAST)


def svg(bars, others):
    """A bar for each (label, our time as a share of the best of the others)."""
    title = f"pydevtensor's time, as a share of the best of {', '.join(others)}"
    height = TOP + LINE * len(bars) + 14
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 60}" '
        f'height="{height}" font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="10" y="20" font-size="14">{escape(title)}</text>',
    ]
    ratio = LEAST
    while ratio <= MOST:
        x = _place(ratio)
        colour = "#444444" if ratio == 1 else "#dddddd"
        text = f"1/{round(1 / ratio)}" if ratio < 1 else f"{ratio:.0f}"
        out.append(f'<text x="{x}" y="{TOP - 14}" text-anchor="middle">{text}</text>')
        out.append(
            f'<line x1="{x}" x2="{x}" y1="{TOP - 8}" y2="{height - 8}" '
            f'stroke="{colour}"/>'
        )
        ratio *= 2
    for place, (label, ratio) in enumerate(bars):
        y = TOP + LINE * place
        ends = sorted([_place(1), _place(ratio)])
        colour = OURS if ratio <= 1 else THEIRS
        out += [
            f'<text x="{LEFT - 10}" y="{y + 10}" text-anchor="end">'
            f"{escape(label)}</text>",
            f'<rect x="{ends[0]:.1f}" y="{y}" width="{ends[1] - ends[0]:.1f}" '
            f'height="{LINE - 6}" fill="{colour}"/>',
            f'<text x="{LEFT + WIDTH + 12}" y="{y + 10}">{ratio:.2f}</text>',
        ]
    return "\n".join([*out, "</svg>"]) + "\n"
