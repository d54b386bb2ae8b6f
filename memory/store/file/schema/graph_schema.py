"""Tables that a migration adds for the history, use and suspected contradictions of edges."""

EDGE_HISTORY = """
ALTER TABLE causal_edges ADD COLUMN said REAL CHECK (said BETWEEN 0 AND 1);

CREATE TABLE edge_history (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    target_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    relation TEXT NOT NULL,
    changed_at REAL NOT NULL,
    changed_by TEXT NOT NULL CHECK (changed_by <> ''),
    why TEXT NOT NULL,
    before TEXT CHECK (before IS NULL OR json_valid(before)),
    after TEXT CHECK (after IS NULL OR json_valid(after)),
    undoes INTEGER,
    undone_by INTEGER
) STRICT;
CREATE INDEX edge_history_by_edge ON edge_history (source_id, target_id, relation);
CREATE INDEX edge_history_by_target ON edge_history (target_id);

CREATE TABLE session_uses (
    session TEXT NOT NULL CHECK (session <> ''),
    memory_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    used_at REAL NOT NULL,
    PRIMARY KEY (session, memory_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_uses_by_memory ON session_uses (memory_id);
CREATE TABLE edge_uses (
    edge_id INTEGER PRIMARY KEY REFERENCES causal_edges (id) ON DELETE CASCADE,
    times INTEGER NOT NULL CHECK (times >= 0),
    last_used REAL NOT NULL
) STRICT;

CREATE TABLE scanned_memories (
    memory_id INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    content_hash TEXT NOT NULL,
    scanned_at REAL NOT NULL
) STRICT;
CREATE TABLE suspected_contradictions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    newer_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    newer_hash TEXT NOT NULL,
    older_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    older_hash TEXT NOT NULL,
    similarity REAL NOT NULL,
    pattern TEXT NOT NULL,
    confidence REAL NOT NULL,
    sentence TEXT NOT NULL,
    found_at REAL NOT NULL,
    dismissed_at REAL,
    UNIQUE (newer_id, older_id)
) STRICT;
CREATE INDEX suspected_contradictions_by_older ON suspected_contradictions (older_id);
"""
"""Changes of edges and of their strength (`said` is the strength given by the creator, where it differs), uses of
edges, and suspected contradictions: see `edge_history`, `edge_uses` and `suspicions`."""
