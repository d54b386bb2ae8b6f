from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.schema.packing import pack_tokens, split_body, unpack_tokens
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import Chunk, Document
from speckit_memory.memory.store.writing import writer

tokens = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=" "), min_size=1, max_size=5)


@pytest.mark.requirement("M1.migrations")
@given(st.lists(st.lists(tokens, max_size=4).map(" ".join), max_size=5))
def test_tokens_of_passages_come_back_as_they_were(passages: list[str]) -> None:
    assert unpack_tokens(pack_tokens(passages)) == passages


@pytest.mark.requirement("M1.migrations")
@given(st.text("ab\n\0é", max_size=30), st.lists(st.text("ab\n\0é", max_size=4), max_size=5))
def test_a_text_is_its_passages_and_what_lies_between_them(body: str, passages: list[str]) -> None:
    leads, rest = split_body(body, passages)
    within = "".join(lead + text for lead, text in zip(leads, passages, strict=True) if lead is not None)
    assert within + rest == body


@pytest.mark.requirement("M1.migrations")
@pytest.mark.parametrize(
    ("body", "texts", "leads", "rest"),
    [
        ("\n# A\n\none\n\ntwo\n", ["# A", "one", "two"], ["\n", "\n\n", "\n\n"], "\n"),
        ("one two", ["two", "one"], ["one ", None], ""),
        ("one", [], [], "one"),
        ("", ["elsewhere"], [None], ""),
    ],
    ids=["passages tile the text", "in another order", "no passage", "a passage of another text"],
)
def test_a_text_is_stored_once_and_read_as_it_was(
    tmp_path: Path, body: str, texts: list[str], leads: list[str | None], rest: str
) -> None:
    assert split_body(body, texts) == (leads, rest)
    document = Document(key="a.md", title="A", content_hash="h", body=body, chunks=tuple(Chunk(text) for text in texts))
    with Database.open(tmp_path / "memory.db") as database:
        with database.write() as txn:
            memory = writer.put_document(txn, document, None, 1.0, None).id
        assert reader.body(database.reader(), memory) == body
        assert [each.text for each in reader.passages_of(database.reader(), memory)] == texts
        stored = database.reader().execute("SELECT rest FROM texts").get
    assert stored == rest


@pytest.mark.requirement("M1.migrations")
def test_tokens_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Database.open(path) as database, database.write() as txn:
        writer.put_document(
            txn, Document(key="a.md", title="A", content_hash="h", body="one", chunks=(Chunk("one"),)), None, 1.0, None
        )
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("UPDATE texts SET tokens = x'0102'")
    with Database.open(path) as database:
        assert database.check() == ["the tokens of memory 1 cannot be read"]
