"""Finds the step at which two finished answers to one query first differ; see `pipeline.comparing.divergence`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from speckit_memory.pipeline.comparing import divergence
from speckit_memory.pipeline.running.runner import Outcome
from speckit_memory.pipeline.running.step_memo import Reached

_Values = Mapping[int, float]


@dataclass(frozen=True, slots=True)
class _Told:
    """An answer at one place: the number of rows, the step's states, and the scores of the served rows, if any."""

    rows: int
    states: tuple[str, ...]
    values: _Values | None


def parted_at(control: Outcome, variant: Outcome) -> str:
    """The id of the first step whose output differs, "" if none; "vector (only in the control)" for a step of one
    pipeline."""
    step = divergence.parted_at(old := list(_course(control)), new := list(_course(variant)), _alike)
    for name, course, other in (("control", old, new), ("variant", new, old)):
        if step in {one for one, *_ in course} - {one for one, *_ in other}:
            return f"{step} (only in the {name})"
    return step


def _alike(one: object, other: object) -> bool:
    """Whether two places are equal, judged by the rows that both answers hold."""
    assert isinstance(one, _Told) and isinstance(other, _Told)
    if (one.rows, one.states, one.values is None) != (other.rows, other.states, other.values is None):
        return False
    before, after = one.values or {}, other.values or {}
    return all(before[row] == after[row] for row in before.keys() & after.keys())


def _course(outcome: Outcome) -> Iterator[Reached]:
    """Each step once, in running order, with the rows before and after it. Several runs of a channel are merged."""
    values = _scores(outcome)
    counted: dict[str, tuple[int, int, tuple[str, ...]]] = {}
    for record in outcome.trace.steps:
        # n_in and n_out add up over the runs of a step; a channel runs once per wording of the query.
        n_in, n_out, states = counted.get(record.step, (0, 0, ()))
        counted[record.step] = n_in + record.n_in, n_out + record.n_out, (*states, record.state)
    scores: _Values | None = None
    for step, (n_in, n_out, states) in counted.items():
        if step in outcome.pool.candidates.channels:
            yield step, _Told(n_in, states, None), _Told(n_out, states, values[step] if n_out else None)
            continue
        # A step that gives no scores passes on those before it.
        before, scores = scores, values.get(step, scores)
        yield step, _Told(n_in, states, before), _Told(n_out, states, scores)


def _scores(outcome: Outcome) -> dict[str, _Values]:
    """The scores that each channel and each scoring step gave to the served rows."""
    candidates, ids = outcome.pool.candidates, outcome.pool.ids.tolist()
    values: dict[str, _Values] = {}
    for column, channel in enumerate(candidates.channels):
        held: dict[int, float] = dict(values.get(channel, {}))
        # raw: (n, channel) float64 with NaN where the channel did not return the row.
        for row, raw in zip(ids, candidates.raw[:, column].tolist(), strict=True):
            if not np.isnan(raw):
                # the best score over all wordings of the query
                held[row] = max(raw, held.get(row, raw))
        values[channel] = held
    for score in outcome.pool.steps:
        values[score.step] = dict(zip(ids, score.after.tolist(), strict=True))
    return values
