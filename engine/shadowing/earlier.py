"""What is known of variants from before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from speckit_memory.engine.shadowing.placement import WINDOW, Place
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.records import Retreat

if TYPE_CHECKING:
    from speckit_memory.engine.recording import Recorder
    from speckit_memory.engine.shadowing.variant import ShadowState


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


def tallied(states: Sequence[ShadowState], control: str, recorder: Recorder) -> tuple[ShadowState, ...]:
    """The states of variants of a control, those that run live with the counts of all processes.

    These are those of this process where the file cannot be read, which the report on health tells of its own.
    """
    recorder.write()
    if states and recorder.path.exists():
        with suppress(SpeckitError), EvaluationDatabase.open(recorder.path, create=False) as database:
            return tuple(_counted(state, control, database) for state in states)
    return tuple(states)


def _counted(state: ShadowState, control: str, database: EvaluationDatabase) -> ShadowState:
    if state.mode == "shadow":
        return state
    found = database.tally(control, state.hash, state.mode)
    return replace(state, seen=found.seen, failed=found.failed, dropped=found.dropped)
