"""The pages on measuring are executed where they say they work: in a workspace with documents of its own."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import judged_sets
import pytest
import yaml
from files import write_file

from speckit_memory.config.workspace.settings import workspace_root
from tests.server.doors import COMMAND, environment, script

pytestmark = pytest.mark.usefixtures("processes")

DOCS = workspace_root(Path(__file__).parent) / "docs"


def fenced(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


def sh(root: Path, line: str, **env: str) -> subprocess.CompletedProcess[str]:
    found = write_file(root / "bin" / COMMAND.name, f'#!/bin/sh\nexec {shlex.join(script(environment(root)))} "$@"\n')
    found.chmod(0o755)
    environ = environment(root, SPECKIT_DB="", PATH=f"{found.parent}{os.pathsep}{os.environ['PATH']}", **env)
    return subprocess.run(
        ["sh", "-c", line], cwd=root, env=environ, check=False, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=300,
    )  # fmt: skip


def test_every_command_on_ones_own_memories_runs_as_it_stands(tmp_path: Path) -> None:
    (tmp_path / ".speckit").mkdir()
    (tmp_path / "docs").mkdir()
    for page in sorted(DOCS.glob("decisions/00[12]*.md")):
        shutil.copy(page, tmp_path / "docs")
    assert sh(tmp_path, "speckit-memory index docs").returncode == 0
    lines = [line for text in fenced("evaluation.md", "sh") for line in text.splitlines()]
    assert len(lines) >= 6
    for line in lines:
        done = sh(tmp_path, line)
        assert done.returncode == 0, line + done.stdout + done.stderr


@pytest.mark.requirement("E8.regression")
def test_the_workflow_stops_a_pull_request_that_makes_search_worse(tmp_path: Path) -> None:
    (text,) = fenced("gate.md", "yaml")
    workflow: Mapping[Any, Any] = yaml.safe_load(text)
    assert workflow[True] == "pull_request"  # YAML 1.1 reads "on" as a boolean, and so do the actions' own schemas
    steps = workflow["jobs"]["gate"]["steps"]
    assert steps[0]["with"]["fetch-depth"] == 0
    (gate,) = [step["run"] for step in steps if str(step.get("run")).startswith("speckit-memory")]
    judged_sets.titles(tmp_path / "search-queries", by_mention=32)
    (tmp_path / ".speckit").mkdir()
    (tmp_path / ".speckit" / "pipeline.yaml").write_text("pipeline: mine\nextends: bm25\n")
    name = "-c user.name=somebody -c user.email=somebody@example.org"
    made = sh(tmp_path, f"git init -q && git add .speckit && git {name} commit -qm one && "
                        "git update-ref refs/remotes/origin/main HEAD")  # fmt: skip
    assert made.returncode == 0, made.stderr
    same = sh(tmp_path, gate, BASE="main", GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"))
    assert same.returncode == 0, same.stdout + same.stderr
    assert (tmp_path / "gate.md").read_text().startswith("### Retrieval gate passed")
    assert (tmp_path / "summary.md").read_text() == (tmp_path / "gate.md").read_text()
    (tmp_path / ".speckit" / "pipeline.yaml").write_text("pipeline: mine\nextends: vector\n")
    worse = sh(tmp_path, gate, BASE="main")
    assert worse.returncode == 1, worse.stdout + worse.stderr
    assert (tmp_path / "gate.md").read_text().startswith("### Retrieval gate failed")
