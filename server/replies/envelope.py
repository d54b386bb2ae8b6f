"""The answer of every tool: one envelope, as structured content and as short Markdown, within its token budget."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from mcp_types import CallToolResult, TextContent

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import LISTED, abridged
from speckit_memory.errors.names import sendable, shown
from speckit_memory.server.console.failures import internal
from speckit_memory.server.console.markdown import fields, one_line
from speckit_memory.server.logging import logs

SHORT_TEXT = 500
"""Texts are cut to this many characters before any row is dropped."""
MIN_TEXT = 80
MIN_HINT = 60
"""Hints are cut to no fewer characters, and when all else is cut."""
CUT_PER_TOKEN = 2
"""Characters that are cut for a token too many: fewer than most tokens have, so that little is cut in vain."""
SEAM = 3
BREAK = 1
"""Tokens of the line break between two rows."""
RESERVED_FOR_HINT = 40
"""Tokens for the sentence that says how many rows were left out."""
TEXT_FIELD = "memory_text"
"""The field that holds stored text. Its name tells a client what is data, whatever the text itself says."""

FIELDS = ("summary", "data", "hints", "meta")
"""What every answer has, as the documentation promises it."""
SCHEMA: dict[str, Any] = {"type": "object"}
"""What tells clients that answers are structured. No more than that, because it stands in every tool's definition."""

Rows = Sequence[dict[str, Any]]
Follow = Callable[[Rows], None]
"""What follows an answer, once it is known which rows are sent and what is left of their texts."""
Last = Literal["cut", "drop"]
Count = Callable[[Sequence[str]], list[int]]
"""How many tokens each text has."""


def _listed(_number: int, row: dict[str, Any]) -> str:
    return f"- {fields(row)}"


@dataclass(frozen=True, slots=True)
class Aside:
    """What an answer says beside its rows: a line of the text, in which stored text must be safe, and more `data`."""

    text: str
    data: dict[str, Any]


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
    last: Last = "drop"
    """What becomes of the first row that has no room for its whole text, where texts are no whole ones."""
    facts: str = ""
    """What the text says of `data` beside the rows, in a line; stored text in it must be safe (`server.console.markdown`)."""
    row_text: Callable[[int, dict[str, Any]], str] = _listed
    """The Markdown of a row and its number from 1."""
    brief_row_text: Callable[[int, dict[str, Any]], str] | None = None
    """The same with less said of a row, for an answer in which not all rows have room; None where nothing may go."""
    unit: str = ""
    """What the rows are called where their number is told; as their list unless given."""
    hint_of_count: Callable[[int], str] | None = None
    """A further hint that depends on how many rows are shown; empty for none."""
    figures_of_count: Callable[[int], dict[str, int]] | None = None
    """Figures of `data` that depend on how many rows are shown; `count` is that number unless it is among them."""
    aside: Callable[[int], Aside] | None = None
    """What is said by the number of rows that are shown. Its line is cut where rows leave no room, its data never."""
    pipeline: str = ""
    """The hash of the pipeline that answered, "" where none did: what the log names the call by."""
    after: Follow | None = None
    """Called with the rows as they are sent, once these are known, in the thread that builds the envelope."""
    again: Follow | None = None
    """Called likewise, in the place of `after`, when this answer is given to the same question once more. None for one
    that holds for the moment alone, such as what a session is sent: it is never given again (feature T25)."""


def nothing(_rows: Rows) -> None:
    """What follows an answer that leaves nothing behind."""


@dataclass(slots=True)
class _Draft:
    """An envelope on its way into its budget."""

    reply: Reply
    rows: list[dict[str, Any]]
    total: int
    """How many rows there were to begin with."""
    budget: int
    notes: tuple[str, ...] = ()
    """Hints of this call alone, before those of the reply."""
    brief: bool = False
    """Whether less is said of each row."""
    cut: bool = False
    """Whether texts were cut."""
    aside_room: int | None = None
    """To so many characters the aside is cut; None for the whole of it."""
    hint_room: int | None = None
    """To so many characters each hint is cut; None for the whole of it."""

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
        # whatever a name or a message holds: what a client cannot read would end the connection
        whole = {"summary": self.summary(), "data": data, "hints": self.all_hints()}
        return {name: sendable(part) for name, part in whole.items()}

    def row_texts(self) -> list[str]:
        row_text = (self.brief and self.reply.brief_row_text) or self.reply.row_text
        return [shown(row_text(number, row)) for number, row in enumerate(self.rows, start=1)]

    def text(self) -> str:
        notes = [f"Note: {one_line(hint)}" for hint in self.all_hints()]
        notes += [
            f"Degraded: {one_line(part['part'])} did not take part ({one_line(part['reason'])}); instead: "
            f"{one_line(part['instead'])}; loss of confidence: {part['confidence_impact']}"
            for part in self.reply.degraded
        ]
        head = [f"# {one_line(self.reply.summary)}", self.reply.facts, self.aside()]
        # a blank line, without which the notes would be part of a list or quotation above them
        blocks = ["\n".join(filter(None, [*head, *self.row_texts()])), "\n".join(notes)]
        return shown("\n\n".join(filter(None, blocks)))


