"""Ways in which the file of a store gets damaged, each by name. Every one takes a closed store."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import apsw

PAGE = 4096

Damage = Callable[[Path], None]

TABLES = (
    "meta", "id_sequence", "memories", "texts", "chunks", "triggers", "declared_links", "causal_edges",
    "embedding_cache", "changes", "memory_fts", "surface_fts", "session_sent", "working_memory", "uncounted_folders",
    "chunk_tokens", "changed_keys", "changed_links", "promotions", "source_paths", "token_counts", "migrations",
    "session_state", "archivals", "job_runs", "job_lease", "edge_history", "session_uses",
    "edge_uses", "scanned_memories", "suspected_contradictions", "judgements",
    "chunk_vectors",
)  # fmt: skip
SHADOWS = (
    "memory_fts_data", "memory_fts_idx", "memory_fts_docsize", "memory_fts_config", "surface_fts_data",
    "surface_fts_idx", "surface_fts_docsize", "surface_fts_config", "chunk_vectors_chunks",
    "chunk_vectors_rowids", "chunk_vectors_vector_chunks00", "chunk_vectors_info",
)  # fmt: skip
INDEXES = ("memories_by_folder", "memories_by_content", "memories_pending", "triggers_by_phrase", "memories_by_name")
COLUMNS = {
    "memories": (
        "key", "title", "folder", "tier", "context_type", "document_type", "memory_type", "spec_level", "content_hash",
        "fingerprint", "characters", "chunk_count", "embedding_status", "mtime_ns", "created_at", "updated_at",
        "expires_at", "last_accessed", "access_count", "stability", "difficulty", "confidence", "validation_count",
        "importance_weight", "interference",
    ),
    "texts": ("title_tokens", "trigger_tokens", "path_tokens", "extra", "rest", "tokens"),
    "chunks": ("memory_id", "ordinal", "vector", "first_line", "last_line", "heading", "anchor", "text", "lead"),
    "triggers": ("source", "phrase", "ordinal", "weight", "created_at"),
    "declared_links": ("relation", "target", "strength", "evidence", "reverse"),
    "changes": ("memory_id", "kind", "token"),
    "embedding_cache": ("vector", "last_used_at"),
    "chunk_tokens": ("tokens",),
    "meta": ("value",),
    "id_sequence": ("next",),
    "source_paths": ("overrules",),
    "token_counts": ("title", "passages", "rewritten"),
    "migrations": ("applied_at",),
}  # fmt: skip
VALUES = {
    "text": "'nonsense'",
    "null": "NULL",
    "blob": "x'ff00fe80'",
    "invalid_utf8": "CAST(x'61ff62' AS TEXT)",
    "negative": "-9223372036854775807",
    "huge": "9223372036854775807",
    "infinite": "9e999",
    "empty": "''",
}
SCHEMA = "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET {}"
STATEMENTS = {
    "vectors_nan": "UPDATE chunk_vectors_vector_chunks00 SET vectors = zeroblob(length(vectors) - 4) || x'0000c07f'",
    "vectors_all_nan": "UPDATE chunk_vectors_vector_chunks00 SET vectors = "
    "CAST(replace(hex(zeroblob(length(vectors) / 4)), '00', x'0000c07f') AS BLOB)",
    "vectors_short": "UPDATE chunk_vectors_vector_chunks00 SET vectors = substr(vectors, 1, 100)",
    "vectors_empty": "UPDATE chunk_vectors_vector_chunks00 SET vectors = x''",
    "vectors_long": "UPDATE chunk_vectors_vector_chunks00 SET vectors = zeroblob(1 + length(vectors) * 3)",
    "validity_short": "UPDATE chunk_vectors_chunks SET validity = x''",
    "validity_all": "UPDATE chunk_vectors_chunks SET validity = replace(hex(validity), '0', 'F')",
    "rowids_short": "UPDATE chunk_vectors_chunks SET rowids = x'0102'",
    "rowids_other": "UPDATE chunk_vectors_chunks SET rowids = zeroblob(length(rowids))",
    "size_zero": "UPDATE chunk_vectors_chunks SET size = 0",
    "size_huge": "UPDATE chunk_vectors_chunks SET size = 1000000",
    "chunk_offset_huge": "UPDATE chunk_vectors_rowids SET chunk_offset = 100000000",
    "chunk_id_other": "UPDATE chunk_vectors_rowids SET chunk_id = 77",
    "no_rowids": "DELETE FROM chunk_vectors_rowids",
    "no_vector_chunks": "DELETE FROM chunk_vectors_chunks",
    "fts_data_random": "UPDATE memory_fts_data SET block = substr(hex(block), 1, length(block))",
    "fts_data_empty": "UPDATE memory_fts_data SET block = x''",
    "fts_data_ones": "UPDATE memory_fts_data SET block = replace(hex(block), '0', 'F')",
    "fts_no_data": "DELETE FROM memory_fts_data",
    "fts_docsize_random": "UPDATE memory_fts_docsize SET sz = x'9e3779b97f4a7c15'",
    "fts_no_docsize": "DELETE FROM memory_fts_docsize",
    "fts_idx_random": "UPDATE memory_fts_idx SET pgno = 9999999",
    "fts_config_version": "UPDATE memory_fts_config SET v = 99",
    "surface_data_random": "UPDATE surface_fts_data SET block = substr(hex(block), 1, length(block))",
    # One level of two thousand million segments: FTS5 reports that it is out of memory and names no table.
    "surface_structure_huge": "UPDATE surface_fts_data SET block = x'0000000001010000' || x'87ffffff7f010101' "
    "WHERE id = 10",
    "surface_no_docsize": "DELETE FROM surface_fts_docsize",
    "no_meta": "DELETE FROM meta",
    "dimensions_nonsense": "UPDATE meta SET value = 'x' WHERE key LIKE '%dimension%'",
    "dimensions_other": "UPDATE meta SET value = '7' WHERE key LIKE '%dimension%'",
    "dimensions_huge": "UPDATE meta SET value = '99999999999' WHERE key LIKE '%dimension%'",
    "no_sequence": "DELETE FROM id_sequence",
    "sequence_low": "UPDATE id_sequence SET next = 1",
    "no_changes": "DELETE FROM changes",
    "changes_huge": "INSERT INTO changes (seq, memory_id, kind, token) VALUES (9223372036854775807, 1, 'put', 1)",
    "changes_negative": "UPDATE changes SET seq = -seq",
    "no_chunks": "DELETE FROM chunks",
    "no_texts": "DELETE FROM texts",
    "no_memories": "PRAGMA foreign_keys = OFF; DELETE FROM memories",
    "orphans": "PRAGMA foreign_keys = OFF; UPDATE chunks SET memory_id = 4711 + id",
    "no_migrations": "DELETE FROM migrations",
    "duplicate_rows": "PRAGMA writable_schema = ON; "
    "DELETE FROM sqlite_schema WHERE name = 'sqlite_autoindex_memories_1'; "
    "UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL UNIQUE', 'NOT NULL')",
    "hostile_trigger": "CREATE TRIGGER t AFTER INSERT ON changes BEGIN SELECT raise(ABORT, 'caught'); END",
    "hostile_view": "DROP TABLE texts; CREATE VIEW texts AS SELECT 1 AS memory_id, load_extension('x') AS body",
    "schema_nonsense": SCHEMA.format("sql = 'CREATE TABLE x(' WHERE name = 'chunks'"),
    "root_page_nonsense": SCHEMA.format("rootpage = 99999 WHERE name = 'chunks'"),
    "root_pages_swapped": SCHEMA.format("rootpage = 3 WHERE name = 'texts'"),
    "tokens_odd": "PRAGMA ignore_check_constraints = ON; UPDATE chunk_tokens SET tokens = x'010203'",
    "tokens_high": "UPDATE chunk_tokens SET tokens = x'ffffffff'",
    "cache_odd": "PRAGMA ignore_check_constraints = ON; UPDATE embedding_cache SET vector = x'010203'",
    "cache_short": "UPDATE embedding_cache SET vector = x'01020304'",
    "cache_nan": "UPDATE embedding_cache SET vector = x'0000c07f'",
}


def damages() -> dict[str, Damage]:
    """All ways, the random ones seeded."""
    found: dict[str, Damage] = {}
    found |= {f"random_bytes_{seed}": partial(_random_bytes, seed=seed) for seed in range(24)}
    found |= {f"random_bits_{seed}": partial(_random_bits, seed=seed) for seed in range(12)}
    found |= {f"zeroed_pages_{seed}": partial(_zeroed_pages, seed=seed) for seed in range(12)}
    found |= {f"swapped_pages_{seed}": partial(_swapped_pages, seed=seed) for seed in range(6)}
    found |= {f"cut_at_{share}": partial(_cut, share=share) for share in (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.999)}
    found |= {f"cut_at_page_{pages}": partial(_cut_pages, pages=pages) for pages in (1, 2, 10, 40)}
    found |= {
        f"header_byte_{at}": partial(_header_byte, at=at) for at in (16, 18, 19, 21, 24, 28, 32, 40, 44, 56, 60, 68)
    }
    found |= {f"dropped_{table}": partial(_sql, sql=f"DROP TABLE {table}") for table in (*TABLES, *SHADOWS)}
    found |= {f"dropped_{index}": partial(_sql, sql=f"DROP INDEX {index}") for index in INDEXES}
    found |= {
        f"dropped_{table}.{column}": partial(_loose, sql=f"ALTER TABLE {table} RENAME COLUMN {column} TO gone")
        for table, columns in COLUMNS.items()
        for column in columns
    }
    found |= {name: partial(_sql, sql=sql) for name, sql in STATEMENTS.items()}
    found |= {f"foreign_{part}_{kind}": partial(_foreign, part=part, kind=kind)
              for part in ("wal", "shm", "journal") for kind in ("random", "text", "empty", "folder")}  # fmt: skip
    for table, columns in COLUMNS.items():
        for number, column in enumerate(columns):
            for place, (name, value) in enumerate(VALUES.items()):
                if table not in ("memories", "chunks") or (number + place) % 3 == 0:
                    found[f"{table}.{column}_{name}"] = partial(_loose, sql=f"UPDATE {table} SET {column} = {value}")
    return found


def _random_bytes(path: Path, seed: int) -> None:
    source, content = random.Random(seed), bytearray(path.read_bytes())
    for _ in range(1 + seed % 8):
        at = source.randrange(100, len(content) - 64)
        content[at : at + 64] = source.randbytes(64)
    path.write_bytes(content)


def _random_bits(path: Path, seed: int) -> None:
    source, content = random.Random(seed), bytearray(path.read_bytes())
    for _ in range(40):
        content[source.randrange(100, len(content))] ^= 1 << source.randrange(8)
    path.write_bytes(content)


def _zeroed_pages(path: Path, seed: int) -> None:
    content = bytearray(path.read_bytes())
    for page in random.Random(seed).sample(range(1, len(content) // PAGE), 1 + seed % 4):
        content[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)
    path.write_bytes(content)


def _swapped_pages(path: Path, seed: int) -> None:
    content = path.read_bytes()
    pages = [content[at : at + PAGE] for at in range(0, len(content), PAGE)]
    one, other = random.Random(seed).sample(range(1, len(pages)), 2)
    pages[one], pages[other] = pages[other], pages[one]
    path.write_bytes(b"".join(pages))


def _cut(path: Path, share: float) -> None:
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])


def _cut_pages(path: Path, pages: int) -> None:
    path.write_bytes(path.read_bytes()[: pages * PAGE])


def _header_byte(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0xFF
    path.write_bytes(content)


def _sql(path: Path, sql: str) -> None:
    import sqlite_vec

    connection = apsw.Connection(str(path))
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    try:
        connection.execute(sql).fetchall()
    finally:
        connection.close()


def _loose(path: Path, sql: str) -> None:
    """What a table does not admit: its declaration is given back afterwards."""
    connection = apsw.Connection(str(path))
    tables = "FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%STRICT%'"
    before = connection.execute(f"SELECT name, sql {tables}").fetchall()
    version = connection.pragma("schema_version")
    connection.execute("PRAGMA writable_schema = ON")
    for name, declared in before:
        loose = (
            str(declared).replace(") STRICT, WITHOUT", ") WITHOUT").replace(") STRICT", ")").replace(" NOT NULL", "")
        )
        connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (loose, name))
    connection.execute(f"PRAGMA schema_version = {version + 1}").fetchall()
    connection.close()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF").fetchall()
    with suppress(apsw.ConstraintError, apsw.MismatchError):  # a key admits each value once
        connection.execute(sql).fetchall()
    if "RENAME" not in sql:
        connection.execute("PRAGMA writable_schema = ON")
        for name, declared in before:
            connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (declared, name))
        connection.execute(f"PRAGMA schema_version = {version + 2}").fetchall()
    connection.close()


def _foreign(path: Path, part: str, kind: str) -> None:
    target = path.with_name(f"{path.name}-{part}")
    if kind == "folder":
        target.mkdir()
    else:
        source = random.Random(part)
        target.write_bytes({"random": source.randbytes(40_000), "text": b"# A note\n" * 5000, "empty": b""}[kind])
