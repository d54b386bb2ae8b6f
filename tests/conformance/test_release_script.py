"""The release script without its clients: what it says then, and that its list of scenarios is what people are told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.fetching import FASTMCP, PACKAGES
from tests.conformance.renaming import renamed
from tests.conformance.suite import Scenarios

ROOT = Path(__file__).parents[2]
TOLD = (ROOT / "RELEASING.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("client", ["inspector", "suite"])
@pytest.mark.usefixtures("processes")
def test_what_cannot_be_fetched_is_said_and_is_no_success(tmp_path: Path, client: str) -> None:
    command: list[str | Path] = [
        sys.executable,
        ROOT / "scripts" / "conformance",
        "--only",
        client,
        "--fetched",
        tmp_path / "clients",
    ]
    ran = subprocess.run(
        command, env={**os.environ, "PATH": str(tmp_path)}, capture_output=True, text=True, check=False, timeout=60
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "NOT RUN: the Inspector and the conformance suite cannot be fetched: there is no npm" in ran.stderr


def test_every_scenario_and_every_version_is_told_of() -> None:
    listed = Scenarios.load()
    kinds = (listed.direct, listed.http, listed.renamed, frozenset(listed.others))
    assert sum(map(len, kinds)) == len(listed.known)  # none of two kinds
    assert [name for name in sorted({*listed.known, *listed.excused}) if f"`{name}`" not in TOLD] == []
    versions = [FASTMCP, *(version.rpartition("@")[2] for version in PACKAGES.values())]
    assert [version for version in versions if version not in TOLD] == []


def test_only_what_the_suite_has_of_its_own_is_renamed() -> None:
    ours = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "memory_list", "arguments": {"limit": 2}},
    }
    assert renamed(ours) == ours
    theirs = {
        "id": 2,
        "method": "prompts/get",
        "params": {"name": "test_prompt_with_arguments", "arguments": {"arg1": "a"}},
    }
    assert renamed(theirs)["params"] == {"name": "remember", "arguments": {"topic": "a"}}
    read = {"id": 3, "method": "resources/read", "params": {"uri": "test://static-text", "_meta": {"kept": 1}}}
    assert renamed(read)["params"] == {"uri": "memory://notes/wal.md", "_meta": {"kept": 1}}
