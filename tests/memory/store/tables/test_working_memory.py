"""What a session attends to, by figures worked out by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.read_model.current import ReadModel
from speckit_memory.memory.store.records import Document
from speckit_memory.memory.store.tables.sessions.working_memory import note_event, working_memory_of
from speckit_memory.memory.store.writing import writer

Make = Callable[..., Document]
NOW = 1_800_000_000.0


@pytest.fixture
def memories(database: Database, document: Make) -> list[int]:
    with database.write() as txn:
        return [writer.put_document(txn, document(f"{n:02}", "x"), None, NOW, None).id for n in range(10)]


def event(database: Database, *focused: int, mentioned: tuple[int, ...] = (), now: float = NOW, call: str = "") -> None:
    with database.write() as txn:
        note_event(txn, "s", focused, now, mentioned=mentioned, source="answer", source_call=call)


def levels(database: Database, now: float = NOW) -> dict[int, float]:
    return {one.memory: round(one.attention, 6) for one in working_memory_of(database.reader(), "s", now - 1800, now)}


@pytest.mark.requirement("M4.fading", "M4.floor")
def test_over_thirty_events_attention_fades_is_held_at_the_floor_and_is_forgotten(
    database: Database, memories: list[int]
) -> None:
    a, b = memories[:2]
    event(database, a)
    seen = [levels(database)[a]]
    for _ in range(29):
        event(database)
        seen.append(levels(database).get(a, 0.0))
    # 0.85 ** n; below 0.05 from the 19th on, and below 0.01 from the 29th on
    assert seen[:6] == [1.0, 0.85, 0.7225, 0.614125, 0.522006, 0.443705]
    assert seen[18:20] == [0.053646, 0.05]
    assert seen[19:29] == [0.05] * 10
    assert seen[29] == 0.0
    event(database, b)
    assert levels(database) == {b: 1.0}
    assert rows(database.reader(), "SELECT count(*) FROM working_memory") == [(1,)]


@pytest.mark.requirement("M4.seven", "M4.fading")
def test_over_twenty_events_the_seven_most_attended_are_kept(database: Database, memories: list[int]) -> None:
    for number in range(20):
        event(database, memories[number % 10], now=NOW + number)
    # the last seven of the round, each an event further away
    expected = {memories[9 - n]: round(0.85**n, 6) for n in range(7)}
    assert levels(database, NOW + 20) == expected


@pytest.mark.requirement("M4.seven")
def test_the_rows_of_an_answer_enter_one_step_after_the_other_beside_what_was_there(
    database: Database, memories: list[int]
) -> None:
    event(database, *memories[:4])
    assert levels(database) == dict(zip(memories[:4], [1.0, 0.85, 0.7225, 0.614125], strict=True))
    event(database, *memories[4:10], 999, now=NOW + 1)
    # new: 1, .85, .7225, .614125, .522, .4437; before: .85, .7225, .614125, .522; the seven highest stay
    kept = {4: 1.0, 5: 0.85, 6: 0.7225, 7: 0.614125, 0: 0.85, 1: 0.7225, 2: 0.614125}
    assert levels(database, NOW + 1) == {memories[place]: level for place, level in kept.items()}


@pytest.mark.requirement("M4.mention")
def test_a_mention_adds_a_little_to_what_is_attended_to_and_brings_nothing_in(
    database: Database, memories: list[int]
) -> None:
    a, b = memories[:2]
    event(database, a)
    event(database, mentioned=(a, b), now=NOW + 1)
    assert levels(database, NOW + 1) == {a: 0.9}  # 0.85 + 0.05
    event(database, mentioned=(a,), now=NOW + 2)
    assert levels(database, NOW + 2) == {a: 0.815}  # 0.9 · 0.85 + 0.05
    event(database, a, now=NOW + 3)
    event(database, b, a, now=NOW + 4)
    assert levels(database, NOW + 4) == {b: 1.0, a: 0.9}  # served again: at least as a mention
    facts = rows(database.reader(), "SELECT focus_count, mention_count FROM working_memory ORDER BY memory_id")
    assert facts == [(3, 2), (1, 0)]


@pytest.mark.requirement("M4.timeout")
def test_what_was_not_attended_to_for_thirty_minutes_is_out_of_mind(
    database: Database, memories: list[int], model: ReadModel
) -> None:
    a, b = memories[:2]
    event(database, a)
    event(database, b, now=NOW + 900)
    port, ids = model.current().sessions, np.array([a, b], np.int64)
    assert port.attention("s", ids, NOW + 1799).tolist() == [0.85, 1.0]
    assert port.attention("s", ids, NOW + 1800).tolist() == [0.0, 1.0]
    assert port.attention("s", ids, NOW - 1).tolist() == [0.0, 0.0]  # by a clock that was set back
    assert port.attention("", ids, NOW).tolist() == [0.0, 0.0]
    assert [one.memory for one in port.attended("s", NOW + 9000)] == [b, a]  # for who resumes it
    event(database, now=NOW + 1800)
    assert rows(database.reader(), "SELECT memory_id FROM working_memory") == [(b,)]


@pytest.mark.requirement("M4.origin")
def test_what_brought_a_memory_in_is_told(database: Database, memories: list[int]) -> None:
    event(database, memories[0], call="00112233aabbccdd")
    (one,) = working_memory_of(database.reader(), "s", 0, NOW)
    assert (one.source, one.source_call, one.last_focused) == ("answer", "00112233aabbccdd", NOW)
