"""A database whose large tables are divided by workspace: every statement of a store reads one partition of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from files import write_file
from postgres_server import database, link_at

from speckit_memory import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.evaluation.schema import EVALUATION
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.postgres.schema import LARGE

NOW = 1_795_700_000.0
PARTITIONS = 4
_PARTITION = re.compile(r"_of_(\d+)$")


def link(path: Path) -> Path:
    """A store link to a new workspace of a database with partitions."""
    return link_at(path, f"{database('divided')}&partitions={PARTITIONS}")


def write_notes(root: Path) -> None:
    for number in range(6):
        linked = f"---\ncausalLinks:\n  caused_by: [notes/{number - 1}.md]\n---\n" if number else ""
        write_file(root / f"notes/{number}.md", f"{linked}# Note {number}\n\nA ranking of kind {number}, fused.\n")


def use(memory: Memory, root: Path) -> list[Any]:
    """Indexes, searches, changes and forgets documents; returns what was answered."""
    memory.index([root / "notes"])
    found = [memory.search(text, now=NOW, deadline_ms=None) for text in ("fused ranking", '"a ranking of"', "kind 3")]
    memory.documents.write("# New\n\nA ranking of its own.\n", path="notes/new.md")
    memory.documents.edit("notes/3.md", "\nOf a kind.\n")
    memory.graph.link("notes/3.md", "supports", "notes/5.md")
    memory.documents.forget(root / "notes/2.md")
    found += [memory.search(text, now=NOW, deadline_ms=None) for text in ("fused ranking", "its own")]
    told: list[Any] = [[(row.id, row.key, row.score) for row in one.results] for one in found]
    told.append([(step.source, step.target, step.hop) for step in memory.graph.lineage("notes/3.md").steps])
    return [*told, memory.lifecycle.check()]


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[Memory, Memory]]:
    """The product over a file and over the database with partitions."""
    roots = tmp_path / "file", tmp_path / "divided"
    for root in roots:
        write_notes(root)
    link(roots[1] / "m.db")
    with (
        Memory.open(roots[0] / "m.db", root=roots[0], environ={}) as file,
        Memory.open(roots[1] / "m.db", root=roots[1], environ={}) as divided,
    ):
        yield file, divided


def sent_by(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The statements about the store that are sent from now on, each with values that were sent with it."""
    import psycopg

    sent: dict[str, Any] = {}

    def of_store(cursor: Any) -> bool:
        return EVALUATION.schema not in cursor.connection.info.get_parameters()["options"]

    for cursor in (psycopg.RawCursor, psycopg.RawServerCursor):
        execute, many = cursor.execute, cursor.executemany

        def note(self: Any, sql: str, values: Any = None, *, _execute: Any = execute, **options: Any) -> Any:
            if of_store(self):
                sent[sql] = values
            return _execute(self, sql, values, **options)

        def note_many(self: Any, sql: str, values: Any, *, _many: Any = many, **options: Any) -> Any:
            if values and of_store(self):
                sent[sql] = values[0]
            return _many(self, sql, values, **options)

        monkeypatch.setattr(cursor, "execute", note)
        monkeypatch.setattr(cursor, "executemany", note_many)
    return sent


def partitions_in(plan: Any) -> Iterator[str]:
    """The numbers of the partitions that a plan touches."""
    if isinstance(plan, list):
        for one in plan:
            yield from partitions_in(one)
    elif isinstance(plan, dict):
        if found := _PARTITION.search(str(plan.get("Relation Name", ""))):
            yield found[1]
        for one in plan.values():
            yield from partitions_in(one)


def test_a_store_with_partitions_answers_as_a_file_and_each_statement_reads_one_partition(
    stores: tuple[Memory, Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, divided = stores
    sent = sent_by(monkeypatch)
    assert use(divided, divided.session.root) == use(file, file.session.root)
    monkeypatch.undo()

    with Database.open(divided.session.settings.db) as store:
        connection: Any = store.reader()
        with connection.session.transaction(force_rollback=True):
            touched: dict[str, set[str]] = {}
            for sql, values in sent.items():
                if sql.startswith(("SELECT", "WITH", "INSERT", "UPDATE", "DELETE")):
                    with connection.session.transaction(force_rollback=True):
                        plan = connection.fetch(f"EXPLAIN (FORMAT JSON) {sql}", values or []).rows[0][0]
                    touched[sql] = set(partitions_in(plan))
        session = connection.session
        (own,) = session.execute("SELECT DISTINCT right(tableoid::regclass::text, 1) FROM memories").fetchone()

    assert len(touched) > 100
    assert {sql: found for sql, found in touched.items() if not found <= {own}} == {}
    assert sum(found == {own} for found in touched.values()) > 40


def test_no_row_of_a_partition_is_seen_but_through_the_whole_table(stores: tuple[Memory, Memory]) -> None:
    divided = stores[1]
    divided.index([divided.session.root / "notes"])
    with Database.open(divided.session.settings.db) as store:
        session: Any = store.reader().session  # type: ignore[attr-defined]
        made = session.execute(
            "SELECT inhparent::regclass::text, inhrelid::regclass::text, relrowsecurity AND relforcerowsecurity "
            "FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE relkind = 'r'"
        ).fetchall()
        whole = {table: session.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in LARGE}
        seen = {part: session.execute(f"SELECT count(*) FROM {part}").fetchone()[0] for _, part, _ in made}

    assert {table for table, _, _ in made} == set(LARGE)
    assert (len(made), {forced for _, _, forced in made}) == (PARTITIONS * len(LARGE), {True})
    assert min(whole.values()) > 0
    assert set(seen.values()) == {0}


@pytest.mark.parametrize("number", ["-1", "many", "257"])
def test_a_number_of_partitions_that_is_none_is_refused(tmp_path: Path, number: str) -> None:
    with pytest.raises(SpeckitError, match=f"E030 partitions is '{number}'; accepted: 0 to 256"):
        Database.open(link_at(tmp_path / "m.db", f"{database('divided')}&partitions={number}"))
