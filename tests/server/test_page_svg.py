"""Charts as SVG: where marks and ticks stand, and that they are readable without colours and with any text."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.growth_plot import draw
from speckit_memory.server.reports.svg import DOWN, NARROW, UP, VARIANT, WIDE, Axis, Chart

SVG = "{http://www.w3.org/2000/svg}"


def drawings(chart: Chart, height: int = 200) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(f"<page>{chart.both(height)}</page>"))


def texts(drawing: ElementTree.Element) -> dict[str, tuple[float, float]]:
    """The texts of a drawing with their places within their group."""
    return {part.text or "": (float(part.attrib["x"]), float(part.attrib["y"])) for part in drawing.iter(f"{SVG}text")}


def test_a_chart_is_drawn_for_wide_and_for_narrow_pages_with_its_labels_and_legend() -> None:
    chart = Chart(Axis("queries", 0, 100, whole=True), Axis("difference in nDCG@10", -1, 1))
    chart.line([0, 50, 100], [-1, 0, 1], VARIANT, label="mean <difference>")
    wide, narrow = drawings(chart)
    assert (wide.attrib["viewBox"], narrow.attrib["viewBox"]) == (f"0 0 {WIDE} 200", f"0 0 {NARROW} 200")
    for drawing in (wide, narrow):
        assert {"queries", "difference in nDCG@10", "mean <difference>", "0", "100", "\u22121"} <= set(texts(drawing))


def test_a_line_meets_the_ticks_of_its_values() -> None:
    chart = Chart(Axis("x", 0, 100), Axis("y", -3, 3))
    chart.line([20, 60, 100], [-2, 0, 2], VARIANT, 2.4)
    drawing = drawings(chart)[0]
    [line] = [part for part in drawing.iter(f"{SVG}path") if "stroke-width:2.4" in part.attrib["style"]]
    points = [tuple(map(float, pair.split())) for pair in line.attrib["d"].lstrip("M").split("L")]
    named = texts(drawing)
    rules = {float(y) for y in re.findall(r"M[\d.]+ ([\d.]+)H", ElementTree.tostring(drawing, encoding="unicode"))}
    assert [x for x, _ in points] == [named[value][0] for value in ("20", "60", "100")]
    assert {y for _, y in points} <= rules
    # the middle of the line is half-way in both directions
    assert points[1] == pytest.approx([(a + b) / 2 for a, b in zip(points[0], points[2], strict=True)], abs=0.01)


def test_bars_stand_on_zero_and_are_as_high_as_their_counts() -> None:
    chart = Chart(Axis("ms", -2, 2), Axis("queries", 0, 4, whole=True), x_grid=False)
    chart.bars([-2, 0, 2], [4, 0], UP)
    chart.bars([-2, 0, 2], [0, 1], DOWN)
    high, low = drawings(chart)[0].iter(f"{SVG}rect")
    sizes = [{name: float(part.attrib[name]) for name in ("x", "y", "width", "height")} for part in (high, low)]
    assert sizes[0]["height"] == pytest.approx(4 * sizes[1]["height"], abs=0.05)
    assert sizes[0]["y"] + sizes[0]["height"] == pytest.approx(sizes[1]["y"] + sizes[1]["height"], abs=0.02)
    assert sizes[0]["x"] + sizes[0]["width"] == pytest.approx(sizes[1]["x"], abs=0.02)


@pytest.mark.parametrize(
    ("axis", "most", "ticks"),
    [
        (Axis("", 10, 60, whole=True), 6, [10, 20, 30, 40, 50, 60]),
        (Axis("", 10, 60, whole=True), 4, [20, 40, 60]),
        (Axis("", 0, 1, whole=True), 9, [0, 1]),
        (Axis("", -0.55, 0.55), 6, [-0.4, -0.2, 0.0, 0.2, 0.4]),
        (Axis("", 7, 7), 5, [7]),
        (Axis("", 3, 400, log=True), 8, [5, 10, 20, 50, 100, 200]),
        (Axis("", 1, 1e6, log=True), 8, [1, 10, 100, 1e3, 1e4, 1e5, 1e6]),
        (Axis("", 1, 1e6, log=True), 4, [1, 100, 1e4, 1e6]),
    ],
)
def test_ticks_are_the_most_round_values_that_have_room(axis: Axis, most: int, ticks: list[float]) -> None:
    assert axis.ticks(most) == pytest.approx(ticks)


@given(low=st.floats(-1e6, 1e6, allow_nan=False), width=st.floats(1e-3, 1e6, allow_nan=False), most=st.integers(2, 12))
def test_ticks_of_any_axis_lie_within_it_at_equal_distances(low: float, width: float, most: int) -> None:
    ticks = Axis("", low, low + width).ticks(most)
    assert len(ticks) <= most
    assert all(low - 1e-9 <= tick <= low + width + 1e-9 for tick in ticks)
    steps = [after - before for before, after in pairwise(ticks)]
    assert steps == pytest.approx([steps[0]] * len(steps) if steps else [], rel=1e-6)


def test_nothing_stands_outside_a_drawing() -> None:
    chart = Chart(Axis("memories", 1, 1_000_000, log=True), Axis("ms", -0.001, 123_456), title="How it grows")
    for label in ("one line", "another line", "a line with a long name of its own"):
        chart.line([1, 1_000_000], [0, 123_456], VARIANT, label=label)
    chart.vertical(1_000_000, "p95")
    for drawing, width in zip(drawings(chart, 240), (WIDE, NARROW), strict=True):
        for text, (x, y) in texts(drawing).items():
            assert 0 <= x <= width - (22 if text == "p95" else 0), text
            assert 0 <= y <= 240, text


def test_the_plot_of_growth_says_in_words_what_it_shows(tmp_path: Path) -> None:
    file = tmp_path / "growth.svg"
    draw({10_000: {"open_ms": 40.0, "store_bytes": 6e7}, 100_000: {"open_ms": 50.0, "store_bytes": 6e8}}, file)
    root = ElementTree.parse(file).getroot()
    assert root.attrib["role"] == "img"
    assert root.findtext(f"{SVG}title") == "What grows with the number of memories"
    assert root.findtext(f"{SVG}desc") == (
        "from imports on, ms, store open: 40 at 10,000, 50 at 100,000; files, MB, store: 60 at 10,000, 600 at 100,000"
    )
    assert {"store open", "ms", "store", "MB", "memories", "10,000", "100,000"} <= {*root.itertext()}
