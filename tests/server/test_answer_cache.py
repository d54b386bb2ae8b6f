"""Answers that are given again: never another one than would be made now, and what follows an answer follows each."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from speckit_memory.channels.vector import Vector
from speckit_memory.engine import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
from speckit_memory.server.calls import missing
from speckit_memory.server.mcp_server.app import build
from speckit_memory.server.replies.answer_cache import AnswerCache
from speckit_memory.server.replies.envelope import BudgetedReply, nothing
from speckit_memory.server.replies.worker_calls import ThreadLimits
from speckit_memory.server.views.absence_text import reason_of_absence
from speckit_memory.server.workspace.workspace import Workspace
from tests.server.doors import environment

Ask = Callable[..., dict[str, Any]]
NOW = 1_790_000_000.0

OTHER_PROCESS = """
import json, sys, time
from speckit_memory.engine import Memory
from speckit_memory.memory.store.tables.sessions import selections
with Memory.open(create=False) as memory:
    for line in sys.stdin:
        operation, *arguments = json.loads(line)
        if operation == "link":
            memory.graph.add_edges([tuple(arguments)])
        elif operation == "update":
            memory.documents.update(arguments[0], **arguments[1])
        elif operation == "validate":
            memory.learning.validate(arguments[0], useful=arguments[1])
        elif operation == "write":
            memory.documents.write(arguments[1], path=arguments[0], force=True)
        elif operation == "delete":
            memory.deletions.delete(arguments[0], confirm=True)
        elif operation == "delete, and take back":
            memory.deletions.undelete(memory.deletions.delete(arguments[0], confirm=True).name)
        elif operation == "keep":
            memory.checkpoints.create(arguments[0])
        elif operation == "restore":
            memory.checkpoints.restore(arguments[0], replace=True)
        elif operation == "task":
            memory.learning.preflight(*arguments, knowledge=20, uncertainty=60, context=40)
        elif operation == "teach":
            now = time.time()
            with memory.session.database.write() as txn:
                selections.learn(txn, memory.get(arguments[0]).id, arguments[1], now, now + 86_400.0)
        elif operation == "unlearn":
            memory.triggers.forget()
        elif operation == "session":
            memory.feedback.delivered(memory.search("rank fusion", session="elsewhere", dedup=False))
        print("done", flush=True)
