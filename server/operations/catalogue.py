"""The commands by name, and where tools are declared, read without importing what declares them.

`scripts/docs.py` writes it.
"""

from __future__ import annotations

import json
from pathlib import Path

FILE = Path(__file__).with_suffix(".json")
_FOUND = json.loads(FILE.read_text(encoding="utf-8"))
TOOL_MODULES: list[str] = _FOUND["tools"]
"""The modules with operations that are tools."""
COMMANDS: dict[str, list[str]] = _FOUND["commands"]
"""The module in `server`, the group and the first sentence of the help of each command."""
