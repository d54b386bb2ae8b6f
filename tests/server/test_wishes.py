"""What one search wants otherwise than its pipeline says (feature T2), and what of that other pipelines show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pytest
from answered import refused

from speckit_memory.engine import Memory
from speckit_memory.engine.answers.search_options import SearchOptions
from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.model.columns import INTENTS
from speckit_memory.stages.candidates.intent import SIGNS
from tests.server.test_tool_parameters import DEEP, QUOKKA, SPEC, answers, indexed_files, memory, scores

__all__ = ["indexed_files", "memory"]  # fixtures
YEAR = 365 * 86_400.0


def hash_of(memory: Memory, adjust: SearchOptions) -> str:
    return memory.search("quokka cache", adjust=adjust).pipeline.hash


@pytest.mark.requirement("T2.parameters")
def test_what_ages_counts_less_unless_told_otherwise(memory: Memory) -> None:
    """A memory of a year ago has lost most of the composite's temporal factor, and keeps it without decay."""
    with memory.using("catalogue") as catalogue:
        now = 2e9
        aged = catalogue.search("quokka cache", now=now)
        ageless = catalogue.search("quokka cache", now=now, adjust=SearchOptions(decay=False))
        later = catalogue.search("quokka cache", now=now + 50 * YEAR, adjust=SearchOptions(decay=False))
        [aged_answer, ageless_answer] = answers(
            catalogue, [("memory_search", {**QUOKKA, "useDecay": decay}) for decay in (True, False)]
        )
    [before] = [row for row in aged.results if row.id == SPEC]
    [after] = [row for row in ageless.results if row.id == SPEC]
    added = [dict(row.steps)["composite"] - dict(row.steps)["importance"] for row in (before, after)]
    assert added[0] < added[1]
    assert [row.id for row in later.results] == [row.id for row in ageless.results]
    assert scores(aged_answer) != scores(ageless_answer)


def test_no_length_is_penalised_when_nobody_wants_that(memory: Memory) -> None:
    added = {"pipeline": "encoded", "rerank": {"add": [{"use": "cross_encoder", "optional": True, "after": "min_max"}]}}
    with memory.using(added) as encoded:
        found = encoded.session.searcher.adjusted(SearchOptions(length_penalty=False)).runner.pipeline
        [before] = [step.params for step in encoded.pipelines.current.rerank if step.id == "cross_encoder"]
        [after] = [step.params for step in found.rerank if step.id == "cross_encoder"]
        hashes = [hash_of(encoded, wanted) for wanted in (SearchOptions(), SearchOptions(length_penalty=False))]
    assert (before.short_factor, before.long_factor) == (0.9, 0.95)  # type: ignore[attr-defined]
    assert (after.short_factor, after.long_factor) == (1.0, 1.0)  # type: ignore[attr-defined]
    assert len(set(hashes)) == 2


@pytest.mark.parametrize("name", ["session_boost", "causal_boost", "contiguity"])
def test_a_signal_takes_part_once_however_often_it_is_asked_for(memory: Memory, name: str) -> None:
    use = name.removesuffix("_boost")
    with memory.using("catalogue") as catalogue:
        for wanted, expected in ((True, 1), (False, 0)):
            searching = catalogue.session.searcher.adjusted(SearchOptions(**{name: wanted}))  # type: ignore[arg-type]  # a name of a wish
            assert [step.id for step in searching.runner.pipeline.fusion.signals].count(use) == expected


def test_what_a_pipeline_has_no_step_for_is_said(memory: Memory) -> None:
    with memory.using("bm25") as plain:
        result = plain.search("quokka cache", adjust=SearchOptions(causal_boost=True, min_state="WARM"))
        assert plain.search("quokka cache", adjust=SearchOptions(causal_boost=False)).notes.warnings == ()
    assert [warning.split(" has no step ")[1].split("'")[1] for warning in result.notes.warnings] == [
        "causal", "state_filter",
    ]  # fmt: skip
    assert result.results


