"""The words of a text as the full-text tables store them, without a database."""

from __future__ import annotations

from functools import cache

import apsw

ANALYSED, WRITTEN = 0, 1
"""Kinds of words: those of `memory_fts` and of `surface_fts`."""


def split(kind: int, text: str) -> list[str]:
    """The words of a text, in order, with repetitions."""
    reason = apsw.FTS5_TOKENIZE_DOCUMENT
    return [str(part[0]) for part in _tokeniser(kind)(text.encode(), reason, None, include_offsets=False)]


@cache
def _tokeniser(kind: int) -> apsw.FTS5Tokenizer:
    arguments = ["remove_diacritics", "0"]
    if kind == ANALYSED:
        arguments += ["categories", "L* M* N* P* S* C*"]
    return apsw.Connection(":memory:").fts5_tokenizer("unicode61", arguments)
