"""`docs/comparing.md` is executed: its command says the sentences that it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import judged_sets
import pytest

from speckit_memory.config.workspace.settings import workspace_root
from tests.server.doors import call

PAGE = (workspace_root(Path(__file__).parent) / "docs" / "comparing.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("shown", "topics"), [(0, 20), (1, 3)])
def test_the_command_says_what_the_page_shows(shown: int, topics: int, tmp_path: Path) -> None:
    judged_sets.titles(tmp_path / "DIR", by_title=topics, by_text=topics, by_mention=topics)
    (line,) = re.findall(r"^\.venv/bin/speckit-memory (.+)$", PAGE, re.MULTILINE)
    sentence = re.findall(r"^```text\n(.*?)\n```$", PAGE, re.DOTALL | re.MULTILINE)[shown]

    ran = call(tmp_path, shlex.split(line))

    assert sentence in ran.out.splitlines()
