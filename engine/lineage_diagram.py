"""A lineage as a Mermaid flowchart (feature M8).

What documents say of themselves gets into labels alone, and of that only letters, digits and what `_PLAIN` names as
they are; every other character is written as its number (`#34;`), so that none of them means anything to Mermaid.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from speckit_memory.memory.indexing.limits import cut_at_word

if TYPE_CHECKING:
    from speckit_memory.engine.lineage import Lineage

LONGEST_LABEL = 80
"""Characters of a title and of a key."""
_PLAIN = frozenset(" .,-_/")


def flowchart(lineage: Lineage) -> str:
    """The lines of the diagram: a node for each memory, an arrow for each link, ended by a line break."""
    lines = ["flowchart LR"]
    for number, (key, title) in lineage.memories.items():
        named = label(key) if title in ("", key) else f"{label(title)}<br/>{label(key)}"
        lines.append(f'    m{number}["{named}"]')
    for step in lineage.steps:
        arrow = "-.->" if step.relation == "contradicts" else "-->"
        lines.append(f'    m{step.source_id} {arrow}|"{label(step.relation)} {step.strength:.2g}"| m{step.target_id}')
    lines.append("    classDef asked stroke-width:3px")
    lines.append(f"    class m{lineage.id} asked")
    return "\n".join(lines) + "\n"


def label(text: str) -> str:
    """A text within a quoted label."""
    shown = " ".join("".join(" " if unicodedata.category(sign)[0] in "CZ" else sign for sign in text).split())
    return "".join(
        sign if sign in _PLAIN or sign.isalnum() else f"#{ord(sign)};" for sign in cut_at_word(shown, LONGEST_LABEL)
    )
