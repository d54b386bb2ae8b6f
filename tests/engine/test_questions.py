"""What is refused before a search begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.engine import Memory
from speckit_memory.errors import SpeckitError


@pytest.mark.requirement("F7")
def test_nobody_can_ask_for_deprecated_memories(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m.db", root=tmp_path, environ={}) as memory:
        with pytest.raises(SpeckitError, match="no search finds deprecated memories") as refused:
            memory.search("fusion", tier="deprecated")
        assert refused.value.code == "E030"
        assert memory.search("fusion", tier="normal").results == ()
