from __future__ import annotations

from collections.abc import Callable

import apsw
import pytest
from answered import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from storing.by_hand import delete_edge, list_edges
from tiers import examples

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import MENTION, Document, Edge, Link, Relation
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.graph import edges as edges_module
from speckit_memory.memory.store.tables.graph.edges import EdgeBatch, add_edge, degree, edge_count
from speckit_memory.memory.store.tables.graph.link_targets import note_keys, note_memories
from speckit_memory.memory.store.writing import writer
from speckit_memory.memory.store.writing.links import resolve_links

Make = Callable[..., Document]
CAUSED, SUPPORTS = Relation.CAUSED, Relation.SUPPORTS


def put(database: Database, *documents: Document) -> None:
    with database.write() as txn:
        for document in documents:
            writer.put_document(txn, document, None, 1.0, None)


def remove(database: Database, memory_id: int) -> None:
    with database.write() as txn:
        writer.delete_memories(txn, [memory_id])


def resolve(database: Database) -> int:
    with database.write() as txn:
        return resolve_links(txn, 1.0)


def ends(database: Database) -> list[tuple[int, int, str, float, str]]:
    return [(e.source_id, e.target_id, e.relation, e.strength, e.created_by) for e in list_edges(database.reader())]


@pytest.mark.requirement("M7.facts")
def test_an_edge_is_stored_as_given_and_changed_when_added_again(database: Database, document: Make) -> None:
    put(database, document("a", "x"), document("b", "x"))
    with database.write() as txn:
        first = add_edge(txn, 1, 2, CAUSED, 0.5, "seen", "manual", 1.0)
        again = add_edge(txn, 1, 2, CAUSED, 0.75, "seen twice", "manual", 2.0)
        back = add_edge(txn, 2, 1, CAUSED, 0.0, "", "auto", 3.0)
    assert first == Edge(1, 1, 2, CAUSED, 0.5, "seen", "manual")
    assert again == Edge(1, 1, 2, CAUSED, 0.75, "seen twice", "manual")
    connection = database.reader()
    assert list_edges(connection) == list_edges(connection, 1) == [again, back]
    assert list_edges(connection, 3) == []
    assert edge_count(connection) == 2


@pytest.mark.parametrize(
    ("target", "strength", "maker", "code"),
    [
        (1, 0.5, "manual", "E030"),
        (2, 0.5, "", "E030"),
        (2, 1.01, "manual", "E032"),
        (2, -0.1, "manual", "E032"),
        (2, float("nan"), "manual", "E032"),
        (2, 0.51, "auto", "E032"),
        (99, 0.5, "manual", "E080"),
    ],
)
@pytest.mark.requirement("M7.strength")
def test_an_edge_that_breaks_a_rule_is_refused(
    database: Database, document: Make, target: int, strength: float, maker: str, code: str
) -> None:
    put(database, document("a", "x"), document("b", "x"))
    with database.write() as txn, refused(code):
        add_edge(txn, 1, target, CAUSED, strength, "", maker, 1.0)
    assert list_edges(database.reader()) == []


@pytest.mark.requirement("M7.twenty")
def test_no_memory_gets_a_twenty_first_edge_on_either_side(database: Database, document: Make) -> None:
    put(database, *[document(f"k{number}", "x") for number in range(1, 23)])
    with database.write() as txn:
        for other in range(2, 12):
            add_edge(txn, 1, other, CAUSED, 1.0, "", "manual", 1.0)
        for other in range(12, 22):
            add_edge(txn, other, 1, CAUSED, 1.0, "", "manual", 1.0)
        for source, target in ((1, 22), (22, 1)):
            with refused("E032", match="memory 1 already has 20 edges"):
                add_edge(txn, source, target, CAUSED, 1.0, "", "manual", 1.0)
        # An edge that is there may still change.
        assert add_edge(txn, 1, 2, CAUSED, 0.25, "", "manual", 1.0).strength == 0.25
    assert degree(database.reader(), 1) == 20


