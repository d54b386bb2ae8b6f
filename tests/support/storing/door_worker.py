"""Asks a damaged store everything, in a process of its own: C code that does not survive it takes the process along.

Reads lines of three columns: the name of a damage, the folder of a workspace that has it, and which third of the
questions is asked, or -1 for all. Writes a line of JSON for each question before it is asked, and one with the outcome.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from speckit_memory.server.commands.cli import run
from speckit_memory.server.console.arguments.options import Common
from speckit_memory.server.mcp_server.app import tools, workspace_of
from speckit_memory.server.replies.worker_calls import ThreadLimits

COMMANDS = {
    "doctor": ("doctor", "--json"),
    "search": ("search", "rank fusion", "--explain", "--why-not", "docs/fusion.md", "--json"),
    "plan": ("pipeline", "plan", "rank fusion", "--json"),
    "forget": ("index", "--forget", "docs", "--json"),
    "index": ("index", "docs", "--json"),
    "index --force": ("index", "docs", "--force", "--json"),
}
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("memory_health", {}),
    ("memory_context", {"input": "why do we fuse"}),
    ("memory_search", {"query": "quokka cache", "includeContent": True}),
    ("memory_search", {"query": "fusion", "sessionId": "s"}),
    ("memory_list", {}),
    ("memory_stats", {}),
    ("memory_validate", {"id": 1, "wasUseful": True}),
    ("memory_save", {"filePath": "new.md"}),
    ("memory_save", {"filePath": "docs/fusion.md", "force": True}),
    ("memory_index_scan", {"force": True}),
)


def by_command(arguments: tuple[str, ...]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        status = run(arguments)
    try:
        document = json.loads(out.getvalue())
    except ValueError:
        return f"no JSON: {out.getvalue()[:200]}"
    return str(document.get("error", {}).get("code", f"status {status}"))


def by_tool(tool: Any, arguments: dict[str, Any]) -> str:
    async def call() -> Any:
        return await tool.run(arguments, None)

    with contextlib.redirect_stderr(io.StringIO()):
        document = anyio.run(call).structured_content
    if tool.name == "memory_health" and "data" in document:
        return "ok" if document["data"]["ok"] else "not well"
    return str(document.get("error", {}).get("code", "ok"))


def ask(damage: str, question: str, answer: Callable[[], str]) -> None:
    print(json.dumps([damage, question, None]), flush=True)
    print(json.dumps([damage, question, answer()]), flush=True)


def _third(questions: list[tuple[str, Any]], which: int) -> list[tuple[str, Any]]:
    return questions if which < 0 else questions[which::3]


def _state(folder: Path) -> dict[Path, bytes | None]:
    """The files of the store; None for a folder."""
    return {file: None if file.is_dir() else file.read_bytes() for file in folder.glob("memory.db*")}


def _restore(folder: Path, state: dict[Path, bytes | None]) -> None:
    for file in folder.glob("memory.db*"):
        file.rmdir() if file.is_dir() else file.unlink()
    for file, content in state.items():
        file.mkdir() if content is None else file.write_bytes(content)


def main() -> None:
    for line in sys.stdin:
        damage, folder, third = line.rstrip("\n").split("\t")
        os.environ |= {"SPECKIT_ROOT": folder, "SPECKIT_DB": f"{folder}/memory.db"}
        os.chdir(folder)
        state = _state(Path(folder))
        for name, arguments in _third(list(COMMANDS.items()), int(third)):
            _restore(Path(folder), state)
            ask(damage, name, lambda: by_command(arguments))  # noqa: B023
        _restore(Path(folder), state)
        workspace = workspace_of(Common())
        by_name = {tool.name: tool for tool in tools(workspace, ThreadLimits())}
        for name, arguments in _third(list(CALLS), int(third)):
            ask(damage, name, lambda: by_tool(by_name[name], arguments))  # noqa: B023
        workspace.finish(0)


main()
