"""Matches the trigger phrases of memories in prompts (feature T3)."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from speckit_memory.engine.background.best_effort import harmless
from speckit_memory.engine.session.reopening import ReopeningStore
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.intake.secrets import identifier

if TYPE_CHECKING:
    from speckit_memory.engine.search.triggers import TriggerMatches

LONGEST_PROMPT = 10_000
"""Maximum length in characters."""
MOST_MATCHES = 50


class TriggerOperations(ABC):
    """Matches prompts and records the matches that a session was shown."""

    @property
    @abstractmethod
    def _followed(self) -> ReopeningStore:
        """The open store."""

    def match_triggers(
        self, prompt: str, *, limit: int = 3, session: str = "", turn: int | None = None, now: float | None = None
    ) -> TriggerMatches:
        """The memories with a trigger phrase that occurs in the prompt as a whole phrase. Call `matched` once they are
        shown.

        Args:
            prompt: At most 10,000 characters.
            limit: Maximum number of memories, 1 to 50.
            session: Memories that this session attends to win ties.
            turn: The turn of the conversation, with which attention decays.
            now: Epoch seconds; default: the clock.

        Raises:
            SpeckitError: E042 for a longer prompt, E032 for another limit.
        """
        from speckit_memory.engine.search.triggers import match  # searches do not need it

        if len(prompt) > LONGEST_PROMPT:
            raise SpeckitError("E042", f"the prompt has {len(prompt):,} characters; at most {LONGEST_PROMPT:,} fit")
        if not 1 <= limit <= MOST_MATCHES:
            raise SpeckitError("E032", f"the limit {limit} is not from 1 to {MOST_MATCHES}")
        at = time.time() if now is None else now
        return self._followed.run(lambda opened: match(opened, prompt, limit, identifier(session), turn, at))

    def matched(
        self, found: TriggerMatches, count: int | None = None, *, session: str = "", turn: int | None = None
    ) -> None:
        """Records that the first `count` matches (all by default) were shown.

        Args:
            found: The matches.
            count: How many leading matches were shown; None for all.
            session: The session, which attends to them now; a failure to record this is only logged.
            turn: The turn of the conversation.
        """
        from speckit_memory.engine.search.triggers import note

        memories = [one.memory.id for one in found.matches[:count]]
        now = time.time()
        opened = self._followed.current
        opened.usage.note(memories, now)
        with harmless("triggered memories could not be recorded in the session"):
            note(opened, memories, identifier(session), turn, now)
