"""What tells one question from another where its text is not kept."""

from __future__ import annotations

import hmac

import apsw

from speckit_memory.memory.store.evaluation.records import QueryRecord
from speckit_memory.memory.store.file.guarding.queries import value

_DIGITS = 16
"""Hexadecimal: of a million questions, no two are taken for one."""


def question_digest(connection: apsw.Connection, query: QueryRecord) -> str:
    """The HMAC-SHA256 of what was asked, cut to 8 bytes, under the key of this file; "" where that is not known.

    The key keeps digests of two files from being compared. Whoever may read the file can still try out a question.
    """
    if not query.asked:
        return query.question_digest
    key: bytes = value(connection, "SELECT value FROM meta WHERE name = 'question_key'")
    return hmac.new(key, query.asked.encode(errors="surrogatepass"), "sha256").hexdigest()[:_DIGITS]
