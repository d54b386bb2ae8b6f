"""Two workspaces of one database, served by one process: what one holds, no call of the other tells.

The memories, triggers, links, tasks, sessions and checkpoints of the one hold a secret in every text. The other is
called with what attackers write, with SQL, and with the keys, folders, ids and names of the first.
"""

from __future__ import annotations

import itertools
import json
import logging
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import anyio
import pytest
import structlog
from files import write_file
from mcp import Client
from postgres_server import database, link_at, server
from tally import Tally

from speckit_memory.engine import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.errors.codes import CODES
from speckit_memory.memory.indexing import Source
from speckit_memory.memory.store.checkpoints.folder import Folder
from speckit_memory.server.mcp_server.app import MemoryServer, build
from speckit_memory.server.replies.worker_calls import ThreadLimits
from speckit_memory.server.workspace.workspace import Workspace
from tests.attacks.fuzz import calls
from tests.attacks.fuzz.shared import NOTES, opened

SECRET = "xyzzyplugh9731"
"""In every text that the first workspace holds, and in no call."""
HELD = 40
"""Memories of the first workspace: more than the other has, so that most of its ids exist in it alone."""
INJECTIONS = (
    "'; SET speckit.workspace = 1; --", "x'); SELECT set_config('speckit.workspace', '1', false); --",
    "$1; RESET ALL; --", "$$; RESET speckit.workspace; $$", "' OR workspace = 1 --",
    "' UNION SELECT text FROM chunks --",
    "'; ALTER TABLE memories NO FORCE ROW LEVEL SECURITY; --", "'; DROP POLICY of_workspace ON chunks; --",
    "\\'; SET SESSION AUTHORIZATION postgres; --", "E'\\x27'", '{1,2}', '{"a","b"}', '","', "NULL", "\\", '\\"', "%s",
    "%(name)s", "{0}", "'::text", "'; BEGIN; --", "'; ROLLBACK; SET speckit.workspace = 1; --", "workspace",
    "speckit.chunks",
)  # fmt: skip
NAMES = (
    "private/plan-0.md", "private/plan-1.md", "private/plan-39.md", "private", "private/", "private/*", "*", "**/*",
    "private/plan-%", "/private.*/", "^private", ".*", "plan-1.md", "1", "39", "40", "held-session", "held-task",
    "held-checkpoint", "quarterly plan", "plan", "1:2",
)  # fmt: skip
"""What leads to memories of the first workspace in it: keys, folders, patterns, ids, sessions, tasks, checkpoints."""
TEXTS = (*INJECTIONS, *NAMES, *calls.HOSTILE)

Call = tuple[str, dict[str, Any]]


def _served(memory: Memory) -> MemoryServer:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    workspace = Workspace(lambda _: memory, memory.session.settings)
    return build(workspace, warm_up=False, limits=ThreadLimits())


def _answer(result: Any) -> dict[str, Any]:
    content = result.structured_content
    assert isinstance(content, dict)
    return content


@contextmanager
def _holding(root: Path) -> Iterator[Memory]:
    """The first workspace, with its secrets."""
    for number in range(HELD):
        write_file(
            root / f"private/plan-{number}.md",
            f"---\ntitle: Quarterly plan {SECRET} {number}\ntrigger_phrases: [plan {SECRET} {number}]\n"
            f"causalLinks: {{supports: [plan-{(number + 1) % HELD}.md]}}\n---\n# Plan {SECRET}\n\n"
            f"<!-- ANCHOR:summary -->\nThe rank fusion of {SECRET} is secret, as is `compute_{SECRET}`.\n"
            "<!-- /ANCHOR:summary -->\n",
        )
    link_at(root / "memory.db")
    with opened(root) as memory:
        memory.index([root / "private"])

        async def use() -> None:
            async with Client(_served(memory)) as client:
                for tool, arguments in (
                    ("memory_search", {"query": f"rank fusion {SECRET}", "sessionId": "held-session"}),
                    ("memory_validate", {"id": 1, "wasUseful": True}),
                    ("task_preflight", {**_TASK, "knowledgeGaps": [f"gap {SECRET}"]}),
                    ("memory_save", {"filePath": "private/saved.md", "content": f"# Saved\n\nA note on {SECRET}.\n"}),
                ):
                    answer = _answer(await client.call_tool(tool, arguments))
                    assert "error" not in answer, answer

        anyio.run(use)
        yield memory


