from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep

import pytest

from speckit_memory.engine import Memory
from speckit_memory.engine.runtime.usage_counter import PATIENCE_MS, Usage
from speckit_memory.memory.store.file.connection import Database

NOW = 1_800_000_000.0
Counted = dict[str, tuple[int, float | None]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for number in range(3):
        (tmp_path / f"{number}.md").write_text(f"# Rank fusion {number}\n\nHow scores are fused, part {number}.\n")
    with Memory.open(tmp_path / "memory.db", root=tmp_path, environ={}) as memory:
        assert len(memory.index([tmp_path]).created) == 3
    return tmp_path


@pytest.fixture
def memory(root: Path) -> Iterator[Memory]:
    with Memory.open(root / "memory.db", root=root, environ={}) as memory:
        yield memory


def counted(root: Path) -> Counted:
    """The uses of every memory, as another process sees them."""
    with Database.open(root / "memory.db") as database:
        return {
            key: (times, last)
            for key, times, last in database.reader().execute("SELECT key, access_count, last_accessed FROM memories")
        }


@pytest.mark.requirement("F6")
def test_what_reached_a_reader_counts_as_used_and_what_was_cut_off_does_not(root: Path) -> None:
    unused: Counted = {f"{number}.md": (0, None) for number in range(3)}
    with Memory.open(root / "memory.db", root=root, environ={}) as memory:
        first = memory.search("rank fusion", now=NOW)
        memory.feedback.delivered(memory.search("rank fusion", now=NOW - 60), 1)
        memory.feedback.delivered(first, 2)
        memory.explain.plan("rank fusion")
        memory.search("rank fusion", now=NOW + 60)
        assert counted(root) == unused  # no answer waits for that

    shown = [row.key for row in first.results]
    assert counted(root) == unused | {shown[0]: (2, NOW), shown[1]: (1, NOW)}


@pytest.mark.requirement("F6")
def test_uses_that_a_busy_store_did_not_take_are_written_later(
    root: Path, memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "speckit_memory")
    memory.feedback.delivered(memory.search("rank fusion", limit=1, now=NOW))
    usage = memory.session.opened.usage
    with Database.open(root / "memory.db") as other, other.write():
        usage.write()
    [told] = caplog.messages
    assert told.startswith("uses of 1 memories are written later: ")
    memory.feedback.delivered(memory.search("rank fusion", limit=1, now=NOW + 1))
    usage.write()

    assert sorted(times for times, _ in counted(root).values()) == [0, 0, 2]


@pytest.mark.requirement("F6")
def test_the_last_uses_of_a_process_wait_for_who_is_writing(root: Path) -> None:
    begun, given_up = Event(), Event()

    def write_for_a_while() -> None:
        with Database.open(root / "memory.db") as other, other.write():
            begun.set()
            sleep(4 * PATIENCE_MS / 1000)
        given_up.set()

    with Memory.open(root / "memory.db", root=root, environ={}) as memory:
        memory.feedback.delivered(memory.search("rank fusion", now=NOW))
        writer = Thread(target=write_for_a_while)
        writer.start()
        assert begun.wait(60)
    assert given_up.wait(60)
    writer.join()
    assert [times for times, _ in counted(root).values()] == [1, 1, 1]


@pytest.mark.requirement("F6")
def test_uses_are_written_without_being_asked_and_seen_by_the_next_question(memory: Memory) -> None:
    usage = Usage(memory.session.database, seconds=0.0)
    (row,) = memory.search("rank fusion", limit=1, now=NOW).results
    usage.note([row.id, 999], NOW)

    patience = monotonic() + 60
    while not memory.get(row.id).access_count:
        assert monotonic() < patience, "nothing was written"
    usage.close()  # waits until the thread that wrote them has left the store
    ids = memory.session.view().attributes.of_tier("normal")
    assert sorted(memory.session.view().attributes.number("access_count", ids).tolist()) == [0.0, 0.0, 1.0]


@pytest.mark.requirement("F6")
def test_uses_never_change_what_a_question_finds_in_the_shipped_pipeline(memory: Memory) -> None:
    before = memory.search("rank fusion", now=NOW)
    memory.feedback.delivered(before, 2)
    memory.session.opened.usage.write()
    after = memory.search("rank fusion", now=NOW)

    assert [(row.key, row.score, row.steps) for row in after.results] == [
        (row.key, row.score, row.steps) for row in before.results
    ]
