"""Files of the configuration are followed: what is changed is in force at the next search, what is broken is not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from speckit_memory.config.files import watching
from speckit_memory.config.files.watching import WatchedFiles
from speckit_memory.config.workspace.settings import CONFIG_FILE, FLAGS_FILE, PIPELINE_FILE
from speckit_memory.engine import Memory
from speckit_memory.engine.answers.results import SearchResult
from speckit_memory.engine.search.searcher import Searcher
from speckit_memory.engine.serving import reloading

OURS = "pipeline: ours\nextends: bm25\n"
OPENED_WITH = "extensions: none\nentities: link\nevaluation: {record: shadows}\n"
THEIRS = "pipeline: theirs\nextends: bm25\nrerank: [min_max]\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / ".speckit").mkdir()
    (tmp_path / "docs" / "fusion.md").write_text("# Why rank fusion\n\nRanks are fused.\n", encoding="utf-8")
    return tmp_path


def settled(root: Path, name: Path, text: str | None) -> Path:
    """Writes a file as if a while ago, so that nobody waits for its writer to end."""
    file = root / name
    if text is None:
        file.unlink()
    else:
        file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture
def memory(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    """A memory that follows the files, and waits for no writer."""
    monkeypatch.setattr(reloading, "SETTLED_SECONDS", 0.0)
    with Memory.open(root=root, environ={}) as opened:
        opened.index(root / "docs")
        opened.pipelines.follow(0.0)
        yield opened


def search(memory: Memory) -> SearchResult:
    return memory.search("why rank fusion")


@pytest.mark.requirement("P2.followed")
def test_files_that_come_change_and_go_are_in_force_at_the_next_search(
    memory: Memory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = search(memory).pipeline
    settled(root, PIPELINE_FILE, OURS)
    assert search(memory).pipeline.name == "ours"
    monkeypatch.setattr(reloading, "RETRY_SECONDS", 0.0)
    settled(root, PIPELINE_FILE, "pipeline: ours\nextends: base.yaml\n")
    assert search(memory).pipeline.name == "ours"  # there is no such file yet
    settled(root, Path(".speckit/base.yaml"), "extends: fts5\n")
    by_fts5 = search(memory)
    assert by_fts5.notes.warnings == ()
    settled(root, Path(".speckit/base.yaml"), "extends: vector\n")
    by_vector = search(memory)
    assert len({shipped.hash, by_fts5.pipeline.hash, by_vector.pipeline.hash}) == 3
    settled(root, PIPELINE_FILE, None)
    assert search(memory).pipeline == shipped
    settled(root, FLAGS_FILE, "flags: {SPECKIT_RSF_FUSION: {state: enabled}}\n")
    assert search(memory).pipeline.hash != shipped.hash
    settled(root, FLAGS_FILE, "")
    assert search(memory).pipeline == shipped
    settled(root, CONFIG_FILE, "deadline_ms: 900\n")
    search(memory)
    assert memory.session.settings.deadline_ms == 900


@pytest.mark.requirement("P2.last_good")
@pytest.mark.parametrize(
    ("file", "text", "place"),
    [
        (PIPELINE_FILE, "pipeline: ours\nfusoin: []\n", "2:1: E115 "),
        (PIPELINE_FILE, "pipeline: [\n", "2:1: E111 "),
        (PIPELINE_FILE, "rerank: [{use: mmr, lamda: 2}]\n", "1:21: E118 "),
        (FLAGS_FILE, "flags:\n  SPECKIT_RRF: {state: maybe}\n", "2:24: "),
        (CONFIG_FILE, "deadline_ms: soon\n", "1:14: E114 "),
    ],
)
def test_a_broken_file_changes_nothing_and_every_answer_and_the_health_report_name_its_place(
    memory: Memory, root: Path, file: Path, text: str, place: str
) -> None:
    settled(root, PIPELINE_FILE, OURS)
    good = search(memory)
    good_text = OURS if file == PIPELINE_FILE else None
    path = settled(root, file, text)

    for answer in (search(memory), search(memory)):
        assert answer.pipeline == good.pipeline
        assert [row.key for row in answer.results] == [row.key for row in good.results]
        [warning] = answer.notes.warnings
        assert warning.startswith(f"the configuration was changed and cannot be used: {path}:{place}")
        assert warning.endswith(f"'ours' ({good.pipeline.hash}) answers as before")
    [check] = [check for check in memory.status().checks if check.name == "pipeline"]
    assert not check.ok
    assert f"the files were changed and cannot be used: {path}:{place}" in check.detail
    assert "without a restart" in check.hint

    settled(root, file, good_text)
    assert search(memory).notes.warnings == ()
    [check] = [check for check in memory.status().checks if check.name == "pipeline"]
    assert check.ok


@pytest.mark.requirement("P2.followed")
def test_a_search_under_way_ends_with_the_pipeline_it_began_with(
    memory: Memory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled(root, PIPELINE_FILE, OURS)
    search(memory)
    whole: Callable[..., SearchResult] = Searcher.search
    names: list[str] = []

    def interrupted(self: Searcher, *given: Any, **more: Any) -> SearchResult:
        settled(root, PIPELINE_FILE, THEIRS)
        memory.pipelines.reload()
        names.append(memory.pipelines.current.name)
        return whole(self, *given, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Searcher, "search", interrupted)
        before = search(memory)
    assert (before.pipeline.name, names) == ("ours", ["theirs"])
    assert memory.explain.row(before, before.results[0].id).steps
    assert memory.feedback.delivered(before) == ""
    assert memory.explain.why_not(before, before.results[0].id) == "'docs/fusion.md' is result 1 of 1."
    assert search(memory).pipeline.name == "theirs"


@pytest.mark.requirement("P4.followed")
def test_what_runs_beside_the_pipeline_follows_too_and_what_ran_before_ends(memory: Memory, root: Path) -> None:
    others = threading.enumerate()
    dark = "dark_runs: [{use: bm25, sample: 1.0}]\n"
    settled(root, PIPELINE_FILE, f"{OURS}shadows: [fts5]\n{dark}")
    memory.feedback.delivered(search(memory))
    assert memory.shadows.finish(30)
    assert [(one.name, one.seen) for one in memory.shadows.list()] == [("fts5", 1), ("bm25", 1)]
    first = memory.session.configuration.now.shadows
    settled(root, PIPELINE_FILE, f"# the same\n{OURS}shadows: [fts5]\n{dark}")
    search(memory)
    assert memory.session.configuration.now.shadows is first  # a comment does not begin it anew
    settled(root, PIPELINE_FILE, f"{OURS}shadows: [vector]\n")
    memory.feedback.delivered(search(memory))
    assert memory.shadows.finish(30)
    assert [(one.name, one.seen) for one in memory.shadows.list()] == [("vector", 3)]  # those before, too
    settled(root, PIPELINE_FILE, f"{OURS}shadows: [nowhere.yaml]\n")
    assert "nowhere.yaml" in str(search(memory).notes.warnings)
    assert memory.pipelines.current.name == "ours"
    settled(root, PIPELINE_FILE, OURS)
    search(memory)
    assert memory.shadows.list() == ()
    memory.session.configuration.end()
    ours = {thread for thread in threading.enumerate() if thread.name.startswith(("shadows", "dark"))}.difference(
        others
    )
    for thread in ours:
        thread.join(30)
    assert not any(thread.is_alive() for thread in ours)


@pytest.mark.requirement("P2.followed")
def test_half_a_file_is_not_read_while_it_is_being_written(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, parts = root / PIPELINE_FILE, ["pipeline: ours\n", "extends: bm", "25\n"]
    written: list[str] = []

    def writes_on(_seconds: float) -> None:
        if parts:
            written.append(parts.pop(0))
            file.write_text("".join(written))

    with Memory.open(root=root, environ={}) as memory:
        memory.index(root / "docs")
        memory.pipelines.follow()
        monkeypatch.setattr("speckit_memory.engine.serving.reloading.sleep", writes_on)
        file.write_text("")
        assert search(memory).notes.warnings == ()
        assert (memory.pipelines.current.name, parts) == ("ours", [])
        parts[:] = [*(f"# {line}\n" for line in range(20)), "rerank: [min_max]\n"]  # a writer who does not end
        writes_on(0)
        assert search(memory).pipeline.name == "ours"
        assert 10 < len(parts) < 20
        while parts:
            writes_on(0)
        search(memory)
        assert [step.use for step in memory.pipelines.current.rerank] == ["min_max"]


def test_a_change_that_leaves_no_trace_but_the_content_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "flags.yaml"
    file.write_text("one")
    now = time.time_ns()
    monkeypatch.setattr(watching, "_stamp", lambda _: (1, 1, 3, now, now))
    watched = WatchedFiles([file])
    assert not watched.changed()
    file.write_text("two")
    assert watched.changed()


@pytest.mark.requirement("P2.followed")
def test_what_a_store_is_opened_with_waits_for_a_restart_and_health_says_so(memory: Memory, root: Path) -> None:
    file = settled(root, CONFIG_FILE, "deadline_ms: 700\n" + OPENED_WITH)
    [check] = [check for check in memory.status().checks if check.name == "configuration"]
    assert not check.ok
    waiting = f"changed since the start: extensions ({file}:2:1), evaluation ({file}:4:1), entities ({file}:3:1)"
    assert check.detail.endswith(waiting)
    assert memory.session.settings.deadline_ms == 700
    settled(root, CONFIG_FILE, "deadline_ms: 700\n")
    assert all(check.ok for check in memory.status().checks)


def test_a_pipeline_that_was_given_as_a_value_is_nobodys_to_change(root: Path) -> None:
    with Memory.open(root=root, environ={}, pipeline={"extends": "bm25"}) as memory:
        memory.index(root / "docs")
        memory.pipelines.follow()
        before = search(memory).pipeline
        settled(root, PIPELINE_FILE, THEIRS)
        assert search(memory).pipeline == before
