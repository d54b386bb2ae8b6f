"""Shadow pipelines, which run in addition to the served one; the control's answer is returned in any case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TypeVar

from speckit_memory.pipeline.comparing.divergence import parted_at
from speckit_memory.pipeline.model.columns import Query
from speckit_memory.pipeline.model.describing import kind_of
from speckit_memory.pipeline.model.trace import StepRecord
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.process.cancellation import WithdrawnError
from speckit_memory.pipeline.roles.composition import Pipeline
from speckit_memory.pipeline.running.journal import BeforeStep, StepRunner
from speckit_memory.pipeline.running.runner import Outcome, Runner
from speckit_memory.pipeline.running.step_memo import MemoRun, Reached, StepMemo

V = TypeVar("V")
_SHARES = 1 << 32


@dataclass(frozen=True, slots=True)
class ShadowRun:
    """The result of a pipeline for a query, as a value: an outcome, or the failure in its place.

    `total_ns` is the time of the query through this pipeline alone, shared steps included; `spent_ns` is the time
    actually spent here. `failure` names the kind of the first error and its step, without quoting anything; a run whose
    failed step was optional has an outcome as well.
    """

    pipeline: Pipeline
    outcome: Outcome | None
    steps: tuple[StepRecord, ...]
    total_ns: int
    spent_ns: int
    failure: str = ""
    parted_at: str = ""


@dataclass(frozen=True, slots=True)
class ShadowRequest:
    """A query that the control has answered, or failed on, with everything that other pipelines need to answer it."""

    query: Query
    control: ShadowRun
    memo: StepMemo
    reached: list[Reached]

    def run(self, variant: Runner, store: Store, pause: BeforeStep | None = None) -> ShadowRun:
        """Runs the query through another pipeline, over the same state of the store. Raises what `pause` raises.

        A step that the control ran with the same parameters and inputs is not run again. There is no deadline: the
        results that a pipeline omits when it is late say nothing about its quality.
        """
        query = replace(self.query, deadline_ns=None)
        memo = MemoRun(self.memo, variant.configurations)
        run = _run(variant, query, store, variant.journal(query, memo, pause))
        return replace(run, parted_at=parted_at(self.reached, memo.reached))

    def alone(self, variant: Runner, store: Store, pause: BeforeStep | None = None) -> ShadowRun:
        """Runs the query through another pipeline as if that were served: every step runs. Raises as `run`."""
        query = replace(self.query, deadline_ns=None)
        return _run(variant, query, store, variant.journal(query, pause=pause))


class Shadow:
    """A control whose answers are also passed on for comparison. It has the same protocol as the runner.

    A failure of the control is passed on like an answer, and raised.
    """

    def __init__(self, control: Runner, hand_on: Callable[[ShadowRequest], None]) -> None:
        """`hand_on` is called with every query and its answer; it must handle its own exceptions."""
        self._control = control
        self._hand_on = hand_on

    @property
    def pipeline(self) -> Pipeline:
        """The served pipeline."""
        return self._control.pipeline

    def run(self, query: Query, store: Store) -> Outcome:
        """The control's answer to one query. Raises the exceptions of the control."""
        memo = StepMemo()
        recording = MemoRun(memo, self._control.configurations)
        journal = self._control.journal(query, recording)
        try:
            outcome = self._control.noted(query, store, journal)
        except WithdrawnError:
            raise  # neither an answer nor a failure, so there is nothing to compare
        # BaseException: an interrupted search is passed on as a failure as well, and raised.
        except BaseException as error:
            self._hand_on(ShadowRequest(query, _failed(self.pipeline, journal, error), memo, recording.reached))
            raise
        trace = outcome.trace
        run = ShadowRun(self.pipeline, outcome, trace.steps, trace.total_ns, trace.total_ns, _first(journal))
        self._hand_on(ShadowRequest(query, run, memo, recording.reached))
        return outcome


def _run(runner: Runner, query: Query, store: Store, journal: StepRunner) -> ShadowRun:
    try:
        outcome = runner.noted(query, store, journal)
    except Exception as error:
        return _failed(runner.pipeline, journal, error)
    total = outcome.trace.total_ns
    # Shared steps ran in the control; their time belongs to the pipeline's total, not to what was spent here.
    return ShadowRun(runner.pipeline, outcome, outcome.trace.steps, total, total - journal.shared_ns, _first(journal))


def _failed(pipeline: Pipeline, journal: StepRunner, error: BaseException) -> ShadowRun:
    spent = journal.clock() - journal.started_ns
    why = _first(journal) or kind_of(error)
    # The other way round: the clock has measured only what ran here.
    return ShadowRun(pipeline, None, tuple(journal.records), spent + journal.shared_ns, spent, why)


def _first(journal: StepRunner) -> str:
    # (step, kind of error) becomes "kind in step"; only the first failure is named.
    return " in ".join(reversed(journal.failures[0])) if journal.failures else ""


def is_sampled(query_id: str, variant: str, share: float) -> bool:
    """Whether a variant sees a query. The same in every process, so that a comparison can be repeated."""
    # _number is uniform over 32 bits; the same query is in every larger share too.
    return _number(query_id, variant) < share * _SHARES


def shuffle_variants(query_id: str, variants: Sequence[V], name: Callable[[V], str]) -> list[V]:
    """The variants in running order for this query, shuffled so that none always profits from warm caches."""
    return sorted(variants, key=lambda variant: _number(f"order {query_id}", name(variant)))


def _number(query_id: str, variant: str) -> int:
    # The first four bytes, most significant first.
    return int.from_bytes(sha256(f"{query_id}:{variant}".encode()).digest()[:4])
