from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storing.answers import NOW, PARTS, answers, postings
from storing.by_hand import delete_edge, focus, list_edges
from storing.indexes import read_model
from storing.models import WORDS, token_sets
from tiers import examples

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.identity import KEPT
from speckit_memory.memory.store.read_model.current import MOST_CHANGES
from speckit_memory.memory.store.read_model.snapshot import Snapshot
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import Document, Relation, Tier
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.graph import edges
from speckit_memory.memory.store.tables.memories import promotions
from speckit_memory.memory.store.tables.sessions import sent_texts
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.memory.store.writing import writer
from speckit_memory.pipeline import ports
from speckit_memory.pipeline.ports import Filter, Passage, Vectors

Make = Callable[..., Document]
Unit = Callable[..., Vectors]
SIZE = 4


def put(database: Database, document: Document, rows: Vectors | None = None) -> int:
    """Stores the document, with the tokens of its passages if it has vectors."""
    model, tokens = (None, None) if rows is None else ("m", token_sets(*(chunk.text for chunk in document.chunks)))
    with database.write() as txn:
        return writer.put_document(txn, document, rows, NOW, model, tokens).id


def delete(database: Database, *memories: int) -> None:
    with database.write() as txn:
        writer.delete_memories(txn, memories)


texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join), max_size=3)
OTHER_STEPS = ("index", "delete", "use", "promote", "link", "send", "ask", "ask")
steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 4), texts, st.integers(0, 9)),
        st.tuples(st.sampled_from(OTHER_STEPS), st.integers(0, 4), st.just([]), st.just(0)),
    ),
    min_size=1,
    max_size=14,
)


def perform(database: Database, kind: str, number: int, passages: list[str], look: int, document: Make) -> None:
    """One change of the memory with this number: `look` chooses its vectors, folder, tier and trigger."""
    rows_of_memories: list[Any] = database.reader().execute("SELECT key, id FROM memories").fetchall()
    known: dict[str, int] = dict(rows_of_memories)
    memory = known.get(f"memory {number}")
    if kind == "put":
        random = np.random.default_rng(look)
        rows = random.integers(-1, 2, (len(passages), SIZE)) + np.eye(SIZE)[:1] * 1.5
        rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        facts: dict[str, Any] = {
            "folder": ["", "a", "a/b"][look % 3],
            "tier": list(Tier)[look % 6],
            "triggers": (WORDS[look % 4],),
            "title_tokens": ("title", WORDS[look % 4]),
            "trigger_tokens": ("phrase",),
            "path_tokens": (WORDS[number % 4],),
        }
        put(database, document(f"memory {number}", *passages, **facts), rows if look % 4 else None)
    elif memory is not None and kind == "delete":
        delete(database, memory)
    elif memory is not None and kind == "use":
        with database.write() as txn:
            writer.set_attribute(txn, "access_count", {memory: 7})
    elif memory is not None and kind == "promote":
        with database.write() as txn:
            if reader.get_memory(txn.connection, memory).tier in promotions.PROMOTED_FROM:
                promotions.promote(txn, memory, NOW)
    elif memory is not None and kind == "send":
        with database.write() as txn:
            sent_texts.mark_sent(txn, "session", [(memory, "a text")], NOW)
            focus(txn, "session", memory, 0.5, NOW)
    elif memory is not None and kind == "link" and len(known) > 1:
        other = next(id_ for id_ in known.values() if id_ != memory)
        with database.write() as txn:
            for edge in list_edges(txn.connection, memory):
                delete_edge(txn, edge)
            edges.add_edge(txn, memory, other, Relation.CAUSED, 0.5, "", "test", NOW)


@pytest.mark.requirement("C3")
@settings(max_examples=examples(0.2))
@given(changed=steps)
def test_a_snapshot_that_followed_the_changes_answers_like_a_new_one(
    changed: list[tuple[str, int, list[str], int]], new_database: Callable[[], Database], document: Make
) -> None:
    with new_database() as database:
        model = read_model(database)
        for kind, number, passages, look in changed:
            if kind == "ask":
                answers(model.current())
            elif kind == "index":
                model.load()
            else:
                perform(database, kind, number, passages, look, document)
        assert answers(model.current()) == answers(read_model(database).current())


