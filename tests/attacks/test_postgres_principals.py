"""Two principals in one workspace and one folder: what lies in the private folder of the one, nothing tells the other.

Anna's private memories hold a secret in every text, and in a name. Bob asks for it as attackers do, with SQL, and with
the keys, ids and folders of hers. With the policies dropped, the same questions find it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import count, islice
from pathlib import Path
from typing import Any

import anyio
import pytest
from files import write_file
from mcp import Client
from postgres_server import database, server
from tally import Tally

from speckit_memory.config.workspace.settings import DB_VARIABLE, PRINCIPAL_VARIABLE
from speckit_memory.engine import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.errors.codes import CODES
from speckit_memory.server.mcp_server.app import MemoryServer, build
from speckit_memory.server.replies.worker_calls import ThreadLimits
from speckit_memory.server.workspace.workspace import Workspace
from tests.attacks.fuzz import calls
from tests.attacks.fuzz.shared import NOTES, model

SECRET = "xyzzyplugh9731"
FOLDER = "private/anna"
HELD = 8
NAMES = (
    *(f"{FOLDER}/plan-{number}.md" for number in (0, 1, HELD - 1)), FOLDER, f"{FOLDER}/", "private", "private/*",
    "PRIVATE/anna", "Private/Anna/plan-0.md", "private/../private/anna/plan-0.md", "docs/../private/anna", "**/*",
    ".*", "/anna.*/", "^private", "plan-1.md", "anna", "quarterly plan", "held-session", "held-task",
    "held-checkpoint", *map(str, range(6, 22)),
    "'; SET speckit.principal = 'anna'; --", "x'); SELECT set_config('speckit.principal', '*', false); --",
    "'; DROP POLICY of_principal ON chunks; --", "*",
)  # fmt: skip
"""What leads to private memories of Anna: keys, folders, patterns, ids, sessions, tasks, checkpoints."""
_workspaces = count()


def opened(root: Path, address: str, principal: str) -> Memory:
    memory = Memory.open("", "default", root=root, environ={DB_VARIABLE: address, PRINCIPAL_VARIABLE: principal})
    memory.session.opened._models.embedder = model()  # read once for all stores
    return memory


def served(memory: Memory) -> MemoryServer:
    return build(Workspace(lambda _: memory, memory.session.settings), warm_up=False, limits=ThreadLimits())


def content(result: Any) -> dict[str, Any]:
    found: dict[str, Any] = result.structured_content
    return found


def answer(memory: Memory, *wanted: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The answers of tools, one after the other."""

    async def call() -> list[dict[str, Any]]:
        made = served(memory)
        async with Client(made):
            return [content(await made.call_tool(tool, arguments)) for tool, arguments in wanted]

    return anyio.run(call)


def holding(stack: ExitStack, root: Path, address: str) -> tuple[Memory, Memory]:
    """The memories of Anna, who has private ones, and of Bob, in one folder."""
    for name, text in NOTES.items():
        write_file(root / name, text)
    for number in range(HELD):
        write_file(
            root / f"{FOLDER}/plan-{number}.md",
            f"---\ntitle: Quarterly plan {SECRET} {number}\ntrigger_phrases: [plan {SECRET} {number}]\n"
            f"causalLinks: {{supports: [plan-{(number + 1) % HELD}.md, docs/fusion.md]}}\n---\n# Plan {SECRET}\n\n"
            f"The rank fusion of {SECRET} is secret, as is `compute_{SECRET}`.\n\n## More\n\n"
            f"{f'Further words of {SECRET} fill a second passage. ' * 60}\n",
        )
    write_file(root / f"{FOLDER}/{SECRET}.md", f"# A name\n\nIts name is {SECRET}.\n")
    anna, bob = (stack.enter_context(opened(root, address, name)) for name in ("anna", "bob"))
    anna.index([root])
    session = {"query": f"rank fusion {SECRET}", "sessionId": "held-session"}
    task = {"specFolder": FOLDER, "taskId": "held-task", "knowledgeScore": 1, "uncertaintyScore": 2, "contextScore": 3}
    for each in answer(
        anna,
        ("memory_search", session),
        ("memory_validate", {"id": anna.get(f"{FOLDER}/plan-1.md").id, "wasUseful": True}),
        ("task_preflight", {**task, "knowledgeGaps": [f"gap {SECRET}"]}),
        ("memory_save", {"filePath": f"{FOLDER}/saved.md", "content": f"# Saved\n\nA note on {SECRET}.\n"}),
        ("checkpoint_create", {"name": "held-checkpoint"}),
    ):
        assert "error" not in each, each
    bob.index([root])
    return anna, bob


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Memory, Memory]]:
    """Anna and Bob, for the questions of this module."""
    with ExitStack() as stack:
        address = f"{server()}&workspace=principals{next(_workspaces)}"
        yield holding(stack, tmp_path_factory.mktemp("pair"), address)


