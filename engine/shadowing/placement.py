"""Where a variant runs, and when it has to step back (feature P10)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Literal

import numpy as np

Place = Literal["beside", "idle", "off", "replay"]
"""Right after the reply, or before it where answers are mixed; only when nothing has been served for a while, and never
in a command that ends; not at all; or in a process of its own, which asks kept queries again."""

ENOUGH = 20
"""So many runs are needed to tell."""
WINDOW = 100
"""So many of the latest runs tell."""
REST_SECONDS = 7 * 86_400.0
"""After so long a variant that was taken back is tried again, as is one that was changed."""
_NEXT: dict[Place, Place] = {"beside": "idle", "idle": "off", "off": "off", "replay": "off"}


class Placement:
    """The place of a variant, which steps back when the 95th percentile of its runs breaks the budget."""

    def __init__(self, budget_ms: float, place: Place = "beside", earlier: Iterable[float] = ()) -> None:
        """`earlier` are the milliseconds of runs at this place, in other processes, too: the latest last."""
        self.budget_ms = budget_ms
        self.place = place
        self._runs = deque(earlier, WINDOW)

    @property
    def runs(self) -> int:
        """How many runs at this place tell."""
        return len(self._runs)

    @property
    def p95_ms(self) -> float:
        """The 95th percentile of these runs; 0 without any."""
        return float(np.percentile(self._runs, 95)) if self._runs else 0.0

    def ran(self, spent_ms: float) -> str:
        """Counts a run. Why the variant has stepped back, in words, "" where it stays."""
        self._runs.append(spent_ms)
        return self.look()

    def look(self) -> str:
        """Steps back where the runs so far demand it. Why, "" where it stays."""
        if self.place == "off" or len(self._runs) < ENOUGH or self.p95_ms <= self.budget_ms:
            return ""
        why = f"p95 of {len(self._runs)} runs is {self.p95_ms:.0f} ms, the budget {self.budget_ms:g} ms"
        self.place = _NEXT[self.place]
        self._runs.clear()
        return why

    def off(self) -> None:
        """Switches the variant off, whatever it takes."""
        self.place = "off"

    def anew(self) -> None:
        """Back to the first place."""
        self.place = "beside"
        self._runs.clear()