def test_a_store_in_order_of_arrival_answers_as_one_in_another_order(
    new_database: Callable[[], Database], document: Make, unit: Unit
) -> None:
    """Ids follow from arrival, so the second store gets its memories first as empty ones in the order of the first."""
    pictures = []
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        with new_database() as database:
            model = read_model(database)
            for number in range(4):
                put(database, document(f"m{number}", "alpha"), unit(90))
            answers(model.current())
            for number in order:
                put(database, document(f"m{number}", f"alpha {WORDS[number]}", triggers=(WORDS[number],)), unit(number))
            pictures.append(answers(model.current()))
    assert pictures[0] == pictures[1]


def test_an_unchanged_store_hands_out_the_same_snapshot(database: Database, document: Make) -> None:
    model = read_model(database)
    first = model.current()
    assert model.current() is first
    put(database, document("a", "alpha"))
    second = model.current()
    assert (first.sequence, first.attributes.count) == (0, 0)
    assert (second.sequence, second.attributes.count) == (changes.latest(database.reader()), 1)
    assert model.current() is second


def test_a_snapshot_stays_as_it_was_when_the_store_changes(database: Database, document: Make, unit: Unit) -> None:
    a = put(database, document("a", "alpha", "beta"), unit(1, 2))
    model = read_model(database)
    model.load()
    old = model.current()
    index, space = old.lexicon.index("body"), old.vectors.vectors(np.array([a]))
    put(database, document("a", "gamma"), unit(3))
    put(database, document("b", "alpha alpha"), unit(4))
    new = model.current()
    assert [old.attributes.count, old.lexicon.index("body") is index] == [1, True]
    assert postings(old, "body", "memory")["alpha"] == [(a, 1.0, 2.0)]
    np.testing.assert_array_equal(old.vectors.vectors(np.array([a])), space)
    assert postings(new, "body", "memory")["alpha"] == [(a + 3, 2.0, 2.0)]
    np.testing.assert_array_equal(new.vectors.vectors(np.array([a])), unit(3))


def test_what_a_snapshot_reads_late_holds_no_id_that_it_does_not_know(
    database: Database, document: Make, unit: Unit
) -> None:
    kept, gone = put(database, document("a", "alpha"), unit(1)), put(database, document("b", "alpha"), unit(2))
    with database.write() as txn:
        edges.add_edge(txn, kept, gone, Relation.CAUSED, 0.5, "", "test", NOW)
    old = read_model(database).current()
    delete(database, gone)
    new = put(database, document("c", "alpha", "alpha beta"), unit(3, 4))
    with database.write() as txn:
        edges.add_edge(txn, kept, new, Relation.CAUSED, 0.5, "", "test", NOW)
    scope = old.attributes.scope(Filter(), NOW)
    ids = np.array([kept, gone])
    assert old.vectors.nearest(unit(1)[0], 9, scope, "chunk")[0].tolist() == [kept]
    assert [postings(old, *part)["alpha"] for part in PARTS[3:]] == [[(kept, 1.0, 1.0)], [(kept, 1.0, 1.0)]]
    assert old.lexicon.index("body").lengths.tolist() == [1.0, 1.0]
    assert old.fulltext.match(["alpha"], (1, 1, 1, 1), 9, scope)[0].tolist() == [kept]
    assert old.graph.neighbours(ids, 1, {}).ids.tolist() == []
    assert old.graph.degrees({})[0].tolist() == [kept]
    assert old.passages.passages([gone, kept]) == [
        Passage(gone, gone, "", "", "", 1, 1),
        Passage(kept, kept, "alpha", "", "", 1, 1),
    ]
    assert (old.passages.body(gone), old.passages.of_memory(gone)) == ("", [])
    np.testing.assert_array_equal(old.vectors.vectors(ids), [unit(1)[0], np.zeros(SIZE)])


def test_an_indexed_snapshot_taken_over_by_a_late_reading_follows_on(database: Database, document: Make) -> None:
    model = read_model(database)
    a = put(database, document("a", "alpha"))
    old = model.current()
    put(database, document("a", "beta", "beta"))
    b = put(database, document("b", "beta"))
    for part in PARTS:
        old.lexicon.index(*part)
    assert postings(model.current(), "body", "memory")["beta"] == [(a, 2.0, 2.0), (b, 1.0, 1.0)]
    assert answers(model.current()) == answers(read_model(database).current())


def test_a_log_that_does_not_reach_back_makes_the_model_read_everything_again(
    database: Database, document: Make
) -> None:
    model = read_model(database)
    put(database, document("a", "alpha"))
    before = model.current()
    b = put(database, document("b", "alpha"))
    with database.write() as txn:
        changes.record(txn, [b] * (KEPT + 1), "attributes")
    assert changes.since(database.reader(), before.sequence) is None
    assert model.current().attributes.count == 2
    assert answers(model.current()) == answers(read_model(database).current())


