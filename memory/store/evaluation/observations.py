"""Tables of queries, answers and replays: writing them and reading them back unchanged."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import chain
from typing import Any, get_args

from speckit_memory.memory.store.evaluation import packing
from speckit_memory.memory.store.evaluation.records import (
    AnswerRecord,
    Arm,
    ExperimentRecord,
    Mode,
    Observation,
    PipelineRecord,
    QueryRecord,
    RecordedPair,
    Replay,
    StepCost,
    VariantRecord,
    VariantTally,
    experiment_id,
)
from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.queries import rows, value

_DIGITS = 16
"""Hexadecimal digits, 64 bits: a collision among a million questions has a probability below 1e-7."""


def question_digest(connection: Connection, query: QueryRecord) -> str:
    """HMAC-SHA256 of the question under this file's key, cut to 8 bytes; "" where unknown.

    With a key per file, digests of two files cannot be compared. A reader of the file can still test guessed questions.
    """
    if not query.asked:
        return query.question_digest
    key: bytes = value(connection, "SELECT value FROM meta WHERE name = 'question_key'")
    return hmac.new(key, query.asked.encode(errors="surrogatepass"), "sha256").hexdigest()[:_DIGITS]


Key = tuple[str, str, Mode, str]
"""Control, variant, mode and epoch of an experiment."""
SERVED = "served"
"""The mode of the answer that the caller received."""

_FIELDS = tuple(one.name for one in fields(QueryRecord) if one.name != "asked")
"""The fields of a query, which are the columns of its table; what was asked is never kept."""
_QUERY = ", ".join(f'"{name}"' for name in _FIELDS)
_QUERY_OF_Q = ", ".join(f'q."{name}"' for name in _FIELDS)
_ANSWER = "{0}.pipeline, {0}.memories, {0}.scores, {0}.total_ms, {0}.layout, {0}.costs, {0}.failure"
# Rows of _PAIRS and _REPLAYS have the same columns: query, control's answer, how the variant ran, its answer (`_pair`).
_PAIRS = f"""
SELECT {_QUERY_OF_Q}, {_ANSWER.format("c")}, 'live', v.mode, p.flag, p.parted_at, p.spent_ms, p.dark_run_overhead_ms,
    p.teams, {_ANSWER.format("v")}
FROM pairs p JOIN answers v ON v.number = p.answer JOIN queries q ON q.number = v.query
JOIN answers c ON c.query = q.number AND c.mode = '{SERVED}'
WHERE q.at >= ?1 {{of}} ORDER BY q.at, q.number, v.number
"""
_REPLAYS = f"""
SELECT {_QUERY_OF_Q}, r.control, r.control_memories, r.control_scores, r.control_ms, r.control_layout, r.control_costs,
    r.control_failure, r.basis, 'shadow', r.flag, r.parted_at, r.spent_ms, CAST(0 AS REAL), x'01', r.variant,
    r.memories, r.scores, r.total_ms, r.layout, r.costs, r.failure
FROM replays r JOIN queries q ON q.number = r.query
WHERE q.at >= ?1 AND r.basis <> 'gone' {{of}} ORDER BY q.at, q.number, r.number
"""
_REPLAY = """query, control, variant, epoch, basis, state, flag, parted_at, spent_ms, control_memories, control_scores,
    control_ms, control_layout, control_costs, control_failure, memories, scores, total_ms, layout, costs, failure"""
# One row per experiment, in the columns of _EXPERIMENTS.
_REPLAYED = """
SELECT r.control, r.variant, 'shadow', r.epoch, max(r.flag), min(q.at), max(q.at),
    count(*) FILTER (WHERE r.basis <> 'gone'), count(*) FILTER (WHERE r.failure <> ''),
    count(*) FILTER (WHERE r.basis = 'gone')
FROM replays r JOIN queries q ON q.number = r.query WHERE q.at >= ?1 {of} GROUP BY 1, 2, 4
"""
_OF_ONE_ARM = "AND (r.control, r.variant, r.epoch) = (?2, ?3, ?4)"
# A handover resumes an earlier answer, which a replay cannot do.
_WAITING = """
SELECT q.number, q.id FROM queries q WHERE q.question IS NOT NULL AND q.read_point IS NOT NULL AND q.mode <> 'resume'
AND NOT EXISTS (SELECT 1 FROM replays r WHERE r.query = q.number AND (r.control, r.variant, r.epoch) = (?, ?, ?))
ORDER BY q.number
"""
# Copies replays between arms whose controls and variants order memories alike (equal `ordering`).
_CARRY_OVER = f"""
INSERT INTO replays ({_REPLAY})
SELECT r.query, ?1, ?2, r.epoch, r.basis, r.state, r.flag, r.parted_at, r.spent_ms,
    r.control_memories, r.control_scores, r.control_ms, r.control_layout, r.control_costs, r.control_failure,
    r.memories, r.scores, r.total_ms, r.layout, r.costs, r.failure
