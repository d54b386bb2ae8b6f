"""Records are read back as they were written, whatever engine keeps them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.records import (
    ChannelSighting,
    DroppedQueries,
    EvaluationFigure,
    FlagChange,
    Observation,
    PipelineRecord,
    PlacementChange,
    QueryJudgement,
    QueryRecord,
    RecordedPair,
    ScoredStep,
    ScoreSample,
    StoredEvaluation,
    StoredFigure,
    UseRecord,
    VariantTally,
    experiment_id,
)

SHADOW = experiment_id("c" * 12, "v" * 12, "shadow")


@pytest.mark.requirement("P10.retreat")
def test_the_latest_runs_of_a_variant_are_those_next_to_one_control(
    evaluation: EvaluationDatabase, observation: Callable[..., Observation]
) -> None:
    for number in range(12):
        seen = observation(number)
        [beside] = seen.variants
        evaluation.record([dataclasses.replace(seen, variants=(dataclasses.replace(beside, spent_ms=float(number)),))])
    key = "c" * 12, "v" * 12

    assert evaluation.latest_costs(*key, since=0.0, most=3) == [9.0, 10.0, 11.0]
    assert evaluation.latest_costs(*key, since=1009.0, most=100) == [10.0, 11.0]
    assert evaluation.latest_costs("other", key[1], since=0.0, most=100) == []
    assert evaluation.latest_costs(key[0], key[0], since=0.0, most=100) == []


def test_a_tally_counts_what_a_variant_saw_and_did_not_see_beside_one_control(
    evaluation: EvaluationDatabase, observation: Callable[..., Observation]
) -> None:
    key = "c" * 12, "v" * 12
    evaluation.record(
        [observation(number) for number in range(12)],
        [
            DroppedQueries(*key, "shadow", "queue", 2),
            DroppedQueries(*key, "dark_run", "late", 5),
            DroppedQueries("d", key[1], "shadow", "off", 1),
        ],
    )
    evaluation.prune(before=1004.0, max_bytes=1 << 30)

    assert evaluation.tally(*key, "shadow") == VariantTally(seen=12, failed=2, dropped={"queue": 2})
    assert evaluation.tally(*key, "dark_run") == VariantTally(seen=0, failed=0, dropped={"late": 5})
    assert evaluation.tally("d", key[1], "shadow") == VariantTally(seen=0, failed=0, dropped={"off": 1})


@pytest.mark.requirement("E1.whole")
def test_what_was_observed_is_read_back_bit_by_bit(
    evaluation: EvaluationDatabase, observation: Callable[..., Observation]
) -> None:
    seen = [observation(number) for number in range(12)]
    evaluation.record(seen)
    assert evaluation.pairs() == [RecordedPair(one.query, one.control, one.variants[0]) for one in seen]
    assert [one.query for one in seen] == evaluation.queries()
    assert evaluation.served(since=1006.0) == [Observation(one.query, one.control) for one in seen[6:]]
    assert len(evaluation.pairs(since=1006.0)) == 6


def test_variants_join_a_query_that_is_known_and_its_answer_stays(
    evaluation: EvaluationDatabase, observation: Callable[..., Observation]
) -> None:
    first, dark = observation(3, variants=False), observation(3, mode="dark_run")
    evaluation.record([first, dark, observation(3), observation(3)])
    assert [pair.variant.mode for pair in evaluation.pairs()] == ["dark_run", "shadow"]
    assert len(evaluation.queries()) == len(evaluation.served()) == 1
    assert evaluation.pairs(experiment=SHADOW) == [RecordedPair(first.query, first.control, observation(3).variants[0])]
    assert evaluation.pairs(experiment="ffffffffffff") == []
    [shadow] = [one for one in evaluation.experiments() if one.mode == "shadow"]
    assert evaluation.pairs_of(shadow) == evaluation.pairs(experiment=SHADOW)
    assert evaluation.pairs_of(shadow, since=2000.0) == []


def test_experiments_say_what_stood_side_by_side_and_what_was_lost(
    evaluation: EvaluationDatabase, observation: Callable[..., Observation]
) -> None:
    evaluation.record(
        [observation(number) for number in range(10)],
        [
            DroppedQueries("c" * 12, "v" * 12, "shadow", "queue", 2),
            DroppedQueries("c" * 12, "v" * 12, "shadow", "queue", 3),
        ],
        pipelines=[
            PipelineRecord("c" * 12, "default"),
            PipelineRecord("c" * 12, "default", 500.0),
            PipelineRecord("c" * 12, "default"),
        ],
    )
    evaluation.record(
        (),
        [DroppedQueries("c" * 12, "w" * 12, "dark_run", "busy", 4), DroppedQueries("c" * 12, "", "shadow", "busy", 9)],
    )
    lossy, found = evaluation.experiments()
    assert (found.id, found.pairs, found.failed, found.flag) == (SHADOW, 10, 2, "SPECKIT_RSF")
    assert (found.first, found.last, found.dropped) == (1000.0, 1009.0, {"queue": 5})
    assert (found.control, found.variant) == (PipelineRecord("c" * 12, "default", 500.0), PipelineRecord("v" * 12, ""))
    assert (lossy.pairs, lossy.dropped) == (0, {"busy": 4})


def test_a_question_is_kept_when_it_is_given(
    evaluation: EvaluationDatabase, query: Callable[..., QueryRecord], observation: Callable[..., Observation]
) -> None:
    asked = query(1, question={"text": "wärmer?", "folder": "docs"})
    evaluation.record([Observation(asked, observation(1).control)])
    assert evaluation.queries() == [asked]


def test_what_is_kept_beside_answers_is_read_back(evaluation: EvaluationDatabase) -> None:
    use = UseRecord("0" * 16, 7, "validated", 2, 5.0, "s")
    steps = (ScoredStep("fusion", "sum", ("a", "b"), ((0.5, 0.25), (0.1, 0.0)), (0.75, 0.1)),)
    channels = {
        "bm25": (ChannelSighting(7, 1, 12.5), ChannelSighting(9, 3, 2.0)),
        "vector": (ChannelSighting(9, 1, 0.75),),
    }
    scoring = ScoreSample("0" * 16, "c" * 12, 5.0, (7, 9), steps, channels)
    evaluation.record(
        (), uses=[use, use], scorings=[scoring, scoring], retreats=[PlacementChange("c", "v", "off", "slow", 4.0)]
    )
    evaluation.record((), uses=[UseRecord("0" * 16, 7, "opened", 2, 6.0)])
    assert evaluation.uses() == [use, UseRecord("0" * 16, 7, "opened", 2, 6.0)]
    assert evaluation.uses(since=5.5) == [UseRecord("0" * 16, 7, "opened", 2, 6.0)]
    assert evaluation.scorings() == [scoring]
    evaluation.record((), retreats=[PlacementChange("c", "v", "worker", "p95 of 600 ms", 3.0)])
    assert [retreat.placement for retreat in evaluation.retreats()] == ["worker", "off"]


def test_judgements_of_the_same_judge_are_replaced(evaluation: EvaluationDatabase) -> None:
    by_hand = QueryJudgement("q", 7, 3, "judged", "user", 2.0)
    evaluation.judge(
        [QueryJudgement("q", 7, 1, "judged", "user", 1.0), QueryJudgement("q", 7, 2, "made", "title", 3.0), by_hand]
    )
    assert evaluation.judgements() == [by_hand, QueryJudgement("q", 7, 2, "made", "title", 3.0)]
    assert evaluation.judgements("judged") == [by_hand]


def test_evaluations_keep_their_history_and_their_figures(evaluation: EvaluationDatabase) -> None:
    older = StoredEvaluation(
        "a" * 12, "eval compare", 1.0, "bundled", "d", {"pipelines": [{"name": "mine", "hash": "c" * 12}]}
    )
    newer = StoredEvaluation("a" * 12, "eval compare", 2.0, "bundled", "d", {"n": 2})
    for value, stored in ((0.5, older), (0.75, newer)):
        evaluation.keep(stored, [EvaluationFigure("c" * 12, "nDCG@10", value, 110)])
    assert evaluation.evaluation("a" * 12) == newer
    assert evaluation.evaluation("b" * 12) is evaluation.evaluation("") is None
    assert evaluation.evaluations() == [older, newer]
    about = "a" * 12, "eval compare"
    first = StoredFigure(*about, 1.0, "bundled", "mine", EvaluationFigure("c" * 12, "nDCG@10", 0.5, 110))
    second = StoredFigure(*about, 2.0, "bundled", "", EvaluationFigure("c" * 12, "nDCG@10", 0.75, 110))
    assert evaluation.measured("nDCG@10") == [first, second]
    assert evaluation.measured("nDCG@10", 1.5) == [second]
    assert evaluation.measured("MRR@5") == []
    assert evaluation.metrics() == ["nDCG@10"]


def test_changes_of_flags_are_kept_with_their_evidence(evaluation: EvaluationDatabase) -> None:
    evaluation.flag_changed(FlagChange("SPECKIT_RSF", "shadow", "enabled", 2.0, "a" * 12))
    evaluation.flag_changed(FlagChange("SPECKIT_MMR", "off", "dark_run", 1.0, ""))
    assert evaluation.flag_changes("SPECKIT_RSF") == [FlagChange("SPECKIT_RSF", "shadow", "enabled", 2.0, "a" * 12)]
    assert [change.name for change in evaluation.flag_changes()] == ["SPECKIT_MMR", "SPECKIT_RSF"]


def test_a_transaction_that_fails_leaves_nothing(
    evaluation: EvaluationDatabase, observation: Callable[..., Observation]
) -> None:
    with pytest.raises(SpeckitError, match="E081"):
        evaluation.record([observation(1)], uses=[UseRecord("0" * 16, 7, "opened", 0, 6.0)])
    assert evaluation.queries() == []


def test_old_queries_are_given_up_in_bounded_steps_and_counted(
    evaluation: EvaluationDatabase, observation: Callable[..., Observation]
) -> None:
    evaluation.record([observation(number) for number in range(1200)])
    assert evaluation.prune(before=2100.0, max_bytes=10**9, steps=1) == 500
    assert evaluation.prune(before=2100.0, max_bytes=10**9) == 600
    assert evaluation.prune(before=2100.0, max_bytes=10**9) == 0
    assert len(evaluation.pairs()) == len(evaluation.queries()) == 100
    (found,) = evaluation.experiments()
    assert (found.pairs, found.pruned, evaluation.counts()["pruned"]) == (100, 1100, 1100)


def test_what_is_kept_for_good_takes_no_room_from_queries(
    evaluation: EvaluationDatabase, observation: Callable[..., Observation]
) -> None:
    evaluation.record([observation(number) for number in range(1_500)])
    for number in range(40):
        report = {"lines": [f"{number}:{line}" for line in range(9_000)]}
        figures = [EvaluationFigure("c" * 12, f"metric {figure}", 0.5, 100) for figure in range(50)]
        evaluation.keep(StoredEvaluation(f"{number:012}", "eval replay", 1.0, "d", "d", report), figures)
    judged = [QueryJudgement(f"{number:016x}", 7, 1, "judged", "user", 1.0) for number in range(5_000)]
    evaluation.judge(judged)
    assert evaluation.kept_bytes() > 4_000_000

    assert evaluation.prune(before=0.0, max_bytes=2_000_000) == 0
    assert len(evaluation.queries()) == 1_500

    assert evaluation.prune(before=0.0, max_bytes=400_000) >= 500
    assert len(evaluation.queries()) >= 100
    assert evaluation.prune(before=0.0, max_bytes=400_000) == 0
    assert len(evaluation.evaluations()) == 40
    assert len(evaluation.judgements()) == 5_000
