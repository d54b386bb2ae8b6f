from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.memory.store.file.schema.facts import ATTRIBUTES, LABELS, NUMBERS
from speckit_memory.memory.store.read_model.facts.columns import TEMPORARY_LIFE, Columns
from speckit_memory.pipeline.ports import Filter, Ids

NOW = 1_000_000.0
EVERYTHING = Filter()
Row = tuple[Any, ...]


def row(id_: int, **facts: Any) -> Row:
    defaults: dict[str, Any] = dict.fromkeys(ATTRIBUTES, 0.0) | {
        "key": f"key {id_}",
        "title": f"title {id_}",
        "folder": "",
        "tier": "normal",
        "context_type": "general",
        "document_type": "memory",
        "memory_type": "declarative",
        "content_hash": f"hash {id_}",
        "created_at": NOW,
        "last_accessed": None,
        "last_review": None,
        "spec_level": None,
        "expires_at": None,
    }
    return tuple((defaults | facts | {"id": id_})[name] for name in ATTRIBUTES)


def ids(*values: int) -> Ids:
    return np.array(values, np.int64)


def columns(*rows: Row, chunks: dict[int, int] | None = None) -> Columns:
    chunks = chunks or {}
    return Columns(rows, ids(*chunks), ids(*chunks.values()))


def admitted(columns: Columns, wanted: Filter = EVERYTHING) -> list[int]:
    scope = columns.scope(wanted, NOW)
    found: list[int] = columns.ids[scope.admits(columns.ids)].tolist()
    assert (scope.size, scope.complete) == (len(found), len(found) == columns.count)
    return found


def test_facts_are_aligned_with_the_ids_asked_for_and_a_chunk_answers_for_its_memory() -> None:
    store = columns(row(2, spec_level=3), row(5, stability=1.5), chunks={9: 5, 2: 2, 7: 5})
    asked = ids(9, 2, 5, 7, 4, 2)
    assert store.parents(asked).tolist() == [5, 2, 5, 5, -1, 2]
    np.testing.assert_array_equal(store.number("spec_level", asked), [np.nan, 3, np.nan, np.nan, np.nan, 3])
    np.testing.assert_array_equal(store.number("stability", asked), [1.5, 0, 1.5, 1.5, np.nan, 0])
    assert store.label("title", asked).tolist() == ["title 5", "title 2", "title 5", "title 5", "", "title 2"]
    assert (store.count, store.ids.tolist(), store.chunks.tolist()) == (2, [2, 5], [2, 7, 9])
    assert store.chunks_of(ids(5)).tolist() == [7, 9]


def test_neighbours_stand_side_by_side_by_key_whenever_they_were_stored() -> None:
    stored = columns(*(row(id_, key=f"talk/turn-{turn}", folder="talk", characters=10)
                       for id_, turn in {1: 10, 2: 9, 3: 1, 4: 2}.items()))  # fmt: skip
    changed = stored.updated([row(3, key="talk/turn-011", folder="talk", characters=10)])

    # turns 1, 2, 9, 10
    assert [of.tolist() for of in stored.neighbours(ids(3, 4, 2, 1))] == [[-1, 3, 4, 2], [4, 2, 1, -1]]
    # turns 2, 9, 10, 011
    assert [of.tolist() for of in changed.neighbours(ids(4, 2, 1, 3))] == [[-1, 4, 2, 1], [2, 1, 3, -1]]


def test_neighbours_are_short_notes_of_one_folder() -> None:
    store = columns(
        row(2, folder="talk", characters=10), row(3, folder="talk", characters=599),
        row(5, folder="talk", characters=600), row(7, folder="talk", characters=10),
        row(8, folder="diary", characters=10), row(9, characters=10), row(10, characters=10), chunks={3: 3, 20: 7},
    )  # fmt: skip
    asked = ids(3, 2, 5, 7, 20, 8, 9, 10, 4, -1)
    previous, following = store.neighbours(asked)
    assert previous.tolist() == [2, -1, -1, -1, -1, -1, -1, -1, -1, -1]
    assert following.tolist() == [-1, 3, -1, -1, -1, -1, -1, -1, -1, -1]