FROM replays r JOIN pipelines c ON c.hash = r.control JOIN pipelines v ON v.hash = r.variant
JOIN pipelines mine ON mine.hash = ?1 AND mine.ordering = c.ordering AND mine.ordering <> ''
JOIN pipelines other ON other.hash = ?2 AND other.ordering = v.ordering AND other.ordering <> ''
WHERE r.epoch = ?3 AND (r.control, r.variant) <> (?1, ?2) ON CONFLICT DO NOTHING
"""
_KEPT = """
SELECT count(*), count(*) FILTER (WHERE failure <> ''), count(*) FILTER (WHERE substr(failure, 1, ?4) = ?5)
FROM replays WHERE (control, variant, epoch) = (?1, ?2, ?3) AND basis <> 'gone'
"""
_EXPERIMENTS = f"""
SELECT c.pipeline, v.pipeline, v.mode, '', max(p.flag), min(q.at), max(q.at), count(*),
    count(*) FILTER (WHERE v.failure <> ''), 0
FROM pairs p JOIN answers v ON v.number = p.answer JOIN queries q ON q.number = v.query
JOIN answers c ON c.query = q.number AND c.mode = '{SERVED}'
WHERE q.at >= ?1 {{of}} GROUP BY 1, 2, 3
"""
_OF_ONE = "AND c.pipeline = ?2 AND v.pipeline = ?3 AND v.mode = ?4"
_SERVED = f"""
SELECT {_QUERY_OF_Q}, {_ANSWER.format("c")} FROM queries q JOIN answers c ON c.query = q.number
AND c.mode = '{SERVED}' WHERE {{where}} ORDER BY q.at, q.number
"""
_SEEN = 10
"""Factor of runs of a variant, in any experiment, among which the latest next to one control are looked for."""
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
SELECT count(*), count(*) FILTER (WHERE v.failure <> '') FROM answers v JOIN pairs p ON p.answer = v.number
JOIN answers c ON c.query = v.query AND c.mode = 'served' AND c.pipeline = ?1
WHERE v.pipeline = ?2 AND v.mode = ?3
"""
_QUERY_COLUMNS = len(_FIELDS)
_ANSWER_COLUMNS = 7


def put_pipelines(connection: Connection, pipelines: Iterable[PipelineRecord]) -> None:
    """Stores descriptions of pipelines; a known one keeps its name, and unknown values are filled in."""
    connection.executemany(
        "INSERT INTO pipelines (hash, name, budget_ms, ordering) VALUES (?, ?, ?, ?) ON CONFLICT (hash) DO UPDATE "
        "SET budget_ms = coalesce(pipelines.budget_ms, excluded.budget_ms), "
        "ordering = max(pipelines.ordering, excluded.ordering)",
        ((one.hash, one.name, one.budget_ms, one.ordering) for one in pipelines),
    )


def pipelines(connection: Connection) -> dict[str, PipelineRecord]:
    """Descriptions of pipelines, by hash."""
    found = rows(connection, "SELECT hash, name, budget_ms FROM pipelines")
    return {digest: PipelineRecord(digest, name, budget) for digest, name, budget in found}


def put_observation(connection: Connection, seen: Observation) -> None:
    """Stores one query with its answers. Existing rows are kept; new variants are added."""
    query = seen.query
    texts = {
        name: None if value is None else json.dumps(value, ensure_ascii=False)
        for name, value in (("question", query.question), ("read_point", query.read_point))
    }
    stored = {**{name: getattr(query, name) for name in _FIELDS}, "question_digest": question_digest(connection, query)}
    connection.execute(
        f"INSERT INTO queries ({_QUERY}) VALUES ({', '.join('?' * _QUERY_COLUMNS)}) ON CONFLICT (id) DO NOTHING",
        tuple((stored | texts).values()),
    )
    number = value(connection, "SELECT number FROM queries WHERE id = ?", (query.id,))
    _put_answer(connection, number, seen.control, SERVED)
    for variant in seen.variants:
        answer = _put_answer(connection, number, variant.answer, variant.mode)
        if answer is not None:
            connection.execute(
                "INSERT INTO pairs VALUES (?, ?, ?, ?, ?, ?)",
                (
                    answer,
                    variant.flag,
                    variant.parted_at,
                    variant.spent_ms,
                    variant.dark_run_overhead_ms,
                    packing.packed_integers(variant.teams),
                ),
            )


