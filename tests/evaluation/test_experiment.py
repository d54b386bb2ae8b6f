from __future__ import annotations

import json
from dataclasses import replace

import pytest

from speckit_memory.evaluation.experiments.experiment import judge_experiment
from speckit_memory.evaluation.experiments.interleaving import Team
from speckit_memory.evaluation.statistics.distinct_queries import lot
from speckit_memory.evaluation.statistics.report import as_document
from speckit_memory.memory.store.evaluation.records import (
    AnswerRecord,
    ExperimentRecord,
    Mode,
    PipelineRecord,
    QueryRecord,
    RecordedPair,
    StepCost,
    UseRecord,
    VariantRecord,
)

CONTROL, VARIANT = PipelineRecord("aaaa", "default"), PipelineRecord("bbbb", "rsf")


def experiment(mode: Mode = "shadow", **dropped: int) -> ExperimentRecord:
    return ExperimentRecord(CONTROL, VARIANT, mode, "SPECKIT_RSF_FUSION", 1000.0, 2000.0, 0, 0, dropped)


def pair(
    number: int,
    control: list[int],
    variant: list[int],
    *,
    mode: Mode = "shadow",
    failure: str = "",
    intent: str = "understand",
    overhead_ms: float = 2.0,
    spent_ms: float = 1.0,
) -> RecordedPair:
    """Both answers to one query, the control's in 10 ms."""
    query = QueryRecord(f"{number:016x}", 1000.0 + number, intent, "simple", "docs", "auto", 10, 1, "", "s", number)
    answers = [
        AnswerRecord(
            record.hash,
            () if lost else tuple(ids),
            () if lost else tuple(1 / rank for rank in range(1, len(ids) + 1)),
            10.0 + more,
            (
                StepCost("fusion", record.name, 4.0 + more, 30, 20, "done"),
                StepCost("candidates", "bm25", 6.0, 0, 30, "done", bool(more)),
            ),
            lost,
        )
        for record, ids, more, lost in ((CONTROL, control, 0.0, ""), (VARIANT, variant, overhead_ms, failure))
    ]
    parted = "" if control == variant else "fusion.rsf"
    return RecordedPair(query, answers[0], VariantRecord(mode, answers[1], "SPECKIT_RSF_FUSION", parted, spent_ms, 0.2))


@pytest.mark.requirement("P5")
def test_the_figures_of_an_experiment_are_means_over_its_pairs() -> None:
    pairs = [pair(0, [1, 2, 3], [1, 2, 3]), pair(1, [1, 2, 3], [3, 2, 1]), pair(2, [1, 2, 3], [1, 2, 4])]
    report = judge_experiment(pairs, experiment=experiment())
    assert report.agreement is not None
    assert (report.queries, report.compared, report.agreement.ordering_differences) == (3, 3, 2)
    assert report.agreement.overlap_10 is not None
    assert report.agreement.overlap_10.mean == pytest.approx((1 + 1 + 2 / 3) / 3)
    assert report.agreement.kendall_tau_b is not None
    assert report.agreement.kendall_tau_b.mean == pytest.approx((1 + -1 + 1) / 3, abs=0.35)
    assert report.agreement.mean_shift == pytest.approx((2 + 2) / 8)
    assert report.parted_at == {"fusion.rsf": 2}
    assert [contrast.pair.query.id[-1] for contrast in report.differing] == ["2", "1"]


@pytest.mark.requirement("P5")
def test_intervals_of_agreement_hold_at_every_look() -> None:
    pairs = [pair(number, [1, 2, 3], [1, 2, 3] if number % 2 else [3, 2, 4]) for number in range(60)]
    live = judge_experiment(pairs, experiment=experiment()).agreement
    many = judge_experiment(pairs * 40, experiment=experiment()).agreement
    assert live is not None
    assert many is not None
    for name in ("kendall_tau_b", "overlap_5", "overlap_10", "rbo"):
        low, high = getattr(live, name).ci95
        narrow = getattr(many, name).ci95
        assert low < narrow[0] < getattr(many, name).mean < narrow[1] < high
    alike = judge_experiment([pair(n, [1, 2], [1, 2]) for n in range(60)], experiment=experiment()).agreement
    assert alike is not None
    assert alike.overlap_10 is not None
    assert alike.overlap_10.ci95 is not None
    assert 0.9 < alike.overlap_10.ci95[0] < 0.98, "a query that differs may not have come yet"
    assert alike.overlap_10.ci95[1] == 1.0


