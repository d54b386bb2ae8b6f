"""What commands write: never through a planted link, never over what somebody else has made, never half."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from files import write_file
from privileges import modes_respected
from tally import Tally

from speckit_memory.config.pipelines import document
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.datasets.dataset import EDGES, QRELS, QUERIES
from speckit_memory.evaluation.datasets.documents import CORPUS
from speckit_memory.evaluation.datasets.trec import check_run_file, write_run
from speckit_memory.evaluation.made_queries import run as made_queries
from speckit_memory.server.commands.cli import run
from speckit_memory.server.operations.evaluation.pipeline_fitting import read_source, write_pipeline

PRECIOUS = "precious words of somebody else\n"
RUNS = {"bm25": {"q": [("a", 1.0)]}}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A workspace beside a foreign folder, whose content must be the same at the end."""
    for name in [name for name in os.environ if name.startswith("SPECKIT_")]:
        monkeypatch.delenv(name)
    folder, foreign = tmp_path / "workspace", tmp_path / "foreign"
    (folder / ".git").mkdir(parents=True)
    write_file(foreign / "file", PRECIOUS)
    monkeypatch.chdir(folder)
    yield folder
    assert {path.name: path.read_text(encoding="utf-8") for path in foreign.iterdir()} == {"file": PRECIOUS}


def told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    status = run([*arguments, "--json"])
    return status, json.loads(capsys.readouterr().out)


PLANTED: dict[str, Callable[[Path, Path], object]] = {
    "to a file": lambda path, foreign: path.symlink_to(foreign / "file"),
    "to nothing": lambda path, foreign: path.symlink_to(foreign / "new"),
    "to itself": lambda path, _: path.symlink_to(path.name),
}


@pytest.mark.parametrize("name", ["config.yaml", ".gitignore"])
@pytest.mark.parametrize("planted", PLANTED)
def test_init_writes_through_no_link(
    planted: str, name: str, root: Path, capsys: pytest.CaptureFixture[str], tally: Tally
) -> None:
    (root / ".speckit").mkdir()
    PLANTED[planted](root / ".speckit" / name, root.parent / "foreign")

    status, document = told(["init", "--write"], capsys)

    assert status == 0
    assert f".speckit/{name}" not in document["created"]
    tally.tried()


def test_init_makes_no_workspace_of_a_folder_that_a_link_leads_to(
    root: Path, capsys: pytest.CaptureFixture[str], tally: Tally
) -> None:
    for target in (root.parent / "foreign", root.parent / "nowhere"):
        (root / ".speckit").symlink_to(target)

        status, document = told(["init", "--write"], capsys)

        assert (status, document["error"]["code"]) == (2, "E014")
        (root / ".speckit").unlink()
        tally.tried()
    assert not (root.parent / "nowhere").exists()


def test_index_hides_from_git_no_folder_that_a_link_leads_to(
    root: Path, capsys: pytest.CaptureFixture[str], tally: Tally
) -> None:
    (root / "one.md").write_text("# One\n\nAbout marmots.\n", encoding="utf-8")
    other = root.parent / "other project"
    other.mkdir()
    (root / ".speckit").symlink_to(other)

    assert told(["index", "one.md"], capsys)[0] == 0

    assert sorted(path.name for path in other.iterdir()) == ["memory.db"]
    tally.tried()


def test_a_link_to_a_folder_of_the_workspace_keeps_the_store_out_of_git(
    root: Path, capsys: pytest.CaptureFixture[str], tally: Tally
) -> None:
    (root / "one.md").write_text("# One\n\nAbout marmots.\n", encoding="utf-8")
    (root / "var").mkdir()
    (root / ".speckit").symlink_to("var")

    assert told(["index", "one.md"], capsys)[0] == 0

    assert (root / "var" / ".gitignore").exists()
    tally.tried()


WRITERS: dict[str, tuple[Callable[[Path], object], Callable[[Path], None]]] = {
    "pipeline": (
        lambda path: read_source("bm25", path),
        lambda path: write_pipeline(path, document.read("bm25"), {"bm25.b": "0.5"}, ["tuned"], {}),
    ),
    "run file": (lambda path: check_run_file(path, ["a"]), lambda path: write_run(path, RUNS)),
}
"""How each kind of result is checked for before the work, and written after it."""


