"""Renders matplotlib plots as inline SVG with the colours and fonts of the page.

Each colour of `PALETTE` is a placeholder for a variable of `page.css`, so that one drawing works in light mode, in dark
mode and on paper. Every plot is drawn twice, for wide and narrow pages; the style shows the one that fits, at a size
that matches the surrounding text.
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
"""Placeholder colours by variable of `page.css`. Drawings may use no others."""
INK, MUTED, GRID, PAPER, CONTROL, VARIANT, UP, DOWN = PALETTE.values()
WIDE, NARROW = 700, 330
"""Width in pixels; the font size is `LETTERS` in both."""
LETTERS = 12
_SVG = "http://www.w3.org/2000/svg"
_LINK = "{http://www.w3.org/1999/xlink}href"
_ID = re.compile(r"#([\w.:-]+)")
_FAMILY = re.compile(r"font-family: [^;]+;?")
_REFERRED = {"path", "clipPath", "pattern"}
"""Elements that other parts of a drawing refer to by id."""
_LONG = re.compile(r"(\d+\.\d\d)\d+")


Drawing = Callable[["Axes"], None]


def drawn(name: str, drawing: Drawing, *, height: int, narrow_height: int | None = None) -> str:
    """Renders a drawing as two `<svg>` elements, one for wide and one for narrow pages.

    The text in a plot is hidden from screen readers, for which the caption and the table are provided.

    Args:
        name: Prefix of all ids, unique on the page.
        drawing: Draws on the axes.
        height: Pixels.
        narrow_height: Pixels of the narrow version; `height` by default.
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
        mpl.rcdefaults()  # ignores the user's matplotlibrc
        mpl.rcParams.update(_style(name))
        # 72 dpi: one point is one pixel, so that sizes below are pixels of the page
        layout = ConstrainedLayoutEngine(w_pad=0.02, h_pad=0.02)
        figure = Figure(figsize=(width / 72, height / 72), dpi=72, layout=layout)
        FigureCanvasSVG(figure)
        drawing(figure.add_subplot())
        with warnings.catch_warnings():
            # the browser draws the text with its own fonts
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
    """The `<svg>` element without the parts of a standalone file, with ids unique on the page."""
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
        # other ids are dropped: they are not referenced and would clash between plots
        part.set("id", f"{name}-{own}")
    for attribute in ("clip-path", "style", "d"):
        value = part.get(attribute)
        if value is None:
            continue
        # two decimals are precise enough for a screen
        value = _LONG.sub(r"\1", value)
        if attribute == "clip-path" or "url(" in value:
            value = _ID.sub(rf"#{name}-\1", value)
        value = _FAMILY.sub("", value)
        for variable, mark in PALETTE.items():
            value = value.replace(mark, f"var(--{variable})")
        part.set(attribute, " ".join(value.split()))
