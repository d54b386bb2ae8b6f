"""Tables other than queries and answers: uses, scorings, judgements, labels, evaluations and decisions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from speckit_memory.memory.store.evaluation import packing
from speckit_memory.memory.store.evaluation.observations import served_answers
from speckit_memory.memory.store.evaluation.records import (
    ChannelSighting,
    EvaluationFigure,
    FlagChange,
    PlacementChange,
    QueryJudgement,
    ScoredStep,
    ScoreSample,
    StoredEvaluation,
    StoredFigure,
    UseRecord,
)
from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.queries import rows, value

_EVALUATION = "SELECT id, kind, at, dataset, digest, document FROM evaluations"


def put_use(connection: Connection, use: UseRecord) -> None:
    """Stores a use; once per query, memory and kind of use."""
    connection.execute(
        'INSERT INTO uses (query, memory, "use", rank, at, session) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
        (use.query, use.memory, use.use, use.rank, use.at, use.session),
    )


def uses(connection: Connection, since: float | None = None) -> list[UseRecord]:
    """Uses of memories, by time."""
    found = rows(
        connection,
        'SELECT query, memory, "use", rank, at, session FROM uses WHERE at >= ? ORDER BY at',
        (since or 0.0,),
    )
    return [UseRecord(*row) for row in found]


def put_scoring(connection: Connection, scoring: ScoreSample) -> None:
    """Stores how one answer got its scores, and the ranks of its memories in each channel; once per query."""
    steps = json.dumps([[step.step, step.kind, step.names, step.parts, step.after] for step in scoring.steps])
    connection.execute(
        "INSERT INTO scorings VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (scoring.query, scoring.pipeline, scoring.at, packing.packed_integers(scoring.memories), steps),
    )
    for channel, seen in scoring.channels.items():
        connection.execute(
            "INSERT INTO channel_results VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (
                scoring.query,
                channel,
                packing.packed_integers([one.memory for one in seen]),
                packing.packed_integers([one.rank for one in seen]),
                packing.packed_reals([one.raw for one in seen]),
            ),
        )


def scorings(connection: Connection, since: float | None = None) -> list[ScoreSample]:
    """How sampled answers got their scores, by time (feature E7)."""
    channels: dict[str, dict[str, tuple[ChannelSighting, ...]]] = {}
    for query, channel, *packed in rows(
        connection,
        "SELECT query, channel, c.memories, ranks, scores FROM channel_results c JOIN scorings USING (query) "
        "WHERE at >= ? ORDER BY query, channel",
        (since or 0.0,),
    ):
        columns = packing.integers(packed[0]), packing.integers(packed[1]), packing.reals(packed[2])
        channels.setdefault(query, {})[channel] = tuple(map(ChannelSighting, *columns))
    sampled = "SELECT query, pipeline, at, memories, steps FROM scorings WHERE at >= ? ORDER BY at"
    return [
        ScoreSample(query, pipeline, at, packing.integers(memories), _steps(steps), channels.get(query, {}))
        for query, pipeline, at, memories, steps in rows(connection, sampled, (since or 0.0,))
    ]


def _steps(document: str) -> tuple[ScoredStep, ...]:
    return tuple(
        ScoredStep(step, kind, tuple(names), tuple(map(tuple, parts)), tuple(after))
        for step, kind, names, parts, after in json.loads(document)
    )


def ignored(connection: Connection, since: float | None = None) -> dict[str, tuple[int, ...]]:
    """For each query whose answer was used, the memories of the answer that were not, best first."""
    used: dict[str, set[int]] = {}
    for use in uses(connection, since):
        used.setdefault(use.query, set()).add(use.memory)
    return {
        seen.query.id: tuple(memory for memory in seen.control.memories if memory not in used[seen.query.id])
        for seen in served_answers(connection, since)
        if seen.query.id in used
    }


def put_judgements(connection: Connection, judgements: Iterable[QueryJudgement]) -> None:
    """Stores judgements, each replacing an earlier one of the same query, memory, source and judge."""
    connection.executemany(
        "INSERT OR REPLACE INTO ground_truth (query, memory, source, judge, grade, at) VALUES (?, ?, ?, ?, ?, ?)",
        ((one.query, one.memory, one.source, one.by, one.grade, one.at) for one in judgements),
    )


def remove_judgement(connection: Connection, query: str, memory: int, by: str) -> None:
    """Deletes a judge's judgement of a memory for a query.

    Args:
        connection: A connection inside a transaction.
        query: Id of the query.
        memory: Id of the memory.
        by: The judge.
    """
    connection.execute(
        "DELETE FROM ground_truth WHERE query = ? AND memory = ? AND source = 'judged' AND judge = ?",
        (query, memory, by),
    )


def put_labels(connection: Connection, name: str, grades: Mapping[str, float], by: str, at: float) -> None:
    """Stores labels in a judgement list, replacing earlier labels of the same pairs by this judge.

    Args:
        connection: A connection inside a transaction.
        name: Name of the list.
        grades: Grade by pair, a digest of the question and the text.
        by: The judge.
        at: The time, in epoch seconds.
    """
    labelled = ((name, pair, by, grade, at) for pair, grade in grades.items())
    connection.executemany("INSERT OR REPLACE INTO labels VALUES (?, ?, ?, ?, ?)", labelled)


def remove_label(connection: Connection, name: str, pair: str, by: str) -> None:
    """Deletes a judge's label of a pair from a judgement list.

    Args:
        connection: A connection inside a transaction.
        name: Name of the judgement list.
        pair: Digest of the question and the text.
        by: The judge.
    """
    connection.execute("DELETE FROM labels WHERE list = ? AND pair = ? AND judge = ?", (name, pair, by))


def labels(connection: Connection, name: str) -> dict[str, float]:
    """The grades of a judgement list by pair; the latest label of each pair counts."""
    # dict() keeps the last of equal pairs, hence the order by time
    return dict(rows(connection, "SELECT pair, grade FROM labels WHERE list = ? ORDER BY at, judge", (name,)))


def judgements(connection: Connection, source: str = "") -> list[QueryJudgement]:
    """Judgements of memories for queries, by time; of one source, or of all ("")."""
    found = rows(
        connection,
        "SELECT query, memory, grade, source, judge, at FROM ground_truth WHERE ?1 IN ('', source) "
        "ORDER BY at, query, memory",
        (source,),
    )
    return [QueryJudgement(*row) for row in found]


def put_evaluation(connection: Connection, stored: StoredEvaluation, figures: Iterable[EvaluationFigure] = ()) -> None:
    """Stores a comparison with its figures. Earlier ones with the same id are kept as its history."""
    number = value(
        connection,
        "INSERT INTO evaluations (id, kind, at, dataset, digest, document) VALUES (?, ?, ?, ?, ?, ?) RETURNING number",
        (stored.id, stored.kind, stored.at, stored.dataset, stored.digest, json.dumps(stored.document)),
    )
    connection.executemany(
        "INSERT OR REPLACE INTO metric_snapshots VALUES (?, ?, ?, ?, ?)",
        ((number, one.pipeline, one.metric, one.value, one.queries) for one in figures),
    )


def evaluation(connection: Connection, name: str) -> StoredEvaluation | None:
    """The latest comparison with this id."""
    return next(reversed(evaluations(connection, name)), None) if name else None


def evaluations(connection: Connection, wanted: str = "") -> list[StoredEvaluation]:
    """Comparisons by time: those with the id `wanted`, or all ("")."""
    found = rows(connection, f"{_EVALUATION} WHERE ?1 IN ('', id) ORDER BY at, number", (wanted,))
    return [
        StoredEvaluation(id=name, kind=kind, at=at, dataset=dataset, digest=digest, document=json.loads(document))
        for name, kind, at, dataset, digest, document in found
    ]


def measured_figures(connection: Connection, metric: str, since: float | None = None) -> list[StoredFigure]:
    """Values of a metric over time, for all measured pipelines."""
    found = rows(
        connection,
        "SELECT e.number, e.id, e.kind, e.at, e.dataset, s.pipeline, s.metric, s.value, s.queries "
        "FROM metric_snapshots s JOIN evaluations e ON e.number = s.evaluation "
        "WHERE s.metric = ? AND e.at >= ? ORDER BY e.at, e.number, s.pipeline",
        (metric, since or 0.0),
    )
    # The name of a pipeline is only in the report's JSON; figures refer to it by hash, or by name in some reports.
    names: dict[int, dict[str, str]] = {}
    for number in {number for number, *_ in found}:
        document = json.loads(value(connection, "SELECT document FROM evaluations WHERE number = ?", (number,)))
        listed = document.get("pipelines", ())
        names[number] = {one[key]: one.get("name", "") for one in listed for key in ("name", "hash") if key in one}
    return [
        StoredFigure(evaluation, kind, at, dataset, names[number].get(figure[0], ""), EvaluationFigure(*figure))
        for number, evaluation, kind, at, dataset, *figure in found
    ]


def metrics(connection: Connection) -> list[str]:
    """Names of all measured metrics, in order."""
    return [str(name) for (name,) in rows(connection, "SELECT DISTINCT metric FROM metric_snapshots ORDER BY metric")]


def put_flag_change(connection: Connection, change: FlagChange) -> None:
    """Records a change of a flag."""
    connection.execute(
        "INSERT INTO flag_changes (name, before, after, at, evidence) VALUES (?, ?, ?, ?, ?)",
        (change.name, change.before, change.after, change.at, change.evidence),
    )


def flag_changes(connection: Connection, name: str = "") -> list[FlagChange]:
    """Changes of flags by time; of one flag, or of all ("")."""
    sql = "SELECT name, before, after, at, evidence FROM flag_changes WHERE ?1 IN ('', name) ORDER BY at, number"
    return [FlagChange(*row) for row in rows(connection, sql, (name,))]


def put_retreat(connection: Connection, retreat: PlacementChange) -> None:
    """Stores a retreat of a variant."""
    connection.execute(
        "INSERT INTO retreats (control, variant, placement, reason, at) VALUES (?, ?, ?, ?, ?)",
        (retreat.control, retreat.variant, retreat.placement, retreat.reason, retreat.at),
    )


def retreats(connection: Connection) -> list[PlacementChange]:
    """Retreats, by time."""
    sql = "SELECT control, variant, placement, reason, at FROM retreats ORDER BY at, number"
    return [PlacementChange(*row) for row in rows(connection, sql)]
