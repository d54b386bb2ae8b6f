"""Decides where a variant runs, and when it has to step back (feature P10)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Literal

import numpy as np

Place = Literal["beside", "idle", "off", "replay"]
"""When a variant runs.

"beside": right after the reply, or before it if answers are mixed. "idle": only after a quiet period, and never in a
command that ends. "off": never. "replay": in a separate process, which repeats recorded queries.
"""

ENOUGH = 20
"""Minimum number of runs for a decision."""
WINDOW = 100
"""Number of the latest runs that are considered."""
REST_SECONDS = 7 * 86_400.0
"""A variant that stepped back is tried again after this time. A changed variant has a new hash and starts anew."""
_NEXT: dict[Place, Place] = {"beside": "idle", "idle": "off", "off": "off", "replay": "off"}


class Placement:
    """The place of a variant, which steps back when the 95th percentile of its run times exceeds the budget."""

    def __init__(self, budget_ms: float, place: Place = "beside", earlier: Iterable[float] = ()) -> None:
        """`earlier`: milliseconds of earlier runs at this place, in any process, the latest last."""
        self.budget_ms = budget_ms
        self.place = place
        self._runs = deque(earlier, WINDOW)

    @property
    def runs(self) -> int:
        """How many runs at this place are known."""
        return len(self._runs)

    @property
    def p95_ms(self) -> float:
        """The 95th percentile of these runs; 0 without any."""
        return float(np.percentile(self._runs, 95)) if self._runs else 0.0

    def ran(self, spent_ms: float) -> str:
        """Counts a run. Returns the reason if the variant steps back, else ""."""
        self._runs.append(spent_ms)
        return self.look()

    def look(self) -> str:
        """Steps back if the runs so far demand it. Returns the reason, else ""."""
        if self.place == "off" or len(self._runs) < ENOUGH or self.p95_ms <= self.budget_ms:
            return ""
        why = f"p95 of {len(self._runs)} runs is {self.p95_ms:.0f} ms, the budget {self.budget_ms:g} ms"
        self.place = _NEXT[self.place]
        self._runs.clear()
        return why

    def off(self) -> None:
        """Switches the variant off, regardless of its run times."""
        self.place = "off"

    def anew(self) -> None:
        """Resets to the first place."""
        self.place = "beside"
        self._runs.clear()
