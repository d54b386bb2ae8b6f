"""Builds the answer of every tool: one envelope, as structured content and as Markdown, within its token budget."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mcp_types import CallToolResult, TextContent

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import LISTED, abridge
from speckit_memory.errors.names import displayable_name, sendable
from speckit_memory.server.console.failures import internal
from speckit_memory.server.console.markdown import TEXT_FIELD, fields, one_line
from speckit_memory.server.logging import logs
from speckit_memory.server.replies.answer_form import Last

SHORT_TEXT = 500
"""Texts are cut to this many characters before rows are dropped."""
MIN_TEXT = 80
MIN_HINT = 60
"""Minimum length of a hint; hints are cut last."""
CUT_PER_TOKEN = 2
"""Characters cut per excess token: fewer than most tokens have, so that little is cut in vain."""
SEAM = 3
BREAK = 1
"""Tokens of the line break between two rows."""
RESERVED_FOR_HINT = 40
"""Tokens for the sentence that says how many rows were left out."""
FIELDS = ("summary", "data", "hints", "meta")
"""The fields of every answer, as documented."""
SCHEMA: dict[str, Any] = {"type": "object"}
"""The output schema: it only says that answers are structured, because every tool's definition repeats it."""

Rows = Sequence[dict[str, Any]]
Follow = Callable[[Rows], None]
"""Called after an answer is built, with the rows sent and their possibly cut texts."""
RowText = Callable[[int, dict[str, Any]], str]
Count = Callable[[Sequence[str]], list[int]]
"""Returns the number of tokens of each text."""


def _list_row(_number: int, row: dict[str, Any]) -> str:
    return f"- {fields(row)}"


@dataclass(frozen=True, slots=True)
class Supplement:
    """Content of an answer in addition to its rows: a line of the text, with stored text escaped, and further
    `data`."""

    text: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply of a tool. `rows` names the list in `data` that may be shortened, best rows first."""

    summary: str
    data: dict[str, Any]
    hints: tuple[str, ...] = ()
    degraded: tuple[dict[str, str], ...] = ()
    rows: str = ""
    budget: int = 0
    """Token budget of the text; 0 for that of the tool's layer."""
    whole_texts: bool = False
    """Whether the lowest rows are dropped before texts are cut: a few whole texts say more than many beginnings."""
    last: Last = "drop"
    """What happens to the first row whose whole text does not fit, unless `whole_texts`."""
    facts: str = ""
    """One line of the text on `data` other than rows; stored text in it must be escaped (`server.console.markdown`)."""
    row_text: RowText = _list_row
    """Renders a row, given its number from 1, as Markdown."""
    brief_text: RowText | None = None
    """Renders a row more briefly, for an answer over its budget; None if rows have no brief form."""
    unit: str = ""
    """Noun for the rows where they are counted; by default the name in `rows`."""
    hint_of_count: Callable[[int], str] | None = None
    """Returns a further hint for the number of rows shown; "" for none."""
    figures_of_count: Callable[[int], dict[str, int]] | None = None
    """Returns figures of `data` for the number of rows shown; they may override `count`, by default that number."""
    aside: Callable[[int], Supplement] | None = None
    """Returns further content for the number of rows shown. Its line may be cut to fit, its data never."""
    pipeline: str = ""
    """The hash of the pipeline that answered, for the log; "" if none did."""
    after: Follow | None = None
    """Called with the rows as sent, in the thread that builds the envelope."""
    again: Follow | None = None
    """Called instead of `after` when the answer comes from the cache. None for an answer that must not be cached, such
    as one that depends on a session (feature T25)."""


def nothing(_rows: Rows) -> None:
    """The `Follow` of an answer that records nothing."""


