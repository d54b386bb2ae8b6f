"""Four plots of what grows with the number of memories, on logarithmic axes, as one SVG."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from speckit_memory.server.reports.markup import element, joined
from speckit_memory.server.reports.svg import DOWN, UP, VARIANT, Axis, Chart

if TYPE_CHECKING:
    from bench.growth import Figures

PANELS: dict[str, tuple[float, dict[str, str]]] = {
    "95 of 100 searches, ms": (1, {f"{name}_p95_ms": name for name in ("simple", "moderate", "complex")}),
    "from imports on, ms": (1, {"open_ms": "store open", "first_answer_ms": "first answer"}),
    "memory of a further process, MB": (
        1e6,
        {"private_bytes": "private", "shared_bytes": "shared", "anonymous_bytes": "of no file"},
    ),
    "files, MB": (1e6, {"store_bytes": "store", "segments_bytes": "segments"}),
}
"""By title: the unit, and the lines by the name of a figure."""
LINES = ((VARIANT, ""), (DOWN, "6 3"), (UP, "2 3"))
"""Colour and dashes of the lines of a panel, in their order."""
WIDTH, HEIGHT = 450, 340
"""Of a panel, in pixels."""
STYLE = """svg { background: #fff; font-family: system-ui, sans-serif; --ink: #171b22; --muted: #59626f;
--grid: #e2e6eb; --variant: #2d5bd1; --up: #11734b; --down: #b04a0a; }"""


def draw(figures: dict[int, Figures], file: Path) -> None:
    """Writes the plot."""
    sizes = sorted(figures)
    panels, said = [], []
    for place, (title, (unit, lines)) in enumerate(PANELS.items()):
        known = {
            label: [(size, figures[size][name] / unit) for size in sizes if figures[size].get(name)]
            for name, label in lines.items()
        }
        values = [value for points in known.values() for _, value in points]
        if not values:
            continue
        y = Axis(title.rpartition(", ")[2], min(values) / 1.3, max(values) * 1.3, log=True)
        chart = Chart(Axis("memories", sizes[0], sizes[-1], log=True), y, title=title)
        for (color, dash), (label, points) in zip(LINES, known.items(), strict=False):
            if points:
                chart.line(
                    [size for size, _ in points], [value for _, value in points], color, 2, label=label, dash=dash
                )
                said.append(f"{title}, {label}: " + ", ".join(f"{value:,.3g} at {size:,}" for size, value in points))
        at = f"translate({place % 2 * WIDTH} {place // 2 * HEIGHT})"
        panels.append(element("g", chart.drawn(WIDTH, HEIGHT), transform=at, aria_hidden="true"))
    text = element(
        "svg",
        joined(element("title", "What grows with the number of memories"), element("desc", "; ".join(said))),
        element("style", STYLE),
        *panels,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {2 * WIDTH} {2 * HEIGHT}",
        role="img",
    )
    file.write_text(f"{text}\n", encoding="utf-8")
