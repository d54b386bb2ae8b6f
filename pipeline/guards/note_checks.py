"""Checks of an annotator's answer: notes as plain JSON values, and a mask."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from operator import itemgetter, sub
from typing import Any

import numpy as np

from speckit_memory.pipeline.guards.remarks import check_row_names, check_whole_names, names_the_ranking
from speckit_memory.pipeline.model.columns import JSON, Notes, Pool
from speckit_memory.pipeline.model.copying import absent, array, pairs, row_of, text, values_of
from speckit_memory.pipeline.model.describing import shape_of
from speckit_memory.pipeline.model.errors import InvalidComponentOutput, StageInvariantError
from speckit_memory.pipeline.ports import Unavailable

DEEPEST = 16
"""Maximum nesting of lists and mappings."""
MOST_VALUES = 200_000
"""Maximum number of values in one step's notes, about the whole and all rows together."""
MOST_TEXT = 50_000_000
"""Maximum number of characters, likewise: enough for the sections of many long documents."""
MOST_WARNINGS = 100
MOST_WARNED = 10_000
"""Maximum number of characters of a warning."""
MOST_OF_ROW, MOST_OF_WHOLE = (1_000, 20_000), (20_000, 100_000)
"""Maximum numbers of values and of characters in the remarks about one row and about the whole: larger answers could
not be sent. Sections are the memory's own text, and are not counted here."""
MOST_ALIKE, MOST_SAID = 8, 20_000
"""Maximum number of names, and of values of all rows together, of uniform notes, which are not counted one by one."""
ACCEPTED = "accepted: None, True, False, whole numbers of 64 bits, finite numbers, texts, and lists and dicts of these"


def check_notes(answer: object, pool: Pool, step: str) -> Notes | Unavailable:
    """Raises unless the notes are about ranked ids only, mention no score or position, and the mask fits."""
    try:
        return absent(answer, Notes) or _notes(answer, pool)
    except InvalidComponentOutput as unfit:
        raise StageInvariantError(step, unfit.violation) from None


def check_sections(notes: Notes | Unavailable, anchors: tuple[str, ...], step: str) -> Notes | Unavailable:
    """Raises if notes return sections that were not requested: they are shown in place of the memory's text."""
    # uniform remarks are built one by one on access, and few of them have sections
    if isinstance(notes, Notes) and not (isinstance(notes.by_id, _Alike) and "sections" not in notes.by_id.names):
        named = {section["anchor"] for note in notes.by_id.values() for section in note.get("sections", ())}  # type: ignore[union-attr, index]  # their form has been checked
        if not named <= set(anchors):
            raise StageInvariantError(step, "returned sections that the query does not request")
    return notes


def _notes(answer: object, pool: Pool) -> Notes:
    by_id, overall, warnings, keep = values_of(answer, Notes)
    copier = _Copier(frozenset(pool.candidates.channels))
    return Notes(
        _rows(by_id, copier, pool) if by_id or type(by_id) is not dict else {},
        _check_overall(overall, copier) if overall or type(overall) is not dict else {},
        row_of(warnings, lambda said: text(said, "one of the warnings", MOST_WARNED), "warnings", MOST_WARNINGS),
        None if keep is None else array(keep, np.bool_, pool.ids.shape, "mask"),
    )


def _check_overall(overall: object, copier: _Copier) -> dict[str, JSON]:
    whole = copier.mapping(overall, "the notes about the whole", *MOST_OF_WHOLE)
    check_whole_names(whole)
    return whole


def _rows(by_id: object, copier: _Copier, pool: Pool) -> Mapping[int, Mapping[str, JSON]]:
    ranked = frozenset(pool.ids.tolist())
    if alike := _alike(by_id, ranked):
        return alike
    rows = copier.rows(by_id, ranked)
    check_row_names({name: [row[name] for row in rows.values() if name in row] for name in set().union(*rows.values())})
    return rows


