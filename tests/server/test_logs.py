"""What stands in the log of a server: one id for each call, and no text of queries or memories."""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import structlog
from files import write_file
from isolated.distributions import installed
from raw_server import RawServer, call_of, raw_server

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.server.logging import logs
from tests.server.doors import call

pytestmark = pytest.mark.usefixtures("processes")

Line = dict[str, Any]
ASKED = "how does rank fusion work with the xylophone"
OF_A_SEARCH = ["event", "hash", "intent", "complexity", "level", "ms", "pipeline", "results", "shown", "timestamp"]


@dataclass(frozen=True)
class Logged:
    """A running server and its log."""

    server: RawServer
    file: Path

    def lines(self) -> list[Line]:
        """All lines; call it when the server has ended."""
        return [json.loads(line) for line in self.file.read_text(encoding="utf-8").splitlines()]


@contextmanager
def logging_server(root: Path, folder: Path, env: Mapping[str, str] | None = None) -> Iterator[Logged]:
    """A server without a warm-up, whose log is a file; it has ended well after the block."""
    file = folder / "log"
    with file.open("wb") as log, raw_server(root, "--no-warm-up", stderr=log, env=dict(env or {})) as running:
        running.start()
        yield Logged(running, file)
        assert running.close() == 0


def by_id(lines: list[Line]) -> dict[str, list[Line]]:
    """The lines of each call."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        if "query_id" in line:
            found.setdefault(line["query_id"], []).append(line)
    return found


def id_of(result: Mapping[str, Any]) -> str:
    """The id under which an answer is logged."""
    return str(result["_meta"]["query_id"])


@pytest.fixture
def talking(tmp_path: Path) -> dict[str, str]:
    """The environment in which a signal talks while it works, in the server's process."""
    path = installed(tmp_path / "installed", "talking_extension")
    fusion = "fusion: [{use: z_score, normalise: min_max}, {use: talking, optional: true}]\nrerank: [min_max]\n"
    (tmp_path / "talking.yaml").write_text(f"pipeline: talking\n{fusion}", encoding="utf-8")
    return {
        "PYTHONPATH": str(path),
        "SPECKIT_PIPELINE": str(tmp_path / "talking.yaml"),
        "SPECKIT_EXTENSIONS": "trusted",
    }


def test_the_lines_of_a_call_share_an_id_that_its_answer_names(indexed: Path, tmp_path: Path) -> None:
    with logging_server(indexed, tmp_path) as logged:
        searched = logged.server.call(1, "memory_search", {"query": ASKED, "limit": 2})
        context = logged.server.call(2, "memory_context", {"input": ASKED})
        refused = logged.server.call(3, "memory_search", {"limit": 0})
        unknown = logged.server.call(4, "memory_serch", {})

    found = by_id(logged.lines())
    events = [[line["event"] for line in found.get(id_of(answer), [])] for answer in (searched, context, refused)]
    assert events == [["search", "tool"], ["search", "tool"], ["tool"]]
    assert len({id_of(answer) for answer in (searched, context, refused, unknown)}) == 4
    assert all(re.fullmatch("[0-9a-f]{16}", name) for name in found)
    search, tool = found[id_of(searched)]
    assert sorted(search) == sorted([*OF_A_SEARCH, "query_id"])
    assert (search["results"], search["shown"], search["level"]) == (2, 2, "info")
    assert (tool["tool"], tool["outcome"]) == ("memory_search", "ok")
    assert tool["hash"] == search["hash"]
    assert found[id_of(refused)][0]["outcome"] == refused["structuredContent"]["error"]["code"]


