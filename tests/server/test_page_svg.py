from __future__ import annotations

import warnings
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.axes import Axes

from speckit_memory.server.page.svg import INK, NARROW, VARIANT, WIDE, drawn

pytestmark = pytest.mark.usefixtures("processes")


def labelled(name: str) -> str:
    def draw(axes: Axes) -> None:
        axes.plot([1, 2, 3], [3, 1, 2], color=VARIANT)
        axes.set_title(name, color=INK)

    return drawn("p", draw, height=120, narrow_height=90)


def test_a_drawing_is_made_for_wide_and_for_narrow_pages() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wide, narrow = ElementTree.fromstring(f"<page>{labelled('plain')}</page>")
    assert wide.attrib["viewBox"] == f"0 0 {WIDE} 120"
    assert narrow.attrib["viewBox"] == f"0 0 {NARROW} 90"
    assert "plain" in "".join(wide.itertext())


def test_a_drawing_is_the_same_whatever_a_user_has_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib as mpl

    before = labelled("plain")
    with mpl.rc_context({"axes.facecolor": "red", "font.size": 30, "svg.fonttype": "path"}):
        assert labelled("plain") == before
    assert "var(--variant)" in before
    assert "red" not in before
    assert "metadata" not in before
    assert "font-family" not in before
