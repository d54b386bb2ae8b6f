"""Renders short Markdown for language models in which stored text cannot break out of its place."""

from __future__ import annotations

import re
from typing import Any

TEXT_FIELD = "memory_text"
"""The field that contains stored text. Its name tells a client that the text is data, not instructions."""
_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\s]+")
"""Blanks, everything that some readers treat as a line end, and bidirectional control characters."""
_UNSEEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Invisible characters with an effect: terminal control characters and bidirectional controls."""


def one_line(text: str) -> str:
    """The text on a single line, so that no title or key can start a new one."""
    # also neutralises bidirectional controls, which could reorder the rest of the line
    return _BREAKS.sub(" ", text).strip()


def quote_text(text: str) -> str:
    """The text as a quotation. Every line is marked, so that none can end the quotation; invisible characters are
    escaped."""
    spelled = _UNSEEN.sub(lambda sign: ascii(sign[0])[1:-1], text)
    return "\n".join(f"> {line}".rstrip() for line in spelled.splitlines())


def about(*parts: str) -> str:
    """Joins facts about one item into a line; empty parts are left out."""
    return " · ".join(part for part in map(one_line, parts) if part)


def fields(values: dict[str, Any]) -> str:
    """Names and values in one line, without empty values."""
    shown = ((name.replace("_", " "), value) for name, value in values.items() if value not in ("", None, [], {}))
    return about(*(f"{name} {plain_value(value)}" for name, value in shown))


def plain_value(value: Any) -> str:
    """A value as text: yes or no, a list or mapping in one line."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name} {plain_value(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(plain_value, value))
    return str(value)
