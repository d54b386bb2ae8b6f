"""What is refused before a search begins."""

from __future__ import annotations

from pathlib import Path

import pytest
from answered import refused

from speckit_memory.engine import Memory


@pytest.mark.requirement("F7")
def test_nobody_can_ask_for_deprecated_memories(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m.db", root=tmp_path, environ={}) as memory:
        with refused("E030", match="no search finds deprecated memories"):
            memory.search("fusion", tier="deprecated")
        assert memory.search("fusion", tier="normal").results == ()
