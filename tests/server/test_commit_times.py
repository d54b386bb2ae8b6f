"""What git knows of the age of documents, in a clone whose files are all of one moment."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from speckit_memory.memory.scanning.commit_times import CommitTimes, commit_times
from tests.server.doors import call

pytestmark = pytest.mark.usefixtures("processes")


def day(number: int) -> float:
    return datetime(2024, 3, number, 10, tzinfo=UTC).timestamp()


def git(folder: Path, *command: str, on: int = 1) -> None:
    names = {
        f"GIT_{who}_{what}": said
        for who in ("AUTHOR", "COMMITTER")
        for what, said in (("NAME", "Ann"), ("EMAIL", "ann@example.org"), ("DATE", f"2024-03-{on:02}T10:00:00Z"))
    }
    environ = os.environ | names | {"GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(["git", *command], cwd=folder, env=environ, check=True, capture_output=True)


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """A repository of which one document is old, one was changed since, one is changed now and one is new to git."""
    folder = tmp_path / "project"
    (folder / "docs").mkdir(parents=True)
    git(folder, "init", "-q")
    for name in ("old", "changed", "dirty"):
        (folder / "docs" / f"{name} ü.md").write_text(f"# The {name} one\n\nOn quokka caches.\n", encoding="utf-8")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "One", on=1)
    for name, on in (("changed", 2), ("dirty", 3)):
        with (folder / "docs" / f"{name} ü.md").open("a", encoding="utf-8") as file:
            file.write("More.\n")
        git(folder, "commit", "-qam", "Two", on=on)
    with (folder / "docs" / "dirty ü.md").open("a", encoding="utf-8") as file:
        file.write("Still more.\n")
    (folder / "docs" / "new.md").write_text("# New\n", encoding="utf-8")
    return folder


@pytest.mark.requirement("I1.committed")
def test_documents_without_a_date_are_as_old_as_their_first_commit(history: Path) -> None:
    assert call(history, ["index", "."]).status == 0

    def listed(order: str) -> list[str]:
        rows = call(history, ["list", "--sort", order, "--json"]).json["memories"]
        return [row["key"] for row in rows]

    assert call(history, ["stats", "--json"]).json["oldest"] == datetime.fromtimestamp(day(1), UTC).isoformat()
    assert listed("created_at")[0] == "docs/new.md"
    # those that differ from what was committed are as new as their files
    assert set(listed("updated_at")[:2]) == {"docs/new.md", "docs/dirty ü.md"}
    assert listed("updated_at")[2:] == ["docs/changed ü.md", "docs/old ü.md"]


@pytest.mark.requirement("I1.committed")
def test_git_tells_first_and_last_commits_below_the_workspace(history: Path) -> None:
    keys = ["old ü.md", "changed ü.md", "dirty ü.md", "new.md", "none.md"]

    assert commit_times(history / "docs", keys) == (
        {
            "old ü.md": CommitTimes(day(1), day(1)),
            "changed ü.md": CommitTimes(day(1), day(2)),
            "dirty ü.md": CommitTimes(day(1), None),
        },
        [],
    )


@pytest.mark.requirement("I1.committed")
def test_no_name_of_a_file_is_taken_for_a_commit(tmp_path: Path) -> None:
    names = ["-n.md", ":(top)x.md", "\x01a.md", "\x01b.md"]
    git(tmp_path, "init", "-q")
    assert commit_times(tmp_path, names) == ({}, [])
    for name in names:
        (tmp_path / name).write_text("# A note\n")
    git(tmp_path, "add", ".")
    assert commit_times(tmp_path, names) == ({}, [])  # nothing is committed
    git(tmp_path, "commit", "-qm", "One")

    assert commit_times(tmp_path, names) == ({name: CommitTimes(day(1), day(1)) for name in names}, [])


@pytest.mark.requirement("I1.committed")
@pytest.mark.parametrize(
    ("program", "why"),
    [("no program", "Exec format error"), ("#!/bin/sh\nexit 128\n", "`git ls-files` failed")],
)
def test_a_git_that_cannot_be_asked_stops_no_indexing(
    history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, why: str
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text(program)
    (tmp_path / "bin" / "git").chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    done = call(history, ["index", "."])

    assert done.status == 0
    assert "E102" in done.out + done.err
    assert why in done.out + done.err


def test_a_history_that_takes_too_long_is_told(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("speckit_memory.memory.scanning.commit_times.SECONDS", 0.0)

    _, problems = commit_times(history, ["docs/old ü.md"])

    assert [problem.code for problem in problems] == ["E102"]


@pytest.mark.requirement("I1.committed")
def test_where_git_knows_no_first_commit_nothing_is_told(history: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth", "1", history.as_uri(), "shallow")

    git(tmp_path / "shallow", "worktree", "add", "-q", "../beside")

    assert commit_times(tmp_path / "shallow", ["docs/old ü.md"]) == ({}, [])
    assert commit_times(tmp_path / "beside", ["docs/old ü.md"]) == ({}, [])
    assert commit_times(tmp_path, ["docs/old ü.md"]) == ({}, [])


@pytest.mark.requirement("I1.committed")
def test_nothing_that_a_repository_configures_is_run(history: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch '{tmp_path}/sprung'\n", encoding="utf-8")
    trap.chmod(0o700)
    for name in ("core.fsmonitor", "diff.external", "core.pager", "gpg.program"):
        git(history, "config", name, str(trap))
    git(history, "config", "log.showSignature", "true")

    assert len(commit_times(history, ["docs/old ü.md", "docs/dirty ü.md"])[0]) == 2
    assert not (tmp_path / "sprung").exists()