@dataclass(slots=True)
class _Draft:
    """An envelope that is being shortened to its budget."""

    reply: Reply
    rows: list[dict[str, Any]]
    total: int
    """Number of rows before shortening."""
    budget: int
    notes: tuple[str, ...] = ()
    """Hints on this call only, placed before those of the reply."""
    brief: bool = False
    """Whether rows are rendered briefly."""
    cut: bool = False
    """Whether texts were cut."""
    aside_room: int | None = None
    """Length to which the aside is cut; None for its full length."""
    hint_room: int | None = None
    """Length to which each hint is cut; None for its full length."""

    def summary(self) -> str:
        unit = self.reply.unit or self.reply.rows
        cut = f"; {len(self.rows)} of {self.total} {unit} shown" if len(self.rows) < self.total else ""
        return self.reply.summary + cut

    def all_hints(self) -> list[str]:
        of_count = self.reply.hint_of_count
        further = [hint for hint in [of_count(len(self.rows))] if hint] if of_count else []
        if self.cut:
            further.append(f"texts were cut to {SHORT_TEXT} characters to stay within {self.budget} tokens")
        if left := self.total - len(self.rows):
            further.append(f"{left} of {self.total} rows were left out to stay within {self.budget} tokens")
        return [_cut(hint, self.hint_room) for hint in (*self.notes, *self.reply.hints, *further)]

    def aside(self) -> str:
        if self.reply.aside is None or self.aside_room == 0:
            return ""
        return _cut(self.reply.aside(len(self.rows)).text, self.aside_room)

    def document(self) -> dict[str, Any]:
        data = self.reply.data
        if self.reply.aside:
            data = {**data, **self.reply.aside(len(self.rows)).data}
        if self.reply.rows:
            figures = self.reply.figures_of_count
            counts = {"count": len(self.rows), **(figures(len(self.rows)) if figures else {})}
            data = {**data, **counts, self.reply.rows: self.rows}
        # names and messages may contain text that cannot be encoded, which would end the connection
        whole = {"summary": self.summary(), "data": data, "hints": self.all_hints()}
        return {name: sendable(part) for name, part in whole.items()}

    def row_texts(self) -> list[str]:
        return [self.row_text(number) for number in range(1, len(self.rows) + 1)]

    def row_text(self, number: int) -> str:
        render = (self.brief and self.reply.brief_text) or self.reply.row_text
        return displayable_name(render(number, self.rows[number - 1]))

    def text(self) -> str:
        notes = [f"Note: {one_line(hint)}" for hint in self.all_hints()]
        notes += [
            f"Degraded: {one_line(part['part'])} did not take part ({one_line(part['reason'])}); instead: "
            f"{one_line(part['instead'])}; loss of confidence: {part['confidence_impact']}"
            for part in self.reply.degraded
        ]
        head = [f"# {one_line(self.reply.summary)}", self.reply.facts, self.aside()]
        # a blank line keeps the notes out of a list or quotation above them
        blocks = ["\n".join(filter(None, [*head, *self.row_texts()])), "\n".join(notes)]
        return displayable_name("\n\n".join(filter(None, blocks)))


@dataclass(frozen=True, slots=True)
class BudgetedReply:
    """An answer within its budget, ready to be sent and to be cached (feature T25)."""

    text: str
    document: dict[str, Any]
    """The structured content without `meta`."""
    meta: dict[str, Any]
    """The part of `meta` that is the same for every sending."""
    rows: Rows
    """The rows of the document."""
    after: Follow | None
    again: Follow | None
    """None for an answer that must not be cached."""
    pipeline: str = ""
    """The hash of the pipeline that answered."""
    draft: _Draft | None = None
    """The draft it was made from, without rows: those are in the document."""

    def characters(self) -> int:
        """Total length of text and document."""
        return len(self.text) + len(json.dumps(self.document))

    def noted(self, notes: tuple[str, ...], count: Count) -> BudgetedReply:
        """Returns the answer with notes on the call, within the same budget: the lowest rows make room for them."""
        if not notes or self.draft is None:
            return self
        rows = [dict(row) for row in self.document["data"].get(self.draft.reply.rows, [])]
        draft = replace(self.draft, rows=rows, notes=notes)  # threads may share the answer
        text, tokens = _fitted(draft, count)
        meta = {**self.meta, "token_count": tokens}
        return replace(self, text=text, document=draft.document(), meta=meta, rows=draft.rows, draft=None)

    def sent(self, latency_ms: float, *, again: bool = False) -> CallToolResult:
        """Builds the result of a call that took `latency_ms`; `again` if the answer came from the cache."""
        if follows := self.again if again else self.after:
            _afterwards(follows, self.rows)
        meta = {**self.meta, "latency_ms": round(latency_ms, 1), "cache_hit": again}
        return CallToolResult(content=[TextContent(text=self.text)], structured_content={**self.document, "meta": meta})