class _Alike(Mapping[int, Mapping[str, JSON]]):
    """Remarks about rows that all have the same names, stored as one column of values per name.

    The remarks of a row are built on access, since few of the ranked rows are served.
    """

    __slots__ = ("_columns", "_places", "_which")

    def __init__(self, which: dict[int, int], places: dict[int, int], columns: dict[str, _Column]) -> None:
        """`which` maps a row to the number of its remark, and `places` that number to its index in the columns."""
        self._which = which
        self._places = places
        self._columns = columns

    @property
    def names(self) -> Collection[str]:
        """The names that every remark has."""
        return self._columns.keys()

    def __getitem__(self, row: int) -> dict[str, JSON]:
        place = self._places[self._which[row]]
        return {name: column.at(place) for name, column in self._columns.items()}

    def __iter__(self) -> Iterator[int]:
        return iter(self._which)

    def __len__(self) -> int:
        return len(self._which)

    def __contains__(self, row: object) -> bool:
        return row in self._which


class _Column:
    """The values of one name: either one value per remark, or lists, concatenated in `said` with their `ends`."""

    __slots__ = ("ends", "said")

    def __init__(self, values: list[Any]) -> None:
        """Store texts and numbers, or a copy of lists of them."""
        self.said: list[Any] = values
        self.ends: list[int] | None = None
        if set(map(type, values)) == {list}:
            self.said, self.ends = [], []
            for value in values:
                self.said += value
                self.ends.append(len(self.said))

    def at(self, place: int) -> JSON:
        if self.ends is None:
            value: JSON = self.said[place]
            return value
        # ends[i] is the end of list i in `said`, and the start of list i + 1.
        return self.said[self.ends[place - 1] if place else 0 : self.ends[place]]

    def values(self) -> list[JSON]:
        return self.said if self.ends is None else list(map(self.at, range(len(self.ends))))

    def most(self) -> int:
        """The maximum number of values of one remark."""
        return 1 if self.ends is None else max(map(sub, self.ends, [0, *self.ends]))

    def longest(self) -> int | None:
        """The length of the longest text; None if a value is neither ASCII text nor a 64-bit integer."""
        kinds = set(map(type, self.said))
        if kinds == {int}:
            # 20 characters: a sign and 19 digits. The open lower bound excludes -2⁶³, as `bit_length() <= 63` does
            # elsewhere.
            return 20 if min(self.said) > -(2**63) and max(self.said) < 2**63 else None
        return max(map(len, self.said)) if kinds == {str} and "".join(self.said).isascii() else None


def _alike(by_id: object, ranked: frozenset[int]) -> _Alike | None:
    """The remarks if every row has the same few names with short texts, numbers, or lists of such; otherwise None.

    This is the usual form of a step that says the same, or one of a few things, about every row. The distinct remarks
    are then checked once instead of row by row.
    """
    if type(by_id) is not dict or not by_id:
        return None
    ids, remarks = list(by_id), list(by_id.values())
    if set(map(type, ids)) != {int} or not ranked.issuperset(ids):
        return None
    # Rows often share one remark object, so identity finds the distinct remarks without comparing their content.
    which = list(map(id, remarks))
    # id of a remark to the remark; `remarks` keeps them alive, so that no id is used twice.
    different = dict(zip(which, remarks, strict=True))
    said: list[dict[object, object]] = list(different.values())
    if set(map(type, said)) != {dict}:
        return None
    names = list(said[0])
    if not 0 < len(names) <= MOST_ALIKE or set(map(len, said)) != {len(names)}:
        return None
    if not all(type(name) is str and name.isascii() and not names_the_ranking(name) for name in names):
        return None
    columns: dict[str, _Column] = {}
    values, characters = 0, sum(len(str(name)) for name in names)
    for name in names:
        try:
            column = _Column(list(map(itemgetter(name), said)))
        except KeyError:  # the same number of names, but different ones
            return None
        if (longest := column.longest()) is None:
            return None
        columns[name] = column  # type: ignore[index]  # checked above to be a text
        values += column.most()
        characters += column.most() * longest
    # Half of the limit, since `_count` counts a name and its value as two.
    if values > MOST_OF_ROW[0] // 2 or characters > MOST_OF_ROW[1] or values * len(ids) > MOST_SAID:
        return None
    check_row_names({name: column.values() for name, column in columns.items()})
    places = dict(zip(different, range(len(said)), strict=True))
    return _Alike(dict(zip(ids, which, strict=True)), places, columns)