def test_the_line_of_every_tool_names_the_configuration_it_ran_under(workspace: Path, tmp_path: Path) -> None:
    """None where no call has needed the store yet, and another one once the files say another pipeline."""
    file = write_file(workspace / ".speckit" / "pipeline.yaml", "extends: bm25\n")
    with logging_server(workspace, tmp_path) as logged:
        server = logged.server
        server.call(1, "memory_search", {"limit": 0})
        server.call(2, "memory_search", {"query": ASKED})
        server.call(3, "memory_validate", {"id": 1, "wasUseful": True})
        server.call(4, "memory_stats")
        server.call(5, "memory_validate", {"id": 999, "wasUseful": True})
        file.write_text("extends: fts5\n", encoding="utf-8")
        server.call(6, "memory_stats")
        server.call(7, "memory_search", {"query": ASKED})

    early, *lines = [line for line in logged.lines() if line["event"] == "tool"]
    one, other = [line["hash"] for line in logged.lines() if line["event"] == "search"]
    assert "hash" not in early
    assert one != other
    assert [line["hash"] for line in lines] == [one, one, one, one, other, other]
    assert [line["outcome"] for line in lines] == ["ok", "ok", "ok", "E080", "ok", "ok"]


def test_the_line_of_a_search_names_the_pipeline_that_answered_it(indexed: Path, tmp_path: Path) -> None:
    """Not the one in force, where the search wanted something otherwise, nor an intent that it did not look for."""
    with logging_server(indexed, tmp_path) as logged:
        for number, wanted in enumerate(({}, {"rerank": False}, {"rerank": False}, {"autoDetectIntent": False})):
            logged.server.call(number, "memory_search", {"query": ASKED, **wanted})

    lines = [line for line in logged.lines() if line["event"] in ("search", "tool")]
    by_event = {name: [line for line in lines if line["event"] == name] for name in ("search", "tool")}
    plain, other, again, unread = (line["hash"] for line in by_event["tool"])
    assert [line["hash"] for line in by_event["search"]] == [plain, other, again, unread]
    assert plain == unread != other == again
    assert by_event["tool"][2]["cached"]
    assert [line["intent"] is None for line in by_event["search"]] == [False, False, False, True]


def test_calls_at_the_same_time_do_not_mix(indexed: Path, tmp_path: Path, talking: dict[str, str]) -> None:
    """Each of the two waits inside its search until the other one is there too."""
    with logging_server(indexed, tmp_path, talking) as logged:
        server = logged.server
        server.send(
            call_of(1, "memory_search", {"query": "fusion zz-meet", "limit": 1}),
            call_of(2, "memory_search", {"query": "fusion zz-meet", "limit": 3}),
        )
        answers = {message["id"]: message["result"] for message in (server.next(), server.next())}

    lines = logged.lines()
    found = by_id(lines)
    assert len(found) == 2
    for number, limit in ((1, 1), (2, 3)):
        mine = found[id_of(answers[number])]
        assert [line["event"] for line in mine] == [
            f"asked for {limit}, waiting", f"asked for {limit}, going on", "search", "tool",
        ]  # fmt: skip
        assert [line.get("logger") for line in mine] == ["talking", "talking", None, None]
        assert mine[2]["results"] == answers[number]["structuredContent"]["data"]["count"] == limit
    waiting = [line["query_id"] for line in lines if line["event"].endswith("waiting")]
    assert [line["query_id"] for line in lines[:2]] == waiting  # both were under way before either went on


def test_what_an_isolated_extension_prints_belongs_to_the_call_during_which_it_came(
    indexed: Path, tmp_path: Path, talking: dict[str, str]
) -> None:
    calls = range(1, 31)
    env = {**talking, "SPECKIT_EXTENSIONS": "isolated"}
    with logging_server(indexed, tmp_path, env) as logged:
        server = logged.server
        for number in calls:
            deed = "leave" if number == 30 else "print"
            asked = {"query": f"fusion zz-{deed}", "limit": number, "deadlineMs": 0}
            server.send(call_of(number, "memory_search", asked))
        answers = {message["id"]: message["result"] for message in (server.next() for _ in calls)}

    found = by_id(logged.lines())
    for number in calls:
        printed = [line for line in found[id_of(answers[number])] if line.get("logger") == "speckit_memory.extensions"]
        [text] = [line["event"].partition(" wrote: ")[2] for line in printed]
        assert text == f"asked for {number}" + ", and gone" * (number == 30)


