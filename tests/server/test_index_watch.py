"""`index --watch` through the console script."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from files import write_file
from postgres_server import server

from speckit_memory.server.views.file_changes import changes, until_told_to_end
from tests.server.doors import COMMAND, call, environment
from tests.server.test_life import stored


def reports(out: Path) -> list[dict[str, Any]]:
    """What the runs have said so far."""
    text, found, decoder = out.read_text().strip(), [], json.JSONDecoder()
    while text:
        try:
            report, end = decoder.raw_decode(text)
        except ValueError:  # it is being written
            break
        found.append(report)
        text = text[end:].lstrip()
    return found


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 200
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture
def watching(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that watches the whole workspace, whose reports are written below it."""
    in_postgres = getattr(request, "param", "a file") == "PostgreSQL"
    store = {"SPECKIT_DB": f"{server()}&workspace={tmp_path.name}"} if in_postgres else {}
    write_file(tmp_path / "docs" / "first.md", "# First\n\nThe first note.\n")
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:
        process = subprocess.Popen(
            [COMMAND, "index", ".", "--watch", "--json"],
            stdout=out,
            stderr=err,
            env=environment(tmp_path, **store),
            cwd=tmp_path,
        )
    with process:
        try:
            wait_for(lambda: len(reports(tmp_path / "out")) == 1)
            yield process
        finally:
            process.kill()


@pytest.mark.requirement("I8.watched")
@pytest.mark.parametrize(
    ("watching", "sent"), [("a file", signal.SIGINT), ("PostgreSQL", signal.SIGTERM)], indirect=["watching"]
)
@pytest.mark.usefixtures("processes")
def test_changes_are_indexed_until_a_signal_ends_it(
    tmp_path: Path, watching: subprocess.Popen[bytes], sent: signal.Signals
) -> None:
    out, docs = tmp_path / "out", tmp_path / "docs"

    def made() -> set[str]:
        return {key for report in reports(out) for key in report["created"]}

    for number in range(20):
        (docs / f"{number}.md").write_text(f"# Note {number}\n\nA further note {number}.\n")
    wait_for(lambda: "docs/19.md" in made())
    runs = len(reports(out))
    assert runs < 15, "twenty files are not twenty runs, and what is written by indexing is no change"
    (docs / "first.md").write_text("# First\n\nThe first note, changed.\n")
    wait_for(lambda: any("docs/first.md" in report["updated"] for report in reports(out)))
    shutil.rmtree(docs)
    wait_for(lambda: sum(len(report["vanished"]) for report in reports(out)) == 21)
    write_file(docs / "again.md", "# Again\n\nThe folder came back.\n")
    wait_for(lambda: "docs/again.md" in made())
    (tmp_path / ".speckitignore").write_text("again.md\n")
    wait_for(lambda: sum(len(report["vanished"]) for report in reports(out)) == 22)

    watching.send_signal(sent)

    assert watching.wait(60) == 0
    assert (tmp_path / "err").read_text().splitlines()[-1] == "no longer watching"
    assert "Traceback" not in (tmp_path / "err").read_text()


@pytest.mark.requirement("I8.watched")
@pytest.mark.usefixtures("processes")
def test_a_source_that_goes_and_comes_back_is_watched_again(tmp_path: Path) -> None:
    out, docs = tmp_path / "out", tmp_path / "docs"
    write_file(docs / "first.md", "# First\n\nThe first note.\n")
    with out.open("w") as stream:
        process = subprocess.Popen(
            [COMMAND, "index", "docs", "--watch", "--json"], stdout=stream, env=environment(tmp_path), cwd=tmp_path
        )
    with process:
        try:
            wait_for(lambda: len(reports(out)) == 1)
            docs.rename(tmp_path / "elsewhere")
            wait_for(lambda: len(reports(out)) >= 2)
            write_file(docs / "second.md", "# Second\n\nThe folder came back.\n")
            wait_for(lambda: any("docs/second.md" in report.get("created", ()) for report in reports(out)))
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()


@pytest.mark.requirement("I8.watched")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("place", ["there", "gone"])
def test_a_signal_ends_the_watch_where_python_lost_its_exception(
    tmp_path: Path, sent: signal.Signals, place: str
) -> None:
    """As in a finaliser, of which Python prints the exception and goes on."""
    (tmp_path / "there").mkdir()
    told = 0

    with until_told_to_end() as ended:
        for _ in changes([tmp_path / place], tmp_path, ended):
            told += 1
            with suppress(KeyboardInterrupt):
                signal.raise_signal(sent)

    assert told == 1


