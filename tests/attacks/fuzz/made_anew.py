"""The indexes of a store as rows that can be compared with those of another one, which was made of the same files."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from speckit_memory.memory.store.file.opening import vector_extension

OF = "JOIN memories m ON m.id = x.memory_id"
INDEXES = {
    "memories": "SELECT key, title, folder, tier, context_type, document_type, memory_type, spec_level, content_hash, "
    "characters, chunk_count, embedding_status, name FROM memories",
    "texts": "SELECT m.key, title_tokens, trigger_tokens, path_tokens, extra, body, hex(tokens) "
    f"FROM texts x {OF} JOIN bodies USING (memory_id)",
    "passages": f"SELECT m.key, ordinal, vector, first_line, last_line, heading, anchor, lead, text FROM chunks x {OF}",
    "vectors": f"SELECT m.key, ordinal, v.embedding FROM chunks x {OF} JOIN chunk_vectors v ON v.rowid = x.id",
    "tokens": f"SELECT m.key, ordinal, t.tokens FROM chunks x {OF} JOIN chunk_tokens t ON t.chunk_id = x.id",
    "counts": f"SELECT m.key, x.title, triggers, path, passages FROM token_counts x {OF}",
    "words": "SELECT m.key, term, col, offset FROM temp.words x JOIN memories m ON m.id = x.doc",
    "words as written": "SELECT m.key, term, col, offset FROM temp.surface_words x JOIN memories m ON m.id = x.doc",
    "triggers": f"SELECT m.key, normalised, phrase, ordinal, weight FROM triggers x {OF} WHERE source = 'authored'",
    "declared": f"SELECT m.key, ordinal, relation, target, x.strength, evidence, reverse FROM declared_links x {OF}",
    "models": "SELECT value FROM meta WHERE key IN ('embedding_model', 'embedding_dimensions')",
}
EDGES = (
    "SELECT s.key, e.relation, t.key FROM causal_edges e JOIN memories s ON s.id = e.source_id "
    "JOIN memories t ON t.id = e.target_id WHERE ? IN ('', e.created_by)"
)
DOCUMENT = "document"


def indexes(file: Path) -> dict[str, list[Any]]:
    """Every index by its name, in an order that no id decides, and the edges that documents declare and all there are.

    A store without vectors has no table of them.
    """
    with closing(apsw.Connection(str(file))) as connection:
        connection.enable_load_extension(True)
        connection.load_extension(vector_extension())
        connection.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab('main', 'memory_fts', 'instance')")
        connection.execute("CREATE VIRTUAL TABLE temp.surface_words USING fts5vocab('main', 'surface_fts', 'instance')")
        any_vectors = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'chunk_vectors'").fetchone()
        found = {
            name: sorted(connection.execute(query).fetchall(), key=repr)
            for name, query in INDEXES.items()
            if any_vectors or name != "vectors"
        }
        found["all models"] = connection.execute("SELECT model_id FROM embedding_models").fetchall()
        for name, by in (("edges of documents", DOCUMENT), ("edges", "")):
            found[name] = sorted(connection.execute(EDGES, (by,)).fetchall())
        return found


def differences(lived: dict[str, list[Any]], made: dict[str, list[Any]], unread: set[str]) -> list[str]:
    """In what a store differs from the one that was made anew; one sentence for each index.

    Edges that somebody made by hand may stand for those that a document declares. A memory whose file was emptied or
    cannot be read any more stays, so that those of the `unread` files are left out.

    Passages keep the tokens of their texts with the title as often before them as the model saw it that was in use
    when they were written, so that tokens are compared only of stores that always had one model. A store whose last
    memory went remembers its model, which one that never had a memory does not know.
    """
    lived, made = (
        {name: [row for row in found if unread.isdisjoint(row)] for name, found in each.items()}
        for each in (lived, made)
    )
    told = []
    aside = {"tokens"} if len(lived["all models"]) > 1 else set()
    aside |= set() if made["memories"] else {"models"}
    for name in sorted(INDEXES.keys() - aside):
        ours, theirs = lived.get(name, []), made.get(name, [])
        if ours != theirs:
            more, less = ([row for row in a if row not in b][:2] for a, b in ((ours, theirs), (theirs, ours)))
            told.append(f"{name}: there is {more!r:.300} instead of {less!r:.300}")
    if lost := set(made["edges"]) - set(lived["edges"]):
        told.append(f"edges: {sorted(lost)} are missing")
    if undeclared := set(lived["edges of documents"]) - set(made["edges of documents"]):
        told.append(f"edges: no document declares {sorted(undeclared)}")
    return told
