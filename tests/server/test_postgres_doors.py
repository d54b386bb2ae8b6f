"""A spawned server and the console on a store in PostgreSQL: every tool answers, and no file of a store is made."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from postgres_server import server

PROGRAM = Path(sys.executable).with_name("speckit-memory")
SCORES = {"specFolder": "docs", "taskId": "t", "knowledgeScore": 40, "uncertaintyScore": 60, "contextScore": 50}
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("memory_index_scan", {}),
    ("memory_stats", {}),
    ("memory_search", {"query": "why fuse by score"}),
    ("memory_search", {"query": '"ranks lose" -cache', "includeContent": True, "sessionId": "s", "mode": "deep"}),
    ("memory_context", {"input": "where was I", "mode": "resume"}),
    ("memory_match_triggers", {"prompt": "how do we fuse scores", "session_id": "s", "turnNumber": 1}),
    ("memory_save", {"content": "# Queue\n\nIt drains before shutdown.\n", "title": "Queue"}),
    ("memory_list", {"includeChunks": True}),
    ("memory_update", {"id": "docs/c.md", "importanceTier": "important"}),
    ("memory_causal_link", {"sourceId": "docs/a.md", "relation": "caused", "targetId": "docs/c.md"}),
    ("memory_drift_why", {"memoryId": "docs/a.md"}),
    ("memory_causal_stats", {}),
    ("memory_causal_unlink", {"edgeId": 2}),
    ("memory_validate", {"id": "docs/a.md", "wasUseful": True}),
    ("checkpoint_create", {"name": "before"}),
    ("checkpoint_list", {}),
    ("memory_delete", {"id": "docs/b.md"}),
    ("memory_bulk_delete", {"tier": "normal", "confirm": True, "specFolder": "memories"}),
    ("checkpoint_restore", {"name": "before", "clearExisting": True}),
    ("checkpoint_delete", {"name": "before", "confirmName": "before"}),
    ("task_preflight", SCORES),
    ("task_postflight", {**SCORES, "knowledgeScore": 80}),
    ("memory_get_learning_history", {"specFolder": "docs"}),
    ("memory_health", {}),
    ("memory_search", {"query": "drains before shutdown"}),
)  # fmt: skip
COMMANDS = (
    ("index", "."),
    ("search", "fuse", "by", "score", "--json"),
    ("list",),
    ("stats", "--json"),
    ("show", "docs/a.md"),
    ("lineage", "docs/a.md"),
    ("match", "how do we fuse scores"),
    ("checkpoint", "create", "console"),
    ("checkpoint", "list"),
    ("delete", "docs/b.md"),
    ("undelete",),
    ("model", "list"),
    ("init", "--json"),
    ("doctor", "--json"),
)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A workspace with three documents, and the environment that names its store."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (tmp_path / ".git").mkdir()
    (folder / "a.md").write_text(
        "---\ntrigger_phrases: [fuse scores]\n---\n# Why we fuse by score\n\nRanks lose distances. See [it](b.md).\n"
    )
    (folder / "b.md").write_text("# Cache policy\n\nThe cache is invalidated by notify.\n")
    (folder / "c.md").write_text("# Deadline\n\nSearches stop at the deadline.\n")
    return {**os.environ, "SPECKIT_ROOT": str(tmp_path), "SPECKIT_DB": f"{server()}&workspace={tmp_path.name}"}


def test_every_tool_answers_from_a_store_in_postgresql(
    environment: dict[str, str], tmp_path: Path, processes: None
) -> None:
    program = StdioServerParameters(
        command=str(PROGRAM),
        args=["serve"],
        env=environment,
        cwd=tmp_path,
    )
    failed: dict[str, str] = {}
    answers: list[str] = []
    offered: set[str] = set()

    async def call_all() -> None:
        async with stdio_client(program) as streams, ClientSession(*streams) as session:
            await session.initialize()
            offered.update(tool.name for tool in (await session.list_tools()).tools)
            for name, arguments in CALLS:
                result = await session.call_tool(name, arguments)
                answers.append(" ".join(getattr(part, "text", "") for part in result.content))
                if result.is_error:
                    failed[name] = answers[-1]

    anyio.run(call_all)

    assert failed == {}
    assert offered == {name for name, _ in CALLS}
    assert "docs/a.md" in answers[2]
    assert "PostgreSQL" in answers[-2]
    assert "memories/queue.md" in answers[-1]
    assert not (tmp_path / ".speckit" / "memory.db").exists()


def test_the_console_works_on_a_store_in_postgresql(
    environment: dict[str, str], tmp_path: Path, processes: None
) -> None:
    import subprocess

    failed: dict[tuple[str, ...], str] = {}
    printed: dict[str, str] = {}
    for command in COMMANDS:
        ended = subprocess.run(
            [PROGRAM, *command],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        printed[command[0]] = ended.stdout
        if ended.returncode:
            failed[command] = ended.stdout + ended.stderr

    assert failed == {}
    assert json.loads(printed["init"])["store"] == environment["SPECKIT_DB"]
    assert "docs/a.md" in printed["search"]
    assert not (tmp_path / ".speckit" / "memory.db").exists()