def _put_answer(connection: Connection, query: int, answer: AnswerRecord, mode: str) -> int | None:
    """Stores an answer and returns its number; None when it existed."""
    if mode == SERVED and value(
        connection, "SELECT 1 FROM answers WHERE query = ? AND mode = ?", (query, SERVED)
    ):  # a query was answered once
        return None
    found: int | None = value(
        connection,
        "INSERT INTO answers (query, pipeline, mode, memories, scores, total_ms, layout, costs, failure) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (query, pipeline, mode) DO NOTHING RETURNING number",
        (query, answer.pipeline, mode, *_packed(connection, answer)),
    )
    return found


def _packed(connection: Connection, answer: AnswerRecord) -> tuple[bytes, bytes, float, int, bytes, str]:
    """Memories, scores, total time, layout, costs and failure of an answer, in the format of the columns."""
    return (
        packing.packed_integers(answer.memories),
        packing.packed_reals(answer.scores),
        answer.total_ms,
        _layout(connection, answer.steps),
        packing.packed_costs(answer.steps),
        answer.failure,
    )


def _layout(connection: Connection, steps: Sequence[StepCost]) -> int:
    named = json.dumps([[step.stage, step.step, step.state, int(step.shared)] for step in steps], ensure_ascii=False)
    connection.execute("INSERT INTO layouts (steps) VALUES (?) ON CONFLICT (steps) DO NOTHING", (named,))
    return int(value(connection, "SELECT number FROM layouts WHERE steps = ?", (named,)))


def put_replays(connection: Connection, replays: Iterable[Replay]) -> None:
    """Stores replays. One of the same query and arm is kept if it exists; one of a deleted query is not stored."""
    for replay in replays:
        _put_replay(connection, replay)


def _put_replay(connection: Connection, replay: Replay) -> None:
    arm, variant = replay.arm, replay.variant
    connection.execute(
        f"INSERT INTO replays ({_REPLAY}) SELECT number, {', '.join('?' * 20)} FROM queries WHERE id = ? "
        "ON CONFLICT DO NOTHING",
        (
            arm.control,
            arm.variant,
            arm.epoch,
            replay.basis,
            replay.state,
            variant.flag,
            variant.parted_at,
            variant.spent_ms,
            *_packed(connection, replay.control),
            *_packed(connection, variant.answer),
            replay.query,
        ),
    )


def begin(connection: Connection, arm: Arm, described: Iterable[PipelineRecord]) -> None:
    """Stores the pipelines of an arm, and copies to it the replays of arms whose two pipelines answer alike; see
    `PipelineRecord.ordering`."""
    put_pipelines(connection, described)
    connection.execute(_CARRY_OVER, (arm.control, arm.variant, arm.epoch))


def waiting(connection: Connection, arm: Arm) -> list[tuple[int, str]]:
    """Numbers and ids of the queries that can be replayed and have no replay for this arm, by number."""
    return list(rows(connection, _WAITING, (arm.control, arm.variant, arm.epoch)))


def observation(connection: Connection, number: int) -> Observation | None:
    """The query with this number and its served answer; None once it has been deleted."""
    return next(iter(_served(connection, "q.number = ?", number)), None)


def replay_counts(connection: Connection, arm: Arm, ended: str) -> tuple[int, int, int]:
    """Number of queries replayed for an arm, of those on which its variant failed, and of those whose failure starts
    with `ended`."""
    found: tuple[int, int, int] = rows(connection, _KEPT, (arm.control, arm.variant, arm.epoch, len(ended), ended))[0]
    return found


def pairs(connection: Connection, *, since: float | None = None, experiment: str = "") -> list[RecordedPair]:
    """Pairs of answers to the queries that variants saw, by time; of the experiment with this id, or all ("")."""
    if experiment:
        wanted = _key_of(connection, experiment)
        return [] if wanted is None else pairs_of(connection, *wanted, since or 0.0)
    found = [pair for sql in (_PAIRS, _REPLAYS) for pair in _pairs(connection, sql.format(of=""), (since or 0.0,))]
    # a stable sort: live pairs of a query stay before its replays
    return sorted(found, key=lambda pair: pair.query.at)


