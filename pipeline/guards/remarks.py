"""Which names an annotator may give to its remarks.

A remark stands beside a row, or beside the whole answer. It may not be called as the facts that the frame says there,
for a reader would take it for them: the score and the place of a row, in whatever spelling and however deep, and the
fields of a row at its top. Some names the product reads itself, and what is said under them has one form each.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from speckit_memory.pipeline.model.errors import Unfit

RANKING_WORDS = frozenset({"score", "scores", "rank", "ranks", "ranking", "position", "positions", "order"})
"""Names that no remark has: they would let stage 4 contradict the ranking."""
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
"""What an answer says of a row in fields of its own."""
WHOLE_FIELDS = frozenset({"warnings", "degraded"})
"""What an answer says of the whole in fields of its own."""
STATES = ("HOT", "WARM", "COLD", "DORMANT", "ARCHIVED", "UNKNOWN")


@lru_cache(4096)
def bare(name: str) -> str:
    """The letters of a name alone, small and without width: "Ｓcore_1" and "s-c-o-r-e" read "score"."""
    return "".join(filter(str.isalpha, unicodedata.normalize("NFKC", name).casefold()))


_RANKING = frozenset(map(bare, RANKING_WORDS))
_ROW, _WHOLE = frozenset(map(bare, ROW_FIELDS)), frozenset(map(bare, WHOLE_FIELDS))


def names_the_ranking(name: str) -> bool:
    """Whether a name is that of a score or a place."""
    return bare(name) in _RANKING


def check_row_names(remarks: Mapping[str, Sequence[Any]]) -> None:
    """Raises Unfit when remarks about rows stand under a name of the row's own, or in a form that is not their own.

    `remarks` holds what is said of all rows under each name.
    """
    for name, values in remarks.items():
        if bare(name) in _ROW:
            raise Unfit(f"returned a note '{name}', which is a field of every row; accepted: another name")
        if name in _OF_ROW:
            _check_form(name, values, _OF_ROW[name])


def check_whole_names(remarks: dict[str, Any]) -> None:
    """The same for remarks about the whole answer."""
    for name, value in remarks.items():
        if bare(name) in _WHOLE:
            raise Unfit(f"returned a note '{name}', which the answer says itself; accepted: another name")
        if name in _OF_WHOLE:
            _check_form(name, [value], _OF_WHOLE[name])
    if "overflow" in remarks and "token_budget" not in remarks:
        raise Unfit("returned a note 'overflow' without the note 'token_budget'")


Form = tuple[str, Callable[[Sequence[Any]], bool]]
"""What a value is, in words, and whether all of several are that."""


def _check_form(name: str, values: Sequence[Any], form: Form) -> None:
    if not form[1](values):
        raise Unfit(f"returned a note '{name}' in a form of its own; accepted: {form[0]}")


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
