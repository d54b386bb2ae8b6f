"""The segment of a store, seen through the doors: the command line and a server over stdio."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from mcp import Client
from raw_server import raw_server
from storing.segments import cut, flipped, overwrite

from speckit_memory.memory.store.segment_files import mapping, segment_store
from tests.server.doors import call, with_client

COUNT = segment_store.FEWEST


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace that was indexed from the command line."""
    (tmp_path / "notes").mkdir()
    for number in range(COUNT):
        text = f"# Note {number}\n\nThe quokka of part {number}.\n"
        (tmp_path / "notes" / f"{number}.md").write_text(text, encoding="utf-8")
    assert call(tmp_path, ["index", "notes", "--json"]).status == 0
    return tmp_path


def segments(root: Path) -> list[Path]:
    return sorted((root / "memory.db.segments").glob("*.seg"))


def checked(root: Path, *options: str) -> dict[str, Any]:
    """What `doctor` says of the segment; nothing of it makes it fail."""
    ran = call(root, ["doctor", "--json", *options]).ok()
    (check,) = (check for check in ran.json["checks"] if check["name"] == "segment")
    return dict(check)


def test_index_writes_it_and_search_never_does(root: Path) -> None:
    assert len(segments(root)) == 1
    segments(root)[0].unlink()

    assert call(root, ["search", "quokka", "--json"]).status == 0
    assert segments(root) == []

    # nothing of it is indexed, and Git is told to leave it alone
    indexed = call(root, ["index", ".", "--json"])
    assert (indexed.json["created"], len(segments(root))) == ([], 1)
    assert call(root, ["index", "memory.db.segments", "--dry-run", "--json"]).json["created"] == []


@pytest.mark.usefixtures("processes")
def test_that_of_a_copied_project_is_used_by_the_first_who_searches(tmp_path: Path) -> None:
    """A file of more than some megabytes, too, and from the command line alone, where nothing else ever reads it."""
    root, copy = tmp_path / "project", tmp_path / "copy"
    (root / "notes").mkdir(parents=True)
    for number in range(330):
        words = " ".join(f"w{(number * 37 + place * 11) % 5_000}" for place in range(2_000))
        (root / "notes" / f"{number}.md").write_text(f"# Note {number}\n\nThe quokka.\n\n{words}\n", encoding="utf-8")
    assert call(root, ["index", "notes"]).status == 0
    assert segments(root)[0].stat().st_size > 8 << 20

    shutil.copytree(root, copy)
    for place in (root, copy):
        assert "words_from" not in call(place, ["search", "quokka", "--json"]).json["notes"]
    assert checked(copy)["verdict"] == "ok"


def test_it_goes_with_the_next_index_run_where_few_memories_are_left_and_it_is_of_no_use(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_store, "FEWEST", COUNT + 1)  # a deletion would take it away by itself
    overwrite(segments(root)[0], b"torn")
    assert checked(root)["verdict"] == "warn"

    assert call(root, ["index", "notes"]).status == 0
    assert (segments(root), checked(root)["verdict"]) == ([], "ok")


def test_doctor_names_what_is_wrong_and_mends_it(root: Path) -> None:
    overwrite(segments(root)[0], b"torn")
    leftover = root / "memory.db.segments" / ".0123456789abcdef.seg.01234567"
    leftover.write_bytes(b"")

    found = checked(root)
    assert found["verdict"] == "warn"
    assert "E028 torn: " in found["detail"]
    assert f"E028 leftover: {leftover.parent} contains {leftover.name}" in found["detail"]
    assert "doctor --fix" in found["hint"]

    mended = checked(root, "--fix")
    assert (mended["verdict"], mended["hint"], len(segments(root))) == ("ok", "", 1)
    assert not leftover.exists()


def older(root: Path) -> None:
    """Another version of the product wrote it."""
    with closing(sqlite3.connect(root / "memory.db")) as connection, connection:
        connection.execute("UPDATE meta SET value = json_set(value, '$.version', '0.9') WHERE key = 'segment'")


def swapped(root: Path) -> None:
    """It is that of another store."""
    other = root / "other"
    for number in range(COUNT):
        note = other / "notes" / f"{number}.md"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(f"# Other {number}\n\nA quokka that is not here, {number}.\n", encoding="utf-8")
    assert call(other, ["index", "notes", "--json"]).status == 0
    overwrite(segments(root)[0], segments(other)[0].read_bytes())


