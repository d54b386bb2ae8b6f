"""While no segment can be used the file answers, and a process that goes on asking builds one in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from storing.answers import answers
from storing.indexes import read_model
from storing.models import WordModels

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model import current, snapshot
from speckit_memory.memory.store.read_model.current import ReadModel
from speckit_memory.memory.store.records import Document
from speckit_memory.memory.store.segment_files.container import Container
from speckit_memory.memory.store.segment_files.findings import GivenUpError
from speckit_memory.memory.store.segment_writing import building, writing
from speckit_memory.memory.store.writing import writer
from speckit_memory.pipeline.process.yielding import yield_now, yielding

pytestmark = pytest.mark.requirement("C3")
Make = Callable[..., Document]
NOW = 1000.0


def put(database: Database, *documents: Document) -> None:
    with database.write() as txn:
        for document in documents:
            writer.put_document(txn, document, None, NOW, None)


def ask(model: ReadModel) -> bool:
    """Asks a question, and whether the file answered it."""
    with model.reading() as found:
        return found.from_file


def test_the_file_answers_first_and_a_segment_from_the_second_question_on(database: Database, document: Make) -> None:
    put(database, document("a", "alpha"))
    model = read_model(database)
    assert ask(model)
    model._builder.wait()
    assert ask(model)
    model._builder.wait()
    assert not ask(model)
    put(database, document("b", "alpha"))
    assert not ask(model)
    assert answers(model.current()) == answers(read_model(database).current())


def test_who_looks_at_the_state_without_a_question_begins_no_segment(database: Database, document: Make) -> None:
    put(database, document("a", "alpha"))
    model = read_model(database)
    for _ in range(3):
        assert model.current().from_file
    model._builder.wait()
    assert model.current().from_file


def test_words_that_the_file_has_otherwise_are_read_from_a_segment_at_once(database: Database, document: Make) -> None:
    put(database, document("a", "ALPHA beta"))
    model = read_model(database)
    assert not ask(model)
    assert model.current().lexicon.index("body").holders("ALPHA") == 1


def test_no_segment_of_a_very_large_store_is_held_in_memory(
    database: Database, document: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(current, "MOST_BYTES", 1)
    put(database, document("a", "alpha"))
    model = read_model(database)
    model.load()
    assert ask(model)
    tried = model._builder._thread
    assert ask(model)
    assert model._builder._thread is tried


def test_work_that_refreshes_the_state_does_not_give_way_to_searches_that_wait_for_it(
    database: Database, document: Make
) -> None:
    put(database, document("a", "ALPHA beta"))
    model, yields = read_model(database), list[int]()
    with yielding(lambda: yields.append(1)):
        assert model.current().lexicon.index("body").holders("ALPHA") == 1  # of a segment, which is built at once
        assert not yields
        yield_now()
    assert yields


def test_more_changes_than_the_segment_is_worth_begin_another(
    database: Database, document: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "MOST_CHANGED", 5)
    put(database, document("a", "alpha"))
    model = read_model(database)
    model.load()
    begun = model.current().segment
    for number in range(5):
        put(database, document("a", f"alpha w{number}"))
        assert model.current().segment is begun
    put(database, document("a", "beta"))
    assert model.current().from_file
    model.load()
    assert model.current().tail == 0
    assert answers(model.current()) == answers(read_model(database).current())


def test_the_file_of_another_writer_goes_before_a_segment_in_memory(database: Database, document: Make) -> None:
    put(database, document("a", "alpha"))
    written = threading.Event()

    def build(connection: apsw.Connection) -> Container:
        built = building.build_in_memory(connection)
        assert written.wait(60)
        return built

    model = ReadModel(database, WordModels(), build)
    assert ask(model) and ask(model)
    assert writing.write(database, building.build, only_if_due=False) is not None
    model.renew()
    in_file = model.current().segment
    written.set()
    model._builder.wait()
    assert in_file is not None
    assert model.current().segment is in_file


def test_a_store_is_closed_while_a_segment_is_built(tmp_path: Path, document: Make) -> None:
    begun, closing, ends = threading.Event(), threading.Event(), list[type[BaseException]]()

    def build(connection: apsw.Connection) -> Container:
        begun.set()
        assert closing.wait(60)
        try:
            while True:
                yield_now()
        except GivenUpError as end:
            ends.append(type(end))
            raise

    with Database.open(tmp_path / "store.db") as database:
        put(database, document("a", "alpha"))
        model = ReadModel(database, WordModels(), build)
        assert ask(model) and ask(model)
        assert begun.wait(60)
        closing.set()
    model._builder.wait()
    assert ends == [GivenUpError]


def test_what_failed_once_is_not_tried_with_every_question(database: Database, document: Make) -> None:
    tried: list[int] = []

    def build(connection: apsw.Connection) -> Container:
        tried.append(1)
        raise MemoryError

    put(database, document("a", "alpha"))
    model = ReadModel(database, WordModels(), build)
    for _ in range(4):
        assert ask(model)
        model._builder.wait()
    assert tried == [1]
