from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import OSA
from storing.answers import NOW, answers
from storing.indexes import read_model
from storing.models import WORDS, WordModels, token_sets
from tiers import examples

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.schema.facts import LABELS, NUMBERS
from speckit_memory.memory.store.read_model.current import MOST_CHANGES
from speckit_memory.memory.store.read_model.snapshot import Snapshot
from speckit_memory.memory.store.records import Document, Relation, Tier
from speckit_memory.memory.store.segment_files.findings import GivenUpError
from speckit_memory.memory.store.segment_files.segment_store import SegmentStore
from speckit_memory.memory.store.segment_writing import building, runs, writing
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.graph import edges
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.memory.store.writing import writer
from speckit_memory.pipeline.ports import FIELDS, Filter
from speckit_memory.pipeline.process.yielding import yielding

Make = Callable[..., Document]
SIZE = 4
UNCOMMON = ("日本", "c++", "🦀", "İ", "\u00a0", "zwei")
ALL_WORDS = (*WORDS, *UNCOMMON)

documents = st.fixed_dictionaries(
    {
        "passages": st.lists(st.lists(st.sampled_from(ALL_WORDS), max_size=5).map(" ".join), max_size=3),
        "title": st.sampled_from(["a", "", "日本 🦀", "Title"]),
        "folder": st.sampled_from(["", "a", "a/b", "日本"]),
        "tier": st.sampled_from(list(Tier)),
        "triggers": st.lists(st.sampled_from(["alpha", "alpha beta", "日本語", "c++", "...", "🦀 crab"]), max_size=2),
        "created_at": st.sampled_from([0.0, 500.0, -1e18]),
        "with_vectors": st.booleans(),
        "look": st.integers(0, 9),
    }
)
KEYS = ("turn 2", "turn 10", "turn 010", "a/turn 9.md", "日本/１", "🦀")
puts = st.tuples(st.just("put"), st.sampled_from(KEYS), documents)
OTHERS = ["delete", "use", "expire", "link", "forget vectors"]
others: st.SearchStrategy[Any] = st.tuples(st.sampled_from(OTHERS), st.sampled_from(KEYS), st.just({}))


def perform(database: Database, kind: str, key: str, facts: dict[str, Any], make: Make) -> None:
    found: list[Any] = database.reader().execute("SELECT key, id FROM memories").fetchall()
    known: dict[str, int] = dict(found)
    with database.write() as txn:
        if kind == "put":
            facts = dict(facts)
            passages, look = facts.pop("passages"), facts.pop("look")
            rows = np.random.default_rng(look).integers(-1, 2, (len(passages), SIZE)) + np.eye(SIZE)[:1] * 1.5
            rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
            given_rows = rows if facts.pop("with_vectors") else None
            document = make(
                key,
                *passages,
                **(facts | {"triggers": tuple(facts["triggers"])}),
                title_tokens=(*facts["title"].split(), "title"),
                trigger_tokens=("phrase", "alpha"),
                path_tokens=(ALL_WORDS[look],),
            )
            model = None if given_rows is None else "m"
            tokens = None if given_rows is None else token_sets(*passages)
            writer.put_document(txn, document, given_rows, NOW, model, tokens)
        elif kind == "forget vectors":
            vectors.forget_all(txn)
        elif key in known and kind == "delete":
            writer.delete_memories(txn, [known[key]])
        elif key in known and kind == "use":
            writer.set_attribute(txn, "access_count", {known[key]: 7})
        elif key in known and kind == "expire":
            writer.set_attribute(txn, "expires_at", {known[key]: NOW - 1})
        elif key in known and kind == "link" and len(known) > 1:
            other = next(id_ for id_ in known.values() if id_ != known[key])
            edges.add_edge(txn, known[key], other, Relation.CAUSED, 0.5, "", "test", NOW)


def everything(store: Snapshot) -> dict[str, Any]:
    """What `answers` asks, and what it leaves out; nothing of it hangs on the numbers of rows."""
    ids = np.arange(-2, 70)
    attributes, lexicon = store.attributes, store.lexicon
    bags = {level: lexicon.bags((2.0, 1.5, 0.5, 1.0), 1.2, 0.75, level) for level in ("memory", "chunk")}
    terms = dict.fromkeys((*ALL_WORDS, "title"), 1.0)
    scopes = [attributes.scope(wanted, NOW) for wanted in (Filter(), Filter(folder="日本"), Filter(folders=("a", "")))]
    indexes = [lexicon.index(field) for field in FIELDS] + [lexicon.index("body", "chunk")]
    return answers(store) | {
        "all numbers": repr([attributes.number(name, ids).tolist() for name in NUMBERS]),
        "all labels": [attributes.label(name, ids).tolist() for name in LABELS],
        "neighbours by key": [column.tolist() for column in attributes.neighbours(ids)],
        "in folders": [attributes.in_folder(folder).tolist() for folder in ("", "a", "日本", "none")],
        "tiers": [attributes.of_tier(tier).tolist() for tier in Tier],
        "admitted": [scope.admits(ids).tolist() for scope in scopes],
        "words": {word for word in lexicon.words() if any(index.holders(word) for index in indexes)},
        "near": {
            (word, edits): {found for found in lexicon.near(word, edits) if OSA.distance(word, found) <= edits}
            & {term for term in lexicon.words() if any(index.holders(term) for index in indexes)}
            for word in ("alhpa", "bata", "日", "tilte", "")
            for edits in (1, 2)
        },
        "holders": [[index.holders(word) for word in ALL_WORDS] for index in indexes],
        "rows": [(index.rows_of(ids) >= 0).tolist() for index in indexes],
        "adjacent": [
            sorted(index.ids[index.adjacent(first, second)].tolist())
            for index in (lexicon.index("body", "chunk"), lexicon.index("title"))
            for first in ALL_WORDS
            for second in (*WORDS, "title")
        ],
        "bags": [
            sorted(
                zip(b.ids[live].tolist(), b.scores(terms)[live].tolist(), b.coverage(terms)[live].tolist(), strict=True)
            )
            for b in bags.values()
            for live in [b.ids >= 0]
        ],
        "phrases": [
            [column.tolist() for column in store.triggers.matches(text, now)]
            for text in ("alpha beta c++ 日本語...", "🦀 crab", "")
            for now in (NOW, NOW + 2)
        ],
        "exact phrases": [store.triggers.exact(text) for text in ("ALPHA", "alpha beta", "c++", "none")],
    }


