"""The tables of a store.

A memory has one row in `memories` (its attributes), one in `texts` (long columns, kept apart so that reading attributes
touches few pages), one in the full-text table, and per passage one row in `chunks` and at most one vector. The text of
a memory is that of its passages with what lies between them: the view `bodies`. Analysed tokens are stored, compressed,
so that an index can be built without analysing again: see `packing`.

Links are stored as documents declare them, whether or not their target is stored; `causal_edges` holds the edges they
resolve to and the edges made by hand. The vector table is created with the first vector, which fixes the length.
"""

from __future__ import annotations

APPLICATION_ID = 0x53504B4D
"""`SPKM`, written into the file header: distinguishes a store from any other SQLite database."""

# Tables with `one INTEGER PRIMARY KEY CHECK (one = 1)` have a single row. Memories and chunks draw their ids from one
# sequence; a passage has the id of its memory exactly if it is the only one.
FIRST_SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE id_sequence (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    next INTEGER NOT NULL CHECK (next >= 1)
) STRICT;
INSERT INTO id_sequence VALUES (1, 1);

CREATE TABLE memories (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE CHECK (key <> ''),
    title TEXT NOT NULL,
    folder TEXT NOT NULL,
    tier TEXT NOT NULL
        CHECK (tier IN ('constitutional', 'critical', 'important', 'normal', 'temporary', 'deprecated')),
    context_type TEXT NOT NULL,
    document_type TEXT NOT NULL,
    memory_type TEXT NOT NULL,
    spec_level INTEGER,
    content_hash TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    characters INTEGER NOT NULL CHECK (characters >= 0),
    chunk_count INTEGER NOT NULL CHECK (chunk_count >= 0),
    embedding_status TEXT NOT NULL CHECK (embedding_status IN ('done', 'pending')),
    mtime_ns INTEGER,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    expires_at REAL,
    last_accessed REAL,
    access_count INTEGER NOT NULL DEFAULT 0 CHECK (access_count >= 0),
    last_review REAL,
    stability REAL NOT NULL DEFAULT 1.0 CHECK (stability > 0),
    difficulty REAL NOT NULL DEFAULT 5.0,
    confidence REAL NOT NULL DEFAULT 0.5 CHECK (confidence BETWEEN 0 AND 1),
    validation_count INTEGER NOT NULL DEFAULT 0 CHECK (validation_count >= 0),
    importance_weight REAL NOT NULL DEFAULT 0.5 CHECK (importance_weight BETWEEN 0 AND 1),
    interference REAL NOT NULL DEFAULT 0.0
) STRICT;
CREATE INDEX memories_by_folder ON memories (folder);
CREATE INDEX memories_by_content ON memories (content_hash);
CREATE INDEX memories_pending ON memories (id) WHERE embedding_status = 'pending';

CREATE TABLE texts (
    memory_id INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    title_tokens TEXT NOT NULL,
    trigger_tokens TEXT NOT NULL,
    path_tokens TEXT NOT NULL,
    extra TEXT NOT NULL CHECK (json_type(extra) = 'object'),
    body TEXT NOT NULL
) STRICT;

CREATE TABLE chunks (
    id INTEGER PRIMARY KEY,
    memory_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL CHECK (ordinal >= 0),
    vector TEXT NOT NULL CHECK (vector IN ('pending', 'stored', 'zero')),
    first_line INTEGER NOT NULL,
    last_line INTEGER NOT NULL,
    heading TEXT NOT NULL,
    anchor TEXT NOT NULL,
    tokens TEXT NOT NULL,
    text TEXT NOT NULL,
    UNIQUE (memory_id, ordinal)
) STRICT;

CREATE TABLE triggers (
    memory_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    source TEXT NOT NULL CHECK (source IN ('authored', 'learned')),
    normalised TEXT NOT NULL CHECK (normalised <> ''),
    phrase TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    weight REAL NOT NULL CHECK (weight BETWEEN 0 AND 1),
    created_at REAL NOT NULL,
    expires_at REAL,
    PRIMARY KEY (memory_id, source, normalised)
) STRICT, WITHOUT ROWID;
CREATE INDEX triggers_by_phrase ON triggers (normalised);

