"""The agreement of both pipelines on the queries of each intent, complexity and folder."""

from __future__ import annotations

from collections.abc import Sequence

from speckit_memory.evaluation.experiment_report import Estimate, Segment
from speckit_memory.server.page.plots.plot import Plot
from speckit_memory.server.page.svg import INK, MUTED, VARIANT, Canvas, drawn
from speckit_memory.server.wording import figure

_LINE = 25
"""Pixels of a line."""
_HEADING, _PLAIN = 700, 400
"""Weights of letters."""


def segments(name: str, found: Sequence[Segment], whole: Estimate | None) -> Plot:
    """A dot with its interval for each segment; what has too few queries for that is named with its count."""
    lines: list[Segment | str] = []
    for segment in found:
        if not lines or segment.by not in lines:
            lines.append(segment.by)
        lines.append(segment)

    def draw(canvas: Canvas) -> None:
        axes = canvas.axes
        for place, segment in enumerate(lines):
            if isinstance(segment, str):
                continue
            estimate = segment.agreement.overlap_10 if segment.agreement else None
            if estimate is None:
                axes.text(0.0, place, "too few queries", color=MUTED, va="center", style="italic")
                continue
            if estimate.ci95:
                axes.hlines(place, estimate.ci95[0], estimate.ci95[1], color=VARIANT, linewidth=3, alpha=0.45)
            axes.plot([estimate.mean], [place], "o", color=VARIANT, markersize=8)
        if whole:
            axes.axvline(whole.mean, color=MUTED, linewidth=1.2, linestyle=(0, (3, 2)))
        axes.set_yticks(range(len(lines)), [_label(line, canvas) for line in lines])
        for line, label in zip(lines, axes.get_yticklabels(), strict=True):
            label.set(
                color=MUTED if isinstance(line, str) else INK, fontweight=_HEADING if isinstance(line, str) else 400
            )
        axes.set(xlim=(-0.02, 1.02), ylim=(len(lines) - 0.4, -0.6), xlabel="overlap@10: mean and 95 % interval")
        axes.grid(visible=False, axis="y")

    rows = [["by", "segment", "queries", "overlap@10", "95 % interval", "other order", "p50 overhead ms"]]
    for segment in found:
        agreement = segment.agreement
        estimate = agreement.overlap_10 if agreement else None
        rows.append([
            segment.by, segment.value or "none", f"{segment.queries:,}",
            figure(estimate.mean) if estimate else "too few",
            f"{figure(estimate.ci95[0])} to {figure(estimate.ci95[1])}" if estimate and estimate.ci95 else "",
            f"{agreement.ordering_differences:,}" if agreement else "",
            f"{segment.overhead.p50:+.2f}" if segment.overhead else "",
        ])  # fmt: skip
    caption = (
        "Share of the first 10 rows that both return, by kind of query (in brackets: how many queries). The dashed "
        "line is the mean over all; where an interval is wide, there are too few queries to say more."
    )
    return Plot("By kind of query", drawn(name, draw, height=60 + _LINE * len(lines)), caption, rows)


def _label(segment: Segment | str, canvas: Canvas) -> str:
    if isinstance(segment, str):
        return segment
    return f"{canvas.short(segment.value or 'none', 14, 34)} ({segment.queries:,})"
