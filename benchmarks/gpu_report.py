"""The report of bench_gpu.py: tables in Markdown, and a plot in SVG."""

from __future__ import annotations

from html import escape

SIMULATED = "simulated"  # in place of a number: a simulator has no speed to report


def number(value, form="{:.3g}"):
    """A cell: None has not been measured, text says why."""
    if value is None:
        return "-"
    return value if isinstance(value, str) else form.format(value)


def ratio(theirs, ours):
    if isinstance(theirs, str) or isinstance(ours, str):
        return theirs if isinstance(theirs, str) else "-"
    return f"{theirs / ours:.2f}" if theirs and ours else "-"


def table(titles, rows):
    lines = ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def speed(row):
    """Of PyTorch's speed."""
    ours, theirs = (row["microseconds"].get(name) for name in ("pydevtensor", "torch"))
    if not theirs or isinstance(ours, str) or isinstance(theirs, str):
        return None
    return theirs / ours


def goals(data):
    """Lines that say how many goals are reached, and which are not."""
    rows = [
        (
            f"{row['family']}: {row['case']}",
            row["share"],
            row["goal"],
            "of the hardware",
        )
        for row in data["families"]
    ]
    rows += [
        (row["network"], speed(row), row["goal"], "of PyTorch")
        for row in data["networks"]
    ]
    compared = [r for r in rows if r[2] and isinstance(r[1], float)]
    missed = [r for r in compared if r[1] < r[2]]
    kind = "simulated: nothing is compared" if data["device"]["simulated"] else ""
    said = kind or f"{len(compared) - len(missed)} of {len(compared)} reached"
    return [
        f"goals: {said}",
        *(f"missed: {n}: {s:.0%} {of}, not {g:.0%}" for n, s, g, of in missed),
    ]


def families(data, size):
    others = data["libraries"][1:]
    rows = []
    for row in data["families"]:
        if row["size"] != size:
            continue
        ours = row["microseconds"].get("pydevtensor")
        rows.append(
            (
                row["family"],
                row["case"],
                number(ours),
                number(row["share"], "{:.0%}"),
                number(row["goal"], "{:.0%}"),
                *(ratio(row["microseconds"].get(name), ours) for name in others),
            )
        )
    titles = ("family", "case", "us", "share of the hardware", "goal")
    return table((*titles, *(f"{name} / ours" for name in others)), rows)


def markdown(data, plot):
    device = data["device"]
    lines = [f"# Speed on {device['name']}", ""]
    if device["simulated"]:
        lines += [
            "The device is simulated: every case ran, and no time is shown, since a "
            "simulator's say nothing of a GPU.",
            "",
        ]
    else:
        lines += [
            f"L2 of {device['l2'] / 1e6:.0f} MB. Medians of {data['rounds']} rounds "
            "between two events, buffers in turn beyond L2. us: microseconds a call of "
            "pydevtensor; other libraries as multiples of that, so more than 1 means "
            "that pydevtensor is faster. Share of the hardware: of the time of as many "
            "bytes in a plain copy and as many operations in a product of 4096.",
            "",
        ]
        lines += [*(f"- {line}" for line in goals(data)), ""]
    if data["left_out"]:
        lines += [f"Not measured, the time was over: {data['left_out']} cases.", ""]
    lines += [f"![share of the hardware by case]({plot})", ""]
    lines += ["## A plain copy between two places in device memory", ""]
    lines += table(
        ("bytes", "us", "GB/s read and written"),
        [
            (f"{row['size']:.0e}", number(row["microseconds"]), number(row["rate"]))
            for row in data["copies"]
        ],
    )
    for size in data["sizes"]:
        lines += ["", f"## Operands of {size:.0e} bytes", ""]
        lines += families(data, size)
    names = data["libraries"]
    lines += ["", "## Tiny operations: ns of host time a call", ""]
    lines += table(
        ("operation", *names, *(f"{name}, synchronized" for name in names)),
        [
            (
                row["case"],
                *(number(row["host"].get(name), "{:.0f}") for name in names),
                *(number(row["waited"].get(name), "{:.0f}") for name in names),
            )
            for row in data["tiny"]
        ],
    )
    lines += ["", "## Matrix products: TFLOP/s", ""]
    lines += table(
        ("batch, m, n, k", "type", *names),
        [
            (
                row["shape"],
                row["type"],
                *(number(row["rates"].get(name)) for name in names),
            )
            for row in data["products"]
        ],
    )
    lines += ["", "## Steps of training", ""]
    lines += table(
        ("network", *(f"us of {name}" for name in names), "torch / ours", "goal"),
        [
            (
                row["network"],
                *(number(row["microseconds"].get(name)) for name in names),
                number(speed(row), "{:.2f}"),
                number(row["goal"]),
            )
            for row in data["networks"]
        ],
    )
    return "\n".join(lines) + "\n"


# --- the plot ------------------------------------------------------------------------

LINE, LEFT, WIDTH, TOP = 15, 330, 460, 60
COLOURS = ("#9ecae1", "#4292c6", "#084594")


def svg(data):
    """The share of the hardware: a row for each case, a dot for each size."""
    device, sizes = data["device"], data["sizes"]
    cases = list(dict.fromkeys((r["family"], r["case"]) for r in data["families"]))
    height = TOP + LINE * len(cases) + 30
    if device["simulated"]:
        title = "simulated: nothing was measured"
    else:
        title = f"{device['name']}: share of the hardware"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 40}" '
        f'height="{height}" font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="10" y="20" font-size="14">{escape(title)}</text>',
    ]
    for i, size in enumerate(sizes):
        x = LEFT + 130 * i
        out.append(f'<circle cx="{x}" cy="36" r="4" fill="{COLOURS[i % 3]}"/>')
        out.append(f'<text x="{x + 8}" y="40">{size:.0e} bytes</text>')
    for percent in range(0, 101, 25):
        x = LEFT + WIDTH * percent / 100
        out.append(
            f'<line x1="{x}" x2="{x}" y1="{TOP - 8}" y2="{height - 24}" '
            'stroke="#dddddd"/>'
        )
        out.append(
            f'<text x="{x}" y="{height - 10}" text-anchor="middle">{percent}%</text>'
        )
    for place, (family, case) in enumerate(cases):
        y = TOP + LINE * place
        text = escape(f"{family}: {case}")
        out.append(f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{text}</text>')
        for row in data["families"]:
            same = (row["family"], row["case"]) == (family, case)
            if same and isinstance(row["share"], float):
                x = LEFT + WIDTH * min(row["share"], 1.05)
                colour = COLOURS[sizes.index(row["size"]) % 3]
                out.append(f'<circle cx="{x:.1f}" cy="{y}" r="4" fill="{colour}"/>')
    return "\n".join([*out, "</svg>"]) + "\n"
