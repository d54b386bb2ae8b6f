"""Agents at work: many clients at once on one store, over each transport, and nothing that was acknowledged is lost."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from agents import lost, over_http, over_stdio, sessions
from postgres_server import link_at

from tests.server.doors import COMMAND, call, environment
from tests.server.test_mcp_http import serving

pytestmark = pytest.mark.usefixtures("processes")


@pytest.mark.requirement("M1", "T28")
def test_eight_clients_of_one_server_over_http_lose_nothing(workspace: Path) -> None:
    with serving(workspace) as url:
        made = sessions(over_http(url), 8, 25, seed=1, name="h")
    assert made.errors == []
    assert len(made.seconds) == 200
    assert len(made.saved) > 20 and made.links and made.tasks and made.judged
    assert lost(workspace, made) == made.stale == []


@pytest.mark.requirement("M1")
def test_servers_on_one_store_in_postgresql_lose_nothing_and_find_what_others_saved(workspace: Path) -> None:
    store = workspace / "memory.db"
    store.unlink()
    link_at(store)
    call(workspace, ["index", "docs"]).ok()
    made = sessions(over_stdio(workspace), 4, 15, seed=3, name="p")
    assert made.errors == []
    assert len(made.saved) > 5 and made.links and made.tasks and made.judged
    assert lost(workspace, made) == made.stale == []


@pytest.mark.requirement("M1")
def test_servers_of_several_clients_over_stdio_and_an_index_run_beside_them_lose_nothing(workspace: Path) -> None:
    big = workspace / "big"
    big.mkdir()
    for number in range(300):
        (big / f"{number}.md").write_text(f"# Page {number}\n\nAbout subject{number} and no other.\n", encoding="utf-8")
    command = [str(COMMAND), "index", "big", "--json"]
    with subprocess.Popen(
        command, env=environment(workspace), cwd=workspace, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as run:
        made = sessions(over_stdio(workspace), 3, 18, seed=2, name="s")
        assert run.wait(120) == 0
    assert made.errors == []
    assert len(made.seconds) == 54
    assert lost(workspace, made) == made.stale == []
    assert len(list((workspace / "agents").rglob("*.md"))) == len(set(made.saved.values()))
