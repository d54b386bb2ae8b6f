"""Turns the columns of an outcome into the rows of an answer. Row objects exist only here, at the edge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from speckit_memory.engine.answers import repeated_rows
from speckit_memory.engine.answers.empty_answers import missing_sections, nothing_to_find, only_unconditional
from speckit_memory.engine.answers.excerpts import excerpt, readable
from speckit_memory.engine.answers.result_parts import (
    Coverage,
    NamedMemory,
    PipelineIdentity,
    SearchNotes,
    SearchPlan,
    StepTiming,
    Timings,
)
from speckit_memory.engine.answers.results import ChannelEvidence, Explanation, ResultRow, SearchResult
from speckit_memory.memory.lifecycle.states import UNKNOWN_STATE, Thresholds, name_of, states_of
from speckit_memory.memory.parsing.limits import LONGEST_PATH, cut_at_word
from speckit_memory.memory.parsing.markdown.title import LONGEST_TITLE
from speckit_memory.pipeline.model.columns import NO_RANK, Candidates, Plan, Pool, Respelling
from speckit_memory.pipeline.model.trace import STAGES
from speckit_memory.pipeline.ports import Ids, Passage, Store
from speckit_memory.pipeline.process.interrupts import call_guarded
from speckit_memory.pipeline.roles.composition import BoundStep
from speckit_memory.pipeline.roles.contracts import Annotator
from speckit_memory.pipeline.roles.hooks import STATES
from speckit_memory.pipeline.running.explain import explain
from speckit_memory.pipeline.running.runner import Outcome

OTHERS = ("also_at", "superseded_by")
"""Notes that refer to other memories by id."""
_MOVING = ("add", "multiply")
"""Kinds of steps whose effect on the score is part of a row's reason."""
SAID_BY_ROW = ("found_by",)
"""Notes left out of a row because its other fields carry the same information."""


def answer(
    outcome: Outcome,
    store: Store,
    declared: tuple[str, ...],
    snippet_characters: int,
    content: bool = False,
    opening_ns: int = 0,
    annotate: Sequence[BoundStep[Annotator]] = (),
) -> SearchResult:
    """Builds the answer of an outcome.

    Args:
        outcome: The sealed ranking, the notes and the trace.
        store: The store that was searched.
        declared: The ids of the pipeline's channels.
        snippet_characters: Length of the excerpts in characters; 0 for none.
        content: Whether rows carry the whole text of their memory.
        opening_ns: Nanoseconds spent opening the store; not part of the total.
        annotate: The annotators, one of which may report the state of rows.
    """
    query, trace = outcome.query, outcome.trace
    plan = query.plan
    warnings = [warning for notes in outcome.notes.values() for warning in notes.warnings]
    # Later annotators override facts of earlier ones.
    facts: dict[str, Any] = {"evidence_gap": False}
    for notes in outcome.notes.values():
        facts |= notes.overall
    degraded, why = trace.degraded, ""
    if only_unconditional(outcome, store):
        if why := nothing_to_find(query, store):
            # no step could have found anything: warnings of single steps would only distract
            warnings, degraded = [why], ()
        elif why := missing_sections(outcome, store):
            warnings = [why]
    policy = facts.get("deduplicated", {})
    rows = tuple(_rows(outcome, store, snippet_characters, content, annotate, policy.get("action", "")))
    if policy:
        facts["deduplicated"] = repeated_rows.count_repeated(rows, policy)
    return SearchResult(
        query=query.text,
        plan=_plan(outcome, declared),
        results=rows,
        notes=SearchNotes(
            evidence_gap=facts.pop("evidence_gap"),
            warnings=(*plan.warnings, *map(_respelt, plan.respelt), *_relative_time_warning(plan), *warnings),
            degraded=degraded,
            facts=facts,
        ),
        pipeline=PipelineIdentity(trace.pipeline, trace.config_hash),
        timings_ms=Timings(
            opening=_ms(opening_ns),
            total=_ms(trace.total_ns),
            **{str(stage): _ms(trace.stage_ns.get(stage, 0)) for stage in STAGES},
            steps=tuple(
                StepTiming(record.stage, record.step, _ms(record.ns), record.n_in, record.n_out, record.state)
                for record in trace.steps
            ),
        ),
        outcome=outcome,
        why_nothing=why,
    )


def _plan(outcome: Outcome, declared: tuple[str, ...]) -> SearchPlan:
    query, plan = outcome.query, outcome.query.plan
    return SearchPlan(
        intent=plan.intent,
        intent_confidence=round(plan.intent_confidence, 4),
        complexity=plan.complexity,
        complexity_confidence=plan.complexity_confidence,
        budget_ms=outcome.trace.budget_ms,
        channels=declared if plan.channels is None else tuple(name for name in declared if name in plan.channels),
        variants=plan.variants,
        coverage=coverage(plan),
        respelt={found.word: tuple(found.instead) for found in plan.respelt},
        required=query.required,
        excluded=query.excluded,
        reasons=plan.reasons,
    )


