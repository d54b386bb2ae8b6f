"""Tools: any arguments in any order, in a server of this process and in one that is killed and started again.

An input is a list of steps: calls of tools, files that are written or taken away, and restarts. What a server has
acknowledged to have saved must be listed ever after, until the file is gone and the store is brought up to date.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Awaitable, Callable, Iterator
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import structlog
from hypothesis import strategies as st
from mcp import Client
from raw_server import RawServer, call_of, raw_server
from tally import Tally

from speckit_memory.errors.codes import CODES
from speckit_memory.server.mcp_server.app import build
from speckit_memory.server.replies.worker_calls import ThreadLimits
from speckit_memory.server.workspace.workspace import Workspace
from tests.attacks.fuzz.shared import NOTES, folder, opened, with_notes
from tests.attacks.fuzz.target import Target

TOOLS = ("memory_context", "memory_search", "memory_save", "memory_validate", "memory_index_scan", "memory_list",
         "memory_stats", "memory_health", "task_preflight", "task_postflight",
         "memory_get_learning_history")  # fmt: skip
FILES = ("docs/a.md", "docs/b.md", "docs/deep/c.md", "d.md")
MOST_CHARACTERS = 60_000
"""Of the text of an answer; budgets are far below, but one row always stays."""
MOST_STARTS = 3
Call = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]

_TEXT = st.one_of(
    st.sampled_from([
        "", "rank fusion", "why", "REQ-006", "\ud800", "\0", "x" * 300, "../..", "docs", "/etc/passwd", "s", "how",
        "auto", "deep", "a" * 10_001, '"rank fusion" -x', "📎",
    ]),
    st.text(max_size=10),
)  # fmt: skip
_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 2**70), st.floats(allow_nan=False), _TEXT),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)
_PATH = st.one_of(st.sampled_from([*FILES, *NOTES, "docs", "missing.md", "../x.md", "docs/a.md/", ".", ""]), _TEXT)
_LIKELY: dict[str, st.SearchStrategy[Any]] = {
    "input": _TEXT, "query": _TEXT, "mode": st.sampled_from(["auto", "quick", "deep", "focused", "resume"]),
    "specFolder": st.sampled_from(["", "docs", "docs/deep", "nowhere", ".."]), "limit": st.integers(0, 101),
    "sessionId": st.sampled_from(["s", "", "t"]), "enableDedup": st.booleans(),
    "anchors": st.lists(_TEXT, max_size=3), "includeContent": st.booleans(), "tokenUsage": st.floats(0, 1),
    "concepts": st.lists(_TEXT, max_size=6), "tier": st.sampled_from(["important", "constitutional", "deprecated"]),
    "contextType": st.sampled_from(["decision", "x"]), "explain": st.booleans(),
    "deadlineMs": st.sampled_from([0, 0.001, 50, -1]), "filePath": _PATH, "force": st.booleans(),
    "dryRun": st.booleans(), "asyncEmbedding": st.booleans(), "id": st.integers(-1, 30), "wasUseful": st.booleans(),
    "promote": st.booleans(), "incremental": st.booleans(), "offset": st.integers(-1, 2**65),
    "sortBy": st.sampled_from(["created_at", "updated_at", "importance_weight", "id; DROP TABLE memories"]),
    "limitt": st.just(1), "tokenBudget": st.integers(190, 5000),
}  # fmt: skip
_SCORES = ("knowledgeScore", "uncertaintyScore", "contextScore")
_LIKELY |= dict.fromkeys(_SCORES, st.integers(-1, 101)) | {
    "taskId": st.sampled_from(["t", "u", "", "\ud800"]), "onlyComplete": st.booleans(), "includeSummary": st.booleans(),
}  # fmt: skip
_LIKELY |= dict.fromkeys(("knowledgeGaps", "gapsClosed", "newGapsDiscovered"), st.lists(_TEXT, max_size=3))
_TASK = ("specFolder", "taskId", *_SCORES)
_OF_TOOL = {
    "memory_context": (
        "input", "mode", "specFolder", "limit", "sessionId", "enableDedup", "anchors", "includeContent",
        "tokenUsage", "tokenBudget",
    ),
    "memory_search": (
        "query", "concepts", "specFolder", "limit", "tier", "contextType", "mode", "sessionId", "enableDedup",
        "anchors", "includeContent", "explain", "deadlineMs", "tokenBudget",
    ),
    "memory_save": ("filePath", "force", "dryRun", "asyncEmbedding"),
    "memory_validate": ("id", "wasUseful", "promote"),
    "memory_index_scan": ("specFolder", "force", "incremental"),
    "memory_list": ("limit", "offset", "specFolder", "sortBy"),
    "memory_stats": ("limit",),
    "memory_health": (),
    "task_preflight": (*_TASK, "knowledgeGaps", "sessionId"),
    "task_postflight": (*_TASK, "gapsClosed", "newGapsDiscovered"),
    "memory_get_learning_history": ("specFolder", "sessionId", "limit", "onlyComplete", "includeSummary"),
}  # fmt: skip
NEEDED = {"memory_context": ("input",), "memory_save": ("filePath",), "memory_validate": ("id", "wasUseful"),
          "task_preflight": _TASK, "task_postflight": _TASK,
          "memory_get_learning_history": ("specFolder",)}  # fmt: skip


@st.composite
def _calls(draw: st.DrawFn) -> dict[str, Any]:
    tool = draw(st.sampled_from(TOOLS))
    names = _OF_TOOL[tool]
    given = {name: draw(_LIKELY[name]) for name in NEEDED.get(tool, ())}
    if names:
        given |= {name: draw(_LIKELY[name]) for name in draw(st.lists(st.sampled_from(names), max_size=3, unique=True))}
    if draw(st.integers(0, 3)) == 0:
        given[draw(st.one_of(st.sampled_from([*names, "limitt"]), _TEXT))] = draw(_JSON)
    return {"tool": tool, "arguments": given}


_WRITES = st.fixed_dictionaries(
    {
        "write": st.sampled_from(FILES),
        "text": st.one_of(st.sampled_from([*NOTES.values(), "", "# A\n\nb\n"]), st.text(max_size=80)),
    }
)
_SAVES = st.sampled_from(FILES).map(
    lambda name: {"tool": "memory_save", "arguments": {"filePath": name, "force": True}}
)
_STEPS = st.one_of(
    _calls(),
    _calls(),
    _WRITES,
    _SAVES,
    st.fixed_dictionaries({"remove": st.sampled_from(FILES)}),
    st.just({"restart": True}),
)


@cache
def _template() -> Path:
    return with_notes()


def _fresh() -> Path:
    root = folder() / "w"
    shutil.copytree(_template(), root)
    return root


class Model:
    """What must be in the store, and what every answer must be like."""

    def __init__(self, root: Path, tally: Tally) -> None:
        self.root = root
        self.tally = tally
        self.saved = set(NOTES)

    def change(self, step: dict[str, Any]) -> None:
        """A file is written or taken away; its memory stays until the next scan."""
        file = self.root / (step.get("write") or step["remove"])
        if "write" in step:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(step["text"], encoding="utf-8", errors="surrogatepass")
        else:
            file.unlink(missing_ok=True)
        self.tally.survived()

    async def steps(self, part: list[dict[str, Any]], call: Call) -> None:
        """What happens while one server lives, after which nothing is lost."""
        for step in part:
            if "tool" in step:
                await self.step(step, call)
            else:
                self.change(step)
        await self.nothing_is_lost(call)

    async def step(self, step: dict[str, Any], call: Call) -> None:
        """One call of a tool, and what it acknowledges."""
        answer = await call(step["tool"], step["arguments"])
        self.tally.tried()
        self.well_formed(answer)
        if "error" in answer:
            return
        if step["tool"] == "memory_save" and answer["data"]["outcome"] != "dry_run":
            self.saved.add(answer["data"]["key"])
        if step["tool"] == "memory_index_scan":
            # files that are gone leave the store; what became of changed ones, the list says
            self.saved = {key for key in self.saved if (self.root / key).exists()}

    @staticmethod
    def well_formed(answer: dict[str, Any]) -> None:
        """The shape that clients rely on, in characters that every encoding holds, and of bounded size."""
        assert len(json.dumps(answer, ensure_ascii=False).encode("utf-8")) < 10 * MOST_CHARACTERS
        if "error" in answer:
            codes = {answer["error"]["code"], *(problem["code"] for problem in answer["error"].get("problems", []))}
            assert codes <= set(CODES) and "E199" not in codes, answer
            return
        assert set(answer) == {"summary", "data", "hints", "meta"}
        assert isinstance(answer["data"], dict) and all(isinstance(hint, str) for hint in answer["hints"])

    async def nothing_is_lost(self, call: Call) -> None:
        """Every acknowledged memory is listed, and the store is in order."""
        listed = await call("memory_list", {"limit": 100})
        keys = {row["key"] for row in listed["data"]["memories"]}
        if listed["data"]["total"] == len(keys):  # a budget may cut the list
            assert self.saved <= keys, self.saved - keys
        assert listed["data"]["total"] >= len(self.saved)
        health = await call("memory_health", {})
        assert [check for check in health["data"]["checks"] if check["name"] == "store" and not check["ok"]] == []


def _speakable(arguments: dict[str, Any]) -> bool:
    """Whether the SDK's client can send these; other clients write lone surrogates as escapes."""
    try:
        json.dumps(arguments, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _answer(result: Any) -> dict[str, Any]:
    """The structured content of a result, which says the same in a text of bounded length."""
    [block] = result.content
    assert len(block.text) < MOST_CHARACTERS
    block.text.encode("utf-8")
    content = result.structured_content
    assert isinstance(content, dict)
    assert bool(result.is_error) == ("error" in content)
    return content


async def _spoken(server: RawServer, numbers: Iterator[int], tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The structured content of a server's answer, or the error that the protocol has for it."""
    server.send(call_of(number := next(numbers), tool, arguments))
    answer = server.answer(number)
    if "error" in answer:
        return {"error": {"code": "E030", "message": answer["error"]["message"]}}
    result = answer["result"]
    content: dict[str, Any] = result["structuredContent"]
    assert bool(result.get("isError")) == ("error" in content)
    return content


def check(steps: list[dict[str, Any]], tally: Tally) -> None:
    """Through a server of this process. A restart closes the store and opens it again."""
    # what the server logs is no part of its answers
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    root = _fresh()
    model = Model(root, tally)

    async def served(part: list[dict[str, Any]]) -> None:
        with opened(root) as memory:
            workspace = Workspace(lambda _: memory, memory.session.settings)
            server = build(workspace, warm_up=False, limits=ThreadLimits())
            async with Client(server) as client:

                async def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
                    if _speakable(arguments):
                        return _answer(await client.call_tool(tool, arguments))
                    return _answer(await server.call_tool(tool, arguments))

                await model.steps(part, call)

    try:
        for part in _parts(steps):
            anyio.run(served, part)
            tally.survived()
    finally:
        shutil.rmtree(root.parent, ignore_errors=True)


def check_process(steps: list[dict[str, Any]], tally: Tally) -> None:
    """Through `speckit-memory serve`. A restart kills it without warning."""
    root = _fresh()
    model = Model(root, tally)

    async def run() -> None:
        for part in _parts(steps):
            with raw_server(root) as server:
                server.start()
                await model.steps(part, partial(_spoken, server, count(1)))
            tally.survived()

    try:
        anyio.run(run)
    finally:
        shutil.rmtree(root.parent, ignore_errors=True)


def _parts(steps: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The steps between restarts, of which some are enough: to start takes most of the time."""
    parts: list[list[dict[str, Any]]] = [[]]
    for step in steps:
        if "restart" in step:
            parts += [[]] if len(parts) < MOST_STARTS else []
        else:
            parts[-1].append(step)
    return parts


TARGET = Target("tools", st.lists(_STEPS, min_size=1, max_size=14), check, ".json", "tools", per_round=10)
PROCESSES = Target(
    "processes", st.lists(_STEPS, min_size=3, max_size=25), check_process, ".json", "tools", per_round=2, shrinks=False
)
