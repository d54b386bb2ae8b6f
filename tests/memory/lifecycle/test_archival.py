"""Which memories are put away, at every border, and that they come back as they were."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.lifecycle import archival
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.records import Document, Tier
from speckit_memory.memory.store.tables.memories.archivals import archived_memories
from speckit_memory.memory.store.writing.writer import put_document, set_attribute

DAY = 86_400.0
NOW = 1_800_000_000.0
OLD = NOW - 91 * DAY
NOTE = Document(key="n.md", title="Note", body="text", content_hash="h", created_at=OLD, updated_at=OLD)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "store.db") as database:
        yield database


def put(database: Database, key: str, *, confidence: float = 0.39, uses: int = 1, **facts: Any) -> int:
    with database.write() as txn:
        memory = put_document(txn, replace(NOTE, key=key, **facts), None, NOW, None).id
        set_attribute(txn, "confidence", {memory: confidence})
        set_attribute(txn, "access_count", {memory: uses})
    return memory


def archive(database: Database, now: float = NOW) -> list[str]:
    with database.write() as txn:
        archival.archive_expired(txn, now)
        archival.archive_unused(txn, now)
    return [one.key for one in archived_memories(database.reader())]


@pytest.mark.requirement("M5.borders")
def test_only_what_is_old_and_hardly_used_and_doubted_is_archived(database: Database) -> None:
    put(database, "all.md")
    put(database, "used-twice.md", uses=2)
    put(database, "trusted.md", confidence=0.4)
    put(database, "young.md", created_at=NOW - 90 * DAY, updated_at=NOW - 90 * DAY)
    put(database, "changed-since.md", updated_at=NOW - 89 * DAY)
    put(database, "undated.md", created_at=None, updated_at=None)
    assert archival.count_unused(database.reader(), NOW) == 1
    assert archive(database) == ["all.md"]
    assert archival.count_unused(database.reader(), NOW) == 0
    (facts,) = archived_memories(database.reader())
    assert (facts.reason, facts.archived_at) == ("unused", NOW)


@pytest.mark.requirement("M5.protected")
def test_constitutional_and_critical_memories_are_never_archived(database: Database) -> None:
    for tier in Tier:
        put(database, f"{tier}.md", tier=tier)
    assert archive(database) == ["deprecated.md", "important.md", "normal.md", "temporary.md"]


@pytest.mark.requirement("M5.batches")
def test_a_batch_is_fifty(database: Database) -> None:
    for number in range(60):
        put(database, f"{number:02}.md")
    with database.write() as txn:
        assert [archival.archive_unused(txn, NOW) for _ in range(3)] == [50, 10, 0]


@pytest.mark.requirement("F7.expiry", "M5.expired")
def test_what_has_expired_is_archived_and_lives_seven_more_days_when_it_is_restored(database: Database) -> None:
    eight, six = NOW - 8 * DAY, NOW - 6 * DAY
    put(database, "temporary.md", tier=Tier.TEMPORARY, confidence=1.0, created_at=eight)
    put(database, "fresh.md", tier=Tier.TEMPORARY, confidence=1.0, created_at=six)
    dated = put(database, "dated.md", confidence=1.0, uses=9)
    with database.write() as txn:
        set_attribute(txn, "expires_at", {dated: NOW - 1})
    assert archival.count_expired(database.reader(), NOW) == 2
    assert archive(database) == ["dated.md", "temporary.md"]
    assert {one.reason for one in archived_memories(database.reader())} == {"expired"}

    memory, restored = archival.unarchive(database, "temporary.md", NOW)
    assert restored
    assert rows(database.reader(), "SELECT expires_at FROM memories WHERE id = ?", (memory.id,)) == [(NOW + 7 * DAY,)]
    assert archive(database, NOW + 6 * DAY) == ["dated.md", "fresh.md"]
    assert archive(database, NOW + 8 * DAY) == ["dated.md", "fresh.md", "temporary.md"]


@pytest.mark.requirement("M5.reversible")
def test_a_restored_memory_is_as_it_was_and_is_not_archived_again_for_ninety_days(database: Database) -> None:
    memory = put(database, "n.md")
    before = rows(database.reader(), "SELECT * FROM memories")
    assert archive(database) == ["n.md"]
    assert archival.unarchive(database, "n.md", NOW)[1]
    assert rows(database.reader(), "SELECT * FROM memories") == before
    assert archival.unarchive(database, memory, NOW)[1] is False
    assert archive(database, NOW + 90 * DAY) == []
    assert archive(database, NOW + 91 * DAY) == ["n.md"]
    with pytest.raises(SpeckitError, match="E080"):
        archival.unarchive(database, "other.md", NOW)


@pytest.mark.requirement("M5.reversible")
def test_a_memory_whose_document_says_something_new_is_taken_back(database: Database) -> None:
    memory = put(database, "n.md")
    archive(database)
    with database.write() as txn:
        put_document(txn, replace(NOTE, body="another text", content_hash="other"), None, NOW, None)
    assert archived_memories(database.reader()) == []
    assert rows(database.reader(), "SELECT expires_at FROM memories WHERE id = ?", (memory,)) == [(None,)]