def test_the_json_of_an_experiment_has_what_scripts_rely_on() -> None:
    pairs = [pair(number, [1, 2, 3], [3, 2, 1]) for number in range(4)]
    failed = pair(9, [1], [], failure="KeyError in rsf")
    report = judge_experiment([*pairs, failed], experiment=experiment(queue=3, state=1))
    document = as_document(replace(report, keys={1: "a.md"}))
    assert json.loads(json.dumps(document)) == document
    expected = {
        "id": experiment().id,
        "control": {"name": "default", "hash": "aaaa"},
        "variant": {"name": "rsf", "hash": "bbbb", "flag": "SPECKIT_RSF_FUSION"},
        "mode": "shadow",
        "queries": 5,
        "dropped": 4,
        "failed": 1,
        "ordering_differences": 4,
        "overlap@10": 1.0,
        "kendall_tau_b": -1.0,
        "rbo": pytest.approx(0.855),
        "overhead_ms": {"p50": 2.0, "p95": 2.0, "n": 4},
        "served_overhead_ms": {"p50": 0.2, "p95": 0.2, "n": 5},
        "verdict": "undecided",
    }
    assert {name: document[name] for name in expected} == expected
    assert document["differing"][0]["control"][0] == {"id": 1, "score": 1.0, "key": "a.md"}
    assert (document["dropped_by_reason"], document["failures"]) == ({"queue": 3, "state": 1}, {"KeyError in rsf": 1})


def judged(*relevant: int) -> dict[int, float]:
    """Every memory judged, these relevant."""
    return {memory: float(memory in relevant) for memory in range(1, 8)}


SWAPPED = [[1, 2, 3], [3, 2, 1]]
FIRST_TEN, LAST_TWO_SWAPPED = [*range(1, 11)], [*range(1, 9), 10, 9]
FIRST = sorted(range(60), key=lambda number: lot(f"{number:016x}", readable=False))
"""Of sixty queries, those that are judged first come first."""
CASES = {
    "not run": (
        [], experiment(), {},
        "undecided", "rsf has not run alongside default yet, so there is nothing to compare.",
    ),
    "all dropped": (
        [], experiment(queue=2, state=1), {},
        "undecided",
        "rsf has seen none of 3 queries (queue: 2, state: 1), so there is nothing to compare with default.",
    ),
    "all failed": (
        [pair(number, [1], [], failure="KeyError in rsf") for number in range(3)], experiment(), {},
        "failed",
        "rsf failed on all 3 queries (KeyError in rsf: 3), so there is nothing to compare with default.",
    ),
    "one pair": (
        [pair(0, [1, 2], [1, 2])], experiment(), {},
        "undecided",
        "Undecided: rsf gave the same memories in the same order as default on the only query and took 2.0 ms more at "
        "the median, which may be chance; with 95 % confidence nDCG@10 differs by at most 0.983 on queries like "
        "these; 874 more queries like these would let it be called no difference.",
    ),
    "identical": (
        [pair(number, [1, 2], [1, 2], overhead_ms=0.5) for number in range(900)], experiment(), {},
        "same",
        "No difference: rsf gave the same memories in the same order as default on all 900 queries and takes 0.5 ms "
        "more at the median; with 95 % confidence nDCG@10 differs by at most 0.005 on queries like these, so "
        "refactoring is safe as far as they go.",
    ),
    "hardly different": (
        [pair(number, FIRST_TEN, LAST_TWO_SWAPPED if number < 8 else FIRST_TEN) for number in range(1_000)],
        experiment(), {},
        "same",
        "No difference in quality between rsf and default: judgements can move nDCG@10 on 8 of 1,000 queries, the mean "
        "by at most 0.0001 (on all queries like these: 0.004); it answers 8 of 1,000 queries differently, with 100% of "
        "the first ten in common and takes 2.0 ms more at the median.",
    ),
    "not judged": (
        [pair(number, *SWAPPED) for number in range(50)], experiment(), {},
        "undecided",
        "Undecided on quality of rsf against default: judgements can move nDCG@10 on 50 of 50 queries, the mean by at "
        "most 0.5000 (on all queries like these: 0.540); about 4,412 queries in all, of which some 4,412 differ "
        "and are judged, would show a difference of 0.020; it answers 50 of 50 queries differently, with 100% of the "
        "first ten in common and takes "
        "2.0 ms more at the median.",
    ),
    "dark run": (
        [pair(number, [1], [2], mode="dark_run", spent_ms=600.0) for number in range(20)], experiment("dark_run"), {},
        "undecided",
        "rsf takes 2.0 ms more at the median over 20 queries and breaks its budget of 500 ms (p95 600.0 ms); a dark "
        "run keeps no results, so it says nothing about their quality.",
    ),
    "worse": (
        [pair(number, *SWAPPED) for number in range(60)], experiment(),
        {f"{number:016x}": judged(1) for number in range(60)},
        "worse",
        "rsf is worse than default on nDCG@10 (-0.500, 95 % interval -0.549 to -0.354, 60 judged queries); it answers "
        "60 of 60 queries differently, with 100% of the first ten in common and takes 2.0 ms more at the median.",
    ),
    "few judged": (
        [pair(number, *SWAPPED) for number in range(60)], experiment(),
        {f"{number:016x}": judged(3 if number % 3 else 1) for number in FIRST[:12]},
        "undecided",
        "",
    ),
}  # fmt: skip


