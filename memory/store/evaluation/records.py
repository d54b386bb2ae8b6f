"""What the evaluation database keeps, as values. Nothing here is content but `QueryRecord.question`.

Moments are epoch seconds, times milliseconds; memories are named by their ids in the store that answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

Mode = Literal["dark_run", "shadow", "interleaved"]
"""How a variant ran beside the control: for its cost alone, to be compared, or mixed into the served answer."""

Use = Literal["opened", "validated", "linked", "cited"]
"""What a reader did with a memory that an answer had brought."""

USE_GRADES: Mapping[Use, float] = {"opened": 1.0, "cited": 2.0, "linked": 2.0, "validated": 3.0}
"""What a use says of how relevant a memory is: opened may have been a mistake, validated was meant."""


@dataclass(frozen=True, slots=True)
class PipelineRecord:
    """A pipeline that answered. `budget_ms` is what it lets a variant take beside it (`budgets_ms.shadow`), None where
    nobody noted it. It is part of the hash, and not of `ordering`, which is the same for pipelines that answer alike;
    "" where it is not known."""

    hash: str
    name: str
    budget_ms: float | None = None
    ordering: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class QueryRecord:
    """A query as its plan saw it. `session` is a digest of the session's name, "" for none.

    `store` and `state` name the store and its last change. `question` is what asks it again (text, filters, anchors),
    None where its words are kept no more. `read_point` is what else decided on the answer: the moment (`now`), and for
    the query of a session what that had attended to and was sent; None without a question. `question_digest` is the
    same for the same question, asked in whatever case and spacing, and differs from file to file; "" where it is not
    known, as in rows of earlier versions. It is made of `asked` when the record is written, which itself is never kept.
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


@dataclass(frozen=True, slots=True)
class StepCost:
    """One step of one query. `shared`: it ran once for control and variant, and its time is that of that run."""

    stage: str
    step: str
    ms: float
    rows_in: int
    rows_out: int
    state: str
    shared: bool = False


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """What one pipeline made of one query: memories with their scores, best first.

    `total_ms` is what the query takes through this pipeline alone, shared steps included. `failure` names the kind of
    error and the step, "" when there was an answer; it never quotes one.
    """

    pipeline: str
    memories: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()
    total_ms: float = 0.0
    steps: tuple[StepCost, ...] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True)
class VariantRecord:
    """The answer of a variant that ran beside the control. A dark run keeps no memories: its result is discarded.

    `parted_at` is the first step whose outcome differs from that of the control, "" where none does. `spent_ms` is what
    running it beside the control took, without shared steps; `dark_run_overhead_ms` what of it the caller waited for.
    `teams` are those of the memories of the mixed answer that was served, one by one: 1 for one that the variant put
    there, -1 for the control, 0 for neither; none for answers that were not mixed.
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
    """One query, the answer that was served and those beside it."""

    query: QueryRecord
    control: AnswerRecord
    variants: tuple[VariantRecord, ...] = ()


Basis = Literal["live", "served", "present", "gone"]
"""The state of the store that both answers of a pair rest on: "live", that of the search, in which the variant ran;
"served", a replay over the memories that the served answer came from, with the very same answer; "present", a replay of
both over the state at the time of the replay; "gone", no answers, as the folder of the query is in the store no
more."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two answers to one query, as comparisons read them."""

    query: QueryRecord
    control: AnswerRecord
    variant: VariantRecord
    basis: Basis = "live"


@dataclass(frozen=True, slots=True)
class Arm:
    """A control and a variant by their hashes, with the `epoch` in which both are replayed: a digest of the version of
    the product, the model of the vectors and the life of the store."""

    control: str
    variant: str
    epoch: str


@dataclass(frozen=True, slots=True)
class Replay:
    """What two pipelines made of a kept query, both over the state `state` of the store."""

    query: str
    arm: Arm
    basis: Basis
    state: int
    control: AnswerRecord
    variant: VariantRecord


