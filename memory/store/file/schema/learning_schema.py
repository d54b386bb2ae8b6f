"""Tables of what is learned from use rather than from documents (features F17, M2, M12 and M15)."""

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
"""Outcomes of tasks, and selections of memories with what was learned from them: see `task_records` and `selections`.
A selection is kept when its memory is deleted, as evidence of how many were seen."""

UNATTRIBUTED = """
INSERT INTO judgements (
    memory_id, kind, judged_at, session, confidence_before, validations_before, stability_before, difficulty_before,
    reviewed_before, reviews_before, confidence, validations, stability, difficulty, reviewed, reviews, declared
)
SELECT m.id, 'promoted', p.promoted_at, '', m.confidence, m.validation_count, m.stability, m.difficulty,
    m.last_review, m.review_count, m.confidence, m.validation_count, m.stability, m.difficulty,
    m.last_review, m.review_count, iif(m.tier = 'critical', p.from_tier, m.tier)
FROM promotions p JOIN memories m ON m.id = p.memory_id WHERE NOT EXISTS (
    SELECT 1 FROM judgements WHERE memory_id = m.id AND kind = 'promoted' AND undone_at IS NULL
) ORDER BY m.id;
"""
"""Records promotions made before judgements were kept, so that they can be undone too. Undoing restores the tier of
that time until the document is read: see `PROMOTED_READ`."""

JUDGEMENTS = f"""
CREATE TABLE judgements (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('useful', 'not useful', 'promoted', 'used')),
    judged_at REAL NOT NULL,
    session TEXT NOT NULL,
    confidence_before REAL NOT NULL,
    validations_before INTEGER NOT NULL,
    stability_before REAL NOT NULL,
    difficulty_before REAL NOT NULL,
    reviewed_before REAL,
    reviews_before INTEGER NOT NULL,
    confidence REAL NOT NULL,
    validations INTEGER NOT NULL,
    stability REAL NOT NULL,
    difficulty REAL NOT NULL,
    reviewed REAL,
    reviews INTEGER NOT NULL,
    declared TEXT NOT NULL DEFAULT '',
    undone_at REAL
) STRICT;
CREATE INDEX judgements_by_memory ON judgements (memory_id, id);
{UNATTRIBUTED}"""
"""Judgements of memories, the attributes before and after each, and whether it was undone: see `judgements`."""

PROMOTED_READ = """
UPDATE memories SET mtime_ns = -1
WHERE mtime_ns IS NOT NULL AND id IN (SELECT memory_id FROM judgements WHERE kind = 'promoted');
"""
"""Makes the next index run read the files of promoted memories (`moving.TO_BE_READ`): they may declare another tier by
now, and undoing a promotion returns to the declared tier."""
