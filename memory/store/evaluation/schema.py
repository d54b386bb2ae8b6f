"""The tables of the evaluation database (feature E1).

A query has one row in `queries`, and one in `answers` per pipeline that answered it; `pairs` has a row for each answer
of a variant, with how it ran. Long columns (memories, scores, times of steps) are packed: see `packing`. Steps come in
the same order in every query, so that their names are stored once, in `layouts`.

A replay has its own row in `replays` with both answers: the control runs again too, and may answer differently.

Only `queries.question` holds content; it is NULL once the text has been deleted.
"""

from __future__ import annotations

from speckit_memory.memory.store.file.opening import FileKind
from speckit_memory.memory.store.file.schema.migrations import Migration

APPLICATION_ID = 0x53504B45
"""`SPKE`, written into the file header: distinguishes it from a store and from any other SQLite database."""

FIRST_SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};

CREATE TABLE pipelines (
    hash TEXT PRIMARY KEY CHECK (hash <> ''),
    name TEXT NOT NULL,
    "values" TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE queries (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE CHECK (id <> ''),
    at REAL NOT NULL,
    intent TEXT NOT NULL,
    complexity TEXT NOT NULL,
    folder TEXT NOT NULL,
    mode TEXT NOT NULL,
    "limit" INTEGER NOT NULL,
    wordings INTEGER NOT NULL,
    session TEXT NOT NULL,
    store TEXT NOT NULL,
    state INTEGER NOT NULL,
    question TEXT CHECK (json_type(question) = 'object')
) STRICT;
CREATE INDEX queries_by_time ON queries (at);

CREATE TABLE layouts (
    number INTEGER PRIMARY KEY,
    steps TEXT NOT NULL UNIQUE CHECK (json_type(steps) = 'array')
) STRICT;

CREATE TABLE answers (
    number INTEGER PRIMARY KEY,
    query INTEGER NOT NULL REFERENCES queries (number) ON DELETE CASCADE,
    pipeline TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('served', 'dark_run', 'shadow', 'interleaved')),
    memories BLOB NOT NULL,
    scores BLOB NOT NULL,
    total_ms REAL NOT NULL,
    layout INTEGER NOT NULL REFERENCES layouts (number),
    costs BLOB NOT NULL,
    failure TEXT NOT NULL,
    UNIQUE (query, pipeline, mode)
) STRICT;

CREATE TABLE pairs (
    answer INTEGER PRIMARY KEY REFERENCES answers (number) ON DELETE CASCADE,
    flag TEXT NOT NULL,
    parted_at TEXT NOT NULL,
    spent_ms REAL NOT NULL,
    dark_run_overhead_ms REAL NOT NULL
) STRICT;

CREATE TABLE scorings (
    query TEXT PRIMARY KEY,
    pipeline TEXT NOT NULL,
    at REAL NOT NULL,
    memories BLOB NOT NULL,
    steps TEXT NOT NULL CHECK (json_type(steps) = 'array')
) STRICT, WITHOUT ROWID;
CREATE INDEX scorings_by_time ON scorings (at);

CREATE TABLE channel_results (
    query TEXT NOT NULL REFERENCES scorings (query) ON DELETE CASCADE,
    channel TEXT NOT NULL,
    memories BLOB NOT NULL,
    ranks BLOB NOT NULL,
    scores BLOB NOT NULL,
    PRIMARY KEY (query, channel)
) STRICT, WITHOUT ROWID;

CREATE TABLE uses (
    query TEXT NOT NULL,
    memory INTEGER NOT NULL,
    use TEXT NOT NULL CHECK (use IN ('opened', 'validated', 'linked', 'cited')),
    rank INTEGER NOT NULL CHECK (rank >= 1),
    at REAL NOT NULL,
    session TEXT NOT NULL,
    PRIMARY KEY (query, memory, use)
) STRICT, WITHOUT ROWID;
CREATE INDEX uses_by_time ON uses (at);

CREATE TABLE ground_truth (
    query TEXT NOT NULL,
    memory INTEGER NOT NULL,
    source TEXT NOT NULL CHECK (source IN ('made', 'used', 'judged')),
    judge TEXT NOT NULL,
    grade INTEGER NOT NULL CHECK (grade BETWEEN 0 AND 3),
    at REAL NOT NULL,
    PRIMARY KEY (query, memory, source, judge)
) STRICT, WITHOUT ROWID;

CREATE TABLE evaluations (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL CHECK (id <> ''),
    kind TEXT NOT NULL,
    at REAL NOT NULL,
    dataset TEXT NOT NULL,
    digest TEXT NOT NULL,
    document TEXT NOT NULL CHECK (json_type(document) = 'object')
) STRICT;
CREATE INDEX evaluations_by_id ON evaluations (id);

CREATE TABLE metric_snapshots (
    evaluation INTEGER NOT NULL REFERENCES evaluations (number) ON DELETE CASCADE,
    pipeline TEXT NOT NULL,
    metric TEXT NOT NULL,
    value REAL NOT NULL,
    queries INTEGER NOT NULL,
    PRIMARY KEY (evaluation, pipeline, metric)
) STRICT, WITHOUT ROWID;

CREATE TABLE flag_changes (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    before TEXT NOT NULL,
    after TEXT NOT NULL,
    at REAL NOT NULL,
    evidence TEXT NOT NULL
) STRICT;

CREATE TABLE retreats (
    number INTEGER PRIMARY KEY,
    control TEXT NOT NULL,
    variant TEXT NOT NULL,
    placement TEXT NOT NULL,
    reason TEXT NOT NULL,
    at REAL NOT NULL
) STRICT;

