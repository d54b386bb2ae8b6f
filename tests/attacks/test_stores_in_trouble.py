"""A store that goes, is damaged or may only be read while a server has it open: what each tool says, and afterwards."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from raw_server import RawServer, raw_server
from tally import Tally

from tests.attacks.test_full_disk import WRITING, keys, on_small_disk
from tests.attacks.test_tools import USUAL

pytestmark = pytest.mark.usefixtures("processes")

TOOLS = {tool: WRITING.get(tool, usual) for tool, usual in USUAL.items()} | {
    "checkpoint_restore": {"name": "kept"},
    "memory_delete": {"id": "docs/tone.md", "dryRun": True},
}
MAKING = {"memory_save", "memory_index_scan", "task_preflight"}
"""Tools that make a store where there is none."""
Back = Callable[[], object]


def refusals(server: RawServer, tools: Mapping[str, object], tally: Tally) -> dict[str, str]:
    """The codes of refused calls. Each says what to do, and none is a defect."""
    refused = {}
    for tool, arguments in tools.items():
        result = server.call(f"{tool} {os.urandom(4).hex()}", tool, arguments)  # type: ignore[arg-type]
        if result.get("isError"):
            error = result["structuredContent"]["error"]
            assert error["hint"], error
            assert error["actions"], error
            refused[tool] = error["code"]
        tally.survived()
    return refused


def gone(root: Path) -> Back:
    """The store with all that lies beside it."""
    away = root.parent / "away"
    away.mkdir()
    for file in root.glob("memory.db*"):
        file.rename(away / file.name)
    return lambda: [file.rename(root / file.name) for file in away.iterdir()]


def root_gone(root: Path) -> Back:
    """The whole workspace, as when a disk is taken away."""
    away = root.rename(root.parent / "away")
    return lambda: away.rename(root)


def damaged(root: Path) -> Back:
    """Everything but the first page."""
    store = root / "memory.db"
    before = store.read_bytes()
    store.write_bytes(before[:4096] + bytes(len(before) - 4096))
    return lambda: store.write_bytes(before)


@pytest.mark.requirement("T26.disk")
@pytest.mark.parametrize(("trouble", "code"), [(gone, "E010"), (root_gone, "E010"), (damaged, "E024")])
def test_every_tool_says_what_is_wrong_and_serves_the_store_that_is_back(
    unasked: Path, tmp_path: Path, tally: Tally, trouble: Callable[[Path], Back], code: str
) -> None:
    root = Path(shutil.copytree(unasked, tmp_path / "workspace"))
    with raw_server(root, "--no-warm-up") as server:
        server.start()
        assert not server.call("kept", "checkpoint_create", {"name": "kept"}).get("isError")
        before = keys(server)
        others = MAKING if trouble is gone else {"checkpoint_delete"} if trouble is damaged else set()
        tools = {tool: arguments for tool, arguments in TOOLS.items() if tool not in others}

        back = trouble(root)
        refused = refusals(server, tools, tally)
        assert {"memory_search", "memory_list", "memory_update", "memory_match_triggers"} <= refused.keys()
        assert set(refused.values()) <= {code, "E060"}
        assert (root / "memory.db").exists() is (trouble is damaged)
        assert root.exists() is (trouble is not root_gone)
        back()
        assert keys(server) == before
        assert refusals(server, TOOLS, tally) == {}
        assert server.call("health", "memory_health")["structuredContent"]["data"]["ok"]


@pytest.mark.requirement("T26.disk")
def test_every_tool_that_reads_answers_where_nothing_can_be_written(
    unasked: Path, tmp_path: Path, tally: Tally
) -> None:
    root = Path(shutil.copytree(unasked, tmp_path / "workspace"))
    with on_small_disk(root, writable=False) as (server, _):
        server.start()
        refused = refusals(server, TOOLS, tally)
        reading = {
            "memory_context",
            "memory_search",
            "memory_list",
            "memory_stats",
            "memory_health",
            "memory_drift_why",
        }
        assert not reading & refused.keys()
        assert set(refused.values()) <= {"E020", "E060", "E062", "E101"}
        assert {"memory_save", "memory_update", "memory_validate", "memory_causal_link"} <= refused.keys()
        assert len(keys(server)) == 6
