"""Tables of embedding models."""

EMBEDDING_MODELS = """
CREATE TABLE embedding_models (
    model_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    revision TEXT NOT NULL,
    pooling TEXT NOT NULL,
    dimensions INTEGER NOT NULL CHECK (dimensions > 0),
    noted_at REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE embedding_build (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    model_id TEXT NOT NULL,
    name TEXT NOT NULL,
    done INTEGER NOT NULL CHECK (done >= 0),
    total INTEGER NOT NULL CHECK (total >= 0),
    holder TEXT NOT NULL,
    until REAL NOT NULL
) STRICT;
"""
"""Embedding models by id, and the progress of a build of new vectors next to those in use: see `embedding_models`."""