@dataclass(frozen=True, slots=True)
class Fitted:
    """An answer within its budget, ready to be sent, to who asks the same once more too (feature T25)."""

    text: str
    document: dict[str, Any]
    """The structured content but for `meta`."""
    meta: dict[str, Any]
    """What is the same whenever it is sent."""
    rows: Rows
    """Those of the document."""
    after: Follow | None
    again: Follow | None
    """None for one that is not to be kept."""
    pipeline: str = ""
    """The hash of the pipeline that answered."""
    draft: _Draft | None = None
    """What it was made of but for the rows, which are those of the document."""

    def characters(self) -> int:
        """How long it is, text and document."""
        return len(self.text) + len(json.dumps(self.document))

    def noted(self, notes: tuple[str, ...], count: Count) -> Fitted:
        """The same answer to a call about which there are these notes, within the same budget: the lowest rows give way
        to them."""
        if not notes or self.draft is None:
            return self
        rows = [dict(row) for row in self.document["data"].get(self.draft.reply.rows, [])]
        draft = replace(self.draft, rows=rows, notes=notes)
        text, tokens = _fitted(draft, count)
        meta = {**self.meta, "token_count": tokens}
        return replace(self, text=text, document=draft.document(), meta=meta, rows=draft.rows, draft=None)

    def sent(self, latency_ms: float, *, again: bool = False) -> CallToolResult:
        """The result of a call that took so long; `again` for one whose answer had been made before."""
        if follows := self.again if again else self.after:
            _afterwards(follows, self.rows)
        meta = {**self.meta, "latency_ms": round(latency_ms, 1), "cache_hit": again}
        return CallToolResult(content=[TextContent(text=self.text)], structured_content={**self.document, "meta": meta})


def fitted(reply: Reply, tool: str, budget: int, count: Count) -> Fitted:
    """A reply with its text shortened to the budget; the hints say what was left out.

    Rows that the text leaves out, or cuts, are left out and cut in the structured content as well.
    """
    budget = reply.budget or budget
    rows = [dict(row) for row in reply.data.get(reply.rows, [])]
    draft = _Draft(reply, rows, len(rows), budget)
    wanted = count([draft.text()])[0]
    text, tokens = _fitted(draft, count) if wanted > budget else (draft.text(), wanted)
    if wanted > budget:
        logs.overflowed(tool, draft.total, len(draft.rows), wanted, budget)
    meta = {"tool": tool, "token_count": tokens, "token_budget": budget, "degraded": sendable(list(reply.degraded))}
    # what one part failed to do now, it may do when it is asked again
    again = None if reply.degraded else reply.again
    document = draft.document()
    # without what the reply holds to be done afterwards, and without rows that were left out: answers are kept
    light = replace(draft, reply=replace(reply, data=document["data"], after=None, again=None), rows=[])
    return Fitted(text, document, meta, draft.rows, reply.after, again, reply.pipeline, light)


def _afterwards(work: Follow, rows: Rows) -> None:
    """What is done for the sake of later calls must not cost this one its answer."""
    try:
        work(rows)
    except BaseException as error:  # of a store or of a component's library
        logs.event("not noted", problems=[str(internal(error))])


def failure(error: SpeckitError, tool: str, latency_ms: float) -> CallToolResult:
    """The error object, as every door of the product shows it, in an envelope without data, and each problem in lines
    for a reader. `meta` says which tool failed, or what was taken for one, and how long that took."""
    lines = []
    for problem in error.problems[:LISTED]:
        where = f"{problem.where}: " if problem.where else ""
        lines.append(f"Error {problem.code}: {one_line(where + problem.message)}")
        lines.append(f"Hint: {one_line(problem.hint)}")
        lines += [f"Try: {one_line(action)}" for action in problem.actions]
    # problems of one kind have the same hint and the same next steps: once is enough
    further = len(error.problems) - LISTED
    text = "\n".join([*dict.fromkeys(lines), *([f"and {further:,} more problems"] if further > 0 else [])])
    told = SpeckitError.of(error.problems[:LISTED]).as_json() if further > 0 else error.as_json()
    # clients hold what is structured to the tool's schema, failures too, and would tell their user of that instead
    meta = {"tool": sendable(abridged(tool)), "latency_ms": round(latency_ms, 1)}
    envelope: dict[str, Any] = {"summary": str(error.problems[0]), "data": {}, "hints": [], "meta": meta}
    return CallToolResult(content=[TextContent(text=text)], structured_content=envelope | told, is_error=True)


