from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from storing.segments import cut, filled, flipped, overwrite, segment_of, small_build

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.segment_files import segment_store, stamp
from speckit_memory.memory.store.segment_files.container import Container
from speckit_memory.memory.store.segment_files.findings import Finding
from speckit_memory.memory.store.segment_files.segment_store import SegmentStore, folder_of
from speckit_memory.memory.store.segment_writing import writing
from speckit_memory.memory.store.segment_writing.diagnosis import findings
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.meta import set_meta
from speckit_memory.memory.store.writing.writer import Use, count_uses

KEYS = [f"notes/{number}" for number in range(segment_store.FEWEST)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    """A store with a segment of its state."""
    with Database.open(tmp_path / "store.db") as database:
        filled(database, KEYS)
        assert writing.write(database, small_build) is not None
        yield database


def kinds(database: Database) -> list[str]:
    return [found.kind for found in findings(database).findings]


def usable(database: Database) -> Container | None:
    return SegmentStore(database).usable()


def test_what_was_written_is_usable_and_lies_beside_the_store(store: Database) -> None:
    segment = usable(store)

    assert segment is not None
    assert len(segment.array("ids")) == len(KEYS)
    folder = store.path.with_name("store.db.segments")
    assert segment_of(store.path).parent == folder
    assert (folder.stat().st_mode & 0o777, kinds(store)) == (0o700, [])
    assert (folder / ".gitignore").read_text(encoding="utf-8") == "*\n"


def test_a_link_to_a_store_finds_the_segment_of_the_file(store: Database, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(store.path)

    with Database.open(link) as other:
        assert usable(other) is not None


def test_a_store_of_few_memories_needs_none(tmp_path: Path) -> None:
    with Database.open(tmp_path / "store.db") as database:
        filled(database, KEYS[1:])

        assert writing.write(database, small_build) is None
        assert (kinds(database), usable(database)) == ([], None)
        assert not folder_of(database.path).exists()


def test_it_is_missing_until_it_is_written(tmp_path: Path) -> None:
    with Database.open(tmp_path / "store.db") as database:
        filled(database, KEYS)
        assert kinds(database) == ["missing"]

        writing.write(database, small_build)

        assert kinds(database) == []


def test_one_that_was_deleted_is_missing(store: Database) -> None:
    shutil.rmtree(folder_of(store.path))

    assert (usable(store), kinds(store)) == (None, ["missing"])


def places(store: Path) -> dict[str, int]:
    """A byte of each part of a segment: of its head, each array, the table and the foot."""
    path = segment_of(store)
    content, segment = path.read_bytes(), Container.open(path)
    found = {name: content.index(segment.array(name).tobytes()) + 8 for name in ("ids", "keys", "zeros")}
    return found | {"head": 3, "table": content.rindex(b'"crc32"'), "foot": -1}


@pytest.mark.parametrize("part", ["head", "ids", "keys", "zeros", "table", "foot"])
def test_a_flipped_bit_anywhere_keeps_it_from_being_used(store: Database, part: str) -> None:
    flipped(segment_of(store.path), places(store.path)[part])

    assert (usable(store), kinds(store)) == (None, ["torn"])
    told = findings(store).findings[0].detail
    assert part in told or part in ("head", "table", "foot")


def test_one_that_was_cut_short_is_not_used(store: Database) -> None:
    cut(segment_of(store.path))

    assert (usable(store), kinds(store)) == (None, ["torn"])


def test_what_the_disk_lost_is_found_by_the_check_and_not_used_from_then_on(store: Database) -> None:
    path = segment_of(store.path)
    flipped(path, places(store.path)["keys"])
    seen = stamp.look(path)
    assert seen is not None
    stamp.note(path, seen, Container.open(path).digest)  # as if no program had written to it
    assert usable(store) is not None

    assert kinds(store) == ["torn"]

    assert usable(store) is None


def test_a_file_of_another_store_is_not_used_under_the_name_of_the_own(store: Database, tmp_path: Path) -> None:
    with Database.open(tmp_path / "other.db") as other:
        filled(other, KEYS, "beta")
        filled(other, ["notes/0"], "gamma")
        writing.write(other, small_build)
        mine, theirs = segment_of(store.path), segment_of(other.path)
        kept = mine.read_bytes()
        overwrite(mine, theirs.read_bytes())
        overwrite(theirs, kept)

        assert [(usable(one), kinds(one)) for one in (store, other)] == [(None, ["foreign"])] * 2


def test_one_of_another_version_is_not_opened(store: Database) -> None:
    segments = SegmentStore(store)
    trusted = segments.trusted()
    assert trusted is not None
    with store.write() as txn:
        assert segments.trust(txn, trusted._replace(version="0"))

    assert (usable(store), kinds(store)) == (None, ["version"])


def test_a_line_in_the_store_that_nobody_of_ours_wrote_vouches_for_nothing(store: Database) -> None:
    for line in ("", "{", "[]", "{}", '{"name": "../x.seg"}', "null"):
        with store.write() as txn:
            set_meta(txn, changes.SEGMENT, line)

        assert (usable(store), kinds(store)) == (None, ["missing", "leftover"]), line


def test_a_backup_brings_back_what_it_trusted(store: Database, tmp_path: Path) -> None:
    """The segment of then is gone: the store went on, and another took its place."""
    store.reader().execute(f"VACUUM INTO '{tmp_path / 'backup.db'}'")
    filled(store, KEYS, "beta")
    assert writing.write(store, small_build, only_if_due=False) is not None
    path = store.path
    store.close()
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    (tmp_path / "backup.db").rename(path)

    with Database.open(path) as restored:
        filled(restored, KEYS, "gamma")
        assert usable(restored) is None
        assert kinds(restored) == ["missing", "leftover"]


def test_one_older_than_the_log_of_changes_reaches_is_stale(store: Database) -> None:
    with store.write() as txn:
        txn.connection.execute("DELETE FROM changes WHERE seq <= ?", (len(KEYS) + 1,))
        txn.connection.execute("INSERT INTO changes (memory_id, kind, token) VALUES (1, 'put', 5)")
        txn.connection.execute("INSERT INTO changes (memory_id, kind, token) VALUES (1, 'put', 6)")
        txn.connection.execute("DELETE FROM changes WHERE seq = ?", (len(KEYS) + 1,))

    assert (usable(store), kinds(store)) == (None, ["stale"])


def test_a_change_of_another_history_under_the_same_number_is_noticed(store: Database) -> None:
    with store.write() as txn:
        txn.connection.execute("UPDATE changes SET token = token + 1 WHERE seq = ?", (len(KEYS),))

    assert (usable(store), kinds(store)) == (None, ["stale"])


def test_changes_are_counted_and_make_it_due(store: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_store, "most_behind", lambda memories: 3)
    for round_, word in enumerate(("beta", "gamma", "delta")):
        filled(store, KEYS[:1], word)
        assert "segment" not in kinds(store)
        assert f" {round_ + 1} changes behind" in findings(store).detail
        assert writing.write(store, small_build) is None
    filled(store, KEYS[:1], "epsilon")

    assert kinds(store) == ["behind"]
    assert writing.write(store, small_build) is not None
    assert kinds(store) == []


def test_five_uses_make_it_as_due_as_one_document(store: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_store, "most_behind", lambda memories: 3)
    one = store.reader().execute("SELECT min(id) FROM memories").get
    for _ in range(19):
        with store.write() as txn:
            count_uses(txn, {one: Use(1, 0.0)})
    assert kinds(store) == []
    assert " 19 changes behind" in findings(store).detail
    assert writing.write(store, small_build) is None
    with store.write() as txn:
        count_uses(txn, {one: Use(1, 0.0)})

    assert kinds(store) == ["behind"]
    assert writing.write(store, small_build) is not None


def test_twenty_changes_of_links_make_it_as_due_as_one_document(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_store, "most_behind", lambda memories: 3)
    for count in (79, 1):
        assert writing.write(store, small_build) is None
        with store.write() as txn:
            changes.record(txn, [1] * count, "edges")

    assert kinds(store) == ["behind"]
    assert writing.write(store, small_build) is not None


def test_it_is_written_anew_long_before_the_log_forgets() -> None:
    assert [segment_store.most_behind(size) for size in (100, 10_000, 30_000, 10**6)] == [1_000, 1_000, 3_000, 5_000]
    assert 2 * segment_store.LINKS_OF_A_DOCUMENT * segment_store.most_behind(10**9) <= changes.MOST_KEPT


def test_a_large_file_that_was_copied_is_read_by_who_has_time_alone(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_store, "READ_AT_ONCE", 0)
    path = segment_of(store.path)
    shutil.copy2(path, path.with_name("copy"))
    path.with_name("copy").replace(path)

    found = SegmentStore(store).status()
    assert (found.segment, found.finding and found.finding.kind) == (None, "unread")
    assert SegmentStore(store).status(patient=True).segment is not None
    assert usable(store) is not None


def test_another_process_takes_the_word_of_the_writer(store: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamp, "_read", {})
    monkeypatch.setattr(Container, "verify", lambda self: pytest.fail("it was read to its end"))

    assert usable(store) is not None


@pytest.mark.parametrize("what", ["touched", "written", "replaced"])
def test_a_file_that_was_touched_is_read_again(store: Database, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = segment_of(store.path)
    before = path.stat()
    if what == "touched":
        os.utime(path)
    elif what == "written":
        overwrite(path, path.read_bytes())
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    else:
        shutil.copy2(path, path.with_name("copy"))
        path.with_name("copy").replace(path)
    seen = []
    verify = Container.verify

    def watched(self: Container) -> None:
        seen.append(what)
        verify(self)

    monkeypatch.setattr(Container, "verify", watched)

    assert usable(store) is not None
    assert usable(store) is not None
    assert seen == [what]


def test_what_is_no_folder_is_named_and_left_alone(store: Database, tmp_path: Path) -> None:
    folder = folder_of(store.path)
    folder.rename(tmp_path / "away")
    for make in (lambda: folder.write_text("mine"), lambda: folder.symlink_to(tmp_path / "away")):
        make()
        assert (usable(store), kinds(store)[0]) == (None, "blocked")
        with pytest.raises(Exception, match="E029"):
            writing.write(store, small_build)
        assert kinds(store) == ["blocked"]  # the failure of the writer says nothing more
        folder.unlink()


def test_a_pipe_in_place_of_the_file_keeps_nobody_waiting(store: Database) -> None:
    path = segment_of(store.path)
    path.unlink()
    os.mkfifo(path)

    assert (usable(store), kinds(store)) == (None, ["foreign"])
    writing.write(store, small_build)
    assert kinds(store) == []
    assert not path.exists()


def test_every_finding_says_what_to_do() -> None:
    kinds = ("missing", "stale", "behind", "torn", "version", "foreign", "unread", "blocked", "leftover", "failed")

    assert all(Finding(kind, "x").hint for kind in kinds)  # type: ignore[arg-type]
    assert str(Finding("torn", "x")) == "E028 torn: x"
