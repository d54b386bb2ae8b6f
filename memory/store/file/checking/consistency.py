"""Consistency checks of a store: SQLite's own and the rules that no constraint can express."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice

import apsw
import numpy as np

from speckit_memory.memory.store.file.checking.spaces_check import MISFITS, of_another_model
from speckit_memory.memory.store.file.guarding.queries import rows, table_exists, value
from speckit_memory.memory.store.file.schema.facts import FACTS, KEPT_FACTS
from speckit_memory.memory.store.file.schema.packing import unpack_tokens
from speckit_memory.memory.store.file.schema.schema import COUNTED

_TOLERANCE = 1e-2
"""Largest accepted difference between the squared length of a stored vector and 1."""

_NUMBERS = tuple(
    (fact.name, f"'{fact.kind}', 'null'" if fact.optional else f"'{fact.kind}'")
    for fact in (*FACTS, *KEPT_FACTS)
    if fact.kind != "text"
)
# (sentence, query): every row of a query is an inconsistency; its first column fills the sentence.
_RULES = (
    ("memory {} has no full-text row", "SELECT id FROM memories EXCEPT SELECT rowid FROM memory_fts"),
    ("the full-text row {} belongs to no memory", "SELECT rowid FROM memory_fts EXCEPT SELECT id FROM memories"),
    ("memory {} has no row of its words as written", "SELECT id FROM memories EXCEPT SELECT rowid FROM surface_fts"),
    (
        "the row {} of words as written belongs to no memory",
        "SELECT rowid FROM surface_fts EXCEPT SELECT id FROM memories",
    ),
    ("memory {} has no texts", "SELECT id FROM memories EXCEPT SELECT memory_id FROM texts"),
    ("the tokens of memory {} are not counted", "SELECT id FROM memories EXCEPT SELECT memory_id FROM token_counts"),
    (
        "the chunks of memory {} have ids in another order",
        "SELECT memory_id FROM (SELECT memory_id, id - lag(id) OVER (PARTITION BY memory_id ORDER BY ordinal) AS step "
        "FROM chunks) WHERE step < 0",
    ),
    (
        "memory {} does not have the number of chunks it says",
        "SELECT m.id FROM memories m WHERE m.chunk_count <> "
        "(SELECT count(*) FROM chunks c WHERE c.memory_id = m.id AND c.ordinal < m.chunk_count)",
    ),
    (
        "chunk {} has the id of another memory",
        "SELECT c.id FROM chunks c JOIN memories m ON m.id = c.id WHERE c.memory_id <> m.id OR m.chunk_count <> 1",
    ),
    (
        "memory {} does not have the embedding status of its chunks",
        "SELECT m.id FROM memories m WHERE (m.embedding_status = 'pending') <> "
        "EXISTS (SELECT 1 FROM chunks c WHERE c.memory_id = m.id AND c.vector = 'pending')",
    ),
    (
        "the tokens of chunk {} belong to no vector",
        "SELECT chunk_id FROM chunk_tokens EXCEPT SELECT id FROM chunks WHERE vector <> 'pending'",
    ),
    (
        "memory {} has values that are not numbers",
        f"SELECT id FROM memories WHERE {' OR '.join(f'typeof({name}) NOT IN ({kinds})' for name, kinds in _NUMBERS)}",
    ),
    (
        "memory {} has a time out of range",
        "SELECT id FROM memories WHERE max(abs(created_at), abs(updated_at), abs(coalesce(last_accessed, 0))) >= "
        "253402300800",
    ),
    (
        "id {} has not been drawn from the sequence",
        "SELECT id FROM memories WHERE id >= (SELECT next FROM id_sequence)",
    ),
    ("id {} has not been drawn from the sequence", "SELECT id FROM chunks WHERE id >= (SELECT next FROM id_sequence)"),
)
_VECTOR_RULES = (
    (
        "chunk {} should have a vector",
        "SELECT id FROM chunks WHERE vector = 'stored' EXCEPT SELECT rowid FROM chunk_vectors",
    ),
    (
        "the vector {} belongs to no chunk",
        "SELECT rowid FROM chunk_vectors EXCEPT SELECT id FROM chunks WHERE vector = 'stored'",
    ),
)
# as a number in every engine; migrations keep the statement that they were released with
_COUNTED = COUNTED.replace("({0} <> '')", "iif({0} <> '', 1, 0)")
_TOKENS = f"""
SELECT n.memory_id, t.tokens, n.passages, (n.title, n.triggers, n.path) <> ({
    ", ".join(_COUNTED.format(f"t.{name}") for name in ("title_tokens", "trigger_tokens", "path_tokens"))
}) FROM token_counts n JOIN texts t USING (memory_id)
"""
_OTHER_RULES = (
    ("the state of the causal graph is missing", "SELECT 1 WHERE (SELECT count(*) FROM graph_state) <> 1"),
    ("the sequence of ids is missing", "SELECT 1 WHERE (SELECT count(*) FROM id_sequence WHERE next >= 1) <> 1"),
    ("the log of changes has impossible numbers", f"SELECT 1 FROM changes WHERE seq NOT BETWEEN 1 AND {1 << 60}"),
    (
        "the store does not say which model made its vectors",
        "SELECT 1 FROM chunks WHERE vector = 'stored' AND (SELECT count(*) FROM meta "
        "WHERE key IN ('embedding_model', 'embedding_dimensions')) < 2",
    ),
    ("cached vectors of {} have the wrong number of dimensions", f"SELECT DISTINCT c.model_id {MISFITS}"),
)
_NO_VECTOR_RULES = (("chunk {} should have a vector", "SELECT id FROM chunks WHERE vector <> 'pending'"),)


_TEXTS = {
    "memories": ("key", "title", "folder", "tier", "context_type", "document_type", "memory_type", "content_hash"),
    "texts": ("title_tokens", "trigger_tokens", "path_tokens", "extra", "rest"),
    "chunks": ("heading", "anchor", "text", "lead"),
    "triggers": ("normalised", "phrase"),
    "declared_links": ("relation", "target", "evidence"),
    "memory_entities": ("entity", "kind"),
    "summaries": ("content_hash", "summary"),
    "meta": ("key", "value"),
}
"""Columns read as text: SQLite itself does not check that they hold UTF-8."""
UNREADABLE = (apsw.Error, UnicodeDecodeError, ValueError, TypeError)
"""Errors raised on reading values that no store has written."""
_NAMED = 10
"""Maximum number of rows named per rule."""


def inconsistencies(connection: apsw.Connection) -> list[str]:
    """The problems found, one sentence each, with at most ten rows per rule; unreadable parts are reported too."""
    found: list[str] = []
    checks: list[tuple[str, Callable[[], Iterable[str]]]] = [
        ("the file", lambda: _integrity(connection)),
        ("the references between tables", lambda: _references(connection)),
        *((sentence, partial(_broken, connection, sentence, query)) for sentence, query in (*_RULES, *_OTHER_RULES)),
        ("the tokens", lambda: islice(_tokens(connection), _NAMED)),
        ("the vectors", lambda: _vectors(connection)),
    ]
    if isinstance(connection, apsw.Connection):  # PostgreSQL takes no text that is not UTF-8
        checks += [
            (f"the texts of {table}", partial(_texts, connection, table, columns)) for table, columns in _TEXTS.items()
        ]
    for what, check in checks:
        try:
            found += check()
        except UNREADABLE as error:
            subject = what if what.startswith("the ") and "{}" not in what else "a part of the store"
            found.append(f"{subject} cannot be checked: {error}")
    return list(dict.fromkeys(found))


def _integrity(connection: apsw.Connection) -> Iterator[str]:
    # FTS5 caches its list of segments, and integrity_check does not refresh it: after a write by another connection it
    # would look for deleted segments and report a damaged file. A query refreshes the list.
    for table in ("memory_fts", "surface_fts"):
        try:
            rows(connection, f"SELECT 1 FROM {table} LIMIT 1")
        except apsw.Error as error:  # `integrity_check` may end with the same error, and then names no table
            yield f"{table} cannot be read: {error}"
    for (line,) in connection.execute("PRAGMA integrity_check"):
        if line != "ok":
            yield line


def _references(connection: apsw.Connection) -> Iterator[str]:
    for table, rowid, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"row {rowid} of {table} points to a missing row of {parent}"


def _broken(connection: apsw.Connection, sentence: str, query: str) -> Iterator[str]:
    for row in connection.execute(f"{query} LIMIT {_NAMED}"):
        yield sentence.format(row[0])


def _tokens(connection: apsw.Connection) -> Iterator[str]:
    for memory, stored, counts, differs in connection.execute(_TOKENS):
        try:
            passages = unpack_tokens(stored)
        except ValueError:
            yield f"the tokens of memory {memory} cannot be read"
            continue
        if differs or counts != b"".join((text.count(" ") + (text != "")).to_bytes(4) for text in passages):
            yield f"memory {memory} does not have the number of tokens it says"


def _vectors(connection: apsw.Connection) -> Iterator[str]:
    stored = table_exists(connection, "chunk_vectors")
    for sentence, query in _VECTOR_RULES if stored else _NO_VECTOR_RULES:
        yield from _broken(connection, sentence, query)
    if stored:
        size = int(value(connection, "SELECT value FROM meta WHERE key = 'embedding_dimensions'") or 0)
        wrong = (
            row
            for row, vector in connection.execute("SELECT rowid, embedding FROM chunk_vectors")
            if not is_unit(vector, size)
        )
        for row in islice(wrong, _NAMED):
            yield f"the vector {row} is not a unit vector of {size} numbers"
        for row, why in islice(of_another_model(connection), _NAMED):
            yield f"the vector {row} is from another vector space: {why}"


def is_unit(vector: object, size: int) -> bool:
    """Whether these are the bytes of a unit vector of `size` 32-bit floats."""
    if not isinstance(vector, bytes) or len(vector) != 4 * size:
        return False
    # numbers: (size,); ‖v‖² in float64, so that rounding stays far below the tolerance. NaN fails the comparison.
    numbers = np.frombuffer(vector, np.float32).astype(np.float64)
    return bool(abs(numbers @ numbers - 1.0) < _TOLERANCE)


def _texts(connection: apsw.Connection, table: str, columns: Sequence[str]) -> Iterator[str]:
    number = "rowid" if table not in ("triggers", "declared_links", "memory_entities", "meta") else "0"
    # As blobs: the driver would raise at the first text that is not UTF-8, and the others would stay unchecked.
    read = ", ".join(f"CAST({column} AS BLOB)" for column in columns)
    wrong = (
        f"{table}.{column}" + (f" of row {row}" if row else "")
        for row, *values in connection.execute(f"SELECT {number}, {read} FROM {table}")
        for column, text in zip(columns, values, strict=True)
        if text is not None and not _is_text(text)
    )
    for place in islice(wrong, _NAMED):
        yield f"{place} is not UTF-8 text"


def _is_text(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