def _cut(line: str, room: int | None) -> str:
    return line if room is None or len(line) <= room else line[:room] + "…"


def _shorter(length: int, over: int, least: int = 0) -> int:
    """The next length to try of a text in an answer that is so many tokens over its budget. Tokens are no characters:
    each is cut off as if it were one, until the answer fits."""
    return max(length - max(over, 8), least)


def _fitted(draft: _Draft, count: Count) -> tuple[str, int]:
    """The text and its tokens, within the budget if that has room for the shortest form of one row and of the hints."""
    text, size = _rows_fitted(draft, count)
    room = len(draft.aside())
    while size > draft.budget and room:
        draft.aside_room = room = _shorter(room, size - draft.budget)
        text, size = _counted(draft, count)
    room = max(map(len, draft.all_hints()), default=0)
    while size > draft.budget and room > MIN_HINT:
        draft.hint_room = room = _shorter(room, size - draft.budget, MIN_HINT)
        text, size = _counted(draft, count)
    return text, size


def _rows_fitted(draft: _Draft, count: Count) -> tuple[str, int]:
    """The text and its tokens, after saying less of each row, then cutting texts (unless they shall be whole), then
    dropping the lowest rows, then cutting the last text, or putting back the best of those rows with as much of its
    text as there is room for.

    One row stays, so that an answer may be over its budget when even the shortest form of that row is.
    """
    budget = draft.budget
    draft.brief = True
    text, size = _counted(draft, count)
    if size <= budget or not draft.rows:
        return text, size
    # cut to so many, and the sign of that, if they were cut before
    long = [row for row in draft.rows if len(row.get(TEXT_FIELD, "")) > SHORT_TEXT + draft.cut]
    if long and not draft.reply.whole_texts:
        for row in long:
            row[TEXT_FIELD] = row[TEXT_FIELD][:SHORT_TEXT] + "…"
        draft.cut = True
        text, size = _counted(draft, count)
    if size <= budget:
        return text, size
    text, size, next_row = _without_lowest(draft, size, count)
    if next_row and draft.reply.last == "cut" and _added(draft, next_row, budget - size, count):
        text, size = _counted(draft, count)
    stored = draft.rows[0].get(TEXT_FIELD, "")
    while size > budget and len(stored) > MIN_TEXT:
        stored = stored[: _shorter(len(stored), size - budget, MIN_TEXT)]
        draft.rows[0][TEXT_FIELD] = stored + "…"
        text, size = _counted(draft, count)
    return text, size


def _counted(draft: _Draft, count: Count) -> tuple[str, int]:
    text = draft.text()
    return text, count([text])[0]


def _without_lowest(draft: _Draft, size: int, count: Count) -> tuple[str, int, dict[str, Any] | None]:
    """The text of `size` tokens and its tokens after dropping as many of the lowest rows as its budget asks for, and
    the best of these; one row stays in any case."""
    budget, text = draft.budget, draft.text()
    sizes = [tokens + BREAK for tokens in count(draft.row_texts())]
    dropped: list[dict[str, Any]] = []
    room = RESERVED_FOR_HINT if len(draft.rows) == draft.total else 0
    while size > budget and len(draft.rows) > 1:
        excess, room = size + room - budget, 0
        while excess > 0 and len(draft.rows) > 1:
            dropped.append(draft.rows.pop())
            excess -= sizes[len(draft.rows)]
        text, size = _counted(draft, count)
    # the hint may be shorter than the room that was kept for it
    while dropped and size + sizes[len(draft.rows)] <= budget:
        draft.rows.append(dropped.pop())
        longer, more = _counted(draft, count)
        if more > budget:
            dropped.append(draft.rows.pop())
            break
        text, size = longer, more
    return text, size, dropped[-1] if dropped else None


def _added(draft: _Draft, row: dict[str, Any], room: int, count: Count) -> bool:
    """Whether the row has a place in `room` tokens with a text that is cut; it stands last then."""
    stored = row.get(TEXT_FIELD, "")
    draft.rows.append(row)
    while len(stored) > MIN_TEXT:
        row[TEXT_FIELD] = stored.rstrip(" …") + " …"
        # where two texts meet, there may be a token more than in both of them
        excess = count([draft.row_texts()[-1]])[0] + SEAM - room
        if excess <= 0:
            return True
        stored = stored[: len(stored) - max(excess * CUT_PER_TOKEN, 8)]
    draft.rows.pop()
    return False
