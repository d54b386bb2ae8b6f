"""Memories that hold an identifier of the query."""

from __future__ import annotations

import re
from itertools import islice
from unicodedata import normalize

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.contracts import About, ChannelParams
from speckit_memory.pipeline.costs import Cost
from speckit_memory.pipeline.lookup import memories_with
from speckit_memory.pipeline.model import Hits, Query
from speckit_memory.pipeline.ports import FIELDS, Ids, Store
from speckit_memory.pipeline.scales import Scale

_WORD = re.compile(r"\w+(?:[-./]\w+)*")
_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"\d")
_JOINED = re.compile(r"[^\W_]_[^\W_]|[a-z][A-Z]|\d\.\d++\.\d")
"""An underscore within, a capital after a small letter, or a number of three parts."""
_REFERENCE = re.compile(r"(?:[^\W\d_]+[-_])+\d{2,}(?:[-_]\d+)*")
"""Words, a joint and a number: `REQ-006`, `adr_0004`, `CVE-2021-44228`."""
_ISSUE = re.compile(r"(?<!\w)#(\d+)\b")
"""`#4711`, which the index knows as a number."""
_NUMBERED = re.compile(r"(?<!\w)([^\W\d_]{2,})[-_/ ](?!(?:19|20)\d\d\b)0*(\d{1,4})(?![\w-]|\.\d)")
"""A word and a number behind it, as documents of a folder are called: `ADR-0011`, `adr 11`. No year, no version."""
_WIDEST = 5
"""Digits to which the numbers of files are filled up with zeros at most."""
_MOST_NUMBERED = 8
"""So many numbered documents are looked for, those named first."""


_NOTHING = Hits(np.empty(0, np.int64), np.empty(0), Scale.UNIT)


class IdentifierParams(ChannelParams):
    """Parameters of the identifier channel."""

    max_memories: int = Field(
        1, ge=1, le=1000, description="An identifier that more memories hold points to none of them."
    )
    max_reference_memories: int = Field(
        10, ge=1, le=1000, description="The same for references, which are words and a number: REQ-006 or #4711."
    )
    max_words: int = Field(
        60, ge=1, le=100_000, description="A query of more words is pasted text: what it refers to finds nothing."
    )


class Identifier:
    """Memories that hold an identifier of the query as a whole: `REQ-006`, `#4711`, `user_id`, `computeMPAB`, `v1.2.3`.

    Who names one wants the few places where it stands, whatever else the question says; one that more memories hold is
    a word like others and finds nothing here. References may stand in several places, as a requirement does in its
    specification, plan and tasks. A word and a number name the documents whose paths hold both, however many zeros the
    number has there: `ADR 3` is `docs/adr/0003-sessions.md`. A pasted text is looked for itself, not what it refers to:
    a query of more than `max_words` words finds nothing. Of a memory that holds identifiers i = 1 … n, each in df_i
    memories, the score is s / (1 + s) with s = Σ 1 / df_i, (0, 1). Bringing what is found to the top is the work of a
    rerank step.
    Features C2, C3.
    """

    about = About(features=("C2", "C3"), gives=Scale.UNIT)
    Params = IdentifierParams

    def __init__(self, params: IdentifierParams) -> None:
        self._params = params

    def search(self, query: Query, limit: int, store: Store) -> Hits:
        """The `limit` admitted memories with the most telling identifiers."""
        params = self._params
        found: list[Ids] = []
        if len(query.text.split()) > params.max_words:
            return _NOTHING
        for term, reference in identifiers(query.text, store).items():
            holders = memories_with(term, store.lexicon)
            if 0 < len(holders) <= (params.max_reference_memories if reference else params.max_memories):
                found.append(holders)
        found += [ids for ids in numbered(query, store) if 0 < len(ids) <= params.max_reference_memories]
        if not found:
            return _NOTHING
        ids, rows = np.unique(np.concatenate(found), return_inverse=True)
        shares = np.concatenate([np.full(len(holders), 1.0 / len(holders)) for holders in found])
        strength = np.bincount(rows, weights=shares, minlength=len(ids))
        admitted = store.attributes.scope(query.wanted, query.now).admits(ids)
        return Hits.ordered(ids[admitted], (strength / (1.0 + strength))[admitted], Scale.UNIT, limit=limit)

    def cost(self, query: Query, rows: int, store: Store) -> Cost:  # noqa: ARG002
        """The postings of the identifiers in every field, and those of the paths of what is numbered."""
        indexes = [store.lexicon.index(field) for field in FIELDS]
        terms = identifiers(query.text, store)
        paths = store.lexicon.index("path")
        called = {term for word, numbers in _numbers(query, store) for term in (word, *numbers)}
        named = sum(index.holders(term) for index in indexes for term in terms)
        return Cost(postings=named + sum(map(paths.holders, called)))


def identifiers(text: str, store: Store) -> dict[str, bool]:
    """The identifiers of a text, each as the one token that the index has of it, and whether it is a reference."""
    plain = normalize("NFKC", text)
    words = {word: bool(_REFERENCE.fullmatch(word)) for word in _WORD.findall(plain) if _is_identifier(word)}
    words |= dict.fromkeys(_ISSUE.findall(plain), True)
    # The analyser gives the whole first; what it breaks up without keeping it is no identifier to the index.
    cut = ((store.lexicon.analyse(word), reference) for word, reference in words.items())
    return {tokens[0]: reference for tokens, reference in cut if tokens}


def numbered(query: Query, store: Store) -> list[Ids]:
    """For each word of a query with a number behind it, the memories whose paths hold both, ascending."""
    paths = store.lexicon.index("path")

    def holders(*terms: str) -> Ids:
        rows = [paths.postings(term).rows for term in terms if paths.holders(term)]
        return paths.ids[np.unique(np.concatenate(rows))] if rows else np.empty(0, np.int64)

    return [np.intersect1d(holders(word), holders(*numbers)) for word, numbers in _numbers(query, store)]


def _numbers(query: Query, store: Store) -> list[tuple[str, list[str]]]:
    """Words of a query, each with the ways in which the number behind it may be written in a path."""
    called = dict.fromkeys(_NUMBERED.findall(normalize("NFKC", query.text)))
    cut = ((store.lexicon.analyse(word), number) for word, number in islice(called, _MOST_NUMBERED))
    return [
        (tokens[0], [number.zfill(width) for width in range(len(number), _WIDEST + 1)])
        for tokens, number in cut
        if tokens and tokens[0] in query.terms
    ]


def _is_identifier(word: str) -> bool:
    """Whether a word has a letter and a digit, or is joined of several."""
    return bool(_LETTER.search(word) and _DIGIT.search(word)) or bool(_JOINED.search(word))
