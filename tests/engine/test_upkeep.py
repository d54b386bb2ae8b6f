"""Who writes the segment of a store, and when; and that whatever becomes of the file, answers are the same."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import enumerate as enumerate_threads
from time import monotonic, sleep
from typing import Any

import pytest
from storing.segments import cut, flipped, overwrite, segment_of

from speckit_memory.engine import Memory
from speckit_memory.engine.background.gate import SERVING
from speckit_memory.engine.upkeep import upkeep_thread
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model.snapshot import Snapshot
from speckit_memory.memory.store.segment_files import segment_store
from speckit_memory.memory.store.segment_files.container import Container
from speckit_memory.memory.store.segment_writing.diagnosis import findings

COUNT = segment_store.FEWEST + 20
NOW = 1_800_000_000.0
QUESTIONS = ("quokka", "what do wombats eat?", "otter 7", "badger", '"river bank" heron')
ANIMALS = ("quokka", "wombat", "otter", "badger", "heron")


def written(root: Path, numbers: range, word: str = "eat") -> None:
    (root / "notes").mkdir(exist_ok=True)
    for number in numbers:
        animal = ANIMALS[number % len(ANIMALS)]
        text = f"# The {animal} {number}\n\nWhat {animal}s {word} on the river bank, part {number // 3}.\n"
        (root / "notes" / f"{number:03}.md").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace that was indexed, with its segment."""
    root = tmp_path_factory.mktemp("made")
    written(root, range(COUNT))
    with opened(root) as memory:
        memory.index(root / "notes")
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(made, tmp_path / "root"))


@pytest.fixture(scope="module")
def expected(made: Path) -> list[Any]:
    """The answers of a store that has no segment."""
    bare = made.with_name("bare")
    shutil.copytree(made, bare)
    shutil.rmtree(folder(bare))
    return answers(bare)


def opened(root: Path) -> Memory:
    return Memory.open(root / "memory.db", root=root, environ={})


def store(root: Path) -> Path:
    return root / "memory.db"


def folder(root: Path) -> Path:
    return segment_store.folder_of(store(root))


def answers_of(memory: Memory) -> list[Any]:
    return [
        [(row.key, row.score, row.snippet) for row in memory.search(question, now=NOW, limit=50).results]
        for question in QUESTIONS
    ]


def answers(root: Path) -> list[Any]:
    with opened(root) as memory:
        return answers_of(memory)


def told_by(memory: Memory) -> tuple[str, str]:
    """What the check of the segment says, and what is to be done."""
    (found,) = (check for check in memory.status().checks if check.name == "segment")
    assert found.ok
    return found.detail, found.hint


def told(root: Path) -> tuple[str, str]:
    """The same, of a process that has just begun."""
    with opened(root) as memory:
        return told_by(memory)


def waited_for(what: Callable[[], Any]) -> Any:
    until = monotonic() + 60
    while not (found := what()):
        assert monotonic() < until
        sleep(0.01)
    return found


def trusted(memory: Memory) -> str:
    """The name of the file that the store trusts, if that is usable."""
    held = segment_store.SegmentStore(memory.session.database).status()
    return held.trusted.name if held.trusted and held.segment and not held.behind else ""


def test_an_index_run_writes_it_at_its_end(root: Path) -> None:
    detail, hint = told(root)

    assert (detail.endswith("read and intact, 0 changes behind the store"), hint) == (True, "")


def test_searches_write_none(root: Path) -> None:
    shutil.rmtree(folder(root))

    answers(root)

    assert not folder(root).exists()


def test_a_thread_writes_it_where_a_process_lives_long(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep_thread, "QUIET_SECONDS", 0.0)
    shutil.rmtree(folder(root))
    with opened(root) as memory:
        before = memory.search("quokka", now=NOW)
        memory.lifecycle.keep_segment()
        waited_for(lambda: trusted(memory))

        assert [row.score for row in memory.search("quokka", now=NOW).results] == [r.score for r in before.results]