_TASK = {
    "specFolder": "private", "taskId": "held-task", "knowledgeScore": 1, "uncertaintyScore": 2, "contextScore": 3,
}  # fmt: skip


@contextmanager
def _pair(where: Path) -> Iterator[tuple[Memory, Memory]]:
    """The workspace that holds secrets, and another one with a few notes, in one database and one process."""
    held, other = where / "held", where / "other"
    for name, text in NOTES.items():
        write_file(other / name, text)
    with ExitStack() as stack:
        first = stack.enter_context(_holding(held))
        link_at(other / "memory.db")
        second = stack.enter_context(opened(other))
        second.index([other / "docs"])
        yield first, second


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Memory, Memory]]:
    """Both workspaces, for the calls of this module."""
    with _pair(tmp_path_factory.mktemp("pair")) as both:
        yield both


def _workspace_of(memory: Memory) -> tuple[str, str]:
    """The workspace that the settings of this thread's session name, and the one that it was opened for."""
    connection: Any = memory.session.opened.database.reader()
    [found] = connection.fetch("SELECT current_setting('speckit.workspace')", []).rows
    return str(found[0]), str(connection.workspace)


async def _tried(memory: Memory, make: Callable[[dict[str, Any]], Iterator[Call]], tally: Tally) -> Counter[str]:
    """Makes these calls, and counts by tool those that were answered and no error."""
    server = _served(memory)
    answered: Counter[str] = Counter()
    async with Client(server) as client:
        tools = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
        for tool, arguments in make(tools):
            answer = _answer(await server.call_tool(tool, arguments))
            tally.tried()
            assert SECRET not in json.dumps(answer), (tool, arguments, answer)
            if "error" in answer:
                assert answer["error"]["code"] in CODES, (tool, arguments, answer)
            else:
                answered[tool] += 1
    return answered


