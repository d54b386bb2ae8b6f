"""Memories that hold an identifier of the query."""

from __future__ import annotations

import re

import numpy as np
from pydantic import Field

from pipeline.contracts import About, ChannelParams
from pipeline.model import Hits, Query
from pipeline.ports import FIELDS, Ids, Store
from pipeline.scales import Scale

_WORD = re.compile(r"\w+(?:[-./]\w+)*")
_IDENTIFIER = re.compile(r"[^\W\d_].*\d|\d.*[^\W\d_]|[^\W_]_[^\W_]|[a-z][A-Z]")
"""A letter and a digit, an underscore within, or a capital after a small letter."""


class IdentifierParams(ChannelParams):
    """Parameters of the identifier channel."""

    most_memories: int = Field(
        1, ge=1, le=1000, description="An identifier that more memories hold points to none of them."
    )


class Identifier:
    """Memories that hold an identifier of the query as a whole: `REQ-006`, `user_id`, `computeMPAB`, `v1.2.3`.

    Who names one wants the few places where it stands, whatever else the question says; an identifier that more than
    `most_memories` hold is a word like others and finds nothing here. Of a memory that holds identifiers i = 1 … n,
    each in df_i memories, the score is s / (1 + s) with s = Σ 1 / df_i, (0, 1). Bringing what is found to the top is
    the work of a rerank step. Features C2, C3.
    """

    about = About(features=("C2", "C3"), gives=Scale.UNIT)
    Params = IdentifierParams

    def __init__(self, params: IdentifierParams) -> None:
        self._most = params.most_memories

    def search(self, query: Query, limit: int, store: Store) -> Hits:
        """The `limit` admitted memories with the most telling identifiers."""
        found = [ids for term in identifiers(query.text, store) if 0 < len(ids := _holders(term, store)) <= self._most]
        if not found:
            return Hits(np.empty(0, np.int64), np.empty(0), Scale.UNIT)
        ids, rows = np.unique(np.concatenate(found), return_inverse=True)
        shares = np.concatenate([np.full(len(holders), 1.0 / len(holders)) for holders in found])
        strength = np.bincount(rows, weights=shares, minlength=len(ids))
        admitted = store.attributes.scope(query.wanted, query.now).admits(ids)
        return Hits.ordered(ids[admitted], (strength / (1.0 + strength))[admitted], Scale.UNIT, limit=limit)


def identifiers(text: str, store: Store) -> list[str]:
    """The distinct identifiers of a text, each as the one token that the index has of it."""
    words = dict.fromkeys(word for word in _WORD.findall(text) if _IDENTIFIER.search(word))
    cut = (store.lexicon.analyse(word) for word in words)
    # The analyser gives the whole first; what it breaks up without keeping it is no identifier to the index.
    return list(dict.fromkeys(tokens[0] for tokens in cut if tokens))


def _holders(term: str, store: Store) -> Ids:
    """The memories that hold a term in any field, ascending."""
    indexes = [store.lexicon.index(field) for field in FIELDS]
    return np.unique(np.concatenate([index.ids[index.postings(term).rows] for index in indexes]))