SPOILT: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing": (lambda root: segments(root)[0].unlink(), "missing"),
    "cut short": (lambda root: cut(segments(root)[0]), "torn"),
    "a bit of an array": (lambda root: flipped(segments(root)[0], segments(root)[0].stat().st_size // 2), "torn"),
    "a bit of the table": (lambda root: flipped(segments(root)[0], -100), "torn"),
    "older": (older, "version"),
    "of another store": (swapped, "foreign"),
}


@pytest.mark.parametrize("how", SPOILT)
def test_whatever_becomes_of_the_file_commands_answer_the_same_and_doctor_names_it(root: Path, how: str) -> None:
    spoil, kind = SPOILT[how]
    question = ["search", "quokka part 7", "--json", "--limit", "20"]

    def answered() -> list[Any]:
        return [(row["key"], row["score"]) for row in call(root, question).ok().json["results"]]

    expected = answered()
    assert expected
    spoil(root)

    assert answered() == expected
    found = checked(root)
    assert (found["verdict"], f"E028 {kind}: " in found["detail"]) == ("warn", True), found
    assert checked(root, "--fix")["verdict"] == "ok"
    assert answered() == expected


def restored(segment: Path, backup: Path) -> None:
    """A backup is copied over it, in place, with the same bytes."""
    subprocess.run(["cp", "-r", f"{backup}/.", segment.parent], check=True)


def zeroed(segment: Path, _: Path) -> None:
    with segment.open("r+b") as file:
        file.write(bytes(segment.stat().st_size))


def emptied(segment: Path, _: Path) -> None:
    os.truncate(segment, 0)


@pytest.mark.requirement("M1.mapped")
@pytest.mark.usefixtures("processes")
def test_whatever_is_written_into_it_beside_a_server_the_server_lives_and_answers_the_same(root: Path) -> None:
    backup = Path(shutil.copytree(root / "memory.db.segments", root.with_name(f"{root.name}-backup")))
    with raw_server(root) as server:
        server.start()
        number = iter(range(1, 1_000))

        def answered() -> list[Any]:
            """The first ten; asked in another way each time, as an equal question is answered without a search."""
            call_id = next(number)
            arguments = {"query": "quokka part 7", "limit": 10 + call_id}
            rows = document(server.call(call_id, "memory_search", arguments))["results"]
            return [(row["key"], row["score"]) for row in rows[:10]]

        expected = answered()
        assert expected
        for harm in (restored, zeroed, emptied, restored):
            (segment,) = segments(root)
            segment.chmod(0o600)  # which its owner would have to do first
            harm(segment, backup)
            assert answered() == expected, harm.__name__
        found = checks(server.call(next(number), "memory_health"))
        assert all(check["ok"] for check in found if check["name"] in ("search", "store", "segment"))
        assert server.close() == 0


@pytest.mark.requirement("M1.mapped")
@pytest.mark.parametrize("harm", [zeroed, emptied])
def test_where_it_cannot_be_protected_answers_come_from_the_store_once_it_was_written_to(
    root: Path, harm: Callable[[Path, Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapping, "_lease", lambda *_: False)
    monkeypatch.setattr(mapping, "MAX_COPIED", 0)

    async def ask(client: Client) -> tuple[list[Any], list[Any]]:
        async def answered(limit: int) -> list[Any]:
            found = await client.call_tool("memory_search", {"query": "quokka part 7", "limit": limit})
            assert found.structured_content is not None
            return [(row["key"], row["score"]) for row in found.structured_content["data"]["results"][:10]]

        before = await answered(10)
        (segment,) = segments(root)
        segment.chmod(0o600)
        harm(segment, root)
        return before, await answered(11)

    before, after = with_client(root, ask)
    assert before
    assert after == before


@pytest.mark.usefixtures("processes")
def test_a_server_writes_one_beside_its_answers_and_tells_of_it(root: Path) -> None:
    segments(root)[0].unlink()
    with raw_server(root) as server:
        server.start()
        answered = server.call(1, "memory_health")
        (check,) = (check for check in checks(answered) if check["name"] == "segment")
        assert "E028 missing" in check["detail"]
        assert "doctor --fix" in check["hint"]
        until = monotonic() + 60
        while not segments(root):
            assert monotonic() < until
            sleep(0.05)
        assert server.close() == 0
    assert checked(root)["verdict"] == "ok"


def checks(answered: dict[str, Any]) -> list[dict[str, Any]]:
    return list(document(answered)["checks"])


def document(answered: dict[str, Any]) -> dict[str, Any]:
    structured = answered.get("structuredContent") or json.loads(answered["content"][0]["text"])
    return dict(structured.get("data", structured))