def put_segment(database: Database) -> None:
    assert writing.write(database, building.build, only_if_due=False) is not None


@pytest.mark.requirement("C3")
@settings(max_examples=examples(0.07))
@given(before=st.lists(st.one_of(puts, puts, others), max_size=10), after=st.lists(st.one_of(puts, others), max_size=6))
def test_a_segment_and_what_changed_since_answer_as_the_file_and_a_segment_in_memory_do(
    before: Sequence[Any], after: Sequence[Any], new_database: Callable[[], Database], document: Make
) -> None:
    with new_database() as database:
        for kind, key, facts in before:
            perform(database, kind, key, facts, document)
        put_segment(database)
        for steps in ([], after):
            for kind, key, facts in steps:
                perform(database, kind, key, facts, document)
            with database.snapshot_read() as connection:
                assert SegmentStore(database).usable() is not None
                opened = Snapshot.load(database, connection, WordModels(), building.build_in_memory)
                assert opened.segment is not None
                in_memory = building.build_in_memory(connection)
                of_memory = Snapshot.of_segment(in_memory, database, WordModels())
                # None where FTS5 has other words, such as "i̇" for "İ"
                of_file = Snapshot.of_file(database, connection, WordModels()) or of_memory
                assert everything(opened) == everything(of_memory) == everything(of_file)


@pytest.mark.parametrize("many", [MOST_CHANGES + 1, 2 * MOST_CHANGES + 2], ids=["fewer than there were", "more"])
@pytest.mark.parametrize("held", [True, False], ids=["a state behind the segment", "none but the segment"])
def test_many_changes_are_taken_in_from_the_nearest_state_unless_more_came_than_was_there(
    many: int, held: bool, new_database: Callable[[], Database], document: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is taken in again and again, or from farther than need be, makes each search beside an index run slower."""
    begun: list[int | None] = []
    taken_in, of_file = Snapshot.advanced, Snapshot.of_file

    def advanced(snapshot: Snapshot, *arguments: Any) -> Snapshot:
        begun.append(snapshot.sequence)
        return taken_in(snapshot, *arguments)

    def file(*arguments: Any) -> Snapshot | None:
        begun.append(None)
        return of_file(*arguments)

    def put_many(database: Database, first: int, count: int) -> int:
        with database.write() as txn:
            for number in range(first, first + count):
                writer.put_document(txn, document(f"a/{number}", f"alpha own{number} beta"), None, NOW, None)
            return changes.latest(txn.connection)

    with new_database() as database:
        model = read_model(database)
        last = put_many(database, 0, MOST_CHANGES + 100)
        put_segment(database)
        if held:
            model.current()
            last = put_many(database, MOST_CHANGES + 100, 1)
            assert model.current().attributes.count == MOST_CHANGES + 101
        monkeypatch.setattr(Snapshot, "advanced", advanced)
        monkeypatch.setattr(Snapshot, "of_file", file)
        put_many(database, 10_000, many)
        found = model.current()
        assert begun == [last if many == MOST_CHANGES + 1 else None]
        with database.snapshot_read() as connection:
            assert everything(found) == everything(of_file(database, connection, WordModels()) or found)


def some(database: Database, document: Make) -> None:
    """Memories whose texts have many words of their own and many in common."""
    for number in range(40):
        text = " ".join(ALL_WORDS[number % 7 :]) + f" own{number} " * (number % 3)
        facts = {
            "title": f"Title {number}",
            "triggers": (f"phrase {number % 9}",),
            "with_vectors": True,
            "look": number,
        }
        perform(
            database, "put", f"a/{number}", {"passages": [text, "alpha alpha"], **facts, "look": number % 9}, document
        )


@pytest.mark.parametrize(("tokens", "terms"), [(50, 1000), (1, 1000), (10_000, 7), (10_000, 1)])
def test_a_segment_is_the_same_however_little_is_sorted_at_a_time(
    tokens: int, terms: int, new_database: Callable[[], Database], document: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_database() as database:
        some(database, document)
        with database.snapshot_read() as connection:
            whole = building.build(connection, database.path.with_name("whole"))
            monkeypatch.setattr(runs, "TOKENS", tokens)
            monkeypatch.setattr(runs, "TERMS", terms)
            assert building.build(connection, database.path.with_name("in runs"))[1:] == whole[1:]


def test_building_can_be_given_up_at_every_step_and_leaves_nothing(
    new_database: Callable[[], Database], document: Make, tmp_path: Path
) -> None:
    folder = tmp_path / "given up"
    folder.mkdir()
    left = -1

    def pause() -> None:
        nonlocal left
        left -= 1
        if not left:
            raise GivenUpError

    with new_database() as database:
        some(database, document)
        with yielding(pause), database.yielding_read() as connection:
            building.build(connection, folder / "whole")
            steps = -1 - left
            assert steps > 100
            (folder / "whole").unlink()
            for moment in range(1, steps + 1, 7):
                left = moment
                with pytest.raises(GivenUpError):
                    building.build(connection, folder / "none")
                assert list(folder.iterdir()) == []