@contextmanager
def session_of(memory: Memory) -> Iterator[Any]:
    """A further session of a principal."""
    with closing(memory.session.opened.database.bare()) as connection:
        yield connection.session  # type: ignore[attr-defined]


def rows_of(memory: Memory) -> dict[str, str]:
    """All that the session of a principal reads from each table."""
    with session_of(memory) as session:
        tables = session.execute(
            "SELECT relname::text FROM pg_class WHERE relnamespace = 'speckit'::regnamespace AND relkind IN ('r', 'p') "
            "AND relname <> 'workspaces'"
        ).fetchall()
        return {table: repr(session.execute(f'SELECT * FROM "{table}"').fetchall()) for (table,) in tables}


def test_no_table_shows_a_private_row_to_another(pair: tuple[Memory, Memory], tally: Tally) -> None:
    anna, bob = map(rows_of, pair)
    holding_it = {table for table, rows in anna.items() if SECRET in rows or FOLDER in rows}
    assert holding_it >= {"memories", "texts", "chunks", "triggers", "postings", "task_records"}
    for table, rows in bob.items():
        assert (table, SECRET in rows, FOLDER in rows) == (table, False, False)
        tally.tried()
    with session_of(pair[1]) as session:
        ids = {row[0] for row in session.execute("SELECT id FROM private_ids WHERE owner = 'anna'").fetchall()}
        assert len(ids) > HELD
        for column in ("memory_id FROM changes", "memory_id FROM postings", "source_id FROM causal_edges",
                       "rowid FROM chunk_vectors", "memory_id FROM session_sent"):  # fmt: skip
            assert ids.isdisjoint(row[0] for row in session.execute(f"SELECT {column}").fetchall())


def questions(memory: Memory, held: list[int]) -> Iterator[Any]:
    """Bob's questions in the ways of the engine, with the ids of Anna's private memories."""

    def tried(work: Any) -> Any:
        try:
            return work()
        except SpeckitError as error:
            return [str(problem.as_json()) for problem in error.problems]

    root = memory.session.root
    for query in (
        SECRET,
        f'"{SECRET}"',
        SECRET[:-1],
        f"compute_{SECRET}",
        f"gap {SECRET}",
        "quarterly plan",
        "rank fusion",
    ):
        yield query.replace(SECRET, ""), tried(lambda q=query: memory.search(q, limit=50).results)
    yield tried(lambda: memory.triggers.match(f"a plan {SECRET} 1"))
    for name in (*NAMES, *held):
        yield tried(lambda n=name: memory.get(n))
        yield tried(lambda n=name: memory.documents.read(n))
        yield tried(lambda n=name: memory.graph.lineage(n))
    yield tried(lambda: memory.list(limit=100))
    yield tried(lambda: memory.list(folder=FOLDER))
    yield tried(lambda: memory.index([root]))
    yield tried(lambda: memory.session.read(lambda opened: opened.usage.write()))


def test_bobs_questions_and_copies_tell_nothing(pair: tuple[Memory, Memory], tmp_path: Path, tally: Tally) -> None:
    anna, bob = pair
    held = [each.id for each in anna.list(folder=FOLDER, limit=100)[0]]
    assert SECRET in repr(list(questions(anna, held)))
    for told in questions(bob, held):
        assert SECRET not in repr(told)
        tally.tried()
    answers = answer(bob, ("checkpoint_create", {"name": "of-bob"}), ("memory_stats", {}), ("memory_health", {}))
    assert FOLDER not in json.dumps(answers)
    bob.exchange.export(tmp_path / "out")
    files = [*(tmp_path / "out").rglob("*"), *bob.session.settings.db.parent.rglob("*")]
    assert len(files) > 10
    for file in files:
        assert not file.is_file() or SECRET.encode() not in file.read_bytes(), file
    assert bob.session.settings.db.parent != anna.session.settings.db.parent


