"""The user's own memories as a source to measure on, from the first day; nothing is written to the store.

The queries are made of the memories, or recorded and judged by the use of their answers (feature E3, phase B).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from speckit_memory.config.workspace.settings import EVALUATION_VARIABLE, Settings, settings
from speckit_memory.engine.api.memory import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.datasets.dataset import Dataset, DatasetQuery
from speckit_memory.evaluation.ground_truth.ground import GroundTruth, digest
from speckit_memory.evaluation.ground_truth.own_queries import (
    LEAST_QUERIES,
    OwnDocument,
    OwnQueries,
    own_documents,
    own_queries,
)
from speckit_memory.evaluation.measuring.measure import OnMeasured, ThrowawayStore
from speckit_memory.evaluation.statistics.metrics import relevant
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, read_if_there
from speckit_memory.memory.store.evaluation.records import USE_GRADES, QueryJudgement, QueryRecord, UseRecord
from speckit_memory.pipeline.configuration.loading import PipelineSource

TEXTS_HINT = "Texts are kept for seven days unless .speckit/config.yaml says otherwise: `evaluation: {keep_texts: 30}`."
_Known = tuple[list[QueryRecord], list[UseRecord], dict[str, tuple[int, ...]], list[QueryJudgement]]


def used_queries(documents: Sequence[OwnDocument], store: Path) -> OwnQueries:
    """The recorded queries with a used memory that still exists. Raises SpeckitError (E125) if there are too few.

    Repetitions of a question are one query; of all their uses the highest grade of each memory counts. A judgement by a
    person or a command takes precedence over uses; a memory that was served and not used has grade 0.
    """
    recorded, uses, ignored, judgements = read_if_there(store, _load_known) or ([], [], {}, [])
    found = judged_by_use(documents, recorded, uses, ignored=ignored, judgements=judgements)
    if len(found.queries) < LEAST_QUERIES:
        kept = sum(query.question is not None for query in recorded)
        message = (
            f"{len(found.queries)} recorded queries can be judged by use; {LEAST_QUERIES} are needed "
            f"({len(recorded):,} recorded, {kept:,} with their texts, {len(uses):,} uses of their answers)"
        )
        actions = ("go on working", "measure by made queries: --own")
        raise SpeckitError("E125", message, hint=TEXTS_HINT, actions=actions)
    return found


def judged_by_use(
    documents: Sequence[OwnDocument],
    recorded: Sequence[QueryRecord],
    uses: Sequence[UseRecord],
    *,
    ignored: Mapping[str, Sequence[int]] | None = None,
    judgements: Sequence[QueryJudgement] = (),
) -> OwnQueries:
    """Judges recorded queries by use; only existing memories and queries with a stored text count.

    Args:
        documents: The existing memories.
        recorded: The recorded queries.
        uses: The uses of their answers.
        ignored: By query, the memories of an answer of which only others were used.
        judgements: Explicit judgements, by time; the latest counts.
    """
    keys = {one.memory: one.document.key for one in documents}
    asked = {query.id: query for query in recorded if query.question and str(query.question.get("text", "")).strip()}
    grades: dict[tuple[str, str], dict[str, float]] = {}
    in_vain = ((query, memory, 0.0) for query, memories in (ignored or {}).items() for memory in memories)
    for name, memory, grade in (*in_vain, *((use.query, use.memory, USE_GRADES[use.use]) for use in uses)):
        if (found := _question_and_key(asked.get(name), keys.get(memory))) is not None:
            known = grades.setdefault(found[0], {})
            # the highest grade of all uses
            known[found[1]] = max(known.get(found[1], 0.0), grade)
    for one in judgements:
        if (found := _question_and_key(asked.get(one.query), keys.get(one.memory))) is not None:
            # explicit judgements are applied last and override uses
            grades.setdefault(found[0], {})[found[1]] = float(one.grade)
    grades = {question: known for question, known in grades.items() if relevant(known)}
    queries = tuple(
        DatasetQuery(f"used-{number:04}", text, folder) for number, (text, folder) in enumerate(sorted(grades), 1)
    )
    return OwnQueries(queries, {query.id: grades[query.text, query.folder] for query in queries}, (), ())


def _question_and_key(query: QueryRecord | None, key: str | None) -> tuple[tuple[str, str], str] | None:
    """The text and folder of a question, and the key of a memory; None where either is gone."""
    if query is None or query.question is None or key is None:
        return None
    return (str(query.question["text"]), query.folder), key


def _load_known(database: EvaluationDatabase) -> _Known:
    return database.queries(), database.uses(), database.ignored(), database.judgements("judged")


SEED = 20
KNOWN_ITEM = (
    "these queries are made of the words of the memories that answer them, which favours lexical search: a gain of "
    "vectors is worth more than it looks here, a loss less"
)
BY_USE = "only memories in served answers could be used: a memory that no pipeline found so far is not judged"


@dataclass(frozen=True, slots=True)
class OwnSource:
    """The memories of a store, with made queries, or with `from_use` recorded queries judged by the use of their
    answers.

    `window` selects among the made queries: the second window shares none with the first.
    """

    db: Path | str | None = None
    from_use: bool = False
    window: int = 1

    @property
    def name(self) -> str:
        """The name shown in progress bars."""
        return "own memories"

    def ground(self, environ: Mapping[str, str]) -> GroundTruth:
        """Reads the store and makes the queries.

        Raises SpeckitError: E010 without a store, E125 with the reasons when too few queries can be made.
        """
        config = settings(self.db, environ=environ)
        with Memory.open(config.db, "bm25", root=config.root, environ=environ, create=False, shadows=False) as memory:
            documents = own_documents(memory)
        made = (
            used_queries(documents, config.db)
            if self.from_use
            else own_queries(documents, seed=SEED, window=self.window)
        )
        keys = frozenset(one.document.key for one in documents)
        dataset = Dataset(config.root, keys, made.queries, made.judgements)
        content = (f"{one.document.key}\n{one.content}\n".encode() for one in documents)
        return GroundTruth(
            dataset=dataset,
            opened=partial(_opened, config),
            digest=digest(dataset, content),
            documents=tuple(one.document for one in documents),
            unanswerable=made.unanswerable,
            warnings=(BY_USE if self.from_use else KNOWN_ITEM, *made.missing),
            by_use=self.from_use,
        )


@contextmanager
def _opened(
    config: Settings,
    dataset: Dataset,  # noqa: ARG001 -- the store holds it already
    pipelines: Sequence[PipelineSource],
    *,
    environ: Mapping[str, str] | None,
    progress: OnMeasured,  # noqa: ARG001 -- nothing is indexed
) -> Iterator[ThrowawayStore]:
    """Opens the store itself: searches alone change nothing in it, and nothing is recorded."""
    # searches for measurement must not enter the log of live queries
    silent = {**(config.environ if environ is None else environ), EVALUATION_VARIABLE: "off"}
    with ExitStack() as stack:
        first = stack.enter_context(
            Memory.open(config.db, pipelines[0], root=config.root, environ=silent, create=False, shadows=False)
        )
        others = [stack.enter_context(first.using(pipeline)) for pipeline in pipelines[1:]]
        yield ThrowawayStore((first, *others), 0.0, ())