def test_every_column_of_the_port_is_there() -> None:
    numbers = (
        "created_at updated_at last_accessed last_review access_count stability difficulty confidence "
        "validation_count importance_weight interference characters spec_level expires_at"
    )
    labels = "key title folder tier context_type document_type memory_type content_hash"
    assert set(NUMBERS) == set(numbers.split())
    assert set(LABELS) == set(labels.split())


def test_an_unknown_column_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="no column is called 'size'; there are created_at, "):
        columns(row(1)).number("size", ids(1))
    with pytest.raises(ValueError, match="no column is called 'id'; there are key, "):
        columns(row(1)).label("id", ids(1))


def test_an_empty_store_knows_nothing_and_refuses_nothing() -> None:
    empty = columns()
    assert empty.parents(ids(1)).tolist() == [-1]
    assert np.isnan(empty.number("created_at", ids(1))).tolist() == [True]
    assert empty.label("key", ids(1)).tolist() == [""]
    assert (admitted(empty), empty.of_tier("normal").tolist(), empty.count) == ([], [], 0)
    assert empty.scope(Filter(folder="a"), NOW).admits(ids(-1, 1)).tolist() == [False, False]


def test_a_folder_admits_its_sub_folders_and_no_folder_that_merely_starts_alike() -> None:
    store = columns(*(row(n, folder=name) for n, name in enumerate(["", "a", "a/b", "a/b/c", "a/bc", "a/B"], 1)))
    assert admitted(store, Filter(folder="a/b")) == [3, 4]
    assert admitted(store, Filter(folder="a/")) == [2, 3, 4, 5, 6]
    assert admitted(store, Filter(folder="b")) == []
    assert admitted(store, Filter(folders=("a/bc", "a/b/"))) == [3, 4, 5]
    assert admitted(store, Filter(folder="a/b", folders=("a/bc", "a/b/c"))) == [4]
    assert [store.in_folder(name).tolist() for name in ("a", "", "b")] == [[2], [1], []]
    assert admitted(store) == [1, 2, 3, 4, 5, 6]


def test_filters_of_tier_context_and_folder_hold_together() -> None:
    store = columns(
        row(1, tier="critical", context_type="decision", folder="a"),
        row(2, tier="critical", context_type="research", folder="a"),
        row(3, tier="normal", context_type="decision", folder="a"),
        row(4, tier="critical", context_type="decision"),
    )
    assert admitted(store, Filter(tier="critical")) == [1, 2, 4]
    assert admitted(store, Filter(context_type="decision")) == [1, 3, 4]
    assert admitted(store, Filter("a", "critical", "decision")) == [1]
    assert admitted(store, Filter(tier="no such tier")) == []
    assert store.of_tier("critical").tolist() == [1, 2, 4]


@pytest.mark.requirement("C6.deprecated", "F7.expiry")
def test_deprecated_and_expired_memories_are_never_admitted() -> None:
    store = columns(
        row(1, tier="deprecated"),
        row(2, tier="deprecated", expires_at=NOW + 9),
        row(3, expires_at=NOW - 1),
        row(4, expires_at=NOW),
        row(5, tier="temporary", created_at=NOW - TEMPORARY_LIFE - 1),
        row(6, tier="temporary", created_at=NOW - TEMPORARY_LIFE),
        row(7, tier="temporary", created_at=NOW - TEMPORARY_LIFE - 1, expires_at=NOW + 1),
        row(8, created_at=0.0),
    )
    assert admitted(store) == [4, 6, 7, 8]
    assert admitted(store, Filter(tier="deprecated")) == []
    assert store.of_tier("deprecated").tolist() == [1, 2]
    assert TEMPORARY_LIFE == 7 * 24 * 60 * 60


def test_a_scope_admits_the_chunks_of_its_memories() -> None:
    store = columns(row(1, folder="a"), row(2), chunks={1: 1, 8: 2, 9: 2})
    assert store.scope(Filter(folder="a"), NOW).admits(ids(9, 1, 2, 8, 3, -1)).tolist() == [
        False,
        True,
        False,
        False,
        False,
        False,
    ]


