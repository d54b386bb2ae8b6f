"""The tables of what was learned beside documents (features M12 and M15)."""

from __future__ import annotations

LEARNING = """
CREATE TABLE task_records (
    folder TEXT NOT NULL CHECK (folder <> ''),
    task TEXT NOT NULL CHECK (task <> ''),
    session TEXT NOT NULL,
    knowledge INTEGER NOT NULL CHECK (knowledge BETWEEN 0 AND 100),
    uncertainty INTEGER NOT NULL CHECK (uncertainty BETWEEN 0 AND 100),
    context INTEGER NOT NULL CHECK (context BETWEEN 0 AND 100),
    gaps TEXT NOT NULL CHECK (json_type(gaps) = 'array'),
    began_at REAL NOT NULL,
    knowledge_after INTEGER CHECK (knowledge_after BETWEEN 0 AND 100),
    uncertainty_after INTEGER CHECK (uncertainty_after BETWEEN 0 AND 100),
    context_after INTEGER CHECK (context_after BETWEEN 0 AND 100),
    gaps_closed TEXT NOT NULL CHECK (json_type(gaps_closed) = 'array'),
    new_gaps TEXT NOT NULL CHECK (json_type(new_gaps) = 'array'),
    completed_at REAL,
    PRIMARY KEY (folder, task)
) STRICT, WITHOUT ROWID;

CREATE TABLE selections (
    "query" TEXT NOT NULL CHECK ("query" <> ''),
    memory_id INTEGER NOT NULL,
    "use" TEXT NOT NULL CHECK ("use" IN ('opened', 'validated', 'linked', 'cited')),
    rank INTEGER NOT NULL CHECK (rank >= 1),
    selected_at REAL NOT NULL,
    noted_at REAL NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('shadow', 'learned', 'reinforced', 'refused')),
    reason TEXT NOT NULL,
    terms TEXT NOT NULL CHECK (json_type(terms) = 'array'),
    PRIMARY KEY ("query", memory_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX selections_by_memory ON selections (memory_id);

CREATE TABLE unlearned (
    memory_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    normalised TEXT NOT NULL CHECK (normalised <> ''),
    unlearned_at REAL NOT NULL,
    PRIMARY KEY (memory_id, normalised)
) STRICT, WITHOUT ROWID;
"""
"""What tasks taught, and what selections taught about memories: see `task_records` and `selections`. A selection
stays on record when its memory goes, as evidence of how much has been seen."""
