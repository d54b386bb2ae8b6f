"""Memories as rows of tool answers: few fields, with stored text in one of them."""

import secrets
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from speckit_memory.engine import Memory
from speckit_memory.engine.answers.empty_answers import EMPTY_STORE
from speckit_memory.engine.answers.results import ResultRow, SearchResult
from speckit_memory.errors.echo import plural
from speckit_memory.memory.lifecycle.validations import ValidationResult
from speckit_memory.memory.store.records import MemoryRecord
from speckit_memory.server.console.markdown import TEXT_FIELD, about, one_line
from speckit_memory.server.logging import logs


def result_row(row: ResultRow) -> dict[str, Any]:
    """A search result as a row; requested sections replace the excerpt (feature A7)."""
    notes, text = dict(row.notes), row.snippet
    # a memory sent before in this session: only enough fields to refer to it
    if row.repeated and not text:
        return {
            "id": row.id,
            "key": row.key,
            "title": row.title,
            "score": round(row.score, 4),
            "lines": [row.first_line, row.last_line],
            "notes": notes,
        }
    if sections := notes.get("sections"):
        text = "\n\n".join(f"[{section['anchor']}]\n{section['text']}" for section in sections)
        notes["sections"] = [section["anchor"] for section in sections]
    shown: dict[str, Any] = {
        "id": row.id,
        "key": row.key,
        "title": row.title,
        "score": round(row.score, 4),
        "tier": row.tier,
        "state": row.state,
        "lines": [row.first_line, row.last_line],
        "heading": row.heading,
        TEXT_FIELD: text,
        "reason": row.reason,
        **({"notes": notes} if notes else {}),
    }
    return {name: value for name, value in shown.items() if value not in ("", None)}


def search_data(result: SearchResult) -> dict[str, Any]:
    """The `data` of an answer to a search."""
    plan = result.plan
    return {
        "intent": intent_of(result),
        "complexity": plan.complexity,
        **({"required": list(plan.required)} if plan.required else {}),
        **({"excluded": list(plan.excluded)} if plan.excluded else {}),
        "evidence_gap": result.notes.evidence_gap,
        **({"coverage": plan.coverage.as_json()} if plan.coverage else {}),
        **({"replica": replica} if (replica := result.notes.facts.get("replica")) else {}),
        "results": [result_row(row) for row in result.results],
    }


def budget_of(result: SearchResult, layer: int) -> int:
    """The token budget of an answer: the pipeline's for this query, else that of the tool's layer (features A6,
    T24)."""
    return int(result.notes.facts.get("token_budget", layer))


def degraded_parts(result: SearchResult) -> tuple[dict[str, Any], ...]:
    """The parts of a search that failed or were skipped."""
    return tuple(part.as_json() for part in result.notes.degraded)


def timings(result: SearchResult) -> dict[str, Any]:
    """The timings in milliseconds, summed per step over all query variants."""
    steps: dict[str, float] = {}
    for record in result.timings_ms.steps:
        # a step runs once per query variant: sum its times
        steps[record.step] = round(steps.get(record.step, 0.0) + record.ms, 3)
    return {**result.timings_ms.as_json(), "steps": steps}


def describe_found(result: SearchResult) -> str:
    """Says how many memories were found, and how many of them had been sent before."""
    repeats = f", {result.repeats} already sent" if result.repeats else ""
    return f"{plural(len(result.results), 'memory')} found{repeats}"


def intent_of(result: SearchResult) -> str | None:
    """The detected intent; None if detection was switched off."""
    return None if result.outcome.query.intent == "" else result.plan.intent


def search_facts(result: SearchResult, *further: str) -> str:
    """The line on the query in the answer's text."""
    plan = result.plan
    return about(
        f"intent {plan.intent}" if intent_of(result) else "intent not detected",
        f"{plan.complexity} question",
        replica_text(result),
        *further,
    )


def replica_text(result: SearchResult) -> str:
    """Says how far behind the replica is that answered; "" if the store itself did."""
    if not (replica := result.notes.facts.get("replica")):
        return ""
    seconds = replica["behind_seconds"]
    return "from a replica behind by an unknown time" if seconds is None else f"from a replica {seconds:.1f} s behind"


def attended_rows(result: SearchResult) -> dict[str, Any]:
    """The memories with the most attention in a resumed session, highest first; {} if none is known."""
    found = result.notes.facts.get("attended", [])
    return {"attended": found} if found else {}