_NODES = st.integers(1, 5)
_ADDED = st.lists(
    st.tuples(_NODES, _NODES, st.sampled_from((CAUSED, SUPPORTS)), st.sampled_from((0.25, 0.5, 0.75))), max_size=12
)


@given(_ADDED, st.sampled_from(("manual", "auto")), st.integers(0, 6))
@settings(max_examples=examples(0.14))
@pytest.mark.requirement("M7")
def test_edges_added_together_are_those_added_one_after_the_other(
    new_database: Callable[[], Database],
    document: Make,
    added: list[tuple[int, int, Relation, float]],
    maker: str,
    mentions: int,
) -> None:
    def outcome(size: int) -> list[object]:
        with new_database() as database:
            put(database, *(document(f"{number}.md", "x") for number in range(4)))
            with database.write() as txn:
                for source, target in [(1, 2), (2, 3), (3, 4), (4, 1), (1, 3), (2, 4)][:mentions]:
                    add_edge(txn, source, target, CAUSED, 0.25 * source, MENTION, "document", 1.0)
            refusal = ""
            try:
                with database.write() as txn:
                    for start in range(0, len(added), size):
                        batch = EdgeBatch(txn, (1, 2), by=maker, now=2.0)
                        for edge in added[start : start + size]:
                            batch.add(*edge, "why")
                        batch.write()
            except SpeckitError as error:
                refusal = str(error)
            tables = ("causal_edges", "edge_history", "changes")
            edges, history, log = (rows(database.reader(), f"SELECT * FROM {name} ORDER BY 1") for name in tables)
            return [refusal, edges, history, [row[1:3] for row in log]]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(edges_module, "EDGES_PER_NODE", 3)
        assert outcome(size=20) == outcome(size=1)


@pytest.mark.requirement("M7")
def test_an_automatic_process_leaves_deliberate_edges_alone(database: Database, document: Make) -> None:
    put(database, document("a", "x"), document("b", "x"))
    with database.write() as txn:
        made = add_edge(txn, 1, 2, CAUSED, 1.0, "by hand", "manual", 1.0)
        assert add_edge(txn, 1, 2, CAUSED, 0.1, "guess", "auto", 2.0) == made
    assert list_edges(database.reader()) == [made]


@pytest.mark.requirement("M7")
def test_edges_go_with_their_memories(database: Database, document: Make) -> None:
    put(database, *[document(key, "x") for key in "abc"])
    with database.write() as txn:
        add_edge(txn, 1, 2, CAUSED, 1.0, "", "manual", 1.0)
        add_edge(txn, 2, 3, CAUSED, 1.0, "", "manual", 1.0)
    start = changes.latest(database.reader())
    remove(database, 1)
    assert ends(database) == [(2, 3, "caused", 1.0, "manual")]
    assert changes.since(database.reader(), start) == (start + 2, [(1, "delete"), (2, "edges")])


@pytest.mark.requirement("I3")
def test_a_link_becomes_an_edge_when_its_target_is_stored(database: Database, document: Make) -> None:
    put(
        database,
        document(
            "a", "x", links=(Link(CAUSED, "b", 0.5, "because"), Link(SUPPORTS, "c", reverse=True), Link(CAUSED, "a"))
        ),
    )
    assert resolve(database) == 0
    assert reader.statistics(database.reader()).pending_links == 3
    put(database, document("b", "x"))
    assert resolve(database) == 1
    put(database, document("c", "x"))
    assert resolve(database) == 1
    assert resolve(database) == 0
    assert list_edges(database.reader()) == [
        Edge(1, 1, 2, CAUSED, 0.5, "because", "document"),
        Edge(2, 3, 1, SUPPORTS, 1.0, "", "document"),
    ]
    assert reader.statistics(database.reader()).pending_links == 1


@pytest.mark.requirement("I3")
def test_a_link_finds_its_target_again_after_that_was_deleted(database: Database, document: Make) -> None:
    put(database, document("a", "x", links=(Link(CAUSED, "b"),)), document("b", "x"))
    resolve(database)
    remove(database, 2)
    assert resolve(database) == 0
    put(database, document("b", "x"))
    assert resolve(database) == 1
    assert ends(database) == [(1, 3, "caused", 1.0, "document")]