CREATE TABLE declared_links (
    memory_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    relation TEXT NOT NULL
        CHECK (relation IN ('caused', 'enabled', 'supersedes', 'contradicts', 'derived_from', 'supports')),
    target TEXT NOT NULL,
    strength REAL NOT NULL CHECK (strength BETWEEN 0 AND 1),
    evidence TEXT NOT NULL,
    reverse INTEGER NOT NULL CHECK (reverse IN (0, 1)),
    PRIMARY KEY (memory_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE causal_edges (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    target_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    relation TEXT NOT NULL
        CHECK (relation IN ('caused', 'enabled', 'supersedes', 'contradicts', 'derived_from', 'supports')),
    strength REAL NOT NULL CHECK (strength BETWEEN 0 AND 1),
    evidence TEXT NOT NULL,
    created_by TEXT NOT NULL CHECK (created_by <> ''),
    created_at REAL NOT NULL,
    CHECK (source_id <> target_id),
    UNIQUE (source_id, target_id, relation)
) STRICT;
CREATE INDEX causal_edges_by_target ON causal_edges (target_id);

CREATE TABLE embedding_cache (
    model_id TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    vector BLOB NOT NULL CHECK (length(vector) % 4 = 0),
    created_at REAL NOT NULL,
    last_used_at REAL NOT NULL,
    PRIMARY KEY (model_id, content_hash)
) STRICT;
CREATE INDEX embedding_cache_by_use ON embedding_cache (last_used_at);

CREATE TABLE changes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_id INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('put', 'delete', 'edges', 'attributes'))
) STRICT;

