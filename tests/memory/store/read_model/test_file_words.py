"""What the file tells of words is what a segment tells, to the last bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storing.indexes import read_model
from tiers import examples

from speckit_memory.memory.parsing.analysis import Analyser
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model.snapshot import Snapshot
from speckit_memory.memory.store.read_model.words import fts_index
from speckit_memory.memory.store.read_model.words.fts_index import FileIndex
from speckit_memory.memory.store.read_model.words.lexicon import Vocabulary
from speckit_memory.memory.store.read_model.words.term_index import PostingsIndex
from speckit_memory.memory.store.records import Chunk, Document
from speckit_memory.memory.store.segment_writing.building import build_in_memory
from speckit_memory.memory.store.tables.words import fulltext, token_counts
from speckit_memory.memory.store.writing import writer
from speckit_memory.pipeline.arithmetic.bags import Part
from speckit_memory.pipeline.ports import FIELDS, Column

pytestmark = pytest.mark.requirement("C3")
NOW = 1000.0
PARTS: tuple[Part, ...] = (*((field, "memory") for field in FIELDS), ("body", "chunk"))
ORDERED: tuple[Part, ...] = (("title", "memory"), ("body", "chunk"))
TAME = (
    "alpha", "beta", "c++", "req-006", "--dry-run", 'a"b', "'", "''", "*", "東京", "京都", "が", "é", "e\u0301",
    "x" * 8000, "-", "^a", "a:b", "🦉", "\U0010ffff", "\ue000", "\x01",
)  # fmt: skip
WILD = (
    *TAME, "ALPHA", "Alpha", "ß", "\u0130", "\u03c2", "\u00b5", "\x1f", "\t", "\u00a0", "\u3000", "\u200b", "\ufeff",
    "y" * 40_000, "y" * 40_001, "\ufffe", "a\0b", "\0",
)  # fmt: skip
NOWHERE = ("\0", "", "\ud800", "nowhere", " ", "alpha beta")
"""Words that nobody stores and somebody may ask for."""


def steps(words: tuple[str, ...]) -> st.SearchStrategy[Any]:
    text = st.lists(st.sampled_from(words), max_size=7)
    fields = st.tuples(text, text, text, st.lists(text, max_size=4))
    step = st.tuples(st.integers(0, 5), st.none() | fields)
    return st.lists(step, min_size=1, max_size=12)


def perform(database: Database, number: int, said: Any) -> None:
    """Writes the memory with this number; deletes it where it says nothing."""
    key = f"memory {number}"
    with database.write() as txn:
        if said is None:
            ids = [id_ for (id_,) in txn.connection.execute("SELECT id FROM memories WHERE key = ?", (key,))]
            writer.delete_memories(txn, ids)
            return
        title, triggers, path, passages = map(tuple, said)
        chunks = tuple(Chunk(text="text", tokens=tuple(tokens)) for tokens in passages)
        tokens: dict[str, Any] = {"title_tokens": title, "trigger_tokens": triggers, "path_tokens": path}
        writer.put_document(txn, Document(key, "title", "body", "hash", chunks=chunks, **tokens), None, NOW, None)


def bits(index: PostingsIndex | FileIndex, part: Part, words: tuple[str, ...], ids: Any) -> list[Any]:
    """Everything that an index tells, as types and bytes."""
    arrays: list[Any] = [index.ids, index.lengths, index.rows_of(ids)]
    for word in words:
        postings = index.postings(word)
        every = np.arange(-1, len(index.ids), dtype=np.int32)
        assert np.array_equal(index.holding(word, every), np.isin(every, postings.rows))
        arrays += [postings.rows, postings.frequency]
    if part in ORDERED:
        arrays += [index.adjacent(*pair) for pair in product(words, words)]
    else:
        with pytest.raises(ValueError, match="order of its words"):
            index.adjacent("alpha", "beta")
    told = [(array.dtype.str, array.shape, array.tobytes()) for array in arrays]
    return [index.count, [index.holders(word) for word in words], told]


@settings(max_examples=examples(0.4))
@given(data=st.data(), words=st.sampled_from([TAME, WILD]))
def test_the_file_tells_of_words_what_an_index_does(
    data: st.DataObject, words: tuple[str, ...], new_database: Callable[[], Database]
) -> None:
    with new_database() as database:
        for number, said in data.draw(steps(words)):
            perform(database, number, said)
        model = read_model(database)
        asked = (*words[:4], *data.draw(st.lists(st.sampled_from(words), max_size=5)), *NOWHERE)
        with model.reading() as snapshot:
            ids = np.append(snapshot.attributes.chunks, [0, 10**6, -1])
            segment = build_in_memory(database.reader())
            for part in PARTS:
                index = snapshot.lexicon.index(*part)
                assert isinstance(index, FileIndex) or words is WILD
                assert bits(index, part, asked, ids) == bits(PostingsIndex(segment, *part), part, asked, ids)
            terms = frozenset[str]().union(*(PostingsIndex(segment, field, "memory").terms() for field in FIELDS))
            assert snapshot.lexicon.words() == terms
            among = {*words, *NOWHERE}
            of_segment = Vocabulary([PostingsIndex(segment, field, "memory") for field in FIELDS])
            assert snapshot.lexicon.words() & among == of_segment & among == terms & among


@settings(max_examples=examples(0.14))
@given(changes=steps(TAME))
def test_a_segment_in_memory_takes_over_with_the_same_rows_and_the_same_scores(
    changes: Any, new_database: Callable[[], Database]
) -> None:
    def scores(snapshot: Snapshot) -> list[bytes]:
        told: list[Column] = []
        for level, weights in product(("memory", "chunk"), ((10.0, 5.0, 2.0, 1.0), (0.3, 0.0, 0.7, 1.1))):
            bags = snapshot.lexicon.bags(weights, 1.2, 0.75, level)  # type: ignore[arg-type]
            told += [bags.scores({word: 1.0 / (1 + at) for at, word in enumerate(TAME)}), bags.coverage({"alpha": 1.0})]
        return [column.tobytes() for column in told]

    with new_database() as database:
        model = read_model(database)
        for number, said in changes:
            perform(database, number, said)
        before = model.current()
        assert before.from_file
        model.load()
        after = model.current()
        assert not after.from_file
        assert after.sequence == before.sequence
        assert scores(after) == scores(before)
        for part in PARTS:
            assert np.array_equal(after.lexicon.index(*part).ids, before.lexicon.index(*part).ids)


def test_in_another_state_of_the_file_words_of_changed_memories_stand_nowhere(
    new_database: Callable[[], Database],
) -> None:
    with new_database() as database:
        for number in (1, 2, 4):
            perform(database, number, (["alpha"], [], [], [["alpha", "beta"], ["beta"]]))
        old = read_model(database).current()
        whole, passages = old.lexicon.index("body"), old.lexicon.index("body", "chunk")
        perform(database, 1, (["beta"], [], [], [["beta", "beta", "alpha"], ["beta"] * 9]))
        perform(database, 2, None)
        perform(database, 3, ([], [], [], [["beta"]]))
        postings = whole.postings("beta")
        assert [postings.rows.tolist(), postings.frequency.tolist()] == [[2], [2.0]]
        assert (whole.holders("alpha"), old.lexicon.index("title").holders("alpha")) == (1, 1)
        assert passages.adjacent("alpha", "beta").tolist() == [4]


def test_what_the_full_text_table_would_write_otherwise_is_noted(new_database: Callable[[], Database]) -> None:
    """Of every character: one that FTS5 folds, drops or takes for a blank is never taken from its table."""
    every = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000 and code != 0x20]
    kept = [f"a{sign}b" for sign in every if not token_counts.count_tokens(f"a{sign}b").rewritten]
    assert len(every) - len(kept) < 3_000
    with new_database() as database:
        for start in range(0, len(kept), 4096):
            text = " ".join(kept[start : start + 4096])
            database.reader().execute("INSERT INTO memory_fts (rowid, body) VALUES (?, ?)", (start + 1, text))
        told = database.reader().execute("SELECT term FROM temp.memory_word_places ORDER BY doc, offset")
        assert all(term == word for (term,), word in zip(told, kept, strict=True))


@pytest.mark.parametrize(
    "text", ["Straße ΣΊΣΥΦΟΣ İstanbul ǅ ﬁ", "Ⅷ Ⓐ µ ſ ᾳ ͅ", "ᏣᎳᎩ Ꮳꮃꭹ", "a\u00a0b\u3000c\u180ed \ufffe\uffff\0", "K Å ŉ ẞ"]
)
def test_the_analyser_makes_no_word_that_the_full_text_table_writes_otherwise(text: str) -> None:
    tokens = Analyser().tokens(text)
    folded = [token for token in tokens if token_counts.count_tokens(token).rewritten]
    # Cherokee folds to capitals, which FTS5 leaves alone; taking it for rewritten costs time and nothing else.
    assert all("\u13a0" <= sign <= "\u13ff" for token in folded for sign in token) or not folded


def test_words_are_read_once_and_given_up_when_there_are_too_many(
    new_database: Callable[[], Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    original = fulltext.places

    def places(connection: Any, tokens: Sequence[str]) -> Any:
        read.extend(tokens)
        return original(connection, tokens)

    monkeypatch.setattr(fulltext, "places", places)
    monkeypatch.setattr(fts_index, "MOST_KEPT", 14)
    with new_database() as database:
        perform(database, 1, (["alpha"], [], [], [["alpha", "beta", "beta"], ["gamma", "beta", "beta"]]))
        with read_model(database).reading() as snapshot:
            for part in PARTS:
                snapshot.lexicon.index(*part).postings("alpha")  # 3 places, those in passages counted as well, and 1
            snapshot.lexicon.prefetch(["alpha"])
            assert read == ["alpha"]
            index = snapshot.lexicon.index("body")
            for word in ("beta", "beta", "alpha", "nowhere", "nowhere", "gamma", "alpha"):  # 9, 1 and 3
                assert index.holders(word) == (word != "nowhere")
            assert read == ["alpha", "beta", "nowhere", "gamma", "alpha"]
            read.clear()
            snapshot.lexicon.prefetch(["alpha", "nowhere", "elsewhere"])
            assert read == ["nowhere", "elsewhere"]
