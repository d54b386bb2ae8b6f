"""The table of summaries, which are made in the background where a store is large."""

from __future__ import annotations

SUMMARIES = """
CREATE TABLE summaries (
    memory_id INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    content_hash TEXT NOT NULL,
    summary TEXT NOT NULL
) STRICT;
"""
"""What a text says in few sentences, "" where no sentence stands for it, and of which content: another one has none."""