@pytest.mark.requirement("P5.sentence")
@pytest.mark.parametrize("case", CASES)
def test_the_sentence_is_true_in_every_case(case: str) -> None:
    pairs, named, judgements, verdict, expected = CASES[case]
    report = judge_experiment(pairs, experiment=named, judgements=judgements)
    assert report.verdict == verdict
    if expected:
        assert report.sentence == expected
    else:
        assert report.queries_needed is not None
        more = report.queries_needed - 60
        told = (
            f"and judging the 48 that wait and about {more} more queries would show a difference of this size, or none"
        )
        assert told in report.sentence
    json.dumps(as_document(report))


def test_what_a_variant_failed_on_stands_in_the_sentence() -> None:
    pairs = [pair(number, [1], [1]) for number in range(60)]
    report = judge_experiment([*pairs, pair(61, [1], [], failure="KeyError in rsf")], experiment=experiment())
    assert (report.queries, report.compared, report.failed, report.verdict) == (61, 60, 1, "undecided")
    assert report.sentence.endswith(" It failed on 1 of 61 queries.")


def test_the_control_against_itself_is_the_noise_floor() -> None:
    pairs = [pair(number, *SWAPPED) for number in range(4)]
    same = [pair(number, [1, 2], [1, 2] if number else [2, 1], overhead_ms=0.1 * number) for number in range(4)]
    assert judge_experiment(pairs, experiment=experiment()).noise is None
    noise = judge_experiment(pairs, experiment=experiment(), noise=same).noise
    assert noise is not None
    assert noise.overhead is not None
    assert (noise.queries, noise.ordering_differences) == (4, 1)
    assert noise.overhead.p50 == pytest.approx(0.15)


@pytest.mark.requirement("P5.latency")
def test_cost_is_told_step_by_step_and_against_the_budget() -> None:
    pairs = [pair(number, *SWAPPED, overhead_ms=number / 10, spent_ms=100.0 * number) for number in range(1, 21)]
    report = judge_experiment(pairs, experiment=experiment())
    assert report.cost.overhead is not None
    assert report.cost.overhead.p50 == pytest.approx(1.05)
    assert (report.cost.verdict, report.cost.over_budget, report.cost.budget_broken) == ("slower", 15, True)
    assert [(step.stage, step.step, step.shared) for step in report.steps] == [
        ("candidates", "bm25", 20), ("fusion", "default", 0), ("fusion", "rsf", 0),
    ]  # fmt: skip
    assert (report.steps[1].variant, report.steps[2].control) == (None, None)


@pytest.mark.requirement("P5.latency")
@pytest.mark.parametrize(("overhead_ms", "verdict"), [(0.0, "undecided"), (2.0, "slower"), (-2.0, "faster")])
def test_the_median_overhead_has_a_verdict(overhead_ms: float, verdict: str) -> None:
    pairs = [pair(number, *SWAPPED, overhead_ms=overhead_ms) for number in range(30)]
    assert judge_experiment(pairs, experiment=experiment()).cost.verdict == verdict