def pairs_of(
    connection: Connection, control: str, variant: str, mode: Mode, epoch: str, since: float
) -> list[RecordedPair]:
    """Pairs of answers of one experiment.

    Args:
        connection: A connection to the evaluation database.
        control: Hash of the control pipeline.
        variant: Hash of the variant.
        mode: How the variant ran.
        epoch: The epoch of replays (see `Arm`); "" for variants that ran with the search.
        since: Only queries from this time on, in epoch seconds.

    Returns:
        The pairs, by time.
    """
    if epoch:
        return _pairs(connection, _REPLAYS.format(of=_OF_ONE_ARM), (since, control, variant, epoch))
    return _pairs(connection, _PAIRS.format(of=_OF_ONE), (since, control, variant, mode))


def _key_of(connection: Connection, experiment: str) -> Key | None:
    """The control, variant, mode and epoch of an experiment by its id. Ids are digests, so that all possible
    combinations of stored pipelines are tried; None if none matches."""
    kinds = list(rows(connection, "SELECT DISTINCT mode, pipeline FROM answers"))
    possible = chain(
        ((control, variant, mode, "") for served, control in kinds if served == SERVED for mode, variant in kinds),
        rows(connection, "SELECT DISTINCT control, variant, mode, '' FROM dropped WHERE variant <> ''"),
        rows(connection, "SELECT DISTINCT control, variant, 'shadow', epoch FROM replays"),
    )
    return next((found for found in possible if experiment_id(*found) == experiment), None)


def served_answers(connection: Connection, since: float | None = None) -> list[Observation]:
    """Queries with their served answers, by time, without variants."""
    return _served(connection, "q.at >= ?", since or 0.0)


def queries(connection: Connection, since: float | None = None) -> list[QueryRecord]:
    """Queries, by time."""
    return [
        _query(row)
        for row in rows(connection, f"SELECT {_QUERY} FROM queries WHERE at >= ? ORDER BY at", (since or 0.0,))
    ]


