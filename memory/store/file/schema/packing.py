"""Forms in which texts are stored once: passages make up the text of their memory, and tokens are compressed."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import apsw

WORDS_AS_WRITTEN = "body, title, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 0'"
"""Columns and tokeniser of `surface_fts`. FTS5 spends two bytes on every word of a row that is not in the first column,
so that the longest text comes first."""
PACKED_TEXTS = """
ALTER TABLE texts ADD COLUMN rest TEXT NOT NULL DEFAULT '';
ALTER TABLE texts ADD COLUMN tokens BLOB NOT NULL DEFAULT x'';
ALTER TABLE chunks ADD COLUMN lead TEXT;
DROP TABLE memory_fts;
CREATE VIRTUAL TABLE memory_fts USING fts5 (
    body, title, triggers, path,
    content = '', contentless_delete = 1,
    tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'"
);
"""
# A subquery sets the order: SQLite before 3.44 knows none within `group_concat`, and could not read the schema.
WITHOUT_UNPACKED = f"""
ALTER TABLE texts DROP COLUMN body;
ALTER TABLE chunks DROP COLUMN tokens;
CREATE VIEW bodies (memory_id, body) AS
SELECT t.memory_id, coalesce((
    SELECT group_concat(part, '') FROM (
        SELECT c.lead || c.text AS part FROM chunks c WHERE c.memory_id = t.memory_id ORDER BY c.ordinal
    )
), '') || t.rest FROM texts t;
INSERT INTO memory_fts (memory_fts) VALUES ('optimize');
DROP TABLE surface_fts;
CREATE VIRTUAL TABLE surface_fts USING fts5 ({WORDS_AS_WRITTEN});
INSERT INTO surface_fts (rowid, title, body)
SELECT m.id, m.title, b.body FROM memories m JOIN bodies b ON b.memory_id = m.id;
INSERT INTO surface_fts (surface_fts) VALUES ('optimize');
"""
_BETWEEN = "  "
"""Between the tokens of two passages: within a passage, tokens are joined by single blanks and none is empty."""
_LEVEL = 6


def pack_tokens(passages: Sequence[str]) -> bytes:
    """The stored form of the tokens of the passages of a memory, each joined by blanks; empty for no passage."""
    if not passages:
        return b""
    # passage by passage: a copy of all tokens would be as long as the document
    packer = zlib.compressobj(_LEVEL)
    packed = [packer.compress(passages[0].encode())]
    packed += (packer.compress(f"{_BETWEEN}{passage}".encode()) for passage in passages[1:])
    return b"".join((*packed, packer.flush()))


def unpack_tokens(stored: bytes) -> list[str]:
    """The tokens of each passage, joined by blanks. Raises ValueError for bytes that `pack_tokens` did not make."""
    if not stored:
        return []
    try:
        return zlib.decompress(stored).decode().split(_BETWEEN)
    except zlib.error as error:
        raise ValueError(f"the stored tokens cannot be read: {error}") from error


def split_body(body: str, passages: Sequence[str]) -> tuple[list[str | None], str]:
    """The parts of the text of a memory that lie between its passages.

    Args:
        body: The text.
        passages: The texts of its passages, in order.

    Returns:
        For each passage the text between the one before and it, None for a passage that the rest of the text does not
        contain; and the text after the last one. Joined with the passages they are the text: see the view `bodies`.
    """
    leads: list[str | None] = []
    end = 0
    for passage in passages:
        start = body.find(passage, end)
        leads.append(body[end:start] if start >= 0 else None)
        end = start + len(passage) if start >= 0 else end
    return leads, body[end:]


def pack_rows(connection: apsw.Connection) -> None:
    """Brings the rows of earlier versions into these forms."""
    for (memory,) in connection.execute("SELECT memory_id FROM texts").fetchall():
        title, triggers, path, body = connection.execute(
            "SELECT title_tokens, trigger_tokens, path_tokens, body FROM texts WHERE memory_id = ?", (memory,)
        ).get
        passages = connection.execute(
            "SELECT id, tokens, text FROM chunks WHERE memory_id = ? ORDER BY ordinal", (memory,)
        ).fetchall()
        tokens = [str(tokens) for _, tokens, _ in passages]
        leads, rest = split_body(body, [str(text) for _, _, text in passages])
        connection.execute(
            "UPDATE texts SET tokens = ?, rest = ?, body = '' WHERE memory_id = ?", (pack_tokens(tokens), rest, memory)
        )
        connection.executemany(
            "UPDATE chunks SET lead = ?, tokens = '' WHERE id = ?",
            [(lead, chunk) for (chunk, _, _), lead in zip(passages, leads, strict=True)],
        )
        connection.execute(
            "INSERT INTO memory_fts (rowid, body, title, triggers, path) VALUES (?, ?, ?, ?, ?)",
            (memory, " ".join(tokens), title, triggers, path),
        )
