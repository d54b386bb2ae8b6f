"""The answer of every tool: one envelope, as structured content and as short Markdown, within its token budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp_types import CallToolResult, TextContent

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import LISTED
from speckit_memory.errors.names import sendable, shown
from speckit_memory.server import logs
from speckit_memory.server.failures import internal
from speckit_memory.server.markdown import fields, one_line

SHORT_TEXT = 500
"""Texts are cut to this many characters before any row is dropped."""
MIN_TEXT = 80
RESERVED_FOR_HINT = 40
"""Tokens for the sentence that says how many rows were left out."""
TEXT_FIELD = "memory_text"
"""The field that holds stored text. Its name tells a client what is data, whatever the text itself says."""

SCHEMA: dict[str, Any] = {"type": "object", "required": ["summary", "data", "hints", "meta"]}
"""What clients may rely on. Kept small, because it stands in every tool's definition."""

Count = Callable[[Sequence[str]], list[int]]
"""How many tokens each text has."""


def _listed(_number: int, row: dict[str, Any]) -> str:
    return f"- {fields(row)}"


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool has to say. `rows` names the list in `data` that may be shortened, best rows first."""

    summary: str
    data: dict[str, Any]
    hints: tuple[str, ...] = ()
    degraded: tuple[dict[str, str], ...] = ()
    rows: str = ""
    budget: int = 0
    """Tokens of the text; 0 leaves the choice to the tool's layer."""
    whole_texts: bool = False
    """Whether the lowest rows are dropped before any text is cut: few whole texts tell more than many beginnings."""
    facts: str = ""
    """What the text says of `data` beside the rows, in a line; stored text in it must be safe (`server.markdown`)."""
    row_text: Callable[[int, dict[str, Any]], str] = _listed
    """The Markdown of a row and its number from 1."""
    hint_of_count: Callable[[int], str] | None = None
    """A further hint that depends on how many rows are shown; empty for none."""
    after: Callable[[int], None] | None = None
    """Called with the number of rows shown, once it is known, in the thread that builds the envelope."""


@dataclass(slots=True)
class _Draft:
    """An envelope on its way into its budget."""

    reply: Reply
    rows: list[dict[str, Any]]
    hints: list[str] = field(default_factory=list)

    def summary(self) -> str:
        total = len(self.reply.data.get(self.reply.rows, []))
        cut = f"; {len(self.rows)} of {total} {self.reply.rows} shown" if len(self.rows) < total else ""
        return self.reply.summary + cut

    def all_hints(self) -> list[str]:
        of_count = self.reply.hint_of_count
        further = [hint for hint in [of_count(len(self.rows))] if hint] if of_count else []
        return [*self.reply.hints, *further, *self.hints]

    def document(self, meta: dict[str, Any]) -> dict[str, Any]:
        data = self.reply.data
        if self.reply.rows:
            data = {**data, "count": len(self.rows), self.reply.rows: self.rows}
        # whatever a name or a message holds: what a client cannot read would end the connection
        whole = {"summary": self.summary(), "data": data, "hints": self.all_hints(), "meta": meta}
        return {name: sendable(part) for name, part in whole.items()}

    def row_texts(self) -> list[str]:
        return [shown(self.reply.row_text(number, row)) for number, row in enumerate(self.rows, start=1)]

    def text(self) -> str:
        notes = [f"Note: {one_line(hint)}" for hint in self.all_hints()]
        notes += [
            f"Degraded: {one_line(part['part'])} did not take part ({one_line(part['reason'])}); instead: "
            f"{one_line(part['instead'])}; loss of confidence: {part['confidence_impact']}"
            for part in self.reply.degraded
        ]
        head = [f"# {one_line(self.reply.summary)}", self.reply.facts]
        # a blank line, without which the notes would be part of a list or quotation above them
        blocks = ["\n".join(filter(None, [*head, *self.row_texts()])), "\n".join(notes)]
        return shown("\n\n".join(filter(None, blocks)))


