from __future__ import annotations

import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from speckit_memory.memory.indexing import reader_processes
from speckit_memory.server.commands.cli import run
from tests.server.doors import COMMAND, DOCUMENTS, call, environment


@pytest.mark.requirement("I8")
def test_index_reports_what_became_of_every_file(workspace: Path) -> None:
    (workspace / "docs" / "new.md").write_text("# New\n\nA new document.\n")
    (workspace / "docs" / "fusion.md").write_text("# Why rank fusion\n\nRewritten from scratch.\n")
    (workspace / "docs" / "tone.md").unlink()
    ran = call(workspace, ["index", "docs", "--json"]).ok()
    assert set(ran.json) == {
        "created", "updated", "unchanged", "deleted", "problems", "aliases", "known_aliases", "ignored", "overruled",
        "sources", "chunks", "characters", "embedded", "cache_hits", "pending", "links", "seconds", "dry_run", "store",
        "workspace", "redacted", "recalled", "mended", "verdicts", "renamed", "absent", "vanished", "returned",
    }  # fmt: skip
    assert ran.json["created"] == ["docs/new.md"]
    assert ran.json["updated"] == ["docs/fusion.md"]
    assert ran.json["vanished"] == ran.json["absent"] == ["docs/tone.md"]
    assert ran.json["unchanged"] == len(DOCUMENTS) - 2


