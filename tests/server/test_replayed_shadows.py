"""Shadows of a server that is asked without a pause: nothing is lost or felt, and each variant has its verdict."""

from __future__ import annotations

import random
import shutil
import sqlite3
import subprocess
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from isolated.distributions import installed
from mcp import Client
from raw_server import raw_server

from speckit_memory.engine import Memory
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.records import RecordedPair
from tests.server.doors import COMMAND, call, environment, with_client

pytestmark = pytest.mark.usefixtures("processes")

SOURCE = '''\
"""An extension with a reranker that does what its parameter says."""

import time

import numpy as np

from speckit_memory.pipeline import About, Params, Role, Selected


KEPT = []


class Odd:
    """Does what it should not."""

    class Params(Params):
        act: str = "nothing"

    about = About()

    def __init__(self, params):
        self.act = params.act

    def rerank(self, query, pool, store):
        if self.act == "sleep":
            time.sleep(0.02)
        elif self.act == "hang":
            time.sleep(600)
        elif self.act == "eat":
            while True:
                KEPT.append(np.ones(25_000_000))
        elif self.act == "fail":
            raise ValueError("secret")
        elif self.act == "end":
            import os
            os._exit(3)
        return Selected(np.ones(len(pool), bool))


def register(registry):
    registry.add(Role.RERANKER, Odd, "odd")
'''
ACTS = ("sleep", "hang", "eat", "fail")
WELL = ("default", "bm25", "rrf", "sleep")
"""Variants that answer."""
QUERIES = 40
AT_ONCE = 4
"""Docs/decisions/0100 tells of 300 queries, one by one and four at a time."""


@pytest.fixture
def shadowed(workspace: Path, tmp_path: Path) -> Path:
    """A workspace with eight shadows, of which one sleeps, one hangs, one eats memory, one fails and one ends."""
    with Memory.open(workspace / "memory.db", root=workspace, environ={}, create=False) as memory:
        memory.lifecycle.maintain()  # or background work would come between the answers
    installed(tmp_path / "path", "odd", SOURCE)
    entries = ["default", "bm25", "rrf"]
    for act in (*ACTS, "end"):
        (workspace / f"{act}.yaml").write_text(
            f"pipeline: {act}\nextends: default\nrerank: {{add: [{{use: odd, act: {act}}}]}}\n"
        )
        entries.append(f"../{act}.yaml")
    (workspace / ".speckit").mkdir(exist_ok=True)
    (workspace / ".speckit" / "pipeline.yaml").write_text(f"extends: default\nshadows: [{', '.join(entries)}]\n")
    return workspace


def extended(root: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(root.parent / "path"), "SPECKIT_EXTENSIONS": "trusted"}


def asked(root: Path, queries: int, at_once: int) -> list[Any]:
    """What so many queries are answered over MCP, back to back or `at_once` at a time, in the order of the queries."""
    answers: dict[int, Any] = {}

    async def work(client: Client) -> list[Any]:
        async def one_of(first: int) -> None:
            for number in range(first, queries, at_once):
                arguments = {"query": f"why rank fusion {number}", "deadlineMs": 0}
                result = await client.call_tool("memory_search", arguments)
                document = result.structured_content
                assert isinstance(document, dict)
                answers[number] = document["data"], document["summary"], document["hints"]

        async with anyio.create_task_group() as group:
            for first in range(at_once):
                group.start_soon(one_of, first)
        return [answers[number] for number in range(queries)]

    return with_client(root, work, **extended(root))


def pairs(root: Path) -> tuple[int, dict[str, list[RecordedPair]]]:
    """How many queries are recorded, and the pairs by the name of the variant."""
    with EvaluationDatabase.open(root / "memory.evaluation.db", create=False) as database:
        names = {one.id: one.variant.name for one in database.experiments()}
        found = {name: database.pairs(experiment=key) for key, name in names.items()}
        return len(database.served()), found


