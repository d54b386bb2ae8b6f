from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from answered import refused
from crashing import every_point
from storing.contents import contents

from speckit_memory.memory.lifecycle.confidence import BIRTH
from speckit_memory.memory.lifecycle.validations import ValidationResult, promote, validate
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import Document, Promotion, Tier
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.writing.writer import delete_memories, put_document

NOW = 1000.0
PROJECT = Path(__file__).parents[3]
NOTE = Document(key="note.md", title="Note", body="text", content_hash="h")
TRUSTED = Promotion(Tier.NORMAL, confidence=1.0, validation_count=5, promoted_at=NOW)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A store with the memory 1, `note.md`, of the tier normal."""
    with Database.open(tmp_path / "store.db") as database:
        put(database, NOTE)
        yield database


def put(database: Database, *documents: Document) -> None:
    with database.write() as txn:
        for document in documents:
            put_document(txn, document, None, 1.0, None)


def judge(database: Database, *judgements: bool, name: int | str = 1) -> list[ValidationResult]:
    return [validate(database, name, useful, promote=False, now=NOW) for useful in judgements]


def everything(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table of the store, except what belongs to the full-text search."""
    connection = database.reader()
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    own = [name for name in tables if "fts" not in name and name != "workspaces"]  # which shows the names of all
    return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in own}


@pytest.mark.requirement("F17")
def test_a_judgement_moves_confidence_and_count_together(database: Database) -> None:
    put(database, replace(NOTE, key="other.md"))
    before = changes.latest(database.reader())
    normal = ValidationResult(1, "note.md", Tier.NORMAL, 0.6, 1, eligible=False, promotion=None, kept_days=0.0)
    judged_so = judge(database, True, False, True, True, True, True)
    assert [replace(standing, kept_days=0.0) for standing in judged_so] == [
        normal,  # 0.5 + 0.10
        replace(normal, confidence=0.55, validation_count=2),  # - 0.05
        replace(normal, confidence=0.65, validation_count=3),
        replace(normal, confidence=0.75, validation_count=4),
        replace(normal, confidence=0.85, validation_count=5),  # five validations, too little confidence
        replace(normal, confidence=0.95, validation_count=6, eligible=True),
    ]
    judged, other = reader.get_memory(database.reader(), "note.md"), reader.get_memory(database.reader(), "other.md")
    assert (judged.tier, judged.confidence, judged.validation_count) == (Tier.NORMAL, 0.95, 6)
    assert (other.tier, other.confidence, other.validation_count) == (Tier.NORMAL, 0.5, 0)
    assert changes.since(database.reader(), before) == (changes.latest(database.reader()), [(1, "attributes")])


@pytest.mark.requirement("F17")
def test_a_memory_is_named_by_its_id_or_key(database: Database) -> None:
    assert [standing.id for standing in (*judge(database, True), *judge(database, True, name="note.md"))] == [1, 1]
    for unknown in (99, "nothing.md"):
        with refused("E080"):
            validate(database, unknown, True, promote=False, now=NOW)


@pytest.mark.requirement("F17.explicit")
def test_only_an_explicit_call_promotes_and_it_leaves_a_record(database: Database) -> None:
    judge(database, *[True] * 5)
    assert reader.get_memory(database.reader(), 1).tier == Tier.NORMAL

    assert replace(promote(database, 1, now=NOW), kept_days=0.0) == ValidationResult(
        1, "note.md", Tier.CRITICAL, 1.0, 5, eligible=False, promotion=TRUSTED, kept_days=0.0
    )
    promoted = reader.get_memory(database.reader(), 1)
    assert (promoted.tier, promoted.promotion) == (Tier.CRITICAL, TRUSTED)
    # what is found afterwards moves its confidence, and not its tier
    assert judge(database, *[False] * 9)[-1] == ValidationResult(
        1, "note.md", Tier.CRITICAL, 0.55, 14, False, TRUSTED, 0.1
    )


@pytest.mark.requirement("F17")
def test_a_judgement_may_promote_in_the_same_step(database: Database) -> None:
    judge(database, *[True] * 4)
    assert validate(database, 1, True, promote=True, now=NOW).promotion == TRUSTED


@pytest.mark.requirement("F17")
@pytest.mark.parametrize(
    ("judgements", "missing"),
    [
        ([], "confidence 0.5 of 0.9 and 0 of 5 validations"),
        ([True] * 4, "confidence 0.9 of 0.9 and 4 of 5 validations"),
        ([True, True, True, True, False], "confidence 0.85 of 0.9 and 5 of 5 validations"),
    ],
)
def test_too_little_trust_is_refused_with_what_is_missing(
    database: Database, judgements: list[bool], missing: str
) -> None:
    judge(database, *judgements)
    before = everything(database)
    with refused("E082", match=missing):
        promote(database, 1, now=NOW)
    with refused("E082", match=missing):  # and not what the judgement would have made of it
        validate(database, 1, False, promote=True, now=NOW)
    assert everything(database) == before


