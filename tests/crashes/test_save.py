"""A text that becomes a document and a memory: wherever that crashes, the file is whole and the memory follows."""

from __future__ import annotations

import os
import time
from pathlib import Path
from unittest.mock import patch

import pytest
from crashing import every_point

from tests.attacks.fuzz.living import opened

OLD, NEW, NEXT = "docs/old.md", "docs/new.md", "docs/next.md"
TEXTS = {
    OLD: "# Cache of answers\n\nThe cache of answers lives in Redis, kept for one hour by every worker.\n",
    NEW: "# Cache of answers\n\nThe cache of answers no longer lives in Redis, kept for one hour by every worker.\n",
    NEXT: "# Cats\n\nCats sleep in the sun.\n",
}
BEGINS = 1_900_000_000.0
LATER = 2 * 3600.0
"""Seconds after which whoever wrote is known to be gone, and a judgement of a memory is due."""


@pytest.mark.requirement("M6.killed", "M6.supersede")
@pytest.mark.usefixtures("exhaustive")
def test_wherever_it_crashes_the_file_is_whole_and_the_verdict_is_reached(tmp_path: Path) -> None:
    origin, root, now = tmp_path / "origin", tmp_path / "root", BEGINS
    with patch.object(time, "time", lambda: now):
        with opened(origin) as memory:
            memory.documents.write(TEXTS[OLD], path=OLD)

        def write() -> None:
            with opened(root) as memory:
                memory.documents.write(TEXTS[NEW], path=NEW)

        reached = []
        for crash in every_point(origin, root, write):
            there = (root / NEW).exists()
            with opened(root) as memory:
                assert memory.lifecycle.check() == (), crash
                keys = {one.key for one in memory.list(limit=10)[0]}
                assert keys == {OLD} or (keys == {OLD, NEW} and there), crash
                reached.append((there, NEW in keys, len(memory.graph.lineage(OLD, depth=1).steps)))
                now += LATER
                if there:
                    memory.documents.save(root / NEW)
                else:
                    memory.documents.write(TEXTS[NEW], path=NEW)
                for left in (root / "docs").glob(".*"):
                    os.utime(left, (0, 0))
                memory.documents.write(TEXTS[NEXT], path=NEXT)
                memory.lifecycle.maintain()
                [edge] = memory.graph.lineage(OLD, depth=1).steps
                assert (edge.relation, edge.source) == ("supersedes", NEW), crash
                assert memory.lifecycle.check() == (), crash
            now = BEGINS
            texts = {f"docs/{file.name}": file.read_text() for file in (root / "docs").iterdir()}
            assert {key: text.rpartition("---\n")[2] for key, text in texts.items()} == TEXTS, crash
        assert set(reached) == {(False, False, 0), (True, False, 0), (True, True, 0), (True, True, 1)}