@pytest.mark.requirement("T2.parameters")
@pytest.mark.parametrize(
    ("wanted", "step"),
    [
        (SearchOptions(rerank=True), "'maxsim' or 'cross_encoder'"),
        (SearchOptions(decay=True), "'composite'"),
        (SearchOptions(length_penalty=True), "'cross_encoder'"),
        (SearchOptions(constitutional=True), "'constitutional'"),
        (SearchOptions(state_limits=True), "'state_filter'"),
    ],
)
def test_every_wish_that_a_pipeline_has_no_step_for_is_said(memory: Memory, wanted: SearchOptions, step: str) -> None:
    """What is not wanted is left out of such a pipeline anyway, and nothing needs to be said."""
    [name] = wanted.named
    with memory.using("bm25") as plain:
        [warning] = plain.search("quokka cache", adjust=wanted).notes.warnings
        assert plain.search("quokka cache", adjust=SearchOptions(**{name: False})).notes.warnings == ()  # type: ignore[arg-type]  # a name of a wish
    assert step in warning
    assert "'bm25' has no step" in warning
    with memory.using("catalogue", {"composite.decay": "false"}) as catalogue:
        assert (
            catalogue.session.searcher.wished(SearchOptions(decay=True, constitutional=True, state_limits=True)).unmet
            == ()
        )


def test_that_a_session_counts_needs_the_name_of_one(memory: Memory) -> None:
    unnamed = {"query": "quokka", "enableSessionBoost": True}
    told, named, unwanted = answers(
        memory,
        [
            ("memory_search", unnamed),
            ("memory_search", {**unnamed, "sessionId": "s"}),
            ("memory_search", {**unnamed, "enableSessionBoost": False}),
        ],
    )
    said = "no session is named, so its attention raises no result"
    assert [said in answer["hints"] for answer in (told, named, unwanted)] == [True, False, False]
    assert said in memory.search("quokka", adjust=SearchOptions(session_boost=True)).notes.warnings


def test_nobody_is_limited_by_state_who_does_not_want_it(memory: Memory) -> None:
    change = {"use": "state_filter", "limits": {"HOT": 1, "COLD": 0}}
    limited = {"pipeline": "limited", "annotate": {"change": [change]}}
    with memory.using(limited) as few:
        found = few.session.searcher.adjusted(SearchOptions(state_limits=False)).runner.pipeline
        [before], [after] = (
            [step.params for step in pipeline.annotate if step.use == "state_filter"]
            for pipeline in (few.pipelines.current, found)
        )
    assert before.limits == {"HOT": 1, "COLD": 0}  # type: ignore[attr-defined]
    assert after.limits == {}  # type: ignore[attr-defined]


@pytest.mark.requirement("T2.parameters")
@pytest.mark.parametrize("model", ["five_factor", "six_factor", "by_intent"])
def test_no_age_counts_for_who_does_not_want_it(memory: Memory, model: str) -> None:
    """Whichever factors the composite has: what counts after a lifetime is what counts today. The question has an
    intent, by which fusion knows how much recency counts."""
    values = {"composite.model": model}
    on = {"SPECKIT_FOLDER_SCORING": "true", "SPECKIT_NOVELTY_BOOST": "true", "SPECKIT_RECENCY_BOOST": "true"}
    config = memory.session.settings
    with Memory.open(config.db, "catalogue", root=config.root, environ=on, overrides=values) as aged:
        [row, *_] = aged.search(DEEP).results
        now = aged.get(row.id).updated_at or 0.0
        wanted = SearchOptions(decay=False)
        early, late = (aged.search(DEEP, now=at, adjust=wanted) for at in (now + 60, now + 80 * YEAR))
        told = [[(row.id, row.score, row.steps) for row in found.results] for found in (early, late)]
        faded = aged.search(DEEP, now=now + 80 * YEAR)
    assert told[0] == told[1]
    assert [(row.id, row.score, row.steps) for row in faded.results] != told[0]


