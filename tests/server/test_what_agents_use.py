"""What agents do with the memories of an answer, noted through the tools for ground truth by use and for duels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
from tests.server.doors import with_client

SESSION = "mine"


@pytest.mark.requirement("T28.chosen", "T28.ignored")
def test_what_an_agent_reads_finds_useful_links_and_cites_is_a_use_of_the_answer_that_brought_it(
    workspace: Path,
) -> None:
    for number in range(7):
        (workspace / "docs" / f"quokka-{number}.md").write_text(
            f"# Quokka {number}\n\nHow a quokka sleeps, {number}.\n"
        )

    async def work(client: Any) -> list[dict[str, Any]]:
        async def ask(tool: str, **arguments: Any) -> dict[str, Any]:
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, result.structured_content
            return dict(result.structured_content)

        await ask("memory_index_scan")
        found = await ask("memory_search", query="how a quokka sleeps", limit=7, sessionId=SESSION)
        rows: list[dict[str, Any]] = found["data"]["results"]
        await ask("memory_search", key=rows[0]["key"], sessionId=SESSION)
        await client.read_resource(f"memory://{rows[1]['key']}")
        await ask("memory_validate", id=rows[2]["id"], wasUseful=True)
        await ask("memory_validate", id=rows[6]["id"], wasUseful=False)
        cited, linked = rows[3]["key"], rows[4]["key"]
        note = f"---\ncausalLinks:\n  derived_from: [{linked}]\n---\n# Of wallabies\n\nAs {cited} has it.\n"
        await ask("memory_save", content=note, filePath="docs/wallabies.md", force=True)
        await ask("memory_causal_link", sourceId="docs/wallabies.md", targetId=rows[5]["key"], relation="supports")
        return rows

    rows = with_client(workspace, work)
    with EvaluationDatabase.open(evaluation_file(workspace / "memory.db"), create=False) as database:
        uses = {(use.memory, use.use, use.rank) for use in database.uses()}
        [ignored] = database.ignored().values()
    wanted = [(0, "opened"), (1, "opened"), (2, "validated"), (3, "cited"), (4, "linked"), (5, "linked")]
    assert uses >= {(rows[at]["id"], use, at + 1) for at, use in wanted}
    assert {memory for memory, _, _ in uses} == {rows[at]["id"] for at, _ in wanted}
    assert ignored == (rows[6]["id"],)