CREATE VIRTUAL TABLE memory_fts USING fts5 (
    title, triggers, path, body,
    content = '', contentless_delete = 1,
    tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'"
);
"""

SESSIONS = """
CREATE TABLE session_sent (
    session TEXT NOT NULL CHECK (session <> ''),
    content_hash TEXT NOT NULL,
    memory_id INTEGER NOT NULL,
    sent_at REAL NOT NULL,
    PRIMARY KEY (session, content_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_sent_by_time ON session_sent (sent_at);

CREATE TABLE working_memory (
    session TEXT NOT NULL CHECK (session <> ''),
    memory_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    attention REAL NOT NULL CHECK (attention BETWEEN 0 AND 1),
    added_at REAL NOT NULL,
    last_focused REAL NOT NULL,
    focus_count INTEGER NOT NULL DEFAULT 1 CHECK (focus_count >= 1),
    event_counter INTEGER NOT NULL DEFAULT 0 CHECK (event_counter >= 0),
    mention_count INTEGER NOT NULL DEFAULT 0 CHECK (mention_count >= 0),
    PRIMARY KEY (session, memory_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX working_memory_by_memory ON working_memory (memory_id);
"""
"""Content sent to each session (by hash, even if the memory has changed since), and each session's working memory."""

UNCOUNTED_FOLDERS = """
CREATE TABLE uncounted_folders (
    folder TEXT PRIMARY KEY,
    mark INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO uncounted_folders SELECT DISTINCT folder, 0 FROM memories;
"""
"""Folders whose near duplicates must be recounted, and the number of the change that made it necessary."""

CHUNK_TOKENS = """
CREATE TABLE chunk_tokens (
    chunk_id INTEGER PRIMARY KEY REFERENCES chunks (id) ON DELETE CASCADE,
    tokens BLOB NOT NULL CHECK (length(tokens) % 2 = 0)
) STRICT;
"""
"""The distinct tokens of each passage that has a vector made of tokens: see `token_sets`."""

# rtrim removes all characters other than '/' from the end, which leaves the path up to its last slash.
LAST_PART = "substr({0}, length(rtrim({0}, replace({0}, '/', ''))) + 1)"
"""SQL for the part of a path after its last slash."""

LINK_TARGETS = f"""
ALTER TABLE memories ADD COLUMN name TEXT GENERATED ALWAYS AS ({LAST_PART.format("key")}) VIRTUAL;
CREATE INDEX memories_by_name ON memories (name);
ALTER TABLE declared_links ADD COLUMN target_name TEXT GENERATED ALWAYS AS ({LAST_PART.format("target")}) VIRTUAL;
ALTER TABLE declared_links ADD COLUMN target_id INTEGER REFERENCES memories (id) ON DELETE SET NULL;
CREATE INDEX declared_links_by_name ON declared_links (target_name);
CREATE INDEX declared_links_by_target ON declared_links (target_id);

CREATE TABLE changed_keys (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE changed_links (memory_id INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE) STRICT;
INSERT INTO changed_links SELECT id FROM memories;
"""
"""The target of each link, and the changes since links were last resolved to edges: see `link_targets`."""

PROMOTIONS = """
CREATE TABLE promotions (
    memory_id INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    from_tier TEXT NOT NULL CHECK (from_tier IN ('important', 'normal', 'temporary')),
    confidence REAL NOT NULL,
    validation_count INTEGER NOT NULL,
    promoted_at REAL NOT NULL
) STRICT;
"""
"""Memories that readers' judgements made critical, and the evidence at that time: see `promotions`."""

TOKEN_MODEL = """
INSERT INTO meta SELECT 'token_model', made.value FROM meta AS made
WHERE made.key = 'embedding_model' AND EXISTS (SELECT 1 FROM meta WHERE key = 'token_bytes')
"""
"""The model whose tokens a store holds; before this migration it was always the model of the vectors."""

SOURCE_PATHS = """
CREATE TABLE source_paths (
    root TEXT NOT NULL,
    path TEXT NOT NULL,
    overrules INTEGER NOT NULL CHECK (overrules IN (0, 1)),
    PRIMARY KEY (root, path)
) STRICT, WITHOUT ROWID;
"""
"""Paths that were indexed by name, for each root: see `source_paths`."""

CHANGE_TOKENS = """
ALTER TABLE changes ADD COLUMN token INTEGER NOT NULL DEFAULT 0;
UPDATE changes SET token = random();
"""
"""A random token per change, which tells two histories with equal numbers apart: see `identity`."""

# number of blanks + 1, or 0 for an empty text
COUNTED = "length({0}) - length(replace({0}, ' ', '')) + ({0} <> '')"
"""SQL for the number of tokens in a text."""
COUNTED_PASSAGES = f"unhex(group_concat(printf('%08X', {COUNTED.format('tokens')}), '' ORDER BY ordinal))"
"""SQL for the numbers of tokens in the passages of a memory: a blob of 4-byte big-endian integers."""
_REWRITTEN = "{0} <> lower({0}) OR instr({0}, char(0))"

TOKEN_COUNTS = f"""
CREATE TABLE token_counts (
    memory_id INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    title INTEGER NOT NULL,
    triggers INTEGER NOT NULL,
    path INTEGER NOT NULL,
    passages BLOB NOT NULL CHECK (length(passages) % 4 = 0),
    rewritten INTEGER NOT NULL CHECK (rewritten IN (0, 1))
) STRICT;
INSERT INTO token_counts
SELECT memory_id, {COUNTED.format("title_tokens")}, {COUNTED.format("trigger_tokens")},
    {COUNTED.format("path_tokens")}, x'',
    {_REWRITTEN.format("title_tokens")} OR {_REWRITTEN.format("trigger_tokens")} OR {_REWRITTEN.format("path_tokens")}
FROM texts;
UPDATE token_counts SET passages = found.counts, rewritten = max(token_counts.rewritten, found.rewritten)
FROM (
    SELECT memory_id, {COUNTED_PASSAGES} AS counts,
        max({_REWRITTEN.format("tokens")}) AS rewritten
    FROM chunks GROUP BY memory_id
) AS found WHERE found.memory_id = token_counts.memory_id;
"""
"""The number of tokens of each text, so that lengths are known without reading texts: see `token_counts`."""

LIFE = """
ALTER TABLE memories ADD COLUMN review_count INTEGER NOT NULL DEFAULT 0 CHECK (review_count >= 0);

ALTER TABLE working_memory ADD COLUMN source TEXT NOT NULL DEFAULT '';
ALTER TABLE working_memory ADD COLUMN source_call TEXT NOT NULL DEFAULT '';
CREATE TABLE session_state (
    session TEXT PRIMARY KEY CHECK (session <> ''),
    began_at REAL NOT NULL,
    last_event REAL NOT NULL,
    events INTEGER NOT NULL CHECK (events >= 1)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_state_by_time ON session_state (last_event);

CREATE TABLE archivals (
    memory_id INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    reason TEXT NOT NULL CHECK (reason IN ('unused', 'expired')),
    archived_at REAL NOT NULL,
    expired_at REAL,
    restored_at REAL
) STRICT;

CREATE TABLE job_runs (
    job TEXT PRIMARY KEY,
    began_at REAL NOT NULL,
    ended_at REAL,
    changed INTEGER NOT NULL CHECK (changed >= 0),
    remains INTEGER NOT NULL CHECK (remains IN (0, 1)),
    failure TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE job_lease (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    holder TEXT NOT NULL,
    until REAL NOT NULL
) STRICT;
"""
"""Reviews and archiving of memories, progress of sessions, and background jobs: see `working_memory`, `archivals` and
`jobs`."""

FORMER_KEYS = f"""
CREATE TABLE former_keys (
    key TEXT PRIMARY KEY,
    memory_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    until REAL NOT NULL,
    name TEXT GENERATED ALWAYS AS ({LAST_PART.format("key")}) VIRTUAL
) STRICT;
CREATE INDEX former_keys_by_name ON former_keys (name);
CREATE INDEX former_keys_by_memory ON former_keys (memory_id);
"""
"""Keys of memories before their files were moved: see `former_keys`."""
