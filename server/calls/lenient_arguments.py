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
from speckit_memory.errors.synonyms import plain

TO_THE_LETTER = frozenset(
    {"confirm", "confirmName", "skipCheckpoint", "skipPreflight", "clearExisting", "force", "promote"}
)
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

SEPARATORS = frozenset(",;，；、")
"""With one of them (some are of other scripts), or in several lines, a text may be several items: which ones, only its
writer knows."""
NO_ITEM = frozenset({"none", "null", "nil", "undefined"})

_NOTHING = object()


@dataclass(frozen=True, slots=True)
class AsMeant:
    """Arguments in the form that the parameters ask for, and what was changed for that, by the parameter."""

    arguments: dict[str, Any]
    notes: Mapping[str, str]


class Parameters:
    """The parameters of a tool, which tell what an argument can have been meant for."""

    def __init__(self, schema: Mapping[str, Any], *, destructive: bool = False) -> None:
        """From the JSON Schema of all parameters together, as it is sent.

        Of a `destructive` tool none is left open by a text that says so: what its caller gave may be what narrows or
        withholds the deed, such as a number of days or a dry run.
        """
        self._opened = not destructive
        self._forms: dict[str, Mapping[str, Any]] = schema.get("properties", {})
        times = Counter(map(_plain, self._forms))
        self._named = {_plain(name): name for name in self._forms if times[_plain(name)] == 1}

    def as_meant(self, arguments: Mapping[str, Any]) -> AsMeant:
        """Valid arguments as they are. What is no spelling of a parameter, or no form of a value of it, stays too, for
        the validation to refuse it."""
        spelt = self._spelt(arguments)
        filled = frozenset(spelt.values())
        read: dict[str, Any] = {}
        notes: dict[str, str] = {}
        for written, value in arguments.items():
            name = spelt.get(written, written)
            said = [f"read as {name}"] if written in spelt else []
            if name in self._forms and name not in TO_THE_LETTER:
                if written in filled and self._open(name, value):
                    continue  # another spelling fills it, and the note on that says so
                value, how = self._read(name, value)  # noqa: PLW2901 -- it is the same value, read
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
        return name not in arguments or self._open(name, arguments[name])

    def _open(self, name: str, value: Any) -> bool:
        """Whether a value says that the parameter is left open, and may say so."""
        text = "string" in _types(self._forms[name])
        return self._opened and not text and isinstance(value, str) and value.strip() == "null"

    def _read(self, name: str, value: Any) -> tuple[Any, str]:
        """A value in a form that its parameter asks for, and how it was read."""
        if self._open(name, value):
            return _NOTHING, "left open, as the text 'null' says"
        return _read(self._forms[name], value)


def told(notes: Mapping[str, str], most_characters: int) -> tuple[str, ...]:
    """The notes, each a hint; where they would take more characters than that, one hint with how many parameters they
    are about, and with as many of their names as there is room for."""
    hints = tuple(notes.values())
    if sum(map(len, hints)) <= most_characters:
        return hints
    said = (
        f"{len(notes)} parameters were read as they were meant" if len(notes) > 1 else "1 parameter was read as meant"
    )
    named = list(notes)[:LISTED]
    while named and len(joint := _joint(said, named, len(notes))) > most_characters:
        named.pop()
    return (joint if named else said,)


def _joint(said: str, named: list[str], times: int) -> str:
    return f"{said}: {', '.join([*named, *(['…'] if len(named) < times else [])])}"


def _plain(name: str) -> str:
    """A name without what tells spellings of it apart; in other scripts, only its writer knows what does."""
    return plain(name) if name.isascii() else name


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
        if _is_one_item(text) and "string" in _types(form.get("items", {})):
            items, how = _read_items(form, [text])
            return items, ", ".join(filter(None, ["read the text as a list of one", how]))
    return text, ""


def _is_one_item(text: str) -> bool:
    """Whether a text can be meant for one item of a list, and for nothing else."""
    plain = text.strip().lower()
    several = len(text.splitlines()) > 1 or not SEPARATORS.isdisjoint(text)
    return bool(plain) and plain not in NO_ITEM and not plain.startswith(("[", "{")) and not several


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
