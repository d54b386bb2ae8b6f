"""A server that starts with files that cannot be used: the shipped pipeline answers, and every answer says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from speckit_memory.config.workspace.settings import CONFIG_FILE, FLAGS_FILE, PIPELINE_FILE
from tests.server.doors import call, with_client

pytestmark = pytest.mark.requirement("P2.at_start")
BROKEN: dict[str, tuple[Path, str | bytes, str]] = {
    "no YAML": (PIPELINE_FILE, "fusion: [{use: rrf\n", "pipeline.yaml:"),
    "nothing": (PIPELINE_FILE, "- one\n- two\n", "pipeline.yaml:1:1"),
    "unknown key": (PIPELINE_FILE, "pipeline: ours\nfusoin: []\n", "pipeline.yaml:2:1: E115"),
    "unknown step": (PIPELINE_FILE, "extends: default\nrerank: [nothing_like_it]\n", "pipeline.yaml:2:10: E116"),
    "unknown parameter": (PIPELINE_FILE, "extends: default\nannotate: [{use: gap, kk: 1}]\n", "pipeline.yaml:2:"),
    "extends what is not there": (PIPELINE_FILE, "extends: theirs.yaml\n", "theirs.yaml"),
    "no UTF-8": (PIPELINE_FILE, b"\xff\xfe\x00", "pipeline.yaml"),
    "flags": (FLAGS_FILE, "flags:\n  SPECKIT_RRF: {state: maybe}\n", "flags.yaml:2:"),
}


async def answers(client: Client) -> tuple[list[Any], Any]:
    """The hints of a search, of the same once more and of a context, and the health report."""
    hints = []
    for tool, words in (("memory_search", "query"), ("memory_search", "query"), ("memory_context", "input")):
        found = (await client.call_tool(tool, {words: "why rank fusion"})).structured_content
        assert found is not None and found["data"]["results"], found
        hints.append([hint for hint in found["hints"] if "configuration" in hint])
    health = await client.call_tool("memory_health")
    assert health.structured_content is not None
    return hints, health.structured_content


@pytest.mark.parametrize("what", BROKEN)
def test_the_shipped_pipeline_answers_and_says_so_until_the_file_is_mended(workspace: Path, what: str) -> None:
    name, text, told = BROKEN[what]
    file = workspace / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())

    async def session(client: Client) -> Any:
        broken = await answers(client)
        file.write_text("pipeline: bm25\nextends: bm25\n" if name == PIPELINE_FILE else "flags: {}\n", encoding="utf-8")
        return broken, await answers(client)

    (broken_hints, broken), (hints, health) = with_client(workspace, session, "--no-warm-up")

    for [hint] in broken_hints:
        assert hint.startswith("the configuration cannot be used: ") and told in hint
        assert "until that is fixed, the shipped 'default' (" in hint
    assert not broken["data"]["ok"]
    assert broken["summary"].startswith("problems with ") and "pipeline" in broken["summary"]
    [pipeline] = [check for check in broken["data"]["checks"] if check["name"] == "pipeline"]
    assert told in pipeline["detail"] and "the shipped default" in pipeline["detail"]
    assert hints == [[], [], []]
    assert health["data"]["ok"]
    served = next(check["detail"] for check in health["data"]["checks"] if check["name"] == "pipeline")
    assert served.startswith("'bm25' (" if name == PIPELINE_FILE else "'default' (")


def test_a_pipeline_of_the_environment_that_is_not_there_is_stood_in_for(workspace: Path) -> None:
    hints, health = with_client(workspace, answers, "--no-warm-up", SPECKIT_PIPELINE=str(workspace / "gone.yaml"))
    assert all("gone.yaml" in hint for [hint] in hints)
    assert not health["data"]["ok"]


@pytest.mark.parametrize("arguments", [["--pipeline", "gone.yaml"], ["--set", "mmr.lamda=0.5"]])
def test_what_the_command_line_of_the_server_names_wrongly_ends_it(workspace: Path, arguments: list[str]) -> None:
    assert call(workspace, ["serve", *arguments]).status == 2


def test_wrong_rules_of_what_is_remembered_are_stood_in_for_by_none(workspace: Path) -> None:
    (workspace / CONFIG_FILE).parent.mkdir(exist_ok=True)
    (workspace / CONFIG_FILE).write_text("sources: {exlude: [secret/]}\n", encoding="utf-8")
    assert "did you mean 'exclude'?" in call(workspace, ["serve"]).ended(2).err


@pytest.mark.parametrize(
    "command",
    ["list", "stats", "show docs/fusion.md", "save docs/fusion.md", "index docs", "export away"],
)
def test_commands_that_run_no_pipeline_work_and_warn(workspace: Path, command: str) -> None:
    (workspace / PIPELINE_FILE).parent.mkdir(exist_ok=True)
    (workspace / PIPELINE_FILE).write_text("extends: default\nrerank: [nothing_like_it]\n", encoding="utf-8")

    warned = call(workspace, command.split()).ok().err

    assert warned.startswith("warning: ") and "pipeline.yaml:2:10: E116" in " ".join(warned.split())
    call(workspace, ["search", "why rank fusion"]).ended(2)
