"""The seven safeguards of learning trigger phrases, one by one, and the gate of 200 pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from speckit_memory.memory.lifecycle import learned_triggers
from speckit_memory.memory.lifecycle.learned_triggers import (
    LEAST_AGE_SECONDS,
    LEAST_PAIRS,
    SHADOW_SECONDS,
    TERMS_PER_MEMORY,
    TTL_SECONDS,
    phase,
    terms,
)
from speckit_memory.memory.store.evaluation.attribution import SelectionEvent
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.records import Document
from speckit_memory.memory.store.tables.sessions import selections
from speckit_memory.memory.store.tables.sessions.selections import Selection
from speckit_memory.memory.store.writing.writer import delete_memories, put_document

DAY = 86_400.0
NOW = 1_800_000_000.0
NOTE = Document(key="note.md", title="Note", body="the text", content_hash="h", triggers=("pipeline",))
PICKED = SelectionEvent("q", 1, "opened", 5, NOW, "")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A store with the memory 1, a hundred days old, that has seen enough to learn."""
    with Database.open(tmp_path / "store.db") as database:
        with database.write() as txn:
            put_document(txn, NOTE, None, NOW - 100 * DAY, None)
        watch(database, LEAST_PAIRS)
        yield database


def watch(database: Database, pairs: int, since: float = NOW - SHADOW_SECONDS) -> None:
    """So many selections of a memory that is gone, noted since then."""
    with database.write() as txn:
        txn.connection.execute("DELETE FROM selections")
        for number in range(pairs):
            seen = Selection(f"seen{number}", 999, "opened", 1, since, since, "refused", "the memory is gone", ())
            selections.note(txn, seen)


def learn(database: Database, *words: str, selected: SelectionEvent = PICKED, now: float = NOW) -> Selection:
    """Learns from a question of its own for each call."""
    with database.write() as txn:
        seen = selections.seen(txn.connection).pairs
        return learned_triggers.learn(txn, replace(selected, query=f"q{seen}"), words, now)


def phrases(database: Database, now: float = NOW) -> dict[str, float]:
    """What counts for the memory 1, and until when."""
    return {one.phrase: one.expires_at for one in selections.learned_phrases(database.reader(), now) if one.memory == 1}


@pytest.mark.requirement("M12.apart")
def test_first_what_is_learned_lies_apart_from_documents_and_outside_of_the_full_text(database: Database) -> None:
    words = "SELECT * FROM texts", "SELECT * FROM token_counts", "SELECT * FROM chunks"
    before = [rows(database.reader(), sql) for sql in words]
    assert learn(database, "rollout").outcome == "learned"
    assert [rows(database.reader(), sql) for sql in words] == before
    assert rows(database.reader(), "SELECT source, normalised, weight FROM triggers ORDER BY source") == [
        ("authored", "pipeline", 1.0), ("learned", "rollout", 0.7),
    ]  # fmt: skip
    with database.write() as txn:  # a changed document declares other phrases; what was learned stays
        put_document(txn, replace(NOTE, triggers=("release",), content_hash="i"), None, NOW, None)
    found = rows(database.reader(), "SELECT source, normalised FROM triggers ORDER BY source")
    assert found == [("authored", "release"), ("learned", "rollout")]


@pytest.mark.requirement("M12.ends")
def test_second_it_ends_after_thirty_days_unless_another_selection_repeats_it(database: Database) -> None:
    learn(database, "rollout", "staging")
    assert phrases(database) == {"rollout": NOW + TTL_SECONDS, "staging": NOW + TTL_SECONDS}
    later = NOW + 20 * DAY
    # at whatever rank: what was learned may be why it is found well now
    again = learn(database, "rollout", "window", selected=replace(PICKED, rank=1, at=later), now=later)
    assert (again.outcome, again.terms) == ("reinforced", ("rollout",))
    assert phrases(database, NOW + TTL_SECONDS + 1) == {"rollout": later + TTL_SECONDS}
    with database.write() as txn:
        assert selections.count_expired(txn.connection, NOW + TTL_SECONDS + 1) == 1
        assert selections.drop_expired(txn, NOW + TTL_SECONDS + 1) == 1
    assert list(phrases(database)) == ["rollout"]
    assert phrases(database, later + TTL_SECONDS + 1) == {}


@pytest.mark.requirement("M12.common")
def test_third_common_words_numbers_and_scraps_are_never_learned() -> None:
    assert terms("How do we deploy the API to production in 2026, v2 or 1-2?") == ("production", "deploy", "api")
    assert terms("Where is the Straße in “roll-out”? DEPLOY deploy snake_case") == (
        "snake_case", "roll-out", "strasse", "deploy",
    )  # fmt: skip
    assert terms("the and what " + "x" * 41) == ()


