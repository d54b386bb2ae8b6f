"""Where what stood at a rank of the control stands in the variant, over all queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from speckit_memory.evaluation.agreement import Move
from speckit_memory.server.page.plots.plot import Plot
from speckit_memory.server.page.svg import CONTROL, DOWN, INK, MUTED, UP, Canvas, drawn
from speckit_memory.server.wording import counted, percent

RANKS = 10
_ABSENT = RANKS + 1
_THICKEST = 13
"""Pixels of the most frequent way."""
_LEAST = 0.6
_APART = 0.022
"""The room of a number beside its line, as a share of the width."""
_CLEAR, _FAINT = 0.7, 0.32
"""What comes and goes is told apart from what moves within the first ten."""
_BEND = 0.42

Flows = Counter[tuple[int, int]]
"""How often what stands at one rank before stands at another one after."""


def rank_moves(name: str, moves: Sequence[Sequence[Move[int]]], control: str, variant: str) -> Plot:
    """Flows between the first ten ranks of both pipelines; `moves` are those of each query."""
    flows: Flows = Counter((_place(move.before), _place(move.after)) for query in moves for move in query)
    del flows[_ABSENT, _ABSENT]
    rows = [["rank before", "rows", "same rank", "rose", "fell", f"below {RANKS} or gone"]]
    for before in range(1, _ABSENT):
        ways = {after: count for (start, after), count in flows.items() if start == before}
        rose = sum(count for after, count in ways.items() if after < before)
        fell = sum(count for after, count in ways.items() if before < after < _ABSENT)
        parts = (sum(ways.values()), ways.get(before, 0), rose, fell, ways.get(_ABSENT, 0))
        rows.append([str(before), *(f"{part:,}" for part in parts)])
    entered = sum(count for (start, _), count in flows.items() if start == _ABSENT)
    rows.append([f"below {RANKS} or absent", f"{entered:,}", "0", f"{entered:,}", "0", "0"])
    stayed = sum(count for (before, after), count in flows.items() if before == after)
    everything = flows.total() - entered
    caption = (
        f"Each line joins a rank of {control} (left) with the rank that the same memory has in {variant} (right), over "
        f"{counted(len(moves), 'query')}; the thicker, the more often. What rises is green, what falls orange, what "
        f"comes or goes pale, what stays level and grey. {percent(stayed, everything)} of the {everything:,} rows in "
        f"the first {RANKS} of {control} kept their rank."
    )

    def draw(canvas: Canvas) -> None:
        _lines(canvas, flows)
        _labels(canvas, control, variant)

    return Plot("How ranks moved", drawn(name, draw, height=400, narrow_height=380), caption, rows)


def _place(rank: int | None) -> int:
    return _ABSENT if rank is None or rank > RANKS else rank


def _lines(canvas: Canvas, flows: Flows) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    most = max(flows.values(), default=1)
    for (before, after), count in sorted(flows.items(), key=lambda flow: flow[1]):
        corners = [(0.0, before), (_BEND, before), (1 - _BEND, after), (1.0, after)]
        canvas.axes.add_patch(
            PathPatch(
                Path(corners, [Path.MOVETO, *[Path.CURVE4] * 3]),
                fill=False,
                edgecolor=CONTROL if after == before else UP if after < before else DOWN,
                linewidth=max(_LEAST, _THICKEST * count / most),
                alpha=_FAINT if _ABSENT in (before, after) else _CLEAR,
                capstyle="butt",
            )
        )


def _labels(canvas: Canvas, control: str, variant: str) -> None:
    axes = canvas.axes
    for rank in range(1, _ABSENT + 1):
        text = str(rank) if rank < _ABSENT else "–"
        axes.text(-_APART, rank, text, ha="right", va="center", color=INK)
        axes.text(1 + _APART, rank, text, ha="left", va="center", color=INK)
    side = 0.08 if canvas.narrow else 0.04
    for place, name, align in ((-side, control, "left"), (1 + side, variant, "right")):
        axes.text(place, 0.1, canvas.short(name, 18, 40), ha=align, va="center", color=INK, fontweight="bold")
    axes.text(0.5, _ABSENT + 0.75, f"–  below rank {RANKS}, or not returned", ha="center", va="center", color=MUTED)
    axes.set(xlim=(-side, 1 + side), ylim=(_ABSENT + 1.1, -0.4))
    axes.axis("off")
