"""What `init` wrote into a file for agents is no memory: it says how to use the memory, in words of every project.

The section stands between two lines that mark it. Its lines become empty ones, so that lines keep their numbers; the
file stays as it is, and what people wrote around it is remembered.
"""

from __future__ import annotations

BEGINS = "<!-- speckit-memory: kept by `speckit-memory init --write` -->"
ENDS = "<!-- /speckit-memory -->"
GENERATED = "generated"
IGNORED = f"{GENERATED}: nothing but what `init` wrote for agents"
"""Why a document of nothing else makes no memory."""
RULES = 1
"""Raise it when other text is left out, so that stores are read again."""


def leave_out(text: str) -> str:
    """The text without sections that `init` wrote, with as many lines. One that does not end is left as it is."""
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
