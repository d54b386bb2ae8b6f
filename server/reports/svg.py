"""Draws charts of lines, bands and bars as inline SVG with the colours and fonts of the page.

Colours are variables of `report.css`, so that one drawing works in light mode, in dark mode and on paper. Every chart
is drawn twice, for wide and narrow pages; the style shows the one that fits, at a size that matches the surrounding
text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

from speckit_memory.server.reports.markup import Markup, element, joined

PALETTE = ("ink", "muted", "grid", "variant", "up", "down")
"""The variables of `report.css` that drawings use."""
INK, MUTED, GRID, VARIANT, UP, DOWN = (f"var(--{name})" for name in PALETTE)
WIDE, NARROW = 700, 330
"""Width in pixels; the font size is `LETTERS` in both."""
LETTERS = 12
_LETTER = 0.6 * LETTERS
"""Room for one character, in pixels: as wide as the digits of the widest common font."""
_LINE = LETTERS + 6
_GAP = 6


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis from `low` to `high`.

    `whole` allows ticks at whole numbers only. On a `log` axis both ends are positive, and ticks are 1, 2 and 5 times
    powers of ten, or the powers alone if these are many.
    """

    label: str
    low: float
    high: float
    whole: bool = False
    log: bool = False

    def share(self, value: float) -> float:
        """Return how far along the axis a value is, from 0 to 1."""
        low, high, at = (math.log(each) if self.log else each for each in (self.low, self.high, value))
        return (at - low) / (high - low) if high > low else 0.5

    def ticks(self, most: int) -> list[float]:
        """Return at most `most` round values within the axis."""
        if self.log:
            tens = [10.0**ten for ten in range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)]
            fine, coarse = (
                [value for ten in tens for digit in digits if self.low <= (value := digit * ten) <= self.high]
                for digits in ((1, 2, 5), (1,))
            )
            # less than a power of ten has the ticks of a linear axis
            if len(fine) > 2:
                return fine if len(fine) <= most else coarse[:: -(-len(coarse) // most)]
        if self.high <= self.low:
            return [self.low]
        least = math.floor(math.log10((self.high - self.low) / most))
        for step in (digit * 10.0**ten for ten in count(0 if self.whole else least) for digit in (1, 2, 5)):
            first, last = math.ceil(self.low / step), math.floor(self.high / step)
            if last - first < most:
                # a product, so that no error adds up
                return [round(place * step, 12) for place in range(first, last + 1)]
        raise AssertionError  # some step is long enough


@dataclass(frozen=True, slots=True)
class _Frame:
    """The place of a chart's axes in a drawing, in pixels."""

    x: Axis
    y: Axis
    left: float
    top: float
    right: float
    bottom: float

    def across(self, value: float) -> float:
        return self.left + self.x.share(value) * (self.right - self.left)

    def up(self, value: float) -> float:
        return self.bottom - self.y.share(value) * (self.bottom - self.top)


_Mark = Callable[[_Frame], Markup]


@dataclass(slots=True)
class Chart:
    """A chart of two axes. Marks are drawn in the order in which they were added, over the grid."""

    x: Axis
    y: Axis
    title: str = ""
    x_grid: bool = True
    _marks: list[_Mark] = field(default_factory=list)
    _legend: list[tuple[str, Markup]] = field(default_factory=list)
    _labelled: bool = False

    def line(
        self,
        xs: Sequence[float],
        ys: Sequence[float],
        color: str,
        width: float = 1.5,
        *,
        label: str = "",
        dash: str = "",
    ) -> None:
        """Add a line through points.

        Args:
            xs: The places along the x axis.
            ys: The places along the y axis, as many.
            color: A colour of `PALETTE`.
            width: Pixels.
            label: The name in the legend; without one it is not listed.
            dash: The lengths of dashes and gaps, "" for a solid line.
        """
        style = _stroke(color, width, dash)

        def draw(frame: _Frame) -> Markup:
            return element("path", d=_path(frame, xs, ys), style=style)

        self._marks.append(draw)
        if label:
            self._legend.append((label, element("path", d=f"M0 {LETTERS / 2:g}h18", style=style)))

    def band(
        self, xs: Sequence[float], lows: Sequence[float], highs: Sequence[float], color: str, *, label: str = ""
    ) -> None:
        """Add the area between two lines, with thin edges.

        Args:
            xs: Positions, ascending.
            lows: The lower line.
            highs: The upper line.
            color: A CSS color.
            label: Its name in the legend; "" for none.
        """
        shade, edge = f"fill:{color};fill-opacity:.18", _stroke(color, 1)

        def draw(frame: _Frame) -> Markup:
            outline = _path(frame, [*xs, *reversed(xs)], [*highs, *reversed(lows)]) + "z"
            edges = (element("path", d=_path(frame, xs, ys), style=edge) for ys in (lows, highs))
            return joined(element("path", d=outline, style=shade), *edges)

        self._marks.append(draw)
        if label:
            self._legend.append((label, _box(0, 1, 18, LETTERS - 2, f"{shade};stroke:{color}")))

    def bars(self, edges: Sequence[float], heights: Sequence[float], color: str, *, label: str = "") -> None:
        """Add bars that begin at 0, each between two edges.

        Args:
            edges: Positions, ascending; one more than bars.
            heights: The height of each bar; no bar is drawn for 0.
            color: A CSS color.
            label: Their name in the legend; "" for none.
        """
        style = f"fill:{color};fill-opacity:.8"

        def draw(frame: _Frame) -> Markup:
            places = [frame.across(edge) for edge in edges]
            return joined(
                *(
                    _box(left, frame.up(height), right - left, frame.up(0) - frame.up(height), style)
                    for left, right, height in zip(places, places[1:], heights, strict=False)
                    if height
                )
            )

        self._marks.append(draw)
        if label:
            self._legend.append((label, _box(3, 0, LETTERS, LETTERS, style)))

    def horizontal(self, y: float) -> None:
        """Add a line across the whole chart that values are compared with."""
        self.line((self.x.low, self.x.high), (y, y), INK, 1.4)

    def vertical(self, x: float, label: str = "", *, before: bool = False) -> None:
        """Add a line from the bottom to the top: a labelled one is dashed, its label above it, `before` or after it."""
        style = _stroke(MUTED, 1.2, "4 3") if label else _stroke(INK, 1.4)
        self._labelled |= bool(label)

        def draw(frame: _Frame) -> Markup:
            at, side = frame.across(x), -3 if before else 3
            rule = element("path", d=f"M{at:.2f} {frame.bottom:.2f}V{frame.top:.2f}", style=style)
            return joined(rule, _text(at + side, frame.top - 4, label, INK, "end" if before else "start"))

        self._marks.append(draw)

    def note(self, text: str, *, top: bool) -> None:
        """Add a text in the upper or lower right corner."""

        def draw(frame: _Frame) -> Markup:
            return _text(frame.right - _GAP, frame.top + _LINE if top else frame.bottom - _GAP, text, MUTED, "end")

        self._marks.append(draw)

    def both(self, height: int) -> Markup:
        """Return two `<svg>` elements, for wide and for narrow pages.

        Screen readers skip them: they read the caption and the table.
        """
        return joined(
            *(
                element(
                    "svg",
                    self.drawn(width, height),
                    xmlns="http://www.w3.org/2000/svg",
                    viewBox=f"0 0 {width} {height}",
                    class_=f"plot {kind}",
                    aria_hidden="true",
                )
                for width, kind in ((WIDE, "wide"), (NARROW, "narrow"))
            )
        )

    def drawn(self, width: int, height: int) -> Markup:
        """Return the contents of an `<svg>` element of this size in pixels."""
        legend, rows = self._placed_legend(width)
        head = (rows + bool(self.title) + self._labelled) * _LINE + _GAP
        y_ticks = self.y.ticks(max(2, int((height - head) / 36)))
        y_names = _names(y_ticks, self.y)
        left = _LINE + _GAP + max(map(len, y_names), default=0) * _LETTER
        # the last name of the x axis may stand half beyond it, and a label wholly
        beyond = max(4, len(f"{self.x.high:,.0f}") / 2 + 1) * _LETTER
        frame = _Frame(self.x, self.y, left, head, width - beyond, height - 2 * _LINE - _GAP)
        x_ticks = self.x.ticks(max(2, int((frame.right - frame.left) / 60)))
        parts = [_text(frame.left, LETTERS, self.title, INK, "start")] if self.title else []
        parts.append(element("g", legend, transform=f"translate({frame.left:.2f} {_LINE * bool(self.title)})"))
        for value, name in zip(x_ticks, _names(x_ticks, self.x), strict=True):
            at = frame.across(value)
            if self.x_grid:
                parts.append(element("path", d=f"M{at:.2f} {frame.bottom:.2f}V{frame.top:.2f}", style=_stroke(GRID, 1)))
            parts.append(_text(at, frame.bottom + _LINE, name, MUTED, "middle"))
        for value, name in zip(y_ticks, y_names, strict=True):
            at = frame.up(value)
            parts.append(element("path", d=f"M{frame.left:.2f} {at:.2f}H{frame.right:.2f}", style=_stroke(GRID, 1)))
            parts.append(_text(frame.left - _GAP, at + LETTERS / 3, name, MUTED, "end"))
        parts += [mark(frame) for mark in self._marks]
        parts.append(_text((frame.left + frame.right) / 2, height - _GAP, self.x.label, MUTED, "middle"))
        turned = element(
            "g",
            _text(0, 0, self.y.label, MUTED, "middle"),
            transform=f"translate({LETTERS} {(frame.top + frame.bottom) / 2:.2f}) rotate(-90)",
        )
        return joined(*parts, turned)

    def _placed_legend(self, width: int) -> tuple[Markup, int]:
        """Return the legend in rows that fit, and how many rows there are."""
        parts, at, row = [], 0.0, 0
        room = width - 6 * _LETTER
        for label, sign in self._legend:
            wide = 18 + 2 * _GAP + (len(label) + 1) * _LETTER
            if at and at + wide > room:
                at, row = 0.0, row + 1
            text = _text(18 + _GAP, LETTERS - 2, label, MUTED, "start")
            parts.append(element("g", sign, text, transform=f"translate({at:.2f} {row * _LINE + 2})"))
            at += wide
        return joined(*parts), (row + 1) * bool(self._legend)


def _stroke(color: str, width: float, dash: str = "") -> str:
    dashes = f";stroke-dasharray:{dash}" if dash else ";stroke-linecap:round"
    return f"fill:none;stroke:{color};stroke-width:{width:g}{dashes}"


def _path(frame: _Frame, xs: Sequence[float], ys: Sequence[float]) -> str:
    """The path through points; a single one becomes a dot by its round ends."""
    points = [f"{frame.across(x):.2f} {frame.up(y):.2f}" for x, y in zip(xs, ys, strict=True)]
    return f"M{'L'.join(points)}" + ("h0" if len(points) == 1 else "")


def _box(x: float, y: float, width: float, height: float, style: str) -> Markup:
    return element("rect", x=f"{x:.2f}", y=f"{y:.2f}", width=f"{width:.2f}", height=f"{height:.2f}", style=style)


def _text(x: float, y: float, text: str, color: str, anchor: str) -> Markup:
    style = f"fill:{color};font-size:{LETTERS}px;text-anchor:{anchor}"
    return element("text", text, x=f"{x:.2f}", y=f"{y:.2f}", style=style) if text else Markup()


def _names(ticks: Sequence[float], axis: Axis) -> list[str]:
    """Return ticks as texts, on a linear axis all with as many decimals as one of them needs."""
    exact = [f"{tick + 0.0:,.10f}".rstrip("0").rstrip(".").replace("-", "\u2212") for tick in ticks]
    decimals = 0 if axis.log else max((len(name.partition(".")[2]) for name in exact), default=0)
    return [
        f"{name}{'' if '.' in name else '.'}{'0' * (decimals - len(name.partition('.')[2]))}" if decimals else name
        for name in exact
    ]