@pytest.mark.requirement("I8")
@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
@pytest.mark.usefixtures("processes")
def test_a_run_with_helpers_that_a_signal_ends_is_finished_by_the_next(
    tmp_path: Path, sent: signal.Signals, status: int
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    files = 2 * reader_processes.LEAST_FILES
    for number in range(files):
        (docs / f"{number}.md").write_text(f"# Note {number}\n\n" + f"word{number} and more text. " * 40)
    log = tmp_path / "memory.db-wal"
    with subprocess.Popen(
        [COMMAND, "index", "docs"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path),
        cwd=tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    ) as process:
        while process.poll() is None and (not log.exists() or log.stat().st_size < 1_000_000):
            time.sleep(0.01)
        process.send_signal(sent)
        _, err = process.communicate()

    assert (process.returncode, b"Traceback" in err) == (status, False)
    deadline = time.monotonic() + 60
    while working_in(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert working_in(tmp_path) == []
    again = call(tmp_path, ["index", "docs", "--json"]).ok()
    assert again.json["unchanged"] > 0
    assert len(again.json["created"]) + again.json["unchanged"] == files
    assert call(tmp_path, ["doctor", "--json"]).status == 0


def working_in(folder: Path) -> list[str]:
    """The processes whose folder this is, as far as the system tells."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").readlink() == folder:
                found.append(process.name)
    return found


@pytest.mark.requirement("I3", "I8")
def test_a_link_follows_its_target_to_another_folder_in_one_run(tmp_path: Path) -> None:
    old, new = tmp_path / "drafts", tmp_path / "specs"
    (tmp_path / "docs").mkdir()
    old.mkdir()
    new.mkdir()
    (tmp_path / "docs" / "why.md").write_text("---\ncausalLinks: {supersedes: plan.md}\n---\nWe begin anew.\n")
    (old / "plan.md").write_text("# Plan\n\nThe first plan.\n")
    assert call(tmp_path, ["index", ".", "--json"]).json["links"] == 1

    for before, after in ((old, new), (new, tmp_path / "docs"), (tmp_path / "docs", old)):
        (before / "plan.md").rename(after / "plan.md")
        moved = call(tmp_path, ["index", ".", "--json"]).json
        name = "plan.md"
        assert [move["to"] for move in moved["renamed"]] == [(after / name).relative_to(tmp_path).as_posix()]
        assert (moved["links"], moved["problems"]) == (0, [])  # the edge goes with its memory
        found = call(tmp_path, ["search", "the first plan", "--json"]).json
        (plan,) = [row for row in found["results"] if row["title"] == "Plan"]
        assert [successor["key"] for successor in plan["notes"]["superseded_by"]] == ["docs/why.md"]


@pytest.mark.requirement("I8")
def test_an_empty_file_is_named_and_keeps_no_other_from_being_indexed(tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("# Note\n\nText.\n")
    (tmp_path / "empty.md").write_text("")
    ran = call(tmp_path, ["index", ".", "--json"])
    assert (ran.status, ran.json["created"]) == (0, ["note.md"])
    assert [problem["message"] for problem in ran.json["problems"]] == [
        "an empty document: the file holds no characters"
    ]
    assert "remarks: 1\nempty.md:1:1: E090" in call(tmp_path, ["index", "."]).ok().err

    (tmp_path / "blank.md").write_text("")
    told = call(tmp_path, ["index", "."]).ok().err
    assert (told.count("E090"), told.count("hint: ")) == (2, 1)


def test_a_dry_run_writes_nothing_not_even_a_store(tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("# Note\n\nText.\n")
    default = {"SPECKIT_DB": ""}
    ran = call(tmp_path, ["index", ".", "--dry-run", "--json"], default)
    assert ran.json["created"] == ["note.md"]
    assert ran.json["store"] == str(tmp_path / ".speckit" / "memory.db")
    human = call(tmp_path, ["index", ".", "--dry-run"], default)
    assert human.out.startswith("dry run, nothing written: 1 created, 0 updated")
    assert [file.name for file in tmp_path.iterdir()] == ["note.md"]

    assert call(tmp_path, ["index", "."]).status == 0
    known = call(tmp_path, ["index", ".", "--dry-run", "--json"]).json
    assert (known["created"], known["unchanged"]) == ([], 1)


def test_a_path_that_does_not_exist_is_the_callers_mistake(tmp_path: Path) -> None:
    error = call(tmp_path, ["index", "nowhere", "--json"]).refused("E010")
    assert "nowhere" in error["message"]


def test_a_file_that_cannot_be_read_is_reported_and_the_rest_indexed(tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text("# Good\n\nText.\n")
    (tmp_path / "bad.md").write_bytes(b"# Bad\n\n\xff\xfe\x00broken\x80")
    ran = call(tmp_path, ["index", ".", "--json"]).ended(2)
    assert ran.json["created"] == ["good.md"]
    assert ran.json["error"]["code"] == "E012"
    human = call(tmp_path, ["index", "."]).ended(2)
    assert "not indexed: 1" in human.err
    assert "bad.md" in human.err


def test_watch_and_dry_run_exclude_each_other(tmp_path: Path) -> None:
    call(tmp_path, ["index", ".", "--watch", "--dry-run", "--json"]).refused("E200")


def test_the_store_is_where_the_option_says(tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("# Note\n\nText.\n")
    store = tmp_path / "elsewhere" / "my.db"
    assert call(tmp_path, ["index", "note.md", "--db", str(store)]).status == 0
    assert store.is_file()
    assert not (tmp_path / "memory.db").exists()


@pytest.mark.usefixtures("modes_respected")
def test_a_folder_that_may_not_be_written_is_an_error_of_the_store(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    call(tmp_path, ["index", ".", "--json"]).refused("E020", 1)


@pytest.mark.parametrize(("given", "code"), [("..", "E014"), ("nowhere", "E010")])
def test_paths_that_cannot_be_indexed_leave_no_store_behind(tmp_path: Path, given: str, code: str) -> None:
    folder = tmp_path / "docs" / "sub"
    folder.mkdir(parents=True)
    call(folder, ["index", given, "--json"]).refused(code)
    assert list(folder.iterdir()) == []


def test_one_path_that_can_be_indexed_is_enough_for_a_store(tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("# Note\n\nText.\n")
    ran = call(tmp_path, ["index", "note.md", "nowhere"]).ended(2)
    assert ran.out.splitlines()[-1] == f"store {tmp_path / 'memory.db'}, workspace {tmp_path}"


@pytest.mark.requirement("I8")
def test_files_that_hold_the_same_are_listed_once_and_counted_from_then_on(tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("# Note\n\nText.\n")
    (tmp_path / "copy.md").write_text("# Note\n\nText.\n")
    (tmp_path / "link.md").symlink_to("note.md")
    listed = ["same content: note.md, link.md", "same content: copy.md, note.md"]

    first = call(tmp_path, ["index", "."]).out.splitlines()
    assert [line for line in first if line.startswith("same content")] == listed
    again = call(tmp_path, ["index", "."]).out.splitlines()
    assert [line for line in again if line.startswith("same content")] == [
        "same content as on earlier runs: 2 groups of files; --force names them again"
    ]
    forced = call(tmp_path, ["index", ".", "--force"]).out.splitlines()
    assert [line for line in forced if line.startswith("same content")] == listed


def test_a_long_list_of_equal_files_is_cut_and_says_where_the_rest_is(tmp_path: Path) -> None:
    for number in range(30):
        for name in ("a", "b"):
            (tmp_path / f"{name}{number}.md").write_text(f"# Note {number}\n\nText {number}.\n")
    out = call(tmp_path, ["index", "."]).out
    assert out.count("same content: ") == 20
    assert "… and 10 more; see them all with --force --json\n" in out
    assert len(call(tmp_path, ["index", ".", "--force", "--json"]).json["aliases"]) == 30


def test_of_many_files_processes_read_as_many_as_the_machine_has_use_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[int] = []
    beside = reader_processes.process_sources

    def noted(tasks: Any, maker: Any, embedder: Any, processes: int, report: Any) -> Any:
        asked.append(processes)
        return beside(tasks, maker, embedder, processes, report)

    monkeypatch.setattr("speckit_memory.memory.indexing.indexer.process_sources", noted)
    monkeypatch.setattr(reader_processes, "helpful_processes", lambda: 3)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text("Words.\n", encoding="utf-8")

    assert run(["index", "."]) == 0
    capsys.readouterr()
    assert asked == [3]


def test_a_run_that_finds_nothing_new_says_so_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    store = f"store {tmp_path / 'memory.db'}, workspace {tmp_path}"
    nothing = call(tmp_path, ["index", "docs"]).out.splitlines()
    assert nothing == ["nothing has changed: no documents", store]
    (tmp_path / "docs" / "a.md").write_text("# A\n\nText.\n")
    assert call(tmp_path, ["index", "docs"]).out.startswith("1 created, ")
    assert call(tmp_path, ["index", "docs"]).out.splitlines() == ["nothing has changed: 1 document as before", store]
    dry = call(tmp_path, ["index", "docs", "--dry-run"]).out
    assert dry.startswith("dry run, nothing written: nothing has changed: 1 document as before\n")