def test_what_is_wrong_from_the_start_is_not_watched(tmp_path: Path) -> None:
    write_file(tmp_path / "docs" / "first.md", "# First\n\nThe first note.\n")
    assert call(tmp_path, ["index", "docs"]).status == 0

    assert "dosc" in call(tmp_path, ["index", "dosc", "--watch", "--json"]).ended(2).json["error"]["message"]


def git(root: Path, *arguments: str) -> None:
    own = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "gc.auto=0"]
    subprocess.run(
        ["git", *who, *arguments], cwd=root, env={**environment(root), **own}, check=True, capture_output=True
    )


def ids(root: Path) -> dict[str, int]:
    return dict(stored(root, "SELECT key, id FROM memories"))


@pytest.mark.requirement("I8.watched")
@pytest.mark.usefixtures("processes")
def test_a_checkout_of_a_thousand_files_is_few_runs_and_every_memory_stays_what_it_is(
    tmp_path: Path, watching: subprocess.Popen[bytes]
) -> None:
    out, docs = tmp_path / "out", tmp_path / "docs"
    texts = {f"note-{number:04}.md": f"# Note {number}\n\nThe old state of part {number}.\n" for number in range(1_000)}

    def written(state: str) -> None:
        for name, text in texts.items():
            (docs / name).write_text(text.replace("old", state))

    def holding(state: str) -> int:
        [(count,)] = stored(tmp_path, f"SELECT count(*) FROM bodies WHERE body LIKE '%The {state} state of part%'")
        assert isinstance(count, int)
        return count

    written("old")
    git(tmp_path, "init", "--quiet", "--initial-branch=old")
    git(tmp_path, "add", "docs")
    git(tmp_path, "commit", "--quiet", "--message=old")
    wait_for(lambda: holding("old") == 1_000)
    before = ids(tmp_path)
    git(tmp_path, "checkout", "--quiet", "-b", "new")
    written("new")
    git(tmp_path, "commit", "--quiet", "--all", "--message=new")
    wait_for(lambda: holding("new") == 1_000)
    runs = len(reports(out))

    git(tmp_path, "checkout", "--quiet", "old")
    wait_for(lambda: holding("old") == 1_000)

    # the run that wrote the last of them reports a moment later
    wait_for(lambda: sum(len(report["updated"]) for report in reports(out)[runs:]) >= 1_000)
    after = reports(out)[runs:]
    assert len(after) < 15, "a thousand files are not a thousand runs"
    assert not [report for report in after if report["created"] or report["vanished"] or report["renamed"]]
    assert ids(tmp_path) == before
    found = call(tmp_path, ["search", "note 777", "--json", "--limit", "3"])
    assert "docs/note-0777.md" in {row["key"] for row in found.json["results"]}
    watching.send_signal(signal.SIGTERM)
    assert watching.wait(60) == 0


@pytest.mark.requirement("I8.watched")
@pytest.mark.usefixtures("processes")
def test_what_an_editor_puts_in_the_place_of_a_file_is_an_update_of_it(
    tmp_path: Path, watching: subprocess.Popen[bytes]
) -> None:
    out, file = tmp_path / "out", tmp_path / "docs" / "first.md"
    before, begun = ids(tmp_path), len(reports(out))
    for number in range(20):
        beside = file.with_name(f".{file.name}.{number}.tmp")
        beside.write_text(f"# First\n\nThe first note, saved {number} times.\n")
        beside.replace(file)
    wait_for(lambda: stored(tmp_path, "SELECT 1 FROM bodies WHERE body LIKE '%saved 19 times%'") == [(1,)])
    wait_for(lambda: any(report["updated"] for report in reports(out)[begun:]))
    told = reports(out)[begun:]
    assert len(told) < 20, "twenty saves of a moment are not twenty runs"
    assert {key for report in told for key in report["updated"]} == {"docs/first.md"}
    assert not [report for report in told if report["created"] or report["vanished"] or report["problems"]]
    assert ids(tmp_path) == before
    watching.send_signal(signal.SIGTERM)
    assert watching.wait(60) == 0
