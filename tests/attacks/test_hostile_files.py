"""A folder of a hundred hostile files; `scripts/soak --files 10000` tries ten thousand."""

from __future__ import annotations

from pathlib import Path

import pytest
from tally import Tally

from speckit_memory.config.workspace.settings import workspace_root
from tests.attacks.fuzz.files import seeds, tried

DOCS = workspace_root(Path(__file__).parent) / "docs"
FILES = 100


@pytest.mark.timeout(1200)
@pytest.mark.requirement("I8")
@pytest.mark.usefixtures("processes")
def test_hostile_files_are_memories_or_refused_with_their_reason(tmp_path: Path, tally: Tally) -> None:
    figures = tried(tmp_path, FILES, 11, seeds(DOCS))

    assert figures.broken == []
    assert figures.memories + figures.aliases + figures.refused + figures.moving == FILES
    assert min(figures.memories, figures.refused, figures.moving) > 0
    tally.tried(FILES)
