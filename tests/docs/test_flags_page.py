"""`docs/flags.md` is executed: its story of a flag happens as it is told, on a store of 100 memories."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from speckit_memory.config.workspace.settings import workspace_root
from tests.server.doors import call

DOCS = workspace_root(Path(__file__).parent) / "docs"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MEMORIES = 100


@pytest.mark.requirement("P11.story")
@pytest.mark.usefixtures("exhaustive")
def test_a_flag_goes_from_off_to_permanent_as_the_page_tells(tmp_path: Path) -> None:
    for page in sorted(DOCS.rglob("*.md"), reverse=True)[:MEMORIES]:
        target = tmp_path / page.relative_to(DOCS.parent)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(page, target)
    assert f"{MEMORIES} created" in call(tmp_path, ["index", "docs"]).out
    ids: dict[str, str] = {}  # as the page has them, and as they are
    steps = "".join(BLOCK.findall((DOCS / "flags.md").read_text(encoding="utf-8"))).split("$ speckit-memory ")[1:]
    assert len(steps) == 9

    for step in steps:
        line, *shown = step.splitlines()
        ran = call(tmp_path, [ids.get(word, word) for word in shlex.split(line)])
        said = ran.out + ran.err
        for sentence in shown:
            if (kept := re.fullmatch(r"kept as (\w{12})", sentence)) is not None:
                ids[kept[1]] = re.findall(r"^kept as (\w{12})", said, re.MULTILINE)[0]
                continue
            told = re.sub(r"\b[0-9a-f]{12}\b", lambda found: ids.get(found[0], found[0]), sentence)
            assert told in said
