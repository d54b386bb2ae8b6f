"""Recorded queries, judged by the use of their answers (feature E3, phase B)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.datasets.dataset import DatasetQuery
from speckit_memory.evaluation.ground_truth.own_documents import OwnDocument
from speckit_memory.evaluation.ground_truth.own_queries import LEAST_QUERIES, OwnQueries
from speckit_memory.evaluation.statistics.metrics import relevant
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, read_if_there
from speckit_memory.memory.store.evaluation.records import USE_GRADES, QueryJudgement, QueryRecord, UseRecord

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
