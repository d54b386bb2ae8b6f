"""Reads what earlier processes recorded of variants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from speckit_memory.engine.shadowing.placement import WINDOW, Place
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.records import PlacementChange


@dataclass(frozen=True, slots=True)
class Earlier:
    """A variant's record: its place, since when (epoch seconds), and run times there (milliseconds, the latest
    last)."""

    place: Place = "beside"
    since: float = 0.0
    spent_ms: Sequence[float] = ()


def earlier(path: Path, control: str, variants: Iterable[str]) -> dict[str, Earlier] | None:
    """The records of variants of a control, by the hashes of their pipelines.

    Empty if there is no evaluation database; None if it cannot be read now, which health reports.
    """
    if not path.exists():
        return {}
    with suppress(SpeckitError), EvaluationDatabase.open(path, create=False) as database:
        told = [one for one in database.retreats() if one.control == control and one.placement in get_args(Place)]
        moved = {one.variant: one for one in told}
        return {variant: _earlier(database, control, variant, moved.get(variant)) for variant in variants}
    return None


def _earlier(database: EvaluationDatabase, control: str, variant: str, last: PlacementChange | None) -> Earlier:
    place, since = (cast("Place", last.placement), last.at) if last else ("beside", 0.0)
    return Earlier(place, since, database.latest_costs(control, variant, since=since, most=WINDOW))