class _Copier:
    """Copies the values of one step's notes, and counts them."""

    def __init__(self, names: frozenset[str]) -> None:
        """`names` are channel names, which may be any word: inside a note they are accepted as keys like others."""
        self._names = names
        self._values = MOST_VALUES
        self._text = MOST_TEXT
        self._sections = 0

    def rows(self, found: object, ranked: frozenset[int]) -> dict[int, dict[str, JSON]]:
        """The remarks by row id."""
        rows: dict[int, dict[str, JSON]] = {}
        for memory, remark in pairs(found, "notes by id", MOST_VALUES):
            if type(memory) is not int:
                raise InvalidComponentOutput(
                    f"returned {shape_of(memory)} as an id of its notes; accepted: a plain int"
                )
            if memory not in ranked:
                foreign = str(memory) if memory.bit_length() <= 64 else "one of more than 64 bits"
                raise InvalidComponentOutput(f"returned ids that are not in the ranking: [{foreign}]")
            rows[memory] = self.mapping(remark, f"the notes of {memory}", *MOST_OF_ROW)
        return rows

    def mapping(self, found: object, where: str, most: int, longest: int) -> dict[str, JSON]:
        """The remarks about a row or the whole: at most `most` values and `longest` characters, not counting sections.

        Args:
            found: The mapping that the annotator returned.
            where: The place, for the message.
            most: Maximum number of values.
            longest: Maximum number of characters outside sections.

        Raises:
            InvalidComponentOutput: If a value is not accepted or a limit is exceeded.
        """
        # Sections are deducted: `_text + _sections` only falls by characters outside of them.
        values, characters = self._values, self._text + self._sections
        plain = self._entries(pairs(found, where, MOST_VALUES), where, 1)
        if values - self._values > most or characters - self._text - self._sections > longest:
            raise InvalidComponentOutput(f"returned more than {most:,} values or {longest:,} characters in {where}")
        return plain

    def _entries(self, found: list[tuple[object, object]], where: str, depth: int) -> dict[str, JSON]:
        plain: dict[str, JSON] = {}
        self._count(2 * len(found), 0)
        for key, value in found:
            if not issubclass(type(key), str):
                raise InvalidComponentOutput(f"returned {shape_of(key)} as a key in {where}; accepted: a text")
            name = self._string(key, where)
            if names_the_ranking(name) and (depth == 1 or name not in self._names):
                raise InvalidComponentOutput(f"mentions the ranking in its notes: ['{name}'] in {where}")
            before = self._text
            plain[name] = self._value(value, where, depth + 1)
            if depth == 1 and name == "sections":
                self._sections += before - self._text
        return plain

    def _count(self, values: int, characters: int) -> None:
        self._values -= values
        self._text -= characters
        if self._values < 0 or self._text < 0:
            raise InvalidComponentOutput(
                f"returned more than {MOST_VALUES:,} values or {MOST_TEXT:,} characters in its notes"
            )

    def _value(self, found: object, where: str, depth: int) -> JSON:
        kind = type(found)
        if found is None or kind is bool:
            return found  # type: ignore[return-value]  # None, True or False
        if kind is str or issubclass(kind, str):
            return self._string(found, where)
        if issubclass(kind, int):
            whole = int.__int__(found)  # type: ignore[arg-type]  # its class has just been checked
            if whole.bit_length() > 63:
                raise InvalidComponentOutput(f"returned a number of more than 64 bits in {where}; {ACCEPTED}")
            return whole
        if issubclass(kind, float):
            real = float.__float__(found)  # type: ignore[arg-type]  # likewise
            if not abs(real) < float("inf"):
                raise InvalidComponentOutput(f"returned NaN or infinity in {where}; {ACCEPTED}")
            return real
        if depth > DEEPEST:
            raise InvalidComponentOutput(f"returned values nested deeper than {DEEPEST} in {where}")
        if issubclass(kind, dict):
            return self._entries(pairs(found, where, MOST_VALUES), where, depth)
        if kind is list or kind is tuple:
            self._count(len(found), 0)  # type: ignore[arg-type]  # likewise
            return [self._value(item, where, depth + 1) for item in found]  # type: ignore[attr-defined]  # likewise
        raise InvalidComponentOutput(f"returned {shape_of(found)} in {where}; {ACCEPTED}")

    def _string(self, found: object, where: str) -> str:
        if type(found) is str and len(found) < 64 and found.isascii():
            return found
        plain = text(found, where, self._text)
        self._count(0, len(plain))
        return plain
