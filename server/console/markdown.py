"""Short Markdown for a language model. Whatever stored text says, it stays inside the place that it was given."""

from __future__ import annotations

import re
from typing import Any

_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\s]+")
"""Blanks, all that ends a line for some reader, and the marks that turn the direction of text."""
_UNSEEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""What a reader does not see and obeys: signs that a terminal takes for commands, and marks that turn the direction."""


def one_line(text: str) -> str:
    """Text for the middle of a line: no title or key can begin a line of its own."""
    return _BREAKS.sub(" ", text).strip()


def quoted(text: str) -> str:
    """Text as a quotation. Each of its lines is marked, so that nothing in it can end the quotation; what nobody would
    see is spelled out."""
    spelled = _UNSEEN.sub(lambda sign: ascii(sign[0])[1:-1], text)
    return "\n".join(f"> {line}".rstrip() for line in spelled.splitlines())


def about(*parts: str) -> str:
    """What is said of one thing, in one line; empty parts are left out."""
    return " · ".join(part for part in map(one_line, parts) if part)


def fields(values: dict[str, Any]) -> str:
    """Names and values in one line; what is empty is left out."""
    shown = ((name.replace("_", " "), value) for name, value in values.items() if value not in ("", None, [], {}))
    return about(*(f"{name} {_value(value)}" for name, value in shown))


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_value(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_value, value))
    return str(value)