@pytest.mark.requirement("I3")
def test_an_edge_lives_as_long_as_some_document_declares_it(database: Database, document: Make) -> None:
    put(
        database,
        document("a", "x", links=(Link(CAUSED, "b", 0.5),)),
        document("b", "x", links=(Link(CAUSED, "a", 1.0, reverse=True),)),
    )
    resolve(database)
    assert ends(database) == [(1, 2, "caused", 1.0, "document")]
    put(database, document("b", "x"))
    resolve(database)
    assert ends(database) == [(1, 2, "caused", 0.5, "document")]
    put(database, document("a", "x"))
    resolve(database)
    assert ends(database) == []


@pytest.mark.parametrize(
    ("maker", "strength", "during", "after"),
    [
        ("manual", 0.9, (0.9, "manual"), [(1, 2, "caused", 0.9, "manual")]),
        ("auto", 0.2, (1.0, "document"), []),
    ],
)
def test_a_declaration_takes_over_automatic_edges_but_not_manual_ones(
    database: Database,
    document: Make,
    maker: str,
    strength: float,
    during: tuple[float, str],
    after: list[tuple[int, int, str, float, str]],
) -> None:
    put(database, document("a", "x"), document("b", "x"))
    with database.write() as txn:
        add_edge(txn, 1, 2, CAUSED, strength, "", maker, 1.0)
    put(database, document("a", "x", links=(Link(CAUSED, "b"),)))
    assert resolve(database) == 0
    assert ends(database) == [(1, 2, "caused", *during)]
    put(database, document("a", "x"))
    resolve(database)
    assert ends(database) == after


@pytest.mark.requirement("I3")
def test_a_target_may_be_the_end_of_a_single_key(database: Database, document: Make) -> None:
    targets = ["plan.md", "one/plan.md", "unique.md", "only.md", "nly.md", "deep/only.md", "x/only.md"]
    put(
        database,
        *[document(f"source {number}", "x", links=(Link(CAUSED, target),)) for number, target in enumerate(targets)],
    )
    stored = ["specs/one/plan.md", "specs/two/plan.md", "unique.md", "notes/unique.md", "notes/deep/only.md"]
    put(database, *[document(key, "x") for key in stored])
    resolve(database)
    found = {
        targets[edge.source_id - 1]: reader.get_memory(database.reader(), edge.target_id).key
        for edge in list_edges(database.reader())
    }
    assert found == {
        "one/plan.md": "specs/one/plan.md",
        "unique.md": "unique.md",
        "only.md": "notes/deep/only.md",
        "deep/only.md": "notes/deep/only.md",
    }


@pytest.mark.requirement("M7")
def test_the_strongest_declarations_fill_the_twenty_places(database: Database, document: Make) -> None:
    put(database, document("hub", "x"), document("friend", "x"))
    with database.write() as txn:
        add_edge(txn, 1, 2, CAUSED, 0.1, "", "manual", 1.0)
    put(database, *[document(f"k{number}", "x", links=(Link(SUPPORTS, "hub", number / 30),)) for number in range(25)])
    assert resolve(database) == 19
    assert sorted(source for source, target, *_ in ends(database) if target == 1) == list(range(9, 28))
    assert reader.statistics(database.reader()).pending_links == 6


@pytest.mark.requirement("I3")
def test_a_place_that_falls_vacant_goes_to_the_next_strongest_declaration(database: Database, document: Make) -> None:
    put(database, document("hub", "x"), document("friend", "x"))
    with database.write() as txn:
        made = add_edge(txn, 1, 2, CAUSED, 0.1, "", "manual", 1.0)
    put(database, *[document(f"k{number}", "x", links=(Link(SUPPORTS, "hub", number / 30),)) for number in range(25)])
    resolve(database)

    remove(database, 27)
    assert (resolve(database), strengths_at_hub(database)[0]) == (1, 5 / 30)
    put(database, document("k23", "x"))
    assert (resolve(database), strengths_at_hub(database)[0]) == (1, 4 / 30)
    put(database, document("k22", "x", links=(Link(SUPPORTS, "hub", 0.01),)))
    assert (resolve(database), strengths_at_hub(database)[0]) == (1, 3 / 30)
    with database.write() as txn:
        delete_edge(txn, made)
    assert (resolve(database), strengths_at_hub(database)[0]) == (1, 2 / 30)
    put(database, document("new", "x", links=(Link(SUPPORTS, "hub"),)))
    assert (resolve(database), strengths_at_hub(database)[0]) == (1, 3 / 30)