def coverage(plan: Plan) -> Coverage | None:
    """The causal graph's coverage of a question; None if no step determined it."""
    return None if plan.connected is None else Coverage(plan.connected, plan.graph_gap)


def explanation(outcome: Outcome, store: Store, memory: int) -> Explanation | None:
    """How a memory of this outcome got its score; None if it is not among the results."""
    # The first row of the memory: the pool is in ranking order.
    found = np.flatnonzero(outcome.pool.candidates.parents == memory)
    if not len(found):
        return None
    row = int(found[0])
    key = str(store.attributes.label("key", outcome.pool.candidates.parents[row : row + 1])[0])
    return Explanation(memory, key, explain(outcome.pool, row), _evidence(outcome.pool.candidates)[row])


def _ms(ns: int) -> float:
    return round(ns / 1e6, 3)


def _relative_time_warning(plan: Plan) -> Iterator[str]:
    """A warning if relative times were counted back from the newest memory, as no memory is recent enough."""
    if plan.counted_from is not None:
        newest = datetime.fromtimestamp(plan.counted_from, UTC).date()
        yield f"No memory is from that time: it is counted back from {newest}, the date of the newest memory."


def _respelt(found: Respelling) -> str:
    """A warning that names the words searched instead of an unknown one. Terms are stems; a known reading is a word."""
    others = f" and {len(found.instead) - 1} more" if len(found.instead) > 1 else ""
    return f"no memory holds '{found.word}'; searched the nearest known words instead: '{found.reading}'{others}"


def _rows(
    outcome: Outcome,
    store: Store,
    snippet_characters: int,
    content: bool,
    annotate: Sequence[BoundStep[Annotator]],
    of_repeats: str,
) -> list[ResultRow]:
    pool = outcome.pool
    if not len(pool):
        return []
    # one call per column for all rows: calls into numpy and the store cost more than their work
    memories, attributes = pool.candidates.parents, store.attributes
    labels = [list(map(str, attributes.label(name, memories).tolist())) for name in ("key", "title", "folder", "tier")]
    ids, numbers = pool.ids.tolist(), memories.tolist()
    remarks = [[notes.by_id.get(row, {}) for row in ids] for notes in outcome.notes.values() if notes.by_id]
    unsaid = not all(any("state" in of_row[row] for of_row in remarks) for row in range(len(ids)))
    names = _states(store, memories, outcome.query.now, annotate) if unsaid else []
    matched = pool.candidates.matched.tolist()
    replacing = _unseen_successors(remarks, numbers) if snippet_characters else []
    unmatched = _unmatched(pool) if snippet_characters else {}
    store.passages.prefetch(matched, replacing, list(unmatched.values()))
    decisions = _decisions(replacing, store)
    summaries = _summaries(unmatched, store)
    passages = [summaries.get(row, passage) for row, passage in enumerate(store.passages.passages(matched))]
    found, chunk_hits = _evidence(pool.candidates), pool.chunk_hits.tolist()
    after = [(step.step, step.after.tolist()) for step in pool.steps]
    # parts[:, 0]: the addend or factor of each row; steps[0] is the fuser
    moved = [(step.step, step.kind, step.parts[:, 0].tolist()) for step in pool.steps[1:] if step.kind in _MOVING]
    scores = after[-1][1]
    rows = []
    for row, (passage, key, title, folder, tier) in enumerate(zip(passages, *labels, strict=True)):
        notes: dict[str, Any] = {}
        for of_row in remarks:
            notes |= of_row[row]
        notes |= {name: name_memories(notes[name], store) for name in OTHERS if notes.get(name)}
        for other in notes.get("superseded_by", ()) if snippet_characters else ():
            # Only a successor that stands below this row or is missing has its words shown here.
            if other["id"] not in numbers[:row]:
                other["words"] = decisions[other["id"]]
        state = notes.pop("state") if "state" in notes else names[row]
        if row in summaries:
            notes["shown"] = "summary"
        sent = notes.pop(repeated_rows.SENT_BEFORE, ())
        text = readable(passage.text, outcome.query.terms) if snippet_characters > 0 else ""
        rows.append(
            ResultRow(
                id=numbers[row],
                key=key,
                title=cut_at_word(title, LONGEST_TITLE),
                folder=folder,
                tier=tier,
                state=state,
                score=scores[row],
                channels=found[row],
                steps=tuple((step, of_step[row]) for step, of_step in after),
                snippet=excerpt(text, outcome.query.terms, snippet_characters),
                passage=text,
                reason=_reason(found[row], [(step, kind, parts[row]) for step, kind, parts in moved]),
                heading=cut_at_word(passage.heading, LONGEST_PATH),
                first_line=passage.first_line,
                last_line=passage.last_line,
                chunk_hits=chunk_hits[row],
                notes={name: note for name, note in notes.items() if name not in SAID_BY_ROW},
                content=repeated_rows.whole_text(numbers[row], store) if content else "",
            )
        )
        if sent:
            rows[-1] = repeated_rows.shorten_repeated_row(rows[-1], sent, store, of_repeats)
    return rows


