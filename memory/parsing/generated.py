"""Leaves out the section that `init` wrote into a file for agents: it explains the memory and is not project content.

Two marker lines enclose the section. Its lines are stored empty, so that lines keep their numbers; the file is not
changed, and the text around the section is remembered.
"""

from __future__ import annotations

BEGINS = "<!-- speckit-memory: kept by `speckit-memory init --write` -->"
ENDS = "<!-- /speckit-memory -->"
GENERATED = "generated"
IGNORED = f"{GENERATED}: only text that `init` wrote for agents"
"""The reason given for a document without any other text, which is not stored."""
RULES = 1
"""Raise this when the rules change, so that stores are read again."""


def leave_out(text: str) -> str:
    """Return the text with the lines of sections written by `init` emptied. An unclosed section stays."""
    if BEGINS not in text or ENDS not in text:
        return text
    lines = text.split("\n")
    begun: int | None = None
    for number, line in enumerate(lines):
        if line.strip() == BEGINS:
            begun = number
        elif begun is not None and line.strip() == ENDS:
            lines[begun : number + 1] = [""] * (number + 1 - begun)
            begun = None
    return "\n".join(lines)