def fit_to_budget(reply: Reply, tool: str, budget: int, count: Count) -> BudgetedReply:
    """Shortens a reply to its budget and adds hints on omissions.

    Rows dropped or cut in the text are dropped or cut in the structured content, too.

    Args:
        reply: The reply of the tool.
        tool: Name of the tool.
        budget: Tokens of the text, unless the reply has its own budget.
        count: Counts tokens.
    """
    budget = reply.budget or budget
    # copies: rows are cut in place below, and the reply's data may be shared
    rows = [dict(row) for row in reply.data.get(reply.rows, [])]
    draft = _Draft(reply, rows, len(rows), budget)
    text, tokens = _with_count(draft, count)
    if (wanted := tokens) > budget:
        text, tokens = _fitted(draft, count)
        logs.log_overflow(tool, draft.total, len(draft.rows), wanted, budget)
    meta = {"tool": tool, "token_count": tokens, "token_budget": budget, "degraded": sendable(list(reply.degraded))}
    # a part that failed now may work at the next call
    again = None if reply.degraded else reply.again
    document = draft.document()
    # answers are cached: drop the callbacks, and the rows that were left out
    rows, draft.rows = draft.rows, []
    draft.reply = replace(reply, data=document["data"], after=None, again=None)
    return BudgetedReply(text, document, meta, rows, reply.after, again, reply.pipeline, draft)


def _afterwards(work: Follow, rows: Rows) -> None:
    """Runs work that serves later calls; its failure must not cost this call its answer."""
    try:
        work(rows)
    except BaseException as error:  # of a store or of a component's library
        logs.event("not recorded", problems=[str(internal(error))])


def failure(error: SpeckitError, tool: str, latency_ms: float) -> CallToolResult:
    """Builds the answer of a failed call: the error object, as on the command line, in an envelope without data, and
    the problems as text. `meta` has the name of the tool, known or not, and the latency."""
    lines = []
    for problem in error.problems[:LISTED]:
        where = f"{problem.where}: " if problem.where else ""
        lines.append(f"Error {problem.code}: {one_line(where + problem.message)}")
        lines.append(f"Hint: {one_line(problem.hint)}")
        lines += [f"Try: {one_line(action)}" for action in problem.actions]
    # problems of one kind share hints and next steps: show each once
    further = len(error.problems) - LISTED
    text = "\n".join([*dict.fromkeys(lines), *([f"and {further:,} more problems"] if further > 0 else [])])
    told = SpeckitError.of(error.problems[:LISTED]).as_json() if further > 0 else error.as_json()
    # clients check failures against the output schema, too, and would report a mismatch instead of the error
    meta = {"tool": sendable(abridge(tool)), "latency_ms": round(latency_ms, 1)}
    envelope: dict[str, Any] = {"summary": str(error.problems[0]), "data": {}, "hints": [], "meta": meta}
    return CallToolResult(content=[TextContent(text=text)], structured_content=envelope | told, is_error=True)


def _cut(line: str, room: int | None) -> str:
    return line if room is None or len(line) <= room else line[:room] + "…"


def _shorter(length: int, over: int, least: int = 0) -> int:
    """The next length to try for a text in an answer that is `over` tokens above its budget. It cuts one character per
    token, and the caller repeats this until the answer fits."""
    return max(length - max(over, 8), least)


def _fitted(draft: _Draft, count: Count) -> tuple[str, int]:
    """The text and its tokens. It exceeds the budget only if the shortest form of one row and of the hints does."""
    text, size = _rows_fitted(draft, count)
    room = len(draft.aside())
    while size > draft.budget and room:
        # a smaller `room` shortens the line on each pass; at 0 it is dropped
        draft.aside_room = room = _shorter(room, size - draft.budget)
        text, size = _with_count(draft, count)
    room = max(map(len, draft.all_hints()), default=0)
    while size > draft.budget and room > MIN_HINT:
        draft.hint_room = room = _shorter(room, size - draft.budget, MIN_HINT)
        text, size = _with_count(draft, count)
    return text, size


