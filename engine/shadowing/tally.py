"""How variants have fared in all processes, as the evaluation database counts it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from speckit_memory.engine.shadowing.variant import ShadowState
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase

if TYPE_CHECKING:
    from speckit_memory.engine.recording import Recorder


def tallied(states: Sequence[ShadowState], control: str, recorder: Recorder) -> tuple[ShadowState, ...]:
    """The states of variants of a control with the counts of all processes, this one among them.

    They are those of this process where the file cannot be read, which the report on health tells of its own.
    """
    recorder.write()
    if states and recorder.path.exists():
        with suppress(SpeckitError), EvaluationDatabase.open(recorder.path, create=False) as database:
            return tuple(_counted(state, control, database) for state in states)
    return tuple(states)


def _counted(state: ShadowState, control: str, database: EvaluationDatabase) -> ShadowState:
    found = database.tally(control, state.hash, state.mode)
    failed = max(found.failed, state.failed)  # a run that never ended leaves no answer to be counted
    return replace(state, seen=max(found.seen, state.seen), failed=failed, dropped=found.dropped)
