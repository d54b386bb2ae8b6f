"""Four plots of what grows with the number of memories, on logarithmic axes, as one SVG."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

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


def draw(figures: dict[int, Figures], file: Path) -> None:
    """Writes the plot."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    sizes = sorted(figures)
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "growth", "font.size": 10}):
        figure = Figure(figsize=(9, 7), layout="constrained")
        FigureCanvasSVG(figure)
        for axes, (title, (unit, lines)) in zip(figure.subplots(2, 2).flat, PANELS.items(), strict=True):
            for name, label in lines.items():
                known = [(size, figures[size][name] / unit) for size in sizes if figures[size].get(name)]
                if known:
                    axes.plot(*zip(*known, strict=True), marker="o", label=label)
            axes.set(title=title, xlabel="memories", xscale="log", yscale="log")
            axes.grid(visible=True, alpha=0.3)
            axes.legend(frameon=False)
        figure.savefig(file, format="svg", metadata={"Date": None})
