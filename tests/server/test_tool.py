from __future__ import annotations

from threading import get_ident

import anyio
import pytest

from speckit_memory.memory.models.embedders import counted_tokens
from speckit_memory.server.calls.tool import SpeckitTool
from speckit_memory.server.replies.envelope import Reply


@pytest.mark.requirement("T24")
def test_what_follows_a_reply_runs_in_the_thread_of_the_tool() -> None:
    called: list[tuple[str, int]] = []

    def memory_stats() -> Reply:
        """A tool."""
        called.append(("tool", get_ident()))
        return Reply("done", {}, after=lambda rows: called.append((f"after {len(rows)} rows", get_ident())))

    async def run() -> int:
        limiter = anyio.CapacityLimiter(1)
        definition = SpeckitTool.defined(memory_stats, read_only=True)
        tool = definition.bound(memory_stats, budget=800, limiter=limiter, count=counted_tokens)
        result = await tool.run({}, None)
        assert result.structured_content is not None
        assert result.structured_content["summary"] == "done"
        return get_ident()

    loop = anyio.run(run)

    assert [name for name, _ in called] == ["tool", "after 0 rows"]
    (thread,) = {thread for _, thread in called}
    assert thread != loop