def test_what_is_read_late_is_kept_after_more_changes_of_other_kinds_than_the_log_holds(
    database: Database, document: Make
) -> None:
    model = read_model(database)
    a = put(database, document("a", "alpha"))
    model.current()
    for _ in range(3):
        with database.write() as txn:
            changes.record(txn, [a] * (KEPT // 2), "attributes")
        model.current()

    with model.reading() as store:
        assert store.lexicon.index("body") is store.lexicon.index("body")
        assert store.graph.degrees({}) is not None
    assert model.current().lexicon.index("title") is model.current().lexicon.index("title")


def test_more_changes_than_are_worth_following_make_the_model_read_everything_again(
    database: Database, document: Make
) -> None:
    model = read_model(database)
    model.current().lexicon.index("body")
    with database.write() as txn:
        for number in range(MOST_CHANGES + 1):
            writer.put_document(txn, document(f"m{number}", "alpha"), None, NOW, None)
    assert model.current().lexicon.index("body").count == MOST_CHANGES + 1


def test_vectors_of_another_model_replace_all_of_the_old_ones(database: Database, document: Make, unit: Unit) -> None:
    a, b = put(database, document("a", "alpha"), unit(1)), put(database, document("b", "beta"), unit(2))
    model = read_model(database)
    assert model.current().vectors.dimensions == SIZE
    with database.write() as txn:
        vectors.forget_all(txn)
        writer.set_vectors(txn, {a: unit(3, dimensions=6)[0]}, "another model")
    space = model.current().vectors
    assert space.dimensions == 6
    np.testing.assert_array_equal(space.vectors(np.array([a, b])), [unit(3, dimensions=6)[0], np.zeros(6)])


def test_vectors_that_were_forgotten_are_gone_from_the_next_state(
    database: Database, document: Make, unit: Unit
) -> None:
    a = put(database, document("a", "alpha"), unit(1))
    b = put(database, document("b", "beta"), unit(2))
    model = read_model(database)
    model.load()
    old = model.current()
    assert old.vectors.dimensions == SIZE
    with database.write() as txn:
        vectors.forget_all(txn)
    assert changes.since(database.reader(), old.sequence) == (old.sequence + 2, [(a, "put"), (b, "put")])
    assert model.current().vectors.dimensions == 0
    assert old.vectors.dimensions == SIZE


def test_the_model_cannot_be_asked_inside_an_open_transaction(database: Database, document: Make) -> None:
    model = read_model(database)
    snapshot = model.current()
    with database.write() as txn:
        writer.put_document(txn, document("a", "alpha"), None, NOW, None)
        for ask in (model.current, snapshot.lexicon.words, lambda: snapshot.vectors.dimensions):
            with pytest.raises(RuntimeError, match="inside a write transaction"):
                ask()
    assert model.current().attributes.count == 1


def test_only_the_body_is_indexed_by_chunks(database: Database) -> None:
    with pytest.raises(ValueError, match="there is no index of the field 'title' at level 'chunk'"):
        read_model(database).current().lexicon.index("title", "chunk")


def test_an_unusable_file_is_a_product_error(database: Database) -> None:
    model = read_model(database)
    model.current()
    database.reader().execute("DROP TABLE changes")
    with pytest.raises(SpeckitError, match="E024"):
        model.current()
    with pytest.raises(SpeckitError, match="E026"):
        database.latest()  # as `ReopeningStore` asks whenever an operation fails


def test_queries_in_many_threads_see_whole_states_while_another_process_might_write(
    tmp_path: Path, document: Make, unit: Unit
) -> None:
    """Every state holds pairs of memories with equal words; a half-applied change would show an odd number."""
    with Database.open(tmp_path / "store.db") as database, Database.open(tmp_path / "store.db") as other:
        model = read_model(database)
        finished = threading.Event()
        seen: list[set[int]] = []
        failures: list[BaseException] = []

        def look() -> None:
            counts: set[int] = set()
            try:
                while not finished.is_set():
                    store: Snapshot = model.current()
                    scope = store.attributes.scope(Filter(), NOW)
                    counts |= {
                        store.attributes.count % 2,
                        len(store.lexicon.index("body").postings("alpha").rows) % 2,
                        len(store.lexicon.index("body", "chunk").postings("alpha").rows) % 2,
                        len(store.vectors.nearest(unit(1)[0], 99, scope, "memory")[0]) % 2,
                    }
            except BaseException as failure:
                failures.append(failure)
            seen.append(counts)

        threads = [threading.Thread(target=look) for _ in range(4)]
        for thread in threads:
            thread.start()
        for number in range(60):
            with other.write() as txn:
                pair = [
                    writer.put_document(txn, document(f"{side} {number}", "alpha"), unit(number), NOW, "m").id
                    for side in ("left", "right")
                ]
            if number % 3 == 0:
                with other.write() as txn:
                    writer.delete_memories(txn, pair)
        finished.set()
        for thread in threads:
            thread.join()
        assert failures == []
        assert all(counts <= {0} for counts in seen)
        assert model.current().attributes.count == 80


def test_edges_and_regions_of_the_graph_are_those_between_stored_memories(database: Database, document: Make) -> None:
    a, b, c, d, e = (put(database, document(key, "alpha", "beta")) for key in "abcde")
    with database.write() as txn:
        for source, target, relation in ((d, b, Relation.CAUSED), (b, e, Relation.SUPPORTS), (e, d, Relation.CAUSED)):
            edges.add_edge(txn, source, target, relation, 0.5, "", "test", NOW)
    model = read_model(database)
    graph = model.current().graph
    chunk_of_b = int(model.current().passages.of_memory(b)[1].id)
    assert graph.regions(np.array([a, b, c, d, e, chunk_of_b, 999])).tolist() == [-1, b, -1, b, b, b, -1]
    assert [ends.tolist() for ends in graph.in_edges(np.array([e, chunk_of_b, d]), "caused")] == [[d, e], [b, d]]
    for _ in range(3):  # the file is asked twice, then all edges of the relation are read
        assert [ends.tolist() for ends in graph.in_edges(np.array([b, e]), "caused")] == [[d], [b]]
    delete(database, d)
    assert model.current().graph.regions(np.array([b, e])).tolist() == [b, b]
    delete(database, e)
    assert model.current().graph.regions(np.array([b])).tolist() == [-1]


def test_every_part_of_a_snapshot_is_what_the_pipeline_asks_for(database: Database) -> None:
    """The assignments are for the type checker: the two packages may not import each other."""
    snapshot = read_model(database).current()
    attributes: ports.Attributes = snapshot.attributes
    passages: ports.Passages = snapshot.passages
    space: ports.VectorSpace = snapshot.vectors
    lexicon: ports.Lexicon = snapshot.lexicon
    fulltext: ports.FullText = snapshot.fulltext
    graph: ports.CausalGraph = snapshot.graph
    triggers: ports.Triggers = snapshot.triggers
    folders: ports.Folders = snapshot.folders
    conversations: ports.Sessions = snapshot.sessions
    tokens: ports.TokenSpace = snapshot.tokens
    relevance: ports.RelevanceModel = snapshot.relevance
    parts = (attributes, passages, space, lexicon, fulltext, graph, triggers, folders, conversations, tokens, relevance)
    assert set(map(id, parts)) <= {id(getattr(snapshot, name)) for name in snapshot.__slots__}


def test_full_text_fills_the_limit_from_a_narrow_scope_and_for_every_later_asker(
    database: Database, document: Make
) -> None:
    # 1,000 better matches lie outside the folder, more than are read at once.
    for number in range(1000):
        put(database, document(f"elsewhere/{number}", "alpha alpha"))
    inside = [put(database, document(f"here/{number}", "alpha beta beta beta", folder="here")) for number in range(3)]
    store = read_model(database).current()
    here = store.attributes.scope(Filter(folder="here"), NOW)
    everywhere = store.attributes.scope(Filter(), NOW)

    assert store.fulltext.match(["alpha"], (1, 1, 1, 1), 2, here)[0].tolist() == inside[:2]
    assert len(store.fulltext.match(["alpha"], (1, 1, 1, 1), 20, everywhere)[0]) == 20
    assert len(store.fulltext.match(["alpha"], (1, 1, 1, 1), 900, everywhere)[0]) == 900
    assert store.fulltext.match(["beta"], (1, 1, 1, 1), 9, everywhere)[0].tolist() == inside
    assert store.fulltext.holding(["alpha"], 1, here)[0] in inside
    assert store.fulltext.holding(["alpha"], 9, here).tolist() == inside
    assert len(store.fulltext.holding(["alpha"], 900, everywhere)) == 900
    by_title = store.fulltext.match(["alpha"], (2, 1, 1, 1), 1, everywhere)[1]
    assert by_title.tolist() == store.fulltext.match(["alpha"], (2, 1, 1, 1), 1, everywhere)[1].tolist()
