"""A client that takes a call back: the search of it ends at its next step, and the server goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from isolated.distributions import installed
from raw_server import RawServer, call_of, raw_server

from speckit_memory.memory.store.file.connection import Database
from tests.attacks.test_full_disk import WRITING
from tests.attacks.test_tools import DEFECTS, USUAL
from tests.server.doors import DOCUMENTS, call

pytestmark = pytest.mark.usefixtures("processes")

EXTENSION = """
import time
from pathlib import Path

from speckit_memory.pipeline.roles.contracts import About, NoParams, Role
from speckit_memory.pipeline.model.columns import Rescored

HERE = Path({root!r})


def note(text):
    with (HERE / "ran").open("a") as file:
        file.write(text + "\\n")


class Waiting:
    __module__ = "cancelled.waiting"
    about = About(features=("P9",))
    Params = NoParams

    def __init__(self, params):
        pass

    def understand(self, query, plan, store):
        "Waits for the word to go on."
        note("began " + query.text)
        while not (HERE / "go").exists():
            time.sleep(0.01)
        note("waited " + query.text)
        return plan


class Later:
    __module__ = "cancelled.later"
    about = About(features=("P9",))
    Params = NoParams

    def __init__(self, params):
        pass

    def rerank(self, query, pool, store):
        "Says that it ran."
        note("later " + query.text)
        return Rescored(pool.score)


def register(registry):
    registry.add(Role.UNDERSTANDER, Waiting)
    registry.add(Role.RERANKER, Later)
"""
PIPELINE = """\
pipeline: waiting
extends: none
candidates:
  understand: [waiting]
  channels: [bm25]
  recover: []
fusion:
  - {use: z_score, normalise: min_max}
rerank: [later]
annotate: []
"""


def cancelled(number: int | str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}


def until(holds: Callable[[], bool]) -> None:
    """Returns once that is so; fails when it does not become so in a minute."""
    for _ in range(6_000):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come to that")


def test_no_later_step_runs_of_a_search_that_the_client_has_cancelled(tmp_path: Path) -> None:
    for name, text in DOCUMENTS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "waiting.yaml").write_text(PIPELINE, encoding="utf-8")
    site = installed(tmp_path / "site", "waiting", EXTENSION.format(root=str(tmp_path)))
    assert call(tmp_path, ["index", "docs"]).status == 0
    ran = tmp_path / "ran"

    def lines() -> list[str]:
        return ran.read_text().splitlines() if ran.exists() else []

    with raw_server(tmp_path, "--no-warm-up", "--pipeline", "waiting.yaml", env={"PYTHONPATH": str(site)}) as server:
        server.start()
        server.send(call_of(2, "memory_search", {"query": "rank fusion"}))
        until(lambda: lines() == ["began rank fusion"])
        server.send(cancelled(2), {"jsonrpc": "2.0", "id": 3, "method": "tools/list"})
        assert server.next()["id"] == 3  # the call was taken back before
        (tmp_path / "go").touch()
        until(lambda: "waited rank fusion" in lines())
        server.send(call_of(4, "memory_search", {"query": "online backup"}))
        served = server.next()
        assert server.close() == 0

    assert (served["id"], served["result"]["isError"]) == (4, False)
    assert sorted(lines()) == [
        "began online backup", "began rank fusion", "later online backup", "waited online backup", "waited rank fusion",
    ]  # fmt: skip


def test_a_scan_that_the_client_has_cancelled_ends_before_its_next_batch(tmp_path: Path) -> None:
    files = 4_000
    (tmp_path / "docs").mkdir()
    for number in range(files):
        (tmp_path / "docs" / f"note-{number}.md").write_text(f"# Note {number}\n\nIt says {number}.\n", "utf-8")
    (tmp_path / ".speckit").mkdir()
    calls = iter(range(3, 100_000))
    with raw_server(tmp_path, "--no-warm-up") as server:

        def memories() -> int:
            number = next(calls)
            server.send(call_of(number, "memory_stats"))
            reply = server.next()
            assert reply["id"] == number  # the scan is not answered, neither before nor after
            # before the scan has begun there is no store, and an error says so, with no data
            return int(reply["result"]["structuredContent"]["data"].get("memories", 0))

        server.start()
        server.send(call_of(2, "memory_index_scan"))
        until(lambda: memories() > 0)
        server.send(cancelled(2))
        written = [memories()]

        def settled() -> bool:
            time.sleep(1)
            written.append(memories())
            return written[-1] == written[-2]

        until(settled)
        assert server.close() == 0

    assert 0 < written[-1] < files


TOOLS = {tool: WRITING.get(tool, usual) for tool, usual in USUAL.items()}
"""A call of every tool; `test_tools` holds these to the tools that the server lists."""
WAITING = {"memory_save", "memory_update", "memory_validate", "memory_causal_link", "task_preflight"}
"""Tools that have nothing to say before they may write."""


def answers_until(server: RawServer, last: str) -> list[object]:
    """The ids that are answered before this one is."""
    found: list[object] = []
    while (number := server.next()["id"]) != last:
        found.append(number)
    return found


def require_whole(root: Path, server: RawServer) -> None:
    """The server answers every tool, and the store passes its check while it is served and afterwards."""
    for tool, usual in USUAL.items():
        answer = server.call(f"after {tool}", tool, usual)["structuredContent"]
        # some of it may have been done, such as a task that was completed; a store in trouble has other codes
        assert answer.get("error", {"code": ""})["code"] not in DEFECTS, (tool, answer)
    health = server.call("health", "memory_health")["structuredContent"]["data"]
    assert health["ok"], health
    assert server.close() == 0
    with Database.open(root / "memory.db", create=False) as store:
        assert store.check() == []
    call(root, ["doctor", "--json"]).ok()


@pytest.mark.requirement("T29.progress")
def test_a_call_of_any_tool_that_is_cancelled_at_once_leaves_server_and_store_whole(workspace: Path) -> None:
    (workspace / "docs" / "aside.md").write_text("# Aside\n\nTo be deleted.\n", encoding="utf-8")
    with raw_server(workspace, "--no-warm-up") as server:
        server.start()
        for tool, arguments in TOOLS.items():
            server.send(call_of(tool, tool, arguments), cancelled(tool), call_of(f"{tool} next", "memory_stats"))
            # it may have been done before: then it is answered, and once
            assert answers_until(server, f"{tool} next") in ([], [tool])
        require_whole(workspace, server)


@pytest.mark.requirement("T29.progress")
def test_calls_of_all_tools_that_are_cancelled_while_the_store_is_locked_leave_it_whole(workspace: Path) -> None:
    with raw_server(workspace, "--no-warm-up") as server:
        server.start()
        assert not server.call("before", "memory_stats")["isError"]
        with Database.open(workspace / "memory.db") as other, other.write():
            for tool, arguments in TOOLS.items():
                server.send(call_of(tool, tool, arguments), cancelled(tool))
            server.send({"jsonrpc": "2.0", "id": "pinged", "method": "ping"})
            answered = answers_until(server, "pinged")
        server.send(call_of("listed", "memory_list", {"limit": 50}))
        answered += answers_until(server, "listed")
        assert not WAITING & set(answered)
        assert len(answered) == len(set(answered))
        require_whole(workspace, server)
