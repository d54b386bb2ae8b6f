from __future__ import annotations

import warnings
from pathlib import Path
from xml.etree import ElementTree

import pytest

from speckit_memory.server.page.svg import INK, NARROW, VARIANT, WIDE, Canvas, drawn

pytestmark = pytest.mark.usefixtures("processes")

NAMES = ("plain", "検索の設計", "$\\frac{", "a\x1b[31m<b>&", "\ud800\uffff", "x" * 90)


def labelled(name: str) -> str:
    def draw(canvas: Canvas) -> None:
        canvas.axes.plot([1, 2, 3], [3, 1, 2], color=VARIANT)
        canvas.axes.set_title(canvas.short(name, 10, 40), color=INK)

    return drawn("p", draw, height=120, narrow_height=90)


def parsed(drawing: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(f"<page>{drawing}</page>"))


@pytest.mark.parametrize("name", NAMES)
def test_any_name_can_be_drawn(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wide, narrow = parsed(labelled(name))
    assert wide.attrib["viewBox"] == f"0 0 {WIDE} 120"
    assert narrow.attrib["viewBox"] == f"0 0 {NARROW} 90"
    texts = [part.text or "" for part in wide.iter() if part.tag.endswith("text")]
    assert any(text.startswith(name[:1]) or "\ufffd" in text for text in texts)


def test_a_long_name_is_cut_to_the_width() -> None:
    wide, narrow = ("".join(one.itertext()) for one in parsed(labelled("x" * 90)))
    assert "x" * 39 + "…" in wide
    assert "x" * 9 + "…" in narrow
    assert "x" * 10 not in narrow


def test_a_drawing_is_the_same_whatever_a_user_has_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib as mpl

    before = labelled("plain")
    with mpl.rc_context({"axes.facecolor": "red", "font.size": 30, "svg.fonttype": "path"}):
        assert labelled("plain") == before
    assert "var(--variant)" in before
    assert "red" not in before
    assert "metadata" not in before
    assert "font-family" not in before
