"""The names that an annotator may give to its remarks.

A remark is shown next to a row, or next to the whole answer. It may not have the name of a fact that the frame reports
there, since a reader would confuse the two: the score and position of a row, in any spelling and at any depth, and the
fields of a row at the top level. Some names are read by the product itself; their values have a fixed form.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from speckit_memory.pipeline.model.errors import InvalidComponentOutput

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