@pytest.mark.requirement("M12.little")
def test_fourth_three_words_of_a_selection_and_eight_of_a_memory(database: Database) -> None:
    assert learn(database, "one1", "two2", "three3", "four4").terms == ("one1", "two2", "three3")
    assert learn(database, "five5", "six6", "seven7").terms == ("five5", "six6", "seven7")
    assert learn(database, "eight8", "nine9", "ten10").terms == ("eight8", "nine9")
    assert len(phrases(database)) == TERMS_PER_MEMORY == 8
    refused = learn(database, "eleven11")
    assert (refused.outcome, refused.reason) == ("refused", "the memory has 8 learned phrases")
    late = NOW + TTL_SECONDS + DAY
    with database.write() as txn:  # what has ended leaves room
        assert selections.drop_expired(txn, late) == TERMS_PER_MEMORY
    assert learn(database, "eleven11", selected=replace(PICKED, at=late), now=late).outcome == "learned"


@pytest.mark.requirement("M12.hard")
def test_fifth_a_memory_among_the_first_three_teaches_nothing(database: Database) -> None:
    third, fourth = (learn(database, "rollout", selected=replace(PICKED, rank=rank)) for rank in (3, 4))
    assert (third.outcome, third.reason) == ("refused", "it was found well: at rank 3")
    assert fourth.outcome == "learned"


@pytest.mark.requirement("M12.watched")
@pytest.mark.parametrize(
    ("pairs", "since", "wanting"),
    [(LEAST_PAIRS - 1, NOW - SHADOW_SECONDS, (1, 0.0)), (LEAST_PAIRS, NOW - SHADOW_SECONDS + 1, (0, 1.0))],
)
def test_sixth_for_a_week_and_200_pairs_it_is_only_noted_what_would_be_learned(
    database: Database, pairs: int, since: float, wanting: tuple[int, float]
) -> None:
    watch(database, pairs, since)
    standing = phase(database.reader(), NOW)
    assert (standing.learns, standing.pairs, (standing.pairs_wanting, standing.seconds_wanting)) == (
        False, pairs, wanting,
    )  # fmt: skip
    noted = learn(database, "rollout")
    assert (noted.outcome, noted.terms) == ("shadow", ("rollout",))
    assert phrases(database) == {}
    assert rows(database.reader(), "SELECT outcome, terms FROM selections WHERE memory_id = 1") == [
        ("shadow", '["rollout"]')
    ]
    assert learn(database, "rollout", now=NOW + 1).outcome == "learned"  # the pair itself was the 200th; a second later


@pytest.mark.requirement("M12.old")
def test_seventh_a_memory_younger_than_three_days_teaches_nothing(database: Database) -> None:
    with database.write() as txn:
        put_document(txn, replace(NOTE, key="new.md"), None, NOW - LEAST_AGE_SECONDS + 1, None)
    refused = learn(database, "rollout", selected=replace(PICKED, memory=2))
    assert (refused.outcome, refused.reason) == ("refused", "the memory is younger than 72 hours")
    # it counts how old it was when it was selected, not when that is learned from
    assert learn(database, "rollout", selected=replace(PICKED, memory=2), now=NOW + DAY).outcome == "refused"
    assert learn(database, "rollout", selected=replace(PICKED, memory=2, at=NOW + 1)).outcome == "learned"


@pytest.mark.requirement("M12")
def test_what_documents_declare_or_a_user_took_back_is_not_learned(database: Database) -> None:
    learn(database, "rollout")
    with database.write() as txn:
        selections.unlearn(txn, 1, "rollout", NOW)
    refused = learn(database, "rollout", "pipeline")
    assert (refused.outcome, refused.reason) == ("refused", "the question has no word that is new and not common")
    assert phrases(database) == {}


@pytest.mark.requirement("M12")
def test_a_memory_that_goes_takes_what_was_learned_along_and_leaves_how_much_was_seen(database: Database) -> None:
    learn(database, "rollout")
    with database.write() as txn:
        selections.unlearn(txn, 1, "other", NOW)
        delete_memories(txn, [1])
    assert rows(database.reader(), "SELECT * FROM triggers") == rows(database.reader(), "SELECT * FROM unlearned") == []
    assert selections.seen(database.reader()).pairs == LEAST_PAIRS + 1
    assert learn(database, "rollout").reason == "the memory is gone"