@pytest.mark.requirement("F17")
@pytest.mark.parametrize("tier", [Tier.CONSTITUTIONAL, Tier.CRITICAL, Tier.DEPRECATED])
def test_a_tier_that_the_author_has_settled_is_kept(database: Database, tier: Tier) -> None:
    put(database, replace(NOTE, tier=tier))
    assert judge(database, *[True] * 5)[-1].eligible is False
    before = everything(database)
    with refused("E082", match=f"'note.md' is {tier}"):
        promote(database, 1, now=NOW)
    assert everything(database) == before


@pytest.mark.requirement("F17")
def test_a_promotion_holds_over_new_versions_unless_the_file_settles_its_tier(database: Database) -> None:
    judge(database, *[True] * 5)
    promote(database, 1, now=NOW)
    tiers = {}
    for number, declared in enumerate(Tier):
        put(database, replace(NOTE, tier=declared, content_hash=f"version {number}"))
        tiers[declared] = reader.get_memory(database.reader(), 1).tier
        put(database, replace(NOTE, tier=declared, content_hash=f"version {number}"))  # an equal document
        assert reader.get_memory(database.reader(), 1).tier == tiers[declared]
    assert tiers == {
        Tier.CONSTITUTIONAL: Tier.CONSTITUTIONAL,
        Tier.CRITICAL: Tier.CRITICAL,
        Tier.IMPORTANT: Tier.CRITICAL,
        Tier.NORMAL: Tier.CRITICAL,
        Tier.TEMPORARY: Tier.CRITICAL,
        Tier.DEPRECATED: Tier.DEPRECATED,
    }
    kept = reader.get_memory(database.reader(), 1)
    assert (kept.confidence, kept.validation_count, kept.promotion) == (1.0, 5, TRUSTED)


@pytest.mark.requirement("F17")
def test_trust_ends_with_the_memory(database: Database) -> None:
    judge(database, *[True] * 5)
    promote(database, 1, now=NOW)
    with database.write() as txn:
        delete_memories(txn, [1])
    put(database, NOTE)
    again = reader.get_memory(database.reader(), "note.md")
    assert (again.tier, again.confidence, again.validation_count, again.promotion) == (Tier.NORMAL, 0.5, 0, None)


JUDGE = """
import sys
from pathlib import Path
from speckit_memory.memory.lifecycle.validations import validate
from speckit_memory.memory.store.file.connection import Database
with Database.open(Path(sys.argv[1])) as database:
    print("ready", flush=True)
    sys.stdin.readline()
    for useful in [True, False, False] * 60:
        validate(database, "note.md", useful, promote=False, now=1000.0)
"""


@pytest.mark.requirement("F17")
@pytest.mark.usefixtures("processes", "in_a_file")
def test_of_judgements_that_two_processes_give_at_once_none_is_lost(database: Database) -> None:
    judges = [
        subprocess.Popen(
            [sys.executable, "-c", JUDGE, database.path], cwd=PROJECT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for _ in range(2)
    ]  # fmt: skip
    for each in judges:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in judges:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    ends = [each.communicate(timeout=120) for each in judges]
    assert [(each.returncode, errors) for each, (_, errors) in zip(judges, ends, strict=True)] == [(0, "")] * 2

    judged = reader.get_memory(database.reader(), 1)
    # Every three judgements cancel out: +0.10 - 0.05 - 0.05. In between a process is ahead by 0.10 at most,
    # so that confidence stays in [0.5, 0.7] and meets no bound. 2 processes · 60 · 3 judgements.
    assert (judged.confidence, judged.validation_count) == (0.5, 360)


@pytest.mark.requirement("F17")
@pytest.mark.usefixtures("exhaustive", "in_a_file")
def test_wherever_a_promotion_crashes_neither_half_is_left(tmp_path: Path) -> None:
    origin, store = tmp_path / "origin", tmp_path / "root" / "store.db"
    with Database.open(origin / store.name) as database:
        put(database, NOTE)
        judge(database, *[True] * 5)
    before, found = contents(origin / store.name), []

    def validated() -> None:
        with Database.open(store) as database:
            validate(database, "note.md", True, promote=True, now=NOW)

    for crash in every_point(origin, store.parent, validated):
        with Database.open(store) as database:
            assert database.check() == [], crash
        if (stored := contents(store)) not in found:
            found.append(stored)
    assert found == [before, contents(store)]


@pytest.mark.requirement("F17.birth")
def test_the_store_gives_a_new_memory_the_confidence_of_birth(database: Database) -> None:
    assert reader.get_memory(database.reader(), 1).confidence == BIRTH
