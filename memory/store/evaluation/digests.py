"""Digests that identify questions whose text is not stored."""

from __future__ import annotations

import hmac

from speckit_memory.memory.store.evaluation.records import QueryRecord
from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.queries import value

_DIGITS = 16
"""Hexadecimal digits, 64 bits: a collision among a million questions has a probability below 1e-7."""


def question_digest(connection: Connection, query: QueryRecord) -> str:
    """HMAC-SHA256 of the question under this file's key, cut to 8 bytes; "" where unknown.

    With a key per file, digests of two files cannot be compared. A reader of the file can still test guessed questions.
    """
    if not query.asked:
        return query.question_digest
    key: bytes = value(connection, "SELECT value FROM meta WHERE name = 'question_key'")
    return hmac.new(key, query.asked.encode(errors="surrogatepass"), "sha256").hexdigest()[:_DIGITS]
