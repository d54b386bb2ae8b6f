"""How well a query matches titles, sections and labels: arithmetic shared by several signals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.arithmetic import idf
from speckit_memory.pipeline.model.columns import Pool, Query
from speckit_memory.pipeline.ports import Column, Field, Ids, Store
from speckit_memory.pipeline.running.lookup import holders

SUITS = {
    "add_feature": "implementation",
    "fix_bug": "implementation",
    "refactor": "implementation",
    "security_audit": "research",
    "find_spec": "decision",
    "find_decision": "decision",
}
"""The context type that suits each intent; for the intent to understand, any does."""


def matched_share(terms: tuple[str, ...], memories: Ids, field: Field, store: Store) -> Column:
    """The share of the query's distinct terms that a field of each memory holds, float64[n] in [0, 1].

    Terms are weighted by their idf in the field.

    Args:
        terms: Terms of the query; the result is 0 without terms.
        memories: The memory of each row, int64[n].
        field: The field to match.
        store: The store with the index of the field.
    """
    # held: (n, terms) bool; information: (terms,)
    index = store.lexicon.index(field)
    held, frequency = holders(index, tuple(dict.fromkeys(terms)), memories)
    information = idf(frequency, index.count)
    total = information.sum()
    return np.asarray(held @ information / total) if total > 0 else np.zeros(len(memories))


def named_section(query: Query, pool: Pool, store: Store) -> Column:
    """The share of the words in the anchor of each row's matched passage that the query names; 0 without an anchor."""
    passages = store.passages.passages(pool.candidates.matched.tolist())
    return named_label(query, np.array([passage.anchor for passage in passages], np.object_), store)


def named_label(query: Query, labels: NDArray[np.object_], store: Store) -> Column:
    """The share of each label's words that the query names, in [0, 1]; 0 for an empty label."""
    asked = set(query.terms)
    shares = {}
    for label in set(labels.tolist()):
        words = set(store.lexicon.analyse(label.replace("_", " "))) if label else set()
        shares[label] = len(words & asked) / len(words) if words else 0.0
    return np.array([shares[label] for label in labels.tolist()], np.float64)
