"""The records of the evaluation database. Only `QueryRecord.question` holds content.

Times are epoch seconds and durations milliseconds; memories are identified by their ids in the store that answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, ClassVar, Literal

Mode = Literal["dark_run", "shadow", "interleaved"]
"""How a variant ran: only to measure its cost, for comparison, or interleaved into the served answer."""

Use = Literal["opened", "validated", "linked", "cited"]
"""What a reader did with a memory of an answer."""

USE_GRADES: Mapping[Use, float] = {"opened": 1.0, "cited": 2.0, "linked": 2.0, "validated": 3.0}
"""Relevance grade by use: opening may have been a mistake, validating was deliberate."""


@dataclass(frozen=True, slots=True)
class PipelineRecord:
    """A pipeline that answered. `budget_ms` is the time it allows for a variant (`budgets_ms.shadow`), None where
    unknown. The budget is part of the hash, but not of `ordering`, a digest that is equal for pipelines that answer
    alike ("" where unknown)."""

    hash: str
    name: str
    budget_ms: float | None = None
    ordering: str = field(default="", compare=False)
    ENTRIES: ClassVar = {"budget_ms": "", "ordering": ""}
    """Not in JSON documents."""


@dataclass(frozen=True, slots=True)
class QueryRecord:
    """A query with the attributes of its plan. `session` is a digest of the session's name, "" for none.

    `store` and `state` identify the store and its last change. `question` holds the inputs for a replay (text, filters,
    anchors), None once its text has been deleted. `read_point` holds the other inputs of the answer: the time (`now`),
    and for a session its working memory and the content sent to it; None without a question. `question_digest` is equal
    for equal questions, ignoring case and spacing, and differs between files; "" where unknown, as in rows of earlier
    versions. It is computed from `asked` when the record is written; `asked` itself is never stored.
    `rephrased_by` is the id of the query that asked the same in other words within a minute and whose answer shares no
    memory with this one; "" where there is none, or where texts are not kept.
    """

    id: str
    at: float
    intent: str
    complexity: str
    folder: str
    mode: str
    limit: int
    wordings: int
    session: str
    store: str
    state: int
    question: Mapping[str, Any] | None = None
    read_point: Mapping[str, Any] | None = None
    question_digest: str = ""
    asked: str = field(default="", repr=False, compare=False)
    rephrased_by: str = ""


@dataclass(frozen=True, slots=True)
class StepCost:
    """The cost of one step of one query. A `shared` step ran once for control and variant."""

    stage: str
    step: str
    ms: float
    rows_in: int
    rows_out: int
    state: str
    shared: bool = False


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """The answer of one pipeline to one query: memories with their scores, best first.

    `total_ms` is the time through this pipeline alone, shared steps included. `failure` names the kind of error and the
    step, without quoting content; "" if the query succeeded.
    """

    pipeline: str
    memories: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()
    total_ms: float = 0.0
    steps: Sequence[StepCost] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True)
class VariantRecord:
    """The answer of a variant that ran next to the control. A dark run has no memories: its result is discarded.

    `parted_at` is the first step whose output differs from the control's, "" if none does. `spent_ms` is the time of
    the variant's own steps; `dark_run_overhead_ms` is the part of it that the caller waited for. `teams` holds one
    number per memory of an interleaved answer: 1 if the variant contributed it, -1 for the control, 0 for neither; it
    is empty for other answers.
    """

    mode: Mode
    answer: AnswerRecord
    flag: str = ""
    parted_at: str = ""
    spent_ms: float = 0.0
    dark_run_overhead_ms: float = 0.0
    teams: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """One query, its served answer and the answers of variants."""

    query: QueryRecord
    control: AnswerRecord
    variants: tuple[VariantRecord, ...] = ()


Basis = Literal["live", "served", "present", "gone"]
"""The state of the store for both answers of a pair: "live", the variant ran during the search; "served", a replay over
the memories of the search that gave the same answer; "present", a replay of both over the state at the time of the
replay; "gone", no answers, as the folder of the query is no longer in the store."""


@dataclass(frozen=True, slots=True)
class RecordedPair:
    """Two answers to one query, the input of comparisons."""

    query: QueryRecord
    control: AnswerRecord
    variant: VariantRecord
    basis: Basis = "live"


@dataclass(frozen=True, slots=True)
class Arm:
    """The hashes of a control and a variant, and the `epoch` of their replays: a digest of the product's version, the
    model of the vectors and the store's time of creation."""

    control: str
    variant: str
    epoch: str


@dataclass(frozen=True, slots=True)
class Replay:
    """The answers of two pipelines to a stored query, both over the state `state` of the store."""

    query: str
    arm: Arm
    basis: Basis
    state: int
    control: AnswerRecord
    variant: VariantRecord