@pytest.mark.parametrize("content", ["", "1"])
def test_no_text_of_queries_and_memories_stands_in_the_log_unless_asked_for(
    indexed: Path, tmp_path: Path, talking: dict[str, str], content: str
) -> None:
    with logging_server(indexed, tmp_path, {**talking, "SPECKIT_LOG_CONTENT": content}) as logged:
        server = logged.server
        failed = server.call(1, "memory_search", {"query": f"{ASKED} zz-fail"})
        assert "xylophone" in failed["structuredContent"]["meta"]["degraded"][0]["reason"]
        server.call(2, "memory_context", {"input": ASKED, "mode": "xylophone"})
        server.call(3, "memory_search", {"query": ASKED, "xylophone": ASKED, "limit": "xylophone"})
        server.call(4, "xylophone", {"query": ASKED})

    lines = logged.lines()
    [search] = [line for line in lines if line["event"] == "search"]
    [part] = search["degraded"]
    assert (search["level"], part["part"], part["state"]) == ("warning", "talking", "failed")
    texts = logged.file.read_text(encoding="utf-8")
    assert ("xylophone" in texts) == ("xylophone" in search.get("query", "")) == ("reason" in part) == bool(content)
    assert "lexical" not in texts  # of the memory that was found


def test_a_store_that_was_replaced_is_logged_by_the_call_that_found_out(workspace: Path, tmp_path: Path) -> None:
    store = workspace / "memory.db"
    with logging_server(workspace, tmp_path) as logged:
        logged.server.call(1, "memory_search", {"query": "fusion"})
        copy = shutil.copy(store, tmp_path / "copy.db")
        for part in ("", "-wal", "-shm"):
            store.with_name(store.name + part).unlink(missing_ok=True)
        shutil.move(copy, store)
        found = logged.server.call(2, "memory_search", {"query": "fusion"})

    [told] = [line for line in logged.lines() if line["event"].startswith("the store was reopened: its file ")]
    assert (told["query_id"], told["logger"]) == (id_of(found), "speckit_memory.engine.session.reopening")


def test_what_could_not_be_noted_in_a_session_is_logged_by_its_call(workspace: Path, tmp_path: Path) -> None:
    with logging_server(workspace, tmp_path) as logged:
        logged.server.call(1, "memory_search", {"query": "fusion"})
        with Database.open(workspace / "memory.db") as other, other.write():
            found = logged.server.call(2, "memory_search", {"query": "fusion", "sessionId": "one"})

    [told] = [line for line in logged.lines() if line["event"] == "not recorded in the session"]
    assert (told["query_id"], told["level"]) == (id_of(found), "warning")


def test_a_command_that_serves_nothing_writes_no_log(workspace: Path, talking: dict[str, str]) -> None:
    ran = call(workspace, ["search", "fusion zz-fail", "--json"], talking)
    assert ran.json["notes"]["degraded"][0]["part"] == "talking"
    assert ran.err == ""


@pytest.fixture
def unconfigured() -> Iterator[Callable[[], None]]:
    """Logging as it is before it is configured, and afterwards as it was."""
    handlers, level, ours = logging.root.handlers[:], logging.root.level, logging.getLogger(logs.OURS).level
    structlog.reset_defaults()
    yield logs.configure
    logging.root.handlers[:], logging.root.level = handlers, level
    logging.getLogger(logs.OURS).setLevel(ours)
    structlog.reset_defaults()


def test_nothing_is_printed_where_logging_is_not_configured(
    unconfigured: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    logs.event("unheard")
    assert capsys.readouterr() == ("", "")
    unconfigured()
    with logs.request():
        logs.event("heard")
        expected = logs.query_id()
    out, err = capsys.readouterr()
    assert (out, json.loads(err)["event"], json.loads(err)["query_id"]) == ("", "heard", expected)
    assert logs.query_id() == ""
