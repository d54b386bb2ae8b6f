"""Tables of memories that do not match their files: see `absences` and `restorations`."""

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
"""Memories whose files are missing, memories restored from a checkpoint that differ from their files, files whose
memories a restore removed, and each file's ctime, which also changes when its mtime is set back."""