@dataclass(frozen=True, slots=True)
class DroppedQueries:
    """Number of queries that a variant did not see since the last record, by reason.

    "queue": too many were waiting; "busy": searches left no time; "state": the state of the store could not be held;
    "off": the variant is off, or its state was not known in time; "late": the answer itself was incomplete because of
    its deadline; "end": the process ended first; "mixed": the answer was interleaved with another variant; "rollout":
    the session is in the share for which a flag is enabled, so that another pipeline answered; "resume": a handover
    answered, which uses a separate pipeline.

    The variant "" counts queries without a variant that could not be recorded.
    """

    control: str
    variant: str
    mode: Mode
    why: str
    count: int


@dataclass(frozen=True, slots=True)
class VariantTally:
    """Number of queries that a variant saw next to a control, deleted ones included; the failures among the stored
    ones; and the number of queries it did not see, by reason."""

    seen: int
    failed: int
    dropped: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ExperimentRecord:
    """A comparison of two pipelines over all stored queries."""

    control: PipelineRecord
    variant: PipelineRecord
    mode: Mode
    flag: str
    first: float
    last: float
    pairs: int
    failed: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    pruned: int = 0
    """Number of further pairs that have been deleted for their age or to save space."""
    epoch: str = ""
    """The epoch of its replays (see `Arm`); "" for a variant that ran with the search."""

    @property
    def id(self) -> str:
        """The id in reports and evidence, equal for the same pipelines in the same mode and epoch."""
        return experiment_id(self.control.hash, self.variant.hash, self.mode, self.epoch)


def experiment_id(control: str, variant: str, mode: Mode, epoch: str = "") -> str:
    """The id of an experiment: 12 hexadecimal digits.

    Args:
        control: Hash of the control pipeline.
        variant: Hash of the variant.
        mode: How the variant ran.
        epoch: The epoch of replays (see `Arm`); "" for a variant that ran with the search.
    """
    parts = [mode, control, variant, *([epoch] if epoch else [])]
    return sha256(":".join(parts).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class UseRecord:
    """A reader's use, at `at`, of a memory that was at `rank` (from 1) in the answer to a query."""

    query: str
    memory: int
    use: Use
    rank: int
    at: float
    session: str = ""


@dataclass(frozen=True, slots=True)
class UsageSignal:
    """A sign that a memory was used. It is attributed to an answer when it is recorded.

    `session` is a digest, "" where unknown; `asked` is the id of the query that was itself the sign, if it was one.
    """

    memory: int
    use: Use
    at: float
    session: str = ""
    asked: str = ""


@dataclass(frozen=True, slots=True)
class ChannelSighting:
    """A memory's `rank` (from 1) in a channel, with the channel's own score `raw`."""

    memory: int
    rank: int
    raw: float


@dataclass(frozen=True, slots=True)
class ScoredStep:
    """A step that changed scores: its contributions to each memory of the answer, and the scores after it.

    `kind` and `names` are those of explanations; `parts` has one row per memory, with one number per name.
    """

    step: str
    kind: str
    names: tuple[str, ...]
    parts: tuple[tuple[float, ...], ...]
    after: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ScoreSample:
    """How the served memories of one sampled query got their scores (feature E7)."""

    query: str
    pipeline: str
    at: float
    memories: tuple[int, ...]
    steps: tuple[ScoredStep, ...]
    channels: Mapping[str, tuple[ChannelSighting, ...]]


@dataclass(frozen=True, slots=True)
class QueryJudgement:
    """The relevance of one memory for one query: `grade` from 0 (irrelevant) to 3.

    `query` is the id of a recorded or generated query; `source` is the origin of the judgement, and `by` the person or
    command. The latest one of the same source and judge counts.
    """

    query: str
    memory: int
    grade: int
    source: Literal["made", "used", "judged"]
    by: str
    at: float


@dataclass(frozen=True, slots=True)
class FlagChange:
    """A change of a flag's state. `evidence` is the id of the experiment or evaluation that was the reason, or ""."""

    name: str
    before: str
    after: str
    at: float
    evidence: str


@dataclass(frozen=True, slots=True)
class PlacementChange:
    """A variant's move to another `placement`, in the end "off"; the reason quotes no content."""

    control: str
    variant: str
    placement: str
    reason: str
    at: float


@dataclass(frozen=True, slots=True)
class EvaluationFigure:
    """One figure of a stored evaluation: a pipeline's value of a metric, and the number of queries."""

    pipeline: str
    metric: str
    value: float
    queries: int


@dataclass(frozen=True, slots=True)
class StoredFigure:
    """A figure with the evaluation that measured it: its id, command, time (epoch seconds) and dataset.

    `name` is the name of the pipeline at that time, "" where the evaluation does not say.
    """

    evaluation: str
    kind: str
    at: float
    dataset: str
    name: str
    figure: EvaluationFigure


@dataclass(frozen=True, slots=True)
class StoredEvaluation:
    """A comparison on judged queries, stored so that a flag can cite it.

    `kind` is the command that made it, `dataset` and `digest` identify the queries, `document` is the report's JSON.
    """

    id: str
    kind: str
    at: float
    dataset: str
    digest: str
    document: Mapping[str, Any]
