"""Whole memories in the answer of a tool, as far as its token budget goes (feature R4)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from speckit_memory.engine.results import ResultRow
from speckit_memory.server import logs
from speckit_memory.server.envelope import TEXT_FIELD, Count
from speckit_memory.server.markdown import quoted
from speckit_memory.server.tools.row_text import search_row_text

BUDGET = 4000
"""Tokens of a search that asks for whole memories: what the catalogue allows a complex question."""
USED_FOR_ROWS = 0.9
"""Share of the budget that the rows may take; the rest is for the summary, hints and what frames them."""
LONGEST_TOKEN = 100
"""Characters that no token is longer than, a piece of many texts put together included."""
SAMPLE = 20_000
"""Characters of a text by which the number of its tokens is told when nothing depends on it."""
WORTHWHILE = 100
"""Tokens; a text that has to be cut shorter than this stays an excerpt."""


def put_whole(shown: list[dict[str, Any]], rows: Sequence[ResultRow], budget: int, count: Count) -> tuple[str, ...]:
    """Puts the whole text of memories in the place of their excerpts, from the best one down while there is room.

    The first that does not fit is cut at its end, those below stay excerpts; sections that were asked for by name stay
    what they are. Returns what to say about that.
    """

    def tokens(text: str) -> int:
        return count([quoted(text)])[0]

    wanted = [(at, row.content) for at, row in enumerate(rows) if row.content and not _sections(shown[at])]
    if not wanted:
        return ()
    room = int(budget * USED_FOR_ROWS) - sum(count([search_row_text(at, row) for at, row in enumerate(shown, 1)]))
    whole = 0
    for at, content in wanted:
        excerpt = shown[at].get(TEXT_FIELD, "")
        fitting = _cut(content, room + tokens(excerpt), tokens)
        if len(fitting) <= len(excerpt) and fitting != content:
            break
        shown[at][TEXT_FIELD] = fitting
        room -= tokens(fitting) - tokens(excerpt)
        if fitting != content:
            break
        whole += 1
    if whole == len(wanted):
        return ()
    logs.overflowed("content", len(wanted), whole, sum(_about(text, tokens) for _, text in wanted), budget)
    return (
        f"{whole} of {len(wanted)} memories are whole, to stay within {budget} tokens; ask for fewer, or by anchors",
    )


def _sections(shown: Mapping[str, Any]) -> bool:
    return "sections" in shown.get("notes", {})


def _cut(text: str, room: int, tokens: Callable[[str], int]) -> str:
    """The text, or as much of its beginning as takes `room` tokens; empty where that is hardly anything."""
    text = text[: max(room, 0) * LONGEST_TOKEN + 1]  # what is longer has more tokens, and takes long to count
    if tokens(text) <= room:
        return text
    cut = text
    while tokens(cut) > room >= WORTHWHILE:
        cut = text[: min(len(cut) - 2, len(cut) * room // tokens(cut))].rstrip() + "…"
    return cut if room >= WORTHWHILE else ""


def _about(text: str, tokens: Callable[[str], int]) -> int:
    """About how many tokens a text has."""
    sample = text[:SAMPLE]
    return tokens(sample) * len(text) // max(len(sample), 1)
