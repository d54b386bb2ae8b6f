"""The door to trigger phrases that stand in a prompt (feature T3)."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from speckit_memory.engine.background.best_effort import harmless
from speckit_memory.engine.session.reopening import Following
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.intake.secrets import identifier

if TYPE_CHECKING:
    from speckit_memory.engine.search.triggers import TriggerMatches

LONGEST_PROMPT = 10_000
"""Characters."""
MOST_MATCHES = 50


class MatchingTriggers(ABC):
    """Matches prompts, and lets sessions know what they were shown."""

    @property
    @abstractmethod
    def _followed(self) -> Following:
        """The open store."""

    def match_triggers(
        self, prompt: str, *, limit: int = 3, session: str = "", turn: int | None = None, now: float | None = None
    ) -> TriggerMatches:
        """The memories with a trigger phrase that stands in the prompt as a whole phrase, at most `limit` (1 to 50).

        Those that the `session` attends to come before equal ones; `turn` is the number of the conversation's turn,
        with which attention fades. Whoever shows them calls `matched`. Raises E042 for a prompt of more than 10,000
        characters and E032 for another limit.
        """
        from speckit_memory.engine.search.triggers import match  # a search has no use for it

        if len(prompt) > LONGEST_PROMPT:
            raise SpeckitError("E042", f"the prompt has {len(prompt):,} characters; at most {LONGEST_PROMPT:,} fit")
        if not 1 <= limit <= MOST_MATCHES:
            raise SpeckitError("E032", f"the limit {limit} is not from 1 to {MOST_MATCHES}")
        at = time.time() if now is None else now
        return self._followed.run(lambda opened: match(opened, prompt, limit, identifier(session), turn, at))

    def matched(
        self, found: TriggerMatches, count: int | None = None, *, session: str = "", turn: int | None = None
    ) -> None:
        """The first `count` matches (all unless given) have reached the caller: they were of use, and the session
        attends to them. A store that is busy costs no more than that."""
        from speckit_memory.engine.search.triggers import note

        memories = [one.memory.id for one in found.matches[:count]]
        now = time.time()
        opened = self._followed.current
        opened.usage.note(memories, now)
        with harmless("a session could not be told what its prompt has triggered"):
            note(opened, memories, identifier(session), turn, now)