def _rows_fitted(draft: _Draft, count: Count) -> tuple[str, int]:
    """Shortens the rows to the budget and returns the text and its tokens.

    Steps, until the answer fits: render rows briefly; cut texts (unless they must be whole); drop the lowest rows, and
    put the best of them back with as much of its text as fits; cut the last text. One row always stays, so that the
    answer may exceed its budget.
    """
    budget = draft.budget
    draft.brief = True
    text, size = _with_count(draft, count)
    if size <= budget or not draft.rows:
        return text, size
    # texts that were cut before have one character more, the ellipsis
    long = [row for row in draft.rows if len(row.get(TEXT_FIELD, "")) > SHORT_TEXT + draft.cut]
    if long and not draft.reply.whole_texts:
        for row in long:
            row[TEXT_FIELD] = row[TEXT_FIELD][:SHORT_TEXT] + "…"
        draft.cut = True
        text, size = _with_count(draft, count)
    if size <= budget:
        return text, size
    text, size, next_row = _without_lowest(draft, text, size, count)
    if next_row and draft.reply.last == "cut" and _added(draft, next_row, budget - size, count):
        text, size = _with_count(draft, count)
    stored = draft.rows[0].get(TEXT_FIELD, "")
    while size > budget and len(stored) > MIN_TEXT:
        stored = stored[: _shorter(len(stored), size - budget, MIN_TEXT)]
        draft.rows[0][TEXT_FIELD] = stored + "…"
        text, size = _with_count(draft, count)
    return text, size


def _with_count(draft: _Draft, count: Count) -> tuple[str, int]:
    text = draft.text()
    return text, count([text])[0]


def _without_lowest(draft: _Draft, text: str, size: int, count: Count) -> tuple[str, int, dict[str, Any] | None]:
    """Drops as many of the lowest rows as necessary, but keeps one; returns the text, its tokens and the best row that
    was dropped. `text` and `size` are the text and its tokens before."""
    budget = draft.budget
    # sizes: tokens per row with its line break; one call to `count` is cheaper than one per row
    sizes = [tokens + BREAK for tokens in count(draft.row_texts())]
    dropped: list[dict[str, Any]] = []
    # dropping the first row adds a hint, which takes tokens as well
    room = RESERVED_FOR_HINT if len(draft.rows) == draft.total else 0
    while size > budget and len(draft.rows) > 1:
        # sums of single rows differ from the tokens of the whole text: drop, count, repeat
        excess, room = size + room - budget, 0
        while excess > 0 and len(draft.rows) > 1:
            dropped.append(draft.rows.pop())
            excess -= sizes[len(draft.rows)]
        text, size = _with_count(draft, count)
    # the hint may be shorter than the space reserved for it
    while dropped and size + sizes[len(draft.rows)] <= budget:
        draft.rows.append(dropped.pop())
        longer, more = _with_count(draft, count)
        if more > budget:
            dropped.append(draft.rows.pop())
            break
        text, size = longer, more
    return text, size, dropped[-1] if dropped else None


def _added(draft: _Draft, row: dict[str, Any], room: int, count: Count) -> bool:
    """Appends the row with its text cut to fit in `room` tokens; False if it does not fit."""
    stored = row.get(TEXT_FIELD, "")
    draft.rows.append(row)
    while len(stored) > MIN_TEXT:
        # mark the cut; an ellipsis from an earlier cut is replaced
        row[TEXT_FIELD] = stored.rstrip(" …") + " …"
        # joined texts may have a few tokens more than the sum of both
        excess = count([draft.row_text(len(draft.rows))])[0] + SEAM - room
        if excess <= 0:
            return True
        stored = stored[: len(stored) - max(excess * CUT_PER_TOKEN, 8)]
    draft.rows.pop()
    return False