CREATE TABLE dropped (
    control TEXT NOT NULL,
    variant TEXT NOT NULL,
    mode TEXT NOT NULL,
    why TEXT NOT NULL CHECK (why IN ('queue', 'busy', 'state', 'off', 'late', 'end')),
    hour INTEGER NOT NULL,
    count INTEGER NOT NULL CHECK (count >= 0),
    PRIMARY KEY (control, variant, mode, why, hour)
) STRICT, WITHOUT ROWID;

CREATE TABLE pruned (
    control TEXT NOT NULL,
    variant TEXT NOT NULL,
    mode TEXT NOT NULL,
    count INTEGER NOT NULL,
    last REAL NOT NULL,
    PRIMARY KEY (control, variant, mode)
) STRICT, WITHOUT ROWID;
"""

TEAMS = "ALTER TABLE pairs ADD COLUMN teams BLOB NOT NULL DEFAULT x'01'"
"""For interleaved answers: the pipeline that contributed each served memory."""

_WITH_REASONS = """
CREATE TABLE dropped_with_reasons (
    control TEXT NOT NULL,
    variant TEXT NOT NULL,
    mode TEXT NOT NULL,
    why TEXT NOT NULL CHECK (why IN ({reasons})),
    hour INTEGER NOT NULL,
    count INTEGER NOT NULL CHECK (count >= 0),
    PRIMARY KEY (control, variant, mode, why, hour)
) STRICT, WITHOUT ROWID;
INSERT INTO dropped_with_reasons SELECT * FROM dropped;
DROP TABLE dropped;
ALTER TABLE dropped_with_reasons RENAME TO dropped;
"""

REASONS = _WITH_REASONS.format(reasons="'queue', 'busy', 'state', 'off', 'late', 'end', 'mixed', 'rollout'")
"""Adds reasons for which a variant did not see a query: the answer was interleaved with another variant, or came from a
pipeline that is being rolled out."""

BUDGETS = """
ALTER TABLE pipelines DROP COLUMN "values";
ALTER TABLE pipelines ADD COLUMN budget_ms REAL;
CREATE INDEX answers_by_pipeline ON answers (mode, pipeline);
"""
"""The time that a pipeline allows for a variant, instead of a column that was never written; and an index of answers by
pipeline, so that one experiment is found without reading all answers."""

HANDOVERS = _WITH_REASONS.format(reasons="'queue', 'busy', 'state', 'off', 'late', 'end', 'mixed', 'rollout', 'resume'")
"""Adds another reason: a handover answered, which uses a separate pipeline."""

QUESTIONS = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES ('question_key', randomblob(32));
ALTER TABLE queries ADD COLUMN question_digest TEXT NOT NULL DEFAULT '';
"""
"""Digests that identify questions without stored text, under a random key per file."""

TEXTS = "CREATE INDEX queries_with_texts ON queries (number) WHERE question IS NOT NULL"
"""An index of the queries with texts, so that they are found without reading all queries."""

REPLAYS = """
ALTER TABLE queries ADD COLUMN read_point TEXT CHECK (json_type(read_point) = 'object');
CREATE TABLE replays (
    number INTEGER PRIMARY KEY,
    query INTEGER NOT NULL REFERENCES queries (number) ON DELETE CASCADE,
    control TEXT NOT NULL,
    variant TEXT NOT NULL,
    epoch TEXT NOT NULL,
    basis TEXT NOT NULL CHECK (basis IN ('served', 'present', 'gone')),
    state INTEGER NOT NULL,
    flag TEXT NOT NULL,
    parted_at TEXT NOT NULL,
    spent_ms REAL NOT NULL,
    control_memories BLOB NOT NULL,
    control_scores BLOB NOT NULL,
    control_ms REAL NOT NULL,
    control_layout INTEGER NOT NULL REFERENCES layouts (number),
    control_costs BLOB NOT NULL,
    control_failure TEXT NOT NULL,
    memories BLOB NOT NULL,
    scores BLOB NOT NULL,
    total_ms REAL NOT NULL,
    layout INTEGER NOT NULL REFERENCES layouts (number),
    costs BLOB NOT NULL,
    failure TEXT NOT NULL,
    UNIQUE (control, variant, epoch, query)
) STRICT;
CREATE INDEX replays_by_query ON replays (query);
ALTER TABLE pipelines ADD COLUMN ordering TEXT NOT NULL DEFAULT '';
"""
"""Both answers of replayed queries; the inputs of the served answer other than the question; and which pipelines answer
alike."""

LABELS = """
CREATE TABLE labels (
    list TEXT NOT NULL,
    pair TEXT NOT NULL,
    judge TEXT NOT NULL,
    grade REAL NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (list, pair, judge)
) STRICT, WITHOUT ROWID;
"""
"""Judgement lists: judges' grades of (question, text) pairs, by a digest of both."""

REPHRASED = "ALTER TABLE queries ADD COLUMN rephrased_by TEXT NOT NULL DEFAULT ''"
"""The id of the query that asked the same in other words because the answer did not help, "" for none. It is found
while the words of both are kept, and stays when they are forgotten."""

EVALUATION = FileKind(
    APPLICATION_ID,
    (
        Migration("0001_first_schema", FIRST_SCHEMA),
        Migration("0002_teams_of_mixed_answers", TEAMS),
        Migration("0003_more_reasons_of_losses", REASONS),
        Migration("0004_budgets_of_pipelines", BUDGETS),
        Migration("0005_hand_overs_as_a_reason", HANDOVERS),
        Migration("0006_digests_of_questions", QUESTIONS),
        Migration("0007_queries_with_texts", TEXTS),
        Migration("0008_replays", REPLAYS),
        Migration("0009_judgement_lists", LABELS),
        Migration("0010_rephrased_queries", REPHRASED),
    ),
    copied=False,
    schema="speckit_evaluation",
)