@pytest.mark.parametrize("writer", WRITERS)
def test_results_take_the_place_of_nothing_but_results(writer: str, root: Path, tally: Tally) -> None:
    check, write = WRITERS[writer]
    for planted in PLANTED.values():
        planted(root / "out", root.parent / "foreign")
        with pytest.raises(SpeckitError, match=r"E014 .* is a link"):
            check(root / "out")
        write(root / "out")  # planted after the check: it is replaced, and not followed
        assert not (root / "out").is_symlink()
        check(root / "out")
        write(root / "out")
        (root / "out").unlink()
        tally.tried()
    (root / "out").write_text(PRECIOUS, encoding="utf-8")
    with pytest.raises(SpeckitError, match=r"E014 .* has other contents"):
        check(root / "out")
    for made in (os.mkfifo, os.mkdir):
        (root / "out").unlink()
        made(root / "out")
        with pytest.raises(SpeckitError, match="E014"):
            check(root / "out")
        tally.tried()


def test_a_file_in_a_folder_that_may_not_be_entered_is_refused(tmp_path: Path, tally: Tally) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(0o000)
    with modes_respected(), pytest.raises(SpeckitError, match="cannot be written: permission denied") as caught:
        read_source("bm25", closed / "x.md")
    assert caught.value.code == "E014"
    tally.tried()


def test_a_pipeline_may_be_written_over_the_file_it_comes_from(root: Path, tally: Tally) -> None:
    mine = root / "mine.yaml"
    mine.write_text("pipeline: mine\nextends: bm25\n", encoding="utf-8")

    read_source(str(mine), mine)
    with pytest.raises(SpeckitError, match="E014"):
        read_source("bm25", mine)
    tally.tried(2)


def test_what_ends_before_its_end_leaves_what_was_there(root: Path, tally: Tally) -> None:
    out = root / "out"
    write_run(out, RUNS)
    before = out.read_bytes()

    def broken() -> Iterator[tuple[str, float]]:
        yield "a", 1.0
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_run(out, {"bm25": {"q": broken()}})  # type: ignore[dict-item]  # a ranking that does not come to its end

    assert out.read_bytes() == before
    assert [path.name for path in root.iterdir() if path.name != ".git"] == ["out"]
    tally.survived()


def test_the_longest_name_can_be_written_and_a_full_folder_is_said(root: Path, tally: Tally) -> None:
    longest = root / ("x" * 255)
    write_run(longest, RUNS)
    assert longest.read_text(encoding="utf-8").startswith("q Q0 a 1 ")
    with pytest.raises(SpeckitError, match="E014"):
        write_run(root / "gone" / "out", RUNS)
    tally.tried(2)


def test_made_queries_are_written_into_no_folder_that_a_link_leads_to(root: Path, tally: Tally) -> None:
    made = root / "made"
    made.mkdir()
    (made / "qrels").symlink_to(root.parent / "foreign")

    with pytest.raises(SpeckitError, match=r"E014 .*qrels' is a link"):
        made_queries.check_targets([made], root / "dataset", force=True)
    (made / "qrels").unlink()
    for name in (CORPUS, QUERIES, EDGES):
        (made / name).symlink_to(root.parent / "foreign" / "file")
    write_file(root / "dataset" / CORPUS, "{}\n")
    made_queries.write(made, root / "dataset", "words", [])
    assert not any((made / name).is_symlink() for name in (CORPUS, QUERIES, QRELS))
    tally.tried(4)


def test_a_file_under_the_temporary_name_is_never_touched(
    root: Path, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    monkeypatch.setattr(secrets, "token_hex", lambda _: "guessed")
    (root / ".speckit-guessed.tmp").symlink_to(root.parent / "foreign" / "file")

    with pytest.raises(SpeckitError, match="E014"):
        write_run(root / "out", RUNS)

    assert not (root / "out").exists()
    shutil.rmtree(root / ".git")
    assert [path.name for path in root.iterdir()] == [".speckit-guessed.tmp"]
    tally.survived()
