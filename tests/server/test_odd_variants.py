"""A variant that does what it should not, beside an installed server: answers stay, and what happened is told."""

from __future__ import annotations

import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import pytest
from isolated.distributions import installed
from mcp import Client
from storing.contents import RANDOM, contents

from speckit_memory.engine import Memory
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from tests.server.doors import call, with_client

pytestmark = pytest.mark.usefixtures("processes")

SOURCE = '''\
"""An extension with a reranker that does what the environment says."""

import os
import time

import numpy as np

from speckit_memory.pipeline import About, Params, Role

KEPT = []


def mutate(query, pool, store):
    for array in (pool.ids, pool.score, pool.candidates.parents, pool.candidates.ids):
        try:
            array.setflags(write=True)
        except ValueError:
            continue  # what is read-only for good
        array[:] = array[::-1].copy() * 7
    for thing in (pool, pool.candidates, query, query.plan):
        for name in type(thing).__dataclass_fields__:
            object.__setattr__(thing, name, None)


def allocate():
    KEPT.append(np.ones(25_000_000))
    KEPT.clear()
    raise MemoryError("secret")


class Odd:
    """Returns nothing that a pipeline could use."""

    Params = Params
    about = About()

    def __init__(self, params):
        pass

    def rerank(self, query, pool, store):
        act = os.environ["ODD"]
        if act == "sleep":
            time.sleep(2.0)
        elif act == "doze":
            time.sleep(0.06)
        elif act == "raise":
            raise SystemExit("secret")
        elif act == "allocate":
            allocate()
        elif act == "mutate":
            mutate(query, pool, store)
        return "nonsense"


def register(registry):
    registry.add(Role.RERANKER, Odd, "odd")
'''
BESIDE = """\
extends: default
rerank: {add: [odd]}
"""
QUERIES = ["why rank fusion", "write-ahead log", "backups", "REQ-006"]
FAILURES = {
    "sleep": "ContractError in odd",
    "raise": "SystemExit in odd",
    "allocate": "MemoryError in odd",
    "garbage": "ContractError in odd",
    "mutate": "ContractError in odd",
}
MOMENTS = (*RANDOM, "last_accessed", "last_used_at")
"""Columns that differ from one run to the next."""
UNASKED = shutil.ignore_patterns("*.evaluation.db*")


