"""Coerces arguments that clients spell or type differently, with a note on each change."""

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
"""Parameters that allow an irreversible action or waive a check against one. Neither their names nor their values are
coerced: a client's slip must never delete memories."""
LONGEST_NAME = 64
"""Length of the longest name that is compared with ours."""
LONGEST_NUMBER = 32
MOST_ITEMS = 1_000
"""Longest list whose items are coerced; no parameter accepts a longer one."""
WHOLE = re.compile(r"-?[0-9]+", re.ASCII)
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?", re.ASCII)
EXACT = 2.0**53
"""Up to here a float without a fraction is exactly one integer."""

SEPARATORS = frozenset(",;，；、")
"""A text with one of these separators (some from other scripts) or with several lines may mean several items, in a way
only its writer knows."""
NO_ITEM = frozenset({"none", "null", "nil", "undefined"})

_NOTHING = object()


@dataclass(frozen=True, slots=True)
class CoercedArguments:
    """Arguments in the form that the parameters require, and notes on the changes by parameter."""

    arguments: dict[str, Any]
    notes: Mapping[str, str]


class LenientParameters:
    """The parameters of a tool, to which arguments are coerced."""

    def __init__(self, schema: Mapping[str, Any], *, destructive: bool = False) -> None:
        """`schema` is the JSON Schema of all parameters as sent to clients.

        `destructive` tools never treat the text "null" as "not given": the argument may limit the action (a number of
        days, a dry run).
        """
        self._opened = not destructive
        self._forms: dict[str, Mapping[str, Any]] = schema.get("properties", {})
        # two parameters with the same plain name would make a spelling ambiguous: neither is coerced
        times = Counter(map(_plain, self._forms))
        self._named = {_plain(name): name for name in self._forms if times[_plain(name)] == 1}

    def as_meant(self, arguments: Mapping[str, Any]) -> CoercedArguments:
        """Coerces arguments. Valid ones are unchanged, and so are those that cannot be coerced: the validation rejects
        them."""
        spelt = self._spelt(arguments)
        filled = frozenset(spelt.values())
        read: dict[str, Any] = {}
        notes: dict[str, str] = {}
        for written, value in arguments.items():
            name = spelt.get(written, written)
            said = [f"read as {name}"] if written in spelt else []
            if name in self._forms and name not in TO_THE_LETTER:
                if written in filled and self._open(name, value):
                    continue  # an argument under another spelling fills it and is noted
                value, how = self._read(name, value)  # noqa: PLW2901 -- it is the same value, read
                said += [how] if how else []
            if value is not _NOTHING:
                read[name] = value
            if said:
                notes[name] = f"{written}: {', '.join(said)}"
        return CoercedArguments(read, notes)

    def _spelt(self, arguments: Mapping[str, Any]) -> dict[str, str]:
        """Maps other spellings to parameter names: only unique spellings, and only if the parameter itself is
        absent."""
        meant = {
            name: self._named[_plain(name)]
            for name in arguments
            if name not in self._forms and len(name) <= LONGEST_NAME and _plain(name) in self._named
        }
        # two spellings of one parameter are ambiguous as well
        times = Counter(meant.values())
        return {
            written: name
            for written, name in meant.items()
            if times[name] == 1 and self._absent(name, arguments) and name not in TO_THE_LETTER
        }

    def _absent(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Whether a parameter is missing under its own name, or given as "null"."""
        return name not in arguments or self._open(name, arguments[name])

    def _open(self, name: str, value: Any) -> bool:
        """Whether a value means "not given", where the parameter allows that."""
        text = "string" in _types(self._forms[name])
        return self._opened and not text and isinstance(value, str) and value.strip() == "null"

    def _read(self, name: str, value: Any) -> tuple[Any, str]:
        """The value in the form its parameter requires, and a note on how it was read."""
        if self._open(name, value):
            return _NOTHING, "not given, as the text 'null' says"
        return _read(self._forms[name], value)


def coercion_hints(notes: Mapping[str, str], most_characters: int) -> tuple[str, ...]:
    """Returns one hint per note. If together they exceed `most_characters`, returns one hint with the number of
    parameters and as many of their names as fit."""
    hints = tuple(notes.values())
    if sum(map(len, hints)) <= most_characters:
        return hints
    said = f"{len(notes)} parameters were read as intended" if len(notes) > 1 else "1 parameter was read as intended"
    named = list(notes)[:LISTED]
    while named and len(joint := _joint(said, named, len(notes))) > most_characters:
        named.pop()
    return (joint if named else said,)


def _joint(said: str, named: list[str], times: int) -> str:
    return f"{said}: {', '.join([*named, *(['…'] if len(named) < times else [])])}"


def _plain(name: str) -> str:
    """A name without case and separators; unchanged if it is not ASCII, where the rules of the script are unknown."""
    return plain(name) if name.isascii() else name


def _read(form: Mapping[str, Any], value: Any) -> tuple[Any, str]:
    """The value in the form required, and a note on how it was read; the value itself and "" if it fits already or
    cannot be coerced."""
    types = _types(form)
    match value:
        # bool is a subclass of int, so it must come first
        case bool():
            return value, ""
        case float() if "integer" in types and "number" not in types and value.is_integer() and abs(value) <= EXACT:
            return int(value), f"read {value!r} as the whole number {int(value)}"
        case str() if "string" not in types:
            return _read_text(form, types, value)
        case str() if "enum" in form and value not in form["enum"]:
            # enum values are matched case-insensitively, but only if exactly one matches
            same = [word for word in form["enum"] if isinstance(word, str) and word.lower() == value.lower()]
            return (same[0], f"read '{value}' as '{same[0]}'") if len(same) == 1 else (value, "")
        case list() if "array" in types:
            return _read_items(form, value)
        case _:
            return value, ""


def _read_text(form: Mapping[str, Any], types: list[str], text: str) -> tuple[Any, str]:
    """Reads a text given for a parameter that is no text."""
    # int() and float() of a long text would be slow and can never be a valid number here
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
    """Whether a text can only mean a single item of a list."""
    plain = text.strip().lower()
    several = len(text.splitlines()) > 1 or not SEPARATORS.isdisjoint(text)
    return bool(plain) and plain not in NO_ITEM and not plain.startswith(("[", "{")) and not several


def _read_items(form: Mapping[str, Any], items: list[Any]) -> tuple[list[Any], str]:
    """The list with each item in the form required."""
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