def test_hand_overs_say_that_they_heed_no_wish(memory: Memory) -> None:
    root = memory.session.settings.root
    (root / "docs" / "handover.md").write_text("# Hand-over\n\n## State\n\nThe quokka cache is half built.\n")
    memory.index([root / "docs"])
    wanted = SearchOptions(rerank=False, state_limits=True)
    handed, found = (memory.search("quokka cache", mode=mode, adjust=wanted) for mode in ("resume", "auto"))
    assert handed.pipeline.name == "resume"
    [warning] = [one for one in handed.notes.warnings if "through a separate pipeline" in one]
    assert "rerank, state_limits" in warning
    assert not [one for one in found.notes.warnings if "through a separate pipeline" in one]


def test_wishes_leave_the_pipeline_as_it_is(memory: Memory) -> None:
    """Pipelines that were wanted are kept for the next of their kind, and for questions about their answers."""
    before = hash_of(memory, SearchOptions())
    wanted = [
        SearchOptions(rerank=False),
        SearchOptions(contiguity=True, causal_boost=True),
        SearchOptions(min_state="COLD"),
    ]
    hashes = [hash_of(memory, one) for one in (*wanted, *wanted)]
    assert hashes[:3] == hashes[3:]
    assert len({before, *hashes}) == 4
    assert hash_of(memory, SearchOptions()) == before == hash_of(memory, SearchOptions())
    result = memory.search("quokka cache", adjust=wanted[0])
    assert "maxsim" not in {step for row in result.results for step, _ in row.steps}
    assert memory.session.configuration.answered(result).answering(result).pipeline.hash == result.pipeline.hash
    assert memory.feedback.delivered(result) == ""


@pytest.mark.parametrize(("wrong", "words"), [("WARN", "did you mean 'WARM'"), ("x", "accepted")])
def test_a_state_that_there_is_not_is_refused(memory: Memory, wrong: str, words: str) -> None:
    with pytest.raises(SpeckitError, match=words):
        memory.search("quokka cache", adjust=SearchOptions(min_state=wrong))


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("no decay", "adjust is 'no decay' (str); accepted: SearchOptions"),
        ({"decay": False}, "adjust is {'decay': False} (dict); accepted: SearchOptions"),
        (SearchOptions(decay=cast(bool, "no")), "decay is 'no' (str); accepted: True, False or None"),
        (SearchOptions(min_state=cast(str, 5)), "min_state is 5 (int); accepted: a text"),
    ],
)
def test_a_wish_of_another_type_is_refused(memory: Memory, wanted: Any, words: str) -> None:
    with refused("E030", match=re.escape(words)):
        memory.search("quokka", adjust=wanted)


def test_an_intent_that_there_is_not_is_refused(memory: Memory) -> None:
    with pytest.raises(SpeckitError, match="did you mean 'fix_bug'"):
        memory.search("quokka cache", intent="fixbug")


@pytest.mark.requirement("C8")
def test_an_intent_that_was_said_is_sure_and_nothing_looks_for_another(memory: Memory) -> None:
    asked = memory.search("why was the quokka cache chosen?", intent="refactor")
    assert (asked.plan.intent, asked.plan.intent_confidence) == ("refactor", 1.0)
    assert "intent" not in {step.step for step in asked.timings_ms.steps}
    none = memory.search("why was the quokka cache chosen?", intent="")
    assert (none.plan.intent, none.plan.intent_confidence) == ("understand", 0.0)
    assert sorted(SIGNS) == sorted(INTENTS)


def test_four_modes_search_differently(memory: Memory, tmp_path: Path) -> None:
    """Quick asks the words alone, deep several wordings, resume hand-overs; focused is the pipeline itself."""
    plans = {mode: memory.search("fix the search error", mode=mode) for mode in ("quick", "focused", "deep", "resume")}
    asked = {mode: (found.pipeline.hash, found.plan.channels, found.plan.variants) for mode, found in plans.items()}
    assert len(set(asked.values())) == 4
    assert {"vector", "graph"} & set(plans["quick"].plan.channels) == set()
    assert {"bm25", "trigger", "identifier"} <= set(plans["quick"].plan.channels)
