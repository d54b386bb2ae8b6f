"""Turns results into JSON documents: every field of a dataclass is an entry, under its own name or a given one."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from typing import Any

_DIGITS = 6


def as_document(value: Any) -> Any:
    """The value as plain data for JSON, with figures of six decimals.

    A dataclass may define `ENTRIES`: the place in the document by the name of a field that has another place, or of a
    property that the document holds too. Dots lead into nested objects, "." merges an object into the one around it,
    "" leaves a field out, and "?" before a name leaves out None.
    """
    if is_dataclass(value) and not isinstance(value, type):
        entries: Mapping[str, str] = getattr(value, "ENTRIES", {})
        document: dict[str, Any] = {}
        for name in dict.fromkeys((*(one.name for one in fields(value)), *entries)):
            _place(document, entries.get(name, name), getattr(value, name))
        return document
    if isinstance(value, Mapping):
        return {str(name): as_document(one) for name, one in value.items()}
    if isinstance(value, list | tuple | Set):
        return [as_document(one) for one in value]
    return round(value, _DIGITS) if isinstance(value, float) else value


def _place(document: dict[str, Any], entry: str, value: Any) -> None:
    if not entry or (entry.startswith("?") and value is None):
        return
    plain = as_document(value)
    if entry == ".":
        document.update(plain or {})
        return
    *above, last = entry.removeprefix("?").split(".")
    for step in above:
        document = document.setdefault(step, {})
    document[last] = plain
