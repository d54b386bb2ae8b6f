"""An installed extension that does its worst, through the doors: the console script and a server over stdio."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from isolated.distributions import installed
from mcp import Client, StdioServerParameters
from tally import Tally

from tests.server.doors import COMMAND, DOCUMENTS, call, environment

pytestmark = [pytest.mark.requirement("P3", "P9"), pytest.mark.usefixtures("processes")]

EXTENSION = """
import sys
import numpy as np
from speckit_memory.pipeline.roles.contracts import About, NoParams, Role, SignalParams
from speckit_memory.pipeline.model.columns import Notes, Rescored


class Turned(np.ndarray):
    def __array_function__(self, func, types, args, kwargs):
        plain = [np.asarray(a) if isinstance(a, Turned) else a for a in args]
        result = func(*plain, **kwargs)
        return result[::-1] if isinstance(result, np.ndarray) else result


def leave(query, plan, store):
    sys.exit(3)


def in_place(query, pool, store):
    pool.score[:] = pool.score[::-1]
    return np.zeros(len(pool))


def interrupt(query, pool, store):
    raise KeyboardInterrupt


def turn(query, ranking, store):
    return Notes(keep=np.ones(len(ranking), bool).view(Turned))


def spoil(query, ranking, store):
    object.__setattr__(query, "limit", 100)
    object.__setattr__(ranking, "scores", ranking.scores[::-1])
    return Notes()


def contradict(query, ranking, store):
    return Notes(by_id={int(ranking.ids[-1]): {"also_at": "x", "Score": 99}}, warnings="all of it")


def endless(query, ranking, store):
    found = []
    found.append(found)
    return Notes(overall={"deduplicated": found, "token_budget": float("nan")})


def kind(name, role, method, work, params=NoParams):
    made = type(name, (), {"__doc__": "Does its worst.", "__init__": lambda self, params: None, "Params": params,
                           "about": About(features=("P9",)), "combine": "add", "__module__": "worst." + name,
                           method: lambda self, *asked: work(*asked)})
    return role, made


def register(registry):
    for role, made in (
        kind("leave", Role.UNDERSTANDER, "understand", leave),
        kind("in_place", Role.SIGNAL, "evidence", in_place, SignalParams),
        kind("interrupt", Role.RERANKER, "rerank", interrupt),
        kind("turn", Role.ANNOTATOR, "annotate", turn),
        kind("spoil", Role.ANNOTATOR, "annotate", spoil),
        kind("contradict", Role.ANNOTATOR, "annotate", contradict),
        kind("endless", Role.ANNOTATOR, "annotate", endless),
    ):
        registry.add(role, made)
"""
FAILING = ("leave", "in_place", "interrupt", "contradict", "endless")
"""The steps that fail; `turn` and `spoil` write into what is theirs alone, in a process of their own."""
CLEAN = """\
pipeline: clean
extends: none
candidates:
  understand: [intent]
  channels: [bm25]
  recover: []
fusion:
  - {use: z_score, normalise: min_max}
rerank: [min_max]
annotate: [attribution]
"""
ATTACKED = """\
pipeline: clean
extends: none
candidates:
  understand: [leave, intent]
  channels: [bm25]
  recover: []
fusion:
  - {use: z_score, normalise: min_max}
  - {use: in_place, optional: true}
rerank:
  - {use: interrupt, optional: true}
  - min_max
annotate: [turn, spoil, contradict, endless, attribution]
"""
QUERY = "how are ranks of channels fused in the store"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some documents, indexed, with both pipelines beside them and the extension installed in a folder of its own."""
    root = tmp_path_factory.mktemp("attacked")
    for name, text in DOCUMENTS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    (root / "clean.yaml").write_text(CLEAN, encoding="utf-8")
    (root / "attacked.yaml").write_text(ATTACKED, encoding="utf-8")
    installed(root / "site", "worst", EXTENSION)
    assert call(root, ["index", "docs"]).status == 0
    return root


def told(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "timings_ms"} for row in document["results"]]


def test_a_search_of_the_console_serves_what_it_would_without_the_extension(workspace: Path, tally: Tally) -> None:
    path = {"PYTHONPATH": str(workspace / "site")}

    clean = call(workspace, ["search", QUERY, "--json", "--pipeline", "clean.yaml"], path)
    attacked = call(workspace, ["search", QUERY, "--json", "--explain", "--pipeline", "attacked.yaml"], path)

    assert (clean.status, attacked.status) == (0, 0), attacked.err
    assert told(attacked.json) == told(clean.json) != []
    assert attacked.json["plan"] == clean.json["plan"]
    assert [part["part"] for part in attacked.json["notes"]["degraded"]] == list(FAILING)
    json.dumps(attacked.json, allow_nan=False)
    tally.tried(len(FAILING))


def test_a_server_outlives_the_extension(workspace: Path, tally: Tally) -> None:
    more = {"PYTHONPATH": str(workspace / "site"), "SPECKIT_PIPELINE": str(workspace / "attacked.yaml")}

    async def session() -> list[dict[str, Any]]:
        server = StdioServerParameters(
            command=str(COMMAND), args=["serve"], env=environment(workspace, **more), cwd=workspace
        )
        async with Client(server) as client:
            answers = [await client.call_tool("memory_search", {"query": QUERY}) for _ in range(3)]
            return [dict(answer.structured_content or {}) for answer in answers]

    clean = call(workspace, ["search", QUERY, "--json", "--pipeline", "clean.yaml"], {"PYTHONPATH": more["PYTHONPATH"]})
    for document in anyio.run(session):
        assert [row["key"] for row in document["data"]["results"]] == [row["key"] for row in clean.json["results"]]
        assert [part["part"] for part in document["meta"]["degraded"]] == list(FAILING)
        tally.tried(len(FAILING))
