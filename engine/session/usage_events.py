"""Records what happened to the memories of an answer: returned, then opened, validated, linked, cited or ignored (T28).

Failures are logged and never affect the operation that is recorded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from speckit_memory.engine.background.best_effort import harmless
from speckit_memory.engine.recording import session_events
from speckit_memory.engine.recording.observations import (
    answer_record,
    digest_of,
    known_folder,
    pipeline_record,
    query_record,
    scoring,
)
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.intake.secrets import identifier
from speckit_memory.memory.store.evaluation.records import Observation, UsageSignal
from speckit_memory.memory.store.reading.mentions import cited_by, linked_by, written_since
from speckit_memory.memory.store.reading.reader import get_memory

if TYPE_CHECKING:
    from speckit_memory.engine.answers.results import SearchResult
    from speckit_memory.engine.runtime.open_store import OpenStore
    from speckit_memory.pipeline.roles.composition import Pipeline

NOT_NOTED = "an answer could not be recorded"
MOST_WRITTEN = 200
"""Maximum number of documents per run that are scanned for links and citations; a larger run is a bulk import."""
_HALF = 8
"""The leading hexadecimal digits of a query id that decide on one sample; the rest decides on the other."""


def note_answer(opened: OpenStore, pipeline: Pipeline, result: SearchResult, count: int | None) -> None:
    """Records that results were served.

    Args:
        opened: The store that answered.
        pipeline: The pipeline that answered.
        result: The answer.
        count: How many leading results were served; None for all.
    """
    with harmless(NOT_NOTED):
        recorder, outcome = opened.recorder, result.outcome
        wanted = recorder.wanted
        if wanted.record == "off" or not result.query_id:
            return
        # disjoint digits of the random id give two independent samples
        if result.watched or (wanted.record == "all" and in_share(result.query_id[:_HALF], wanted.sample)):
            query = partial(
                query_record,
                result.query_id,
                outcome.query,
                at=time.time(),  # not the query's `now`, which a caller may have set
                store=opened.place,
                state=result.asked.state if result.asked else opened.database.latest(),
                folder=known_folder(outcome.query, opened.read_model.current()) if outcome.query.wanted.folder else "",
                asked=result.asked if wanted.texts else None,
            )
            known = [pipeline_record(pipeline)] if pipeline.hash == outcome.trace.config_hash else []
            recorder.record_later(
                outcome.trace.config_hash, lambda: Observation(query(), answer_record(outcome, count)), known
            )
        if memories := result.opened(count):
            now, session = time.time(), digest_of(outcome.query.session)
            for memory in memories:
                recorder.sign(UsageSignal(memory, "opened", now, session, asked=result.query_id))
        if wanted.observe and in_share(result.query_id[_HALF:], wanted.observe):
            recorder.observe(partial(scoring, result.query_id, outcome, count, at=time.time()))


def note_read(opened: OpenStore, memory: int, text: str, session: str) -> None:
    """Records that a reader fetched text of a memory, which counts as opening and reviewing it.

    Args:
        opened: The store.
        memory: The id of the memory.
        text: The text that was fetched.
        session: The session that read it and now attends to it; "" for none.
    """
    now = time.time()
    with harmless(NOT_NOTED):
        opened.usage.note((), now, (memory,))
        opened.recorder.sign(UsageSignal(memory, "opened", now, digest_of(session)))
    if session and not opened.database.only_read:
        with harmless(NOT_NOTED):
            session_events.read(opened.database, identifier(session), memory, text, now)


def note_validated(opened: OpenStore, memory: int) -> None:
    """Records that a memory was found useful."""
    with harmless(NOT_NOTED):
        opened.recorder.sign(UsageSignal(memory, "validated", time.time()))


def note_linked(opened: OpenStore, *names: str) -> None:
    """Records that memories, by key, were linked by hand, which counts as a sign of use."""
    with harmless(NOT_NOTED):
        connection, now = opened.database.reader(), time.time()
        for name in names:
            opened.recorder.sign(UsageSignal(get_memory(connection, name).id, "linked", now))


@contextmanager
def noting_written(opened: OpenStore) -> Iterator[None]:
    """Records the memories that documents written in the block link to or cite, for comparisons and usage."""
    before: int | None = None
    with harmless(NOT_NOTED):
        before = opened.database.latest()
    yield
    with harmless(NOT_NOTED):
        if before is not None:
            written = written_since(opened.database.reader(), before, MOST_WRITTEN)
            if written:
                opened.usage.written(written, time.time())
                if opened.recorder.on:
                    opened.recorder.ask_later(_pointed_at(opened, written, time.time()))


def _pointed_at(opened: OpenStore, written: list[int], at: float) -> Callable[[frozenset[int]], list[UsageSignal]]:
    def told(brought: frozenset[int]) -> list[UsageSignal]:
        with suppress(SpeckitError):  # the store was replaced or closed meanwhile
            connection = opened.database.reader()
            linked = [UsageSignal(memory, "linked", at) for memory in linked_by(connection, written, brought)]
            return [*linked, *(UsageSignal(memory, "cited", at) for memory in cited_by(connection, written, brought))]
        return []

    return told


def in_share(digits: str, share: float) -> bool:
    """Whether a query is in a sample of this share [0, 1], decided by hexadecimal digits of its id."""
    # The digits as a fraction in [0, 1): share 0 never includes a query, share 1 always does.
    return int(digits, 16) / 16.0 ** len(digits) < share
