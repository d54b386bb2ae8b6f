"""Rules that the product has once, because a second copy of each has said something else before."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("config", "pipeline", "channels", "signals", "stages", "memory", "engine", "evaluation", "server",
         "src/speckit_memory/errors")  # fmt: skip

DEFINITIONS = {
    "the matched passage of a row": (r"np\.where\([^()]*passages\s*(>=|<)\s*0", "pipeline/arithmetic/__init__.py"),
    "the rarity of a word": (r"np\.log\([^\n]*\+ 0\.5", "pipeline/arithmetic/__init__.py"),
    "the last event of a memory": (r'"last_review",\s*"last_accessed"', "memory/lifecycle/fsrs.py"),
    "the state of a memory": (r"states\(recalled|def states\(\s*recalled", "memory/lifecycle/states.py"),
}


@pytest.mark.parametrize("what", DEFINITIONS)
def test_one_module_says_how_it_is_found(what: str) -> None:
    pattern, home = DEFINITIONS[what]
    sources = [file for room in ROOMS for file in (ROOT / room).rglob("*.py")]

    said = {str(file.relative_to(ROOT)) for file in sources if re.search(pattern, file.read_text(encoding="utf-8"))}

    assert said == {home}