facts = st.fixed_dictionaries(
    {
        "folder": st.sampled_from(["", "a", "a/b"]),
        "tier": st.sampled_from(["normal", "temporary", "deprecated"]),
        "access_count": st.integers(0, 3),
        "expires_at": st.sampled_from([None, NOW - 1, NOW + 1]),
    }
)
stored = st.dictionaries(st.integers(1, 12), st.tuples(facts, st.integers(0, 2)), max_size=8)


def built(memories: dict[int, tuple[dict[str, Any], int]], version: int) -> tuple[list[Row], Ids, Ids]:
    """Rows, and chunks whose ids are new with each version; of a memory with no more than one it has the same id."""
    chunks: dict[int, int] = {}
    for memory, (_, extra) in memories.items():
        names = [memory] if not extra else [1000 * version + 10 * memory + place for place in range(extra + 1)]
        chunks |= dict.fromkeys(names, memory)
    rows = [row(memory, **known) for memory, (known, _) in sorted(memories.items())]
    return rows, ids(*chunks), ids(*chunks.values())


def described(store: Columns) -> dict[str, Any]:
    asked = np.concatenate([store.ids, store.chunks, ids(500)])
    return {
        "ids": store.ids.tolist(),
        "chunks": store.chunks.tolist(),
        "parents": store.parents(asked).tolist(),
        "numbers": repr({name: store.number(name, asked).tolist() for name in NUMBERS}),
        "labels": {name: store.label(name, asked).tolist() for name in LABELS},
        "tier": store.of_tier("temporary").tolist(),
        "scopes": [admitted(store), admitted(store, Filter(folder="a")), admitted(store, Filter(tier="normal"))],
    }


@given(stored, stored, st.sets(st.integers(1, 12), max_size=4), facts)
def test_changed_columns_equal_new_ones_and_leave_the_old_ones_alone(
    before: dict[int, tuple[dict[str, Any], int]],
    put: dict[int, tuple[dict[str, Any], int]],
    gone: set[int],
    used: dict[str, Any],
) -> None:
    gone -= put.keys()
    old = Columns(*built(before, 1))
    picture = described(old)
    rows, chunks, parents = built(put, 2)
    new = old.replaced(ids(*sorted(gone)), rows, chunks, parents)
    kept_rows, kept_chunks, kept_parents = built({m: v for m, v in before.items() if m not in gone | put.keys()}, 1)
    fresh = Columns(sorted([*kept_rows, *rows]), np.append(kept_chunks, chunks), np.append(kept_parents, parents))
    assert described(new) == described(fresh)
    touched = new.ids[:2].tolist()
    newer = new.updated([row(memory, **used) for memory in touched])
    assert [newer.label("tier", ids(memory))[0] for memory in touched] == [used["tier"]] * len(touched)
    assert [newer.number("access_count", ids(memory))[0] for memory in touched] == [used["access_count"]] * len(touched)
    assert newer.of_tier(used["tier"])[: len(touched)].tolist()[:1] == touched[:1]
    assert described(new) == described(fresh)
    assert described(old) == picture


def test_a_scope_and_a_tier_asked_for_before_a_change_are_not_those_after_it() -> None:
    old = columns(row(1), row(2, tier="critical"))
    assert (admitted(old), old.of_tier("critical").tolist()) == ([1, 2], [2])
    expired = old.updated([row(2, tier="critical", expires_at=NOW - 1)])
    assert (admitted(expired), expired.of_tier("critical").tolist()) == ([1], [2])
    demoted = old.updated([row(2)])
    assert (admitted(demoted), demoted.of_tier("critical").tolist()) == ([1, 2], [])
    replaced = old.replaced(ids(1), [row(3, tier="critical")], ids(), ids())
    assert (admitted(replaced), replaced.of_tier("critical").tolist()) == ([2, 3], [2, 3])
    assert (admitted(old), old.of_tier("critical").tolist()) == ([1, 2], [2])
