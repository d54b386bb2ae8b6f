"""Limits the rate and the total of a process's requests to a service (feature I6)."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from speckit_memory.errors import SpeckitError

MINUTE = 60.0


class Pace:
    """Delays requests beyond `per_minute` in any minute, and refuses those beyond the `budget` of tokens.

    Safe to share between threads. `clock` and `sleep` are in seconds; None means no limit.
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
        """Tokens sent, including those of failed requests, which the service may have counted."""

    def pay(self, tokens: int) -> None:
        """Charge the tokens of a request. Raises E001, without charging them, if they exceed the rest of the budget."""
        with self._guard:
            if self._budget is not None and self.spent + tokens > self._budget:
                raise SpeckitError(
                    "E001",
                    f"the budget of {self._budget:,} tokens is spent: {self.spent:,} were sent, "
                    f"the next request has {tokens:,}",
                    hint="The rest stays pending; finished vectors stay in the cache.",
                    actions=("index again to resume", "raise SPECKIT_EMBEDDER_TOKEN_BUDGET"),
                )
            self.spent += tokens

    def wait(self, longest: float) -> bool:
        """Wait until another request may begin; return False at once if that would take longer than `longest`."""
        while self._per_minute is not None:
            with self._guard:
                now = self._clock()
                # Sliding window: the start times of the requests in the last minute.
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
