"""What is known of variants from before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from speckit_memory.engine.shadowing.placement import WINDOW, Place
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.records import Retreat


@dataclass(frozen=True, slots=True)
class Earlier:
    """What is known of a variant from before: the latest runs at its place (milliseconds, the latest last), and when
    it came there (epoch seconds)."""

    place: Place = "beside"
    since: float = 0.0
    spent_ms: Sequence[float] = ()


def earlier(path: Path, control: str, variants: Iterable[str]) -> dict[str, Earlier] | None:
    """What the evaluation database at this path knows of variants of a control, all named by their hashes.

    Nothing where there is no file; None where it cannot be read now, which the report on health tells.
    """
    if not path.exists():
        return {}
    with suppress(SpeckitError), EvaluationDatabase.open(path, create=False) as database:
        told = [one for one in database.retreats() if one.control == control and one.placement in get_args(Place)]
        moved = {one.variant: one for one in told}
        return {variant: _earlier(database, control, variant, moved.get(variant)) for variant in variants}
    return None


def _earlier(database: EvaluationDatabase, control: str, variant: str, last: Retreat | None) -> Earlier:
    place, since = (cast("Place", last.placement), last.at) if last else ("beside", 0.0)
    return Earlier(place, since, database.latest_costs(control, variant, since=since, most=WINDOW))
