"""Checks of an annotator's answer: notes as JSON values about ranked rows, their names, and a mask.

A remark is shown next to a row, or next to the whole answer. It may not have the name of a fact that the frame reports
there, since a reader would confuse the two: the score and position of a row, in any spelling and at any depth, and the
fields of a row at the top level. Some names are read by the product itself; their values have a fixed form.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np

from speckit_memory.pipeline.model.columns import Notes, Pool
from speckit_memory.pipeline.model.describing import shape_of
from speckit_memory.pipeline.model.errors import InvalidComponentOutput, StageInvariantError
from speckit_memory.pipeline.model.field_checks import absent, array, mapping, row_of, text
from speckit_memory.pipeline.ports import Unavailable

RANKING_WORDS = frozenset({"score", "scores", "rank", "ranks", "ranking", "position", "positions", "order"})
"""Forbidden names of remarks: they would let stage 4 contradict the ranking."""
ROW_FIELDS = frozenset(
    {
        "id",
        "key",
        "title",
        "folder",
        "tier",
        "channels",
        "steps",
        "snippet",
        "reason",
        "heading",
        "lines",
        "chunk_hits",
        "notes",
        "content",
        "memory_text",
    }
)
"""The fields of a row in an answer."""
WHOLE_FIELDS = frozenset({"warnings", "degraded"})
"""The fields of a whole answer."""
STATES = ("HOT", "WARM", "COLD", "DORMANT", "ARCHIVED", "UNKNOWN")


@lru_cache(4096)
def bare(name: str) -> str:
    """The letters of a name only, case-folded and NFKC-normalised: "Ｓcore_1" and "s-c-o-r-e" give "score"."""
    return "".join(filter(str.isalpha, unicodedata.normalize("NFKC", name).casefold()))


_RANKING = frozenset(map(bare, RANKING_WORDS))
_ROW, _WHOLE = frozenset(map(bare, ROW_FIELDS)), frozenset(map(bare, WHOLE_FIELDS))


def names_the_ranking(name: str) -> bool:
    """Whether a name denotes a score or a position."""
    return bare(name) in _RANKING


def check_row_names(remarks: Mapping[str, Sequence[Any]]) -> None:
    """Raises InvalidComponentOutput if a remark has the name of a row's field, or a reserved name but another form.

    `remarks` holds the values of all rows under each name.
    """
    for name, values in remarks.items():
        if bare(name) in _ROW:
            raise InvalidComponentOutput(
                f"returned a note '{name}', which is a field of every row; accepted: another name"
            )
        if name in _OF_ROW:
            _check_form(name, values, _OF_ROW[name])


def check_whole_names(remarks: dict[str, Any]) -> None:
    """The same for remarks about the whole answer."""
    for name, value in remarks.items():
        if bare(name) in _WHOLE:
            raise InvalidComponentOutput(
                f"returned a note '{name}', which is a field of every answer; accepted: another name"
            )
        if name in _OF_WHOLE:
            _check_form(name, [value], _OF_WHOLE[name])
    if "overflow" in remarks and "token_budget" not in remarks:
        raise InvalidComponentOutput("returned a note 'overflow' without the note 'token_budget'")


Form = tuple[str, Callable[[Sequence[Any]], bool]]
"""The form of a value in words, and a test whether all of several values have it."""


def _check_form(name: str, values: Sequence[Any], form: Form) -> None:
    if not form[1](values):
        raise InvalidComponentOutput(f"returned a note '{name}' in another form; accepted: {form[0]}")


def _all(kind: type, values: Iterable[Any]) -> bool:
    return set(map(type, values)) <= {kind}


def _lists_of(kind: type) -> Callable[[Sequence[Any]], bool]:
    return lambda values: _all(list, values) and _all(kind, chain.from_iterable(values))


def _counts(*names: str) -> Callable[[Sequence[Any]], bool]:
    return lambda values: _all(dict, values) and all(_all(int, map(value.get, names)) for value in values)


def _sections(values: Sequence[Any]) -> bool:
    return _lists_of(dict)(values) and all(
        section.keys() == {"anchor", "text"} and _all(str, section.values()) for section in chain.from_iterable(values)
    )


_MEMORIES: Form = ("a list of ids", _lists_of(int))
_OF_ROW: dict[str, Form] = {
    "state": (f"one of {', '.join(STATES)}", lambda values: _all(str, values) and set(values) <= set(STATES)),
    "also_at": _MEMORIES,
    "superseded_by": _MEMORIES,
    "found_by": ("a list of names", _lists_of(str)),
    "sent_before": ("a list of texts", _lists_of(str)),
    "sections": ("a list of {anchor, text}", _sections),
}
_OF_WHOLE: dict[str, Form] = {
    "evidence_gap": ("true or false", lambda values: _all(bool, values)),
    "token_budget": ("a whole number above 0", lambda values: _all(int, values) and min(values) > 0),
    "overflow": ("the counts rows, kept and tokens_wanted", _counts("rows", "kept", "tokens_wanted")),
    "deduplicated": (
        "the count tokens_each, and the action line or mark",
        lambda values: (
            _counts("tokens_each")(values) and all(value.get("action") in ("line", "mark") for value in values)
        ),
    ),
    "anchors": (
        "the counts characters_sent, characters_whole and hidden",
        _counts("characters_sent", "characters_whole", "hidden"),
    ),
}

DEEPEST = 16
"""Maximum nesting of lists and mappings."""
MOST_VALUES = 200_000
"""Maximum number of values in one step's notes, about the whole and all rows together."""
MOST_WARNINGS = 100
MOST_WARNED = 10_000
"""Maximum number of characters of a warning."""
MOST_OF_ROW, MOST_OF_WHOLE = (1_000, 20_000), (20_000, 100_000)
"""Maximum numbers of values and of characters in the remarks about one row and about the whole: larger answers could
not be sent. Sections are the memory's own text, and are not counted here."""
ACCEPTED = "accepted: None, True, False, whole numbers of 64 bits, finite numbers, texts, and lists and dicts of these"


