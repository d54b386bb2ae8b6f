"""What a repair and a check of the store look at, and what they keep others from."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from speckit_memory.engine import Memory
from speckit_memory.engine.api.checkpoints import CheckpointService
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.reading import loading
from speckit_memory.memory.store.tables.words import fulltext, stale_words

FILES = 40


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    """A store of which rows 7 and 31 hold other words than their texts, and as many."""
    for number in range(1, FILES + 1):
        (tmp_path / f"{number:02}.md").write_text(f"# Note {number}\n\nA zebra crossed the river by night.\n")
    with Memory.open(tmp_path / "x.db", root=tmp_path, environ={}, shadows=False) as memory:
        memory.index([tmp_path])
        with closing(Database.open(tmp_path / "x.db")) as database, database.write() as txn:
            for row in (7, 31):
                fields = "SELECT title_tokens, trigger_tokens, path_tokens FROM texts WHERE memory_id = ?"
                [(title, triggers, at)] = rows(txn.connection, fields, (row,))
                [body] = loading.tokens_of(txn.connection, row)
                assert "zebra" in body
                fulltext.delete(txn, row)
                fulltext.insert(txn, [(row, title, triggers, at, body.replace("zebra", "quagga"))])
        yield memory


@pytest.mark.requirement("M14.repair", "M14.words")
def test_words_are_compared_once_and_while_others_may_write(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    among = stale_words.among

    def watched(connection: apsw.Connection, memories: list[int], **more: Any) -> stale_words.FtsDrift:
        with closing(apsw.Connection(str(tmp_path / "x.db"))) as other:  # it waits for nobody
            other.execute("BEGIN IMMEDIATE; ROLLBACK")
        looked.append(len(memories))
        return among(connection, memories, **more)

    monkeypatch.setattr(stale_words, "among", watched)
    done = memory.lifecycle.repair()
    assert done.mended == ("rebuilt or removed 4 rows of the full-text tables",)
    assert (done.left, looked) == ((), [FILES, 2])
    assert memory.lifecycle.check() == ()


@pytest.mark.requirement("M14.repair")
def test_what_somebody_has_mended_or_deleted_meanwhile_stays_so(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = CheckpointService.make

    def meanwhile(*arguments: Any) -> Any:
        (tmp_path / "07.md").write_text("# Note 7\n\nAn okapi hid.\n")
        (tmp_path / "31.md").unlink()
        with Memory.open(tmp_path / "x.db", root=tmp_path, environ={}, shadows=False) as other:
            other.index([tmp_path])
        return made(*arguments)

    monkeypatch.setattr(CheckpointService, "make", meanwhile)
    assert memory.lifecycle.repair().left == ()
    assert memory.lifecycle.check() == ()
    assert [row.key for row in memory.search("okapi", limit=1).results] == ["07.md"]
    assert memory.inventory.stats().memories == FILES - 1


@pytest.mark.requirement("M14.words")
def test_a_check_compares_every_word_and_health_tells_of_how_many_it_did(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stale_words, "MOST_WORDS", 20)
    assert [sentence.split(" holds ")[0] for sentence in memory.lifecycle.check()] == [
        "the full-text row of memory 7",
        "the full-text row of memory 31",
    ]
    assert memory.lifecycle.check(every_word=False) == ()
    [store] = [check for check in memory.status().checks if check.name == "store"]
    assert store.ok
    assert f"of {FILES} full-text rows were compared, and the lengths of all" in store.detail
