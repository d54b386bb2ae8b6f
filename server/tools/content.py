"""The longest texts that the token budget of an answer has room for (features R4 and A6)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from speckit_memory.engine.answers.results import ResultRow
from speckit_memory.memory.editing.sections import parts
from speckit_memory.server.console.markdown import quoted
from speckit_memory.server.logging import logs
from speckit_memory.server.replies.envelope import TEXT_FIELD, Count
from speckit_memory.server.views.rows.row_text import search_row_text

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
_PLACE = 60
"""Characters of a passage by which its place in the whole text is found."""


def lengthen(shown: list[dict[str, Any]], rows: Sequence[ResultRow], budget: int, count: Count) -> tuple[str, ...]:
    """Puts longer texts in the place of excerpts, from the best row down while there is room: the whole passage or,
    where whole memories are asked for, all of the memory, else the section around the passage, else the text from the
    passage on, cut at its end.

    Sections that were asked for by name stay what they are, and so does the line of what was sent before. Returns what
    to say about memories that are not whole.
    """

    def tokens(text: str) -> int:
        return count([quoted(text)])[0]

    room = int(budget * USED_FOR_ROWS) - sum(count([search_row_text(at, row) for at, row in enumerate(shown, 1)]))
    if room < 0:  # the rows will say less then
        brief = [search_row_text(at, row, "none") for at, row in enumerate(shown, 1)]
        room = int(budget * USED_FOR_ROWS) - sum(count(brief))
    wanted = whole = 0
    for each, row in zip(shown, rows, strict=True):
        if TEXT_FIELD not in each or _sections(each):
            continue
        wanted += bool(row.content)
        if room < WORTHWHILE and not row.content:
            continue
        excerpt = each[TEXT_FIELD]
        taken = tokens(excerpt)
        longer = next(_fitting(row, excerpt, room + taken, tokens), excerpt)
        each[TEXT_FIELD] = longer
        room -= tokens(longer) - taken
        whole += longer == row.content != ""
    if whole == wanted:
        return ()
    logs.overflowed("content", wanted, whole, sum(_about(row.content, tokens) for row in rows if row.content), budget)
    return (f"{whole} of {wanted} memories are whole, to stay within {budget} tokens; ask for fewer, or by anchors",)


def _sections(shown: Mapping[str, Any]) -> bool:
    return "sections" in shown.get("notes", {})


def _fitting(row: ResultRow, excerpt: str, room: int, tokens: Callable[[str], int]) -> Iterator[str]:
    """The texts of a row that are longer than its excerpt and take at most `room` tokens, the best one first."""
    texts = (row.content, *(_section(row) if row.content else ()), row.passage)
    for text in texts:
        # what has more characters has more tokens, and takes long to count
        if len(excerpt) < len(text) <= max(room, 0) * LONGEST_TOKEN and tokens(text) <= room:
            yield text
    at = row.content.find(row.passage[:_PLACE])
    cut = _cut(row.content[max(at, 0) :], room, tokens) if row.content else ""
    if len(cut) > len(excerpt):
        yield cut


def _section(row: ResultRow) -> Iterator[str]:
    """The section of a whole text that its passage stands in."""
    for part in parts(row.content):
        if part.path == row.heading:
            yield row.content[part.start : part.end].strip("\n")
            return


def _cut(text: str, room: int, tokens: Callable[[str], int]) -> str:
    """As much of the beginning of a text as takes `room` tokens; empty where that is hardly anything."""
    cut = text = text[: max(room, 0) * LONGEST_TOKEN + 1]
    while tokens(cut) > room >= WORTHWHILE:
        cut = text[: min(len(cut) - 2, len(cut) * room // tokens(cut))].rstrip() + "…"
    return cut if room >= WORTHWHILE else ""


def _about(text: str, tokens: Callable[[str], int]) -> int:
    """About how many tokens a text has."""
    sample = text[:SAMPLE]
    return tokens(sample) * len(text) // max(len(sample), 1)
