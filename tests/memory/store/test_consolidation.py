"""What use and idleness do to edges, worked by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from speckit_memory.memory.editing.document_links import DocumentLinks
from speckit_memory.memory.lifecycle import consolidation
from speckit_memory.memory.lifecycle.consolidation import consolidate, waiting
from speckit_memory.memory.lifecycle.staleness import stale
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.queries import rows, value
from speckit_memory.memory.store.records import Document, Relation, Tier
from speckit_memory.memory.store.tables.graph import edge_history, edges
from speckit_memory.memory.store.tables.graph.edge_uses import note_used
from speckit_memory.memory.store.tables.sessions import working_memory
from speckit_memory.memory.store.writing import link_changes, writer
from speckit_memory.memory.store.writing.writer import set_attribute

Make = Callable[..., Document]
NOW = 1_800_000_000.0
DAY = 86_400.0
WEEK = 7 * DAY
CAUSED = Relation.CAUSED


@pytest.fixture
def store(database: Database, document: Make) -> Database:
    with database.write() as txn:
        for number in range(1, 7):
            writer.put_document(txn, document(f"k{number}", "a"), None, NOW, None)
    return database


def make(database: Database, source: int, target: int, strength: float, by: str = "manual", now: float = NOW) -> None:
    with database.write() as txn:
        edges.add_edge(txn, source, target, CAUSED, strength, "", by, now)


def use(database: Database, memories: list[int], now: float, session: str = "s", *, attend: bool = True) -> None:
    with database.write() as txn:
        if attend:
            working_memory.note_event(txn, session, memories, now, source="answer")
        note_used(txn, memories, now)


def run(database: Database, now: float) -> int:
    done = 0
    while True:
        with database.write() as txn:
            more = consolidate(txn, now)
        if not more:
            return done
        done += more


def strengths(database: Database) -> dict[tuple[int, int], float]:
    found = rows(database.reader(), "SELECT source_id, target_id, strength FROM causal_edges")
    return {(source, target): strength for source, target, strength in found}


@pytest.mark.requirement("M11.gain", "M11.bounds", "M11.nothing")
def test_a_round_adds_a_twentieth_to_edges_whose_ends_were_used_together_once(store: Database) -> None:
    make(store, 1, 2, 0.4)
    make(store, 2, 3, 0.3, "entity_links")
    make(store, 3, 4, 0.48, "entity_links")
    make(store, 4, 5, 1.0)
    for _ in range(3):  # as often as it may be, a round adds the same
        use(store, [1, 2, 3, 4, 5], NOW)
    assert waiting(store.reader(), NOW + 1) == 4
    assert run(store, NOW + 1) == 4
    # 0.4 + 0.05; 0.3 + 0.05; 0.48 + 0.05 is over the bound of automatic edges, 1 + 0.05 over that of all
    assert strengths(store) == {(1, 2): 0.45, (2, 3): 0.35, (3, 4): 0.5, (4, 5): 1.0}
    assert (waiting(store.reader(), NOW + 1), run(store, NOW + 1)) == (0, 0)
    use(store, [1, 2], NOW + DAY)
    assert run(store, NOW + DAY) == 0  # the round of this week is over
    assert run(store, NOW + 1 + WEEK) == 1
    assert strengths(store)[1, 2] == 0.5
    assert value(store.reader(), "SELECT said FROM causal_edges WHERE id = 1") == 0.4


@pytest.mark.requirement("M11.gain", "M11.served")
def test_ends_count_as_used_together_within_half_an_hour_of_one_session_alone(store: Database) -> None:
    make(store, 1, 2, 0.4)
    use(store, [1], NOW)
    use(store, [2], NOW, "another")  # two sessions
    use(store, [2], NOW + 1801)  # too late
    assert waiting(store.reader(), NOW + DAY) == 0
    with store.write() as txn:  # served to the session, of no use to it
        working_memory.note_event(txn, "s", [1, 2], NOW + 1802, source="answer")
    assert waiting(store.reader(), NOW + DAY) == 0
    use(store, [1], NOW + 1803, attend=False)
    assert waiting(store.reader(), NOW + DAY) == 1
    use(store, [3, 4], NOW, "nobody", attend=False)  # no session attends to them
    assert rows(store.reader(), "SELECT session FROM session_uses WHERE memory_id > 2") == []


@pytest.mark.requirement("M11.loss", "M11.bounds", "M11.nothing")
def test_thirty_idle_days_take_a_tenth_down_to_what_was_said_or_the_least(store: Database) -> None:
    make(store, 1, 2, 0.4)
    make(store, 2, 3, 0.22, "entity_links")
    make(store, 3, 4, 0.02, "entity_links")
    use(store, [1, 2], NOW)
    run(store, NOW)
    assert strengths(store)[1, 2] == 0.45
    assert run(store, NOW + 30 * DAY - 1) == 0
    assert run(store, NOW + 30 * DAY) == 2
    # 0.45 - 0.1 is below the 0.4 that was said; 0.22 - 0.1; what is below the least stays
    assert strengths(store) == {(1, 2): 0.4, (2, 3): 0.12, (3, 4): 0.02}
    assert run(store, NOW + 59 * DAY) == 0
    assert run(store, NOW + 60 * DAY) == 1
    assert strengths(store)[2, 3] == 0.05  # 0.02 would be below the least
    assert run(store, NOW + 900 * DAY) == 0
    assert value(store.reader(), "SELECT said FROM causal_edges WHERE id = 1") is None


@pytest.mark.requirement("M11.undo", "M7.history", "M7.undo")
def test_what_rounds_have_changed_is_on_record_and_undone_at_once(store: Database) -> None:
    make(store, 1, 2, 0.4)
    make(store, 2, 3, 0.3, "entity_links")
    use(store, [1, 2], NOW)
    run(store, NOW)
    run(store, NOW + 31 * DAY)
    found = edge_history.changes(store.reader(), by=consolidation.MAKER)
    assert [(c.source_id, c.before.strength, c.after.strength, c.why) for c in found if c.before and c.after] == [
        (2, 0.3, 0.2, "not used for 30 days"), (1, 0.45, 0.4, "not used for 30 days"),
        (1, 0.4, 0.45, "both ends were used together, 1 time"),
    ]  # fmt: skip
    with store.write() as txn:
        edges.add_edge(txn, 1, 2, CAUSED, 0.9, "", "manual", NOW + 32 * DAY)
        undone = link_changes.undo_all(
            txn, consolidation.MAKER, DocumentLinks(Path()), since=0.0, by="manual", now=NOW + 33 * DAY
        )
    # what somebody has changed since stays as it is
    assert [change.source_id for change in undone.changes] == [2]
    assert [(change.source_id, "changed again" in why) for change, why in undone.refused] == [(1, True), (1, True)]
    assert strengths(store) == {(1, 2): 0.9, (2, 3): 0.3}
    assert run(store, NOW + 34 * DAY) == 0  # what was undone is not done again at once


@pytest.mark.requirement("M11.job")
def test_a_batch_is_bounded(store: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consolidation, "BATCH", 2)
    for source in range(1, 6):
        make(store, source, source + 1, 0.3, "entity_links")
    with store.write() as txn:
        assert [consolidate(txn, NOW + 31 * DAY) for _ in range(4)] == [2, 2, 1, 0]


@pytest.mark.requirement("M11.stale")
def test_what_nobody_asked_for_in_ninety_days_is_stale_unless_its_tier_lasts(store: Database) -> None:
    later = NOW + 90 * DAY
    with store.write() as txn:
        txn.connection.execute("UPDATE memories SET created_at = ?1, updated_at = ?1", (NOW,))
        set_attribute(txn, "last_accessed", {1: NOW + 1.0})
        txn.connection.execute("UPDATE memories SET tier = ? WHERE id = 2", (str(Tier.CRITICAL),))
        txn.connection.execute("UPDATE memories SET created_at = 0, updated_at = 0 WHERE id = 3")  # of unknown age
        txn.connection.execute("UPDATE memories SET expires_at = ? WHERE id = 4", (NOW,))
    assert stale(store.reader(), later - 1) == []
    assert [memory.key for memory in stale(store.reader(), later)] == ["k5", "k6"]
    assert [memory.key for memory in stale(store.reader(), later + 1)] == ["k5", "k6", "k1"]