def _unmatched(pool: Pool) -> dict[int, int]:
    """The memories whose matching passage no channel knows, by row."""
    candidates = pool.candidates
    # A row that is a passage shows itself; only whole memories may show a summary.
    unmatched = np.flatnonzero((candidates.passages < 0) & (pool.ids == candidates.parents))
    return dict(zip(unmatched.tolist(), candidates.parents[unmatched].tolist(), strict=True))


def _summaries(unmatched: Mapping[int, int], store: Store) -> dict[int, Passage]:
    """Summaries to show, by row, for memories whose matching passage no channel knows.

    Otherwise their first passage would be shown, whether relevant or not. Line numbers are those of the whole text.
    """
    known = store.passages.summaries(list(unmatched.values())) if unmatched else {}
    return {row: known[memory] for row, memory in unmatched.items() if memory in known}


def name_memories(memories: list[int], store: Store) -> list[NamedMemory]:
    """Memories with key and title, for readers."""
    ids = np.array(memories, np.int64)
    keys, titles = (store.attributes.label(name, ids) for name in ("key", "title"))
    return [
        {"id": number, "key": str(key), "title": cut_at_word(str(title), LONGEST_TITLE)}
        for number, key, title in zip(memories, keys, titles, strict=True)
    ]


def _unseen_successors(remarks: Sequence[Sequence[Mapping[str, Any]]], numbers: Sequence[int]) -> list[int]:
    """The successors that are ranked below a memory they replace, or not at all.

    `remarks` are the notes of each annotator on each row, `numbers` the memories of the rows.
    """
    shown = {
        other: None
        for row in range(len(numbers))
        for of_row in remarks
        for other in of_row[row].get("superseded_by", ())
        if other not in numbers[:row]
    }
    return list(shown)


def _decisions(successors: Sequence[int], store: Store) -> dict[int, str]:
    """The words of the decisions of these memories."""
    if not successors:
        return {}
    from speckit_memory.engine.answers.decision_words import decision_words  # few answers contain superseded memories

    return {memory: decision_words(body) for memory, body in store.passages.bodies(successors).items()}


def _states(store: Store, memories: Ids, now: float, annotate: Sequence[BoundStep[Annotator]]) -> list[str]:
    """The state of each memory (feature M3), for rows without a state from a step.

    If a step reports states but did not reach the row, that step's thresholds are used: one set per answer.
    """
    told = next((telling for step in annotate if (telling := STATES.of(step.component))), None)
    if told is not None:
        names, _ = call_guarded(lambda: list(map(str, told.states(memories, now, store))))
        return names if names and len(names) == len(memories) else [UNKNOWN_STATE] * len(memories)
    return [name_of(place) for place in states_of(store.attributes, memories, now, Thresholds()).tolist()]


def _evidence(candidates: Candidates) -> list[dict[str, ChannelEvidence]]:
    """The best rank of each row in each channel, over all query variants."""
    found: list[dict[str, ChannelEvidence]] = []
    # rank: (n, columns) int, NO_RANK for no hit; raw: (n, columns) float64, NaN for no hit
    for ranks, scores in zip(candidates.rank.tolist(), candidates.raw.tolist(), strict=True):
        evidence: dict[str, ChannelEvidence] = {}
        for channel, rank, score in zip(candidates.channels, ranks, scores, strict=True):
            if rank != NO_RANK and (channel not in evidence or rank < evidence[channel].rank):
                evidence[channel] = ChannelEvidence(rank, score)
        found.append(evidence)
    return found


def _reason(evidence: dict[str, ChannelEvidence], moved: Iterable[tuple[str, str, float]]) -> str:
    """Why a row was found, in a sentence (feature P8); `moved` are steps, their kinds and their effect on the score."""
    seen = sorted(evidence.items(), key=lambda item: (item[1].rank, item[0]))
    by = ", ".join(f"{name} (rank {found.rank})" for name, found in seen)
    moves = []
    for step, kind, part in moved:
        if kind == "add" and abs(part) >= 0.0005:
            moves.append(f"{step} {part:+.3f}")
        elif kind == "multiply" and abs(part - 1) >= 0.0005:
            moves.append(f"{step} ×{part:.2f}")
    return f"surfaced because it was found by {by}" + (f"; {', '.join(moves)}" if moves else "")