def strengths_at_hub(database: Database) -> list[float]:
    return sorted(strength for _, target, _, strength, maker in ends(database) if (target, maker) == (1, "document"))


@pytest.mark.requirement("I3")
def test_saving_one_of_many_linked_documents_looks_at_its_own_links_alone(database: Database, document: Make) -> None:
    put(database, *[document(f"k{n}", "x", links=(Link(SUPPORTS, f"k{n + 1}"),)) for n in range(500)])
    resolve(database)
    put(database, document("k250", "y", links=(Link(SUPPORTS, "k7"),)))

    seen = 0

    def count(_cursor: apsw.Cursor, row: tuple[object, ...]) -> tuple[object, ...]:
        nonlocal seen
        seen += 1
        return row

    with database.write() as txn:
        txn.connection.row_trace = count
        assert resolve_links(txn, 1.0) == 1
        txn.connection.row_trace = None
    assert seen < 30


names = st.sampled_from(["a", "b", "dir/b", "c", "dir/c"])
targets = st.sampled_from(["a", "b", "dir/b", "c", "./c", "../b", "dir/./c"])
links = st.builds(
    Link, st.sampled_from([CAUSED, SUPPORTS]), targets, st.sampled_from([0.5, 1.0]), st.just(""), st.booleans()
)
declarations = st.lists(links, max_size=4, unique=True)


@given(st.lists(st.tuples(names, st.one_of(st.none(), declarations)), max_size=8))
@settings(max_examples=examples(0.14))
@pytest.mark.requirement("I3")
def test_edges_depend_on_the_documents_and_not_on_their_history(
    new_database: Callable[[], Database], document: Make, history: list[tuple[str, list[Link] | None]]
) -> None:
    def edges_by_key(database: Database) -> set[tuple[str, str, str, float]]:
        key = {memory.id: memory.key for memory in reader.list_memories(database.reader())[0]}
        return {(key[edge[0]], key[edge[1]], *edge[2:4]) for edge in ends(database)}

    final: dict[str, list[Link]] = {}
    with new_database() as lived, new_database() as fresh:
        for name, links in history:
            if links is not None:
                final[name] = links
                put(lived, document(name, "x", links=tuple(links)))
            elif final.pop(name, None) is not None:
                remove(lived, reader.get_memory(lived.reader(), name).id)
            resolve(lived)
        put(fresh, *[document(name, "x", links=tuple(links)) for name, links in final.items()])
        resolve(fresh)
        assert edges_by_key(lived) == edges_by_key(fresh)
        assert lived.check() == []


@given(st.lists(st.tuples(names, st.one_of(st.none(), declarations)), min_size=3, max_size=12))
@settings(max_examples=examples(0.2))
@pytest.mark.requirement("I3")
def test_looking_at_everything_anew_changes_no_edge_even_when_places_are_few(
    new_database: Callable[[], Database], document: Make, history: list[tuple[str, list[Link] | None]]
) -> None:
    with new_database() as database, pytest.MonkeyPatch.context() as patch:
        patch.setattr(edges_module, "EDGES_PER_NODE", 2)
        stored: set[str] = set()
        for name, links in history:
            if links is not None:
                stored.add(name)
                put(database, document(name, "x", links=tuple(links)))
            elif name in stored:
                stored.remove(name)
                remove(database, reader.get_memory(database.reader(), name).id)
            resolve(database)
            found = ends(database)
            with database.write() as txn:
                note_memories(txn, [memory.id for memory in reader.list_memories(txn.connection)[0]])
                note_keys(txn, stored)
            resolve(database)
            assert sorted(ends(database)) == sorted(found)