def attended_text(result: SearchResult) -> str:
    """The memories with the most attention in a resumed session, as a line of text."""
    memories = result.notes.facts.get("attended", [])
    named = [f"{one_line(memory['key'])} (id {memory['id']})" for memory in memories]
    return f"this session attended to: {', '.join(named)}" if named else ""


def search_hints(result: SearchResult) -> tuple[str, ...]:
    """Hints for the caller; other words are only suggested if they could help."""
    hints = (*_mixed(result), *result.notes.warnings)
    if result.repeats:
        return (*hints, "memories already sent in this session are one line each; enableDedup=false sends them again")
    if result.results or result.why_nothing not in ("", EMPTY_STORE) or result.notes.facts.get("unfit"):
        return hints
    further = () if result.why_nothing else ("try other words",)
    return (*hints, *further, "index documents with memory_index_scan")


def _mixed(result: SearchResult) -> tuple[str, ...]:
    """The hint that rows of two pipelines are interleaved, if they are."""
    if not (other := result.notes.facts.get("interleaved_with")):
        return ()
    both = f"'{result.pipeline.name}' ({result.pipeline.hash}) and '{other['name']}' ({other['hash']})"
    return (f"an interleaved answer: its rows alternate between the pipelines {both}, which are being compared",)


def when(seconds: float) -> str:
    """Epoch seconds as ISO 8601, UTC; "unknown" outside the range of the calendar."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return "unknown"


def judgement(memory: MemoryRecord | ValidationResult) -> dict[str, Any]:
    """The confidence and number of validations, and the promotion if the tier differs from the declared one."""
    fields: dict[str, Any] = {"confidence": memory.confidence, "validations": memory.validation_count}
    if promotion := memory.promotion:
        fields["promoted"] = {
            "at": when(promotion.promoted_at),
            "from": str(promotion.from_tier),
            "confidence": promotion.confidence,
            "validations": promotion.validation_count,
        }
    return fields


def update_facts(memory: MemoryRecord) -> dict[str, Any]:
    """The values that an update can change, by parameter of the tool."""
    return {
        "title": memory.title,
        "triggerPhrases": list(memory.triggers),
        "importanceWeight": memory.importance_weight,
        "importanceTier": str(memory.tier),
    }


def log_search(result: SearchResult, shown: int, *, cached: bool = False) -> None:
    """Logs a search: pipeline, time (unless `cached`), number of results and of rows shown, and failed parts. The
    query, and reasons that may quote it, are logged only if content is switched on."""
    states = {step.step: step.outcome for step in result.timings_ms.steps if step.outcome != "ran"}
    parts: list[dict[str, Any]] = []
    for part in result.notes.degraded:
        reason = {"reason": part.reason} if logs.content_wanted() else {}
        parts.append({"part": part.part, "state": states.get(part.part, "skipped"), **reason})
    logs.event(
        "search",
        "warning" if parts else "info",
        pipeline=result.pipeline.name,
        hash=result.pipeline.hash,
        intent=intent_of(result),
        complexity=result.plan.complexity,
        results=len(result.results),
        shown=shown,
        **({"cached": True} if cached else {"ms": round(result.timings_ms.total, 1)}),
        **({"degraded": parts} if parts else {}),
        **({"query": result.query} if logs.content_wanted() else {}),
    )


def note_served_again(memory: Memory, result: SearchResult, rows: Sequence[Mapping[str, Any]]) -> None:
    """Records the use of a cached answer (feature T25).

    Only answers outside of sessions are cached, so that no session has to be updated.
    """
    asked = result.asked_again(logs.query_id() or secrets.token_hex(8), time.time())
    log_search(asked, len(rows), cached=True)
    memory.feedback.delivered(asked, len(rows))


def note_served(memory: Memory, result: SearchResult, rows: Sequence[Mapping[str, Any]]) -> None:
    """Logs a search, and records in the session which results are sent; a failure only leads to repeated results.

    Rows cut by the pipeline's budget are logged here, those cut by the tool's budget by the envelope.
    """
    log_search(result, len(rows))
    facts = result.notes.facts
    if cut := facts.get("overflow"):
        budget = facts["token_budget"]
        logs.log_overflow("pipeline", cut["rows"], cut["kept"], cut["tokens_wanted"], budget)
    # the texts matter to the session that was sent them, and to whether a memory was shown whole
    if result.outcome.query.session or any(row.content for row in result.results):
        result = result.as_shown([row.get(TEXT_FIELD, "") for row in rows])
    warning = memory.feedback.delivered(result, len(rows))
    if warning:
        logs.event("not recorded in the session", "warning", reason=warning)
