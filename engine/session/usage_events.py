"""What becomes of the memories of an answer: returned, then opened, validated, linked or cited, or ignored (T28).

Nothing here changes or breaks what it tells of: whatever fails is logged.
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
from speckit_memory.memory.store.evaluation.records import Observation, Sign
from speckit_memory.memory.store.reading.mentions import cited_by, linked_by, written_since
from speckit_memory.memory.store.reading.reader import get_memory

if TYPE_CHECKING:
    from speckit_memory.engine.answers.results import SearchResult
    from speckit_memory.engine.runtime.open_store import OpenStore
    from speckit_memory.pipeline.roles.composition import Pipeline

NOT_NOTED = "an answer could not be noted"
MOST_WRITTEN = 200
"""So many documents of one run are read for what they link and cite: whoever indexes more did not just write them."""
_HALF = 8
"""Hexadecimal digits of a query's id that decide on one sample; the others decide on the other one."""


def note_answer(opened: OpenStore, pipeline: Pipeline, result: SearchResult, count: int | None) -> None:
    """Notes that the first `count` results were served, all unless given."""
    with harmless(NOT_NOTED):
        recorder, outcome = opened.recorder, result.outcome
        wanted = recorder.wanted
        if wanted.record == "off" or not result.query_id:
            return
        if result.watched or (wanted.record == "all" and in_share(result.query_id[:_HALF], wanted.sample)):
            query = partial(
                query_record,
                result.query_id,
                outcome.query,
                at=time.time(),  # the question's own time may be a made-up one
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
                recorder.sign(Sign(memory, "opened", now, session, asked=result.query_id))
        if wanted.observe and in_share(result.query_id[_HALF:], wanted.observe):
            recorder.observe(partial(scoring, result.query_id, outcome, count, at=time.time()))


def note_read(opened: OpenStore, memory: int, text: str, session: str) -> None:
    """Notes that a reader got a text of a memory by its name: it was opened, and so reviewed, and the session attends
    to it."""
    now = time.time()
    with harmless(NOT_NOTED):
        opened.usage.note((), now, (memory,))
        opened.recorder.sign(Sign(memory, "opened", now, digest_of(session)))
    if session and not opened.database.only_read:
        with harmless(NOT_NOTED):
            session_events.read(opened.database, identifier(session), memory, text, now)


def note_validated(opened: OpenStore, memory: int) -> None:
    """Notes that a memory was found useful."""
    with harmless(NOT_NOTED):
        opened.recorder.sign(Sign(memory, "validated", time.time()))


def note_linked(opened: OpenStore, *names: str) -> None:
    """Notes that somebody linked the memories with these keys by hand: who ties one to another knows what it says."""
    with harmless(NOT_NOTED):
        connection, now = opened.database.reader(), time.time()
        for name in names:
            opened.recorder.sign(Sign(get_memory(connection, name).id, "linked", now))


@contextmanager
def noting_written(opened: OpenStore) -> Iterator[None]:
    """Notes which memories the documents point at that were written inside the block, for comparisons and for how
    well these memories are kept."""
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


def _pointed_at(opened: OpenStore, written: list[int], at: float) -> Callable[[frozenset[int]], list[Sign]]:
    def told(brought: frozenset[int]) -> list[Sign]:
        with suppress(SpeckitError):  # replaced or closed meanwhile: there is nothing to be told of
            connection = opened.database.reader()
            linked = [Sign(memory, "linked", at) for memory in linked_by(connection, written, brought)]
            return [*linked, *(Sign(memory, "cited", at) for memory in cited_by(connection, written, brought))]
        return []

    return told


def in_share(digits: str, share: float) -> bool:
    """Whether a query is in a sample of this share [0, 1], told by hexadecimal digits of its id."""
    return int(digits, 16) / 16.0 ** len(digits) < share