@pytest.mark.requirement("P4.recorded", "P4.hanging", "P4.served", "P4.failed")
def test_every_query_is_compared_for_every_variant_that_answers_and_the_others_have_failed(
    shadowed: Path, tmp_path: Path
) -> None:
    plain = Path(shutil.copytree(shadowed, tmp_path / "plain"))
    (plain / ".speckit" / "pipeline.yaml").write_text("extends: default\n")

    assert asked(shadowed, QUERIES, AT_ONCE) == asked(plain, QUERIES, AT_ONCE)
    report = call(shadowed, ["shadow", "report", "--json"], extended(shadowed)).ok().json

    recorded, found = pairs(shadowed)
    assert recorded == QUERIES
    names = {name: name.rpartition("/")[2] for name in found}
    counts = {names[name]: len(one) for name, one in found.items()}
    # the control shadows itself under its own name
    assert sorted(counts.values()) == [3, 3, 10, 10, *[QUERIES] * 4]
    kinds = {names[name]: Counter(pair.variant.answer.failure for pair in one) for name, one in found.items()}
    assert (kinds["hang"], kinds["end"]) == ({"ReplayTimeout in odd": 3}, {"ReplayStatus3 in odd": 3})
    assert (kinds["fail"], kinds["eat"]) == ({"ValueError in odd": 10}, {"MemoryError in odd": 10})
    assert all(kinds[name] == {"": QUERIES} for name in ("bm25", "rrf", "sleep"))
    verdicts = {one["variant"]["name"]: one["verdict"] for one in report["comparisons"]}
    assert {name for name, verdict in verdicts.items() if verdict == "failed"} == {"hang", "eat", "fail", "end"}
    assert all(sum(one["basis"].values()) == one["queries"] for one in report["comparisons"])
    again = call(shadowed, ["shadow", "report"], extended(shadowed))
    assert "4 failed" in again.out
    assert pairs(shadowed)[1] == found


KILLS = 4
"""Of servers and of reports each; the figures of docs/decisions/0100 come of thirty."""


@pytest.mark.requirement("P4.recorded")
def test_servers_and_reports_that_are_killed_lose_no_record_and_no_verdict(workspace: Path, tmp_path: Path) -> None:
    chance = random.Random(5)
    (workspace / ".speckit").mkdir(exist_ok=True)
    (workspace / ".speckit" / "pipeline.yaml").write_text("extends: default\nshadows: [bm25, default]\n")
    for turn in range(KILLS):
        with raw_server(workspace, spawned=True) as server:
            server.start()
            for number in range(1, 4):
                server.call(number, "memory_search", {"query": f"why rank fusion {turn} {number}"})
            time.sleep(0.5)  # what was noted is written a tenth of a second later
            server.process.kill()
        report = subprocess.Popen(
            [COMMAND, "shadow", "report"], env=environment(workspace), cwd=workspace,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(chance.uniform(0.3, 4.0))
        report.kill()
        report.wait()
    recorded, _ = pairs(workspace)
    whole = Path(shutil.copytree(workspace, tmp_path / "whole"))
    with closing(sqlite3.connect(whole / "memory.evaluation.db")) as database, database:
        database.execute("DELETE FROM replays")
    reports = [call(root, ["shadow", "report", "--json"]).ok().json for root in (workspace, whole)]

    assert recorded == 3 * KILLS
    first, second = ([(one["id"], one["queries"], one["verdict"]) for one in made["comparisons"]] for made in reports)
    assert first == second
    assert [one["queries"] for one in reports[0]["comparisons"]] == [recorded] * 2


@pytest.mark.requirement("P4.recorded", "P4.order")
def test_a_server_replays_by_itself_when_nothing_is_asked(workspace: Path) -> None:
    (workspace / ".speckit").mkdir(exist_ok=True)
    (workspace / ".speckit" / "pipeline.yaml").write_text("extends: default\nshadows: [bm25, rrf]\n")
    with raw_server(workspace) as server:
        server.start()
        for number in range(1, 4):
            server.call(number, "memory_search", {"query": f"why rank fusion {number}"})
        until, number = time.monotonic() + 120, 4
        detail = ""
        while detail.count("3 seen") < 2 and time.monotonic() < until:
            time.sleep(2.0)
            checks = server.call(number, "memory_health")["structuredContent"]["data"]["checks"]
            detail = next(check["detail"] for check in checks if check["name"] == "shadows")
            number += 1
        begun = time.monotonic()
        server.close()
        seconds = time.monotonic() - begun

    assert detail == "'bm25' in shadow, by replay, 3 seen; 'rrf' in shadow, by replay, 3 seen"
    assert seconds < 30
