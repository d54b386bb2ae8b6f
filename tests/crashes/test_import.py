"""An import that crashes anywhere has happened or not, and the next one goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from crashing import every_point

from tests.attacks.fuzz.living import opened

OLD, NEW = "# Fusion\n\nScores cannot be compared.\n", "# Fusion\n\nRanks are compared instead.\n"
KEY = "docs/fusion.md"


@pytest.mark.requirement("M14", "M14.whole")
@pytest.mark.usefixtures("exhaustive")
def test_wherever_it_crashes_the_store_is_as_before_or_as_imported(tmp_path: Path) -> None:
    origin, root, out = tmp_path / "origin", tmp_path / "root", tmp_path / "out"
    (origin / KEY).parent.mkdir(parents=True)
    (origin / KEY).write_text(OLD)
    with opened(origin) as memory:
        memory.index([origin / "docs"])
        before = memory.get(KEY).content_hash
        memory.exchange.export(out)
    (out / "memories" / KEY).write_text(NEW)

    def bring() -> None:
        with opened(root) as memory:
            memory.exchange.import_from(out, replace=True)

    hashes = []
    for crash in every_point(origin, root, bring):
        assert (root / KEY).read_text() in (OLD, NEW), crash
        with opened(root) as memory:
            assert memory.lifecycle.check() == (), crash
            hashes.append(memory.get(KEY).content_hash)
            memory.exchange.import_from(out, replace=True)
            assert memory.lifecycle.check() == (), crash
            assert memory.index([root / "docs"]).unchanged == [KEY], crash
        assert (root / KEY).read_text() == NEW, crash
        assert list((root / "memory.db.checkpoints").glob("*.partial*")) == [], crash
    with opened(root) as memory:
        assert set(hashes) == {before, memory.get(KEY).content_hash}
