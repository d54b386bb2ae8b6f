"""How fast and how much a process may ask of a service (feature I6)."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from speckit_memory.errors import SpeckitError

MINUTE = 60.0


class Pace:
    """Holds requests back to so many in any minute, and refuses those beyond the budget of tokens.

    Safe to share between threads. `clock` and `sleep` are in seconds.
    """

    def __init__(
        self,
        per_minute: int | None,
        budget: int | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._per_minute, self._budget = per_minute, budget
        self._clock, self.sleep = clock, sleep
        self._guard = threading.Lock()
        self._begun: deque[float] = deque()
        self.spent = 0
        """Tokens that were sent, those of failed requests included: the service may have counted them."""

    def pay(self, tokens: int) -> None:
        """Books the tokens of a request. Raises E001 when they are more than is left; nothing is booked then."""
        with self._guard:
            if self._budget is not None and self.spent + tokens > self._budget:
                raise SpeckitError(
                    "E001",
                    f"the budget of {self._budget:,} tokens is spent: {self.spent:,} were sent, "
                    f"the next request has {tokens:,}",
                    hint="The rest waits for its vectors; what has been embedded stays in the cache.",
                    actions=("index again to go on", "raise SPECKIT_EMBEDDER_TOKEN_BUDGET"),
                )
            self.spent += tokens

    def wait(self, longest: float) -> bool:
        """Waits until one more request may begin; False, at once, when that would take longer than `longest`."""
        while self._per_minute is not None:
            with self._guard:
                now = self._clock()
                while self._begun and now - self._begun[0] >= MINUTE:
                    self._begun.popleft()
                if len(self._begun) < self._per_minute:
                    self._begun.append(now)
                    return True
                left = MINUTE - (now - self._begun[0])
            if left > longest:
                return False
            self.sleep(left)
            longest -= left
        return True
