"""Tables of values computed from edges and texts in the background."""

from __future__ import annotations

STRUCTURE = """
CREATE TABLE graph_state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL,
    ranked INTEGER NOT NULL,
    greatest REAL NOT NULL CHECK (greatest >= 0)
) STRICT;
INSERT INTO graph_state VALUES (1, 1, 0, 0.0);
CREATE TRIGGER edge_came AFTER INSERT ON causal_edges BEGIN UPDATE graph_state SET version = version + 1; END;
CREATE TRIGGER edge_changed AFTER UPDATE ON causal_edges BEGIN UPDATE graph_state SET version = version + 1; END;
CREATE TRIGGER edge_went AFTER DELETE ON causal_edges BEGIN UPDATE graph_state SET version = version + 1; END;

CREATE TABLE graph_ranks (
    memory_id INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    rank REAL NOT NULL CHECK (rank > 0),
    community INTEGER NOT NULL
) STRICT;
CREATE INDEX graph_ranks_by_community ON graph_ranks (community, rank DESC, memory_id);

CREATE TABLE entity_scans (
    memory_id INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    content_hash TEXT NOT NULL
) STRICT;
CREATE TABLE memory_entities (
    memory_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    entity TEXT NOT NULL CHECK (entity <> ''),
    kind TEXT NOT NULL,
    PRIMARY KEY (memory_id, entity)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_entities_by_entity ON memory_entities (entity);
"""
"""Centrality and communities of memories, and the entities they mention. Triggers count every change of an edge as a
new version of the graph: see `ranks` and `entities`."""
