"""The conversion of a store that crashes anywhere leaves the store of before or that of afterwards."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from crashing import every_point

from speckit_memory.memory.indexing import Analyser, Indexer
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.schema.migrations import MIGRATIONS
from speckit_memory.memory.store.reading import loading, reader
from tests.attacks.fuzz.shared import model
from tests.memory.store.file.test_every_schema import as_it_was

TEXTS = {
    "a.md": "# A\n\nRanks are fused.\n",
    "b.md": "# B\n\n## One\n\n" + "The graph of it.\n" * 150 + "\n## Two\n\n" + "The store of it.\n" * 150,
}
BEFORE = [step.name for step in MIGRATIONS].index("0023_packed_texts")

Contents = list[tuple[str, list[tuple[str, str]]]]


def contents(database: Database) -> Contents:
    """The text of every memory, and the text and the tokens of its passages."""
    connection = database.reader()
    memories, _ = reader.list_memories(connection, sort="key", limit=100)
    return [
        (
            reader.body(connection, memory.id),
            list(
                zip(
                    [each.text for each in reader.passages_of(connection, memory.id)],
                    loading.tokens_of(connection, memory.id),
                    strict=True,
                )
            ),
        )
        for memory in memories
    ]


@pytest.mark.requirement("M1.migrations")
@pytest.mark.usefixtures("exhaustive")
def test_wherever_it_crashes_all_texts_and_tokens_are_there(tmp_path: Path) -> None:
    docs, whole, root = tmp_path / "docs", tmp_path / "whole", tmp_path / "root"
    docs.mkdir()
    whole.mkdir()
    for name, text in TEXTS.items():
        (docs / name).write_text(text)
    today = tmp_path / "today.db"
    with Database.open(today) as database:
        Indexer(database, model(), Analyser(), docs).index([docs], now=100.0)
        expected = contents(database)
    assert [body for body, _ in expected] == list(TEXTS.values())
    as_it_was(whole / "memory.db", today, [step.name for step in MIGRATIONS[:BEFORE]])
    shutil.copytree(whole, root)

    def convert() -> Contents:
        with Database.open(root / "memory.db") as database:
            return contents(database)

    assert convert() == expected
    for crash in every_point(whole, root, convert):
        with Database.open(root / "memory.db") as database:
            assert contents(database) == expected, crash
            assert database.check() == [], crash