def check_notes(answer: object, pool: Pool, anchors: tuple[str, ...], step: str) -> Notes | Unavailable:
    """Raises unless the notes are about ranked ids only, mention no score or position, and the mask fits.

    Args:
        answer: The notes of the annotator, or Unavailable.
        pool: The ranked rows.
        anchors: The sections that the query requests: sections are shown in place of the memory's text.
        step: Id of the step, for the message.

    Raises:
        StageInvariantError: For any other answer.
    """
    try:
        if none := absent(answer, Notes):
            return none
        assert isinstance(answer, Notes)
        channels = frozenset(pool.candidates.channels)
        if mapping(answer.by_id, "notes by id", MOST_VALUES):
            _check_rows(answer.by_id, pool, channels, anchors)
        if answer.overall or type(answer.overall) is not dict:
            _Counter(channels, "the notes about the whole").remark(answer.overall, *MOST_OF_WHOLE)
            check_whole_names(dict(answer.overall))
        row_of(answer.warnings, lambda said: text(said, "one of the warnings", MOST_WARNED), "warnings", MOST_WARNINGS)
        if answer.keep is not None:
            array(answer.keep, np.bool_, pool.ids.shape, "mask")
    except InvalidComponentOutput as unfit:
        raise StageInvariantError(step, unfit.violation) from None
    return answer


def _check_rows(by_id: Mapping[Any, Any], pool: Pool, channels: frozenset[str], anchors: tuple[str, ...]) -> None:
    if kinds := set(map(type, by_id)) - {int}:
        found = min(kind.__name__ for kind in kinds)
        raise InvalidComponentOutput(f"returned {found} as an id of its notes; accepted: a plain int")
    if foreign := by_id.keys() - set(pool.ids.tolist()):
        first = min(foreign)
        shown = str(first) if first.bit_length() <= 64 else "one of more than 64 bits"
        raise InvalidComponentOutput(f"returned ids that are not in the ranking: [{shown}]")
    # Rows often share one remark, which is checked once.
    different = {id(remark): (row, remark) for row, remark in by_id.items()}.values()
    total = 0
    for row, remark in different:
        total += _Counter(channels, f"the notes of {row}").remark(remark, *MOST_OF_ROW)
        if total > MOST_VALUES:
            raise InvalidComponentOutput(f"returned more than {MOST_VALUES:,} values in its notes")
    remarks = [remark for _, remark in different]
    names = set().union(*remarks)
    check_row_names({name: [remark[name] for remark in remarks if name in remark] for name in names})
    if "sections" in names:
        anchored = {section["anchor"] for remark in remarks for section in remark.get("sections", ())}
        if not anchored <= set(anchors):
            raise InvalidComponentOutput("returned sections that the query does not request")


class _Counter:
    """Checks the values of one remark, and counts them and their characters."""

    __slots__ = ("_channels", "_characters", "_values", "_where")

    def __init__(self, channels: frozenset[str], where: str) -> None:
        """`channels` may be any words: inside a note they are accepted as keys like others."""
        self._channels = channels
        self._where = where
        self._values = self._characters = 0

    def remark(self, found: Any, most: int, longest: int) -> int:
        """Raises unless the remark holds at most `most` values and `longest` characters; returns how many values."""
        for name, value in mapping(found, self._where, MOST_VALUES).items():
            self._key(name, nested=False)
            counted = self._characters
            self._value(value, 2)
            if name == "sections":
                self._characters = counted
        if self._values > most or self._characters > longest:
            raise InvalidComponentOutput(
                f"returned more than {most:,} values or {longest:,} characters in {self._where}"
            )
        return self._values

    def _key(self, name: Any, *, nested: bool) -> None:
        if type(name) is not str:
            raise InvalidComponentOutput(f"returned {shape_of(name)} as a key in {self._where}; accepted: a text")
        if names_the_ranking(name) and not (nested and name in self._channels):
            raise InvalidComponentOutput(f"mentions the ranking in its notes: ['{name}'] in {self._where}")
        self._values += 1
        self._text(name)

    def _text(self, found: str) -> None:
        if not found.isascii():
            text(found, self._where, len(found))
        self._characters += len(found)

    def _value(self, found: Any, depth: int) -> None:
        self._values += 1
        kind = type(found)
        if kind is str:
            self._text(found)
        elif kind is list or kind is dict:
            if depth > DEEPEST or self._values > MOST_VALUES:
                raise InvalidComponentOutput(
                    f"returned values nested deeper than {DEEPEST}, or more than {MOST_VALUES:,}, in {self._where}"
                )
            if kind is dict:
                for name in found:
                    self._key(name, nested=True)
            for value in found.values() if kind is dict else found:
                self._value(value, depth + 1)
        elif not (
            found is None
            or kind is bool
            or (kind is int and found.bit_length() <= 63)
            or (kind is float and math.isfinite(found))
        ):
            raise InvalidComponentOutput(f"returned {shape_of(found)} in {self._where}; {ACCEPTED}")