def experiments(connection: Connection, since: float | None = None, *, experiment: str = "") -> list[ExperimentRecord]:
    """Experiments, latest first: the one with this id, or all (""). Those with only dropped queries are included."""
    since = since or 0.0
    wanted = _key_of(connection, experiment) if experiment else None
    if experiment and wanted is None:
        return []
    known = pipelines(connection)
    live = rows(connection, _EXPERIMENTS.format(of=_OF_ONE if wanted else ""), (since, *(wanted or ())[:3]))
    arm = (wanted[0], wanted[1], wanted[3]) if wanted else ()
    asked_again = rows(connection, _REPLAYED.format(of=_OF_ONE_ARM if wanted else ""), (since, *arm))
    seen: dict[Key, tuple[str, float, float, int, int]] = {}
    dropped: dict[Key, dict[str, int]] = {}
    for *names, flag, begun, ended, count, failed, gone in chain(live, asked_again):
        key: Key = (names[0], names[1], names[2], names[3])
        seen[key] = flag, begun, ended, count, failed
        if gone:
            dropped[key] = {"gone": gone}
    lost = "SELECT control, variant, mode, why, sum(count), min(hour), max(hour) FROM dropped WHERE hour >= ? AND "
    lost += "variant <> '' GROUP BY 1, 2, 3, 4"
    # Experiments whose queries were all dropped have no pairs; their times are known to the hour.
    for control, variant, mode, why, count, begun, ended in rows(connection, lost, (int(since // 3600),)):
        key = control, variant, mode, ""
        dropped.setdefault(key, {})[why] = count
        seen.setdefault(key, ("", begun * 3600.0, ended * 3600.0, 0, 0))
    pruned = {tuple(row[:3]): row[3] for row in rows(connection, "SELECT control, variant, mode, count FROM pruned")}
    return [
        ExperimentRecord(
            control=known.get(key[0], PipelineRecord(key[0], "")),
            variant=known.get(key[1], PipelineRecord(key[1], "")),
            mode=key[2],
            flag=flag,
            first=begun,
            last=ended,
            pairs=count,
            failed=failed,
            dropped=dropped.get(key, {}),
            pruned=pruned.get(key[:3], 0),
            epoch=key[3],
        )
        for key, (flag, begun, ended, count, failed) in sorted(seen.items(), key=lambda one: (-one[1][2], one[0]))
        if wanted in (None, key)
    ]


def variants(connection: Connection) -> int:
    """Number of variants that were compared with a control, as shadows or in interleaved answers."""
    compared = "SELECT DISTINCT mode, pipeline FROM answers WHERE mode IN ('shadow', 'interleaved')"
    return len(list(rows(connection, compared)))


def _served(connection: Connection, where: str, wanted: float) -> list[Observation]:
    layouts = _layouts(connection)
    return [
        Observation(_query(row[:_QUERY_COLUMNS]), _answer(layouts, *row[_QUERY_COLUMNS:]))
        for row in rows(connection, _SERVED.format(where=where), (wanted,))
    ]


def _pairs(connection: Connection, sql: str, wanted: tuple[Any, ...]) -> list[RecordedPair]:
    layouts = _layouts(connection)
    found = []
    # columns: query | control's answer | basis … teams | variant's answer
    query, answered, beside = _QUERY_COLUMNS, _QUERY_COLUMNS + _ANSWER_COLUMNS, -_ANSWER_COLUMNS
    for row in rows(connection, sql, wanted):
        basis, mode, flag, parted_at, spent_ms, overhead_ms, teams = row[answered:beside]
        answer = _answer(layouts, *row[beside:])
        variant = VariantRecord(mode, answer, flag, parted_at, spent_ms, overhead_ms, packing.integers(teams))
        found.append(RecordedPair(_query(row[:query]), _answer(layouts, *row[query:answered]), variant, basis))
    return found


def _query(row: Sequence[Any]) -> QueryRecord:
    stored = dict(zip(_FIELDS, row, strict=True))
    for name in ("question", "read_point"):
        stored[name] = None if stored[name] is None else json.loads(stored[name])
    return QueryRecord(**stored)


def _answer(
    layouts: Mapping[int, packing.StepLayout],
    pipeline: str,
    memories: bytes,
    scores: bytes,
    total_ms: float,
    layout: int,
    costs: bytes,
    failure: str,
) -> AnswerRecord:
    steps = packing.PackedSteps(layouts[layout], costs)
    return AnswerRecord(pipeline, packing.integers(memories), packing.reals(scores), total_ms, steps, failure)


def _layouts(connection: Connection) -> dict[int, packing.StepLayout]:
    """The steps of answers, by number: few pipelines, many answers."""
    found = rows(connection, "SELECT number, steps FROM layouts")
    return {
        number: tuple((stage, step, state, bool(shared)) for stage, step, state, shared in json.loads(steps))
        for number, steps in found
    }


def latest_costs(connection: Connection, control: str, variant: str, *, since: float, most: int) -> list[float]:
    """Times of the latest runs of a variant next to a control.

    Args:
        connection: A connection to the evaluation database.
        control: Hash of the control pipeline.
        variant: Hash of the variant.
        since: Only queries after this time, in epoch seconds.
        most: Maximum number of runs, found among the variant's last 10 × `most` runs.

    Returns:
        Milliseconds, the latest run last.
    """
    found = rows(connection, _LATEST_COSTS, (control, variant, since, most, _SEEN))
    return [spent for (spent,) in reversed(found)]


def served_times(connection: Connection, pipeline: str, complexity: str, most: int) -> list[float]:
    """Times of the latest searches that a pipeline answered.

    Args:
        connection: A connection to the evaluation database.
        pipeline: Hash of the pipeline.
        complexity: The complexity of the queries.
        most: Maximum number of searches.

    Returns:
        Milliseconds, the latest search first.
    """
    sql = (
        "SELECT a.total_ms FROM answers a JOIN queries q ON q.number = a.query WHERE a.mode = 'served' "
        "AND a.pipeline = ? AND a.failure = '' AND q.complexity = ? ORDER BY a.number DESC LIMIT ?"
    )
    return [total for (total,) in rows(connection, sql, (pipeline, complexity, most))]


def tally(connection: Connection, control: str, variant: str, mode: Mode) -> VariantTally:
    """Numbers of queries that a variant saw and did not see next to a control, since the file was created.

    Args:
        connection: A connection to the evaluation database.
        control: Hash of the control pipeline.
        variant: Hash of the variant.
        mode: How the variant ran.
    """
    key = control, variant, mode
    [(seen, failed)] = rows(connection, _TALLY, key)
    pruned = value(connection, "SELECT count FROM pruned WHERE (control, variant, mode) = (?, ?, ?)", key) or 0
    lost = "SELECT why, sum(count) FROM dropped WHERE (control, variant, mode) = (?, ?, ?) GROUP BY why"
    return VariantTally(seen + pruned, failed, dict(rows(connection, lost, key)))
