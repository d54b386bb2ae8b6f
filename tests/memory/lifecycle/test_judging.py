"""Judgements and promotions are on record, and taken back as if they had never been given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from answered import refused
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.lifecycle.reviews import USED, Review, review
from speckit_memory.memory.lifecycle.validations import promote, undo, undo_all, validate
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.queries import rows, value
from speckit_memory.memory.store.file.schema.migrations import MIGRATIONS, migrate
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import Document, Tier
from speckit_memory.memory.store.tables.memories import judgements
from speckit_memory.memory.store.tables.memories.judgements import MOST_KEPT, Judgement, ReviewState
from speckit_memory.memory.store.writing.writer import put_document

NOW, DAY = 1_000_000.0, 86_400.0
NOTE = Document(key="note.md", title="Note", body="text", content_hash="h")
BORN = ReviewState(0.5, 0, 1.0, 5.0, None, 0)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "store.db") as database:
        put(database, NOTE)
        yield database


def put(database: Database, document: Document) -> int:
    with database.write() as txn:
        return put_document(txn, document, None, NOW, None).id


def told(database: Database, memory: int | None = None) -> list[Judgement]:
    return judgements.judgements(database.reader(), memory=memory)


def stands(database: Database, memory: int = 1) -> tuple[ReviewState | None, Tier]:
    return judgements.regard(database.reader(), memory), reader.get_memory(database.reader(), memory).tier


def used(database: Database, at: float, memory: int = 1) -> None:
    with database.write() as txn:
        review(txn, {memory: Review(USED, at)})


@pytest.mark.requirement("F17.attributed")
def test_a_judgement_is_on_record_with_its_session_its_time_and_what_it_did(database: Database) -> None:
    validate(database, 1, True, promote=False, now=NOW, session="s1")
    validate(database, 1, False, promote=False, now=NOW + 5, session="s2")
    second, first = told(database)
    assert (first.key, first.kind, first.at, first.session, first.undone_at) == ("note.md", "useful", NOW, "s1", None)
    # by the table of docs/lifecycle.md: 1 * (1 + (11 - 5) * 0.1) * 1.3 = 2.08 days, and 0.5 easier
    assert (first.before, first.after) == (BORN, ReviewState(0.6, 1, 2.08, 4.5, NOW, 1))
    assert (second.kind, second.session, second.before) == ("not useful", "s2", first.after)
    assert tuple(second.after) == pytest.approx((0.55, 2, 0.416, 5.5, NOW + 5, 2))
    assert judgements.judgements(database.reader(), session="s2") == [second]


@pytest.mark.requirement("F17.undone")
def test_what_came_after_counts_as_it_would_have_and_nothing_of_the_record_goes(database: Database) -> None:
    """A use within a day of a judgement changes nothing; without the judgement it does."""
    validate(database, 1, False, promote=False, now=NOW + DAY)
    used(database, NOW + DAY + 60)
    validate(database, 1, True, promote=False, now=NOW + 3 * DAY)
    undone = undo(database, [1], now=NOW + 4 * DAY)
    other = put(database, Document(key="other.md", title="Other", body="text", content_hash="g"))
    used(database, NOW + DAY + 60, other)
    validate(database, other, True, promote=False, now=NOW + 3 * DAY)
    assert stands(database) == stands(database, other)
    assert [(one.id, one.undone_at) for one in told(database, 1)] == [(3, None), (1, NOW + 4 * DAY)]
    assert told(database, 1)[0].after == told(database, other)[0].after
    assert [one.id for one in undone.undone] == [1]
    assert (undone.memories[0].confidence, undone.memories[0].validation_count) == (0.6, 1)


@pytest.mark.requirement("F17.undone")
def test_a_promotion_is_taken_back_and_the_memory_has_the_tier_that_its_file_declares_now(database: Database) -> None:
    for _ in range(5):
        validate(database, 1, True, promote=False, now=NOW)
    trusted, _ = stands(database)
    promote(database, 1, now=NOW + 1, session="s")
    promotion = told(database)[0]
    assert (promotion.kind, promotion.session, promotion.declared) == ("promoted", "s", "normal")
    put(database, Document(key="note.md", title="Note", body="more", content_hash="i", tier=Tier.IMPORTANT))
    assert stands(database) == (trusted, Tier.CRITICAL)
    assert undo(database, [promotion.id], now=NOW + 2).memories[0].eligible
    assert stands(database) == (trusted, Tier.IMPORTANT)
    assert reader.get_memory(database.reader(), 1).promotion is None
    assert promote(database, 1, now=NOW + 3).promotion is not None  # and once more
    assert [one.declared for one in told(database)[:2]] == ["important", "important"]


@pytest.mark.requirement("F17.undone")
@pytest.mark.parametrize("settled", [Tier.CRITICAL, Tier.DEPRECATED])
def test_a_tier_that_the_file_has_settled_meanwhile_stays(database: Database, settled: Tier) -> None:
    for _ in range(5):
        validate(database, 1, True, promote=False, now=NOW)
    promote(database, 1, now=NOW)
    put(database, Document(key="note.md", title="Note", body="more", content_hash="i", tier=settled))
    undo_all(database, name=1, now=NOW)
    assert stands(database) == (BORN, settled)


@pytest.mark.requirement("F17.undone")
def test_a_promotion_for_which_too_little_is_left_goes_too(database: Database) -> None:
    for _ in range(5):
        validate(database, 1, True, promote=False, now=NOW)
    promote(database, 1, now=NOW)
    undone = undo(database, [2], now=NOW + 1)
    assert ([one.id for one in undone.undone], [one.id for one in undone.followed]) == ([2], [6])
    assert undone.memories[0].tier == Tier.NORMAL
    assert {one.id for one in told(database) if one.undone_at} == {2, 6}


@pytest.mark.requirement("F17.undone")
def test_what_there_is_not_or_was_taken_back_is_refused_and_nothing_changes(database: Database) -> None:
    validate(database, 1, True, promote=False, now=NOW)
    validate(database, 1, True, promote=False, now=NOW)
    used(database, NOW + 2 * DAY)
    undo(database, [1], now=NOW)
    before = told(database), stands(database)
    for numbers, code in (([2, 99], "E080"), ([2, 3], "E080"), ([2, 1], "E030")):  # 3 is a use
        with refused(code):
            undo(database, numbers, now=NOW)
    assert (told(database), stands(database)) == before


def test_all_of_a_session_is_taken_back_wherever_it_judged(database: Database) -> None:
    other = put(database, Document(key="other.md", title="Other", body="text", content_hash="g"))
    for memory, session in ((1, "a"), (other, "b"), (1, "b"), (other, "a")):
        validate(database, memory, True, promote=False, now=NOW, session=session)
    undone = undo_all(database, session="b", now=NOW + 1)
    assert [(one.memory, one.session) for one in undone.undone] == [(other, "b"), (1, "b")]
    assert [reader.get_memory(database.reader(), memory).confidence for memory in (1, other)] == [0.6, 0.6]
    assert undo_all(database, session="nobody", now=NOW + 1).undone == ()


@pytest.mark.requirement("F17.attributed")
def test_the_last_of_each_memory_are_kept_and_uses_that_changed_nothing_go_first(database: Database) -> None:
    validate(database, 1, True, promote=False, now=NOW)
    for number in range(MOST_KEPT + 50):
        used(database, NOW + number)  # all day long
    assert [one.id for one in told(database)] == [1]
    assert value(database.reader(), "SELECT count(*) FROM judgements") == MOST_KEPT
    for _ in range(5):
        validate(database, 1, True, promote=False, now=NOW)
    promote(database, 1, now=NOW)
    promotion = told(database)[0].id
    for _ in range(MOST_KEPT + 50):
        validate(database, 1, False, promote=False, now=NOW)
    kept = told(database)
    assert len(kept) == value(database.reader(), "SELECT count(*) FROM judgements") == MOST_KEPT
    assert min(one.id for one in kept) == promotion  # which holds
    undo_all(database, name=1, now=NOW)
    # what is gone from the record counts on: 0.5 + 0.1 for the first six, - 0.05 for 51 that are gone
    regard, tier = stands(database)
    assert regard is not None
    assert (regard.confidence, regard.validations, tier) == (0.0, 6 + 51, Tier.NORMAL)


def test_uses_of_what_nobody_judged_are_not_on_record(database: Database) -> None:
    used(database, NOW + DAY)
    validate(database, 1, True, promote=False, now=NOW + 3 * DAY)
    undo(database, [1], now=NOW + 3 * DAY)
    used(database, NOW + 5 * DAY)
    assert value(database.reader(), "SELECT count(*) FROM judgements") == 1


@pytest.mark.requirement("F17.undone")
@pytest.mark.usefixtures("in_a_file")
def test_a_promotion_of_a_store_of_before_judgements_were_kept_can_be_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Database.open(path) as database:
        put(database, NOTE)
        for _ in range(5):
            validate(database, 1, True, promote=False, now=NOW)
        promote(database, 1, now=NOW)
    with closing(apsw.Connection(str(path))) as old:
        old.execute("DROP TABLE judgements; DELETE FROM migrations WHERE name = '0019_judgements'")
        migrate(old, path, MIGRATIONS)
    with Database.open(path) as database:
        [promotion] = told(database)
        assert (promotion.kind, promotion.at, promotion.session, promotion.declared) == ("promoted", NOW, "", "normal")
        undo(database, [promotion.id], now=NOW)
        regard, tier = stands(database)
        assert regard is not None
        assert (regard.confidence, regard.validations, tier) == (1.0, 5, Tier.NORMAL)


Event = tuple[str, float]
EVENTS: st.SearchStrategy[Event] = st.tuples(
    st.sampled_from(["useful", "useful", "useful", "not useful", "used", "used", "promoted"]),
    st.sampled_from([0.0, 0.01, 0.3, 0.6, 1.0, 1.7, 40.0, -0.5]),
)
"""What happens, and how many days after what happened before."""


def live(database: Database, key: str, events: Sequence[Event], left_out: frozenset[int] = frozenset()) -> list[int]:
    """Lives through events on a new memory but for those at some places; the numbers of what they left on record, 0
    where they left nothing that could be taken back."""
    memory = put(database, Document(key=key, title="Note", body="text", content_hash=key, created_at=NOW))
    numbers, now = [], NOW
    for place, (kind, days) in enumerate(events):
        now += days * DAY
        number = 0
        if place not in left_out:
            try:
                if kind == "promoted":
                    promote(database, memory, now=now)
                elif kind == "used":
                    used(database, now, memory)
                else:
                    validate(database, memory, kind == "useful", promote=False, now=now)
                if kind != "used":
                    number = told(database, memory)[0].id
            except SpeckitError as error:
                if error.code != "E082":  # too little trust, or promoted already
                    raise
        numbers.append(number)
    return numbers


@pytest.mark.requirement("F17.undone")
@given(data=st.data())
def test_a_memory_is_as_if_what_was_taken_back_had_never_been_given(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """One by one or at once, in whatever order: the life without is lived beside, and equal to the last bit."""
    events = data.draw(st.lists(EVENTS, min_size=1, max_size=14) | st.lists(EVENTS, min_size=8, max_size=30))
    with Database.open(tmp_path_factory.mktemp("lives") / "store.db") as database:
        numbers = live(database, "lived.md", events)
        places = [place for place, number in enumerate(numbers) if number]
        chosen = data.draw(st.lists(st.sampled_from(places), unique=True, max_size=4)) if places else []
        asked = [numbers[place] for place in chosen]
        if data.draw(st.booleans()):
            undo(database, asked, now=NOW)
        else:
            for number in asked:
                taken = {one.id for one in told(database) if one.undone_at is not None}
                if number not in taken:  # a promotion that went with another one
                    undo(database, [number], now=NOW)
        lived = told(database, 1)
        gone = {place for place, number in enumerate(numbers) if number in {o.id for o in lived if o.undone_at}}
        without = live(database, "without.md", events, frozenset(gone))
        other = value(database.reader(), "SELECT id FROM memories WHERE key = 'without.md'")
        (regard, tier), (expected, its_tier) = stands(database), stands(database, other)
        assert regard == expected
        assert _judged(lived) == _judged(told(database, other))
        # what was refused left nothing that could be lived through once more
        assert tier == its_tier or _refused(numbers, without)
        assert database.check() == []
        assert rows(database.reader(), "SELECT count(*) FROM judgements WHERE memory_id = 1 AND kind <> 'used'") == [
            (sum(map(bool, numbers)),)
        ]


def _judged(found: Sequence[Judgement]) -> list[tuple[object, ...]]:
    return [
        (one.kind, one.at, one.before, one.after) for one in found if one.kind != "promoted" and one.undone_at is None
    ]


def _refused(numbers: Sequence[int], without: Sequence[int]) -> bool:
    """Whether the life beside has a promotion that this one had not: what was in its way was taken back."""
    return any(other and not own for own, other in zip(numbers, without, strict=True))