def _drawn(tools: dict[str, Any], count: int, seed: int, left_out: str = "") -> Iterator[Call]:
    """Calls of these tools, without a parameter that is left out."""
    for schema in tools.values():
        schema["properties"].pop(left_out, None)
    drawn = random.Random(seed)
    placed = list(calls.every_place(tools, drawn, TEXTS))
    chosen = drawn.sample(placed, min(len(placed), count * 2 // 3))
    chosen += islice(calls.at_will(tools, drawn, TEXTS), count - len(chosen))
    drawn.shuffle(chosen)
    return iter(chosen)


def _attack(memory: Memory, tally: Tally, count: int, left_out: str = "") -> None:
    answered = anyio.run(_tried, memory, partial(_drawn, count=count, seed=11, left_out=left_out), tally)
    assert answered.total() > count // 4, answered
    assert len(answered) > 12, answered
    named, own = _workspace_of(memory)
    assert named == own


def test_hostile_calls_of_one_workspace_tell_nothing_of_the_other(pair: tuple[Memory, Memory], tally: Tally) -> None:
    _attack(pair[1], tally, 300, left_out="excludePatterns")  # a process matches these


def test_what_is_secret_is_found_in_the_workspace_that_holds_it(pair: tuple[Memory, Memory], tally: Tally) -> None:
    found = pair[0].search("rank fusion")
    assert SECRET in repr(found)
    tally.tried()


EXISTENCE: tuple[tuple[str, dict[str, Any], tuple[Any, Any]], ...] = (
    ("memory_delete", {"dryRun": True}, ({"id": "private/plan-1.md"}, {"id": "private/plan-1.mx"})),
    ("memory_delete", {"dryRun": True}, ({"id": HELD - 2}, {"id": HELD + 50})),
    ("memory_bulk_delete", {"dryRun": True, "tier": "normal"}, ({"specFolder": "private"}, {"specFolder": "privatx"})),
    ("memory_update", {"importanceWeight": 0.5}, ({"id": HELD - 2}, {"id": HELD + 50})),
    ("memory_validate", {"wasUseful": True}, ({"id": HELD - 2}, {"id": HELD + 50})),
    ("memory_list", {}, ({"specFolder": "private"}, {"specFolder": "privatx"})),
    ("memory_search", {"query": "rank fusion"}, ({"specFolder": "private"}, {"specFolder": "privatx"})),
    ("memory_match_triggers", {}, ({"prompt": "plan-1"}, {"prompt": "plax-1"})),
    ("memory_causal_link", {"sourceId": 1, "relation": "supports"}, ({"targetId": HELD - 2}, {"targetId": HELD + 50})),
    ("memory_get_learning_history", {}, ({"specFolder": "private"}, {"specFolder": "privatx"})),
    ("task_postflight", {key: value for key, value in _TASK.items() if key != "taskId"},
     ({"taskId": "held-task"}, {"taskId": "held-tasx"})),
    ("checkpoint_delete", {}, ({"name": "held-checkpoint", "confirmName": "held-checkpoint"},
                               {"name": "held-checkpoinx", "confirmName": "held-checkpoinx"})),
)  # fmt: skip
"""A tool, arguments, and further ones: of what exists in the first workspace alone, and of what exists nowhere."""


@pytest.mark.parametrize(("tool", "shared", "names"), EXISTENCE)
def test_what_exists_elsewhere_takes_the_statements_and_the_answer_of_what_exists_nowhere(
    pair: tuple[Memory, Memory],
    tally: Tally,
    monkeypatch: pytest.MonkeyPatch,
    tool: str,
    shared: dict[str, Any],
    names: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    import psycopg

    ran: list[str] = []
    execute = psycopg.RawCursor.execute

    def recorded(cursor: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        # a thread in the background writes to the evaluation database, some time after a call
        if "speckit_evaluation" not in cursor.connection.info.get_parameters()["options"]:
            ran.append(str(query))
        return execute(cursor, query, *arguments, **options)

    monkeypatch.setattr(psycopg.RawCursor, "execute", recorded)

    async def compare() -> None:
        server = _served(pair[1])
        async with Client(server):
            for arguments in names:  # once before, for what a first call reads and keeps
                await server.call_tool(tool, {**shared, **arguments})
            # statements of a thread in the background may come between; a difference of the calls comes every time
            for _ in range(6):
                seen = []
                for arguments in names:
                    ran.clear()
                    answer = json.dumps(_answer(await server.call_tool(tool, {**shared, **arguments}))["summary"])
                    for value in arguments.values():
                        answer = answer.replace(str(value), "…")
                    seen.append((list(ran), answer))
                    tally.tried()
                if seen[0] == seen[1]:
                    break
            assert seen[0] == seen[1]

    anyio.run(compare)


def test_links_in_one_folder_lead_to_a_workspace_each(tmp_path: Path, tally: Tally) -> None:
    write_file(tmp_path / "docs/a.md", f"# Plan\n\nThe fusion of {SECRET}.\n")
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(Memory.open(link_at(tmp_path / name), "bm25", root=tmp_path, environ={}))
            for name in ("a.db", "b.db")
        )
        first.index([tmp_path / "docs"])
        for _ in range(2):
            assert SECRET in repr(first.search(f"fusion {SECRET}"))
            assert second.search(f"fusion {SECRET}").results == ()
            tally.tried(2)


def test_a_link_that_is_changed_shows_nothing_of_the_workspace_it_led_to(tmp_path: Path, tally: Tally) -> None:
    write_file(tmp_path / "docs/a.md", f"# Plan\n\nThe fusion of {SECRET}.\n")
    store = link_at(tmp_path / "memory.db")
    with Memory.open(store, "bm25", root=tmp_path, environ={}) as memory:
        memory.index([tmp_path / "docs"])
        assert SECRET in repr(memory.search(f"fusion {SECRET}"))
    link_at(store)
    with Memory.open(store, "bm25", root=tmp_path, environ={}) as memory:
        assert memory.search(f"fusion {SECRET}").results == ()
        assert memory.list() == ([], 0)
    tally.tried(2)


Stores = tuple[dict[str, str], str]
"""Variables of the environment, and the address of a store."""


def _another_workspace(_: Path) -> tuple[Stores, Stores]:
    number = next(_numbers)
    first, second = (f"{server()}&workspace=shared{number}{name}" for name in "ab")
    return ({}, first), ({}, second)


def _another_database(_: Path) -> tuple[Stores, Stores]:
    host = server().partition("?")[2]
    address = f"postgresql://speckit@/?{host}&workspace=shared{next(_numbers)}"
    return ({"PGDATABASE": "speckit"}, address), ({"PGDATABASE": _database_of(database("elsewhere"))}, address)


def _another_service(folder: Path) -> tuple[Stores, Stores]:
    address = f"postgresql:///?service=notes&workspace=shared{next(_numbers)}"
    found = []
    for place in (server(), database("elsewhere")):
        file = folder / f"{_database_of(place)}.conf"
        file.write_text(
            f"[notes]\nuser=speckit\ndbname={_database_of(place)}\n{place.partition('?')[2]}\n", encoding="utf-8"
        )
        found.append(({"PGSERVICEFILE": str(file)}, address))
    return found[0], found[1]


def _database_of(address: str) -> str:
    return address.partition("@/")[2].partition("?")[0]


_numbers = itertools.count()


@pytest.mark.usefixtures("exhaustive")
@pytest.mark.parametrize("pair_of", [_another_workspace, _another_database, _another_service])
def test_what_a_machine_keeps_for_one_store_serves_no_other(
    tmp_path: Path, tally: Tally, monkeypatch: pytest.MonkeyPatch, pair_of: Callable[[Path], tuple[Stores, Stores]]
) -> None:
    (tmp_path / "root").mkdir()
    held, other = pair_of(tmp_path)

    def opened_at(store: Stores) -> Memory:
        for name, setting in store[0].items():
            monkeypatch.setenv(name, setting)
        return Memory.open(store[1], "bm25", root=tmp_path / "root", environ={})

    with opened_at(held) as memory:
        memory.index_documents([Source(f"a/{n}.md", f"# Plan {n}\n\nThe fusion of {SECRET}.\n") for n in range(120)])
        memory.lifecycle.write_segment()
        memory.checkpoints.create("held")
        gone = memory.deletions.delete("a/7.md").name
        assert SECRET in repr(memory.search(f"fusion {SECRET}"))
        kept = Folder(memory.session.database.path).path
    with opened_at(other) as memory:
        memory.index_documents([Source(f"b/{n}.md", f"# Notes {n}\n\nThe fusion of ranks.\n") for n in range(120)])
        told = [
            repr(memory.search(f"fusion {SECRET}")),
            repr(memory.checkpoints.list()),
            repr(memory.inventory.stats()),
            repr(memory.list(limit=500)),
        ]
        memory.exchange.export(tmp_path / "out")
        told += [file.read_text(encoding="utf-8") for file in (tmp_path / "out").rglob("*") if file.is_file()]
        refusals: dict[str, Callable[[], object]] = {
            "E060": lambda: memory.checkpoints.restore("held"),
            "E106": lambda: memory.deletions.undelete(gone),
        }
        for code, call in refusals.items():
            with pytest.raises(SpeckitError, match=code) as caught:
                call()
            told.append(str(caught.value))
        # a file of the other store, laid where this one keeps its own, is known for what it is
        shutil.copytree(kept, Folder(memory.session.database.path).path, dirs_exist_ok=True)
        with pytest.raises(SpeckitError, match=r"E061 .* is of another store") as caught:
            memory.checkpoints.restore("held")
        told += [str(caught.value), repr(memory.search(f"fusion {SECRET}")), repr(memory.list(limit=500))]
        assert [text for text in told if SECRET in text.replace(f"fusion {SECRET}", "")] == []
        tally.tried(len(told))


@pytest.mark.usefixtures("exhaustive", "processes")
def test_a_thousand_hostile_calls_tell_nothing_of_the_other_workspace(tmp_path: Path, tally: Tally) -> None:
    with _pair(tmp_path) as (_, other):
        _attack(other, tally, 1_000)