def test_segments_have_figures_from_ten_queries_up() -> None:
    pairs = [pair(number, *SWAPPED, intent="fix_bug" if number < 9 else "understand") for number in range(40)]
    judgements = {f"{number:016x}": judged(1) for number in range(40)}
    report = judge_experiment(pairs, experiment=experiment(), judgements=judgements)
    found = {(one.by, one.value): one for one in report.segments}
    assert list(found) == [
        ("intent", "understand"),
        ("intent", "fix_bug"),
        ("complexity", "simple"),
        ("folder", "docs"),
    ]
    few, many = found["intent", "fix_bug"], found["intent", "understand"]
    assert (few.queries, few.too_few, few.quality) == (9, True, None)
    assert many.agreement is not None
    assert many.quality is not None
    assert (many.queries, many.agreement.ordering_differences, many.quality.verdict) == (31, 31, "worse")
    whole = found["complexity", "simple"].quality
    assert whole is not None
    assert whole.p_adjusted == pytest.approx(3 * whole.p), "the smallest of three"


@pytest.mark.requirement("P5.deltas")
def test_a_query_without_a_judgement_of_what_moved_is_left_out() -> None:
    pairs = [
        *(pair(number, [1, 2], [2, 1]) for number in range(10)),
        pair(10, [1, 2], [2, 9]),
        pair(11, [1, 2], [2, 1]),
        *(pair(number, [1, 2], [1, 2]) for number in range(12, 16)),
    ]
    judgements = {f"{number:016x}": judged(*([1] if number != 11 else [])) for number in range(16)}
    quality = judge_experiment(pairs, experiment=experiment(), judgements=judgements).quality
    assert {(one.queries, one.alike) for one in quality} == {(11, 4)}, "not the unjudged 9; nothing relevant is no gain"
    assert quality[1].metric == "MRR@5"
    assert quality[1].delta == pytest.approx(-0.5 * 10 / 11 * 12 / 16), "over all queries, of which four do not differ"


@pytest.mark.requirement("P5.deltas")
def test_documents_that_stand_at_the_same_rank_need_no_judgement() -> None:
    """What `eval judge` asks for is enough: the tenth place is all that these answers differ in."""
    pairs = [pair(number, [*range(1, 10), 10], [*range(1, 10), 11]) for number in range(60)]
    judgements = {f"{number:016x}": {10: 0.0, 11: 3.0} for number in range(60)}
    report = judge_experiment(pairs, experiment=experiment(), judgements=judgements)
    found = {one.metric: one for one in report.quality}
    assert (report.verdict, found["nDCG@10"].verdict, found["nDCG@10"].queries) == ("better", "better", 60)
    assert (found["MRR@5"].queries, found["MRR@5"].alike, found["MRR@5"].delta) == (0, 60, 0.0)


@pytest.mark.requirement("P5.deltas")
def test_few_differing_queries_are_no_evidence_that_nothing_is_lost() -> None:
    same = [pair(number, [1, 2], [1, 2]) for number in range(240)]
    differing = [pair(number, [1, 2], [2, 1]) for number in range(240, 250)]
    judgements = {f"{number:016x}": judged(2 if number % 2 else 1) for number in range(240, 250)}
    one = judge_experiment([*same, differing[0]], experiment=experiment(), judgements=judgements)
    ten = judge_experiment([*same, *differing], experiment=experiment(), judgements=judgements).quality[0]
    assert one.quality == ()
    assert ten.queries == 10
    assert ten.ci95[0] < -0.02, "250 queries cannot rule out a loss on one or two in a hundred"
    assert ten.ci95[1] > 0.02
    some = {query: known for query, known in judgements.items() if int(query, 16) % 5}
    last = lot(max(judgements, key=lambda query: lot(query, readable=False)), readable=False)
    others = [number for number in range(250, 400) if lot(f"{number:016x}", readable=False) > last][:5]
    more = [pair(number, [1, 2], [2, 1]) for number in others]
    sampled = judge_experiment([*same, *differing, *more], experiment=experiment(), judgements=judgements).quality[0]
    assert sampled.ci95[0] < ten.ci95[0], "five differ and are not judged: nobody knows how"
    assert judge_experiment([*same, *differing], experiment=experiment(), judgements=some).quality == ()


def test_answers_that_differ_in_nothing_that_counts_are_known_without_judgements() -> None:
    pairs = [pair(number, [*range(1, 11), 11], [*range(1, 11), 12]) for number in range(60)]
    report = judge_experiment(pairs, experiment=experiment())
    assert {(one.queries, one.alike, one.delta) for one in report.quality} == {(0, 60, 0.0)}
    assert report.verdict == "undecided"


def used(number: int, memory: int) -> UseRecord:
    return UseRecord(f"{number:016x}", memory, "opened", 1, 3000.0)


