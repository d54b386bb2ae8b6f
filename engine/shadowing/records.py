"""Converts runs to the records that the evaluation database stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from speckit_memory.engine.answers.request import RecordedRequest
from speckit_memory.engine.recording.observations import answer_record, query_record
from speckit_memory.engine.shadowing.variant import RunningVariant
from speckit_memory.memory.store.evaluation.records import AnswerRecord, Observation, StepCost, VariantRecord
from speckit_memory.pipeline.comparing.shadow import ShadowRun
from speckit_memory.pipeline.model.columns import Query


@dataclass(frozen=True, slots=True)
class QueryRef:
    """A query as records identify it: id, time of the query (epoch seconds), store and change number.

    `asked` repeats the query; it is None unless texts are recorded. `folder` is the searched folder, if known.
    """

    id: str
    at: float
    store: str
    state: int
    asked: RecordedRequest | None
    folder: str = ""


@dataclass(frozen=True, slots=True)
class RunBeside:
    """A variant's run for one query, and the milliseconds that callers may have waited for it.

    `teams` of a mixed answer are those of the served memories, see `VariantRecord.teams`.
    """

    variant: RunningVariant
    run: ShadowRun
    overhead_ms: float
    teams: tuple[int, ...] = ()


def observation(named: QueryRef, query: Query, control: ShadowRun, beside: Sequence[RunBeside]) -> Observation:
    """The record of one query: the answer that was served and those of the variants.

    Args:
        named: Identifies the query.
        query: The query, recorded unless the control planned its own.
        control: The run whose answer was served.
        beside: The runs of the variants.
    """
    planned = control.outcome.query if control.outcome else query
    record = query_record(
        named.id, planned, at=named.at, store=named.store, state=named.state, folder=named.folder, asked=named.asked
    )
    return Observation(record, run_record(control), tuple(map(_variant, beside)))


def run_record(run: ShadowRun, *, with_rows: bool = True) -> AnswerRecord:
    """The record of a run, with or without the rows it returned."""
    known = answer_record(run.outcome) if run.outcome and with_rows else AnswerRecord(run.pipeline.hash)
    return replace(
        known,
        pipeline=run.pipeline.hash,
        total_ms=run.total_ns / 1e6,
        steps=tuple(
            StepCost(one.stage, one.step, one.ns / 1e6, one.n_in, one.n_out, one.state, one.shared) for one in run.steps
        ),
        failure=run.failure,
    )


def _variant(beside: RunBeside) -> VariantRecord:
    variant, run = beside.variant, beside.run
    return VariantRecord(
        mode=variant.mode,
        answer=run_record(run, with_rows=variant.mode != "dark_run"),
        flag=variant.flag,
        parted_at=run.parted_at,
        spent_ms=run.spent_ns / 1e6,
        dark_run_overhead_ms=beside.overhead_ms,
        teams=beside.teams,
    )