@dataclass(frozen=True, slots=True)
class Dropped:
    """How many queries a variant did not see since the last record, and why.

    "queue": too many waited; "busy": searches left no time; "state": the state of the store could not be held; "off":
    it is switched off, or whether it is was not known in time; "late": the answer itself was incomplete, for its
    deadline; "end": the process ended first; "mixed": the answer was mixed with that of another variant; "rollout": the
    session is in the share for which a flag is enabled, so that another pipeline answered; "resume": a hand-over
    answered, which comes of a pipeline of its own.

    The variant "" stands for queries that none ran beside, and that could not be recorded.
    """

    control: str
    variant: str
    mode: Mode
    why: str
    count: int


@dataclass(frozen=True, slots=True)
class Tally:
    """How many queries a variant saw beside a control, those that were given up for their age or for room included; how
    many of those that are kept it failed on; and how many it did not see, by reason."""

    seen: int
    failed: int
    dropped: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Experiment:
    """A pair of pipelines that stood side by side, over all queries kept."""

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
    """Further pairs, which were kept once and have been given up for their age or for room."""
    epoch: str = ""
    """That of its replays, see `Arm`; "" for answers of a variant that ran beside the search."""

    @property
    def id(self) -> str:
        """Names the experiment in reports and as evidence: the same pipelines in the same mode and epoch."""
        return experiment_id(self.control.hash, self.variant.hash, self.mode, self.epoch)


def experiment_id(control: str, variant: str, mode: Mode, epoch: str = "") -> str:
    """The id of an experiment by the hashes of its two pipelines."""
    parts = [mode, control, variant, *([epoch] if epoch else [])]
    return sha256(":".join(parts).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class UseRecord:
    """What a reader did at `at` with a memory that the answer to a query had brought at `rank`, from 1."""

    query: str
    memory: int
    use: Use
    rank: int
    at: float
    session: str = ""


@dataclass(frozen=True, slots=True)
class Sign:
    """Somebody did something with a memory. Which answer had brought it is found out when it is recorded.

    `session` is a digest, "" when it is not known; `asked` names the query that was the sign itself, if it was one.
    """

    memory: int
    use: Use
    at: float
    session: str = ""
    asked: str = ""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A channel saw a memory at `rank`, from 1, with its own score `raw`."""

    memory: int
    rank: int
    raw: float


@dataclass(frozen=True, slots=True)
class ScoredStep:
    """A step that moved scores: what it brought to each memory of the answer, and the scores after it.

    `kind` and `names` are those of explanations; `parts` holds one row per memory with one number per name.
    """

    step: str
    kind: str
    names: tuple[str, ...]
    parts: tuple[tuple[float, ...], ...]
    after: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Scoring:
    """How the served memories of one query got their scores: the sample that is taken of them (feature E7)."""

    query: str
    pipeline: str
    at: float
    memories: tuple[int, ...]
    steps: tuple[ScoredStep, ...]
    channels: Mapping[str, tuple[Sighting, ...]]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is known of one memory for one query: `grade` 0 (of no use) to 3.

    `query` is the id of a recorded query, or of one that was made; `source` says how it is known, and `by` who or
    which command said so. The latest one of the same source and judge holds.
    """

    query: str
    memory: int
    grade: int
    source: Literal["made", "used", "judged"]
    by: str
    at: float


@dataclass(frozen=True, slots=True)
class FlagChange:
    """A flag went from one state to another. `evidence` names the experiment or evaluation it was done for, or ""."""

    name: str
    before: str
    after: str
    at: float
    evidence: str


@dataclass(frozen=True, slots=True)
class Retreat:
    """A variant was moved to another `placement`, "off" at last, for a reason that quotes nothing."""

    control: str
    variant: str
    placement: str
    reason: str
    at: float


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One figure of a stored evaluation: a pipeline's value of a metric over so many queries."""

    pipeline: str
    metric: str
    value: float
    queries: int


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure with the evaluation that measured it: its id, the command, the moment (epoch seconds) and the dataset.

    `name` is what the pipeline was called then, "" where the evaluation does not say.
    """

    evaluation: str
    kind: str
    at: float
    dataset: str
    name: str
    figure: Snapshot


@dataclass(frozen=True, slots=True)
class StoredEvaluation:
    """A comparison on judged queries, kept so that a flag can cite it.

    `kind` is the command that made it, `dataset` what was asked and its digest; `document` the report's JSON.
    """

    id: str
    kind: str
    at: float
    dataset: str
    digest: str
    document: Mapping[str, Any]
