"""The answer of every tool: one envelope, as structured content and as the same in text, within its token budget."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mcp_types import CallToolResult, TextContent

from config.errors import SpeckitError
from server import logs

CHARACTERS_PER_TOKEN = 4
SHORT_TEXT = 500
"""Texts are cut to this many characters before any row is dropped."""
MIN_TEXT = 80
RESERVED_FOR_HINT = 100
"""Room for the sentence that says how many rows were left out."""
TEXT_FIELD = "memory_text"
"""The field that holds stored text. Its name tells a client what is data, whatever the text itself says."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "summary": {"type": "string"},
        "data": {"type": "object"},
        "hints": {"type": "array", "items": {"type": "string"}},
        "meta": {"type": "object"},
    },
    "required": ["summary", "data", "hints", "meta"],
}
"""What clients may rely on. Kept small, because it stands in every tool's definition."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool has to say. `rows` names the list in `data` that may be shortened, best rows first."""

    summary: str
    data: dict[str, Any]
    hints: tuple[str, ...] = ()
    degraded: tuple[dict[str, str], ...] = ()
    rows: str = ""
    budget: int = 0
    """Tokens; 0 leaves the choice to the tool's layer."""
    hint_of_count: Callable[[int], str] | None = None
    """A further hint that depends on how many rows are shown; empty for none."""
    after: Callable[[int], None] | None = None
    """Called with the number of rows shown, once it is known, in the thread that builds the envelope."""


@dataclass(slots=True)
class _Draft:
    """An envelope on its way into its budget."""

    reply: Reply
    meta: dict[str, Any]
    rows: list[dict[str, Any]]
    hints: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        data, summary = self.reply.data, self.reply.summary
        if self.reply.rows:
            total = len(data.get(self.reply.rows, []))
            if len(self.rows) < total:
                summary += f"; {len(self.rows)} of {total} {self.reply.rows} shown"
            data = {**data, "count": len(self.rows), self.reply.rows: self.rows}
        of_count = self.reply.hint_of_count
        further = [hint for hint in [of_count(len(self.rows))] if hint] if of_count else []
        return {
            "summary": summary,
            "data": data,
            "hints": [*self.reply.hints, *further, *self.hints],
            "meta": self.meta,
        }


def compact(document: Any) -> str:
    """JSON without blanks: what an agent reads is paid for by the token."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def tokens(text: str) -> int:
    """How many tokens a text counts, at four characters each (feature T24)."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def success(reply: Reply, tool: str, budget: int, latency_ms: float) -> CallToolResult:
    """The envelope of a reply, shortened to its budget; the hints say what was left out."""
    budget = reply.budget or budget
    meta = {
        "tool": tool,
        "token_count": budget,
        "token_budget": budget,
        "latency_ms": round(latency_ms, 1),
        "cache_hit": False,
        "degraded": list(reply.degraded),
    }
    draft = _Draft(reply, meta, [dict(row) for row in reply.data.get(reply.rows, [])])
    rows, wanted = len(draft.rows), tokens(compact(draft.document()))
    _shorten(draft, budget)
    document = draft.document()
    meta["token_count"] = tokens(compact(document))
    if wanted > budget:
        logs.overflowed(tool, rows, len(draft.rows), wanted, budget)
    if reply.after:
        reply.after(len(draft.rows))
    return CallToolResult(content=[TextContent(text=compact(document))], structured_content=document)


def failure(error: SpeckitError) -> CallToolResult:
    """The error object, as every door of the product shows it."""
    document = error.as_json()
    return CallToolResult(content=[TextContent(text=compact(document))], structured_content=document, is_error=True)


def _shorten(draft: _Draft, budget: int) -> None:
    """Cuts texts, then drops the lowest rows, then cuts the last text, until the envelope fits; one row stays."""

    def excess() -> int:
        return len(compact(draft.document())) - budget * CHARACTERS_PER_TOKEN

    total = len(draft.rows)
    if not total or excess() <= 0:
        return
    long = [row for row in draft.rows if len(row.get(TEXT_FIELD, "")) > SHORT_TEXT]
    for row in long:
        row[TEXT_FIELD] = row[TEXT_FIELD][:SHORT_TEXT] + "…"
    if long:
        draft.hints.append(f"texts were cut to {SHORT_TEXT} characters to stay within {budget} tokens")
    over = excess()
    if over <= 0:
        return
    draft.hints.append("")  # its place counts: the final wording is known only when the rows are
    over += RESERVED_FOR_HINT
    while over > 0 and len(draft.rows) > 1:
        over -= len(compact(draft.rows.pop())) + 1
    left_out = total - len(draft.rows)
    draft.hints[-1] = f"{left_out} of {total} rows were left out to stay within {budget} tokens"
    text = draft.rows[0].get(TEXT_FIELD, "")
    if (over := excess()) > 0 and len(text) > MIN_TEXT:
        draft.rows[0][TEXT_FIELD] = text[: max(MIN_TEXT, len(text) - over - 1)] + "…"
