"""The tables of memories that agree with no file: see `absences` and `restorations`."""

from __future__ import annotations

ABSENCES = """
CREATE TABLE absences (
    memory_id INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    absent_since REAL NOT NULL,
    expires_at REAL
) STRICT;
CREATE INDEX absences_by_time ON absences (absent_since);

CREATE TABLE restorations (
    memory_id INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    file_hash TEXT NOT NULL
) STRICT;

CREATE TABLE removed_files (
    key TEXT PRIMARY KEY,
    file_hash TEXT NOT NULL
) STRICT, WITHOUT ROWID;

ALTER TABLE memories ADD COLUMN ctime_ns INTEGER;
"""
"""Memories whose files are not there, those that hold what a checkpoint had and not what their files say, files whose
memories a restore has removed, and when the state of each file changed last: that of a file whose time of modification
was set back has changed all the same."""
