"""The files of the extension that docs/extending.md shows."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "extending.md"
NAMED = re.compile(r"^`([\w./]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def files() -> dict[str, str]:
    """The text of each file by its name: the blocks that stand below a name."""
    return dict(NAMED.findall(PAGE.read_text(encoding="utf-8")))


def written(folder: Path) -> Path:
    """The files in a folder, which is returned."""
    for name, text in files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder
