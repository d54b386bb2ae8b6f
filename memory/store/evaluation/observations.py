"""Queries and the answers to them: written in one transaction, read back as they were."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, get_args

import apsw

from speckit_memory.memory.store.evaluation import packing
from speckit_memory.memory.store.evaluation.digests import question_digest
from speckit_memory.memory.store.evaluation.records import (
    AnswerRecord,
    Experiment,
    Mode,
    Observation,
    Pair,
    PipelineRecord,
    QueryRecord,
    StepCost,
    Tally,
    VariantRecord,
    experiment_id,
)
from speckit_memory.memory.store.file.queries import rows, value

Triple = tuple[str, str, Mode]
"""Control, variant and mode of an experiment."""
SERVED = "served"
"""The mode of the answer that the caller got."""

_QUERY = 'id, at, intent, complexity, folder, mode, "limit", wordings, session, store, state, question_digest, question'
_QUERY_OF_Q = ", ".join(f"q.{column}" for column in _QUERY.split(", "))
_ANSWER = "{0}.pipeline, {0}.memories, {0}.scores, {0}.total_ms, layouts_{0}.steps, {0}.costs, {0}.failure"
_PAIRS = f"""
SELECT {_QUERY_OF_Q}, {_ANSWER.format("c")}, v.mode, p.flag, p.parted_at, p.spent_ms, p.dark_run_overhead_ms, p.teams,
    {_ANSWER.format("v")}