@pytest.mark.requirement("P5.deltas")
@pytest.mark.parametrize(("memory", "verdict"), [(3, "better"), (1, "undecided")])
def test_uses_show_a_variant_better_but_never_worse(memory: int, verdict: str) -> None:
    pairs = [pair(number, *SWAPPED) for number in range(60)]
    report = judge_experiment(pairs, experiment=experiment(), uses=[used(number, memory) for number in range(60)])
    assert report.verdict == verdict
    assert {one.evidence for one in report.quality} == {"uses"}
    if verdict == "undecided":
        assert "and more queries may settle it; it answers" in report.sentence


@pytest.mark.requirement("P5.teams")
def test_interleaved_answers_are_judged_by_their_duels() -> None:
    pairs = [pair(number, *SWAPPED, mode="interleaved") for number in range(40)]
    teams: dict[str, dict[int, Team]] = {f"{number:016x}": {1: "control", 3: "variant"} for number in range(40)}
    report = judge_experiment(
        pairs, experiment=experiment("interleaved"), teams=teams, uses=[used(number, 3) for number in range(40)]
    )
    assert (report.verdict, report.quality) == ("better", ())
    assert report.sentence.startswith(
        "rsf is better than default: it won 40 of 40 interleaved queries and lost 0 (lead +1"
    )
    assert as_document(report)["interleaving"]["variant_wins"] == 40


def planted(number: int) -> RecordedPair:
    """Of seven questions one swaps the first two, to the good; on six the relevant memory falls from 3 to 10."""
    base = list(range(1, 11))
    return pair(number, base, [2, 1, *base[2:]] if number % 7 == 0 else [1, 2, *base[3:], 3])


def labels(numbers: list[int]) -> dict[str, dict[int, float]]:
    return {f"{n:016x}": {m: float(m == (3 if n % 7 else 2)) for m in range(1, 11)} for n in numbers}


@pytest.mark.requirement("P5.deltas")
def test_judgements_that_somebody_chose_speak_for_no_other_queries() -> None:
    pairs = [planted(number) for number in range(350)]
    chosen = judge_experiment(pairs, experiment=experiment(), judgements=labels(list(range(0, 350, 7))))
    assert (chosen.verdict, chosen.quality) == ("undecided", ())
    every = judge_experiment(pairs, experiment=experiment(), judgements=labels(list(range(350)))).quality[0]
    drawn = sorted(range(350), key=lambda number: lot(f"{number:016x}", readable=False))
    first = judge_experiment(pairs, experiment=experiment(), judgements=labels(drawn[:120])).quality[0]
    assert (first.queries, first.verdict, every.verdict) == (120, "worse", "worse")
    assert first.ci95[0] < every.delta < first.ci95[1]


def test_what_is_skipped_counts_as_its_worst_and_more_than_a_tenth_is_no_sample() -> None:
    pairs = [planted(number) for number in range(350)]
    drawn = sorted(range(350), key=lambda number: lot(f"{number:016x}", readable=False))
    whole, few, many = (
        judge_experiment(pairs, experiment=experiment(), judgements=labels(said)).quality
        for said in (drawn[:120], [*drawn[:50], *drawn[55:120]], drawn[::2][:60])
    )
    assert few[0].queries == 115
    assert few[0].ci95[0] < whole[0].ci95[0] < whole[0].ci95[1] < few[0].ci95[1]
    assert few[0].p > whole[0].p
    assert many == ()


@pytest.mark.requirement("P5.deltas")
def test_one_question_asked_again_and_again_is_one() -> None:
    def asked(number: int, text: str) -> RecordedPair:
        seen = pair(number, *SWAPPED)
        return replace(seen, query=replace(seen.query, question={"text": text} if text else None, state=1))

    for text in ("status of the gateway", ""):
        pairs = [asked(number, text) for number in range(60)]
        report = judge_experiment(pairs, experiment=experiment(), uses=[used(number, 3) for number in range(60)])
        assert (report.compared, report.questions, report.verdict, report.quality) == (60, 1, "undecided", ())
    spelt = [asked(0, "Status of  the gateway"), asked(1, "status of the gateway"), asked(2, "another")]
    assert judge_experiment(spelt, experiment=experiment()).questions == 2
    alike = [asked(number, "one") for number in range(60)]
    alike = [replace(one, variant=replace(one.variant, answer=one.control)) for one in alike]
    same = judge_experiment(alike, experiment=experiment())
    assert same.verdict == "undecided", "sixty times the same answer to one question says nothing of others"
    assert "874 more queries like these would let it be called no difference" in same.sentence
