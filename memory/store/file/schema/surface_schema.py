"""The full-text table of words as written, endings and stop words included."""

from __future__ import annotations

COLUMNS_AND_TOKENISER = (
    """title, body, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 0'"""
)

SURFACE = f"""
CREATE VIRTUAL TABLE surface_fts USING fts5 ({COLUMNS_AND_TOKENISER});
INSERT INTO surface_fts (rowid, title, body)
SELECT m.id, m.title, t.body FROM memories m JOIN texts t ON t.memory_id = m.id;
"""
"""The rows of stored memories are made from their texts: see `surface`."""
