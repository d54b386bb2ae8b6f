"""The commands by name, read without importing their modules. `scripts/docs.py` writes it from the declarations."""

from __future__ import annotations

import json
from pathlib import Path

FILE = Path(__file__).with_suffix(".json")
_FOUND = json.loads(FILE.read_text(encoding="utf-8"))
MODULES: list[str] = _FOUND["modules"]
"""The modules of operations."""
COMMANDS: dict[str, list[str]] = _FOUND["commands"]
"""The module in `server`, the group and the first sentence of the help of each command."""
