"""Replays in the process of the test, where none may be started."""

from __future__ import annotations

from speckit_memory.engine.shadowing.replayer import Replayer, ReplayTask
from speckit_memory.memory.store.evaluation.records import Observation, Replay


class ReplayHere:
    """Stands in for `ReplayProcess`."""

    def __init__(self, task: ReplayTask) -> None:
        self._replayer = Replayer(task)

    def replay(self, seen: Observation) -> Replay:
        """Both answers to a kept query."""
        return self._replayer.replay(seen)

    def end(self) -> None:
        """Closes the store."""
        self._replayer.close()
