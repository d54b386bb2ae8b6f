"""Steps that widen, narrow or repeat a search, and that read signals from the wording."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from answered import present
from components.asking import query

from speckit_memory.pipeline.model.columns import Plan
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Filter, FolderDescription, Unavailable
from speckit_memory.pipeline.roles.contracts import PipelineContext
from speckit_memory.pipeline.testing import Edge, FakeStore, Memory
from speckit_memory.stages.candidates.coverage import Coverage, CoverageParams
from speckit_memory.stages.candidates.embedding_expansion import EmbeddingExpansion, EmbeddingExpansionParams
from speckit_memory.stages.candidates.expansion import VOCABULARY, Expansion, ExpansionParams
from speckit_memory.stages.candidates.fallback import Fallback, FallbackParams
from speckit_memory.stages.candidates.folder_prefilter import FolderPrefilter, FolderPrefilterParams
from speckit_memory.stages.candidates.pressure import Pressure, PressureParams
from speckit_memory.stages.candidates.signal_vocabulary import SignalVocabulary, SignalVocabularyParams

EMPTY = FakeStore()


def plan(text: str, **changes: Any) -> Plan:
    return Plan(variants=(text,), **changes)


@pytest.mark.requirement("C11.three")
def test_deep_queries_are_worded_in_three_ways_the_query_first() -> None:
    text = "Fix the login error"

    refined = Expansion(ExpansionParams()).understand(query(text, mode="deep"), plan(text), EMPTY)

    assert refined.variants == (
        "Fix the login error",
        "repair the authentication exception",
        "resolve the sign-in failure",
    )


@pytest.mark.requirement("C11.deep")
def test_other_modes_and_unknown_words_are_left_alone() -> None:
    step = Expansion(ExpansionParams())

    assert step.understand(query("fix it"), plan("fix it"), EMPTY) == plan("fix it")
    assert step.understand(query("wing flow", mode="deep"), plan("wing flow"), EMPTY).variants == ("wing flow",)


@pytest.mark.requirement("C11.domains")
def test_the_vocabulary_covers_five_domains_and_fewer_variants_may_be_asked_for() -> None:
    step = Expansion(ExpansionParams(variants=2))

    assert len(VOCABULARY) == 5
    assert step.understand(query("bug", mode="deep"), plan("bug"), EMPTY).variants == ("bug", "defect")


NEAR = FakeStore(
    Memory(1, "", ("fusion merges ranked lists lists lists",)),
    Memory(2, "", ("fusion of ranked channels",)),
    Memory(3, "", ("nothing in common",)),
)


@pytest.mark.requirement("C12")
def test_words_of_the_nearest_passages_are_appended_as_a_variant() -> None:
    step = EmbeddingExpansion(EmbeddingExpansionParams(neighbours=2, terms=3))

    refined = present(step.understand(query("fusion"), plan("fusion", complexity="complex"), NEAR))

    # Of 2 and 1: lists three times, ranked twice, then the alphabetically first of channels and merges; "of" is short.
    assert refined.variants == ("fusion", "fusion lists ranked channels")


@pytest.mark.requirement("P7", "C12.simple")
def test_simple_queries_are_not_expanded() -> None:
    step = EmbeddingExpansion(EmbeddingExpansionParams())
    without = PipelineContext(("vector",), (Scale.COSINE,), ("e", "vector"), ("embedding_expansion", "vector"))

    refined = present(step.understand(query("fusion"), plan("fusion", complexity="simple"), NEAR))

    assert refined.variants == ("fusion",)
    assert [path for path, _ in EmbeddingExpansion.check(EmbeddingExpansionParams(), without)] == [()]


@pytest.mark.requirement("C12")
def test_without_a_model_or_a_known_word_nothing_is_added() -> None:
    step = EmbeddingExpansion(EmbeddingExpansionParams())
    silent = FakeStore(Memory(1, "", ("a",)), no_embedder="no model")

    assert step.understand(query("a"), plan("a"), silent) == Unavailable("no model")
    assert step.understand(query("zebra"), plan("zebra"), NEAR) == plan("zebra")


FOLDERS = FakeStore(
    folders=(
        FolderDescription("auth", "How people sign in.", frozenset({"login", "token", "session"})),
        FolderDescription("search", "Ranked retrieval.", frozenset({"fusion", "rank", "token"})),
        FolderDescription("notes", "", frozenset({"misc"})),
    )
)


def folders(text: str, **changes: Any) -> tuple[str, ...]:
    step = FolderPrefilter(FolderPrefilterParams())
    return step.understand(query(text, **changes), plan(text), FOLDERS).folders


@pytest.mark.requirement("C13")
def test_a_query_about_one_folder_is_searched_there() -> None:
    assert folders("login session") == ("auth",)
    assert folders("retrieval") == ("search",)
    assert folders("token") == ("auth", "search")


@pytest.mark.requirement("C13")
def test_cross_folder_and_vague_queries_are_searched_everywhere() -> None:
    assert folders("login fusion") == ()
    assert folders("login of the friday team meeting") == ()
    assert folders("zebra") == ()
    assert folders("") == ()


@pytest.mark.requirement("C13")
def test_a_word_in_the_text_of_another_folder_makes_a_question_cross_folders() -> None:
    def narrowed(*texts: str) -> Plan:
        described = (
            FolderDescription("auth", "", frozenset({"login", "session"})), FolderDescription("ops", "", frozenset())
        )  # fmt: skip
        memories = [Memory(i, "", (text,), folder="ops") for i, text in enumerate(texts, start=2)]
        store = FakeStore(Memory(1, "", ("login session",), folder="auth"), *memories, folders=described)
        return FolderPrefilter(FolderPrefilterParams()).understand(query("login session"), plan("login session"), store)

    assert narrowed("nothing of the kind").folders == ("auth",)
    assert narrowed("a session may end").folders == ()
    assert narrowed("a session may end").reasons == ("folder_prefilter: all folders, others hold 'session' as well",)


@pytest.mark.requirement("C13")
def test_a_folder_that_the_caller_named_stands() -> None:
    assert folders("login session", wanted=Filter(folder="search")) == ()


@pytest.mark.requirement("C14.words")
def test_silence_is_answered_with_half_the_similarity_then_with_words_alone() -> None:
    step = Fallback(FallbackParams())
    first = plan("x", folders=("auth",), asked_similarity=0.3)

    second = step.recover(query("x"), first, EMPTY)
    third = step.recover(query("x"), replace(second, attempt=1), EMPTY)
    last = replace(third, attempt=2)

    assert (second.min_similarity, second.limit_factor, second.folders) == (0.17, 2.0, ())
    assert third.channels == ("fts5", "bm25", "constitutional", "identifier", "phrase", "surface", "trigger")
    assert step.recover(query("x"), last, EMPTY) is last


@pytest.mark.requirement("C12.terms")
def test_of_five_passages_eight_words_of_three_letters_are_taken() -> None:
    # six passages, the sixth farther than five: "last" is not seen; "ab" is short, "fusion" is asked for
    near = [f"fusion ab {word}" for word in ("one", "two", "three", "four", "five six seven eight nine")]
    store = FakeStore(
        *(Memory(i, "", (text,)) for i, text in enumerate(near, start=1)),
        Memory(6, "", ("fusion " + "last " * 9,)),
    )
    step = EmbeddingExpansion(EmbeddingExpansionParams())

    refined = present(step.understand(query("fusion"), plan("fusion", complexity="moderate"), store))

    # nine words, each once: the first eight by the alphabet
    assert refined.variants[1:] == ("fusion eight five four nine one seven six three",)


@pytest.mark.requirement("C14.relaxed")
@pytest.mark.parametrize(("similarity", "relaxed"), [(0.3, 0.17), (0.34, 0.17), (0.36, 0.18), (0.5, 0.25)])
def test_the_relaxed_similarity_is_half_but_not_below_the_floor(similarity: float, relaxed: float) -> None:
    asked = plan("x", asked_similarity=similarity)

    # .3 / 2 = .15 < .17; .34 / 2 = .17; .36 / 2 = .18; .5 / 2 = .25
    assert Fallback(FallbackParams()).recover(query("x"), asked, EMPTY).min_similarity == pytest.approx(relaxed)


@pytest.mark.requirement("C14")
@pytest.mark.parametrize("similarity", [0.0, 0.1, 0.17])
def test_where_nothing_can_be_relaxed_words_are_next(similarity: float) -> None:
    step = Fallback(FallbackParams())

    # half of .17 and less lies below the floor: asking for the floor would be asking for more
    tried = step.recover(query("x"), plan("x", asked_similarity=similarity), EMPTY)
    opened = step.recover(query("x"), plan("x", asked_similarity=similarity, folders=("auth",)), EMPTY)

    assert (tried.channels, tried.min_similarity) == (
        ("fts5", "bm25", "constitutional", "identifier", "phrase", "surface", "trigger"),
        None,
    )
    assert (opened.channels, opened.min_similarity, opened.folders, opened.limit_factor) == (None, None, (), 2.0)
    assert tried.reasons == ("fallback: nothing found; words only (fts5, bm25)",)


@pytest.mark.requirement("C14", "P7")
def test_a_fallback_without_lexical_channel_is_reported() -> None:
    here = PipelineContext(("vector",), (Scale.COSINE,), ("fallback", "vector"), ("fallback", "vector"))

    assert [path for path, _ in Fallback.check(FallbackParams(), here)] == [("lexical",)]


@pytest.mark.requirement("C15.three")
def test_few_connected_memories_are_an_early_sign_of_a_gap() -> None:
    memories = [Memory(i, "", ("alpha" if i == 1 else "x",)) for i in range(1, 5)]
    two = FakeStore(*memories, edges=(Edge(1, 2), Edge(3, 1)))
    three = FakeStore(*memories, edges=(Edge(1, 2), Edge(3, 1), Edge(1, 4)))
    step = Coverage(CoverageParams())

    assert step.understand(query("alpha"), plan("alpha"), two).reasons == (
        "coverage: evidence gap, 2 connected memories (fewer than 3)",
    )
    assert step.understand(query("alpha"), plan("alpha"), three).reasons == ()
    assert len(step.understand(query("unknown"), plan("unknown"), three).reasons) == 1


@pytest.mark.requirement("C16")
@pytest.mark.parametrize(
    ("text", "boost"),
    [
        ("Actually, the other file", 0.2),
        ("that’s not right", 0.2),
        ("I prefer tabs", 0.1),
        ("wait, I want tabs", 0.3),
        ("factually and likely", 0.0),
    ],
)
def test_corrections_and_preferences_raise_importance(text: str, boost: float) -> None:
    refined = SignalVocabulary(SignalVocabularyParams()).understand(query(text), plan(text), EMPTY)

    assert refined.importance_boost == pytest.approx(boost)
    assert bool(refined.reasons) is bool(boost)


@pytest.mark.requirement("C16.correction")
@pytest.mark.parametrize("said", ["Actually", "WAIT", "I was wrong", "correction", "not quite", "Let me rephrase",
                                  "that's not right"])  # fmt: skip
def test_each_word_of_correction_counts_a_fifth(said: str) -> None:
    text = f"the file, {said}: another"

    assert SignalVocabulary(SignalVocabularyParams()).understand(query(text), plan(text), EMPTY).importance_boost == 0.2


@pytest.mark.requirement("C16.preference")
@pytest.mark.parametrize("said", ["prefer", "like", "want", "always use", "never use", "I want", "please use"])
def test_each_word_of_preference_counts_a_tenth(said: str) -> None:
    text = f"{said} tabs"

    assert SignalVocabulary(SignalVocabularyParams()).understand(query(text), plan(text), EMPTY).importance_boost == 0.1


@pytest.mark.requirement("C17.borders")
@pytest.mark.parametrize(
    ("usage", "mode"),
    [
        (None, "auto"),
        (0.0, "auto"),
        (0.59, "auto"),
        (0.6, "focused"),
        (0.8, "focused"),
        (0.81, "quick"),
        (7.0, "quick"),
    ],
)
def test_the_mode_follows_the_pressure_on_the_context(usage: float | None, mode: str) -> None:
    asked = query("x", token_usage=usage)

    refined = Pressure(PressureParams()).understand(asked, plan("x"), EMPTY)

    assert asked.planned(refined).running_mode == mode


@pytest.mark.requirement("C17")
def test_a_mode_that_the_caller_chose_stands() -> None:
    asked = query("x", token_usage=0.95, mode="deep")

    assert Pressure(PressureParams()).understand(asked, plan("x"), EMPTY) == plan("x")


@pytest.mark.requirement("P7")
def test_borders_of_pressure_out_of_order_are_reported() -> None:
    here = PipelineContext((), (), (), ())

    assert [path for path, _ in Pressure.check(PressureParams(focused=0.9, quick=0.5), here)] == [("quick",)]
