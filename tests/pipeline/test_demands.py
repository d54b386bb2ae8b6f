"""Quoted and excluded words: which memories a query may see, on a real store and through whole pipelines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from answered import refused
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.engine import Memory
from speckit_memory.engine.answers.results import SearchResult
from speckit_memory.memory.indexing import Source
from speckit_memory.pipeline.running.demands import memories_with_phrase

TEXTS = {
    "a": ("Lists", "Here rank fusion of lists is a matter of the SQLite store."),
    "b": ("RSF", "Relative score fusion, in short rsf, is a rank fusion by score of user_id."),
    "c": ("General", "The rank of a general. Fusion is hot, and sqlite is a store of the user by id."),
    "d": ("Rank fusions", "Nothing but the title says what this is, in computeMPAB."),
    "e": ("Other", "A list rank grows, then rank list fusion, of quokkas."),
}


def opened(root: Path, texts: dict[str, tuple[str, str]] = TEXTS, **more: Any) -> Memory:
    memory = Memory.open(root / "m.db", root=root, environ={})
    memory.index_documents([Source(key, text, title=title, **more) for key, (title, text) in texts.items()])
    return memory


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with opened(tmp_path_factory.mktemp("demands")) as memory:
        yield memory


def keys(result: SearchResult) -> str:
    return "".join(sorted(row.key for row in result.results))


@pytest.mark.requirement("C2", "C3")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"rank fusion"', "abd"),
        ('"Rank Fusions"', "abd"),
        ('"rank fusion" -rsf', "ad"),
        ('"fusion rank"', ""),
        ('"rank fusion list"', "a"),
        ('"rank fusion by score"', "b"),
        ('"list rank fusion"', ""),
        ('"sqlite store"', "ac"),
        ('"SQLite store"', "ac"),
        ('"the sqlite"', "ac"),
        ('"user_id"', "b"),
        ('"ComputeMPAB"', "d"),
        ('"computempab" this', "d"),
        ("fusion -rsf", "acde"),
        ("fusion -user_id", "acde"),
        ('fusion -"rank fusion" -quokka', "c"),
        ('"fusion" "quokka"', "e"),
    ],
)
@pytest.mark.parametrize("mode", ["auto", "deep"])
def test_only_what_holds_the_quoted_and_not_the_excluded_words_is_found(
    memory: Memory, text: str, found: str, mode: Any
) -> None:
    result = memory.search(text, mode=mode)

    assert set(result.outcome.query.plan.memories or ()) == {memory.get(key).id for key in found}
    assert set(keys(result)) <= set(found or TEXTS)
    assert result.results
    unheld = [
        warning for warning in result.notes.warnings if warning.startswith("no title or passage holds the phrase")
    ]
    assert bool(unheld) == (not found)


def test_a_phrase_of_three_words_is_a_run_in_one_text_and_no_sum_of_pairs(tmp_path: Path) -> None:
    texts = {
        "pairs": ("P", "list rank grows, rank fusion"),
        "run": ("R", "by list rank fusion"),
        "split": ("list", "rank fusion"),
    }
    with opened(tmp_path, texts) as memory:
        assert memories_with_phrase("list rank fusion", memory.session.view()).tolist() == [memory.get("run").id]


def test_what_cannot_be_honoured_is_said_and_does_not_bind(memory: Memory) -> None:
    result = memory.search('"zebra crossing" "to be" "zebra" fusion -the -rsf')

    assert result.notes.warnings[:4] == (
        'no title or passage holds the phrase "zebra crossing"; searched its words instead',
        'the phrase "to be" is made of everyday words, which cannot be required',
        'no memory holds the word "zebra"; searched without requiring it',
        'the word "the" is made of everyday words, which cannot be left out',
    )
    assert set(keys(result)) <= set("acde")
    assert result.plan.reasons[0] == 'marks: without "rsf"'


def test_the_answer_names_what_was_required_and_left_out_and_shows_no_marks(memory: Memory) -> None:
    result = memory.search("“rank fusion” weights -rsf")

    assert result.query == "rank fusion weights"
    assert (result.plan.required, result.plan.excluded) == (("rank fusion",), ("rsf",))
    assert result.plan.reasons[0] == 'marks: with "rank fusion" without "rsf"'
    assert result.outcome.query.terms == memory.search("rank fusion weights").outcome.query.terms
    plain = memory.search("rank fusion weights")
    assert (plain.plan.required, plain.plan.excluded) == ((), ())
    assert not any(reason.startswith("marks") for reason in plain.plan.reasons)
    assert plain.outcome.query.plan.memories is None


def test_a_dry_run_tells_the_same(memory: Memory) -> None:
    plan = memory.explain.plan('"rank fusion" "zebra crossing" -rsf').as_json()

    assert (plan["plan"]["required"], plan["plan"]["excluded"]) == (["rank fusion", "zebra crossing"], ["rsf"])
    assert plan["plan"]["warnings"] == [
        'no title or passage holds the phrase "zebra crossing"; searched its words instead'
    ]
    assert plan["work"]["memories_in_scope"] == 2


def test_phrases_that_no_memory_unites_find_nothing_and_say_so(memory: Memory) -> None:
    result = memory.search('"computeMPAB" "quokkas" -rsf')

    assert result.results == ()
    assert result.notes.warnings == ('there is no memory with "computeMPAB" and "quokkas" without "rsf"',)


def test_a_phrase_that_only_other_folders_hold_is_said_to_be_elsewhere(tmp_path: Path) -> None:
    with opened(tmp_path, {"a/x.md": ("X", "rank fusion"), "b/y.md": ("Y", "fusion by rank and score")}) as memory:
        result = memory.search('"rank fusion" score', folder="b")

    assert keys(result) == "b/y.md"
    first = (
        'no title or passage that the other conditions admit holds the phrase "rank fusion"; searched its words instead'
    )
    assert result.notes.warnings[0] == first


@pytest.mark.parametrize(("text", "words"), [("-rsf", "'rsf'"), ("-rsf !", "'rsf'"), ('-"a b" -cow', "'a b' or 'cow'")])
def test_a_query_of_exclusions_alone_is_refused(memory: Memory, text: str, words: str) -> None:
    with refused("E043", match="the query says only what to leave out: ") as caught:
        memory.search(text)
    assert words in str(caught.value)


def test_a_memory_whose_title_has_no_words_is_not_left_out_for_that(tmp_path: Path) -> None:
    with opened(tmp_path, {"a": ("!!!", "fusion of lists"), "b": ("", "fusion, rsf")}) as memory:
        assert keys(memory.search("fusion -rsf")) == "a"


def test_exclusions_may_stand_beside_concepts(memory: Memory) -> None:
    every = keys(memory.search("", concepts=("rank", "fusion")))

    assert "b" in every
    assert keys(memory.search("-rsf", concepts=("rank", "fusion"))) == every.replace("b", "")


def test_a_quoted_word_is_never_respelt(memory: Memory) -> None:
    typed, quoted = memory.search("quokkka"), memory.search('"quokkka"')

    assert typed.outcome.query.terms == ("quokka",)
    assert quoted.outcome.query.terms == ("quokkka",)
    assert quoted.notes.warnings[0] == 'no memory holds the word "quokkka"; searched without requiring it'


def test_rules_of_the_house_come_whatever_is_quoted_or_left_out(tmp_path: Path) -> None:
    with opened(tmp_path, {"rule": ("Rule", "never use rsf")}, tier="constitutional") as memory:
        memory.index_documents([Source(key, text, title=title) for key, (title, text) in TEXTS.items()])
        result = memory.search('"rank fusion" -rsf')

    assert keys(result) == "adrule"


def test_why_not_names_the_demand(memory: Memory) -> None:
    result = memory.search('"rank fusion" -rsf')

    assert memory.explain.why_not(result, "b").endswith('it holds "rsf", which the query leaves out.')
    assert memory.explain.why_not(result, "c").endswith('it does not hold "rank fusion".')


WORDS = st.sampled_from(["rank", "fusion", "list", "score", "the", "of", "SQLite", "user_id", "store", "REQ-006"])


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """Texts whose words stand in all kinds of order."""
    words = ["rank", "fusion", "list", "score", "the", "of", "SQLite", "user_id", "store", "REQ-006"]
    texts = {
        f"k{step}{shift}": (f"T{step}{shift}", " ".join(words[(shift + step * place) % 10] for place in range(12)))
        for step in (1, 3, 7, 9)
        for shift in range(10)
    }
    with opened(tmp_path_factory.mktemp("sentences"), texts) as memory:
        yield memory


@given(words=st.lists(WORDS, min_size=2, max_size=4))
def test_a_phrase_is_held_by_what_has_its_tokens_in_a_row(sentences: Memory, words: list[str]) -> None:
    store, analyse = sentences.session.view(), sentences.models.analyser.tokens
    run = analyse(f"{' '.join(words)} 0")[:-1]
    held = {
        record.id
        for record in sentences.list(limit=100)[0]
        for tokens in [analyse(store.passages.body(record.id))]
        if any(tokens[at : at + len(run)] == run for at in range(len(tokens) - len(run) + 1)) and run
    }

    assert set(memories_with_phrase(" ".join(words), store).tolist()) == held
