"""Matches the trigger phrases of memories in prompts (feature T3)."""

from __future__ import annotations

import time
from dataclasses import dataclass

from speckit_memory.engine.background.best_effort import harmless
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.engine.search.triggers import TriggerMatches, match, note
from speckit_memory.engine.session.store_session import StoreSession
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.intake.secrets import identifier
from speckit_memory.memory.lifecycle import learned_triggers
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.tables.sessions import selections
from speckit_memory.memory.store.tables.sessions.selections import LearnedPhrase
from speckit_memory.memory.store.tables.words.phrases import normalised_phrase

LONGEST_PROMPT = 10_000
"""Maximum length in characters."""
MOST_MATCHES = 50


@dataclass(frozen=True, slots=True)
class LearnedPhrases:
    """The learned phrases, and the progress of learning.

    It `learns` once enough `pairs` of a query and a memory were seen for long enough; `pairs_wanting` and
    `seconds_wanting` are missing until then. Learning needs the recorded `texts` of queries.
    """

    phrases: tuple[LearnedPhrase, ...]
    learns: bool
    pairs: int
    pairs_wanting: int
    seconds_wanting: float
    texts: bool


@dataclass(eq=False)
class TriggerService:
    """Matches prompts and records the matches that a session was shown."""

    session: StoreSession

    def match(
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
        if len(prompt) > LONGEST_PROMPT:
            raise SpeckitError("E042", f"the prompt has {len(prompt):,} characters; at most {LONGEST_PROMPT:,} fit")
        if not 1 <= limit <= MOST_MATCHES:
            raise SpeckitError("E032", f"the limit {limit} is not from 1 to {MOST_MATCHES}")
        at = time.time() if now is None else now
        return self.session.read(lambda opened: match(opened, prompt, limit, identifier(session), turn, at))

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
        memories = [one.memory.id for one in found.matches[:count]]
        now = time.time()
        opened = self.session.opened
        opened.usage.note(memories, now)
        with harmless("triggered memories could not be recorded in the session"):
            note(opened, memories, identifier(session), turn, now)

    def learned(self) -> LearnedPhrases:
        """The active trigger phrases learned from selections, with the selections behind them (feature M12)."""

        def found(opened: OpenStore) -> LearnedPhrases:
            now = time.time()
            with opened.database.snapshot_read() as connection:
                stands = learned_triggers.phase(connection, now)
                return LearnedPhrases(
                    tuple(selections.learned_phrases(connection, now)),
                    stands.learns,
                    stands.pairs,
                    stands.pairs_wanting,
                    stands.seconds_wanting,
                    opened.recorder.wanted.texts,
                )

        return self.session.read(found)

    def forget(self, name: int | str | None = None, phrase: str = "") -> tuple[LearnedPhrase, ...]:
        """Deletes learned phrases permanently. Returns them. Raises E080.

        `name` restricts it to one memory, by id or key, and `phrase` to one phrase.
        """

        def take(opened: OpenStore) -> tuple[LearnedPhrase, ...]:
            now, wanted = time.time(), normalised_phrase(phrase)
            with opened.database.write() as txn:
                memory = None if name is None else reader.get_memory(txn.connection, name).id
                going = [
                    one
                    for one in selections.learned_phrases(txn.connection, now)
                    if memory in (None, one.memory) and wanted in ("", one.phrase)
                ]
                for one in going:
                    selections.unlearn(txn, one.memory, one.phrase, now)
            return tuple(going)

        return self.session.write(take, repeatable=False)
