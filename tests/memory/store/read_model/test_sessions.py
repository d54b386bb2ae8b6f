from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from storing.by_hand import focus

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model.current import ReadModel
from speckit_memory.memory.store.read_model.snapshot import Snapshot
from speckit_memory.memory.store.records import Document
from speckit_memory.memory.store.tables.sessions import sent_texts
from speckit_memory.memory.store.writing import writer
from speckit_memory.pipeline import ports

Make = Callable[..., Document]
NOW = 5000.0
LIFE = 1800.0
MOST_SENT = 100


def put(database: Database, *documents: Document) -> list[int]:
    with database.write() as txn:
        return [writer.put_document(txn, document, None, NOW, None).id for document in documents]


def send(database: Database, session: str, memories: list[int], now: float = NOW) -> None:
    with database.write() as txn:
        sent_texts.mark_sent(txn, session, [(memory, "the text") for memory in memories], now)


def sent(store: Snapshot, session: str, ids: list[int], now: float = NOW) -> list[bool]:
    port: ports.Sessions = store.sessions
    return [bool(texts) for texts in port.texts_sent(session, np.array(ids, np.int64), now)]


def attention(store: Snapshot, session: str, ids: list[int], now: float = NOW) -> list[float]:
    found: list[float] = store.sessions.attention(session, np.array(ids, np.int64), now).tolist()
    return found


@pytest.mark.requirement("A2.life")
def test_what_was_sent_is_known_in_its_session_for_thirty_minutes(
    database: Database, document: Make, model: ReadModel
) -> None:
    a, b = put(database, document("a", "x", "y"), document("b", "z"))
    first_chunk = model.current().passages.of_memory(a)[0].id
    send(database, "s", [a])
    asked = [a, b, first_chunk, 999]
    assert sent(model.current(), "s", asked) == [True, False, True, False]
    assert sent(model.current(), "s", asked, NOW + LIFE - 1) == [True, False, True, False]
    assert sent(model.current(), "s", asked, NOW + LIFE) == [False] * 4
    assert sent(model.current(), "s", asked, NOW - 1) == [False] * 4
    assert sent(model.current(), "other", asked) == [False] * 4
    assert sent(model.current(), "", asked) == [False] * 4


@pytest.mark.requirement("A2.content")
def test_texts_are_known_by_their_words_and_memory(database: Database, document: Make, model: ReadModel) -> None:
    a, twin = put(database, document("a", "x"), document("twin", "x"))
    with database.write() as txn:
        sent_texts.mark_sent(txn, "s", [(a, "one"), (a, "two"), (twin, "one")], NOW)
    known = model.current().sessions.texts_sent("s", np.array([a, twin], np.int64), NOW)
    assert [sorted(texts) for texts in known] == [
        sorted(sent_texts.digest(a, text) for text in ("one", "two")),
        [sent_texts.digest(twin, "one")],
    ]
    assert sent_texts.digest(a, "one") != sent_texts.digest(twin, "one")


def test_sending_again_begins_a_new_life(database: Database, document: Make, model: ReadModel) -> None:
    [a] = put(database, document("a", "x"))
    send(database, "s", [a])
    send(database, "s", [a], NOW + LIFE - 1)
    assert sent(model.current(), "s", [a], NOW + LIFE + 1) == [True]


@pytest.mark.requirement("A2.entries")
def test_a_session_keeps_its_last_hundred_entries(database: Database, document: Make, model: ReadModel) -> None:
    memories = put(database, *(document(f"m{number}", f"text {number}") for number in range(MOST_SENT + 3)))
    send(database, "other", memories[:1])
    send(database, "s", memories[:3])
    send(database, "s", memories[3:], NOW + 1)
    assert sent(model.current(), "s", memories, NOW + 1) == [False] * 3 + [True] * MOST_SENT
    assert sent(model.current(), "other", memories[:1]) == [True]


def test_entries_past_their_life_are_forgotten_by_the_next_one(database: Database, document: Make) -> None:
    a, b = put(database, document("a", "x"), document("b", "y"))
    send(database, "left", [a, b])
    send(database, "s", [b], NOW + LIFE)
    found = database.reader().execute("SELECT session, memory_id, sent_at FROM session_sent").fetchall()
    assert found == [("s", b, NOW + LIFE)]


@pytest.mark.requirement("F13")
def test_attention_is_that_of_the_session_and_ends_with_it(
    database: Database, document: Make, model: ReadModel
) -> None:
    a, b = put(database, document("a", "x", "y"), document("b", "z"))
    first_chunk = model.current().passages.of_memory(a)[0].id
    with database.write() as txn:
        focus(txn, "s", a, 0.9, NOW - 10)
        focus(txn, "s", a, 0.4, NOW)
        focus(txn, "s", b, 1.0, NOW - LIFE)
        focus(txn, "other", b, 0.7, NOW)
    asked = [b, a, first_chunk, 999]
    assert attention(model.current(), "s", asked) == [0.0, 0.4, 0.4, 0.0]
    assert attention(model.current(), "other", asked) == [0.7, 0.0, 0.0, 0.0]
    assert attention(model.current(), "s", asked, NOW + LIFE) == [0.0] * 4
    assert attention(model.current(), "", asked) == [0.0] * 4


def test_a_deleted_memory_leaves_working_memory(database: Database, document: Make) -> None:
    [a] = put(database, document("a", "x"))
    with database.write() as txn:
        focus(txn, "s", a, 0.5, NOW)
        writer.delete_memories(txn, [a])
    assert database.reader().execute("SELECT * FROM working_memory").fetchall() == []


def test_a_state_without_memories_answers_for_no_ids(model: ReadModel) -> None:
    assert (attention(model.current(), "s", []), sent(model.current(), "s", [])) == ([], [])
