"""Plots of matplotlib as part of a page: SVG whose colours and letters are those of the page's style.

A colour of `PALETTE` is a mark that stands for a variable of `page.css`, so that one drawing serves a light and a dark
page, and paper. Every plot is drawn twice, for wide and for narrow pages; the style shows the one that fits, at the
size at which its letters are as large as those around it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from io import StringIO
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.typing import RcKeyType

PALETTE = {
    "ink": "#010203",
    "muted": "#020304",
    "grid": "#030405",
    "paper": "#040506",
    "control": "#050607",
    "variant": "#060708",
    "up": "#070809",
    "down": "#08090a",
}
"""By the name of a variable of `page.css`. No other colour may be drawn."""
INK, MUTED, GRID, PAPER, CONTROL, VARIANT, UP, DOWN = PALETTE.values()
WIDE, NARROW = 700, 330
"""Pixels across; letters have `LETTERS` pixels in both."""
LETTERS = 12
_SVG = "http://www.w3.org/2000/svg"
_LINK = "{http://www.w3.org/1999/xlink}href"
_ID = re.compile(r"#([\w.:-]+)")
_FAMILY = re.compile(r"font-family: [^;]+;?")
_REFERRED = {"path", "clipPath", "pattern"}
"""What other parts of a drawing name by its id."""
_LONG = re.compile(r"(\d+\.\d\d)\d+")


Drawing = Callable[["Axes"], None]


def drawn(name: str, drawing: Drawing, *, height: int, narrow_height: int | None = None) -> str:
    """A drawing as two `<svg>`, one for wide and one for narrow pages, each as high as said, in pixels.

    `name` is unique on its page: the ids of the parts begin with it. The letters of a plot are for the eye alone; who
    cannot see it reads the caption and the table beside it.
    """
    narrow_height = narrow_height or height
    return _one(f"{name}-w", drawing, WIDE, height, "wide") + _one(
        f"{name}-n", drawing, NARROW, narrow_height, "narrow"
    )


def _one(name: str, drawing: Drawing, width: int, height: int, kind: str) -> str:
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    text = StringIO()
    with mpl.rc_context():
        mpl.rcdefaults()  # whatever a user's own matplotlibrc says
        mpl.rcParams.update(_style(name))
        layout = ConstrainedLayoutEngine(w_pad=0.02, h_pad=0.02)
        figure = Figure(figsize=(width / 72, height / 72), dpi=72, layout=layout)
        FigureCanvasSVG(figure)
        drawing(figure.add_subplot())
        with warnings.catch_warnings():
            # the letters are drawn by the browser, with its own fonts
            warnings.filterwarnings("ignore", r"Glyph .* missing from font", UserWarning)
            figure.savefig(text, format="svg", metadata={"Date": None}, transparent=True)
    return _inline(text.getvalue(), name, kind)


def _style(name: str) -> dict[RcKeyType, Any]:
    return {
        "svg.fonttype": "none",
        "svg.hashsalt": name,  # the same page for the same figures
        "font.size": LETTERS,
        "text.color": INK,
        "text.parse_math": False,  # a dollar in a name is a dollar
        "axes.edgecolor": GRID,
        "axes.labelcolor": MUTED,
        "axes.labelsize": LETTERS,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.spines.left": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": GRID,
        "grid.linewidth": 1,
        "xtick.color": GRID,
        "ytick.color": GRID,
        "xtick.labelcolor": MUTED,
        "ytick.labelcolor": MUTED,
        "xtick.major.size": 0,
        "ytick.major.size": 0,
        "xtick.major.pad": 6,
        "ytick.major.pad": 6,
        "legend.frameon": False,
        "hatch.color": PAPER,
    }


def _inline(text: str, name: str, kind: str) -> str:
    """The `<svg>` alone, without what belongs to a file of its own; its ids are unique on the page."""
    ElementTree.register_namespace("", _SVG)
    root = ElementTree.fromstring(text)
    for part in root.findall(f"{{{_SVG}}}metadata"):
        root.remove(part)
    for part in root.iter(f"{{{_SVG}}}defs"):
        for style in part.findall(f"{{{_SVG}}}style"):
            part.remove(style)
    for part in root.iter():
        _adapt(part, name)
        part.tail = None
        if not (part.text or "").strip():
            part.text = None
    for size in ("width", "height", "version"):
        root.attrib.pop(size, None)
    root.set("class", f"plot {kind}")
    root.set("aria-hidden", "true")
    return ElementTree.tostring(root, encoding="unicode")


def _adapt(part: ElementTree.Element, name: str) -> None:
    used = part.attrib.pop(_LINK, None)
    if used:
        part.set("href", f"#{name}-{used[1:]}")
    own = part.attrib.pop("id", None)
    if own and part.tag.rpartition("}")[2] in _REFERRED:
        part.set("id", f"{name}-{own}")
    for attribute in ("clip-path", "style", "d"):
        value = part.get(attribute)
        if value is None:
            continue
        value = _LONG.sub(r"\1", value)
        if attribute == "clip-path" or "url(" in value:
            value = _ID.sub(rf"#{name}-\1", value)
        value = _FAMILY.sub("", value)
        for variable, mark in PALETTE.items():
            value = value.replace(mark, f"var(--{variable})")
        part.set(attribute, " ".join(value.split()))
