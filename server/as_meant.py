"""Arguments as they were meant, where clients write one thing in another form, and a note on each that was changed."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from speckit_memory.errors.echo import LISTED

TO_THE_LETTER = frozenset({"confirm", "confirmName", "skipCheckpoint", "clearExisting", "force", "promote"})
"""Parameters that allow what cannot be taken back, or waive a check that guards against it. They are taken as they are
written or not at all, name and value: a slip of a client must never be what lets memories go."""
LONGEST_NAME = 64
"""Characters of a name that may be another spelling of one of ours."""
LONGEST_NUMBER = 32
MOST_ITEMS = 1_000
"""Items of a list that are read; a longer one is longer than any list may be."""
WHOLE = re.compile(r"-?[0-9]+", re.ASCII)
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?", re.ASCII)
EXACT = 2.0**53
"""Up to here a floating-point number without a fraction is one whole number and no other."""

_NOTHING = object()


@dataclass(frozen=True, slots=True)
class AsMeant:
    """Arguments in the form that the parameters ask for, and what was changed for that, by the parameter."""

    arguments: dict[str, Any]
    notes: Mapping[str, str]


class Parameters:
    """The parameters of a tool, which tell what an argument can have been meant for."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """From the JSON Schema of all parameters together, as it is sent."""
        self._forms: dict[str, Mapping[str, Any]] = schema.get("properties", {})
        plain = Counter(map(_plain, self._forms))
        self._named = {_plain(name): name for name in self._forms if plain[_plain(name)] == 1}

    def as_meant(self, arguments: Mapping[str, Any]) -> AsMeant:
        """Valid arguments as they are. What is no spelling of a parameter, or no form of a value of it, stays too, for
        the validation to refuse it."""
        spelt = self._spelt(arguments)
        read: dict[str, Any] = {}
        notes: dict[str, str] = {}
        for written, value in arguments.items():
            name = spelt.get(written, written)
            said = [f"read as {name}"] if written in spelt else []
            if name in self._forms and name not in TO_THE_LETTER:
                value, how = _read(self._forms[name], value)  # noqa: PLW2901 -- it is the same value, read
                said += [how] if how else []
            if value is not _NOTHING:
                read[name] = value
            if said:
                notes[name] = f"{written}: {', '.join(said)}"
        return AsMeant(read, notes)

    def _spelt(self, arguments: Mapping[str, Any]) -> dict[str, str]:
        """The names that are other spellings of parameters: each the only one, and its own name is not there."""
        meant = {
            name: self._named[_plain(name)]
            for name in arguments
            if name not in self._forms and len(name) <= LONGEST_NAME and _plain(name) in self._named
        }
        times = Counter(meant.values())
        return {
            written: name
            for written, name in meant.items()
            if times[name] == 1 and self._absent(name, arguments) and name not in TO_THE_LETTER
        }

    def _absent(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Whether a parameter is not given by its own name, or left open by that."""
        return name not in arguments or _read(self._forms[name], arguments[name])[0] is _NOTHING


def told(notes: Mapping[str, str], most_characters: int) -> tuple[str, ...]:
    """The notes, each a hint; the parameters alone in one hint, where they would take more characters than that."""
    hints = tuple(notes.values())
    if sum(map(len, hints)) <= most_characters:
        return hints
    return (f"read as they were meant: {', '.join(list(notes)[:LISTED])}",)


def _plain(name: str) -> str:
    """A name without what tells spellings of it apart."""
    return name.lower().replace("_", "").replace("-", "") if name.isascii() else name


def _read(form: Mapping[str, Any], value: Any) -> tuple[Any, str]:
    """A value in a form that was asked for, and how it was read; itself and nothing where it needs no reading, or where
    there is none."""
    types = _types(form)
    match value:
        case bool():
            return value, ""
        case float() if "integer" in types and "number" not in types and value.is_integer() and abs(value) <= EXACT:
            return int(value), f"read {value!r} as the whole number {int(value)}"
        case str() if "string" not in types:
            return _read_text(form, types, value)
        case str() if "enum" in form and value not in form["enum"]:
            same = [word for word in form["enum"] if isinstance(word, str) and word.lower() == value.lower()]
            return (same[0], f"read '{value}' as '{same[0]}'") if len(same) == 1 else (value, "")
        case list() if "array" in types:
            return _read_items(form, value)
        case _:
            return value, ""


def _read_text(form: Mapping[str, Any], types: list[str], text: str) -> tuple[Any, str]:
    """A text where none was asked for."""
    bare = text.strip() if len(text) <= LONGEST_NUMBER else ""
    if bare == "null":
        return _NOTHING, "left open, as the text 'null' says"
    if "boolean" in types and bare.lower() in ("true", "false"):
        return bare.lower() == "true", f"read the text '{bare}' as {bare.lower()}"
    if "integer" in types and WHOLE.fullmatch(bare):
        return int(bare), f"read the text '{bare}' as the number {int(bare)}"
    if "number" in types and NUMBER.fullmatch(bare) and math.isfinite(number := float(bare)):
        return number, f"read the text '{bare}' as the number {number!r}"
    if "object" in types and isinstance(found := _parsed(text, "{"), dict):
        return found, "read the JSON text as an object"
    if "array" in types:
        if isinstance(found := _parsed(text, "["), list):
            items, how = _read_items(form, found)
            return items, ", ".join(filter(None, ["read the JSON text as a list", how]))
        if text.strip() and not text.lstrip().startswith("[") and "string" in _types(form.get("items", {})):
            items, how = _read_items(form, [text])
            return items, ", ".join(filter(None, ["read the text as a list of one", how]))
    return text, ""


def _read_items(form: Mapping[str, Any], items: list[Any]) -> tuple[list[Any], str]:
    """A list with each item in the form that was asked for."""
    if len(items) > MOST_ITEMS:
        return items, ""
    read = [_read(form.get("items", {}), item) for item in items]
    how = [said for _, said in read if said]
    further = f" and {len(how) - 1:,} more of its values likewise" if len(how) > 1 else ""
    return [item for item, _ in read], how[0] + further if how else ""


def _types(form: Mapping[str, Any]) -> list[str]:
    """The types of the JSON Schema of a value."""
    kind = form.get("type", [])
    return [kind] if isinstance(kind, str) else kind


def _parsed(text: str, first: str) -> object:
    if not text.lstrip().startswith(first):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
