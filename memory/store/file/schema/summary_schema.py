"""The table of summaries, which are made in the background for large stores."""

from __future__ import annotations

SUMMARIES = """
CREATE TABLE summaries (
    memory_id INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    content_hash TEXT NOT NULL,
    summary TEXT NOT NULL
) STRICT;
"""
"""A few sentences that sum up a text ("" where none do), and the hash of the content that they are valid for."""
