"""Memories that hold an identifier of the query."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import islice, takewhile
from unicodedata import normalize

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Hits, Query
from speckit_memory.pipeline.model.costs import StepCostEstimate
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import FIELDS, Ids, Store
from speckit_memory.pipeline.roles.contracts import About, ChannelParams
from speckit_memory.pipeline.running.lookup import memories_with

_WORD = re.compile(r"\w+(?:[-./]\w+)*")
_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"\d")
_JOINED = re.compile(r"[^\W_]_[^\W_]|[a-z][A-Z]|\d\.\d++\.\d")
"""An inner underscore, a capital after a small letter, or a number of three parts."""
_REFERENCE = re.compile(r"(?:[^\W\d_]+[-_])+\d{2,}(?:[-_]\d+)*")
"""Words, a hyphen or underscore, and a number: `REQ-006`, `adr_0004`, `CVE-2021-44228`."""
_ISSUE = re.compile(r"(?<!\w)#(\d+)\b")
"""`#4711`, which is indexed as a number."""
_NUMBERED = re.compile(r"(?<!\w)([^\W\d_]{2,})[-_/ ](?!(?:19|20)\d\d\b)0*(\d{1,4})(?![\w-]|\.\d)")
"""A word followed by a number, as in the names of numbered documents: `ADR-0011`, `adr 11`. No year, no version."""
_BESIDE_PATH = r"\s\"'`<>()\[\]|,;"
_PATH = re.compile(
    rf"(?<![^{_BESIDE_PATH}=])(?:\w+:/{{2,3}}|[A-Za-z]:(?=[/\\]))?"
    rf"([^{_BESIDE_PATH}:#?=/\\]*[/\\][^{_BESIDE_PATH}:#?]+)"
)
"""A path with its prefix, up to a line number or the fragment of a URL."""
_NAME_OF_FILE = re.compile(r"\.\w+$")
_MOST_PATHS = 8
_MOST_ALIKE = 1000
"""If more documents share the end of a path, none of them is considered."""
_WIDEST = 5
"""Maximum number of digits to which numbers in file names are zero-padded."""
_MOST_NUMBERED = 8
"""Maximum number of numbered documents looked up, in the order of the query."""


_NOTHING = Hits(np.empty(0, np.int64), np.empty(0), Scale.UNIT)


class IdentifierParams(ChannelParams):
    """Parameters of the identifier channel."""

    max_memories: int = Field(
        1, ge=1, le=1000, description="An identifier that occurs in more memories finds none of them."
    )
    max_reference_memories: int = Field(
        10, ge=1, le=1000, description="The same limit for references (words and a number): REQ-006 or #4711."
    )
    max_words: int = Field(
        60, ge=1, le=100_000, description="A longer query is pasted text, whose identifiers are ignored."
    )


class Identifier:
    """Memories that hold an identifier of the query as a whole: `REQ-006`, `#4711`, `user_id`, `computeMPAB`, `v1.2.3`.

    An identifier points to the few places where it occurs, independent of the rest of the query; one that occurs in
    more memories is a word like any other and finds nothing here. References may occur in several memories, as a
    requirement does in its specification, plan and tasks. A word and a number match documents whose paths hold both,
    with any number of leading zeros: `ADR 3` is `docs/adr/0003-sessions.md`. A path matches the document at its end,
    independent of the folder in which it was indexed: `/home/ada/project/docs/adr/0003-sessions.md:42`. A query of more
    than `max_words` words is pasted text: the reader wants that text, not the documents it refers to, so nothing is
    found. The score of a memory with identifiers i = 1 … n, each in df_i memories, is s / (1 + s) with s = Σ 1 / df_i,
    (0, 1). A rerank step moves the hits to the top. Features C2, C3.
    """

    about = About(features=("C2", "C3"), gives=Scale.UNIT)
    Params = IdentifierParams

    def __init__(self, params: IdentifierParams) -> None:
        self._params = params

    def search(self, query: Query, limit: int, store: Store) -> Hits:
        """The `limit` admitted memories with the rarest identifiers."""
        params = self._params
        found: list[Ids] = []
        if len(query.text.split()) > params.max_words:
            return _NOTHING
        for term, reference in identifiers(query.text, store).items():
            holders = memories_with(term, store.lexicon)
            if 0 < len(holders) <= (params.max_reference_memories if reference else params.max_memories):
                found.append(holders)
        others = (*numbered_paths(query, store), *at_paths(query.text, store))
        found += [ids for ids in others if 0 < len(ids) <= params.max_reference_memories]
        if not found:
            return _NOTHING
        # Σ 1 / df over the identifiers that each memory holds
        ids, rows = np.unique(np.concatenate(found), return_inverse=True)
        shares = np.concatenate([np.full(len(holders), 1.0 / len(holders)) for holders in found])
        strength = np.bincount(rows, weights=shares, minlength=len(ids))
        admitted = store.attributes.scope(query.wanted, query.now).admits(ids)
        return Hits.ordered(ids[admitted], (strength / (1.0 + strength))[admitted], Scale.UNIT, limit=limit)

    def cost(self, query: Query, rows: int, store: Store) -> StepCostEstimate:  # noqa: ARG002
        """The postings of the identifiers in every field, and those of numbered documents in the paths."""
        indexes = [store.lexicon.index(field) for field in FIELDS]
        terms = identifiers(query.text, store)
        paths = store.lexicon.index("path")
        called = {term for word, numbers in _numbers(query, store) for term in (word, *numbers)}
        named = sum(index.holders(term) for index in indexes for term in terms)
        return StepCostEstimate(postings=named + sum(map(paths.holders, called)))


def identifiers(text: str, store: Store) -> dict[str, bool]:
    """The identifiers of a text, each as its token in the index, and whether it is a reference."""
    plain = normalize("NFKC", text)
    words = {word: bool(_REFERENCE.fullmatch(word)) for word in _WORD.findall(plain) if _is_identifier(word)}
    words |= dict.fromkeys(_ISSUE.findall(plain), True)
    # The analyser yields the whole word first. A word that it splits without keeping the whole is not an identifier.
    cut = ((store.lexicon.analyse(word), reference) for word, reference in words.items())
    return {tokens[0]: reference for tokens, reference in cut if tokens}


def numbered_paths(query: Query, store: Store) -> list[Ids]:
    """For each word of a query followed by a number, the memories whose paths hold both, ascending."""
    paths = store.lexicon.index("path")

    def holders(*terms: str) -> Ids:
        rows = [paths.postings(term).rows for term in terms if paths.holders(term)]
        return paths.ids_of(np.unique(np.concatenate(rows))) if rows else np.empty(0, np.int64)

    return [np.intersect1d(holders(word), holders(*numbers)) for word, numbers in _numbers(query, store)]


def at_paths(text: str, store: Store) -> Iterator[Ids]:
    """For each path in a text, the memories whose keys share the longest end with it.

    A key must match as a whole or in at least two parts; a key of one part matches only a path that is absolute or ends
    with a file name.
    """
    if "/" not in text and "\\" not in text:
        return
    for path in islice(dict.fromkeys(_PATH.findall(text)), _MOST_PATHS):
        parts = _parts(path.rstrip(".!"))
        alike = _ending_alike(parts, store)
        keys = [_parts(str(key)) for key in store.attributes.label("key", alike)]
        shared = np.array([_common_end(parts, key) for key in keys], np.int64)
        is_file = path[0] in "/\\" or _NAME_OF_FILE.search(path) is not None
        named = [
            count > 1 or (count == len(key) == 1 and is_file) for count, key in zip(shared.tolist(), keys, strict=True)
        ]
        if any(named):
            yield alike[shared == shared[named].max()]


def _parts(path: str) -> list[str]:
    return [part for part in re.split(r"[/\\]", path.casefold()) if part not in ("", ".", "..")]


def _common_end(path: Sequence[str], key: Sequence[str]) -> int:
    """The number of equal parts at the end of both."""
    pairs = zip(reversed(path), reversed(key), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _ending_alike(path: Sequence[str], store: Store) -> Ids:
    """The memories whose paths hold the words of the last three parts of a path, else of two, else of the last."""
    index = store.lexicon.index("path")
    # paths are indexed without file extensions
    named = (*path[-3:-1], *(_NAME_OF_FILE.sub("", name) for name in path[-1:]))
    held = [[token for token in store.lexicon.analyse(part) if index.holders(token)] for part in named]
    for count in (3, 2, 1):
        if len(held) >= count and all(held[-count:]):
            # Rarest token first, so that the intersections stay small.
            tokens = sorted({token for tokens in held[-count:] for token in tokens}, key=index.holders)
            rows = reduce(np.intersect1d, (index.postings(token).rows for token in tokens))
            if 0 < len(rows) <= _MOST_ALIKE:
                return np.sort(index.ids_of(rows))
    return np.empty(0, np.int64)


def _numbers(query: Query, store: Store) -> list[tuple[str, list[str]]]:
    """Words of a query followed by a number, each with the spellings of the number that a path may contain."""
    called = dict.fromkeys(_NUMBERED.findall(normalize("NFKC", query.text)))
    cut = ((store.lexicon.analyse(word), number) for word, number in islice(called, _MOST_NUMBERED))
    return [
        (tokens[0], [number.zfill(width) for width in range(len(number), _WIDEST + 1)])
        for tokens, number in cut
        if tokens and tokens[0] in query.terms
    ]


def _is_identifier(word: str) -> bool:
    """Whether a word has a letter and a digit, or is joined from several words."""
    return bool(_LETTER.search(word) and _DIGIT.search(word)) or bool(_JOINED.search(word))
