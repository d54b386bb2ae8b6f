"""What reviews leave of a stored memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from speckit_memory.memory.lifecycle.reviews import Review, review
from speckit_memory.memory.lifecycle.scheduler import Grade
from speckit_memory.memory.lifecycle.validations import validate
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.records import Document
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.writing.writer import put_document

DAY = 86_400.0
BORN = 1_700_000_000.0


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "store.db") as database:
        yield database


@pytest.fixture
def memory(database: Database) -> int:
    document = Document(key="a.md", title="A", body="text", content_hash="h", created_at=BORN)
    with database.write() as txn:
        return put_document(txn, document, None, BORN, None).id


def reviewed(database: Database, memory: int, grade: Grade, at: float) -> tuple[Any, ...]:
    with database.write() as txn:
        review(txn, {memory: Review(grade, at), 999: Review(grade, at)})
    return kept(database)


def kept(database: Database) -> tuple[Any, ...]:
    row: tuple[Any, ...]
    (row,) = rows(database.reader(), "SELECT stability, difficulty, last_review, review_count FROM memories")
    return row


@pytest.mark.requirement("M2.days")
def test_reviews_are_stored_and_a_success_counts_once_a_day(database: Database, memory: int) -> None:
    before = changes.latest(database.reader())
    first = reviewed(database, memory, Grade.GOOD, BORN + DAY)
    assert first == (pytest.approx(1.68), 5.0, BORN + DAY, 1)  # a day of stability 1 leaves nine tenths
    assert changes.since(database.reader(), before) == (changes.latest(database.reader()), [(memory, "attributes")])

    assert reviewed(database, memory, Grade.EASY, BORN + 1.9 * DAY) == first
    assert changes.latest(database.reader()) == before + 1
    again = reviewed(database, memory, Grade.AGAIN, BORN + 1.9 * DAY)
    assert again == (pytest.approx(0.336), 6.0, BORN + 1.9 * DAY, 2)
    # 1 + (11 - 6) · 0.1 = 1.5; after 2.0 days of stability 0.336 left is (1 + 19/81 · 2 / 0.336) ** -0.5 = 0.64601
    assert reviewed(database, memory, Grade.GOOD, BORN + 3.9 * DAY) == (
        pytest.approx(0.593206, abs=1e-5),
        6.0,
        BORN + 3.9 * DAY,
        3,
    )


@pytest.mark.requirement("M2.days")
def test_a_clock_that_was_set_back_by_years_does_not_keep_a_memory_from_being_reviewed(
    database: Database, memory: int
) -> None:
    reviewed(database, memory, Grade.GOOD, BORN + 4000 * DAY)
    stability, _, last, count = reviewed(database, memory, Grade.GOOD, BORN + DAY)
    assert (last, count) == (BORN + DAY, 2)
    assert stability > 1.68


@pytest.mark.requirement("M2.driven")
def test_judgements_are_reviews(database: Database, memory: int) -> None:
    useful = validate(database, memory, True, promote=False, now=BORN + DAY)
    assert [kept(database)[0], useful.kept_days] == pytest.approx([2.184, 2.184])  # easy
    not_useful = validate(database, memory, False, promote=False, now=BORN + DAY)
    assert [kept(database)[0], not_useful.kept_days] == pytest.approx([0.4368, 0.4368])  # again
