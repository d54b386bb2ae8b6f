"""Builds HTML and SVG elements as text; whatever is not an element itself is escaped."""

from __future__ import annotations

from html import escape

from speckit_memory.server.console.output import printable

VOID = frozenset({"meta"})
"""Elements without contents and without an end tag."""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(tag: str, *contents: str, **attributes: object) -> Markup:
    """Return an element.

    Control characters and bidirectional controls of texts are spelled out, as on a terminal, before HTML is escaped.

    Args:
        tag: The name of the element.
        contents: Texts, which are escaped, and `Markup`, which is not.
        attributes: By name, with `_` in the place of `-` and one behind a Python keyword; None is left out.
    """
    named = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_escaped(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{named}>" if tag in VOID else f"<{tag}{named}>{joined(*contents)}</{tag}>")


def joined(*contents: str) -> Markup:
    """Return texts, which are escaped, and elements one after another."""
    return Markup("".join(part if isinstance(part, Markup) else _escaped(part) for part in contents))


def _escaped(text: str) -> str:
    return escape(printable(text))