def attack(memory: Memory, number: int, tally: Tally) -> tuple[int, list[Any]]:
    """Makes calls of every tool with hostile arguments; returns how many were answered, and those that told of it."""

    async def tried() -> tuple[int, list[Any]]:
        made, answered, telling = served(memory), 0, []
        async with Client(made) as client:
            tools = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
            for schema in tools.values():
                schema["properties"].pop("excludePatterns", None)  # a process matches these
            drawn = random.Random(29)
            placed = list(calls.every_place(tools, drawn, NAMES))
            chosen = drawn.sample(placed, min(len(placed), number // 2))
            for tool, arguments in (*chosen, *islice(calls.at_will(tools, drawn, NAMES), number - len(chosen))):
                found = content(await made.call_tool(tool, arguments))
                if SECRET in json.dumps(found):
                    telling.append((tool, arguments, found))
                assert "error" not in found or found["error"]["code"] in CODES, (tool, arguments, found)
                answered += "error" not in found
                tally.tried()
        return answered, telling

    return anyio.run(tried)


EXISTENCE: tuple[tuple[str, dict[str, Any], tuple[Any, Any]], ...] = (
    ("memory_delete", {"dryRun": True}, ({"id": f"{FOLDER}/plan-1.md"}, {"id": f"{FOLDER}/plan-x.md"})),
    ("memory_update", {"importanceWeight": 0.5}, ({"id": "HELD"}, {"id": 100_000})),
    ("memory_validate", {"wasUseful": True}, ({"id": "HELD"}, {"id": 100_000})),
    ("memory_list", {}, ({"specFolder": FOLDER}, {"specFolder": "private/anxa"})),
    ("memory_bulk_delete", {"dryRun": True, "tier": "normal"},
     ({"specFolder": FOLDER}, {"specFolder": "private/anxa"})),
    ("memory_save", {}, ({"filePath": f"{FOLDER}/plan-1.md"}, {"filePath": f"{FOLDER}/plan-x.md"})),
    ("memory_save", {"content": "# Mine\n\nA text."},
     ({"filePath": f"{FOLDER}/plan-1.md"}, {"filePath": f"{FOLDER}/plan-x.md"})),
    ("memory_index_scan", {}, ({"specFolder": FOLDER}, {"specFolder": "private/anxa"})),
    ("memory_causal_link", {"sourceId": 1, "relation": "supports"}, ({"targetId": "HELD"}, {"targetId": 100_000})),
    ("memory_get_learning_history", {}, ({"specFolder": FOLDER}, {"specFolder": "private/anxa"})),
    ("checkpoint_delete", {}, ({"name": "held-checkpoint", "confirmName": "held-checkpoint"},
                               {"name": "held-checkpoinx", "confirmName": "held-checkpoinx"})),
)  # fmt: skip
"""A tool, arguments, and further ones: of what is Anna's, and of what does not exist."""


def test_what_is_private_is_answered_like_what_does_not_exist(pair: tuple[Memory, Memory], tally: Tally) -> None:
    anna, bob = pair
    held = anna.get(f"{FOLDER}/plan-1.md").id
    for tool, shared, names in EXISTENCE:
        told = []
        for arguments in names:
            given = {name: held if value == "HELD" else value for name, value in arguments.items()}
            [found] = answer(bob, (tool, {**shared, **given}))
            text = json.dumps([found.get("summary"), found.get("error")])
            for value in given.values():
                text = text.replace(str(value), "…")
            told.append(text)
            tally.tried()
        assert told[0] == told[1], tool
    assert not (bob.session.root / FOLDER / "plan-x.md").exists()


def test_hostile_calls_of_another_principal_tell_nothing(tmp_path: Path, tally: Tally) -> None:
    with ExitStack() as stack:
        _, bob = holding(stack, tmp_path, f"{server()}&workspace=principals{next(_workspaces)}")
        answered, telling = attack(bob, 120, tally)
    assert (answered > 30, telling) == (True, [])


@pytest.mark.usefixtures("exhaustive", "processes")
def test_a_thousand_hostile_calls_of_another_principal_tell_nothing(tmp_path: Path, tally: Tally) -> None:
    with ExitStack() as stack:
        _, bob = holding(stack, tmp_path, f"{server()}&workspace=principals{next(_workspaces)}")
        answered, telling = attack(bob, 1_000, tally)
    assert (answered > 250, telling) == (True, [])


def test_without_the_policies_the_same_attack_finds_what_is_private(tmp_path: Path, tally: Tally) -> None:
    with ExitStack() as stack:
        anna, bob = holding(stack, tmp_path, database("unprotected"))
        with session_of(anna) as session:
            policies = "SELECT tablename::text FROM pg_policies WHERE policyname = 'of_principal'"
            for (table,) in session.execute(policies).fetchall():
                session.execute(f'DROP POLICY of_principal ON "{table}"')
        shown = {table for table, rows in rows_of(bob).items() if SECRET in rows}
        assert shown >= {"memories", "texts", "chunks", "triggers", "postings", "task_records"}
        with opened(tmp_path, database("unprotected"), "carl") as carl:
            assert attack(carl, 120, tally)[1]


def test_nothing_is_written_into_the_private_folder_of_another(pair: tuple[Memory, Memory], tally: Tally) -> None:
    import psycopg

    anna, bob = pair
    held, shared = anna.get(f"{FOLDER}/plan-1.md").id, bob.get("docs/fusion.md").id
    with session_of(bob) as session:
        copied = (
            "title, folder, tier, context_type, document_type, memory_type, content_hash, fingerprint, characters, "
            "chunk_count, embedding_status, created_at, updated_at"
        )
        for sql in (
            f"INSERT INTO memories (id, key, {copied}) SELECT 90001, '{FOLDER}/new.md', {copied} FROM memories LIMIT 1",
            f"UPDATE memories SET key = '{FOLDER}/new.md' WHERE id = {shared}",
            f"UPDATE memories SET key = 'private/bob/new.md' WHERE id = {shared}",
            f"INSERT INTO triggers VALUES ({held}, 'learned', 'a', 'a', 1, 1, 1, NULL)",
            f"INSERT INTO changes (memory_id, kind) VALUES ({held}, 'delete')",
            f"INSERT INTO uncounted_folders VALUES ('{FOLDER}', 1)",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                session.execute(sql)
            tally.tried()
        for sql in (
            f"UPDATE memories SET title = '' WHERE id = {held}",
            f"DELETE FROM chunks WHERE memory_id = {held}",
        ):
            assert session.execute(sql).rowcount == 0
            tally.tried()


def test_private_memories_leave_the_numbers_and_links_of_others_as_they_were(tmp_path: Path, tally: Tally) -> None:
    address = f"{server()}&workspace=principals{next(_workspaces)}"
    write_file(tmp_path / "docs/a.md", "---\ncausalLinks: {supports: [plan.md]}\n---\n# A\n\nText of a.\n")
    write_file(tmp_path / "docs/deep/plan.md", "# Plan\n\nText of the plan.\n")
    with opened(tmp_path, address, "anna") as anna, opened(tmp_path, address, "bob") as bob:
        anna.index([tmp_path])
        # the same name: were it seen, the link of the shared document would be ambiguous
        write_file(
            tmp_path / f"{FOLDER}/plan.md", "---\ncausalLinks: {supports: [later.md, docs/a.md]}\n---\n# P\n\nX.\n"
        )
        anna.index([tmp_path])
        write_file(tmp_path / "docs/later.md", "# Later\n\nBob writes it later.\n")
        bob.index([tmp_path])  # further changes and links, whose numbers follow the private ones
        edges = (
            "SELECT s.key, t.key, e.principal FROM causal_edges e JOIN memories s ON s.id = source_id "
            "JOIN memories t ON t.id = target_id ORDER BY e.id"
        )
        seen = bob.session.opened.database.reader().execute(edges).fetchall()
        assert seen == [("docs/a.md", "docs/deep/plan.md", "anna")]
        anna.index([tmp_path], force=True)
        seen = anna.session.opened.database.reader().execute(edges).fetchall()
        assert {row[:2] for row in seen} == {
            ("docs/a.md", "docs/deep/plan.md"), (f"{FOLDER}/plan.md", "docs/a.md"),
            (f"{FOLDER}/plan.md", "docs/later.md"),
        }  # fmt: skip
        assert anna.session.opened.database.check() == bob.session.opened.database.check() == []
        # across the border a memory begins anew: its id would stay with those who know it
        before = anna.get("docs/later.md").id
        (tmp_path / "docs/later.md").rename(tmp_path / f"{FOLDER}/later.md")
        anna.index([tmp_path])
        assert anna.get(f"{FOLDER}/later.md").id != before
        assert "later" not in repr(bob.search("Bob writes it later").results)
        tally.tried(4)


def test_a_file_with_private_folders_of_others_is_not_copied_into_postgresql(tmp_path: Path, tally: Tally) -> None:
    from speckit_memory.config.workspace.settings import settings
    from speckit_memory.memory.exchange.store_copy import copy_store

    write_file(tmp_path / f"{FOLDER}/a.md", "# A\n\nIn a file everything is shared.\n")
    with Memory.open(tmp_path / "memory.db", root=tmp_path, environ={PRINCIPAL_VARIABLE: "anna"}) as memory:
        memory.index([tmp_path])
    for name, refused in (("bob", True), ("anna", False)):
        address = f"{server()}&workspace=principals{next(_workspaces)}"
        target = settings(address, root=tmp_path, environ={PRINCIPAL_VARIABLE: name}).db
        tally.tried()
        if refused:
            with pytest.raises(SpeckitError) as caught:
                copy_store(tmp_path / "memory.db", target, lambda *_: None)
            assert [problem.code for problem in caught.value.problems] == ["E014"]
        else:
            assert copy_store(tmp_path / "memory.db", target, lambda *_: None).memories == 1
            back = tmp_path / "back.db"
            copy_store(target, back, lambda *_: None)
            with opened(tmp_path, address, "bob") as bob, Memory.open(back, root=tmp_path, environ={}) as file:
                assert (bob.list()[1], file.list()[1]) == (0, 1)
                assert rows_of(bob)["chunks"] == "[]"