"""


def served(root: Path, *, kept: float = 60, pipeline: str | None = None) -> Workspace:
    """What a server in this process serves."""

    def opened(_create: bool) -> Memory:
        return Memory.open(root / "memory.db", pipeline, root=root, create=False)

    with opened(False) as memory:
        memory.lifecycle.maintain()  # or a background job that is due would change the store at any moment
        config = memory.session.settings
    return Workspace(opened, config, cache_seconds=kept)


@contextmanager
def asking(*workspaces: Workspace) -> Iterator[list[Ask]]:
    """Clients of servers in this process, one of each workspace."""
    with anyio.from_thread.start_blocking_portal() as portal:
        servers = [build(each, warm_up=False, limits=ThreadLimits()) for each in workspaces]
        contexts = [portal.wrap_async_context_manager(Client(server)) for server in servers]
        clients = [context.__enter__() for context in contexts]

        def ask_of(client: Any) -> Ask:
            def ask(tool: str, **arguments: Any) -> dict[str, Any]:
                result = portal.call(client.call_tool, tool, arguments)
                [block] = result.content
                return {**result.structured_content, "text": block.text}

            return ask

        try:
            yield [ask_of(client) for client in clients]
        finally:
            for context in contexts:
                context.__exit__(None, None, None)
            for each in workspaces:
                each.finish(0)


def was_kept(answer: dict[str, Any]) -> bool:
    """What is refused is not kept."""
    return "error" not in answer and bool(answer["meta"]["cache_hit"])


def said(answer: dict[str, Any]) -> dict[str, Any]:
    """All that an answer says but how long it took and whether it had been made before."""
    meta = {name: value for name, value in answer.get("meta", {}).items() if name not in ("latency_ms", "cache_hit")}
    return {**answer, "meta": meta}


@contextmanager
def elsewhere(root: Path) -> Iterator[Callable[..., None]]:
    """Another process that changes the store."""
    with subprocess.Popen(
        [sys.executable, "-c", OTHER_PROCESS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(root),
        cwd=root,
        text=True,
    ) as process:

        def change(*operation: Any) -> None:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps(operation) + "\n")
            process.stdin.flush()
            assert process.stdout.readline() == "done\n"

        yield change
        process.stdin.close()  # type: ignore[union-attr]  # it is a pipe


QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("memory_search", {"query": "rank fusion"}),
    ("memory_search", {"query": "rank fusion", "limit": 2}),
    ("memory_search", {"query": "rank fusion", "limit": 10, "tier": None}),
    ("memory_search", {"query": "write-ahead log", "specFolder": "docs/storage"}),
    ("memory_search", {"query": "quokka", "includeContent": True}),
    ("memory_search", {"query": "quokka", "explain": True}),
    ("memory_search", {"query": "rank fusion", "tier": "important"}),
    ("memory_search", {"concepts": ["rank", "dense channels"]}),
    ("memory_search", {"query": "rank fusion", "sessionId": "s"}),
    ("memory_search", {"key": "docs/fusion.md"}),
    ("memory_search", {"query": "nothing has these wordsies"}),
    ("memory_search", {"query": "zeppelin"}),
    ("memory_match_triggers", {"prompt": "what of the zeppelin"}),
    ("memory_context", {"input": "why are ranks fused"}),
    ("memory_context", {"input": "why are ranks fused", "mode": "deep"}),
    ("memory_context", {"input": "why are ranks fused", "tokenUsage": 0.9}),
    ("memory_context", {"input": "continue", "mode": "resume"}),
    ("memory_match_triggers", {"prompt": "tell me of reciprocal rank fusion"}),
    ("memory_match_triggers", {"prompt": "tell me of reciprocal rank fusion", "session_id": "s"}),
    ("memory_list", {}),
    ("memory_list", {"sortBy": "importance_weight", "limit": 3}),
    ("memory_drift_why", {"memoryId": "docs/fusion.md"}),
    ("memory_causal_stats", {}),
    ("memory_get_learning_history", {"specFolder": "docs"}),
    ("memory_search", {"query": "rank fusion", "limit": 0}),
    ("memory_drift_why", {"memoryId": "no/such.md"}),
]
CHANGES: list[tuple[Any, ...]] = [
    ("update", "docs/fusion.md", {"weight": 0.9}),
    ("update", "docs/fusion.md", {"weight": 0.2}),
    ("update", "docs/storage/wal.md", {"title": "The log that is written ahead"}),
    ("link", "docs/fusion.md", "supports", "docs/storage/wal.md", 0.7),
    ("link", "docs/storage/wal.md", "caused", "docs/storage/backup.md", 0.9),
    ("validate", "docs/fusion.md", True),
    ("validate", "docs/storage/wal.md", False),
    ("write", "docs/later.md", "# Later\n\nRank fusion came later than the write-ahead log, says rank fusion.\n"),
    ("write", "docs/more.md", "# More on ranks\n\nWhy ranks are fused, once more, with dense channels.\n"),
    ("delete", "docs/tone.md"),
    ("session",),
    ("teach", "docs/fusion.md", "zeppelin"),
    ("unlearn",),
    ("delete, and take back", "docs/long.md"),
    ("task", "docs", "cache"),
    ("keep", "then"),
    ("restore", "then"),
    ("file", "pipeline.yaml", "extends: rrf\n"),
    ("file", "pipeline.yaml", "extends: no such\n"),
    ("file", "flags.yaml", "flags: {SPECKIT_NOBODY: {state: enabled}}\n"),
    ("file", "flags.yaml", "flags: {}\n"),
]  # fmt: skip


@pytest.mark.requirement("T25.equal", "T25.written")
@pytest.mark.usefixtures("processes")
def test_what_is_given_again_is_what_would_be_made_now_whatever_other_processes_write(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = random.Random(12)
    # what ages by the clock does so between two answers too, in the last digit of a score
    monkeypatch.setattr(time, "time", lambda: NOW)
    monkeypatch.setenv("SPECKIT_LEARN_FROM_SELECTION", "true")
    changes = drawn.sample(CHANGES, len(CHANGES))
    restore, keep = (changes.index((name, "then")) for name in ("restore", "keep"))
    if restore > keep:  # the last is the first to be made
        changes[restore], changes[keep] = changes[keep], changes[restore]
    (workspace / ".speckit").mkdir(exist_ok=True)
    hits = 0
    keeping, anew = served(workspace), served(workspace, kept=0)
    with elsewhere(workspace) as change, asking(keeping, anew) as (ask, ask_anew):
        for number in range(12 * (len(CHANGES) + 1)):
            if number % 12 == 0:
                asked = drawn.sample(QUESTIONS, 7)  # some of them again, before the next change
                if number:
                    what, *how = changes.pop()
                    if what == "file":
                        (workspace / ".speckit" / how[0]).write_text(how[1], encoding="utf-8")
                    else:
                        change(what, *how)
            if number % 37 == 36:
                keeping.memory().feedback.write()  # the uses that were counted until then
            tool, arguments = drawn.choice(asked)
            if arguments.get("sessionId") or arguments.get("session_id"):
                assert not was_kept(ask(tool, **arguments))
                continue
            kept, made = ask(tool, **arguments), ask_anew(tool, **arguments)
            if arguments.get("explain"):
                del kept["data"]["timings_ms"], made["data"]["timings_ms"]
                assert not was_kept(kept)
            assert said(kept) == said(made), (number, tool, arguments)
            hits += was_kept(kept)
        assert not changes
        assert keeping.answers.figures().hits == hits >= 25
        assert anew.answers.figures().hits == 0


@pytest.mark.requirement("T25.kept")
def test_the_same_question_is_answered_again_however_it_is_written(workspace: Path) -> None:
    with asking(served(workspace)) as (ask,):
        first = ask("memory_search", query="rank fusion")
        again = ask("memory_search", mode="auto", query="rank fusion", tier=None, anchors=[])
        assert (was_kept(first), was_kept(again)) == (False, True)
        assert said(again) == said(first)
        others: list[dict[str, Any]] = [
            {"limit": 9}, {"tier": "important"}, {"specFolder": "docs"}, {"mode": "deep"}, {"includeContent": True},
            {"deadlineMs": 500.5}, {"anchors": ["summary"]}, {"tokenBudget": 300},
        ]  # fmt: skip
        assert not any(was_kept(ask("memory_search", query="rank fusion", **other)) for other in others)
        assert not was_kept(ask("memory_context", input="rank fusion"))
        figures = ask("memory_stats")["data"]["answer_cache"]
        assert (figures["hits"], figures["misses"], figures["entries"]) == (1, 10, 10)
        assert "answers from the cache 1 of 11" in ask("memory_stats")["text"]


@pytest.mark.requirement("T25.used")
def test_what_is_given_again_was_of_use_once_more_and_is_noted_as_a_question_of_its_own(workspace: Path) -> None:
    keeping = served(workspace)
    with asking(keeping) as (ask,):
        memory = keeping.memory()
        before = memory.get("docs/fusion.md").access_count
        answers = [ask("memory_search", query="rank fusion", includeContent=True) for _ in range(4)]
        matched = [ask("memory_match_triggers", prompt="reciprocal rank fusion") for _ in range(2)]
        assert [was_kept(answer) for answer in answers] == [False, True, True, True]
        assert [was_kept(answer) for answer in matched] == [False, True]
        memory.feedback.write()
        assert memory.get("docs/fusion.md").access_count == before + 6
        with EvaluationDatabase.open(evaluation_file(workspace / "memory.db"), create=False) as database:
            assert database.counts()["queries"] == 4
            assert database.counts()["uses"] >= 4  # it was opened each time


@pytest.mark.requirement("T25.kept")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("memory_search", {"query": "rank fusion", "sessionId": "s", "enableDedup": False}),
        ("memory_search", {"query": "rank fusion", "explain": True}),
        ("memory_search", {"query": "rank fusion", "deadlineMs": 1e-6}),
        ("memory_search", {"key": "docs/fusion.md"}),
        ("memory_context", {"input": "rank fusion", "sessionId": "s", "enableDedup": False}),
        ("memory_match_triggers", {"prompt": "reciprocal rank fusion", "session_id": "s"}),
        ("memory_stats", {}),
        ("memory_health", {}),
        ("checkpoint_list", {}),
    ],
)
def test_what_holds_for_the_moment_alone_is_made_each_time(
    workspace: Path, tool: str, arguments: dict[str, Any]
) -> None:
    with asking(served(workspace)) as (ask,):
        assert [was_kept(ask(tool, **arguments)) for _ in range(3)] == [False] * 3


@pytest.mark.requirement("T25.kept", "P8.change")
def test_what_a_deadline_kept_from_being_tried_is_tried_when_it_is_asked_again(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hurried(*about: Any, until: float, **further: Any) -> Any:
        return reason_of_absence(*about, until=min(until, 0), **further)

    asked = {"query": "quokka or fusion", "limit": 1, "deadlineMs": 60_000, "whyNot": "docs/fusion.md"}
    with asking(served(workspace)) as (ask,):
        with monkeypatch.context() as patched:
            patched.setattr(missing, "reason_of_absence", hurried)
            told = ask("memory_search", **asked)["data"]["why_not"]["change"]
            assert told["sentence"] == "No time was left to try what would bring it in. Raise deadlineMs."
        again = ask("memory_search", **asked)
        assert again["data"]["why_not"]["change"]["change"]["name"] == "limit"
        assert not was_kept(again)
        assert was_kept(ask("memory_search", **asked))


@pytest.mark.requirement("T25.kept")
def test_questions_that_were_answered_from_what_is_kept_are_replayed_too(workspace: Path) -> None:
    (workspace / "both.yaml").write_text("extends: default\nshadows: [bm25]\n", encoding="utf-8")
    keeping = served(workspace, pipeline=str(workspace / "both.yaml"))
    with asking(keeping) as (ask,):
        assert [was_kept(ask("memory_search", query="rank fusion")) for _ in range(3)] == [False, True, True]
        assert keeping.memory().shadows.finish()
        assert [shadow.seen for shadow in keeping.memory().shadows.list()] == [3]


@pytest.mark.requirement("T25.kept")
def test_what_a_failing_part_was_left_out_of_is_made_anew(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keeping = served(workspace)
    with asking(keeping) as (ask,):
        with monkeypatch.context() as broken:
            broken.setattr(Vector, "search", lambda *_: 1 / 0)
            assert ask("memory_search", query="rank fusion")["meta"]["degraded"]
        whole = ask("memory_search", query="rank fusion")
        assert (was_kept(whole), whole["meta"]["degraded"]) == (False, [])


@pytest.mark.requirement("T25.written")
def test_a_store_that_takes_the_place_of_another_is_answered_from(workspace: Path) -> None:
    keeping = served(workspace)
    with asking(keeping) as (ask,):
        assert [was_kept(ask("memory_list")) for _ in range(2)] == [False, True]
        with Memory.open(workspace / "other.db", root=workspace) as other:
            other.index_documents([])
        for name in ("memory.db-wal", "memory.db-shm"):
            (workspace / name).unlink(missing_ok=True)
        (workspace / "other.db").replace(workspace / "memory.db")
        answer = ask("memory_list")
        assert (was_kept(answer), answer["data"]["total"]) == (False, 0)
        for file in workspace.glob("memory.db*"):
            file.unlink()
        assert ask("memory_list")["error"]["code"] == "E010"


@pytest.mark.requirement("T25.written")
def test_what_the_files_of_the_configuration_say_meanwhile_holds(workspace: Path) -> None:
    file = workspace / ".speckit" / "pipeline.yaml"
    file.parent.mkdir(exist_ok=True)
    keeping = served(workspace)
    with asking(keeping) as (ask,):
        before = keeping.memory().pipelines.current.hash
        kept = [ask("memory_search", query="rank fusion") for _ in range(2)]
        assert [was_kept(answer) for answer in kept] == [False, True]
        file.write_text("extends: bm25\n", encoding="utf-8")
        changed = ask("memory_search", query="rank fusion")
        assert not was_kept(changed)
        assert keeping.memory().pipelines.current.hash != before
        assert was_kept(ask("memory_search", query="rank fusion"))
        file.write_text("extends: no such\n", encoding="utf-8")
        broken = ask("memory_search", query="rank fusion")
        assert (was_kept(broken), "no such" in "".join(broken["hints"])) == (False, True)


def test_nothing_is_kept_where_nothing_shall_be(workspace: Path) -> None:
    with asking(served(workspace, kept=0)) as (ask,):
        assert [was_kept(ask("memory_list")) for _ in range(2)] == [False, False]


class Made:
    """A cache of a made-up state and clock, and answers that tell which of them they are."""

    def __init__(self, **limits: Any) -> None:
        self.state: int | None = 1
        self.now = 0.0
        self.ahead = NOW
        self.made = 0
        self.cache = AnswerCache(
            self._standing, clock=lambda: self.now, calendar=lambda: self.ahead + self.now, **limits
        )

    def _standing(self) -> int | None:
        if self.state == 0:
            raise SpeckitError("E010", "no store")
        return self.state

    def ask(self, key: str = "a", text: str = "", changes: bool = False) -> int:
        """The number of the answer."""

        def make() -> BudgetedReply:
            self.made += 1
            if changes:
                assert self.state is not None
                self.state += 1
            return BudgetedReply(text, {"number": self.made}, {}, (), None, nothing)

        answer, _ = self.cache.answered("tool", {"key": key}, make)
        number: int = answer.document["number"]
        return number


@pytest.mark.requirement("T25.bounds")
def test_an_answer_holds_for_a_minute_from_when_it_was_made() -> None:
    made = Made()
    assert [made.ask(), made.ask()] == [1, 1]
    made.now = 59.9
    assert made.ask() == 1
    made.now = 60.0
    assert [made.ask(), made.ask()] == [2, 2]
    assert made.cache.figures().evicted == 1


@pytest.mark.requirement("T25.bounds")
@pytest.mark.parametrize("seconds", [86_400.0, 2.0, -2.0, -86_400.0])
def test_a_date_that_was_set_or_a_machine_that_slept_drops_everything(seconds: float) -> None:
    made = Made()
    assert [made.ask("a"), made.ask("b")] == [1, 2]
    made.ahead += seconds
    assert [made.ask("a"), made.ask("b"), made.ask("a")] == [3, 4, 3]
    assert made.cache.figures().changed == 1


@pytest.mark.requirement("T25.bounds")
def test_a_clock_that_is_adjusted_a_little_all_the_time_drops_nothing() -> None:
    made = Made()
    assert made.ask() == 1
    for _ in range(50):
        made.ahead += 0.9
        made.now += 1.0
        assert made.ask() == 1


@pytest.mark.requirement("T25.bounds")
def test_a_thousand_answers_are_kept_and_the_oldest_gives_way() -> None:
    made = Made()
    for number in range(1001):
        made.ask(str(number))
    assert made.cache.figures().entries == 1000
    assert made.ask("1") == 2
    assert made.ask("0") == 1002


@pytest.mark.requirement("T25.bounds")
def test_long_answers_are_fewer_and_one_that_is_too_long_alone_is_not_kept() -> None:
    made = Made(most_characters=1000)
    assert [made.ask("a", "x" * 400), made.ask("b", "x" * 400), made.ask("c", "x" * 400)] == [1, 2, 3]
    assert [made.ask("b"), made.ask("c"), made.ask("a")] == [2, 3, 4]
    assert made.cache.figures().characters <= 1000
    assert [made.ask("d", "x" * 2000), made.ask("d", "x" * 2000)] == [5, 6]


@pytest.mark.requirement("T25.written")
def test_an_answer_during_whose_making_something_changed_is_not_kept() -> None:
    made = Made()
    assert [made.ask(changes=True), made.ask(), made.ask()] == [1, 2, 2]
    made.state = 7
    assert made.ask() == 3
    assert made.cache.figures().changed == 1


@pytest.mark.requirement("T25.kept")
@pytest.mark.parametrize("state", [None, 0])
def test_where_no_answer_may_be_kept_or_the_store_is_gone_each_is_made(state: int | None) -> None:
    made = Made()
    assert made.ask() == 1
    made.state = state
    assert [made.ask(), made.ask()] == [2, 3]
    assert made.cache.figures().passed == 2


@pytest.mark.requirement("T25.kept")
def test_every_question_is_counted_however_it_was_answered(workspace: Path) -> None:
    with asking(served(workspace)) as [ask]:
        for further in ({}, {}, {"bypassCache": True}, {"sessionId": "s"}):
            assert "error" not in ask("memory_search", query="rank fusion", **further)
        kept = ask("memory_stats")["data"]["answer_cache"]
    assert (kept["hits"], kept["misses"], kept["passed"]) == (1, 1, 2)