FROM pairs p JOIN answers v ON v.number = p.answer JOIN queries q ON q.number = v.query
JOIN answers c ON c.query = q.number AND c.mode = '{SERVED}'
JOIN layouts layouts_c ON layouts_c.number = c.layout JOIN layouts layouts_v ON layouts_v.number = v.layout
WHERE q.at >= ?1 {{of}} ORDER BY q.at, q.number, v.number
"""
_EXPERIMENTS = f"""
SELECT c.pipeline, v.pipeline, v.mode, max(p.flag), min(q.at), max(q.at), count(*), sum(v.failure <> '')
FROM pairs p JOIN answers v ON v.number = p.answer JOIN queries q ON q.number = v.query
JOIN answers c ON c.query = q.number AND c.mode = '{SERVED}'
WHERE q.at >= ?1 {{of}} GROUP BY 1, 2, 3
"""
_OF_ONE = "AND c.pipeline = ?2 AND v.pipeline = ?3 AND v.mode = ?4"
_SERVED = f"""
SELECT {_QUERY_OF_Q}, {_ANSWER.format("c")} FROM queries q JOIN answers c ON c.query = q.number
AND c.mode = '{SERVED}' JOIN layouts layouts_c ON layouts_c.number = c.layout
WHERE q.at >= ? ORDER BY q.at, q.number
"""
_SEEN = 10
"""Of so many times as many runs as are wanted the latest beside one control are looked for."""
_LATEST = """
SELECT * FROM (SELECT number, query FROM answers WHERE mode = '{}' AND pipeline = ?2 ORDER BY number DESC LIMIT ?4 * ?5)
"""
_LATEST_COSTS = f"""
SELECT p.spent_ms FROM ({" UNION ALL ".join(_LATEST.format(mode) for mode in get_args(Mode))}) v
JOIN pairs p ON p.answer = v.number JOIN queries q ON q.number = v.query
JOIN answers c ON c.query = v.query AND c.mode = 'served' AND c.pipeline = ?1
WHERE q.at > ?3 ORDER BY v.number DESC LIMIT ?4
"""
_TALLY = """
SELECT count(*), coalesce(sum(v.failure <> ''), 0) FROM answers v JOIN pairs p ON p.answer = v.number
JOIN answers c ON c.query = v.query AND c.mode = 'served' AND c.pipeline = ?1
WHERE v.pipeline = ?2 AND v.mode = ?3
"""
_QUERY_COLUMNS = len(_QUERY.split(", "))
_ANSWER_COLUMNS = 7


def put_pipelines(connection: apsw.Connection, pipelines: Iterable[PipelineRecord]) -> None:
    """What the hashes of pipelines stand for; one that is known keeps its name, and gets a budget if it has none."""
    connection.executemany(
        "INSERT INTO pipelines (hash, name, budget_ms) VALUES (?, ?, ?) ON CONFLICT (hash) DO UPDATE "
        "SET budget_ms = excluded.budget_ms WHERE budget_ms IS NULL AND excluded.budget_ms IS NOT NULL",
        ((pipeline.hash, pipeline.name, pipeline.budget_ms) for pipeline in pipelines),
    )


def pipelines(connection: apsw.Connection) -> dict[str, PipelineRecord]:
    """What is known of pipelines, by their hashes."""
    found = rows(connection, "SELECT hash, name, budget_ms FROM pipelines")
    return {digest: PipelineRecord(digest, name, budget) for digest, name, budget in found}


def put_observation(connection: apsw.Connection, seen: Observation) -> None:
    """One query with its answers. What is known of it already stays; variants that are new are added."""
    query = seen.query
    question = None if query.question is None else json.dumps(query.question, ensure_ascii=False)
    connection.execute(
        f"INSERT INTO queries ({_QUERY}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
        (query.id, query.at, query.intent, query.complexity, query.folder, query.mode, query.limit, query.wordings,
         query.session, query.store, query.state, question_digest(connection, query), question),
    )  # fmt: skip
    number = value(connection, "SELECT number FROM queries WHERE id = ?", (query.id,))
    _put_answer(connection, number, seen.control, SERVED)
    for variant in seen.variants:
        answer = _put_answer(connection, number, variant.answer, variant.mode)
        if answer is not None:
            connection.execute(
                "INSERT INTO pairs VALUES (?, ?, ?, ?, ?, ?)",
                (answer, variant.flag, variant.parted_at, variant.spent_ms, variant.dark_run_overhead_ms,
                 packing.packed_integers(variant.teams)),
            )  # fmt: skip


def _put_answer(connection: apsw.Connection, query: int, answer: AnswerRecord, mode: str) -> int | None:
    """The number of an answer; None when it was there."""
    if mode == SERVED and value(
        connection, "SELECT 1 FROM answers WHERE query = ? AND mode = ?", (query, SERVED)
    ):  # a query was answered once
        return None
    found: int | None = value(
        connection,
        "INSERT INTO answers (query, pipeline, mode, memories, scores, total_ms, layout, costs, failure) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (query, pipeline, mode) DO NOTHING RETURNING number",
        (query, answer.pipeline, mode, packing.packed_integers(answer.memories), packing.packed_reals(answer.scores),
         answer.total_ms, _layout(connection, answer.steps), packing.packed_costs(answer.steps), answer.failure),
    )  # fmt: skip
    return found


def _layout(connection: apsw.Connection, steps: tuple[StepCost, ...]) -> int:
    named = json.dumps([[step.stage, step.step, step.state, int(step.shared)] for step in steps], ensure_ascii=False)
    connection.execute("INSERT INTO layouts (steps) VALUES (?) ON CONFLICT (steps) DO NOTHING", (named,))
    return int(value(connection, "SELECT number FROM layouts WHERE steps = ?", (named,)))


def pairs(connection: apsw.Connection, since: float, experiment: str) -> list[Pair]:
    """Pairs of answers by time; of one experiment, or of all ("")."""
    if not experiment:
        return [_pair(row) for row in rows(connection, _PAIRS.format(of=""), (since,))]
    wanted = _named(connection, experiment)
    return [] if wanted is None else pairs_of(connection, *wanted, since)


def pairs_of(connection: apsw.Connection, control: str, variant: str, mode: Mode, since: float) -> list[Pair]:
    """Pairs of answers of two pipelines in one mode, by time."""
    return [_pair(row) for row in rows(connection, _PAIRS.format(of=_OF_ONE), (since, control, variant, mode))]


def _named(connection: apsw.Connection, experiment: str) -> Triple | None:
    """The control, variant and mode of an experiment by its id, found among all that the pipelines known allow."""
    kinds = list(rows(connection, "SELECT DISTINCT mode, pipeline FROM answers"))
    lost = rows(connection, "SELECT DISTINCT control, variant, mode FROM dropped WHERE variant <> ''")
    possible = chain(
        ((control, variant, mode) for served, control in kinds if served == SERVED for mode, variant in kinds),
        ((control, variant, mode) for control, variant, mode in lost),
    )
    return next((found for found in possible if experiment_id(*found) == experiment), None)


def served(connection: apsw.Connection, since: float) -> list[Observation]:
    """Queries by time, each with the answer that was served."""
    return [
        Observation(_query(row[:_QUERY_COLUMNS]), _answer(row[_QUERY_COLUMNS:]))
        for row in rows(connection, _SERVED, (since,))
    ]


def queries(connection: apsw.Connection, since: float) -> list[QueryRecord]:
    """Queries by time."""
    return [
        _query(row) for row in rows(connection, f"SELECT {_QUERY} FROM queries WHERE at >= ? ORDER BY at", (since,))
    ]


def experiments(connection: apsw.Connection, since: float, experiment: str = "") -> list[Experiment]:
    """Which pipelines stood side by side, the latest first; the one of this id, or all (""). One that only lost queries
    is told too."""
    wanted = _named(connection, experiment) if experiment else None
    if experiment and wanted is None:
        return []
    known = pipelines(connection)
    dropped: dict[Triple, dict[str, int]] = {}
    lost = "SELECT control, variant, mode, why, sum(count), min(hour), max(hour) FROM dropped WHERE hour >= ? AND "
    lost += "variant <> '' GROUP BY 1, 2, 3, 4"
    found = rows(connection, _EXPERIMENTS.format(of=_OF_ONE if wanted else ""), (since, *(wanted or ())))
    seen: dict[Triple, tuple[str, float, float, int, int]] = {(row[0], row[1], row[2]): row[3:] for row in found}
    for control, variant, mode, why, count, first, last in rows(connection, lost, (int(since // 3600),)):
        if wanted not in (None, (control, variant, mode)):
            continue
        dropped.setdefault((control, variant, mode), {})[why] = count
        seen.setdefault((control, variant, mode), ("", first * 3600.0, last * 3600.0, 0, 0))
    pruned = {tuple(row[:3]): row[3] for row in rows(connection, "SELECT control, variant, mode, count FROM pruned")}
    return [
        Experiment(
            control=known.get(key[0], PipelineRecord(key[0], "")),
            variant=known.get(key[1], PipelineRecord(key[1], "")),
            mode=key[2],
            flag=flag,
            first=first,
            last=last,
            pairs=count,
            failed=failed,
            dropped=dropped.get(key, {}),
            pruned=pruned.get(key, 0),
        )
        for key, (flag, first, last, count, failed) in sorted(seen.items(), key=lambda one: (-one[1][2], one[0]))
    ]


def variants(connection: apsw.Connection) -> int:
    """How many pipelines were compared with another one: as shadows, or in mixed answers."""
    compared = "SELECT DISTINCT mode, pipeline FROM answers WHERE mode IN ('shadow', 'interleaved')"
    return len(list(rows(connection, compared)))


def _pair(row: Sequence[Any]) -> Pair:
    query, answered, beside = _QUERY_COLUMNS, _QUERY_COLUMNS + _ANSWER_COLUMNS, len(row) - _ANSWER_COLUMNS
    mode, flag, parted_at, spent_ms, overhead_ms, teams = row[answered:beside]
    answer = _answer(row[beside:])
    variant = VariantRecord(mode, answer, flag, parted_at, spent_ms, overhead_ms, packing.integers(teams))
    return Pair(_query(row[:query]), _answer(row[query:answered]), variant)


def _query(row: Sequence[Any]) -> QueryRecord:
    *known, digest, question = row
    known += [None if question is None else json.loads(question), digest]
    return QueryRecord(*known)


def _answer(row: Sequence[Any]) -> AnswerRecord:
    pipeline, memories, scores, total_ms, layout, costs, failure = row
    named, figures = json.loads(layout), packing.costs(costs)
    steps = tuple(
        StepCost(stage, step, ms, rows_in, rows_out, state, bool(shared))
        for (stage, step, state, shared), (ms, rows_in, rows_out) in zip(named, figures, strict=True)
    )
    return AnswerRecord(pipeline, packing.integers(memories), packing.reals(scores), total_ms, steps, failure)


def latest_costs(connection: apsw.Connection, control: str, variant: str, since: float, most: int) -> list[float]:
    """What the latest runs of a variant beside a control took, the latest last."""
    found = rows(connection, _LATEST_COSTS, (control, variant, since, most, _SEEN))
    return [spent for (spent,) in reversed(found)]


def served_times(connection: apsw.Connection, pipeline: str, complexity: str, most: int) -> list[float]:
    """What the latest searches of a complexity took that a pipeline answered, the latest first."""
    sql = (
        "SELECT a.total_ms FROM answers a JOIN queries q ON q.number = a.query WHERE a.mode = 'served' "
        "AND a.pipeline = ? AND a.failure = '' AND q.complexity = ? ORDER BY a.number DESC LIMIT ?"
    )
    return [total for (total,) in rows(connection, sql, (pipeline, complexity, most))]


def tally(connection: apsw.Connection, control: str, variant: str, mode: Mode) -> Tally:
    """How many queries a variant saw beside a control and how many not, since the file was made."""
    key = control, variant, mode
    [(seen, failed)] = rows(connection, _TALLY, key)
    pruned = value(connection, "SELECT count FROM pruned WHERE (control, variant, mode) = (?, ?, ?)", key) or 0
    lost = "SELECT why, sum(count) FROM dropped WHERE (control, variant, mode) = (?, ?, ?) GROUP BY why"
    return Tally(seen + pruned, failed, dict(rows(connection, lost, key)))