@pytest.fixture(scope="module")
def rested(unasked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose background work is done, so that none is due while a server answers."""
    root = Path(shutil.copytree(unasked, tmp_path_factory.mktemp("rested") / "workspace"))
    with Memory.open(root / "memory.db", root=root, environ={}, create=False) as memory:
        memory.lifecycle.maintain()
    return root


@pytest.fixture
def odd(rested: Path, tmp_path: Path) -> Path:
    """A workspace with an odd pipeline beside its own."""
    workspace = Path(shutil.copytree(rested, tmp_path / "workspace", ignore=UNASKED))
    installed(tmp_path / "path", "odd", SOURCE)
    (workspace / "odd.yaml").write_text(BESIDE)
    (workspace / ".speckit").mkdir(exist_ok=True)
    (workspace / ".speckit" / "pipeline.yaml").write_text(
        "extends: default\nbudgets_ms: {shadow: 30}\nshadows: [../odd.yaml]\n"
    )
    return workspace


def asked(root: Path, *queries: str, pause: float = 0.0, **more: str) -> tuple[list[Any], list[float]]:
    """What queries are answered over MCP, and how long each took."""

    async def work(client: Client) -> tuple[list[Any], list[float]]:
        answers, times = [], []
        for query in queries:
            begun = time.monotonic()
            result = await client.call_tool("memory_search", {"query": query, "deadlineMs": 0})
            times.append(time.monotonic() - begun)
            document = result.structured_content
            assert isinstance(document, dict)
            answers.append((document["data"], document["hints"], document["summary"]))
            await anyio.sleep(pause)
        return answers, times

    return with_client(root, work, **{**told(root), **more})


def told(root: Path) -> dict[str, str]:
    """What has the extension used."""
    return {"PYTHONPATH": str(root.parent / "path"), "SPECKIT_EXTENSIONS": "trusted", "ODD": ""}


@pytest.fixture(scope="module")
def expected(rested: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], dict[str, list[str]]]:
    """What is answered and stored without variants."""
    root = Path(shutil.copytree(rested, tmp_path_factory.mktemp("plain") / "workspace", ignore=UNASKED))
    return asked(root, *QUERIES)[0], contents(root / "memory.db", MOMENTS)


@pytest.mark.requirement("P4.served", "P4.reads")
@pytest.mark.parametrize("act", FAILURES)
def test_answers_and_memories_are_what_they_are_without_it_and_the_report_names_the_failure(
    odd: Path, expected: tuple[list[Any], dict[str, list[str]]], act: str
) -> None:
    answers, times = asked(odd, *QUERIES, ODD=act)
    report = " ".join(call(odd, ["shadow", "report"], {**told(odd), "ODD": act}).ok().out.split())

    assert answers == expected[0]
    assert contents(odd / "memory.db", MOMENTS) == expected[1]
    assert max(times[1:]) < 1.5  # nobody waits for one that sleeps for two seconds
    with EvaluationDatabase.open(odd / "memory.evaluation.db", create=False) as database:
        found = database.pairs()
    assert [pair.variant.answer.failure for pair in found] == [FAILURES[act]] * len(QUERIES)
    served = {tuple(row["id"] for row in data["results"]) for data, *_ in answers}
    assert {pair.control.memories for pair in found} & served
    assert {pair.basis for pair in found} == {"served"}
    assert FAILURES[act] in report


@pytest.mark.requirement("P10.retreat")
def test_a_dark_run_that_takes_too_long_retreats_and_health_says_so_in_every_process(odd: Path) -> None:
    (odd / ".speckit" / "pipeline.yaml").write_text(
        "extends: default\nbudgets_ms: {shadow: 30}\ndark_runs: [{use: ../odd.yaml, sample: 1.0}]\n"
    )

    async def work(client: Client) -> str:
        told = ""
        for number in range(200):
            await client.call_tool("memory_search", {"query": f"rank fusion {number}", "deadlineMs": 0})
            await anyio.sleep(0.15)
            if number % 10 == 9:
                health = await client.call_tool("memory_health", {})
                assert isinstance(health.structured_content, dict)
                checks = {check["name"]: check["detail"] for check in health.structured_content["data"]["checks"]}
                told = checks["shadows"]
                if "stepped back" in told:
                    break
        return told

    said = with_client(odd, work, **{**told(odd), "ODD": "doze"})

    assert said.startswith("'../odd.yaml' in dark_run, in idle moments, ")
    assert re.search("20 failed.*stepped back: p95 of 20 runs is .* ms, the budget 30 ms", said)
    checks = {check["name"]: check for check in call(odd, ["doctor", "--json"], told(odd)).json["checks"]}
    assert checks["shadows"]["detail"].startswith("'../odd.yaml' in dark_run, in idle moments, ")
    assert "stepped back: it stepped back to 'idle' before" in checks["shadows"]["detail"]


@pytest.mark.requirement("P4.recorded")
def test_two_servers_on_one_store_lose_no_query(workspace: Path) -> None:
    (workspace / ".speckit").mkdir(exist_ok=True)
    (workspace / ".speckit" / "pipeline.yaml").write_text("extends: default\nshadows: [bm25, rrf]\n")
    queries = [f"{query} {number}" for number in range(8) for query in QUERIES]
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: asked(workspace, *queries, pause=0.01), range(2)))
        list(pool.map(lambda _: call(workspace, ["shadow", "report"]).ok(), range(2)))

    assert both[0][0] == both[1][0]
    with EvaluationDatabase.open(workspace / "memory.evaluation.db", create=False) as database:
        assert len(database.served()) == 2 * len(queries)
        assert [one.pairs for one in database.experiments()] == [2 * len(queries)] * 2
