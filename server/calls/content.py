"""Fills an answer's token budget with the longest texts that fit (features R4 and A6)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from speckit_memory.engine.answers.results import ResultRow
from speckit_memory.memory.editing.sections import parts
from speckit_memory.server.console.markdown import TEXT_FIELD, quote_text
from speckit_memory.server.logging import logs
from speckit_memory.server.replies.envelope import Count
from speckit_memory.server.views.rows.row_text import SearchRows

BUDGET = 4000
"""Token budget of a search for whole memories, that of a complex question in the catalogue."""
USED_FOR_ROWS = 0.9
"""Share of the budget for rows; the rest is for summary, hints and markup."""
LONGEST_TOKEN = 100
"""Upper bound on the characters of a token."""
SAMPLE = 20_000
"""Characters from which the number of tokens of a long text is estimated, for the log only."""
WORTHWHILE = 100
"""Tokens; a text that would be cut shorter than this stays an excerpt."""
_PLACE = 60
"""Characters of a passage used to find it in the whole text."""


def lengthen(
    shown: list[dict[str, Any]], rows: Sequence[ResultRow], rendered: SearchRows, budget: int, count: Count
) -> tuple[str, ...]:
    """Replaces excerpts by longer texts, best row first, while the budget lasts.

    The longer text is the whole passage; if whole memories are requested, the memory, else the section around the
    passage, else the text from the passage on, cut at its end. Sections requested by name, and lines for memories sent
    before, do not change.

    Args:
        shown: The rows of the answer; changed in place.
        rows: The corresponding results, with the texts.
        rendered: The rows as Markdown.
        budget: Token budget of the answer.
        count: Counts tokens.

    Returns:
        Hints on memories that are not whole.
    """

    @cache
    def tokens(text: str) -> int:
        return count([quote_text(text)])[0]

    # room: tokens left after rendering all rows with their excerpts
    room = int(budget * USED_FOR_ROWS) - sum(count([rendered.text(at, row) for at, row in enumerate(shown, 1)]))
    if room < 0:  # over budget: the rows will be rendered briefly
        brief = [rendered.text(at, row, brief=True) for at, row in enumerate(shown, 1)]
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
        # the excerpt's tokens are already part of the rows
        room -= tokens(longer) - taken
        whole += longer == row.content != ""
    if whole == wanted:
        return ()
    logs.log_overflow("content", wanted, whole, sum(_about(row.content, tokens) for row in rows if row.content), budget)
    return (f"{whole} of {wanted} memories are whole, to stay within {budget} tokens; ask for fewer, or by anchors",)


def _sections(shown: Mapping[str, Any]) -> bool:
    return "sections" in shown.get("notes", {})


def _fitting(row: ResultRow, excerpt: str, room: int, tokens: Callable[[str], int]) -> Iterator[str]:
    """Yields the texts of a row that are longer than its excerpt and take at most `room` tokens, best first."""
    texts = (row.content, *(_section(row) if row.content else ()), row.passage)
    for text in texts:
        # texts with more characters cannot fit, and counting their tokens is slow
        if len(excerpt) < len(text) <= max(room, 0) * LONGEST_TOKEN and tokens(text) <= room:
            yield text
    at = row.content.find(row.passage[:_PLACE])
    cut = _cut(row.content[max(at, 0) :], room, tokens) if row.content else ""
    if len(cut) > len(excerpt):
        yield cut


def _section(row: ResultRow) -> Iterator[str]:
    """Yields the section of the whole text that contains the passage, if any."""
    for part in parts(row.content):
        if part.path == row.heading:
            yield row.content[part.start : part.end].strip("\n")
            return


def _cut(text: str, room: int, tokens: Callable[[str], int]) -> str:
    """The beginning of a text cut to `room` tokens; "" below `WORTHWHILE` tokens."""
    cut = text = text[: max(room, 0) * LONGEST_TOKEN + 1]
    while tokens(cut) > room >= WORTHWHILE:
        # next guess by the ratio of tokens; at least two characters less, so that the loop ends
        cut = text[: min(len(cut) - 2, len(cut) * room // tokens(cut))].rstrip() + "…"
    return cut if room >= WORTHWHILE else ""


def _about(text: str, tokens: Callable[[str], int]) -> int:
    """Estimates the number of tokens of a text."""
    sample = text[:SAMPLE]
    return tokens(sample) * len(text) // max(len(sample), 1)
