"""Stores of every schema that was ever released become stores of today, with all that they held (feature M1)."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from answered import refused
from storing.contents import contents

from speckit_memory.engine import Memory
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.opening import vector_extension
from speckit_memory.memory.store.file.schema.migrations import MIGRATIONS, applied_migrations, migrate
from speckit_memory.memory.store.file.schema.packing import unpack_tokens
from speckit_memory.memory.store.transfer.table_map import KEPT

RELEASED = {
    "0001_first_schema": "698b76c820db431e", "0002_sessions": "60a8223069c06eb1",
    "0003_uncounted_folders": "e9c84abf614d272a", "0004_chunk_tokens": "37970d2338e4a52b",
    "0005_link_targets": "35ef338ba75953d1", "0006_token_model": "8313b8c559c7d6b2",
    "0007_promotions": "39e1fc38dfba154d", "0008_source_paths": "be3a75af4cd19629",
    "0009_change_tokens": "0c0fdbfd6a421773", "0010_token_counts": "8c2483b702e80c9e",
    "0011_life": "ec5e10a77f1a211d", "0012_edge_history": "8c8ea79c72958aee", "0013_learning": "dc30cc9eb6ab86fe",
    "0014_former_keys": "c6804cd1ddae62e0", "0015_structure": "5444170b60a7d42d",
    "0016_store_identity": "00b63fed535ca634", "0017_embedding_models": "9dce82daa618df2c",
    "0018_summaries": "3a93b9f9af0a1f96", "0019_judgements": "5f02cad41d64e7d9",
    "0020_promoted_read": "21faf357a99675d2", "0021_absences": "1d055d70518e41e8",
    "0022_surface": "7676f6db9f384617", "0023_packed_texts": "358e430424623387",
    "0024_uncached_pools": "0df0f07b626fd23a", "0025_principals": "c8e5de6e01d52c3b",
}  # fmt: skip
"""The first digits of the digest of each migration in the commit that brought it. What a store has been through is
never changed afterwards: correct it by a further migration."""
ASKED = ("why are ranks fused", "computeMPAB", "quokka cache")
LATER_FACTS = {"token_bytes": "0004_chunk_tokens", "token_model": "0006_token_model"}
"""Facts that came with a migration."""
UNPACKED = {
    ("texts", "body"): "(SELECT body FROM bodies b WHERE b.memory_id = texts.memory_id)",
    ("chunks", "tokens"): "unpacked((SELECT tokens FROM texts t WHERE t.memory_id = chunks.memory_id), ordinal)",
}
"""How the columns of earlier schemas are read today."""
OLDER = range(1, len(MIGRATIONS))


def connected(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.enable_load_extension(True)
    connection.load_extension(vector_extension())
    connection.create_scalar_function("unpacked", unpacked, 2)
    return connection


def unpacked(*found: Any) -> Any:
    tokens, ordinal = found
    return unpack_tokens(tokens)[ordinal]


def tables(connection: apsw.Connection) -> list[str]:
    found = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rowid").get
    names = [found] if isinstance(found, str) else list(found or ())
    return [name for name in names if not name.startswith(("memory_fts", "surface_fts", "chunk_vectors_", "sqlite_"))]


def columns(connection: apsw.Connection, table: str, schema: str = "main") -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA {schema}.table_info({table})")]


def schema(connection: apsw.Connection) -> set[tuple[str, str]]:
    """What the file is made of; the table of vectors is made with the first of them."""
    found = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return {(name, " ".join(sql.split())) for name, sql in found if not name.startswith("chunk_vectors")}


def as_it_was(path: Path, today: Path, steps: Sequence[str]) -> None:
    """Makes a store by the first migrations and fills it with what one of today holds, as far as it has places."""
    with closing(connected(path)) as old:
        migrate(old, path, MIGRATIONS[: len(steps)])
        old.pragma("journal_mode", "wal")
        old.execute("ATTACH ? AS today", (str(today),))
        [vectors] = old.execute("SELECT sql FROM today.sqlite_schema WHERE name = 'chunk_vectors'")
        old.execute(vectors[0])
        for table in tables(old):
            if table in ("migrations", "store_identity"):
                continue
            there = columns(old, table)
            shared = ", ".join(f'"{name}"' for name in columns(old, table, "today") if name in there)
            given = "rowid, embedding" if table == "chunk_vectors" else shared
            old.execute(f"DELETE FROM main.{table}")
            source, chosen = f"today.{table}", given
            if "body" in there and table == "texts":
                given, chosen, source = (
                    f"{given}, body",
                    f"{given}, body",
                    f"{source} JOIN today.bodies USING (memory_id)",
                )
            if "tokens" in there and table == "chunks":
                packed = "(SELECT unpacked(t.tokens, ordinal) FROM today.texts t WHERE t.memory_id = c.memory_id)"
                given, chosen, source = f"{given}, tokens", f"{given}, {packed}", f"{source} c"
            old.execute(f"INSERT INTO main.{table} ({given}) SELECT {chosen} FROM {source}")
        later = [f"'{key}'" for key, step in LATER_FACTS.items() if step not in steps]
        old.execute(f"DELETE FROM meta WHERE key IN ({', '.join(later)})")
        old.execute("DETACH today")
        # as the version of that time did: the rows of full text beside those of the memories
        old.execute(
            "INSERT INTO memory_fts (rowid, title, triggers, path, body) SELECT memory_id, title_tokens, "
            "trigger_tokens, path_tokens, (SELECT group_concat(tokens, ' ' ORDER BY ordinal) FROM chunks c "
            "WHERE c.memory_id = t.memory_id) FROM texts t"
            if "body" in columns(old, "texts")
            else "INSERT INTO memory_fts (rowid, body, title, triggers, path) SELECT memory_id, (SELECT "
            "group_concat(unpacked(t.tokens, ordinal), ' ' ORDER BY ordinal) FROM chunks c "
            "WHERE c.memory_id = t.memory_id), title_tokens, trigger_tokens, path_tokens FROM texts t; "
            "INSERT INTO surface_fts (rowid, title, body) SELECT m.id, m.title, b.body FROM memories m "
            "JOIN bodies b ON b.memory_id = m.id"
        )


def make_older(file: Path, before: str) -> None:
    """Replaces a store by the one that a version before this migration would have made."""
    with closing(connected(file)) as store:
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    today = file.rename(file.with_name("today.db"))
    as_it_was(file, today, [step.name for step in MIGRATIONS if step.name < before])
    today.unlink()


@pytest.mark.requirement("M1.migrations")
def test_no_released_migration_was_changed() -> None:
    now = {
        step.name: hashlib.sha256(f"{step.statements}{step.afterwards}".encode()).hexdigest()[:16]
        for step in MIGRATIONS
    }
    assert list(now.items())[: len(RELEASED)] == list(RELEASED.items())
    assert list(now) == list(RELEASED), "write the digest of the new migration down here"


@pytest.mark.requirement("M1.migrations")
@pytest.mark.parametrize("count", OLDER, ids=lambda count: MIGRATIONS[count - 1].name)
def test_a_store_of_every_schema_becomes_one_of_today(unasked: Path, tmp_path: Path, count: int) -> None:
    today = tmp_path / "today.db"
    shutil.copy(unasked / "memory.db", today)
    with Memory.open(today, root=tmp_path, environ={}) as memory:
        wanted = [[(row.id, row.score) for row in memory.search(query, deadline_ms=None).results] for query in ASKED]
    path = tmp_path / "memory.db"
    names = [step.name for step in MIGRATIONS]
    shutil.copy(unasked / "memory.db", today)
    as_it_was(path, today, names[:count])
    before = contents(path)
    with closing(connected(path)) as old:
        had = {table: columns(old, table) for table in tables(old)}

    with Memory.open(path, root=tmp_path, environ={}) as memory:
        assert memory.session.database.check() == []
        found = [[(row.id, row.score) for row in memory.search(query, deadline_ms=None).results] for query in ASKED]
    # the tokens of passages came with a migration, and with the next index of what was stored before
    tokens = "0004_chunk_tokens" in names[:count]
    assert found == wanted if tokens else [rows[0][0] for rows in found] == [rows[0][0] for rows in wanted]

    with closing(connected(path)) as new, closing(connected(today)) as other:
        assert applied_migrations(new) == tuple(names)
        assert schema(new) == schema(other)
        for kept in (kept.name for kept in KEPT if kept.name in had and kept.name != "memories"):
            shown = ", ".join(
                UNPACKED.get((kept, name), f'"{name}"') for name in had[kept] if name not in ("source_call",)
            )
            assert sorted(map(repr, new.execute(f"SELECT {shown} FROM {kept}"))) == before[kept]
    backup = tmp_path / f"memory.db.before-{names[count]}"
    assert contents(backup) == before
    with closing(connected(backup)) as copy:
        assert applied_migrations(copy) == tuple(names[:count])


@pytest.mark.requirement("M1.migrations")
def test_a_newer_schema_is_refused_and_left_alone(unasked: Path, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    shutil.copy(unasked / "memory.db", path)
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("INSERT INTO migrations VALUES ('9999_tomorrow', '2099-01-01T00:00:00Z')")
        connection.pragma("journal_mode", "delete")
    before = path.read_bytes()
    with refused("E025", match="9999_tomorrow"):
        Database.open(path)
    assert path.read_bytes() == before
    assert list(tmp_path.glob("*before*")) == []