def test_a_program_that_still_searches_after_a_minute_gets_one(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep_thread, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(upkeep_thread, "LONG_LIVED_SECONDS", -1.0)
    shutil.rmtree(folder(root))
    with Memory.open(store(root), root=root, environ={}, shadows=False) as measured:
        measured.search("quokka")
        assert not folder(root).exists()
    with opened(root) as memory:
        memory.search("quokka")

        waited_for(lambda: trusted(memory))


def test_what_is_saved_makes_it_due(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep_thread, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(segment_store, "most_behind", lambda memories: 0)
    with opened(root) as memory:
        memory.lifecycle.keep_segment()
        first = waited_for(lambda: trusted(memory))
        written(root, range(1), "drink")
        memory.documents.save(root / "notes" / "000.md", force=True)

        waited_for(lambda: trusted(memory) not in ("", first))
        assert memory.search("drink").results[0].key == "notes/000.md"


def test_it_is_not_begun_while_a_search_is_served_and_ends_with_the_store(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep_thread, "QUIET_SECONDS", 0.05)
    monkeypatch.setattr(upkeep_thread, "LOOK_SECONDS", 0.05)
    shutil.rmtree(folder(root))
    with opened(root) as memory:
        with SERVING.serving():
            memory.lifecycle.keep_segment()
            sleep(0.3)
            assert not folder(root).exists()
        waited_for(lambda: trusted(memory))
    assert "upkeep" not in [thread.name for thread in enumerate_threads()]


def test_the_end_does_not_wait_for_a_quiet_moment(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep_thread, "QUIET_SECONDS", 60.0)
    with opened(root) as memory:
        memory.search("quokka")
        with SERVING.serving():
            pass
        memory.lifecycle.keep_segment()
        assert "upkeep" in [thread.name for thread in enumerate_threads()]
        began = monotonic()
    assert "upkeep" not in [thread.name for thread in enumerate_threads()]
    assert monotonic() - began < upkeep_thread.ENDING_SECONDS / 2


def test_a_state_that_others_overtook_follows_the_changes_since(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Snapshot.load
    overtaken: list[Any] = []
    with opened(root) as memory:
        memory.search("quokka")
        before = memory.session.opened.read_model.current()

        def load(*arguments: Any) -> Snapshot:
            found = original(*arguments)
            if not overtaken:
                written(root, range(1), "adore")
                with ThreadPoolExecutor(1) as other:
                    overtaken.append(
                        other.submit(memory.documents.save, root / "notes" / "000.md", force=True).result()
                    )
                    other.submit(memory.search, "adore").result()
            return found

        monkeypatch.setattr(Snapshot, "load", load)
        memory.session.opened.renew()
        after = memory.session.opened.read_model.current()
        assert after.sequence > before.sequence
        assert memory.search("adore").results[0].key == "notes/000.md"
    assert overtaken


def test_what_is_forgotten_leaves_the_file(root: Path) -> None:
    (root / "secret").mkdir()
    (root / "secret" / "one.md").write_text("# Zyzzyva\n\nA zyzzyva is a weevil.\n", encoding="utf-8")
    with opened(root) as memory:
        memory.index(root / "secret")
        memory.lifecycle.write_segment()
        before = segment_of(store(root))
        memory.documents.forget(root / "secret")

        assert segment_of(store(root)) != before
        assert b"zyzzyva" not in segment_of(store(root)).read_bytes()


def test_none_stays_where_few_memories_are_left(root: Path) -> None:
    with opened(root) as memory:
        memory.documents.forget(root / "notes")

        assert [file.name for file in folder(root).iterdir()] == [".gitignore"]
    assert told(root) == ("0 memories need none", "")


def test_what_keeps_a_segment_from_being_written_stops_no_index_run(root: Path) -> None:
    shutil.rmtree(folder(root))
    folder(root).write_text("mine", encoding="utf-8")
    written(root, range(COUNT, COUNT + 1))
    with opened(root) as memory:
        report = memory.index(root / "notes")
        assert report.created == [f"notes/{COUNT:03}.md"]
        assert [problem.code for problem in report.problems] == ["E029"]
        with pytest.raises(SpeckitError, match="E029"):
            memory.lifecycle.write_segment()
    detail, hint = told(root)
    assert detail.count("is not a folder") == 1
    assert "E029 blocked" in detail
    assert "Move it away" in hint
    assert hint.count("Answers are the same") == 1


def test_a_thread_that_cannot_write_says_so_once_and_answers_go_on(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name, seconds in {"QUIET_SECONDS": 0.0, "LOOK_SECONDS": 0.01, "AGAIN_SECONDS": 0.01}.items():
        monkeypatch.setattr(upkeep_thread, name, seconds)
    shutil.rmtree(folder(root))
    folder(root).write_text("mine", encoding="utf-8")
    tried = []
    original = upkeep_thread.write

    def write(*arguments: Any, **options: Any) -> None:
        tried.append(arguments)
        original(*arguments, **options)

    monkeypatch.setattr(upkeep_thread, "write", write)
    with opened(root) as memory:
        memory.lifecycle.keep_segment()
        waited_for(lambda: len(tried) > 3)
        assert memory.search("quokka").results
        folder(root).unlink()
        waited_for(lambda: trusted(memory))
    told_once = [record.getMessage() for record in caplog.records if "waits" in record.getMessage()]
    assert len(told_once) == 1
    assert "E029" in told_once[0]


def arrays(path: Path) -> dict[str, int]:
    """A byte in the middle of each array that holds any, by its name."""
    whole = path.read_bytes()
    length = int.from_bytes(whole[-40:-32], "little")
    segment = Container.open(path)
    entries = json.loads(whole[-40 - length : -40])["arrays"]
    sizes = {name: segment.array(name).nbytes for name in entries}
    return {name: entry["offset"] + sizes[name] // 2 for name, entry in entries.items() if sizes[name]}


@pytest.mark.usefixtures("exhaustive")
def test_a_flipped_bit_in_any_array_keeps_the_file_from_being_used_and_is_named(
    root: Path, expected: list[Any]
) -> None:
    path = segment_of(store(root))
    whole, places = path.read_bytes(), arrays(path)
    for count, (name, place) in enumerate(places.items()):
        overwrite(path, whole)
        flipped(path, place)
        with Database.open(store(root)) as database:
            assert segment_store.SegmentStore(database).usable() is None, name
            (found,) = findings(database).findings
        assert (found.kind, f"'{name}'" in found.detail) == ("torn", True), found.detail
        if not count % 10:
            assert answers(root) == expected, name
    assert len(places) > 20


def swapped(root: Path) -> None:
    other = root.parent / "other"
    written_root = Path(shutil.copytree(root, other))
    written(written_root, range(10), "avoid")
    with opened(other) as memory:
        memory.index(other / "notes")
        memory.lifecycle.write_segment()
    mine, theirs = segment_of(store(root)), segment_of(store(other))
    overwrite(mine, theirs.read_bytes())


def of_another_version(root: Path) -> None:
    flipped(segment_of(store(root)), 15)
    with sqlite3.connect(store(root)) as connection:
        connection.execute("UPDATE meta SET value = json_set(value, '$.version', '0.9') WHERE key = 'segment'")
    connection.close()


def a_folder(root: Path) -> None:
    path = segment_of(store(root))
    path.unlink()
    path.mkdir()


SPOILT: dict[str, tuple[Callable[[Path], Any], str]] = {
    "deleted": (lambda root: shutil.rmtree(folder(root)), "missing"),
    "cut short": (lambda root: cut(segment_of(store(root))), "torn"),
    "emptied": (lambda root: overwrite(segment_of(store(root)), b""), "torn"),
    "the head": (lambda root: flipped(segment_of(store(root)), 2), "torn"),
    "the table": (lambda root: flipped(segment_of(store(root)), -100), "torn"),
    "the foot": (lambda root: flipped(segment_of(store(root)), -1), "torn"),
    "of another version": (of_another_version, "version"),
    "of another store": (swapped, "foreign"),
    "a folder in its place": (a_folder, "foreign"),
}


@pytest.mark.parametrize("how", SPOILT)
def test_whatever_becomes_of_the_file_answers_are_the_same_and_it_is_named(
    root: Path, expected: list[Any], how: str
) -> None:
    spoil, kind = SPOILT[how]
    spoil(root)

    with opened(root) as memory:
        assert answers_of(memory) == expected
        detail, hint = told_by(memory)
        assert (f"{kind}: " in detail, bool(hint)) == (True, True), detail
        memory.index(root / "notes")
        assert told_by(memory)[1] == ""
    assert answers(root) == expected


def test_a_restored_backup_that_goes_its_own_way_is_answered_from_what_it_holds(root: Path) -> None:
    backup = root / "backup.db"
    with sqlite3.connect(store(root)) as source, sqlite3.connect(backup) as target:
        source.backup(target)
    written(root, range(10), "avoid")
    with opened(root) as memory:
        memory.index(root / "notes")
        memory.lifecycle.write_segment()
    kept = Path(shutil.copytree(folder(root), root / "kept"))
    for end in ("", "-wal", "-shm"):
        store(root).with_name(f"memory.db{end}").unlink(missing_ok=True)
    backup.rename(store(root))
    written(root, range(10), "adore")
    with opened(root) as memory:
        memory.index(root / "notes")

        assert [row.key for row in memory.search("avoid").results if "avoid" in row.snippet] == []
        assert any("adore" in row.snippet for row in memory.search("adore").results)
    expected = answers(root)
    shutil.copytree(kept, folder(root), dirs_exist_ok=True)
    assert answers(root) == expected
    assert "E028 leftover" in told(root)[0]