def success(reply: Reply, tool: str, budget: int, latency_ms: float, count: Count) -> CallToolResult:
    """The envelope of a reply, its text shortened to the budget; the hints say what was left out.

    Rows that the text leaves out, or cuts, are left out and cut in the structured content as well.
    """
    budget = reply.budget or budget
    draft = _Draft(reply, [dict(row) for row in reply.data.get(reply.rows, [])])
    rows, wanted = len(draft.rows), count([draft.text()])[0]
    text, tokens = _fitted(draft, budget, count) if wanted > budget else (draft.text(), wanted)
    if wanted > budget:
        logs.overflowed(tool, rows, len(draft.rows), wanted, budget)
    meta = {
        "tool": tool,
        "token_count": tokens,
        "token_budget": budget,
        "latency_ms": round(latency_ms, 1),
        "cache_hit": False,
        "degraded": list(reply.degraded),
    }
    if reply.after:
        _afterwards(reply.after, len(draft.rows))
    return CallToolResult(content=[TextContent(text=text)], structured_content=draft.document(meta))


def _afterwards(work: Callable[[int], None], shown_rows: int) -> None:
    """What is done for the sake of later calls must not cost this one its answer."""
    try:
        work(shown_rows)
    except BaseException as error:  # of a store or of a component's library
        logs.event("not noted", problems=[str(internal(error))])


def failure(error: SpeckitError) -> CallToolResult:
    """The error object, as every door of the product shows it, and each problem in lines for a reader."""
    lines = []
    for problem in error.problems[:LISTED]:
        where = f"{problem.where}: " if problem.where else ""
        lines.append(f"Error {problem.code}: {one_line(where + problem.message)}")
        lines.append(f"Hint: {one_line(problem.hint)}")
        lines += [f"Try: {one_line(action)}" for action in problem.actions]
    # problems of one kind have the same hint and the same next steps: once is enough
    further = len(error.problems) - LISTED
    text = "\n".join([*dict.fromkeys(lines), *([f"and {further:,} more problems"] if further > 0 else [])])
    document = SpeckitError.of(error.problems[:LISTED]).as_json() if further > 0 else error.as_json()
    return CallToolResult(content=[TextContent(text=text)], structured_content=document, is_error=True)


def _fitted(draft: _Draft, budget: int, count: Count) -> tuple[str, int]:
    """The text and its tokens, after cutting texts (unless they shall be whole), then dropping the lowest rows, then
    cutting the last text.

    One row stays, so that an answer may be over its budget when even the shortest form of that row is.
    """

    def counted() -> tuple[str, int]:
        text = draft.text()
        return text, count([text])[0]

    text, size = counted()
    total = len(draft.rows)
    if size <= budget or not total:
        return text, size
    long = [row for row in draft.rows if len(row.get(TEXT_FIELD, "")) > SHORT_TEXT and not draft.reply.whole_texts]
    for row in long:
        row[TEXT_FIELD] = row[TEXT_FIELD][:SHORT_TEXT] + "…"
    if long:
        draft.hints.append(f"texts were cut to {SHORT_TEXT} characters to stay within {budget} tokens")
        text, size = counted()
    if size <= budget:
        return text, size
    sizes = count(draft.row_texts())
    hints, room = draft.hints, RESERVED_FOR_HINT
    while size > budget and len(draft.rows) > 1:
        excess, room = size + room - budget, 0
        while excess > 0 and len(draft.rows) > 1:
            draft.rows.pop()
            excess -= sizes.pop()
        left_out = f"{total - len(draft.rows)} of {total} rows were left out to stay within {budget} tokens"
        draft.hints = [*hints, left_out]
        text, size = counted()
    stored = draft.rows[0].get(TEXT_FIELD, "")
    while size > budget and len(stored) > MIN_TEXT:
        # tokens are no characters: what is over is cut off as if each were one, until it fits
        stored = stored[: max(MIN_TEXT, len(stored) - max(size - budget, 8))]
        draft.rows[0][TEXT_FIELD] = stored + "…"
        text, size = counted()
    return text, size
