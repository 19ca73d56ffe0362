"""Log-log panels as SVG, readable on light and dark pages. Standard library only."""
import dataclasses
import math
import typing
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 900, 400
LEFT, RIGHT, TOP, BOTTOM, GAP = 74, 24, 56, 78, 96
LIGHT = {"page": "#ffffff", "ink": "#1f2328", "faint": "#59636e", "grid": "#d8dee4", "one": "#0969da", "two": "#bc4c00"}
DARK = {"page": "#0d1117", "ink": "#e6edf3", "faint": "#9198a1", "grid": "#30363d", "one": "#58a6ff", "two": "#f0883e"}
SHAPES = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
  .title { font-weight: 600; font-size: 15px; }
  .faint { font-size: 12px; }
  .grid { stroke-width: 1; }
  .line { fill: none; stroke-width: 2; stroke-linejoin: round; }
  .dot { stroke-width: 2; }
  .name { paint-order: stroke; stroke-width: 4; stroke-linejoin: round; }
"""
# Plain values, not CSS variables, which some viewers do not know.
COLOURS = """
  .page {{ fill: {page}; }}
  text {{ fill: {ink}; }}
  .faint {{ fill: {faint}; }}
  .grid {{ stroke: {grid}; }}
  .s0 {{ stroke: {one}; }} .s1 {{ stroke: {two}; }}
  .d0, .t0 {{ fill: {one}; }} .d1, .t1 {{ fill: {two}; }}
  .dot, .name {{ stroke: {page}; }}
"""
STYLE = (SHAPES + COLOURS.format(**LIGHT) + "  @media (prefers-color-scheme: dark) {" + COLOURS.format(**DARK) + "  }\n")


@dataclasses.dataclass
class Line:
    """A curve with its name above its right end."""
    name: str
    colour: int
    at: list


@dataclasses.dataclass
class Points:
    colour: int
    at: list


@dataclasses.dataclass
class Panel:
    title: str
    label: typing.Callable  # a value of the y axis as text
    marks: list


class Scale:
    """Logarithms of [low, high] on [from_, to]."""

    def __init__(self, low, high, from_, to):
        self.low, self.high, self.from_, self.to = low, high, from_, to

    def __call__(self, value):
        part = (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return self.from_ + part * (self.to - self.from_)


def decade_ticks(low, high):
    """1, 10, 100 ...; with 2 and 5 between where that gives fewer than four."""
    for steps in ((1,), (1, 2, 5)):
        ticks = [m * 10.0 ** e for e in range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
                 for m in steps]
        ticks = [t for t in ticks if low <= t * 1.0001 and t <= high * 1.0001]
        if len(ticks) >= 4:
            return ticks
    return ticks


def text(x, y, what, kind="", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(what)}</text>'


def draw_panel(panel, left, right, x_ticks, x_label):
    """The SVG elements of one panel between two x coordinates."""
    values = [v for mark in panel.marks for _, v in mark.at if v > 0]
    low, high = min(values) / 1.6, max(values) * 1.9
    x = Scale(x_ticks[0] / 1.15, x_ticks[-1] * 1.15, left, right)
    y = Scale(low, high, HEIGHT - BOTTOM, TOP)
    out = [text(left, TOP - 16, panel.title, "title")]
    for tick in decade_ticks(low, high):
        out.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        out.append(text(left - 8, y(tick) + 4, panel.label(tick), "faint", "end"))
    for tick in x_ticks:
        out.append(text(x(tick), HEIGHT - BOTTOM + 20, x_label(tick), "faint", "middle"))
    for mark in panel.marks:
        if isinstance(mark, Line):
            path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in mark.at)
            out.append(f'<polyline class="line s{mark.colour}" points="{path}"/>')
            out.append(text(right, y(mark.at[-1][1]) - 12, mark.name, f"name t{mark.colour}", "end"))
    for mark in panel.marks:
        if isinstance(mark, Points):
            out += [f'<circle class="dot d{mark.colour}" cx="{x(a):.1f}" cy="{y(b):.1f}" r="5.5"/>'
                    for a, b in mark.at]
    return out


def draw(panels, x_name, x_label, note):
    """The whole picture; every panel has the x values of its points as ticks."""
    width = (WIDTH - LEFT - RIGHT - GAP * (len(panels) - 1)) / len(panels)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
           f'aria-label="{escape("; ".join(p.title for p in panels))}">', f"<style>{STYLE}</style>",
           f'<rect width="{WIDTH}" height="{HEIGHT}" class="page"/>']
    for i, panel in enumerate(panels):
        left = LEFT + i * (width + GAP)
        ticks = sorted({a for mark in panel.marks if isinstance(mark, Points) for a, _ in mark.at})
        out += draw_panel(panel, left, left + width, ticks, x_label)
        out.append(text(left + width / 2, HEIGHT - BOTTOM + 40, x_name, "faint", "middle"))
    out.append(text(LEFT, HEIGHT - 12, note, "faint"))
    return "\n".join(out) + "\n</svg>\n"
